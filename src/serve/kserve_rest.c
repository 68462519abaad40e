/* KServe's REST API; see kserve_rest.h. */
#include "serve/kserve_rest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "serve/kserve_json.h"
#include "serve/kserve_models.h"
#include "serve/rest_call.h"

static const char json_type[] = "application/json";

static sx_model_spec spec_of(const sx_route *route)
{
    return (sx_model_spec){.name = route->model,
                           .version = route->version < 0 ? SX_LATEST_VERSION : route->version};
}

/* ---- Infer ---- */

/* The size of the body's JSON: all of it, or what the header says. */
static sx_status json_size_of(const sx_http_exchange *exchange, size_t body_size, size_t *out)
{
    const sx_http_text text =
        sx_http_header_get(sx_http_request_head(exchange), "Inference-Header-Content-Length");
    size_t size = 0;
    *out = body_size;
    if (text.data == NULL) {
        return SX_OK;
    }
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(size, (size_t)10, &size) ||
            __builtin_add_overflow(size, (size_t)(c - '0'), &size)) {
            return sx_error(SX_INVALID_ARGUMENT, "Inference-Header-Content-Length is no count");
        }
    }
    *out = size;
    return SX_OK;
}

static sx_status read_infer(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    size_t json_size = 0, count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    sx_kserve_request *request = sx_arena_new(&call->call.arena, sx_kserve_request);
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(json_size_of(call->call.exchange, body.size, &json_size));
    SX_TRY(
        sx_kserve_json_read(body, json_size, signatures, count, &call->call.arena, slots, request));
    call->call.read = request;
    sx_call_set_run(&call->call, request->signature, request->inputs);
    return SX_OK;
}

static sx_status print_infer(sx_rest_call *call, const sx_tensor *outputs)
{
    const sx_served *servable = call->call.servable;
    size_t json_size = 0;
    SX_TRY(sx_kserve_json_print(call->call.read, outputs, sx_served_name(servable),
                                sx_served_version(servable), sx_rest_float_format(call->rest),
                                sx_http_request_cancel(call->call.exchange), &call->call.arena,
                                &call->call.out, &json_size));
    if (json_size > 0) { /* raw tensors follow it */
        snprintf(call->content_type, sizeof(call->content_type), "application/octet-stream");
        snprintf(call->headers, sizeof(call->headers), "Inference-Header-Content-Length: %zu\r\n",
                 json_size);
    }
    return SX_OK;
}

void sx_kserve_rest_infer(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    static const sx_rest_method infer = {read_infer, print_infer, NULL};
    const sx_model_spec spec = spec_of(route);
    sx_rest_call_begin(rest, exchange, &spec, SX_API_PREDICT, &infer);
}

/* ---- The other routes ---- */

void sx_kserve_rest_server(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_buf body;
    (void)route;
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_buf_printf(&body, "{\"name\":\"%s\",\"version\":\"%s\",\"extensions\":[", SX_KSERVE_NAME,
                  SX_VERSION);
    for (size_t i = 0; sx_kserve_extensions[i] != NULL; i++) {
        sx_buf_printf(&body, "%s\"%s\"", i > 0 ? "," : "", sx_kserve_extensions[i]);
    }
    sx_buf_puts(&body, "]}\n");
    sx_rest_respond(rest, exchange, 200, json_type, &body);
}

void sx_kserve_rest_model(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    const sx_model_spec spec = spec_of(route);
    sx_kserve_known known;
    sx_arena arena;
    sx_buf body;
    sx_arena_init(&arena, 1024 * 1024);
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_status status = sx_kserve_find(sx_rest_manager(rest), &spec, &arena, &known);
    if (status == SX_OK) {
        sx_kserve_json_print_model(route->model, known.versions, known.version_count,
                                   known.signature, &body);
        sx_served_release(known.servable);
        sx_rest_respond(rest, exchange, 200, json_type, &body);
    } else {
        sx_rest_respond_error(rest, exchange, status);
    }
    sx_arena_deinit(&arena);
}

void sx_kserve_rest_ready(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    const sx_model_spec spec = spec_of(route);
    sx_served *servable = NULL;
    sx_buf body;
    sx_status status = sx_manager_acquire(sx_rest_manager(rest), &spec, &servable);
    if (status != SX_OK) {
        sx_rest_respond_error(rest, exchange, status);
        return;
    }
    sx_served_release(servable);
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_buf_puts(&body, "{\"name\":");
    sx_json_print_string(&body, route->model, strlen(route->model));
    sx_buf_puts(&body, ",\"ready\":true}\n");
    sx_rest_respond(rest, exchange, 200, json_type, &body);
}

static void print_indexed(void *user, const sx_kserve_indexed *row)
{
    sx_buf *body = user;
    sx_buf_puts(body, body->size > 1 ? ",{\"name\":" : "{\"name\":");
    sx_json_print_string(body, row->name, strlen(row->name));
    sx_buf_printf(body, ",\"version\":\"%" PRId64 "\",\"state\":\"%s\",\"reason\":\"%s\"}",
                  row->version, row->state, row->reason);
}

void sx_kserve_rest_index(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_arena arena;
    sx_buf body;
    (void)route;
    sx_arena_init(&arena, 16 * 1024 * 1024);
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_buf_putc(&body, '[');
    sx_status status = sx_kserve_index(sx_rest_manager(rest), &arena, print_indexed, &body);
    sx_buf_puts(&body, "]\n");
    sx_arena_deinit(&arena);
    sx_rest_respond_made(rest, exchange, status, json_type, &body);
}
