/* The attention kernel of the cpu: the results of its parts, without the matrix of scores. */
#include "float_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "graph/builder.h"

typedef struct form {
    const char *name;
    int64_t heads, rows, keys, depth, width;
    int64_t mask[4];      /* its shape; the first 0: none */
    int64_t condition[4]; /* likewise: of one that keeps scores */
    bool inverted;        /* one that leaves them out */
    bool scaled, keys_by_depth, reshaped, masked_first;
    int attention; /* kernels that are */
    bool moved;    /* operands and result are [n, tokens, heads, depth] */
} form;

static sx_value operand(sx_builder *b, const form *f, const char *name, int64_t tokens,
                        int64_t depth, bool columns)
{
    const int64_t h = f->heads;
    if (f->moved) {
        sx_value x = sx_input(b, name, sx_type_of(SX_F32, SX_BATCH, tokens, h, depth));
        return columns ? sx_transpose(b, x, 0, 2, 3, 1) : sx_transpose(b, x, 0, 2, 1, 3);
    }
    return sx_input(b, name,
                    columns ? sx_type_of(SX_F32, SX_BATCH, h, depth, tokens)
                            : sx_type_of(SX_F32, SX_BATCH, h, tokens, depth));
}

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    const int64_t h = f->heads;
    assert_ok(sx_builder_create(&b));
    sx_value q = operand(b, f, "q", f->rows, f->depth, false);
    sx_value k = operand(b, f, "k", f->keys, f->depth, !f->keys_by_depth);
    sx_value v = operand(b, f, "v", f->keys, f->width, false);
    sx_value s = sx_matmul(b, q, k, .transpose_b = f->keys_by_depth);
    if (f->scaled) {
        s = sx_mul(b, s, sx_constant_f32(b, 0.3));
    }
    if (f->mask[0] != 0) {
        sx_value mask = sx_input(b, "mask", sx_type_make(SX_F32, 4, f->mask));
        s = f->masked_first ? sx_add(b, mask, s) : sx_add(b, s, mask);
    }
    if (f->condition[0] != 0) {
        sx_value c = sx_input(b, "condition", sx_type_make(SX_F32, 4, f->condition));
        c = sx_greater(b, c, sx_constant_f32(b, 0));
        sx_value least = sx_constant_f32(b, -3e38);
        s = f->inverted ? sx_select(b, c, least, s) : sx_select(b, c, s, least);
    }
    if (f->reshaped) {
        s = sx_reshape(b, s, -h, f->rows, f->keys);
    }
    s = sx_softmax(b, s);
    if (f->reshaped) {
        s = sx_reshape(b, s, SX_BATCH, h, f->rows, f->keys);
    }
    s = sx_matmul(b, s, v);
    sx_output(b, "y", f->moved ? sx_transpose(b, s, 0, 2, 1, 3) : s);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

typedef struct numbers {
    const sx_graph *graph;
    uint32_t state;
    float least;
} numbers;

/* In [-1, 1); of a mask a third is far below: `least`. */
static float number(void *user, int arg, int64_t k)
{
    numbers *n = user;
    (void)k;
    n->state = n->state * 1664525 + 1013904223;
    const float x = (float)(n->state >> 8) / (1 << 23) - 1;
    return strcmp(n->graph->args[arg].name, "mask") == 0 && x > 0.3F ? n->least : x;
}

/* y of the form on the platform; *out_kernels: those that are attention. */
static float *run(sx_platform *platform, const form *f, int64_t batch, int shards, int *out_kernels,
                  int64_t *out_bytes)
{
    sx_graph *g = graph_of(f);
    numbers n = {g, 11, -1e9F};
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
    {"plain", 2, 50, 60, 8, 12, .attention = 1},
    {"keys by depth", 2, 64, 64, 16, 16, .keys_by_depth = true, .attention = 1},
    {"scaled", 3, 70, 45, 8, 8, .scaled = true, .attention = 1},
    {"causal", 2, 48, 48, 8, 8, .mask = {1, 1, 48, 48}, .scaled = true, .attention = 1},
    {"padded", 2, 48, 48, 8, 8, .mask = {SX_BATCH, 1, 1, 48}, .masked_first = true, .attention = 1},
    {"by row", 2, 48, 48, 8, 8, .mask = {1, 2, 48, 1}, .attention = 1},
    {"whole", 2, 48, 50, 8, 8, .mask = {SX_BATCH, 2, 48, 50}, .scaled = true, .keys_by_depth = true,
     .masked_first = true, .attention = 1},
    {"kept", 2, 48, 48, 8, 8, .condition = {1, 1, 48, 48}, .scaled = true, .attention = 1},
    {"kept by key", 2, 48, 50, 8, 8, .condition = {SX_BATCH, 1, 1, 50}, .attention = 1},
    {"left out by row", 2, 48, 50, 8, 8, .condition = {1, 2, 48, 1}, .inverted = true,
     .attention = 1},
    {"kept and added to", 2, 48, 50, 8, 8, .mask = {1, 2, 48, 50}, .condition = {1, 1, 48, 50},
     .reshaped = true, .attention = 1},
    {"reshaped", 2, 48, 50, 8, 8, .mask = {1, 1, 48, 50}, .reshaped = true, .attention = 1},
    {"blocks", 1, 100, 700, 4, 4, .scaled = true, .attention = 1},
    {"moved", 3, 50, 60, 8, 12, .scaled = true, .attention = 1, .moved = true},
    {"moved, keys by depth", 3, 60, 50, 8, 12, .mask = {1, 1, 60, 50}, .scaled = true,
     .keys_by_depth = true, .attention = 1, .moved = true},
    {"few", 2, 8, 9, 8, 8, .attention = 0},
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

/* Operands that transpositions bring into place are read where they lie. */
static void test_backends_attention__moves_nothing(void **state)
{
    (void)state;
    static const form f = {"moved",      3, 50, 60, 8, 12, .scaled = true, .attention = 1,
                           .moved = true};
    sx_graph *g = graph_of(&f);
    sx_platform *cpu;
    numbers n = {g, 11, -1e9F};
    float_run r = {.number = number, .user = &n, .batch = 2, .shards = 1, .kernel = "transpose"};
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &cpu));
    sx_free(run_floats(cpu, g, &r));
    assert_int_equal(r.kernels, 0);
    sx_platform_close(cpu);
    sx_graph_destroy(g);
}

