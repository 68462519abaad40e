/* SavedModels as libraries of functions: calls, branches, loops, unknown shapes, effects; what
 * cannot be imported, and the limits of what can. Each is run on the host's kernels and on the cpu
 * backend. What TensorFlow computes for the same: tests/interop/test_savedmodel.py. */
#include "io/scratch.h"
#include "savedmodel/function_model.h"

#include "peak.h"
#include "torture.h"

#include "base/checked.h"
#include "base/log.h"
#include "io/file.h"
#include "proto/saved_model.pb-c.h"
#include "savedmodel/export.h"

#include <sextant/ops.h>

/* ---- Shapes ---- */

typedef struct row {
    const char *nodes;
    const char *expected; /* of x [2,3] */
} row;

static const row shapes[] = {
    {NODE("a", "Const", "", INT("1")) NODE("y", "Mean", "'x', 'a'", ""),
     "float32[2] 0.666667 -1.66667"},
    {NODE("a", "Const", "", INT("-1")) NODE("y", "Mean", "'x', 'a'", ATTR("keep_dims", "b: true")),
     "float32[2,1] 0.666667 -1.66667"},
    {NODE("a", "Const", "", INT("1")) NODE("y", "ExpandDims", "'x', 'a'", ""),
     "float32[2,1,3] 1 -2 3 -4 5 -6"},
    {NODE("a", "Const", "", INT("1")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("y", "Squeeze", "'w'", ATTR("squeeze_dims", "list { i: 1 }")),
     "float32[2,3] 1 -2 3 -4 5 -6"},
    {NODE("y", "Shape", "'x'", ATTR("out_type", "type: DT_INT64")), "int64[2] 2 3"},
    {NODE("y", "Size", "'x'", ""), "int32[] 6"},
    {NODE("y", "Rank", "'x'", ""), "int32[] 2"},
    {NODE("s", "Shape", "'x'", "") NODE("a", "Const", "", FLOAT("7"))
         NODE("y", "Fill", "'s', 'a'", ""),
     "float32[2,3] 7 7 7 7 7 7"},
    {NODE("y", "Pack", "'x', 'x'", ATTR("axis", "i: -1")),
     "float32[2,3,2] 1 1 -2 -2 3 3 -4 -4 5 5 -6 -6"},
    {NODE("a", "Const", "", INT("-1")) NODE("s", "Split", "'a', 'x'", ATTR("num_split", "i: 3"))
         NODE("y", "ConcatV2", "'s:2', 's', 'a'", ""),
     "float32[2,2] 3 1 -6 -4"},
    {NODE("a", "Const", "", INT("1")) NODE("k", "Const", "", INTS("2", "2, 1"))
         NODE("s", "SplitV", "'x', 'k', 'a'", ATTR("num_split", "i: 2"))
             NODE("y", "ConcatV2", "'s:1', 's', 'a'", ""),
     "float32[2,3] 3 1 -2 -6 -4 5"},
    {NODE("s", "Unpack", "'x'", ATTR("axis", "i: 1") ATTR("num", "i: 3"))
         NODE("y", "Sub", "'s:2', 's'", ""),
     "float32[2] 2 -2"},
    /* bounds that are computed, and those that are no scalars */
    {NODE("a", "Const", "", INTS("2", "0, 1")) NODE("h", "Max", "'x', 'a'", "")
         NODE("l", "Neg", "'h'", "") NODE("y", "ClipByValue", "'x', 'l', 'h'", ""),
     "float32[2,3] 1 -2 3 -4 5 -5"},
    {NODE("a", "Const", "", INT("0")) NODE("h", "Max", "'x', 'a'", "") NODE("l", "Neg", "'h'", "")
         NODE("y", "ClipByValue", "'x', 'l', 'h'", ""),
     "float32[2,3] 1 -2 3 -1 5 -3"},
    {NODE("z", "OnesLike", "'x'", "") NODE("o", "ZerosLike", "'x'", "")
         NODE("y", "Sub", "'o', 'z'", ""),
     "float32[2,3] -1 -1 -1 -1 -1 -1"},
    /* Flatten: -1 and an element of the shape */
    {NODE("s", "Shape", "'x'", "") NODE("b", "Const", "", INTS("1", "1"))
         NODE("e", "Const", "", INTS("1", "2")) NODE("o", "Const", "", INTS("1", "1"))
             NODE("n", "StridedSlice", "'s', 'b', 'e', 'o'", ATTR("shrink_axis_mask", "i: 1"))
                 NODE("m", "Const", "", INT("-1")) NODE("to", "Pack", "'n', 'm'", "")
                     NODE("y", "Reshape", "'x', 'to'", ""),
     "float32[3,2] 1 -2 3 -4 5 -6"},
    /* x[:, 1:] and x[1] */
    {NODE("b", "Const", "", INTS("2", "0, 1")) NODE("e", "Const", "", INTS("2", "0, 0"))
         NODE("o", "Const", "", INTS("2", "1, 1"))
             NODE("y", "StridedSlice", "'x', 'b', 'e', 'o'",
                  ATTR("begin_mask", "i: 1") ATTR("end_mask", "i: 3")),
     "float32[2,2] -2 3 5 -6"},
    {NODE("b", "Const", "", INTS("1", "1")) NODE("e", "Const", "", INTS("1", "2"))
         NODE("o", "Const", "", INTS("1", "1"))
             NODE("y", "StridedSlice", "'x', 'b', 'e', 'o'", ATTR("shrink_axis_mask", "i: 1")),
     "float32[3] -4 5 -6"},
    /* its axes are computed */
    {NODE("r", "Rank", "'x'", "") NODE("one", "Const", "", INT("1"))
         NODE("a", "Sub", "'r', 'one'", "") NODE("y", "Sum", "'x', 'a'", ""),
     "float32[2] 2 -5"},
    {NODE("s", "Shape", "'x'", "") NODE("b", "Const", "", INTS("1", "1"))
         NODE("e", "Const", "", INTS("1", "2")) NODE("o", "Const", "", INTS("1", "1"))
             NODE("n", "StridedSlice", "'s', 'b', 'e', 'o'", ATTR("shrink_axis_mask", "i: 1"))
                 NODE("z", "Const", "", INT("0")) NODE("d", "Const", "", INT("1"))
                     NODE("y", "Range", "'z', 'n', 'd'", ""),
     "int32[3] 0 1 2"},
    {NODE("z", "Const", "", FLOAT("0")) NODE("p", "GreaterEqual", "'x', 'z'", "")
         NODE("y", "Where", "'p'", ""),
     "int64[3,2] 0 0 0 2 1 1"},
    /* what the operators read themselves, along an axis that may be unknown */
    {NODE("a", "Const", "", INT("-1")) NODE("y", "Min", "'x', 'a'", ""), "float32[2] -2 -6"},
    {NODE("a", "Const", "", INT("0")) NODE("y", "Prod", "'x', 'a'", ""), "float32[3] -4 -10 -18"},
    {NODE("a", "Const", "", INT("-1")) NODE("y", "ArgMin", "'x', 'a'", ""), "int64[2] 1 2"},
    {NODE("a", "Const", "", INT("-1")) NODE("y", "Cumsum", "'x', 'a'", ""),
     "float32[2,3] 1 -1 2 -4 1 -5"},
    {NODE("a", "Const", "", INT("0"))
         NODE("y", "Cumprod", "'x', 'a'", ATTR("exclusive", "b: true") ATTR("reverse", "b: true")),
     "float32[2,3] -4 5 -6 1 1 1"},
    {NODE("a", "Const", "", INTS("1", "-1")) NODE("y", "ReverseV2", "'x', 'a'", ""),
     "float32[2,3] 3 -2 1 -6 5 -4"},
    {NODE("a", "Const", "", INTS("2", "1, 2")) NODE("y", "Tile", "'x', 'a'", ""),
     "float32[2,6] 1 -2 3 1 -2 3 -4 5 -6 -4 5 -6"},
    {NODE("i", "Const", "", INTS("2", "2, 0")) NODE("a", "Const", "", INT("-1"))
         NODE("y", "GatherV2", "'x', 'i', 'a'", ""),
     "float32[2,2] 3 1 -6 -4"},
    {NODE("y", "BatchMatMulV2", "'x', 'x'", ATTR("adj_y", "b: true")),
     "float32[2,2] 14 -32 -32 77"},
    {NODE("a", "Const", "", INT("1")) NODE("s", "Sum", "'x', 'a'", "")
         NODE("z", "Const", "", FLOAT("0")) NODE("g", "Greater", "'s', 'z'", "")
             NODE("n", "Neg", "'x'", "") NODE("y", "Select", "'g', 'n', 'x'", ""),
     "float32[2,3] -1 2 -3 -4 5 -6"},
    {NODE("y", "AddN", "'x', 'x', 'x'", ""), "float32[2,3] 3 -6 9 -12 15 -18"},
    {NODE("y", "OnesLike", "'x'", ""), "float32[2,3] 1 1 1 1 1 1"},
    /* parts; of an unknown axis, sizes that are given */
    {NODE("s", "Const", "", INTS("2", "1, 2")) NODE("a", "Const", "", INT("1")) NODE(
         "p", "SplitV", "'x', 's', 'a'", ATTR("num_split", "i: 2")) NODE("y", "Neg", "'p:1'", ""),
     "float32[2,2] 2 -3 -5 6"},
    {NODE("p", "Unpack", "'x'", ATTR("num", "i: 2")) NODE("y", "Neg", "'p:1'", ""),
     "float32[3] 4 -5 6"},
    /* sums of products */
    {NODE("y", "Einsum", "'x', 'x'", ATTR("equation", "s: 'ab,cb->ac'")),
     "float32[2,2] 14 -32 -32 77"},
    {NODE("y", "Einsum", "'x'", ATTR("equation", "s: 'ab->ba'")), "float32[3,2] 1 -4 -2 5 3 -6"},
    {NODE("y", "Einsum", "'x'", ATTR("equation", "s: 'ab->b'")), "float32[3] -3 3 -3"},
    {NODE("y", "Einsum", "'x', 'x'", ATTR("equation", "s: 'ab,ab->'")), "float32[] 91"},
    {NODE("y", "Einsum", "'x', 'x'", ATTR("equation", "s: 'ab,ac->cab'")),
     "float32[3,2,3] 1 -2 3 16 -20 24 -2 4 -6 -20 25 -30 3 -6 9 24 -30 36"},
    {NODE("y", "Einsum", "'x', 'x'", ATTR("equation", "s: '...b,cb->...c'")),
     "float32[2,2] 14 -32 -32 77"},
    {NODE("y", "Einsum", "'x', 'x'", ATTR("equation", "s: 'ab,cd->bc'")), /* rows of sums */
     "float32[3,2] -6 15 6 -15 -6 15"},
    {NODE("a", "Const", "", INT("0")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("y", "Einsum", "'w', 'w'", ATTR("equation", "s: 'abc,dec->abde'")),
     "float32[1,2,1,2] 14 -32 -32 77"},
    {NODE("a", "Const", "", INT("0")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("y", "Einsum", "'w', 'w'", ATTR("equation", "s: 'abc,dbc->ad'")),
     "float32[1,1] 91"},
    {NODE("a", "Const", "", INT("0")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("y", "Einsum", "'w', 'x'", ATTR("equation", "s: 'abc,bc->a'")),
     "float32[1] 91"},
    {NODE("a", "Const", "", INT("0")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("b", "Const", "", INT("2")) NODE("v", "ExpandDims", "'w', 'b'", "")
             NODE("y", "Einsum", "'v', 'v'", ATTR("equation", "s: 'abcd,aecd->acbe'")),
     "float32[1,1,2,2] 14 -32 -32 77"},
    {NODE("a", "Const", "", INT("2")) NODE("w", "ExpandDims", "'x', 'a'", "")
         NODE("y", "Einsum", "'w', 'w'", ATTR("equation", "s: 'abc,abd->acbd'")), /* no sum */
     "float32[2,1,3,1] 1 4 9 16 25 36"},
};

static void test_savedmodel_import_library__shapes_may_be_unknown(void **state)
{
    (void)state;
    static const char *const dims[] = {ANY ANY, DIM("2") DIM("3"), ANY DIM("3"), DIM("2") ANY};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t k = 0; k < sizeof(dims) / sizeof(dims[0]); k++) {
            sx_library *library = import(dims[k], shapes[i].nodes, "");
            for (size_t d = 0; d < 2; d++) {
                check(library, devices[d], sx_type_of(SX_F32, 2, 3), shapes[i].expected);
            }
            sx_library_destroy(library);
        }
    }
    sx_library *any = import("unknown_rank: true", NODE("y", "Relu", "'x'", ""), "");
    check(any, "cpu", sx_type_of(SX_F32, 2), "float32[2] 1 0");
    check(any, "cpu", sx_type_of(SX_F32, 1, 3, 1), "float32[1,3,1] 1 0 3");
    check(any, "cpu", sx_scalar_type(SX_F32), "float32[] 1");
    sx_library_destroy(any);
}

/* x [2,3] as an image of one channel and as three images; sizes worked out by hand. */
static void test_savedmodel_import_library__images(void **state)
{
    (void)state;
#define IMAGE NODE("to", "Const", "", INTS("4", "1, 2, 3, 1")) NODE("i", "Reshape", "'x', 'to'", "")
    static const row rows[] = {
        {IMAGE NODE("s", "Const", "", INTS("2", "2, 6"))
             NODE("y", "ResizeNearestNeighbor", "'i', 's'", ATTR("half_pixel_centers", "b: true")),
         "float32[1,2,6,1] 1 1 -2 -2 3 3 -4 -4 5 5 -6 -6"},
        {IMAGE NODE("s", "Const", "", INTS("2", "3, 3"))
             NODE("y", "ResizeBilinear", "'i', 's'", ATTR("align_corners", "b: true")),
         "float32[1,3,3,1] 1 -2 3 -1.5 1.5 -1.5 -4 5 -6"},
        {IMAGE NODE("s", "Const", "", INTS("2", "4, 3"))
             NODE("y", "ResizeBilinear", "'i', 's'", ATTR("half_pixel_centers", "b: true")),
         "float32[1,4,3,1] 1 -2 3 -0.25 -0.25 0.75 -2.75 3.25 -3.75 -4 5 -6"},
        {NODE("to", "Const", "", INTS("4", "3, 2, 1, 1")) NODE("i", "Reshape", "'x', 'to'", "")
             NODE("s", "Const", "", INTS("2", "4, 1")) NODE("y", "ResizeBilinear", "'i', 's'", ""),
         "float32[3,4,1,1] 1 -0.5 -2 -2 3 -0.5 -4 -4 5 -0.5 -6 -6"},
        {NODE("m", "Const", "", INTS("2", "1, 2")) NODE("t", "Tile", "'x', 'm'", "")
             NODE("to", "Const", "", INTS("4", "1, 2, 6, 1")) NODE("i", "Reshape", "'t', 'to'", "")
                 NODE("y", "SpaceToDepth", "'i'", ATTR("block_size", "i: 2")),
         "float32[1,1,3,4] 1 -2 -4 5 3 1 -6 -4 -2 3 5 -6"},
        {NODE("m", "Const", "", INTS("2", "1, 2")) NODE("t", "Tile", "'x', 'm'", "")
             NODE("to", "Const", "", INTS("4", "1, 1, 3, 4")) NODE("i", "Reshape", "'t', 'to'", "")
                 NODE("y", "DepthToSpace", "'i'", ATTR("block_size", "i: 2")),
         "float32[1,2,6,1] 1 -2 -2 3 -6 -4 3 1 -4 5 5 -6"},
        /* of channels 1, -2, 3 the sums of squares nearby are 5, 14, 13; of -4, 5, -6 41, 77, 61 */
        {NODE("to", "Const", "", INTS("4", "1, 1, 2, 3")) NODE("i", "Reshape", "'x', 'to'", "")
             NODE("y", "LRN", "'i'",
                  ATTR("depth_radius", "i: 1") ATTR("bias", "f: 2") ATTR("beta", "f: 1")),
         "float32[1,1,2,3] 0.142857 -0.125 0.2 -0.0930233 0.0632911 -0.0952381"},
        /* each pixel spreads over a filter of 1 and 10 along the height, stride 2 */
        {IMAGE NODE("f", "Const", "",
                    CONST_ATTRS("DT_FLOAT",
                                "dim { size: 2 } dim { size: 1 } dim { size: 1 } "
                                "dim { size: 1 }",
                                "float_val: [1, 10]"))
             NODE("s", "Const", "", INTS("4", "1, 4, 3, 1"))
                 NODE("y", "Conv2DBackpropInput", "'s', 'f', 'i'",
                      ATTR("strides", "list { i: [1, 2, 1, 1] }") ATTR("padding", "s: 'VALID'")),
         "float32[1,4,3,1] 1 -2 3 10 -20 30 -4 5 -6 -40 50 -60"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_library *library = import(DIM("2") DIM("3"), rows[i].nodes, "");
        for (size_t d = 0; d < 2; d++) {
            check(library, devices[d], sx_type_of(SX_F32, 2, 3), rows[i].expected);
        }
        sx_library_destroy(library);
    }
}

/* ---- Functions ---- */

static const char twice[] =
    FUNCTION("twice", IN("x") OUT("y"), BODY("d", "AddV2", "'x', 'x'", ""), RET("y", "d:z:0"));

static void test_savedmodel_import_library__functions_stay_functions(void **state)
{
    (void)state;
    static const char nodes[] = NODE("a", "Const", "", INT("0")) NODE("s", "Sum", "'x', 'a'", "")
        NODE("p", "PartitionedCall", "'x'", FUNC("f", "twice"))
            NODE("q", "StatefulPartitionedCall", "'p'", FUNC("f", "twice"))
                NODE("r", "twice", "'s'", "") NODE("y", "AddV2", "'q', 'r'", "");
    sx_library *library = import(ANY DIM("2"), nodes, twice);
    assert_int_equal(library->n_functions, 3); /* twice of [?,2], of [2], and f */
    assert_non_null(sx_library_find(library, "twice"));
    assert_non_null(sx_library_find(library, "twice#2"));
    char *text = NULL;
    assert_ok(sx_library_print(library, &text));
    assert_non_null(strstr(text, "call("));
    sx_text_free(text);
    check(library, "host", sx_type_of(SX_F32, 2, 2), "float32[2,2] 12 -20 20 -28");
    check(library, "cpu", sx_type_of(SX_F32, 1, 2), "float32[1,2] 6 -12");
    sx_library_destroy(library);
}

/* In a function, an output of PartitionedCall has that operator's name, one of a call by name the
 * called function's. */
static void test_savedmodel_import_library__outputs_of_calls_in_functions(void **state)
{
    (void)state;
    static const char *const calls[] = {
        BODY("c", "PartitionedCall", "'x'", FUNC("f", "twice"))
            BODY("n", "Neg", "'c:output:0'", ""),
        BODY("c", "twice", "'x'", "") BODY("n", "Neg", "'c:y:0'", ""),
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        sx_buf functions;
        sx_buf_init(&functions, 0);
        sx_buf_printf(&functions, "%s function { signature { name: 'outer' %s } %s %s }", twice,
                      IN("x") OUT("y"), calls[i], RET("y", "n:y:0"));
        sx_library *library = import(ANY, NODE("y", "outer", "'x'", ""), sx_buf_text(&functions));
        check(library, "cpu", sx_type_of(SX_F32, 2), "float32[2] -2 4");
        sx_library_destroy(library);
        sx_buf_deinit(&functions);
    }
}

/* y = sum(x) > 0 ? x - 1 : [x, x], of different shapes */
static const char branches[] =
    FUNCTION("less", IN("x") OUT("y"),
             BODY("one", "Const", "", FLOAT("1")) BODY("d", "Sub", "'x', 'one:output:0'", ""),
             RET("y", "d:z:0")) FUNCTION("more", IN("x") OUT("y"),
                                         BODY("axis", "Const", "", INT("0"))
                                             BODY("d", "ConcatV2", "'x', 'x', 'axis:output:0'", ""),
                                         RET("y", "d:output:0"));

static void test_savedmodel_import_library__branches(void **state)
{
    (void)state;
    static const char nodes[] = NODE("a", "Const", "", INT("0")) NODE("s", "Sum", "'x', 'a'", "")
        NODE("z", "Const", "", FLOAT("0")) NODE("c", "Greater", "'s', 'z'", "")
            NODE("y", "StatelessIf", "'c', 'x'",
                 FUNC("then_branch", "less") FUNC("else_branch", "more"));
    sx_library *library = import(ANY, nodes, branches);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 3), "float32[3] 0 -3 2");
        check(library, devices[d], sx_type_of(SX_F32, 2), "float32[4] 1 -2 1 -2");
    }
    sx_library_destroy(library);
}

/* i = 0; while (i < n) { x = x + x; i = i + 1 }: n is state that does not change. */
static void test_savedmodel_import_library__loops(void **state)
{
    (void)state;
#define LOOP_ARGS IN("x") ARG("input", "i", "DT_INT32") ARG("input", "n", "DT_INT32")
    static const char functions[] = FUNCTION("goes", LOOP_ARGS ARG("output", "go", "DT_BOOL"),
                                             BODY("l", "Less", "'i', 'n'", ""), RET("go", "l:z:0"))
        FUNCTION(
            "again",
            LOOP_ARGS OUT("xo") ARG("output", "io", "DT_INT32") ARG("output", "no", "DT_INT32"),
            BODY("one", "Const", "", INT("1")) BODY("d", "AddV2", "'x', 'x'", "")
                BODY("k", "AddV2", "'i', 'one:output:0'", "") BODY("same", "Identity", "'n'", ""),
            RET("xo", "d:z:0") RET("io", "k:z:0") RET("no", "same:output:0"));
    static const char fixed[] = NODE("z", "Const", "", INT("0")) NODE("n", "Const", "", INT("4"))
        NODE("w", "StatelessWhile", "'x', 'z', 'n'", FUNC("cond", "goes") FUNC("body", "again"))
            NODE("y", "Identity", "'w:0'", "");
    sx_library *library = import(ANY, fixed, functions);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 2), "float32[2] 16 -32");
    }
    sx_library_destroy(library);
    /* as often as x has elements: an operand that is known when it runs */
    static const char counted[] = NODE("z", "Const", "", INT("0")) NODE("n", "Size", "'x'", "")
        NODE("w", "While", "'x', 'z', 'n'", FUNC("cond", "goes") FUNC("body", "again"))
            NODE("y", "Identity", "'w'", "");
    library = import(ANY, counted, functions);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 1), "float32[1] 2");
        check(library, devices[d], sx_type_of(SX_F32, 3), "float32[3] 8 -16 24");
    }
    sx_library_destroy(library);
    /* whose state grows */
    static const char growing[] = FUNCTION("goes", LOOP_ARGS ARG("output", "go", "DT_BOOL"),
                                           BODY("l", "Less", "'i', 'n'", ""), RET("go", "l:z:0"))
        FUNCTION("again",
                 LOOP_ARGS OUT("xo") ARG("output", "io", "DT_INT32")
                     ARG("output", "no", "DT_INT32"),
                 BODY("one", "Const", "", INT("1")) BODY("axis", "Const", "", INT("0"))
                     BODY("d", "ConcatV2", "'x', 'x', 'axis:output:0'", "")
                         BODY("k", "AddV2", "'i', 'one:output:0'", ""),
                 RET("xo", "d:output:0") RET("io", "k:z:0") RET("no", "n"));
    library = import(DIM("1"), fixed, growing);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 1),
              "float32[16] 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
    }
    sx_library_destroy(library);
}

