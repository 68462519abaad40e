/* Control flow of TensorFlow 1 as functions: cond, while_loop, one within the other; what is
 * incomplete. What tf.compat.v1 writes itself: tests/interop/test_import.py. */
#include "savedmodel/function_model.h"

#include "savedmodel/import_v1_control.h"

#define FRAME(name)             ATTR("frame_name", "s: '" name "'")
#define FIXED                   ATTR("is_constant", "b: true")
#define INT_AT(name, value, at) NODE(name, "Const", "'^" at "'", INT(value))

/* A loop of name `f` over i from 0 and x: while i < LIMIT: i += 1, x = BODY. p is the prefix. */
#define LOOP(p, start, x, limit_nodes, limit, body_nodes, body)                                \
    NODE(p "ei", "Enter", "'" start "'", FRAME(p))                                             \
    NODE(p "ex", "Enter", "'" x "'", FRAME(p))                                                 \
    NODE(p "mi", "Merge", "'" p "ei', '" p "ni'", "")                                          \
    NODE(p "mx", "Merge", "'" p "ex', '" p "nx'", "")                                          \
    limit_nodes NODE(p "less", "Less", "'" p "mi', '" limit "'", "")                           \
        NODE(p "go", "LoopCond", "'" p "less'", "")                                            \
            NODE(p "si", "Switch", "'" p "mi', '" p "go'", "")                                 \
                NODE(p "sx", "Switch", "'" p "mx', '" p "go'", "")                             \
                    NODE(p "i", "Identity", "'" p "si:1'", "")                                 \
                        NODE(p "x", "Identity", "'" p "sx:1'", "") INT_AT(p "one", "1", p "i") \
                            NODE(p "add", "AddV2", "'" p "i', '" p "one'", "") body_nodes      \
                            NODE(p "ni", "NextIteration", "'" p "add'", "")                    \
                                NODE(p "nx", "NextIteration", "'" body "'", "")                \
                                    NODE(p "xi", "Exit", "'" p "si'", "")                      \
                                        NODE(p "xx", "Exit", "'" p "sx'", "")

#define ZERO NODE("zero", "Const", "", INT("0"))

static void run(const char *nodes, const char *of_one, const char *of_two)
{
    sx_library *library = import(ANY, nodes, "");
    for (size_t d = 0; d < 2; d++) {
        check(library, devices[d], sx_type_of(SX_F32, 1), of_one);
        check(library, devices[d], sx_type_of(SX_F32, 2), of_two);
    }
    sx_library_destroy(library);
}

static void test_savedmodel_import_v1_control__loops(void **state)
{
    (void)state;
    run(ZERO LOOP("f/", "zero", "x", INT_AT("f/five", "5", "f/mi"), "f/five",
                  NODE("f/twice", "AddV2", "'f/x', 'f/x'", ""), "f/twice")
            NODE("y", "Identity", "'f/xx'", ""),
        "float32[1] 32", "float32[2] 32 -64");
    /* the limit and a factor come from outside */
    run(ZERO NODE("n", "Size", "'x'", "") NODE("three", "Const", "", FLOAT("3"))
            NODE("f/en", "Enter", "'n'", FRAME("f/") FIXED)
                NODE("f/e3", "Enter", "'three'", FRAME("f/") FIXED)
                    LOOP("f/", "zero", "x", "", "f/en", NODE("f/by", "Mul", "'f/x', 'f/e3'", ""),
                         "f/by") NODE("y", "Neg", "'f/xx'", ""),
        "float32[1] -3", "float32[2] -9 18");
}

static void test_savedmodel_import_v1_control__loops_in_loops(void **state)
{
    (void)state;
    /* i = 0, 1, 2: x += 1 repeated i times */
    run(ZERO LOOP("f/", "zero", "x", INT_AT("f/three", "3", "f/mi"), "f/three",
                  INT_AT("f/zero", "0", "f/i") NODE("g/en", "Enter", "'f/i'", FRAME("g/") FIXED)
                      NODE("g/1", "Const", "'^g/i'", FLOAT("1"))
                          LOOP("g/", "f/zero", "f/x", "", "g/en",
                               NODE("g/more", "AddV2", "'g/x', 'g/1'", ""), "g/more"),
                  "g/xx") NODE("y", "Identity", "'f/xx'", ""),
        "float32[1] 4", "float32[2] 4 1");
}

/* y = p ? THEN : OTHER, both over Switches of x. */
#define COND(p, predicate, x, nodes, then, other)                 \
    NODE(p "p", "Switch", "'" predicate "', '" predicate "'", "") \
    NODE(p "t", "Identity", "'" p "p:1'", "")                     \
    NODE(p "f", "Identity", "'" p "p'", "")                       \
    NODE(p "id", "Identity", "'" predicate "'", "")               \
    NODE(p "x", "Switch", "'" x "', '" p "id'", "")               \
    nodes NODE(p "y", "Merge", "'" other "', '" then "'", "")
#define POSITIVE                          \
    NODE("axis", "Const", "", INT("0"))   \
    NODE("sum", "Sum", "'x', 'axis'", "") \
    NODE("0", "Const", "", FLOAT("0")) NODE("positive", "Greater", "'sum', '0'", "")

