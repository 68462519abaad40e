/* The norm kernel of the cpu: layer, group, instance and RMS norm in the forms that are written,
 * and what only looks like them. */
#include "float_run.h"

#include <math.h>
#include <stdlib.h>

#include <sextant/ops.h>

#include "backends/cpu/vec/vec.h"
#include "base/checked.h"
#include "graph/builder.h"

typedef enum writing {
    KERAS_3,   /* x F + (beta + -mean F) */
    NN,        /* x F + (beta - mean F): tf.nn.batch_normalization */
    BY_DIV,    /* (x - mean) / sqrt(...) gamma + beta; variance of x - mean */
    BY_RSQRT,  /* beta + gamma ((x - mean) rsqrt(...)) */
    RMS,       /* (x rsqrt(...)) gamma */
    RMS_FACTOR /* x (gamma rsqrt(...)) */
} writing;

enum spoil {
    SOUND,
    MEAN_READ,    /* another result reads the mean */
    OTHER_AXES,   /* the variance is over others */
    OTHER_COUNT,  /* the sum is divided by another number */
    OTHER_X,      /* the variance is another value's */
    OTHER_FACTOR, /* mean and x are multiplied by different factors */
    NOT_SCALAR,   /* epsilon is a vector */
    NOT_ZEROS     /* ones are added before the scale */
};

typedef struct form {
    const char *name;
    writing writing;
    int64_t dims[4]; /* behind the batch */
    int rank;        /* of dims */
    int axes[3];
    int n_axes;
    int64_t vector[4]; /* of gamma and beta */
    int vector_rank;   /* 0: neither */
    bool no_gamma, no_beta, reshaped, relu;
    bool filled; /* reshaped, times ones plus zeros, reshaped */
    enum spoil spoil;
    int norms; /* kernels that are */
} form;

#define COUNT(...)  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
#define DIMS(...)   .dims = {__VA_ARGS__}, .rank = COUNT(__VA_ARGS__)
#define AXES(...)   .axes = {__VA_ARGS__}, .n_axes = COUNT(__VA_ARGS__)
#define VECTOR(...) .vector = {__VA_ARGS__}, .vector_rank = COUNT(__VA_ARGS__)
#define LAST(d)     DIMS(d), AXES(1), VECTOR(d)

