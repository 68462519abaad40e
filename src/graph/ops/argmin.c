/* argmin: the index along `axis` of the smallest element; the first, if several are equal. No
 * gradient.
 *
 *   x        any number; the axis is neither the batch nor empty
 *   axis     normalized
 *   dtype    of the result: int32 or int64
 *   returns  x's shape without the axis
 *
 * Errors   INVALID_ARGUMENT  not numeric, axis out of range, empty or the batch, dtype
 * Numbers  exact
 * Source   TensorFlow tf.argmin */
#ifdef SX_PUBLIC
/* The index of the minimum along an axis; among equal elements, the first. */
sx_value sx_argmin(sx_builder *b, sx_value x, const sx_argmax_args *args);
#endif

#include "graph/ops/common.h"

static const sx_attr_def argmin_attrs[] = {
    SX_ATTR_MEANS(sx_argmax_attrs, axis, SX_ATTR_INT, SX_MEANS_AXIS),
    SX_ATTR(sx_argmax_attrs, dtype, SX_ATTR_DTYPE),
};

static sx_status argmin_infer(sx_infer_context *c)
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

static sx_status argmin_host(const sx_kernel_call *c)
{
    const sx_argmax_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t inner = sx_dims_product(&x->type, (int)attrs->axis + 1, x->type.rank);
    int64_t count = x->type.dims[attrs->axis], n = sx_type_elems(&y->type);
#define ARGMIN(type, field)                                                   \
    for (int64_t i = 0; i < n; i++) {                                         \
        const type *first = &x->field[i / inner * inner * count + i % inner]; \
        int64_t best = 0;                                                     \
        for (int64_t k = 1; k < count; k++) {                                 \
            best = first[k * inner] < first[best * inner] ? k : best;         \
        }                                                                     \
        y->i[i] = best;                                                       \
    }
    SX_HOST_BY_NUMBER(x->type.dtype, ARGMIN)
    return SX_OK;
}

static void argmin_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_argmax_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                               sx_tf_attr_type("Tidx", SX_I32),
                               sx_tf_attr_type("output_type", (int)attrs->dtype)};
    sx_tf_value axis = sx_tf_const_i32(w, "axis", (int32_t)attrs->axis);
    op->out[0] = sx_tf_add(w, "ArgMin", NULL, sx_tf_in(op->in[0], axis),
                           (sx_tf_attr_list){list, attrs->dtype == SX_I64 ? 2 : 3});
}

static sx_status argmin_from_tf(const sx_tf_node *n, void *out)
{
    sx_argmax_attrs *attrs = out;
    attrs->dtype = sx_tf_read_dtype(n, "output_type", SX_I64);
    return SX_OK;
}

#define ALONG(axis_, dtype_) (&(const sx_argmax_attrs){.axis = (axis_), .dtype = (dtype_)})
static const sx_op_sample argmin_samples[] = {
    {.name = "classes",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 10)},
     .n_inputs = 1,
     .attrs = ALONG(1, SX_I32)},
    {.name = "middle",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 5, 3)},
     .n_inputs = 1,
     .attrs = ALONG(1, SX_I64)},
    {.name = "ties",
     .inputs = {SX_SAMPLE_I32(2, SX_BATCH, 9)},
     .n_inputs = 1,
     .attrs = ALONG(1, SX_I32)},
    {.name = "first",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 6, 2)},
     .n_inputs = 1,
     .attrs = ALONG(0, SX_I32)},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 4, -2, 3)},
     .n_inputs = 1,
     .attrs = ALONG(0, SX_I32)},
};

sx_value sx_argmin_at(sx_builder *b, sx_value x, const sx_argmax_args *args, const char *file,
                      int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_argmax_args, args);
    sx_argmax_attrs attrs = {
        .axis = sx_normalize_axis(args->axis, sx_type_of_value(b, x).rank),
        .dtype = args->dtype == SX_DTYPE_NONE ? SX_I32 : args->dtype,
    };
    return sx_build_at(b, &sx_op_argmin, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_argmin = {
    SX_OP_NAMED(argmin),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_argmax_attrs, argmin_attrs),
    .infer = argmin_infer,
    .host = argmin_host,
    .to_tf = argmin_to_tf,
    SX_FROM_TF({.op = "ArgMin", .operands = {{1, "axis"}}, .attrs = argmin_from_tf}),
    SX_OP_SAMPLES(argmin_samples),
};
