/* Variants of imported functions that are no lists of tensors: optionals, what branches and loops
 * pass on in them, lists of optionals and of lists. */
#include "savedmodel/function_model.h"

#define VARIANT(kind, name) ARG(kind, name, "DT_VARIANT")
#define I32(kind, name)     ARG(kind, name, "DT_INT32")
#define OF(type)            ATTR("element_dtype", "type: " type)
#define SOME(name, inputs)  NODE(name, "OptionalFromValue", inputs, "")
#define GET(types, shapes) \
    ATTR("output_types", "list { " types " }") ATTR("output_shapes", "list { " shapes " }")
#define FLOAT_OF(dims) GET("type: DT_FLOAT", "shape { " dims " }")
#define HAS(optional)                           \
    NODE("h", "OptionalHasValue", optional, "") \
    NODE("y", "Cast", "'h'", ATTR("DstT", "type: DT_FLOAT"))
#define CONDITION                       \
    NODE("axis", "Const", "", INT("0")) \
    NODE("s", "Sum", "'x', 'axis'", "") \
    NODE("z", "Const", "", FLOAT("0")) NODE("c", "Less", "'s', 'z'", "")
#define IF(then, other) \
    NODE("o", "StatelessIf", "'c', 'x'", FUNC("then_branch", then) FUNC("else_branch", other))

/* Branches that give optionals: of -x, of the sum, of x and its sum, of none. */
#define BRANCH(name, body, result) \
    FUNCTION(name, IN("x") VARIANT("output", "o"), body, RET("o", result))
#define SUM_IN_BODY BODY("axis", "Const", "", INT("0")) BODY("s", "Sum", "'x', 'axis:output:0'", "")
static const char branches[] = BRANCH(
    "negative", BODY("n", "Neg", "'x'", "") BODY("o", "OptionalFromValue", "'n:y:0'", ""),
    "o:optional:0")
    BRANCH("sum", SUM_IN_BODY BODY("o", "OptionalFromValue", "'s:output:0'", ""), "o:optional:0")
        BRANCH("pair", SUM_IN_BODY BODY("o", "OptionalFromValue", "'x', 's:output:0'", ""),
               "o:optional:0") BRANCH("none", BODY("o", "OptionalNone", "", ""), "o:optional:0");

static void run(const char *nodes, const char *functions, const char *expected)
{
    static const char *const dims[] = {ANY, DIM("2")};
    for (size_t k = 0; k < 2; k++) {
        sx_library *library = import(dims[k], nodes, functions);
        for (size_t d = 0; d < 2; d++) {
            check(library, devices[d], sx_type_of(SX_F32, 2), expected);
        }
        sx_library_destroy(library);
    }
}

static void test_savedmodel_import_variants__optionals(void **state)
{
    (void)state;
    run(NODE("n", "Neg", "'x'", "") SOME("o", "'x', 'n'")
            NODE("y", "OptionalGetValue", "'o'",
                 GET("type: [DT_FLOAT, DT_FLOAT]",
                     "shape { dim { size: -1 } } shape { dim { size: 2 } }")),
        "", "float32[2] 1 -2");
    run(SOME("o", "'x'") HAS("'o'"), "", "float32[] 1");
    run(NODE("o", "OptionalNone", "", "") HAS("'o'"), "", "float32[] 0");
    /* one in another, zeros of it */
    run(SOME("p", "'x'") SOME("o", "'p'")
            NODE("q", "OptionalGetValue", "'o'", GET("type: DT_VARIANT", "shape { }"))
                NODE("y", "OptionalGetValue", "'q'", FLOAT_OF("unknown_rank: true")),
        "", "float32[2] 1 -2");
    run(SOME("o", "'x'") NODE("q", "ZerosLike", "'o'", "")
            NODE("r", "AddN", "'o', 'q', 'o'", ATTR("N", "i: 3"))
                NODE("y", "OptionalGetValue", "'r'", FLOAT_OF("dim { size: 2 }")),
        "", "float32[2] 2 -4");
}

