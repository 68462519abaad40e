/* Reading saved_model.pb from texts: which graph, signatures, references to nodes, which checkpoint
 * key fills which variable, and the values of constants. */
#include "io/scratch.h"
#include "proto/pack_text.h"

#include "base/checked.h"
#include "proto/saved_model.pb-c.h"
#include "proto/tensor.pb-c.h"
#include "proto/text_format.h"
#include "savedmodel/saved_model_read.h"

static sx_status parse_text(const char *text, sx_saved_model **out)
{
    sx_buf packed;
    sx_buf_init(&packed, 0);
    pack_text(&tensorflow__saved_model__descriptor, text, &packed);
    sx_status status =
        sx_saved_model_parse((sx_bytes){packed.data != NULL ? packed.data : "", packed.size}, out);
    sx_buf_deinit(&packed);
    return status;
}

#define SERVE      "meta_info_def { tags: 'serve' } "
#define META(text) "meta_graphs { " text " } "

static void test_savedmodel_saved_model_read__picks_the_graph_that_serves(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *node;    /* the only node of the graph that is taken */
        const char *refusal; /* or why none is */
    } rows[] = {
        {META(SERVE "graph_def { node { name: 'a' } }"), "a", NULL},
        {META("meta_info_def { tags: 'train' } graph_def { node { name: 'a' } }")
             META(SERVE "graph_def { node { name: 'b' } }"),
         "b", NULL},
        {META(SERVE "graph_def { node { name: 'a' } }")
             META(SERVE "graph_def { node { name: 'b' } }"),
         "a", NULL},
        {META("meta_info_def { tags: ['serve', 'tpu'] } graph_def { node { name: 'a' } }")
             META(SERVE "graph_def { node { name: 'b' } }"),
         "b", NULL},
        {META("meta_info_def { tags: 'serves' } graph_def { }"), NULL,
         "no graph has the tags \"serve\"; the model has \"serves\""},
        {META("meta_info_def { } graph_def { }") META("graph_def { }"), NULL,
         "no graph has the tags \"serve\"; the model has one without tags, one without tags"},
        {"saved_model_schema_version: 1", NULL, "the model has no graph"},
        {META(SERVE), NULL, "saved_model.pb has no graph"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_saved_model *model = NULL;
        sx_status status = parse_text(rows[i].text, &model);
        if (rows[i].node != NULL) {
            assert_ok(status);
            assert_string_equal(sx_saved_model_graph(model)->node[0]->name, rows[i].node);
        } else {
            const bool lost = strstr(rows[i].refusal, ".pb has no graph") != NULL;
            assert_error(status, lost ? SX_DATA_LOSS : SX_NOT_FOUND, rows[i].refusal);
        }
        sx_saved_model_close(model);
    }
}

