/* A server under load for a while, over HTTP: `make soak`. Each test prints the load that it
 * reached, and fails without. */
#include "harness.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/checked.h"
#include "base/clock.h"
#include "net/client.h"
#include "serve/fake_server.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_server *server;
    int port;
};

/* `kind` has what is particular about the runtime. */
static void open_scene_of(struct scene *scene, const struct scene *kind, sx_server_config config,
                          int run_ms)
{
    memcpy(scene, kind, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "1", 1, 0, run_ms, 0);
    config.file_system_poll_wait_seconds = 0.05;
    fake_serve(scene->base, &scene->runtime, config, &scene->server);
    assert_true(sx_server_wait_ready(scene->server, 5000));
    scene->port = sx_server_rest_port(scene->server);
}

static void open_scene(struct scene *scene, sx_server_config config, int run_ms)
{
    static const struct scene plain;
    open_scene_of(scene, &plain, config, run_ms);
}

static void close_scene(struct scene *scene)
{
    sx_server_destroy(scene->server);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    for (int version = 0; version < 200; version++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", version);
        fake_remove_version(scene->base, name);
    }
    rmdir(scene->base);
}

static size_t predict_request(char *out, size_t capacity)
{
    return client_post(out, capacity, "/v1/models/m:predict", "{\"inputs\": [1]}");
}

/* ---- Swaps ---- */

struct load {
    const struct scene *scene;
    atomic_bool stop;
    atomic_int answered, lost, newest;
};

/* One connection, one request after the other; an answer is the number of the version. */
static void *ask_for_ever(void *user)
{
    struct load *load = user;
    char request[300];
    const size_t size = predict_request(request, sizeof(request));
    const int fd = client_connect(load->scene->port);
    while (!atomic_load(&load->stop)) {
        client_send(fd, request, size);
        const struct answer answer = client_answer(fd);
        const char *list = strchr(answer.body, '[');
        const int version = answer.status == 200 && list != NULL ? atoi(list + 1) : 0;
        atomic_fetch_add(&load->lost, version == 0);
        atomic_fetch_add(&load->answered, 1);
        if (version != 0) {
            atomic_store(&load->newest, version);
        }
    }
    close(fd);
    return NULL;
}

static void wait_newest(struct load *load, int version)
{
    const int64_t begin = sx_now_ns();
    while (atomic_load(&load->newest) != version) {
        assert_true(sx_now_ns() - begin < (int64_t)60 * 1000000000);
        fake_sleep(1);
    }
}

/* A hundred versions, every fifth of them taken away again, which brings the one before back. */
static void test_serve_soak__swaps_lose_nothing(void **state)
{
    (void)state;
    enum { CLIENTS = 4, SWAPS = 100 };
    static struct scene scene;
    static struct load load;
    pthread_t clients[CLIENTS];
    size_t used_early = 0;
    int newest = 1;
    open_scene(&scene, (sx_server_config){0}, 0);
    load.scene = &scene;
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i], NULL, ask_for_ever, &load), 0);
    }
    for (int i = 0; i < SWAPS; i++) {
        char name[20], before[20];
        const int version = 2 + i;
        snprintf(name, sizeof(name), "%d", version);
        snprintf(before, sizeof(before), "%d", newest);
        fake_publish(scene.base, name, version, 1, 0, 0);
        wait_newest(&load, version);
        if (i % 5 == 4) {
            fake_remove_version(scene.base, name);
            wait_newest(&load, newest);
        } else {
            fake_remove_version(scene.base, before);
            newest = version;
        }
        used_early = i == 9 ? mallinfo2().uordblks : used_early;
    }
    const size_t used = mallinfo2().uordblks;
    atomic_store(&load.stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    print_message("%d requests during %d swaps and %d returns: %d lost; memory %+lld bytes\n",
                  atomic_load(&load.answered), SWAPS, SWAPS / 5, atomic_load(&load.lost),
                  (long long)used - (long long)used_early);
    assert_int_equal(atomic_load(&load.lost), 0);
    assert_true(atomic_load(&load.answered) > 1000);
    assert_true(used < used_early + (256 << 10));
    close_scene(&scene);
}

/* ---- Overload ---- */

