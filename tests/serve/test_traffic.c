/* Requests that are shared out between versions: what the file says, shares, sticky values,
 * shadows.
 */
#include "harness.h"

#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "net/client.h"
#include "serve/fake_model.h"
#include "serve/server.h"
#include "serve/shadow.h"
#include "serve/traffic.h"

static sx_status parse(sx_arena *arena, const char *text, sx_traffic **rows, size_t *count)
{
    return sx_traffic_parse((sx_bytes){text, strlen(text)}, "traffic.config", arena, rows, count);
}

static void test_serve_traffic__reads_the_file(void **state)
{
    (void)state;
    static const char text[] =
        "# shares\n"
        "model {\n"
        "  name: 'flowers'\n"
        "  canary { version: 42 percent: 2.5 sticky_header: 'x-user' }\n"
        "  shadow { version: 43 percent: 10 tolerance: 0.01 }\n"
        "}\n"
        "model { name: 'digits' canary { percent: 100 } shadow { version: 7 } }\n"
        "model { name: 'plain' }\n"
        "model { name: 'off' shadow { version: 7 percent: 0 tolerance: 0 } }\n";
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"model { }", "traffic.config:1: model[0]: name: expected that of a model"},
        {"model { name: 'a' }\nmodel { name: 'a' }",
         "traffic.config:2: model[1]: name: model a is given twice"},
        {"model { name: 'a' canary { percent: 101 } }", "canary.percent: 101, expected 0 to 100"},
        {"model { name: 'a' canary { version: -3 } }", "canary.version: -3 is no version"},
        {"model { name: 'a' shadow { percent: 5 } }", "shadow.version: expected the number"},
        {"model { name: 'a' shadow { version: 5 percent: -1 } }", "shadow.percent: -1"},
        {"model { name: 'a' shadow { version: 5 tolerance: 2 } }", "shadow.tolerance: 2"},
        {"model { nmae: 'a' }", "traffic.config:1:9: ModelTraffic has no field 'nmae'"},
    };
    sx_arena arena;
    sx_traffic *rows = NULL;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    assert_ok(parse(&arena, text, &rows, &count));
    assert_int_equal(count, 4);
    assert_string_equal(rows[0].model, "flowers");
    assert_int_equal(rows[0].canary_version, 42);
    assert_int_equal(rows[0].canary_share, 250);
    assert_string_equal(rows[0].sticky_header, "x-user");
    assert_int_equal(rows[0].shadow_version, 43);
    assert_int_equal(rows[0].shadow_share, 1000);
    assert_true(rows[0].shadow_tolerance == 0.01);
    assert_int_equal(rows[1].canary_version, SX_LATEST_VERSION);
    assert_int_equal(rows[1].canary_share, SX_SHARE_ALL);
    assert_string_equal(rows[1].sticky_header, "");
    assert_int_equal(rows[1].shadow_share, SX_SHARE_ALL);
    assert_true(rows[1].shadow_tolerance == 1e-3);
    assert_int_equal(rows[2].canary_share + rows[2].shadow_share, 0);
    assert_int_equal(rows[3].shadow_share, 0);
    assert_true(rows[3].shadow_tolerance == 0);
    for (size_t i = 0; i < SX_COUNT(bad); i++) {
        assert_error(parse(&arena, bad[i].text, &rows, &count), SX_INVALID_ARGUMENT,
                     bad[i].message);
    }
    sx_arena_deinit(&arena);
}

