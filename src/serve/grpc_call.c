/* gRPC methods that run models; see grpc_call.h. */
#include "serve/grpc_call.h"

#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "net/grpc.h"
#include "serve/router.h"

_Static_assert(sizeof(sx_grpc_call) <= SX_HTTP_SCRATCH, "it must fit the scratch memory");

/* A view as text; cut if it is longer than any name. */
static const char *name_text(sx_bytes view, char text[SX_ROUTE_NAME])
{
    const size_t size = SX_MIN(view.size, (size_t)SX_ROUTE_NAME - 1);
    if (size > 0) {
        memcpy(text, view.data, size);
    }
    text[size] = '\0';
    return text;
}

static sx_status acquire(sx_call *call, const sx_predict_spec *named)
{
    char name[SX_ROUTE_NAME], label[SX_ROUTE_NAME];
    const sx_model_spec spec = {.name = name_text(named->name, name),
                                .version = named->version < 0 ? SX_LATEST_VERSION : named->version,
                                .label = name_text(named->label, label)};
    return sx_call_acquire(call, &spec);
}

/* ---- The steps of a call ---- */

static sx_status find(sx_call *call)
{
    sx_grpc_call *grpc = (sx_grpc_call *)call;
    SX_TRY(sx_grpc_request(call->exchange, sx_calls_max_body_bytes(call->calls), &call->inflated,
                           &grpc->message));
    SX_TRY(grpc->method->read_spec(grpc->message, &grpc->spec));
    const bool found = call->servable != NULL || call->awaited.lifecycle != NULL;
    return found ? SX_OK : acquire(call, &grpc->spec); /* it was compressed */
}

/* What is to be done when nothing runs any more. */
static void end_message(sx_grpc_call *grpc)
{
    const sx_call *call = &grpc->call;
    const sx_buf *out = &call->out;
    sx_grpc_message_end(&grpc->call.out, grpc->begin);
    if (call->logged != NULL && call->logs_itself && !out->failed) {
        const sx_predict_spec ran = {.name = grpc->spec.name,
                                     .version = sx_served_version(call->servable),
                                     .signature = sx_serve_signature_name(grpc->spec.signature)};
        sx_log_messages(call->logged, grpc->method->log, &ran, grpc->message,
                        (sx_bytes){out->data + grpc->begin + SX_GRPC_PREFIX,
                                   out->size - grpc->begin - SX_GRPC_PREFIX});
    }
}

static sx_status read_call(sx_call *call, int worker)
{
    sx_grpc_call *grpc = (sx_grpc_call *)call;
    (void)worker;
    grpc->begin = sx_grpc_message_begin(&call->out);
    SX_TRY(grpc->method->read(grpc));
    if (!call->runs) {
        end_message(grpc);
    }
    return SX_OK;
}

static sx_status print_call(sx_call *call, const sx_tensor *outputs)
{
    sx_grpc_call *grpc = (sx_grpc_call *)call;
    SX_TRY(grpc->method->print(grpc, outputs));
    if (!call->runs) {
        end_message(grpc);
    }
    return SX_OK;
}

/* What the client is told instead of `status`. */
static sx_status explain(const sx_call *call, sx_status status)
{
    const sx_code code = sx_status_code(status);
    sx_status better = SX_OK;
    if (code == SX_DATA_LOSS) { /* a corrupt image in the request */
        better = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
    } else if (code == SX_DEADLINE_EXCEEDED) {
        better = sx_error(code, "Deadline Exceeded");
    } else {
        (void)sx_call_explain_budget(call, &status);
        return status;
    }
    sx_status_free(status);
    return better;
}

static void respond_call(sx_call *call, sx_status status, int worker)
{
    (void)worker;
    if (status != SX_OK) {
        status = explain(call, status);
    }
    sx_call_end(call, sx_status_code(status));
    sx_grpc_respond(call->exchange, status, (sx_bytes){0}, &call->out);
}

/* ---- Beginning ---- */

/* Finds the model, unless its name is compressed, and goes on where a REST request would. */
static sx_status begin(sx_grpc_call *grpc, sx_bytes body)
{
    sx_call *call = &grpc->call;
    sx_bytes message;
    sx_predict_spec spec;
    const bool compressed = body.size > 0 && ((const char *)body.data)[0] != 0;
    if (!compressed) {
        SX_TRY(sx_grpc_unframe(body, false, sx_calls_max_body_bytes(call->calls), NULL, &message));
        SX_TRY(grpc->method->read_spec(message, &spec));
        SX_TRY(acquire(call, &spec));
    }
    return sx_call_submit(call);
}

bool sx_grpc_call_handle(const sx_grpc_config *config, sx_http_exchange *exchange,
                         const sx_grpc_method *methods, size_t count)
{
    static const sx_call_steps steps = {find, read_call, print_call, respond_call};
    sx_grpc_call *grpc = sx_http_request_scratch(exchange);
    for (size_t i = 0; i < count; i++) {
        if (!sx_http_text_is(sx_http_request_head(exchange)->path, methods[i].path)) {
            continue;
        }
        *grpc = (sx_grpc_call){.call = {.steps = &steps,
                                        .calls = config->calls,
                                        .exchange = exchange,
                                        .arrived_ns = sx_now_ns(),
                                        .api = methods[i].api,
                                        .entrypoint = SX_ENTRY_GRPC,
                                        .uncounted = methods[i].uncounted,
                                        .logs_itself = methods[i].log != 0},
                               .config = config,
                               .method = &methods[i]};
        sx_status status = begin(grpc, sx_http_request_body(exchange));
        if (status != SX_OK) {
            sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
        }
        return true;
    }
    return false;
}
