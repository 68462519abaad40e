/* custom_gradient: values whose gradient is what a region says, not that of the nodes that computed
 * them. Where no gradient is asked for it is left out.
 *
 *   y...      the first `results` operands, of any type
 *   x...      operands that the region gives the gradients of
 *   others    operands that it reads
 *   results   how many of the operands are y
 *   gradient  a region: it takes dy for each y, then all other operands; gives dx for each x
 *   returns   y...
 *
 * A y without a gradient has zeros. Nothing passes to the operands y.
 *
 * Errors   INVALID_ARGUMENT  a region that takes or gives other types
 * Gradient the region's nodes, so that it has gradients itself
 * Numbers  exact
 * Source   TensorFlow tf.custom_gradient */
#ifdef SX_ATTRS
typedef struct sx_custom_gradient_attrs {
    int64_t results;
    const sx_graph *gradient;
} sx_custom_gradient_attrs;
#endif

#include "base/memory.h"
#include "graph/ops/regions.h"

static const sx_attr_def custom_gradient_attrs[] = {
    SX_ATTR(sx_custom_gradient_attrs, results, SX_ATTR_INT),
    SX_ATTR(sx_custom_gradient_attrs, gradient, SX_ATTR_BODY),
};

static sx_status custom_gradient_infer(sx_infer_context *c)
{
    const sx_custom_gradient_attrs *attrs = c->attrs;
    const sx_graph *gradient = attrs->gradient;
    SX_TRY(sx_infer_first(c, attrs->results));
    SX_TRY(sx_require_region_args("gradient", gradient, c->inputs, c->n_inputs));
    const int n_x = c->n_inputs - c->n_outputs;
    if (gradient->n_results > n_x) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "region gradient gives %d gradients, but there are %d operands after the "
                        "results",
                        gradient->n_results, n_x);
    }
    for (int i = 0; i < gradient->n_results; i++) {
        const sx_type *dx = sx_graph_type(gradient, gradient->results[i].value),
                      *x = &c->inputs[c->n_outputs + i];
        if (!sx_type_equal(dx, x)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "region gradient gives %s as gradient %d, expected %s", SX_TEXT(dx), i,
                            SX_TEXT(x));
        }
    }
    return SX_OK;
}

static void custom_gradient_grad(sx_grad *g)
{
    const sx_graph *gradient = ((const sx_custom_gradient_attrs *)g->attrs)->gradient;
    sx_arena *arena = sx_builder_arena(g->b);
    sx_value *args = sx_arena_array(arena, g->n_inputs + 1, sx_value);
    sx_value *dx = sx_arena_array(arena, gradient->n_results + 1, sx_value);
    if (args == NULL || dx == NULL) {
        sx_builder_fail(g->b, sx_no_memory("for gradients"));
        return;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        const sx_type type = sx_type_of_value(g->b, g->x[i]);
        args[i] = i >= g->n_outputs       ? g->x[i]
                  : sx_value_is(g->dy[i]) ? g->dy[i]
                                          : sx_region_zeros(g->b, &type);
    }
    sx_region_inline(g->b, gradient, args, dx);
    for (int i = 0; i < gradient->n_results; i++) {
        g->dx[g->n_outputs + i] = dx[i];
    }
}

/* (dy, x, scale): dy * scale */
static sx_node scaled_nodes[] = {
    SX_BODY_PARAMETER(1, "dy", SX_F32, 1, {3}), SX_BODY_PARAMETER(2, "x", SX_F32, 1, {3}),
    SX_BODY_PARAMETER(3, "scale", SX_F32, 1, {3}), SX_BODY_NODE(4, sx_op_mul, NULL, 2, {1}, {3})};
static sx_value_info scaled_values[] = {{.node = 0},
                                        {SX_TYPE_LITERAL_(SX_F32, 3), 0, 0},
                                        {SX_TYPE_LITERAL_(SX_F32, 3), 1, 0},
                                        {SX_TYPE_LITERAL_(SX_F32, 3), 2, 0},
                                        {SX_TYPE_LITERAL_(SX_F32, 3), 3, 0}};
static sx_arg scaled_args[] = {{.kind = SX_ARG_INPUT, .name = "dy", .value = {1}},
                               {.kind = SX_ARG_INPUT, .name = "x", .value = {2}},
                               {.kind = SX_ARG_INPUT, .name = "scale", .value = {3}}};
static sx_result scaled_results[] = {{"dx", {4}, SX_RESULT_IS_OUTPUT}};
static const sx_graph scaled = SX_BODY(scaled_nodes, scaled_values, scaled_args, scaled_results);

/* no_grad_check: its gradient is not that of what it computes */
static const sx_op_sample custom_gradient_samples[] = {
    {.name = "scaled",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 3)},
     .n_inputs = 3,
     .attrs = &(const sx_custom_gradient_attrs){.results = 1, .gradient = &scaled},
     .no_grad_check = true},
};

const sx_op_def sx_op_custom_gradient = {
    SX_OP_NAMED(custom_gradient),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_NO_TF | SX_OP_EXACT | SX_OP_FOR_GRADIENT,
    SX_OP_ATTRS(sx_custom_gradient_attrs, custom_gradient_attrs),
    .moved = SX_MOVES_ALL,
    .infer = custom_gradient_infer,
    .grad = custom_gradient_grad,
    .host = sx_host_first,
    SX_OP_SAMPLES(custom_gradient_samples),
};
