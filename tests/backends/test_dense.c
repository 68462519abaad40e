/* Products by frozen matrices, of matmuls and convolutions of 1x1 (cpu/kernels/dense.c), and
 * depthwise convolutions (grouped.c, depthwise.c): right in every instruction set, over shapes that
 * leave parts of vectors, panels and blocks, chosen where they should be, and the same bits
 * whatever is computed together. */
#include "example_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/vec/vec.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ir.h"

static const char *const sets[] = {"base", "v3", "v4"};

static const sx_cpu_vec *vec_of(const char *name)
{
    setenv("SEXTANT_CPU_VEC", name, 1);
    const sx_cpu_vec *vec = sx_cpu_vec_best();
    unsetenv("SEXTANT_CPU_VEC");
    return vec;
}

static double swish(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return x / 2 * erfc(-x * sqrt(0.5));
}

/* ---- Products ---- */

typedef struct product {
    int64_t m, k, n, block;
    bool adds;
    sx_vec_act act;
    float low, high;
    bool transposed;
} product;

static void check_product(const sx_cpu_vec *vec, const product *p)
{
    sx_vec_dense d = {.m = p->m,
                      .k = p->k,
                      .n = p->n,
                      .panels = vec->dense_panels(p->n),
                      .block = p->block,
                      .transposed = p->transposed,
                      .low = p->low,
                      .high = p->high,
                      .act = p->act};
    const int64_t units = (p->m + p->block - 1) / p->block * d.panels, elems = p->m * p->n;
    float *x = numbers(p->m * p->k, 1), *b = numbers(p->k * p->n, 2), *bias = numbers(p->n, 3);
    float *added = numbers(elems, 4), *y = numbers(elems, 4), *whole = numbers(elems, 4);
    const sx_vec_dense all = {.m = p->m, .k = p->k, .n = p->n, .panels = d.panels, .block = p->m};
    float *packed = sx_alloc((size_t)vec->dense_packed(&d), sizeof(float));
    float *scratch = sx_alloc((size_t)vec->dense_scratch(&all) + 1, sizeof(float));
    assert_non_null(packed);
    assert_non_null(scratch);
    vec->dense_pack(&d, b, packed);
    sx_vec_dense_args a = {.x = x,
                           .packed = packed,
                           .bias = bias,
                           .added = p->adds ? y : NULL,
                           .y = y,
                           .scratch = scratch};
    for (int64_t u = units; u > 0; u--) { /* over what is added, one by one */
        vec->dense(&d, &a, u - 1, u);
    }
    d.block = p->m;
    a.added = p->adds ? added : NULL;
    a.y = whole;
    vec->dense(&d, &a, 0, d.panels);
    assert_memory_equal(y, whole, (size_t)elems * sizeof(float));
    for (int64_t i = 0; i < elems; i++) {
        double sum = bias[i % p->n] + (p->adds ? added[i] : 0);
        for (int64_t l = 0; l < p->k; l++) {
            const int64_t at = p->transposed ? i % p->n * p->k + l : l * p->n + i % p->n;
            sum += (double)x[i / p->n * p->k + l] * b[at];
        }
        const double right = p->act == SX_VEC_SWISH  ? swish(sum)
                             : p->act == SX_VEC_GELU ? gelu(sum)
                                                     : fmin(fmax(sum, p->low), p->high);
        if (!(fabs(y[i] - right) <= 1e-6 * sqrt((double)(p->k + 1)))) {
            fail_msg("%s: %ld is %g, not %g", vec->name, (long)i, y[i], right);
        }
    }
    sx_free(x);
    sx_free(b);
    sx_free(bias);
    sx_free(added);
    sx_free(y);
    sx_free(whole);
    sx_free(packed);
    sx_free(scratch);
}

