/* TensorFlow's operators one by one: a model of a few nodes, written as text, imported and run on
 *
 *     x = 1 -2 3 -4 5 ...        float32, of the shape that the row gives, N its first dimension
 *
 * and what comes out, or why it cannot be imported. What TensorFlow computes for whole models:
 * tests/interop/test_savedmodel.py. */
#include "io/scratch.h"
#include "proto/pack_text.h"

#include "proto/saved_model.pb-c.h"
#include "savedmodel/predictor.h"

#define ATTR(key, value) "attr { key: '" key "' value { " value " } } "
#define LIST(list)       "list { i: [" list "] }"
/* A node; its inputs are 'a', 'b'. */
#define NODE(name, op, inputs, attrs) \
    "node { name: '" name "' op: '" op "' input: [" inputs "] " attrs " }\n"
#define Y(op, inputs, attrs) NODE("y", op, inputs, attrs)
#define CONST(name, type, dims, values) \
    NODE(name, "Const", "",             \
         ATTR("dtype", "type: " type)   \
             ATTR("value", "tensor { dtype: " type " tensor_shape { " dims " } " values " }"))
#define DIM(n)              "dim { size: " n " } "
#define INT(name, value)    CONST(name, "DT_INT32", "", "int_val: " value)
#define INTS(name, n, list) CONST(name, "DT_INT32", DIM(n), "int_val: [" list "]")
#define SAME                ATTR("padding", "s: 'SAME'")
#define VALID               ATTR("padding", "s: 'VALID'")
#define STRIDES(list)       ATTR("strides", LIST(list))
#define SHRINK              ATTR("shrink_axis_mask", "i: 1")
/* n is the element `at` of the shape of x, if `attrs` is SHRINK. */
#define ELEMENT(at, attrs)        \
    NODE("h", "Shape", "'x'", "") \
    INTS("b", "1", at)            \
    INTS("e", "1", "1") INTS("o", "1", "1") NODE("n", "StridedSlice", "'h', 'b', 'e', 'o'", attrs)
/* y is x convolved with the filter 1, 10, 100, which is three high. */
#define CONV(attrs)                                                                        \
    CONST("w", "DT_FLOAT", DIM("3") DIM("1") DIM("1") DIM("1"), "float_val: [1, 10, 100]") \
    Y("Conv2D", "'x', 'w'", attrs)
#define VECTOR2(name, list) CONST(name, "DT_FLOAT", DIM("2"), "float_val: [" list "]")
#define BATCH_NORM(attrs)  \
    VECTOR2("g", "2, 3")   \
    VECTOR2("b", "10, 20") \
    VECTOR2("m", "0, -1")  \
    VECTOR2("v", "3, 0") Y("FusedBatchNormV3", "'x', 'g', 'b', 'm', 'v'", attrs)

typedef struct row {
    const char *dims; /* of x */
    const char *nodes;
    const char *expected; /* "float32[2,3] 1 2 ...", or the error: "UNIMPLEMENTED: part of it" */
} row;

/* The model's file: x, the row's nodes, and the output y. */
static void write_model(const row *r)
{
    sx_buf text, packed;
    sx_buf_init(&text, 0);
    sx_buf_init(&packed, 0);
    sx_buf_puts(
        &text,
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } "
        "graph_def { node { name: 'x' op: 'Placeholder' " ATTR("dtype", "type: DT_FLOAT") "}\n");
    sx_buf_puts(&text, r->nodes);
    sx_buf_puts(&text, "} signature_def { key: 'serving_default' value { inputs { key: 'x' value { "
                       "name: 'x:0' dtype: DT_FLOAT tensor_shape { dim { size: -1 }");
    for (const char *at = strchr(r->dims, ','); at != NULL; at = strchr(at + 1, ',')) {
        sx_buf_printf(&text, " dim { size: %d }", atoi(at + 1));
    }
    sx_buf_puts(&text, " } } } outputs { key: 'y' value { name: 'y:0' tensor_shape { unknown_rank: "
                       "true } } } method_name: 'tensorflow/serving/predict' } } }");
    pack_text(&tensorflow__saved_model__descriptor, sx_buf_text(&text), &packed);
    assert_ok(sx_dir_create(scratch("m")));
    write_file(scratch("m/saved_model.pb"), packed.data, packed.size);
    sx_buf_deinit(&packed);
    sx_buf_deinit(&text);
}

static double element(const sx_tensor *t, int64_t i)
{
    switch (t->type.dtype) {
    case SX_F32:
        return (double)((const float *)t->data)[i];
    case SX_I32:
        return ((const int32_t *)t->data)[i];
    case SX_I64:
        return (double)((const int64_t *)t->data)[i];
    case SX_BOOL:
    case SX_U8:
        return ((const uint8_t *)t->data)[i];
    default:
        fail_msg("an output of type %s", sx_dtype_name(t->type.dtype));
        return 0;
    }
}

static sx_status run_model(const row *r, sx_buf *out)
{
    static float values[4096];
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    sx_type type = sx_scalar_type(SX_F32);
    for (const char *at = r->dims; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        type.dims[type.rank++] = atoi(at);
    }
    for (int i = 0; i < 4096; i++) {
        values[i] = (float)(i % 2 == 0 ? i + 1 : -i - 1);
    }
    SX_TRY(sx_predictor_load(scratch("m"), NULL, &p));
    sx_arena arena;
    sx_tensor y;
    sx_arena_init(&arena, 0);
    sx_status status = sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &s);
    if (status == SX_OK) {
        status = sx_predictor_run(p, s, &(sx_tensor){type, values}, NULL, &arena, &y);
    }
    if (status == SX_OK) {
        char words[SX_TYPE_TEXT];
        sx_buf_puts(out, sx_type_format(&y.type, words, sizeof words));
        for (int64_t i = 0; i < sx_type_elems(&y.type); i++) {
            sx_buf_printf(out, " %.4g", element(&y, i));
        }
    }
    sx_arena_deinit(&arena);
    sx_predictor_unload(p);
    return status;
}

