/* Host kernels of elementwise rows (elementwise.h): the words in C, for each carrier. */
#include "graph/elementwise.h"

#include <math.h>

#include "base/half.h"
#include "graph/ops/common.h"

sx_status sx_row_check(const sx_row_loops *loops, sx_dtype dtype, const void *y, int64_t n)
{
    const int64_t *numbers = y;
    const bool of_zeros = loops->refuses == SX_REFUSES_ZERO; /* the same bits if unsigned */
    bool found = false;
    if (loops->refuses == SX_REFUSES_NOTHING || sx_dtype_is_float(dtype) ||
        (!of_zeros && sx_carrier_of(dtype) == SX_CARRIER_U)) {
        return SX_OK;
    }
    for (int64_t k = 0; k < n; k++) {
        found |= of_zeros ? numbers[k] == 0 : numbers[k] < 0;
    }
    return !found     ? SX_OK
           : of_zeros ? sx_error(SX_INVALID_ARGUMENT, "integer division by zero")
                      : sx_error(SX_INVALID_ARGUMENT, "an integer to a negative power");
}

sx_row_loop *sx_row_loop_of(const sx_row_loops *loops, sx_dtype dtype)
{
    switch (sx_carrier_of(dtype)) {
    case SX_CARRIER_F:
        return loops->f;
    case SX_CARRIER_I:
        return loops->i;
    case SX_CARRIER_U:
        return loops->u;
    default:
        return loops->b;
    }
}

static sx_status run_row(const sx_kernel_call *c, const sx_row_loops *loops)
{
    const sx_host_tensor *x = &c->in[0], *y = &c->in[c->n_in - 1], *z = &c->out[0];
    sx_row_loop *loop = sx_row_loop_of(loops, x->type.dtype);
    if (sx_type_elems(&z->type) > 0) {
        SX_TRY(sx_row_check(loops, y->type.dtype, y->data, sx_type_elems(&y->type)));
    }
    if (sx_same_dims(&x->type, &z->type) && sx_same_dims(&y->type, &z->type)) {
        loop(x->data, 1, y->data, 1, z->data, sx_type_elems(&z->type));
        return SX_OK;
    }
    /* Row after row of the last dimension. */
    const size_t in_bytes = sx_carrier_bytes(x->type.dtype),
                 out_bytes = sx_carrier_bytes(z->type.dtype);
    int64_t n = z->type.rank == 0 ? 1 : z->type.dims[z->type.rank - 1];
    int64_t total = sx_type_elems(&z->type);
    bool x_moves = x->type.rank > 0 && x->type.dims[x->type.rank - 1] != 1;
    bool y_moves = y->type.rank > 0 && y->type.dims[y->type.rank - 1] != 1;
    for (int64_t at = 0; at < total; at += n) {
        int64_t x_at = sx_broadcast_offset(&z->type, &x->type, at);
        int64_t y_at = sx_broadcast_offset(&z->type, &y->type, at);
        loop((const char *)x->data + (size_t)x_at * in_bytes, x_moves,
             (const char *)y->data + (size_t)y_at * in_bytes, y_moves,
             (char *)z->data + (size_t)at * out_bytes, n);
    }
    return SX_OK;
}

