/* reduce_min: y = the least of x over axes;  dx = dy shared equally among the elements that
 * equal it.
 *
 *   x          any shape, any number; the reduced axes are not empty
 *   axes       normalized; none reduces nothing
 *   keep_dims  reduced axes stay, with size 1
 *   returns    x's dtype
 *
 * Over the batch, the least of the shards' results.
 * Errors   INVALID_ARGUMENT  x is not numeric, an axis is out of range or empty
 * Numbers  exact
 * Source   TensorFlow tf.reduce_min */
#ifdef SX_PUBLIC
/* The minimum over the axes. */
sx_value sx_reduce_min(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif

#include "graph/ops/common.h"

static const sx_attr_def reduce_min_attrs[] = {
    SX_ATTR_MEANS(sx_reduce_attrs, axes, SX_ATTR_INTS, SX_MEANS_AXES),
    SX_ATTR(sx_reduce_attrs, keep_dims, SX_ATTR_BOOL),
};

static sx_status reduce_min_infer(sx_infer_context *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_number("x", &c->inputs[0]));
    SX_TRY(sx_infer_reduce(&c->inputs[0], &attrs->axes, attrs->keep_dims, &c->outputs[0]));
    for (int i = 0; i < attrs->axes.n; i++) {
        if (c->inputs[0].dims[attrs->axes.v[i]] == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %d of %s is empty", (int)attrs->axes.v[i],
                            SX_TEXT(&c->inputs[0]));
        }
    }
    return SX_OK;
}

/* hit = x == y; dx = hit dy / sum hit */
static void reduce_min_grad(sx_grad *g)
{
    const sx_reduce_attrs *attrs = g->attrs;
    sx_reduce_attrs keep = {.axes = attrs->axes, .keep_dims = true};
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    sx_type kept = sx_reduced_type(&x, &attrs->axes, true);
    sx_value y = sx_reshape_to(g->b, g->y[0], &kept);
    sx_value dy = sx_reshape_to(g->b, g->dy[0], &kept);
    sx_value hit = sx_cast_like(g->b, sx_build_op(g->b, equal, NULL, g->x[0], y), dy);
    sx_value count = sx_build_op(g->b, reduce_sum, &keep, hit);
    sx_value share = sx_build_op(g->b, div, NULL, dy, count);
    g->dx[0] = sx_build_op(g->b, mul, NULL, hit, share);
}

static sx_status reduce_min_host(const sx_kernel_call *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t n = sx_type_elems(&x->type);
    sx_host_fill(c, 0, INFINITY); /* for integers: the maximum */
#define REDUCE_MIN(c_type, field)                                                  \
    for (int64_t i = 0; i < n; i++) {                                              \
        c_type *at = &y->field[sx_reduce_offset(&x->type, &attrs->axes, i)];       \
        *at = x->field[i] < *at || x->field[i] != x->field[i] ? x->field[i] : *at; \
    }
    SX_HOST_BY_NUMBER(x->type.dtype, REDUCE_MIN)
    return SX_OK;
}

static void reduce_min_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_reduce(w, op, "Min");
}

static const sx_op_sample reduce_min_samples[] = {
    SX_SAMPLES_REDUCE(SX_FILL_DISTINCT),
};

sx_value sx_reduce_min_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                          int line)
{
    return sx_build_reduce(b, &sx_op_reduce_min, x, args, file, line);
}

const sx_op_def sx_op_reduce_min = {
    SX_OP_NAMED(reduce_min),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_MIN,
    .bf16 = 0x1,
    SX_OP_ATTRS(sx_reduce_attrs, reduce_min_attrs),
    .infer = reduce_min_infer,
    .grad = reduce_min_grad,
    .host = reduce_min_host,
    .to_tf = reduce_min_to_tf,
    SX_FROM_TF({.op = "Min", .operands = {{1, "axes"}}, .attrs = sx_tf_read_reduce}),
    SX_OP_SAMPLES(reduce_min_samples),
};
