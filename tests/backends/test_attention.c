/* The attention kernel of the cpu: the results of its parts, without the matrix of scores. */
#include "float_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"

typedef struct form {
    const char *name;
    int64_t heads, rows, keys, depth, width;
    int64_t mask[4]; /* its shape; the first 0: none */
    bool scaled, keys_by_depth, reshaped, masked_first;
    int attention; /* kernels that are */
} form;

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    const int64_t h = f->heads;
    assert_ok(sx_builder_create(&b));
    sx_value q = sx_input(b, "q", sx_type_of(SX_F32, SX_BATCH, h, f->rows, f->depth));
    sx_value k = sx_input(b, "k",
                          f->keys_by_depth ? sx_type_of(SX_F32, SX_BATCH, h, f->keys, f->depth)
                                           : sx_type_of(SX_F32, SX_BATCH, h, f->depth, f->keys));
    sx_value v = sx_input(b, "v", sx_type_of(SX_F32, SX_BATCH, h, f->keys, f->width));
    sx_value s = sx_matmul(b, q, k, .transpose_b = f->keys_by_depth);
    if (f->scaled) {
        s = sx_mul(b, s, sx_constant_f32(b, 0.3));
    }
    if (f->mask[0] != 0) {
        sx_value mask = sx_input(b, "mask", sx_type_make(SX_F32, 4, f->mask));
        s = f->masked_first ? sx_add(b, mask, s) : sx_add(b, s, mask);
    }
    if (f->reshaped) {
        s = sx_reshape(b, s, -h, f->rows, f->keys);
    }
    s = sx_softmax(b, s);
    if (f->reshaped) {
        s = sx_reshape(b, s, SX_BATCH, h, f->rows, f->keys);
    }
    sx_output(b, "y", sx_matmul(b, s, v));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

typedef struct numbers {
    const sx_graph *graph;
    uint32_t state;
} numbers;

/* In [-1, 1); of a mask a third is far below. */
static float number(void *user, int arg, int64_t k)
{
    numbers *n = user;
    (void)k;
    n->state = n->state * 1664525 + 1013904223;
    const float x = (float)(n->state >> 8) / (1 << 23) - 1;
    return strcmp(n->graph->args[arg].name, "mask") == 0 && x > 0.3F ? -1e9F : x;
}

/* y of the form on the platform; *out_kernels: those that are attention. */
static float *run(sx_platform *platform, const form *f, int64_t batch, int shards, int *out_kernels,
                  int64_t *out_bytes)
{
    sx_graph *g = graph_of(f);
    numbers n = {g, 11};
    float_run r = {.number = number,
                   .user = &n,
                   .batch = batch,
                   .shards = shards,
                   .kernel = out_kernels != NULL ? "attention" : NULL};
    float *y = run_floats(platform, g, &r);
    if (out_kernels != NULL) {
        *out_kernels = r.kernels;
        *out_bytes = r.temporary_bytes;
    }
    sx_graph_destroy(g);
    return y;
}

static const form forms[] = {
    {"plain", 2, 50, 60, 8, 12, {0}, false, false, false, false, 1},
    {"keys by depth", 2, 64, 64, 16, 16, {0}, false, true, false, false, 1},
    {"scaled", 3, 70, 45, 8, 8, {0}, true, false, false, false, 1},
    {"causal", 2, 48, 48, 8, 8, {1, 1, 48, 48}, true, false, false, false, 1},
    {"padded", 2, 48, 48, 8, 8, {SX_BATCH, 1, 1, 48}, false, false, false, true, 1},
    {"by row", 2, 48, 48, 8, 8, {1, 2, 48, 1}, false, false, false, false, 1},
    {"whole", 2, 48, 50, 8, 8, {SX_BATCH, 2, 48, 50}, true, true, false, true, 1},
    {"reshaped", 2, 48, 50, 8, 8, {1, 1, 48, 50}, false, false, true, false, 1},
    {"blocks", 1, 100, 700, 4, 4, {0}, true, false, false, false, 1},
    {"few", 2, 8, 9, 8, 8, {0}, false, false, false, false, 0},
};

static void test_backends_attention__equals_its_parts(void **state)
{
    (void)state;
    sx_platform *host, *cpu;
    assert_ok(sx_platform_open("host", &(sx_platform_options){0}, &host));
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 2}, &cpu));
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        const form *f = &forms[i];
        int kernels = 0;
        int64_t bytes = 0;
        float *a = run(host, f, 3, 0, NULL, NULL), *b = run(cpu, f, 3, 1, &kernels, &bytes);
        for (int64_t k = 0; k < 3 * f->heads * f->rows * f->width; k++) {
            if (!(fabsf(a[k] - b[k]) <= 3e-6F)) {
                fail_msg("%s: element %lld is %g, expected %g", f->name, (long long)k, (double)b[k],
                         (double)a[k]);
            }
        }
        if (kernels != f->attention) {
            fail_msg("%s: %d attention kernels, expected %d", f->name, kernels, f->attention);
        }
        sx_free(a);
        sx_free(b);
    }
    sx_platform_close(cpu);
    sx_platform_close(host);
}

/* The scores of 1,024 tokens are 4 MiB for each head, and are never whole. */
static void test_backends_attention__does_not_store_the_scores(void **state)
{
    (void)state;
    static const form f = {"long", 4, 1024, 1024, 4, 4, {0}, false, false, false, false, 1};
    sx_platform *cpu;
    int kernels;
    int64_t bytes;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &cpu));
    sx_free(run(cpu, &f, 1, 1, &kernels, &bytes));
    assert_int_equal(kernels, 1);
    assert_true(bytes < 1 << 20);
    sx_platform_close(cpu);
}

/* The same bits for two shards whatever runs them. */
static void test_backends_attention__threads_change_no_bit(void **state)
{
    (void)state;
    static const form f = {"shards", 2, 64, 64, 8, 8, {1, 1, 64, 64}, true, false, false, false, 1};
    float *y[2];
    for (int i = 0; i < 2; i++) {
        sx_platform *cpu;
        assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1 + i}, &cpu));
        y[i] = run(cpu, &f, 5, 2, NULL, NULL);
        sx_platform_close(cpu);
    }
    assert_memory_equal(y[0], y[1], 5 * 2 * 64 * 8 * sizeof(float));
    sx_free(y[0]);
    sx_free(y[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_attention__equals_its_parts),
    cmocka_unit_test(test_backends_attention__does_not_store_the_scores),
    cmocka_unit_test(test_backends_attention__threads_change_no_bit),
};
SX_TEST_MAIN(tests)
