/* Importing nodes whose gradient is a function of the model (tf.custom_gradient): what gradients
 * are then, and what they say where the file contradicts itself. Running the model needs none. */
#include "harness.h"

#include <math.h>

#include "function_model.h"

#include "proto/saved_object_graph.pb-c.h"
#include "torture.h"

#define CUSTOM ATTR("_gradient_op_type", "s: 'G'")
#define TYPES  ATTR("T", "list { type: [DT_FLOAT, DT_FLOAT] }")
/* forward(x) = x x, with the gradient dy sin(x) of x */
#define FORWARD                                                           \
    FUNCTION("forward", IN("x") OUT("y"),                                 \
             BODY("m", "Mul", "'x', 'x'", "") BODY("s", "Sin", "'x'", "") \
                 BODY("i", "IdentityN", "'m:z:0', 'x'", CUSTOM TYPES),    \
             RET("y", "i:output:0"))
#define GRADIENT_ARGS IN("dm") IN("dx") IN("s") OUT("g")
#define GRADIENT \
    FUNCTION("gradient", GRADIENT_ARGS, BODY("p", "Mul", "'dm', 's'", ""), RET("g", "p:z:0"))
#define REGISTERED "registered_gradients { gradient_func: 'gradient' registered_op_type: 'G' }"
#define SPEC       "values { tensor_spec_value { dtype: DT_FLOAT } }"
#define NONE       "values { none_value { } }"
#define CAPTURES(ids, results)                                                                 \
    "concrete_functions { key: 'gradient' value { bound_inputs: [" ids "] output_signature { " \
    "list_value { " results " } } } }"
#define CAPTURED(name, function) \
    "nodes { captured_tensor { name: '" name "' concrete_function: '" function "' } }"
#define OBJECTS "nodes { }" CAPTURED("s:0", "forward") CAPTURES("1", NONE SPEC)

static const char nodes[] =
    NODE("c", "PartitionedCall", "'x'", FUNC("f", "forward")) NODE("y", "Identity", "'c'", "");

static sx_status open_model(const char *functions, const char *registered, const char *objects,
                            sx_saved_model **out)
{
    sx_buf packed, rest;
    sx_buf_init(&packed, 0);
    sx_buf_init(&rest, 0);
    pack_text(&tensorflow__saved_object_graph__descriptor, objects, &packed);
    sx_buf_printf(&rest, "%s } } object_graph_def: '", registered);
    for (size_t i = 0; i < packed.size; i++) {
        sx_buf_printf(&rest, "\\%03o", (unsigned)(uint8_t)packed.data[i]);
    }
    sx_buf_puts(&rest, "' ");
    sx_status status = parse_model_with(DIM("3"), nodes, functions, sx_buf_text(&rest), out);
    sx_buf_deinit(&packed);
    sx_buf_deinit(&rest);
    return status;
}

static const float xs[3] = {0.5f, -1.25f, 2}, dys[3] = {1, 2, -3};

/* The model runs; dx[3], if not NULL, gets the first gradient (order 1), or that of the first
 * gradient with respect to x (2), all the gradients that come in being dys. */
