#include "harness.h"

#include "base/half.h"
#include "net/client.h"
#include "serve/fake_server.h"
#include "serve/kserve_json.h"
#include "serve/kserve_proto.h"

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

static struct answer post_with(const struct scene *scene, const char *path, const char *header,
                               const void *body, size_t size)
{
    char request[4096];
    const int head = snprintf(request, sizeof(request),
                              "POST %s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n", path,
                              header, size);
    memcpy(request + head, body, size);
    return client_exchange(scene->port, request, (size_t)head + size);
}

static struct answer post(const struct scene *scene, const char *path, const char *body)
{
    return post_with(scene, path, "", body, strlen(body));
}

static struct answer get(const struct scene *scene, const char *path)
{
    char request[1024];
    return client_exchange(scene->port, request, client_get(request, sizeof(request), path));
}

static void expect(struct answer answer, int status, const char *body)
{
    if (answer.status != status || strcmp(answer.body, body) != 0) {
        fail_msg("got %d %s\nexpected %d %s", answer.status, answer.body, status, body);
    }
}

static void expect_part(struct answer answer, int status, const char *part)
{
    if (answer.status != status || strstr(answer.body, part) == NULL) {
        fail_msg("got %d %s\nexpected %d with %s", answer.status, answer.body, status, part);
    }
}

static const char infer_path[] = "/v2/models/m/infer";

static void test_serve_kserve__describes_server_and_models(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    expect_part(get(&scene, "/v2"), 200, "\"extensions\":[\"binary_tensor_data\"");
    expect(get(&scene, "/v2/models/m"), 200,
           "{\"name\":\"m\",\"versions\":[\"2\"],\"platform\":\"tensorflow_savedmodel\","
           "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1]}],"
           "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,3]}]}\n");
    expect(get(&scene, "/v2/models/m/versions/2/ready"), 200, "{\"name\":\"m\",\"ready\":true}\n");
    expect_part(get(&scene, "/v2/models/m/versions/3/ready"), 404, "Specific(m, 3)");
    expect_part(get(&scene, "/v2/models/n"), 404, "Latest(n)");
    expect(post(&scene, "/v2/repository/index", ""), 200,
           "[{\"name\":\"m\",\"version\":\"2\",\"state\":\"READY\",\"reason\":\"\"}]\n");
    expect_part(get(&scene, infer_path), 405, "use POST");
    expect_part(post(&scene, "/v2/models/m/ready", ""), 405, "use GET");
    expect_part(get(&scene, "/v2/models/m/nothing"), 404, "error");
    expect_part(get(&scene, "/v2/models/m/versions/x/ready"), 404, "error");
    close_scene(&scene);
}

static void test_serve_kserve__infers_from_json(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    static const char answer[] = "{\"model_name\":\"m\",\"model_version\":\"2\",\"outputs\":[{"
                                 "\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2,2],"
                                 "\"data\":[2.0, 4.0, 6.0, 9.0]}]}";
    expect(post(&scene, infer_path,
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,2],\"datatype\":\"FP32\","
                "\"data\":[1,2,3,4.5]}]}"),
           200, answer);
    expect(post(&scene, "/v2/models/m/versions/2/infer",
                "{\"inputs\":[{\"data\":[[1,2],[3,4.5]],\"datatype\":\"FP32\","
                "\"shape\":[2,2],\"name\":\"x\"}]}"),
           200, answer);
    expect(
        post(&scene, infer_path,
             "{\"id\":\"a\\\"b\",\"inputs\":[{\"name\":\"b\",\"shape\":[1],\"datatype\":\"FP32\","
             "\"data\":[1]},{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[3]}],"
             "\"outputs\":[{\"name\":\"twice\"}],\"parameters\":{\"signature_name\":\"pair\","
             "\"priority\":3}}"),
        200,
        "{\"model_name\":\"m\",\"model_version\":\"2\",\"id\":\"a\\\"b\",\"outputs\":[{"
        "\"name\":\"twice\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[6.0]}]}");
    expect(post(&scene, infer_path,
                "{\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\","
                "\"data\":[\"\\u00e4\",\"\"]}],\"outputs\":[{\"name\":\"echo\"}],"
                "\"parameters\":{\"signature_name\":\"text\"}}"),
           200,
           "{\"model_name\":\"m\",\"model_version\":\"2\",\"outputs\":[{\"name\":\"echo\","
           "\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"ä\",\"\"]}]}");
    close_scene(&scene);
}