static void check_rows(const row *rows, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        sx_buf got;
        sx_buf_init(&got, 0);
        write_model(&rows[i]);
        sx_status status = run_model(&rows[i], &got);
        bool right = status == SX_OK && strcmp(sx_buf_text(&got), rows[i].expected) == 0;
        if (status != SX_OK) {
            sx_buf_printf(&got, "%s: %s", sx_code_name(sx_status_code(status)),
                          sx_status_message(status));
            right = harness_is(status, rows[i].expected);
        }
        if (!right) {
            print_error("row %zu, x[%s]\n%s  gave %s\n  not  %s\n", i, rows[i].dims, rows[i].nodes,
                        sx_buf_text(&got), rows[i].expected);
            wrong++;
        }
        sx_status_free(status);
        sx_buf_deinit(&got);
    }
    assert_int_equal(wrong, 0);
}
#define CHECK(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

static void test_savedmodel_import_ops__elementwise(void **state)
{
    (void)state;
    static const row rows[] = {
        {"2,2", Y("Relu", "'x'", ""), "float32[2,2] 1 0 3 0"},
        {"2,2", Y("Abs", "'x'", ""), "float32[2,2] 1 2 3 4"},
        {"2,2", Y("Sign", "'x'", ""), "float32[2,2] 1 -1 1 -1"},
        {"2,2", Y("Neg", "'x'", ""), "float32[2,2] -1 2 -3 4"},
        {"2,2", Y("Square", "'x'", ""), "float32[2,2] 1 4 9 16"},
        {"2,1", NODE("a", "Abs", "'x'", "") Y("Sqrt", "'a'", ""), "float32[2,1] 1 1.414"},
        {"2,1", NODE("a", "Abs", "'x'", "") Y("Rsqrt", "'a'", ""), "float32[2,1] 1 0.7071"},
        {"2,1", Y("Exp", "'x'", ""), "float32[2,1] 2.718 0.1353"},
        {"2,1", NODE("a", "Abs", "'x'", "") Y("Log", "'a'", ""), "float32[2,1] 0 0.6931"},
        {"2,1", NODE("a", "Abs", "'x'", "") Y("Log1p", "'a'", ""), "float32[2,1] 0.6931 1.099"},
        {"2,1", Y("Cos", "'x'", ""), "float32[2,1] 0.5403 -0.4161"},
        {"2,1", NODE("a", "Sigmoid", "'x'", "") Y("Floor", "'a'", ""), "float32[2,1] 0 0"},
        {"2,1", Y("Tanh", "'x'", ""), "float32[2,1] 0.7616 -0.964"},
        {"2,1", Y("Sigmoid", "'x'", ""), "float32[2,1] 0.7311 0.1192"},
        {"4,2", Y("Relu6", "'x'", ""), "float32[4,2] 1 0 3 0 5 0 6 0"},
        {"2,2", Y("LeakyRelu", "'x'", ""), "float32[2,2] 1 -0.4 3 -0.8"},
        {"2,2", Y("LeakyRelu", "'x'", ATTR("alpha", "f: 0.5")), "float32[2,2] 1 -1 3 -2"},
        {"2,2", Y("Softmax", "'x'", ""), "float32[2,2] 0.9526 0.04743 0.9991 0.0009111"},
        {"1,2", Y("LogSoftmax", "'x'", ""), "float32[1,2] -0.04859 -3.049"},
        {"2,2", Y("Elu", "'x'", ""), "float32[2,2] 1 -0.8647 3 -0.9817"},
        {"2,2",
         CONST("l", "DT_FLOAT", "", "float_val: -3") CONST("h", "DT_FLOAT", "", "float_val: 2")
             Y("ClipByValue", "'x', 'l', 'h'", ""),
         "float32[2,2] 1 -2 2 -3"},
        {"2,1",
         INT("c", "3") NODE("f", "Cast", "'c'", ATTR("DstT", "type: DT_FLOAT"))
             Y("Add", "'x', 'f'", ""),
         "float32[2,1] 4 1"},
        {"2,2", Y("Sub", "'x', 'x'", ""), "float32[2,2] 0 0 0 0"},
        {"2,2", NODE("s", "Square", "'x'", "") Y("Sub", "'s', 'x'", ""), "float32[2,2] 0 6 6 20"},
        {"2,2", NODE("s", "Square", "'x'", "") Y("RealDiv", "'x', 's'", ""),
         "float32[2,2] 1 -0.5 0.3333 -0.25"},
        {"2,2", NODE("a", "Abs", "'x'", "") NODE("s", "Sign", "'x'", "") Y("Pow", "'a', 's'", ""),
         "float32[2,2] 1 0.5 3 0.25"},
        {"2,2", NODE("n", "Neg", "'x'", "") Y("Maximum", "'x', 'n'", ""), "float32[2,2] 1 2 3 4"},
        {"2,2", NODE("n", "Neg", "'x'", "") Y("Minimum", "'x', 'n'", ""),
         "float32[2,2] -1 -2 -3 -4"},
        {"2,2", NODE("a", "Abs", "'x'", "") Y("Equal", "'x', 'a'", ""), "bool[2,2] 1 0 1 0"},
        {"2,2", NODE("a", "Abs", "'x'", "") Y("Less", "'x', 'a'", ""), "bool[2,2] 0 1 0 1"},
        {"2,2", NODE("a", "Neg", "'x'", "") Y("Greater", "'x', 'a'", ""), "bool[2,2] 1 0 1 0"},
        {"2,2",
         NODE("a", "Abs", "'x'", "") NODE("l", "Less", "'x', 'a'", "") Y("LogicalNot", "'l'", ""),
         "bool[2,2] 1 0 1 0"},
        {"2,2",
         NODE("n", "Neg", "'x'", "") NODE("l", "Less", "'x', 'n'", "")
             NODE("m", "Less", "'n', 'x'", "") Y("LogicalAnd", "'l', 'm'", ""),
         "bool[2,2] 0 0 0 0"},
        {"2,2",
         NODE("n", "Neg", "'x'", "") NODE("l", "Less", "'x', 'n'", "")
             NODE("s", "Square", "'x'", "") Y("SelectV2", "'l', 'x', 's'", ""),
         "float32[2,2] 1 -2 9 -4"},
        {"2,2",
         CONST("b", "DT_FLOAT", DIM("2"), "float_val: [10, 20]") Y("BiasAdd", "'x', 'b'", ""),
         "float32[2,2] 11 18 13 16"},
        {"2,2",
         CONST("b", "DT_FLOAT", DIM("2"), "float_val: [10, 20]")
             Y("BiasAdd", "'x', 'b'", ATTR("data_format", "s: 'NHWC'")),
         "float32[2,2] 11 18 13 16"},
        {"2,2",
         CONST("b", "DT_FLOAT", DIM("2"), "float_val: [10, 20]")
             Y("BiasAdd", "'x', 'b'", ATTR("data_format", "s: 'NCHW'")),
         "float32[2,2] 11 18 13 16"},
        {"1,2,2",
         CONST("b", "DT_FLOAT", DIM("2"), "float_val: [10, 20]")
             Y("BiasAdd", "'x', 'b'", ATTR("data_format", "s: 'NCHW'")),
         "float32[1,2,2] 11 8 23 16"},
        {"2,2", Y("Cast", "'x'", ATTR("DstT", "type: DT_INT32")), "int32[2,2] 1 -2 3 -4"},
        {"2,2", Y("Cast", "'x'", ATTR("DstT", "type: DT_FLOAT")), "float32[2,2] 1 -2 3 -4"},
        {"2,2", Y("Add", "'x'", ""), "DATA_LOSS: input 1 is missing"},
        {"2,2", Y("Relu", "", ""), "DATA_LOSS: input 0 is missing"},
        {"2,2",
         CONST("s", "DT_STRING", DIM("2"), "string_val: ['a', 'b']") Y("MatrixDiag", "'s'", ""),
         "UNIMPLEMENTED: of string"},
        {"2,2", CONST("s", "DT_STRING", "", "string_val: 'a'") Y("Add", "'x', 's'", ""),
         "UNIMPLEMENTED: y is string[], expected float32"},
        {"2,2",
         NODE("p", "Placeholder", "", ATTR("dtype", "type: DT_FLOAT")) Y("Add", "'x', 'p'", ""),
         "DATA_LOSS: depends on this placeholder"},
        {"2,2", NODE("c", "Const", "", ATTR("dtype", "type: DT_FLOAT")) Y("Add", "'x', 'c'", ""),
         "DATA_LOSS: Const has no value"},
        {"2,2",
         NODE("i", "StopGradient", "'x'", "") NODE("j", "Identity", "'i'", "")
             Y("PlaceholderWithDefault", "'j'", ""),
         "float32[2,2] 1 -2 3 -4"},
        {"2,2",
         NODE("v", "VarHandleOp", "", "") NODE("r", "ReadVariableOp", "'v'", "")
             Y("Add", "'x', 'r'", ""),
         "DATA_LOSS: the model has no variables/variables.index"},
        {"2,2", NODE("r", "ReadVariableOp", "'x'", "") Y("Add", "'x', 'r'", ""),
         "UNIMPLEMENTED: is not a variable of the graph"},
    };
    CHECK(rows);
}

