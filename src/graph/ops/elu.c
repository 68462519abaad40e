/* elu: y = x where x > 0, else alpha (eˣ - 1);  dx = dy where x > 0, else dy (y + alpha)
 *
 *   x        any shape, f16 bf16 f32 f64
 *   alpha    finite
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type, alpha is not finite
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.nn.elu, whose alpha is 1 */
#ifdef SX_PUBLIC
/* x if positive, otherwise alpha (eˣ - 1). */
sx_value sx_elu(sx_builder *b, sx_value x, double alpha);
#endif

#include "graph/ops/common.h"

static const sx_attr_def elu_attrs[] = {SX_ATTR(sx_alpha_attrs, alpha, SX_ATTR_FLOAT)};

static sx_status elu_infer(sx_infer_context *c)
{
    const sx_alpha_attrs *attrs = c->attrs;
    if (!isfinite(attrs->alpha)) {
        return sx_error(SX_INVALID_ARGUMENT, "alpha is %g, expected a finite number", attrs->alpha);
    }
    return sx_infer_map_float(c);
}

static void elu_grad(sx_grad *g)
{
    const sx_alpha_attrs *attrs = g->attrs;
    sx_value zero = sx_scalar_like(g->b, g->x[0], 0);
    sx_value positive = sx_build_op(g->b, greater, NULL, g->x[0], zero);
    sx_value alpha = sx_scalar_like(g->b, g->y[0], attrs->alpha);
    sx_value slope = sx_build_op(g->b, add, NULL, g->y[0], alpha);
    sx_value below = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
    g->dx[0] = sx_build_op(g->b, select, NULL, positive, g->dy[0], below);
}

static sx_status elu_host(const sx_kernel_call *c)
{
    const sx_alpha_attrs *attrs = c->attrs;
    int64_t n = sx_type_elems(&c->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        double x = c->in[0].f[i];
        c->out[0].f[i] = x > 0 ? x : attrs->alpha * expm1(x);
    }
    return SX_OK;
}

/* TensorFlow's Elu has a fixed alpha of 1; for others, writes the arithmetic. */
static void elu_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_alpha_attrs *attrs = op->attrs;
    sx_dtype dtype = op->in_types[0].dtype;
    if (attrs->alpha == 1) {
        sx_tf_plain(w, op, "Elu");
        return;
    }
    sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)dtype));
    sx_tf_value zero = sx_tf_scalar(w, "zero", dtype, 0);
    sx_tf_value alpha = sx_tf_scalar(w, "alpha", dtype, attrs->alpha);
    sx_tf_value positive = sx_tf_add(w, "Greater", NULL, sx_tf_in(op->in[0], zero), t);
    sx_tf_value curve = sx_tf_add(w, "Expm1", NULL, sx_tf_in(op->in[0]), t);
    sx_tf_value below = sx_tf_add(w, "Mul", NULL, sx_tf_in(alpha, curve), t);
    op->out[0] = sx_tf_add(w, "SelectV2", NULL, sx_tf_in(positive, op->in[0], below), t);
}

static sx_status elu_from_tf(const sx_tf_node *n, void *out)
{
    sx_alpha_attrs *attrs = out;
    (void)n;
    attrs->alpha = 1;
    return SX_OK;
}

#define ALPHA(value) (&(const sx_alpha_attrs){.alpha = (value)})
static const sx_op_sample elu_samples[] = {
    {.name = "batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 7)},
     .n_inputs = 1,
     .attrs = ALPHA(0.2)},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 3, 5, 2)},
     .n_inputs = 1,
     .attrs = ALPHA(1)},
    {.name = "zero", .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 9)}, .n_inputs = 1},
};

sx_value sx_elu_at(sx_builder *b, sx_value x, double alpha, const char *file, int line)
{
    sx_alpha_attrs attrs = {.alpha = alpha};
    return sx_build_at(b, &sx_op_elu, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_elu = {
    SX_OP_NAMED(elu),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    SX_OP_ATTRS(sx_alpha_attrs, elu_attrs),
    .infer = elu_infer,
    .grad = elu_grad,
    .host = elu_host,
    .to_tf = elu_to_tf,
    SX_FROM_TF({.op = "Elu", .attrs = elu_from_tf}),
    SX_OP_SAMPLES(elu_samples),
};
