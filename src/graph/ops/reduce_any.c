/* reduce_any: y = whether some element of x over axes is true. No gradient.
 *
 *   x          any shape, bool
 *   axes       normalized; none reduces nothing
 *   keep_dims  reduced axes stay, with size 1
 *   returns    bool; over no elements false
 *
 * Errors   INVALID_ARGUMENT  x is not bool, an axis is out of range
 * Numbers  exact
 * Source   TensorFlow tf.reduce_any */
#ifdef SX_PUBLIC
/* Whether some element over the axes is true. */
sx_value sx_reduce_any(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif

#include "graph/ops/common.h"

static const sx_attr_def reduce_any_attrs[] = {
    SX_ATTR_MEANS(sx_reduce_attrs, axes, SX_ATTR_INTS, SX_MEANS_AXES),
    SX_ATTR(sx_reduce_attrs, keep_dims, SX_ATTR_BOOL),
};

static sx_status reduce_any_infer(sx_infer_context *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_BOOL));
    return sx_infer_reduce(&c->inputs[0], &attrs->axes, attrs->keep_dims, &c->outputs[0]);
}

static sx_status reduce_any_host(const sx_kernel_call *c)
{
    const sx_reduce_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t n = sx_type_elems(&x->type);
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        if (x->b[i] != 0) {
            y->b[sx_reduce_offset(&x->type, &attrs->axes, i)] = 1;
        }
    }
    return SX_OK;
}

static void reduce_any_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_reduce(w, op, "Any");
}

static const sx_op_sample reduce_any_samples[] = {
    {.name = "batch",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_AXES(1, {0})},
    {.name = "rows",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 2)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_AXES(1, {1})},
    {.name = "all_kept",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 1, 3)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_KEPT(3, {0, 1, 2})},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_BOOL(3, -2, 4)},
     .n_inputs = 1,
     .attrs = SX_SAMPLE_AXES(2, {0, 2})},
    {.name = "nothing", .inputs = {SX_SAMPLE_BOOL(2, 3)}, .n_inputs = 1},
};

sx_value sx_reduce_any_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                          int line)
{
    return sx_build_reduce(b, &sx_op_reduce_any, x, args, file, line);
}

const sx_op_def sx_op_reduce_any = {
    SX_OP_NAMED(reduce_any),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_OR,
    .flags = SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_reduce_attrs, reduce_any_attrs),
    .infer = reduce_any_infer,
    .host = reduce_any_host,
    .to_tf = reduce_any_to_tf,
    SX_FROM_TF({.op = "Any", .operands = {{1, "axes"}}, .attrs = sx_tf_read_reduce}),
    SX_OP_SAMPLES(reduce_any_samples),
};