static void test_savedmodel_import_ops__shapes(void **state)
{
    (void)state;
    static const row rows[] = {
        {"2,2",
         CONST("c", "DT_FLOAT", DIM("2"), "float_val: [1, 2]")
             NODE("u", "Unpack", "'c'", ATTR("num", "i: 500") ATTR("axis", "i: 0"))
                 Y("Add", "'x', 'u:499'", ""),
         "INVALID_ARGUMENT: begin 2 and size 1 are outside axis 0"},
        {"2,6", INTS("s", "3", "-1, 2, 3") Y("Reshape", "'x', 's'", ""),
         "float32[2,2,3] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2,3", INTS("s", "2", "-1, 6") Y("Reshape", "'x', 's'", ""),
         "float32[2,6] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2", CONST("s", "DT_INT64", DIM("2"), "int64_val: [-1, 2]") Y("Reshape", "'x', 's'", ""),
         "float32[2,2] 1 -2 3 -4"},
        {"2,2", INTS("s", "2", "2, -1") Y("Reshape", "'x', 's'", ""), "float32[2,2] 1 -2 3 -4"},
        {"2,2", INTS("s", "2", "-1, 1") Y("Reshape", "'x', 's'", ""), "float32[4,1] 1 -2 3 -4"},
        {"2,2", INTS("s", "2", "-1, 4") Y("Reshape", "'x', 's'", ""), "float32[1,4] 1 -2 3 -4"},
        {"2,1", INTS("s", "9", "-1, 1, 1, 1, 1, 1, 1, 1, 1") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1: attribute shape of reshape has 9 numbers, one for each "
         "dimension; at most 8 dimensions are supported"},
        {"2,1", INTS("s", "8", "-1, 1, 1, 1, 1, 1, 1, 1") Y("Reshape", "'x', 's'", ""),
         "float32[2,1,1,1,1,1,1,1] 1 -2"},
        {"2,1",
         CONST("s", "DT_INT32", DIM("1") DIM("2"), "int_val: [-1, 1]") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1: attribute shape of reshape cannot be int32[1,2]"},
        {"2,1", CONST("s", "DT_FLOAT", DIM("2"), "float_val: [-1, 1]") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1: attribute shape of reshape cannot be float32[2]"},
        {"2,1", Y("Reshape", "'x', 'x'", ""),
         "UNIMPLEMENTED: input 1 is float32[N,1], expected a list of integers"},
        {"2,1", Y("Reshape", "'x'", ""), "DATA_LOSS: input 1 is missing"},
        {"2,3",
         CONST("c", "DT_FLOAT", DIM("6"), "float_val: [1, 2, 3, 4, 5, 6]") INTS("s", "2", "3, -1")
             NODE("w", "Reshape", "'c', 's'", "") Y("MatMul", "'x', 'w'", ""),
         "float32[2,2] 10 12 -19 -24"},
        {"2,2,3",
         ELEMENT("0", SHRINK) INT("k", "6") NODE("s", "Pack", "'n', 'k'", "")
             Y("Reshape", "'x', 's'", ""),
         "float32[2,6] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2,3",
         ELEMENT("-1", SHRINK) INT("k", "-1") INT("l", "2") NODE("s", "Pack", "'k', 'l', 'n'", "")
             Y("Reshape", "'x', 's'", ""),
         "float32[2,2,3] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2,3", NODE("h", "Shape", "'x'", "") Y("Reshape", "'x', 'h'", ""),
         "float32[2,2,3] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2,3",
         NODE("h", "Shape", "'x'", ATTR("out_type", "type: DT_INT64")) Y("Reshape", "'x', 'h'", ""),
         "float32[2,2,3] 1 -2 3 -4 5 -6 7 -8 9 -10 11 -12"},
        {"2,2,3", ELEMENT("3", SHRINK) NODE("s", "Pack", "'n'", "") Y("Reshape", "'x', 's'", ""),
         "DATA_LOSS: index 3 is out of range for 3 elements"},
        {"2,2,3", ELEMENT("-4", SHRINK) NODE("s", "Pack", "'n'", "") Y("Reshape", "'x', 's'", ""),
         "DATA_LOSS: index -4 is out of range for 3 elements"},
        {"2,2,3",
         NODE("h", "Shape", "'x'", "") INTS("b", "2", "0, 1") INTS("e", "1", "1")
             INTS("o", "1", "1") NODE("n", "StridedSlice", "'h', 'b', 'e', 'o'", SHRINK)
                 NODE("s", "Pack", "'n'", "") Y("Reshape", "'x', 's'", ""),
         "DATA_LOSS: input 1 has 2 indices, the strides have 1"},
        {"2,2,3", ELEMENT("0", "") NODE("s", "Pack", "'n'", "") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1 is int32[1,1], expected a list"},
        {"2,2,3",
         ELEMENT("0", ATTR("shrink_axis_mask", "i: 2")) NODE("s", "Pack", "'n'", "")
             Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1 is int32[1,1], expected a list"},
        {"2,2,3",
         ELEMENT("0", SHRINK ATTR("begin_mask", "i: 1")) NODE("s", "Pack", "'n'", "")
             Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: cannot reshape float32[N,2,3] to float32[N]"},
        {"2,2,3",
         ELEMENT("0", SHRINK ATTR("end_mask", "i: 1")) NODE("s", "Pack", "'n'", "")
             Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: cannot reshape float32[N,2,3] to float32[N]"},
        {"2,2",
         INTS("b", "1", "0") INTS("e", "1", "1") INTS("o", "1", "1")
             Y("StridedSlice", "'x', 'b', 'e', 'o'", SHRINK),
         "float32[2] 1 -2"},
        {"2,2",
         NODE("h", "Shape", "'x'", "") INTS("b", "1", "0")
             Y("StridedSlice", "'h', 'b', 'b', 'x'", SHRINK),
         "UNIMPLEMENTED: the number of indices is unknown"},
        {"2,2",
         NODE("h", "Shape", "'x'", "") INTS("b", "1", "0") Y("StridedSlice", "'h', 'b'", SHRINK),
         "DATA_LOSS: input 2 is missing"},
        {"2,2",
         INT("k", "-1") INT("l", "2") NODE("s", "Pack", "'k', 'l'", ATTR("axis", "i: 1"))
             Y("Reshape", "'x', 's'", ""),
         "DATA_LOSS: axis 1 out of range for rank 0"},
        {"2,2", INTS("k", "1", "-1") NODE("s", "Pack", "'k'", "") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1: attribute shape of reshape cannot be int32[1,1]"},
        {"2,2", NODE("s", "Pack", "'x'", "") Y("Reshape", "'x', 's'", ""),
         "UNIMPLEMENTED: input 1 is float32[1,N,2], expected a list"},
        {"2,1,2,1", Y("Squeeze", "'x'", ""), "float32[2,2] 1 -2 3 -4"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("1"))),
         "float32[2,2,1] 1 -2 3 -4"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("-1"))),
         "float32[2,1,2] 1 -2 3 -4"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("-3, 3"))),
         "float32[2,2] 1 -2 3 -4"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("2"))),
         "DATA_LOSS: dimension 2 cannot be squeezed"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("4"))),
         "DATA_LOSS: dimension 4 cannot be squeezed"},
        {"2,1,2,1", Y("Squeeze", "'x'", ATTR("squeeze_dims", LIST("-5"))),
         "DATA_LOSS: dimension -1 cannot be squeezed"},
        {"2,2", INT("k", "1") Y("ExpandDims", "'x', 'k'", ""), "float32[2,1,2] 1 -2 3 -4"},
        {"2,2", INT("k", "2") Y("ExpandDims", "'x', 'k'", ""), "float32[2,2,1] 1 -2 3 -4"},
        {"2,2", INT("k", "-1") Y("ExpandDims", "'x', 'k'", ""), "float32[2,2,1] 1 -2 3 -4"},
        {"2,2", INT("k", "-2") Y("ExpandDims", "'x', 'k'", ""), "float32[2,1,2] 1 -2 3 -4"},
        {"2,2", INT("k", "3") Y("ExpandDims", "'x', 'k'", ""),
         "DATA_LOSS: axis 3 out of range for rank 2"},
        {"2,2", INT("k", "-4") Y("ExpandDims", "'x', 'k'", ""),
         "DATA_LOSS: axis -4 out of range for rank 2"},
        {"2,2", INTS("k", "2", "1, 2") Y("ExpandDims", "'x', 'k'", ""),
         "UNIMPLEMENTED: 2 axes, expected one"},
        {"2,1,1,1,1,1,1", INT("k", "1") Y("ExpandDims", "'x', 'k'", ""),
         "float32[2,1,1,1,1,1,1,1] 1 -2"},
        {"2,1,1,1,1,1,1,1", INT("k", "1") Y("ExpandDims", "'x', 'k'", ""),
         "UNIMPLEMENTED: an input has rank 8, expected a rank below 8"},
        {"1,2,3", INTS("p", "3", "0, 2, 1") Y("Transpose", "'x', 'p'", ""),
         "float32[1,3,2] 1 -4 -2 5 3 -6"},
        {"1,2",
         CONST("p", "DT_INT32", DIM("2") DIM("2"), "int_val: [0, 0, 1, 2]")
             Y("Pad", "'x', 'p'", ""),
         "float32[1,5] 0 1 -2 0 0"},
        {"1,2",
         CONST("p", "DT_INT32", DIM("2") DIM("2"), "int_val: [0, 0, 1, 2]")
             CONST("v", "DT_FLOAT", "", "float_val: 7") Y("PadV2", "'x', 'p', 'v'", ""),
         "float32[1,5] 7 1 -2 7 7"},
        {"1,2",
         CONST("p", "DT_INT32", DIM("1") DIM("2"), "int_val: [1, 2]") Y("Pad", "'x', 'p'", ""),
         "UNIMPLEMENTED: paddings are not an int32 constant"},
        {"1,2",
         CONST("p", "DT_INT64", DIM("2") DIM("2"), "int64_val: [0, 0, 1, 2]")
             Y("Pad", "'x', 'p'", ""),
         "UNIMPLEMENTED: paddings are not an int32 constant"},
        {"1,2",
         CONST("p", "DT_INT32", DIM("2") DIM("2"), "int_val: [0, 0, 1, 2]")
             Y("PadV2", "'x', 'p', 'x'", ""),
         "UNIMPLEMENTED: the value is no scalar"},
        {"1,2", Y("Pad", "'x'", ""), "DATA_LOSS: input 1 is missing"},
        {"2,2", INT("k", "1") Y("ConcatV2", "'x', 'x', 'k'", ""),
         "float32[2,4] 1 -2 1 -2 3 -4 3 -4"},
        {"2,2,1", INT("k", "-1") Y("ConcatV2", "'x', 'x', 'k'", ""),
         "float32[2,2,2] 1 1 -2 -2 3 3 -4 -4"},
        {"2,2", INT("k", "2") Y("ConcatV2", "'x', 'x', 'k'", ""),
         "UNIMPLEMENTED: axis 2 of float32[N,2] is out of range"},
        {"2,2", INT("k", "-3") Y("ConcatV2", "'x', 'x', 'k'", ""),
         "UNIMPLEMENTED: axis -1 of float32[N,2] is out of range"},
        {"2,2", Y("ConcatV2", "'x', 'x', 'x'", ""),
         "UNIMPLEMENTED: input 2 is float32[N,2], expected a list"},
    };
    CHECK(rows);
}

