/* Training within a memory limit: what is computed again changes no bit. */
#include "harness.h"

#include "backends/cpu/memory_map.h"
#include "backends/cpu/plan.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/passes/passes.h"
#include "nn/model_program.h"
#include "nn/params.h"
#include "runtime/session.h"

enum { BATCH = 6, STEPS = 3, SIDE = 16 };

static sx_value block(sx_builder *b, sx_value x)
{
    sx_value y = sx_conv2d(b, x, 16, 3, .padding = SX_SAME, .no_bias = true);
    y = sx_relu(b, sx_batch_norm(b, y));
    y = sx_conv2d(b, y, 16, 3, .padding = SX_SAME, .no_bias = true);
    return sx_relu(b, sx_add(b, sx_batch_norm(b, y), x));
}

/* Batch norms, sums, a pool, dropout: what a residual network and its kernels consist of. */
static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_conv2d(b, in->features, 16, 3, .padding = SX_SAME);
    for (int i = 0; i < 4; i++) {
        x = block(b, x);
    }
    x = sx_flatten(b, sx_max_pool2d(b, x, 2));
    x = sx_dropout(b, sx_tanh(b, sx_dense(b, x, 32)), 0.5);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}

static const sx_model_def residual = {.struct_size = sizeof(residual),
                                      .version = SX_MODEL_VERSION,
                                      .name = "residual",
                                      .about = "a small residual network",
                                      .build = build,
                                      .image = {SIDE, SIDE, 3},
                                      .num_classes = 10};

static sx_graph *graph_of(sx_dtype precision)
{
    sx_params *params;
    sx_graph *g;
    assert_ok(sx_params_create(&params));
    const sx_program_request request = {
        .def = &residual, .params = params, .mode = SX_TRAIN, .precision = precision};
    assert_ok(sx_build_program(&request, &g));
    sx_params_destroy(params);
    return g;
}

/* ---- Plans ---- */

static sx_status plan(const sx_graph *g, int shards, int64_t limit, sx_cpu_plan **out)
{
    return sx_cpu_plan_create(g,
                              &(sx_cpu_plan_options){.batch = BATCH,
                                                     .shards = shards,
                                                     .workers = 2,
                                                     .memory_limit_bytes = limit,
                                                     .map = true},
                              out);
}

/* What the limit counts beside temporaries. */
static int64_t other_bytes(const sx_graph *g, const sx_cpu_plan *p)
{
    int64_t sum = p->const_bytes + p->large_bytes;
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        const bool arg = i < g->n_args;
        const sx_value v = arg ? g->args[i].value : g->results[i - g->n_args].value;
        const sx_type type = sx_type_with_batch(*sx_graph_type(g, v), BATCH);
        sum += arg || g->results[i - g->n_args].arg < 0 ? sx_type_bytes(&type) : 0;
    }
    return sum;
}

/* The bytes of a plan without a limit. */
static int64_t all_bytes(const sx_graph *g, int shards)
{
    sx_cpu_plan *p;
    assert_ok(plan(g, shards, 0, &p));
    const int64_t bytes = p->map->bytes + other_bytes(g, p);
    assert_int_equal(p->map->again_steps, 0);
    sx_cpu_plan_destroy(p);
    return bytes;
}

static void test_backends_recompute__plans_keep_to_the_limit(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        sx_graph *g = graph_of(k % 2 == 0 ? SX_F32 : SX_BF16);
        const int shards = k < 2 ? 1 : 4;
        const int64_t all = all_bytes(g, shards);
        for (int percent = 95; percent >= 75; percent -= 10) {
            const int64_t limit = all * percent / 100;
            sx_cpu_plan *p;
            assert_ok(plan(g, shards, limit, &p));
            assert_true(p->map->bytes + other_bytes(g, p) <= limit);
            assert_true(p->map->again_steps > 0);
            sx_cpu_plan_destroy(p);
        }
        sx_graph_destroy(g);
    }
}