static void test_backends_dense__multiplies(void **state)
{
    (void)state;
    static const product products[] = {
        {1, 1, 1, 1, false, SX_VEC_CLIP, -INFINITY, INFINITY, false},
        {7, 3, 15, 2, true, SX_VEC_CLIP, 0, INFINITY, false},
        {13, 24, 16, 5, true, SX_VEC_CLIP, 0, 1, true},
        {50, 17, 40, 11, false, SX_VEC_SWISH, 0, 0, false},
        {23, 96, 24, 23, true, SX_VEC_SWISH, 0, 0, false},
        {9, 33, 65, 4, true, SX_VEC_CLIP, -INFINITY, INFINITY, true},
        {19, 40, 112, 7, false, SX_VEC_SWISH, 0, 0, false},
        {31, 130, 144, 16, false, SX_VEC_CLIP, 0, 6, false},
        {21, 1700, 100, 9, true, SX_VEC_CLIP, -INFINITY, INFINITY, false},
        {10, 769, 33, 10, false, SX_VEC_SWISH, 0, 0, true},
        {1, 300, 200, 1, false, SX_VEC_CLIP, -INFINITY, INFINITY, false},
        {1, 900, 643, 1, true, SX_VEC_CLIP, 0, 6, true},
        {2, 300, 205, 2, true, SX_VEC_SWISH, 0, 0, false},
        {2, 1600, 400, 2, false, SX_VEC_CLIP, -INFINITY, INFINITY, false},
        {23, 96, 24, 23, true, SX_VEC_GELU, -INFINITY, INFINITY, false},
        {50, 17, 43, 11, false, SX_VEC_GELU, -INFINITY, INFINITY, true},
        {2, 1600, 400, 2, false, SX_VEC_GELU, -INFINITY, INFINITY, false},
    };
    for (size_t i = 0; i < SX_COUNT(sets); i++) {
        for (size_t k = 0; k < SX_COUNT(products); k++) {
            check_product(vec_of(sets[i]), &products[k]);
        }
    }
}

/* Every size of a number, from a sum of one product and a bias of 0. */
/* Within `unit` of itself; `square`: and more by x^2, of e^(-x^2/2), whose exponent is rounded. */
static void check_everywhere(sx_vec_act act, double (*exact)(double x), double step, double unit,
                             double square)
{
    enum { ROWS = 4001 };
    for (size_t i = 0; i < SX_COUNT(sets); i++) {
        const sx_cpu_vec *vec = vec_of(sets[i]);
        static float x[ROWS], y[ROWS];
        const float one = 1, zero = 0;
        const sx_vec_dense d = {.m = ROWS,
                                .k = 1,
                                .n = 1,
                                .panels = vec->dense_panels(1),
                                .block = ROWS,
                                .low = -INFINITY,
                                .high = INFINITY,
                                .act = act};
        float packed[64] = {0};
        assert_true(vec->dense_packed(&d) <= (int64_t)SX_COUNT(packed));
        vec->dense_pack(&d, &one, packed);
        for (int k = 0; k < ROWS; k++) {
            x[k] = (float)((k - ROWS / 2) * step);
        }
        x[0] = NAN;
        x[1] = INFINITY;
        vec->dense(&d, &(sx_vec_dense_args){.x = x, .packed = packed, .bias = &zero, .y = y}, 0, 1);
        assert_true(isnan(y[0]));
        assert_true(isinf(y[1]) && y[1] > 0);
        for (int k = 2; k < ROWS; k++) {
            const double right = exact(x[k]);
            const double more = fabs(x[k]) + square * x[k] * x[k];
            const double most = unit * (1 + more) * fabs(right) + 1e-30;
            if (!(fabs(y[k] - right) <= most)) {
                fail_msg("%s: activation %d of %g is %g, not %g", vec->name, (int)act, x[k], y[k],
                         right);
            }
        }
    }
}

static void test_backends_dense__activations_are_right_everywhere(void **state)
{
    (void)state;
    check_everywhere(SX_VEC_SWISH, swish, 0.06, 4e-7, 0);
    check_everywhere(SX_VEC_GELU, gelu, 0.005, 1e-6, 1);
}

