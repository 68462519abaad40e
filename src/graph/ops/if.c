/* if: the results of one of two regions, chosen by a scalar condition. The other is not computed.
 *
 *   condition   bool scalar; the first operand
 *   x...        the arguments of the regions, in order
 *   then, else  regions of the same types
 *   returns     the results of the chosen region
 *
 * Errors   INVALID_ARGUMENT  the condition's type; regions that take other types than x, or whose
 *                            results differ in number or type
 * Gradient an if of the regions' gradients
 * Numbers  those of the region
 * Source   TensorFlow If; StableHLO case */
#ifdef SX_ATTRS
typedef struct sx_if_attrs {
    const sx_graph *then_body, *else_body;
} sx_if_attrs;
#endif

#include "graph/ops/regions.h"

static const sx_attr_def if_attrs[] = {
    {.name = "then", .kind = SX_ATTR_BODY, .offset = offsetof(sx_if_attrs, then_body)},
    {.name = "else", .kind = SX_ATTR_BODY, .offset = offsetof(sx_if_attrs, else_body)},
};

static sx_status if_infer(sx_infer_context *c)
{
    const sx_if_attrs *attrs = c->attrs;
    const sx_graph *then_body = attrs->then_body, *else_body = attrs->else_body;
    if (c->n_inputs < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "the condition is missing");
    }
    SX_TRY(sx_require_scalar("the condition", &c->inputs[0], SX_BOOL));
    SX_TRY(sx_require_region_args("then", then_body, c->inputs + 1, c->n_inputs - 1));
    SX_TRY(sx_require_region_args("else", else_body, c->inputs + 1, c->n_inputs - 1));
    if (then_body->n_results != else_body->n_results || then_body->n_results < 1 ||
        then_body->n_results > SX_MAX_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "region then has %d results, region else %d; expected the same number, "
                        "from 1 to %d",
                        then_body->n_results, else_body->n_results, SX_MAX_OUTPUTS);
    }
    c->n_outputs = then_body->n_results;
    for (int i = 0; i < c->n_outputs; i++) {
        const sx_type *x = sx_graph_type(then_body, then_body->results[i].value);
        const sx_type *y = sx_graph_type(else_body, else_body->results[i].value);
        if (!sx_type_equal(x, y)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "result %d is %s of region then and %s of region else", i, SX_TEXT(x),
                            SX_TEXT(y));
        }
        c->outputs[i] = *x;
    }
    return SX_OK;
}

/* The region of the gradient: (x..., dy...) -> dx..., of those x that are asked for. */
static sx_graph *if_branch_gradient(sx_grad *g, const sx_graph *body, const sx_type *types, int n_x,
                                    int n_dy)
{
    sx_value args[2 * SX_MAX_OUTPUTS], y[SX_MAX_OUTPUTS], ys[SX_MAX_OUTPUTS], xs[SX_MAX_OUTPUTS],
        dx[SX_MAX_OUTPUTS];
    sx_builder *b = sx_region_begin(g, types, n_x + n_dy, args);
    int n = 0, k = 0;
    if (b == NULL) {
        return NULL;
    }
    sx_region_inline(b, body, args, y);
    for (int i = 0; i < g->n_outputs; i++) {
        if (sx_value_is(g->dy[i])) {
            ys[k++] = y[i];
        }
    }
    for (int i = 0; i < n_x; i++) {
        if (g->needed[1 + i]) {
            xs[n++] = args[i];
        }
    }
    sx_pull_back(b, ys, args + n_x, n_dy, xs, n, dx);
    for (int i = 0; i < n && !sx_builder_failed(b); i++) {
        const sx_type type = sx_type_of_value(b, xs[i]);
        dx[i] = sx_value_is(dx[i]) ? dx[i] : sx_region_zeros(b, &type);
    }
    return sx_region_end(g, b, dx, n);
}

