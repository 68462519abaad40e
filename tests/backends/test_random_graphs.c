/* Random training programs, on every backend that is built in against the reference: fusions,
 * placement in memory, shards and cropping must not change what a program computes.
 *
 *   x [N,H,W,C] -> 3 to 7 random operators -> dense -> loss -> gradients -> momentum updates
 *
 * All inputs are small integers and the activations are clipped to integers or halves, so that
 * forward values are exact in float32 whatever the order of sums: equal elements of a pool and
 * zeros of a relu are frequent, and stay equal. Gradients may round. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/threefry.h"
#include "graph/ir.h"

enum { PROGRAMS = 600, MAX_VARIABLES = 12, MAX_TAPS = 6 };

/* --- A program of a number ---------------------------------------------------------------------
 */

typedef struct maker {
    sx_builder *b;
    uint32_t seed, drawn;
    sx_value variables[MAX_VARIABLES], taps[MAX_TAPS];
    char names[MAX_VARIABLES][16];
    int n_variables, n_taps;
} maker;

static int draw(maker *m, int limit)
{
    return (int)(sx_threefry2x32((sx_u32x2){m->seed, 1}, (sx_u32x2){m->drawn++, 0}).a %
                 (uint32_t)limit);
}

static sx_value weight(maker *m, sx_type type)
{
    assert_true(m->n_variables < MAX_VARIABLES);
    char *name = m->names[m->n_variables];
    snprintf(name, sizeof(m->names[0]), "w%d", m->n_variables);
    sx_value v = sx_variable(m->b, &(sx_variable_spec){.name = name, .type = type});
    m->variables[m->n_variables++] = v;
    return v;
}

/* Back to at most 4, in halves at the finest. */
static sx_value tame(maker *m, sx_value x)
{
    switch (draw(m, 4)) {
    case 0:
        return sx_clip(m->b, x, -3, 4);
    case 1:
        return sx_clip(m->b, sx_relu(m->b, x), 0, 4);
    case 2:
        return sx_maximum(m->b, sx_minimum(m->b, x, sx_constant_f32(m->b, 3)),
                          sx_constant_f32(m->b, -2));
    default:
        return sx_minimum(m->b, sx_relu6(m->b, x), sx_constant_f32(m->b, 4));
    }
}

static sx_value convolution(maker *m, sx_value x, const sx_type *t)
{
    int h = 1 + draw(m, 3), w = draw(m, 2) ? h : 1 + draw(m, 3);
    int groups = t->dims[3] % 2 == 0 && draw(m, 4) == 0 ? 2 : 1;
    int filters = groups * (1 + draw(m, 4)) * (draw(m, 3) == 0 ? 4 : 1);
    int stride = 1 + draw(m, 2), dilation = stride == 1 && draw(m, 4) == 0 ? 2 : 1;
    sx_padding padding = draw(m, 3);
    if ((h - 1) * dilation + 1 > t->dims[1] || (w - 1) * dilation + 1 > t->dims[2]) {
        padding = SX_SAME;
    }
    sx_value filter = weight(m, sx_type_of(SX_F32, h, w, t->dims[3] / groups, filters));
    sx_value y = padding == SX_EXPLICIT
                     ? sx_nn_conv2d(m->b, x, filter, .strides = {stride, 1},
                                    .dilations = {dilation}, .padding = padding,
                                    .pads = {1, draw(m, 2), draw(m, 3), 0}, .groups = groups)
                     : sx_nn_conv2d(m->b, x, filter, .strides = {stride}, .dilations = {dilation},
                                    .padding = padding, .groups = groups);
    if (draw(m, 3) > 0) {
        y = sx_bias_add(m->b, y, weight(m, sx_type_of(SX_F32, filters)));
    }
    if (draw(m, 3) > 0) {
        y = sx_relu(m->b, y);
    }
    if (draw(m, 3) == 0 && sx_type_of_value(m->b, y).dims[1] >= 2 &&
        sx_type_of_value(m->b, y).dims[2] >= 2) {
        y = sx_nn_max_pool2d(m->b, y, .window = {2}); /* what stems and cropping look for */
    }
    return tame(m, y);
}