/* ---- Depthwise ---- */

static sx_conv_window window(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                             int64_t before, int64_t after)
{
    return (sx_conv_window){.in = in,
                            .out = (in + before + after - (kernel - 1) * dilation - 1) / stride + 1,
                            .kernel = kernel,
                            .stride = stride,
                            .dilation = dilation,
                            .pad_before = before,
                            .pad_after = after};
}

static double expected(const sx_vec_grouped *d, const float *x, int64_t at)
{
    const int64_t c = at % d->c, j = at / d->c % d->w.out, r = at / d->c / d->w.out;
    double sum = d->bias[c];
    for (int64_t t = 0; t < d->h.kernel * d->w.kernel; t++) {
        const int64_t v =
            r % d->h.out * d->h.stride - d->h.pad_before + t / d->w.kernel * d->h.dilation;
        const int64_t h = j * d->w.stride - d->w.pad_before + t % d->w.kernel * d->w.dilation;
        if (v >= 0 && v < d->h.in && h >= 0 && h < d->w.in) {
            sum += (double)d->filter[t * d->c + c] *
                   x[((r / d->h.out * d->h.in + v) * d->w.in + h) * d->c + c];
        }
    }
    return swish(sum);
}

static void check_depthwise(const sx_cpu_vec *vec, int64_t n, sx_conv_window h, sx_conv_window w,
                            int64_t c)
{
    float *x = numbers(n * h.in * w.in * c, 1), *filter = numbers(h.kernel * w.kernel * c, 2);
    float *bias = numbers(c, 3), *y = numbers(n * h.out * w.out * c, 4);
    const sx_vec_grouped d = {
        .h = h, .w = w, .c = c, .width = 1, .filter = filter, .bias = bias, .act = SX_VEC_SWISH};
    for (int64_t r = n * h.out; r > 0; r--) {
        vec->grouped(&d, x, y, r - 1, r);
    }
    for (int64_t i = 0; i < n * h.out * w.out * c; i++) {
        const double right = expected(&d, x, i);
        if (!(fabs(y[i] - right) <= 3e-6)) {
            fail_msg("%s, %ld channels: %ld is %g, not %g", vec->name, (long)c, (long)i, y[i],
                     right);
        }
    }
    sx_free(x);
    sx_free(filter);
    sx_free(bias);
    sx_free(y);
}

/* The gradient of the filter, in parts that begin and end at 16 channels, as workers take them. */
static void check_depthwise_filter(const sx_cpu_vec *vec, int64_t n, sx_conv_window h,
                                   sx_conv_window w, int64_t c)
{
    const sx_vec_depthwise_filter d = {h, w, n, c};
    const int64_t elems = h.kernel * w.kernel * c;
    float *x = numbers(n * h.in * w.in * c, 1), *dy = numbers(n * h.out * w.out * c, 2);
    float *dw = numbers(elems, 3);
    double *right = sx_alloc((size_t)elems, sizeof(*right));
    assert_non_null(right);
    for (int64_t i = 0; i < n * h.out * w.out * h.kernel * w.kernel * c; i++) {
        const int64_t k = i % c, t = i / c % (h.kernel * w.kernel), at = i / elems;
        const int64_t r = at / w.out, j = at % w.out;
        const int64_t v = r % h.out * h.stride - h.pad_before + t / w.kernel * h.dilation;
        const int64_t u = j * w.stride - w.pad_before + t % w.kernel * w.dilation;
        if (v >= 0 && v < h.in && u >= 0 && u < w.in) {
            right[t * c + k] +=
                (double)dy[at * c + k] * x[((r / h.out * h.in + v) * w.in + u) * c + k];
        }
    }
    const int64_t half = c / 32 * 16;
    vec->depthwise_filter(&d, x, dy, dw, half, c);
    vec->depthwise_filter(&d, x, dy, dw, 0, half);
    for (int64_t i = 0; i < elems; i++) {
        if (!(fabs(dw[i] - right[i]) <= 1e-5)) {
            fail_msg("%s, %ld channels: %ld is %g, not %g", vec->name, (long)c, (long)i, dw[i],
                     right[i]);
        }
    }
    sx_free(x);
    sx_free(dy);
    sx_free(dw);
    sx_free(right);
}