struct sender {
    pthread_t thread;
    const struct scene *scene;
    int64_t first_ns, period_ns; /* 0: one after the other */
    int64_t end_ns;
    int64_t patience_ns; /* later answers are not good */
    int sent, good;
    int64_t slowest_refusal_ns;
};

/* At its times, whatever becomes of the ones before (which end within a period). */
static void *send_on_time(void *user)
{
    struct sender *sender = user;
    char request[300];
    const size_t size = predict_request(request, sizeof(request));
    int fd = client_connect(sender->scene->port);
    for (int64_t next_ns = sender->first_ns; sx_now_ns() < sender->end_ns;
         next_ns += sender->period_ns) {
        while (sender->period_ns > 0 && sx_now_ns() < next_ns) {
            const int64_t left_ns = SX_MAX(next_ns - sx_now_ns(), (int64_t)1);
            nanosleep(&(struct timespec){.tv_nsec = left_ns % 1000000000}, NULL);
        }
        const int64_t begin = sx_now_ns();
        client_send(fd, request, size);
        const struct answer answer = client_answer(fd);
        sender->sent++;
        sender->good += answer.status == 200 && sx_now_ns() - begin <= sender->patience_ns;
        if (answer.status == 503 || answer.status == 429) {
            sender->slowest_refusal_ns = SX_MAX(sender->slowest_refusal_ns, sx_now_ns() - begin);
        }
        if (answer.status == 0) {
            close(fd);
            fd = client_connect(sender->scene->port);
        }
    }
    close(fd);
    return NULL;
}

/* Good answers a second. */
static double send_for(const struct scene *scene, int senders, int64_t period_ns,
                       int64_t patience_ns, double seconds, double *out_sent,
                       int64_t *out_slowest_refusal_ns)
{
    static struct sender all[200];
    const int64_t begin = sx_now_ns();
    int good = 0, sent = 0;
    for (int i = 0; i < senders; i++) {
        all[i] = (struct sender){.scene = scene,
                                 .first_ns = begin + period_ns * i / senders,
                                 .period_ns = period_ns,
                                 .patience_ns = patience_ns,
                                 .end_ns = begin + (int64_t)(seconds * 1e9)};
        assert_int_equal(pthread_create(&all[i].thread, NULL, send_on_time, &all[i]), 0);
    }
    for (int i = 0; i < senders; i++) {
        pthread_join(all[i].thread, NULL);
        good += all[i].good;
        sent += all[i].sent;
        *out_slowest_refusal_ns = SX_MAX(*out_slowest_refusal_ns, all[i].slowest_refusal_ns);
    }
    *out_sent = sent / seconds;
    return good / seconds;
}

/* Three times what a server can do, each request with a deadline: clients have four fifths of that
 * in time. `at_peak` clients, one request after the other, get all that it can do without one. */
static void overload(const struct scene *kind, sx_server_config config, int run_ms, int at_peak)
{
    enum { SENDERS = 120, DEADLINE_MS = 50 };
    static struct scene scene;
    double sent = 0;
    int64_t slowest_ns = 0;
    open_scene_of(&scene, kind, config, run_ms);
    const double peak = send_for(&scene, at_peak, 0, INT64_MAX, 3, &sent, &slowest_ns);
    close_scene(&scene);
    config.rest_api_timeout_in_ms = DEADLINE_MS;
    open_scene_of(&scene, kind, config, run_ms);
    const int64_t period_ns = (int64_t)(SENDERS / (3 * peak) * 1e9);
    const double good = send_for(&scene, SENDERS, period_ns, DEADLINE_MS * (int64_t)1000000, 15,
                                 &sent, &slowest_ns);
    print_message(
        "peak %.0f/s; at %.0f/s: %.0f/s good, %.2f of the peak; slowest refusal %.1f ms\n", peak,
        sent, good, good / peak, (double)slowest_ns / 1e6);
    assert_true(sent > 2.5 * peak);
    assert_true(good > 0.8 * peak);
    assert_true(slowest_ns < 50 * (int64_t)1000000);
    close_scene(&scene);
}

static void test_serve_soak__overload_leaves_goodput(void **state)
{
    static const struct scene kind;
    (void)state;
    overload(&kind, (sx_server_config){.rest_api_num_threads = 2}, 10, 4);
}

