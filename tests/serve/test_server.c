#include "harness.h"

#include <jansson.h>
#include <pthread.h>

#include "base/checked.h"
#include "base/clock.h"
#include "io/compress.h"
#include "net/client.h"
#include "net/http2_client.h"
#include "serve/fake_server.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_server *server;
    int port;
};

/* A server of version 2, which doubles and takes load_ms to load; does not wait for it. */
static void start_scene(struct scene *scene, sx_server_config config, int load_ms, int run_ms)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", 2, load_ms, run_ms, 0);
    config.file_system_poll_wait_seconds = 0.05;
    fake_serve(scene->base, &scene->runtime, config, &scene->server);
    scene->port = sx_server_rest_port(scene->server);
}

static void wait_ready(struct scene *scene)
{
    assert_true(sx_server_wait_ready(scene->server, 5000));
    assert_ok(sx_server_model_error(scene->server));
}

/* The same, ready. `config` may bring limits. */
static void open_scene(struct scene *scene, sx_server_config config, int run_ms)
{
    start_scene(scene, config, 0, run_ms);
    wait_ready(scene);
}

static void close_scene(struct scene *scene)
{
    sx_server_destroy(scene->server);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    for (int version = 0; version < 100; version++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", version);
        fake_remove_version(scene->base, name);
    }
    rmdir(scene->base);
}

static struct answer post(const struct scene *scene, const char *path, const char *body)
{
    char request[4096];
    return client_exchange(scene->port, request, client_post(request, sizeof(request), path, body));
}

static struct answer get(const struct scene *scene, const char *path)
{
    char request[1024];
    return client_exchange(scene->port, request, client_get(request, sizeof(request), path));
}

static void assert_answer(struct answer answer, int status, const char *body)
{
    if (answer.status != status || strcmp(answer.body, body) != 0) {
        fail_msg("got %d %s\nexpected %d %s", answer.status, answer.body, status, body);
    }
}

static void assert_says(struct answer answer, int status, const char *part)
{
    if (answer.status != status || !strstr(answer.body, part)) {
        fail_msg("got %d %s\nexpected %d with %s", answer.status, answer.body, status, part);
    }
    assert_non_null(strstr(answer.head, "Content-Type: application/json"));
}

static void test_serve_server__predicts(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    assert_answer(post(&scene, "/v1/models/m:predict", "{\"instances\": [1, 2.5, -3]}"), 200,
                  "{\n    \"predictions\": [2.0, 5.0, -6.0\n    ]\n}");
    assert_answer(post(&scene, "/v1/models/m/versions/2:predict", "{\"inputs\": [[1, 2], [3, 4]]}"),
                  200, "{\n    \"outputs\": [[2.0, 4.0], [6.0, 8.0]]\n}");
    assert_answer(post(&scene, "/v1/models/m:predict",
                       "{\"signature_name\":\"pair\",\"instances\":[{\"a\":1,\"b\":2}]}"),
                  200,
                  "{\n    \"predictions\": [\n        {\n            \"sum\": 3.0,\n"
                  "            \"twice\": 2.0\n        }\n    ]\n}");
    assert_answer(post(&scene, "/v1/models/m:predict",
                       "{\"signature_name\":\"text\",\"inputs\":[{\"b64\":\"aGk=\"}]}"),
                  200,
                  "{\n    \"outputs\": {\n        \"echo\": [\"hi\"],\n"
                  "        \"echo_bytes\": [{\"b64\": \"aGk=\"}]\n    }\n}");
    close_scene(&scene);
}

static void test_serve_server__answers_errors_as_tensorflow_serving(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    assert_answer(post(&scene, "/v1/models/other:predict", "{}"), 404,
                  "{\n    \"error\": \"Servable not found for request: Latest(other)\"\n}");
    assert_says(post(&scene, "/v1/models/m/versions/9:predict", "{}"), 404,
                "Servable not found for request: Specific(m, 9)");
    assert_says(post(&scene, "/v1/models/m/labels/x:predict", "{}"), 400, "version label: x");
    assert_says(post(&scene, "/v1/models/m:predict", "{"), 400, "JSON Parse error");
    assert_says(post(&scene, "/v1/models/m:predict", "{}"), 400, "Missing 'inputs' or 'instances'");
    assert_says(
        post(&scene, "/v1/models/m:predict", "{\"signature_name\":\"no\",\"instances\":[1]}"), 400,
        "Serving signature name: \\\"no\\\" not found in signature def");
    assert_says(post(&scene, "/v1/models/m:classify", "{}"), 400,
                "key 'examples' is expected and was not found");
    assert_says(post(&scene, "/v1/models/m:regress", "{\"examples\": [{}]}"), 400,
                "No regression inputs found in SignatureDef: ");
    assert_says(get(&scene, "/v1/models/m:predict"), 400,
                "Malformed request: GET /v1/models/m:predict");
    assert_says(get(&scene, "/v1/models"), 400, "Missing model name");
    assert_says(get(&scene, "/v1/models/other"), 404, "Could not find any versions of model other");
    assert_says(get(&scene, "/v1/models/m/versions/7"), 404, "version 7");
    assert_says(get(&scene, "/v1/models/other/metadata"), 404, "Servable not found");
    assert_says(get(&scene, "/nothing"), 404, "Not found");
    assert_says(post(&scene, "/healthz", ""), 405, "method not allowed; use GET");
    close_scene(&scene);
}

