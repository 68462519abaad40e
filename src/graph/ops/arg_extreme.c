/* What argmin and argmax share: see arg_extreme.h. */
#include "graph/ops/arg_extreme.h"

const sx_attr_def sx_arg_extreme_rows[2] = {
    SX_ATTR_MEANS(sx_argmax_attrs, axis, SX_ATTR_INT, SX_MEANS_AXIS),
    SX_ATTR(sx_argmax_attrs, dtype, SX_ATTR_DTYPE),
};

sx_status sx_infer_arg_extreme(sx_infer_context *c)
{
    const sx_argmax_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_number("x", x));
    if (attrs->axis < 0 || attrs->axis >= x->rank || x->dims[attrs->axis] < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "axis %lld of %s %s", (long long)attrs->axis,
                        SX_TEXT(x),
                        attrs->axis < 0 || attrs->axis >= x->rank ? "is out of range"
                        : x->dims[attrs->axis] == 0               ? "is empty"
                                                                  : "is the batch");
    }
    if (attrs->dtype != SX_I32 && attrs->dtype != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "dtype is %s, expected int32 or int64",
                        sx_dtype_name(attrs->dtype));
    }
    c->outputs[0] = sx_reduced_type(x, &(sx_ints){1, {attrs->axis}}, false);
    c->outputs[0].dtype = attrs->dtype;
    return SX_OK;
}

sx_status sx_host_arg_extreme(const sx_kernel_call *c, bool least)
{
    const sx_argmax_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t inner = sx_dims_product(&x->type, (int)attrs->axis + 1, x->type.rank);
    int64_t count = x->type.dims[attrs->axis], n = sx_type_elems(&y->type);
#define ARG_EXTREME(type, field)                                              \
    for (int64_t i = 0; i < n; i++) {                                         \
        const type *first = &x->field[i / inner * inner * count + i % inner]; \
        int64_t best = 0;                                                     \
        for (int64_t k = 1; k < count; k++) {                                 \
            const type v = first[k * inner], so_far = first[best * inner];    \
            best = (least ? v < so_far : v > so_far) ? k : best;              \
        }                                                                     \
        y->i[i] = best;                                                       \
    }
    SX_HOST_BY_NUMBER(x->type.dtype, ARG_EXTREME)
    return SX_OK;
}

void sx_tf_arg_extreme(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op)
{
    const sx_argmax_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                               sx_tf_attr_type("Tidx", SX_I32),
                               sx_tf_attr_type("output_type", (int)attrs->dtype)};
    sx_tf_value axis = sx_tf_const_i32(w, "axis", (int32_t)attrs->axis);
    op->out[0] = sx_tf_add(w, tf_op, NULL, sx_tf_in(op->in[0], axis),
                           (sx_tf_attr_list){list, attrs->dtype == SX_I64 ? 2 : 3});
}

sx_status sx_tf_read_arg_extreme(const sx_tf_node *n, void *out)
{
    sx_argmax_attrs *attrs = out;
    attrs->dtype = sx_tf_read_dtype(n, "output_type", SX_I64);
    return SX_OK;
}

sx_value sx_build_arg_extreme(sx_builder *b, const sx_op_def *op, sx_value x,
                              const sx_argmax_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_argmax_args, args);
    sx_argmax_attrs attrs = {
        .axis = sx_normalize_axis(args->axis, sx_type_of_value(b, x).rank),
        .dtype = args->dtype == SX_DTYPE_NONE ? SX_I32 : args->dtype,
    };
    return sx_build_at(b, op, &attrs, &x, 1, file, line);
}
