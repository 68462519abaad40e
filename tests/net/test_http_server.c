#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/client.h"
#include "net/site.h"

/* Sends bytes on a new connection and expects an answer of that status. */
static void expect(const struct site *site, const char *request, size_t size, int status,
                   const char *body)
{
    const struct answer answer = client_exchange(site->port, request, size);
    if (answer.status != status || (body && strcmp(answer.body, body) != 0)) {
        fail_msg("got %d \"%s\", expected %d \"%s\" for:\n%.300s", answer.status, answer.body,
                 status, body ? body : "", request);
    }
}

#define EXPECT(site, request, status, body) \
    expect((site), (request), sizeof(request) - 1, (status), (body))

static void test_net_http_server__answers_raw_vectors(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, (sx_http_config){.max_body_bytes = 100000});
    EXPECT(&site, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    EXPECT(&site,
           "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
           200, "abcde");
    EXPECT(&site, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404, "no");
    EXPECT(&site, "GET /echo HTTP/1.0\r\n\r\n", 200, "");
    EXPECT(&site, "GET /echo HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400, NULL);
    EXPECT(&site,
           "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400,
           NULL);
    EXPECT(&site, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
           NULL);
    EXPECT(&site, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n", 413, NULL);
    EXPECT(&site, "\x16\x03\x01\x02", 400, NULL);
    EXPECT(&site, "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, NULL);
    const sx_http_stats stats = sx_http_server_stats(site.server);
    assert_int_equal(stats.requests, 4);
    assert_int_equal(stats.refused, 6);
    assert_int_equal(stats.accepted, 10);
    close_site(&site);
}

static void test_net_http_server__keeps_connections(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, (sx_http_config){.loops = 2});
    const int fd = client_connect(site.port);
    char request[300];
    for (int i = 0; i < 100; i++) {
        char body[20];
        snprintf(body, sizeof(body), "%d", i * 7919);
        client_send(fd, request, client_post(request, sizeof(request), "/echo", body));
        const struct answer answer = client_answer(fd);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, body);
        assert_null(strstr(answer.head, "Connection: close"));
        assert_non_null(strstr(answer.head, "Date: "));
    }
    const char last[] = "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client_send(fd, last, sizeof(last) - 1);
    assert_non_null(strstr(client_answer(fd).head, "Connection: close"));
    assert_true(client_sees_close(fd, 2000));
    close(fd);
    assert_int_equal(sx_http_server_stats(site.server).accepted, 1);
    close_site(&site);
}

/* 500 requests in one go, more than the read buffer holds; answers in order. */
static void test_net_http_server__answers_pipelined_requests_in_order(void **state)
{
    (void)state;
    struct site site;
    char *all = malloc(500 * 300);
    size_t size = 0;
    open_site(&site, (sx_http_config){0});
    for (int i = 0; i < 500; i++) {
        char body[64];
        snprintf(body, sizeof(body), "number %d %.*s", i, i % 40,
                 "........................................");
        size += client_post(all + size, 300, i % 50 == 7 ? "/late" : "/echo", body);
    }
    const int fd = client_connect(site.port);
    assert_true(client_send(fd, all, size));
    shutdown(fd, SHUT_WR); /* half-closed clients are still answered */
    for (int i = 0; i < 500; i++) {
        const struct answer answer = client_final_answer(fd);
        char body[64];
        snprintf(body, sizeof(body), "number %d %.*s", i, i % 40,
                 "........................................");
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, i % 50 == 7 ? "late" : body);
    }
    assert_true(client_sees_close(fd, 2000));
    close(fd);
    free(all);
    close_site(&site);
}