static void test_serve_server__shows_status_metadata_health(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    static const char available[] = "{\n \"model_version_status\": [\n  {\n   \"version\": "
                                    "\"2\",\n   \"state\": \"AVAILABLE\",\n"
                                    "   \"status\": {\n    \"error_code\": \"OK\",\n    "
                                    "\"error_message\": \"\"\n   }\n  }\n ]\n}\n";
    assert_answer(get(&scene, "/v1/models/m"), 200, available);
    assert_answer(get(&scene, "/v1/models/m/versions/2"), 200, available);
    assert_answer(get(&scene, "/v1/models/m/labels/any"), 200, available);
    const struct answer metadata = get(&scene, "/v1/models/m/metadata");
    assert_says(metadata, 200,
                "{\n\"model_spec\":{\n \"name\": \"m\",\n \"signature_name\": \"\",\n"
                " \"version\": \"2\"\n}\n,\n\"metadata\": {\"signature_def\": {\n"
                " \"signature_def\": {\n   \"serving_default\": {\n");
    assert_says(
        metadata, 200,
        "     \"y\": {\n      \"dtype\": \"DT_FLOAT\",\n      \"tensor_shape\": {\n"
        "       \"dim\": [\n        {\n         \"size\": \"-1\",\n         \"name\": \"\"\n"
        "        },\n        {\n         \"size\": \"3\",\n         \"name\": \"\"\n        }\n"
        "       ],\n       \"unknown_rank\": false\n      },\n      \"name\": \"y:0\"\n     }");
    assert_says(metadata, 200, "\"unknown_rank\": true");
    json_t *json = json_loads(metadata.body, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    const json_t *defs = json_object_get(
        json_object_get(json_object_get(json, "metadata"), "signature_def"), "signature_def");
    const json_t *pair = json_object_get(defs, "pair");
    assert_int_equal(json_object_size(json_object_get(pair, "inputs")), 2);
    assert_int_equal(json_object_size(json_object_get(pair, "outputs")), 2);
    json_decref(json);
    assert_says(metadata, 200, "\"method_name\": \"tensorflow/serving/predict\"");
    assert_answer(get(&scene, "/healthz"), 200, "{\"live\": true}\n");
    assert_answer(get(&scene, "/v2/health/ready"), 200, "{\"ready\": true}\n");
    post(&scene, "/v1/models/m:predict", "{\"instances\": [1]}");
    post(&scene, "/v1/models/m:predict", "{\"instances\": []}");
    const struct answer metrics = get(&scene, "/monitoring/prometheus/metrics");
    assert_int_equal(metrics.status, 200);
    assert_non_null(strstr(metrics.head, "Content-Type: text/plain"));
    assert_non_null(strstr(metrics.body, ":tensorflow:serving:request_count{model_name=\"m\","
                                         "status=\"OK\"} 1\n"));
    assert_non_null(strstr(metrics.body, "status=\"INVALID_ARGUMENT\"} 1\n"));
    assert_non_null(strstr(metrics.body, "\nsextant_http_connections_shed_total 0\n"));
    assert_non_null(strstr(metrics.body, "\nsextant_http_refused_total 0\n"));
    close_scene(&scene);
}

static void test_serve_server__answers_preflights(void **state)
{
    (void)state;
    struct scene scene;
    static const char preflight[] = "OPTIONS /v1/models/m:predict HTTP/1.1\r\nHost: a\r\n"
                                    "Origin: http://page.example\r\n\r\n";
    static const char anonymous[] = "OPTIONS /v1/models/m:predict HTTP/1.1\r\nHost: a\r\n\r\n";
    open_scene(&scene, (sx_server_config){.rest_api_enable_cors_support = true}, 0);
    struct answer answer = client_exchange(scene.port, preflight, sizeof(preflight) - 1);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Access-Control-Allow-Origin: *"));
    assert_int_equal(client_exchange(scene.port, anonymous, sizeof(anonymous) - 1).status, 400);
    close_scene(&scene);
    open_scene(&scene, (sx_server_config){0}, 0);
    answer = client_exchange(scene.port, preflight, sizeof(preflight) - 1);
    assert_int_equal(answer.status, 200);
    assert_null(strstr(answer.head, "Access-Control"));
    close_scene(&scene);

    /* Pages of other origins may send their keys, and are told that they have to. */
    static const char keyless[] = "GET /v1/models/m HTTP/1.1\r\nHost: a\r\n"
                                  "Origin: http://page.example\r\n\r\n";
    static const char keys[] = "me sesame-sesame-sesame-sesame\n";
    char path[] = "/tmp/sextant-keys-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, keys, sizeof(keys) - 1), sizeof(keys) - 1);
    close(fd);
    open_scene(&scene,
               (sx_server_config){.rest_api_enable_cors_support = true, .auth.api_keys_file = path},
               0);
    answer = client_exchange(scene.port, keyless, sizeof(keyless) - 1);
    assert_int_equal(answer.status, 401);
    assert_non_null(strstr(answer.head, "Access-Control-Allow-Origin: *"));
    assert_non_null(strstr(answer.head, "WWW-Authenticate: Bearer"));
    answer = client_exchange(scene.port, preflight, sizeof(preflight) - 1);
    assert_non_null(
        strstr(answer.head, "Access-Control-Allow-Headers: Content-Type, Authorization"));
    close_scene(&scene);
    unlink(path);
}

static struct answer post_gzip(const struct scene *scene, sx_bytes plain, bool spoil)
{
    sx_buf packed, request;
    sx_deflate *deflate = NULL;
    sx_buf_init(&packed, 0);
    sx_buf_init(&request, 0);
    assert_ok(sx_deflate_create(SX_CODEC_GZIP, 6, sx_write_to_buf, &packed, &deflate));
    assert_ok(sx_deflate_write(deflate, plain.data, plain.size));
    assert_ok(sx_deflate_finish(deflate));
    sx_deflate_destroy(deflate);
    packed.data[packed.size / 2] ^= spoil ? 0x55 : 0;
    sx_buf_printf(&request,
                  "POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  packed.size);
    sx_buf_append(&request, packed.data, packed.size);
    const struct answer answer = client_exchange(scene->port, request.data, request.size);
    sx_buf_deinit(&packed);
    sx_buf_deinit(&request);
    return answer;
}

/* gzip works, and a bomb does not (reliability.md R15). */
static void test_serve_server__inflates_bodies_under_a_cap(void **state)
{
    (void)state;
    struct scene scene;
    static const char text[] = "{\"instances\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}";
    const size_t bomb_size = 64 << 20;
    char *bomb = sx_alloc(bomb_size, 1);
    open_scene(&scene, (sx_server_config){.max_body_bytes = 1 << 20}, 0);
    assert_says(post_gzip(&scene, (sx_bytes){text, sizeof(text) - 1}, false), 200, "24.0");
    assert_says(post_gzip(&scene, (sx_bytes){text, sizeof(text) - 1}, true), 400, "gzip body");
    assert_says(post_gzip(&scene, (sx_bytes){bomb, bomb_size}, false), 413, "gzip body");
    close_scene(&scene);
    /* whatever max_body_bytes allows, the work is bounded by what was sent, beyond 1 MiB */
    open_scene(&scene, (sx_server_config){0}, 0);
    memset(bomb, ' ', bomb_size);
    assert_says(post_gzip(&scene, (sx_bytes){bomb, bomb_size / 4}, false), 413,
                "decompresses to more than 16");
    memcpy(bomb, text, sizeof(text) - 1);
    assert_says(post_gzip(&scene, (sx_bytes){bomb, 1 << 20}, false), 200, "24.0");
    sx_free(bomb);
    close_scene(&scene);
}

/* ---- Under load ---- */

struct load {
    struct scene *scene;
    atomic_bool stop;
    atomic_int answered, lost, wrong, versions_seen[100];
};

/* One keep-alive client; reconnects when the server says so. Every answer must be some version's.
 */
static void *run_client(void *user)
{
    struct load *load = user;
    int fd = -1;
    while (!atomic_load(&load->stop)) {
        char request[200];
        double y = 0;
        if (fd < 0 && (fd = client_connect(load->scene->port)) < 0) {
            break;
        }
        client_send(
            fd, request,
            client_post(request, sizeof(request), "/v1/models/m:predict", "{\"instances\": [1]}"));
        const struct answer answer = client_answer(fd);
        if (answer.status != 200) {
            atomic_fetch_add(&load->lost, 1);
        } else if (sscanf(answer.body, "{\n    \"predictions\": [%lf", &y) != 1 || y < 2 ||
                   y > 99) {
            atomic_fetch_add(&load->wrong, 1);
        } else {
            atomic_fetch_add(&load->answered, 1);
            atomic_fetch_add(&load->versions_seen[(int)y], 1);
        }
        if (answer.status == 0 || strstr(answer.head, "Connection: close")) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

/* reliability.md R1, R2 in short: versions change under load, bad ones between them; nothing is
 * lost, each answer is that of a version. */
static void test_serve_server__swaps_under_load(void **state)
{
    (void)state;
    enum { CLIENTS = 4, SWAPS = 12 };
    struct scene scene;
    static struct load load;
    pthread_t clients[CLIENTS];
    int seen = 0;
    memset(&load, 0, sizeof(load));
    open_scene(&scene, (sx_server_config){.rest_api_num_loops = 2, .rest_api_num_threads = 2}, 1);
    load.scene = &scene;
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i], NULL, run_client, &load), 0);
    }
    for (int i = 0; i < SWAPS; i++) {
        char name[20];
        const int version = 3 + i;
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(scene.base, name, version, 5, 1, i % 4 == 3);
        const int64_t begin = sx_now_ns();
        while (i % 4 != 3 && atomic_load(&load.versions_seen[version]) == 0 &&
               sx_now_ns() - begin < (int64_t)10 * 1000000000) {
            fake_sleep(1);
        }
    }
    atomic_store(&load.stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    for (int i = 0; i < 100; i++) {
        seen += atomic_load(&load.versions_seen[i]) > 0;
    }
    assert_int_equal(atomic_load(&load.lost), 0);
    assert_int_equal(atomic_load(&load.wrong), 0);
    assert_int_equal(seen, 1 + SWAPS - SWAPS / 4); /* the load reached every good version */
    assert_true(atomic_load(&load.answered) > 100);
    close_scene(&scene);
}

/* ---- Threads that run requests ---- */

enum { TRUST = 5000 }; /* requests after which a quick model has surely been run by the loop */

static const char one_value[] = "{\"instances\": [1]}";

/* The thread that ran a request on connection `fd`. */
static int thread_of(struct scene *scene, int fd, const char *body)
{
    char request[200];
    client_send(fd, request, client_post(request, sizeof(request), "/v1/models/m:predict", body));
    assert_int_equal(client_answer(fd).status, 200);
    return atomic_load(&scene->runtime.thread);
}

/* Sends quick requests until one is run by another thread than `executor`; 0 if none is. */
static int gain_trust(struct scene *scene, int fd, int executor)
{
    for (int i = 0; i < TRUST; i++) {
        const int thread = thread_of(scene, fd, one_value);
        if (thread != executor) {
            return thread;
        }
    }
    return 0;
}

/* A quick model comes to be run on the loop's thread; after a new version, or a slow request, and
 * while another request has the device, it is left to the executor. */
static void test_serve_server__quick_models_skip_the_queue(void **state)
{
    (void)state;
    struct scene scene;
    char request[40000], numbers[30000] = "", slow[200];
    const sx_server_config config = {.rest_api_num_loops = 1, .rest_api_num_threads = 1};
    open_scene(&scene, config, 0);
    const int fd = client_connect(scene.port);
    const int executor = thread_of(&scene, fd, one_value); /* its cost is not known yet */
    const int loop = gain_trust(&scene, fd, executor);
    assert_int_not_equal(loop, 0);

    /* A large request goes to the executor, whatever the trust; a small one waits behind it there,
     * and the loop goes on. */
    atomic_store(&scene.runtime.gated, true);
    for (size_t i = 0; i + 10 < sizeof(numbers); i += 2) {
        memcpy(numbers + i, i == 0 ? "1 " : ",1", 2);
    }
    const int large = client_connect(scene.port), small = client_connect(scene.port);
    client_send(large, request,
                (size_t)snprintf(request, sizeof(request),
                                 "POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\n"
                                 "Content-Length: %zu\r\n\r\n{\"instances\": [%s]}",
                                 strlen(numbers) + 17, numbers));
    while (atomic_load(&scene.runtime.running) == 0) {
        fake_sleep(1);
    }
    assert_int_not_equal(atomic_load(&scene.runtime.thread), loop);
    client_send(small, slow, client_post(slow, sizeof(slow), "/v1/models/m:predict", one_value));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(&scene, "/healthz").status, 200);
    }
    atomic_store(&scene.runtime.gated, false);
    assert_int_equal(client_answer(large).status, 200);
    assert_int_equal(client_answer(small).status, 200);
    assert_int_not_equal(atomic_load(&scene.runtime.thread), loop);
    close(large), close(small);

    /* A new version: nobody knows what it costs. */
    for (int i = 0; i < TRUST && atomic_load(&scene.runtime.thread) != loop; i++) {
        thread_of(&scene, fd, one_value);
    }
    assert_int_equal(atomic_load(&scene.runtime.thread), loop);
    fake_publish(scene.base, "3", 3, 0, 100, 0);
    while (!strstr(get(&scene, "/v1/models/m/versions/3").body, "AVAILABLE")) {
        fake_sleep(5);
    }
    for (int i = 0; i < 3; i++) { /* and it is slow */
        assert_int_not_equal(thread_of(&scene, fd, one_value), loop);
    }
    close(fd);
    close_scene(&scene);
}

