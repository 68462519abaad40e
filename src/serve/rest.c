/* The REST API; see rest.h. */
#include "serve/rest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/compress.h"
#include "serve/inference_json.h"
#include "serve/kserve_rest.h"
#include "serve/managed_rest.h"
#include "serve/metrics.h"
#include "serve/rest_bodies.h"
#include "serve/rest_call.h"
#include "serve/rest_pages.h"
#include "serve/router.h"
#include "serve/status_page.h"

enum {
    INFLATE_SLACK = 8 * 1024 * 1024,  /* reserved by sx_inflate_all */
    INFLATE_RATIO = 100,              /* JSON of real inputs compresses 3 to 10 times */
    INFLATE_FREE_BYTES = 1024 * 1024, /* at any ratio */
    RETRY_AFTER_S = 1,
};

static const char json_type[] = "application/json";
#define CORS(more)                                \
    "Access-Control-Allow-Origin: *\r\n"          \
    "Access-Control-Allow-Methods: POST, GET\r\n" \
    "Access-Control-Allow-Headers: Content-Type" more "\r\n"
#define CHALLENGE "WWW-Authenticate: Bearer\r\n"
/* By whether the server asks for identities. */
static const char *const cors_headers[] = {CORS(""), CORS(", Authorization, X-API-Key")};
static const char cors_challenge[] = CORS(", Authorization, X-API-Key") CHALLENGE;

/* Per-thread state, kept between requests: a call takes it, and leaves it to the thread that
 * answers the call. */
struct context {
    sx_predict_slots slots;
};

struct sx_rest {
    sx_rest_config config;
    char *metrics_path;
    struct context *contexts; /* [n_contexts]: of the executor's threads, then of the loops */
    int n_contexts;
    const sx_http_server *server;
    int64_t began_ns;
};

_Static_assert(sizeof(sx_rest_call) <= SX_HTTP_SCRATCH, "the call must fit the scratch memory");

/* ---- Answers ---- */

static int http_status(sx_code code)
{
    static const unsigned short statuses[SX_METRIC_CODES] = {
        [SX_CODE_OK] = 200,
        [SX_CANCELLED] = 499,
        [SX_UNKNOWN] = 500,
        [SX_INVALID_ARGUMENT] = 400,
        [SX_DEADLINE_EXCEEDED] = 504,
        [SX_NOT_FOUND] = 404,
        [SX_ALREADY_EXISTS] = 409,
        [SX_PERMISSION_DENIED] = 403,
        [SX_RESOURCE_EXHAUSTED] = 429,
        [SX_FAILED_PRECONDITION] = 400,
        [SX_ABORTED] = 409,
        [SX_OUT_OF_RANGE] = 400,
        [SX_UNIMPLEMENTED] = 501,
        [SX_INTERNAL] = 500,
        [SX_UNAVAILABLE] = 503,
        [SX_DATA_LOSS] = 500,
        [SX_UNAUTHENTICATED] = 401,
    };
    return (int)code >= 0 && (int)code < SX_METRIC_CODES ? statuses[code] : 500;
}

static bool is_cross_origin(const sx_rest *rest, const sx_http_exchange *exchange)
{
    return rest->config.cors &&
           sx_http_header_get(sx_http_request_head(exchange), "Origin").data != NULL;
}

static void respond(sx_http_exchange *exchange, int http_status, const char *content_type,
                    const char *headers, sx_buf *body)
{
    sx_http_response response = {
        .status = http_status, .content_type = content_type, .headers = headers};
    response.retry_after_s = http_status == 429 || http_status == 503 ? RETRY_AFTER_S : 0;
    response.body = sx_buf_take(body, &response.body_size);
    if (response.body == NULL) { /* out of memory: send only the status code */
        response.status = 500;
        response.body_size = 0;
    }
    sx_buf_deinit(body);
    sx_http_respond(exchange, &response);
}

