#include "harness.h"

#include <sys/un.h>

#include "base/clock.h"
#include "net/grpc.h"
#include "net/http2_client.h"
#include "serve/fake_server.h"
#include "serve/grpc_message.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_server *server;
    struct h2_client client;
};

/* A server of version 2, which doubles, and a connection to it. */
static void open_scene(struct scene *scene, sx_server_config config, int run_ms)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", 2, 0, run_ms, 0);
    config.port = SX_ANY_PORT;
    config.file_system_poll_wait_seconds = 0.05;
    fake_serve(scene->base, &scene->runtime, config, &scene->server);
    assert_true(sx_server_wait_ready(scene->server, 5000));
    h2_open(&scene->client, sx_server_grpc_port(scene->server));
}

static void close_scene(struct scene *scene)
{
    h2_close(&scene->client);
    sx_server_destroy(scene->server);
    fake_remove_version(scene->base, "2");
    rmdir(scene->base);
}

static const char *const headers[] = {"content-type", "application/grpc+proto", "te", "trailers",
                                      NULL};

static struct h2_answer *call_with(struct scene *scene, const char *path,
                                   const struct message *request, const char *const *more)
{
    static struct message frames[32]; /* uploads are read until the stream has ended */
    static int next;
    struct message *frame = &frames[next++ % 32];
    *frame = frame_of(request);
    return h2_wait(&scene->client,
                   h2_request(&scene->client, path, frame->bytes, frame->size, more));
}

static struct h2_answer *call(struct scene *scene, const char *path, const struct message *request)
{
    return call_with(scene, path, request, headers);
}

/* ---- Predict ---- */

static const float one_to_three[] = {1, 2.5F, -3};

static void expect_doubled(const struct h2_answer *answer)
{
    expect_status(answer, 0, "content-type: application/grpc\n");
    struct message want = {.size = 0}, tensor, spec = spec_of("m");
    const float doubled[] = {2, 5, -6};
    tensor = floats_of(doubled, 3, false);
    put_input(&want, "y", &tensor);
    want.bytes[0] = 1 << 3 | 2; /* outputs are field 1 */
    put_field(&spec, 2, "\x08\x02", 2);
    put_field(&spec, 3, "serving_default", 15);
    put_part(&want, 2, &spec);
    assert_int_equal(answer->body_size, want.size + 5);
    assert_memory_equal(answer->body + 5, want.bytes, want.size);
}

static struct message request_of(const char *model, const char *input, bool content)
{
    struct message request = {.size = 0}, spec = spec_of(model);
    const struct message tensor = floats_of(one_to_three, 3, content);
    put_part(&request, 1, &spec);
    put_input(&request, input, &tensor);
    return request;
}

static void test_serve_grpc_services__predicts(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    for (int content = 0; content < 2; content++) {
        const struct message request = request_of("m", "x", content);
        for (int i = 0; i < 5; i++) { /* on the executor, and then on the loop's thread */
            expect_doubled(call(&scene, predict_path, &request));
        }
    }
    close_scene(&scene);
}

static void test_serve_grpc_services__answers_errors(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    struct message request = request_of("other", "x", false);
    expect_status(call(&scene, predict_path, &request), 5,
                  "grpc-message: Servable not found for request: Latest(other)\n");
    request = request_of("m", "z", false);
    expect_status(call(&scene, predict_path, &request), 3,
                  "input tensor alias not found in signature: z. Inputs expected to be in the set "
                  "{x}.");
    expect_status(call(&scene, "/tensorflow.serving.PredictionService/Other", &request), 12,
                  "unknown method");
    request = (struct message){.size = 0};
    expect_status(call(&scene, predict_path, &request), 3, "Missing ModelSpec");
    const struct message spec = spec_of("m");
    put_part(&request, 1, &spec);
    expect_status(call(&scene, predict_path, &request), 3,
                  "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. "
                  "Missing but required: {x}.");
    struct message bad_spec = spec;
    put_field(&bad_spec, 3, "no", 2);
    request = (struct message){.size = 0};
    put_part(&request, 1, &bad_spec);
    expect_status(call(&scene, predict_path, &request), 9,
                  "Serving signature key \"no\" not found.");
    /* A type that is not the signature's; a filter. */
    request = request_of("m", "x", false);
    put_field(&request, 3, "nothing", 7);
    expect_status(
        call(&scene, predict_path, &request), 3,
        "output tensor alias not found in signature: nothing Outputs expected to be in the set "
        "{y}.");
    request = request_of("m", "x", false);
    put_field(&request, 3, "y", 1);
    expect_doubled(call(&scene, predict_path, &request));
    /* Two messages, and a coding that nobody knows. */
    struct message twice = frame_of(&request);
    put(&twice, twice.bytes, twice.size);
    expect_status(h2_wait(&scene.client, h2_request(&scene.client, predict_path, twice.bytes,
                                                    twice.size, headers)),
                  13, "expected one");
    const char *const coded[] = {"content-type", "application/grpc", "grpc-encoding", "br", NULL};
    expect_status(call_with(&scene, predict_path, &request, coded), 12, "use gzip");
    close_scene(&scene);
}