/* Requests that fail say nothing of what a good one costs: the loop must not come to run a slow
 * model because of them. */
static void test_serve_server__failures_earn_no_trust(void **state)
{
    (void)state;
    struct scene scene;
    const sx_server_config config = {.rest_api_num_loops = 1, .rest_api_num_threads = 1};
    open_scene(&scene, config, 30);
    const int fd = client_connect(scene.port);
    const int executor = thread_of(&scene, fd, one_value);
    for (int i = 0; i < 400; i++) {
        char request[200];
        client_send(fd, request,
                    client_post(request, sizeof(request), "/v1/models/m:predict", "{\"bad\""));
        assert_int_equal(client_answer(fd).status, 400);
    }
    assert_int_equal(thread_of(&scene, fd, one_value), executor);
    close(fd);
    close_scene(&scene);
}

/* A small request may hold an image that takes long: never on the loop, however quick the last
 * thousand were. */
static void test_serve_server__images_never_run_on_the_loop(void **state)
{
    (void)state;
    struct scene scene;
    const sx_server_config config = {.rest_api_num_loops = 1, .rest_api_num_threads = 1};
    start_scene(&scene, config, 0, 0);
    scene.runtime.may_take_long = true; /* before the version has settled */
    wait_ready(&scene);
    const int fd = client_connect(scene.port);
    assert_int_equal(gain_trust(&scene, fd, thread_of(&scene, fd, one_value)), 0);
    close(fd);
    close_scene(&scene);
}