static void test_serve_traffic__shares_are_exact(void **state)
{
    (void)state;
    static const int shares[] = {0, 1, 250, 3333, 5000, 9999, SX_SHARE_ALL};
    for (size_t i = 0; i < SX_COUNT(shares); i++) {
        int turns = 0, values = 0, both = 0;
        for (int k = 0; k < 4 * SX_SHARE_ALL; k++) {
            char text[20];
            const sx_http_text value = {text, (size_t)snprintf(text, sizeof(text), "user%d", k)};
            const bool has = sx_share_has_value(shares[i], "m", value);
            turns += sx_share_has_turn(shares[i], (uint64_t)k);
            values += has;
            both += has && sx_share_has_value(SX_MIN(2 * shares[i], SX_SHARE_ALL), "m", value);
        }
        assert_int_equal(turns, 4 * shares[i]);
        assert_true(abs(values - 4 * shares[i]) <= 4 * 100); /* four deviations of 40000 coins */
        assert_int_equal(both, values); /* who is in stays in when the share grows */
    }
    int in_ten = 0;
    for (int k = 0; k < 10; k++) {
        in_ten += sx_share_has_turn(2000, (uint64_t)k);
    }
    assert_int_equal(in_ten, 2);
}

static void test_serve_traffic__answers_are_compared(void **state)
{
    (void)state;
    float a[] = {1, -2, NAN, 100}, b[] = {1.05f, -2, NAN, 100};
    int32_t i[] = {1, 2}, j[] = {1, 3};
    const sx_bytes s[] = {{"ab", 2}, {"", 0}}, t[] = {{"ab", 2}, {"c", 1}};
    const sx_type floats = {SX_F32, 1, {4}}, ints = {SX_I32, 1, {2}}, texts = {SX_STRING, 1, {2}};
    const sx_type square = {SX_F32, 2, {2, 2}};
#define EQUAL(type_a, x, type_b, y, tolerance)                    \
    sx_shadow_equal(&(sx_tensor){type_a, (void *)(uintptr_t)(x)}, \
                    &(sx_tensor){type_b, (void *)(uintptr_t)(y)}, tolerance)
    assert_true(EQUAL(floats, a, floats, a, 0));
    assert_true(EQUAL(floats, a, floats, b, 1e-3)); /* 0.05 of 100 */
    assert_false(EQUAL(floats, a, floats, b, 1e-4));
    assert_false(EQUAL(floats, a, square, a, 1));
    b[2] = 0;
    assert_false(EQUAL(floats, a, floats, b, 1));
    assert_true(EQUAL(ints, i, ints, i, 0));
    assert_false(EQUAL(ints, i, ints, j, 1));
    assert_true(EQUAL(texts, s, texts, s, 0));
    assert_false(EQUAL(texts, s, texts, t, 1));
    assert_false(EQUAL(floats, a, ints, i, 1));
}

/* ---- A server ---- */

struct scene {
    char base[64], models[100], traffic[100];
    struct fake_runtime runtime;
    sx_server *server;
};

static void write_file(const char *path, const char *text)
{
    char beside[120];
    snprintf(beside, sizeof(beside), "%s.new", path);
    FILE *file = fopen(beside, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(beside, path), 0);
}

/* A server of the model m, whose versions 1, 2 and 3 multiply by their number; `scale3` in its
 * place for version 3. */
static void open_scene(struct scene *scene, const char *traffic, int scale3, int run_ms3)
{
    char text[300];
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "1", 1, 0, 0, 0);
    fake_publish(scene->base, "2", 2, 0, 0, 0);
    fake_publish(scene->base, "3", scale3, 0, run_ms3, 0);
    snprintf(scene->models, sizeof(scene->models), "%s/models.config", scene->base);
    snprintf(scene->traffic, sizeof(scene->traffic), "%s/traffic.config", scene->base);
    snprintf(text, sizeof(text),
             "model_config_list { config { name: 'm' base_path: '%s' "
             "model_version_policy { specific { versions: 2 versions: 3 } } } }",
             scene->base);
    write_file(scene->models, text);
    write_file(scene->traffic, traffic);
    const sx_server_config config = {.host = "127.0.0.1",
                                     .rest_api_port = SX_ANY_PORT,
                                     .model_config_file = scene->models,
                                     .model_traffic_file = scene->traffic,
                                     .model_config_file_poll_wait_seconds = 0.02,
                                     .file_system_poll_wait_seconds = 0.05,
                                     .ops = &fake_ops,
                                     .ops_user = &scene->runtime};
    assert_ok(sx_server_create(&config, &scene->server));
    assert_ok(sx_server_start(scene->server));
    assert_true(sx_server_wait_ready(scene->server, 5000));
    char request[300];
    const int64_t begin = sx_now_ns();
    while (client_exchange(sx_server_rest_port(scene->server), request,
                           client_get(request, sizeof(request), "/v1/models/m/versions/2/metadata"))
               .status != 200) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(2);
    }
}