static const form forms[] = {
    {.name = "Keras 3", .writing = KERAS_3, LAST(64), .norms = 1},
    {.name = "one column", .writing = KERAS_3, LAST(1), .norms = 1},
    {.name = "3 columns", .writing = KERAS_3, LAST(3), .norms = 1},
    {.name = "17 columns", .writing = KERAS_3, LAST(17), .norms = 1},
    {.name = "33 columns", .writing = BY_DIV, LAST(33), .norms = 1},
    {.name = "257 columns", .writing = NN, LAST(257), .norms = 1},
    {.name = "8207 columns", .writing = KERAS_3, LAST(8207), .norms = 1},
    {.name = "no offset", .writing = KERAS_3, LAST(40), .no_beta = true, .norms = 1},
    {.name = "no scale", .writing = KERAS_3, LAST(40), .no_gamma = true, .norms = 1},
    {.name = "neither", .writing = KERAS_3, DIMS(40), AXES(1), .norms = 1},
    {.name = "nn", .writing = NN, LAST(31), .norms = 1},
    {.name = "nn without scale", .writing = NN, LAST(31), .no_gamma = true, .norms = 1},
    {.name = "by division", .writing = BY_DIV, LAST(31), .norms = 1},
    {.name = "by division, neither", .writing = BY_DIV, DIMS(9), AXES(1), .norms = 1},
    {.name = "by rsqrt", .writing = BY_RSQRT, LAST(31), .norms = 1},
    {.name = "by rsqrt, reshaped", .writing = BY_RSQRT, LAST(32), .reshaped = true, .norms = 1},
    {.name = "by rsqrt, filled",
     .writing = BY_RSQRT,
     LAST(32),
     .reshaped = true,
     .filled = true,
     .norms = 1},
    {.name = "by rsqrt, ones added",
     .writing = BY_RSQRT,
     LAST(32),
     .reshaped = true,
     .filled = true,
     .spoil = NOT_ZEROS,
     .norms = 1},
    {.name = "behind it relu", .writing = KERAS_3, LAST(31), .relu = true, .norms = 1},
    {.name = "two axes", .writing = KERAS_3, DIMS(5, 6, 7), AXES(2, 3), VECTOR(6, 7), .norms = 1},
    {.name = "group",
     .writing = KERAS_3,
     DIMS(5, 6, 4, 3),
     AXES(1, 2, 4),
     VECTOR(1, 1, 4, 3),
     .norms = 1},
    {.name = "wide group",
     .writing = NN,
     DIMS(3, 70, 2, 40),
     AXES(1, 2, 4),
     VECTOR(2, 40),
     .norms = 1},
    {.name = "group of all", .writing = KERAS_3, DIMS(5, 6, 1, 12), AXES(1, 2, 4), .norms = 1},
    {.name = "instance",
     .writing = KERAS_3,
     DIMS(5, 6, 12, 1),
     AXES(1, 2, 4),
     VECTOR(1, 1, 12, 1),
     .norms = 1},
    {.name = "instance, no scale",
     .writing = BY_RSQRT,
     DIMS(9, 13),
     AXES(1),
     VECTOR(13),
     .no_gamma = true,
     .norms = 1},
    {.name = "RMS", .writing = RMS, LAST(31), .no_beta = true, .norms = 1},
    {.name = "RMS with offset", .writing = RMS, LAST(31), .norms = 1},
    {.name = "RMS, no scale",
     .writing = RMS,
     LAST(64),
     .no_gamma = true,
     .no_beta = true,
     .norms = 1},
    {.name = "RMS by factor", .writing = RMS_FACTOR, LAST(64), .no_beta = true, .norms = 1},
    {.name = "no rows", .writing = KERAS_3, DIMS(0, 8), AXES(2), VECTOR(8)},
    {.name = "RMS of columns", .writing = RMS, DIMS(6, 5), AXES(1)},
    {.name = "a scale by row", .writing = BY_DIV, DIMS(6, 5), AXES(2), VECTOR(6, 1), .norms = 1},
    {.name = "a scale by row in the factor", .writing = KERAS_3, DIMS(6, 5), AXES(2), VECTOR(6, 1)},
    {.name = "a scalar scale", .writing = KERAS_3, DIMS(6, 5), AXES(2), VECTOR(1)},
    {.name = "as many rows as columns",
     .writing = BY_DIV,
     DIMS(6, 6),
     AXES(2),
     VECTOR(6, 1),
     .norms = 1},
    {.name = "three kinds of axes", .writing = KERAS_3, DIMS(2, 3, 4, 5), AXES(1, 3)},
    {.name = "mean read", .writing = KERAS_3, LAST(8), .spoil = MEAN_READ},
    {.name = "other axes", .writing = BY_DIV, DIMS(6, 6), AXES(2), .spoil = OTHER_AXES},
    {.name = "other count", .writing = KERAS_3, LAST(8), .spoil = OTHER_COUNT},
    {.name = "other x", .writing = KERAS_3, LAST(8), .spoil = OTHER_X},
    {.name = "other factor", .writing = KERAS_3, LAST(8), .spoil = OTHER_FACTOR},
    {.name = "epsilon for each column",
     .writing = BY_DIV,
     DIMS(6, 5),
     AXES(1),
     .spoil = NOT_SCALAR},
};

/* ---- Graphs ---- */

