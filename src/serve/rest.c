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
#include "serve/metrics.h"
#include "serve/rest_pages.h"
#include "serve/router.h"

enum {
    INFLATE_SLACK = 8 * 1024 * 1024,  /* reserved by sx_inflate_all */
    INFLATE_RATIO = 100,              /* JSON of real inputs compresses 3 to 10 times */
    INFLATE_FREE_BYTES = 1024 * 1024, /* at any ratio */
    RETRY_AFTER_S = 1,
};

static const char json_type[] = "application/json";
static const char cors_headers[] = "Access-Control-Allow-Origin: *\r\n"
                                   "Access-Control-Allow-Methods: POST, GET\r\n"
                                   "Access-Control-Allow-Headers: Content-Type\r\n";

/* Per-thread state, kept between requests. */
struct context {
    sx_predict_slots slots;
};

struct sx_rest {
    sx_rest_config config;
    char *metrics_path;
    struct context *contexts; /* [n_contexts]: of the executor's threads, then of the loops */
    int n_contexts;
    const sx_http_server *server;
};

/* A running request of one of them; stored in the exchange's scratch memory. */
struct predict_job {
    sx_call call; /* must be first: converted by address */
    sx_rest *rest;
    int http_status; /* of an error; 0 = derived from its code */
};
_Static_assert(sizeof(struct predict_job) <= SX_HTTP_SCRATCH,
               "the job must fit the scratch memory");

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

/* Sends `body` and empties it. */
static void respond_as(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                       const char *content_type, sx_buf *body)
{
    const bool cross_origin =
        rest->config.cors &&
        sx_http_header_get(sx_http_request_head(exchange), "Origin").data != NULL;
    sx_http_response response = {.status = http_status,
                                 .content_type = content_type,
                                 .headers = cross_origin ? cors_headers : NULL};
    response.retry_after_s = http_status == 429 || http_status == 503 ? RETRY_AFTER_S : 0;
    response.body = sx_buf_take(body, &response.body_size);
    if (response.body == NULL) { /* out of memory: send only the status code */
        response.status = 500;
        response.body_size = 0;
    }
    sx_buf_deinit(body);
    sx_http_respond(exchange, &response);
}

static void respond_message(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                            const char *message)
{
    sx_buf body;
    sx_buf_init(&body, 64 * 1024);
    sx_rest_print_error(&body, message);
    respond_as(rest, exchange, http_status, json_type, &body);
}

/* Takes the status. */
static void respond_error(const sx_rest *rest, sx_http_exchange *exchange, sx_status status)
{
    respond_message(rest, exchange, http_status(sx_status_code(status)), sx_status_message(status));
    sx_status_free(status);
}

/* ---- Predict, classify, regress ---- */

/* The body as JSON text: as received, or decompressed into `inflated`. What a client can make the
 * server decompress and parse is bounded by what it sent: deflate expands up to 1028 times. */
static sx_status plain_body(struct predict_job *job, sx_buf *inflated, sx_bytes *out_body)
{
    *out_body = sx_http_request_body(job->call.exchange);
    if (sx_http_request_head(job->call.exchange)->coding == SX_HTTP_IDENTITY) {
        return SX_OK;
    }
    const size_t max_bytes = sx_calls_max_body_bytes(job->call.calls), received = out_body->size;
    const size_t by_ratio = SX_MAX(received * INFLATE_RATIO, (size_t)INFLATE_FREE_BYTES);
    sx_status status = sx_inflate_all(SX_CODEC_GZIP, *out_body, SX_MIN(max_bytes, by_ratio),
                                      "gzip body", inflated);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* a client error */
        job->http_status = 400;
    } else if (inflated->size > by_ratio && by_ratio < max_bytes) {
        job->http_status = 413;
        sx_status_free(status);
        status =
            sx_error(SX_RESOURCE_EXHAUSTED,
                     "gzip body of %zu bytes decompresses to more than %zu bytes; the limit is %d "
                     "times its size, at least %d bytes; send it uncompressed",
                     received, by_ratio, (int)INFLATE_RATIO, (int)INFLATE_FREE_BYTES);
    } else if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
               !sx_budget_refused(inflated->budget)) {
        job->http_status = 413;
    }
    *out_body = (sx_bytes){sx_buf_text(inflated), inflated->size};
    return status;
}