void sx_rest_respond(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                     const char *content_type, sx_buf *body)
{
    const bool crosses = is_cross_origin(rest, exchange);
    const char *headers = crosses ? cors_headers[rest->config.identities] : NULL;
    if (http_status == 401) {
        headers = crosses ? cors_challenge : CHALLENGE;
    }
    respond(exchange, http_status, content_type, headers, body);
}

static void respond_message(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                            const char *message)
{
    sx_buf body;
    sx_buf_init(&body, 64 * 1024);
    sx_rest_print_error(&body, message);
    sx_rest_respond(rest, exchange, http_status, json_type, &body);
}

void sx_rest_respond_error(const sx_rest *rest, sx_http_exchange *exchange, sx_status status)
{
    sx_http_text path = sx_http_request_head(exchange)->path;
    if (sx_http_text_take_nocase(&path, "/v1/projects/")) {
        sx_rest_respond_google_error(rest, exchange, 0, status);
        return;
    }
    respond_message(rest, exchange, http_status(sx_status_code(status)), sx_status_message(status));
    sx_status_free(status);
}

void sx_rest_respond_google_error(const sx_rest *rest, sx_http_exchange *exchange, int code,
                                  sx_status status)
{
    const char *message = sx_status_message(status);
    sx_buf body;
    code = code != 0 ? code : http_status(sx_status_code(status));
    sx_buf_init(&body, 64 * 1024);
    sx_buf_printf(&body, "{\"error\": {\"code\": %d, \"message\": ", code);
    sx_json_print_string(&body, message, strlen(message));
    sx_buf_printf(&body, ", \"status\": \"%s\"}}\n", sx_code_name(sx_status_code(status)));
    sx_rest_respond(rest, exchange, code, json_type, &body);
    sx_status_free(status);
}

void sx_rest_respond_made(const sx_rest *rest, sx_http_exchange *exchange, sx_status status,
                          const char *content_type, sx_buf *body)
{
    if (status != SX_OK) {
        sx_buf_deinit(body);
        sx_rest_respond_error(rest, exchange, status);
    } else {
        sx_rest_respond(rest, exchange, 200, content_type, body);
    }
}

/* ---- Predict, classify, regress ---- */

/* The body as JSON text: as received, or decompressed into `inflated`. What a client can make the
 * server decompress and parse is bounded by what it sent: deflate expands up to 1028 times. */
static sx_status plain_body(sx_rest_call *call, sx_bytes *out_body)
{
    sx_buf *inflated = &call->call.inflated;
    *out_body = sx_http_request_body(call->call.exchange);
    if (sx_http_request_head(call->call.exchange)->coding == SX_HTTP_IDENTITY) {
        return SX_OK;
    }
    const size_t max_bytes = sx_calls_max_body_bytes(call->call.calls), received = out_body->size;
    const size_t by_ratio = SX_MAX(received * INFLATE_RATIO, (size_t)INFLATE_FREE_BYTES);
    inflated->max_bytes = max_bytes + INFLATE_SLACK;
    sx_status status = sx_inflate_all(SX_CODEC_GZIP, *out_body, SX_MIN(max_bytes, by_ratio),
                                      "gzip body", inflated);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* a client error */
        call->http_status = 400;
    } else if (inflated->size > by_ratio && by_ratio < max_bytes) {
        call->http_status = 413;
        sx_status_free(status);
        status =
            sx_error(SX_RESOURCE_EXHAUSTED,
                     "gzip body of %zu bytes decompresses to more than %zu bytes; the limit is %d "
                     "times its size, at least %d bytes; send it uncompressed",
                     received, by_ratio, (int)INFLATE_RATIO, (int)INFLATE_FREE_BYTES);
    } else if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
               !sx_budget_refused(inflated->budget)) {
        call->http_status = 413;
    }
    *out_body = (sx_bytes){sx_buf_text(inflated), inflated->size};
    return status;
}