/* An assert that nothing reads runs before what it is a control input of. */
static void test_savedmodel_import_library__asserts_by_control_edges(void **state)
{
    (void)state;
    static const char function[] =
        FUNCTION("checked", IN("x") OUT("y"),
                 BODY("axis", "Const", "", INT("0")) BODY("s", "Sum", "'x', 'axis:output:0'", "")
                     BODY("zero", "Const", "", FLOAT("0")) BODY("c", "Greater",
                                                                "'s:output:0', 'zero:output:0'", "")
                         BODY("text", "Const", "",
                              CONST_ATTRS("DT_STRING", "", "string_val: 'sum must be positive'"))
                             BODY("assert", "Assert", "'c:z:0', 'text:output:0'", "")
                                 BODY("d", "Neg", "'x', '^assert'", ""),
                 RET("y", "d:y:0") "control_ret { key: 'assert' value: 'assert' }");
    sx_library *library =
        import(ANY, NODE("y", "PartitionedCall", "'x'", FUNC("f", "checked")), function);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 1), "float32[1] -1");
        check(library, devices[d], sx_type_of(SX_F32, 2),
              "INVALID_ARGUMENT: f: assert \"y/call/assert/assert\": assertion failed");
        check(library, devices[d], sx_type_of(SX_F32, 2), "[sum must be positive]");
    }
    sx_library_destroy(library);
}

