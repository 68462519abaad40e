/* map: a region applied to each element along axis 0, the results stacked along a new axis 0.
 *
 *   x...      the first `mapped` operands are split along axis 0, all of one length; the others are
 *             passed to the region whole
 *   body      region: (x[i]..., rest...) -> y...
 *   returns   y..., with the length in front
 *
 * Errors   INVALID_ARGUMENT  mapped operands that are scalars or differ in length, a region that
 *                            takes other types
 * Numbers  those of the region
 * Source   TensorFlow tf.map_fn */
#ifdef SX_ATTRS
typedef struct sx_map_attrs {
    const sx_graph *body;
    int64_t mapped; /* so many operands are cut along axis 0; the others are passed whole */
} sx_map_attrs;
#endif

#include <string.h>

#include "graph/ops/regions.h"

static const sx_attr_def map_attrs[] = {
    SX_ATTR(sx_map_attrs, body, SX_ATTR_BODY),
    SX_ATTR(sx_map_attrs, mapped, SX_ATTR_INT),
};

/* x without its axis 0. */
static sx_type element_type(const sx_type *x)
{
    return sx_type_make(x->dtype, x->rank - 1, x->dims + 1);
}

static sx_status map_infer(sx_infer_context *c)
{
    const sx_map_attrs *attrs = c->attrs;
    sx_type types[SX_MAX_OUTPUTS];
    if (attrs->mapped < 1 || attrs->mapped > c->n_inputs || c->n_inputs > SX_MAX_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%lld of %d operands are mapped; expected at least 1, and %d operands at "
                        "most",
                        (long long)attrs->mapped, c->n_inputs, SX_MAX_OUTPUTS);
    }
    for (int i = 0; i < c->n_inputs; i++) {
        const sx_type *x = &c->inputs[i];
        types[i] = *x;
        if (i >= attrs->mapped) {
            continue;
        }
        if (x->rank < 1 || x->dims[0] != c->inputs[0].dims[0]) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "operand %d is %s, expected an axis 0 as long as that of %s", i,
                            SX_TEXT(x), SX_TEXT(&c->inputs[0]));
        }
        types[i] = element_type(x);
    }
    SX_TRY(sx_require_region_args("body", attrs->body, types, c->n_inputs));
    if (attrs->body->n_results < 1 || attrs->body->n_results > SX_MAX_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT, "region body has %d results, expected 1 to %d",
                        attrs->body->n_results, SX_MAX_OUTPUTS);
    }
    c->n_outputs = attrs->body->n_results;
    for (int i = 0; i < c->n_outputs; i++) {
        const sx_type *y = sx_graph_type(attrs->body, attrs->body->results[i].value);
        if (y->rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "result %d is %s, which has no room for an axis",
                            i, SX_TEXT(y));
        }
        c->outputs[i] = (sx_type){.dtype = y->dtype, .rank = y->rank + 1};
        c->outputs[i].dims[0] = c->inputs[0].dims[0];
        memcpy(c->outputs[i].dims + 1, y->dims, (size_t)y->rank * sizeof(y->dims[0]));
    }
    return SX_OK;
}

/* A map over (x[i]..., dy[i]...) of the region's gradient; what operands that are passed whole get
 * of each element is summed. */
