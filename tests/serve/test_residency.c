/* Models that are loaded at their first request, and unloaded to make room for others. */
#include "harness.h"

#include <pthread.h>

#include "base/checked.h"
#include "base/clock.h"
#include "net/client.h"
#include "serve/fake_model.h"
#include "serve/server.h"

enum { MODELS = 3, MODEL_BYTES = 8 << 20 };

struct scene {
    char base[MODELS][64], models[100];
    struct fake_runtime runtime;
    sx_serve_model_ops ops;
    sx_server *server;
};

static const char *const names[MODELS] = {"a", "b", "c"};

/* A server of three models, of which `room` fit; their times are as given. `config` may bring
 * limits. */
static void open_scene(struct scene *scene, sx_server_config config, double room, int load_ms,
                       int run_ms)
{
    memset(scene, 0, sizeof(*scene));
    scene->runtime.model_bytes = MODEL_BYTES;
    scene->ops = fake_sized_ops();
    for (int i = 0; i < MODELS; i++) {
        fake_base_path(scene->base[i]);
        fake_publish(scene->base[i], "1", i + 1, load_ms, run_ms, 0);
    }
    snprintf(scene->models, sizeof(scene->models), "%s/models.config", scene->base[0]);
    FILE *file = fopen(scene->models, "w");
    fprintf(file, "model_config_list {\n");
    for (int i = 0; i < MODELS; i++) {
        fprintf(file, "config { name: '%s' base_path: '%s' }\n", names[i], scene->base[i]);
    }
    fprintf(file, "}\n");
    fclose(file);
    config.host = "127.0.0.1";
    config.rest_api_port = SX_ANY_PORT;
    config.model_config_file = scene->models;
    config.max_loaded_memory_bytes = (size_t)(room * MODEL_BYTES);
    config.file_system_poll_wait_seconds = 0.05;
    config.ops = &scene->ops;
    config.ops_user = &scene->runtime;
    assert_ok(sx_server_create(&config, &scene->server));
    assert_ok(sx_server_start(scene->server));
    assert_true(sx_server_wait_ready(scene->server, 5000));
}

static void close_scene(struct scene *scene)
{
    sx_server_destroy(scene->server);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    unlink(scene->models);
    for (int i = 0; i < MODELS; i++) {
        fake_remove_version(scene->base[i], "1");
        fake_remove_version(scene->base[i], "2");
        rmdir(scene->base[i]);
    }
}

static struct answer exchange(const struct scene *scene, const char *request, size_t size)
{
    return client_exchange(sx_server_rest_port(scene->server), request, size);
}

/* What x = 1 is multiplied by: the model's number; or less the HTTP status. */
static int ask(const struct scene *scene, const char *model)
{
    char path[100], request[300];
    snprintf(path, sizeof(path), "/v1/models/%s:predict", model);
    const struct answer answer =
        exchange(scene, request, client_post(request, sizeof(request), path, "{\"inputs\": [1]}"));
    const char *list = strchr(answer.body, '[');
    return answer.status == 200 && list != NULL ? atoi(list + 1) : -answer.status;
}

/* The state of a model's version as the status API shows it. */
static bool has_state(const struct scene *scene, const char *model, const char *state)
{
    char path[100], request[300], part[100];
    snprintf(path, sizeof(path), "/v1/models/%s", model);
    snprintf(part, sizeof(part), "\"state\": \"%s\"", state);
    const struct answer answer =
        exchange(scene, request, client_get(request, sizeof(request), path));
    return strstr(answer.body, part) != NULL;
}

static void wait_state(const struct scene *scene, const char *model, const char *state)
{
    const int64_t begin = sx_now_ns();
    while (!has_state(scene, model, state)) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("model %s never was %s", model, state);
        }
        fake_sleep(2);
    }
}

static void wait_loaded(const struct scene *scene, int count)
{
    const int64_t begin = sx_now_ns();
    while (atomic_load(&scene->runtime.loads) - atomic_load(&scene->runtime.unloads) != count) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(2);
    }
}

static void test_serve_residency__loads_at_the_first_request(void **state)
{
    (void)state;
    struct scene scene;
    char request[300];
    open_scene(&scene, (sx_server_config){0}, 2.5, 50, 0);
    fake_sleep(100);
    assert_int_equal(atomic_load(&scene.runtime.loads), 0);
    assert_int_equal(
        exchange(&scene, request, client_get(request, sizeof(request), "/readyz")).status, 200);
    assert_true(has_state(&scene, "a", "START"));
    assert_int_equal(ask(&scene, "a"), 1);
    assert_int_equal(atomic_load(&scene.runtime.loads), 1);
    assert_true(has_state(&scene, "a", "AVAILABLE"));
    assert_int_equal(ask(&scene, "a"), 1);
    assert_int_equal(ask(&scene, "b"), 2);
    assert_int_equal(atomic_load(&scene.runtime.loads), 2);
    assert_int_equal(atomic_load(&scene.runtime.unloads), 0);
    assert_int_equal(ask(&scene, "none"), -404);
    /* a version that is named, and one that is not there */
    assert_int_equal(
        exchange(&scene, request,
                 client_post(request, sizeof(request), "/v1/models/c/versions/9:predict", "{}"))
            .status,
        404);
    assert_int_equal(exchange(&scene, request,
                              client_post(request, sizeof(request),
                                          "/v1/models/c/versions/1:predict", "{\"inputs\": [1]}"))
                         .status,
                     200);
    close_scene(&scene);
}