static void test_net_http_server__reads_large_bodies(void **state)
{
    (void)state;
    struct site site;
    const size_t size = 3 << 20;
    char *request = malloc(size + 200);
    open_site(&site, (sx_http_config){.max_body_bytes = size});
    const size_t head = (size_t)snprintf(
        request, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", size);
    for (size_t i = 0; i < size; i++) {
        request[head + i] = (char)('a' + i % 26);
    }
    const int fd = client_connect(site.port);
    for (int i = 0; i < 2; i++) { /* twice: nothing of the first is left over */
        assert_true(client_send(fd, request, head + size));
        const struct answer answer = client_answer(fd);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.body_size, size);
        assert_memory_equal(answer.body, request + head, 1000);
    }
    close(fd);
    /* Chunked beyond the limit: refused while reading, not after. */
    const int chunked = client_connect(site.port);
    const char start[] = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client_send(chunked, start, sizeof(start) - 1);
    for (int i = 0; i < 100; i++) {
        if (!client_send(chunked, "10000\r\n", 7) ||
            !client_send(chunked, request + head, 0x10000) || !client_send(chunked, "\r\n", 2)) {
            break;
        }
    }
    assert_int_equal(client_answer(chunked).status, 413);
    close(chunked);
    free(request);
    close_site(&site);
}

static void test_net_http_server__continues_on_expect(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, (sx_http_config){0});
    const int fd = client_connect(site.port);
    const char head[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    client_send(fd, head, sizeof(head) - 1);
    assert_int_equal(client_answer(fd).status, 100);
    client_send(fd, "ok", 2);
    assert_string_equal(client_answer(fd).body, "ok");
    close(fd);
    close_site(&site);
}

static void test_net_http_server__cuts_off_slow_clients(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, (sx_http_config){.head_timeout_ms = 200,
                                      .body_timeout_ms = 200,
                                      .idle_timeout_ms = 200,
                                      .write_timeout_ms = 200,
                                      .request_timeout_ms = 100});
    atomic_store(&site.late_ms, 1500);
    const int64_t begin = sx_now_ns();
    const int silent = client_connect(site.port), head = client_connect(site.port);
    const int body = client_connect(site.port), late = client_connect(site.port);
    const int reader = client_connect(site.port), idle = client_connect(site.port);
    char request[300];
    client_send(head, "GET / HT", 8);
    const char half[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nabc";
    client_send(body, half, sizeof(half) - 1);
    client_send(late, request, client_get(request, sizeof(request), "/late"));
    client_send(reader, request, client_get(request, sizeof(request), "/big")); /* never read */
    client_send(idle, request, client_get(request, sizeof(request), "/echo"));
    assert_int_equal(client_answer(idle).status, 200);
    assert_int_equal(client_answer(late).status, 504);
    assert_int_equal(client_answer(head).status, 408);
    assert_int_equal(client_answer(body).status, 408);
    assert_true(client_sees_close(silent, 2000));
    assert_true(client_sees_close(idle, 2000));
    assert_true(client_sees_close(head, 2000));
    while (sx_http_server_stats(site.server).connections > 0 &&
           sx_now_ns() - begin < (int64_t)5 * 1000000000) {
        usleep(10000);
    }
    assert_int_equal(sx_http_server_stats(site.server).connections, 0);
    close(silent), close(head), close(body), close(late), close(reader), close(idle);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 1);
}

