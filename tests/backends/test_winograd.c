/* Convolutions of 3x3 by Winograd's algorithm (cpu/kernels/winograd.c): right in every instruction
 * set, chosen where it should be, and the same bits whatever is computed together. */
#include "example_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/vec/vec.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ir.h"

static float *room(int64_t floats)
{
    float *data = sx_alloc_aligned((size_t)floats * sizeof(float), 64);
    assert_non_null(data);
    for (int64_t i = 0; i < floats; i++) {
        data[i] = NAN;
    }
    return data;
}

/* ---- The loops ---- */

typedef struct shape {
    int64_t n, h, w, c, o;
    int64_t top, left, bottom, right; /* padding */
    bool bias, adds;
    float low, high;
} shape;

typedef struct tensors {
    float *x, *filter, *bias, *y;
    int64_t results, per_image;
} tensors;

static sx_vec_winograd describe(const shape *s, int m)
{
    sx_vec_winograd w = {.m = m,
                         .n = s->n,
                         .c = s->c,
                         .o = s->o,
                         .in_h = s->h,
                         .in_w = s->w,
                         .out_h = s->h + s->top + s->bottom - 2,
                         .out_w = s->w + s->left + s->right - 2,
                         .top = s->top,
                         .left = s->left,
                         .low = s->low,
                         .high = s->high};
    w.tiles_h = (w.out_h + m - 1) / m;
    w.tiles_w = (w.out_w + m - 1) / m;
    return w;
}

/* In blocks of so many tiles, in two calls. */
static void compute(const sx_cpu_vec *vec, sx_vec_winograd w, int64_t block, const shape *s,
                    const tensors *t, float *y)
{
    const int64_t tiles = w.n * w.tiles_h * w.tiles_w;
    const int64_t panels = (w.o + vec->winograd_width - 1) / vec->winograd_width;
    const int64_t units = (tiles + block - 1) / block * panels, middle = units / 2;
    w.block = block;
    float *packed = room(vec->winograd_packed(&w)), *scratch = room(vec->winograd_scratch(&w));
    const float *bias = s->bias ? t->bias : NULL, *added = s->adds ? y : NULL;
    memcpy(y, t->y, (size_t)t->results * sizeof(float));
    vec->winograd_pack(&w, t->filter, packed, w.c / 2, w.c);
    vec->winograd_pack(&w, t->filter, packed, 0, w.c / 2);
    vec->winograd(&w, t->x, packed, bias, added, y, scratch, middle, units);
    vec->winograd(&w, t->x, packed, bias, added, y, scratch, 0, middle);
    sx_free_aligned(packed);
    sx_free_aligned(scratch);
}

static double expected(const shape *s, const sx_vec_winograd *w, const tensors *t, int64_t at)
{
    const int64_t o = at % w->o, j = at / w->o % w->out_w, i = at / w->o / w->out_w % w->out_h;
    const int64_t n = at / t->per_image;
    double sum = (s->bias ? t->bias[o] : 0) + (s->adds ? t->y[at] : 0);
    for (int64_t k = 0; k < 9 * w->c; k++) {
        const int64_t c = k % w->c, y = i + k / w->c / 3 - w->top, x = j + k / w->c % 3 - w->left;
        if (y >= 0 && y < w->in_h && x >= 0 && x < w->in_w) {
            sum += (double)t->x[((n * w->in_h + y) * w->in_w + x) * w->c + c] *
                   t->filter[k * w->o + o];
        }
    }
    return fmin(fmax(sum, s->low), s->high);
}

