/* argmax: the index along `axis` of the largest element; the first, if several are equal. No
 * gradient.
 *
 *   x        any number; the axis is neither the batch nor empty
 *   axis     normalized
 *   dtype    of the result: int32 or int64
 *   returns  x's shape without the axis
 *
 * Errors   INVALID_ARGUMENT  not numeric, axis out of range, empty or the batch, dtype
 * Numbers  exact
 * Source   TensorFlow tf.argmax */
#ifdef SX_PUBLIC
typedef struct sx_argmax_args {
    size_t struct_size;
    int axis;       /* -1 = the last */
    sx_dtype dtype; /* SX_I32 by default, or SX_I64 */
} sx_argmax_args;

/* The index of the maximum along an axis; among equal elements, the first. */
sx_value sx_argmax(sx_builder *b, sx_value x, const sx_argmax_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_argmax_attrs {
    int64_t axis;
    sx_dtype dtype; /* of the result: int32 or int64 */
} sx_argmax_attrs;
#endif

#include "graph/ops/arg_extreme.h"

static sx_status argmax_host(const sx_kernel_call *c)
{
    return sx_host_arg_extreme(c, false);
}

static void argmax_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_arg_extreme(w, op, "ArgMax");
}

static const sx_op_sample argmax_samples[] = {SX_SAMPLES_ARG_EXTREME};

sx_value sx_argmax_at(sx_builder *b, sx_value x, const sx_argmax_args *args, const char *file,
                      int line)
{
    return sx_build_arg_extreme(b, &sx_op_argmax, x, args, file, line);
}

const sx_op_def sx_op_argmax = {
    SX_OP_NAMED(argmax),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_argmax_attrs, sx_arg_extreme_rows),
    .infer = sx_infer_arg_extreme,
    .host = argmax_host,
    .to_tf = argmax_to_tf,
    SX_FROM_TF({.op = "ArgMax", .operands = {{1, "axis"}}, .attrs = sx_tf_read_arg_extreme}),
    SX_OP_SAMPLES(argmax_samples),
};
