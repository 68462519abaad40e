/* string_upper: letters in upper case.
 *
 *   x         strings
 *   encoding  "" only ASCII's letters, other bytes stay; "utf-8" all of Unicode's, and U+FFFD for
 *             what is no UTF-8
 *   returns   strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtype, encoding
 * Source   TensorFlow StringUpper */
#include "graph/ops/text_case.h"

static sx_status string_upper_host(const sx_kernel_call *c)
{
    return sx_text_case_host(c, true);
}

static void string_upper_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_upper, "StringUpper", SX_TF_NO_ATTRS);
}

static const sx_op_sample string_upper_samples[] = {SX_TEXT_CASE_SAMPLES};

const sx_op_def sx_op_string_upper = {
    SX_OP_NAMED(string_upper),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_encoding_attrs, sx_text_case_attrs),
    .infer = sx_text_case_infer,
    .host = string_upper_host,
    .to_tf = string_upper_to_tf,
    SX_FROM_TF({.op = "StringUpper"}),
    SX_OP_SAMPLES(string_upper_samples),
};
