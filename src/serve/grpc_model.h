/* tensorflow.serving.ModelService over the models; see grpc_services.h.
 *
 *   GetModelStatusRequest   model_spec 1
 *   GetModelStatusResponse  model_version_status 1 {version 1, state 2, status 3}
 *   ReloadConfigRequest     config 1: a ModelServerConfig, metric_names 2
 *   ReloadConfigResponse    status 1 {error_code 1, error_message 2}, metric 2 {name 1,
 *                           int64_value_increase 2}
 *
 * A reload replaces the whole set of models or changes nothing, and is answered when those that are
 * new are served, or cannot be. It waits on a thread of its own, one at a time. */
#ifndef SX_SERVE_GRPC_MODEL_H
#define SX_SERVE_GRPC_MODEL_H

#include <sextant/status.h>

#include "net/http_server.h"
#include "serve/manager.h"

typedef struct sx_grpc_model sx_grpc_model;

SX_MUST_USE sx_status sx_grpc_model_create(sx_manager *manager, sx_grpc_model **out);
/* Ends the reloads that wait: UNAVAILABLE. NULL is allowed. */
void sx_grpc_model_stop(sx_grpc_model *service);
void sx_grpc_model_destroy(sx_grpc_model *service); /* stops first; NULL is allowed */

/* The two methods; `message` is their request. */
void sx_grpc_model_status(sx_grpc_model *service, sx_http_exchange *exchange, sx_bytes message);
void sx_grpc_model_reload(sx_grpc_model *service, sx_http_exchange *exchange, sx_bytes message);

#endif
