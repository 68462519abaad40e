/* The client of model servers with our own server: tensors and JSON over both protocols. */
#include "harness.h"

#include <sextant/client.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "net/client.h"
#include "serve/fake_server.h"

struct scene {
    char base[64], address[64];
    struct fake_runtime runtime;
    sx_server *server;
    sx_client *client;
};

/* A model "m", which doubles, and a client of its server. */
static void open_scene(struct scene *scene, sx_client_options options)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", 2, 0, 0, 0);
    fake_serve(scene->base, &scene->runtime, (sx_server_config){0}, &scene->server);
    assert_true(sx_server_wait_ready(scene->server, 5000));
    snprintf(scene->address, sizeof(scene->address), "http://127.0.0.1:%d",
             sx_server_rest_port(scene->server));
    options.struct_size = sizeof(options);
    assert_ok(sx_client_open(scene->address, &options, &scene->client));
}

static void close_scene(struct scene *scene)
{
    sx_client_close(scene->client);
    sx_server_destroy(scene->server);
    fake_remove_version(scene->base, "2");
    rmdir(scene->base);
}

static const sx_client_protocol protocols[] = {SX_CLIENT_REST, SX_CLIENT_GRPC};
static const sx_client_model m = {.name = "m"};

static void test_client_client__predicts_tensors(void **state)
{
    (void)state;
    float x[] = {1, 2.5f, -3, 0, 1e-30f, 4}, a[] = {1, 2}, b[] = {10, 20};
    sx_bytes words[] = {{"hi", 2}, {"\xff\x00", 2}};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        sx_client_answer *answer = NULL;
        int count = 0;
        open_scene(&scene, (sx_client_options){.protocol = protocols[i], .timeout_ms = INT64_MAX});
        const sx_client_tensor named = {"x", {sx_type_of(SX_F32, 2, 3), x}},
                               nameless = {NULL, named.tensor};
        const sx_client_tensor *inputs[] = {&named, &nameless};
        for (int k = 0; k < 2; k++) {
            assert_ok(sx_client_predict(scene.client, &m, inputs[k], 1, &answer));
            const sx_client_tensor *tensors = sx_client_answer_tensors(answer, &count);
            assert_int_equal(count, 1);
            assert_string_equal(tensors[0].name, "y");
            assert_true(sx_type_equal(&tensors[0].tensor.type, &named.tensor.type));
            for (int e = 0; e < 6; e++) {
                assert_true(((const float *)tensors[0].tensor.data)[e] == 2 * x[e]);
            }
            assert_null(sx_client_answer_find(answer, "z"));
            sx_client_answer_free(answer);
        }
        const sx_client_tensor pair[] = {{"b", {sx_type_of(SX_F32, 2), b}},
                                         {"a", {sx_type_of(SX_F32, 2), a}}};
        const sx_client_model sums = {.name = "m", .version = "2", .signature = "pair"};
        assert_ok(sx_client_predict(scene.client, &sums, pair, 2, &answer));
        const float *sum = sx_client_answer_find(answer, "sum")->data;
        assert_true(sum[0] == 11 && sum[1] == 22);
        sx_client_answer_free(answer);
        const sx_client_tensor text = {"s", {sx_type_of(SX_STRING, 2), words}};
        const sx_client_model echo = {.name = "m", .signature = "text"};
        assert_ok(sx_client_predict(scene.client, &echo, &text, 1, &answer));
        const sx_bytes *texts = sx_client_answer_find(answer, "echo_bytes")->data;
        for (int k = 0; k < 2; k++) {
            assert_int_equal(texts[k].size, words[k].size);
            assert_memory_equal(texts[k].data, words[k].data, words[k].size);
        }
        sx_client_answer_free(answer);
        close_scene(&scene);
    }
}

