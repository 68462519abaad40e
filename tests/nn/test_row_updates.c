/* A large table of which a batch takes a few rows: plain SGD updates those alone, on any number of
 * shards to the same bits; other optimizers, and small tables, have a gradient of the whole. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/memory.h"
#include "graph/ir.h"
#include "nn/model_program.h"
#include "runtime/session.h"

enum { WORDS = 5000, WIDTH = 256, LENGTH = 4, BATCH = 6 };
static const float rate = 0.5F;

static sx_optimizer optimizer;
static int words = WORDS;

/* The loss of an example is `scale` times the sum of the mean of its words' rows. */
static sx_spec bag(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value table = sx_variable(b, &(sx_variable_spec){.name = "table",
                                                        .type = sx_type_of(SX_F32, words, WIDTH),
                                                        .init = SX_INIT_ZEROS});
    sx_value rows = sx_gather(b, table, sx_feature(b, in, "words"));
    sx_value sum = sx_reduce_sum(b, rows, .axes = SX_AXES(1, 2));
    sum = sx_mul(b, sum, sx_constant_f32(b, 1.0 / LENGTH));
    return (sx_spec){.loss = sx_mul(b, sum, sx_feature(b, in, "scale")), .optimizer = optimizer};
}

static sx_graph *build(sx_optimizer o, int n)
{
    static const sx_model_def def =
        SX_MODEL_DEF(.name = "bag", .build = bag,
                     .inputs = {{.name = "words", SX_I32, {LENGTH}}, {.name = "scale"}});
    sx_graph *g = NULL;
    optimizer = o;
    words = n;
    assert_ok(sx_build_program(&(sx_program_request){.def = &def, .mode = SX_TRAIN}, &g));
    assert_ok(sx_graph_validate(g));
    return g;
}

static bool updates_rows(sx_optimizer o, int n)
{
    sx_graph *g = build(o, n);
    bool found = false;
    for (int i = 0; i < g->n_nodes; i++) {
        found = found || g->nodes[i].op == &sx_op_tensor_scatter;
    }
    sx_graph_destroy(g);
    return found;
}

static void test_nn_row_updates__are_those_of_plain_sgd(void **state)
{
    (void)state;
    assert_true(updates_rows(sx_sgd(.learning_rate = rate), WORDS));
    assert_false(updates_rows(sx_sgd(.learning_rate = rate), 1000)); /* small */
    assert_false(updates_rows(sx_sgd(.momentum = 0.9), WORDS));
    assert_false(updates_rows(sx_adam(.learning_rate = rate), WORDS));
}

/* The table after a step. */
static float *train(const char *device, int shards, int threads, float scale)
{
    /* Twice in an example, in two examples, and outside. */
    static const int32_t ids[BATCH][LENGTH] = {{7, 7, 1, 2},          {7, 3, 4, WORDS - 1},
                                               {-1, WORDS, 0, 0},     {9, 10, 11, 12},
                                               {WORDS - 1, 13, 7, 0}, {14, 15, 16, 17}};
    const float scales[BATCH] = {scale, 1, 1, 1, 1, 1};
    sx_session *session;
    sx_program *program;
    sx_graph *g = build(sx_sgd(.learning_rate = rate), WORDS);
    float *table = sx_alloc((size_t)WORDS * WIDTH, sizeof(*table));
    assert_non_null(table);
    assert_ok(sx_session_create(
        &(sx_session_options){
            .device = device, .seed = 1, .shards = shards, .platform.cpu.threads = threads},
        &session));
    assert_ok(sx_session_add_program(session, g, &program));
    const void *inputs[2] = {ids, scales};
    assert_ok(sx_program_run(program, BATCH, inputs));
    assert_ok(sx_session_read_variable(session, sx_session_find_variable(session, "table"), table));
    for (int row = 0; row < WORDS && isfinite(scale); row++) {
        int count = 0;
        for (int i = 0; i < BATCH * LENGTH; i++) {
            count += ids[i / LENGTH][i % LENGTH] == row;
        }
        for (int k = 0; k < WIDTH; k++) {
            const float want = -rate * (float)count / (BATCH * LENGTH);
            assert_true(fabsf(table[row * WIDTH + k] - want) <= 1e-6F);
        }
    }
    sx_session_destroy(session);
    sx_graph_destroy(g);
    return table;
}

static void test_nn_row_updates__add_up_what_examples_share(void **state)
{
    (void)state;
    sx_free(train("host", 1, 1, 1));
    float *first = train("cpu", 1, 1, 1);
    for (int shards = 2; shards <= 4; shards++) {
        for (int threads = 1; threads <= 2; threads++) {
            float *again = train("cpu", shards, threads, 1);
            assert_memory_equal(first, again, (size_t)WORDS * WIDTH * sizeof(*first));
            sx_free(again);
        }
    }
    sx_free(first);
}

static void test_nn_row_updates__are_withheld_as_a_whole(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 2; shards++) {
        float *table = train("cpu", shards, 2, INFINITY);
        for (int i = 0; i < WORDS * WIDTH; i++) {
            assert_true(table[i] == 0);
        }
        sx_free(table);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_row_updates__are_those_of_plain_sgd),
    cmocka_unit_test(test_nn_row_updates__add_up_what_examples_share),
    cmocka_unit_test(test_nn_row_updates__are_withheld_as_a_whole),
};
SX_TEST_MAIN(tests)
