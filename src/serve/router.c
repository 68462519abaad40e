/* Request routing; see router.h. */
#include "serve/router.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/hex.h"

/* Percent-decodes into out[SX_ROUTE_NAME]; false for bad escapes, NUL bytes, or too long a name. */
static bool decode(sx_http_text text, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '%') {
            const int byte = sx_percent_byte(text.data + i, text.size - i);
            if (byte < 0) {
                return false;
            }
            c = (char)byte;
            i += 2;
        }
        if (c == '\0' || size + 1 >= SX_ROUTE_NAME) {
            return false;
        }
        out[size++] = c;
    }
    out[size] = '\0';
    return size > 0;
}

/* Takes a segment: everything before '/' or ':'. */
static sx_http_text take_segment(sx_http_text *text)
{
    size_t size = 0;
    while (size < text->size && text->data[size] != '/' && text->data[size] != ':') {
        size++;
    }
    const sx_http_text segment = {text->data, size};
    text->data += size;
    text->size -= size;
    return segment;
}

static bool parse_version(sx_http_text text, int64_t *out)
{
    int64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(c - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return text.size > 0;
}

/* /versions/N or /labels/L, or nothing. */
static bool parse_choice(sx_http_text *rest, sx_route *route)
{
    if (sx_http_text_take_nocase(rest, "/versions/")) {
        return parse_version(take_segment(rest), &route->version);
    }
    if (sx_http_text_take_nocase(rest, "/labels/")) {
        return decode(take_segment(rest), route->label);
    }
    return true;
}

static const struct {
    const char *suffix, *method;
    sx_route_kind kind;
} model_routes[] = {
    {"", "GET", SX_ROUTE_STATUS},           {"/metadata", "GET", SX_ROUTE_METADATA},
    {":predict", "POST", SX_ROUTE_PREDICT}, {":classify", "POST", SX_ROUTE_CLASSIFY},
    {":regress", "POST", SX_ROUTE_REGRESS},
};

/* Behind /v2/models/NAME[/versions/N]. */
static const struct {
    const char *suffix, *method;
    sx_route_kind kind;
} kserve_routes[] = {
    {"", "GET", SX_ROUTE_V2_MODEL},
    {"/ready", "GET", SX_ROUTE_V2_MODEL_READY},
    {"/infer", "POST", SX_ROUTE_V2_INFER},
};

static const struct {
    const char *path, *method;
    sx_route_kind kind;
} fixed_routes[] = {
    {"/", "GET", SX_ROUTE_STATUS_PAGE},
    {"/healthz", "GET", SX_ROUTE_LIVE},
    {"/v2/health/live", "GET", SX_ROUTE_LIVE},
    {"/readyz", "GET", SX_ROUTE_READY},
    {"/v2/health/ready", "GET", SX_ROUTE_READY},
    {"/v2", "GET", SX_ROUTE_V2_SERVER},
    {"/v2/", "GET", SX_ROUTE_V2_SERVER},
    {"/v2/repository/index", "POST", SX_ROUTE_V2_INDEX},
    {"/discovery/v1/apis/ml/v1/rest", "GET", SX_ROUTE_ML_DISCOVERY},
};

/* Behind /v1/projects/P/models, of the collection, of a model, of its versions, of a version. */
enum { ML_MODELS, ML_MODEL, ML_VERSIONS, ML_VERSION };
static const struct {
    int level;
    const char *suffix, *method;
    sx_route_kind kind;
} ml_routes[] = {
    {ML_MODELS, "", "GET", SX_ROUTE_ML_MODELS},
    {ML_MODELS, "", "POST", SX_ROUTE_ML_CREATE_MODEL},
    {ML_MODEL, "", "GET", SX_ROUTE_ML_MODEL},
    {ML_MODEL, "", "DELETE", SX_ROUTE_ML_DELETE_MODEL},
    {ML_MODEL, ":predict", "POST", SX_ROUTE_ML_PREDICT},
    {ML_VERSIONS, "", "GET", SX_ROUTE_ML_VERSIONS},
    {ML_VERSIONS, "", "POST", SX_ROUTE_ML_CREATE_VERSION},
    {ML_VERSION, "", "GET", SX_ROUTE_ML_VERSION},
    {ML_VERSION, "", "DELETE", SX_ROUTE_ML_DELETE_VERSION},
    {ML_VERSION, ":predict", "POST", SX_ROUTE_ML_PREDICT},
    {ML_VERSION, ":setDefault", "POST", SX_ROUTE_ML_SET_DEFAULT},
};

/* v12 is version 12; other names are labels. */
static bool parse_ml_version(sx_http_text text, sx_route *route)
{
    sx_http_text digits = text;
    (void)sx_http_text_take_nocase(&digits, "v");
    return parse_version(digits, &route->version) || decode(text, route->label);
}

/* What follows /v1/projects/. */
static sx_route_kind parse_ml_path(sx_http_text method, sx_http_text rest, sx_route *route)
{
    int level = ML_MODELS;
    if (!decode(take_segment(&rest), route->project)) {
        return SX_ROUTE_MALFORMED;
    }
    if (sx_http_text_take_nocase(&rest, "/operations/")) {
        if (!decode(take_segment(&rest), route->label) || rest.size > 0 ||
            !sx_http_text_is(method, "GET")) {
            return SX_ROUTE_MALFORMED;
        }
        /* Of the model m: m-v1. Who may not look at the model may not look at it, either. */
        const char *dash = strrchr(route->label, '-');
        snprintf(route->model, sizeof(route->model), "%.*s",
                 dash != NULL ? (int)(dash - route->label) : 0, route->label);
        return SX_ROUTE_ML_OPERATION;
    }
    if (!sx_http_text_take_nocase(&rest, "/models")) {
        return SX_ROUTE_MALFORMED;
    }
    if (sx_http_text_take_nocase(&rest, "/")) {
        level = ML_MODEL;
        if (!decode(take_segment(&rest), route->model)) {
            return SX_ROUTE_MALFORMED;
        }
    }
    if (level == ML_MODEL && sx_http_text_take_nocase(&rest, "/versions")) {
        level = ML_VERSIONS;
        if (sx_http_text_take_nocase(&rest, "/")) {
            level = ML_VERSION;
            if (!parse_ml_version(take_segment(&rest), route)) {
                return SX_ROUTE_MALFORMED;
            }
        }
    }
    for (size_t i = 0; i < SX_COUNT(ml_routes); i++) {
        if (ml_routes[i].level == level && sx_http_text_is(method, ml_routes[i].method) &&
            sx_http_text_is_nocase(rest, ml_routes[i].suffix)) {
            return ml_routes[i].kind;
        }
    }
    return SX_ROUTE_MALFORMED;
}

bool sx_route_is_predict(sx_route_kind kind)
{
    return kind == SX_ROUTE_PREDICT || kind == SX_ROUTE_CLASSIFY || kind == SX_ROUTE_REGRESS ||
           kind == SX_ROUTE_V2_INFER || kind == SX_ROUTE_ML_PREDICT;
}

static sx_route_kind parse_model_path(sx_http_text method, sx_http_text rest, sx_route *route)
{
    if (rest.size == 0 || sx_http_text_is(rest, "/")) {
        return sx_http_text_is(method, "GET") ? SX_ROUTE_MISSING_MODEL : SX_ROUTE_MALFORMED;
    }
    if (!sx_http_text_take_nocase(&rest, "/") || !decode(take_segment(&rest), route->model) ||
        !parse_choice(&rest, route)) {
        return SX_ROUTE_MALFORMED;
    }
    for (size_t i = 0; i < SX_COUNT(model_routes); i++) {
        if (sx_http_text_is(method, model_routes[i].method) &&
            sx_http_text_is_nocase(rest, model_routes[i].suffix)) {
            return model_routes[i].kind;
        }
    }
    return SX_ROUTE_MALFORMED;
}

static sx_route_kind parse_fixed_path(sx_http_text method, sx_http_text path,
                                      const char *metrics_path)
{
    sx_route_kind kind = SX_ROUTE_NOT_FOUND;
    const char *wanted = "GET";
    for (size_t i = 0; i < SX_COUNT(fixed_routes); i++) {
        if (sx_http_text_is(path, fixed_routes[i].path)) {
            kind = fixed_routes[i].kind;
            wanted = fixed_routes[i].method;
        }
    }
    if (metrics_path != NULL && sx_http_text_is(path, metrics_path)) {
        kind = SX_ROUTE_METRICS;
    }
    const bool wrong_method = kind != SX_ROUTE_NOT_FOUND && !sx_http_text_is(method, wanted);
    return wrong_method ? SX_ROUTE_METHOD_NOT_ALLOWED : kind;
}

/* What follows /v2/models/. */
static sx_route_kind parse_kserve_path(sx_http_text method, sx_http_text rest, sx_route *route)
{
    if (!decode(take_segment(&rest), route->model) ||
        (sx_http_text_take_nocase(&rest, "/versions/") &&
         !parse_version(take_segment(&rest), &route->version))) {
        return SX_ROUTE_NOT_FOUND;
    }
    for (size_t i = 0; i < SX_COUNT(kserve_routes); i++) {
        if (sx_http_text_is_nocase(rest, kserve_routes[i].suffix)) {
            return sx_http_text_is(method, kserve_routes[i].method) ? kserve_routes[i].kind
                                                                    : SX_ROUTE_METHOD_NOT_ALLOWED;
        }
    }
    return SX_ROUTE_NOT_FOUND;
}

void sx_route_parse(sx_http_text method, sx_http_text path, const char *metrics_path,
                    sx_route *out_route)
{
    sx_http_text rest = path;
    *out_route = (sx_route){.version = -1};
    if (sx_http_text_is(method, "HEAD")) {
        method = (sx_http_text){"GET", 3};
    }
    out_route->kind = parse_fixed_path(method, path, metrics_path);
    if (out_route->kind == SX_ROUTE_NOT_FOUND && sx_http_text_take_nocase(&rest, "/v2/models/")) {
        out_route->kind = parse_kserve_path(method, rest, out_route);
        return;
    }
    if (out_route->kind != SX_ROUTE_NOT_FOUND || !sx_http_text_take_nocase(&rest, "/v1/")) {
        return;
    }
    if (sx_http_text_is(method, "OPTIONS")) {
        out_route->kind = SX_ROUTE_OPTIONS;
    } else if (sx_http_text_take_nocase(&rest, "projects/")) {
        out_route->kind = parse_ml_path(method, rest, out_route);
    } else if (sx_http_text_take_nocase(&rest, "models")) {
        out_route->kind = parse_model_path(method, rest, out_route);
    } else {
        out_route->kind = SX_ROUTE_MALFORMED;
    }
}