static sx_value pool(maker *m, sx_value x, const sx_type *t)
{
    int h = 1 + draw(m, 3), w = 1 + draw(m, 3), stride = 1 + draw(m, 3);
    sx_padding padding = h > t->dims[1] || w > t->dims[2] ? SX_SAME : (sx_padding)draw(m, 2);
    if (draw(m, 3) > 0) {
        return sx_nn_max_pool2d(m->b, x, .window = {h, w}, .strides = {stride, 1 + draw(m, 2)},
                                .padding = padding);
    }
    /* windows of a power of two, whole ones: means are exact */
    h = t->dims[1] >= 2 ? 2 : 1;
    sx_value y = sx_nn_avg_pool2d(m->b, x, .window = {h, 1}, .strides = {stride, 1});
    return sx_floor(m->b, sx_add(m->b, y, y));
}

/* With something of x's type, of its channels, or one number. */
static sx_value zip(maker *m, sx_value x, const sx_type *t)
{
    sx_value y = sx_neg(m->b, x);
    switch (draw(m, 5)) {
    case 0:
        y = weight(m, sx_type_of(SX_F32, t->dims[3]));
        break;
    case 1:
        y = sx_constant_f32(m->b, 1 + draw(m, 2));
        break;
    case 2:
        y = weight(m, sx_type_of(SX_F32, t->dims[1], 1, t->dims[3]));
        break;
    case 3:
        y = sx_reduce_max(m->b, x, .axes = SX_AXES(1 + draw(m, 3)), .keep_dims = true);
        break;
    default:
        for (int i = 0; i < m->n_taps; i++) {
            sx_type other = sx_type_of_value(m->b, m->taps[i]);
            y = sx_type_equal(&other, t) ? m->taps[i] : y;
        }
    }
    bool other_way = draw(m, 2);
    sx_value l = other_way ? y : x, r = other_way ? x : y;
    switch (draw(m, 6)) {
    case 0:
        return tame(m, sx_sub(m->b, l, r));
    case 1:
        return tame(m, sx_mul(m->b, l, r));
    case 2:
        return sx_maximum(m->b, l, r);
    case 3:
        return sx_minimum(m->b, l, r);
    case 4:
        return sx_select(m->b, sx_less(m->b, l, r), x, sx_neg(m->b, x));
    default:
        return tame(m, sx_add(m->b, l, r));
    }
}

static sx_value shape(maker *m, sx_value x, const sx_type *t)
{
    int64_t h = t->dims[1], w = t->dims[2], c = t->dims[3];
    switch (draw(m, 6)) {
    case 0:
        return sx_transpose(m->b, x, 0, 2, 1, 3);
    case 1:
        return sx_pad(m->b, x, .before = {0, draw(m, 2), 0, draw(m, 2)},
                      .after = {0, 0, draw(m, 3), 0}, .value = draw(m, 2));
    case 2: {
        int from = draw(m, (int)w), channel = draw(m, (int)c);
        return sx_slice(m->b, x, .begin = {0, 0, from, channel},
                        .size = {SX_BATCH, h, w - from, c - channel});
    }
    case 3:
        return sx_concat(m->b, 1 + draw(m, 3), x, sx_neg(m->b, x));
    case 4:
        return sx_reshape(m->b, sx_neg(m->b, sx_reshape(m->b, x, SX_BATCH, h * w * c)), SX_BATCH, w,
                          h, c);
    default:
        return tame(m, sx_reduce_sum(m->b, x, .axes = SX_AXES(1 + draw(m, 2)), .keep_dims = true));
    }
}

static sx_value map(maker *m, sx_value x)
{
    switch (draw(m, 6)) {
    case 0:
        return sx_abs(m->b, x);
    case 1:
        return tame(m, sx_square(m->b, x));
    case 2:
        return sx_relu(m->b, x);
    case 3:
        return sx_leaky_relu(m->b, x, 0.5);
    case 4:
        return sx_floor(m->b, x);
    default:
        return sx_add(m->b, x, sx_sign(m->b, x));
    }
}