static void keep_line(void *user, sx_log_level level, const char *file, int line, const char *text)
{
    (void)level;
    (void)file;
    (void)line;
    sx_buf_printf(user, "%s\n", text);
}

/* Print(x, sum), in the order of its control edge after PrintV2("hello"). */
static void test_savedmodel_import_library__prints(void **state)
{
    (void)state;
    static const char function[] =
        FUNCTION("shown", IN("x") OUT("y"),
                 BODY("axis", "Const", "", INT("0")) BODY("s", "Sum", "'x', 'axis:output:0'", "")
                     BODY("text", "Const", "", CONST_ATTRS("DT_STRING", "", "string_val: 'hello'"))
                         BODY("first", "PrintV2", "'text:output:0'", "")
                             BODY("p", "Print", "'x', 's:output:0', 'x', '^first'",
                                  ATTR("message", "s: 'sum'") ATTR("summarize", "i: 2"))
                                 BODY("d", "Neg", "'p:output:0'", ""),
                 RET("y", "d:y:0") "control_ret { key: 'first' value: 'first' }");
    sx_library *library =
        import(ANY, NODE("y", "PartitionedCall", "'x'", FUNC("f", "shown")), function);
    for (size_t d = 0; d < 2; d++) {
        sx_buf lines;
        sx_buf_init(&lines, 1 << 10);
        sx_log_set_sink(keep_line, &lines, SX_LOG_INFO);
        check(library, devices[d], sx_type_of(SX_F32, 3), "float32[3] -1 2 -3");
        sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
        assert_string_equal(sx_buf_text(&lines), "hello\nsum 2 [1 -2 ...]\n");
        sx_buf_deinit(&lines);
    }
    sx_library_destroy(library);
}

