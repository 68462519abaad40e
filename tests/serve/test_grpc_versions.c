/* Which version a call of gRPC gets, or waits for: canaries, sticky metadata, shadows, models that
 * are loaded at their first request. */
#include "harness.h"

#include "base/clock.h"
#include "serve/fake_server.h"
#include "serve/grpc_message.h"

struct scene {
    char base[64], models[100], traffic[100];
    struct fake_runtime runtime;
    sx_serve_model_ops ops;
    sx_server *server;
    struct h2_client client;
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* How many of the versions are served. */
static int available(const struct scene *scene)
{
    char request[300];
    const struct answer answer =
        client_exchange(sx_server_rest_port(scene->server), request,
                        client_get(request, sizeof(request), "/v1/models/m"));
    int n = 0;
    for (const char *at = answer.body; (at = strstr(at, "AVAILABLE")) != NULL; at++) {
        n++;
    }
    return n;
}

/* Versions 2 and 3 of the model m multiply by `by2` and `by3`; loading takes load_ms. `traffic` may
 * be NULL. */
static void open_scene(struct scene *scene, const char *traffic, int by2, int by3, int load_ms,
                       sx_server_config config)
{
    char text[300];
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", by2, load_ms, 0, 0);
    fake_publish(scene->base, "3", by3, load_ms, 0, 0);
    snprintf(scene->models, sizeof(scene->models), "%s/models.config", scene->base);
    snprintf(scene->traffic, sizeof(scene->traffic), "%s/traffic.config", scene->base);
    snprintf(text, sizeof(text),
             "model_config_list { config { name: 'm' base_path: '%s' "
             "model_version_policy { specific { versions: 2 versions: 3 } } } }",
             scene->base);
    write_text(scene->models, text);
    write_text(scene->traffic, traffic != NULL ? traffic : "");
    scene->runtime.model_bytes = 1 << 20;
    scene->ops = fake_sized_ops();
    config.host = "127.0.0.1";
    config.rest_api_port = config.port = SX_ANY_PORT;
    config.model_config_file = scene->models;
    config.model_traffic_file = scene->traffic;
    config.file_system_poll_wait_seconds = 0.05;
    config.ops = &scene->ops;
    config.ops_user = &scene->runtime;
    assert_ok(sx_server_create(&config, &scene->server));
    assert_ok(sx_server_start(scene->server));
    assert_true(sx_server_wait_ready(scene->server, 10000));
    const int64_t begin = sx_now_ns();
    while (config.max_loaded_memory_bytes == 0 && available(scene) < 2) {
        assert_true(sx_now_ns() - begin < (int64_t)10 * 1000000000);
        fake_sleep(2);
    }
    h2_open(&scene->client, sx_server_grpc_port(scene->server));
}

static void close_scene(struct scene *scene)
{
    h2_close(&scene->client);
    sx_server_destroy(scene->server);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    fake_remove_version(scene->base, "2");
    fake_remove_version(scene->base, "3");
    unlink(scene->models);
    unlink(scene->traffic);
    rmdir(scene->base);
}

/* Begins a Predict of x = 1 on a version, or (0) on any; `user`: the value of x-user, or NULL;
 * `timeout`: of the call, or NULL. */
static int32_t begin(struct scene *scene, int version, const char *user, const char *timeout)
{
    static struct message frame; /* uploads are read until the stream has ended: equal ones */
    const float one = 1;
    const char *headers[10] = {"content-type", "application/grpc", "te", "trailers"};
    int count = 4;
    if (user != NULL) {
        headers[count++] = "x-user";
        headers[count++] = user;
    }
    if (timeout != NULL) {
        headers[count++] = "grpc-timeout";
        headers[count++] = timeout;
    }
    struct message request = {.size = 0};
    const struct message tensor = floats_of(&one, 1, true);
    struct message spec = spec_of("m");
    if (version > 0) {
        const char value[] = {1 << 3, (char)version};
        put_field(&spec, 2, value, sizeof(value));
    }
    put_part(&request, 1, &spec);
    put_input(&request, "x", &tensor);
    frame = frame_of(&request);
    return h2_request(&scene->client, predict_path, frame.bytes, frame.size, headers);
}

/* What x is multiplied by: the float in the answer. */
static int factor_of(const struct h2_answer *answer)
{
    static const int most = 9;
    expect_status(answer, 0, NULL);
    for (int factor = 1; factor <= most; factor++) {
        const float value = (float)factor;
        for (size_t i = 0; i + sizeof(value) <= answer->body_size; i++) {
            if (memcmp(answer->body + i, &value, sizeof(value)) == 0) {
                return factor;
            }
        }
    }
    return 0;
}

static int ask(struct scene *scene, int version, const char *user)
{
    if (h2_answer(&scene->client, 2 * H2_STREAMS - 1)->closed) { /* all its places are taken */
        h2_close(&scene->client);
        h2_open(&scene->client, sx_server_grpc_port(scene->server));
    }
    return factor_of(h2_wait(&scene->client, begin(scene, version, user, NULL)));
}

static int metric(const struct scene *scene, const char *series)
{
    char request[300];
    const struct answer answer =
        client_exchange(sx_server_rest_port(scene->server), request,
                        client_get(request, sizeof(request), "/monitoring/prometheus/metrics"));
    const char *at = strstr(answer.body, series);
    return at != NULL ? (int)strtol(at + strlen(series), NULL, 10) : 0;
}

static void test_serve_grpc_versions__canaries_get_their_share(void **state)
{
    (void)state;
    struct scene scene;
    int to[10] = {0};
    open_scene(&scene, "model { name: 'm' canary { percent: 20 } }", 2, 3, 0,
               (sx_server_config){0});
    for (int i = 0; i < 100; i++) {
        to[ask(&scene, 0, NULL)]++;
    }
    assert_int_equal(to[3], 20);
    assert_int_equal(to[2], 80);
    close_scene(&scene);
}

static void test_serve_grpc_versions__sticky_metadata_decides(void **state)
{
    (void)state;
    enum { USERS = 60 };
    struct scene scene;
    int before[USERS], canaries = 0;
    open_scene(&scene, "model { name: 'm' canary { percent: 40 sticky_header: 'x-user' } }", 2, 3,
               0, (sx_server_config){0});
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < USERS; i++) {
            char user[20];
            snprintf(user, sizeof(user), "user-%d", i);
            const int version = ask(&scene, 0, user);
            assert_in_range(version, 2, 3);
            assert_true(round == 0 || version == before[i]);
            before[i] = version;
            canaries += round == 0 && version == 3;
        }
    }
    assert_in_range(canaries, USERS / 10, USERS * 7 / 10);
    close_scene(&scene);
}

