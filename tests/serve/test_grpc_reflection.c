/* Reflection: services, files and symbols of our own descriptors; foreign bytes. */
#include "harness.h"

#include "serve/grpc_reflection.h"

/* A request of one field. */
static sx_bytes ask(char bytes[128], int number, const char *text)
{
    const size_t size = strlen(text);
    bytes[0] = (char)(number << 3 | 2);
    bytes[1] = (char)size;
    memcpy(bytes + 2, text, size);
    return (sx_bytes){bytes, size + 2};
}

static bool has(const sx_buf *out, const char *text)
{
    return memmem(out->data, out->size, text, strlen(text)) != NULL;
}

static void test_serve_grpc_reflection__answers(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *text, *part; /* the part of the answer */
    } rows[] = {
        {7, "", "tensorflow.serving.ModelService"},
        {7, "*", "grpc.health.v1.Health"},
        {7, "*", "inference.GRPCInferenceService"},
        {4, "inference.GRPCInferenceService.ModelInfer", "InferTensorContents"},
        {3, "serve/api/serving.proto", "MultiInferenceRequest"},
        {3, "proto/tensor.proto", "tensor_content"},
        {3, "serve/api/servin", "File not found."},
        {4, "tensorflow.serving.PredictionService", "MultiInferenceRequest"},
        {4, "tensorflow.serving.PredictionService.Predict", "MultiInferenceRequest"},
        {4, "tensorflow.serving.ModelVersionStatus.State.LOADING", "MultiInferenceRequest"},
        {4, "tensorflow.serving.ModelSpec.version_choice", "MultiInferenceRequest"},
        {4, "tensorflow.TensorProto", "tensor_content"},
        {4, "tensorflow.serving", "Symbol not found."},
        {4, "tensorflow.serving.", "Symbol not found."},
        {4, "tensorflow.serving.Predict", "Symbol not found."},
        {4, "tensorflow.serving.ModelSpec.no", "Symbol not found."},
        {4, "", "Symbol not found."},
        {5, "", "Extension not found."},
        {6, "tensorflow.serving.ModelSpec", "Extension not found."},
        {1, "host", "Invalid request"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[128];
        sx_buf out;
        sx_buf_init(&out, 0);
        assert_ok(sx_grpc_reflect(ask(bytes, rows[i].number, rows[i].text), &out));
        if (!has(&out, rows[i].part)) {
            fail_msg("%d %s: no %s", rows[i].number, rows[i].text, rows[i].part);
        }
        sx_buf_deinit(&out);
    }
}

static void test_serve_grpc_reflection__refuses(void **state)
{
    (void)state;
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_error(sx_grpc_reflect((sx_bytes){"\x20\x01", 2}, &out), SX_INVALID_ARGUMENT,
                 "malformed ServerReflectionRequest");
    assert_error(sx_grpc_reflect((sx_bytes){"\x22\x05x", 3}, &out), SX_INVALID_ARGUMENT,
                 "malformed ServerReflectionRequest");
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_grpc_reflection__answers),
    cmocka_unit_test(test_serve_grpc_reflection__refuses),
};

SX_TEST_MAIN(tests)