/* The sum of 1 and -2 is below 0: the first is chosen. */
static void test_savedmodel_import_variants__of_branches(void **state)
{
    (void)state;
#define VECTOR NODE("y", "OptionalGetValue", "'o'", FLOAT_OF("dim { size: -1 }"))
#define SCALAR NODE("y", "OptionalGetValue", "'o'", FLOAT_OF(""))
    run(CONDITION IF("negative", "none") VECTOR, branches, "float32[2] -1 2");
    run(CONDITION IF("negative", "sum") VECTOR, branches, "float32[2] -1 2");
    run(CONDITION IF("sum", "negative") SCALAR, branches, "float32[] -1");
    run(CONDITION IF("negative", "none") HAS("'o'"), branches, "float32[] 1");
    run(CONDITION IF("none", "negative") HAS("'o'"), branches, "float32[] 0");
    run(CONDITION IF("none", "none") HAS("'o'"), branches, "float32[] 0");
    run(CONDITION IF("none", "negative") VECTOR, branches, "float32[2] 0 0");
    /* several tuples fit, of types that differ */
    run(CONDITION IF("sum", "negative")
            NODE("y", "OptionalGetValue", "'o'", FLOAT_OF("unknown_rank: true")),
        branches, "float32[] -1");
    run(CONDITION IF("pair", "sum")
            NODE("y", "OptionalGetValue", "'o'",
                 GET("type: [DT_FLOAT, DT_FLOAT]", "shape { dim { size: 2 } } shape { }")),
        branches, "float32[2] 1 -2");
}

/* A list to which a loop adds optionals, one in three of which holds what x was. */
static void test_savedmodel_import_variants__in_lists(void **state)
{
    (void)state;
#define LOOP_ARGS IN("x") I32("input", "i") VARIANT("input", "l")
    static const char loop[] = FUNCTION("goes", LOOP_ARGS ARG("output", "go", "DT_BOOL"),
                                        BODY("n", "Const", "", INT("4"))
                                            BODY("less", "Less", "'i', 'n:output:0'", ""),
                                        RET("go", "less:z:0"))
        FUNCTION("again", LOOP_ARGS OUT("xo") I32("output", "io") VARIANT("output", "lo"),
                 BODY("one", "Const", "", INT("1")) BODY("k", "AddV2", "'i', 'one:output:0'", "")
                     BODY("m", "AddV2", "'x', 'x'", "") BODY("three", "Const", "", INT("3"))
                         BODY("r", "FloorMod", "'i', 'three:output:0'", "") BODY("none", "Const",
                                                                                 "", INT("0"))
                             BODY("c", "Equal", "'r:z:0', 'none:output:0'", "")
                                 BODY("o", "StatelessIf", "'c:z:0', 'x'",
                                      FUNC("then_branch", "negative") FUNC("else_branch", "none"))
                                     BODY("p", "TensorListPushBack", "'l', 'o:output:0'",
                                          OF("DT_VARIANT")),
                 RET("xo", "m:z:0") RET("io", "k:z:0") RET("lo", "p:output_handle:0"));
#define LOOP                                                                           \
    NODE("e", "Const", "", INTS("0", ""))                                              \
    NODE("most", "Const", "", INT("-1"))                                               \
    NODE("l", "EmptyTensorList", "'e', 'most'", OF("DT_VARIANT"))                      \
    NODE("zero", "Const", "", INT("0"))                                                \
    NODE("w", "While", "'x', 'zero', 'l'", FUNC("cond", "goes") FUNC("body", "again")) \
    NODE("b", "TensorListPopBack", "'w:2', 'e'", OF("DT_VARIANT"))
    sx_buf functions;
    sx_buf_init(&functions, 0);
    sx_buf_printf(&functions, "%s%s", loop, branches);
    const char *text = sx_buf_text(&functions);
    run(LOOP NODE("y", "OptionalGetValue", "'b:1'", FLOAT_OF("dim { size: -1 }")), text,
        "float32[2] -8 16");
    run(LOOP NODE("b2", "TensorListPopBack", "'b', 'e'", OF("DT_VARIANT")) HAS("'b2:1'"), text,
        "float32[] 0");
    run(LOOP NODE("o", "TensorListGetItem", "'b', 'zero', 'e'", OF("DT_VARIANT"))
            NODE("y", "OptionalGetValue", "'o'", FLOAT_OF("dim { size: -1 }")),
        text, "float32[2] -1 2");
    run(LOOP NODE("y", "TensorListLength", "'b'", ""), text, "int32[] 3");
    sx_buf_deinit(&functions);
    /* a list of lists of unequal lengths */
    run(NODE("e", "Const", "", INTS("0", "")) NODE("most", "Const", "", INT("-1"))
            NODE("l", "EmptyTensorList", "'e', 'most'",
                 OF("DT_VARIANT")) NODE("a", "TensorListFromTensor", "'x', 'e'", OF("DT_FLOAT"))
                NODE("p", "TensorListPopBack", "'a', 'e'", OF("DT_FLOAT"))
                    NODE("q", "TensorListPushBack", "'l', 'p'", OF("DT_VARIANT"))
                        NODE("r", "TensorListPushBack", "'q', 'a'", OF("DT_VARIANT"))
                            NODE("zero", "Const", "", INT("0"))
                                NODE("g", "TensorListGetItem", "'r', 'zero', 'e'", OF("DT_VARIANT"))
                                    NODE("y", "TensorListStack", "'g', 'e'", OF("DT_FLOAT")),
        "", "float32[1] 1");
}

