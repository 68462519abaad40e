/* Strict mode: a batch of a fixed number of logical parts, the shards, whatever computes them.
 * Seeded training ends with the same bits on all numbers of replicas of a PJRT device that divide
 * the shards, and on 1 to 4 threads of the CPU; and close to the host kernels' weights. Four
 * models: mnist_cnn; a block of attention whose batch is in [T*N,D] and in the middle; an LSTM that
 * is a `while`; two heads on one trunk. Another number of shards is another program: it adds the
 * same numbers in another order. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/checked.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/spmd.h"
#include "nn/model_program.h"
#include "nn/params.h"
#include "nn/zoo/zoo.h"
#include "pjrt_plugin.h"
#include "training_graph.h"

enum { SHARDS = 4, BATCH = 24, STEPS = 2 };

/* ---- Models ---- */

static sx_graph *cnn(void)
{
    sx_graph *g;
    sx_params *params;
    const sx_model_def *def = sx_zoo_find("mnist_cnn");
    assert_ok(sx_params_create(&params));
    assert_ok(sx_build_program(
        &(sx_program_request){.def = def, .params = params, .mode = SX_TRAIN}, &g));
    sx_params_destroy(params);
    return g;
}

/* tokens [N,T] -> [N,T,D] -> [T*N,D] -> dense, dropout -> attention over [T,N,T] -> logits */
static sx_graph *attention(void)
{
    enum { T = 3, D = 6, WORDS = 9 };
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_builder *b = m.b;
    sx_value tokens = sx_input(b, "tokens", sx_type_of(SX_I32, SX_BATCH, T));
    sx_value labels = sx_input(b, "labels", sx_type_of(SX_I32, SX_BATCH, T));
    sx_value seed = sx_input(b, "seed", sx_type_of(SX_U32, 2));
    sx_value step = sx_input(b, "step", sx_scalar_type(SX_I64));
    sx_value x = sx_gather(b, weight(&m, sx_type_of(SX_F32, WORDS, D)), tokens);
    x = sx_nn_dropout(b, sx_reshape(b, x, -T, D), seed, step, .rate = 0.1, .key = 7);
    sx_value q = sx_matmul(b, x, weight(&m, sx_type_of(SX_F32, D, D)));
    sx_value k = sx_matmul(b, x, weight(&m, sx_type_of(SX_F32, D, D)));
    q = sx_transpose(b, sx_reshape(b, q, SX_BATCH, T, D), 1, 0, 2);
    q = sx_reshape(b, q, T, SX_BATCH, 1, D);
    sx_value scores = sx_mul(b, q, sx_reshape(b, k, 1, SX_BATCH, T, D));
    sx_value p = sx_softmax(b, sx_reduce_sum(b, scores, .axes = SX_AXES(3)));
    sx_value y =
        sx_mul(b, sx_reshape(b, p, T, SX_BATCH, T, 1), sx_reshape(b, x, 1, SX_BATCH, T, D));
    y = sx_transpose(b, sx_reduce_sum(b, y, .axes = SX_AXES(2)), 1, 0, 2);
    sx_value logits =
        sx_matmul(b, sx_reshape(b, y, -T, D), weight(&m, sx_type_of(SX_F32, D, WORDS)));
    return finish(&m, sx_reduce_mean(b, sx_nn_sparse_softmax_cross_entropy(
                                            b, logits, sx_reshape(b, labels, -T))));
}

