/* Elementwise operators: those of elementwise.def by their expressions as trees, and the others. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* ---- Rows of elementwise.def ---- */

/* The operation of a word; the direction of a comparison; NULL: several, or with attributes. */
static const char *const operations[SX_WORD_COUNT] = {
    [SX_WORD_NEG] = "negate",      [SX_WORD_ABS] = "abs",
    [SX_WORD_SIGN] = "sign",       [SX_WORD_SQRT] = "sqrt",
    [SX_WORD_RSQRT] = "rsqrt",     [SX_WORD_EXP] = "exponential",
    [SX_WORD_LOG] = "log",         [SX_WORD_LOG1P] = "log_plus_one",
    [SX_WORD_COS] = "cosine",      [SX_WORD_FLOOR] = "floor",
    [SX_WORD_TANH] = "tanh",       [SX_WORD_SIGMOID] = "logistic",
    [SX_WORD_NOT] = "not",         [SX_WORD_ADD] = "add",
    [SX_WORD_SUB] = "subtract",    [SX_WORD_MUL] = "multiply",
    [SX_WORD_DIV] = "divide",      [SX_WORD_POW] = "power",
    [SX_WORD_MAXIMUM] = "maximum", [SX_WORD_MINIMUM] = "minimum",
    [SX_WORD_EQUAL] = "EQ",        [SX_WORD_LESS] = "LT",
    [SX_WORD_GREATER] = "GT",      [SX_WORD_AND] = "and",
};

typedef struct hlo_operands {
    sx_hlo in[2]; /* of the output's shape */
    sx_hlo zero;  /* written once */
} hlo_operands;

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
    case SX_WORD_EQUAL:
    case SX_WORD_LESS:
    case SX_WORD_GREATER:
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
    bool wide = sx_tree_rounds(t) > 1;
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

void sx_hlo_lower_select(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *type = &op->out_types[0];
    sx_hlo cond = sx_hlo_broadcast_to(w, op->in[0], type);
    sx_hlo x = sx_hlo_broadcast_to(w, op->in[1], type);
    op->out[0] = sx_hlo_select(w, cond, x, sx_hlo_broadcast_to(w, op->in[2], type));
}
