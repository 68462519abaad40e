/* Managed prediction's REST API; see managed_rest.h. */
#include "serve/managed_rest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "savedmodel/versions.h"
#include "serve/json_scan.h"

enum { MAX_BODY_BYTES = 250 * 1000 * 1000, MAX_URI = 2048 };

static const char json_type[] = "application/json";

/* ---- Predict ---- */

static sx_status read_predict(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    sx_predict_request request;
    SX_TRY(sx_predict_parse(body, signatures, count, &call->call.arena, slots, &request));
    if (!request.row) {
        return sx_error(SX_INVALID_ARGUMENT, "expected \"instances\": a list");
    }
    sx_call_set_run(&call->call, request.signature, request.inputs);
    return SX_OK;
}

static sx_status print_predict(sx_rest_call *call, const sx_tensor *outputs)
{
    return sx_predict_print(call->call.signature, outputs, SX_NAMED_ROWS,
                            sx_rest_float_format(call->rest),
                            sx_http_request_cancel(call->call.exchange), &call->call.out);
}

/* What the request is to blame for is said in an answer. */
static sx_status explain_predict(sx_rest_call *call, sx_status status)
{
    switch (sx_status_code(status)) {
    case SX_INVALID_ARGUMENT:
    case SX_FAILED_PRECONDITION:
    case SX_DATA_LOSS:
    case SX_OUT_OF_RANGE:
    case SX_UNIMPLEMENTED:
        call->http_status = 200;
        return sx_status_annotate(status, __FILE__, __LINE__, "Prediction failed");
    default:
        return status;
    }
}

void sx_managed_rest_predict(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    static const sx_rest_method predict = {read_predict, print_predict, explain_predict};
    sx_managed *managed = sx_rest_managed(rest);
    int64_t version = route->version;
    if (version < 0 && route->label[0] == '\0') {
        version = managed != NULL ? sx_managed_default(managed, route->model) : SX_LATEST_VERSION;
    }
    const sx_model_spec spec = {.name = route->model,
                                .version = version < 0 ? SX_LATEST_VERSION : version,
                                .label = route->label};
    if (sx_http_request_body(exchange).size > MAX_BODY_BYTES) {
        sx_rest_respond_google_error(rest, exchange, 413,
                                     sx_error(SX_INVALID_ARGUMENT,
                                              "the body has %zu bytes, more than 250 MB",
                                              sx_http_request_body(exchange).size));
        return;
    }
    sx_rest_call_begin(rest, exchange, &spec, SX_API_PREDICT, &predict);
}

/* ---- Models and versions as JSON ---- */

static void print_text(sx_buf *out, const char *text)
{
    sx_json_print_string(out, text, strlen(text));
}

/* {"name": "projects/P/..." */
static void print_name(sx_buf *out, const char *format, ...) SX_PRINTF(2, 3);
static void print_name(sx_buf *out, const char *format, ...)
{
    char name[3 * SX_ROUTE_NAME];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    sx_buf_puts(out, "{\"name\": ");
    print_text(out, name);
}

static const char *state_name(const sx_version_status *row)
{
    return row->code != SX_CODE_OK                                              ? "FAILED"
           : row->state == SX_VERSION_AVAILABLE                                 ? "READY"
           : row->state == SX_VERSION_UNLOADING || row->state == SX_VERSION_END ? "DELETING"
                                                                                : "CREATING";
}

static void print_version(sx_buf *out, const sx_route *route, const char *model,
                          const sx_version_status *row, int64_t default_version)
{
    print_name(out, "projects/%s/models/%s/versions/v%" PRId64, route->project, model,
               row->version);
    sx_buf_printf(out, ", \"state\": \"%s\", \"framework\": \"TENSORFLOW\", \"isDefault\": %s",
                  state_name(row), row->version == default_version ? "true" : "false");
    if (row->code != SX_CODE_OK) {
        sx_buf_puts(out, ", \"errorMessage\": ");
        print_text(out, sx_version_error_text(row->code));
    }
    sx_buf_puts(out, "}");
}

