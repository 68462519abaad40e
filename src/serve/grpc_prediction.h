/* tensorflow.serving.PredictionService over the models; see grpc_services.h. */
#ifndef SX_SERVE_GRPC_PREDICTION_H
#define SX_SERVE_GRPC_PREDICTION_H

#include <stdbool.h>

#include "serve/call.h"

/* Answers a request, if its path is that of one of the methods; false if it is not. */
bool sx_grpc_prediction_handle(sx_calls *calls, sx_http_exchange *exchange);

#endif