/* A run of one row takes 11 ms, one of 16 takes 26. */
static void test_serve_soak__overload_of_batches_leaves_goodput(void **state)
{
    static const struct scene kind = {.runtime = {.batched = true, .row_ms = 1}};
    (void)state;
    overload(&kind, (sx_server_config){.rest_api_num_threads = 1}, 10, 40);
}

/* ---- Idle connections ---- */

enum { IDLE = 10000 };

/* Opens them, says so, and keeps them until told to go; in a process of its own. */
static void hold_idle(int from_parent, int to_parent)
{
    static int fds[IDLE];
    char request[300];
    int port = 0, held = 0;
    const size_t size = client_get(request, sizeof(request), "/healthz");
    if (read(from_parent, &port, sizeof(port)) != sizeof(port)) {
        _exit(1);
    }
    for (; held < IDLE; held++) { /* each has had an answer, and may have the next */
        fds[held] = client_connect(port);
        if (fds[held] < 0) {
            break;
        }
        client_send(fds[held], request, size);
        if (client_answer(fds[held]).status != 200) {
            break;
        }
    }
    if (write(to_parent, &held, sizeof(held)) != sizeof(held) ||
        read(from_parent, &port, sizeof(port)) != sizeof(port)) {
        _exit(1);
    }
    int alive = 0;
    for (int i = 0; i < held; i++) {
        client_send(fds[i], request, size);
        alive += client_answer(fds[i]).status == 200;
    }
    _exit(write(to_parent, &alive, sizeof(alive)) == sizeof(alive) ? 0 : 1);
}

static int64_t resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void test_serve_soak__ten_thousand_idle_connections(void **state)
{
    (void)state;
    static struct scene scene;
    struct rlimit limit;
    int to_peer[2], from_peer[2], held = 0, alive = 0, exit_code = 1;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < IDLE + 200) {
        SX_SKIP("the limit of open files is below ten thousand");
    }
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    mallopt(M_PERTURB, 0); /* it would touch all of a buffer that no byte has been read into */
    assert_int_equal(pipe(to_peer), 0);
    assert_int_equal(pipe(from_peer), 0);
    const pid_t peer = fork();
    if (peer == 0) {
        hold_idle(to_peer[0], from_peer[1]);
    }
    open_scene(&scene, (sx_server_config){.max_connections = IDLE + 100, .idle_timeout_ms = 600000},
               0);
    const int64_t before = resident_bytes();
    assert_int_equal(write(to_peer[1], &scene.port, sizeof(scene.port)), sizeof(scene.port));
    assert_int_equal(read(from_peer[0], &held, sizeof(held)), sizeof(held));
    const int64_t bytes = resident_bytes() - before;
    assert_int_equal(held, IDLE);
    double sent = 0;
    int64_t slowest_ns = 0;
    const clock_t cpu = clock();
    usleep(1000000);
    const double idle_cpu = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    const double good = send_for(&scene, 4, 0, INT64_MAX, 5, &sent, &slowest_ns);
    assert_int_equal(write(to_peer[1], &held, sizeof(held)), sizeof(held));
    assert_int_equal(read(from_peer[0], &alive, sizeof(alive)), sizeof(alive));
    assert_int_equal(waitpid(peer, &exit_code, 0), peer);
    print_message(
        "%d idle connections: %.1f KiB each, %.3f s of processor in a second; beside them "
        "%.0f requests a second; %d alive afterwards\n",
        held, (double)bytes / held / 1024, idle_cpu, good, alive);
    assert_int_equal(exit_code, 0);
    assert_int_equal(alive, IDLE);
    assert_true(good == sent && good > 100);
    assert_true(bytes / held < 16 * 1024);
    assert_true(idle_cpu < 0.05);
    close(to_peer[0]), close(to_peer[1]), close(from_peer[0]), close(from_peer[1]);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_soak__swaps_lose_nothing),
    cmocka_unit_test(test_serve_soak__overload_leaves_goodput),
    cmocka_unit_test(test_serve_soak__overload_of_batches_leaves_goodput),
    cmocka_unit_test(test_serve_soak__ten_thousand_idle_connections),
};
SX_TEST_MAIN(tests)
