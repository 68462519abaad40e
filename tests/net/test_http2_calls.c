/* Calls over HTTP/2 that are under way at once, to a server that answers late, never in time, or
 * closes its connections. */
#include "net/calls.h"
#include "net/http2_calls.h"
#include "net/site.h"

struct scene {
    struct site site;
    char url[100];
    sx_http2_calls *calls;
    struct results results;
};

static void open_calls(struct scene *scene, int port, const char *path, int connections)
{
    snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%d/%s", port, path);
    const sx_http_call to = {.url = scene->url};
    assert_ok(sx_http2_calls_create(&to, connections, &scene->calls));
}

static void open_scene(struct scene *scene, const char *path, int connections)
{
    memset(scene, 0, sizeof(*scene));
    open_site(&scene->site, (sx_http_config){0});
    open_calls(scene, scene->site.port, path, connections);
}

static void close_scene(struct scene *scene)
{
    sx_http2_calls_destroy(scene->calls);
    close_site(&scene->site);
}

static void start(struct scene *scene, int timeout_ms)
{
    const char *const headers[] = {"X-Name: value", NULL};
    const sx_http_call call = {.body = {"hello", 5}, .headers = headers, .timeout_ms = timeout_ms};
    assert_ok(sx_http2_calls_start(scene->calls, &call, MAX_BODY, note, &scene->results));
}

/* Waits until so many calls have ended. */
static void wait_for(struct scene *scene, int ended)
{
    const int64_t end_ns = sx_now_ns() + 20 * (int64_t)1000000000;
    while (scene->results.ended < ended) {
        assert_true(sx_now_ns() < end_ns);
        assert_ok(sx_http2_calls_wait(scene->calls, end_ns));
    }
    assert_int_equal(scene->results.ended, ended);
}

static int accepted(const struct scene *scene)
{
    return (int)sx_http_server_stats(scene->site.server).accepted;
}

/* Twice 25 calls of 0.5 s each, which would take 12.5 s one after the other. */
static void test_net_http2_calls__has_many_calls_on_a_connection(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, "late", 1);
    atomic_store(&scene.site.late_ms, 500);
    for (int round = 0; round < 2; round++) {
        const int64_t begun_ns = sx_now_ns();
        for (int i = 0; i < 25; i++) {
            assert_true(sx_http2_calls_has_room(scene.calls));
            start(&scene, 0);
        }
        wait_for(&scene, 25 * (round + 1));
        assert_true(sx_now_ns() - begun_ns < 10 * (int64_t)1000000000);
    }
    assert_int_equal(scene.results.good, 50);
    assert_int_equal(scene.results.http_status, 200);
    assert_string_equal(scene.results.body, "late");
    assert_int_equal(accepted(&scene), 1);
    close_scene(&scene);
}

static void test_net_http2_calls__uses_all_connections(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, "echo", 3);
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < 6; i++) {
            start(&scene, 0);
        }
        wait_for(&scene, 6 * round);
    }
    assert_int_equal(scene.results.good, 18);
    assert_string_equal(scene.results.body, "hello");
    assert_int_equal(accepted(&scene), 3);
    close_scene(&scene);
}

/* As many calls as the server allows at once, and no more. */
static void test_net_http2_calls__keeps_to_the_servers_limit(void **state)
{
    (void)state;
    struct scene scene = {0};
    open_site(&scene.site, (sx_http_config){.max_streams = 3});
    open_calls(&scene, scene.site.port, "late", 1);
    start(&scene, 0);
    wait_for(&scene, 1);
    for (int i = 0; i < 3; i++) {
        assert_true(sx_http2_calls_has_room(scene.calls));
        start(&scene, 0);
    }
    assert_false(sx_http2_calls_has_room(scene.calls));
    const sx_http_call call = {.body = {"hello", 5}};
    assert_error(sx_http2_calls_start(scene.calls, &call, MAX_BODY, note, &scene.results),
                 SX_UNAVAILABLE, "no connection has room");
    wait_for(&scene, 4);
    assert_int_equal(scene.results.good, 4);
    close_scene(&scene);
}