static void test_savedmodel_saved_model_read__signatures(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    const sx_signature *s = NULL;
    size_t n = 0;
    assert_ok(parse_text(
        META(SERVE "graph_def { } signature_def { key: 'z' value { method_name: 'm' } } "
                   "signature_def { key: 'a' value { "
                   "inputs { key: 'y' value { name: 'y:1' dtype: DT_INT64 } } "
                   "inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT tensor_shape { dim { "
                   "size: -1 } dim { size: 3 } dim { size: -1 } } } } "
                   "inputs { key: 'w' value { dtype: DT_RESOURCE tensor_shape { unknown_rank: true "
                   "} } } "
                   "outputs { key: 'o' value { name: 'o:0' dtype: DT_STRING tensor_shape { dim { "
                   "size: 7 } } } } "
                   "outputs { key: 'd' value { dtype: DT_FLOAT tensor_shape { dim { } dim { } dim "
                   "{ } dim { } dim { } dim { } dim { } dim { } dim { } } } } "
                   "method_name: 'tensorflow/serving/predict' } }"),
        &model));
    const sx_signature *all = sx_saved_model_signatures(model, &n);
    assert_int_equal(n, 2);
    assert_string_equal(all[0].key, "a");
    assert_string_equal(all[1].key, "z");
    assert_string_equal(all[1].method, "m");
    assert_ok(sx_saved_model_find_signature(model, "a", &s));
    assert_ptr_equal(s, &all[0]);
    assert_string_equal(s->method, "tensorflow/serving/predict");
    assert_int_equal(s->n_inputs, 3);
    assert_int_equal(s->n_outputs, 2);
    assert_string_equal(s->inputs[0].key, "w");
    assert_int_equal(s->inputs[0].type.dtype, SX_DTYPE_NONE);
    assert_int_equal(s->inputs[0].tf_dtype, 20);
    assert_true(s->inputs[0].unknown_rank);
    const sx_type x = {SX_F32, 3, {SX_BATCH, 3, SX_UNKNOWN_DIM}};
    assert_string_equal(s->inputs[1].key, "x");
    assert_string_equal(s->inputs[1].tensor, "x:0");
    assert_true(sx_type_equal(&s->inputs[1].type, &x));
    assert_false(s->inputs[1].unknown_rank);
    assert_string_equal(s->inputs[2].key, "y");
    assert_int_equal(s->inputs[2].type.rank, 0);
    assert_string_equal(s->outputs[0].key, "d");
    assert_true(s->outputs[0].unknown_rank); /* nine dimensions */
    assert_int_equal(s->outputs[0].type.rank, 0);
    assert_string_equal(s->outputs[1].key, "o");
    assert_int_equal(s->outputs[1].type.dtype, SX_STRING);
    assert_int_equal(s->outputs[1].type.dims[0], 7);
    assert_error(sx_saved_model_find_signature(model, "b", &s), SX_NOT_FOUND, "\"a\", \"z\"");
    assert_true(sx_saved_model_budget(model) >= 64 << 20);
    assert_null(sx_saved_model_variables(model));
    sx_saved_model_close(model);
    sx_saved_model_close(NULL);
}

/* A ragged or sparse entry stands for several tensors; one without a value for one without a name.
 */
static void test_savedmodel_saved_model_read__parts_of_signatures(void **state)
{
    (void)state;
    static const struct {
        const char *key, *tensor;
        sx_dtype dtype;
        int rank;
    } expected[] = {{"c.component_0", "c:0", SX_F32, 0}, {"c.component_1", "", SX_DTYPE_NONE, 0},
                    {"n", "", SX_DTYPE_NONE, 0},         {"r.flat_values", "r:0", SX_I32, 1},
                    {"r.row_splits", "r:1", SX_I64, 1},  {"r.row_splits_1", "r:2", SX_I64, 1},
                    {"s.dense_shape", "s:2", SX_I64, 1}, {"s.indices", "s:0", SX_I64, 2},
                    {"s.values", "s:1", SX_STRING, 1}};
#define VECTOR "tensor_shape { dim { size: -1 } } "
    sx_saved_model *model = NULL;
    const sx_signature *f = NULL;
    assert_ok(parse_text(
        META(SERVE
             "graph_def { node { name: 'a' } } signature_def { key: 'f' value { "
             "inputs { key: 'n' } "
             "inputs { key: 's' value { dtype: DT_STRING coo_sparse { values_tensor_name: 's:1' "
             "indices_tensor_name: 's:0' dense_shape_tensor_name: 's:2' } } } "
             "inputs { key: 'r' value { composite_tensor { type_spec { type_spec_class: "
             "3 } components { name: 'r:0' dtype: DT_INT32 " VECTOR
             "} components { name: 'r:1' dtype: DT_INT64 " VECTOR
             "} components { name: 'r:2' dtype: DT_INT64 " VECTOR "} } } } "
             "inputs { key: 'c' value { composite_tensor { components { name: 'c:0' dtype: "
             "DT_FLOAT } components { composite_tensor { components { name: 'd' } } } } } } "
             "inputs { key: 'z' value { composite_tensor { } } } } }"),
        &model));
    assert_ok(sx_saved_model_find_signature(model, "f", &f));
    assert_int_equal(f->n_inputs, SX_COUNT(expected));
    for (size_t i = 0; i < f->n_inputs; i++) {
        assert_string_equal(f->inputs[i].key, expected[i].key);
        assert_string_equal(f->inputs[i].tensor, expected[i].tensor);
        assert_int_equal(f->inputs[i].type.dtype, expected[i].dtype);
        assert_int_equal(f->inputs[i].type.rank, expected[i].rank);
    }
    sx_saved_model_close(model);
}

