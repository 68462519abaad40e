/* The gRPC services of the model server, beside the REST API and over the same models and threads:
 *
 *   tensorflow.serving.PredictionService   Predict, Classify, Regress, MultiInference,
 *                                          GetModelMetadata
 *   tensorflow.serving.ModelService        GetModelStatus, HandleReloadConfigRequest
 *   tensorflow.serving.SessionService      SessionRun, of the tensors of signatures
 *   grpc.health.v1.Health                  Check, Watch
 *   grpc.reflection.v1, v1alpha            ServerReflectionInfo
 *
 * A request is a call (call.h), as one of REST. Health is readiness: SERVING while
 * every model has a served version, also under the unqualified names that TensorFlow Serving's
 * health service has. Watch sends each change, seen within 100 ms. */
#ifndef SX_SERVE_GRPC_SERVICES_H
#define SX_SERVE_GRPC_SERVICES_H

#include <sextant/status.h>

#include "serve/call.h"

typedef struct sx_grpc_services sx_grpc_services;

typedef struct sx_grpc_config {
    sx_calls *calls;     /* has the models and threads; must outlive the services */
    bool tensor_content; /* Predict answers with tensor_content, not with lists of values */
} sx_grpc_config;

SX_MUST_USE sx_status sx_grpc_services_create(const sx_grpc_config *config, sx_grpc_services **out);
/* Ends the watches and reloads, which could take as long as they like; Health says NOT_SERVING from
 * now on. Before the HTTP server is drained. Idempotent; NULL is allowed. */
void sx_grpc_services_stop(sx_grpc_services *services);
/* Stops and frees; no more calls may arrive. NULL is allowed. */
void sx_grpc_services_destroy(sx_grpc_services *services);

/* Answers a request that is a call (sx_grpc_is_call). */
void sx_grpc_services_handle(sx_grpc_services *services, sx_http_exchange *exchange);

#endif