/* ---- An exported model: variables, names of classes ---- */

static const float kernel[6] = {1, -1, 0, 2, 3, 0};

static sx_status give_kernel(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    memcpy(out, kernel, (size_t)sx_type_bytes(type));
    return SX_OK;
}

/* m/1 */
static void export_classifier(void)
{
    static const char *const names[] = {"no", "yes"};
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    char *dir = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value w = sx_variable(
        b, &(sx_variable_spec){.name = "dense/kernel", .type = sx_type_of(SX_F32, 3, 2)});
    sx_value y =
        sx_softmax(b, sx_matmul(b, sx_input(b, "features", sx_type_of(SX_F32, SX_BATCH, 3)), w));
    sx_output(b, "probabilities", y);
    sx_output(b, "classid", sx_argmax(b, y, .axis = 1));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    assert_ok(sx_export_saved_model(&(sx_export_request){.graph = graph,
                                                         .read_variable = give_kernel,
                                                         .class_names = names,
                                                         .n_classes = 2,
                                                         .base = scratch("m")},
                                    &dir));
    sx_graph_destroy(graph);
    sx_free(dir);
}

static void test_savedmodel_import_library__an_exported_classifier(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1];
    export_classifier();
    assert_ok(sx_saved_model_open(scratch("m/1"), &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    sx_saved_model_close(model);
    for (size_t d = 0; d < 2; d++) {
        sx_platform *platform = NULL;
        sx_runner *runner = NULL;
        sx_arena arena;
        sx_tensor out[3]; /* class, classid, probabilities */
        float x[] = {1, 0, 0, 0, 1, 0};
        sx_arena_init(&arena, 0);
        assert_ok(
            sx_platform_open(devices[d], &(sx_platform_options){.cpu.threads = 1}, &platform));
        assert_ok(sx_runner_create(&(sx_runner_options){.library = library, .platform = platform},
                                   &runner));
        assert_ok(sx_runner_write_variable(runner, "dense/kernel", kernel));
        assert_ok(sx_runner_run(runner, "serving_default",
                                &(sx_tensor){sx_type_of(SX_F32, 2, 3), x}, 1, out, 3, &arena,
                                NULL));
        const sx_bytes *classes = out[0].data;
        assert_int_equal(sx_type_elems(&out[0].type), 2);
        assert_true(classes[0].size == 2 && memcmp(classes[0].data, "no", 2) == 0);
        assert_true(classes[1].size == 3 && memcmp(classes[1].data, "yes", 3) == 0);
        assert_int_equal(((const int32_t *)out[1].data)[1], 1);
        assert_float_equal(((const float *)out[2].data)[0], 0.8807971, 1e-6);
        sx_runner_destroy(runner);
        sx_platform_close(platform);
        sx_arena_deinit(&arena);
    }
    sx_library_destroy(library);
}

/* A variable that the graph declares to be another than the checkpoint has. */
static void test_savedmodel_import_library__variables_are_as_declared(void **state)
{
    (void)state;
    static const struct {
        int dtype, rank;
        int64_t dims[3];
        const char *says; /* NULL: it is imported */
    } rows[] = {
        {SX_F32, 2, {3, 2}, NULL},
        {SX_F32, 2, {-1, 2}, NULL},
        {SX_F32, -1, {0}, NULL},
        {SX_I32, 2, {3, 2}, "declares the variable as int32[3,2], the checkpoint has float32[3,2]"},
        {SX_F32, 2, {2, 3}, "declares the variable as float32[2,3], the checkpoint has"},
        {SX_F32, 1, {6}, "declares the variable as float32[6], the checkpoint has"},
        {SX_F32, 3, {3, 2, 1}, "declares the variable as float32[3,2,1], the checkpoint has"},
        {SX_F32, 2, {INT64_MAX, INT64_MIN}, "float32[9223372036854775807,-9223372036854775808]"},
    };
    char *data = NULL;
    size_t size = 0;
    export_classifier();
    assert_ok(sx_file_read(scratch("m/1/saved_model.pb"), 1 << 20, &data, &size));
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        Tensorflow__SavedModel *m =
            tensorflow__saved_model__unpack(NULL, size, (const uint8_t *)data);
        Tensorflow__GraphDef *g = m->meta_graphs[0]->graph_def;
        int found = 0;
        for (size_t k = 0; k < g->n_node; k++) {
            for (size_t a = 0; a < g->node[k]->n_attr; a++) {
                Tensorflow__NodeDef__AttrEntry *attr = g->node[k]->attr[a];
                if (strcmp(g->node[k]->op, "VarHandleOp") != 0) {
                    continue;
                }
                if (strcmp(attr->key, "dtype") == 0) {
                    attr->value->type = (Tensorflow__DataType)rows[i].dtype;
                    found++;
                } else if (strcmp(attr->key, "shape") == 0) {
                    Tensorflow__TensorShapeProto *shape = attr->value->shape;
                    const Tensorflow__TensorShapeProto empty = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
                    static Tensorflow__TensorShapeProto__Dim dims[3], *list[3];
                    tensorflow__tensor_shape_proto__free_unpacked(shape, NULL);
                    attr->value->shape = malloc(sizeof(empty));
                    *attr->value->shape = empty;
                    attr->value->shape->unknown_rank = rows[i].rank < 0;
                    attr->value->shape->n_dim = (size_t)SX_MAX(rows[i].rank, 0);
                    attr->value->shape->dim = list;
                    for (int d = 0; d < 3; d++) {
                        dims[d] = (Tensorflow__TensorShapeProto__Dim)
                            TENSORFLOW__TENSOR_SHAPE_PROTO__DIM__INIT;
                        dims[d].size = rows[i].dims[d];
                        list[d] = &dims[d];
                    }
                    found++;
                }
            }
        }
        assert_int_equal(found, 2);
        const size_t bytes = tensorflow__saved_model__get_packed_size(m);
        uint8_t *packed = sx_alloc(bytes + 1, 1);
        assert_int_equal(tensorflow__saved_model__pack(m, packed), bytes);
        write_file(scratch("m/1/saved_model.pb"), packed, bytes);
        sx_free(packed);
        for (size_t k = 0; k < g->n_node; k++) {
            for (size_t a = 0; a < g->node[k]->n_attr; a++) {
                Tensorflow__NodeDef__AttrEntry *attr = g->node[k]->attr[a];
                if (strcmp(g->node[k]->op, "VarHandleOp") == 0 && strcmp(attr->key, "shape") == 0) {
                    attr->value->shape->n_dim = 0; /* static */
                    attr->value->shape->dim = NULL;
                }
            }
        }
        tensorflow__saved_model__free_unpacked(m, NULL);
        sx_saved_model *model = NULL;
        sx_library *library = NULL;
        sx_status refused[1] = {SX_OK};
        assert_ok(sx_saved_model_open(scratch("m/1"), &model));
        assert_ok(sx_import_library(model, NULL, &library, refused));
        if (rows[i].says != NULL) {
            assert_error(refused[0], SX_DATA_LOSS, rows[i].says);
        } else {
            assert_ok(refused[0]);
        }
        sx_library_destroy(library);
        sx_saved_model_close(model);
    }
    sx_free(data);
}

