/* KServe's gRPC service, inference.GRPCInferenceService: ServerLive, ServerReady, ModelReady,
 * ServerMetadata, ModelMetadata, ModelInfer, RepositoryIndex. */
#ifndef SX_SERVE_KSERVE_GRPC_H
#define SX_SERVE_KSERVE_GRPC_H

#include <stdbool.h>

#include "serve/grpc_services.h"

/* Answers a request, if its path is that of one of the methods; false if it is not. The
 * configuration must live as long as the calls. */
bool sx_kserve_grpc_handle(const sx_grpc_config *config, sx_http_exchange *exchange);

#endif
