/* Elementwise operators as rows (elementwise.def): the functions generated for them, and the words
 * of their expressions.
 *
 *   row         MAP(swish, FLOATS, NULL, MUL(x, SIGMOID(x)))
 *   host        loops over double, int64_t, uint64_t, bool with the words as C
 *   StableHLO   the expression as a tree; a word is an operation
 *   TensorFlow  one node, written and read back, or the tree likewise
 *   cpu         a vector loop over float, if all of its words have a vector form
 *
 * To add a word: its row in SX_WORDS, its C in elementwise.c and in
 * backends/cpu/vec/elementwise.inc. */
#ifndef SX_GRAPH_ELEMENTWISE_H
#define SX_GRAPH_ELEMENTWISE_H

#include "graph/host.h"

/* WORD(name, operands, StableHLO, TensorFlow, whether it rounds); for a comparison, StableHLO is
 * its direction. */
#define SX_WORDS(WORD)                                 \
    WORD(NEG, 1, "negate", "Neg", false)               \
    WORD(ABS, 1, "abs", "Abs", false)                  \
    WORD(SIGN, 1, "sign", "Sign", false)               \
    WORD(SQRT, 1, "sqrt", "Sqrt", true)                \
    WORD(RSQRT, 1, "rsqrt", "Rsqrt", true)             \
    WORD(EXP, 1, "exponential", "Exp", true)           \
    WORD(LOG, 1, "log", "Log", true)                   \
    WORD(LOG1P, 1, "log_plus_one", "Log1p", true)      \
    WORD(COS, 1, "cosine", "Cos", true)                \
    WORD(FLOOR, 1, "floor", "Floor", false)            \
    WORD(TANH, 1, "tanh", "Tanh", true)                \
    WORD(SIGMOID, 1, "logistic", "Sigmoid", true)      \
    WORD(RELU, 1, "maximum", "Relu", false)            \
    WORD(RELU6, 1, "clamp", "Relu6", false)            \
    WORD(ROUND_BF16, 1, "reduce_precision", "", false) \
    WORD(NOT, 1, "not", "LogicalNot", false)           \
    WORD(ADD, 2, "add", "AddV2", true)                 \
    WORD(SUB, 2, "subtract", "Sub", true)              \
    WORD(MUL, 2, "multiply", "Mul", true)              \
    WORD(DIV, 2, "divide", "RealDiv", true)            \
    WORD(POW, 2, "power", "Pow", true)                 \
    WORD(MAXIMUM, 2, "maximum", "Maximum", false)      \
    WORD(MINIMUM, 2, "minimum", "Minimum", false)      \
    WORD(EQUAL, 2, "EQ", "Equal", false)               \
    WORD(LESS, 2, "LT", "Less", false)                 \
    WORD(GREATER, 2, "GT", "Greater", false)           \
    WORD(AND, 2, "and", "LogicalAnd", false)           \
    WORD(SELECT, 3, "select", "SelectV2", false)

#define MAP(name, dtypes, tf, expression)                       \
    sx_status sx_row_host_##name(const sx_kernel_call *c);      \
    void sx_row_tf_##name(sx_tf_writer *w, const sx_tf_op *op); \
    extern const sx_tf_form sx_row_forms_##name[2];             \
    void sx_row_hlo_##name(sx_hlo_writer *w, const sx_hlo_op *op);
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP

/* The fields of an operator's descriptor that a row generates. */
#define SX_OP_ROW(op_name)                                                                       \
    .batch_rule = SX_RULE_EXAMPLES, .host = sx_row_host_##op_name, .to_tf = sx_row_tf_##op_name, \
    .from_tf = sx_row_forms_##op_name, .to_stablehlo = sx_row_hlo_##op_name

#endif
