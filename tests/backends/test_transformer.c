/* A transformer block whose batch changes its place: tokens [N,T] -> embedding [N,T,D] -> [T*N,D]
 * -> dense layers -> [N,T,D] -> attention, [T,N,D] on the way -> loss of T*N labels -> gradients ->
 * momentum. Five steps of training on every backend, whole and divided, end at the host kernels'
 * weights, and the same division ends at the same bits whatever runs it. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/threefry.h"
#include "graph/ir.h"
#include "pjrt_plugin.h"
#include "training_graph.h"

enum { T = 4, D = 6, WORDS = 9, HIDDEN = 10, BATCH = 8, STEPS = 5 };

/* x [T*N, in] -> [T*N, out] */
static sx_value dense(training_graph *m, sx_value x, int64_t in, int64_t out)
{
    sx_value y = sx_matmul(m->b, x, weight(m, sx_type_of(SX_F32, in, out)));
    return sx_bias_add(m->b, y, weight(m, sx_type_of(SX_F32, out)));
}

/* (x - mean) / deviation over the last dimension, times a scale. */
static sx_value layer_norm(training_graph *m, sx_value x)
{
    sx_value moments = sx_moments(m->b, x, .axes = SX_AXES(1));
    sx_value mean = sx_reshape(m->b, moments, -T, 1);
    sx_value variance = sx_reshape(m->b, sx_output_at(moments, 1), -T, 1);
    sx_value y = sx_sub(m->b, x, mean);
    y = sx_mul(m->b, y, sx_rsqrt(m->b, sx_add(m->b, variance, sx_constant_f32(m->b, 1e-3))));
    return sx_mul(m->b, y, weight(m, sx_type_of(SX_F32, D)));
}

/* Attention of the tokens of an example to one another. The scores' products are laid out with the
 * batch in the middle: [T,N,1,D] * [1,N,T,D]. */
static sx_value attention(training_graph *m, sx_value x)
{
    sx_builder *b = m->b;
    sx_value q = sx_reshape(b, dense(m, x, D, D), SX_BATCH, T, D);
    sx_value k = sx_reshape(b, dense(m, x, D, D), SX_BATCH, T, D);
    sx_value v = sx_reshape(b, dense(m, x, D, D), SX_BATCH, T, D);
    q = sx_reshape(b, sx_transpose(b, q, 1, 0, 2), T, SX_BATCH, 1, D);
    k = sx_reshape(b, k, 1, SX_BATCH, T, D);
    v = sx_reshape(b, v, 1, SX_BATCH, T, D);
    sx_value scores = sx_reduce_sum(b, sx_mul(b, q, k), .axes = SX_AXES(3)); /* [T,N,T] */
    scores = sx_mul(b, scores, sx_constant_f32(b, 0.4));
    sx_value p = sx_reshape(b, sx_softmax(b, scores), T, SX_BATCH, T, 1);
    sx_value y = sx_reduce_sum(b, sx_mul(b, p, v), .axes = SX_AXES(2)); /* [T,N,D] */
    return sx_reshape(b, sx_transpose(b, y, 1, 0, 2), -T, D);
}

static sx_graph *transformer(void)
{
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_builder *b = m.b;
    sx_value tokens = sx_input(b, "tokens", sx_type_of(SX_I32, SX_BATCH, T));
    sx_value labels = sx_input(b, "labels", sx_type_of(SX_I32, SX_BATCH, T));
    sx_value seed = sx_input(b, "seed", sx_type_of(SX_U32, 2));
    sx_value step = sx_input(b, "step", sx_scalar_type(SX_I64));
    sx_value x = sx_gather(b, weight(&m, sx_type_of(SX_F32, WORDS, D)), tokens); /* [N,T,D] */
    x = sx_add(b, x, weight(&m, sx_type_of(SX_F32, T, D)));
    x = sx_reshape(b, x, -T, D);
    x = sx_nn_dropout(b, x, seed, step, .rate = 0.1, .key = 7);
    x = sx_add(b, x, attention(&m, layer_norm(&m, x)));
    sx_value h = sx_tanh(b, dense(&m, layer_norm(&m, x), D, HIDDEN));
    x = sx_add(b, x, dense(&m, h, HIDDEN, D));
    sx_value logits = dense(&m, x, D, WORDS);
    sx_value losses =
        sx_nn_sparse_softmax_cross_entropy(b, logits, sx_reshape(b, labels, -T)); /* [T*N] */
    sx_value loss = sx_reduce_mean(b, losses);
    sx_output(b, "by_token", losses);
    sx_output(b, "logits", sx_reshape(b, logits, SX_BATCH, T, WORDS));
    return finish(&m, loss);
}

/* --- Training ---------------------------------------------------------------------------------
 */

typedef struct outcome {
    float losses[STEPS];
    float *values; /* the outputs of the last step and the weights, one after the other */
    int64_t n;
} outcome;