/* TensorFlow Serving's predict, in JSON. */

static sx_status read_predict(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    sx_predict_request *request = sx_arena_new(&call->call.arena, sx_predict_request);
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_predict_parse(body, signatures, count, &call->call.arena, slots, request));
    call->call.read = request;
    sx_call_set_run(&call->call, request->signature, request->inputs);
    return SX_OK;
}

static sx_status print_predict(sx_rest_call *call, const sx_tensor *outputs)
{
    const sx_predict_request *request = call->call.read;
    return sx_predict_print(request->signature, outputs, request->row ? SX_ROWS : SX_COLUMNS,
                            call->rest->config.float_format,
                            sx_http_request_cancel(call->call.exchange), &call->call.out);
}

static const sx_rest_method predict = {read_predict, print_predict, NULL};

/* Classify and Regress. */

static sx_inference_method method_of(const sx_rest_call *call)
{
    return call->call.api == SX_API_CLASSIFY ? SX_CLASSIFY : SX_REGRESS;
}

static sx_status read_examples(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    const sx_serve_signature *signature = NULL;
    sx_inference_request *request = sx_arena_new(&call->call.arena, sx_inference_request);
    (void)slots;
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_inference_parse(body, &call->call.arena, request));
    SX_TRY(sx_inference_find(method_of(call), signatures, count, request->signature, &signature));
    sx_metrics_add_examples(sx_served_metrics(call->call.servable),
                            (size_t)request->examples.type.dims[0]);
    sx_call_set_run(&call->call, signature, &request->examples);
    return SX_OK;
}

static sx_status print_examples(sx_rest_call *call, const sx_tensor *outputs)
{
    const sx_serve_signature *signature = call->call.signature;
    const sx_tensor *examples = call->call.inputs;
    sx_inference_result result;
    SX_TRY(sx_inference_read(method_of(call), signature, outputs, (size_t)examples->type.dims[0],
                             &result));
    if (call->call.logged != NULL) {
        const sx_predict_spec ran = sx_call_spec(&call->call, signature->name);
        sx_log_inference(call->call.logged, &ran, examples, &result);
    }
    return sx_inference_print_json(&result, call->rest->config.float_format,
                                   sx_http_request_cancel(call->call.exchange), &call->call.out);
}

static const sx_rest_method inference = {read_examples, print_examples, NULL};

sx_float_format sx_rest_float_format(const sx_rest *rest)
{
    return rest->config.float_format;
}

sx_calls *sx_rest_calls(const sx_rest *rest)
{
    return rest->config.calls;
}

sx_managed *sx_rest_managed(const sx_rest *rest)
{
    return rest->config.managed;
}

bool sx_rest_is_secure(const sx_rest *rest)
{
    return rest->config.secure;
}

sx_manager *sx_rest_manager(const sx_rest *rest)
{
    return sx_calls_manager(rest->config.calls);
}

/* ---- The steps of a call ---- */

static sx_status read_call(sx_call *base, int worker)
{
    sx_rest_call *call = (sx_rest_call *)base;
    struct context *context = &call->rest->contexts[worker];
    sx_bytes body;
    call->slots = context->slots;
    sx_predict_slots_init(&context->slots);
    SX_TRY(plain_body(call, &body));
    return call->method->read(call, body, &call->slots);
}

static sx_status print_call(sx_call *base, const sx_tensor *outputs)
{
    sx_rest_call *call = (sx_rest_call *)base;
    return call->method->print(call, outputs);
}

/* The slots go to the thread, unless it has some. */
static void give_slots(sx_rest_call *call, struct context *context)
{
    sx_predict_slots_trim(&call->slots);
    if (context->slots.count == 0) {
        context->slots = call->slots;
    } else {
        sx_predict_slots_deinit(&call->slots);
    }
}

