/* Elementwise operations: rows of kernels over lanes.
 *
 * Integers: division by zero gives -1 (all bits set), the least divided by -1 itself, as XLA does;
 * shifts by the width or more give 0. maximum and minimum of a NaN are NaN. */
#include <math.h>
#include <string.h>

#include "pjrt_ref/elementwise.h"

/* ---- Kernels ---- */

#define UNARY(name, member, expr)                                                \
    static void name(const ref_lane *a, const ref_lane *b, ref_lane *out, int n) \
    {                                                                            \
        (void)b;                                                                 \
        for (int i = 0; i < n; i++) {                                            \
            __typeof__(a[i].member) x = a[i].member;                             \
            out[i].member = (expr);                                              \
        }                                                                        \
    }
#define BINARY_TO(name, member, to, expr)                                        \
    static void name(const ref_lane *a, const ref_lane *b, ref_lane *out, int n) \
    {                                                                            \
        for (int i = 0; i < n; i++) {                                            \
            __typeof__(a[i].member) x = a[i].member, y = b[i].member;            \
            out[i].to = (expr);                                                  \
        }                                                                        \
    }
#define BINARY(name, member, expr) BINARY_TO(name, member, member, expr)

/* Modulo 2^64; 0 of a negative power, which StableHLO leaves open. */
static uint64_t power_of(uint64_t x, int64_t y)
{
    uint64_t result = y < 0 ? 0 : 1;
    for (; y > 0; y >>= 1, x *= x) {
        result *= (y & 1) != 0 ? x : 1;
    }
    return result;
}

UNARY(f_abs, f, fabs(x))
UNARY(s_abs, u, (x >> 63) != 0 ? 0 - x : x)
UNARY(u_same, u, x)
UNARY(f_neg, f, -x)
UNARY(u_neg, u, 0 - x)
UNARY(u_not, u, ~x)
UNARY(b_not, u, x ^ 1)
UNARY(f_exp, f, exp(x))
UNARY(f_expm1, f, expm1(x))
UNARY(f_log, f, log(x))
UNARY(f_log1p, f, log1p(x))
UNARY(f_logistic, f, 1 / (1 + exp(-x)))
UNARY(f_sqrt, f, sqrt(x))
UNARY(f_rsqrt, f, 1 / sqrt(x))
UNARY(f_tanh, f, tanh(x))
UNARY(f_floor, f, floor(x))
UNARY(f_round, f, rint(x))
UNARY(f_cos, f, cos(x))
UNARY(f_sin, f, sin(x))
UNARY(f_sign, f, x > 0 ? 1 : x < 0 ? -1 : x)
UNARY(s_sign, s, (x > 0) - (x < 0))