static void close_scene(struct scene *scene)
{
    sx_server_destroy(scene->server);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    for (int version = 1; version <= 3; version++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", version);
        fake_remove_version(scene->base, name);
    }
    unlink(scene->models);
    unlink(scene->traffic);
    rmdir(scene->base);
}

/* What x = 1 is multiplied by; `user` is a header's value, or NULL. */
static int ask(const struct scene *scene, const char *path, const char *user)
{
    static const char body[] = "{\"inputs\": [1]}";
    char request[500];
    const int size = snprintf(request, sizeof(request),
                              "POST /v1/models/m%s:predict HTTP/1.1\r\nHost: a\r\n%s%s%s"
                              "Content-Length: %zu\r\n\r\n%s",
                              path, user != NULL ? "X-User: " : "", user != NULL ? user : "",
                              user != NULL ? "\r\n" : "", sizeof(body) - 1, body);
    const struct answer answer =
        client_exchange(sx_server_rest_port(scene->server), request, (size_t)size);
    const char *list = strchr(answer.body, '[');
    return answer.status == 200 && list != NULL ? atoi(list + 1) : -answer.status;
}

/* The value of a series; 0: it is not there. */
static int metric(const struct scene *scene, const char *series)
{
    char request[300];
    const struct answer answer =
        client_exchange(sx_server_rest_port(scene->server), request,
                        client_get(request, sizeof(request), "/monitoring/prometheus/metrics"));
    const char *at = strstr(answer.body, series);
    return at != NULL ? atoi(at + strlen(series)) : 0;
}

static void test_serve_traffic__canaries_get_their_share(void **state)
{
    (void)state;
    struct scene scene;
    int to[4] = {0};
    open_scene(&scene, "model { name: 'm' canary { percent: 10 } }", 3, 0);
    for (int i = 0; i < 200; i++) {
        const int version = ask(&scene, "", "anna"); /* no header decides here */
        assert_in_range(version, 2, 3);
        to[version]++;
    }
    assert_int_equal(to[3], 20);
    for (int i = 0; i < 20; i++) { /* who names a version gets it */
        assert_int_equal(ask(&scene, "/versions/2", NULL), 2);
        assert_int_equal(ask(&scene, "/versions/3", NULL), 3);
    }
    assert_int_equal(metric(&scene, "sextant_canary_requests_total{model_name=\"m\","
                                    "to=\"canary\"} "),
                     20);
    assert_int_equal(metric(&scene, "sextant_canary_requests_total{model_name=\"m\","
                                    "to=\"stable\"} "),
                     180);
    /* a mistake changes nothing; another share is taken while serving */
    write_file(scene.traffic, "model { name: 'm' canary { percent: 200 } }");
    fake_sleep(100);
    assert_int_equal(ask(&scene, "", NULL), 3); /* turn 200 */
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(&scene, "", NULL), 2);
    }
    write_file(scene.traffic, "model { name: 'm' canary { version: 2 percent: 100 } }");
    const int64_t begin = sx_now_ns();
    for (int in_a_row = 0; in_a_row < 12;) {
        in_a_row = ask(&scene, "", NULL) == 2 ? in_a_row + 1 : 0;
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
    }
    /* a canary that is not served gets nothing */
    write_file(scene.traffic, "model { name: 'm' canary { version: 9 percent: 100 } }");
    for (int in_a_row = 0; in_a_row < 12;) {
        in_a_row = ask(&scene, "", NULL) == 3 ? in_a_row + 1 : 0;
        assert_true(sx_now_ns() - begin < (int64_t)10 * 1000000000);
    }
    close_scene(&scene);
}