/* Requests that find the one run state busy run together, and each gets its own rows. */
static void test_serve_server__merges_waiting_requests(void **state)
{
    (void)state;
    enum { CLIENTS = 7 };
    struct scene scene;
    int fds[CLIENTS];
    char request[200], body[40], expected[60];
    const sx_server_config config = {.rest_api_num_threads = 1};
    start_scene(&scene, config, 0, 0);
    scene.runtime.batched = true; /* before the version has settled */
    wait_ready(&scene);
    atomic_store(&scene.runtime.gated, true);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(scene.port);
        snprintf(body, sizeof(body), "{\"instances\": [%d, %d.5]}", i, i);
        client_send(fds[i], request,
                    client_post(request, sizeof(request), "/v1/models/m:predict", body));
        while (i == 0 && atomic_load(&scene.runtime.running) == 0) {
            fake_sleep(1);
        }
    }
    fake_sleep(200); /* all have been read */
    atomic_store(&scene.runtime.gated, false);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(expected, sizeof(expected), "{\n    \"predictions\": [%d.0, %d.0\n    ]\n}", 2 * i,
                 2 * i + 1);
        assert_answer(client_answer(fds[i]), 200, expected);
        close(fds[i]);
    }
    assert_true(atomic_load(&scene.runtime.runs) < CLIENTS);
    close_scene(&scene);
}

static uint64_t metric(const struct scene *scene, const char *name)
{
    const struct answer metrics = get(scene, "/monitoring/prometheus/metrics");
    char line[100];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *found = strstr(metrics.body, line);
    assert_non_null(found);
    return strtoull(found + strlen(line), NULL, 10);
}

struct asker {
    int port;
    pthread_t thread;
};

static void *ask_often(void *user)
{
    enum { REQUESTS = 400 };
    const struct asker *asker = user;
    const int fd = client_connect(asker->port);
    for (int i = 0; i < REQUESTS; i++) {
        char request[200], body[40], expected[60];
        snprintf(body, sizeof(body), "{\"instances\": [%d]}", i);
        client_send(fd, request,
                    client_post(request, sizeof(request), "/v1/models/m:predict", body));
        snprintf(expected, sizeof(expected), "{\n    \"predictions\": [%d.0\n    ]\n}", 2 * i);
        assert_answer(client_answer(fd), 200, expected);
    }
    close(fd);
    return NULL;
}