static void test_savedmodel_import_ops__reductions_and_products(void **state)
{
    (void)state;
    static const row rows[] = {
        {"2,3", INT("k", "1") Y("Sum", "'x', 'k'", ""), "float32[2] 2 -5"},
        {"2,3", INT("k", "-1") Y("Sum", "'x', 'k'", ATTR("keep_dims", "b: true")),
         "float32[2,1] 2 -5"},
        {"2,3", INTS("k", "1", "1") Y("Max", "'x', 'k'", ""), "float32[2] 3 5"},
        {"1,2,3", INTS("k", "2", "2, 1") Y("Max", "'x', 'k'", ""), "float32[1] 5"},
        {"2,3", INT("k", "2") Y("Sum", "'x', 'k'", ""),
         "UNIMPLEMENTED: axis 2 is out of range for float32[N,3]"},
        {"2,4", INT("k", "1") Y("Mean", "'x', 'k'", ""), "float32[2] -0.5 -0.5"},
        {"1,2,3", INTS("k", "2", "1, -1") Y("Mean", "'x', 'k'", ATTR("keep_dims", "b: true")),
         "float32[1,1,1] -0.5"},
        {"2,3", INT("k", "0") Y("Mean", "'x', 'k'", ""), "float32[3] -1.5 1.5 -1.5"},
        {"2,3",
         INT("k", "1") NODE("i", "Cast", "'x'", ATTR("DstT", "type: DT_INT32"))
             Y("Mean", "'i', 'k'", ""),
         "int32[2] 0 -1"},
        {"2,3", INT("k", "1") Y("ArgMax", "'x', 'k'", ""), "int64[2] 2 1"},
        {"2,3", INT("k", "-1") Y("ArgMax", "'x', 'k'", ATTR("output_type", "type: DT_INT32")),
         "int32[2] 2 1"},
        {"2,3", INT("k", "-3") Y("ArgMax", "'x', 'k'", ""),
         "UNIMPLEMENTED: axis -1 of float32[N,3] is out of range"},
        {"2,2",
         CONST("w", "DT_FLOAT", DIM("2") DIM("3"), "float_val: [1, 2, 3, 10, 20, 30]")
             Y("MatMul", "'x', 'w'", ""),
         "float32[2,3] -19 -38 -57 -37 -74 -111"},
        {"2,2",
         CONST("w", "DT_FLOAT", DIM("3") DIM("2"), "float_val: [1, 10, 2, 20, 3, 30]")
             Y("MatMul", "'x', 'w'", ATTR("transpose_b", "b: true")),
         "float32[2,3] -19 -38 -57 -37 -74 -111"},
        {"2,3",
         CONST("t", "DT_FLOAT", DIM("3"), "float_val: [10, 20, 30]") INT("k", "1") INT("z", "0")
             NODE("m", "ArgMax", "'x', 'k'", "") Y("GatherV2", "'t', 'm', 'z'", ""),
         "float32[2] 30 20"},
        {"2,3",
         CONST("t", "DT_FLOAT", DIM("3"), "float_val: [10, 20, 30]") INT("k", "1")
             NODE("m", "ArgMax", "'x', 'k'", "") Y("GatherV2", "'t', 'm', 'k'", ""),
         "UNIMPLEMENTED: axis 1, batch_dims 0; expected an axis of the table"},
        {"2,3",
         CONST("t", "DT_FLOAT", DIM("3"), "float_val: [10, 20, 30]") INT("k", "1") INT("z", "0")
             NODE("m", "ArgMax", "'x', 'k'", "")
                 Y("GatherV2", "'t', 'm', 'z'", ATTR("batch_dims", "i: 1")),
         "UNIMPLEMENTED: axis 0, batch_dims 1; expected an axis of the table"},
        {"2,3",
         CONST("t", "DT_STRING", DIM("1") DIM("3"), "string_val: ['a', 'b', 'c']") INT("k", "1")
             INT("z", "0") NODE("m", "ArgMax", "'x', 'k'", "") Y("GatherV2", "'t', 'm', 'z'", ""),
         "OUT_OF_RANGE: index 2 is out of range for 1 strings"},
    };
    CHECK(rows);
}