static void test_savedmodel_import_v1_control__branches(void **state)
{
    (void)state;
    run(POSITIVE COND("c/", "positive", "x",
                      NODE("c/neg", "Neg", "'c/x:1'", "") NODE("c/sq", "Square", "'c/x'", ""),
                      "c/neg", "c/sq") NODE("y", "Identity", "'c/y'", ""),
        "float32[1] -1", "float32[2] 1 4");
    /* a constant, known to belong to its side by a control input, and x itself */
    run(POSITIVE COND("c/", "positive", "x",
                      NODE("c/shape", "Const", "'^c/t'", INTS("1", "2"))
                          NODE("c/7", "Const", "'^c/t'", FLOAT("7"))
                              NODE("c/fill", "Fill", "'c/shape', 'c/7'", ""),
                      "c/fill", "c/x") NODE("y", "Identity", "'c/y'", ""),
        "float32[2] 7 7", "float32[2] 1 -2");
    /* one within the other: positive ? (size > 1 ? x : -x) : square */
    run(POSITIVE NODE("n", "Size", "'x'", "") NODE("1", "Const", "", INT("1"))
            NODE("many", "Greater", "'n', '1'", "")
                COND("c/", "positive", "x",
                     NODE("c/many", "Switch", "'many', 'positive'", "")
                         COND("d/", "c/many:1", "c/x:1", NODE("d/neg", "Neg", "'d/x'", ""), "d/x:1",
                              "d/neg") NODE("c/sq", "Square", "'c/x'", ""),
                     "d/y", "c/sq") NODE("y", "Identity", "'c/y'", ""),
        "float32[1] -1", "float32[2] 1 4");
}

/* A branch in each iteration: i < 1 ? -x : x + x */
static void test_savedmodel_import_v1_control__branches_in_loops(void **state)
{
    (void)state;
    run(ZERO LOOP("f/", "zero", "x", INT_AT("f/three", "3", "f/mi"), "f/three",
                  NODE("f/first", "Less", "'f/i', 'f/one'", "")
                      COND("c/", "f/first", "f/x",
                           NODE("c/neg", "Neg", "'c/x:1'", "")
                               NODE("c/add", "AddV2", "'c/x', 'c/x'", ""),
                           "c/neg", "c/add"),
                  "c/y") NODE("y", "Identity", "'f/xx'", ""),
        "float32[1] -4", "float32[2] -4 8");
}

static void test_savedmodel_import_v1_control__incomplete(void **state)
{
    (void)state;
    refuses(ZERO NODE("e", "Enter", "'x'", FRAME("f")) NODE("m", "Merge", "'e', 'e'", "")
                NODE("y", "Exit", "'m'", ""),
            "", NULL,
            "UNIMPLEMENTED: unsupported operators: Enter (1 node: \"e\"), Merge (1 node: "
            "\"m\"), Exit (1 node: \"y\")");
    refuses(NODE("y", "Merge", "'x', 'x'", ""), "", NULL,
            "UNIMPLEMENTED: unsupported operator: Merge (1 node: \"y\")");
    refuses(NODE("m", "Merge", "'y', 'x'", "") NODE("y", "Neg", "'m'", ""), "", NULL,
            "DATA_LOSS: node \"m\" depends on itself");
}

/* Merges whose sides overlap: each would have all the others' nodes. */
static void test_savedmodel_import_v1_control__limits(void **state)
{
    (void)state;
    enum { N = 3000 };
    static Tensorflow__NodeDef nodes[N], *list[N];
    static char names[N][16], *inputs[N][2];
    sx_arena arena;
    sx_map functions;
    sx_v1_functions made = {.functions = &functions};
    Tensorflow__NodeDef **out = NULL;
    size_t n = 0;
    sx_arena_init(&arena, 0);
    sx_map_init(&functions);
    for (int i = 0; i < N; i++) {
        tensorflow__node_def__init(&nodes[i]);
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        nodes[i].name = names[i];
        nodes[i].op = i % 3 == 0 ? "Merge" : i % 3 == 1 ? "Switch" : "AddV2";
        inputs[i][0] = names[i > 0 ? i - 1 : 0];
        inputs[i][1] = names[i > 2 ? i - 3 : 0];
        nodes[i].input = inputs[i];
        nodes[i].n_input = i > 0 ? 2 : 0;
        list[i] = &nodes[i];
    }
    assert_error(sx_import_v1_control(list, N, 100, &arena, &made, &out, &n), SX_RESOURCE_EXHAUSTED,
                 "turning control flow into functions makes too many nodes");
    sx_map_deinit(&functions);
    sx_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_v1_control__loops),
    cmocka_unit_test(test_savedmodel_import_v1_control__loops_in_loops),
    cmocka_unit_test(test_savedmodel_import_v1_control__branches),
    cmocka_unit_test(test_savedmodel_import_v1_control__branches_in_loops),
    cmocka_unit_test(test_savedmodel_import_v1_control__incomplete),
    cmocka_unit_test(test_savedmodel_import_v1_control__limits),
};
SX_TEST_MAIN(tests)
