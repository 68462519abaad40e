/* Lists of tensors of imported functions: TensorList and TensorArrayV3, in and out of loops and
 * branches. */
#include "savedmodel/function_model.h"

#define VARIANT(kind, name) ARG(kind, name, "DT_VARIANT")
#define I32(kind, name)     ARG(kind, name, "DT_INT32")
#define ELEMENT             ATTR("element_dtype", "type: DT_FLOAT")
#define SHAPE(list)         NODE("shape", "Const", "", list)
#define FREE                SHAPE(INT("-1"))

/* list[i] = x * (i + 1), for i below n; the shape of the list's tensors is that of x */
#define LOOP_ARGS I32("input", "i") I32("input", "n") IN("x") VARIANT("input", "l")
static const char loop[] = FUNCTION("goes", LOOP_ARGS ARG("output", "go", "DT_BOOL"),
                                    BODY("less", "Less", "'i', 'n'", ""), RET("go", "less:z:0"))
    FUNCTION("again",
             LOOP_ARGS I32("output", "io") I32("output", "no") OUT("xo") VARIANT("output", "lo"),
             BODY("one", "Const", "", INT("1")) BODY("k", "AddV2", "'i', 'one:output:0'", "")
                 BODY("f", "Cast", "'k:z:0'", ATTR("DstT", "type: DT_FLOAT"))
                     BODY("m", "Mul", "'x', 'f:y:0'", "")
                         BODY("set", "TensorListSetItem", "'l', 'i', 'm:z:0'", ELEMENT),
             RET("io", "k:z:0") RET("no", "n") RET("xo", "x") RET("lo", "set:output_handle:0"));
#define LOOP                                                                                \
    NODE("zero", "Const", "", INT("0"))                                                     \
    NODE("w", "While", "'zero', 'n', 'x', 'l'", FUNC("cond", "goes") FUNC("body", "again")) \
    NODE("y", "TensorListStack", "'w:3', 'shape'", ELEMENT)

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

static void test_savedmodel_import_lists__in_loops(void **state)
{
    (void)state;
    /* of a known number of tensors, and of a computed one */
    run(FREE NODE("n", "Const", "", INT("3"))
            NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) LOOP,
        loop, "float32[3,2] 1 -2 2 -4 3 -6");
    sx_library *library = import(DIM("2"),
                                 FREE NODE("n", "Size", "'x'", "")
                                     NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) LOOP,
                                 loop);
    check(library, "cpu", sx_type_of(SX_F32, 2), "float32[2,2] 1 -2 2 -4");
    sx_library_destroy(library);
    /* whose shape is known, partly known */
    library = import(DIM("2"),
                     SHAPE(INTS("1", "2")) NODE("n", "Const", "", INT("2"))
                         NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) LOOP,
                     loop);
    check(library, "cpu", sx_type_of(SX_F32, 2), "float32[2,2] 1 -2 2 -4");
    sx_library_destroy(library);
    run(SHAPE(INTS("1", "-1")) NODE("n", "Const", "", INT("2"))
            NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) LOOP,
        loop, "float32[2,2] 1 -2 2 -4");
    /* from a tensor */
    run(FREE NODE("n", "Const", "", INT("1")) NODE("all", "Pack", "'x', 'x'", "")
            NODE("l", "TensorListFromTensor", "'all', 'shape'", ELEMENT) LOOP,
        loop, "float32[2,2] 1 -2 1 -2");
}