static void test_savedmodel_import_ops__windows(void **state)
{
    (void)state;
    static const row rows[] = {
        {"1,2,2,4", Y("DepthToSpace", "'x'", ATTR("block_size", "i: 4294967296")),
         "DATA_LOSS: block_size is 4294967296 for an image [2,2,4]"},
        {"1,2,2,4", Y("SpaceToDepth", "'x'", ATTR("block_size", "i: 4294967296")),
         "DATA_LOSS: block_size is 4294967296 for an image [2,2,4]"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1") VALID), "float32[1,2,1,1] 281 -372"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1") SAME), "float32[1,4,1,1] -190 281 -372 -37"},
        {"1,4,1,1", CONV(STRIDES("1, 2, 1, 1") SAME), "float32[1,2,1,1] 281 -37"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 2, 1") SAME), "float32[1,4,1,1] -190 281 -372 -37"},
        {"1,5,1,1", CONV(STRIDES("1, 1, 1, 1") VALID ATTR("dilations", LIST("1, 2, 1, 1"))),
         "float32[1,1,1,1] 531"},
        {"1,5,1,1", CONV(STRIDES("1, 1, 1, 1") VALID ATTR("dilations", LIST("1, 1, 2, 1"))),
         "float32[1,3,1,1] 281 -372 463"},
        {"1,4,1,1",
         CONV(STRIDES("1, 1, 1, 1") ATTR("padding", "s: 'EXPLICIT'")
                  ATTR("explicit_paddings", LIST("0, 0, 2, 0, 0, 0, 0, 0"))),
         "float32[1,4,1,1] 100 -190 281 -372"},
        {"1,4,1,1",
         CONV(STRIDES("1, 1, 1, 1") ATTR("padding", "s: 'EXPLICIT'")
                  ATTR("explicit_paddings", LIST("0, 0, 0, 2, 0, 0, 0, 0"))),
         "float32[1,4,1,1] 281 -372 -37 -4"},
        {"1,4,1,1",
         CONV(STRIDES("1, 1, 1, 1") ATTR("padding", "s: 'EXPLICIT'")
                  ATTR("explicit_paddings", LIST("0, 0, 0, 0, 1, 2, 0, 0"))),
         "float32[1,2,4,1] 0 281 0 0 0 -372 0 0"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1") ATTR("padding", "s: 'EXPLICIT'")),
         "DATA_LOSS: explicit_paddings is missing"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1") ATTR("padding", "s: 'FULL'")),
         "DATA_LOSS: unknown padding"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1")), "DATA_LOSS: unknown padding"},
        {"1,4,1,1", CONV(VALID), "UNIMPLEMENTED: strides is not 1 for batch and channels"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1") VALID),
         "UNIMPLEMENTED: strides is not 1 for batch and channels"},
        {"1,4,1,1", CONV(STRIDES("2, 1, 1, 1") VALID),
         "UNIMPLEMENTED: strides is not 1 for batch and channels"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 2") VALID),
         "UNIMPLEMENTED: strides is not 1 for batch and channels"},
        {"1,4,1,1", CONV(STRIDES("1, 1, 1, 1") VALID ATTR("dilations", LIST("1, 1, 1, 2"))),
         "UNIMPLEMENTED: dilations is not 1 for batch and channels"},
        {"1,1,4,1", CONV(STRIDES("1, 1, 1, 1") VALID ATTR("data_format", "s: 'NCHW'")),
         "float32[1,1,2,1] 281 -372"},
        {"1,1,1,2",
         CONST("w", "DT_FLOAT", DIM("1") DIM("1") DIM("1") DIM("2"), "float_val: [10, 100]")
             Y("Conv2D", "'x', 'w'", STRIDES("1, 1, 1, 1") VALID),
         "float32[1,1,1,2] 10 -200"},
        {"1,1,1,3",
         CONST("w", "DT_FLOAT", DIM("1") DIM("1") DIM("2") DIM("2"), "float_val: [1, 1, 1, 1]")
             Y("Conv2D", "'x', 'w'", STRIDES("1, 1, 1, 1") VALID),
         "UNIMPLEMENTED: x float32[N,1,1,3] has 3 channels, expected 2"},
        {"1,3",
         CONST("w", "DT_FLOAT", DIM("1") DIM("1") DIM("3") DIM("1"), "float_val: [1, 1, 1]")
             Y("Conv2D", "'x', 'w'", STRIDES("1, 1, 1, 1") VALID),
         "UNIMPLEMENTED: x float32[N,3] has rank 2"},
        {"1,1,1,2",
         CONST("w", "DT_FLOAT", DIM("1") DIM("1") DIM("2") DIM("2"),
               "float_val: [1, 10, 100, 1000]")
             Y("DepthwiseConv2dNative", "'x', 'w'", STRIDES("1, 1, 1, 1") VALID),
         "float32[1,1,1,4] 1 10 -200 -2000"},
        {"1,1,1,2",
         CONST("w", "DT_FLOAT", DIM("2") DIM("2"), "float_val: [1, 10, 100, 1000]")
             Y("DepthwiseConv2dNative", "'x', 'w'", STRIDES("1, 1, 1, 1") VALID),
         "DATA_LOSS: the filter has rank 2, expected 4"},
        {"1,4,1,1",
         Y("MaxPool", "'x'", ATTR("ksize", LIST("1, 2, 1, 1")) STRIDES("1, 2, 1, 1") VALID),
         "float32[1,2,1,1] 1 3"},
        {"1,4,1,1",
         Y("AvgPool", "'x'", ATTR("ksize", LIST("1, 3, 1, 1")) STRIDES("1, 1, 1, 1") SAME),
         "float32[1,4,1,1] -0.5 0.6667 -1 -0.5"},
        {"1,1,4,1",
         Y("MaxPool", "'x'", ATTR("ksize", LIST("1, 1, 3, 1")) STRIDES("1, 1, 1, 1") VALID),
         "float32[1,1,2,1] 3 3"},
        {"1,4,1,1", Y("MaxPool", "'x'", STRIDES("1, 2, 1, 1") VALID),
         "UNIMPLEMENTED: ksize is not 1 for batch and channels"},
        {"1,4,1,1", Y("MaxPool", "'x'", ATTR("ksize", LIST("1, 2, 1, 1")) VALID),
         "UNIMPLEMENTED: strides is not 1 for batch and channels"},
        {"1,4,1,1", Y("MaxPool", "'x'", ATTR("ksize", LIST("1, 2, 1, 1")) STRIDES("1, 2, 1, 1")),
         "DATA_LOSS: unknown padding"},
        {"1,2,2,1",
         Y("MaxPool", "'x'",
           ATTR("ksize", LIST("1, 1, 2, 1")) STRIDES("1, 1, 2, 1")
               VALID ATTR("data_format", "s: 'NCHW'")),
         "float32[1,2,1,1] 1 3"},
        {"1,1,1,2", BATCH_NORM(ATTR("is_training", "b: false") ATTR("epsilon", "f: 1")),
         "float32[1,1,1,2] 11 17"},
        {"1,1,1,2", BATCH_NORM(ATTR("is_training", "b: false")), "float32[1,1,1,2] 11.15 -280"},
        {"1,1,1,2", BATCH_NORM(ATTR("is_training", "b: true")), "float32[1,1,1,2] 10 20"},
        {"1,2,1,2", BATCH_NORM(""), "float32[1,2,1,2] 8 23 12 17"},
        {"1,2,1,1", BATCH_NORM(ATTR("is_training", "b: false") ATTR("data_format", "s: 'NCHW'")),
         "float32[1,2,1,1] 11.15 -280"},
        {"1,1,1,2", BATCH_NORM(ATTR("data_format", "s: 'NCHW'")),
         "UNIMPLEMENTED: input 1 has 2 elements, expected one for each of 1 channels"},
    };
    CHECK(rows);
}