static void test_savedmodel_saved_model_read__references(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        const char *node;
        int output;
        const char *arg;
        bool control;
    } rows[] = {
        {"a", true, "a", 0, "", false},
        {"a/b:1", true, "a/b", 1, "", false},
        {"a:999999", true, "a", 999999, "", false},
        {"split:output:2", true, "split", 2, "output", false},
        {"^a", true, "a", 0, "", true},
        {"a:1000000", false, NULL, 0, NULL, false},
        {"a:", false, NULL, 0, NULL, false},
        {"a:x", false, NULL, 0, NULL, false},
        {"a:-1", false, NULL, 0, NULL, false},
        {"a:y:", false, NULL, 0, NULL, false},
        {":1", false, NULL, 0, NULL, false},
        {"", false, NULL, 0, NULL, false},
        {"^", false, NULL, 0, NULL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_tf_ref ref;
        assert_int_equal(sx_tf_ref_parse(rows[i].text, &ref), rows[i].good);
        if (rows[i].good) {
            assert_int_equal(ref.node_bytes, strlen(rows[i].node));
            assert_memory_equal(ref.node, rows[i].node, ref.node_bytes);
            assert_int_equal(ref.output, rows[i].output);
            assert_int_equal(ref.arg_bytes, strlen(rows[i].arg));
            assert_int_equal(ref.arg == NULL, ref.arg_bytes == 0);
            assert_true(ref.arg == NULL || memcmp(ref.arg, rows[i].arg, ref.arg_bytes) == 0);
            assert_int_equal(ref.control, rows[i].control);
        }
    }
}

#define NODE(name, op, inputs) "node { name: '" name "' op: '" op "' input: [" inputs "] "
#define NAMES(name, list)   \
    NODE(name, "Const", "") \
    "attr { key: 'value' value { tensor { dtype: DT_STRING string_val: [" list "] } } } } "
#define BODY(node)                                                                 \
    node("names", "Const",                                                         \
         "") "attr { key: 'value' value { tensor { dtype: DT_STRING string_val: [" \
             "'k0', 'k1', ''] } } } } " node("restore", "RestoreV2",               \
                                             "'prefix', 'names', 'slices'") "} "

/* Keys by the restore operation of the graph itself, past identities, or of a function whose
 * arguments are the handles. */
static void test_savedmodel_saved_model_read__keys_of_variables(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    assert_ok(parse_text(
        META(
            SERVE "graph_def { " NODE("v0", "VarHandleOp", "") "} " NODE(
                "v1", "VarHandleOp", "") "} " NODE("v2", "VarHandleOp",
                                                   "") "} " NODE("v3", "VarHandleOp",
                                                                 "") "} " BODY(NODE)
                NODE("i", "Identity", "'restore:1'") "} " NODE("j", "Identity", "'i'") "} " NODE(
                    "a0", "AssignVariableOp",
                    "'v0', 'restore'") "} " NODE("a1", "AssignVariableOp",
                                                 "'v1', 'j'") "} " NODE("a2", "AssignVariableOp",
                                                                        "'v2', 'restore:2'") "} " /* its key is empty */
            NODE("a3", "AssignVariableOp", "'v3', 'restore:3'") "} " /* there is none */
            NODE("a4", "AssignVariableOp", "'v3'") "} " NODE(
                "a5", "NoOp",
                "'v3', 'restore'") "} " NODE("a6", "AssignVariableOp",
                                             "'v3', 'v0'") "} " NODE("a7", "AssignVariableOp",
                                                                     "'names', 'restore'") "} }"),
        &model));
    assert_string_equal(sx_saved_model_variable_key(model, "v0"), "k0");
    assert_string_equal(sx_saved_model_variable_key(model, "v1"), "k1");
    assert_null(sx_saved_model_variable_key(model, "v2"));
    assert_null(sx_saved_model_variable_key(model, "v3"));
    assert_null(sx_saved_model_variable_key(model, "names"));
    assert_null(sx_saved_model_variable_key(model, "nobody"));
    sx_saved_model_close(model);
#define FUNCTION_NODE(name, op, inputs) \
    "node_def { name: '" name "' op: '" op "' input: [" inputs "] "
    assert_ok(parse_text(
        META(SERVE "saver_def { restore_op_name: 'call:0' } graph_def { " NODE("v0", "VarHandleOp", "") "} " NODE(
            "v1", "VarHandleOp",
            "") "} " NODE("call", "StatefulPartitionedCall",
                          "'path', 'v0', 'v1'") "attr { key: 'f' value { func { name: 'f' } } } } "
                                                "library { function { signature { name: 'g' } } "
                                                "function { signature { name: 'f' "
                                                "input_arg { name: 'p' } input_arg { name: 'h0' } "
                                                "input_arg { name: 'h1' } } " BODY(FUNCTION_NODE)
                                                    FUNCTION_NODE("a0", "AssignVariableOp", "'h1', 'restore:tensors:0'") "} " FUNCTION_NODE(
                                                        "a1", "AssignVariableOp",
                                                        "'h0', 'restore:tensors:1'") "} } } }"),
        &model));
    assert_string_equal(sx_saved_model_variable_key(model, "v1"), "k0");
    assert_string_equal(sx_saved_model_variable_key(model, "v0"), "k1");
    sx_saved_model_close(model);
}