static void test_serve_kserve__takes_and_gives_raw_tensors(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    static const char json[] =
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\","
        "\"parameters\":{\"binary_data_size\":8}}],"
        "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}]}";
    const float values[2] = {1.5f, -2};
    char body[1024], header[80];
    const size_t size = sizeof(json) - 1;
    memcpy(body, json, size);
    memcpy(body + size, values, sizeof(values));
    snprintf(header, sizeof(header), "Inference-Header-Content-Length: %zu\r\n", size);
    struct answer answer = post_with(&scene, infer_path, header, body, size + sizeof(values));
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Type: application/octet-stream"));
    const char *told = strstr(answer.head, "Inference-Header-Content-Length: ");
    assert_non_null(told);
    const size_t json_size = strtoul(strchr(told, ' '), NULL, 10);
    assert_int_equal(answer.body_size, json_size + 8);
    assert_memory_equal(answer.body + json_size, ((const float[]){3, -4}), 8);
    assert_non_null(strstr(answer.body, "\"parameters\":{\"binary_data_size\":8}}]}"));
    /* too few and too many bytes behind the JSON, and a header that is wrong */
    expect_part(post_with(&scene, infer_path, header, body, size + 4), 400, "4 bytes follow");
    memset(body + size + 8, 0, 3);
    expect_part(post_with(&scene, infer_path, header, body, size + 11), 400, "belong to no input");
    expect_part(
        post_with(&scene, infer_path, "Inference-Header-Content-Length: 9999\r\n", body, size), 400,
        "but the body has");
    expect_part(
        post_with(&scene, infer_path, "Inference-Header-Content-Length: -1\r\n", body, size), 400,
        "no count");
    close_scene(&scene);
}

static void test_serve_kserve__says_what_is_wrong(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
#define INPUT(text) "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\"," text "}]}"
    static const struct {
        const char *body, *part;
    } rows[] = {
        {"", "JSON Parse error"},
        {"[]", "JSON Parse error"},
        {"{}", "\\\"inputs\\\" is missing"},
        {"{\"inputs\":[]}", "input \\\"x\\\" is missing"},
        {"{\"inputs\":[{}]}", "needs a name, a shape"},
        {INPUT("\"shape\":[2],\"data\":[1]"), "its data are neither"},
        {INPUT("\"shape\":[0],\"data\":[1]"), "its data are neither"},
        {INPUT("\"shape\":[2],\"data\":[1,2,3]"), "its data are neither"},
        {INPUT("\"shape\":[2,2],\"data\":[[1,2,3],[4]]"), "its data are neither"},
        {INPUT("\"shape\":[2,2],\"data\":[[1],[2],[3],[4]]"), "its data are neither"},
        {INPUT("\"shape\":[2],\"data\":[1,\"a\"]"), "is not of expected type: float32"},
        {INPUT("\"shape\":[9223372036854775807,3],\"data\":[1]"), "too many elements"},
        {INPUT("\"shape\":[4000000000],\"data\":[1]"), "fewer values"},
        {INPUT("\"shape\":[-1],\"data\":[1]"), "Expected a count"},
        {INPUT("\"shape\":[1,1,1,1,1,1,1,1,1],\"data\":[1]"), "too many dimensions"},
        {INPUT("\"shape\":[1]"), "either data or"},
        {INPUT("\"shape\":[1],\"data\":[1],\"parameters\":{\"binary_data_size\":4}"),
         "either data or"},
        {INPUT("\"shape\":[1],\"data\":[1]},{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],"
               "\"data\":[1]"),
         "is given twice"},
        {"{\"inputs\":[{\"name\":\"q\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}",
         "\\\"q\\\" is none of the model's"},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP8\",\"shape\":[1],\"data\":[1]}]}",
         "unknown datatype \\\"FP8\\\""},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[1]}]}",
         "got int32[1], expected float32"},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}],"
         "\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]}",
         "is asked for twice"},
        {"{\"inputs\":[],\"parameters\":{\"signature_name\":\"no\"}}", "\\\"no\\\" not found"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_part(post(&scene, infer_path, rows[i].body), 400, rows[i].part);
    }
    expect_part(post(&scene, infer_path,
                     INPUT("\"shape\":[1],\"parameters\":{\"shared_memory_region\":\"a\"}")),
                501, "shared memory");
    expect_part(post(&scene, infer_path,
                     "{\"inputs\":[{\"name\":\"s\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":["
                     "{\"b64\":\"/w==\"}]}],\"parameters\":{\"signature_name\":\"text\"}}"),
                400, "is not text");
    close_scene(&scene);
}