static sx_value mean_over(sx_builder *b, sx_value x, const int *axes, int n, double count)
{
    sx_axes over = {.n = n};
    memcpy(over.v, axes, (size_t)n * sizeof(axes[0]));
    const sx_value sum = sx_reduce_sum(b, x, .axes = over, .keep_dims = true);
    return sx_div(b, sum, sx_constant_f32(b, count));
}

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    double count = 1;
    int64_t dims[5] = {SX_BATCH, f->dims[0], f->dims[1], f->dims[2], f->dims[3]};
    assert_ok(sx_builder_create(&b));
    const bool gamma = f->vector_rank > 0 && !f->no_gamma, beta = f->vector_rank > 0 && !f->no_beta;
    const sx_type vector = sx_type_make(SX_F32, f->vector_rank, f->vector);
    sx_value x = sx_input(b, "x", sx_type_make(SX_F32, 1 + f->rank, dims));
    sx_value g_ = gamma ? sx_input(b, "gamma", vector) : x;
    sx_value b_ = beta ? sx_input(b, "beta", vector) : x;
    for (int i = 0; i < f->n_axes; i++) {
        count *= (double)f->dims[f->axes[i] - 1];
    }
    const bool rms = f->writing == RMS || f->writing == RMS_FACTOR;
    sx_value mean = mean_over(b, x, f->axes, f->n_axes, count + (f->spoil == OTHER_COUNT));
    sx_value other = f->spoil == OTHER_X ? sx_tanh(b, x) : x;
    sx_value centered = sx_sub(b, x, mean);
    sx_value square = rms ? sx_square(b, x)
                      : f->writing == BY_DIV || f->writing == BY_RSQRT
                          ? sx_mul(b, centered, centered)
                          : sx_squared_difference(b, other, mean);
    const int others[] = {f->axes[0] - 1};
    sx_value variance = f->spoil == OTHER_AXES ? mean_over(b, square, others, 1, 6)
                                               : mean_over(b, square, f->axes, f->n_axes, count);
    sx_value epsilon = sx_constant_f32(b, 1e-3);
    if (f->spoil == NOT_SCALAR) {
        epsilon = sx_input(b, "epsilon", sx_type_of(SX_F32, f->dims[1]));
    }
    sx_value sum = sx_add(b, variance, epsilon), y;
    if (f->writing == BY_DIV || f->writing == BY_RSQRT || f->writing == RMS) {
        y = f->writing == BY_DIV ? sx_div(b, centered, sx_sqrt(b, sum))
                                 : sx_mul(b, rms ? x : centered, sx_rsqrt(b, sum));
        if (f->reshaped) {
            y = sx_reshape(b, y, -1, 2, f->dims[0] / 2);
            if (f->filled) {
                sx_value ones = sx_broadcast_to(b, sx_constant_f32(b, 1), SX_BATCH, 2);
                sx_value zeros =
                    sx_broadcast_to(b, sx_constant_f32(b, f->spoil == NOT_ZEROS), SX_BATCH, 2, 1);
                y = sx_mul(b, y, sx_reshape(b, ones, SX_BATCH, 2, 1));
                y = sx_add(b, y, zeros);
            }
            y = sx_reshape(b, y, SX_BATCH, f->dims[0]);
        }
        y = gamma ? f->writing == BY_RSQRT ? sx_mul(b, g_, y) : sx_mul(b, y, g_) : y;
        y = beta ? f->writing == BY_RSQRT ? sx_add(b, b_, y) : sx_add(b, y, b_) : y;
    } else {
        sx_value s = sx_rsqrt(b, sum);
        sx_value factor = gamma ? sx_mul(b, s, g_) : s;
        sx_value second = f->spoil == OTHER_FACTOR ? s : factor;
        y = sx_mul(b, x, factor);
        if (f->writing == NN) {
            sx_value scaled = sx_mul(b, mean, factor);
            y = sx_add(b, y, beta ? sx_sub(b, b_, scaled) : sx_neg(b, scaled));
        } else if (f->writing == KERAS_3) {
            sx_value scaled = sx_mul(b, sx_neg(b, mean), second);
            y = sx_add(b, y, beta ? sx_add(b, b_, scaled) : scaled);
        }
    }
    sx_output(b, "y", f->relu ? sx_relu(b, y) : y);
    if (f->spoil == MEAN_READ) {
        sx_output(b, "mean", mean);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* ---- Runs ---- */

typedef float number_fn(int64_t i);

static float number(int64_t i)
{
    const uint32_t word = (uint32_t)(i + 1) * 2654435761U;
    return (float)((word ^ word >> 15) % 4001) / 1000 - 2;
}

static float far(int64_t i)
{
    return 20000 + number(i);
}

/* Rows of 64: NaN in one, infinities in two. */
static float bad(int64_t i)
{
    return i == 70 ? NAN : i == 130 ? INFINITY : i == 195 ? -INFINITY : number(i);
}

/* x by the function; gamma, beta and epsilon are not negative. */
static float number_of(void *fn, int arg, int64_t k)
{
    return arg == 0 ? (*(number_fn *const *)fn)(k) : fabsf(number(k + 100 * arg));
}

/* y on the platform; *out_norms: kernels that are norms. */
static float *run(sx_platform *platform, const form *f, int64_t batch, int shards, number_fn *fn,
                  int *out_norms, int64_t *out_elems)
{
    sx_graph *g = graph_of(f);
    float_run r = {.number = number_of,
                   .user = &fn,
                   .batch = batch,
                   .shards = shards,
                   .kernel = out_norms != NULL ? "norm" : NULL};
    float *y = run_floats(platform, g, &r);
    *out_elems = r.elems;
    if (out_norms != NULL) {
        *out_norms = r.kernels;
    }
    sx_graph_destroy(g);
    return y;
}

static sx_platform *open_cpu(int threads)
{
    sx_platform *cpu;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = threads}, &cpu));
    return cpu;
}

