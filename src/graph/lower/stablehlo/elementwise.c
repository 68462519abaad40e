/* Elementwise operators: those of elementwise.def by their expressions as trees, and the others. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* ---- Rows of elementwise.def ---- */

/* The operation of a word; the direction of a comparison; NULL: several, or with attributes. */
static const char *const operations[SX_WORD_COUNT] = {
    [SX_WORD_NEG] = "negate",
    [SX_WORD_ABS] = "abs",
    [SX_WORD_SIGN] = "sign",
    [SX_WORD_SQRT] = "sqrt",
    [SX_WORD_RSQRT] = "rsqrt",
    [SX_WORD_EXP] = "exponential",
    [SX_WORD_LOG] = "log",
    [SX_WORD_LOG1P] = "log_plus_one",
    [SX_WORD_COS] = "cosine",
    [SX_WORD_FLOOR] = "floor",
    [SX_WORD_TANH] = "tanh",
    [SX_WORD_SIGMOID] = "logistic",
    [SX_WORD_NOT] = "not",
    [SX_WORD_ADD] = "add",
    [SX_WORD_SUB] = "subtract",
    [SX_WORD_MUL] = "multiply",
    [SX_WORD_DIV] = "divide",
    [SX_WORD_POW] = "power",
    [SX_WORD_MAXIMUM] = "maximum",
    [SX_WORD_MINIMUM] = "minimum",
    [SX_WORD_EQUAL] = "EQ",
    [SX_WORD_LESS] = "LT",
    [SX_WORD_GREATER] = "GT",
    [SX_WORD_AND] = "and",
    [SX_WORD_SIN] = "sine",
    [SX_WORD_EXPM1] = "exponential_minus_one",
    [SX_WORD_ROUND] = "round_nearest_even",
    [SX_WORD_INVERT] = "not",
    [SX_WORD_NOT_EQUAL] = "NE",
    [SX_WORD_LESS_EQUAL] = "LE",
    [SX_WORD_GREATER_EQUAL] = "GE",
    [SX_WORD_OR] = "or",
    [SX_WORD_BIT_AND] = "and",
    [SX_WORD_BIT_OR] = "or",
    [SX_WORD_BIT_XOR] = "xor",
    [SX_WORD_TRUNCATE_DIV] = "divide",
    [SX_WORD_TRUNCATE_MOD] = "remainder",
};

typedef struct hlo_operands {
    sx_hlo in[2]; /* of the output's shape */
    sx_hlo zero;  /* written once */
} hlo_operands;

/* c[n-1] x^(n-1) + … + c[0] */
static sx_hlo polynomial(sx_hlo_writer *w, sx_hlo x, const double *c, int n)
{
    sx_hlo y = sx_hlo_like(w, x, c[n - 1]);
    for (int i = n - 2; i >= 0; i--) {
        y = sx_hlo_with(w, "add", sx_hlo_binary(w, "multiply", y, x), c[i]);
    }
    return y;
}

/* As erfc_f() and erf_f() of the CPU backend (vec/math.inc). */
static sx_hlo erfc_of(sx_hlo_writer *w, sx_hlo x)
{
    static const double fit[] = {-1.265549653,  1.001143987,  0.3600556594, 0.1935616759,
                                 -0.5943161565, 1.384508973,  -3.09805604,  3.757224165,
                                 -2.465494131,  0.8479556547, -0.1210341273};
    sx_hlo a = sx_hlo_unary(w, "abs", x), one = sx_hlo_like(w, x, 1);
    sx_hlo below = sx_hlo_binary(w, "add", sx_hlo_with(w, "multiply", a, 0.5), one);
    sx_hlo t = sx_hlo_binary(w, "divide", one, below);
    sx_hlo p = sx_hlo_binary(w, "subtract", polynomial(w, t, fit, SX_COUNT(fit)),
                             sx_hlo_binary(w, "multiply", a, a));
    sx_hlo y = sx_hlo_binary(w, "multiply", t, sx_hlo_unary(w, "exponential", p));
    sx_hlo other = sx_hlo_binary(w, "subtract", sx_hlo_like(w, x, 2), y);
    return sx_hlo_select(w, sx_hlo_compare(w, "LT", x, sx_hlo_like(w, x, 0)), other, y);
}