/* Waits until that many connections are open; false after 10 s. */
static bool connections_become(const struct site *site, uint64_t count)
{
    const int64_t begin = sx_now_ns();
    while (sx_http_server_stats(site->server).connections != count) {
        if (sx_now_ns() - begin > (int64_t)10 * 1000000000) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

/* The timeouts of the two directions are each its own: of two servers, one has a short timeout for
 * writing, one for reading bodies, and all others lie beyond the test. A client that does not read
 * is cut off by the first alone; one that reads slowly, for longer than the timeout in all but
 * never that long without a byte, gets everything. */
static void test_net_http_server__cuts_off_clients_that_do_not_read(void **state)
{
    (void)state;
    enum { SHORT_MS = 1000, LONG_MS = 60000, PIECES = 28 };
    static char piece[1 << 20];
    struct site writing, reading;
    char request[200];
    static const char half[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nabc";
    const size_t size = client_get(request, sizeof(request), "/big");
    sx_http_config config = {.head_timeout_ms = LONG_MS,
                             .idle_timeout_ms = LONG_MS,
                             .request_timeout_ms = LONG_MS,
                             .body_timeout_ms = LONG_MS,
                             .write_timeout_ms = SHORT_MS};
    open_site(&writing, config);
    config.body_timeout_ms = SHORT_MS;
    config.write_timeout_ms = LONG_MS;
    open_site(&reading, config);
    const int64_t begin = sx_now_ns();
    const int deaf = client_connect(writing.port), half_sent = client_connect(writing.port);
    const int slow = client_connect(writing.port);
    const int patient = client_connect(reading.port), late = client_connect(reading.port);
    client_send(deaf, request, size);
    client_send(half_sent, half, sizeof(half) - 1);
    client_send(slow, request, size);
    client_send(patient, request, size);
    client_send(late, half, sizeof(half) - 1);
    assert_true(connections_become(&writing, 3));
    size_t total = 0;
    ssize_t got;
    for (int i = 0; i < PIECES; i++) {
        const uint64_t connected = sx_http_server_stats(writing.server).connections;
        if (sx_now_ns() - begin < SHORT_MS * (int64_t)900000) {
            assert_int_equal(connected, 3); /* nobody is cut off early */
        }
        usleep(SHORT_MS * 1000 / 22); /* PIECES of these are longer than the timeout */
        total += sizeof(piece);
        assert_int_equal(recv(slow, piece, sizeof(piece), MSG_WAITALL), sizeof(piece));
    }
    while (total < (size_t)BIG && (got = recv(slow, piece, sizeof(piece), 0)) > 0) {
        total += (size_t)got;
    }
    assert_true(total >= (size_t)BIG);
    close(slow);
    assert_true(connections_become(&writing, 1)); /* the one whose body is late is still there */
    assert_false(client_sees_close(half_sent, 0));
    total = 0;
    while ((got = recv(deaf, piece, sizeof(piece), 0)) > 0) {
        total += (size_t)got;
    }
    assert_true(total < (size_t)BIG);
    close(deaf), close(half_sent);
    assert_int_equal(client_answer(late).status, 408);
    const struct answer answer = client_answer(patient);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.body_size, BIG);
    close(patient), close(late);
    close_site(&writing);
    close_site(&reading);
}

/* Sends the head of a body of `announced` bytes, and `sent` of them. */
static int begin_post(const struct site *site, size_t announced, size_t sent)
{
    char head[200];
    char *body = calloc(sent + 1, 1);
    const int fd = client_connect(site->port);
    client_send(fd, head,
                (size_t)snprintf(head, sizeof(head),
                                 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                                 announced));
    client_send(fd, body, sent);
    free(body);
    return fd;
}

/* Bodies, unfinished ones as well, may take half of the memory; then large ones are refused until
 * it is free again, and small ones still work. */
static void test_net_http_server__bounds_the_memory_of_bodies(void **state)
{
    (void)state;
    enum { KIB = 1024, BODY = 200 * KIB, HELD = 2 };
    struct site site;
    sx_budget memory;
    int fds[HELD];
    sx_budget_init(&memory, "all requests", 1024 * KIB, NULL);
    open_site(&site, (sx_http_config){.memory = &memory, .body_timeout_ms = 60000, .loops = 2});
    for (int i = 0; i < HELD; i++) {
        fds[i] = begin_post(&site, BODY, BODY - 1);
    }
    const int64_t begin = sx_now_ns();
    while (sx_budget_used(&memory) < HELD * BODY) {
        assert_true(sx_now_ns() - begin < (int64_t)10 * 1000000000);
        usleep(1000);
    }
    EXPECT(
        &site,
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 204800\r\n\r\n",
        429, NULL);
    const int refused = begin_post(&site, BODY, BODY - 1);
    struct answer answer = client_answer(refused);
    assert_int_equal(answer.status, 429);
    assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
    assert_non_null(strstr(answer.body, "of 1048576 bytes are in use by other requests"));
    static const char chunked[] = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                  "chunked\r\n\r\n20000\r\n";
    char *filler = calloc(0x20000, 1);
    const int chunks = client_connect(site.port);
    client_send(chunks, chunked, sizeof(chunked) - 1);
    client_send(chunks, filler, 0x20000);
    assert_int_equal(client_answer(chunks).status, 429);
    free(filler);
    EXPECT(&site, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    EXPECT(&site,
           "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n0\r\n\r\n",
           200, "abc");
    EXPECT(&site, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 524289\r\n\r\n", 413, NULL);
    assert_true(sx_budget_used(&memory) <= 512 * KIB);
    client_send(fds[0], "", 1); /* the last byte: this one is served */
    answer = client_answer(fds[0]);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.body_size, BODY);
    for (int i = 0; i < HELD; i++) {
        close(fds[i]);
    }
    close(refused), close(chunks);
    assert_true(connections_become(&site, 0));
    const int again = begin_post(&site, BODY, BODY);
    assert_int_equal(client_answer(again).status, 200);
    close(again);
    close_site(&site);
    assert_int_equal(sx_budget_used(&memory), 0);
}

static void test_net_http_server__caps_connections_over_all_loops(void **state)
{
    (void)state;
    enum { CAP = 5 };
    struct site site;
    int fds[CAP];
    char request[200];
    const size_t size = client_get(request, sizeof(request), "/echo");
    open_site(&site, (sx_http_config){.loops = 3, .max_connections = CAP});
    for (int i = 0; i < CAP; i++) {
        fds[i] = client_connect(site.port);
        client_send(fds[i], request, size);
        assert_int_equal(client_answer(fds[i]).status, 200);
    }
    const int extra = client_connect(site.port);
    const struct answer answer = client_answer(extra); /* without having sent anything */
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
    assert_true(client_sees_close(extra, 5000));
    assert_int_equal(sx_http_server_stats(site.server).shed, 1);
    close(extra);
    close(fds[0]);
    assert_true(connections_become(&site, CAP - 1));
    const int64_t begin = sx_now_ns(); /* its slot is free once its memory is, a turn later */
    while (client_exchange(site.port, request, size).status != 200) {
        assert_true(sx_now_ns() - begin < (int64_t)10 * 1000000000);
    }
    for (int i = 1; i < CAP; i++) {
        close(fds[i]);
    }
    close_site(&site);
}

/* A client that closes while its request is worked on cancels it, also when what it sent behind the
 * request has filled the read buffer. */
static void test_net_http_server__cancels_requests_of_closed_clients(void **state)
{
    (void)state;
    struct site site;
    char request[200];
    static char filler[40 << 10]; /* more than the read buffer, less than the kernel's */
    open_site(&site, (sx_http_config){0});
    atomic_store(&site.late_ms, 400);
    const size_t size = client_get(request, sizeof(request), "/late");
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(site.port);
        client_send(fds[i], request, size);
        while (atomic_load(&site.handled) <= i) {
            usleep(1000);
        }
    }
    close(fds[0]);
    client_send(fds[1], filler, sizeof(filler));
    close(fds[1]);
    assert_int_equal(client_answer(fds[2]).status, 200);
    close(fds[2]);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 2);
}

/* A client that has shut down its sending half waits for the answer: it gets that, and nothing but
 * 100 Continue before it, which no client of HTTP/1.0 gets. */
static void test_net_http_server__answers_half_closed_clients(void **state)
{
    (void)state;
    static const char old[] = "GET /late HTTP/1.0\r\n\r\n";
    struct site site;
    char request[200];
    int fds[3];
    open_site(&site, (sx_http_config){0});
    atomic_store(&site.late_ms, 100);
    const size_t size = client_get(request, sizeof(request), "/late");
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(site.port);
        client_send(fds[i], i == 2 ? old : request, i == 2 ? sizeof(old) - 1 : size);
        if (i == 1) { /* the end comes while the request is worked on */
            while (atomic_load(&site.handled) < 2) {
                usleep(1000);
            }
        }
        shutdown(fds[i], SHUT_WR);
    }
    for (int i = 0; i < 3; i++) {
        const struct answer answer = i == 2 ? client_answer(fds[i]) : client_final_answer(fds[i]);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, "late");
        assert_true(client_sees_close(fds[i], 2000));
        close(fds[i]);
    }
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 0);
}

