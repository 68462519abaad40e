/* string_lower: letters in lower case.
 *
 *   x         strings
 *   encoding  "" only ASCII's letters, other bytes stay; "utf-8" all of Unicode's, and U+FFFD for
 *             what is no UTF-8
 *   returns   strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtype, encoding
 * Source   TensorFlow StringLower */
#ifdef SX_PUBLIC
/* ---- Strings, on the host: in preprocessing and functions ---- */

/* ASCII's letters in lower case. */
sx_value sx_string_lower(sx_builder *b, sx_value x);
#endif

#include "graph/ops/text_case.h"

static sx_status string_lower_host(const sx_kernel_call *c)
{
    return sx_text_case_host(c, false);
}

static void string_lower_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_lower, "StringLower", SX_TF_NO_ATTRS);
}

static const sx_op_sample string_lower_samples[] = {SX_TEXT_CASE_SAMPLES};

sx_value sx_string_lower_at(sx_builder *b, sx_value x, const char *file, int line)
{
    const sx_encoding_attrs attrs = {.encoding = ""};
    return sx_build_at(b, &sx_op_string_lower, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_string_lower = {
    SX_OP_NAMED(string_lower),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_encoding_attrs, sx_text_case_attrs),
    .infer = sx_text_case_infer,
    .host = string_lower_host,
    .to_tf = string_lower_to_tf,
    SX_FROM_TF({.op = "StringLower"}),
    SX_OP_SAMPLES(string_lower_samples),
};