static sx_hlo erf_of(sx_hlo_writer *w, sx_hlo x)
{
    static const double series[] = {1.1283791670955126,     -0.37612638903183754,
                                    0.11283791670955126,    -0.026866170645131252,
                                    0.005223977625442188,   -0.0008548327023450852,
                                    0.00012055332981789664, -1.492565035840625e-05};
    sx_hlo a = sx_hlo_unary(w, "abs", x), z = sx_hlo_binary(w, "multiply", x, x);
    sx_hlo near = sx_hlo_binary(w, "multiply", x, polynomial(w, z, series, SX_COUNT(series)));
    sx_hlo far = sx_hlo_binary(w, "subtract", sx_hlo_like(w, x, 1), erfc_of(w, a));
    far = sx_hlo_binary(w, "multiply", far, sx_hlo_unary(w, "sign", x));
    return sx_hlo_select(w, sx_hlo_compare(w, "LT", a, sx_hlo_like(w, x, 0.5)), near, far);
}

/* The inverse functions through atan2, which loses no digits at the ends of their ranges: asin x =
 * 2 atan2(x, 1 + √(1 - x²)), acos x = 2 atan2(√(1 - x), √(1 + x)). */
static sx_hlo angle_of(sx_hlo_writer *w, sx_word word, sx_hlo x)
{
    sx_hlo one = sx_hlo_like(w, x, 1);
    if (word == SX_WORD_ATAN) {
        return sx_hlo_binary(w, "atan2", x, one);
    }
    sx_hlo below = sx_hlo_binary(w, "subtract", one, x), above = sx_hlo_binary(w, "add", one, x);
    if (word == SX_WORD_ACOS) {
        below = sx_hlo_unary(w, "sqrt", below);
        return sx_hlo_with(w, "multiply",
                           sx_hlo_binary(w, "atan2", below, sx_hlo_unary(w, "sqrt", above)), 2);
    }
    sx_hlo root = sx_hlo_unary(w, "sqrt", sx_hlo_binary(w, "multiply", below, above));
    return sx_hlo_with(w, "multiply",
                       sx_hlo_binary(w, "atan2", x, sx_hlo_binary(w, "add", root, one)), 2);
}

/* From e^x - 1 and ln(1 + x), which keep the digits of small x; e^x / 2 as e^(x - ln 2) does not
 * overflow early. */