static void test_serve_grpc_versions__shadows_are_compared(void **state)
{
    (void)state;
    static const struct {
        int by3;
        const char *series;
    } cases[] = {{2, "sextant_shadow_requests_total{model_name=\"m\",result=\"equal\"} "},
                 {5, "sextant_shadow_requests_total{model_name=\"m\",result=\"different\"} "}};
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        open_scene(&scene, "model { name: 'm' canary { version: 3 } shadow { version: 3 } }", 2,
                   cases[i].by3, 0, (sx_server_config){0});
        for (int k = 0; k < 10; k++) {
            assert_int_equal(ask(&scene, 2, NULL), 2);
        }
        const int64_t begin_ns = sx_now_ns();
        while (metric(&scene, cases[i].series) != 10) {
            assert_true(sx_now_ns() - begin_ns < (int64_t)5 * 1000000000);
            fake_sleep(2);
        }
        close_scene(&scene);
    }
}

/* Calls wait for the load of their model, all for the same one, each until its own deadline. */
static void test_serve_grpc_versions__wait_for_the_first_load(void **state)
{
    (void)state;
    enum { CALLS = 100 };
    struct scene scene;
    int32_t ids[CALLS];
    open_scene(&scene, NULL, 2, 3, 400, (sx_server_config){.max_loaded_memory_bytes = 1 << 30});
    assert_int_equal(atomic_load(&scene.runtime.loads), 0);
    const int64_t begin_ns = sx_now_ns();
    const int32_t late = begin(&scene, 0, NULL, "100m");
    for (int i = 0; i < CALLS; i++) {
        ids[i] = begin(&scene, 0, NULL, NULL);
    }
    expect_status(h2_wait(&scene.client, late), SX_DEADLINE_EXCEEDED, NULL);
    assert_true(sx_now_ns() - begin_ns < (int64_t)350 * 1000000);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(factor_of(h2_wait(&scene.client, ids[i])), 3);
    }
    assert_in_range(atomic_load(&scene.runtime.loads), 1, 2); /* of each version */
    assert_int_equal(ask(&scene, 0, NULL), 3);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_grpc_versions__canaries_get_their_share),
    cmocka_unit_test(test_serve_grpc_versions__sticky_metadata_decides),
    cmocka_unit_test(test_serve_grpc_versions__shadows_are_compared),
    cmocka_unit_test(test_serve_grpc_versions__wait_for_the_first_load),
};
SX_TEST_MAIN(tests)