static void test_serve_grpc_services__heeds_deadlines(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 400);
    const struct message request = request_of("m", "x", false);
    const char *const soon[] = {"content-type", "application/grpc", "grpc-timeout", "50m", NULL};
    const int64_t begin_ns = sx_now_ns();
    expect_status(call_with(&scene, predict_path, &request, soon), 4, "Deadline Exceeded");
    assert_true(sx_now_ns() - begin_ns < 350 * (int64_t)1000000);
    const char *const later[] = {"content-type", "application/grpc", "grpc-timeout", "1M", NULL};
    expect_doubled(call_with(&scene, predict_path, &request, later));
    const char *const bad[] = {"content-type", "application/grpc", "grpc-timeout", "5x", NULL};
    expect_status(call_with(&scene, predict_path, &request, bad), 13, "malformed grpc-timeout");
    close_scene(&scene);
    assert_int_equal(atomic_load(&scene.runtime.stopped), 1);
}

static void test_serve_grpc_services__serves_rest_beside(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    static const char *const none[] = {NULL};
    const struct h2_answer *answer =
        h2_wait(&scene.client, h2_request(&scene.client, "/v1/models/m:predict",
                                          "{\"instances\": [1]}", 18, none));
    assert_int_equal(answer->status, 200);
    assert_non_null(strstr(answer->body, "\"predictions\": [2.0"));
    char request[200];
    const struct answer plain =
        client_exchange(sx_server_grpc_port(scene.server), request,
                        client_get(request, sizeof(request), "/v1/models/m"));
    assert_int_equal(plain.status, 200);
    close_scene(&scene);
}

/* ---- Models ---- */

static const char reload_path[] = "/tensorflow.serving.ModelService/HandleReloadConfigRequest";

/* A ReloadConfigRequest of one model. */
static struct message reload_of(const char *name, const char *base_path)
{
    struct message model = {.size = 0}, list = {.size = 0}, config = {.size = 0},
                   request = {.size = 0};
    put_field(&model, 1, name, strlen(name));
    put_field(&model, 2, base_path, strlen(base_path));
    put_part(&list, 1, &model);
    put_part(&config, 1, &list);
    put_part(&request, 1, &config);
    return request;
}

static void test_serve_grpc_services__tells_the_status(void **state)
{
    (void)state;
    static const char path[] = "/tensorflow.serving.ModelService/GetModelStatus";
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    struct message request = {.size = 0}, spec = spec_of("m");
    put_part(&request, 1, &spec);
    const struct h2_answer *answer = call(&scene, path, &request);
    expect_status(answer, 0, NULL);
    assert_int_equal(answer->body_size, 13);
    assert_memory_equal(answer->body, "\0\0\0\0\x08\x0a\x06\x08\x02\x10\x1e\x1a\0", 13);
    request = (struct message){.size = 0};
    spec = spec_of("no");
    put_part(&request, 1, &spec);
    expect_status(call(&scene, path, &request), 5, "Could not find any versions of model no");
    close_scene(&scene);
}

static void test_serve_grpc_services__reloads(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    struct message request = reload_of("m", "");
    expect_status(call(&scene, reload_path, &request), 3, "base_path: model m needs one");
    request = reload_of("other", scene.base);
    expect_status(call(&scene, reload_path, &request), 0, NULL);
    request = request_of("other", "x", false);
    expect_status(call(&scene, predict_path, &request), 0, NULL);
    request = request_of("m", "x", false);
    expect_status(call(&scene, predict_path, &request), 5, "Latest(m)");
    close_scene(&scene);
}

/* A server that stops does not wait for a model that takes long to load. */
static void test_serve_grpc_services__stops_while_reloading(void **state)
{
    (void)state;
    struct scene scene;
    char slow[64];
    open_scene(&scene, (sx_server_config){0}, 0);
    fake_base_path(slow);
    fake_publish(slow, "1", 1, -1, 0, 0);
    atomic_store(&scene.runtime.hanging, true);
    atomic_store(&scene.runtime.heeding, true);
    const struct message request = reload_of("slow", slow), frame = frame_of(&request);
    const int32_t id = h2_request(&scene.client, reload_path, frame.bytes, frame.size, headers);
    const int32_t next = h2_request(&scene.client, reload_path, frame.bytes, frame.size, headers);
    while (atomic_load(&scene.runtime.hung) == 0) {
        h2_turn(&scene.client, 10);
    }
    assert_true(sx_server_stop(scene.server));
    expect_status(h2_wait(&scene.client, id), 14, "the server is stopping");
    expect_status(h2_wait(&scene.client, next), 14, "the server is stopping");
    atomic_store(&scene.runtime.hanging, false);
    close_scene(&scene);
    fake_remove_version(slow, "1");
    rmdir(slow);
}