static void test_serve_traffic__sticky_values_stay(void **state)
{
    (void)state;
    enum { USERS = 200 };
    struct scene scene;
    int canaries = 0, before[USERS];
    open_scene(&scene,
               "model { name: 'm' canary { version: 3 percent: 30 sticky_header: 'x-user' } }", 3,
               0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < USERS; i++) {
            char user[20];
            snprintf(user, sizeof(user), "user-%d", i);
            const int version = ask(&scene, "", user);
            assert_in_range(version, 2, 3);
            assert_true(round == 0 || version == before[i]);
            before[i] = version;
            canaries += version == 3;
        }
    }
    assert_in_range(canaries, 2 * USERS * 2 / 10, 2 * USERS * 4 / 10);
    close_scene(&scene);
}

/* Waits until so many copies have been compared. */
static void wait_metric(const struct scene *scene, const char *result, int value)
{
    char series[200];
    snprintf(series, sizeof(series),
             "sextant_shadow_requests_total{model_name=\"m\",result=\"%s\"} ", result);
    const int64_t begin = sx_now_ns();
    while (metric(scene, series) != value) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("%s is %d, expected %d", series, metric(scene, series), value);
        }
        fake_sleep(2);
    }
}

static void test_serve_traffic__shadows_are_compared(void **state)
{
    (void)state;
    static const char traffic[] = "model { name: 'm' canary { version: 3 } shadow { version: 3 } }";
    struct scene scene;
    open_scene(&scene, traffic, 2, 0); /* version 3 answers as version 2 does */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ask(&scene, "/versions/2", NULL), 2);
    }
    wait_metric(&scene, "equal", 10);
    assert_int_equal(ask(&scene, "/versions/3", NULL),
                     2); /* the shadow's own requests: no copies */
    assert_int_equal(atomic_load(&scene.runtime.runs), 21);
    close_scene(&scene);
    open_scene(&scene, traffic, 5, 0);
    assert_int_equal(ask(&scene, "/versions/2", NULL), 2);
    wait_metric(&scene, "different", 1);
    close_scene(&scene);
}

/* A slow shadow delays nobody, and no more copies wait than there is room for. */
static void test_serve_traffic__shadows_delay_nobody(void **state)
{
    (void)state;
    enum { REQUESTS = 100, SLOW_MS = 200 };
    struct scene scene;
    open_scene(&scene, "model { name: 'm' shadow { version: 3 percent: 100 } }", 2, SLOW_MS);
    int64_t slowest_ns = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const int64_t begin = sx_now_ns();
        assert_int_equal(ask(&scene, "/versions/2", NULL), 2);
        slowest_ns = SX_MAX(slowest_ns, sx_now_ns() - begin);
    }
    assert_true(slowest_ns < (int64_t)SLOW_MS * 1000000);
    assert_true(metric(&scene, "sextant_shadow_requests_total{model_name=\"m\","
                               "result=\"dropped\"} ") > 0);
    close_scene(&scene); /* does not wait for those that are left */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_traffic__reads_the_file),
    cmocka_unit_test(test_serve_traffic__shares_are_exact),
    cmocka_unit_test(test_serve_traffic__answers_are_compared),
    cmocka_unit_test(test_serve_traffic__canaries_get_their_share),
    cmocka_unit_test(test_serve_traffic__sticky_values_stay),
    cmocka_unit_test(test_serve_traffic__shadows_are_compared),
    cmocka_unit_test(test_serve_traffic__shadows_delay_nobody),
};
SX_TEST_MAIN(tests)