/* A function of the library called by its name, in the graph and in another function, where a
 * reference names the output: "node:output:0". */
#define IN(name)                "input_arg { name: '" name "' type: DT_FLOAT } "
#define OUT(name)               "output_arg { name: '" name "' type: DT_FLOAT } "
#define INNER(name, op, inputs) "node_def { name: '" name "' op: '" op "' input: [" inputs "] } "
#define RET(key, value)         "ret { key: '" key "' value: '" value "' } "
#define PAIR                                                                           \
    "function { signature { name: 'pair' " IN("a") IN("b") OUT("sum")                  \
        OUT("less") "} " INNER("s", "AddV2", "'a', 'b'") INNER("d", "Sub", "'a', 'b'") \
            RET("sum", "s:z:0") RET("less", "d:z:0") "} "
/* y = -(one of the outputs of pair(2x, x)) */
#define OUTER(inputs, reference)                                                 \
    Y("outer", "'x'", "")                                                        \
    "library { " PAIR "function { signature { name: 'outer' " IN("p")            \
        OUT("o") "} " INNER("t", "AddV2", "'p', 'p'") INNER("c", "pair", inputs) \
            INNER("r", "Neg", "'" reference "'") RET("o", "r:y:0") "} } "
#define BOTH "'t:z:0', 'p'"