static void test_serve_grpc_services__checks_requests_of_examples(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    struct message request = {.size = 0}, spec = spec_of("m");
    put_part(&request, 1, &spec);
    expect_status(
        call(&scene, "/tensorflow.serving.PredictionService/Classify", &request), 3,
        "No classification inputs found in SignatureDef: inputs {\"x\"}, outputs {\"y\"}");
    expect_status(call(&scene, "/tensorflow.serving.PredictionService/Regress", &request), 3,
                  "No regression inputs found in SignatureDef: ");
    expect_status(call(&scene, "/tensorflow.serving.PredictionService/GetModelMetadata", &request),
                  3, "must specify at least one metadata_field");
    request = (struct message){.size = 0};
    expect_status(call(&scene, "/tensorflow.serving.PredictionService/MultiInference", &request), 3,
                  "ModelSpec has no name specified.");
    close_scene(&scene);
}

/* ---- Health ---- */

static const char check_path[] = "/grpc.health.v1.Health/Check";

static void test_serve_grpc_services__checks_health(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    struct message request = {.size = 0};
    const struct h2_answer *answer = call(&scene, check_path, &request);
    expect_status(answer, 0, NULL);
    assert_int_equal(answer->body_size, 7);
    assert_memory_equal(answer->body, "\0\0\0\0\2\x08\1", 7);
    put_field(&request, 1, "PredictionService", 17);
    expect_status(call(&scene, check_path, &request), 0, NULL);
    request = (struct message){.size = 0};
    put_field(&request, 1, "nobody", 6);
    expect_status(call(&scene, check_path, &request), 5, "unknown service");
    close_scene(&scene);
}

static void test_serve_grpc_services__watches_health(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_server_config){0}, 0);
    const int32_t id =
        h2_request(&scene.client, "/grpc.health.v1.Health/Watch", "\0\0\0\0\0", 5, headers);
    const int32_t reset =
        h2_request(&scene.client, "/grpc.health.v1.Health/Watch", "\0\0\0\0\0", 5, headers);
    struct h2_answer *answer = h2_answer(&scene.client, id);
    while (answer->body_size < 7 || h2_answer(&scene.client, reset)->body_size < 7) {
        assert_true(h2_turn(&scene.client, 5000));
    }
    assert_memory_equal(answer->body, "\0\0\0\0\2\x08\1", 7);
    nghttp2_submit_rst_stream(scene.client.session, 0, reset, NGHTTP2_CANCEL);
    h2_turn(&scene.client, 300); /* nothing: it is told at once, and forgotten */
    assert_false(answer->closed);
    assert_true(sx_server_stop(scene.server)); /* which a watch does not keep from ending */
    h2_wait(&scene.client, id);
    expect_status(answer, 0, NULL);
    assert_int_equal(answer->body_size, 14);
    assert_memory_equal(answer->body + 7, "\0\0\0\0\2\x08\2", 7);
    close_scene(&scene);
}

static void test_serve_grpc_services__listens_at_a_path(void **state)
{
    (void)state;
    struct scene scene;
    char path[100];
    snprintf(path, sizeof(path), "/tmp/sextant-grpc-%d", (int)getpid());
    open_scene(&scene, (sx_server_config){.grpc_socket_path = path}, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    h2_close(&scene.client);
    h2_open_on(&scene.client, fd, 1 << 20);
    const struct message request = request_of("m", "x", false);
    expect_doubled(call(&scene, predict_path, &request));
    close_scene(&scene);
    assert_int_equal(access(path, F_OK), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_grpc_services__predicts),
    cmocka_unit_test(test_serve_grpc_services__answers_errors),
    cmocka_unit_test(test_serve_grpc_services__heeds_deadlines),
    cmocka_unit_test(test_serve_grpc_services__serves_rest_beside),
    cmocka_unit_test(test_serve_grpc_services__tells_the_status),
    cmocka_unit_test(test_serve_grpc_services__reloads),
    cmocka_unit_test(test_serve_grpc_services__stops_while_reloading),
    cmocka_unit_test(test_serve_grpc_services__checks_requests_of_examples),
    cmocka_unit_test(test_serve_grpc_services__checks_health),
    cmocka_unit_test(test_serve_grpc_services__watches_health),
    cmocka_unit_test(test_serve_grpc_services__listens_at_a_path),
};

SX_TEST_MAIN(tests)