/* The scores of 1,024 tokens are 4 MiB for each head, and are never whole. */
static void test_backends_attention__does_not_store_the_scores(void **state)
{
    (void)state;
    static const form f = {"long", 4, 1024, 1024, 4, 4, .attention = 1};
    sx_platform *cpu;
    int kernels;
    int64_t bytes;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &cpu));
    sx_free(run(cpu, &f, 1, 1, &kernels, &bytes));
    assert_int_equal(kernels, 1);
    assert_true(bytes < 1 << 20);
    sx_platform_close(cpu);
}

/* The same bits for two shards whatever runs them, and for one example that a team shares. */
static void test_backends_attention__threads_change_no_bit(void **state)
{
    (void)state;
    static const struct {
        form form;
        int64_t batch;
        int shards;
    } cases[] = {
        {{"shards", 2, 64, 64, 8, 8, .mask = {1, 1, 64, 64}, .scaled = true, .attention = 1}, 5, 2},
        {{"team", 5, 300, 200, 32, 24, .scaled = true, .keys_by_depth = true, .attention = 1},
         1,
         0},
        {{"moved", 5, 300, 200, 32, 24, .scaled = true, .keys_by_depth = true, .attention = 1,
          .moved = true},
         1,
         0},
    };
    enum { THREADS = 3 };
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        const form *f = &cases[i].form;
        const int64_t elems = cases[i].batch * f->heads * f->rows * f->width;
        float *y[THREADS];
        for (int t = 0; t < THREADS; t++) {
            sx_platform *cpu;
            assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1 + t}, &cpu));
            y[t] = run(cpu, f, cases[i].batch, cases[i].shards, NULL, NULL);
            sx_platform_close(cpu);
            assert_memory_equal(y[0], y[t], (size_t)elems * sizeof(float));
        }
        for (int t = 0; t < THREADS; t++) {
            sx_free(y[t]);
        }
    }
}

/* Where products may be of bfloat16: rounded with AMX, whatever the sizes are no multiples of; else
 * the bits of float32. */
static void test_backends_attention__in_bfloat16(void **state)
{
    (void)state;
    static const form wide[] = {
        {"even", 2, 64, 64, 32, 32, .scaled = false},
        {"odd", 3, 37, 61, 20, 24, .scaled = true},
        {"keys by depth", 2, 50, 45, 33, 17, .scaled = true, .keys_by_depth = true},
        {"masked", 2, 48, 50, 16, 16, .mask = {SX_BATCH, 1, 1, 50}, .scaled = true},
        {"kept", 2, 47, 47, 40, 16, .condition = {1, 1, 47, 47}, .scaled = true},
        {"blocks", 1, 100, 701, 64, 80, .scaled = true},
        {"moved", 3, 37, 60, 24, 20, .moved = true},
        {"moved, keys by depth", 3, 60, 37, 24, 20, .mask = {1, 1, 60, 37}, .keys_by_depth = true,
         .moved = true},
        {"a few numbers in a row", 2, 50, 60, 15, 32, .scaled = false},
    };
    enum { BATCH = 3, THREADS = 2, FEW = 16 };
    for (size_t i = 0; i < SX_COUNT(wide); i++) {
        const form *f = &wide[i];
        const bool rounds = sx_dnn_has_amx() && f->depth >= FEW;
        const size_t bytes = (size_t)(BATCH * f->heads * f->rows * f->width) * sizeof(float);
        sx_graph *g = graph_of(f);
        float *plain = NULL, *y[THREADS];
        for (int t = -1; t < THREADS; t++) {
            const sx_platform_options o = {
                .cpu = {.threads = SX_MAX(1 + t, 1), .bfloat16 = t >= 0}};
            numbers n = {g, 11, -INFINITY};
            float_run r = {.number = number,
                           .user = &n,
                           .batch = BATCH,
                           .shards = 1,
                           .frozen = true,
                           .kernel = t >= 0 && rounds ? "attention amx_bf16" : "attention"};
            sx_platform *cpu;
            assert_ok(sx_platform_open("cpu", &o, &cpu));
            *(t < 0 ? &plain : &y[t]) = run_floats(cpu, g, &r);
            assert_int_equal(r.kernels, 1);
            sx_platform_close(cpu);
        }
        for (size_t k = 0; k < bytes / sizeof(float); k++) {
            if (!(fabsf(plain[k] - y[0][k]) <= 0.01F)) {
                fail_msg("%s: element %zu is %g, expected %g", f->name, k, (double)y[0][k],
                         (double)plain[k]);
            }
        }
        assert_memory_equal(y[0], y[1], bytes);
        assert_int_equal(memcmp(y[0], plain, bytes) != 0, rounds);
        sx_free(plain);
        sx_free(y[0]);
        sx_free(y[1]);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_attention__equals_its_parts),
    cmocka_unit_test(test_backends_attention__moves_nothing),
    cmocka_unit_test(test_backends_attention__does_not_store_the_scores),
    cmocka_unit_test(test_backends_attention__threads_change_no_bit),
    cmocka_unit_test(test_backends_attention__in_bfloat16),
};
SX_TEST_MAIN(tests)