/* The HTTP status of an error; adds the budget's figures to the message. */
static int explain_error(sx_rest_call *call, sx_status *status)
{
    if (call->http_status == 0 && call->method->explain != NULL) {
        *status = call->method->explain(call, *status);
    }
    const sx_code code = sx_status_code(*status);
    if (call->http_status) {
        return call->http_status;
    }
    if (code == SX_DATA_LOSS) { /* a corrupt image or example in the request */
        return 400;
    }
    if (code == SX_CANCELLED || code == SX_DEADLINE_EXCEEDED) {
        sx_status_free(*status);
        *status = sx_error(code, "%s",
                           code == SX_CANCELLED
                               ? "the client closed the connection before the response was ready"
                               : "request timed out");
    }
    if (!sx_call_explain_budget(&call->call, status)) {
        return http_status(code);
    }
    return sx_budget_never_fits(sx_http_request_budget(call->call.exchange)) ? 413 : 429;
}

static void respond_call(sx_call *base, sx_status status, int worker)
{
    sx_rest_call *call = (sx_rest_call *)base;
    sx_rest *rest = call->rest;
    sx_http_exchange *exchange = call->call.exchange;
    const int http_status = status == SX_OK ? 200 : explain_error(call, &status);
    sx_call_end(&call->call, sx_status_code(status));
    give_slots(call, &rest->contexts[worker]);
    if (status != SX_OK) {
        sx_buf_deinit(&call->call.out);
        respond_message(rest, exchange, http_status, sx_status_message(status));
        sx_status_free(status);
        return;
    }
    if (is_cross_origin(rest, exchange)) {
        snprintf(call->headers + strlen(call->headers),
                 sizeof(call->headers) - strlen(call->headers), "%s",
                 cors_headers[rest->config.identities]);
    }
    respond(exchange, http_status, call->content_type, call->headers, &call->call.out);
}

void sx_rest_call_begin(sx_rest *rest, sx_http_exchange *exchange, const sx_model_spec *spec,
                        sx_metric_api api, const sx_rest_method *method)
{
    static const sx_call_steps steps = {
        .read = read_call, .print = print_call, .respond = respond_call};
    sx_rest_call *call = sx_http_request_scratch(exchange);
    *call = (sx_rest_call){.call = {.steps = &steps,
                                    .calls = rest->config.calls,
                                    .exchange = exchange,
                                    .arrived_ns = sx_now_ns(),
                                    .api = api,
                                    .entrypoint = SX_ENTRY_REST,
                                    .logs_itself = api != SX_API_PREDICT},
                           .rest = rest,
                           .method = method};
    sx_predict_slots_init(&call->slots);
    snprintf(call->content_type, sizeof(call->content_type), "%s", json_type);
    sx_status status = sx_call_acquire(&call->call, spec);
    if (status == SX_OK) {
        status = sx_call_submit(&call->call);
    }
    if (status != SX_OK) {
        sx_rest_respond_error(rest, exchange, status);
    }
}

static sx_model_spec spec_of(const sx_route *route)
{
    return (sx_model_spec){.name = route->model,
                           .version = route->version < 0 ? SX_LATEST_VERSION : route->version,
                           .label = route->label};
}

static void handle_predict(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    const sx_model_spec spec = spec_of(route);
    const sx_rest_method *other = sx_rest_method_of(sx_http_request_head(exchange));
    sx_rest_call_begin(rest, exchange, &spec, SX_API_PREDICT, other != NULL ? other : &predict);
}

static void handle_examples(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    const sx_model_spec spec = spec_of(route);
    sx_rest_call_begin(rest, exchange, &spec,
                       route->kind == SX_ROUTE_CLASSIFY ? SX_API_CLASSIFY : SX_API_REGRESS,
                       &inference);
}

/* ---- The other routes ---- */

