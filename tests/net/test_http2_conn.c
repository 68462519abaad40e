#include "base/clock.h"
#include "net/http2_client.h"
#include "net/site.h"

static const char *const none[] = {NULL};
static const char *const grpc[] = {"content-type", "application/grpc", "te", "trailers", NULL};

static int32_t get(struct h2_client *client, const char *path)
{
    return h2_request(client, path, NULL, 0, none);
}

static void expect_status(const struct h2_answer *answer, int status)
{
    if (answer->status != status) {
        fail_msg("got %d, closed %d with %u:\n%s%s\nexpected %d", answer->status, answer->closed,
                 answer->error, answer->fields, answer->body, status);
    }
}

static void test_net_http2_conn__answers(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){.loops = 2});
    h2_open(&client, site.port);
    struct h2_answer *answer = h2_wait(&client, h2_request(&client, "/echo?x=1", "hello", 5, none));
    expect_status(answer, 200);
    assert_string_equal(answer->body, "hello");
    assert_non_null(strstr(answer->fields, "content-type: text/plain\n"));
    assert_non_null(strstr(answer->fields, "content-length: 5\n"));
    assert_non_null(strstr(answer->fields, "date: "));
    expect_status(h2_wait(&client, get(&client, "/nothing")), 404);
    expect_status(h2_wait(&client, get(&client, "/echo")), 200);
    char target[5001];
    memset(target, '/', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    expect_status(h2_wait(&client, get(&client, target)), 414);
    assert_int_equal(h2_wait(&client, get(&client, "no-slash"))->error, NGHTTP2_PROTOCOL_ERROR);
    const sx_http_stats stats = sx_http_server_stats(site.server);
    assert_int_equal(stats.requests, 3);
    assert_int_equal(stats.refused, 1);
    assert_int_equal(stats.accepted, 1);
    assert_int_equal(stats.connections, 1);
    h2_close(&client);
    close_site(&site);
}

static void test_net_http2_conn__carries_large_bodies(void **state)
{
    (void)state;
    enum { SIZE = 20 << 20 };
    struct site site;
    struct h2_client client;
    char *body = malloc(SIZE);
    memset(body, 'x', SIZE);
    open_site(&site, (sx_http_config){0});
    h2_open(&client, site.port);
    const int32_t echo = h2_request(&client, "/echo", body, SIZE, none);
    const int32_t big = get(&client, "/big");
    const int32_t small = h2_request(&client, "/echo", "a", 1, none);
    assert_int_equal(h2_wait(&client, small)->body_size, 1);
    assert_int_equal(h2_wait(&client, echo)->body_size, SIZE);
    assert_int_equal(h2_wait(&client, big)->body_size, BIG);
    h2_close(&client);
    close_site(&site);
    free(body);
}

/* The handler has said where a part of such bodies lies. */
static void test_net_http2_conn__aligns_bodies(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){.max_body_bytes = 12});
    h2_open(&client, site.port);
    expect_status(h2_wait(&client, h2_request(&client, "/align", "abc", 3, none)), 202);
    expect_status(h2_wait(&client, h2_request(&client, "/align", "abcdefgh", 8, none)), 202);
    for (int i = 0; i < 3; i++) {
        const struct h2_answer *answer =
            h2_wait(&client, h2_request(&client, "/align", "abcdefghijkl", 12, none));
        expect_status(answer, 200);
        assert_string_equal(answer->body, "abcdefghijkl");
    }
    const struct h2_answer *answer =
        h2_wait(&client, h2_request(&client, "/align", "abcdefghijklm", 13, none));
    expect_status(answer, 413);
    assert_non_null(strstr(answer->body, "the limit is 12 bytes"));
    expect_status(h2_wait(&client, get(&client, "/echo")), 200);
    h2_close(&client);
    close_site(&site);
}