static void test_savedmodel_import_ops__functions(void **state)
{
    (void)state;
    static const row rows[] = {
        {"2,1", OUTER(BOTH, "c:sum:0"), "float32[2,1] -3 6"},
        {"2,1", OUTER(BOTH, "c:less:0"), "float32[2,1] -1 2"},
        {"2,1", OUTER(BOTH, "c:les:0"), "UNIMPLEMENTED: \"c:les:0\": output"},
        {"2,1", OUTER(BOTH, "c:lesser:0"), "UNIMPLEMENTED: \"c:lesser:0\": output"},
        {"2,1", OUTER("'t:z:0'", "c:sum:0"), "DATA_LOSS: 1 argument is given, expected 2"},
        {"2,1", OUTER("'q:z:0', 'p'", "c:sum:0"),
         "DATA_LOSS: node \"c\": unknown input node \"q\""},
        {"2,1", NODE("c", "pair", "'x', 'x'", "") Y("Neg", "'c'", "") "library { " PAIR "} ",
         "float32[2,1] -2 4"},
        {"2,1", NODE("c", "pair", "'x', 'x'", "") Y("Exp", "'c:1'", "") "library { " PAIR "} ",
         "float32[2,1] 1 1"},
        {"2,1", NODE("c", "pair", "'x', 'x'", "") Y("Exp", "'c:2'", "") "library { " PAIR "} ",
         "DATA_LOSS: \"c:2\": pair \"c\" has 2 outputs"},
        {"2,1", Y("pain", "'x', 'x'", "") "library { " PAIR "} ",
         "UNIMPLEMENTED: unsupported operator: pain (1 node: \"y\")"},
        {"2,1",
         Y("f", "'x'", "") "library { function { signature { name: 'f' " IN("a") OUT("o") "} } } ",
         "DATA_LOSS: function \"f\": nothing is returned for output 0, \"o\""},
    };
    CHECK(rows);
}