static sx_hlo hyperbolic_of(sx_hlo_writer *w, sx_word word, sx_hlo x)
{
    sx_hlo one = sx_hlo_like(w, x, 1), a = sx_hlo_unary(w, "abs", x);
    if (word == SX_WORD_COSH) {
        sx_hlo ln2 = sx_hlo_like(w, x, 0.69314718055994530942);
        sx_hlo up = sx_hlo_unary(w, "exponential", sx_hlo_binary(w, "subtract", a, ln2));
        sx_hlo sum = sx_hlo_binary(w, "add", a, ln2);
        return sx_hlo_binary(w, "add", up,
                             sx_hlo_unary(w, "exponential", sx_hlo_unary(w, "negate", sum)));
    }
    if (word == SX_WORD_SINH) { /* (e + e / (e + 1)) / 2; from 20 on e^(a - ln 2) */
        sx_hlo e = sx_hlo_unary(w, "exponential_minus_one", sx_hlo_clamp(w, a, 0, 20));
        sx_hlo ratio = sx_hlo_binary(w, "divide", e, sx_hlo_binary(w, "add", e, one));
        sx_hlo near = sx_hlo_with(w, "multiply", sx_hlo_binary(w, "add", e, ratio), 0.5);
        sx_hlo far = sx_hlo_unary(
            w, "exponential",
            sx_hlo_binary(w, "subtract", a, sx_hlo_like(w, x, 0.69314718055994530942)));
        sx_hlo is_near = sx_hlo_compare(w, "LT", a, sx_hlo_like(w, x, 20));
        return sx_hlo_binary(w, "multiply", sx_hlo_select(w, is_near, near, far),
                             sx_hlo_unary(w, "sign", x));
    }
    if (word == SX_WORD_ATANH) {
        sx_hlo up = sx_hlo_unary(w, "log_plus_one", x);
        sx_hlo down = sx_hlo_unary(w, "log_plus_one", sx_hlo_unary(w, "negate", x));
        return sx_hlo_with(w, "multiply", sx_hlo_binary(w, "subtract", up, down), 0.5);
    }
    /* ln(a + √(a² ± 1)); above 10⁸ that is ln 2a */
    sx_hlo large = sx_hlo_compare(w, "GT", a, sx_hlo_like(w, x, 1e8));
    sx_hlo far = sx_hlo_with(w, "add", sx_hlo_unary(w, "log", a), 0.69314718055994530942);
    sx_hlo s = word == SX_WORD_ASINH ? a : sx_hlo_binary(w, "subtract", x, one), t;
    if (word == SX_WORD_ASINH) { /* ln(1 + a + a² / (1 + √(a² + 1))) */
        sx_hlo square = sx_hlo_binary(w, "multiply", a, a);
        sx_hlo root = sx_hlo_unary(w, "sqrt", sx_hlo_binary(w, "add", square, one));
        t = sx_hlo_binary(w, "divide", square, sx_hlo_binary(w, "add", root, one));
    } else { /* with s = x - 1: ln(1 + s + √(s (s + 2))) */
        sx_hlo product = sx_hlo_binary(w, "multiply", s, sx_hlo_with(w, "add", s, 2));
        t = sx_hlo_unary(w, "sqrt", product);
    }
    sx_hlo near = sx_hlo_unary(w, "log_plus_one", sx_hlo_binary(w, "add", s, t));
    if (word == SX_WORD_ACOSH) { /* the large a of a negative x is no answer */
        large = sx_hlo_compare(w, "GT", x, sx_hlo_like(w, x, 1e8));
        return sx_hlo_select(w, large, far, near);
    }
    return sx_hlo_binary(w, "multiply", sx_hlo_select(w, large, far, near),
                         sx_hlo_unary(w, "sign", x));
}

/* Quotients and remainders that round down, from those that truncate. */
static sx_hlo down_of(sx_hlo_writer *w, sx_word word, sx_hlo x, sx_hlo y)
{
    const sx_dtype dtype = sx_hlo_type(w, x).dtype;
    if (word == SX_WORD_FLOOR_DIV && sx_dtype_is_float(dtype)) {
        return sx_hlo_unary(w, "floor", sx_hlo_binary(w, "divide", x, y));
    }
    sx_hlo m = sx_hlo_binary(w, "remainder", x, y), q = SX_HLO_NONE;
    if (word == SX_WORD_FLOOR_DIV) {
        q = sx_hlo_binary(w, "divide", x, y);
    }
    if (sx_hlo_is_unsigned(w, x)) {
        return word == SX_WORD_FLOOR_DIV ? q : m;
    }
    sx_hlo zero = sx_hlo_like(w, x, 0);
    sx_hlo signs =
        sx_hlo_binary(w, "xor", sx_hlo_compare(w, "LT", m, zero), sx_hlo_compare(w, "LT", y, zero));
    sx_hlo off = sx_hlo_binary(w, "and", sx_hlo_compare(w, "NE", m, zero), signs);
    return word == SX_WORD_FLOOR_DIV ? sx_hlo_select(w, off, sx_hlo_with(w, "subtract", q, 1), q)
                                     : sx_hlo_select(w, off, sx_hlo_binary(w, "add", m, y), m);
}

