/* What the reductions share: see reduce.h. */
#include "graph/ops/reduce.h"

const sx_attr_def sx_reduce_rows[2] = {
    SX_ATTR_MEANS(sx_reduce_attrs, axes, SX_ATTR_INTS, SX_MEANS_AXES),
    SX_ATTR(sx_reduce_attrs, keep_dims, SX_ATTR_BOOL),
};

sx_status sx_infer_reduce_number(sx_infer_context *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_number("x", &c->inputs[0]));
    return sx_infer_reduce(&c->inputs[0], &attrs->axes, attrs->keep_dims, &c->outputs[0]);
}

sx_status sx_infer_reduce_bool(sx_infer_context *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_BOOL));
    return sx_infer_reduce(&c->inputs[0], &attrs->axes, attrs->keep_dims, &c->outputs[0]);
}

void sx_tf_reduce(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op)
{
    const sx_reduce_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                               sx_tf_attr_type("Tidx", SX_I32), sx_tf_attr_bool("keep_dims", true)};
    const int first = op->in_types[0].dtype == SX_BOOL; /* All and Any have no T */
    op->out[0] = sx_tf_add(w, tf_op, NULL, sx_tf_in(op->in[0], sx_tf_ints(w, "axes", &attrs->axes)),
                           (sx_tf_attr_list){list + first, (attrs->keep_dims ? 3 : 2) - first});
}

sx_status sx_tf_read_reduce(const sx_tf_node *n, void *out)
{
    sx_reduce_attrs *attrs = out;
    attrs->keep_dims = sx_tf_read_bool(n, "keep_dims", false);
    return SX_OK;
}

sx_value sx_build_reduce(sx_builder *b, const sx_op_def *op, sx_value x, const sx_reduce_args *args,
                         const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_reduce_args, args);
    sx_reduce_attrs attrs = {
        .axes = sx_normalize_axes(args->axes, sx_type_of_value(b, x).rank),
        .keep_dims = args->keep_dims,
    };
    return sx_build_at(b, op, &attrs, &x, 1, file, line);
}

sx_status sx_host_reduce_total(const sx_kernel_call *c, bool product)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t n = sx_type_elems(&x->type);
    sx_host_fill(c, 0, product ? 1 : 0);
#define REDUCE_TOTAL(c_type, field)                                          \
    for (int64_t i = 0; i < n; i++) {                                        \
        c_type *at = &y->field[sx_reduce_offset(&x->type, &attrs->axes, i)]; \
        *at = product ? *at * x->field[i] : *at + x->field[i];               \
    }
    if (sx_carrier_of(x->type.dtype) == SX_CARRIER_F) {
        REDUCE_TOTAL(double, f)
    } else { /* modulo 2^64: the same bits for signed numbers */
        REDUCE_TOTAL(uint64_t, u)
    }
    return SX_OK;
}

/* hit = x == y; dx = hit dy / sum hit */
void sx_grad_reduce_extreme(sx_grad *g)
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

sx_status sx_host_reduce_extreme(const sx_kernel_call *c, bool least)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t n = sx_type_elems(&x->type);
    sx_host_fill(c, 0, least ? INFINITY : -INFINITY); /* for integers: their greatest, least */
#define REDUCE_EXTREME(c_type, field)                                        \
    for (int64_t i = 0; i < n; i++) {                                        \
        c_type *at = &y->field[sx_reduce_offset(&x->type, &attrs->axes, i)]; \
        const c_type v = x->field[i];                                        \
        *at = (least ? v < *at : v > *at) || v != v ? v : *at;               \
    }
    SX_HOST_BY_NUMBER(x->type.dtype, REDUCE_EXTREME)
    return SX_OK;
}

sx_status sx_host_reduce_bool(const sx_kernel_call *c, bool decisive)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t n = sx_type_elems(&x->type);
    sx_host_fill(c, 0, decisive ? 0 : 1);
    for (int64_t i = 0; i < n; i++) {
        if (x->b[i] == (decisive ? 1 : 0)) {
            y->b[sx_reduce_offset(&x->type, &attrs->axes, i)] = decisive ? 1 : 0;
        }
    }
    return SX_OK;
}
