/* clip: y = min(max(x, low), high), propagates NaN;  dx = dy where low <= x <= high, else 0
 *
 *   x          any shape, any number
 *   low, high  low <= high
 *   returns    x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numeric, low > high or NaN
 * Numbers  exact; the limits are rounded to the dtype
 * Source   TensorFlow tf.clip_by_value */
#ifdef SX_PUBLIC
/* min(max(x, low), high). */
sx_value sx_clip(sx_builder *b, sx_value x, double low, double high);
#endif
#ifdef SX_ATTRS
typedef struct sx_clip_attrs {
    double low, high;
} sx_clip_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def clip_attrs[] = {
    SX_ATTR(sx_clip_attrs, low, SX_ATTR_FLOAT),
    SX_ATTR(sx_clip_attrs, high, SX_ATTR_FLOAT),
};

static sx_status clip_infer(sx_infer_context *c)
{
    const sx_clip_attrs *attrs = c->attrs;
    if (!(attrs->low <= attrs->high)) {
        return sx_error(SX_INVALID_ARGUMENT, "low is %g and high %g, expected low <= high",
                        attrs->low, attrs->high);
    }
    return sx_infer_map_number(c);
}

static void clip_grad(sx_grad *g)
{
    const sx_clip_attrs *attrs = g->attrs;
    sx_value low = sx_scalar_like(g->b, g->x[0], attrs->low);
    sx_value high = sx_scalar_like(g->b, g->x[0], attrs->high);
    sx_value above = sx_build_op(g->b, greater, NULL, g->x[0], high);
    sx_value below = sx_build_op(g->b, less, NULL, g->x[0], low);
    sx_value zero = sx_scalar_like(g->b, g->dy[0], 0);
    sx_value rest = sx_build_op(g->b, select, NULL, above, zero, g->dy[0]);
    g->dx[0] = sx_build_op(g->b, select, NULL, below, zero, rest);
}

static sx_status clip_host(const sx_kernel_call *c)
{
    const sx_clip_attrs *attrs = c->attrs;
    const sx_dtype dtype = c->out[0].type.dtype;
    const int64_t n = sx_type_elems(&c->out[0].type);
    uint64_t room[2];
    const sx_host_tensor bounds = {.type = sx_type_of(dtype, 2), .data = room};
    sx_host_set(&bounds, 0, attrs->low); /* integers are compared as they are */
    sx_host_set(&bounds, 1, attrs->high);
#define CLIP(type, field)                                            \
    for (int64_t i = 0; i < n; i++) {                                \
        const type x = c->in[0].field[i];                            \
        c->out[0].field[i] = x < bounds.field[0]   ? bounds.field[0] \
                             : x > bounds.field[1] ? bounds.field[1] \
                                                   : x;              \
    }
    SX_HOST_BY_NUMBER(dtype, CLIP)
    return SX_OK;
}

static void clip_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_clip_attrs *attrs = op->attrs;
    sx_dtype dtype = op->in_types[0].dtype;
    sx_tf_value low = sx_tf_scalar(w, "low", dtype, attrs->low);
    sx_tf_value high = sx_tf_scalar(w, "high", dtype, attrs->high);
    op->out[0] = sx_tf_add(w, "ClipByValue", NULL, sx_tf_in(op->in[0], low, high),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)dtype)));
}

#define BETWEEN(low_, high_) (&(const sx_clip_attrs){.low = (low_), .high = (high_)})
static const sx_op_sample clip_samples[] = {
    {.name = "batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 7)},
     .n_inputs = 1,
     .attrs = BETWEEN(-0.3, 0.4)},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 3, 5, 2)},
     .n_inputs = 1,
     .attrs = BETWEEN(0, 1)},
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH)},
     .n_inputs = 1,
     .attrs = BETWEEN(2, 5)},
    {.name = "to_zero", .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 9)}, .n_inputs = 1},
};

sx_value sx_clip_at(sx_builder *b, sx_value x, double low, double high, const char *file, int line)
{
    sx_clip_attrs attrs = {.low = low, .high = high};
    return sx_build_at(b, &sx_op_clip, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_clip = {
    SX_OP_NAMED(clip),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    SX_OP_ATTRS(sx_clip_attrs, clip_attrs),
    .infer = clip_infer,
    .grad = clip_grad,
    .host = clip_host,
    .to_tf = clip_to_tf,
    SX_FROM_TF({.op = "ClipByValue", .operands = {{1, "low"}, {2, "high"}}}),
    SX_OP_SAMPLES(clip_samples),
};
