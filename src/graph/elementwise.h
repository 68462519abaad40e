/* Elementwise operators as rows (elementwise.def): the functions generated for them, and the words
 * of their expressions.
 *
 *   row         MAP(swish, FLOATS, NULL, MUL(x, SIGMOID(x)))
 *   host        loops over double, int64_t, uint64_t, bool with the words as C
 *   StableHLO   the expression as a tree; a word is an operation (lower/stablehlo/elementwise.c)
 *   TensorFlow  one node, written and read back, or the tree likewise
 *   cpu         a vector loop over float, where it takes and gives floats
 *
 * To add a word: its row in SX_WORDS, its C in elementwise.c and in
 * backends/cpu/vec/elementwise.inc. */
#ifndef SX_GRAPH_ELEMENTWISE_H
#define SX_GRAPH_ELEMENTWISE_H

#include "graph/host.h"

/* WORD(name, operands, TensorFlow, whether it rounds) */
#define SX_WORDS(WORD)                            \
    WORD(NEG, 1, "Neg", false)                    \
    WORD(ABS, 1, "Abs", false)                    \
    WORD(SIGN, 1, "Sign", false)                  \
    WORD(SQRT, 1, "Sqrt", true)                   \
    WORD(RSQRT, 1, "Rsqrt", true)                 \
    WORD(EXP, 1, "Exp", true)                     \
    WORD(LOG, 1, "Log", true)                     \
    WORD(LOG1P, 1, "Log1p", true)                 \
    WORD(COS, 1, "Cos", true)                     \
    WORD(FLOOR, 1, "Floor", false)                \
    WORD(TANH, 1, "Tanh", true)                   \
    WORD(SIGMOID, 1, "Sigmoid", true)             \
    WORD(RELU, 1, "Relu", false)                  \
    WORD(RELU6, 1, "Relu6", false)                \
    WORD(ROUND_BF16, 1, "", false)                \
    WORD(NOT, 1, "LogicalNot", false)             \
    WORD(SIN, 1, "Sin", true)                     \
    WORD(TAN, 1, "Tan", true)                     \
    WORD(ASIN, 1, "Asin", true)                   \
    WORD(ACOS, 1, "Acos", true)                   \
    WORD(ATAN, 1, "Atan", true)                   \
    WORD(SINH, 1, "Sinh", true)                   \
    WORD(COSH, 1, "Cosh", true)                   \
    WORD(ASINH, 1, "Asinh", true)                 \
    WORD(ACOSH, 1, "Acosh", true)                 \
    WORD(ATANH, 1, "Atanh", true)                 \
    WORD(ERF, 1, "Erf", true)                     \
    WORD(ERFC, 1, "Erfc", true)                   \
    WORD(EXPM1, 1, "Expm1", true)                 \
    WORD(ROUND, 1, "Round", false)                \
    WORD(INVERT, 1, "Invert", false)              \
    WORD(ADD, 2, "AddV2", true)                   \
    WORD(SUB, 2, "Sub", true)                     \
    WORD(MUL, 2, "Mul", true)                     \
    WORD(DIV, 2, "RealDiv", true)                 \
    WORD(POW, 2, "Pow", true)                     \
    WORD(MAXIMUM, 2, "Maximum", false)            \
    WORD(MINIMUM, 2, "Minimum", false)            \
    WORD(EQUAL, 2, "Equal", false)                \
    WORD(LESS, 2, "Less", false)                  \
    WORD(GREATER, 2, "Greater", false)            \
    WORD(AND, 2, "LogicalAnd", false)             \
    WORD(NOT_EQUAL, 2, "NotEqual", false)         \
    WORD(LESS_EQUAL, 2, "LessEqual", false)       \
    WORD(GREATER_EQUAL, 2, "GreaterEqual", false) \
    WORD(OR, 2, "LogicalOr", false)               \
    WORD(BIT_AND, 2, "BitwiseAnd", false)         \
    WORD(BIT_OR, 2, "BitwiseOr", false)           \
    WORD(BIT_XOR, 2, "BitwiseXor", false)         \
    WORD(FLOOR_DIV, 2, "FloorDiv", true)          \
    WORD(FLOOR_MOD, 2, "FloorMod", true)          \
    WORD(TRUNCATE_DIV, 2, "TruncateDiv", false)   \
    WORD(TRUNCATE_MOD, 2, "TruncateMod", false)   \
    WORD(SELECT, 3, "SelectV2", false)

typedef enum sx_word {
    SX_WORD_OPERAND,
    SX_WORD_CONSTANT,
#define WORD(name, operands, tf, rounds) SX_WORD_##name,
    SX_WORDS(WORD)
#undef WORD
        SX_WORD_COUNT
} sx_word;

typedef struct sx_word_def {
    int operands;
    const char *tf;
    bool rounds;
} sx_word_def;
extern const sx_word_def sx_words[SX_WORD_COUNT];

/* A row's expression. */
typedef struct sx_tree {
    sx_word word;
    const struct sx_tree *in[3];
    double value; /* of SX_WORD_CONSTANT; SX_WORD_OPERAND: its index */
} sx_tree;
/* How many of its words round. */
int sx_tree_rounds(const sx_tree *t);

#define MAP(name, dtypes, tf, expression)                       \
    sx_status sx_row_host_##name(const sx_kernel_call *c);      \
    void sx_row_tf_##name(sx_tf_writer *w, const sx_tf_op *op); \
    extern const sx_tf_form sx_row_forms_##name[2];             \
    extern const sx_tree *const sx_row_tree_##name;
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#define MATH2(name, tf, hlo, expression)  MAP(name, FLOATS, tf, expression)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP

/* The loops of a row's host kernel. n elements of z from x and y, which are `step` elements apart:
 * 1, or 0 where one is repeated. */
typedef void sx_row_loop(const void *x, int64_t x_step, const void *y, int64_t y_step, void *z,
                         int64_t n);

/* Integers y that are an error. */
typedef enum sx_row_refusal {
    SX_REFUSES_NOTHING = 0,
    SX_REFUSES_ZERO,     /* of quotients */
    SX_REFUSES_NEGATIVE, /* of powers */
} sx_row_refusal;
/* By carrier; NULL if infer rejects the dtype. */
typedef struct sx_row_loops {
    sx_row_loop *f, *i, *u, *b;
    sx_row_refusal refuses;
} sx_row_loops;

/* Whether the row refuses one of n integers y in their carrier: INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_row_check(const sx_row_loops *loops, sx_dtype dtype, const void *y,
                                   int64_t n);
const sx_row_loops *sx_row_loops_of(int op); /* NULL: the operator is no row */
/* The loop for inputs of that dtype. */
sx_row_loop *sx_row_loop_of(const sx_row_loops *loops, sx_dtype dtype);

/* The fields of an operator's descriptor that a row generates. */
#define SX_OP_ROW(op_name) SX_OP_ROW_BUT_FROM_TF(op_name), .from_tf = sx_row_forms_##op_name
/* Of an operator that reads several of TensorFlow's. */
#define SX_OP_ROW_BUT_FROM_TF(op_name) \
    .batch_rule = SX_RULE_EXAMPLES, .host = sx_row_host_##op_name, .to_tf = sx_row_tf_##op_name

#endif