static sx_status run_version(struct predict_job *job, const sx_serve_signature *signature,
                             const sx_tensor *inputs, sx_arena *arena, sx_tensor **out_outputs)
{
    SX_TRY(sx_cancel_check(sx_http_request_cancel(job->call.exchange)));
    sx_status status = sx_call_run(&job->call, signature, inputs, arena, out_outputs);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* a corrupt image or example in the request */
        job->http_status = 400;
    }
    return status;
}

static sx_status answer_predict(struct predict_job *job, sx_bytes body, struct context *context,
                                sx_arena *arena, sx_buf *out)
{
    sx_predict_request request;
    sx_tensor *outputs = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(job->call.servable, &count);
    SX_TRY(sx_predict_parse(body, signatures, count, arena, &context->slots, &request));
    SX_TRY(run_version(job, request.signature, request.inputs, arena, &outputs));
    return sx_predict_print(request.signature, outputs, request.row, job->rest->config.float_format,
                            sx_http_request_cancel(job->call.exchange), out);
}

/* Classify and Regress. */
static sx_status answer_examples(struct predict_job *job, sx_bytes body, sx_arena *arena,
                                 sx_buf *out)
{
    const sx_inference_method method = job->call.api == SX_API_CLASSIFY ? SX_CLASSIFY : SX_REGRESS;
    const sx_serve_signature *signature = NULL;
    sx_inference_request request;
    sx_inference_result result;
    sx_tensor *outputs = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(job->call.servable, &count);
    SX_TRY(sx_inference_parse(body, arena, &request));
    SX_TRY(sx_inference_find(method, signatures, count, request.signature, &signature));
    const size_t examples = (size_t)request.examples.type.dims[0];
    sx_metrics_add_examples(sx_served_metrics(job->call.servable), examples);
    SX_TRY(run_version(job, signature, &request.examples, arena, &outputs));
    SX_TRY(sx_inference_read(method, signature, outputs, examples, &result));
    return sx_inference_print_json(&result, job->rest->config.float_format,
                                   sx_http_request_cancel(job->call.exchange), out);
}

/* Writes the response body to `out`. `arena` and `inflated` are used until then. */
static sx_status answer(struct predict_job *job, struct context *context, sx_arena *arena,
                        sx_buf *inflated, sx_buf *out)
{
    sx_bytes body;
    SX_TRY(sx_cancel_check(sx_http_request_cancel(job->call.exchange)));
    SX_TRY(plain_body(job, inflated, &body));
    return job->call.api == SX_API_PREDICT ? answer_predict(job, body, context, arena, out)
                                           : answer_examples(job, body, arena, out);
}

/* The HTTP status of an error; adds the budget's figures to the message. */
static int explain_error(const struct predict_job *job, sx_status *status)
{
    const sx_code code = sx_status_code(*status);
    if (job->http_status) {
        return job->http_status;
    }
    if (code == SX_CANCELLED || code == SX_DEADLINE_EXCEEDED) {
        sx_status_free(*status);
        *status = sx_error(code, "%s",
                           code == SX_CANCELLED
                               ? "the client closed the connection before the response was ready"
                               : "request timed out");
    }
    if (!sx_call_explain_budget(&job->call, status)) {
        return http_status(code);
    }
    return sx_budget_never_fits(sx_http_request_budget(job->call.exchange)) ? 413 : 429;
}