BINARY(f_add, f, x + y)
BINARY(u_add, u, x + y)
BINARY(f_sub, f, x - y)
BINARY(u_sub, u, x - y)
BINARY(f_mul, f, x *y)
BINARY(u_mul, u, x *y)
BINARY(f_div, f, x / y)
BINARY(s_div, s, y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
BINARY(u_div, u, y == 0 ? UINT64_MAX : x / y)
BINARY(f_max, f, isnan(x) ? x : isnan(y) ? y : x > y ? x : y)
BINARY(s_max, s, x > y ? x : y)
BINARY(u_max, u, x > y ? x : y)
BINARY(f_min, f, isnan(x) ? x : isnan(y) ? y : x < y ? x : y)
BINARY(s_min, s, x < y ? x : y)
BINARY(u_min, u, x < y ? x : y)
BINARY(f_pow, f, pow(x, y))
BINARY(s_pow, s, power_of((uint64_t)x, y))
BINARY(u_pow, u, power_of(x, (int64_t)(y &INT64_MAX)))
BINARY(f_atan2, f, atan2(x, y))
BINARY(f_remainder, f, fmod(x, y))
BINARY(s_remainder, s, y == 0 ? x : y == -1 ? 0 : x % y)
BINARY(u_remainder, u, y == 0 ? x : x % y)
BINARY(u_and, u, x &y)
BINARY(u_or, u, x | y)
BINARY(u_xor, u, x ^ y)
BINARY(u_shl, u, y >= 64 ? 0 : x << y)
BINARY(u_shr, u, y >= 64 ? 0 : x >> y)
BINARY(s_sar, s, x >> (y >= 0 && y < 64 ? y : 63))

static const ref_kernels k_abs = {f_abs, s_abs, u_same, NULL}, k_neg = {f_neg, u_neg, u_neg, NULL},
                         k_not = {NULL, u_not, u_not, b_not}, k_exp = {f_exp, NULL, NULL, NULL},
                         k_expm1 = {f_expm1, NULL, NULL, NULL}, k_log = {f_log, NULL, NULL, NULL},
                         k_log1p = {f_log1p, NULL, NULL, NULL},
                         k_logistic = {f_logistic, NULL, NULL, NULL},
                         k_sqrt = {f_sqrt, NULL, NULL, NULL}, k_rsqrt = {f_rsqrt, NULL, NULL, NULL},
                         k_tanh = {f_tanh, NULL, NULL, NULL}, k_floor = {f_floor, NULL, NULL, NULL},
                         k_round = {f_round, NULL, NULL, NULL}, k_cos = {f_cos, NULL, NULL, NULL},
                         k_sin = {f_sin, NULL, NULL, NULL}, k_sign = {f_sign, s_sign, NULL, NULL};
static const ref_kernels k_add = {f_add, u_add, u_add, u_add}, k_sub = {f_sub, u_sub, u_sub, NULL},
                         k_mul = {f_mul, u_mul, u_mul, u_mul}, k_div = {f_div, s_div, u_div, NULL},
                         k_max = {f_max, s_max, u_max, u_max}, k_min = {f_min, s_min, u_min, u_min},
                         k_pow = {f_pow, s_pow, u_pow, NULL}, k_atan2 = {f_atan2, NULL, NULL, NULL},
                         k_remainder = {f_remainder, s_remainder, u_remainder, NULL},
                         k_and = {NULL, u_and, u_and, u_and}, k_or = {NULL, u_or, u_or, u_or},
                         k_xor = {NULL, u_xor, u_xor, u_xor}, k_shl = {NULL, u_shl, u_shl, NULL},
                         k_shr = {NULL, NULL, u_shr, NULL}, k_sar = {NULL, s_sar, NULL, NULL};

/* Comparisons: results are bools. */
#define COMPARISON(name, op)          \
    BINARY_TO(f_##name, f, u, x op y) \
    BINARY_TO(s_##name, s, u, x op y) \
    BINARY_TO(u_##name, u, u, x op y) \
    static const ref_kernels k_##name = {f_##name, s_##name, u_##name, u_##name};
COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

static const struct {
    const char *direction;
    const ref_kernels *kernels;
} comparisons[] = {{"EQ", &k_eq}, {"NE", &k_ne}, {"LT", &k_lt},
                   {"LE", &k_le}, {"GT", &k_gt}, {"GE", &k_ge}};

ref_kernel *ref_kernel_of(const ref_kernels *k, sx_dtype dtype)
{
    ref_kernel *const by_class[] = {k->f, k->s, k->u};
    return dtype == SX_BOOL ? k->b : by_class[ref_class_of(dtype)];
}

/* ---- Plain ones: operands and result of one type ---- */

static sx_status check_plain(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *type = ref_in_type(p, op, 0);
    for (int i = 1; i < op->n_in; i++) {
        if (!sx_type_equal(type, ref_in_type(p, op, i))) {
            return ref_wrong("requires the same type for all operands and results");
        }
    }
    if (ref_kernel_of(op->row->kernels, type->dtype) == NULL) {
        return ref_wrong("does not take %s", ref_dtype_text(type->dtype));
    }
    p->flops += (double)sx_type_elems(type);
    (void)out_plan;
    return ref_expect(p, op, 0, type);
}

static int chunk(int64_t n, int64_t at)
{
    return n - at < REF_LANES ? (int)(n - at) : REF_LANES;
}

static void apply(ref_kernel *kernel, const ref_array *a, const ref_array *b, ref_array *out)
{
    ref_lane x[REF_LANES], y[REF_LANES], z[REF_LANES];
    int64_t n = sx_type_elems(&out->type);
    for (int64_t at = 0; at < n; at += REF_LANES) {
        int count = chunk(n, at);
        ref_load(a->type.dtype, a->data, at, count, x);
        if (b != NULL) {
            ref_load(b->type.dtype, b->data, at, count, y);
        }
        kernel(x, y, z, count);
        ref_store(out->type.dtype, out->data, at, count, z);
    }
}

static sx_status run_plain(ref_run *r, const ref_op *op)
{
    ref_array *out;
    const ref_array *a = ref_in(r, op, 0), *b = op->n_in > 1 ? ref_in(r, op, 1) : NULL;
    SX_TRY(ref_out(r, op, 0, &out));
    apply(ref_kernel_of(op->row->kernels, a->type.dtype), a, b, out);
    return SX_OK;
}

static sx_status run_popcnt(ref_run *r, const ref_op *op)
{
    ref_array *out;
    const ref_array *a = ref_in(r, op, 0);
    const uint64_t own_bits = UINT64_MAX >> (64 - 8 * sx_dtype_bytes(a->type.dtype));
    SX_TRY(ref_out(r, op, 0, &out));
    ref_lane x[REF_LANES];
    for (int64_t at = 0, n = sx_type_elems(&out->type); at < n; at += REF_LANES) {
        const int count = chunk(n, at);
        ref_load(a->type.dtype, a->data, at, count, x);
        for (int i = 0; i < count; i++) {
            x[i].u = (uint64_t)__builtin_popcountll(x[i].u & own_bits);
        }
        ref_store(out->type.dtype, out->data, at, count, x);
    }
    return SX_OK;
}

/* ---- compare, is_finite ---- */

static sx_status check_compare(ref_program *p, const ref_op *op, void **out_plan)
{
    static const char *const kinds[] = {"FLOAT", "SIGNED", "UNSIGNED"};
    const sx_type *type = ref_in_type(p, op, 0);
    const char *direction, *kind;
    sx_type result = *type;
    result.dtype = SX_BOOL;
    SX_TRY(ref_attr_word(op, "comparison_direction", &direction));
    SX_TRY(ref_attr_word(op, "compare_type", &kind));
    if (!sx_type_equal(type, ref_in_type(p, op, 1)) ||
        strcmp(kind, kinds[ref_class_of(type->dtype)]) != 0) {
        return ref_wrong("compares values of one type, and by its kind; got %s of %s", kind,
                         ref_dtype_text(type->dtype));
    }
    for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++) {
        if (strcmp(direction, comparisons[i].direction) == 0) {
            *out_plan = (void *)(uintptr_t)comparisons[i].kernels;
            return ref_expect(p, op, 0, &result);
        }
    }
    return ref_wrong("has no direction %s", direction);
}

static sx_status run_compare(ref_run *r, const ref_op *op)
{
    ref_array *out;
    const ref_array *a = ref_in(r, op, 0);
    SX_TRY(ref_out(r, op, 0, &out));
    apply(ref_kernel_of(op->plan, a->type.dtype), a, ref_in(r, op, 1), out);
    return SX_OK;
}

static void f_is_finite(const ref_lane *a, const ref_lane *b, ref_lane *out, int n)
{
    (void)b;
    for (int i = 0; i < n; i++) {
        out[i].u = isfinite(a[i].f) != 0;
    }
}

static sx_status check_is_finite(ref_program *p, const ref_op *op, void **out_plan)
{
    sx_type type = *ref_in_type(p, op, 0);
    (void)out_plan;
    if (ref_class_of(type.dtype) != REF_FLOAT) {
        return ref_wrong("takes floats");
    }
    type.dtype = SX_BOOL;
    return ref_expect(p, op, 0, &type);
}

static sx_status run_is_finite(ref_run *r, const ref_op *op)
{
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    apply(f_is_finite, ref_in(r, op, 0), NULL, out);
    return SX_OK;
}

/* ---- Convert ---- */

static sx_status check_convert(ref_program *p, const ref_op *op, void **out_plan)
{
    (void)out_plan;
    return ref_same_dims(ref_in_type(p, op, 0), ref_out_type(p, op, 0))
               ? SX_OK
               : ref_wrong("keeps the shape");
}

static sx_status run_convert(ref_run *r, const ref_op *op)
{
    ref_lane x[REF_LANES], y[REF_LANES];
    ref_array *out;
    const ref_array *a = ref_in(r, op, 0);
    SX_TRY(ref_out(r, op, 0, &out));
    int64_t n = sx_type_elems(&out->type);
    for (int64_t at = 0; at < n; at += REF_LANES) {
        int count = chunk(n, at);
        ref_load(a->type.dtype, a->data, at, count, x);
        ref_convert(a->type.dtype, out->type.dtype, count, x, y);
        ref_store(out->type.dtype, out->data, at, count, y);
    }
    return SX_OK;
}

/* ---- bitcast_convert ---- */

/* Elements of one size keep the shape; one larger element has a last dimension of smaller ones. */
static sx_status check_bitcast(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0), *out = ref_out_type(p, op, 0);
    const int64_t from = ref_bits_of(in->dtype), to = ref_bits_of(out->dtype);
    sx_type narrow = from > to ? *in : *out;
    const sx_type *wide = from > to ? out : in;
    (void)out_plan;
    if (from <= 1 || to <= 1) {
        return ref_wrong("takes numbers");
    }
    if (from != to) {
        if (narrow.rank == SX_MAX_RANK) {
            return ref_wrong("would exceed the largest rank");
        }
        narrow.dims[narrow.rank++] = from > to ? from / to : to / from;
    }
    return ref_same_dims(&narrow, wide) ? SX_OK : ref_wrong("changes the size");
}

static sx_status run_bitcast(ref_run *r, const ref_op *op)
{
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    memcpy(out->data, ref_in(r, op, 0)->data, (size_t)sx_type_bytes(&out->type));
    return SX_OK;
}

/* ---- reduce_precision ---- */

/* Of the bits of bfloat16 only: 8 of exponent, 7 of mantissa. */
static sx_status check_reduce_precision(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *type = ref_in_type(p, op, 0);
    int64_t bits;
    (void)out_plan;
    SX_TRY(ref_attr_int(op, "exponent_bits", 8, 8, &bits));
    SX_TRY(ref_attr_int(op, "mantissa_bits", 7, 7, &bits));
    return ref_class_of(type->dtype) == REF_FLOAT ? ref_expect(p, op, 0, type)
                                                  : ref_wrong("takes floats");
}

static void f_to_bf16(const ref_lane *a, const ref_lane *b, ref_lane *out, int n)
{
    uint16_t narrow[REF_LANES];
    (void)b;
    ref_store(SX_BF16, narrow, 0, n, a);
    ref_load(SX_BF16, narrow, 0, n, out);
}

static sx_status run_reduce_precision(ref_run *r, const ref_op *op)
{
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    apply(f_to_bf16, ref_in(r, op, 0), NULL, out);
    return SX_OK;
}

/* ---- select, clamp: an operand may be a scalar ---- */

static sx_status check_select(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *cond = ref_in_type(p, op, 0), *type = ref_in_type(p, op, 1);
    (void)out_plan;
    if (cond->dtype != SX_BOOL || (cond->rank != 0 && !ref_same_dims(cond, type)) ||
        !sx_type_equal(type, ref_in_type(p, op, 2))) {
        return ref_wrong("takes i1 of the operands' shape or a scalar, and two of one type");
    }
    return ref_expect(p, op, 0, type);
}

/* Lanes of an operand that may be a scalar. */
static void load_or_repeat(const ref_array *a, int64_t at, int n, ref_lane *out)
{
    if (a->type.rank > 0) {
        ref_load(a->type.dtype, a->data, at, n, out);
        return;
    }
    ref_lane v = ref_get(a, 0);
    for (int i = 0; i < n; i++) {
        out[i] = v;
    }
}

static sx_status run_select(ref_run *r, const ref_op *op)
{
    ref_lane c[REF_LANES], x[REF_LANES], y[REF_LANES];
    ref_array *out;
    const ref_array *cond = ref_in(r, op, 0), *a = ref_in(r, op, 1), *b = ref_in(r, op, 2);
    SX_TRY(ref_out(r, op, 0, &out));
    int64_t n = sx_type_elems(&out->type);
    for (int64_t at = 0; at < n; at += REF_LANES) {
        int count = chunk(n, at);
        load_or_repeat(cond, at, count, c);
        ref_load(a->type.dtype, a->data, at, count, x);
        ref_load(b->type.dtype, b->data, at, count, y);
        for (int i = 0; i < count; i++) {
            x[i] = c[i].u != 0 ? x[i] : y[i];
        }
        ref_store(out->type.dtype, out->data, at, count, x);
    }
    return SX_OK;
}

static sx_status check_clamp(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *type = ref_in_type(p, op, 1);
    (void)out_plan;
    for (int i = 0; i < 3; i += 2) {
        const sx_type *limit = ref_in_type(p, op, i);
        if (limit->dtype != type->dtype || (limit->rank != 0 && !ref_same_dims(limit, type))) {
            return ref_wrong("takes limits of the operand's type, or scalars of its element type");
        }
    }
    return type->dtype == SX_BOOL ? ref_wrong("does not take i1") : ref_expect(p, op, 0, type);
}

static sx_status run_clamp(ref_run *r, const ref_op *op)
{
    ref_lane low[REF_LANES], x[REF_LANES], high[REF_LANES];
    ref_array *out;
    const ref_array *a = ref_in(r, op, 1);
    ref_kernel *max = ref_kernel_of(&k_max, a->type.dtype),
               *min = ref_kernel_of(&k_min, a->type.dtype);
    SX_TRY(ref_out(r, op, 0, &out));
    int64_t n = sx_type_elems(&out->type);
    for (int64_t at = 0; at < n; at += REF_LANES) {
        int count = chunk(n, at);
        load_or_repeat(ref_in(r, op, 0), at, count, low);
        ref_load(a->type.dtype, a->data, at, count, x);
        load_or_repeat(ref_in(r, op, 2), at, count, high);
        max(x, low, x, count);
        min(x, high, x, count);
        ref_store(out->type.dtype, out->data, at, count, x);
    }
    return SX_OK;
}

/* ---- Regions that are one kernel ---- */

ref_lambda ref_lambda_of(const ref_program *p, const ref_block *block)
{
    const ref_op *op = block->first;
    ref_lambda none = {NULL, block};
    bool is_one = op != NULL && op == block->last && block->n_args == 2 && op->n_in == 2 &&
                  op->n_out == 1 && op->in[0] == block->args[0] && op->in[1] == block->args[1] &&
                  block->n_results == 1 && block->results[0] == op->out[0];
    if (!is_one) {
        return none;
    }
    sx_dtype dtype = ref_type_of(p, op->in[0])->dtype;
    const ref_kernels *k = op->row->run == run_plain     ? op->row->kernels
                           : op->row->run == run_compare ? op->plan
                                                         : NULL;
    return k == NULL ? none : (ref_lambda){ref_kernel_of(k, dtype), block};
}

#define PLAIN(name_, n_, kernels_)                                                         \
    {                                                                                      \
        .name = (name_), .n_in = (n_), .n_out = 1, .check = check_plain, .run = run_plain, \
        .kernels = &(kernels_)                                                             \
    }

const ref_row ref_elementwise_rows[] = {
    PLAIN("abs", 1, k_abs),
    PLAIN("negate", 1, k_neg),
    PLAIN("not", 1, k_not),
    PLAIN("exponential", 1, k_exp),
    PLAIN("exponential_minus_one", 1, k_expm1),
    PLAIN("log", 1, k_log),
    PLAIN("log_plus_one", 1, k_log1p),
    PLAIN("logistic", 1, k_logistic),
    PLAIN("sqrt", 1, k_sqrt),
    PLAIN("rsqrt", 1, k_rsqrt),
    PLAIN("tanh", 1, k_tanh),
    PLAIN("floor", 1, k_floor),
    PLAIN("round_nearest_even", 1, k_round),
    PLAIN("cosine", 1, k_cos),
    PLAIN("sine", 1, k_sin),
    PLAIN("sign", 1, k_sign),
    PLAIN("add", 2, k_add),
    PLAIN("subtract", 2, k_sub),
    PLAIN("multiply", 2, k_mul),
    PLAIN("divide", 2, k_div),
    PLAIN("maximum", 2, k_max),
    PLAIN("minimum", 2, k_min),
    PLAIN("power", 2, k_pow),
    PLAIN("atan2", 2, k_atan2),
    PLAIN("remainder", 2, k_remainder),
    PLAIN("and", 2, k_and),
    PLAIN("or", 2, k_or),
    PLAIN("xor", 2, k_xor),
    PLAIN("shift_left", 2, k_shl),
    PLAIN("shift_right_logical", 2, k_shr),
    PLAIN("shift_right_arithmetic", 2, k_sar),
    {.name = "popcnt",
     .n_in = 1,
     .n_out = 1,
     .check = check_plain,
     .run = run_popcnt,
     .kernels = &k_not},
    {.name = "compare", .n_in = 2, .n_out = 1, .check = check_compare, .run = run_compare},
    {.name = "is_finite", .n_in = 1, .n_out = 1, .check = check_is_finite, .run = run_is_finite},
    {.name = "convert", .n_in = 1, .n_out = 1, .check = check_convert, .run = run_convert},
    {.name = "bitcast_convert", .n_in = 1, .n_out = 1, .check = check_bitcast, .run = run_bitcast},
    {.name = "reduce_precision",
     .n_in = 1,
     .n_out = 1,
     .check = check_reduce_precision,
     .run = run_reduce_precision},
    {.name = "select", .n_in = 3, .n_out = 1, .check = check_select, .run = run_select},
    {.name = "clamp", .n_in = 3, .n_out = 1, .check = check_clamp, .run = run_clamp},
    {.name = NULL},
};