/* The peer of the next test, in a process with descriptors of its own: learns the port, opens 200
 * connections, holds them until told to end. */
static void hold_connections(int ports, int done)
{
    int port = 0, fds[200];
    char word = 'h';
    if (read(ports, &port, sizeof(port)) != sizeof(port)) {
        _exit(1);
    }
    for (int i = 0; i < 200; i++) {
        fds[i] = client_connect(port);
    }
    if (write(done, &word, 1) != 1 || read(ports, &word, 1) != 1 || fds[0] < 0) {
        _exit(1);
    }
    _exit(0);
}

/* reliability.md R8: out of descriptors the server sheds connections and recovers. */
static void test_net_http_server__survives_descriptor_exhaustion(void **state)
{
    (void)state;
    struct site site;
    struct rlimit before, tight;
    int to_peer[2], from_peer[2], exit_code = 1;
    char request[200], word = 'e';
    assert_int_equal(pipe(to_peer), 0);
    assert_int_equal(pipe(from_peer), 0);
    const pid_t peer = fork();
    if (peer == 0) {
        hold_connections(to_peer[0], from_peer[1]);
    }
    open_site(&site, (sx_http_config){0});
    const size_t size = client_get(request, sizeof(request), "/echo");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    assert_int_equal(write(to_peer[1], &site.port, sizeof(site.port)), sizeof(site.port));
    assert_int_equal(read(from_peer[0], &word, 1), 1); /* all 200 are connected */
    clock_t cpu = clock();
    usleep(500000);
    cpu = clock() - cpu;
    assert_true(sx_http_server_stats(site.server).shed >= 100);
    assert_true(cpu < CLOCKS_PER_SEC / 10); /* no spinning */
    assert_int_equal(write(to_peer[1], &word, 1), 1);
    assert_int_equal(waitpid(peer, &exit_code, 0), peer);
    assert_int_equal(exit_code, 0);
    const int64_t begin = sx_now_ns();
    while (client_exchange(site.port, request, size).status != 200) {
        assert_true(sx_now_ns() - begin < 1000000000);
        usleep(10000);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(to_peer[0]), close(to_peer[1]), close(from_peer[0]), close(from_peer[1]);
    close_site(&site);
}

static void test_net_http_server__drains(void **state)
{
    (void)state;
    struct site site;
    char request[200];
    open_site(&site, (sx_http_config){.loops = 2});
    const size_t size = client_get(request, sizeof(request), "/late");
    int fds[8], idle = client_connect(site.port);
    for (int i = 0; i < 8; i++) {
        fds[i] = client_connect(site.port);
        client_send(fds[i], request, size);
    }
    while (atomic_load(&site.handled) < 8) {
        usleep(1000);
    }
    assert_true(sx_http_server_drain(site.server, 5000));
    for (int i = 0; i < 8; i++) {
        const struct answer answer = client_answer(fds[i]);
        assert_int_equal(answer.status, 200);
        assert_non_null(strstr(answer.head, "Connection: close"));
        close(fds[i]);
    }
    assert_true(client_sees_close(idle, 1000));
    close(idle);
    assert_int_equal(client_connect(site.port), -1); /* nobody listens any more */
    close_site(&site);
}

/* Uploads and heads that are not complete get 503 soon after the drain has begun. One that
 * completes its request at once is answered. */
static void test_net_http_server__unfinished_requests_do_not_hold_a_drain(void **state)
{
    (void)state;
    enum { CLIENTS = 60 };
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: a\r\n";
    static const char upload[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx";
    static const char chunks[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab";
    static const struct {
        const char *data;
        size_t size;
    } parts[] = {
        {head, sizeof(head) - 1}, {upload, sizeof(upload) - 1}, {chunks, sizeof(chunks) - 1}};
    struct site site;
    int fds[CLIENTS];
    open_site(&site, (sx_http_config){.loops = 2});
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(site.port);
        client_send(fds[i], parts[i % 3].data, parts[i % 3].size);
    }
    const int64_t begin = sx_now_ns();
    assert_true(sx_http_server_drain(site.server, 20000));
    assert_true(sx_now_ns() - begin < (int64_t)8 * 1000000000); /* not 10 s, 30 s */
    for (int i = 0; i < CLIENTS; i++) {
        const struct answer answer = client_answer(fds[i]);
        assert_int_equal(answer.status, 503);
        assert_non_null(strstr(answer.body, "the server is shutting down"));
        assert_non_null(strstr(answer.head, "Retry-After: 1"));
        close(fds[i]);
    }
    close_site(&site);
}

/* Grace too short: the connection is cut, the handler's late answer is dropped, nothing leaks. */
static void test_net_http_server__cuts_off_after_grace(void **state)
{
    (void)state;
    struct site site;
    char request[200];
    open_site(&site, (sx_http_config){0});
    const int fd = client_connect(site.port);
    client_send(fd, request, client_get(request, sizeof(request), "/late"));
    while (atomic_load(&site.handled) < 1) {
        usleep(1000);
    }
    assert_false(sx_http_server_drain(site.server, 10));
    assert_int_equal(client_answer(fd).status, 0);
    close(fd);
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 1);
}

static void test_net_http_server__reports_ports(void **state)
{
    (void)state;
    struct site site;
    sx_http_server *other = NULL;
    open_site(&site, (sx_http_config){.loops = 2});
    sx_http_address address = {.host = "127.0.0.1", .port = site.port};
    sx_http_config config = {.addresses = &address, .address_count = 1, .handler = handle};
    assert_error(sx_http_server_create(&config, &other), SX_ALREADY_EXISTS, "choose another port");
    address.host = NULL;
    assert_error(sx_http_server_create(&config, &other), SX_ALREADY_EXISTS, "choose another port");
    address.port = 70000;
    assert_error(sx_http_server_create(&config, &other), SX_INVALID_ARGUMENT,
                 "expected 0 to 65535");
    address.port = -5;
    assert_error(sx_http_server_create(&config, &other), SX_INVALID_ARGUMENT, "-5");
    address = (sx_http_address){.host = "192.0.2.1"};
    assert_error(sx_http_server_create(&config, &other), SX_INVALID_ARGUMENT,
                 "no network interface");
    close_site(&site);
    config = (sx_http_config){.handler = handle}; /* every address, any port */
    assert_ok(sx_http_server_create(&config, &other));
    assert_ok(sx_http_server_start(other));
    const int fd = client_connect(sx_http_server_port(other, 0));
    assert_true(fd >= 0);
    close(fd);
    sx_http_server_destroy(other);
}

static void test_net_http_server__reasons_are_the_rfcs(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {299, "Unknown"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(sx_http_reason(rows[i].status), rows[i].reason);
    }
    struct site site;
    open_site(&site, (sx_http_config){0});
    static const char get[] = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_non_null(strstr(client_exchange(site.port, get, sizeof(get) - 1).head,
                           "HTTP/1.1 404 Not Found\r\n"));
    close_site(&site);
}

/* The timeouts of reading and writing do not count while a request is worked on. */
static void test_net_http_server__waits_for_the_handler(void **state)
{
    (void)state;
    struct site site;
    char request[200];
    open_site(&site, (sx_http_config){.head_timeout_ms = 100,
                                      .body_timeout_ms = 100,
                                      .write_timeout_ms = 100,
                                      .idle_timeout_ms = 100,
                                      .request_timeout_ms = 60000});
    atomic_store(&site.late_ms, 500);
    const struct answer answer =
        client_exchange(site.port, request, client_get(request, sizeof(request), "/late"));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "late");
    close_site(&site);
    assert_int_equal(atomic_load(&site.cancelled), 0);
}