static void check(const sx_cpu_vec *vec, const shape *s, int m)
{
    const sx_vec_winograd w = describe(s, m);
    tensors t = {.x = numbers(s->n * s->h * s->w * s->c, 1),
                 .filter = numbers(9 * s->c * s->o, 2),
                 .bias = numbers(s->o, 3),
                 .per_image = w.out_h * w.out_w * s->o};
    t.results = s->n * t.per_image;
    t.y = numbers(t.results, 4);
    float *y = numbers(t.results, 5), *other = numbers(t.results, 6);
    compute(vec, w, 1, s, &t, y);
    for (int64_t block = 5; block <= 40; block += 7) {
        compute(vec, w, block, s, &t, other);
        assert_memory_equal(y, other, (size_t)t.results * sizeof(float));
    }
    for (int64_t i = 0; i < t.results; i++) {
        /* Terms are 1/12 in the mean square. */
        const double off = fabs(y[i] - expected(s, &w, &t, i));
        if (!(off <= 3e-6 * sqrt((double)(9 * s->c)))) {
            fail_msg("%s, %d: %ld differs by %g", vec->name, m, (long)i, off);
        }
    }
    sx_free(t.x);
    sx_free(t.filter);
    sx_free(t.bias);
    sx_free(t.y);
    sx_free(y);
    sx_free(other);
}

static double expected_of_filter(const sx_vec_winograd *w, const float *x, const float *dy,
                                 int64_t at)
{
    const int64_t o = at % w->o, c = at / w->o % w->c, place = at / w->o / w->c;
    double sum = 0;
    for (int64_t k = 0; k < w->n * w->out_h * w->out_w; k++) {
        const int64_t n = k / w->out_w / w->out_h;
        const int64_t i = k / w->out_w % w->out_h + place / 3 - w->top;
        const int64_t j = k % w->out_w + place % 3 - w->left;
        if (i >= 0 && i < w->in_h && j >= 0 && j < w->in_w) {
            sum += (double)dy[k * w->o + o] * x[((n * w->in_h + i) * w->in_w + j) * w->c + c];
        }
    }
    return sum;
}

static void check_filter(const sx_cpu_vec *vec, const shape *s, int m, int64_t block)
{
    sx_vec_winograd w = describe(s, m);
    const int64_t terms = w.n * w.out_h * w.out_w, elems = 9 * w.c * w.o;
    float *x = numbers(w.n * w.in_h * w.in_w * w.c, 1), *dy = numbers(terms * w.o, 2);
    float *filter = room(elems);
    w.block = block;
    float *scratch = room(vec->winograd_filter_scratch(&w));
    vec->winograd_filter(&w, x, dy, filter, scratch);
    for (int64_t i = 0; i < elems; i++) {
        const double off = fabs(filter[i] - expected_of_filter(&w, x, dy, i));
        if (!(off <= 3e-6 * sqrt((double)terms))) {
            fail_msg("%s, %d, filter: %ld differs by %g", vec->name, m, (long)i, off);
        }
    }
    sx_free(x);
    sx_free(dy);
    sx_free_aligned(filter);
    sx_free_aligned(scratch);
}

static void test_backends_winograd__computes_convolutions(void **state)
{
    (void)state;
    static const char *const names[] = {"base", "v3", "v4"};
    static const shape shapes[] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, false, false, -INFINITY, INFINITY},
        {1, 3, 3, 16, 16, 0, 0, 0, 0, true, false, -INFINITY, INFINITY},
        {2, 7, 7, 17, 65, 1, 1, 1, 1, true, true, -INFINITY, INFINITY},
        {1, 9, 6, 33, 31, 1, 1, 1, 1, true, true, 0, INFINITY},
        {3, 5, 8, 40, 97, 0, 1, 1, 0, false, true, 0, 1},
        {1, 14, 13, 64, 32, 2, 0, 2, 3, true, false, 0, 6},
        {2, 4, 4, 128, 130, 1, 1, 1, 1, true, false, 0, INFINITY},
    };
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        setenv("SEXTANT_CPU_VEC", names[i], 1);
        const sx_cpu_vec *vec = sx_cpu_vec_best();
        unsetenv("SEXTANT_CPU_VEC");
        for (size_t k = 0; k < SX_COUNT(shapes); k++) {
            for (int m = 2; m <= 4; m += 2) {
                check(vec, &shapes[k], m);
                check_filter(vec, &shapes[k], m, 1);
                check_filter(vec, &shapes[k], m, 7);
                check_filter(vec, &shapes[k], m, 100);
            }
        }
    }
}

/* ---- In programs ---- */