static void test_net_http2_conn__serves_streams_at_once(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){0});
    h2_open(&client, site.port);
    const int64_t begin_ns = sx_now_ns();
    int32_t ids[50];
    for (int i = 0; i < 50; i++) {
        ids[i] = get(&client, "/late");
    }
    for (int i = 0; i < 50; i++) {
        assert_string_equal(h2_wait(&client, ids[i])->body, "late");
    }
    assert_true(sx_now_ns() - begin_ns < 5000 * (int64_t)1000000); /* 10 s in turn */
    h2_close(&client);
    close_site(&site);
}

static void test_net_http2_conn__limits_streams(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){.max_streams = 2});
    h2_open(&client, site.port);
    h2_turn(&client, 1000); /* the server's settings: nghttp2 keeps to them */
    const int32_t first = get(&client, "/late"), second = get(&client, "/late");
    const int32_t third = get(&client, "/echo");
    assert_int_equal(h2_wait(&client, first)->status, 200);
    assert_int_equal(h2_wait(&client, second)->status, 200);
    assert_int_equal(h2_wait(&client, third)->status, 200);
    h2_close(&client);
    close_site(&site);
}

static void test_net_http2_conn__reset_cancels(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){0});
    h2_open(&client, site.port);
    const int32_t id = get(&client, "/late");
    while (atomic_load(&site.handled) == 0) {
        h2_turn(&client, 5);
    }
    nghttp2_submit_rst_stream(client.session, 0, id, NGHTTP2_CANCEL);
    h2_wait(&client, id);
    assert_int_equal(h2_wait(&client, get(&client, "/echo"))->status, 200);
    h2_close(&client);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 1);
}

static void test_net_http2_conn__closing_cancels(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){0});
    h2_open(&client, site.port);
    get(&client, "/late");
    get(&client, "/late");
    while (atomic_load(&site.handled) < 2) {
        h2_turn(&client, 5);
    }
    h2_close(&client);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 2);
}

static void test_net_http2_conn__refuses(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    sx_budget memory;
    char body[5000], value[3000];
    memset(body, 'x', sizeof(body));
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    sx_budget_init(&memory, "all requests together", 1 << 20, NULL);
    open_site(&site, (sx_http_config){.max_body_bytes = 4000,
                                      .max_head_bytes = 4096,
                                      .request_timeout_ms = 50,
                                      .memory = &memory});
    h2_open(&client, site.port);
    /* A body that says its length, one that does not, and the same as calls. */
    const char *const length[] = {"content-length", "5000", NULL};
    struct h2_answer *answer =
        h2_wait(&client, h2_request(&client, "/echo", body, sizeof(body), length));
    expect_status(answer, 413);
    assert_non_null(strstr(answer->body, "5000 bytes, the limit is 4000"));
    answer = h2_wait(&client, h2_request(&client, "/echo", body, sizeof(body), none));
    expect_status(answer, 413);
    answer = h2_wait(&client, h2_request(&client, "/echo", body, sizeof(body), grpc));
    expect_status(answer, 200);
    assert_non_null(strstr(answer->fields, "grpc-status: 8\n"));
    assert_non_null(strstr(answer->fields, "grpc-message: request body too large"));
    /* Heads: too many bytes, too many fields. */
    const char *const large[] = {"a", value, "b", value, NULL};
    expect_status(h2_wait(&client, h2_request(&client, "/echo", NULL, 0, large)), 431);
    /* An encoding that is not known. */
    const char *const coded[] = {"content-encoding", "br", NULL};
    expect_status(h2_wait(&client, h2_request(&client, "/echo", "a", 1, coded)), 415);
    /* Time. */
    expect_status(h2_wait(&client, get(&client, "/late")), 504);
    answer = h2_wait(&client, h2_request(&client, "/late", "a", 1, grpc));
    assert_non_null(strstr(answer->fields, "grpc-status: 4\n"));
    assert_int_equal(sx_http_server_stats(site.server).refused, 7);
    /* Memory: room for a stream without its body, and for none. */
    while (sx_budget_used(&memory) > 0) { /* handlers that are late hold theirs */
        h2_turn(&client, 5);
    }
    assert_true(sx_budget_charge(&memory, (1 << 20) - 8000));
    answer = h2_wait(&client, h2_request(&client, "/echo", body, 3000, none));
    expect_status(answer, 429);
    assert_true(sx_budget_charge(&memory, 6000));
    assert_int_equal(h2_wait(&client, get(&client, "/echo"))->error, NGHTTP2_REFUSED_STREAM);
    sx_budget_release(&memory, (1 << 20) - 2000);
    expect_status(h2_wait(&client, h2_request(&client, "/echo", body, 3000, none)), 200);
    h2_close(&client);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 2);
    assert_int_equal(sx_budget_used(&memory), 0);
}