/* The items that a loop reads, and another that extends the list. */
static void test_savedmodel_import_lists__items(void **state)
{
    (void)state;
#define LIST                                    \
    FREE NODE("a", "Pack", "'x', 'x', 'c'", "") \
        NODE("l", "TensorListFromTensor", "'a', 'shape'", ELEMENT)
#define NEGATIVE NODE("c", "Neg", "'x'", "")
    run(NEGATIVE LIST NODE("i", "Const", "", INT("2"))
            NODE("y", "TensorListGetItem", "'l', 'i', 'shape'", ELEMENT),
        "", "float32[2] -1 2");
    run(NEGATIVE LIST NODE("y", "TensorListLength", "'l'", ""), "", "int32[] 3");
    run(NEGATIVE LIST NODE("y", "TensorListElementShape", "'l'",
                           ATTR("shape_type", "type: DT_INT64")),
        "", "int64[1] 2");
    run(NEGATIVE LIST NODE("i", "Const", "", INTS("2", "2, 0"))
            NODE("y", "TensorListGather", "'l', 'i', 'shape'", ELEMENT),
        "", "float32[2,2] -1 2 1 -2");
    run(NEGATIVE LIST NODE("p", "TensorListPopBack", "'l', 'shape'", ELEMENT)
            NODE("q", "TensorListPushBack", "'p', 'p:1'", ELEMENT)
                NODE("r", "TensorListPushBack", "'q', 'x'", ELEMENT)
                    NODE("y", "TensorListStack", "'r', 'shape'", ELEMENT),
        "", "float32[4,2] 1 -2 1 -2 -1 2 1 -2");
    run(NEGATIVE LIST NODE("four", "Const", "", INT("4"))
            NODE("s", "TensorListResize", "'l', 'four'", "")
                NODE("y", "TensorListStack", "'s', 'shape'", ELEMENT),
        "", "float32[4,2] 1 -2 1 -2 -1 2 0 0");
    run(NEGATIVE LIST NODE("none", "Const", "", INTS("0", ""))
            NODE("y", "TensorListConcatV2", "'l', 'shape', 'none'", ELEMENT),
        "", "float32[6] 1 -2 1 -2 -1 2");
    /* an empty list, and one that grows where it is set */
    run(FREE NODE("none", "Const", "", INT("-1")) NODE("l", "EmptyTensorList", "'shape', 'none'",
                                                       ELEMENT)
            NODE("p", "TensorListPushBack", "'l', 'x'", ELEMENT) NODE("i", "Const", "", INT("2"))
                NODE("q", "TensorListSetItem", "'p', 'i', 'x'",
                     ELEMENT ATTR("resize_if_index_out_of_bounds", "b: true"))
                    NODE("y", "TensorListStack", "'q', 'shape'", ELEMENT),
        "", "float32[3,2] 1 -2 0 0 1 -2");
}

/* Known and computed numbers of items that a list has not, on devices and in a loop: the run ends.
 */
static void test_savedmodel_import_lists__outside(void **state)
{
    (void)state;
#define SET(i)                                               \
    NODE("i", "Const", "", INT(i))                           \
    NODE("s", "TensorListSetItem", "'l', 'i', 'x'", ELEMENT) \
    NODE("y", "TensorListStack", "'s', 'shape'", ELEMENT)
    run(NEGATIVE LIST SET("3"), "", "INVALID_ARGUMENT: ");
    run(NEGATIVE LIST SET("-1"), "", "element -1 of a list with 3 elements");
    run(NEGATIVE LIST NODE("i", "Const", "", INT("3"))
            NODE("y", "TensorListGetItem", "'l', 'i', 'shape'", ELEMENT),
        "", "element 3 of a list with 3 elements");
    run(FREE NODE("three", "Const", "", INT("3")) NODE("n", "Const", "", INT("4"))
            NODE("l", "TensorListReserve", "'shape', 'three'", ELEMENT) LOOP,
        loop, "element 3 of a list with 3 elements");
}

/* As many tensors as a batch has examples, of as many elements. */
static void test_savedmodel_import_lists__of_the_batch(void **state)
{
    (void)state;
    run(FREE NODE("n", "Size", "'x'", "") NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT)
            NODE("zero", "Const", "", INT("0"))
                NODE("s", "TensorListSetItem", "'l', 'zero', 'x'", ELEMENT)
                    NODE("y", "TensorListStack", "'s', 'shape'", ELEMENT),
        "", "float32[2,2] 1 -2 0 0");
}

/* A branch that sets an item, and one that returns the list as it is. */
static void test_savedmodel_import_lists__in_branches(void **state)
{
    (void)state;
    static const char functions[] = FUNCTION(
        "set", IN("x") VARIANT("input", "l") VARIANT("output", "lo"),
        BODY("i", "Const", "", INT("1"))
            BODY("s", "TensorListSetItem", "'l', 'i:output:0', 'x'", ELEMENT),
        RET("lo", "s:output_handle:0"))
        FUNCTION("keep", IN("x") VARIANT("input", "l") VARIANT("output", "lo"), "", RET("lo", "l"));
#define BRANCHES(then, other)                                                                     \
    FREE NODE("n", "Const", "", INT("2")) NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) \
        NODE("axis", "Const", "", INT("0")) NODE("s", "Sum", "'x', 'axis'", "")                   \
            NODE("z", "Const", "", FLOAT("0")) NODE("c", "Less", "'s', 'z'", "")                  \
                NODE("if", "StatelessIf", "'c', 'x', 'l'",                                        \
                     FUNC("then_branch", then) FUNC("else_branch", other))                        \
                    NODE("y", "TensorListStack", "'if', 'shape'", ELEMENT)
    run(BRANCHES("set", "keep"), functions, "float32[2,2] 0 0 1 -2");
    run(BRANCHES("keep", "set"), functions, "float32[2,2] 0 0 0 0");
}