static void check_both(const sx_cpu_vec *vec, int64_t n, sx_conv_window h, sx_conv_window w,
                       int64_t c)
{
    check_depthwise(vec, n, h, w, c);
    check_depthwise_filter(vec, n, h, w, c);
}

static void test_backends_dense__depthwise_convolutions(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(sets); i++) {
        const sx_cpu_vec *vec = vec_of(sets[i]);
        check_both(vec, 1, window(1, 3, 1, 1, 1, 1), window(1, 3, 1, 1, 1, 1), 1);
        check_both(vec, 2, window(7, 3, 1, 1, 1, 1), window(9, 3, 1, 1, 1, 1), 33);
        check_both(vec, 1, window(14, 5, 2, 1, 1, 2), window(27, 5, 2, 1, 2, 2), 40);
        check_both(vec, 1, window(8, 3, 2, 1, 0, 1), window(16, 3, 2, 1, 0, 1), 16);
        check_both(vec, 1, window(9, 3, 1, 2, 2, 2), window(20, 3, 1, 2, 0, 0), 5);
        check_both(vec, 1, window(3, 5, 1, 1, 2, 2), window(3, 5, 1, 1, 2, 2), 48);
        check_both(vec, 1, window(2, 3, 1, 1, 1, 1), window(11, 3, 1, 1, 1, 1), 150);
        check_both(vec, 1, window(5, 2, 1, 1, 0, 0), window(12, 4, 3, 1, 3, 0), 17);
    }
}

/* ---- In programs ---- */

typedef struct layer {
    int64_t size, channels, filters;
    int kernel, stride, groups;
    char act;                /* s swish, r relu, + a sum, 0 none and no bias */
    const char *kernel_name; /* a part of it */
} layer;

static const layer layers[] = {
    {9, 24, 40, 1, 1, 1, 's', "dense"},       {20, 16, 96, 1, 1, 1, 's', "dense"},
    {7, 96, 96, 1, 1, 1, '+', "dense"},       {7, 80, 33, 1, 1, 1, 'r', "dense"},
    {1, 96, 8, 1, 1, 1, 0, "dense"},          {20, 32, 16, 1, 1, 1, 'r', "onednn"},
    {9, 24, 40, 1, 2, 1, 's', "onednn"},      {9, 40, 40, 3, 1, 40, 's', "depthwise"},
    {10, 40, 40, 5, 2, 40, 's', "depthwise"}, {9, 40, 40, 3, 1, 40, 'r', "onednn"},
    {9, 40, 80, 3, 1, 40, 's', "onednn"},     {9, 40, 40, 3, 1, 2, 's', "onednn"},
    {13, 32, 32, 3, 1, 8, 's', "grouped"},    {14, 40, 40, 5, 2, 20, 'r', "grouped"},
    {9, 36, 36, 3, 1, 9, '+', "grouped"},     {16, 12, 12, 3, 2, 3, 0, "grouped"},
};

static sx_graph *graph_of(const layer *l)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, l->size, l->size, l->channels));
    const sx_type filter =
        sx_type_of(SX_F32, l->kernel, l->kernel, l->channels / l->groups, l->filters);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = filter});
    sx_value bias =
        sx_variable(b, &(sx_variable_spec){.name = "bias", .type = sx_type_of(SX_F32, l->filters)});
    sx_value y =
        sx_nn_conv2d(b, x, w, .padding = SX_SAME, .strides = {l->stride}, .groups = l->groups);
    y = l->act != 0 ? sx_bias_add(b, y, bias) : y;
    y = l->act == '+'   ? sx_add(b, x, y)
        : l->act == 's' ? sx_swish(b, y)
        : l->act == 'r' ? sx_relu(b, y)
                        : y;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Rows of each example by a matrix, transposed or not. */