/* ---- What is refused ---- */

static void test_savedmodel_import_library__refuses_all_at_once(void **state)
{
    (void)state;
    refuses(
        NODE("p", "PartitionedCall", "'x'", FUNC("f", "g")) NODE("e", "CustomA", "'p'", "")
            NODE("y", "CustomC", "'e'", ""),
        FUNCTION("g", IN("x") OUT("y"),
                 BODY("e", "CustomA", "'x'", "") BODY("c", "CustomB", "'x', 'x'", "")
                     BODY("d", "AddV2", "'e:y:0', 'c:out:0'", ""),
                 RET("y", "d:z:0")),
        NULL,
        "UNIMPLEMENTED: unsupported operators: CustomA (2 nodes: \"e\" of function \"g\", \"e\"), "
        "CustomB (1 node: \"c\" of function \"g\"), CustomC (1 node: \"y\")");
    refuses(NODE("y", "QueueDequeueV2", "'x'", ""), "", NULL,
            "UNIMPLEMENTED: unsupported operator: QueueDequeueV2 (1 node: \"y\": threads of "
            "TensorFlow fill it; save a signature that takes the examples as inputs)");
    refuses(NODE("a", "CustomA", "'x'", "") NODE("b", "CustomA", "'a'", "")
                NODE("c", "CustomA", "'b'", "") NODE("d", "CustomA", "'c'", "")
                    NODE("e", "CustomA", "'d'", "") NODE("f", "CustomA", "'e'", "")
                        NODE("g", "CustomA", "'f'", "") NODE("h", "CustomA", "'g'", "")
                            NODE("i", "CustomA", "'h'", "") NODE("y", "CustomB", "'i'", ""),
            "", NULL,
            "UNIMPLEMENTED: unsupported operators: CustomA (9 nodes: \"a\", \"b\", \"c\", \"d\", "
            "\"e\", \"f\", \"g\", \"h\", ...), CustomB (1 node: \"y\")");
    refuses(NODE("c", "Const", "", CONST_ATTRS("DT_BOOL", "", "bool_val: true"))
                NODE("y", "If", "'c', 'x'", FUNC("then_branch", "g") FUNC("else_branch", "h")),
            FUNCTION("g", IN("x") OUT("y"), BODY("e", "CustomA", "'x'", ""), RET("y", "e:y:0"))
                FUNCTION("h", IN("x") OUT("y"), BODY("s", "CustomC", "'x'", ""), RET("y", "s:y:0")),
            NULL,
            "UNIMPLEMENTED: unsupported operators: CustomA (1 node: \"e\" of function \"g\"), "
            "CustomC (1 "
            "node: \"s\" of function \"h\")");
}