/* The versions of a model, which may have none yet. */
static sx_status list_versions(sx_rest *rest, const char *model, sx_arena *arena,
                               sx_version_status **out_rows, size_t *out_count,
                               int64_t *out_default)
{
    sx_manager *manager = sx_rest_manager(rest);
    sx_managed *managed = sx_rest_managed(rest);
    const char **names = NULL;
    size_t count = 0;
    bool found = false;
    *out_rows = NULL;
    *out_count = 0;
    SX_TRY(sx_manager_names(manager, arena, &names, &count));
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(names[i], model) == 0;
    }
    if (!found) {
        return sx_error(SX_NOT_FOUND, "Could not find model %s", model);
    }
    sx_status status =
        sx_manager_status(manager, model, SX_LATEST_VERSION, arena, out_rows, out_count);
    if (sx_status_code(status) != SX_NOT_FOUND) {
        SX_TRY(status);
    }
    sx_status_free(status);
    *out_default = managed != NULL ? sx_managed_default(managed, model) : SX_LATEST_VERSION;
    for (size_t i = 0; i < *out_count && *out_default == SX_LATEST_VERSION; i++) {
        *out_default = (*out_rows)[i].state == SX_VERSION_AVAILABLE ? (*out_rows)[i].version
                                                                    : SX_LATEST_VERSION;
    }
    return SX_OK;
}

static sx_status print_model(sx_rest *rest, const sx_route *route, const char *model,
                             sx_arena *arena, sx_buf *out)
{
    sx_version_status *rows = NULL;
    size_t count = 0;
    int64_t default_version = SX_LATEST_VERSION;
    SX_TRY(list_versions(rest, model, arena, &rows, &count, &default_version));
    print_name(out, "projects/%s/models/%s", route->project, model);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].version == default_version) {
            sx_buf_puts(out, ", \"defaultVersion\": ");
            print_version(out, route, model, &rows[i], default_version);
        }
    }
    sx_buf_puts(out, "}");
    return SX_OK;
}

static sx_status print_models(sx_rest *rest, const sx_route *route, sx_arena *arena, sx_buf *out)
{
    const char **names = NULL;
    size_t count = 0;
    SX_TRY(sx_manager_names(sx_rest_manager(rest), arena, &names, &count));
    sx_buf_puts(out, "{\"models\": [");
    for (size_t i = 0; i < count; i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        SX_TRY(print_model(rest, route, names[i], arena, out));
    }
    sx_buf_puts(out, "]}");
    return SX_OK;
}

/* All versions, or that of the route. */
static sx_status print_versions(sx_rest *rest, const sx_route *route, sx_arena *arena, sx_buf *out)
{
    const bool all = route->kind == SX_ROUTE_ML_VERSIONS;
    sx_version_status *rows = NULL;
    size_t count = 0, printed = 0;
    int64_t default_version = SX_LATEST_VERSION;
    SX_TRY(list_versions(rest, route->model, arena, &rows, &count, &default_version));
    sx_buf_puts(out, all ? "{\"versions\": [" : "");
    for (size_t i = 0; i < count; i++) {
        if (all || rows[i].version == route->version) {
            sx_buf_puts(out, printed++ > 0 ? ", " : "");
            print_version(out, route, route->model, &rows[i], default_version);
        }
    }
    sx_buf_puts(out, all ? "]}" : "");
    return all || printed > 0
               ? SX_OK
               : sx_error(SX_NOT_FOUND, "Could not find version v%" PRId64 " of model %s",
                          route->version, route->model);
}

/* ---- Changes ---- */

