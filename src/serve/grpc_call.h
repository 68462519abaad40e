/* A gRPC method that runs a model: what the services (PredictionService, KServe's) have in common.
 *
 *   loop thread       reads which version the message asks for, unless it is compressed; submits
 *                     the call (call.h)
 *   executor thread   decompresses the message, then the method: reads it, and prints what has run
 */
#ifndef SX_SERVE_GRPC_CALL_H
#define SX_SERVE_GRPC_CALL_H

#include <stdbool.h>

#include "serve/grpc_services.h"
#include "serve/predict_proto.h"

typedef struct sx_grpc_call sx_grpc_call;

/* How the version that a method asks for is read from its message, and how that answers it. */
typedef struct sx_grpc_method {
    const char *path;
    sx_metric_api api;
    bool uncounted;
    sx_status (*read_spec)(sx_bytes message, sx_predict_spec *out);
    /* The steps of a call (call.h) with the version that the message asks for. */
    sx_status (*read)(sx_grpc_call *grpc);
    sx_status (*print)(sx_grpc_call *grpc, const sx_tensor *outputs); /* NULL: nothing runs */
    sx_log_kind log; /* as what its messages are logged; 0: a run of a signature, if it is one */
} sx_grpc_method;

/* Lives in the exchange's scratch memory. */
struct sx_grpc_call {
    sx_call call; /* must be first: converted by address */
    const sx_grpc_config *config;
    const sx_grpc_method *method;
    sx_bytes message;
    sx_predict_spec spec; /* that it asks for */
    size_t begin;         /* of the response in `out` */
};

/* Answers a request, if its path is that of one of the methods; false if it is not. The methods and
 * the configuration must live as long as the calls. */
bool sx_grpc_call_handle(const sx_grpc_config *config, sx_http_exchange *exchange,
                         const sx_grpc_method *methods, size_t count);

#endif
