/* SavedModels that contradict themselves are refused at import, with the node and the signature;
 * what TensorFlow allows to be vague, or leaves unused, still loads. */
#include "io/scratch.h"
#include "proto/pack_text.h"

#include "proto/saved_model.pb-c.h"
#include "savedmodel/predictor.h"

#define NODE(name, op, inputs, attrs) \
    "node { name: '" name "' op: '" op "' input: [" inputs "] " attrs " }\n"
#define ATTR(key, value)   "attr { key: '" key "' value { " value " } } "
#define SHAPE(dims)        "tensor_shape { " dims " } "
#define DIM(n)             "dim { size: " n " } "
#define X(shape)           NODE("x", "Placeholder", "", ATTR("dtype", "type: DT_FLOAT") shape)
#define X3                 X(ATTR("shape", "shape { " DIM("-1") DIM("3") " }"))
#define Y                  NODE("y", "Relu", "'x'", "")
#define IN(text)           "inputs { key: 'x' value { name: 'x:0' " text " } } "
#define OUT(name, text)    "outputs { key: 'y' value { name: '" name "' " text " } } "
#define FLOAT3             "dtype: DT_FLOAT " SHAPE(DIM("-1") DIM("3"))
#define SIGNATURE          IN(FLOAT3) OUT("y:0", FLOAT3)
#define FUNCTION(args, io) "function { signature { name: 'f' " args " } " io " } "

/* Loads the model of these nodes (and library) and of one signature, "named". */
static sx_status load(const char *graph, const char *signature)
{
    sx_buf text, packed;
    sx_predictor *p = NULL;
    sx_buf_init(&text, 0);
    sx_buf_init(&packed, 0);
    sx_buf_printf(&text,
                  "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } "
                  "graph_def { %s } signature_def { key: 'named' value { %s "
                  "method_name: 'tensorflow/serving/predict' } } }",
                  graph, signature);
    pack_text(&tensorflow__saved_model__descriptor, sx_buf_text(&text), &packed);
    assert_ok(sx_dir_create(scratch("m")));
    write_file(scratch("m/saved_model.pb"), packed.data, packed.size);
    sx_buf_deinit(&packed);
    sx_buf_deinit(&text);
    sx_status status = sx_predictor_load(scratch("m"), NULL, &p);
    sx_predictor_unload(p);
    return status;
}