/* A label in the path is ignored, as in TensorFlow Serving. */
static sx_status print_model_status(sx_rest *rest, const sx_route *route, sx_arena *arena,
                                    sx_buf *out)
{
    sx_version_status *rows;
    size_t count;
    SX_TRY(sx_manager_status(sx_calls_manager(rest->config.calls), route->model,
                             route->version < 0 ? SX_LATEST_VERSION : route->version, arena, &rows,
                             &count));
    sx_rest_print_status(out, rows, count);
    return SX_OK;
}

static sx_status print_metadata(sx_rest *rest, const sx_route *route, sx_buf *out)
{
    const sx_model_spec spec = spec_of(route);
    sx_served *servable = NULL;
    size_t count = 0;
    SX_TRY(sx_manager_acquire(sx_calls_manager(rest->config.calls), &spec, &servable));
    const sx_serve_signature *signatures = sx_served_signatures(servable, &count);
    sx_rest_print_metadata(out, route->model, sx_served_version(servable), signatures, count);
    sx_served_release(servable);
    return SX_OK;
}

static void handle_page(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_arena arena;
    sx_buf body;
    sx_arena_init(&arena, 1024 * 1024);
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_status status = route->kind == SX_ROUTE_STATUS
                           ? print_model_status(rest, route, &arena, &body)
                           : print_metadata(rest, route, &body);
    sx_arena_deinit(&arena);
    sx_rest_respond_made(rest, exchange, status, json_type, &body);
}

static void handle_ready(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_buf body;
    const bool ready =
        route->kind != SX_ROUTE_READY || sx_manager_ready(sx_calls_manager(rest->config.calls));
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_buf_printf(&body, "{\"%s\": %s}\n", route->kind == SX_ROUTE_READY ? "ready" : "live",
                  ready ? "true" : "false");
    sx_rest_respond(rest, exchange, ready ? 200 : 503, json_type, &body);
}

static void print_batcher_metrics(sx_batcher *batcher, sx_buf *out)
{
    const sx_batcher_stats stats = sx_batcher_get_stats(batcher);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        {"sextant_batcher_waiting", "gauge", "Requests that wait for their turn to run.",
         stats.waiting},
        {"sextant_batcher_runs_total", "counter", "Runs, of one request or of several.",
         stats.runs},
        {"sextant_batcher_merged_total", "counter", "Requests that shared a run.", stats.merged},
        {"sextant_batcher_padding_total", "counter", "Rows added to batches.", stats.padding},
        {"sextant_batcher_dropped_total", "counter",
         "Requests that were not run: too late, or nobody waits.", stats.dropped},
    };
    sx_batch_metrics_print(&stats.metrics, out);
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_metrics_print_value(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    }
}

static void print_server_metrics(const sx_rest *rest, sx_buf *out)
{
    if (rest->config.batcher != NULL) {
        print_batcher_metrics(rest->config.batcher, out);
    }
    sx_metrics_print_value(out, "sextant_queued_requests", "gauge",
                           "Requests waiting for a thread.", sx_calls_queued(rest->config.calls));
    if (rest->config.memory != NULL) {
        sx_metrics_print_value(out, "sextant_request_memory_bytes", "gauge",
                               "Memory held by requests in flight.",
                               sx_budget_used(rest->config.memory));
        sx_metrics_print_value(out, "sextant_request_memory_limit_bytes", "gauge",
                               "Limit of sextant_request_memory_bytes.",
                               rest->config.memory->limit_bytes);
    }
    if (rest->server == NULL) {
        return;
    }
    const sx_http_stats stats = sx_http_server_stats(rest->server);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        {"sextant_http_connections", "gauge", "Open connections.", stats.connections},
        {"sextant_http_connections_total", "counter", "Connections accepted.", stats.accepted},
        {"sextant_http_connections_shed_total", "counter",
         "Connections closed at once: too many, or no file descriptors left.", stats.shed},
        {"sextant_http_requests_total", "counter", "Complete requests received.", stats.requests},
        {"sextant_http_refused_total", "counter",
         "Requests refused by the HTTP layer: malformed, too large, too slow.", stats.refused},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_metrics_print_value(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    }
}

