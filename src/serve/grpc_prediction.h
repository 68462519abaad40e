/* tensorflow.serving.PredictionService and SessionService over the models; see grpc_services.h. */
#ifndef SX_SERVE_GRPC_PREDICTION_H
#define SX_SERVE_GRPC_PREDICTION_H

#include <stdbool.h>

#include "serve/grpc_services.h"

/* Answers a request, if its path is that of one of the methods; false if it is not. The
 * configuration must live as long as the calls. */
bool sx_grpc_prediction_handle(const sx_grpc_config *config, sx_http_exchange *exchange);

#endif
