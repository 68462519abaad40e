#include "harness.h"

#include "base/checked.h"
#include "serve/router.h"

static sx_http_text text_of(const char *text)
{
    return (sx_http_text){text, strlen(text)};
}

static void test_serve_router__routes(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path;
        sx_route_kind kind;
        const char *model, *label;
        int64_t version;
    } rows[] = {
        {"GET", "/v1/models/m", SX_ROUTE_STATUS, "m", "", -1},
        {"HEAD", "/v1/models/m", SX_ROUTE_STATUS, "m", "", -1},
        {"GET", "/V1/Models/m/Versions/007", SX_ROUTE_STATUS, "m", "", 7},
        {"GET", "/v1/models/m/labels/stable", SX_ROUTE_STATUS, "m", "stable", -1},
        {"GET", "/v1/models/m/metadata", SX_ROUTE_METADATA, "m", "", -1},
        {"GET", "/v1/models/m/versions/3/metadata", SX_ROUTE_METADATA, "m", "", 3},
        {"POST", "/v1/models/m:predict", SX_ROUTE_PREDICT, "m", "", -1},
        {"POST", "/v1/models/m:PREDICT", SX_ROUTE_PREDICT, "m", "", -1},
        {"POST", "/v1/models/m/versions/12:predict", SX_ROUTE_PREDICT, "m", "", 12},
        {"POST", "/v1/models/m/labels/a%20b:predict", SX_ROUTE_PREDICT, "m", "a b", -1},
        {"POST", "/v1/models/a%2Fb%3a:predict", SX_ROUTE_PREDICT, "a/b:", "", -1},
        {"POST", "/v1/models/m:classify", SX_ROUTE_CLASSIFY, "m", "", -1},
        {"POST", "/v1/models/m:regress", SX_ROUTE_REGRESS, "m", "", -1},
        {"GET", "/v1/models", SX_ROUTE_MISSING_MODEL, "", "", -1},
        {"GET", "/v1/models/", SX_ROUTE_MISSING_MODEL, "", "", -1},
        {"OPTIONS", "/v1/models/m:predict", SX_ROUTE_OPTIONS, "", "", -1},
        {"OPTIONS", "/v1/anything", SX_ROUTE_OPTIONS, "", "", -1},
        {"GET", "/healthz", SX_ROUTE_LIVE, "", "", -1},
        {"GET", "/v2/health/live", SX_ROUTE_LIVE, "", "", -1},
        {"GET", "/readyz", SX_ROUTE_READY, "", "", -1},
        {"GET", "/v2/health/ready", SX_ROUTE_READY, "", "", -1},
        {"POST", "/healthz", SX_ROUTE_METHOD_NOT_ALLOWED, "", "", -1},
        {"GET", "/metrics", SX_ROUTE_METRICS, "", "", -1},
        {"GET", "/v1/models/m:predict", SX_ROUTE_MALFORMED, "m", "", -1},
        {"POST", "/v1/models/m", SX_ROUTE_MALFORMED, "m", "", -1},
        {"POST", "/v1/models/m:train", SX_ROUTE_MALFORMED, "m", "", -1},
        {"POST", "/v1/models/m:predict/", SX_ROUTE_MALFORMED, "m", "", -1},
        {"POST", "/v1/models/:predict", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/v1/models/m/versions/x", SX_ROUTE_MALFORMED, "m", "", -1},
        {"GET", "/v1/models/m/versions/-1", SX_ROUTE_MALFORMED, "m", "", -1},
        {"GET", "/v1/models/m/versions/9223372036854775808", SX_ROUTE_MALFORMED, "m", "", -1},
        {"GET", "/v1/models/m/versions/1/labels/x", SX_ROUTE_MALFORMED, "m", "", 1},
        {"GET", "/v1/models/%00", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/v1/models/%4", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/v1/models/%zz", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/v1/modelsx", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/v1/", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/", SX_ROUTE_STATUS_PAGE, "", "", -1},
        {"POST", "/", SX_ROUTE_METHOD_NOT_ALLOWED, "", "", -1},
        {"GET", "/v1", SX_ROUTE_NOT_FOUND, "", "", -1},
        {"GET", "/index.html", SX_ROUTE_NOT_FOUND, "", "", -1},
        {"GET", "*", SX_ROUTE_NOT_FOUND, "", "", -1},
        {"POST", "/v1/projects/p/models/m:predict", SX_ROUTE_ML_PREDICT, "m", "", -1},
        {"POST", "/v1/projects/p/models/m/versions/v7:predict", SX_ROUTE_ML_PREDICT, "m", "", 7},
        {"POST", "/v1/projects/p/models/m/versions/7:predict", SX_ROUTE_ML_PREDICT, "m", "", 7},
        {"POST", "/v1/projects/p/models/m/versions/new:predict", SX_ROUTE_ML_PREDICT, "m", "new",
         -1},
        {"POST", "/v1/projects/p/models/m/versions/v7:setDefault", SX_ROUTE_ML_SET_DEFAULT, "m", "",
         7},
        {"GET", "/v1/projects/p/models", SX_ROUTE_ML_MODELS, "", "", -1},
        {"POST", "/v1/projects/p/models", SX_ROUTE_ML_CREATE_MODEL, "", "", -1},
        {"GET", "/v1/projects/p/models/m", SX_ROUTE_ML_MODEL, "m", "", -1},
        {"DELETE", "/v1/projects/p/models/m", SX_ROUTE_ML_DELETE_MODEL, "m", "", -1},
        {"GET", "/v1/projects/p/models/m/versions", SX_ROUTE_ML_VERSIONS, "m", "", -1},
        {"POST", "/v1/projects/p/models/m/versions", SX_ROUTE_ML_CREATE_VERSION, "m", "", -1},
        {"GET", "/v1/projects/p/models/m/versions/v1", SX_ROUTE_ML_VERSION, "m", "", 1},
        {"DELETE", "/v1/projects/p/models/m/versions/v1", SX_ROUTE_ML_DELETE_VERSION, "m", "", 1},
        {"GET", "/v1/projects/p/operations/m-v1", SX_ROUTE_ML_OPERATION, "m", "m-v1", -1},
        {"PUT", "/v1/projects/p/models/m", SX_ROUTE_MALFORMED, "m", "", -1},
        {"GET", "/v1/projects//models/m", SX_ROUTE_MALFORMED, "", "", -1},
        {"POST", "/v1/projects/p/models/m/versions/:predict", SX_ROUTE_MALFORMED, "m", "", -1},
        {"POST", "/v1/projects/p/jobs", SX_ROUTE_MALFORMED, "", "", -1},
        {"GET", "/discovery/v1/apis/ml/v1/rest", SX_ROUTE_ML_DISCOVERY, "", "", -1},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_route route;
        sx_route_parse(text_of(rows[i].method), text_of(rows[i].path), "/metrics", &route);
        if (route.kind != rows[i].kind) {
            fail_msg("%s %s: got kind %d, expected %d", rows[i].method, rows[i].path, route.kind,
                     rows[i].kind);
        }
        if (route.kind != SX_ROUTE_MALFORMED) {
            assert_string_equal(route.model, rows[i].model);
            assert_string_equal(route.label, rows[i].label);
            assert_int_equal(route.version, rows[i].version);
        }
    }
}

static void test_serve_router__bounds_names(void **state)
{
    (void)state;
    char path[1024];
    sx_route route;
    snprintf(path, sizeof(path), "/v1/models/%0255d", 0);
    sx_route_parse(text_of("GET"), text_of(path), NULL, &route);
    assert_int_equal(route.kind, SX_ROUTE_STATUS);
    assert_int_equal(strlen(route.model), 255);
    snprintf(path, sizeof(path), "/v1/models/%0256d", 0);
    sx_route_parse(text_of("GET"), text_of(path), NULL, &route);
    assert_int_equal(route.kind, SX_ROUTE_MALFORMED);
    sx_route_parse(text_of("GET"), text_of("/metrics"), NULL, &route);
    assert_int_equal(route.kind, SX_ROUTE_NOT_FOUND); /* switched off */
}

/* Every pair of bytes behind a percent sign: two hexadecimal digits are a byte (but not NUL), all
 * else is malformed. */
static void test_serve_router__escapes(void **state)
{
    (void)state;
    static const char digits[] = "0123456789abcdef";
    for (int high = 1; high < 256; high++) {
        for (int low = 1; low < 256; low++) {
            char path[64];
            sx_route route;
            if (high == '/' || high == ':' || low == '/' || low == ':') {
                continue; /* the segment ends there */
            }
            snprintf(path, sizeof(path), "/v1/models/a%%%c%cb", high, low);
            sx_route_parse(text_of("GET"), text_of(path), NULL, &route);
            const char *h = strchr(digits, high >= 'A' && high <= 'F' ? high + 32 : high);
            const char *l = strchr(digits, low >= 'A' && low <= 'F' ? low + 32 : low);
            const int byte = h && l ? (int)(h - digits) * 16 + (int)(l - digits) : 0;
            if (byte == 0) {
                assert_int_equal(route.kind, SX_ROUTE_MALFORMED);
            } else {
                const char expected[] = {'a', (char)byte, 'b', '\0'};
                assert_int_equal(route.kind, SX_ROUTE_STATUS);
                assert_string_equal(route.model, expected);
            }
        }
    }
    static const char *const cut[] = {"/v1/models/a%", "/v1/models/a%4", "/v1/models/%"};
    for (size_t i = 0; i < SX_COUNT(cut); i++) {
        sx_route route;
        sx_route_parse(text_of("GET"), text_of(cut[i]), NULL, &route);
        assert_int_equal(route.kind, SX_ROUTE_MALFORMED);
    }
    sx_route route;
    sx_route_parse(text_of("GET"), text_of("/v1/models/%41"), NULL, &route); /* at the end */
    assert_string_equal(route.model, "A");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_router__routes),
    cmocka_unit_test(test_serve_router__bounds_names),
    cmocka_unit_test(test_serve_router__escapes),
};
SX_TEST_MAIN(tests)