/* Lists that no branch or trip sets have one length for all of them, or it is not known. */
static void test_savedmodel_import_lists__not_set_and_of_another_length(void **state)
{
    (void)state;
#define RESERVES(name, n)                                                                   \
    FUNCTION(name, IN("x") VARIANT("input", "l") VARIANT("output", "lo"),                   \
             BODY("shape", "Const", "", INT("-1")) BODY("n", "Const", "", INT(n))           \
                 BODY("r", "TensorListReserve", "'shape:output:0', 'n:output:0'", ELEMENT), \
             RET("lo", "r:handle:0"))
    static const char functions[] = RESERVES("three", "3") RESERVES("also", "3") RESERVES("five",
                                                                                          "5")
        FUNCTION("keep", IN("x") VARIANT("input", "l") VARIANT("output", "lo"), "", RET("lo", "l"))
            FUNCTION("resize", IN("x") VARIANT("input", "l") VARIANT("output", "lo"),
                     BODY("n", "Const", "", INT("4"))
                         BODY("r", "TensorListResize", "'l', 'n:output:0'", ""),
                     RET("lo", "r:output_handle:0"))
                FUNCTION("goes", IN("x") VARIANT("input", "l") ARG("output", "go", "DT_BOOL"),
                         BODY("axis", "Const", "", INT("0")) BODY("z", "Const", "", FLOAT("0"))
                             BODY("s", "Sum", "'x', 'axis:output:0'", "")
                                 BODY("less", "Less", "'s:output:0', 'z:output:0'", ""),
                         RET("go", "less:z:0"))
                    FUNCTION("again",
                             IN("x") VARIANT("input", "l") OUT("xo") VARIANT("output", "lo"),
                             BODY("a", "Abs", "'x'", "") BODY("n", "Const", "", INT("4"))
                                 BODY("r", "TensorListResize", "'l', 'n:output:0'", ""),
                             RET("xo", "a:y:0") RET("lo", "r:output_handle:0"));
#define LIST_OF_2 \
    FREE NODE("n", "Const", "", INT("2")) NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT)
#define LENGTH_OF(then, other)                                                        \
    LIST_OF_2 NODE("axis", "Const", "", INT("0")) NODE("s", "Sum", "'x', 'axis'", "") \
        NODE("z", "Const", "", FLOAT("0")) NODE("c", "Less", "'s', 'z'", "")          \
            NODE("if", "StatelessIf", "'c', 'x', 'l'",                                \
                 FUNC("then_branch", then) FUNC("else_branch", other))                \
                NODE("y", "TensorListLength", "'if'", "")
    run(LENGTH_OF("three", "also"), functions, "int32[] 3");
    run(LENGTH_OF("keep", "keep"), functions, "int32[] 2");
    refuses(LENGTH_OF("three", "five"), functions, NULL,
            "UNIMPLEMENTED: of another length in each branch");
    refuses(LENGTH_OF("resize", "keep"), functions, NULL,
            "UNIMPLEMENTED: of another length in each branch");
    refuses(LIST_OF_2 NODE("w", "While", "'x', 'l'", FUNC("cond", "goes") FUNC("body", "again"))
                NODE("y", "TensorListLength", "'w:1'", ""),
            functions, NULL, "UNIMPLEMENTED: of another length in each trip");
}