/* The restore function is not in the library: no key, whatever the library holds. */
static void test_savedmodel_saved_model_read__a_missing_restore_function(void **state)
{
    (void)state;
    for (int n = 0; n <= 6; n++) {
        sx_saved_model *model = NULL;
        sx_buf text;
        sx_buf_init(&text, 0);
        sx_buf_puts(
            &text,
            "meta_graphs { " SERVE "saver_def { restore_op_name: 'call:0' } graph_def { " NODE(
                "v0", "VarHandleOp",
                "") "} " NODE("call", "StatefulPartitionedCall",
                              "'path', 'v0'") "attr { key: 'f' value { func { name: 'f' } } } } ");
        for (int i = 0; i < n; i++) {
            sx_buf_printf(&text, "%s function { signature { name: 'g%d' } } ",
                          i == 0 ? "library { " : "", i);
        }
        sx_buf_puts(&text, n > 0 ? "} } }" : "} }");
        assert_ok(parse_text(sx_buf_text(&text), &model));
        assert_null(sx_saved_model_variable_key(model, "v0"));
        sx_saved_model_close(model);
        sx_buf_deinit(&text);
    }
}

/* ---- Constants ---- */

static sx_status value_of(const char *text, sx_arena *arena, sx_tensor *out)
{
    ProtobufCMessage *message = NULL;
    assert_ok(sx_text_format_parse(&tensorflow__tensor_proto__descriptor,
                                   (sx_bytes){text, strlen(text)}, "row", &message));
    sx_status status = sx_tf_tensor_value((const Tensorflow__TensorProto *)message, arena, out);
    if (status == SX_OK &&
        out->type.dtype == SX_STRING) { /* views of the message: looked at here */
        const sx_bytes *views = out->data;
        static const char *const expected[] = {"a", "bc", "bc"};
        for (int64_t i = 0; i < sx_type_elems(&out->type) && views[0].size > 0; i++) {
            assert_int_equal(views[i].size, strlen(expected[i]));
            assert_memory_equal(views[i].data, expected[i], views[i].size);
        }
    }
    sx_proto_free(message);
    return status;
}

#define DIMS2 "tensor_shape { dim { size: 2 } dim { size: 2 } } "