static void handle_metrics(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    (void)route;
    sx_buf body;
    sx_budget *budget = sx_http_request_budget(exchange);
    sx_buf_init(&body, 0);
    sx_status status = sx_manager_print_metrics(sx_calls_manager(rest->config.calls), &body);
    if (status == SX_OK) {
        sx_request_log_print_metrics(sx_calls_log(rest->config.calls), &body);
        print_server_metrics(rest, &body);
        /* Charged when it is complete: it does not count itself. */
        status = sx_budget_charge(budget, body.capacity) ? SX_OK : sx_budget_error(budget);
    }
    sx_rest_respond_made(rest, exchange, status, "text/plain; version=0.0.4", &body);
}

static void handle_status_page(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_buf body;
    (void)route;
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    const sx_status_page_config page = {
        .manager = sx_rest_manager(rest),
        .metrics_path = rest->metrics_path,
        .queued = sx_calls_queued(rest->config.calls),
        .memory = rest->config.memory,
        .http = rest->server != NULL ? sx_http_server_stats(rest->server) : (sx_http_stats){0},
        .running_ns = sx_now_ns() - rest->began_ns,
    };
    sx_status status = sx_status_page_print(&page, &body);
    if (status != SX_OK) {
        sx_buf_deinit(&body);
        sx_rest_respond_error(rest, exchange, status);
        return;
    }
    respond(exchange, 200, "text/html; charset=utf-8", sx_status_page_headers, &body);
}

/* A preflight request must have an Origin header. */
static void handle_options(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    (void)route;
    const sx_http_text origin = sx_http_header_get(sx_http_request_head(exchange), "Origin");
    const bool named = (origin.size > 7 && memcmp(origin.data, "http://", 7) == 0) ||
                       (origin.size > 8 && memcmp(origin.data, "https://", 8) == 0);
    sx_buf body;
    if (!named) {
        respond_message(rest, exchange, 400,
                        "OPTIONS requires an Origin header: http://... or https://...");
        return;
    }
    sx_buf_init(&body, 0);
    body.budget = sx_http_request_budget(exchange);
    sx_rest_respond(rest, exchange, 200, json_type, &body);
}

static void handle_malformed(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    (void)route;
    const sx_http_head *head = sx_http_request_head(exchange);
    sx_rest_respond_error(rest, exchange,
                          sx_error(SX_INVALID_ARGUMENT, "Malformed request: %.*s %.*s",
                                   (int)head->method.size, head->method.data, (int)head->path.size,
                                   head->path.data));
}

static void handle_wrong_method(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    const sx_http_text method = sx_http_request_head(exchange)->method;
    const bool got = sx_http_text_is(method, "GET") || sx_http_text_is(method, "HEAD");
    (void)route;
    respond_message(rest, exchange, 405,
                    got ? "method not allowed; use POST" : "method not allowed; use GET");
}

static void handle_refused(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    static const struct {
        sx_route_kind kind;
        int status;
        const char *message;
    } rows[] = {
        {SX_ROUTE_NOT_FOUND, 404, "Not found: see /v1/models/NAME, /healthz, /readyz"},
        {SX_ROUTE_MISSING_MODEL, 400, "Missing model name in request."},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].kind == route->kind) {
            respond_message(rest, exchange, rows[i].status, rows[i].message);
            return;
        }
    }
    respond_message(rest, exchange, 500, "no handler for this route");
}