/* (i, h, c, x [T,N,K], w [K+D,4*D], v [4*D], seed, step) while i < T; h is dropped out */
static sx_graph *lstm(void)
{
    enum { T = 4, K = 3, D = 5, STATE = 3, OPERANDS = 8 };
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_value x = sx_input(m.b, "x", sx_type_of(SX_F32, SX_BATCH, T, K));
    sx_value labels = sx_input(m.b, "labels", sx_type_of(SX_I32, SX_BATCH));
    const sx_type state = sx_type_of(SX_F32, SX_BATCH, D);
    const sx_shape_attrs zeros = {.shape = {.n = 2, .v = {SX_BATCH, D}}};
    sx_value zero = sx_constant_f32(m.b, 0);
    sx_value operands[OPERANDS] = {
        sx_constant(m.b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){0}}),
        sx_build_op(m.b, broadcast_to, &zeros, zero),
        sx_build_op(m.b, broadcast_to, &zeros, zero),
        sx_transpose(m.b, x, 1, 0, 2),
        weight(&m, sx_type_of(SX_F32, K + D, 4 * D)),
        weight(&m, sx_type_of(SX_F32, 4 * D)),
        sx_input(m.b, "seed", sx_type_of(SX_U32, 2)),
        sx_input(m.b, "step", sx_scalar_type(SX_I64)),
    };
    const sx_type types[OPERANDS] = {sx_scalar_type(SX_I32),
                                     state,
                                     state,
                                     sx_type_of(SX_F32, T, SX_BATCH, K),
                                     sx_type_of(SX_F32, K + D, 4 * D),
                                     sx_type_of(SX_F32, 4 * D),
                                     sx_type_of(SX_U32, 2),
                                     sx_scalar_type(SX_I64)};
    sx_graph *regions[2];
    for (int r = 0; r < 2; r++) {
        static const char *const names[OPERANDS] = {"i", "h", "c", "x", "w", "v", "seed", "step"};
        sx_builder *b;
        sx_value a[OPERANDS], gates[4];
        assert_ok(sx_builder_create(&b));
        for (int i = 0; i < OPERANDS; i++) {
            a[i] = sx_input(b, names[i], types[i]);
        }
        if (r == 0) {
            sx_value most = sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){T}});
            sx_output(b, "go", sx_build_op(b, less, NULL, a[0], most));
        } else {
            sx_value one = sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){1}});
            sx_value both = sx_concat(b, 1, sx_build_op(b, take_row, NULL, a[3], a[0]), a[1]);
            sx_value z = sx_bias_add(b, sx_matmul(b, both, a[4]), a[5]);
            for (int i = 0; i < 4; i++) {
                const sx_slice_attrs part = {.begin = {.n = 2, .v = {0, (int64_t)i * D}},
                                             .size = {.n = 2, .v = {SX_BATCH, D}}};
                gates[i] = sx_build_op(b, slice, &part, z);
                gates[i] = i == 1 ? sx_tanh(b, gates[i]) : sx_sigmoid(b, gates[i]);
            }
            sx_value c = sx_add(b, sx_mul(b, gates[2], a[2]), sx_mul(b, gates[0], gates[1]));
            sx_output(b, "i", sx_build_op(b, add, NULL, a[0], one));
            sx_value h = sx_mul(b, gates[3], sx_tanh(b, c));
            sx_output(b, "h", sx_nn_dropout(b, h, a[6], a[7], .rate = 0.3, .key = 9));
            sx_output(b, "c", c);
        }
        assert_ok(sx_builder_finish(b, &regions[r]));
        sx_builder_destroy(b);
    }
    sx_value loop =
        sx_build(m.b, &sx_op_while,
                 &(sx_while_attrs){.condition = regions[0], .body = regions[1], .trips = T},
                 operands, OPERANDS);
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return finish(&m, sx_reduce_mean(m.b, sx_nn_sparse_softmax_cross_entropy(
                                              m.b, sx_output_of(loop, 1), labels)));
}

/* Two heads, of one unit and of two, on one trunk: products of a column, and a sum of gradients
 * where the heads meet. */
static sx_graph *two_heads(void)
{
    enum { K = 7, D = 16 };
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_builder *b = m.b;
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, K));
    sx_value labels = sx_input(b, "labels", sx_type_of(SX_I32, SX_BATCH));
    sx_value target = sx_input(b, "target", sx_type_of(SX_F32, SX_BATCH, 1));
    sx_value h = sx_matmul(b, x, weight(&m, sx_type_of(SX_F32, K, D)));
    h = sx_relu(b, sx_bias_add(b, h, weight(&m, sx_type_of(SX_F32, D))));
    sx_value one = sx_bias_add(b, sx_matmul(b, h, weight(&m, sx_type_of(SX_F32, D, 1))),
                               weight(&m, sx_type_of(SX_F32, 1)));
    sx_value two = sx_bias_add(b, sx_matmul(b, h, weight(&m, sx_type_of(SX_F32, D, 2))),
                               weight(&m, sx_type_of(SX_F32, 2)));
    sx_value error = sx_sub(b, one, target);
    labels = sx_build_op(b, minimum, NULL, labels,
                         sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){1}}));
    return finish(&m,
                  sx_add(b, sx_reduce_mean(b, sx_mul(b, error, error)),
                         sx_reduce_mean(b, sx_nn_sparse_softmax_cross_entropy(b, two, labels))));
}