static void test_savedmodel_saved_model_read__constants(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_dtype dtype;
        const char *hex; /* the bytes, little-endian */
    } rows[] = {
        {"dtype: DT_FLOAT " DIMS2 "float_val: [1, 2, 3, 4]", SX_F32,
         "0000803f 00000040 00004040 00008040"},
        {"dtype: DT_FLOAT " DIMS2 "float_val: [1, 2]", SX_F32,
         "0000803f 00000040 00000040 00000040"}, /* the last value goes on */
        {"dtype: DT_FLOAT " DIMS2, SX_F32, "00000000 00000000 00000000 00000000"},
        {"dtype: DT_FLOAT tensor_content: '\\001\\002\\003\\004'", SX_F32, "01020304"},
        {"dtype: DT_DOUBLE double_val: 1", SX_F64, "000000000000f03f"},
        {"dtype: DT_INT64 int64_val: -2", SX_I64, "feffffffffffffff"},
        {"dtype: DT_UINT64 uint64_val: 258", SX_U64, "0201000000000000"},
        {"dtype: DT_UINT32 uint32_val: 258", SX_U32, "02010000"},
        {"dtype: DT_INT32 int_val: -2", SX_I32, "feffffff"},
        {"dtype: DT_INT16 int_val: -2", SX_I16, "feff"},
        {"dtype: DT_INT8 int_val: -2", SX_I8, "fe"},
        {"dtype: DT_UINT8 int_val: 254", SX_U8, "fe"},
        {"dtype: DT_UINT16 int_val: 65534", SX_U16, "feff"},
        {"dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: [true, false]", SX_BOOL,
         "0100"},
        {"dtype: DT_HALF half_val: 15360", SX_F16, "003c"},
        {"dtype: DT_BFLOAT16 half_val: 16256", SX_BF16, "803f"},
        {"dtype: DT_FLOAT tensor_shape { dim { size: 0 } } float_val: 7", SX_F32, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t expected[64];
        sx_arena arena;
        sx_tensor t = {0};
        sx_arena_init(&arena, 0);
        assert_ok(value_of(rows[i].text, &arena, &t));
        assert_int_equal(t.type.dtype, rows[i].dtype);
        assert_int_equal(sx_type_bytes(&t.type), from_hex(rows[i].hex, expected));
        assert_memory_equal(t.data, expected, (size_t)sx_type_bytes(&t.type));
        sx_arena_deinit(&arena);
    }
    static const struct {
        const char *text;
        sx_code code;
        const char *says;
    } bad[] = {
        {"dtype: DT_RESOURCE", SX_UNIMPLEMENTED, "a tensor is resource, which is not supported"},
        {"dtype: DT_FLOAT8_E4M3FN", SX_UNIMPLEMENTED, "a tensor is float8_e4m3fn, which is not"},
        {"dtype: DT_INT4", SX_UNIMPLEMENTED, "a tensor is int4, which is not supported"},
        {"dtype: DT_FLOAT tensor_shape { unknown_rank: true }", SX_DATA_LOSS, "has no shape"},
        {"dtype: DT_FLOAT tensor_shape { dim { } dim { } dim { } dim { } dim { } dim { } dim { } "
         "dim { } dim { } }",
         SX_UNIMPLEMENTED, "9 dimensions; at most 8 are supported"},
        {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: -1 } }", SX_DATA_LOSS,
         "dimension -1"},
        {"dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } }",
         SX_DATA_LOSS, "too many elements"},
        {"dtype: DT_FLOAT " DIMS2 "tensor_content: '123'", SX_DATA_LOSS, "3 bytes, expected 16"},
        {"dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } } float_val: 1",
         SX_RESOURCE_EXHAUSTED, "over the limit"},
        {"dtype: DT_STRING tensor_shape { dim { size: 1000000000 } }", SX_RESOURCE_EXHAUSTED,
         "over the limit"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sx_arena arena;
        sx_tensor t = {0};
        sx_arena_init(&arena, 1 << 20);
        assert_error(value_of(bad[i].text, &arena, &t), bad[i].code, bad[i].says);
        sx_arena_deinit(&arena);
    }
    sx_arena arena;
    sx_tensor t = {0};
    sx_arena_init(&arena, 0);
    assert_ok(value_of("dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: ['a', 'bc']",
                       &arena, &t));
    assert_ok(value_of("dtype: DT_STRING tensor_shape { dim { size: 3 } }", &arena, &t));
    assert_int_equal(((const sx_bytes *)t.data)[2].size, 0);
    sx_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_saved_model_read__picks_the_graph_that_serves),
    cmocka_unit_test(test_savedmodel_saved_model_read__signatures),
    cmocka_unit_test(test_savedmodel_saved_model_read__parts_of_signatures),
    cmocka_unit_test(test_savedmodel_saved_model_read__references),
    cmocka_unit_test(test_savedmodel_saved_model_read__keys_of_variables),
    cmocka_unit_test(test_savedmodel_saved_model_read__a_missing_restore_function),
    cmocka_unit_test(test_savedmodel_saved_model_read__constants),
};
SX_TEST_MAIN(tests)