static void test_savedmodel_import_library__limits(void **state)
{
    (void)state;
    static const char nine[] = /* calls f8, which calls f7 twice, … */
        FUNCTION("f0", IN("x") OUT("y"), BODY("d", "Neg", "'x'", ""), RET("y", "d:y:0"))
            FUNCTION("f1", IN("x") OUT("y"),
                     BODY("a", "f0", "'x'", "") BODY("b", "f0", "'a:y:0'", ""), RET("y", "b:y:0"))
                FUNCTION("f2", IN("x") OUT("y"), BODY("a", "f1", "'x'", ""), RET("y", "a:y:0"));
    static const char call[] = NODE("y", "f2", "'x'", "");
    static const char recursive[] =
        FUNCTION("f2", IN("x") OUT("y"), BODY("a", "f2", "'x'", ""), RET("y", "a:y:0"));
    refuses(call, nine, &(sx_import_limits){.nodes = 4},
            "RESOURCE_EXHAUSTED: more than 4 nodes in all functions");
    refuses(call, nine, &(sx_import_limits){.functions = 2},
            "RESOURCE_EXHAUSTED: more than 2 functions");
    refuses(call, nine, &(sx_import_limits){.calls = 2},
            "RESOURCE_EXHAUSTED: function calls nest deeper than 2");
    sx_cancel cancel;
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    refuses(call, nine, &(sx_import_limits){.cancel = &cancel}, "CANCELLED: ");
    refuses(call, recursive, NULL,
            "UNIMPLEMENTED: unsupported operator: f2 (1 node: \"a\" of function \"f2\": "
            "function \"f2\" calls itself)");
    refuses(NODE("c", "Const", "", INTS("3", "1, 2, 3")) NODE("y", "Reshape", "'x', 'c'", ""), "",
            &(sx_import_limits){.constant_bytes = 11},
            "RESOURCE_EXHAUSTED: more than 11 bytes of constants");
    refuses(
        NODE("y", "Const", "", CONST_ATTRS("DT_FLOAT", "dim { size: 20000000 }", "float_val: 1")),
        "", NULL, /* 64 MiB and four times the file */
        "RESOURCE_EXHAUSTED: a tensor has 80000000 bytes, over the limit");
    refuses(NODE("a", "Neg", "'y'", "") NODE("y", "Neg", "'a'", ""), "", NULL,
            "DATA_LOSS: node \"a\" depends on itself");
    refuses(NODE("y", "Neg", "'nothing'", ""), "", NULL,
            "DATA_LOSS: node \"y\": unknown input node \"nothing\"");
    refuses(NODE("y", "f2", "'x', 'x'", ""), nine, NULL,
            "DATA_LOSS: function \"f2\": 2 arguments are given, expected 1");
}

