/* Floods of HTTP/2 frames at the whole server, with a well-behaved client beside them: the flood's
 * connection ends or stays without effect, memory stays bounded, and every call of the client is
 * answered. Its times are printed, not judged: the machine has other work. */
#include "harness.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/checked.h"
#include "base/clock.h"
#include "net/http2_client.h"
#include "serve/fake_server.h"

enum {
    FRAMES = 20 * 1000, /* of each connection */
    CONNECTIONS = 8,
    CALLS = 200,
    GROWTH_KIB = 16 * 1024
};

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void assert_growth(long kib, long limit_kib)
{
    assert_true(kib < limit_kib || harness_sanitizes());
}

/* ---- Floods: each writes one unit of frames into `out`, and returns its size ---- */

typedef size_t flood_fn(char *out, uint32_t number);

static size_t rapid_reset(char *out, uint32_t number)
{
    size_t size = h2_head(out, 5, number * 2 + 1, "/v2/models/m");
    return size + h2_frame(out + size, 3, 0, number * 2 + 1, "\0\0\0\x8", 4);
}

static size_t ping(char *out, uint32_t number)
{
    (void)number;
    return h2_frame(out, 6, 0, 0, "12345678", 8);
}

static size_t settings(char *out, uint32_t number)
{
    (void)number;
    return h2_frame(out, 4, 0, 0, NULL, 0);
}

static size_t unknown(char *out, uint32_t number)
{
    (void)number;
    return h2_frame(out, 0xfe, 0, 0, "12345678", 8);
}

/* A head that never ends. */
static size_t continuation(char *out, uint32_t number)
{
    static const char field[] = "\x40\x01x\x01y";
    return number == 0 ? h2_head(out, 0, 1, "/v2") : h2_frame(out, 9, 0, 1, field, 5);
}

/* One large field after the other. */
static size_t large_heads(char *out, uint32_t number)
{
    char block[8192 + 8] = {0x40, 1, 'x', 0x7f, (char)0x81, 0x3f};
    memset(block + 6, 'y', 8192);
    return number == 0 ? h2_head(out, 0, 1, "/v2") : h2_frame(out, 9, 0, 1, block, 6 + 8192);
}

/* ---- The scene ---- */

struct flood {
    int port;
    flood_fn *unit;
    atomic_bool over;
    atomic_int sent; /* units */
    atomic_int connections;
};

/* Sends units over one connection after the other, until the calls beside it are over. */
static void *run_flood(void *user)
{
    struct flood *flood = user;
    char *batch = malloc(1 << 20), sink[65536];
    while (!atomic_load(&flood->over) && atomic_load(&flood->connections) < CONNECTIONS) {
        const int fd = client_connect(flood->port);
        bool open = fd >= 0 && client_send(fd, h2_preface, sizeof(h2_preface) - 1);
        size_t size = h2_frame(batch, 4, 0, 0, NULL, 0);
        atomic_fetch_add(&flood->connections, 1);
        for (uint32_t number = 0; open && !atomic_load(&flood->over) && number < FRAMES; number++) {
            size += flood->unit(batch + size, number);
            if (size > 32 * 1024) {
                open = client_send(fd, batch, size);
                size = 0;
                while (open && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
                }
            }
            atomic_fetch_add(&flood->sent, 1);
        }
        close(fd);
    }
    free(batch);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* CALLS calls of a well-behaved client; returns the 99th percentile of their times. */
static int64_t call_well(int port)
{
    struct h2_client client;
    int64_t times_ns[CALLS];
    static const char *const json[] = {"content-type", "application/json", NULL};
    static const char body[] = "{\"instances\":[1,2]}";
    const int fd = client_connect(port), at_once = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    h2_open_on(&client, fd, 1 << 20);
    for (int i = 0; i < CALLS; i++) {
        const int64_t begin_ns = sx_now_ns();
        struct h2_answer *answer = h2_wait(
            &client, h2_request(&client, "/v1/models/m:predict", body, sizeof(body) - 1, json));
        times_ns[i] = sx_now_ns() - begin_ns;
        assert_int_equal(answer->status, 200);
    }
    h2_close(&client);
    qsort(times_ns, CALLS, sizeof(times_ns[0]), by_value);
    return times_ns[CALLS * 99 / 100];
}

static void open_server(char base[64], struct fake_runtime *runtime, size_t memory_bytes,
                        sx_server **out)
{
    fake_base_path(base);
    fake_publish(base, "2", 2, 0, 0, 0);
    fake_serve(
        base, runtime,
        (sx_server_config){.max_in_flight_memory_bytes = memory_bytes, .rest_api_num_loops = 1},
        out);
    assert_true(sx_server_wait_ready(*out, 5000));
}

static void close_server(const char *base, sx_server *server)
{
    sx_server_destroy(server);
    fake_remove_version(base, "2");
    rmdir(base);
}

static void test_serve_floods__leave_others_alone(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        flood_fn *unit;
    } floods[] = {
        {"rapid reset", rapid_reset},   {"PING", ping},
        {"SETTINGS", settings},         {"unknown frames", unknown},
        {"CONTINUATION", continuation}, {"large heads", large_heads},
    };
    char base[64];
    struct fake_runtime runtime = {0};
    sx_server *server = NULL;
    open_server(base, &runtime, 0, &server);
    const int port = sx_server_rest_port(server);
    (void)call_well(port);
    const int64_t quiet_ns = call_well(port);
    const long before_kib = resident_kib();
    printf("alone: p99 %.2f ms\n", (double)quiet_ns / 1e6);
    for (size_t i = 0; i < SX_COUNT(floods); i++) {
        struct flood flood = {.port = port, .unit = floods[i].unit};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_flood, &flood), 0);
        for (int k = 0; k < 10000 && atomic_load(&flood.sent) <= 20; k++) {
            fake_sleep(1);
        }
        const int64_t p99_ns = call_well(port);
        atomic_store(&flood.over, true);
        pthread_join(thread, NULL);
        const long growth_kib = resident_kib() - before_kib;
        printf("%s: %d units, %d connections, p99 %.2f ms, %ld KiB more\n", floods[i].name,
               atomic_load(&flood.sent), atomic_load(&flood.connections), (double)p99_ns / 1e6,
               growth_kib);
        assert_true(atomic_load(&flood.sent) > 20); /* else it was no flood */
        assert_growth(growth_kib, GROWTH_KIB);
    }
    close_server(base, server);
}

