/* The cpu's product that is added to a loop's state or another argument, in place if it may be, and
 * that sums in loops are those of one thread. */
#include "float_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

typedef struct form {
    const char *name;
    int64_t m, n, k;
    bool ta, tb, sum_first;
    bool vector;  /* the sum is [n] */
    bool negated; /* the sum is computed */
    bool read;    /* the product is read twice */
    int kernels;
} form;

static const form forms[] = {
    {"plain", 64, 48, 32, false, false, false, false, false, false, 1},
    {"sum first", 64, 48, 32, false, false, true, false, false, false, 1},
    {"gradient of a weight", 70, 33, 5, true, false, true, false, false, false, 1},
    {"gradient of an input", 70, 33, 5, false, true, true, false, false, false, 1},
    {"one row", 1, 3000, 7, false, false, true, false, false, false, 1},
    {"small", 8, 9, 3, false, false, true, false, false, false, 0},
    {"a bias", 64, 48, 32, false, false, true, true, false, false, 0},
    {"a computed sum", 64, 48, 32, false, false, true, false, true, false, 0},
    {"read twice", 64, 48, 32, false, false, true, false, false, true, 0},
};

/* (sum, a, b) -> sum + a b */
static sx_value build(sx_builder *b, const form *f, const sx_value *in)
{
    sx_value sum = f->negated ? sx_neg(b, in[0]) : in[0];
    sx_value y = sx_matmul(b, in[1], in[2], .transpose_a = f->ta, .transpose_b = f->tb);
    if (f->read) {
        sum = sx_mul(b, sum, y);
    }
    return f->sum_first ? sx_add(b, sum, y) : sx_add(b, y, sum);
}

static void types_of(const form *f, sx_type *out)
{
    out[0] = f->vector ? sx_type_of(SX_F32, f->n) : sx_type_of(SX_F32, f->m, f->n);
    out[1] = f->ta ? sx_type_of(SX_F32, f->k, f->m) : sx_type_of(SX_F32, f->m, f->k);
    out[2] = f->tb ? sx_type_of(SX_F32, f->n, f->k) : sx_type_of(SX_F32, f->k, f->n);
}

static sx_graph *plain_graph(const form *f)
{
    static const char *const names[] = {"sum", "a", "b"};
    sx_type types[3];
    sx_value in[3];
    sx_builder *b;
    sx_graph *g;
    types_of(f, types);
    assert_ok(sx_builder_create(&b));
    for (int i = 0; i < 3; i++) {
        in[i] = sx_input(b, names[i], types[i]);
    }
    sx_output(b, "y", build(b, f, in));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The same three times, in a loop whose state the sum is; `beside`: and once outside of it, so that
 * there is work for a team. */
static sx_graph *loop_graph(const form *f, bool beside)
{
    static const char *const names[] = {"i", "sum", "a", "b"};
    sx_type types[4] = {sx_scalar_type(SX_I32)};
    sx_value in[4];
    sx_graph *regions[2], *g;
    sx_builder *b;
    types_of(f, types + 1);
    for (int r = 0; r < 3; r++) {
        assert_ok(sx_builder_create(&b));
        for (int i = r < 2 ? 0 : 1; i < 4; i++) {
            in[i] = sx_input(b, names[i], types[i]);
        }
        const int32_t number = r == 0 ? 3 : r == 1 ? 1 : 0;
        sx_value n = sx_constant(b, (sx_tensor){types[0], (void *)&number});
        if (r == 0) {
            sx_output(b, "go", sx_build_op(b, less, NULL, in[0], n));
        } else if (r == 1) {
            sx_output(b, "i", sx_build_op(b, add, NULL, in[0], n));
            sx_output(b, "sum", build(b, f, in + 1));
        } else {
            const sx_while_attrs attrs = {.condition = regions[0], .body = regions[1], .trips = 3};
            in[0] = n;
            sx_output(b, "y", sx_output_at(sx_build(b, &sx_op_while, &attrs, in, 4), 1));
            if (beside) {
                sx_output(b, "z",
                          sx_matmul(b, in[2], in[3], .transpose_a = f->ta, .transpose_b = f->tb));
            }
        }
        assert_ok(sx_builder_finish(b, r < 2 ? &regions[r] : &g));
        sx_builder_destroy(b);
    }
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return g;
}

static float number(void *user, int arg, int64_t k)
{
    (void)user;
    return (float)((k * 7 + arg * 3) % 17 - 8) / 8;
}

/* `kernels` that add a product; -1: of a loop, whose kernels are not counted. */
static void compare(sx_platform *host, sx_platform *cpu, const form *f, const sx_graph *g,
                    int kernels)
{
    float_run plain = {.number = number, .batch = 1}, found = plain;
    found.kernel = kernels >= 0 ? "matmul add" : NULL;
    float *a = run_floats(host, g, &plain), *b = run_floats(cpu, g, &found);
    for (int64_t k = 0; k < f->m * f->n; k++) {
        if (!(fabsf(a[k] - b[k]) <= 1e-5F * (float)f->k)) {
            fail_msg("%s: element %lld is %g, expected %g", f->name, (long long)k, (double)b[k],
                     (double)a[k]);
        }
    }
    if (kernels >= 0 && found.kernels != kernels) {
        fail_msg("%s: %d kernels that add a product, expected %d", f->name, found.kernels, kernels);
    }
    sx_free(a);
    sx_free(b);
}

static void test_backends_matmul_add__equals_its_parts(void **state)
{
    (void)state;
    sx_platform *host, *cpu;
    assert_ok(sx_platform_open("host", &(sx_platform_options){0}, &host));
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &cpu));
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        sx_graph *g = plain_graph(&forms[i]);
        compare(host, cpu, &forms[i], g, forms[i].kernels);
        sx_graph_destroy(g);
        if (forms[i].vector || forms[i].read) {
            continue;
        }
        g = loop_graph(&forms[i], false);
        compare(host, cpu, &forms[i], g, -1);
        sx_graph_destroy(g);
    }
    sx_platform_close(cpu);
    sx_platform_close(host);
}