/* With the sign of y; fmod is exact. */
static double floor_mod(double x, double y)
{
    const double m = fmod(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

/* The least number divided by -1 is itself, modulo 2^64. */
static int64_t divide(int64_t x, int64_t y)
{
    return y == -1 ? SX_WRAP(0, -, x) : x / y;
}

static int64_t remainder_of(int64_t x, int64_t y)
{
    return y == -1 ? 0 : x % y;
}

static int64_t divide_down(int64_t x, int64_t y)
{
    const int64_t m = remainder_of(x, y);
    return divide(x, y) - (m != 0 && (m < 0) != (y < 0));
}

static int64_t remainder_down(int64_t x, int64_t y)
{
    const int64_t m = remainder_of(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

/* By squaring; no negative power. */
static int64_t power_of(int64_t x, uint64_t y)
{
    uint64_t result = 1, square = (uint64_t)x;
    for (; y > 0; y >>= 1) {
        result *= (y & 1) != 0 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

#define LOOP(name, T, R, expression)                                                           \
    static void name(const void *xs, int64_t x_step, const void *ys, int64_t y_step, void *zs, \
                     int64_t n)                                                                \
    {                                                                                          \
        typedef T C_TYPE;                                                                      \
        const C_TYPE *x_row = xs, *y_row = ys;                                                 \
        R *z_row = zs;                                                                         \
        for (int64_t k = 0; k < n; k++) {                                                      \
            const C_TYPE x = x_row[k * x_step], y = y_row[k * y_step];                         \
            (void)x, (void)y;                                                                  \
            z_row[k] = (R)(expression);                                                        \
        }                                                                                      \
    }

#define C(v)                ((C_TYPE)(v))
#define SELECT(cond, a, b)  ((cond) ? (a) : (b))
#define EQUAL(a, b)         ((a) == (b))
#define LESS(a, b)          ((a) < (b))
#define GREATER(a, b)       ((a) > (b))
#define NOT(a)              ((a) == 0)
#define AND(a, b)           ((a) != 0 && (b) != 0)
#define OR(a, b)            ((a) != 0 || (b) != 0)
#define NOT_EQUAL(a, b)     ((a) != (b))
#define LESS_EQUAL(a, b)    ((a) <= (b))
#define GREATER_EQUAL(a, b) ((a) >= (b))
#define INVERT(a)           (~(a))
#define BIT_AND(a, b)       ((a) & (b))
#define BIT_OR(a, b)        ((a) | (b))
#define BIT_XOR(a, b)       ((a) ^ (b))

/* Floats. maximum, minimum, relu and sign propagate NaN. */
#define NEG(a)        (-(a))
#define ABS(a)        fabs(a)
#define SIGN(a)       ((a) > 0 ? 1 : (a) < 0 ? -1 : (a))
#define SQRT(a)       sqrt(a)
#define RSQRT(a)      (1 / sqrt(a))
#define EXP(a)        exp(a)
#define LOG(a)        log(a)
#define LOG1P(a)      log1p(a)
#define COS(a)        cos(a)
#define FLOOR(a)      floor(a)
#define TANH(a)       tanh(a)
#define SIGMOID(a)    (1 / (1 + exp(-(a))))
#define RELU(a)       ((a) < 0 ? 0 : (a))
#define RELU6(a)      ((a) < 0 ? 0 : (a) > 6 ? 6 : (a))
#define ROUND_BF16(a) ((double)sx_bf16_to_f32(sx_f32_to_bf16((float)(a))))
#define ADD(a, b)     ((a) + (b))
#define SUB(a, b)     ((a) - (b))
#define MUL(a, b)     ((a) * (b))
#define DIV(a, b)     ((a) / (b))
#define POW(a, b)     pow((a), (b))
#define MAXIMUM(a, b) (isnan(a) || (a) >= (b) ? (a) : (b))
#define MINIMUM(a, b) (isnan(a) || (a) <= (b) ? (a) : (b))

#define SIN(a)             sin(a)
#define TAN(a)             tan(a)
#define ASIN(a)            asin(a)
#define ACOS(a)            acos(a)
#define ATAN(a)            atan(a)
#define SINH(a)            sinh(a)
#define COSH(a)            cosh(a)
#define ASINH(a)           asinh(a)
#define ACOSH(a)           acosh(a)
#define ATANH(a)           atanh(a)
#define ERF(a)             erf(a)
#define ERFC(a)            erfc(a)
#define EXPM1(a)           expm1(a)
#define ROUND(a)           rint(a)
#define FLOOR_DIV(a, b)    floor((a) / (b))
#define FLOOR_MOD(a, b)    floor_mod((a), (b))
#define TRUNCATE_MOD(a, b) fmod((a), (b))

#define MAP(name, dtypes, tf, expression) dtypes(name, expression)
#define ZIP(name, dtypes, tf, expression) dtypes(name, expression)
#define FLOATS(name, expression)          LOOP(name##_f, double, double, expression)
#define NUMBERS(name, expression)         LOOP(name##_f, double, double, expression)
#define ORDER(name, expression)           LOOP(name##_f, double, uint8_t, expression)
#define BOOLS(name, expression)           LOOP(name##_b, uint8_t, uint8_t, expression)
#define TESTS(name, expression)           LOOP(name##_f, double, uint8_t, expression)
#define DIVISION(name, expression)        LOOP(name##_f, double, double, expression)
#define POWERS(name, expression)          LOOP(name##_f, double, double, expression)
#define INTEGERS(name, expression)
#define QUOTIENT(name, expression)
#define MATH2(name, tf, hlo, expression) LOOP(name##_f, double, double, expression)
#include "graph/elementwise.def"

/* Integers, modulo 2^64. */
#undef POW
#undef NEG
#undef ABS
#undef SIGN
#undef ADD
#undef SUB
#undef MUL
#undef MAXIMUM
#undef MINIMUM
#undef FLOOR_DIV
#undef FLOOR_MOD
#undef TRUNCATE_MOD
#define POW(a, b)          (power_of((int64_t)(a), (uint64_t)(b)))
#define FLOOR_DIV(a, b)    divide_down((a), (b))
#define FLOOR_MOD(a, b)    remainder_down((a), (b))
#define TRUNCATE_DIV(a, b) divide((a), (b))
#define TRUNCATE_MOD(a, b) remainder_of((a), (b))
#define NEG(a)             SX_WRAP(0, -, (a))
#define ABS(a)             ((a) < 0 ? NEG(a) : (a))
#define SIGN(a)            (((a) > 0) - ((a) < 0))
#define ADD(a, b)          SX_WRAP((a), +, (b))
#define SUB(a, b)          SX_WRAP((a), -, (b))
#define MUL(a, b)          SX_WRAP((a), *, (b))
#define MAXIMUM(a, b)      ((a) > (b) ? (a) : (b))
#define MINIMUM(a, b)      ((a) < (b) ? (a) : (b))

#undef FLOATS
#undef NUMBERS
#undef ORDER
#undef BOOLS
#undef TESTS
#undef DIVISION
#undef POWERS
#undef INTEGERS
#undef QUOTIENT
#define FLOATS(name, expression)
#define BOOLS(name, expression)
#define TESTS(name, expression)
#define NUMBERS(name, expression)  LOOP(name##_i, int64_t, int64_t, expression)
#define ORDER(name, expression)    LOOP(name##_i, int64_t, uint8_t, expression)
#define INTEGERS(name, expression) NUMBERS(name, expression)
#define DIVISION(name, expression) NUMBERS(name, expression)
#define QUOTIENT(name, expression) NUMBERS(name, expression)
#define POWERS(name, expression)   NUMBERS(name, expression)
#include "graph/elementwise.def"

#undef ABS
#undef SIGN
#undef FLOOR_DIV
#undef FLOOR_MOD
#undef TRUNCATE_DIV
#undef TRUNCATE_MOD
#define ABS(a)             (a)
#define SIGN(a)            ((a) != 0)
#define FLOOR_DIV(a, b)    ((a) / (b))
#define FLOOR_MOD(a, b)    ((a) % (b))
#define TRUNCATE_DIV(a, b) ((a) / (b))
#define TRUNCATE_MOD(a, b) ((a) % (b))
#undef NUMBERS
#undef ORDER
#define NUMBERS(name, expression) LOOP(name##_u, uint64_t, uint64_t, expression)
#define ORDER(name, expression)   LOOP(name##_u, uint64_t, uint8_t, expression)
#include "graph/elementwise.def"

#undef FLOATS
#undef NUMBERS
#undef ORDER
#undef BOOLS
#undef TESTS
#undef DIVISION
#undef POWERS
#undef INTEGERS
#undef QUOTIENT
#define FLOATS(name)  \
    {                 \
        .f = name##_f \
    }
#define NUMBERS(name)                               \
    {                                               \
        .f = name##_f, .i = name##_i, .u = name##_u \
    }
#define ORDER(name) NUMBERS(name)
#define TESTS(name) FLOATS(name)
#define DIVISION(name)                                                          \
    {                                                                           \
        .f = name##_f, .i = name##_i, .u = name##_u, .refuses = SX_REFUSES_ZERO \
    }
#define INTEGERS(name)               \
    {                                \
        .i = name##_i, .u = name##_u \
    }
#define QUOTIENT(name)                                           \
    {                                                            \
        .i = name##_i, .u = name##_u, .refuses = SX_REFUSES_ZERO \
    }
#define POWERS(name)                                                                \
    {                                                                               \
        .f = name##_f, .i = name##_i, .u = name##_u, .refuses = SX_REFUSES_NEGATIVE \
    }
#define BOOLS(name)   \
    {                 \
        .b = name##_b \
    }
#undef MAP
#define MAP(name, dtypes, tf, expression)                  \
    static const sx_row_loops name##_loops = dtypes(name); \
    sx_status sx_row_host_##name(const sx_kernel_call *c)  \
    {                                                      \
        return run_row(c, &name##_loops);                  \
    }
#undef ZIP
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#define MATH2(name, tf, hlo, expression)  MAP(name, FLOATS, tf, expression)
#include "graph/elementwise.def"

static const sx_row_loops *const all_loops[SX_OPID_COUNT] = {
#undef MAP
#define MAP(name, dtypes, tf, expression) [SX_OPID_##name] = &name##_loops,
#define MATH2(name, tf, hlo, expression)  MAP(name, FLOATS, tf, expression)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
};

const sx_row_loops *sx_row_loops_of(int op)
{
    return all_loops[op];
}