static void map_grad(sx_grad *g)
{
    const sx_map_attrs *attrs = g->attrs;
    const int n_x = g->n_inputs, mapped = (int)attrs->mapped;
    enum { MOST = 2 * SX_MAX_OUTPUTS };
    sx_value operands[MOST], args[MOST], y[SX_MAX_OUTPUTS], ys[SX_MAX_OUTPUTS], dys[SX_MAX_OUTPUTS],
        x[SX_MAX_OUTPUTS], xs[SX_MAX_OUTPUTS], dx[SX_MAX_OUTPUTS];
    sx_type types[MOST];
    int n = 0, n_dy = 0, n_xs = 0;
    for (int i = 0; i < mapped; i++) {
        operands[n++] = g->x[i];
    }
    for (int i = 0; i < g->n_outputs; i++) {
        if (sx_value_is(g->dy[i])) {
            operands[n++] = g->dy[i];
            n_dy++;
        }
    }
    const int cut = n;
    for (int i = mapped; i < n_x; i++) {
        operands[n++] = g->x[i];
    }
    for (int i = 0; i < n; i++) {
        const sx_type whole = sx_type_of_value(g->b, operands[i]);
        types[i] = i < cut ? element_type(&whole) : whole;
    }
    sx_builder *b = sx_region_begin(g, types, n, args);
    if (b == NULL) {
        return;
    }
    for (int i = 0; i < n_x; i++) {
        x[i] = i < mapped ? args[i] : args[cut + i - mapped];
    }
    sx_region_inline(b, attrs->body, x, y);
    for (int i = 0, k = 0; i < g->n_outputs; i++) {
        if (sx_value_is(g->dy[i])) {
            ys[k] = y[i];
            dys[k] = args[mapped + k];
            k++;
        }
    }
    for (int i = 0; i < n_x; i++) {
        if (g->needed[i]) {
            xs[n_xs++] = x[i];
        }
    }
    sx_pull_back(b, ys, dys, n_dy, xs, n_xs, dx);
    for (int i = 0; i < n_xs && !sx_builder_failed(b); i++) {
        const sx_type type = sx_type_of_value(b, xs[i]);
        dx[i] = sx_value_is(dx[i]) ? dx[i] : sx_region_zeros(b, &type);
    }
    sx_graph *body = sx_region_end(g, b, dx, n_xs);
    if (body == NULL) {
        return;
    }
    sx_value first =
        sx_build(g->b, &sx_op_map, &(sx_map_attrs){.body = body, .mapped = cut}, operands, n);
    for (int i = 0, k = 0; i < n_x; i++) {
        if (!g->needed[i]) {
            continue;
        }
        g->dx[i] = sx_output_of(first, k++);
        if (i >= mapped && !sx_builder_failed(g->b)) {
            sx_reduce_attrs front = {.axes = {.n = 1, .v = {0}}};
            g->dx[i] = sx_build_op(g->b, reduce_sum, &front, g->dx[i]);
        }
    }
    sx_graph_destroy(body);
}

static sx_status map_host(const sx_kernel_call *c)
{
    const sx_map_attrs *attrs = c->attrs;
    const int64_t n = c->in[0].type.dims[0];
    sx_host_tensor *part = sx_arena_array(c->arena, c->n_in + c->n_out, sx_host_tensor);
    if (part == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        SX_TRY(sx_cancel_check(c->cancel), "element %lld", (long long)k);
        for (int i = 0; i < c->n_in + c->n_out; i++) {
            const sx_host_tensor *whole = i < c->n_in ? &c->in[i] : &c->out[i - c->n_in];
            part[i] = *whole;
            if (i < attrs->mapped || i >= c->n_in) {
                part[i].type = element_type(&whole->type);
                part[i].data = (char *)whole->data + k * sx_interpret_bytes(c, &part[i].type);
            }
        }
        SX_TRY(sx_interpret(c, attrs->body, part, part + c->n_in), "element %lld", (long long)k);
    }
    return SX_OK;
}

/* (x, y): x[i] + y, of vectors */
static sx_node sum_nodes[] = {SX_BODY_PARAMETER(1, "x", SX_F32, 1, {3}),
                              SX_BODY_PARAMETER(2, "y", SX_F32, 1, {3}),
                              SX_BODY_NODE(3, sx_op_add, NULL, 2, {1}, {2})};
static sx_value_info sum_values[] = {{.node = 0},
                                     {SX_TYPE_LITERAL_(SX_F32, 3), 0, 0},
                                     {SX_TYPE_LITERAL_(SX_F32, 3), 1, 0},
                                     {SX_TYPE_LITERAL_(SX_F32, 3), 2, 0}};
static sx_arg sum_args[] = {{.kind = SX_ARG_INPUT, .name = "x", .value = {1}},
                            {.kind = SX_ARG_INPUT, .name = "y", .value = {2}}};
static sx_result sum_results[] = {{"z", {3}, SX_RESULT_IS_OUTPUT}};
static const sx_graph sum = SX_BODY(sum_nodes, sum_values, sum_args, sum_results);

static const sx_op_sample map_samples[] = {
    {.name = "rows_plus_row",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 3)},
     .n_inputs = 2,
     .attrs = &(const sx_map_attrs){.body = &sum, .mapped = 1}},
};

const sx_op_def sx_op_map = {
    SX_OP_NAMED(map),           .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,       .batch_rule = SX_RULE_REGIONS,
    .flags = SX_OP_NO_TF,       SX_OP_ATTRS(sx_map_attrs, map_attrs),
    .moved = SX_MOVES_ALL,      .infer = map_infer,
    .grad = map_grad,           .host = map_host,
    SX_OP_SAMPLES(map_samples),
};