/* A request that another thread has gone on with, and answered, is not touched any more: its memory
 * is that of the connection's next one. */
static void test_serve_server__requests_change_threads(void **state)
{
    (void)state;
    enum { CLIENTS = 24 };
    struct scene scene;
    struct asker askers[CLIENTS];
    start_scene(&scene, (sx_server_config){.rest_api_num_threads = 2}, 0, 1);
    scene.runtime.batched = true; /* before the version has settled */
    wait_ready(&scene);
    for (int i = 0; i < CLIENTS; i++) {
        askers[i].port = scene.port;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(askers[i].thread, NULL);
    }
    close_scene(&scene);
}

static int own_threads(void)
{
    char line[200];
    int threads = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "Threads: %d", &threads);
    }
    fclose(file);
    return threads;
}

/* Thousands of requests wait for the model, and all are answered; none holds a thread. */
static void test_serve_server__waiting_requests_hold_no_threads(void **state)
{
    (void)state;
    enum { CLIENTS = 50, EACH = 100, THREADS = 1, OTHERS = 3 /* such as list directories */ };
    struct scene scene;
    struct h2_client clients[CLIENTS];
    char bodies[EACH][40], expected[60];
    int32_t ids[CLIENTS][EACH];
    sx_batch_config batching = sx_batch_config_default();
    batching.batcher.rules.max_queued_rows = CLIENTS * EACH;
    start_scene(&scene,
                (sx_server_config){.rest_api_num_threads = THREADS,
                                   .max_queued_requests = CLIENTS * EACH,
                                   .batching = &batching},
                0, 0);
    scene.runtime.batched = true; /* before the version has settled */
    wait_ready(&scene);
    const int idle = own_threads();
    atomic_store(&scene.runtime.gated, true);
    for (int i = 0; i < EACH; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "{\"instances\": [%d]}", i);
    }
    for (int c = 0; c < CLIENTS; c++) {
        h2_open(&clients[c], scene.port);
        for (int i = 0; i < EACH; i++) {
            ids[c][i] =
                h2_request(&clients[c], "/v1/models/m:predict", bodies[i], strlen(bodies[i]), NULL);
        }
        h2_turn(&clients[c], 0);
    }
    const int64_t begin_ns = sx_now_ns();
    while (metric(&scene, "sextant_batcher_waiting") < CLIENTS * EACH - 1) { /* one runs */
        assert_true(sx_now_ns() - begin_ns < (int64_t)20 * 1000000000);
        for (int c = 0; c < CLIENTS; c++) {
            h2_turn(&clients[c], 0);
        }
    }
    assert_in_range(own_threads(), 1, idle + THREADS + OTHERS);
    atomic_store(&scene.runtime.gated, false);
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < EACH; i++) {
            const struct h2_answer *answer = h2_wait(&clients[c], ids[c][i]);
            snprintf(expected, sizeof(expected), "{\n    \"predictions\": [%d.0\n    ]\n}", 2 * i);
            assert_int_equal(answer->status, 200);
            assert_string_equal(answer->body, expected);
        }
        h2_close(&clients[c]);
    }
    close_scene(&scene);
}

/* ---- Cancelled work ---- */

static void wait_until(const atomic_int *count, int value)
{
    const int64_t begin = sx_now_ns();
    while (atomic_load(count) != value) {
        assert_true(sx_now_ns() - begin < (int64_t)20 * 1000000000);
        fake_sleep(1);
    }
}

enum { LONG_MS = 60000 }; /* a run that no test waits for */

/* A client that closes stops its request, and those of its that wait are not begun. */
static void test_serve_server__stops_requests_of_closed_clients(void **state)
{
    (void)state;
    struct scene scene;
    char request[200];
    int fds[3];
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1}, LONG_MS);
    const size_t size = client_post(request, sizeof(request), "/v1/models/m:predict", one_value);
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
        wait_until(&scene.runtime.runs, 1);
    }
    close(fds[1]);
    close(fds[2]);
    fake_sleep(50); /* until the server knows */
    close(fds[0]);
    wait_until(&scene.runtime.stopped, 1);
    while (metric(&scene, "sextant_http_connections") > 1) { /* that of this question */
        fake_sleep(1);
    }
    assert_int_equal(atomic_load(&scene.runtime.runs), 1);
    const int64_t begin = sx_now_ns();
    while (strstr(get(&scene, "/monitoring/prometheus/metrics").body,
                  "status=\"CANCELLED\"} 3\n") == NULL) { /* counted after they are closed */
        assert_true(sx_now_ns() - begin < (int64_t)20 * 1000000000);
        fake_sleep(1);
    }
    close_scene(&scene);
}

static void test_serve_server__stops_expired_requests(void **state)
{
    (void)state;
    struct scene scene;
    char request[200];
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1, .rest_api_timeout_in_ms = 100},
               LONG_MS);
    const size_t size = client_post(request, sizeof(request), "/v1/models/m:predict", one_value);
    assert_says(client_exchange(scene.port, request, size), 504, "request timed out");
    wait_until(&scene.runtime.stopped, 1);
    close_scene(&scene);
}