/* TensorArrayV3, whose tensors follow its flow. */
static void test_savedmodel_import_lists__arrays(void **state)
{
    (void)state;
#define ARRAY(size, attrs)            \
    NODE("n", "Const", "", INT(size)) \
    NODE("t", "TensorArrayV3", "'n'", ATTR("dtype", "type: DT_FLOAT") attrs)
    run(ARRAY("2", "") NODE("i", "Const", "", INT("1"))
            NODE("w", "TensorArrayWriteV3", "'t', 'i', 'x', 't:1'", "")
                NODE("m", "TensorArraySizeV3", "'t', 'w'", "") NODE("z", "Const", "", INT("0"))
                    NODE("o", "Const", "", INT("1")) NODE("r", "Range", "'z', 'm', 'o'", "")
                        NODE("y", "TensorArrayGatherV3", "'t', 'r', 'w'", ""),
        "", "float32[2,2] 0 0 1 -2");
    run(NODE("a", "Pack", "'x', 'x'", "") ARRAY("2", "") NODE("z", "Const", "", INT("0"))
            NODE("o", "Const", "", INT("1")) NODE("r", "Range", "'z', 'n', 'o'", "")
                NODE("u", "TensorArrayScatterV3", "'t', 'r', 'a', 't:1'", "")
                    NODE("y", "TensorArrayReadV3", "'t', 'o', 'u'", ""),
        "", "float32[2] 1 -2");
#define WRITTEN                                                 \
    NODE("i", "Const", "", INT("1"))                            \
    NODE("w", "TensorArrayWriteV3", "'t', 'i', 'x', 't:1'", "") \
    NODE("y", "TensorArrayConcatV3", "'t', 'w'", "")
    run(ARRAY("0", ATTR("dynamic_size", "b: true") ATTR("identical_element_shapes", "b: true"))
            WRITTEN,
        "", "float32[4] 0 0 1 -2");
    /* of any shapes: what is not set has none */
    run(ARRAY("0", ATTR("dynamic_size", "b: true")) WRITTEN, "", "element 0 was not set");
    run(ARRAY("1", "") NODE("i", "Const", "", INT("0"))
            NODE("w", "TensorArrayWriteV3", "'t', 'i', 'x', 't:1'", "")
                NODE("y", "TensorArrayConcatV3", "'t', 'w'", ""),
        "", "float32[2] 1 -2");
    /* lengths that are not those of the rows */
    run(ARRAY("2", "") NODE("l", "Const", "",
                            "attr { key: 'dtype' value { type: DT_INT64 } } attr { key: 'value' "
                            "value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } "
                            "int64_val: 2 int64_val: 1 } } }")
            NODE("s", "TensorArraySplitV3", "'t', 'x', 'l', 't:1'", "")
                NODE("y", "TensorArrayConcatV3", "'t', 's'", ""),
        "", "INVALID_ARGUMENT: ");
}

/* Of two lists that a loop sets only one is concatenated: the other's tensors have one shape, and
 * can be taken apart on a device. */
static void test_savedmodel_import_lists__concatenated_after_a_loop(void **state)
{
    (void)state;
#define TWO_ARGS I32("input", "i") IN("x") VARIANT("input", "k") VARIANT("input", "l")
    static const char two[] = FUNCTION("goes", TWO_ARGS ARG("output", "go", "DT_BOOL"),
                                       BODY("n", "Const", "", INT("2"))
                                           BODY("less", "Less", "'i', 'n:output:0'", ""),
                                       RET("go", "less:z:0"))
        FUNCTION("again",
                 TWO_ARGS I32("output", "io") OUT("xo") VARIANT("output", "ko")
                     VARIANT("output", "lo"),
                 BODY("one", "Const", "", INT("1")) BODY("t", "AddV2", "'i', 'one:output:0'", "")
                     BODY("set", "TensorListSetItem", "'k', 'i', 'x'", ELEMENT)
                         BODY("put", "TensorListSetItem", "'l', 'i', 'x'", ELEMENT),
                 RET("io", "t:z:0") RET("xo", "x") RET("ko", "set:output_handle:0")
                     RET("lo", "put:output_handle:0"));
#define TWO_LISTS                                                                                  \
    FREE NODE("n", "Const", "", INT("2")) NODE("zero", "Const", "", INT("0"))                      \
        NODE("k", "TensorListReserve", "'shape', 'n'", ELEMENT)                                    \
            NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) NODE(                          \
                "w", "While", "'zero', 'x', 'k', 'l'", FUNC("cond", "goes") FUNC("body", "again")) \
                NODE("none", "Const", "", INTS("0", ""))                                           \
                    NODE("c", "TensorListConcatV2", "'w:2', 'shape', 'none'", ELEMENT)             \
                        NODE("s", "TensorListStack", "'w:3', 'shape'", ELEMENT)
    run(TWO_LISTS NODE("y", "Identity", "'c'", ""), two, "float32[4] 1 -2 1 -2");
    run(TWO_LISTS NODE("y", "Identity", "'s'", ""), two, "float32[2,2] 1 -2 1 -2");
    sx_library *library = import(ANY, TWO_LISTS NODE("y", "Identity", "'s'", ""), two);
    const sx_graph *body = sx_library_find(library, "f")->body;
    int uneven = 0;
    for (int i = 0; i < body->n_nodes; i++) {
        uneven += body->nodes[i].op == &sx_op_ragged_from_variant;
    }
    assert_int_equal(uneven, 0);
    sx_library_destroy(library);
}