static sx_graph *matmul_of(int64_t rows, int64_t k, int64_t n, bool transposed)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, rows, k));
    const sx_type type = transposed ? sx_type_of(SX_F32, n, k) : sx_type_of(SX_F32, k, n);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = type});
    sx_output(b, "y", sx_matmul(b, x, w, .transpose_b = transposed));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_backends_dense__multiplies_rows_of_frozen_matmuls(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, k, n;
        bool transposed, frozen;
        const char *kernel;
    } cases[] = {
        {12, 40, 72, false, true, "matmul dense"},   {9, 900, 50, true, true, "matmul dense"},
        {7, 40, 72, false, true, "matmul dense"},    {1, 40, 72, false, true, "matmul few rows"},
        {1, 400, 400, false, true, "matmul dense"}, /* too large for the cache */
        {1, 40000, 7, false, true, "matmul onednn"}, {12, 40, 72, false, false, "matmul onednn"}};
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_graph *g = matmul_of(cases[i].rows, cases[i].k, cases[i].n, cases[i].transposed);
        equals_host(g, &(run_options){.backend = "cpu",
                                      .threads = 1,
                                      .batch = 2,
                                      .frozen = cases[i].frozen,
                                      .kernel = cases[i].kernel});
        sx_graph_destroy(g);
    }
}

/* What follows a product: b a bias of heads, behind a view; r bias and relu; + bias and a sum; s
 * the same and swish. */
/* As TensorFlow writes it. */
static sx_value gelu_of(sx_builder *b, sx_value x)
{
    sx_value share = sx_mul(b, sx_neg(b, x), sx_constant_f32(b, sqrt(0.5)));
    return sx_mul(b, sx_mul(b, sx_constant_f32(b, 0.5), x), sx_erfc(b, share));
}

static sx_graph *fused_of(char form)
{
    enum { ROWS = 20, SIDE = 48, HEADS = 4 };
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, ROWS, SIDE));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, SIDE, SIDE)});
    const sx_type many = sx_type_of(SX_F32, HEADS, SIDE / HEADS);
    sx_value bias =
        sx_variable(b, &(sx_variable_spec){.name = "bias",
                                           .type = form == 'b' ? many : sx_type_of(SX_F32, SIDE)});
    sx_value y = sx_matmul(b, x, w);
    y = form == 'b' ? sx_reshape(b, y, SX_BATCH, ROWS, HEADS, SIDE / HEADS) : y;
    y = sx_add(b, y, bias);
    y = form == '+' || form == 's' ? sx_add(b, x, y) : y;
    y = form == 'r'   ? sx_relu(b, y)
        : form == 's' ? sx_swish(b, y)
        : form == 'g' ? gelu_of(b, y)
                      : y;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_backends_dense__computes_what_follows_a_matmul(void **state)
{
    (void)state;
    for (const char *form = "br+sg"; *form != 0; form++) {
        sx_graph *g = fused_of(*form);
        equals_host(g, &(run_options){.backend = "cpu",
                                      .threads = 1,
                                      .batch = 3,
                                      .frozen = true,
                                      .kernel = "matmul dense fused"});
        sx_graph_destroy(g);
    }
}

/* Many rows by a frozen matrix, but of doubles. */
static void test_backends_dense__doubles_have_their_own(void **state)
{
    (void)state;
    enum { ROWS = 20, SIDE = 64 };
    sx_builder *b;
    sx_graph *g;
    double numbers[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        numbers[i] = sin(i);
    }
    const sx_tensor w = {sx_type_of(SX_F64, SIDE, SIDE), numbers};
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_cast(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, ROWS, SIDE)), SX_F64);
    sx_output(b, "y", sx_cast(b, sx_matmul(b, x, sx_constant(b, w)), SX_F32));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    equals_host(g, &(run_options){.backend = "cpu",
                                  .threads = 1,
                                  .batch = 3,
                                  .frozen = true,
                                  .kernel = "matmul float64"});
    sx_graph_destroy(g);
}

