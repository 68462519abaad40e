/* KServe's gRPC service; see kserve_grpc.h. */
#include "serve/kserve_grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "proto/wire.h"
#include "serve/grpc_call.h"
#include "serve/kserve_models.h"
#include "serve/kserve_proto.h"
#include "serve/router.h"

#define SERVICE "/inference.GRPCInferenceService/"

/* ---- ModelInfer ---- */

static sx_status read_infer(sx_grpc_call *grpc)
{
    sx_call *call = &grpc->call;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    sx_kserve_request *request = sx_arena_new(&call->arena, sx_kserve_request);
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_kserve_proto_read(grpc->message, signatures, count, &call->arena, request));
    call->read = request;
    sx_call_set_run(call, request->signature, request->inputs);
    return SX_OK;
}

static sx_status print_infer(sx_grpc_call *grpc, const sx_tensor *outputs)
{
    sx_call *call = &grpc->call;
    return sx_kserve_proto_print(call->read, outputs, sx_served_name(call->servable),
                                 sx_served_version(call->servable), &call->out);
}

static const sx_grpc_method calls_of_models[] = {
    {SERVICE "ModelInfer", SX_API_PREDICT, false, sx_kserve_spec_read, read_infer, print_infer, 0},
};

/* ---- The other methods, which run nothing ---- */

/* The bool of a response, its field 1, which is left out if it is false. */
static void put_flag(sx_buf *out, bool flag)
{
    if (flag) {
        sx_buf_append(out, "\x08\x01", 2);
    }
}

/* What a message asks for; `name` receives the name. */
static sx_status read_model(sx_bytes message, char name[SX_ROUTE_NAME], sx_model_spec *out)
{
    sx_predict_spec spec;
    SX_TRY(sx_kserve_spec_read(message, &spec));
    snprintf(name, SX_ROUTE_NAME, "%.*s", (int)SX_MIN(spec.name.size, (size_t)SX_ROUTE_NAME),
             (const char *)spec.name.data);
    *out = (sx_model_spec){.name = name,
                           .version = spec.version < 0 ? SX_LATEST_VERSION : spec.version};
    return SX_OK;
}

static sx_status server_live(sx_manager *manager, sx_bytes message, sx_arena *arena, sx_buf *out)
{
    (void)manager;
    (void)message;
    (void)arena;
    put_flag(out, true);
    return SX_OK;
}

static sx_status server_ready(sx_manager *manager, sx_bytes message, sx_arena *arena, sx_buf *out)
{
    (void)message;
    (void)arena;
    put_flag(out, sx_manager_ready(manager));
    return SX_OK;
}

/* A model that is not there is not ready, as one that is being loaded. */
static sx_status model_ready(sx_manager *manager, sx_bytes message, sx_arena *arena, sx_buf *out)
{
    char name[SX_ROUTE_NAME];
    sx_model_spec spec;
    sx_served *servable = NULL;
    (void)arena;
    SX_TRY(read_model(message, name, &spec));
    sx_status status = sx_manager_acquire(manager, &spec, &servable);
    put_flag(out, status == SX_OK);
    if (status == SX_OK) {
        sx_served_release(servable);
    }
    sx_status_free(status);
    return SX_OK;
}

static sx_status server_metadata(sx_manager *manager, sx_bytes message, sx_arena *arena,
                                 sx_buf *out)
{
    (void)manager;
    (void)message;
    (void)arena;
    sx_wire_append_text(out, 1, SX_KSERVE_NAME);
    sx_wire_append_text(out, 2, SX_VERSION);
    for (size_t i = 0; sx_kserve_extensions[i] != NULL; i++) {
        sx_wire_append_text(out, 3, sx_kserve_extensions[i]);
    }
    return SX_OK;
}

static sx_status model_metadata(sx_manager *manager, sx_bytes message, sx_arena *arena, sx_buf *out)
{
    char name[SX_ROUTE_NAME];
    sx_model_spec spec;
    sx_kserve_known known;
    SX_TRY(read_model(message, name, &spec));
    SX_TRY(sx_kserve_find(manager, &spec, arena, &known));
    sx_kserve_proto_print_model(name, known.versions, known.version_count, known.signature, out);
    sx_served_release(known.servable);
    return SX_OK;
}

/* A ModelIndex: name 1, version 2, state 3, reason 4. */
static void put_indexed(void *user, const sx_kserve_indexed *row)
{
    char version[24];
    sx_buf *out = user;
    snprintf(version, sizeof(version), "%" PRId64, row->version);
    const char *texts[] = {row->name, version, row->state, row->reason};
    const size_t at = sx_wire_begin(out, 1);
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        sx_wire_append_text(out, (uint32_t)i + 1, texts[i]);
    }
    sx_wire_end(out, at);
}

static sx_status repository_index(sx_manager *manager, sx_bytes message, sx_arena *arena,
                                  sx_buf *out)
{
    (void)message;
    return sx_kserve_index(manager, arena, put_indexed, out);
}

static const struct {
    const char *path;
    /* Appends the message of the response to `out`. */
    sx_status (*answer)(sx_manager *manager, sx_bytes message, sx_arena *arena, sx_buf *out);
} methods[] = {
    {SERVICE "ServerLive", server_live},       {SERVICE "ServerReady", server_ready},
    {SERVICE "ModelReady", model_ready},       {SERVICE "ServerMetadata", server_metadata},
    {SERVICE "ModelMetadata", model_metadata}, {SERVICE "RepositoryIndex", repository_index},
};

bool sx_kserve_grpc_handle(const sx_grpc_config *config, sx_http_exchange *exchange)
{
    enum { MESSAGE_BYTES = 4096, MEMORY_BYTES = 16 * 1024 * 1024 };
    const sx_http_text path = sx_http_request_head(exchange)->path;
    size_t method = 0;
    while (method < SX_COUNT(methods) && !sx_http_text_is(path, methods[method].path)) {
        method++;
    }
    if (method == SX_COUNT(methods)) {
        return sx_grpc_call_handle(config, exchange, calls_of_models, SX_COUNT(calls_of_models));
    }
    sx_arena arena;
    sx_buf inflated, out;
    sx_bytes message;
    sx_arena_init(&arena, MEMORY_BYTES);
    sx_buf_init(&inflated, 0);
    sx_buf_init(&out, MEMORY_BYTES);
    const size_t at = sx_grpc_message_begin(&out);
    sx_status status = sx_grpc_request(exchange, MESSAGE_BYTES, &inflated, &message);
    if (status == SX_OK) {
        status = methods[method].answer(sx_calls_manager(config->calls), message, &arena, &out);
    }
    sx_grpc_message_end(&out, at);
    sx_arena_deinit(&arena);
    sx_buf_deinit(&inflated);
    sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
    return true;
}