static void test_savedmodel_import_lists__are_refused(void **state)
{
    (void)state;
    refuses(
        FREE NODE("n", "Const", "", INT("3"))
            NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT)
                NODE("y", "TensorListStack", "'l', 'shape'", ELEMENT),
        "", NULL,
        "UNIMPLEMENTED: unsupported operator: TensorListStack (1 node: \"y\": no tensor of this "
        "list was set before, and its element_shape does not say their shape)");
    refuses(
        FREE NODE("n", "Const", "", INT("3"))
            NODE("l", "TensorListReserve", "'shape', 'n'", ELEMENT) NODE("y", "Neg", "'l'", ""),
        "", NULL,
        "UNIMPLEMENTED: unsupported operator: Neg (1 node: \"y\": input 0 is a list of tensors)");
    refuses(FREE NODE("n", "Const", "", INT("3"))
                NODE("y", "TensorListReserve", "'shape', 'n'", ELEMENT),
            "", NULL, "UNIMPLEMENTED: output \"y\" is a list of tensors");
    refuses(FREE NODE("y", "TensorListGetItem", "'x', 'shape', 'shape'", ELEMENT), "", NULL,
            "UNIMPLEMENTED: unsupported operator: TensorListGetItem (1 node: \"y\": input 0 is not "
            "a list of tensors)");
}

/* Lists whose tensors' shapes differ: from trip to trip of a loop, known and from the data; summed,
 * as zeros, extended beside tensors that are not set. */
static void test_savedmodel_import_lists__of_shapes(void **state)
{
    (void)state;
#define GROWING_ARGS I32("input", "i") IN("x") VARIANT("input", "l")
    static const char growing[] = FUNCTION("fewer", GROWING_ARGS ARG("output", "go", "DT_BOOL"),
                                           BODY("n", "Const", "", INT("3"))
                                               BODY("less", "Less", "'i', 'n:output:0'", ""),
                                           RET("go", "less:z:0"))
        FUNCTION("grow", GROWING_ARGS I32("output", "io") OUT("xo") VARIANT("output", "lo"),
                 BODY("one", "Const", "", INT("1")) BODY("axis", "Const", "", INT("0"))
                     BODY("k", "AddV2", "'i', 'one:output:0'", "")
                         BODY("push", "TensorListPushBack", "'l', 'x'", ELEMENT)
                             BODY("twice", "ConcatV2", "'x', 'x', 'axis:output:0'", ""),
                 RET("io", "k:z:0") RET("xo", "twice:output:0") RET("lo", "push:output_handle:0"));
#define GROW                                                                       \
    FREE NODE("none", "Const", "", INT("-1"))                                      \
        NODE("l", "EmptyTensorList", "'shape', 'none'", ELEMENT)                   \
            NODE("zero", "Const", "", INT("0")) NODE("one", "Const", "", INT("1")) \
                NODE("w", "While", "'zero', 'x', 'l'", FUNC("cond", "fewer") FUNC("body", "grow"))
#define ITEM(list) NODE("y", "TensorListGetItem", "'" list "', 'one', 'shape'", ELEMENT)
    run(GROW ITEM("w:2"), growing, "float32[4] 1 -2 1 -2");
    run(GROW NODE("s", "AddN", "'w:2', 'w:2'", "") ITEM("s"), growing, "float32[4] 2 -4 2 -4");
    run(GROW NODE("s", "ZerosLike", "'w:2'", "") ITEM("s"), growing, "float32[4] 0 0 0 0");
    run(GROW NODE("p", "TensorListPopBack", "'w:2', 'shape'", ELEMENT)
            NODE("y", "TensorListLength", "'p'", ""),
        growing, "int32[] 2");
    run(GROW NODE("y", "TensorListStack", "'w:2', 'shape'", ELEMENT), growing,
        "element 1 is float32[4]");
    /* a tensor that is not set is zeros beside those that are, and none by itself */
    run(GROW NODE("five", "Const", "", INT("5")) NODE("r", "TensorListResize", "'w:2', 'five'", "")
            NODE("i", "Const", "", INTS("2", "3, 0"))
                NODE("y", "TensorListGather", "'r', 'i', 'shape'", ELEMENT),
        growing, "float32[2,2] 0 0 1 -2");
    run(GROW NODE("five", "Const", "", INT("5")) NODE("r", "TensorListResize", "'w:2', 'five'", "")
            NODE("four", "Const", "", INT("4"))
                NODE("y", "TensorListGetItem", "'r', 'four', 'shape'", ELEMENT),
        growing, "element 0 was not set");
    /* without a loop */
    run(FREE NODE("n", "Const", "", INT("2")) NODE("l", "TensorListReserve", "'shape', 'n'",
                                                   ELEMENT) NODE("zero", "Const", "", INT("0"))
            NODE("one", "Const", "", INT("1")) NODE("twice", "ConcatV2", "'x', 'x', 'zero'", "")
                NODE("a", "TensorListSetItem", "'l', 'zero', 'x'", ELEMENT)
                    NODE("b", "TensorListSetItem", "'a', 'one', 'twice'", ELEMENT) ITEM("b"),
        "", "float32[4] 1 -2 1 -2");
}