/* Sums so long, of so few, that GEMM would divide them among its threads; one column or row that
 * must not be left to a thread alone; and sizes that GEMM adds up in another order when it is given
 * a part. */
static const form long_sums[] = {
    {"columns", 9, 65, 32768, false, false, true, false, false, false, 1},
    {"rows", 65, 9, 32768, false, false, true, false, false, false, 1},
    {"gradient of a weight", 65, 40, 32768, true, false, true, false, false, false, 1},
    {"no sum in place", 9, 65, 32768, false, false, false, false, false, true, 0},
    {"no sum in place, rows", 65, 40, 32768, false, false, false, false, false, true, 0},
    {"square", 1100, 1100, 1100, false, false, false, false, false, true, 0},
    {"square, transposed", 1100, 1100, 1100, true, true, true, false, false, false, 1},
    {"tall", 1000, 300, 100, false, false, false, false, false, true, 0},
};

static float rounded_number(void *user, int arg, int64_t k)
{
    (void)user;
    return sinf((float)(k % 10007) * 1.7F + (float)arg);
}

/* x (a b): a product of variables, which workers divide beside their shards of x. */
static sx_graph *shared_product(int64_t m, int64_t k, int64_t n)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, m)),
                   w = sx_input(b, "a", sx_type_of(SX_F32, m, k)),
                   v = sx_input(b, "b", sx_type_of(SX_F32, k, n));
    sx_output(b, "y", sx_matmul(b, x, sx_matmul(b, w, v)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void expect_same_bits(sx_platform *const *platforms, int n, const sx_graph *g, float_run how,
                             const char *name)
{
    float *one = NULL;
    for (int t = 0; t < n; t++) {
        float_run run = how;
        float *y = run_floats(platforms[t], g, &run);
        if (t > 0 && memcmp(one, y, (size_t)run.elems * sizeof(float)) != 0) {
            fail_msg("%s: %d threads give other bits than one", name, t + 1);
        }
        sx_free(t > 0 ? y : NULL);
        one = t > 0 ? one : y;
    }
    sx_free(one);
}

static void test_backends_matmul_add__threads_do_not_change_bits(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    sx_platform *platforms[THREADS];
    for (int t = 0; t < THREADS; t++) {
        const sx_platform_options options = {.cpu.threads = t + 1};
        assert_ok(sx_platform_open("cpu", &options, &platforms[t]));
    }
    for (size_t i = 0; i < 2 * SX_COUNT(long_sums); i++) {
        const form *f = &long_sums[i / 2];
        sx_graph *g = i % 2 == 0 ? plain_graph(f) : loop_graph(f, true);
        expect_same_bits(platforms, THREADS, g, (float_run){.number = rounded_number, .batch = 1},
                         f->name);
        sx_graph_destroy(g);
    }
    static const int64_t products[][3] = {{1100, 1100, 1100}, {200, 5, 640}, {1000, 100, 300}};
    for (size_t i = 0; i < SX_COUNT(products); i++) {
        sx_graph *g = shared_product(products[i][0], products[i][1], products[i][2]);
        expect_same_bits(platforms, THREADS, g,
                         (float_run){.number = rounded_number, .batch = 4, .shards = 2},
                         "a product of variables");
        sx_graph_destroy(g);
    }
    for (int t = 0; t < THREADS; t++) {
        sx_platform_close(platforms[t]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_matmul_add__threads_do_not_change_bits),
    cmocka_unit_test(test_backends_matmul_add__equals_its_parts),
};
SX_TEST_MAIN(tests)