/* ---- Training ---- */

typedef struct outcome {
    float *values; /* variables, one after the other, then the loss of every step */
    int64_t n;
} outcome;

static bool is_weight(const sx_graph *g, int arg)
{
    return g->args[arg].kind == SX_ARG_VARIABLE &&
           sx_graph_type(g, g->args[arg].value)->dtype == SX_F32;
}

static void fill(const sx_type *type, int arg, int64_t step, void *data)
{
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        sx_u32x2 word = sx_threefry2x32((sx_u32x2){5, (uint32_t)arg}, (sx_u32x2){(uint32_t)i, 0});
        if (type->dtype == SX_F32) {
            ((float *)data)[i] = ((float)(word.a % 2000) - 1000) / 8000;
        } else if (type->dtype == SX_I64) {
            *(int64_t *)data = step;
        } else {
            ((int32_t *)data)[i] = (int32_t)(word.a % 5);
        }
    }
}

static outcome train(const sx_graph *g, const char *backend, int workers, int shards)
{
    const bool pjrt = strcmp(backend, "pjrt") == 0;
    const sx_platform_options options = {.cpu.threads = pjrt ? 0 : workers,
                                         .pjrt.replicas = pjrt ? workers : 0,
                                         .pjrt.virtual_devices = pjrt ? shards : 0,
                                         .pjrt.plugin_path = pjrt ? pjrt_plugin() : NULL};
    outcome out = {.n = STEPS};
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *args[64], *outputs[64];
    assert_true(g->n_args <= 64 && g->n_results <= 64);
    assert_ok(sx_platform_open(backend, &options, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = BATCH, .shards = shards}, &e));
    sx_executable_info info;
    assert_ok(sx_executable_get_info(e, &info));
    assert_true(shards == 0 || info.shards == shards);
    for (int i = 0; i < e->n_args; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        out.n += is_weight(g, i) ? sx_type_elems(&e->arg_types[i]) : 0;
    }
    for (int i = 0; i < e->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    float *at = out.values = sx_alloc((size_t)out.n + 2, sizeof(float));
    assert_non_null(at);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < e->n_args; i++) {
            void *data = sx_alloc((size_t)sx_type_bytes(&e->arg_types[i]) + 8, 1);
            assert_non_null(data);
            if (step == 0 || g->args[i].kind == SX_ARG_INPUT) {
                if (g->args[i].kind == SX_ARG_INPUT || g->args[i].role == SX_ROLE_WEIGHT) {
                    fill(&e->arg_types[i], i, step, data); /* else zeros: moments, steps */
                }
                assert_ok(sx_device_buffer_write(args[i], data, false));
            }
            sx_free(data);
        }
        assert_ok(sx_execute(e, args, outputs));
        assert_ok(sx_device_buffer_read(outputs[sx_graph_find_output(g, "loss")],
                                        &out.values[out.n - STEPS + step]));
    }
    for (int i = 0; i < e->n_args; i++) {
        if (is_weight(g, i)) {
            assert_ok(sx_device_buffer_read(args[i], at));
            at += sx_type_elems(&e->arg_types[i]);
        }
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < e->n_results; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
    return out;
}

/* How a test divides the batch: into `shards` logical parts, on each of `workers`, threads of the
 * CPU or replicas of a PJRT device, which divide the parts. */
typedef struct division {
    int shards, workers[4];
} division;