static sx_hlo hlo_word(sx_hlo_writer *w, const sx_tree *t, hlo_operands *o)
{
    sx_hlo in[3] = {SX_HLO_NONE, SX_HLO_NONE, SX_HLO_NONE};
    if (t->word == SX_WORD_OPERAND) {
        return o->in[(int)t->value];
    }
    if (t->word == SX_WORD_CONSTANT) {
        if (t->value != 0 || !sx_hlo_is(o->zero)) {
            sx_hlo constant = sx_hlo_like(w, o->in[0], t->value);
            o->zero = t->value == 0 ? constant : o->zero;
            return constant;
        }
        return o->zero;
    }
    for (int i = 0; i < sx_words[t->word].operands; i++) {
        in[i] = hlo_word(w, t->in[i], o);
    }
    switch (t->word) {
    case SX_WORD_ABS: /* StableHLO's abs and sign do not accept unsigned integers */
        return sx_hlo_is_unsigned(w, in[0]) ? in[0] : sx_hlo_unary(w, "abs", in[0]);
    case SX_WORD_SIGN:
        return sx_hlo_is_unsigned(w, in[0]) ? sx_hlo_with(w, "minimum", in[0], 1)
                                            : sx_hlo_unary(w, "sign", in[0]);
    case SX_WORD_RELU:
        return sx_hlo_with(w, "maximum", in[0], 0);
    case SX_WORD_RELU6:
        return sx_hlo_clamp(w, in[0], 0, 6);
    case SX_WORD_ROUND_BF16:
        sx_hlo_attr(w, "exponent_bits", "8 : i32");
        sx_hlo_attr(w, "mantissa_bits", "7 : i32");
        return sx_hlo_unary(w, "reduce_precision", in[0]);
    case SX_WORD_TAN:
        return sx_hlo_binary(w, "divide", sx_hlo_unary(w, "sine", in[0]),
                             sx_hlo_unary(w, "cosine", in[0]));
    case SX_WORD_ASIN:
    case SX_WORD_ACOS:
    case SX_WORD_ATAN:
        return angle_of(w, t->word, in[0]);
    case SX_WORD_SINH:
    case SX_WORD_COSH:
    case SX_WORD_ASINH:
    case SX_WORD_ACOSH:
    case SX_WORD_ATANH:
        return hyperbolic_of(w, t->word, in[0]);
    case SX_WORD_ERF:
        return erf_of(w, in[0]);
    case SX_WORD_ERFC:
        return erfc_of(w, in[0]);
    case SX_WORD_FLOOR_DIV:
    case SX_WORD_FLOOR_MOD:
        return down_of(w, t->word, in[0], in[1]);
    case SX_WORD_EQUAL:
    case SX_WORD_NOT_EQUAL:
    case SX_WORD_LESS:
    case SX_WORD_LESS_EQUAL:
    case SX_WORD_GREATER:
    case SX_WORD_GREATER_EQUAL:
        return sx_hlo_compare(w, operations[t->word], in[0], in[1]);
    case SX_WORD_SELECT:
        return sx_hlo_select(w, in[0], in[1], in[2]);
    default:
        return sx_words[t->word].operands == 1
                   ? sx_hlo_unary(w, operations[t->word], in[0])
                   : sx_hlo_binary(w, operations[t->word], in[0], in[1]);
    }
}

static void row_to_hlo(sx_hlo_writer *w, const sx_hlo_op *op, const sx_tree *t)
{
    hlo_operands o = {.zero = SX_HLO_NONE};
    bool wide = sx_tree_rounds(t) > 1 || operations[t->word] == NULL;
    for (int i = 0; i < op->n_in; i++) {
        o.in[i] = sx_hlo_broadcast_to(w, op->in[i], &op->out_types[0]);
        o.in[i] = wide ? sx_hlo_widen(w, o.in[i]) : o.in[i];
    }
    sx_hlo z = hlo_word(w, t, &o);
    op->out[0] = wide ? sx_hlo_convert(w, z, op->out_types[0].dtype) : z;
}