static void test_client_client__refuses(void **state)
{
    (void)state;
    float x[] = {1, 2};
    const sx_client_tensor named = {"x", {sx_type_of(SX_F32, 2), x}},
                           nameless[] = {{NULL, named.tensor}, {"b", named.tensor}},
                           wrong = {"z", named.tensor};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        sx_client_answer *answer = NULL;
        open_scene(&scene, (sx_client_options){.protocol = protocols[i]});
        const sx_client_model other = {.name = "other"}, no = {.name = "m", .signature = "no"};
        const sx_client_model pair = {.name = "m", .signature = "pair"};
        assert_error(sx_client_predict(scene.client, &other, &named, 1, &answer), SX_NOT_FOUND,
                     "Servable not found for request: Latest(other)");
        assert_error(sx_client_predict(scene.client, &no, &nameless[0], 1, &answer),
                     SX_FAILED_PRECONDITION, "Serving signature key \"no\" not found");
        assert_error(sx_client_predict(scene.client, &pair, &nameless[0], 1, &answer),
                     SX_INVALID_ARGUMENT, "signature \"pair\" has 2 inputs");
        assert_error(sx_client_predict(scene.client, &m, nameless, 2, &answer), SX_INVALID_ARGUMENT,
                     "one of them without a name");
        assert_error(sx_client_predict(scene.client, &m, &named, 0, &answer), SX_INVALID_ARGUMENT,
                     "no inputs");
        sx_status status = sx_client_predict(scene.client, &pair, &wrong, 1, &answer);
        assert_int_equal(sx_status_code(status), SX_INVALID_ARGUMENT);
        sx_status_free(status);
        assert_error(
            sx_client_ask(scene.client, SX_CLIENT_PREDICT, &m, (sx_bytes){"[1", 2}, &answer),
            SX_INVALID_ARGUMENT, "");
        assert_null(answer);
        close_scene(&scene);
    }
    sx_client *client = NULL;
    assert_error(sx_client_open("ftp://localhost", NULL, &client), SX_INVALID_ARGUMENT,
                 "not a model server");
    assert_error(sx_client_open("", NULL, &client), SX_INVALID_ARGUMENT, "not a model server");
}

static void test_client_client__asks_in_json(void **state)
{
    (void)state;
    static const char request[] = " {\"instances\": [[1, 2, 3]]}";
    sx_bytes first = {NULL, 0};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        sx_client_answer *answers[3];
        open_scene(&scene, (sx_client_options){.protocol = protocols[i]});
        const sx_client_model named = {.name = "m", .signature = "serving_default"};
        assert_ok(sx_client_ask(scene.client, SX_CLIENT_PREDICT, &named,
                                (sx_bytes){request, sizeof(request) - 1}, &answers[0]));
        assert_non_null(
            strstr(sx_client_answer_json(answers[0]).data, "\"predictions\": [[2.0, 4.0, 6.0]"));
        assert_ok(sx_client_ask(scene.client, SX_CLIENT_STATUS, &m, (sx_bytes){0}, &answers[1]));
        assert_non_null(strstr(sx_client_answer_json(answers[1]).data, "\"state\": \"AVAILABLE\""));
        assert_ok(sx_client_ask(scene.client, SX_CLIENT_METADATA, &m, (sx_bytes){0}, &answers[2]));
        const sx_bytes metadata = sx_client_answer_json(answers[2]);
        assert_non_null(strstr(metadata.data, "\"echo_bytes\": {"));
        if (i == 0) {
            first = (sx_bytes){strdup(metadata.data), metadata.size};
        } else { /* gRPC says the same */
            assert_string_equal((const char *)metadata.data, (const char *)first.data);
        }
        for (size_t k = 0; k < 3; k++) {
            sx_client_answer_free(answers[k]);
        }
        close_scene(&scene);
    }
    free((void *)(uintptr_t)first.data);
}