static const division on_cpu[] = {
    {1, {1, 2, 3, 4}}, {2, {1, 2, 3, 4}}, {3, {1, 2, 3, 4}}, {4, {1, 2, 3, 4}}, {8, {1, 2, 3, 4}},
};
static const division on_pjrt[] = {
    {2, {1, 2}},
    {4, {1, 2, 4}},
    {6, {1, 3}},
    {8, {1, 8}},
};
static const division few_on_pjrt[] = {{4, {1, 2, 4}}};

static void check_bits(sx_graph *g, const char *backend, const division *list, size_t n,
                       double share)
{
    outcome host = train(g, "host", 1, 0);
    for (size_t k = 0; k < n; k++) {
        const division *d = &list[k];
        outcome one = train(g, backend, d->workers[0], d->shards);
        double off = 0, square = 0;
        assert_int_equal(one.n, host.n);
        for (int64_t i = 0; i < one.n; i++) {
            const double difference = (double)one.values[i] - (double)host.values[i];
            off += difference * difference;
            square += (double)host.values[i] * (double)host.values[i];
        }
        if (!(off <= share * share * square)) {
            fail_msg("%s, %d shards, differs by %g from the host kernels' %g", backend, d->shards,
                     sqrt(off), sqrt(square));
        }
        for (int w = 1; w < 4 && d->workers[w] > 0; w++) {
            outcome got = train(g, backend, d->workers[w], d->shards);
            for (int64_t i = 0; i < one.n; i++) {
                if (memcmp(&got.values[i], &one.values[i], sizeof(float)) != 0) {
                    fail_msg("%s, %d shards: value %lld of %lld is %.9g on %d, %.9g on one",
                             backend, d->shards, (long long)i, (long long)one.n,
                             (double)got.values[i], d->workers[w], (double)one.values[i]);
                }
            }
            sx_free(got.values);
        }
        sx_free(one.values);
    }
    sx_free(host.values);
    sx_graph_destroy(g);
}

static void test_backends_strict__cnn_on_cpu(void **state)
{
    (void)state;
    check_bits(cnn(), "cpu", on_cpu, SX_COUNT(on_cpu), 1e-3);
}

static void test_backends_strict__attention_on_cpu(void **state)
{
    (void)state;
    check_bits(attention(), "cpu", on_cpu, SX_COUNT(on_cpu), 1e-4);
}

static void test_backends_strict__lstm_on_cpu(void **state)
{
    (void)state;
    check_bits(lstm(), "cpu", on_cpu, SX_COUNT(on_cpu), 1e-4);
}

static void test_backends_strict__two_heads_on_cpu(void **state)
{
    (void)state;
    check_bits(two_heads(), "cpu", on_cpu, SX_COUNT(on_cpu), 1e-4);
}

static void test_backends_strict__cnn_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(cnn(), "pjrt", few_on_pjrt, SX_COUNT(few_on_pjrt), 1e-3);
}

static void test_backends_strict__attention_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(attention(), "pjrt", on_pjrt, SX_COUNT(on_pjrt), 1e-4);
}

static void test_backends_strict__lstm_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(lstm(), "pjrt", on_pjrt, SX_COUNT(on_pjrt), 1e-4);
}

static void test_backends_strict__two_heads_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(two_heads(), "pjrt", on_pjrt, SX_COUNT(on_pjrt), 1e-4);
}

/* ---- The pass ---- */

static int count(const sx_graph *g, const sx_op_def *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        n += g->nodes[k].op == op;
    }
    return n;
}

/* The gradients of a loop's weights are combined once, after it: not in every trip. */
static void test_backends_strict__loops_exchange_nothing(void **state)
{
    (void)state;
    sx_graph *g = lstm();
    sx_spmd p;
    assert_ok(sx_pass_spmd(g, &(sx_spmd_options){.batch = 8, .replicas = 2}, &p));
    assert_int_equal(count(p.graph, &sx_op_while), count(g, &sx_op_while));
    assert_int_equal(count(p.graph, &sx_op_all_reduce), 2); /* the loss; both gradients together */
    assert_int_equal(count(p.graph, &sx_op_all_gather), 0);
    sx_spmd_deinit(&p);
    sx_graph_destroy(g);
}