typedef struct layer {
    int64_t size, channels, filters;
    int kernel, stride, dilation, groups;
    sx_padding padding;
    char act;                /* r relu, 6 relu6, s swish, + a sum and relu, 0 none and no bias */
    const char *kernel_name; /* a part of it */
} layer;

static sx_graph *graph_of(const layer *l)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, l->size, l->size + 1, l->channels));
    const sx_type filter =
        sx_type_of(SX_F32, l->kernel, l->kernel, l->channels / l->groups, l->filters);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = filter});
    sx_value bias =
        sx_variable(b, &(sx_variable_spec){.name = "bias", .type = sx_type_of(SX_F32, l->filters)});
    sx_value y = sx_nn_conv2d(b, x, w, .padding = l->padding, .strides = {l->stride},
                              .dilations = {l->dilation}, .groups = l->groups);
    y = l->act != 0 ? sx_bias_add(b, y, bias) : y;
    y = l->act == '+' ? sx_add(b, x, y) : y;
    y = l->act == 's'   ? sx_swish(b, y)
        : l->act == '6' ? sx_relu6(b, y)
        : l->act != 0   ? sx_relu(b, y)
                        : y;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* What it does not compute, and what is faster directly, stays with oneDNN. */
static void test_backends_winograd__is_chosen_where_it_is_fast(void **state)
{
    (void)state;
    static const layer layers[] = {
        {28, 32, 48, 3, 1, 1, 1, SX_SAME, 'r', "winograd 4x4"},
        {28, 32, 48, 3, 1, 1, 1, SX_VALID, 0, "winograd 4x4"},
        {20, 64, 64, 3, 1, 1, 1, SX_SAME, '+', "winograd 4x4"},
        {13, 96, 40, 3, 1, 1, 1, SX_SAME, '6', "winograd 2x2"},
        {28, 32, 48, 3, 1, 1, 1, SX_SAME, 's', "onednn"},
        {28, 32, 48, 3, 2, 1, 1, SX_SAME, 'r', "onednn"},
        {28, 32, 48, 3, 1, 2, 1, SX_SAME, 'r', "onednn"},
        {28, 32, 48, 3, 1, 1, 2, SX_SAME, 'r', "onednn"},
        {28, 32, 48, 5, 1, 1, 1, SX_SAME, 'r', "onednn"},
        {28, 32, 48, 1, 1, 1, 1, SX_SAME, 'r', "onednn"},
        {28, 3, 48, 3, 1, 1, 1, SX_SAME, 'r', "onednn"},
        {28, 32, 8, 3, 1, 1, 1, SX_SAME, 'r', "onednn"},
        {3, 32, 48, 3, 1, 1, 1, SX_SAME, 'r', "onednn"},
    };
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        sx_graph *g = graph_of(&layers[i]);
        equals_host(g, &(run_options){.backend = "cpu",
                                      .threads = 1,
                                      .batch = 1,
                                      .frozen = true,
                                      .kernel = layers[i].kernel_name});
        /* a filter that may change, whose swish is a step of its own */
        const bool direct = strcmp(layers[i].kernel_name, "onednn") == 0 && layers[i].act != 's';
        equals_host(g, &(run_options){.backend = "cpu",
                                      .threads = 1,
                                      .batch = EXAMPLES,
                                      .kernel = direct ? "onednn" : NULL});
        sx_graph_destroy(g);
    }
}

/* One example is shared by oneDNN's team, a batch by shards: neither they nor the other examples
 * change a bit. */
static void test_backends_winograd__bits_depend_on_the_example_alone(void **state)
{
    (void)state;
    static const layer layers[] = {{28, 64, 96, 3, 1, 1, 1, SX_SAME, 'r', "winograd 4x4"},
                                   {56, 64, 64, 3, 1, 1, 1, SX_SAME, '+', "winograd 4x4"}};
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        sx_graph *g = graph_of(&layers[i]);
        int64_t all, one;
        const run_options whole = {"cpu", 1, EXAMPLES, 0, true, layers[i].kernel_name};
        float *batch = run(g, &whole, &all);
        for (int threads = 1; threads <= 3; threads++) {
            for (int64_t first = 0; first < EXAMPLES; first += 2) {
                const run_options single = {"cpu", threads, 1, first, true, layers[i].kernel_name};
                float *y = run(g, &single, &one);
                assert_memory_equal(y, batch + first * one, (size_t)one * sizeof(float));
                sx_free(y);
            }
            const run_options shared = {"cpu", threads, EXAMPLES, 0, true, layers[i].kernel_name};
            float *y = run(g, &shared, &all);
            assert_memory_equal(y, batch, (size_t)all * sizeof(float));
            sx_free(y);
        }
        sx_free(batch);
        sx_graph_destroy(g);
    }
}

