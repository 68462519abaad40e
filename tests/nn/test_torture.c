/* Every allocation of building a training program fails once, and of what is done with its graph:
 * its text, the passes. A clean status each time, and nothing leaked. */
#define SX_TORTURE_ALL 1000
#include "torture.h"

#include "graph/ir.h"
#include "graph/passes/passes.h"
#include "nn/model_program.h"
#include "nn/params.h"

static sx_spec small(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 2, 3, .activation = SX_RELU);
    x = sx_batch_norm(b, sx_average_pool2d(b, x, 2));
    x = sx_dense(b, sx_flatten(b, x), sx_param_int(p, "units", 3));
    return sx_classifier_spec(b, x, in->labels,
                              .optimizer = sx_rmsprop(.momentum = .9, .centered = true));
}

static sx_status build_and_pass(void *user)
{
    (void)user;
    static const sx_model_def def = {.name = "small", .build = small, .image = {6, 6, 1}};
    typedef sx_status pass_fn(const sx_graph *g, sx_graph **out);
    static pass_fn *const passes[] = {sx_pass_fold_constants, sx_pass_merge_equal,
                                      sx_pass_drop_dead, sx_pass_simplify};
    sx_params *params = NULL;
    sx_graph *g = NULL, *next = NULL;
    char *text = NULL;
    sx_program_request r = {.def = &def, .mode = SX_TRAIN};
    SX_TRY(sx_params_create(&params));
    sx_status status = sx_params_set(params, "units", "4");
    r.params = params;
    status = status != SX_OK ? status : sx_build_program(&r, &g);
    status = status != SX_OK ? status : sx_params_check_used(params);
    sx_params_destroy(params);
    status = status != SX_OK ? status : sx_graph_print(g, &text);
    if (status == SX_OK) {
        status = sx_graph_parse(text, strlen(text), &next);
        sx_graph_destroy(g);
        g = status == SX_OK ? next : NULL;
    }
    sx_text_free(text);
    if (status == SX_OK) {
        status = sx_pass_fix_batch(g, 2, &next);
        sx_graph_destroy(g);
        g = status == SX_OK ? next : NULL;
    }
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]) && status == SX_OK; i++) {
        status = passes[i](g, &next);
        sx_graph_destroy(g);
        g = status == SX_OK ? next : NULL;
    }
    status = status != SX_OK ? status : sx_graph_validate(g);
    sx_graph_destroy(g);
    return status;
}

static void test_nn_torture__programs(void **state)
{
    (void)state;
    assert_in_range(sx_torture(build_and_pass, NULL), 50, 5000);
}

/* The same up to the graph, so that each allocation of it is reached. */
static sx_status build(void *user)
{
    (void)user;
    static const sx_model_def def = {.name = "small", .build = small, .image = {6, 6, 1}};
    sx_graph *g = NULL;
    const sx_program_request r = {.def = &def, .mode = SX_TRAIN};
    sx_status status = sx_build_program(&r, &g);
    sx_graph_destroy(g);
    return status;
}

static void test_nn_torture__builds(void **state)
{
    (void)state;
    assert_in_range(sx_torture(build, NULL), 50, 5000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_torture__builds),
    cmocka_unit_test(test_nn_torture__programs),
};
SX_TEST_MAIN(tests)