static sx_status gradient_of(const char *functions, const char *registered, const char *objects,
                             int order, float *dx)
{
    sx_saved_model *model = NULL;
    sx_library *library = NULL, *both = NULL;
    sx_status refused[1];
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_arena arena;
    sx_tensor y[2];
    sx_buf all;
    char *text;
    assert_ok(open_model(functions, registered, objects, &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    sx_saved_model_close(model);
    check(library, "cpu", sx_type_of(SX_F32, 3), "float32[3] 1 4 9");
    assert_ok(sx_library_print(library, &text));
    sx_buf_init(&all, 0);
    sx_buf_puts(&all, text);
    sx_buf_puts(
        &all, order == 1 ? "function \"g\"\ninput %1 float32[3] \"x\"\ninput %2 float32[3] \"dy\"\n"
                           "%3 = call(%1, %2) {function=\"f\", gradient=1} float32[3] \"g\"\n"
                           "output \"dx\" %3\nend\n"
                         : "function \"g\"\ninput %1 float32[3] \"x\"\ninput %2 float32[3] \"dy\"\n"
                           "%3, %4 = call(%1, %2, %2) {function=\"f\", gradient=2} float32[3], "
                           "float32[3] \"g\"\noutput \"dx\" %3\nend\n");
    assert_ok(sx_library_parse(sx_buf_text(&all), all.size, &both));
    sx_text_free(text);
    sx_buf_deinit(&all);
    sx_arena_init(&arena, 0);
    assert_ok(sx_platform_open("host", NULL, &platform));
    assert_ok(
        sx_runner_create(&(sx_runner_options){.library = both, .platform = platform}, &runner));
    const sx_tensor in[] = {{sx_type_of(SX_F32, 3), (void *)xs},
                            {sx_type_of(SX_F32, 3), (void *)dys}};
    sx_status status = sx_runner_run(runner, "g", in, 2, y, 1, &arena, NULL);
    if (status == SX_OK && dx != NULL) {
        memcpy(dx, y[0].data, 3 * sizeof(*dx));
    }
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_arena_deinit(&arena);
    sx_library_destroy(library);
    sx_library_destroy(both);
    return status;
}

static void test_savedmodel_import_custom_gradients__are_those_of_the_function(void **state)
{
    (void)state;
    float dx[3];
    assert_ok(gradient_of(FORWARD GRADIENT, REGISTERED, OBJECTS, 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * sinf(xs[k]), 1e-6f);
    }
    /* d/dx of dy sin(x), by dys again */
    assert_ok(gradient_of(FORWARD GRADIENT, REGISTERED, OBJECTS, 2, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * dys[k] * cosf(xs[k]), 1e-5f);
    }
    /* None for all: nothing passes */
    assert_ok(gradient_of(FORWARD FUNCTION("gradient", IN("dm") IN("dx"), "", ""), REGISTERED,
                          CAPTURES("", NONE NONE), 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], 0, 0);
    }
    /* an argument of the function */
    assert_ok(gradient_of(FORWARD GRADIENT, REGISTERED,
                          "nodes { }" CAPTURED("x:0", "forward") CAPTURES("1", NONE SPEC), 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * xs[k], 1e-6f);
    }
}

static void test_savedmodel_import_custom_gradients__of_silu_are_known(void **state)
{
    (void)state;
#define SILU(order)                                                                       \
    FUNCTION("forward", IN("x") OUT("y"),                                                 \
             BODY("b", "Const", "", FLOAT("2")) BODY("t", "Mul", "'b:output:0', 'x'", "") \
                 BODY("s", "Sigmoid", "'t:z:0'", "") BODY("m", "Mul", order, "")          \
                     BODY("i", "IdentityN", "'m:z:0', 'x', 'b:output:0'", CUSTOM TYPES)   \
                         BODY("h", "Mul", "'x', 'x'", "") BODY("z", "Sub",                \
                                                               "'i:output:0', "           \
                                                               "'i:output:0'",            \
                                                               "")                        \
                             BODY("r", "AddV2", "'h:z:0', 'z:z:0'", "")                   \
                                 BODY("q", "AddV2", "'r:z:0', 'i:output:0'", "")          \
                                     BODY("o", "Sub", "'q:z:0', 'm:z:0'", ""),            \
             RET("y", "o:z:0"))
    /* x x + silu(x) - x sigmoid(2x): the derivatives of the last two are the same */
    float dx[3];
    assert_ok(gradient_of(SILU("'x', 's:y:0'"), "", "", 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * 2 * xs[k], 1e-5f);
    }
    assert_error(gradient_of(SILU("'t:z:0', 's:y:0'"), "", "", 1, NULL), SX_UNIMPLEMENTED,
                 "was not saved");
}

static void test_savedmodel_import_custom_gradients__of_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *functions, *registered, *objects, *error;
    } rows[] = {
        {FORWARD GRADIENT, "", OBJECTS,
         "the gradient of IdentityN \"i\" of function \"forward\", of type \"G\", was not saved; "
         "save the model with tf.saved_model.SaveOptions(experimental_custom_gradients=True)"},
        {FORWARD, REGISTERED, OBJECTS,
         "is not known: its function \"gradient\" is not in the model"},
        {FORWARD GRADIENT, REGISTERED, "", "its function \"gradient\" is not in the model"},
        {FORWARD GRADIENT, REGISTERED, CAPTURES("7", NONE SPEC),
         "reads object 7, which the model does not have"},
        {FORWARD GRADIENT, REGISTERED, CAPTURES("-1", NONE SPEC),
         "reads object -1, which the model does not have"},
        {FORWARD GRADIENT, REGISTERED, "nodes { }" CAPTURES("0", NONE SPEC),
         "reads object 0, which the function that the node is in does not"},
        {FORWARD GRADIENT, REGISTERED,
         "nodes { constant { operation: 'c' } }" CAPTURES("0", NONE SPEC), "Const has no value"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:0", "other") CAPTURES("0", NONE SPEC),
         "reads \"s:0\" of function \"other\", which is no tensor of the function"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("t:0", "forward") CAPTURES("0", NONE SPEC),
         "reads \"t:0\" of function \"forward\", which is no tensor of the function"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:9", "forward") CAPTURES("0", NONE SPEC),
         "\"s:9\": Sin \"s\" has 1 output"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("::", "forward") CAPTURES("0", NONE SPEC),
         "reads \"::\" of function \"forward\""},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:0", "forward") CAPTURES("0, 0", NONE SPEC),
         "takes 3 arguments, 2 of which it captures"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:0", "forward") CAPTURES("0, 0, 0, 0", NONE SPEC),
         "takes 3 arguments, 4 of which it captures"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:0", "forward") CAPTURES("0", SPEC),
         "gives 1 gradients by its signature, but the node has 2 inputs"},
        {FORWARD GRADIENT, REGISTERED, CAPTURED("s:0", "forward") CAPTURES("0", SPEC SPEC),
         "gives 1 tensors, but 2 by its signature"},
        {FORWARD GRADIENT, REGISTERED,
         "nodes { captured_tensor { name: 's:0' concrete_function: 'forward' } }"
         "concrete_functions { key: 'gradient' value { bound_inputs: [0] } }",
         "gives 0 gradients by its signature, but the node has 2 inputs"},
        {FORWARD FUNCTION("gradient", GRADIENT_ARGS, BODY("p", "NoSuchOp", "'dm', 's'", ""),
                          RET("g", "p:z:0")),
         REGISTERED, OBJECTS, "needs NoSuchOp \"p\", which cannot be imported"},
        {FORWARD FUNCTION("gradient", GRADIENT_ARGS, BODY("p", "Mul", "'dm', 'none'", ""),
                          RET("g", "p:z:0")),
         REGISTERED, OBJECTS, "\"none\""},
        {FORWARD FUNCTION("gradient", GRADIENT_ARGS,
                          BODY("p", "Cast", "'dm'",
                               ATTR("SrcT", "type: DT_FLOAT") ATTR("DstT", "type: DT_INT32")),
                          RET("g", "p:y:0")),
         REGISTERED, OBJECTS, "gives no float32 as the gradient of input 1"},
        {FORWARD FUNCTION("gradient", GRADIENT_ARGS, BODY("p", "gradient", "'dm', 'dx', 's'", ""),
                          RET("g", "p:g:0")),
         REGISTERED, OBJECTS, "function \"gradient\" calls itself"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(gradient_of(rows[i].functions, rows[i].registered, rows[i].objects, 1, NULL),
                     SX_UNIMPLEMENTED, rows[i].error);
    }
    /* of a shape that is not x's: known when the gradient is made */
    assert_error(
        gradient_of(FORWARD FUNCTION("gradient", GRADIENT_ARGS, BODY("p", "Const", "", FLOAT("1")),
                                     RET("g", "p:output:0")),
                    REGISTERED, OBJECTS, 1, NULL),
        SX_INVALID_ARGUMENT, "region gradient gives float32[] as gradient 0, expected float32[3]");
}