static void math_to_hlo(sx_hlo_writer *w, const sx_hlo_op *op, const char *operation)
{
    sx_hlo x = sx_hlo_broadcast_to(w, op->in[0], &op->out_types[0]);
    sx_hlo y = sx_hlo_broadcast_to(w, op->in[1], &op->out_types[0]);
    op->out[0] = sx_hlo_binary(w, operation, x, y);
}

#define MAP(name, dtypes, tf, expression)                           \
    void sx_hlo_lower_##name(sx_hlo_writer *w, const sx_hlo_op *op) \
    {                                                               \
        row_to_hlo(w, op, sx_row_tree_##name);                      \
    }
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#define MATH2(name, tf, hlo, expression)                            \
    void sx_hlo_lower_##name(sx_hlo_writer *w, const sx_hlo_op *op) \
    {                                                               \
        math_to_hlo(w, op, hlo);                                    \
    }
#include "graph/elementwise.def"
#undef MAP
#undef ZIP

/* ---- Others ---- */

void sx_hlo_lower_identity(sx_hlo_writer *w, const sx_hlo_op *op)
{
    (void)w;
    op->out[0] = op->in[0];
}

void sx_hlo_lower_stop_gradient(sx_hlo_writer *w, const sx_hlo_op *op)
{
    (void)w;
    op->out[0] = op->in[0];
}

void sx_hlo_lower_cast(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_cast_attrs *attrs = op->attrs;
    sx_hlo x = op->in[0];
    bool to_bool = attrs->dtype == SX_BOOL && op->in_types[0].dtype != SX_BOOL;
    op->out[0] = to_bool ? sx_hlo_compare(w, "NE", x, sx_hlo_like(w, x, 0))
                         : sx_hlo_convert(w, x, attrs->dtype);
}

void sx_hlo_lower_bitcast(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_emit(w, "bitcast_convert", op->in, 1, op->out_types, 1);
}

void sx_hlo_lower_leaky_relu(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_alpha_attrs *attrs = op->attrs;
    sx_hlo x = op->in[0], positive = sx_hlo_compare(w, "GT", x, sx_hlo_like(w, x, 0));
    op->out[0] = sx_hlo_select(w, positive, x, sx_hlo_with(w, "multiply", x, attrs->alpha));
}

void sx_hlo_lower_elu(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_alpha_attrs *attrs = op->attrs;
    sx_hlo x = op->in[0], positive = sx_hlo_compare(w, "GT", x, sx_hlo_like(w, x, 0));
    sx_hlo below = sx_hlo_unary(w, "exponential_minus_one", x);
    op->out[0] = sx_hlo_select(w, positive, x, sx_hlo_with(w, "multiply", below, attrs->alpha));
}

void sx_hlo_lower_clip(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_clip_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_clamp(w, op->in[0], attrs->low, attrs->high);
}

void sx_hlo_lower_shift(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const bool right = ((const sx_shift_attrs *)op->attrs)->right;
    const sx_type *z = &op->out_types[0];
    const sx_hlo x = sx_hlo_broadcast_to(w, op->in[0], z), y = sx_hlo_broadcast_to(w, op->in[1], z);
    const sx_hlo by = sx_hlo_clamp(w, y, 0, 8 * (double)sx_dtype_bytes(z->dtype) - 1);
    op->out[0] = sx_hlo_binary(w,
                               !right                     ? "shift_left"
                               : sx_hlo_is_unsigned(w, x) ? "shift_right_logical"
                                                          : "shift_right_arithmetic",
                               x, by);
}

void sx_hlo_lower_population_count(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_convert(w, sx_hlo_unary(w, "popcnt", op->in[0]), SX_U8);
}

void sx_hlo_lower_select(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *type = &op->out_types[0];
    sx_hlo cond = sx_hlo_broadcast_to(w, op->in[0], type);
    sx_hlo x = sx_hlo_broadcast_to(w, op->in[1], type);
    op->out[0] = sx_hlo_select(w, cond, x, sx_hlo_broadcast_to(w, op->in[2], type));
}