/* Descriptors run out while listening, at each of them: an error, and none is left open. */
static void test_net_http_server__listens_on_all_or_none(void **state)
{
    (void)state;
    enum { LOOPS = 4 };
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int first = dup(0); /* the lowest that is free */
    close(first);
    int succeeded = 0;
    for (int room = 0; room < 6 * LOOPS; room++) {
        sx_http_server *server = NULL;
        const sx_http_config config = {
            .addresses = &loopback, .address_count = 1, .handler = handle, .loops = LOOPS};
        tight = before;
        tight.rlim_cur = (rlim_t)(first + room);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        sx_status status = sx_http_server_create(&config, &server);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(status == SX_OK || sx_status_code(status) == SX_RESOURCE_EXHAUSTED ||
                    sx_status_code(status) == SX_INVALID_ARGUMENT); /* getaddrinfo had none */
        succeeded += status == SX_OK;
        sx_status_free(status);
        sx_http_server_destroy(server);
        const int next = dup(0);
        assert_int_equal(next, first);
        close(next);
    }
    assert_in_range(succeeded, 1, 6 * LOOPS - LOOPS);
}

/* A budget counts without a limit, too; with one, a body takes half of it at most. */
static void test_net_http_server__a_budget_without_limit_bounds_no_body(void **state)
{
    (void)state;
    static const struct {
        size_t limit_bytes;
        int five, six; /* the answers to bodies of 5 kB and 6 kB */
    } rows[] = {{0, 200, 200}, {11000, 200, 413}, {9000, 413, 413}};
    static char body[6000];
    memset(body, 'x', sizeof(body));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t size = 5000; size <= 6000; size += 1000) {
            struct site site;
            sx_budget memory;
            char request[6200];
            sx_budget_init(&memory, "this test", rows[i].limit_bytes, NULL);
            open_site(&site, (sx_http_config){.memory = &memory, .max_body_bytes = 100000});
            const int head = snprintf(request, sizeof(request),
                                      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu"
                                      "\r\nConnection: close\r\n\r\n",
                                      size);
            memcpy(request + head, body, size);
            expect(&site, request, (size_t)head + size, size == 5000 ? rows[i].five : rows[i].six,
                   NULL);
            close_site(&site);
            assert_int_equal(sx_budget_used(&memory), 0);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_http_server__answers_raw_vectors),
    cmocka_unit_test(test_net_http_server__keeps_connections),
    cmocka_unit_test(test_net_http_server__answers_pipelined_requests_in_order),
    cmocka_unit_test(test_net_http_server__reads_large_bodies),
    cmocka_unit_test(test_net_http_server__continues_on_expect),
    cmocka_unit_test(test_net_http_server__cuts_off_slow_clients),
    cmocka_unit_test(test_net_http_server__cuts_off_clients_that_do_not_read),
    cmocka_unit_test(test_net_http_server__bounds_the_memory_of_bodies),
    cmocka_unit_test(test_net_http_server__caps_connections_over_all_loops),
    cmocka_unit_test(test_net_http_server__cancels_requests_of_closed_clients),
    cmocka_unit_test(test_net_http_server__answers_half_closed_clients),
    cmocka_unit_test(test_net_http_server__survives_descriptor_exhaustion),
    cmocka_unit_test(test_net_http_server__drains),
    cmocka_unit_test(test_net_http_server__unfinished_requests_do_not_hold_a_drain),
    cmocka_unit_test(test_net_http_server__cuts_off_after_grace),
    cmocka_unit_test(test_net_http_server__reports_ports),
    cmocka_unit_test(test_net_http_server__reasons_are_the_rfcs),
    cmocka_unit_test(test_net_http_server__waits_for_the_handler),
    cmocka_unit_test(test_net_http_server__listens_on_all_or_none),
    cmocka_unit_test(test_net_http_server__a_budget_without_limit_bounds_no_body),
};
SX_TEST_MAIN(tests)
