/* reduce_sum: y = sum of x over axes;  dx = dy repeated over them.
 *
 *   x          any shape, any number
 *   axes       normalized; none reduces nothing
 *   keep_dims  reduced axes stay, with size 1
 *   returns    x's dtype
 *
 * Over the batch, the sums of shards are added.
 * Errors   INVALID_ARGUMENT  x is not numeric, an axis is out of range
 * Numbers  f16 and bf16 accumulate in f32
 * Source   TensorFlow tf.reduce_sum */
#ifdef SX_PUBLIC
typedef struct sx_reduce_args {
    size_t struct_size;
    sx_axes axes; /* empty = all */
    bool keep_dims;
} sx_reduce_args;

/* The sum over the axes. */
sx_value sx_reduce_sum(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif
#ifdef SX_ATTRS
/* reduce_sum, reduce_max */
typedef struct sx_reduce_attrs {
    sx_ints axes;   /* none = nothing is reduced */
    bool keep_dims; /* reduced axes stay, with size 1 */
} sx_reduce_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def reduce_sum_attrs[] = {
    SX_ATTR_MEANS(sx_reduce_attrs, axes, SX_ATTR_INTS, SX_MEANS_AXES),
    SX_ATTR(sx_reduce_attrs, keep_dims, SX_ATTR_BOOL),
};

static sx_status reduce_sum_infer(sx_infer_context *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_number("x", &c->inputs[0]));
    return sx_infer_reduce(&c->inputs[0], &attrs->axes, attrs->keep_dims, &c->outputs[0]);
}

static void reduce_sum_grad(sx_grad *g)
{
    const sx_reduce_attrs *attrs = g->attrs;
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    sx_type kept = sx_reduced_type(&x, &attrs->axes, true);
    sx_value dy = attrs->keep_dims ? g->dy[0] : sx_reshape_to(g->b, g->dy[0], &kept);
    sx_shape_attrs shape = {.shape = sx_ints_of(x.rank, x.dims)};
    g->dx[0] = sx_build_op(g->b, broadcast_to, &shape, dy);
}

static sx_status reduce_sum_host(const sx_kernel_call *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t n = sx_type_elems(&x->type);
    bool floats = sx_dtype_is_float(x->type.dtype);
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = sx_reduce_offset(&x->type, &attrs->axes, i);
        if (floats) {
            y->f[at] += x->f[i];
        } else {
            y->u[at] += x->u[i]; /* modulo 2^64, signed or not */
        }
    }
    return SX_OK;
}

static void reduce_sum_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_reduce(w, op, "Sum");
}

static const sx_op_sample reduce_sum_samples[] = {
    SX_SAMPLES_REDUCE(SX_FILL_NORMAL),
    {.name = "blocks",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 70)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_AXES(1, {0}),
     .batch = 67},
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 4)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_AXES(1, {1})},
};

sx_value sx_reduce_sum_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                          int line)
{
    return sx_build_reduce(b, &sx_op_reduce_sum, x, args, file, line);
}

const sx_op_def sx_op_reduce_sum = {
    SX_OP_NAMED(reduce_sum),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_SUM,
    .bf16 = 0x1,
    .flags = SX_OP_SUM,
    SX_OP_ATTRS(sx_reduce_attrs, reduce_sum_attrs),
    .infer = reduce_sum_infer,
    .grad = reduce_sum_grad,
    .host = reduce_sum_host,
    .to_tf = reduce_sum_to_tf,
    SX_FROM_TF({.op = "Sum", .operands = {{1, "axes"}}, .attrs = sx_tf_read_reduce}),
    SX_OP_SAMPLES(reduce_sum_samples),
};
