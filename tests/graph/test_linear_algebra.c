/* The factors of matrices that are hard to factor: how far they are from their matrix, and from
 * orthogonal. Ordinary ones are compared with TensorFlow (interop/test_linear_algebra.py). */
#include "harness.h"

#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/host.h"

/* ---- Matrices ---- */

typedef enum kind {
    RANDOM,
    ZERO,
    UNIT,
    EQUAL_VALUES, /* two values, many times each */
    LOW_RANK,
    GRADED,
    CLUSTERED,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {"random",   "zero",   "unit",     "equal values",
                                              "low rank", "graded", "clustered"};

static double number(int64_t i, int64_t j)
{
    uint64_t x = (uint64_t)(i * 7919 + j) * 0x9e3779b97f4a7c15U + 12345;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-52 - 1;
}

static double element(kind k, int64_t i, int64_t j)
{
    double sum = 0;
    switch (k) {
    case ZERO:
        return 0;
    case UNIT:
        return i == j;
    case EQUAL_VALUES: /* 1 - 2 v vᵀ / |v|² of a vector with three numbers */
        return (i == j) - (i < 3 && j < 3 ? 2.0 * (double)((i + 1) * (j + 1)) / 14 : 0);
    case LOW_RANK:
        for (int64_t l = 0; l < 3; l++) {
            sum += number(l, i) * number(l, j);
        }
        return sum;
    case GRADED:
        return number(SX_MIN(i, j), SX_MAX(i, j)) * pow(10, -(double)(i + j) / 8);
    case CLUSTERED:
        return (i == j) + 1e-13 * number(SX_MIN(i, j), SX_MAX(i, j));
    default:
        return number(i, j);
    }
}

static double *matrix_of(kind k, int64_t m, int64_t n, double scale, bool symmetric)
{
    double *a = sx_alloc((size_t)(m * n) + 1, sizeof(*a));
    assert_non_null(a);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            a[i * n + j] = scale * (symmetric ? element(k, SX_MAX(i, j), SX_MIN(i, j)) / 2 +
                                                    element(k, SX_MIN(i, j), SX_MAX(i, j)) / 2
                                              : element(k, i, j));
        }
    }
    return a;
}

/* ---- Running ---- */

typedef struct run {
    sx_arena arena;
    sx_host_tensor in[2], out[SX_MAX_OUTPUTS];
} run;

/* A node of that operator whose bool attributes, in order, are these, on float64 matrices. */
static sx_status run_op(run *r, const sx_op_def *op, bool first, bool second, int n_in,
                        double *const *in, const int64_t (*dims)[2])
{
    _Alignas(8) unsigned char attrs[64] = {0};
    sx_type types[2], out_types[SX_MAX_OUTPUTS];
    int n_out = op->n_out;
    if (op->n_attrs > 0) {
        memcpy(attrs + op->attrs[0].offset, &first, sizeof(first));
    }
    if (op->n_attrs > 1) {
        memcpy(attrs + op->attrs[1].offset, &second, sizeof(second));
    }
    sx_arena_init(&r->arena, 0);
    for (int i = 0; i < n_in; i++) {
        types[i] = sx_type_of(SX_F64, dims[i][0], dims[i][1]);
        r->in[i] = (sx_host_tensor){.type = types[i], .data = in[i]};
    }
    assert_ok(sx_infer_types(op, attrs, types, n_in, out_types, &n_out));
    for (int i = 0; i < n_out; i++) {
        r->out[i].type = out_types[i];
        r->out[i].f = sx_arena_array(&r->arena, sx_type_elems(&out_types[i]) + 1, double);
        assert_non_null(r->out[i].f);
    }
    return sx_host_run_carried(op, attrs, r->in, n_in, r->out, n_out, &r->arena, true);
}

/* The greatest magnitude of x [m,k] diag(s) op(y) [k,n] - a; s, a: NULL for ones, for the unit
 * matrix. */
static double distance(const double *x, const double *s, const double *y, bool transposed,
                       int64_t m, int64_t k, int64_t n, const double *a)
{
    double most = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = a != NULL ? -a[i * n + j] : -(double)(i == j);
            for (int64_t l = 0; l < k; l++) {
                sum +=
                    x[i * k + l] * (s != NULL ? s[l] : 1) * y[transposed ? j * k + l : l * n + j];
            }
            most = fabs(sum) > most || isnan(sum) ? fabs(sum) : most;
        }
    }
    return most;
}