static void test_savedmodel_import_edges__refuses_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *graph, *signature, *says;
    } rows[] = {
        /* the signature against the Placeholder */
        {X3 Y, IN("dtype: DT_INT32 " SHAPE(DIM("-1") DIM("3"))) OUT("y:0", FLOAT3),
         "input \"x\" is int32[N,3] in the signature, but Placeholder \"x\" is float32"},
        {X3 Y, IN("dtype: DT_STRING " SHAPE(DIM("-1"))) OUT("y:0", FLOAT3),
         "input \"x\" is string[N] in the signature, but Placeholder \"x\" is float32"},
        {X3 Y, IN("dtype: DT_FLOAT " SHAPE(DIM("-1") DIM("4"))) OUT("y:0", FLOAT3),
         "input \"x\" is float32[N,4] in the signature, but Placeholder \"x\" is float32[N,3]"},
        {X3 Y, IN("dtype: DT_FLOAT " SHAPE(DIM("3"))) OUT("y:0", FLOAT3),
         "input \"x\" is float32[3] in the signature, but Placeholder \"x\" is float32[N,3]"},
        {NODE("x", "PlaceholderWithDefault", "'z'",
              ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { " DIM("2") " }"))
             NODE("z", "Const", "", "") Y,
         IN("dtype: DT_FLOAT " SHAPE(DIM("5"))) OUT("y:0", ""),
         "input \"x\" is float32[5] in the signature, but PlaceholderWithDefault \"x\" is"},
        {X(ATTR("shape", "shape { }")) Y "versions { producer: 22 } ",
         IN(FLOAT3) OUT("y:0", FLOAT3),
         "input \"x\" is float32[N,3] in the signature, but Placeholder \"x\" is float32[]"},
        /* the signature against what the graph computes */
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_INT64 " SHAPE(DIM("-1") DIM("3"))),
         "output \"y\" is int64[N,3] in the signature, but \"y:0\" is float32[N,3]"},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT " SHAPE(DIM("-1") DIM("2"))),
         "output \"y\" is float32[N,2] in the signature, but \"y:0\" is float32[N,3]"},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT " SHAPE("")),
         "output \"y\" is float32[] in the signature, but \"y:0\" is float32[N,3]"},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT8_E5M2 " SHAPE(DIM("-1") DIM("3"))),
         "output \"y\" is float8_e5m2[N,3] in the signature, but \"y:0\" is float32[N,3]"},
        /* tensors that are not there */
        {X3 Y, IN(FLOAT3) OUT("w:0", FLOAT3), "output \"y\": the graph has no tensor \"w:0\""},
        {X3 Y, IN(FLOAT3) OUT("y:1", FLOAT3), "output \"y\": \"y:1\": Relu \"y\" has 1 output"},
        {X3 Y NODE("z", "Neg", "'y:7'", ""), IN(FLOAT3) OUT("z", FLOAT3),
         "Neg \"z\": \"y:7\": Relu \"y\" has 1 output"},
        {X3 NODE("y", "f", "'x'", "") "library { " FUNCTION(
             "input_arg { name: 'a' } output_arg { name: 'b' }", "ret { key: 'b' value: 'a' }") "}",
         IN(FLOAT3) OUT("y:1", FLOAT3), "output \"y\": \"y:1\": f \"y\" has 1 output"},
        {X3 Y NODE("unused", "Neg", "'nobody:3'", ""), SIGNATURE,
         "node \"unused\": unknown input node \"nobody\""},
        {X3 Y NODE("unused", "NoOp", "'^nobody'", ""), SIGNATURE,
         "node \"unused\": unknown input node \"nobody\""},
        {X3 Y NODE("unused", "Neg", "'x:y:z'", ""), SIGNATURE,
         "node \"unused\": \"x:y:z\" is not a tensor reference"},
        {X3 NODE("y", "AddV2", "'x', '^x', 'x'", ""), SIGNATURE,
         "node \"y\": data input \"x\" comes after control input \"^x\""},
        {X3 NODE("y", "AddV2", "'x', '^x', 'nobody'", ""), SIGNATURE, /* the first fault is named */
         "node \"y\": data input \"nobody\" comes after control input \"^x\""},
        /* two of one name */
        {X3 Y NODE("y", "Neg", "'x'", ""), SIGNATURE, "node name \"y\" is not unique"},
        {X3 Y NODE("unused", "NoOp", "", "") NODE("unused", "NoOp", "", ""), SIGNATURE,
         "node name \"unused\" is not unique"},
        /* cycles */
        {X3 NODE("y", "Relu", "'x', '^y'", ""), SIGNATURE,
         "node \"y\" depends on itself: \"y\" <- \"y\""},
        {X3 NODE("y", "Relu", "'x', '^b'", "") NODE("a", "NoOp", "'^y'", "")
             NODE("b", "NoOp", "'^a'", ""),
         SIGNATURE, "node \"y\" depends on itself: \"y\" <- \"b\" <- \"a\" <- \"y\""},
        {X3 Y NODE("p", "Neg", "'q'", "") NODE("q", "Neg", "'p'", ""), SIGNATURE,
         "node \"p\" depends on itself: \"p\" <- \"q\" <- \"p\""},
        {X3 NODE("y", "f", "'x'",
                 "") "library { " FUNCTION("input_arg { name: 'a' } output_arg { name: 'b' }",
                                           "node_def { name: 'c' op: 'Relu' input: ['a', '^c'] } "
                                           "ret { key: 'b' value: 'c:activations:0' }") "}",
         SIGNATURE, "signature \"named\": function \"f\": node \"c\" depends on itself"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_status status = load(rows[i].graph, rows[i].signature);
        const char *message = status == SX_OK ? "it loaded" : sx_status_message(status);
        if (sx_status_code(status) != SX_DATA_LOSS || strstr(message, rows[i].says) == NULL ||
            strstr(message, "signature \"named\"") == NULL) {
            fail_msg("row %zu: %s\n  not: %s", i, message, rows[i].says);
        }
        sx_status_free(status);
    }
}

