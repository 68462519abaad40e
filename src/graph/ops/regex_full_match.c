/* regex_full_match: static_regex_full_match with an expression that the model computes.
 *
 *   x, pattern   strings; a scalar of strings
 *   returns      bool of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) the expression is invalid
 *          UNIMPLEMENTED     (running) built without RE2
 * Source   TensorFlow RegexFullMatch */
#include "graph/ops/regex_ops.h"

static sx_status regex_full_match_infer(sx_infer_context *c)
{
    SX_TRY(sx_regex_infer(c));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

static sx_status regex_full_match_host(const sx_kernel_call *c)
{
    return sx_regex_full_match_host(c, c->in[1].s[0]);
}

static void regex_full_match_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_regex_full_match, "RegexFullMatch", SX_TF_NO_ATTRS);
}

const sx_op_def sx_op_regex_full_match = {
    SX_OP_NAMED(regex_full_match),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = regex_full_match_infer,
    .host = regex_full_match_host,
    .to_tf = regex_full_match_to_tf,
    SX_FROM_TF({.op = "RegexFullMatch"}),
};