static void test_savedmodel_import_variants__are_refused(void **state)
{
    (void)state;
    refuses(NODE("o", "OptionalNone", "", "")
                NODE("y", "OptionalGetValue", "'o'", FLOAT_OF("dim { size: 2 }")),
            "", NULL,
            "UNIMPLEMENTED: unsupported operator: OptionalGetValue (1 node: \"y\": the optional "
            "never holds what fits its types)");
    refuses(SOME("y", "'x'"), "", NULL, "UNIMPLEMENTED: output \"y\" is an optional");
    /* each holds the one before twice */
    sx_buf nodes;
    sx_buf_init(&nodes, 0);
    sx_buf_puts(&nodes, SOME("o0", "'x', 'x'"));
    for (int i = 1; i < 40; i++) {
        sx_buf_printf(&nodes,
                      "node { name: 'o%d' op: 'OptionalFromValue' input: ['o%d', 'o%d'] }\n", i,
                      i - 1, i - 1);
    }
    sx_buf_puts(&nodes, NODE("y", "OptionalHasValue", "'o39'", ""));
    refuses(sx_buf_text(&nodes), "", NULL,
            "UNIMPLEMENTED: unsupported operator: OptionalFromValue (1 node: \"o9\": a variant of "
            "more than 1024 tensors)");
    sx_buf_reset(&nodes);
    sx_buf_puts(&nodes, SOME("o0", "'x'"));
    for (int i = 1; i < 40; i++) {
        sx_buf_printf(&nodes, "node { name: 'o%d' op: 'OptionalFromValue' input: ['o%d'] }\n", i,
                      i - 1);
    }
    sx_buf_puts(&nodes, NODE("y", "OptionalHasValue", "'o39'", ""));
    refuses(sx_buf_text(&nodes), "", NULL,
            "UNIMPLEMENTED: unsupported operator: OptionalFromValue (1 node: \"o31\": variants "
            "that nest deeper than 64)");
    sx_buf_deinit(&nodes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_variants__optionals),
    cmocka_unit_test(test_savedmodel_import_variants__of_branches),
    cmocka_unit_test(test_savedmodel_import_variants__in_lists),
    cmocka_unit_test(test_savedmodel_import_variants__are_refused),
};
SX_TEST_MAIN(tests)