/* What is under way at the end of the grace is given up, what waits is not begun. */
static void test_serve_server__drain_ends_with_its_grace(void **state)
{
    (void)state;
    enum { CLIENTS = 4 };
    struct scene scene;
    char request[200];
    int fds[CLIENTS];
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1, .drain_grace_ms = 200},
               LONG_MS);
    const size_t size = client_post(request, sizeof(request), "/v1/models/m:predict", one_value);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
        wait_until(&scene.runtime.runs, 1);
    }
    const int64_t begin = sx_now_ns();
    assert_false(sx_server_stop(scene.server));
    const int64_t took_ms = (sx_now_ns() - begin) / 1000000;
    assert_in_range(took_ms, 200, LONG_MS / 4);
    assert_int_equal(atomic_load(&scene.runtime.runs), 1);
    assert_int_equal(atomic_load(&scene.runtime.stopped), 1);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(client_answer(fds[i]).status, 0);
        close(fds[i]);
    }
    close_scene(&scene);
}

/* reliability.md R5 in short: requests in flight when the stop comes are answered. */
static void test_serve_server__drains_requests_in_flight(void **state)
{
    (void)state;
    enum { CLIENTS = 6 };
    struct scene scene;
    int fds[CLIENTS];
    char request[200];
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 2}, 150);
    const size_t size =
        client_post(request, sizeof(request), "/v1/models/m:predict", "{\"instances\": [4]}");
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
    }
    fake_sleep(100);
    assert_true(sx_server_stop(scene.server));
    for (int i = 0; i < CLIENTS; i++) {
        const struct answer answer = client_answer(fds[i]);
        assert_answer(answer, 200, "{\n    \"predictions\": [8.0\n    ]\n}");
        assert_non_null(strstr(answer.head, "Connection: close"));
        close(fds[i]);
    }
    assert_int_equal(client_connect(scene.port), -1);
    close_scene(&scene);
}

/* A queue that is full refuses at once, and holds exactly as many as it should; a request that
 * waited too long is not run. */
static void test_serve_server__refuses_overload(void **state)
{
    (void)state;
    enum { QUEUED = 2, REFUSED = 5, CLIENTS = 1 + QUEUED + REFUSED };
    struct scene scene;
    int fds[CLIENTS], ok = 0;
    char request[200];
    sx_batch_config batching = sx_batch_config_default();
    batching.batcher.rules.max_queued_rows = QUEUED;
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1, .batching = &batching}, 0);
    const size_t size =
        client_post(request, sizeof(request), "/v1/models/m:predict", "{\"instances\": [4]}");
    atomic_store(&scene.runtime.gated, true);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
        wait_until(&scene.runtime.running, 1); /* the first one has left the queue */
    }
    for (int i = 0, refused = 0; refused < REFUSED; i = (i + 1) % CLIENTS) {
        struct pollfd wait = {.fd = fds[i], .events = POLLIN}; /* any but the first may be it */
        if (fds[i] < 0 || poll(&wait, 1, 1) == 0) {
            continue;
        }
        const struct answer answer = client_answer(fds[i]);
        assert_says(answer, 503, "2 rows wait, and the limit is 2");
        assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
        close(fds[i]);
        fds[i] = -1;
        refused++;
    }
    atomic_store(&scene.runtime.gated, false);
    for (int i = 0; i < CLIENTS; i++) {
        if (fds[i] >= 0) {
            ok += client_answer(fds[i]).status == 200;
            close(fds[i]);
        }
    }
    assert_int_equal(ok, 1 + QUEUED);
    close_scene(&scene);
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1, .rest_api_timeout_in_ms = 100},
               250);
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_answer(fds[i]).status, 504);
        close(fds[i]);
    }
    fake_sleep(300);
    assert_int_equal(atomic_load(&scene.runtime.runs), 1); /* the two that expired were not run */
    close_scene(&scene);
}

/* Requests that those before them leave too little time are refused at once, and not even read. */
static void test_serve_server__refuses_what_would_be_late(void **state)
{
    (void)state;
    enum { RUN_MS = 1000, WAITING = 3 };
    struct scene scene;
    int fds[1 + WAITING];
    char request[200];
    open_scene(&scene,
               (sx_server_config){.rest_api_num_threads = 1, .rest_api_timeout_in_ms = 3 * RUN_MS},
               RUN_MS);
    const size_t size =
        client_post(request, sizeof(request), "/v1/models/m:predict", "{\"instances\": [4]}");
    assert_int_equal(client_exchange(scene.port, request, size).status, 200);
    atomic_store(&scene.runtime.gated, true);
    for (int i = 0; i < 1 + WAITING; i++) { /* one runs, and no more than two can wait */
        fds[i] = client_connect(scene.port);
        client_send(fds[i], request, size);
        wait_until(&scene.runtime.running, 1);
    }
    struct answer answer;
    int tries = 0;
    do { /* until those that wait have been read */
        answer = post(&scene, "/v1/models/m:predict", "no JSON");
    } while (answer.status == 400 && tries++ < 1000);
    assert_says(answer, 503, "what runs and waits takes about ");
    assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
    atomic_store(&scene.runtime.gated, false);
    for (int i = 0; i < 1 + WAITING; i++) {
        (void)client_answer(fds[i]);
        close(fds[i]);
    }
    close_scene(&scene);
}

/* ---- Memory ---- */

/* A request of `count` numbers. */
static size_t post_numbers(char **out, size_t count)
{
    sx_buf request;
    sx_buf_init(&request, 0);
    sx_buf_printf(&request,
                  "POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n"
                  "{\"instances\": [1",
                  16 + 2 * count);
    for (size_t i = 1; i < count; i++) {
        sx_buf_puts(&request, ",1");
    }
    sx_buf_puts(&request, "]}");
    size_t size = 0;
    *out = sx_buf_take(&request, &size);
    return size;
}

/* What a request is decoded into is charged before it is allocated: 413 beyond what one request may
 * have, 429 while others hold the memory, and nothing is left charged. */