/* The devices that NodeDefs name, if they are asked for; a function's nodes keep their own. */
static void test_savedmodel_import_library__devices(void **state)
{
    (void)state;
    static const char function[] =
        FUNCTION("f", IN("x") OUT("y"),
                 BODY("d", "Neg", "'x'", "device: '/job:worker/task:0/device:gpu:1'")
                     BODY("e", "Abs", "'d:y:0'", ""),
                 RET("y", "e:y:0"));
    static const char nodes[] = NODE("c", "Exp", "'x'", "device: '/CPU:*'")
        NODE("y", "f", "'c'", "device: '/device:CPU:0'");
    static const struct {
        const char *op, *device;
    } expected[] = {{"exp", "/device:CPU:*"}, {"neg", "/job:worker/task:0/device:GPU:1"}};
    sx_saved_model *model;
    for (int asked = 0; asked < 2; asked++) {
        sx_library *library;
        sx_status refused[2] = {SX_OK, SX_OK};
        int seen = 0;
        assert_ok(parse_model(ANY, nodes, function, &model));
        assert_ok(sx_import_library(model, &(sx_import_limits){.devices = asked == 1}, &library,
                                    refused));
        assert_ok(refused[0]);
        for (int f = 0; f < library->n_functions; f++) {
            const sx_graph *g = library->functions[f].body;
            for (int k = 0; k < g->n_nodes; k++) {
                for (size_t i = 0; i < SX_COUNT(expected); i++) {
                    if (strcmp(g->nodes[k].op->name, expected[i].op) == 0) {
                        assert_string_equal(g->nodes[k].device, asked ? expected[i].device : "");
                        seen++;
                    }
                }
            }
        }
        assert_int_equal(seen, SX_COUNT(expected));
        sx_library_destroy(library);
        sx_saved_model_close(model);
    }
    assert_ok(parse_model(ANY, NODE("y", "Neg", "'x'", "device: '/GPU:one'"), "", &model));
    sx_library *library;
    sx_status refused[2] = {SX_OK, SX_OK};
    assert_ok(sx_import_library(model, &(sx_import_limits){.devices = true}, &library, refused));
    assert_error(refused[0], SX_INVALID_ARGUMENT, "is not a part of a device's name");
    sx_library_destroy(library);
    sx_saved_model_close(model);
}

/* Of calls in calls, an error names the first and the last. */
static void test_savedmodel_import_library__says_where(void **state)
{
    (void)state;
    static const char deep[] =
        FUNCTION("f0", IN("x") OUT("y"), BODY("c", "Const", "", ""), RET("y", "c:output:0"))
            FUNCTION("f1", IN("x") OUT("y"), BODY("a", "f0", "'x'", ""), RET("y", "a:y:0"))
                FUNCTION("f2", IN("x") OUT("y"), BODY("a", "f1", "'x'", ""), RET("y", "a:y:0"))
                    FUNCTION("f3", IN("x") OUT("y"), BODY("a", "f2", "'x'", ""), RET("y", "a:y:0"));
    static const char loop[] =
        FUNCTION("body", IN("x") OUT("y"), BODY("c", "Const", "", ""), RET("y", "c:output:0"))
            FUNCTION("cond", IN("x") ARG("output", "y", "DT_BOOL"),
                     BODY("c", "Const", "", CONST_ATTRS("DT_BOOL", "", "bool_val: true")),
                     RET("y", "c:output:0"))
                FUNCTION("f1", IN("x") OUT("y"),
                         BODY("w", "While", "'x'", FUNC("cond", "cond") FUNC("body", "body")),
                         RET("y", "w:output:0"))
                    FUNCTION("f2", IN("x") OUT("y"), BODY("a", "f1", "'x'", ""), RET("y", "a:y:0"));
    refuses(NODE("y", "f0", "'x'", ""), deep, NULL,
            "DATA_LOSS: function \"f0\": Const \"c\": Const has no value");
    refuses(NODE("y", "f1", "'x'", ""), deep, NULL,
            "DATA_LOSS: function \"f1\": function \"f0\": Const \"c\": Const has no value");
    refuses(NODE("y", "f3", "'x'", ""), deep, NULL,
            "DATA_LOSS: function \"f3\": ... 2 more ...: function \"f0\": Const \"c\": Const has");
    refuses(NODE("y", "f2", "'x'", ""), loop, NULL,
            "DATA_LOSS: function \"f2\": function \"f1\": While \"w\": body \"body\": Const");
    refuses(
        NODE("y", "PartitionedCall", "'x'", FUNC("f", "gone")), "", NULL,
        "DATA_LOSS: PartitionedCall \"y\": attribute f names function \"gone\", which the model "
        "does not have");
    refuses(NODE("y", "PartitionedCall", "'x'", ""), "", NULL,
            "DATA_LOSS: PartitionedCall \"y\": attribute f names no function of the model");
}

static void test_savedmodel_import_library__names_what_is_not_supported(void **state)
{
    (void)state;
    refuses(NODE("y", "Cast", "'x'", ATTR("DstT", "type: DT_FLOAT8_E4M3FN")), "", NULL,
            "UNIMPLEMENTED: unsupported operator: Cast (1 node: \"y\": float8_e4m3fn is not "
            "supported)");
    refuses(NODE("y", "Custom", "'x'", ATTR("T", "type: DT_INT4")), "", NULL,
            "UNIMPLEMENTED: unsupported operator: Custom (1 node: \"y\")");
    refuses(NODE("y", "IdentityN", "'x'", ATTR("T", "list { type: [DT_FLOAT, DT_UINT4] }")), "",
            NULL,
            "UNIMPLEMENTED: unsupported operator: IdentityN (1 node: \"y\": uint4 is not "
            "supported)");
    refuses(NODE("y", "Const", "",
                 ATTR("dtype", "type: DT_INT32") CONST_ATTRS("DT_FLOAT", "", "float_val: 1")),
            "", NULL, "DATA_LOSS: Const \"y\": attribute dtype is int32, the value is float32");
    refuses(
        NODE("d", "RangeDataset", "'x', 'x', 'x'", "") NODE("y", "ReduceDataset", "'d', 'x'", ""),
        "", NULL,
        "UNIMPLEMENTED: unsupported operators: RangeDataset (1 node: \"d\": it is part of an input "
        "pipeline (tf.data), which is not "
        "supported; save a signature that takes the examples as inputs), ReduceDataset (1 node: "
        "\"y\": likewise)");
}

/* A chain of nodes, as many as may be: a small part of the file's budget for each. */
static void test_savedmodel_import_library__many_nodes(void **state)
{
    (void)state;
    enum { MANY = 150000 };
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    sx_buf nodes;
    sx_buf_init(&nodes, 0);
    sx_buf_puts(&nodes, NODE("n0", "Neg", "'x'", ""));
    for (int i = 1; i < MANY; i++) {
        sx_buf_printf(&nodes, "node { name: 'n%d' op: 'Neg' input: 'n%d' }\n", i, i - 1);
    }
    sx_buf_puts(&nodes, "node { name: 'y' op: 'Neg' input: 'n149999' }");
    assert_ok(parse_model(ANY, sx_buf_text(&nodes), "", &model));
    sx_buf_deinit(&nodes);
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    sx_library_destroy(library);
    sx_saved_model_close(model);
}