/* Of the columns of x [m,n] from being orthonormal. */
static double skew(const double *x, int64_t m, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = -(double)(i == j);
            for (int64_t l = 0; l < m; l++) {
                sum += x[l * n + i] * x[l * n + j];
            }
            most = fabs(sum) > most || isnan(sum) ? fabs(sum) : most;
        }
    }
    return most;
}

static void check(double error, double most, const char *what, kind k, int64_t m, int64_t n,
                  double scale)
{
    if (!(error <= most)) {
        fail_msg("%s of a %s matrix [%lld,%lld] of scale %g: %g, expected at most %g", what,
                 kind_names[k], (long long)m, (long long)n, scale, error, most);
    }
}

static const double scales[] = {1, 1e-30, 1e30, 1e-200, 1e200};

static void test_graph_linear_algebra__values_of_symmetric_matrices(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 16, 33, 70, 129};
    for (int z = 0; z < (int)SX_COUNT(sizes); z++) {
        const int64_t n = sizes[z];
        for (int k = 0; k < KINDS * (int)SX_COUNT(scales); k++) {
            const double scale = scales[k / KINDS], most = 1e-14 * (double)(n + 4);
            double *a = matrix_of(k % KINDS, n, n, scale, true);
            run r, values;
            assert_ok(run_op(&r, &sx_op_self_adjoint_eig, true, false, 1, &a, &(int64_t[2]){n, n}));
            assert_ok(
                run_op(&values, &sx_op_self_adjoint_eig, false, false, 1, &a, &(int64_t[2]){n, n}));
            const double *e = r.out[0].f, *v = r.out[1].f;
            check(distance(v, e, v, true, n, n, n, a) / scale, most, "v e vT", k % KINDS, n, n,
                  scale);
            check(skew(v, n, n), most, "vectors", k % KINDS, n, n, scale);
            for (int64_t i = 0; i < n; i++) {
                assert_true(i == 0 || e[i - 1] <= e[i]);
                check(fabs(e[i] - values.out[0].f[i]) / scale, most, "values alone", k % KINDS, n,
                      n, scale);
            }
            sx_arena_deinit(&r.arena);
            sx_arena_deinit(&values.arena);
            sx_free(a);
        }
    }
}

static const int64_t shapes[][2] = {{0, 0},   {0, 3},    {3, 0},   {1, 1},   {1, 5},
                                    {5, 1},   {2, 2},    {3, 3},   {16, 9},  {33, 33},
                                    {40, 70}, {129, 65}, {31, 64}, {100, 3}, {257, 129}};

static void test_graph_linear_algebra__singular_values(void **state)
{
    (void)state;
    for (int z = 0; z < (int)SX_COUNT(shapes); z++) {
        const int64_t m = shapes[z][0], n = shapes[z][1], p = SX_MIN(m, n);
        for (int k = 0; k < 2 * KINDS * (int)SX_COUNT(scales); k++) {
            const bool full = k % 2 == 1;
            const kind which = k / 2 % KINDS;
            const double scale = scales[k / 2 / KINDS], most = 1e-14 * (double)(m + n + 4);
            const int64_t of_u = full ? m : p, of_v = full ? n : p;
            double *a = matrix_of(which, m, n, scale, false);
            run r, values;
            assert_ok(run_op(&r, &sx_op_svd, true, full, 1, &a, &shapes[z]));
            assert_ok(run_op(&values, &sx_op_svd, false, full, 1, &a, &shapes[z]));
            const double *s = r.out[0].f, *u = r.out[1].f, *v = r.out[2].f;
            check(skew(u, m, of_u), most, "u", which, m, n, scale);
            check(skew(v, n, of_v), most, "v", which, m, n, scale);
            for (int64_t i = 0; i < p; i++) {
                assert_true(s[i] >= 0 && (i == 0 || s[i - 1] >= s[i]));
                check(fabs(s[i] - values.out[0].f[i]) / scale, most, "values alone", which, m, n,
                      scale);
            }
            double worst = 0;
            for (int64_t i = 0; i < m; i++) {
                for (int64_t j = 0; j < n; j++) {
                    double sum = -a[i * n + j];
                    for (int64_t l = 0; l < p; l++) {
                        sum += u[i * of_u + l] * s[l] * v[j * of_v + l];
                    }
                    worst = fabs(sum) > worst || isnan(sum) ? fabs(sum) : worst;
                }
            }
            check(worst / scale, most, "u s vT", which, m, n, scale);
            sx_arena_deinit(&r.arena);
            sx_arena_deinit(&values.arena);
            sx_free(a);
        }
    }
}