/* An operator without a batch rule sees the whole batch on each replica. */
static sx_graph *without_a_rule(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 3, SX_BATCH));
    sx_value v = sx_input(b, "v", sx_type_of(SX_F32, SX_BATCH));
    assert_int_equal(sx_op_reduce_tree.batch_rule, SX_RULE_NONE);
    sx_value sum = sx_build_op(b, reduce_tree, NULL, sx_mul(b, x, x));
    sx_output(b, "y", sx_mul(b, sum, v));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_backends_strict__without_a_rule_the_batch_is_gathered(void **state)
{
    (void)state;
    sx_graph *g = without_a_rule();
    sx_spmd p;
    assert_ok(sx_pass_spmd(g, &(sx_spmd_options){.batch = 8, .replicas = 2}, &p));
    assert_int_equal(count(p.graph, &sx_op_all_gather), 1);
    assert_int_equal(count(p.graph, &sx_op_all_slice), 1);
    sx_spmd_deinit(&p);
    sx_graph_destroy(g);
}

static void compute_without_a_rule(const char *backend, int workers, int shards, float y[BATCH])
{
    const bool pjrt = strcmp(backend, "pjrt") == 0;
    const sx_platform_options options = {.cpu.threads = pjrt ? 0 : workers,
                                         .pjrt.replicas = pjrt ? workers : 0,
                                         .pjrt.plugin_path = pjrt ? pjrt_plugin() : NULL};
    float x[3 * BATCH], v[BATCH];
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *buffers[3];
    sx_graph *g = without_a_rule();
    for (int i = 0; i < 3 * BATCH; i++) {
        x[i] = (float)(i * i % 11);
        v[i % BATCH] = (float)(i % 7) - 3;
    }
    assert_ok(sx_platform_open(backend, &options, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = BATCH, .shards = shards}, &e));
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_device_buffer_create(
            platform->devices[0], i < 2 ? &e->arg_types[i] : &e->result_types[0], &buffers[i]));
    }
    assert_ok(sx_device_buffer_write(buffers[0], x, false));
    assert_ok(sx_device_buffer_write(buffers[1], v, false));
    assert_ok(sx_execute(e, buffers, buffers + 2));
    assert_ok(sx_device_buffer_read(buffers[2], y));
    for (int i = 0; i < 3; i++) {
        sx_device_buffer_release(buffers[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
    sx_graph_destroy(g);
}

static void test_backends_strict__gathered_nodes_on_cpu(void **state)
{
    (void)state;
    float expected[BATCH], got[BATCH];
    compute_without_a_rule("host", 1, 0, expected);
    for (int shards = 2; shards <= 3; shards++) {
        compute_without_a_rule("cpu", 2, shards, got);
        assert_memory_equal(got, expected, sizeof(got));
    }
}

static void test_backends_strict__gathered_nodes_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    float expected[BATCH], got[BATCH];
    compute_without_a_rule("host", 1, 0, expected);
    for (int shards = 0; shards <= SHARDS; shards += SHARDS) {
        compute_without_a_rule("pjrt", 2, shards, got);
        assert_memory_equal(got, expected, sizeof(got));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_strict__cnn_on_cpu),
    cmocka_unit_test(test_backends_strict__attention_on_cpu),
    cmocka_unit_test(test_backends_strict__lstm_on_cpu),
    cmocka_unit_test(test_backends_strict__two_heads_on_cpu),
    cmocka_unit_test(test_backends_strict__cnn_on_pjrt),
    cmocka_unit_test(test_backends_strict__attention_on_pjrt),
    cmocka_unit_test(test_backends_strict__lstm_on_pjrt),
    cmocka_unit_test(test_backends_strict__two_heads_on_pjrt),
    cmocka_unit_test(test_backends_strict__loops_exchange_nothing),
    cmocka_unit_test(test_backends_strict__without_a_rule_the_batch_is_gathered),
    cmocka_unit_test(test_backends_strict__gathered_nodes_on_cpu),
    cmocka_unit_test(test_backends_strict__gathered_nodes_on_pjrt),
};
SX_TEST_MAIN(tests)