void sx_rest_handle(void *user, sx_http_exchange *exchange)
{
    static void (*const handlers[])(sx_rest *, sx_http_exchange *, const sx_route *) = {
        [SX_ROUTE_NOT_FOUND] = handle_refused,
        [SX_ROUTE_MALFORMED] = handle_malformed,
        [SX_ROUTE_METHOD_NOT_ALLOWED] = handle_wrong_method,
        [SX_ROUTE_MISSING_MODEL] = handle_refused,
        [SX_ROUTE_STATUS] = handle_page,
        [SX_ROUTE_METADATA] = handle_page,
        [SX_ROUTE_PREDICT] = handle_predict,
        [SX_ROUTE_CLASSIFY] = handle_examples,
        [SX_ROUTE_REGRESS] = handle_examples,
        [SX_ROUTE_LIVE] = handle_ready,
        [SX_ROUTE_READY] = handle_ready,
        [SX_ROUTE_METRICS] = handle_metrics,
        [SX_ROUTE_STATUS_PAGE] = handle_status_page,
        [SX_ROUTE_OPTIONS] = handle_options,
        [SX_ROUTE_V2_SERVER] = sx_kserve_rest_server,
        [SX_ROUTE_V2_MODEL] = sx_kserve_rest_model,
        [SX_ROUTE_V2_MODEL_READY] = sx_kserve_rest_ready,
        [SX_ROUTE_V2_INFER] = sx_kserve_rest_infer,
        [SX_ROUTE_V2_INDEX] = sx_kserve_rest_index,
        [SX_ROUTE_ML_DISCOVERY] = sx_managed_rest_handle,
        [SX_ROUTE_ML_PREDICT] = sx_managed_rest_predict,
        [SX_ROUTE_ML_MODELS] = sx_managed_rest_handle,
        [SX_ROUTE_ML_MODEL] = sx_managed_rest_handle,
        [SX_ROUTE_ML_VERSIONS] = sx_managed_rest_handle,
        [SX_ROUTE_ML_VERSION] = sx_managed_rest_handle,
        [SX_ROUTE_ML_OPERATION] = sx_managed_rest_handle,
        [SX_ROUTE_ML_CREATE_MODEL] = sx_managed_rest_handle,
        [SX_ROUTE_ML_DELETE_MODEL] = sx_managed_rest_handle,
        [SX_ROUTE_ML_CREATE_VERSION] = sx_managed_rest_handle,
        [SX_ROUTE_ML_DELETE_VERSION] = sx_managed_rest_handle,
        [SX_ROUTE_ML_SET_DEFAULT] = sx_managed_rest_handle,
    };
    sx_rest *rest = user;
    sx_route route;
    const sx_http_head *head = sx_http_request_head(exchange);
    sx_route_parse(head->method, head->path, rest->metrics_path, &route);
    handlers[route.kind](rest, exchange, &route);
}

/* ---- Creation and destruction ---- */

sx_status sx_rest_create(const sx_rest_config *config, sx_rest **out_rest)
{
    sx_rest *rest = sx_alloc(1, sizeof(*rest));
    if (rest == NULL) {
        return sx_no_memory("for the REST API");
    }
    rest->config = *config;
    rest->began_ns = sx_now_ns();
    rest->n_contexts = sx_calls_threads(config->calls) + SX_MAX(config->loops, 1);
    rest->contexts = sx_alloc((size_t)rest->n_contexts, sizeof(rest->contexts[0]));
    rest->metrics_path = config->metrics_path != NULL ? sx_strdup(config->metrics_path) : NULL;
    if (rest->contexts == NULL || (config->metrics_path != NULL && rest->metrics_path == NULL)) {
        sx_rest_destroy(rest);
        return sx_no_memory("for the REST API");
    }
    *out_rest = rest;
    return SX_OK;
}

void sx_rest_destroy(sx_rest *rest)
{
    if (rest == NULL) {
        return;
    }
    for (int i = 0; rest->contexts != NULL && i < rest->n_contexts; i++) {
        sx_predict_slots_deinit(&rest->contexts[i].slots);
    }
    sx_free(rest->contexts);
    sx_free(rest->metrics_path);
    sx_free(rest);
}

void sx_rest_set_server(sx_rest *rest, const sx_http_server *server)
{
    rest->server = server;
}
