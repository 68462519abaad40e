/* static_regex_full_match: whether a regular expression (RE2's) matches each string as a whole.
 *
 *   x        strings
 *   pattern  the expression
 *   returns  bool of x's shape
 *
 * Errors   INVALID_ARGUMENT  (running) the expression is invalid
 *          UNIMPLEMENTED     (running) built without RE2
 * Source   TensorFlow StaticRegexFullMatch */
#include "graph/ops/regex_ops.h"

typedef struct sx_static_regex_full_match_attrs {
    const char *pattern;
} sx_static_regex_full_match_attrs;

static const sx_attr_def static_regex_full_match_attrs[] = {
    SX_ATTR_TF(sx_static_regex_full_match_attrs, pattern, SX_ATTR_STRING)};

static sx_status static_regex_full_match_infer(sx_infer_context *c)
{
    SX_TRY(sx_regex_infer(c));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

static sx_status static_regex_full_match_host(const sx_kernel_call *c)
{
    const sx_static_regex_full_match_attrs *attrs = c->attrs;
    return sx_regex_full_match_host(c, sx_bytes_of(attrs->pattern));
}

static void static_regex_full_match_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_static_regex_full_match, "StaticRegexFullMatch", SX_TF_NO_ATTRS);
}

const sx_op_def sx_op_static_regex_full_match = {
    SX_OP_NAMED(static_regex_full_match),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_static_regex_full_match_attrs, static_regex_full_match_attrs),
    .infer = static_regex_full_match_infer,
    .host = static_regex_full_match_host,
    .to_tf = static_regex_full_match_to_tf,
    SX_FROM_TF({.op = "StaticRegexFullMatch"}),
};