/* More than windows and buffers hold, both ways, of several calls at once. */
static void test_net_http2_calls__carries_large_bodies(void **state)
{
    (void)state;
    enum { LARGE = 10 << 20 };
    struct scene scene;
    open_scene(&scene, "echo", 1);
    char *large = sx_alloc(LARGE, 1);
    assert_non_null(large);
    memset(large, 'x', LARGE);
    const sx_http_call call = {.body = {large, LARGE}};
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_http2_calls_start(scene.calls, &call, LARGE, note, &scene.results));
    }
    wait_for(&scene, 3);
    assert_int_equal(scene.results.good, 3);
    assert_int_equal(scene.results.body_size, LARGE);
    sx_free(large);
    close_scene(&scene);
}

/* A call that is not answered in time ends alone: others on its connection go on. */
static void test_net_http2_calls__cancels_what_is_late(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, "late", 1);
    atomic_store(&scene.site.late_ms, 500);
    for (int round = 0; round < 5; round++) {
        const int64_t begun_ns = sx_now_ns();
        start(&scene, 5000);
        start(&scene, 50);
        wait_for(&scene, 2 * round + 1);
        assert_int_equal(scene.results.code, SX_DEADLINE_EXCEEDED);
        assert_in_range(sx_now_ns() - begun_ns, 49 * 1000000, 490 * 1000000);
        wait_for(&scene, 2 * round + 2);
        assert_int_equal(scene.results.good, round + 1);
    }
    assert_int_equal(accepted(&scene), 1);
    close_scene(&scene);
    assert_int_equal(scene.site.cancelled, 5);
}

/* Also those that wait for a connection, at an address that does not answer. */
static void test_net_http2_calls__cancels_what_was_not_sent(void **state)
{
    (void)state;
    struct scene scene = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM, 0); /* accepts nothing */
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    int full[8];
    for (int i = 0; i < 8; i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(full[i], (struct sockaddr *)&at, size);
    }
    open_calls(&scene, ntohs(at.sin_port), "echo", 1);
    for (int i = 0; i < 3; i++) {
        start(&scene, 50 + 20 * i);
    }
    wait_for(&scene, 1);
    start(&scene, 10);
    wait_for(&scene, 4);
    assert_int_equal(scene.results.code, SX_DEADLINE_EXCEEDED);
    assert_int_equal(scene.results.good, 0);
    sx_http2_calls_destroy(scene.calls);
    for (int i = 0; i < 8; i++) {
        close(full[i]);
    }
    close(fd);
}

static void test_net_http2_calls__connects_to_unix_sockets(void **state)
{
    (void)state;
    char path[] = "/tmp/sextant-calls-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    struct scene scene = {0};
    const sx_http_address at[] = {loopback, {.path = path}};
    open_site(&scene.site, (sx_http_config){.addresses = at, .address_count = 2});
    const sx_http_call to = {.url = "http://localhost/echo", .socket_path = path};
    assert_ok(sx_http2_calls_create(&to, 1, &scene.calls));
    for (int i = 0; i < 3; i++) {
        start(&scene, 0);
        wait_for(&scene, i + 1);
    }
    assert_int_equal(scene.results.good, 3);
    assert_string_equal(scene.results.body, "hello");
    assert_int_equal(accepted(&scene), 1);
    close_scene(&scene);
    unlink(path);
}

/* The calls of a connection that is lost fail; the next one opens another. */
static void test_net_http2_calls__opens_lost_connections_again(void **state)
{
    (void)state;
    struct scene scene = {0};
    struct proxy proxy;
    open_site(&scene.site, (sx_http_config){0});
    open_proxy(&proxy, scene.site.port);
    open_calls(&scene, proxy.port, "late", 1);
    atomic_store(&scene.site.late_ms, 300);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++) {
            start(&scene, 0);
        }
        assert_ok(sx_http2_calls_wait(scene.calls, sx_now_ns() + 100 * (int64_t)1000000));
        assert_int_equal(scene.results.ended, 9 * round);
        cut_proxy(&proxy);
        wait_for(&scene, 9 * round + 8);
        assert_int_equal(scene.results.code, SX_UNAVAILABLE);
        assert_int_equal(scene.results.good, round);
        start(&scene, 0);
        wait_for(&scene, 9 * round + 9);
        assert_int_equal(scene.results.good, round + 1);
    }
    assert_int_equal(atomic_load(&proxy.accepted), 4);
    sx_http2_calls_destroy(scene.calls);
    scene.calls = NULL;
    close_proxy(&proxy);
    close_scene(&scene);
}

