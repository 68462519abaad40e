/* static_regex_replace: matches of a regular expression (RE2's) replaced.
 *
 *   x               strings
 *   pattern         the expression
 *   rewrite         what replaces a match: \0 is the match, \1 .. \9 are its groups
 *   replace_global  all matches, from left to right, or the first
 *   returns         strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  (running) the expression is invalid
 *          UNIMPLEMENTED     (running) built without RE2
 * Source   TensorFlow StaticRegexReplace */
#include "graph/ops/regex_ops.h"

typedef struct sx_static_regex_replace_attrs {
    const char *pattern, *rewrite;
    bool replace_global;
} sx_static_regex_replace_attrs;

static const sx_attr_def static_regex_replace_attrs[] = {
    SX_ATTR_TF(sx_static_regex_replace_attrs, pattern, SX_ATTR_STRING),
    SX_ATTR_TF(sx_static_regex_replace_attrs, rewrite, SX_ATTR_STRING),
    SX_ATTR_TF(sx_static_regex_replace_attrs, replace_global, SX_ATTR_BOOL, .tf_number = 1),
};

static sx_status static_regex_replace_host(const sx_kernel_call *c)
{
    const sx_static_regex_replace_attrs *attrs = c->attrs;
    return sx_regex_replace_host(c, sx_bytes_of(attrs->pattern), sx_bytes_of(attrs->rewrite),
                                 attrs->replace_global);
}

static void static_regex_replace_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_static_regex_replace, "StaticRegexReplace", SX_TF_NO_ATTRS);
}

const sx_op_def sx_op_static_regex_replace = {
    SX_OP_NAMED(static_regex_replace),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_static_regex_replace_attrs, static_regex_replace_attrs),
    .infer = sx_regex_infer,
    .host = static_regex_replace_host,
    .to_tf = static_regex_replace_to_tf,
    SX_FROM_TF({.op = "StaticRegexReplace"}),
};