/* A stream is charged from its beginning on, with the texts of its head. */
static void test_net_http2_conn__charges_streams(void **state)
{
    (void)state;
    enum { STREAMS = 20, LEAST = 4096, VALUE = 3000, MEMORY = 1 << 20 };
    struct site site;
    struct h2_client client;
    sx_budget memory;
    char value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    const char *const large[] = {"a", value, "b", value, NULL};
    sx_budget_init(&memory, "all requests together", MEMORY, NULL);
    open_site(&site, (sx_http_config){.memory = &memory});
    h2_open(&client, site.port);
    for (int i = 0; i < STREAMS; i++) {
        get(&client, "/late");
    }
    const int32_t last = h2_request(&client, "/late", NULL, 0, large);
    while (atomic_load(&site.handled) < STREAMS + 1) {
        h2_turn(&client, 5);
    }
    assert_true(sx_budget_used(&memory) >= (STREAMS + 1) * LEAST + 2 * VALUE);
    while (sx_budget_used(&memory) > 0) {
        h2_turn(&client, 5);
    }
    assert_int_equal(h2_wait(&client, last)->status, 200);
    /* A head that finds no room. */
    assert_true(sx_budget_charge(&memory, MEMORY - 8000));
    const size_t held = sx_budget_used(&memory);
    expect_status(h2_wait(&client, h2_request(&client, "/echo", NULL, 0, large)), 429);
    assert_true(sx_budget_used(&memory) <= held);
    /* One stream of a connection, but not a second one, in the half that is for others. */
    sx_budget_release(&memory, MEMORY / 4);
    const int32_t first = get(&client, "/late"), second = get(&client, "/late");
    assert_int_equal(h2_wait(&client, second)->error, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(h2_wait(&client, first)->status, 200);
    h2_close(&client);
    close_site(&site);
    sx_budget_release_all(&memory);
}

/* ---- Time ---- */

static void test_net_http2_conn__slow_bodies_time_out(void **state)
{
    (void)state;
    struct site site;
    char out[600];
    open_site(&site, (sx_http_config){.body_timeout_ms = 100, .head_timeout_ms = 100});
    /* A body of which nothing comes: answered, and told to stop. */
    const int fd = client_connect(site.port);
    size_t size = (size_t)snprintf(out, sizeof(out), "%s", h2_preface);
    size += h2_frame(out + size, 4, 0, 0, NULL, 0);
    size += h2_head(out + size, 4, 1, "/echo");
    assert_true(client_send(fd, out, size));
    const int64_t begin_ns = sx_now_ns();
    while (sx_http_server_stats(site.server).refused == 0) {
        assert_true(sx_now_ns() - begin_ns < 5000 * (int64_t)1000000);
    }
    close(fd);
    /* A head that does not end: closed. */
    const int other = client_connect(site.port);
    size = (size_t)snprintf(out, sizeof(out), "%s", h2_preface);
    size += h2_frame(out + size, 4, 0, 0, NULL, 0);
    size += h2_head(out + size, 0, 1, "/echo");
    assert_true(client_send(other, out, size));
    assert_true(client_sees_close(other, 5000));
    close(other);
    close_site(&site);
    assert_int_equal(atomic_load(&site.handled), 0);
}

static void test_net_http2_conn__closed_windows_time_out(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    open_site(&site, (sx_http_config){.write_timeout_ms = 150});
    h2_open_on(&client, client_connect(site.port), 0);
    const int32_t id = get(&client, "/big");
    const struct h2_answer *answer = h2_wait(&client, id);
    expect_status(answer, 200);
    assert_int_equal(answer->error, NGHTTP2_CANCEL);
    assert_int_equal(answer->body_size, 0);
    h2_close(&client);
    close_site(&site);
}

static void test_net_http2_conn__asks_the_silent(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client;
    char out[100];
    open_site(&site, (sx_http_config){.idle_timeout_ms = 80});
    /* One that answers stays. */
    h2_open(&client, site.port);
    const int64_t until_ns = sx_now_ns() + 600 * (int64_t)1000000;
    while (sx_now_ns() < until_ns) {
        h2_turn(&client, 20);
    }
    expect_status(h2_wait(&client, get(&client, "/echo")), 200);
    h2_close(&client);
    /* One that does not is closed. */
    const int fd = client_connect(site.port);
    size_t size = (size_t)snprintf(out, sizeof(out), "%s", h2_preface);
    size += h2_frame(out + size, 4, 0, 0, NULL, 0);
    assert_true(client_send(fd, out, size));
    assert_true(client_sees_close(fd, 5000));
    close(fd);
    close_site(&site);
}

static void *drain_site(void *user)
{
    struct site *site = user;
    assert_true(sx_http_server_drain(site->server, 10000));
    return NULL;
}

static void test_net_http2_conn__drains(void **state)
{
    (void)state;
    struct site site;
    struct h2_client client, idle;
    pthread_t thread;
    open_site(&site, (sx_http_config){.loops = 2});
    atomic_store(&site.late_ms, 700);
    h2_open(&client, site.port);
    h2_open(&idle, site.port);
    expect_status(h2_wait(&idle, get(&idle, "/echo")), 200);
    const int32_t late = get(&client, "/late");
    while (atomic_load(&site.handled) < 2) {
        h2_turn(&client, 5);
    }
    pthread_create(&thread, NULL, drain_site, &site);
    while (!client.goaway) { /* the notice: requests that are on their way are served */
        assert_true(h2_turn(&client, 5000));
    }
    assert_string_equal(h2_wait(&client, late)->body, "late");
    while (h2_turn(&client, 5000)) {
    }
    while (h2_turn(&idle, 5000)) {
    }
    assert_true(client.goaway && idle.goaway);
    assert_int_equal(client.goaway_error, NGHTTP2_NO_ERROR);
    h2_close(&client);
    h2_close(&idle);
    pthread_join(thread, NULL);
    close_site(&site);
}

/* ---- Floods ---- */

enum { ROUNDS = 1000 };

static size_t reset_request(char *out, uint32_t i)
{
    const size_t size = h2_head(out, 5, 2 * i + 1, "/echo");
    return size + h2_frame(out + size, 3, 0, 2 * i + 1, "\0\0\0\x08", 4);
}

static size_t ping(char *out, uint32_t i)
{
    (void)i;
    return h2_frame(out, 6, 0, 0, "12345678", 8);
}

static size_t settings(char *out, uint32_t i)
{
    (void)i;
    return h2_frame(out, 4, 0, 0, NULL, 0);
}

static size_t empty_data(char *out, uint32_t i)
{
    const size_t size = i == 0 ? h2_head(out, 4, 1, "/echo") : 0;
    return size + h2_frame(out + size, 0, 0, 1, NULL, 0);
}

static size_t tiny_data(char *out, uint32_t i)
{
    const size_t size = i == 0 ? h2_head(out, 4, 1, "/echo") : 0;
    return size + h2_frame(out + size, 0, 0, 1, "x", 1);
}

static size_t window(char *out, uint32_t i)
{
    static const char one[4] = {0, 0, 0, 1};
    (void)i;
    return h2_frame(out, 8, 0, 0, one, 4);
}

static size_t priority(char *out, uint32_t i)
{
    return h2_frame(out, 2, 0, 2 * i + 3, "\0\0\0\0\x10", 5);
}

static size_t continuation(char *out, uint32_t i)
{
    return i == 0 ? h2_head(out, 0, 1, "/echo") : h2_frame(out, 9, 0, 1, NULL, 0);
}

static void test_net_http2_conn__floods_end(void **state)
{
    (void)state;
    static size_t (*const floods[])(char *, uint32_t) = {
        reset_request, ping, settings, empty_data, tiny_data, window, priority, continuation};
    struct site site;
    open_site(&site, (sx_http_config){0});
    atomic_store(&site.late_ms, 0);
    for (size_t f = 0; f < sizeof(floods) / sizeof(floods[0]); f++) {
        const int fd = client_connect(site.port);
        char *out = malloc(100 * ROUNDS);
        size_t size = (size_t)snprintf(out, 100, "%s", h2_preface);
        size += h2_frame(out + size, 4, 0, 0, NULL, 0);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            size += floods[f](out + size, i);
        }
        client_send(fd, out, size);
        const int error = h2_read_goaway(fd);
        if (error != NGHTTP2_ENHANCE_YOUR_CALM && error != NGHTTP2_PROTOCOL_ERROR) {
            fail_msg("flood %zu ended with %d", f, error);
        }
        free(out);
        close(fd);
    }
    struct h2_client client;
    h2_open(&client, site.port);
    expect_status(h2_wait(&client, get(&client, "/echo")), 200);
    h2_close(&client);
    close_site(&site);
}

