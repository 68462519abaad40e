/* Elementwise rows as StableHLO and as TensorFlow's nodes (elementwise.h): the expression as a
 * tree. */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* ---- The expression as a tree ---- */

typedef enum word {
    WORD_OPERAND,
    WORD_CONSTANT,
#define WORD(name, operands, hlo, tf, rounds) WORD_##name,
    SX_WORDS(WORD)
#undef WORD
} word;

static const struct {
    int operands;
    const char *hlo, *tf;
    bool rounds;
} words[] = {
#define WORD(name, operands, hlo, tf, rounds) [WORD_##name] = {operands, hlo, tf, rounds},
    SX_WORDS(WORD)
#undef WORD
};

typedef struct tree {
    word word;
    const struct tree *in[3];
    double value; /* of WORD_CONSTANT; WORD_OPERAND: its index */
} tree;

#define NODE(word_, ...) (&(const tree){.word = (word_), __VA_ARGS__})
#define C(v)             NODE(WORD_CONSTANT, .value = (v))
#define SELECT(c, a, b)  NODE(WORD_SELECT, .in = {c, a, b})
#define EQUAL(a, b)      NODE(WORD_EQUAL, .in = {a, b})
#define LESS(a, b)       NODE(WORD_LESS, .in = {a, b})
#define GREATER(a, b)    NODE(WORD_GREATER, .in = {a, b})
#define NOT(a)           NODE(WORD_NOT, .in = {a})
#define AND(a, b)        NODE(WORD_AND, .in = {a, b})
#define NEG(a)           NODE(WORD_NEG, .in = {a})
#define ABS(a)           NODE(WORD_ABS, .in = {a})
#define SIGN(a)          NODE(WORD_SIGN, .in = {a})
#define SQRT(a)          NODE(WORD_SQRT, .in = {a})
#define RSQRT(a)         NODE(WORD_RSQRT, .in = {a})
#define EXP(a)           NODE(WORD_EXP, .in = {a})
#define LOG(a)           NODE(WORD_LOG, .in = {a})
#define LOG1P(a)         NODE(WORD_LOG1P, .in = {a})
#define COS(a)           NODE(WORD_COS, .in = {a})
#define FLOOR(a)         NODE(WORD_FLOOR, .in = {a})
#define TANH(a)          NODE(WORD_TANH, .in = {a})
#define SIGMOID(a)       NODE(WORD_SIGMOID, .in = {a})
#define RELU(a)          NODE(WORD_RELU, .in = {a})
#define RELU6(a)         NODE(WORD_RELU6, .in = {a})
#define ROUND_BF16(a)    NODE(WORD_ROUND_BF16, .in = {a})
#define ADD(a, b)        NODE(WORD_ADD, .in = {a, b})
#define SUB(a, b)        NODE(WORD_SUB, .in = {a, b})
#define MUL(a, b)        NODE(WORD_MUL, .in = {a, b})
#define DIV(a, b)        NODE(WORD_DIV, .in = {a, b})
#define POW(a, b)        NODE(WORD_POW, .in = {a, b})
#define MAXIMUM(a, b)    NODE(WORD_MAXIMUM, .in = {a, b})
#define MINIMUM(a, b)    NODE(WORD_MINIMUM, .in = {a, b})

#define x                                 NODE(WORD_OPERAND, .value = 0)
#define y                                 NODE(WORD_OPERAND, .value = 1)
#define MAP(name, dtypes, tf, expression) static const tree *const tree_##name = expression;
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
#undef x
#undef y

static int rounding_words(const tree *t)
{
    int n = words[t->word].rounds;
    for (int i = 0; i < words[t->word].operands; i++) {
        n += rounding_words(t->in[i]);
    }
    return n;
}

/* ---- StableHLO ---- */

typedef struct hlo_operands {
    sx_hlo in[2]; /* of the output's shape */
    sx_hlo zero;  /* written once */
} hlo_operands;