static sx_graph *program_of(uint32_t seed)
{
    maker m = {.seed = seed};
    sx_graph *graph;
    assert_ok(sx_builder_create(&m.b));
    sx_value x = sx_input(
        m.b, "x", sx_type_of(SX_F32, SX_BATCH, 3 + draw(&m, 9), 3 + draw(&m, 9), 1 + draw(&m, 4)));
    sx_value ok = sx_input(m.b, "ok", sx_type_of(SX_BOOL));
    for (int n = 3 + draw(&m, 5), i = 0; i < n; i++) {
        sx_type t = sx_type_of_value(m.b, x);
        if (m.n_taps < MAX_TAPS && draw(&m, 2)) {
            m.taps[m.n_taps++] = x;
        }
        bool wide = t.dims[1] * t.dims[2] * t.dims[3] > 2000 || m.n_variables > MAX_VARIABLES - 4;
        switch (wide ? 9 : draw(&m, 10)) {
        case 0:
        case 1:
        case 2:
        case 3:
            x = convolution(&m, x, &t);
            break;
        case 4:
        case 5:
            x = zip(&m, x, &t);
            break;
        case 6:
            x = shape(&m, x, &t);
            break;
        case 7:
            x = map(&m, x);
            break;
        default:
            x = pool(&m, x, &t);
        }
    }
    sx_type t = sx_type_of_value(m.b, x);
    int64_t features = t.dims[1] * t.dims[2] * t.dims[3];
    sx_value flat = sx_reshape(m.b, x, SX_BATCH, features);
    sx_value y = sx_matmul(m.b, flat, weight(&m, sx_type_of(SX_F32, features, 3)));
    y = tame(&m, sx_bias_add(m.b, y, weight(&m, sx_type_of(SX_F32, 3))));
    sx_value loss = sx_reduce_mean(m.b, sx_square(m.b, sx_add(m.b, y, sx_constant_f32(m.b, 1))));
    sx_output(m.b, "y", y);
    for (int i = 0; i < m.n_taps; i++) {
        char name[16];
        snprintf(name, sizeof(name), "tap%d", i);
        if (draw(&m, 3) == 0) {
            sx_output(m.b, name, m.taps[i]);
        }
    }
    sx_output(m.b, "loss", loss);
    sx_value gradients[MAX_VARIABLES];
    sx_gradients(m.b, loss, m.variables, m.n_variables, gradients);
    for (int i = 0; i < m.n_variables; i++) {
        char slot[24];
        if (!sx_value_is(gradients[i])) {
            continue;
        }
        snprintf(slot, sizeof(slot), "%s/Momentum", m.names[i]);
        sx_type type = sx_type_of_value(m.b, m.variables[i]);
        sx_value accum =
            sx_variable(m.b, &(sx_variable_spec){.name = slot, .type = type, .role = SX_ROLE_SLOT});
        sx_value next = sx_apply_momentum(m.b, m.variables[i], accum, gradients[i],
                                          sx_constant_f32(m.b, 0.25), ok, .momentum = 0.5);
        sx_assign(m.b, m.names[i], next);
        sx_assign(m.b, slot, sx_output_at(next, 1));
    }
    sx_status status = sx_builder_finish(m.b, &graph);
    if (status != SX_OK) {
        print_error("program %u:\n", seed);
    }
    assert_ok(status);
    sx_builder_destroy(m.b);
    return graph;
}

/* --- Running it --------------------------------------------------------------------------------
 */

/* What a program's results hold afterwards, one after the other, as doubles. */
typedef struct results {
    int n;
    double *data[64];
    int64_t elems[64];
} results;

static void fill(const sx_graph *g, int arg, const sx_type *type, uint32_t seed, void *data)
{
    int64_t n = sx_type_elems(type);
    for (int64_t i = 0; i < n; i++) {
        uint32_t word =
            sx_threefry2x32((sx_u32x2){seed, 2 + (uint32_t)arg}, (sx_u32x2){(uint32_t)i, 0}).a;
        if (type->dtype == SX_BOOL) {
            ((bool *)data)[i] = true;
        } else if (g->args[arg].kind == SX_ARG_VARIABLE) { /* mostly zeros: sums stay small */
            ((float *)data)[i] = word % 4 == 0 ? 1 : word % 4 == 1 ? -1 : 0;
        } else {
            ((float *)data)[i] = (float)(int)(word % 7) - 3;
        }
    }
}