/* Rapid reset: whatever is sent, few requests reach the handler. */
static void test_net_http2_conn__rapid_reset_ends(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, (sx_http_config){0});
    const int fd = client_connect(site.port);
    char out[400];
    size_t size = (size_t)snprintf(out, sizeof(out), "%s", h2_preface);
    size += h2_frame(out + size, 4, 0, 0, NULL, 0);
    for (uint32_t i = 0; i < 100000 && client_send(fd, out, size); i++) {
        size = reset_request(out, i);
    }
    assert_true(client_sees_close(fd, 5000));
    close(fd);
    assert_in_range(atomic_load(&site.handled), 1, 1000);
    close_site(&site);
}

/* Any bytes behind the preface: an answer, an end, never a crash. */
static void test_net_http2_conn__survives_garbage(void **state)
{
    (void)state;
    struct site site;
    char whole[300], out[300];
    open_site(&site, (sx_http_config){.head_timeout_ms = 50, .body_timeout_ms = 50});
    size_t size = (size_t)snprintf(whole, sizeof(whole), "%s", h2_preface);
    size += h2_frame(whole + size, 4, 0, 0, "\0\x04\0\0\xff\xff", 6);
    size += h2_head(whole + size, 4, 1, "/echo");
    size += h2_frame(whole + size, 0, 1, 1, "hello", 5);
    for (size_t i = 24; i < size; i++) {
        const int fd = client_connect(site.port);
        memcpy(out, whole, size);
        out[i] = (char)(out[i] ^ (1 << i % 8));
        client_send(fd, out, i % 2 ? size : i);
        shutdown(fd, SHUT_WR);
        assert_true(client_sees_close(fd, 5000));
        close(fd);
    }
    close_site(&site);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_http2_conn__answers),
    cmocka_unit_test(test_net_http2_conn__carries_large_bodies),
    cmocka_unit_test(test_net_http2_conn__aligns_bodies),
    cmocka_unit_test(test_net_http2_conn__serves_streams_at_once),
    cmocka_unit_test(test_net_http2_conn__limits_streams),
    cmocka_unit_test(test_net_http2_conn__reset_cancels),
    cmocka_unit_test(test_net_http2_conn__closing_cancels),
    cmocka_unit_test(test_net_http2_conn__refuses),
    cmocka_unit_test(test_net_http2_conn__charges_streams),
    cmocka_unit_test(test_net_http2_conn__slow_bodies_time_out),
    cmocka_unit_test(test_net_http2_conn__closed_windows_time_out),
    cmocka_unit_test(test_net_http2_conn__asks_the_silent),
    cmocka_unit_test(test_net_http2_conn__drains),
    cmocka_unit_test(test_net_http2_conn__floods_end),
    cmocka_unit_test(test_net_http2_conn__rapid_reset_ends),
    cmocka_unit_test(test_net_http2_conn__survives_garbage),
};

SX_TEST_MAIN(tests)