static void test_serve_server__bounds_the_memory_of_requests(void **state)
{
    (void)state;
    enum { KIB = 1024, NUMBERS = 40 * KIB };
    struct scene scene;
    char *numbers = NULL, *some = NULL, *many = NULL;
    open_scene(&scene,
               (sx_server_config){.rest_api_num_threads = 2,
                                  .max_request_memory_bytes = 1000 * KIB,
                                  .max_in_flight_memory_bytes = 1100 * KIB},
               0);
    /* Each number takes 2 bytes of text, 4 of input, 4 of output and 5 of response. */
    const size_t size = post_numbers(&numbers, NUMBERS);
    const size_t some_size = post_numbers(&some, 3 * NUMBERS / 2); /* 900 KiB in all */
    const size_t many_size = post_numbers(&many, 4 * NUMBERS);
    assert_int_equal(client_exchange(scene.port, some, some_size).status, 200);
    const struct answer never = client_exchange(scene.port, many, many_size);
    assert_says(never, 413, "memory limit of one request");
    assert_non_null(strstr(never.body, "of 1024000 bytes are in use"));
    assert_null(strstr(never.head, "Retry-After"));

    atomic_store(&scene.runtime.gated, true); /* holds its text and its input */
    const int holder = client_connect(scene.port);
    client_send(holder, numbers, size);
    wait_until(&scene.runtime.running, 1);
    assert_true(metric(&scene, "sextant_request_memory_bytes") >= 6 * NUMBERS);
    assert_int_equal(metric(&scene, "sextant_request_memory_limit_bytes"), 1100 * KIB);
    const struct answer not_now = client_exchange(scene.port, some, some_size);
    assert_says(not_now, 429, "memory limit of all requests together");
    assert_non_null(strstr(not_now.body, "try again later"));
    assert_non_null(strstr(not_now.head, "Retry-After: 1\r\n"));
    atomic_store(&scene.runtime.gated, false);
    assert_int_equal(client_answer(holder).status, 200);
    for (int i = 0; metric(&scene, "sextant_request_memory_bytes") > 0; i++) {
        assert_true(i < 1000); /* nothing stays charged to a connection that is kept */
        fake_sleep(5);
    }
    close(holder);
    sx_free(numbers);
    sx_free(some);
    sx_free(many);
    close_scene(&scene);
}

/* A client that does not read holds its response, and that is charged until it is cut off. */
static void test_serve_server__charges_responses_until_they_are_sent(void **state)
{
    (void)state;
    enum { NUMBERS = 3000000 }; /* 15 MB of response: more than socket buffers take */
    struct scene scene;
    char *numbers = NULL;
    open_scene(&scene, (sx_server_config){.rest_api_num_threads = 1}, 0);
    const size_t size = post_numbers(&numbers, NUMBERS);
    const int deaf = client_connect(scene.port);
    client_send(deaf, numbers, size);
    wait_until(&scene.runtime.runs, 1);
    wait_until(&scene.runtime.running, 0);
    const int64_t begin = sx_now_ns();
    uint64_t held; /* in the end only the text, "2.0, "; until then body and tensors as well */
    while ((held = metric(&scene, "sextant_request_memory_bytes")) > 6 * NUMBERS) {
        assert_true(sx_now_ns() - begin < (int64_t)20 * 1000000000);
        fake_sleep(5);
    }
    assert_true(held >= 5 * NUMBERS);
    close(deaf);
    for (int i = 0; metric(&scene, "sextant_request_memory_bytes") > 0; i++) {
        assert_true(i < 1000);
        fake_sleep(5);
    }
    sx_free(numbers);
    close_scene(&scene);
}

/* ---- Before the first version ---- */

static void test_serve_server__says_503_until_a_version_is_served(void **state)
{
    (void)state;
    struct scene scene;
    start_scene(&scene, (sx_server_config){0}, 700, 0);
    struct answer answer = post(&scene, "/v1/models/m:predict", one_value);
    assert_says(answer, 503, "model m");
    assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
    while (!strstr((answer = get(&scene, "/v1/models/m")).body, "LOADING")) {
        assert_null(strstr(answer.body, "AVAILABLE"));
        fake_sleep(1);
    }
    answer = post(&scene, "/v1/models/m:predict", one_value);
    assert_says(answer, 503, "model m is not available yet: version 2 is being loaded");
    answer = post(&scene, "/v1/models/m/versions/2:predict", one_value);
    assert_says(answer, 503, "version 2 is being loaded");
    assert_non_null(strstr(answer.head, "Retry-After: 1\r\n"));
    assert_says(get(&scene, "/v1/models/m/metadata"), 503, "not available yet");
    assert_says(post(&scene, "/v1/models/m/versions/9:predict", one_value), 404,
                "Servable not found for request: Specific(m, 9)");
    assert_says(post(&scene, "/v1/models/other:predict", one_value), 404,
                "Servable not found for request: Latest(other)");
    assert_answer(get(&scene, "/healthz"), 200, "{\"live\": true}\n");
    assert_answer(get(&scene, "/readyz"), 503, "{\"ready\": false}\n");
    wait_ready(&scene);
    assert_int_equal(post(&scene, "/v1/models/m:predict", one_value).status, 200);
    assert_answer(get(&scene, "/readyz"), 200, "{\"ready\": true}\n");
    close_scene(&scene);
}