static void run_predict(sx_executor_job *base, int worker)
{
    struct predict_job *job = (struct predict_job *)base;
    sx_rest *rest = job->rest;
    sx_http_exchange *exchange = job->call.exchange;
    struct context *context = &rest->contexts[worker];
    sx_arena arena;
    sx_buf inflated, out;
    sx_arena_init(&arena, 0);
    sx_buf_init(&inflated, sx_calls_max_body_bytes(job->call.calls) + INFLATE_SLACK);
    sx_buf_init(&out, SIZE_MAX / 4); /* limited by the budget */
    arena.budget = inflated.budget = out.budget = sx_http_request_budget(exchange);
    job->call.begun_ns = sx_now_ns();
    sx_status status = answer(job, context, &arena, &inflated, &out);
    const int http_status = status == SX_OK ? 200 : explain_error(job, &status);
    sx_call_end(&job->call, sx_status_code(status));
    sx_arena_deinit(&arena);
    sx_buf_deinit(&inflated);
    sx_predict_slots_trim(&context->slots);
    if (status == SX_OK) { /* the job must not be used after the response */
        respond_as(rest, exchange, http_status, json_type, &out);
    } else {
        sx_buf_deinit(&out);
        respond_message(rest, exchange, http_status, sx_status_message(status));
        sx_status_free(status);
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
    struct predict_job *job = sx_http_request_scratch(exchange);
    *job = (struct predict_job){.call = {.job = {.fn = run_predict},
                                         .calls = rest->config.calls,
                                         .exchange = exchange,
                                         .arrived_ns = sx_now_ns(),
                                         .api = route->kind == SX_ROUTE_CLASSIFY  ? SX_API_CLASSIFY
                                                : route->kind == SX_ROUTE_REGRESS ? SX_API_REGRESS
                                                                                  : SX_API_PREDICT,
                                         .entrypoint = SX_ENTRY_REST},
                                .rest = rest};
    const sx_model_spec spec = spec_of(route);
    sx_status status = sx_call_acquire(&job->call, &spec);
    if (status == SX_OK) {
        status = sx_call_submit(&job->call);
    }
    if (status != SX_OK) {
        respond_error(rest, exchange, status);
    }
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
    sx_status status = route->kind == SX_ROUTE_STATUS
                           ? print_model_status(rest, route, &arena, &body)
                           : print_metadata(rest, route, &body);
    sx_arena_deinit(&arena);
    if (status != SX_OK) {
        sx_buf_deinit(&body);
        respond_error(rest, exchange, status);
        return;
    }
    respond_as(rest, exchange, 200, json_type, &body);
}

static void handle_ready(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_buf body;
    const bool ready =
        route->kind != SX_ROUTE_READY || sx_manager_ready(sx_calls_manager(rest->config.calls));
    sx_buf_init(&body, 0);
    sx_buf_printf(&body, "{\"%s\": %s}\n", route->kind == SX_ROUTE_READY ? "ready" : "live",
                  ready ? "true" : "false");
    respond_as(rest, exchange, ready ? 200 : 503, json_type, &body);
}

static void print_server_metrics(const sx_rest *rest, sx_buf *out)
{
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
    sx_buf_init(&body, 0);
    sx_status status = sx_manager_print_metrics(sx_calls_manager(rest->config.calls), &body);
    if (status != SX_OK) {
        sx_buf_deinit(&body);
        respond_error(rest, exchange, status);
        return;
    }
    print_server_metrics(rest, &body);
    respond_as(rest, exchange, 200, "text/plain; version=0.0.4", &body);
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
    respond_as(rest, exchange, 200, json_type, &body);
}

static void handle_malformed(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    (void)route;
    const sx_http_head *head = sx_http_request_head(exchange);
    respond_error(rest, exchange,
                  sx_error(SX_INVALID_ARGUMENT, "Malformed request: %.*s %.*s",
                           (int)head->method.size, head->method.data, (int)head->path.size,
                           head->path.data));
}

static void handle_refused(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    static const struct {
        sx_route_kind kind;
        int status;
        const char *message;
    } rows[] = {
        {SX_ROUTE_NOT_FOUND, 404, "Not found: see /v1/models/NAME, /healthz, /readyz"},
        {SX_ROUTE_METHOD_NOT_ALLOWED, 405, "method not allowed; use GET"},
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
        [SX_ROUTE_METHOD_NOT_ALLOWED] = handle_refused,
        [SX_ROUTE_MISSING_MODEL] = handle_refused,
        [SX_ROUTE_STATUS] = handle_page,
        [SX_ROUTE_METADATA] = handle_page,
        [SX_ROUTE_PREDICT] = handle_predict,
        [SX_ROUTE_CLASSIFY] = handle_predict,
        [SX_ROUTE_REGRESS] = handle_predict,
        [SX_ROUTE_LIVE] = handle_ready,
        [SX_ROUTE_READY] = handle_ready,
        [SX_ROUTE_METRICS] = handle_metrics,
        [SX_ROUTE_OPTIONS] = handle_options,
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