/* An if of the branches' gradients. */
static void if_grad(sx_grad *g)
{
    const sx_if_attrs *attrs = g->attrs;
    const int n_x = g->n_inputs - 1;
    sx_value operands[1 + 2 * SX_MAX_OUTPUTS] = {g->x[0]};
    sx_type types[2 * SX_MAX_OUTPUTS];
    int n = n_x;
    if (n_x > SX_MAX_OUTPUTS) {
        sx_builder_fail(g->b,
                        sx_error(SX_UNIMPLEMENTED, "the gradient of an if of more than %d operands",
                                 SX_MAX_OUTPUTS));
        return;
    }
    for (int i = 0; i < n_x; i++) {
        operands[1 + i] = g->x[1 + i];
    }
    for (int i = 0; i < g->n_outputs; i++) {
        if (sx_value_is(g->dy[i])) {
            operands[1 + n++] = g->dy[i];
        }
    }
    for (int i = 0; i < n; i++) {
        types[i] = sx_type_of_value(g->b, operands[1 + i]);
    }
    sx_graph *then_body = if_branch_gradient(g, attrs->then_body, types, n_x, n - n_x);
    sx_graph *else_body = if_branch_gradient(g, attrs->else_body, types, n_x, n - n_x);
    sx_value first = SX_NO_VALUE;
    if (then_body != NULL && else_body != NULL) {
        first = sx_build(g->b, &sx_op_if,
                         &(sx_if_attrs){.then_body = then_body, .else_body = else_body}, operands,
                         1 + n);
    }
    for (int i = 0, k = 0; i < n_x; i++) {
        g->dx[1 + i] = g->needed[1 + i] ? sx_output_of(first, k++) : SX_NO_VALUE;
    }
    sx_graph_destroy(then_body);
    sx_graph_destroy(else_body);
}

static sx_status if_host(const sx_kernel_call *c)
{
    const sx_if_attrs *attrs = c->attrs;
    const bool taken = c->in[0].b[0] != 0;
    return sx_status_annotate(
        sx_interpret(c, taken ? attrs->then_body : attrs->else_body, c->in + 1, c->out), __FILE__,
        __LINE__, taken ? "then" : "else");
}

/* x: then -x, else x */
static sx_node negate_nodes[] = {SX_BODY_PARAMETER(1, "x", SX_F32, 1, {3}),
                                 SX_BODY_NODE(2, sx_op_neg, NULL, 1, {1})};
static sx_value_info negate_values[] = {
    {.node = 0}, {SX_TYPE_LITERAL_(SX_F32, 3), 0, 0}, {SX_TYPE_LITERAL_(SX_F32, 3), 1, 0}};
static sx_arg negate_args[] = {{.kind = SX_ARG_INPUT, .name = "x", .value = {1}}};
static sx_result negate_results[] = {{"y", {2}, SX_RESULT_IS_OUTPUT}};
static const sx_graph negate = SX_BODY(negate_nodes, negate_values, negate_args, negate_results);
static sx_node keep_nodes[] = {SX_BODY_PARAMETER(1, "x", SX_F32, 1, {3})};
static sx_value_info keep_values[] = {{.node = 0}, {SX_TYPE_LITERAL_(SX_F32, 3), 0, 0}};
static sx_result keep_results[] = {{"y", {1}, SX_RESULT_IS_OUTPUT}};
static const sx_graph keep = SX_BODY(keep_nodes, keep_values, negate_args, keep_results);
static const sx_if_attrs negate_or_keep = {.then_body = &negate, .else_body = &keep};

static const sx_op_sample if_samples[] = {
    {.name = "then",
     .inputs = {SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_TRUE), SX_SAMPLE_F32(SX_FILL_NORMAL, 3)},
     .n_inputs = 2,
     .attrs = &negate_or_keep},
    {.name = "either",
     .inputs = {SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL), SX_SAMPLE_F32(SX_FILL_NORMAL, 3)},
     .n_inputs = 2,
     .attrs = &negate_or_keep},
};

const sx_op_def sx_op_if = {
    SX_OP_NAMED(if),           .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,      .batch_rule = SX_RULE_REGIONS,
    .flags = SX_OP_NO_TF,      SX_OP_ATTRS(sx_if_attrs, if_attrs),
    .moved = SX_MOVES_ALL,     .infer = if_infer,
    .grad = if_grad,           .host = if_host,
    SX_OP_SAMPLES(if_samples),
};