static void *drain(void *server)
{
    assert_true(sx_http_server_drain(server, 5000));
    return NULL;
}

/* A server that drains says GOAWAY: what it has begun is answered, what follows has a connection of
 * its own, here to nobody. */
static void test_net_http2_calls__leaves_a_server_that_drains(void **state)
{
    (void)state;
    struct scene scene;
    pthread_t thread;
    open_scene(&scene, "late", 1);
    for (int i = 0; i < 4; i++) {
        start(&scene, 0);
    }
    assert_ok(sx_http2_calls_wait(scene.calls, sx_now_ns() + 100 * (int64_t)1000000));
    assert_int_equal(scene.results.ended, 0);
    assert_int_equal(pthread_create(&thread, NULL, drain, scene.site.server), 0);
    wait_for(&scene, 4);
    assert_int_equal(scene.results.good, 4);
    pthread_join(thread, NULL);
    start(&scene, 0);
    wait_for(&scene, 5);
    assert_int_equal(scene.results.code, SX_UNAVAILABLE);
    close_scene(&scene);
}

static void test_net_http2_calls__says_what_went_wrong(void **state)
{
    (void)state;
    struct scene scene;
    sx_http2_calls *none = NULL;
    open_scene(&scene, "echo", 1);
    const sx_http_call call = {.body = {"12345", 5}};
    assert_ok(sx_http2_calls_start(scene.calls, &call, 4, note, &scene.results));
    wait_for(&scene, 1);
    assert_int_equal(scene.results.code, SX_RESOURCE_EXHAUSTED);
    const char *const headers[] = {"no colon", NULL};
    const sx_http_call bad = {.body = call.body, .headers = headers};
    assert_error(sx_http2_calls_start(scene.calls, &bad, 4, note, &scene.results),
                 SX_INVALID_ARGUMENT, "without a colon");
    start(&scene, 0);
    wait_for(&scene, 2);
    assert_int_equal(scene.results.good, 1);
    start(&scene, 0); /* what is under way at the end is dropped */
    sx_http2_calls_destroy(scene.calls);
    open_calls(&scene, 1, "echo", 2);
    for (int i = 0; i < 5; i++) {
        start(&scene, 0);
    }
    wait_for(&scene, 7);
    assert_int_equal(scene.results.code, SX_UNAVAILABLE);
    assert_int_equal(scene.results.good, 1);
    close_scene(&scene);
    static const struct {
        const char *url;
        sx_code code;
        const char *says;
    } rows[] = {
        {"ftp://localhost/", SX_INVALID_ARGUMENT, "expected http:// or https://"},
        {"http://[::1/", SX_UNAVAILABLE, "http://[::1/"},
        {"http://localhost:x/", SX_UNAVAILABLE, "http://localhost:x/"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(sx_http2_calls_create(&(sx_http_call){.url = rows[i].url}, 1, &none),
                     rows[i].code, rows[i].says);
    }
    assert_error(
        sx_http2_calls_create(
            &(sx_http_call){.url = "https://localhost/", .ca_file = "/nonexistent"}, 1, &none),
        SX_INVALID_ARGUMENT, "/nonexistent");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_http2_calls__has_many_calls_on_a_connection),
    cmocka_unit_test(test_net_http2_calls__uses_all_connections),
    cmocka_unit_test(test_net_http2_calls__keeps_to_the_servers_limit),
    cmocka_unit_test(test_net_http2_calls__carries_large_bodies),
    cmocka_unit_test(test_net_http2_calls__cancels_what_is_late),
    cmocka_unit_test(test_net_http2_calls__cancels_what_was_not_sent),
    cmocka_unit_test(test_net_http2_calls__connects_to_unix_sockets),
    cmocka_unit_test(test_net_http2_calls__opens_lost_connections_again),
    cmocka_unit_test(test_net_http2_calls__leaves_a_server_that_drains),
    cmocka_unit_test(test_net_http2_calls__says_what_went_wrong),
};
SX_TEST_MAIN(tests)