/* Scales of uniform quantization are one, or as many for each tensor. */
static void test_savedmodel_import_ops__scales(void **state)
{
    (void)state;
#define SCALES(name, n, list) CONST(name, "DT_FLOAT", DIM(n), "float_val: [" list "]")
#define REQUANTIZE(in, out)                                                                       \
    INT("z", "0")                                                                                 \
    CONST("one", "DT_FLOAT", "", "float_val: 1")                                                  \
    NODE("q", "UniformQuantize", "'x', 'one', 'z'",                                               \
         ATTR("Tin", "type: DT_FLOAT") ATTR("Tout", "type: DT_QINT32")                            \
             ATTR("quantization_min_val", "i: -1000") ATTR("quantization_max_val", "i: 1000"))    \
    in out INTS("zi", "2", "0, 0") INTS("zo", "2", "0, 0")                                        \
        NODE("r", "UniformRequantize", "'q', 'si', 'zi', 'so', 'zo'",                             \
             ATTR("Tin", "type: DT_QINT32") ATTR("Tout", "type: DT_QINT32")                       \
                 ATTR("input_quantization_axis", "i: 1") ATTR("output_quantization_axis", "i: 1") \
                     ATTR("output_quantization_min_val", "i: -1000")                              \
                         ATTR("output_quantization_max_val", "i: 1000"))                          \
            Y("Cast", "'r'", ATTR("DstT", "type: DT_INT32"))
    static const row rows[] = {
        {"2,2", REQUANTIZE(SCALES("si", "2", "1, 3"), SCALES("so", "2", "1, 1")),
         "int32[2,2] 1 -6 3 -12"},
        {"2,2", REQUANTIZE(SCALES("si", "2", "1, 3"), SCALES("so", "4", "1, 1, 1, 1")),
         "INVALID_ARGUMENT: one tensor has 2 scales, another 4; expected 1 or as many as the "
         "other"},
        {"2,2", REQUANTIZE(SCALES("si", "2", "1, 3"), SCALES("so", "0", "")),
         "INVALID_ARGUMENT: one tensor has 0 scales, another 2; expected 1 or as many as the "
         "other"},
    };
    CHECK(rows);
}

/* The whole batch is computed at once, not in pieces of at most 64 examples. */
static void test_savedmodel_import_ops__examples_may_depend_on_one_another(void **state)
{
    (void)state;
    static const row rows[] = {
        {"100,1", INTS("a", "1", "0") Y("Sum", "'x', 'a'", ""), "float32[1] -50"},
        {"100,1",
         INTS("a", "1", "0") NODE("s", "Sum", "'x', 'a'", "") NODE("d", "Sub", "'x', 's'", "")
             Y("Max", "'d', 'a'", ""),
         "float32[1] 149"},
        {"100,1", Y("Size", "'x'", ""), "int32[] 100"},
        /* one example for each other */
        {"100,2",
         INTS("p", "2", "1, 0") NODE("t", "Transpose", "'x', 'p'", "")
             NODE("m", "MatMul", "'t', 'x'", "") Y("Neg", "'m'", ""),
         "float32[2,2] -1.333e+06 1.343e+06 1.343e+06 -1.353e+06"},
    };
    CHECK(rows);
}

/* The rows of several executions are joined: an output's first dimension must be the batch, or it
 * must have none. */
static void test_savedmodel_import_ops__outputs_have_the_batch_first(void **state)
{
    (void)state;
    static const row rows[] = {
        {"2,3", INTS("p", "2", "1, 0") Y("Transpose", "'x', 'p'", ""),
         "float32[3,2] 1 -4 -2 5 3 -6"},
        {"2,3", INTS("p", "2", "0, 1") Y("Transpose", "'x', 'p'", ""),
         "float32[2,3] 1 -2 3 -4 5 -6"},
    };
    CHECK(rows);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_import_ops__elementwise),
    scratch_test(test_savedmodel_import_ops__shapes),
    scratch_test(test_savedmodel_import_ops__reductions_and_products),
    scratch_test(test_savedmodel_import_ops__windows),
    scratch_test(test_savedmodel_import_ops__functions),
    scratch_test(test_savedmodel_import_ops__scales),
    scratch_test(test_savedmodel_import_ops__examples_may_depend_on_one_another),
    scratch_test(test_savedmodel_import_ops__outputs_have_the_batch_first),
};
SX_TEST_MAIN(tests)