/* [...,48,1] + [48] has 48 numbers for each of the product's. */
static void test_backends_dense__a_sum_of_each_with_each_is_no_bias(void **state)
{
    (void)state;
    enum { ROWS = 20, SIDE = 48 };
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, ROWS, SIDE));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, SIDE, SIDE)});
    sx_value bias =
        sx_variable(b, &(sx_variable_spec){.name = "bias", .type = sx_type_of(SX_F32, SIDE)});
    sx_value y = sx_reshape(b, sx_matmul(b, x, w), SX_BATCH, ROWS, SIDE, 1);
    sx_output(b, "y", sx_add(b, y, bias));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    equals_host(
        g,
        &(run_options){
            .backend = "cpu", .threads = 1, .batch = 3, .frozen = true, .kernel = "matmul dense"});
    sx_graph_destroy(g);
}

static void test_backends_dense__is_chosen_where_it_is_fast(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        sx_graph *g = graph_of(&layers[i]);
        equals_host(g, &(run_options){.backend = "cpu",
                                      .threads = 1,
                                      .batch = 2,
                                      .frozen = true,
                                      .kernel = layers[i].kernel_name});
        sx_graph_destroy(g);
    }
}

/* One example may be shared by a team, a batch by shards: neither they nor the other examples
 * change a bit. */
static void check_bits(const sx_graph *g, const char *kernel)
{
    int64_t all, one;
    run_options whole = {"cpu", 1, EXAMPLES, 0, true, kernel};
    float *batch = run(g, &whole, &all);
    for (int threads = 1; threads <= 3; threads++) {
        for (int64_t first = 0; first < EXAMPLES; first += 2) {
            const run_options single = {"cpu", threads, 1, first, true, kernel};
            float *y = run(g, &single, &one);
            assert_memory_equal(y, batch + first * one, (size_t)one * sizeof(float));
            sx_free(y);
        }
        whole.threads = threads;
        float *y = run(g, &whole, &all);
        assert_memory_equal(y, batch, (size_t)all * sizeof(float));
        sx_free(y);
    }
    sx_free(batch);
}

static void test_backends_dense__bits_depend_on_the_example_alone(void **state)
{
    (void)state;
    static const layer large[] = {{56, 24, 144, 1, 1, 1, 's', "dense"},
                                  {7, 320, 1280, 1, 1, 1, 's', "dense"},
                                  {56, 144, 144, 3, 1, 144, 's', "depthwise"}};
    for (size_t i = 0; i < SX_COUNT(large); i++) {
        sx_graph *g = graph_of(&large[i]);
        check_bits(g, large[i].kernel_name);
        sx_graph_destroy(g);
    }
    sx_graph *g = matmul_of(130, 1000, 300, false);
    check_bits(g, "matmul dense");
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_dense__multiplies),
    cmocka_unit_test(test_backends_dense__activations_are_right_everywhere),
    cmocka_unit_test(test_backends_dense__depthwise_convolutions),
    cmocka_unit_test(test_backends_dense__multiplies_rows_of_frozen_matmuls),
    cmocka_unit_test(test_backends_dense__computes_what_follows_a_matmul),
    cmocka_unit_test(test_backends_dense__doubles_have_their_own),
    cmocka_unit_test(test_backends_dense__a_sum_of_each_with_each_is_no_bias),
    cmocka_unit_test(test_backends_dense__is_chosen_where_it_is_fast),
    cmocka_unit_test(test_backends_dense__bits_depend_on_the_example_alone),
};
SX_TEST_MAIN(tests)