/* A gradient function with a node of its own type: a gradient of the first order only. */
static void test_savedmodel_import_custom_gradients__of_themselves(void **state)
{
    (void)state;
    static const char functions[] = FORWARD FUNCTION(
        "gradient", GRADIENT_ARGS,
        BODY("p", "Mul", "'dm', 's'", "") BODY("i", "IdentityN", "'p:z:0', 's'", CUSTOM TYPES),
        RET("g", "i:output:0"));
    float dx[3];
    assert_ok(gradient_of(functions, REGISTERED, OBJECTS, 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * sinf(xs[k]), 1e-6f);
    }
    assert_error(gradient_of(functions, REGISTERED, OBJECTS, 2, NULL), SX_UNIMPLEMENTED,
                 "has a node whose gradient is itself");
}

/* What cannot be imported at all. */
static void test_savedmodel_import_custom_gradients__of_broken_files(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    assert_ok(parse_model_with(DIM("3"), nodes, FORWARD GRADIENT,
                               REGISTERED " } } object_graph_def: '\\377\\377' ", &model));
    assert_error(sx_import_library(model, NULL, &library, refused), SX_DATA_LOSS,
                 "the object graph");
    sx_saved_model_close(model);
    /* the gradient reads what depends on the node */
    assert_ok(open_model(FORWARD GRADIENT, REGISTERED,
                         CAPTURED("i:0", "forward") CAPTURES("0", NONE SPEC), &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_error(refused[0], SX_DATA_LOSS, "node \"i\" depends on itself");
    sx_library_destroy(library);
    sx_saved_model_close(model);
}

/* forward(x) calls inner(x) = x x, whose gradient reads a tensor of forward. */
static void test_savedmodel_import_custom_gradients__read_outer_functions(void **state)
{
    (void)state;
#define INNER                                                          \
    FUNCTION("inner", IN("v") OUT("w"),                                \
             BODY("m", "Mul", "'v', 'v'", "")                          \
                 BODY("i", "IdentityN", "'m:z:0', 'v'", CUSTOM TYPES), \
             RET("w", "i:output:0"))
#define OUTER(name)                                                                               \
    FUNCTION(name, IN("x") OUT("y"),                                                              \
             BODY("c", "PartitionedCall", "'x'", FUNC("f", "inner")) BODY("s", "Sin", "'x'", ""), \
             RET("y", "c:output:0"))
    float dx[3];
    assert_ok(gradient_of(OUTER("forward") INNER GRADIENT, REGISTERED, OBJECTS, 1, dx));
    for (int k = 0; k < 3; k++) {
        assert_float_equal(dx[k], dys[k] * sinf(xs[k]), 1e-6f);
    }
    /* of a function that does not call it */
    assert_error(gradient_of(OUTER("forward") INNER GRADIENT OUTER("other"), REGISTERED,
                             CAPTURED("s:0", "other") CAPTURES("0", NONE SPEC), 1, NULL),
                 SX_UNIMPLEMENTED, "reads \"s:0\" of function \"other\", which is no tensor");
}

/* Want of memory is no reason to refuse a gradient. */
static sx_status import_again(void *model)
{
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    char *text = NULL;
    sx_status status = sx_import_library(model, NULL, &library, refused);
    status = status != SX_OK ? status : refused[0];
    status = status != SX_OK ? status : sx_library_print(library, &text);
    if (status == SX_OK && strstr(text, "custom_gradient(") == NULL) {
        status = sx_error(SX_INTERNAL, "the gradient was lost:\n%s", text);
    }
    sx_text_free(text);
    sx_library_destroy(library);
    return status;
}

static void test_savedmodel_import_custom_gradients__torture(void **state)
{
    (void)state;
    static const char *const functions[] = {FORWARD GRADIENT, OUTER("forward") INNER GRADIENT};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        sx_saved_model *model = NULL;
        assert_ok(open_model(functions[i], REGISTERED, OBJECTS, &model));
        /* the message of a signature that is not there may be cut short */
        assert_true(sx_torture_some(import_again, model) > 20);
        sx_saved_model_close(model);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_custom_gradients__are_those_of_the_function),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__of_silu_are_known),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__of_contradictions),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__of_themselves),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__of_broken_files),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__read_outer_functions),
    cmocka_unit_test(test_savedmodel_import_custom_gradients__torture),
};

SX_TEST_MAIN(tests)