static results run(const char *backend, const sx_graph *g, uint32_t seed, int64_t batch,
                   int threads, int shards)
{
    results r = {.n = g->n_results};
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *args[64], *outputs[64];
    assert_true(g->n_args <= 64 && g->n_results <= 64);
    assert_ok(sx_platform_open(backend, &(sx_platform_options){.cpu.threads = threads}, &platform));
    sx_status status =
        sx_compile(platform, g, &(sx_compile_options){.batch = batch, .shards = shards}, &e);
    if (status != SX_OK) {
        print_error("program %u on %s:\n", seed, backend);
    }
    assert_ok(status);
    for (int i = 0; i < e->n_args; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
    }
    for (int i = 0; i < e->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    /* Twice from the same start: what a step leaves behind must not show in the next. */
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < e->n_args; i++) {
            void *data = sx_alloc((size_t)sx_type_bytes(&e->arg_types[i]) + 1, 1);
            assert_non_null(data);
            fill(g, i, &e->arg_types[i], seed, data);
            assert_ok(sx_device_buffer_write(args[i], data, false));
            sx_free(data);
        }
        assert_ok(sx_execute(e, args, outputs));
    }
    for (int i = 0; i < e->n_results; i++) {
        r.elems[i] = sx_type_elems(&e->result_types[i]);
        r.data[i] = sx_alloc((size_t)r.elems[i] + 1, sizeof(double));
        float *raw = sx_alloc((size_t)r.elems[i] + 1, sizeof(float));
        assert_true(r.data[i] != NULL && raw != NULL && e->result_types[i].dtype == SX_F32);
        int from = e->result_args[i];
        assert_ok(sx_device_buffer_read(from >= 0 ? args[from] : outputs[i], raw));
        for (int64_t k = 0; k < r.elems[i]; k++) {
            r.data[i][k] = raw[k];
        }
        sx_free(raw);
    }
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < e->n_results; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
    return r;
}

static void results_end(results *r)
{
    for (int i = 0; i < r->n; i++) {
        sx_free(r->data[i]);
    }
}

/* Within 1e-5 of the largest of each result. */
static int differences(const sx_graph *g, uint32_t seed, const results *expected,
                       const results *got)
{
    int failed = 0;
    for (int i = 0; i < expected->n; i++) {
        double largest = 0;
        for (int64_t k = 0; k < expected->elems[i]; k++) {
            largest = harness_greater(largest, fabs(expected->data[i][k]));
        }
        for (int64_t k = 0; k < expected->elems[i]; k++) {
            if (!(fabs(got->data[i][k] - expected->data[i][k]) <= 1e-5 * largest)) {
                print_error("program %u: %s[%lld] is %.9g, expected %.9g\n", seed,
                            g->results[i].name, (long long)k, got->data[i][k],
                            expected->data[i][k]);
                failed++;
                break;
            }
        }
    }
    return failed;
}

static void test_backends_random_graphs__compute_what_the_reference_does(void **state)
{
    (void)state;
    int failed = 0;
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        sx_graph *g = program_of(seed);
        int64_t batch = 1 + seed % 7;
        int threads = 1 + (int)(seed % 3), shards = (int)(seed / 3 % 4);
        results expected = run("host", g, seed, batch, 1, 0);
        results got = run("cpu", g, seed, batch, threads, shards);
        int wrong = differences(g, seed, &expected, &got);
        if (wrong > 0) {
            print_error("program %u: batch %lld, %d threads, %d shards\n", seed, (long long)batch,
                        threads, shards);
        }
        failed += wrong;
        results_end(&expected);
        results_end(&got);
        sx_graph_destroy(g);
    }
    assert_int_equal(failed, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_random_graphs__compute_what_the_reference_does),
};
SX_TEST_MAIN(tests)