/* An operation, M-v3: the creation of a version, which has ended when it is served or cannot be. */
static sx_status print_operation(sx_rest *rest, const sx_route *route, const char *model,
                                 int64_t version, sx_arena *arena, sx_buf *out)
{
    sx_version_status *rows = NULL;
    size_t count = 0;
    int64_t default_version = SX_LATEST_VERSION;
    SX_TRY(list_versions(rest, model, arena, &rows, &count, &default_version));
    const sx_version_status *row = NULL;
    for (size_t i = 0; i < count && row == NULL; i++) {
        row = rows[i].version == version ? &rows[i] : NULL;
    }
    print_name(out, "projects/%s/operations/%s-v%" PRId64, route->project, model, version);
    if (row != NULL && row->code != SX_CODE_OK) {
        sx_buf_printf(out,
                      ", \"done\": true, \"error\": {\"code\": %d, \"message\": ", (int)row->code);
        print_text(out, sx_version_error_text(row->code));
        sx_buf_puts(out, "}");
    } else if (row != NULL && row->state == SX_VERSION_AVAILABLE) {
        sx_buf_puts(out, ", \"done\": true, \"response\": ");
        print_version(out, route, model, row, default_version);
    } else {
        sx_buf_puts(out, ", \"done\": false");
    }
    sx_buf_puts(out, "}");
    return SX_OK;
}

/* "v3". */
static bool read_version(const char *name, int64_t *out_version)
{
    *out_version = name[0] == 'v' ? sx_version_number(name + 1) : -1;
    return *out_version >= 0;
}

/* The version of "flowers-v3"; the route has its model. */
static sx_status read_operation(const sx_route *route, int64_t *out_version)
{
    const char *dash = strrchr(route->label, '-');
    if (dash == NULL || !read_version(dash + 1, out_version)) {
        return sx_error(SX_NOT_FOUND, "Could not find operation %s", route->label);
    }
    return SX_OK;
}

/* The texts of the body's members `name` and `deploymentUri`; "" = not there. */
static sx_status read_body(sx_bytes body, sx_arena *arena, char name[SX_ROUTE_NAME],
                           char uri[MAX_URI])
{
    sx_json json;
    bool more = true;
    name[0] = uri[0] = '\0';
    sx_json_init(&json, body, arena);
    SX_TRY(sx_json_enter(&json, '{'));
    if (sx_json_take(&json, '}')) {
        sx_json_leave(&json);
        return sx_json_finish(&json);
    }
    while (more) {
        sx_bytes key, text;
        SX_TRY(sx_json_key(&json, &key));
        const bool is_name = sx_bytes_is(key, "name"), is_uri = sx_bytes_is(key, "deploymentUri");
        if ((is_name || is_uri) && sx_json_peek(&json) == '"') {
            SX_TRY(sx_json_string(&json, &text));
            const size_t room = is_name ? SX_ROUTE_NAME : (size_t)MAX_URI;
            if (text.size >= room || memchr(text.data, '\0', text.size) != NULL) {
                return sx_error(SX_INVALID_ARGUMENT, "%s is too long, or has a NUL",
                                is_name ? "name" : "deploymentUri");
            }
            char *to = is_name ? name : uri;
            memcpy(to, text.data, text.size);
            to[text.size] = '\0';
        } else {
            SX_TRY(sx_json_skip(&json));
        }
        SX_TRY(sx_json_next(&json, '}', &more));
    }
    sx_json_leave(&json);
    return sx_json_finish(&json);
}