/* A client whose server is gone says so, and goes on when there is one again. */
static void test_client_client__ends_in_time(void **state)
{
    (void)state;
    float x[] = {1, 2, 3};
    const sx_client_tensor input = {"x", {sx_type_of(SX_F32, 1, 3), x}};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        sx_client_answer *answer = NULL;
        open_scene(&scene,
                   (sx_client_options){.protocol = protocols[i], .timeout_ms = 200, .retries = -1});
        fake_publish(scene.base, "9", 2, 0, 2000, 0);
        const sx_client_model slow = {.name = "m", .version = "9"};
        sx_status status;
        while (sx_status_code(status = sx_client_predict(scene.client, &slow, &input, 1,
                                                         &answer)) == SX_NOT_FOUND ||
               sx_status_code(status) == SX_UNAVAILABLE) {
            sx_status_free(status);
            fake_sleep(20);
        }
        assert_int_equal(sx_status_code(status), SX_DEADLINE_EXCEEDED);
        sx_status_free(status);
        sx_client_close(scene.client);
        assert_ok(sx_client_open("127.0.0.1:1",
                                 &(sx_client_options){.struct_size = sizeof(sx_client_options),
                                                      .protocol = protocols[i]},
                                 &scene.client));
        assert_error(sx_client_predict(scene.client, &m, &input, 1, &answer), SX_UNAVAILABLE, "");
        sx_server_destroy(scene.server);
        scene.server = NULL;
        fake_remove_version(scene.base, "9");
        close_scene(&scene);
    }
}

static int connections_so_far(const struct scene *scene)
{
    static const char name[] = "\nsextant_http_connections_total ";
    char request[300];
    const struct answer answer =
        client_exchange(sx_server_rest_port(scene->server), request,
                        client_get(request, sizeof(request), "/monitoring/prometheus/metrics"));
    const char *at = strstr(answer.body, name);
    assert_non_null(at);
    return (int)strtol(at + strlen(name), NULL, 10);
}

/* The server refuses a call at its deadline, which is an answer: the connection can be kept. */
static void test_client_client__keeps_the_connection_of_a_late_call(void **state)
{
    (void)state;
    float x[] = {1, 2, 3};
    const sx_client_tensor input = {"x", {sx_type_of(SX_F32, 1, 3), x}};
    for (int keeps = 0; keeps < 2; keeps++) {
        struct scene scene;
        sx_client_answer *answer = NULL;
        int late = 0;
        open_scene(&scene, (sx_client_options){.protocol = SX_CLIENT_GRPC,
                                               .timeout_ms = 100,
                                               .retries = -1,
                                               .keep_ms = keeps * 60000});
        fake_publish(scene.base, "9", 2, 0, 400, 0);
        const sx_client_model slow = {.name = "m", .version = "9"};
        const int before = connections_so_far(&scene);
        while (late < 3) {
            sx_status status = sx_client_predict(scene.client, &slow, &input, 1, &answer);
            late += sx_status_code(status) == SX_DEADLINE_EXCEEDED;
            assert_true(status != SX_OK);
            sx_status_free(status);
            if (late == 0) { /* it is not loaded yet */
                nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            }
        }
        assert_int_equal(connections_so_far(&scene) - before - 1, keeps ? 1 : 3);
        fake_remove_version(scene.base, "9");
        close_scene(&scene);
    }
}

/* A peer that speaks plain HTTP/2: reads a request and answers the same frames to each. */
struct peer {
    pthread_t thread;
    int fd;
    char address[64];
    sx_bytes frames;
    bool breaks_off; /* after them */
    atomic_int requests;
};

/* Whether a whole request has come: the frame that ends the stream. */
static bool read_request(int fd)
{
    enum { PREFACE = 24, HEAD = 9, END_STREAM = 1 };
    unsigned char head[PREFACE], payload[16384];
    bool more = recv(fd, head, PREFACE, MSG_WAITALL) == PREFACE, ended = false;
    while (more && !ended) {
        more = recv(fd, head, HEAD, MSG_WAITALL) == HEAD;
        const size_t size = ((size_t)head[0] << 16) + ((size_t)head[1] << 8) + head[2];
        more = more && size <= sizeof(payload) &&
               (size == 0 || recv(fd, payload, size, MSG_WAITALL) == (ssize_t)size);
        ended = more && head[3] <= 1 && (head[4] & END_STREAM) != 0; /* DATA, HEADERS */
    }
    return ended;
}