/* ---- Case ---- */

static void test_savedmodel_import_lists__case(void **state)
{
    (void)state;
    static const char functions[] =
        FUNCTION("b0", IN("x") OUT("y"), BODY("d", "Neg", "'x'", ""), RET("y", "d:y:0"))
            FUNCTION("b1", IN("x") OUT("y"), BODY("d", "Square", "'x'", ""), RET("y", "d:y:0"))
                FUNCTION("b2", IN("x") OUT("y"),
                         BODY("a", "Const", "", INT("0"))
                             BODY("d", "ConcatV2", "'x', 'x', 'a:output:0'", ""),
                         RET("y", "d:output:0"));
    /* the sum of x: 1 is -1, 2 is -1 + 3 */
    static const char nodes[] = NODE("a", "Const", "", INT("0")) NODE("s", "Sum", "'x', 'a'", "")
        NODE("i", "Cast", "'s'", ATTR("DstT", "type: DT_INT32"))
            NODE("y", "Case", "'i', 'x'",
                 ATTR("branches",
                      "list { func { name: 'b0' } func { name: 'b1' } func { name: 'b2' } }"));
    sx_library *library = import(ANY, nodes, functions);
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 0), "float32[0]");   /* 0: b0 */
        check(library, devices[d], sx_type_of(SX_F32, 1), "float32[1] 1"); /* 1: b1 */
        check(library, devices[d], sx_type_of(SX_F32, 2),
              "float32[4] 1 -2 1 -2"); /* -1: the last */
        check(library, devices[d], sx_type_of(SX_F32, 3), "float32[6] 1 -2 3 1 -2 3"); /* 2: b2 */
    }
    sx_library_destroy(library);
    refuses(
        nodes, functions, &(sx_import_limits){.calls = 2},
        "RESOURCE_EXHAUSTED: , signature \"f\": Case \"y\": branch 1 \"b1\": function calls nest "
        "deeper than 2");
    refuses(NODE("i", "Const", "", INT("0"))
                NODE("y", "Case", "'i', 'x'", ATTR("branches", "list { func { name: 'g' } }")),
            "", NULL, "DATA_LOSS: Case \"y\": branch 0 names no function of the model");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_lists__in_loops),
    cmocka_unit_test(test_savedmodel_import_lists__items),
    cmocka_unit_test(test_savedmodel_import_lists__outside),
    cmocka_unit_test(test_savedmodel_import_lists__of_the_batch),
    cmocka_unit_test(test_savedmodel_import_lists__in_branches),
    cmocka_unit_test(test_savedmodel_import_lists__not_set_and_of_another_length),
    cmocka_unit_test(test_savedmodel_import_lists__arrays),
    cmocka_unit_test(test_savedmodel_import_lists__concatenated_after_a_loop),
    cmocka_unit_test(test_savedmodel_import_lists__of_shapes),
    cmocka_unit_test(test_savedmodel_import_lists__are_refused),
    cmocka_unit_test(test_savedmodel_import_lists__case),
};
SX_TEST_MAIN(tests)