/* The one that was used longest ago leaves. */
static void test_serve_residency__the_longest_unused_leaves(void **state)
{
    (void)state;
    struct scene scene;
    char request[300];
    open_scene(&scene, (sx_server_config){0}, 2.5, 0, 0);
    assert_int_equal(ask(&scene, "a"), 1);
    assert_int_equal(ask(&scene, "b"), 2);
    assert_int_equal(ask(&scene, "a"), 1);
    assert_int_equal(ask(&scene, "c"), 3);
    wait_state(&scene, "b", "START");
    assert_true(has_state(&scene, "a", "AVAILABLE"));
    assert_true(has_state(&scene, "c", "AVAILABLE"));
    char line[100];
    snprintf(line, sizeof(line), "\nsextant_loaded_memory_bytes %d\n", 2 * MODEL_BYTES);
    const int64_t begin = sx_now_ns(); /* b's memory is given back soon after its state is shown */
    struct answer metrics;
    do {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        metrics = exchange(&scene, request,
                           client_get(request, sizeof(request), "/monitoring/prometheus/metrics"));
    } while (strstr(metrics.body, line) == NULL);
    assert_non_null(strstr(metrics.body, "\nsextant_loaded_models 2\n"));
    assert_non_null(strstr(metrics.body, "\nsextant_models_left_total 1\n"));
    /* now that their sizes are known, there are never more than fit */
    atomic_store(&scene.runtime.most_loaded, 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(ask(&scene, names[i % MODELS]), 1 + i % MODELS);
    }
    assert_int_equal(atomic_load(&scene.runtime.most_loaded), 2);
    close_scene(&scene);
}

/* While one leaves, its memory is not asked of another one as well. */
static void test_serve_residency__no_more_leave_than_must(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 2.5, 0, 0);
    for (int i = 0; i < MODELS; i++) { /* their sizes become known */
        assert_int_equal(ask(&scene, names[i]), 1 + i);
    }
    wait_loaded(&scene, 2);
    assert_true(has_state(&scene, "a", "START"));
    scene.runtime.unload_ms = 100;
    assert_int_equal(ask(&scene, "a"), 1);
    assert_true(has_state(&scene, "b", "START"));
    assert_true(has_state(&scene, "c", "AVAILABLE"));
    assert_int_equal(atomic_load(&scene.runtime.unloads), 2);
    scene.runtime.unload_ms = 0;
    close_scene(&scene);
}

struct client {
    pthread_t thread;
    const struct scene *scene;
    const char *model;
    int answer, rounds, wrong, expected;
};

static void *run_client(void *user)
{
    struct client *client = user;
    for (int i = 0; i < SX_MAX(client->rounds, 1); i++) {
        client->answer = ask(client->scene, client->model);
        client->wrong += client->answer != client->expected;
    }
    return NULL;
}

/* Requests that come together wait for one load. */
static void test_serve_residency__one_load_for_all(void **state)
{
    (void)state;
    enum { CLIENTS = 12 };
    struct scene scene;
    struct client clients[CLIENTS];
    open_scene(&scene, (sx_server_config){0}, 2.5, 200, 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.scene = &scene, .model = "b", .expected = 2};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].answer, 2);
    }
    assert_int_equal(atomic_load(&scene.runtime.loads), 1);
    close_scene(&scene);
}

/* Clients of three models, of which one fits: all are answered, in turn. */
static void test_serve_residency__models_take_turns(void **state)
{
    (void)state;
    enum { CLIENTS = 6 };
    struct scene scene;
    struct client clients[CLIENTS];
    open_scene(&scene, (sx_server_config){0}, 1.5, 5, 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){
            .scene = &scene, .model = names[i % MODELS], .rounds = 5, .expected = 1 + i % MODELS};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    close_scene(&scene);
}

/* A model that is in use stays, even when nobody waits for the run any more; who waits for its room
 * does so until its deadline. */