static void test_graph_linear_algebra__orthogonal_factors(void **state)
{
    (void)state;
    for (int z = 0; z < (int)SX_COUNT(shapes); z++) {
        const int64_t m = shapes[z][0], n = shapes[z][1];
        for (int k = 0; k < 2 * KINDS * (int)SX_COUNT(scales); k++) {
            const bool full = k % 2 == 1;
            const kind which = k / 2 % KINDS;
            const double scale = scales[k / 2 / KINDS], most = 1e-14 * (double)(m + n + 4);
            const int64_t p = full ? m : SX_MIN(m, n);
            double *a = matrix_of(which, m, n, scale, false);
            run r;
            assert_ok(run_op(&r, &sx_op_qr, full, false, 1, &a, &shapes[z]));
            check(skew(r.out[0].f, m, p), most, "q", which, m, n, scale);
            check(distance(r.out[0].f, NULL, r.out[1].f, false, m, p, n, a) / scale, most, "q r",
                  which, m, n, scale);
            for (int64_t i = 0; i < p; i++) {
                for (int64_t j = 0; j < SX_MIN(i, n); j++) {
                    assert_true(r.out[1].f[i * n + j] == 0);
                }
            }
            sx_arena_deinit(&r.arena);
            sx_free(a);
        }
    }
}

/* Inverses and solutions beside their matrix, and triangular factors. */
static void test_graph_linear_algebra__inverses_and_triangles(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 8, 9, 17, 64, 65, 130};
    for (int z = 0; z < (int)SX_COUNT(sizes); z++) {
        const int64_t n = sizes[z], dims[2][2] = {{n, n}, {n, 5}}, wide[2][2] = {{n, n}, {n, n}};
        const double most = 1e-13 * (double)(n + 4);
        for (int k = 0; k < 2 * (int)SX_COUNT(scales); k++) {
            const bool flag = k % 2 == 1;
            const double scale = scales[k / 2];
            double *a = matrix_of(RANDOM, n, n, scale, false);
            double *b = matrix_of(RANDOM, n, 5, 1, false), *in[2] = {a, b};
            for (int64_t i = 0; i < n; i++) {
                a[i * n + (i + 1) % n] += scale * (double)n; /* each pivot is in another row */
            }
            run r;
            double *turned = sx_alloc((size_t)(n * n) + 1, sizeof(*turned));
            assert_non_null(turned);
            for (int64_t i = 0; i < n * n; i++) {
                turned[i] = a[i % n * n + i / n];
            }
            const double *same = flag ? turned : a;
            assert_ok(run_op(&r, &sx_op_matrix_inverse, flag, false, 1, &a, dims));
            check(distance(same, NULL, r.out[0].f, false, n, n, n, NULL), most, "a inverse", RANDOM,
                  n, n, scale);
            sx_arena_deinit(&r.arena);
            assert_ok(run_op(&r, &sx_op_matrix_solve, flag, false, 2, in, dims));
            check(distance(same, NULL, r.out[0].f, false, n, n, 5, b), most, "a x", RANDOM, n, 5,
                  scale);
            sx_arena_deinit(&r.arena);
            /* aᵀ a + 1 = l lᵀ, and l^-1 l = 1 */
            for (int64_t i = 0; i < n; i++) {
                for (int64_t j = 0; j < n; j++) {
                    double sum = i == j;
                    for (int64_t l = 0; l < n; l++) {
                        sum += a[l * n + i] / scale * (a[l * n + j] / scale) / (double)(n * n);
                    }
                    turned[i * n + j] = sum * scale;
                }
            }
            assert_ok(run_op(&r, &sx_op_cholesky, false, false, 1, &turned, dims));
            double *l = r.out[0].f;
            check(distance(l, NULL, l, true, n, n, n, turned) / scale, most, "l lT", RANDOM, n, n,
                  scale);
            for (int lower = 0; lower < 2; lower++) { /* what is above the diagonal is not read */
                run solved;
                for (int64_t i = 0; i < n * n; i++) {
                    turned[i] = lower == 1 ? l[i] : l[i % n * n + i / n];
                }
                double *both[2] = {turned, a};
                assert_ok(run_op(&solved, &sx_op_matrix_triangular_solve, lower == 1, flag, 2, both,
                                 wide));
                const bool by_l = (lower == 1) != flag;
                double *product = sx_alloc((size_t)(n * n) + 1, sizeof(*product));
                assert_non_null(product);
                for (int64_t i = 0; i < n * n; i++) {
                    product[i] = by_l ? l[i] : l[i % n * n + i / n];
                }
                check(distance(product, NULL, solved.out[0].f, false, n, n, n, a) / scale, most,
                      "l x", RANDOM, n, n, scale);
                sx_free(product);
                sx_arena_deinit(&solved.arena);
            }
            sx_arena_deinit(&r.arena);
            sx_free(turned);
            sx_free(a);
            sx_free(b);
        }
    }
}

