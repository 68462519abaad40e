/* KServe's gRPC service, inference.GRPCInferenceService: ServerLive, ServerReady, ModelReady,
 * ServerMetadata, ModelMetadata, ModelInfer, RepositoryIndex. */
#ifndef SX_SERVE_KSERVE_GRPC_H
#define SX_SERVE_KSERVE_GRPC_H

#include <stdbool.h>

#include "serve/call.h"

/* Answers a request, if its path is that of one of the methods; false if it is not. */
bool sx_kserve_grpc_handle(sx_calls *calls, sx_http_exchange *exchange);

#endif