/* ---- The forms themselves ---- */

static const sx_serve_tensor half[] = {
    {.name = "h", .type = {.dtype = SX_F16}, .unknown_rank = true}};
static const sx_serve_tensor flag[] = {
    {.name = "f", .type = {.dtype = SX_BOOL}, .unknown_rank = true}};
static const sx_serve_signature signatures[] = {
    {.name = "serving_default",
     .method = "",
     .input_count = 1,
     .output_count = 1,
     .inputs = half,
     .outputs = half},
    {.name = "flag",
     .method = "",
     .input_count = 1,
     .output_count = 1,
     .inputs = flag,
     .outputs = flag},
};

static void test_serve_kserve__half_floats_are_numbers_in_json(void **state)
{
    (void)state;
    static const char text[] = "{\"inputs\":[{\"name\":\"h\",\"shape\":[3],\"datatype\":\"FP16\","
                               "\"data\":[1,0.333251953125,65504]}]}";
    sx_arena arena;
    sx_buf out;
    sx_predict_slots slots;
    sx_kserve_request request;
    size_t json_size;
    sx_arena_init(&arena, 0);
    sx_buf_init(&out, 0);
    sx_predict_slots_init(&slots);
    assert_ok(sx_kserve_json_read((sx_bytes){text, sizeof(text) - 1}, sizeof(text) - 1, signatures,
                                  2, &arena, &slots, &request));
    const uint16_t *values = request.inputs[0].data;
    assert_int_equal(values[0], sx_f32_to_f16(1));
    assert_int_equal(values[1], sx_f32_to_f16(0.333251953125f));
    assert_int_equal(values[2], sx_f32_to_f16(65504));
    assert_ok(sx_kserve_json_print(&request, request.inputs, "m", 1, SX_FLOAT_SHORTEST, NULL,
                                   &arena, &out, &json_size));
    assert_non_null(strstr(sx_buf_text(&out), "\"data\":[1.0, 0.33325195, 65504.0]"));
    sx_predict_slots_trim(&slots);
    sx_predict_slots_deinit(&slots);
    sx_buf_deinit(&out);
    sx_arena_deinit(&arena);
}

/* inputs: {name "f", datatype "BOOL", shape 3, contents {bool 1 0 1}}, signature_name "flag" */
static const char typed_flags[] = "\x22\x18\x0a\x0esignature_name\x12\x06\x1a\x04"
                                  "flag"
                                  "\x2a\x13\x0a\x01"
                                  "f\x12\x04"
                                  "BOOL\x1a\x01\x03\x2a\x05\x0a\x03\x01\x00\x01";