/* Clients learn the names of models and versions, not where they are; the log has the paths. */
static void test_serve_server__answers_name_no_paths(void **state)
{
    (void)state;
    static const char *const gets[] = {"/v1/models/m", "/v1/models/m/versions/2",
                                       "/v1/models/m/metadata"};
    struct scene scene;
    struct answer answer;
    memset(&scene, 0, sizeof(scene));
    fake_base_path(scene.base);
    fake_serve(scene.base, &scene.runtime,
               (sx_server_config){.file_system_poll_wait_seconds = 0.02}, &scene.server);
    scene.port = sx_server_rest_port(scene.server);
    for (int has_bad_version = 0; has_bad_version < 2; has_bad_version++) {
        if (has_bad_version) {
            fake_publish(scene.base, "2", 2, 0, 0, 1);
            while (!strstr(get(&scene, "/v1/models/m").body, "DATA_LOSS")) {
                fake_sleep(5);
            }
        }
        assert_false(sx_server_wait_ready(scene.server, 5000));
        sx_status status = sx_server_model_error(scene.server);
        assert_non_null(strstr(sx_status_message(status), scene.base));
        sx_status_free(status);
        for (size_t i = 0; i < SX_COUNT(gets); i++) {
            answer = get(&scene, gets[i]);
            assert_true(answer.status >= 200);
            assert_null(strstr(answer.body, scene.base));
        }
        answer = post(&scene, "/v1/models/m:predict", one_value);
        assert_says(answer, 503,
                    has_bad_version ? "model m is not available yet: version 2 cannot be loaded"
                                    : "model m has no version available yet");
        assert_null(strstr(answer.body, scene.base));
    }
    assert_says(get(&scene, "/v1/models/m"), 200, "the reason is in the server's log");
    close_scene(&scene);
}

static void test_serve_server__refuses_bad_configurations(void **state)
{
    (void)state;
    struct scene scene;
    sx_server *other = NULL;
    open_scene(&scene, (sx_server_config){0}, 0);
    sx_server_config config = {.host = "127.0.0.1",
                               .rest_api_port = scene.port,
                               .model_base_path = scene.base,
                               .ops = &fake_ops,
                               .ops_user = &scene.runtime};
    assert_error(sx_server_create(&config, &other), SX_ALREADY_EXISTS, "choose another port");
    config.rest_api_port = 65536;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT,
                 "port 65536 is out of range");
    config.rest_api_port = SX_ANY_PORT;
    static const char *const paths[] = {"metrics", "/a b", "/m?x=1", "/m#x", "/\x7f"};
    for (size_t i = 0; i < SX_COUNT(paths); i++) {
        config.monitoring_path = paths[i];
        assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT, "is not a URL path");
    }
    static const char *const taken[] = {"/healthz", "/v1/models/m", "/v1/models/x:predict",
                                        "/V1/anything"};
    for (size_t i = 0; i < SX_COUNT(taken); i++) {
        config.monitoring_path = taken[i];
        assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT, "another page");
    }
    config.monitoring_path = NULL;
    config.max_in_flight_memory_bytes = SX_MIN_REQUEST_MEMORY - 1;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT, "no request fits");
    config.max_in_flight_memory_bytes = 0;
    config.max_request_memory_bytes = 1;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT,
                 "a memory limit of 1 bytes: no request fits; expected at least 262144");
    config.max_request_memory_bytes = 0;
    config.max_body_bytes = SX_MIN_BODY_BYTES - 1;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT,
                 "max_body_bytes is 1023, expected at least 1024");
    config.max_body_bytes = 0;
    config.model_base_path = NULL;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT, "model_base_path");
    config.ops = NULL;
    assert_error(sx_server_create(&config, &other), SX_INVALID_ARGUMENT, "runtime");
    config.ops = &fake_ops;
    config.model_base_path = "/nonexistent/models"; /* no error: it is looked for */
    assert_ok(sx_server_create(&config, &other));
    assert_ok(sx_server_start(other));
    assert_false(sx_server_wait_ready(other, 5000));
    assert_error(sx_server_model_error(other), SX_NOT_FOUND, "/nonexistent/models");
    char request[200];
    assert_int_equal(client_exchange(sx_server_rest_port(other), request,
                                     client_get(request, sizeof(request), "/readyz"))
                         .status,
                     503);
    sx_server_destroy(other);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_server__predicts),
    cmocka_unit_test(test_serve_server__answers_errors_as_tensorflow_serving),
    cmocka_unit_test(test_serve_server__shows_status_metadata_health),
    cmocka_unit_test(test_serve_server__answers_preflights),
    cmocka_unit_test(test_serve_server__inflates_bodies_under_a_cap),
    cmocka_unit_test(test_serve_server__swaps_under_load),
    cmocka_unit_test(test_serve_server__quick_models_skip_the_queue),
    cmocka_unit_test(test_serve_server__failures_earn_no_trust),
    cmocka_unit_test(test_serve_server__images_never_run_on_the_loop),
    cmocka_unit_test(test_serve_server__merges_waiting_requests),
    cmocka_unit_test(test_serve_server__requests_change_threads),
    cmocka_unit_test(test_serve_server__waiting_requests_hold_no_threads),
    cmocka_unit_test(test_serve_server__stops_requests_of_closed_clients),
    cmocka_unit_test(test_serve_server__stops_expired_requests),
    cmocka_unit_test(test_serve_server__drain_ends_with_its_grace),
    cmocka_unit_test(test_serve_server__drains_requests_in_flight),
    cmocka_unit_test(test_serve_server__refuses_overload),
    cmocka_unit_test(test_serve_server__refuses_what_would_be_late),
    cmocka_unit_test(test_serve_server__bounds_the_memory_of_requests),
    cmocka_unit_test(test_serve_server__charges_responses_until_they_are_sent),
    cmocka_unit_test(test_serve_server__says_503_until_a_version_is_served),
    cmocka_unit_test(test_serve_server__answers_name_no_paths),
    cmocka_unit_test(test_serve_server__refuses_bad_configurations),
};
SX_TEST_MAIN(tests)