/* The most memory that is used while flooders connect again as soon as they have sent their flood,
 * so that many connections linger at once. Between them the server is asked something, which is
 * answered when it has accepted all connections before: if more came than the kernel's queue holds,
 * the kernel would drop them, and take up to a minute to connect others. */
static long run_reconnecting(int port, int held)
{
    enum { RECONNECTS = 2500, UNITS = 600 };
    char *batch = malloc(1 << 20);
    int *fds = malloc((size_t)held * sizeof(fds[0]));
    size_t size = h2_frame(batch, 4, 0, 0, NULL, 0);
    long most_kib = resident_kib();
    for (uint32_t number = 0; number < UNITS; number++) {
        size += rapid_reset(batch + size, number);
    }
    for (int i = 0; i < RECONNECTS; i++) {
        int *fd = &fds[i % held];
        if (i >= held) {
            close(*fd);
        }
        *fd = client_connect(port);
        assert_true(*fd >= 0);
        if (client_send(*fd, h2_preface, sizeof(h2_preface) - 1)) {
            (void)client_send(*fd, batch, size); /* may be cut off */
        }
        if (i % 50 == 0) {
            char request[200];
            const struct answer answer =
                client_exchange(port, request, client_get(request, sizeof(request), "/healthz"));
            const long now_kib = resident_kib();
            assert_int_equal(answer.status, 200);
            most_kib = now_kib > most_kib ? now_kib : most_kib;
        }
    }
    for (int i = 0; i < held; i++) {
        close(fds[i]);
    }
    free(fds);
    free(batch);
    return most_kib;
}

static void test_serve_floods__do_not_add_up(void **state)
{
    (void)state;
    static const int held[] = {1, 200}; /* connections that a flooder leaves open */
    char base[64];
    struct fake_runtime runtime = {0};
    sx_server *server = NULL;
    open_server(base, &runtime, 0, &server);
    const int port = sx_server_rest_port(server);
    (void)call_well(port);
    for (size_t i = 0; i < SX_COUNT(held); i++) {
        const long before_kib = resident_kib();
        const long growth_kib = run_reconnecting(port, held[i]) - before_kib;
        printf("%d held: %ld KiB more at most\n", held[i], growth_kib);
        assert_growth(growth_kib, GROWTH_KIB);
        (void)call_well(port);
    }
    close_server(base, server);
}

/* Peers that ask for pages and never read them: what waits for them is part of the memory of
 * requests, and others are answered. */
static void test_serve_floods__slow_readers_are_charged(void **state)
{
    (void)state;
    enum { READERS = 48, REQUESTS = 100, MEMORY_BYTES = 8 << 20, STREAM_KIB = 8 };
    static const char no_window[] = {0, 4, 0, 0, 0, 0}; /* SETTINGS_INITIAL_WINDOW_SIZE: 0 */
    char base[64], *batch = malloc(1 << 20);
    struct fake_runtime runtime = {0};
    sx_server *server = NULL;
    int fds[READERS];
    open_server(base, &runtime, MEMORY_BYTES, &server);
    const int port = sx_server_rest_port(server);
    (void)call_well(port);
    const long before_kib = resident_kib();
    size_t size = h2_frame(batch, 4, 0, 0, no_window, sizeof(no_window));
    for (uint32_t i = 0; i < REQUESTS; i++) {
        size += h2_head(batch + size, 5, i * 2 + 1, "/monitoring/prometheus/metrics");
    }
    for (int i = 0; i < READERS; i++) {
        fds[i] = client_connect(port);
        assert_true(client_send(fds[i], h2_preface, sizeof(h2_preface) - 1) &&
                    client_send(fds[i], batch, size));
    }
    (void)call_well(port);
    const long growth_kib = resident_kib() - before_kib;
    printf("%d readers: %ld KiB more\n", READERS, growth_kib);
    assert_growth(growth_kib, MEMORY_BYTES / 1024 + READERS * REQUESTS * STREAM_KIB);
    for (int i = 0; i < READERS; i++) {
        close(fds[i]);
    }
    free(batch);
    close_server(base, server);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_floods__leave_others_alone),
    cmocka_unit_test(test_serve_floods__do_not_add_up),
    cmocka_unit_test(test_serve_floods__slow_readers_are_charged),
};
SX_TEST_MAIN(tests)