static void test_backends_recompute__an_impossible_limit_is_an_error(void **state)
{
    (void)state;
    sx_graph *g = graph_of(SX_F32);
    sx_cpu_plan *p;
    assert_error(plan(g, 1, 64 << 10, &p), SX_RESOURCE_EXHAUSTED,
                 "a training step with batch size 6 takes at least");
    sx_graph_destroy(g);
}

static void test_backends_recompute__other_programs_have_no_limit(void **state)
{
    (void)state;
    sx_graph *g = graph_of(SX_F32), *outputs;
    sx_cpu_plan *p;
    bool *keep = sx_alloc((size_t)g->n_results, sizeof(bool));
    assert_non_null(keep);
    for (int i = 0; i < g->n_results; i++) {
        keep[i] = g->results[i].arg < 0;
    }
    assert_ok(sx_pass_keep_outputs(g, keep, &outputs));
    assert_ok(plan(outputs, 1, 1, &p));
    sx_cpu_plan_destroy(p);
    sx_graph_destroy(outputs);
    sx_graph_destroy(g);
    sx_free(keep);
}

/* ---- Bits ---- */

static void fill(const sx_type *type, uint32_t key, void *data)
{
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        const uint32_t word = sx_threefry2x32((sx_u32x2){key, 0}, (sx_u32x2){(uint32_t)i, 0}).a;
        if (type->dtype == SX_F32) {
            ((float *)data)[i] = sx_uniform_f32(word);
        } else {
            ((int32_t *)data)[i] = (int32_t)(word % 10);
        }
    }
}

/* All variables after some steps, one behind another. */
static char *train(const sx_graph *g, int threads, int shards, int64_t limit, size_t *out_bytes)
{
    static float inputs[2][BATCH * SIDE * SIDE * 3];
    const void *at[2] = {inputs[0], inputs[1]};
    sx_session *session;
    sx_program *program;
    const sx_session_options options = {
        .device = "cpu",
        .seed = 7,
        .shards = shards,
        .platform = {.cpu = {.threads = threads, .memory_limit_bytes = limit}}};
    assert_ok(sx_session_create(&options, &session));
    assert_ok(sx_session_add_program(session, g, &program));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < sx_program_input_count(program); i++) {
            const sx_type type = sx_type_with_batch(*sx_program_input_type(program, i), BATCH);
            fill(&type, (uint32_t)(2 * step + i), inputs[i]);
        }
        assert_ok(sx_program_run(program, BATCH, at));
    }
    size_t bytes = 0;
    char *all = NULL;
    for (int i = 0; i < sx_session_variable_count(session); i++) {
        const size_t more = (size_t)sx_type_bytes(&sx_session_variable_at(session, i)->type);
        all = sx_realloc(all, bytes + more, 1);
        assert_non_null(all);
        assert_ok(sx_session_read_variable(session, i, all + bytes));
        bytes += more;
    }
    sx_session_destroy(session);
    *out_bytes = bytes;
    return all;
}

static void test_backends_recompute__weights_have_the_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        sx_graph *g = graph_of(k % 2 == 0 ? SX_F32 : SX_BF16);
        const int shards = k < 2 ? 1 : 4; /* of 2, 2, 1 and 1 examples */
        const int64_t all = all_bytes(g, shards);
        size_t bytes, again_bytes;
        char *weights = train(g, 2, shards, 0, &bytes);
        for (int percent = 95; percent >= 75; percent -= 10) {
            char *again = train(g, 1 + percent % 3, shards, all * percent / 100, &again_bytes);
            assert_int_equal(bytes, again_bytes);
            assert_memory_equal(weights, again, bytes);
            sx_free(again);
        }
        sx_free(weights);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_recompute__plans_keep_to_the_limit),
    cmocka_unit_test(test_backends_recompute__an_impossible_limit_is_an_error),
    cmocka_unit_test(test_backends_recompute__other_programs_have_no_limit),
    cmocka_unit_test(test_backends_recompute__weights_have_the_same_bits),
};
SX_TEST_MAIN(tests)