static sx_hlo hlo_word(sx_hlo_writer *w, const tree *t, hlo_operands *o)
{
    sx_hlo in[3] = {SX_HLO_NONE, SX_HLO_NONE, SX_HLO_NONE};
    if (t->word == WORD_OPERAND) {
        return o->in[(int)t->value];
    }
    if (t->word == WORD_CONSTANT) {
        if (t->value != 0 || !sx_hlo_is(o->zero)) {
            sx_hlo constant = sx_hlo_like(w, o->in[0], t->value);
            o->zero = t->value == 0 ? constant : o->zero;
            return constant;
        }
        return o->zero;
    }
    for (int i = 0; i < words[t->word].operands; i++) {
        in[i] = hlo_word(w, t->in[i], o);
    }
    switch (t->word) {
    case WORD_ABS: /* StableHLO's abs and sign do not accept unsigned integers */
        return sx_hlo_is_unsigned(w, in[0]) ? in[0] : sx_hlo_unary(w, "abs", in[0]);
    case WORD_SIGN:
        return sx_hlo_is_unsigned(w, in[0]) ? sx_hlo_with(w, "minimum", in[0], 1)
                                            : sx_hlo_unary(w, "sign", in[0]);
    case WORD_RELU:
        return sx_hlo_with(w, "maximum", in[0], 0);
    case WORD_RELU6:
        return sx_hlo_clamp(w, in[0], 0, 6);
    case WORD_ROUND_BF16:
        sx_hlo_attr(w, "exponent_bits", "8 : i32");
        sx_hlo_attr(w, "mantissa_bits", "7 : i32");
        return sx_hlo_unary(w, "reduce_precision", in[0]);
    case WORD_EQUAL:
    case WORD_LESS:
    case WORD_GREATER:
        return sx_hlo_compare(w, words[t->word].hlo, in[0], in[1]);
    case WORD_SELECT:
        return sx_hlo_select(w, in[0], in[1], in[2]);
    default:
        return words[t->word].operands == 1 ? sx_hlo_unary(w, words[t->word].hlo, in[0])
                                            : sx_hlo_binary(w, words[t->word].hlo, in[0], in[1]);
    }
}

static void row_to_hlo(sx_hlo_writer *w, const sx_hlo_op *op, const tree *t)
{
    hlo_operands o = {.zero = SX_HLO_NONE};
    bool wide = rounding_words(t) > 1;
    for (int i = 0; i < op->n_in; i++) {
        o.in[i] = sx_hlo_broadcast_to(w, op->in[i], &op->out_types[0]);
        o.in[i] = wide ? sx_hlo_widen(w, o.in[i]) : o.in[i];
    }
    sx_hlo z = hlo_word(w, t, &o);
    op->out[0] = wide ? sx_hlo_convert(w, z, op->out_types[0].dtype) : z;
}

/* ---- TensorFlow ---- */

static sx_tf_value tf_word(sx_tf_writer *w, const tree *t, const sx_tf_op *op)
{
    sx_tf_value in[3];
    int n = words[t->word].operands;
    if (t->word == WORD_OPERAND) {
        return op->in[(int)t->value];
    }
    if (t->word == WORD_CONSTANT) {
        return sx_tf_scalar(w, "value", op->in_types[0].dtype, t->value);
    }
    for (int i = 0; i < n; i++) {
        in[i] = tf_word(w, t->in[i], op);
    }
    return sx_tf_add(w, words[t->word].tf, NULL, (sx_tf_values){in, n},
                     sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static void row_to_tf(sx_tf_writer *w, const sx_tf_op *op, const char *tf, const tree *t)
{
    if (tf == NULL) {
        op->out[0] = tf_word(w, t, op);
    } else if (op->in_types[0].dtype == SX_BOOL) {
        op->out[0] = sx_tf_add(w, tf, NULL, (sx_tf_values){op->in, op->n_in}, SX_TF_NO_ATTRS);
    } else {
        sx_tf_plain(w, op, tf);
    }
}

#define MAP(name, dtypes, tf, expression)                         \
    void sx_row_hlo_##name(sx_hlo_writer *w, const sx_hlo_op *op) \
    {                                                             \
        row_to_hlo(w, op, tree_##name);                           \
    }                                                             \
    void sx_row_tf_##name(sx_tf_writer *w, const sx_tf_op *op)    \
    {                                                             \
        row_to_tf(w, op, tf, tree_##name);                        \
    }                                                             \
    const sx_tf_form sx_row_forms_##name[2] = {{.op = tf}};
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#include "graph/elementwise.def"