static void test_serve_residency__requests_keep_their_model(void **state)
{
    (void)state;
    struct scene scene;
    struct client busy;
    open_scene(&scene, (sx_server_config){.rest_api_timeout_in_ms = 1000}, 1.5, 0, 0);
    assert_int_equal(ask(&scene, "b"), 2); /* their sizes become known */
    assert_int_equal(ask(&scene, "a"), 1);
    wait_loaded(&scene, 1);
    atomic_store(&scene.runtime.gated, true);
    busy = (struct client){.scene = &scene, .model = "a", .expected = -504};
    assert_int_equal(pthread_create(&busy.thread, NULL, run_client, &busy), 0);
    const int64_t begin = sx_now_ns();
    while (atomic_load(&scene.runtime.running) == 0) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(1);
    }
    const int unloads = atomic_load(&scene.runtime.unloads);
    assert_int_equal(ask(&scene, "b"), -504);
    assert_int_equal(atomic_load(&scene.runtime.unloads), unloads);
    pthread_join(busy.thread, NULL);
    assert_int_equal(busy.wrong, 0);
    atomic_store(&scene.runtime.gated, false);
    assert_int_equal(ask(&scene, "b"), 2);
    assert_true(atomic_load(&scene.runtime.unloads) > unloads);
    close_scene(&scene);
}

static void test_serve_residency__deadlines_and_failures(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){.rest_api_timeout_in_ms = 200}, 2.5, 600, 0);
    int64_t begin = sx_now_ns();
    assert_int_equal(ask(&scene, "a"), -504);
    assert_in_range((sx_now_ns() - begin) / 1000000, 150, 550);
    wait_state(&scene, "a", "AVAILABLE"); /* the load went on */
    assert_int_equal(ask(&scene, "a"), 1);
    close_scene(&scene);

    open_scene(&scene, (sx_server_config){.max_num_load_retries = -1}, 2.5, 0, 0);
    atomic_store(&scene.runtime.failing_loads, 1);
    begin = sx_now_ns();
    assert_int_equal(ask(&scene, "a"), -503);
    assert_int_equal(ask(&scene, "a"), -503);
    assert_true(sx_now_ns() - begin < (int64_t)3 * 1000000000);
    assert_true(has_state(&scene, "a", "END"));
    assert_int_equal(ask(&scene, "b"), 2);
    fake_publish(scene.base[0], "2", 7, 0, 0, 0);
    wait_state(&scene, "a", "START");
    assert_int_equal(ask(&scene, "a"), 7);
    close_scene(&scene);

    open_scene(&scene, (sx_server_config){0}, 0.5, 0, 0); /* none fits */
    assert_int_equal(ask(&scene, "a"), -503);
    assert_int_equal(atomic_load(&scene.runtime.unloads), 1);
    close_scene(&scene);
}

/* A new version takes the place of the one that is served; of one that is not, nothing is loaded.
 */
static void test_serve_residency__new_versions(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 1.5, 0, 0);
    assert_int_equal(ask(&scene, "a"), 1);
    fake_publish(scene.base[0], "2", 9, 0, 0, 0); /* both do not fit, when that is known */
    const int64_t begin = sx_now_ns();
    while (ask(&scene, "a") != 9) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(2);
    }
    const int loads = atomic_load(&scene.runtime.loads);
    fake_publish(scene.base[1], "2", 8, 0, 0, 0);
    fake_sleep(300);
    assert_int_equal(atomic_load(&scene.runtime.loads), loads);
    assert_int_equal(ask(&scene, "b"), 8);
    close_scene(&scene);
}

static int64_t resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

/* What an unloaded model took goes back to the system. */
static void test_serve_residency__memory_is_returned(void **state)
{
    (void)state;
    struct scene scene;
    if (harness_sanitizes()) {
        SX_SKIP("a sanitizer keeps freed memory");
    }
    open_scene(&scene, (sx_server_config){0}, 1.5, 0, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ask(&scene, names[i % MODELS]), 1 + i % MODELS);
    }
    wait_loaded(&scene, 1);
    fake_sleep(50); /* it has been counted before it is freed */
    const int64_t before = resident_bytes();
    for (int i = 0; i < 60; i++) {
        assert_int_equal(ask(&scene, names[i % MODELS]), 1 + i % MODELS);
    }
    assert_true(atomic_load(&scene.runtime.loads) >= 60);
    const int64_t begin = sx_now_ns();
    while (resident_bytes() > before + MODEL_BYTES / 4) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("%lld bytes more than before, %d loaded",
                     (long long)(resident_bytes() - before),
                     atomic_load(&scene.runtime.loads) - atomic_load(&scene.runtime.unloads));
        }
        fake_sleep(5);
    }
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_residency__loads_at_the_first_request),
    cmocka_unit_test(test_serve_residency__the_longest_unused_leaves),
    cmocka_unit_test(test_serve_residency__no_more_leave_than_must),
    cmocka_unit_test(test_serve_residency__one_load_for_all),
    cmocka_unit_test(test_serve_residency__models_take_turns),
    cmocka_unit_test(test_serve_residency__requests_keep_their_model),
    cmocka_unit_test(test_serve_residency__deadlines_and_failures),
    cmocka_unit_test(test_serve_residency__new_versions),
    cmocka_unit_test(test_serve_residency__memory_is_returned),
};
SX_TEST_MAIN(tests)
