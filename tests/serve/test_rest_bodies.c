#include "harness.h"

#include "net/client.h"
#include "serve/fake_server.h"
#include "serve/rest_bodies.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_server *server;
    int port;
};

/* A server of version 2, which doubles. */
static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    fake_publish(scene->base, "2", 2, 0, 0, 0);
    fake_serve(scene->base, &scene->runtime, (sx_server_config){0}, &scene->server);
    assert_true(sx_server_wait_ready(scene->server, 5000));
    scene->port = sx_server_rest_port(scene->server);
}

static void close_scene(struct scene *scene)
{
    sx_server_destroy(scene->server);
    fake_remove_version(scene->base, "2");
    rmdir(scene->base);
}

static struct answer post(const struct scene *scene, const char *query, const char *type,
                          const void *body, size_t size)
{
    char request[2048];
    const int head = snprintf(request, sizeof(request),
                              "POST /v1/models/m:predict%s HTTP/1.1\r\nHost: a\r\nContent-Type: %s"
                              "\r\nContent-Length: %zu\r\n\r\n",
                              query, type, size);
    memcpy(request + head, body, size);
    return client_exchange(scene->port, request, (size_t)head + size);
}

static void expect_part(struct answer answer, int status, const char *part)
{
    if (answer.status != status || strstr(answer.body, part) == NULL) {
        fail_msg("got %d %s\nexpected %d with %s", answer.status, answer.body, status, part);
    }
}

static void test_serve_rest_bodies__takes_and_gives_a_tensor(void **state)
{
    (void)state;
    struct scene scene;
    const float values[] = {1, -2.5f, 0, 7};
    open_scene(&scene);
    struct answer answer =
        post(&scene, "", "application/x-tensor; dtype=float32; shape=2x2", values, sizeof(values));
    assert_int_equal(answer.status, 200);
    assert_non_null(
        strstr(answer.head, "Content-Type: application/x-tensor; dtype=float32; shape=2x2\r\n"));
    assert_int_equal(answer.body_size, sizeof(values));
    assert_memory_equal(answer.body, ((const float[]){2, -5, 0, 14}), sizeof(values));
    static const char type[] = "application/x-tensor; dtype=float32; shape=4";
    expect_part(post(&scene, "", type, values, 12), 400, "12 raw bytes are not a float32[4]");
    expect_part(post(&scene, "", "application/x-tensor; dtype=int32; shape=4", values, 16), 400,
                "got int32[4], expected float32");
    expect_part(post(&scene, "", "application/x-tensor; shape=4", values, 16), 400,
                "expected Content-Type: application/x-tensor; dtype=");
    expect_part(post(&scene, "?signature_name=pair", type, values, 16), 400,
                "has 2 inputs, expected 1");
    expect_part(post(&scene, "?signature_name=no", type, values, 16), 400, "not found");
    expect_part(post(&scene, "?output=z", type, values, 16), 400, "?output=NAME");
    assert_int_equal(post(&scene, "?a=b&output=y", type, values, 16).status, 200);
    close_scene(&scene);
}

static void test_serve_rest_bodies__takes_and_gives_messages(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    /* inputs {"x": float [2] with content}; no model_spec */
    static const char request[] =
        "\x12\x17\x0a\x01x\x12\x12\x08\x01\x12\x04\x12\x02\x08\x02\x22\x08"
        "\x00\x00\x80\x3f\x00\x00\x20\x40";
    struct answer answer = post(&scene, "", "application/x-protobuf", request, sizeof(request) - 1);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Type: application/x-protobuf\r\n"));
    /* 2 and 5 as floats, and the spec of what ran */
    static const char values[] = "\x00\x00\x00\x40\x00\x00\xa0\x40";
    static const char spec[] = "\x0a\x01m\x12\x02\x08\x02\x1a\x0fserving_default";
    assert_non_null(memmem(answer.body, answer.body_size, values, sizeof(values) - 1));
    assert_non_null(memmem(answer.body, answer.body_size, spec, sizeof(spec) - 1));
    expect_part(post(&scene, "", "application/protobuf", "\x12", 1), 400, "malformed");
    expect_part(post(&scene, "", "application/protobuf", "", 0), 400, "{x}");
    expect_part(post(&scene, "", "text/plain", "{\"instances\":[1]}", 17), 200, "predictions");
    close_scene(&scene);
}

static void test_serve_rest_bodies__reads_types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool right;
    } rows[] = {
        {"application/x-tensor; dtype=float32; shape=2x3", true},
        {"Application/X-Tensor;shape=;dtype=uint8", true},
        {"application/x-tensor; dtype=float16; shape=1x2x3x4x5x6x7x8", true},
        {"application/x-tensor; dtype=float16; shape=1x2x3x4x5x6x7x8x9", false},
        {"application/x-tensor; dtype=float32; shape=2xx3", false},
        {"application/x-tensor; dtype=float32; shape=-2", false},
        {"application/x-tensor; dtype=float32; shape=99999999999999999999", false},
        {"application/x-tensor; dtype=string; shape=2", false},
        {"application/x-tensor; dtype=float32float32float32; shape=2", false},
        {"application/x-tensor; dtype=float32", false},
        {"application/json; dtype=float32; shape=2", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_type type;
        const sx_http_text text = {rows[i].text, strlen(rows[i].text)};
        if (sx_rest_tensor_type(text, &type) != rows[i].right) {
            fail_msg("%s", rows[i].text);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_rest_bodies__takes_and_gives_a_tensor),
    cmocka_unit_test(test_serve_rest_bodies__takes_and_gives_messages),
    cmocka_unit_test(test_serve_rest_bodies__reads_types),
};
SX_TEST_MAIN(tests)