static sx_status change(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route,
                        sx_arena *arena, sx_buf *out)
{
    sx_managed *managed = sx_rest_managed(rest);
    char name[SX_ROUTE_NAME], uri[MAX_URI];
    int64_t version = route->version;
    if (managed == NULL) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the models are those of the server's configuration; clients cannot change "
                        "them");
    }
    switch (route->kind) {
    case SX_ROUTE_ML_CREATE_MODEL:
        SX_TRY(read_body(sx_http_request_body(exchange), arena, name, uri));
        SX_TRY(sx_managed_create_model(managed, name));
        return print_model(rest, route, name, arena, out);
    case SX_ROUTE_ML_CREATE_VERSION:
        SX_TRY(read_body(sx_http_request_body(exchange), arena, name, uri));
        if (!read_version(name, &version)) {
            return sx_error(SX_INVALID_ARGUMENT, "name: \"%.60s\", expected v and a number: v1",
                            name);
        }
        SX_TRY(sx_managed_create_version(managed, route->model, version, uri));
        return print_operation(rest, route, route->model, version, arena, out);
    case SX_ROUTE_ML_SET_DEFAULT:
        SX_TRY(sx_managed_set_default(managed, route->model, version));
        sx_route set = *route;
        set.kind = SX_ROUTE_ML_VERSION;
        return print_versions(rest, &set, arena, out);
    case SX_ROUTE_ML_DELETE_VERSION:
        SX_TRY(sx_managed_delete_version(managed, route->model, version));
        break;
    default:
        SX_TRY(sx_managed_delete_model(managed, route->model));
        break;
    }
    print_name(out, "projects/%s/operations/delete", route->project);
    sx_buf_puts(out, ", \"done\": true, \"response\": {}}");
    return SX_OK;
}

/* ---- The other routes ---- */

/* The URL of this server as the client wrote it. */
static void print_root(const sx_rest *rest, const sx_http_exchange *exchange, char *out,
                       size_t capacity)
{
    const sx_http_head *head = sx_http_request_head(exchange);
    const sx_http_text host = sx_http_header_get(head, "Host");
    snprintf(out, capacity, "%s://%.*s/", sx_rest_is_secure(rest) ? "https" : "http",
             host.data != NULL ? (int)SX_MIN(host.size, (size_t)255) : 9,
             host.data != NULL ? host.data : "localhost");
}

static sx_status answer(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route,
                        sx_arena *arena, sx_buf *out)
{
    char text[SX_ROUTE_NAME + 16];
    int64_t version = -1;
    switch (route->kind) {
    case SX_ROUTE_ML_DISCOVERY:
        print_root(rest, exchange, text, sizeof(text));
        sx_managed_print_discovery(text, out);
        return SX_OK;
    case SX_ROUTE_ML_MODELS:
        return print_models(rest, route, arena, out);
    case SX_ROUTE_ML_MODEL:
        return print_model(rest, route, route->model, arena, out);
    case SX_ROUTE_ML_VERSIONS:
    case SX_ROUTE_ML_VERSION:
        return print_versions(rest, route, arena, out);
    case SX_ROUTE_ML_OPERATION:
        SX_TRY(read_operation(route, &version));
        return print_operation(rest, route, route->model, version, arena, out);
    default:
        return change(rest, exchange, route, arena, out);
    }
}

/* A change reads and writes files: on the executor. In the exchange's scratch memory, but for the
 * route, which does not fit. */
struct change_job {
    sx_executor_job job; /* must be first: converted by address */
    sx_rest *rest;
    sx_http_exchange *exchange;
};

static void respond_answer(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    sx_arena arena;
    sx_buf body;
    sx_arena_init(&arena, 16 << 20);
    sx_buf_init(&body, 0);
    sx_status status = answer(rest, exchange, route, &arena, &body);
    sx_arena_deinit(&arena);
    sx_rest_respond_made(rest, exchange, status, json_type, &body);
}

static bool run_change(sx_executor_job *job, int worker)
{
    struct change_job *change = (struct change_job *)job;
    const sx_http_head *head = sx_http_request_head(change->exchange);
    sx_route route;
    (void)worker;
    sx_route_parse(head->method, head->path, NULL, &route);
    respond_answer(change->rest, change->exchange, &route);
    return true;
}

void sx_managed_rest_handle(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route)
{
    if (!sx_route_is_change(route->kind)) {
        respond_answer(rest, exchange, route);
        return;
    }
    struct change_job *change = sx_http_request_scratch(exchange);
    *change = (struct change_job){.job = {.fn = run_change}, .rest = rest, .exchange = exchange};
    sx_status status = sx_calls_submit(sx_rest_calls(rest), &change->job);
    if (status != SX_OK) {
        sx_rest_respond_error(rest, exchange, status);
    }
}