static void *run_peer(void *user)
{
    struct peer *peer = user;
    int fd;
    while ((fd = accept(peer->fd, NULL, NULL)) >= 0) {
        if (read_request(fd)) {
            atomic_fetch_add(&peer->requests, 1);
            (void)!write(fd, peer->frames.data, peer->frames.size);
            if (peer->breaks_off) {
                shutdown(fd, SHUT_WR);
            }
            char rest[1000];
            while (read(fd, rest, sizeof(rest)) > 0) {
            }
        }
        close(fd);
    }
    return NULL;
}

static void open_peer(struct peer *peer, const void *frames, size_t size, bool breaks_off)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t at_size = sizeof(at);
    *peer = (struct peer){
        .fd = socket(AF_INET, SOCK_STREAM, 0), .frames = {frames, size}, .breaks_off = breaks_off};
    assert_int_equal(bind(peer->fd, (struct sockaddr *)&at, at_size), 0);
    assert_int_equal(listen(peer->fd, 16), 0);
    assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&at, &at_size), 0);
    snprintf(peer->address, sizeof(peer->address), "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, run_peer, peer), 0);
}

static sx_status ask_peer(const struct peer *peer, sx_client_answer **out)
{
    float x[] = {1};
    sx_client *client = NULL;
    const sx_client_options options = {.struct_size = sizeof(options),
                                       .protocol = SX_CLIENT_GRPC,
                                       .timeout_ms = 10000,
                                       .max_answer_bytes = 1 << 20};
    assert_ok(sx_client_open(peer->address, &options, &client));
    sx_status status =
        sx_client_predict(client, &m, &(sx_client_tensor){"x", {sx_type_of(SX_F32, 1), x}}, 1, out);
    sx_client_close(client);
    return status;
}

static void close_peer(struct peer *peer)
{
    shutdown(peer->fd, SHUT_RD);
    pthread_join(peer->thread, NULL);
    close(peer->fd);
}

#define SETTINGS   "\0\0\0\x04\0\0\0\0\0"
#define STATUS_200 "\0\0\x01\x01\x04\0\0\0\x01\x88"
#define TRAILERS_OK                                   \
    "\0\0\x0f\x01\x05\0\0\0\x01\0\x0bgrpc-status\x01" \
    "0"
#define DATA(size) "\0\0" size "\0\0\0\0\0\x01"

/* An answer that breaks off may be that of a request that ran. */
static void test_client_client__asks_once_what_may_have_run(void **state)
{
    (void)state;
    static const char broken[] = SETTINGS STATUS_200;
    struct peer peer;
    sx_client_answer *answer = NULL;
    open_peer(&peer, broken, sizeof(broken) - 1, true);
    assert_error(ask_peer(&peer, &answer), SX_UNAVAILABLE, "");
    close_peer(&peer);
    assert_int_equal(atomic_load(&peer.requests), 1);
}

/* A tensor of 2^28 zeros is described in a few bytes. */
static void test_client_client__limits_what_an_answer_becomes(void **state)
{
    (void)state;
    static const char large[] =
        SETTINGS STATUS_200 DATA("\x18") "\0\0\0\0\x13"
                                         "\x0a\x11\x0a\x01y\x12\x0c\x08\x01\x12\x08\x12\x06"
                                         "\x08\x80\x80\x80\x80\x01" TRAILERS_OK;
    struct peer peer;
    sx_client_answer *answer = NULL;
    open_peer(&peer, large, sizeof(large) - 1, false);
    assert_error(ask_peer(&peer, &answer), SX_RESOURCE_EXHAUSTED, "over the limit");
    close_peer(&peer);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_client_client__predicts_tensors),
    cmocka_unit_test(test_client_client__refuses),
    cmocka_unit_test(test_client_client__asks_in_json),
    cmocka_unit_test(test_client_client__ends_in_time),
    cmocka_unit_test(test_client_client__keeps_the_connection_of_a_late_call),
    cmocka_unit_test(test_client_client__asks_once_what_may_have_run),
    cmocka_unit_test(test_client_client__limits_what_an_answer_becomes),
};
SX_TEST_MAIN(tests)
