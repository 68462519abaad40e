/* Calls over HTTP/1.1 that are under way at once, to a server that answers late, never in time, or
 * closes its connections. */
#include "io/http_multi.h"
#include "net/calls.h"
#include "net/site.h"

struct scene {
    struct site site;
    char url[2][100]; /* of /echo, /late */
    sx_http_multi *multi;
    struct results results;
};

static void open_scene(struct scene *scene, int connections)
{
    memset(scene, 0, sizeof(*scene));
    open_site(&scene->site, (sx_http_config){0});
    for (int i = 0; i < 2; i++) {
        snprintf(scene->url[i], sizeof(scene->url[i]), "http://127.0.0.1:%d/%s", scene->site.port,
                 i == 0 ? "echo" : "late");
    }
    assert_ok(sx_http_multi_create(connections, &scene->multi));
}

static void close_scene(struct scene *scene)
{
    sx_http_multi_destroy(scene->multi);
    close_site(&scene->site);
}

static void start(struct scene *scene, const sx_http_call *call)
{
    assert_ok(sx_http_multi_start(scene->multi, call, MAX_BODY, note, &scene->results));
}

/* Waits until so many calls have ended. */
static void wait_for(struct scene *scene, int ended)
{
    const int64_t end_ns = sx_now_ns() + 20 * (int64_t)1000000000;
    while (scene->results.ended < ended) {
        assert_true(sx_now_ns() < end_ns);
        assert_ok(sx_http_multi_wait(scene->multi, end_ns));
    }
    assert_int_equal(scene->results.ended, ended);
}

static int accepted(const struct scene *scene)
{
    return (int)sx_http_server_stats(scene->site.server).accepted;
}

static void test_io_http_multi__uses_all_connections(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 3);
    const sx_http_call call = {.url = scene.url[1], .body = {"x", 1}};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            assert_true(sx_http_multi_has_room(scene.multi));
            start(&scene, &call);
        }
        assert_false(sx_http_multi_has_room(scene.multi));
        wait_for(&scene, 3 * (round + 1));
    }
    assert_int_equal(scene.results.good, 9);
    assert_int_equal(scene.results.http_status, 200);
    assert_string_equal(scene.results.body, "late");
    assert_int_equal(accepted(&scene), 3);
    close_scene(&scene);
}

static void test_io_http_multi__ends_what_is_late(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 1);
    const sx_http_call late = {.url = scene.url[1], .body = {"x", 1}, .timeout_ms = 50};
    const sx_http_call echo = {.url = scene.url[0], .body = {"hello", 5}};
    for (int round = 0; round < 5; round++) {
        const int64_t begun_ns = sx_now_ns();
        start(&scene, &late);
        wait_for(&scene, 2 * round + 1);
        assert_int_equal(scene.results.code, SX_DEADLINE_EXCEEDED);
        assert_true(sx_now_ns() - begun_ns >= 49 * (int64_t)1000000);
        start(&scene, &echo);
        wait_for(&scene, 2 * round + 2);
        assert_int_equal(scene.results.good, round + 1);
        assert_string_equal(scene.results.body, "hello");
    }
    assert_int_equal(accepted(&scene), 6);
    close_scene(&scene);
    assert_int_equal(scene.site.cancelled, 5);
}

/* A call on a connection that is lost meanwhile fails, or libcurl sends it again if the connection
 * was kept from an earlier call; the next one opens another. */
static void test_io_http_multi__opens_lost_connections_again(void **state)
{
    (void)state;
    struct scene scene;
    struct proxy proxy;
    char late_url[100], echo_url[100];
    open_scene(&scene, 1);
    open_proxy(&proxy, scene.site.port);
    snprintf(late_url, sizeof(late_url), "http://127.0.0.1:%d/late", proxy.port);
    snprintf(echo_url, sizeof(echo_url), "http://127.0.0.1:%d/echo", proxy.port);
    const sx_http_call late = {.url = late_url, .body = {"x", 1}};
    const sx_http_call echo = {.url = echo_url, .body = {"hello", 5}};
    atomic_store(&scene.site.late_ms, 400);
    start(&scene, &late);
    assert_ok(sx_http_multi_wait(scene.multi, sx_now_ns() + 100 * (int64_t)1000000));
    assert_int_equal(scene.results.ended, 0);
    cut_proxy(&proxy);
    wait_for(&scene, 1);
    assert_int_equal(scene.results.code, SX_UNAVAILABLE);
    for (int i = 0; i < 3; i++) {
        start(&scene, &echo);
        wait_for(&scene, 2 + i);
        cut_proxy(&proxy);
        sx_sleep_ns(50000000);
    }
    assert_int_equal(scene.results.good, 3);
    assert_int_equal(atomic_load(&proxy.accepted), 4);
    sx_http_multi_destroy(scene.multi);
    scene.multi = NULL;
    close_proxy(&proxy);
    close_scene(&scene);
}

static void test_io_http_multi__says_what_went_wrong(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    for (int i = 0; i < 2; i++) {
        start(&scene, &(sx_http_call){.url = "http://127.0.0.1:1/", .body = {"x", 1}});
    }
    wait_for(&scene, 2);
    assert_int_equal(scene.results.code, SX_UNAVAILABLE);
    start(&scene, &(sx_http_call){.url = "nowhere://"});
    wait_for(&scene, 3);
    assert_int_equal(scene.results.code, SX_INVALID_ARGUMENT);
    const sx_http_call echo = {.url = scene.url[0], .body = {"12345", 5}};
    assert_ok(sx_http_multi_start(scene.multi, &echo, 4, note, &scene.results));
    wait_for(&scene, 4);
    assert_int_equal(scene.results.code, SX_RESOURCE_EXHAUSTED);
    assert_int_equal(scene.results.good, 0);
    start(&scene, &echo); /* what is under way at the end is dropped */
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_http_multi__uses_all_connections),
    cmocka_unit_test(test_io_http_multi__ends_what_is_late),
    cmocka_unit_test(test_io_http_multi__opens_lost_connections_again),
    cmocka_unit_test(test_io_http_multi__says_what_went_wrong),
};
SX_TEST_MAIN(tests)