/* Matrices with NaN or infinity: every algorithm ends, and none of the results is a number. */
static void test_graph_linear_algebra__not_finite(void **state)
{
    (void)state;
    static const struct {
        const sx_op_def *op;
        bool flag;
    } rows[] = {{&sx_op_self_adjoint_eig, true},
                {&sx_op_svd, true},
                {&sx_op_qr, false},
                {&sx_op_cholesky, false},
                {&sx_op_matrix_square_root, false}};
    const int64_t n = 40, dims[1][2] = {{n, n}};
    for (int k = 0; k < 3 * (int)SX_COUNT(rows); k++) {
        double *a = matrix_of(RANDOM, n, n, 1, true);
        run r;
        a[0] = k % 3 == 0 ? NAN : k % 3 == 1 ? INFINITY : -INFINITY;
        assert_ok(run_op(&r, rows[k / 3].op, rows[k / 3].flag, false, 1, &a, dims));
        assert_true(!isfinite(r.out[0].f[0]));
        sx_arena_deinit(&r.arena);
        sx_free(a);
    }
}

/* A matrix's results are the same bits alone and among others. */
static void test_graph_linear_algebra__stacks(void **state)
{
    (void)state;
    static const sx_op_def *const ops[] = {&sx_op_self_adjoint_eig, &sx_op_svd, &sx_op_qr,
                                           &sx_op_matrix_inverse, &sx_op_cholesky};
    const int64_t n = 20, size = n * n, dims[1][2] = {{n, n}};
    double *all = sx_alloc((size_t)(3 * size), sizeof(*all));
    assert_non_null(all);
    for (int64_t k = 0; k < 3 * size; k++) {
        const int64_t i = k % size / n, j = k % n;
        all[k] = number(k / size, SX_MIN(i, j) * n + SX_MAX(i, j)) + (i == j ? (double)n : 0);
    }
    for (int o = 0; o < (int)SX_COUNT(ops); o++) {
        _Alignas(8) unsigned char attrs[64] = {0};
        const sx_type type = sx_type_of(SX_F64, 3, n, n);
        const sx_host_tensor in = {.type = type, .data = all};
        sx_host_tensor out[SX_MAX_OUTPUTS];
        sx_type types[SX_MAX_OUTPUTS];
        sx_arena arena;
        int n_out = ops[o]->n_out;
        sx_arena_init(&arena, 0);
        attrs[ops[o]->n_attrs > 0 ? ops[o]->attrs[0].offset : 0] =
            ops[o] == &sx_op_self_adjoint_eig || ops[o] == &sx_op_svd;
        assert_ok(sx_infer_types(ops[o], attrs, &type, 1, types, &n_out));
        for (int i = 0; i < n_out; i++) {
            out[i].type = types[i];
            out[i].f = sx_arena_array(&arena, sx_type_elems(&types[i]) + 1, double);
            assert_non_null(out[i].f);
        }
        assert_ok(sx_host_run_carried(ops[o], attrs, &in, 1, out, n_out, &arena, true));
        for (int64_t p = 0; p < 3; p++) {
            run r;
            double *one = all + p * size;
            assert_ok(run_op(&r, ops[o], attrs[0] != 0, false, 1, &one, dims));
            for (int i = 0; i < n_out; i++) {
                const int64_t own = sx_type_elems(&r.out[i].type);
                assert_memory_equal(out[i].f + p * own, r.out[i].f, (size_t)own * sizeof(double));
            }
            sx_arena_deinit(&r.arena);
        }
        sx_arena_deinit(&arena);
    }
    sx_free(all);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_linear_algebra__values_of_symmetric_matrices),
    cmocka_unit_test(test_graph_linear_algebra__singular_values),
    cmocka_unit_test(test_graph_linear_algebra__orthogonal_factors),
    cmocka_unit_test(test_graph_linear_algebra__inverses_and_triangles),
    cmocka_unit_test(test_graph_linear_algebra__not_finite),
    cmocka_unit_test(test_graph_linear_algebra__stacks),
};
SX_TEST_MAIN(tests)
