/* What the cumulative operators share: see cumulative.h. */
#include "graph/ops/cumulative.h"

const sx_attr_def sx_cumulative_rows[3] = {
    SX_ATTR_MEANS(sx_cumulative_attrs, axis, SX_ATTR_INT, SX_MEANS_AXIS),
    SX_ATTR(sx_cumulative_attrs, exclusive, SX_ATTR_BOOL),
    SX_ATTR(sx_cumulative_attrs, reverse, SX_ATTR_BOOL),
};

sx_status sx_infer_cumulative(sx_infer_context *c)
{
    const sx_cumulative_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_number("x", x));
    if (attrs->axis < 0 || attrs->axis >= x->rank || sx_dim_is_batch(x->dims[attrs->axis])) {
        return sx_error(
            SX_INVALID_ARGUMENT, "axis %lld of x %s %s", (long long)attrs->axis, SX_TEXT(x),
            attrs->axis < 0 || attrs->axis >= x->rank ? "is out of range"
                                                      : "is the batch, whose examples stay apart");
    }
    c->outputs[0] = *x;
    return SX_OK;
}

sx_cumulative_lines sx_cumulative_lines_of(const sx_type *x, int64_t axis)
{
    sx_cumulative_lines l = {.count = x->dims[axis],
                             .inner = sx_dims_product(x, (int)axis + 1, x->rank)};
    l.lines = l.count > 0 ? sx_type_elems(x) / l.count : 0;
    return l;
}

sx_status sx_host_cumulative(const sx_kernel_call *c, bool product)
{
    const sx_cumulative_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const sx_cumulative_lines l = sx_cumulative_lines_of(&x->type, attrs->axis);
#define CUMULATE(type, field)                                                                 \
    for (int64_t i = 0; i < l.lines; i++) {                                                   \
        type total = product ? 1 : 0;                                                         \
        for (int64_t k = 0; k < l.count; k++) {                                               \
            const int64_t at = sx_cumulative_at(&l, i, attrs->reverse ? l.count - 1 - k : k); \
            const type now = x->field[at], next = product ? total * now : total + now;        \
            y->field[at] = attrs->exclusive ? total : next;                                   \
            total = next;                                                                     \
        }                                                                                     \
    }
    if (sx_carrier_of(x->type.dtype) == SX_CARRIER_F) {
        CUMULATE(double, f)
    } else { /* modulo 2^64: the same bits for signed numbers */
        CUMULATE(uint64_t, u)
    }
    return SX_OK;
}

void sx_tf_cumulative(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op)
{
    const sx_cumulative_attrs *attrs = op->attrs;
    sx_tf_attr list[4] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                          sx_tf_attr_type("Tidx", SX_I32)};
    int n = 2;
    if (attrs->exclusive) {
        list[n++] = sx_tf_attr_bool("exclusive", true);
    }
    if (attrs->reverse) {
        list[n++] = sx_tf_attr_bool("reverse", true);
    }
    op->out[0] = sx_tf_add(w, tf_op, NULL,
                           sx_tf_in(op->in[0], sx_tf_const_i32(w, "axis", (int32_t)attrs->axis)),
                           (sx_tf_attr_list){list, n});
}

sx_status sx_tf_read_cumulative(const sx_tf_node *n, void *out)
{
    sx_cumulative_attrs *attrs = out;
    attrs->exclusive = sx_tf_read_bool(n, "exclusive", false);
    attrs->reverse = sx_tf_read_bool(n, "reverse", false);
    return SX_OK;
}

sx_value sx_build_cumulative(sx_builder *b, const sx_op_def *op, sx_value x,
                             const sx_cumulative_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_cumulative_args, args);
    const sx_cumulative_attrs attrs = {
        .axis = sx_normalize_axis(args->axis, sx_type_of_value(b, x).rank),
        .exclusive = args->exclusive,
        .reverse = args->reverse,
    };
    return sx_build_at(b, op, &attrs, &x, 1, file, line);
}