static void test_savedmodel_import_edges__loads_what_is_vague(void **state)
{
    (void)state;
    static const struct {
        const char *graph, *signature;
    } rows[] = {
        {X3 Y, SIGNATURE},
        {X("") Y, SIGNATURE}, /* the Placeholder's shape is absent, or of unknown rank */
        {X(ATTR("shape", "shape { unknown_rank: true }")) Y, SIGNATURE},
        {X(ATTR("shape", "shape { }")) Y "versions { producer: 21 } ",
         SIGNATURE}, /* TensorFlow 1.0 */
        {X(ATTR("shape", "shape { " DIM("-1") DIM("-1") " }")) Y, SIGNATURE},
        {X(ATTR("shape", "shape { " DIM("8") DIM("3") " }")) Y, SIGNATURE},
        {X3 Y, IN("dtype: DT_FLOAT " SHAPE(DIM("8") DIM("3"))) OUT("y:0", FLOAT3)},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT")},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT " SHAPE("unknown_rank: true"))},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT " SHAPE(DIM("-1") DIM("-1")))},
        {X3 Y, IN(FLOAT3) OUT("y:0", "dtype: DT_FLOAT " SHAPE(DIM("8") DIM("3")))},
        {X3 Y, IN(FLOAT3) OUT("y", FLOAT3)}, /* without an index */
        /* another signature can never run: a shape that is computed, of other than 2 elements */
        {X3 Y NODE("k", "Const", "",
                   ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 }"))
             NODE("p", "Pack", "'k', 'k'", "")
                 NODE("v", "Const", "",
                      ATTR("value", "tensor { dtype: DT_FLOAT " SHAPE(DIM("2")) "float_val: 1 }"))
                     NODE("z", "Reshape", "'v', 'p'", ""),
         SIGNATURE "method_name: '' } } signature_def { key: 'second' value { " IN(FLOAT3)
             OUT("z:0", "")},
        {X3 Y, SIGNATURE "outputs { key: 'alias' value { name: 'y:0' " FLOAT3 " } } "},
        {X3 Y, SIGNATURE "outputs { key: 'echo' value { name: 'x:0' " FLOAT3 " } } "},
        {X3 NODE("z", "Identity", "'x'", "") NODE("y", "Relu", "'z'", ""), /* feeds any node */
         "inputs { key: 'x' value { name: 'z:0' " FLOAT3 " } } " OUT("y:0", FLOAT3)},
        {X3 NODE("y", "Relu", "'x:0', '^init', '^x'", "") NODE("init", "NoOp", "", ""), SIGNATURE},
        {X3 Y NODE("enter", "Enter", "'x'", "") /* the back edge of TensorFlow 1's while loops */
         NODE("merge", "Merge", "'enter', 'next'", "") NODE("body", "Neg", "'merge'", "")
             NODE("next", "NextIteration", "'body'", ""),
         SIGNATURE},
        {X3 Y NODE("next", "NextIteration", "'body'", "") NODE("body", "Neg", "'merge'", "")
             NODE("merge", "Merge", "'next', 'x'", ""),
         SIGNATURE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_status status = load(rows[i].graph, rows[i].signature);
        if (status != SX_OK) {
            fail_msg("row %zu: %s", i, sx_status_message(status));
        }
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_import_edges__refuses_contradictions),
    scratch_test(test_savedmodel_import_edges__loads_what_is_vague),
};
SX_TEST_MAIN(tests)