static void fill(const sx_graph *g, int arg, const sx_type *type, int64_t step, void *data)
{
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        sx_u32x2 word = sx_threefry2x32((sx_u32x2){5, (uint32_t)arg}, (sx_u32x2){(uint32_t)i, 0});
        if (type->dtype == SX_F32) {
            ((float *)data)[i] = ((float)(word.a % 2000) - 1000) / 2500;
        } else if (type->dtype == SX_I64) {
            *(int64_t *)data = step;
        } else { /* labels are a function of tokens: they can be learned */
            bool labels = strcmp(g->args[arg].name, "labels") == 0;
            word = sx_threefry2x32((sx_u32x2){5, 77}, (sx_u32x2){(uint32_t)i, 0});
            ((int32_t *)data)[i] = (int32_t)((word.a % WORDS * (labels ? 2 : 1)) % WORDS);
        }
    }
}

static outcome train(const sx_graph *g, const char *backend, const sx_platform_options *options,
                     int shards)
{
    outcome out = {.n = 0};
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *args[32], *outputs[32];
    assert_true(g->n_args <= 32 && g->n_results <= 32);
    assert_ok(sx_platform_open(backend, options, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = BATCH, .shards = shards}, &e));
    for (int i = 0; i < e->n_args; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
    }
    for (int i = 0; i < e->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
        out.n += sx_type_elems(&e->result_types[i]);
    }
    char data[4096];
    for (int64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < e->n_args; i++) {
            assert_true((size_t)sx_type_bytes(&e->arg_types[i]) <= sizeof(data));
            if (step == 0 || g->args[i].kind == SX_ARG_INPUT) {
                fill(g, i, &e->arg_types[i], step, data);
                assert_ok(sx_device_buffer_write(args[i], data, false));
            }
        }
        assert_ok(sx_execute(e, args, outputs));
        assert_ok(sx_device_buffer_read(outputs[sx_graph_find_output(g, "loss")], data));
        memcpy(&out.losses[step], data, sizeof(float));
    }
    float *at = out.values = sx_alloc((size_t)out.n + 1, sizeof(float));
    assert_non_null(at);
    for (int i = 0; i < e->n_results; i++) {
        int from = e->result_args[i];
        assert_ok(sx_device_buffer_read(from >= 0 ? args[from] : outputs[i], at));
        at += sx_type_elems(&e->result_types[i]);
    }
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < e->n_results; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    sx_executable_info info;
    assert_ok(sx_executable_get_info(e, &info));
    assert_true(shards == 0 || info.shards == shards);
    sx_executable_release(e);
    sx_platform_close(platform);
    return out;
}

static void assert_close(const outcome *got, const outcome *expected, const char *what)
{
    assert_int_equal(got->n, expected->n);
    for (int64_t i = 0; i < got->n; i++) {
        if (!(fabsf(got->values[i] - expected->values[i]) <= 2e-4f)) {
            fail_msg("%s: value %lld is %.7g, expected %.7g", what, (long long)i, got->values[i],
                     expected->values[i]);
        }
    }
}

static void test_backends_transformer__trains_alike_whole_and_divided(void **state)
{
    (void)state;
    static const struct {
        const char *what, *backend;
        int threads, replicas, shards;
    } rows[] = {
        {"cpu", "cpu", 1, 0, 1},
        {"cpu, 2 shards", "cpu", 1, 0, 2},
        {"cpu, 4 shards", "cpu", 2, 0, 4},
        {"pjrt", "pjrt", 0, 1, 0},
        {"pjrt, 2 replicas", "pjrt", 0, 2, 0},
        {"pjrt, 4 replicas", "pjrt", 0, 4, 0},
    };
    sx_graph *g = transformer();
    outcome expected = train(g, "host", &(sx_platform_options){.cpu.threads = 1}, 0);
    assert_true(expected.losses[STEPS - 1] < 0.9f * expected.losses[0]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_platform_options options = {
            .cpu.threads = rows[i].threads,
            .pjrt.replicas = rows[i].replicas,
            .pjrt.plugin_path = rows[i].replicas > 0 ? ref_plugin() : NULL,
        };
        outcome got = train(g, rows[i].backend, &options, rows[i].shards);
        assert_close(&got, &expected, rows[i].what);
        sx_free(got.values);
    }
    sx_free(expected.values);
    sx_graph_destroy(g);
}

/* Strict mode: a fixed number of shards, so the threads do not matter. */
static void test_backends_transformer__threads_do_not_change_bits(void **state)
{
    (void)state;
    sx_graph *g = transformer();
    outcome one = train(g, "cpu", &(sx_platform_options){.cpu.threads = 1}, 4);
    for (int threads = 2; threads <= 3; threads++) {
        outcome got = train(g, "cpu", &(sx_platform_options){.cpu.threads = threads}, 4);
        assert_memory_equal(got.losses, one.losses, sizeof(one.losses));
        assert_memory_equal(got.values, one.values, (size_t)one.n * sizeof(float));
        sx_free(got.values);
    }
    sx_free(one.values);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_transformer__trains_alike_whole_and_divided),
    cmocka_unit_test(test_backends_transformer__threads_do_not_change_bits),
};
SX_TEST_MAIN(tests)