static void equals_host(const char *vec)
{
    sx_platform *host, *cpu = open_cpu(2);
    assert_ok(sx_platform_open("host", &(sx_platform_options){0}, &host));
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        const form *f = &forms[i];
        for (int64_t batch = 1; batch <= 5; batch += 4) {
            int norms = 0;
            int64_t n;
            float *a = run(host, f, batch, 0, number, NULL, &n);
            float *b = run(cpu, f, batch, 1, number, &norms, &n);
            for (int64_t k = 0; k < n; k++) {
                if (!(fabsf(a[k] - b[k]) <= 4e-6F * (1 + fabsf(a[k])))) {
                    fail_msg("%s, %s: element %lld is %g, expected %g", vec, f->name, (long long)k,
                             (double)b[k], (double)a[k]);
                }
            }
            if (norms != f->norms) {
                fail_msg("%s: %d norm kernels, expected %d", f->name, norms, f->norms);
            }
            sx_free(a);
            sx_free(b);
        }
    }
    sx_platform_close(cpu);
    sx_platform_close(host);
}

static void test_backends_norm__equals_its_parts(void **state)
{
    (void)state;
    static const char *const names[] = {"base", "v3", "v4"};
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        setenv("SEXTANT_CPU_VEC", names[i], 1);
        equals_host(sx_cpu_vec_best()->name);
        unsetenv("SEXTANT_CPU_VEC");
    }
}

/* A mean of 20000 beside a deviation of 1: x F - mean F would lose three digits. */
static void test_backends_norm__keeps_the_digits_of_a_large_mean(void **state)
{
    (void)state;
    static const form f = {.writing = KERAS_3, DIMS(300), AXES(1), .norms = 1};
    sx_platform *cpu = open_cpu(1);
    int norms;
    int64_t n;
    float *y = run(cpu, &f, 3, 1, far, &norms, &n);
    for (int64_t row = 0; row < 3; row++) {
        double mean = 0, square = 0;
        for (int64_t k = 0; k < 300; k++) {
            mean += (double)far(row * 300 + k) / 300;
        }
        for (int64_t k = 0; k < 300; k++) {
            const double d = (double)far(row * 300 + k) - mean;
            square += d * d / 300;
        }
        for (int64_t k = 0; k < 300; k++) {
            const double expected = ((double)far(row * 300 + k) - mean) / sqrt(square + 1e-3);
            assert_true(fabs((double)y[row * 300 + k] - expected) < 1e-5);
        }
    }
    sx_free(y);
    sx_platform_close(cpu);
}

static void test_backends_norm__nan_and_infinity_stay_in_their_rows(void **state)
{
    (void)state;
    static const form rows[] = {{.writing = KERAS_3, LAST(64)},
                                {.writing = BY_DIV, LAST(64)},
                                {.writing = RMS, LAST(64), .no_beta = true}};
    sx_platform *host, *cpu = open_cpu(1);
    assert_ok(sx_platform_open("host", &(sx_platform_options){0}, &host));
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        int norms;
        int64_t n;
        float *a = run(host, &rows[i], 5, 0, bad, NULL, &n);
        float *b = run(cpu, &rows[i], 5, 1, bad, &norms, &n);
        assert_int_equal(norms, 1);
        for (int64_t k = 0; k < n; k++) {
            assert_true(isnan(a[k]) ? isnan(b[k]) : fabsf(a[k] - b[k]) <= 1e-5F);
        }
        sx_free(a);
        sx_free(b);
    }
    sx_platform_close(cpu);
    sx_platform_close(host);
}

/* One stage that all workers share, and two shards, whatever runs them. */
static void test_backends_norm__threads_change_no_bit(void **state)
{
    (void)state;
    static const form rows[] = {
        {.writing = KERAS_3, LAST(1001)},
        {.writing = KERAS_3, DIMS(40, 4, 20), AXES(1, 3)},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        for (int shards = 1; shards <= 2; shards++) {
            float *y[3];
            int64_t n;
            for (int t = 0; t < 3; t++) {
                sx_platform *cpu = open_cpu(1 + t);
                y[t] = run(cpu, &rows[i], 67, shards, number, NULL, &n);
                sx_platform_close(cpu);
            }
            assert_memory_equal(y[0], y[1], (size_t)n * sizeof(float));
            assert_memory_equal(y[0], y[2], (size_t)n * sizeof(float));
            for (int t = 0; t < 3; t++) {
                sx_free(y[t]);
            }
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_norm__equals_its_parts),
    cmocka_unit_test(test_backends_norm__keeps_the_digits_of_a_large_mean),
    cmocka_unit_test(test_backends_norm__nan_and_infinity_stay_in_their_rows),
    cmocka_unit_test(test_backends_norm__threads_change_no_bit),
};
SX_TEST_MAIN(tests)
