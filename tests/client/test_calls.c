/* A request sent again and again, many at once, to our own server, over both protocols. */
#include "harness.h"

#include "base/clock.h"
#include "client/calls.h"
#include "client/raw.h"
#include "serve/fake_server.h"

static const sx_client_protocol protocols[] = {SX_CLIENT_REST, SX_CLIENT_GRPC};
static const char json[] = "{\"instances\": [[1, 2, 3]]}";
enum { RUN_MS = 300, SECOND_NS = 1000000000, MS_NS = 1000000 };

struct scene {
    char base[64], address[64];
    struct fake_runtime runtime;
    sx_server *server;
    sx_client_options options;
    sx_buf path, body;
    sx_client_calls *calls;
    int ended, good;
    sx_code code; /* of the last failure */
    int64_t first_due_ns;
    size_t answer_bytes;
};

static void note(void *user, int64_t due_ns, sx_status status, sx_bytes answer)
{
    struct scene *scene = user;
    scene->first_due_ns = scene->ended++ == 0 ? due_ns : scene->first_due_ns;
    if (status == SX_OK) {
        scene->good++;
        scene->answer_bytes = answer.size;
    } else {
        scene->code = sx_status_code(status);
    }
    sx_status_free(status);
}

/* A model "m", which takes RUN_MS, and calls of it. */
static void open_scene(struct scene *scene, sx_client_protocol protocol, int64_t timeout_ms,
                       int connections)
{
    const sx_client_model m = {.name = "m"};
    sx_client *client = NULL;
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", 2, 0, RUN_MS, 0);
    fake_serve(scene->base, &scene->runtime, (sx_server_config){0}, &scene->server);
    assert_true(sx_server_wait_ready(scene->server, 5000));
    snprintf(scene->address, sizeof(scene->address), "http://127.0.0.1:%d",
             sx_server_rest_port(scene->server));
    scene->options = (sx_client_options){
        .struct_size = sizeof(scene->options), .protocol = protocol, .timeout_ms = timeout_ms};
    sx_buf_init(&scene->path, 0);
    sx_buf_init(&scene->body, 0);
    sx_client_options asking = scene->options;
    asking.timeout_ms = 10000;
    assert_ok(sx_client_open(scene->address, &asking, &client));
    assert_ok(sx_client_prepare(client, &m, (sx_bytes){json, sizeof(json) - 1}, &scene->path,
                                &scene->body));
    sx_client_close(client);
    const sx_client_calls_config config = {.server = scene->address,
                                           .options = &scene->options,
                                           .connections = connections,
                                           .path = sx_buf_text(&scene->path),
                                           .body = {sx_buf_text(&scene->body), scene->body.size},
                                           .done = note,
                                           .user = scene};
    assert_ok(sx_client_calls_create(&config, &scene->calls));
}

static void close_scene(struct scene *scene)
{
    sx_client_calls_destroy(scene->calls);
    sx_server_destroy(scene->server);
    sx_buf_deinit(&scene->path);
    sx_buf_deinit(&scene->body);
    fake_remove_version(scene->base, "2");
    rmdir(scene->base);
}

static void wait_for_all(struct scene *scene)
{
    const int64_t end_ns = sx_now_ns() + 20 * (int64_t)SECOND_NS;
    while (sx_client_calls_under_way(scene->calls) > 0) {
        assert_true(sx_now_ns() < end_ns);
        assert_ok(sx_client_calls_wait(scene->calls, end_ns));
    }
}

static void test_client_calls__are_under_way_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        const bool grpc = protocols[i] == SX_CLIENT_GRPC;
        open_scene(&scene, protocols[i], 15000, grpc ? 1 : 2);
        const int64_t due_ns = sx_now_ns() - SECOND_NS;
        int started = 0;
        while (started < 30 && sx_client_calls_has_room(scene.calls)) {
            assert_ok(sx_client_calls_start(scene.calls, due_ns));
            started++;
        }
        assert_int_equal(started, grpc ? 30 : 2);
        assert_int_equal(sx_client_calls_under_way(scene.calls), started);
        wait_for_all(&scene);
        assert_int_equal(scene.ended, started);
        assert_int_equal(scene.good, started);
        assert_true(scene.first_due_ns == due_ns);
        assert_true(scene.answer_bytes > 10);
        close_scene(&scene);
    }
}

/* The time of a request begins when it is due. */
static void test_client_calls__end_in_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        open_scene(&scene, protocols[i], 100, 4);
        const int64_t begun_ns = sx_now_ns();
        assert_error(sx_client_calls_start(scene.calls, begun_ns - SECOND_NS), SX_DEADLINE_EXCEEDED,
                     "not sent within 100 ms");
        assert_int_equal(sx_client_calls_under_way(scene.calls), 0);
        for (int k = 0; k < 3; k++) {
            assert_ok(sx_client_calls_start(scene.calls, begun_ns - 50 * MS_NS));
        }
        wait_for_all(&scene);
        assert_int_equal(scene.ended, 3);
        assert_int_equal(scene.good, 0);
        assert_int_equal(scene.code, SX_DEADLINE_EXCEEDED);
        assert_in_range(sx_now_ns() - begun_ns, 45 * MS_NS, 2 * (int64_t)SECOND_NS);
        close_scene(&scene);
    }
}

static void test_client_calls__say_what_the_server_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        open_scene(&scene, protocols[i], 15000, 1);
        sx_buf_reset(&scene.body);
        sx_buf_puts(&scene.body, protocols[i] == SX_CLIENT_GRPC ? "?????" : "{");
        sx_client_calls_config config = {.server = scene.address,
                                         .options = &scene.options,
                                         .connections = 1,
                                         .path = sx_buf_text(&scene.path),
                                         .body = {sx_buf_text(&scene.body), scene.body.size},
                                         .done = note,
                                         .user = &scene};
        sx_client_calls *wrong = NULL;
        assert_ok(sx_client_calls_create(&config, &wrong));
        assert_ok(sx_client_calls_start(wrong, sx_now_ns()));
        while (sx_client_calls_under_way(wrong) > 0) {
            assert_ok(sx_client_calls_wait(wrong, INT64_MAX));
        }
        assert_int_equal(scene.good, 0);
        assert_int_equal(scene.code,
                         protocols[i] == SX_CLIENT_GRPC ? SX_INTERNAL : SX_INVALID_ARGUMENT);
        sx_client_calls_destroy(wrong);
        config.server = "ftp://localhost";
        assert_error(sx_client_calls_create(&config, &wrong), SX_INVALID_ARGUMENT,
                     "not a model server");
        close_scene(&scene);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_client_calls__are_under_way_at_once),
    cmocka_unit_test(test_client_calls__end_in_time),
    cmocka_unit_test(test_client_calls__say_what_the_server_says),
};
SX_TEST_MAIN(tests)