static void test_serve_kserve__typed_requests_are_answered_typed(void **state)
{
    (void)state;
    sx_arena arena;
    sx_buf out;
    sx_kserve_request request;
    sx_arena_init(&arena, 0);
    sx_buf_init(&out, 0);
    assert_ok(sx_kserve_proto_read((sx_bytes){typed_flags, sizeof(typed_flags) - 1}, signatures, 2,
                                   &arena, &request));
    assert_memory_equal(request.inputs[0].data, "\x01\x00\x01", 3);
    assert_ok(sx_kserve_proto_print(&request, request.inputs, "m", 7, &out));
    static const char wanted[] = "\x0a\x01m\x12\x01"
                                 "7\x1a\x00"
                                 "\x2a\x13\x0a\x01"
                                 "f\x12\x04"
                                 "BOOL\x1a\x01\x03\x2a\x05\x0a\x03\x01\x00\x01";
    assert_int_equal(out.size, sizeof(wanted) - 1);
    assert_memory_equal(out.data, wanted, out.size);
    sx_buf_deinit(&out);
    sx_arena_deinit(&arena);
}

static void test_serve_kserve__says_what_is_wrong_in_messages(void **state)
{
    (void)state;
#define FLAG                                         \
    "\x22\x18\x0a\x0esignature_name\x12\x06\x1a\x04" \
    "flag"
#define HEAD(size, shape)  \
    "\x2a" size "\x0a\x01" \
    "f\x12\x04"            \
    "BOOL\x1a\x01" shape
    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } rows[] = {
#define ROW(bytes, part) {bytes, sizeof(bytes) - 1, part}
        ROW("\x2a", "malformed ModelInferRequest"),
        ROW("\x28\x01", "malformed ModelInferRequest"),
        ROW("", "input \"h\" is missing"),
        ROW(FLAG HEAD("\x11", "\x03") "\x2a\x03\x0a\x01\x01", "got 1 values"),
        ROW(FLAG HEAD("\x13", "\x02") "\x2a\x05\x0a\x03\x01\x00\x01", "more than its shape"),
        ROW(FLAG HEAD("\x13", "\x03") "\x2a\x05\x12\x03\x01\x00\x01", "of another type"),
        ROW(FLAG HEAD("\x0c", "\x03") "\x3a\x02\x01\x01", "2 raw bytes are not a bool[3]"),
        ROW(FLAG HEAD("\x0c", "\x02") "\x3a\x02\x01\x01\x3a\x00", "more entries than inputs"),
        ROW(FLAG HEAD("\x11", "\x02") "\x2a\x03\x0a\x01\x01\x3a\x02\x01\x01", "expected either"),
        ROW("\x2a\x0e\x0a\x01h\x12\x04"
            "FP16\x1a\x01\x01\x2a\x00",
            "raw_input_contents"),
        ROW("\x22\x1a\x0a\x0esignature_name\x12\x08\x1a\x06nobody", "\"nobody\" not found"),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_arena arena;
        sx_kserve_request request;
        sx_arena_init(&arena, 0);
        sx_status status = sx_kserve_proto_read((sx_bytes){rows[i].bytes, rows[i].size}, signatures,
                                                2, &arena, &request);
        if (strstr(sx_status_message(status), rows[i].part) == NULL) {
            fail_msg("row %zu: %s, expected %s", i, sx_status_message(status), rows[i].part);
        }
        sx_status_free(status);
        sx_arena_deinit(&arena);
    }
    sx_predict_spec spec;
    assert_error(sx_kserve_spec_read((sx_bytes){"\x12\x01x", 3}, &spec), SX_INVALID_ARGUMENT,
                 "has to be a number");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_kserve__describes_server_and_models),
    cmocka_unit_test(test_serve_kserve__infers_from_json),
    cmocka_unit_test(test_serve_kserve__takes_and_gives_raw_tensors),
    cmocka_unit_test(test_serve_kserve__says_what_is_wrong),
    cmocka_unit_test(test_serve_kserve__half_floats_are_numbers_in_json),
    cmocka_unit_test(test_serve_kserve__typed_requests_are_answered_typed),
    cmocka_unit_test(test_serve_kserve__says_what_is_wrong_in_messages),
};
SX_TEST_MAIN(tests)
