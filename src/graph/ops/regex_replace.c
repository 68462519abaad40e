/* regex_replace: static_regex_replace with an expression that the model computes.
 *
 *   x, pattern, rewrite   strings; scalars of strings
 *   replace_global        all matches, from left to right, or the first
 *   returns               strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) the expression is invalid
 *          UNIMPLEMENTED     (running) built without RE2
 * Source   TensorFlow RegexReplace */
#include "graph/ops/regex_ops.h"

typedef struct sx_regex_replace_attrs {
    bool replace_global;
} sx_regex_replace_attrs;

static const sx_attr_def regex_replace_attrs[] = {
    SX_ATTR_TF(sx_regex_replace_attrs, replace_global, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status regex_replace_host(const sx_kernel_call *c)
{
    const sx_regex_replace_attrs *attrs = c->attrs;
    return sx_regex_replace_host(c, c->in[1].s[0], c->in[2].s[0], attrs->replace_global);
}

static void regex_replace_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_regex_replace, "RegexReplace", SX_TF_NO_ATTRS);
}

const sx_op_def sx_op_regex_replace = {
    SX_OP_NAMED(regex_replace),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_regex_replace_attrs, regex_replace_attrs),
    .infer = sx_regex_infer,
    .host = regex_replace_host,
    .to_tf = regex_replace_to_tf,
    SX_FROM_TF({.op = "RegexReplace"}),
};