/* Of a chain with more nodes than may be, none is built: its memory is that of the file. */
static void test_savedmodel_import_library__too_many_nodes(void **state)
{
    (void)state;
    enum { MANY = 210000, MIB = 1 << 20 };
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    sx_buf nodes;
    sx_buf_init(&nodes, 0);
    sx_buf_puts(&nodes, NODE("n0", "Neg", "'x'", ""));
    for (int i = 1; i < MANY; i++) {
        sx_buf_printf(&nodes, "node { name: 'n%d' op: 'Neg' input: 'n%d' }\n", i, i - 1);
    }
    sx_buf_puts(&nodes, "node { name: 'y' op: 'Neg' input: 'n209999' }");
    assert_ok(parse_model(ANY, sx_buf_text(&nodes), "", &model));
    sx_buf_deinit(&nodes);
    const long allocations = sx_alloc_count();
    assert_error(sx_import_library(model, NULL, &library, refused), SX_RESOURCE_EXHAUSTED,
                 "more than 200000 nodes in all functions");
    assert_true(sx_alloc_count() - allocations < 1000);
    sx_saved_model_close(model);
}

/* A string that is joined with itself again and again: the longest is refused before there is
 * memory for it. */
static void test_savedmodel_import_library__strings_that_double(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    sx_buf nodes;
    sx_buf_init(&nodes, 0);
    sx_buf_puts(&nodes, NODE("n0", "AsString", "'x'", ""));
    for (int i = 1; i < 40; i++) {
        sx_buf_printf(&nodes, "node { name: 'n%d' op: 'StringJoin' input: ['n%d', 'n%d'] }\n", i,
                      i - 1, i - 1);
    }
    sx_buf_puts(&nodes, NODE("l", "StringLength", "'n39'", "")
                            NODE("y", "Cast", "'l'", ATTR("DstT", "type: DT_FLOAT")));
    sx_library *library = import(ANY, sx_buf_text(&nodes), "");
    const int64_t before = sx_peak_bytes();
    check(library, "cpu", sx_type_of(SX_F32, 1), "one may have 64 MiB");
    assert_true(sx_peak_bytes() - before < 160LL * MIB);
    sx_library_destroy(library);
    sx_buf_deinit(&nodes);
}

/* Imports a parsed model; that of a signature counts, too. */
static sx_status import_parsed(void *model)
{
    sx_library *library = NULL;
    sx_status refused[1];
    SX_TRY(sx_import_library(model, NULL, &library, refused));
    sx_library_destroy(library);
    return refused[0];
}

/* Also where it reads an attribute that is a text: the pool's padding. */
static void test_savedmodel_import_library__every_allocation_may_fail(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    assert_ok(parse_model("dim { size: -1 } dim { size: 4 } dim { size: 4 } dim { size: 2 }",
                          NODE("y", "MaxPool", "'x'",
                               ATTR("padding", "s: 'SAME'") ATTR("data_format", "s: 'NHWC'")
                                   ATTR("ksize", "list { i: [1, 2, 2, 1] }")
                                       ATTR("strides", "list { i: [1, 2, 2, 1] }")),
                          "", &model));
    assert_true(sx_torture(import_parsed, model) > 20);
    sx_saved_model_close(model);
}

/* ---- What the model says of operators; its constants ---- */

/* y = where(x): output 1 of TopKV2, by the name that only the model's definition gives it; and a
 * constant whose bytes the model has. */
static const char defined_ops[] =
    "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' "
    "stripped_op_list { op { name: 'TopKV2' output_arg { name: 'best' type_attr: 'T' } "
    "output_arg { name: 'where' type: DT_INT32 } } } } "
    "graph_def { node { name: 'x' op: 'Placeholder' }\n"               //
    NODE("y", "PartitionedCall", "'x'", FUNC("f", "top")) "library { " //
    FUNCTION("top", IN("x") ARG("output", "y", "DT_INT32"),
             BODY("one", "Const", "",
                  CONST_ATTRS("DT_INT32", "", "tensor_content: '\\001\\000\\000\\000'"))
                 BODY("t", "TopKV2", "'x', 'one:output:0'", ""),
             RET("y", "t:where:0")) //
    "} } signature_def { key: 'f' value { inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT "
    "tensor_shape { dim { size: -1 } } } } outputs { key: 'y' value { name: 'y:0' tensor_shape { "
    "unknown_rank: true } } } } } }";

static void test_savedmodel_import_library__definitions_of_operators_name_outputs(void **state)
{
    (void)state;
    sx_buf packed;
    sx_saved_model *model = NULL;
    sx_library *library = NULL, *again = NULL;
    sx_status refused[1];
    sx_buf_init(&packed, 0);
    pack_text(&tensorflow__saved_model__descriptor, defined_ops, &packed);
    assert_ok(sx_saved_model_parse((sx_bytes){packed.data, packed.size}, &model));
    sx_buf_deinit(&packed);
    assert_non_null(sx_saved_model_find_op(model, "TopKV2"));
    assert_null(sx_saved_model_find_op(model, "Const"));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    assert_true(sx_saved_model_has_constants(model));
    sx_saved_model_drop_constants(model); /* the library has its own */
    assert_false(sx_saved_model_has_constants(model));
    check(library, "host", sx_type_of(SX_F32, 3), "int32[1] 2");
    assert_error(sx_import_library(model, NULL, &again, refused), SX_FAILED_PRECONDITION,
                 "was imported before");
    sx_saved_model_close(model);
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_library__shapes_may_be_unknown),
    cmocka_unit_test(test_savedmodel_import_library__images),
    cmocka_unit_test(test_savedmodel_import_library__functions_stay_functions),
    cmocka_unit_test(test_savedmodel_import_library__outputs_of_calls_in_functions),
    cmocka_unit_test(test_savedmodel_import_library__branches),
    cmocka_unit_test(test_savedmodel_import_library__loops),
    cmocka_unit_test(test_savedmodel_import_library__asserts_by_control_edges),
    cmocka_unit_test(test_savedmodel_import_library__prints),
    scratch_test(test_savedmodel_import_library__an_exported_classifier),
    scratch_test(test_savedmodel_import_library__variables_are_as_declared),
    cmocka_unit_test(test_savedmodel_import_library__refuses_all_at_once),
    cmocka_unit_test(test_savedmodel_import_library__definitions_of_operators_name_outputs),
    cmocka_unit_test(test_savedmodel_import_library__says_where),
    cmocka_unit_test(test_savedmodel_import_library__names_what_is_not_supported),
    cmocka_unit_test(test_savedmodel_import_library__limits),
    cmocka_unit_test(test_savedmodel_import_library__devices),
    cmocka_unit_test(test_savedmodel_import_library__many_nodes),
    cmocka_unit_test(test_savedmodel_import_library__too_many_nodes),
    cmocka_unit_test(test_savedmodel_import_library__strings_that_double),
    cmocka_unit_test(test_savedmodel_import_library__every_allocation_may_fail),
};
SX_TEST_MAIN(tests)