/* The gradient of sum(relu(conv(x, w) + bias)^2) with respect to x, w or bias. */
static sx_graph *gradient_graph(const layer *l, int of)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type filter = sx_type_of(SX_F32, 3, 3, l->channels, l->filters);
    sx_value of_all[3], gradients[3];
    of_all[0] = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, l->size, l->size + 1, l->channels));
    of_all[1] = sx_variable(b, &(sx_variable_spec){.name = "w", .type = filter});
    of_all[2] =
        sx_variable(b, &(sx_variable_spec){.name = "bias", .type = sx_type_of(SX_F32, l->filters)});
    sx_value y = sx_nn_conv2d(b, of_all[0], of_all[1], .padding = l->padding);
    y = sx_relu(b, sx_bias_add(b, y, of_all[2]));
    sx_gradients(b, sx_reduce_sum(b, sx_square(b, y)), of_all, 3, gradients);
    sx_output(b, "gradient", gradients[of]);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* A filter that is trained is packed in each execution, and both gradients are computed in tiles:
 * equal to the host's, and the same bits each time. */
static void test_backends_winograd__trains(void **state)
{
    (void)state;
    static const layer layers[] = {
        {28, 32, 48, .padding = SX_SAME, .kernel_name = "winograd 4x4"},
        {27, 48, 33, .padding = SX_VALID, .kernel_name = "winograd 4x4"},
        {14, 80, 64, .padding = SX_SAME, .kernel_name = "winograd 4x4"},
        {28, 12, 48, .padding = SX_SAME, .kernel_name = "onednn"},
    };
    static const char *const operators[] = {"conv2d_grad_input", "conv2d_grad_filter"};
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        for (int of = 0; of < 3; of++) {
            sx_graph *g = gradient_graph(&layers[i], of);
            char kernel[64];
            snprintf(kernel, sizeof(kernel), "%s %s", of < 2 ? operators[of] : "conv2d",
                     layers[i].kernel_name);
            run_options o = {"cpu", 1, EXAMPLES, 0, false, of < 2 ? kernel : NULL};
            int64_t n;
            equals_host(g, &o);
            o.kernel = NULL; /* shards of one or two images may be too few */
            o.threads = 3;
            equals_host(g, &o);
            float *one = run(g, &o, &n), *other = run(g, &o, &n);
            assert_memory_equal(one, other, (size_t)n * sizeof(float));
            sx_free(one);
            sx_free(other);
            sx_graph_destroy(g);
        }
    }
}

/* Ten layers: a whole network stays within 1e-5 of the exact sums. */
static void test_backends_winograd__a_deep_network_keeps_its_digits(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type filter = sx_type_of(SX_F32, 3, 3, 32, 32);
    sx_value y = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 24, 24, 32));
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        sx_value w = sx_variable(b, &(sx_variable_spec){.name = name, .type = filter});
        y = sx_relu(b, sx_nn_conv2d(b, y, w, .padding = SX_SAME));
    }
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    equals_host(g, &(run_options){.backend = "cpu", .threads = 1, .batch = 1, .frozen = true});
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_winograd__computes_convolutions),
    cmocka_unit_test(test_backends_winograd__is_chosen_where_it_is_fast),
    cmocka_unit_test(test_backends_winograd__trains),
    cmocka_unit_test(test_backends_winograd__a_deep_network_keeps_its_digits),
    cmocka_unit_test(test_backends_winograd__bits_depend_on_the_example_alone),
};
SX_TEST_MAIN(tests)
