/* Filters that several shards read are packed by one step for all of them (cpu/filters.c): to the
 * bits that each shard would make, whatever the threads. */
#include "example_run.h"

#include <sextant/ops.h>

#include "base/checked.h"

typedef struct layer {
    int size, channels, filters, kernel, stride;
    bool gradient;      /* of the image, not the convolution */
    const char *packed; /* the step that packs; NULL: there is none */
} layer;

static const layer layers[] = {
    {40, 32, 48, 3, 1, false, "filter for winograd 4x4"},
    {40, 32, 48, 3, 1, true, "filter for winograd 4x4"},
    {28, 48, 80, 3, 2, false, "filter onednn"},
    {28, 48, 80, 3, 2, true, "filter onednn"},
    {14, 96, 160, 1, 1, false, "filter onednn"},
    {14, 50, 70, 3, 2, false, "filter onednn"}, /* no whole blocks */
    {28, 3, 32, 3, 1, false, NULL},             /* small */
    {14, 96, 160, 1, 1, true, NULL},            /* a product by the filter as it lies there */
};

/* y = conv(x, w), or the gradient of sum(y * scale) with respect to x. */
static sx_graph *graph_of(const layer *l)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, l->size, l->size + 1, l->channels));
    const sx_type filter = sx_type_of(SX_F32, l->kernel, l->kernel, l->channels, l->filters);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = filter});
    sx_value y = sx_nn_conv2d(b, x, w, .padding = SX_SAME, .strides = {l->stride});
    if (l->gradient) {
        sx_value scale = sx_variable(
            b, &(sx_variable_spec){.name = "scale", .type = sx_type_of(SX_F32, l->filters)});
        sx_gradients(b, sx_reduce_sum(b, sx_mul(b, y, scale)), &x, 1, &y);
    }
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Shards of one example each: the bits of that example alone, which packs its filter itself. */
static void test_backends_filters__shared_ones_have_the_same_bits(void **state)
{
    (void)state;
    enum { SHARDS = 4 };
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        sx_graph *g = graph_of(&layers[i]);
        int64_t all, one;
        const run_options shared = {"cpu", SHARDS, SHARDS, .kernel = layers[i].packed};
        float *batch = run(g, &shared, &all);
        for (int64_t k = 0; k < SHARDS; k++) {
            float *single = run(g, &(run_options){"cpu", 1, 1, .first = k}, &one);
            assert_int_equal(one * SHARDS, all);
            assert_memory_equal(single, batch + k * one, (size_t)one * sizeof(float));
            sx_free(single);
        }
        sx_free(batch);
        sx_graph_destroy(g);
    }
}

/* Shards of two sizes may multiply a filter in two forms. */
static void test_backends_filters__fit_shards_of_two_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(layers); i++) {
        sx_graph *g = graph_of(&layers[i]);
        for (int threads = 2; threads <= 4; threads++) {
            equals_host(g, &(run_options){"cpu", threads, EXAMPLES, .kernel = layers[i].packed});
        }
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_filters__shared_ones_have_the_same_bits),
    cmocka_unit_test(test_backends_filters__fit_shards_of_two_sizes),
};
SX_TEST_MAIN(tests)
