/* leaky_relu: y = x where x > 0, else alpha x;  dx = dy where x > 0, else alpha dy
 *
 *   x        any shape, f16 bf16 f32 f64
 *   alpha    finite
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type, alpha is not finite
 * Numbers  one rounding
 * Source   TensorFlow tf.nn.leaky_relu, whose alpha is 0.2 by default */
#ifdef SX_PUBLIC
/* x if positive, otherwise alpha x. */
sx_value sx_leaky_relu(sx_builder *b, sx_value x, double alpha);
#endif
#ifdef SX_ATTRS
/* leaky_relu, elu */
typedef struct sx_alpha_attrs {
    double alpha;
} sx_alpha_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def leaky_relu_attrs[] = {SX_ATTR(sx_alpha_attrs, alpha, SX_ATTR_FLOAT)};

static sx_status leaky_relu_infer(sx_infer_context *c)
{
    const sx_alpha_attrs *attrs = c->attrs;
    if (!isfinite(attrs->alpha)) {
        return sx_error(SX_INVALID_ARGUMENT, "alpha is %g, expected a finite number", attrs->alpha);
    }
    return sx_infer_map_float(c);
}

static void leaky_relu_grad(sx_grad *g)
{
    const sx_alpha_attrs *attrs = g->attrs;
    sx_value zero = sx_scalar_like(g->b, g->x[0], 0);
    sx_value positive = sx_build_op(g->b, greater, NULL, g->x[0], zero);
    sx_value below = sx_times(g->b, g->dy[0], attrs->alpha);
    g->dx[0] = sx_build_op(g->b, select, NULL, positive, g->dy[0], below);
}

static sx_status leaky_relu_host(const sx_kernel_call *c)
{
    const sx_alpha_attrs *attrs = c->attrs;
    int64_t n = sx_type_elems(&c->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        double x = c->in[0].f[i];
        c->out[0].f[i] = x > 0 ? x : attrs->alpha * x;
    }
    return SX_OK;
}

static void leaky_relu_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_alpha_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                               sx_tf_attr_float("alpha", (float)attrs->alpha)};
    bool is_default = (float)attrs->alpha == 0.2f;
    op->out[0] = sx_tf_add(w, "LeakyRelu", NULL, sx_tf_in(op->in[0]),
                           (sx_tf_attr_list){list, is_default ? 1 : 2});
}

static sx_status leaky_relu_from_tf(const sx_tf_node *n, void *out)
{
    sx_alpha_attrs *attrs = out;
    attrs->alpha = sx_tf_read_float(n, "alpha", 0.2);
    return SX_OK;
}

#define ALPHA(value) (&(const sx_alpha_attrs){.alpha = (value)})
static const sx_op_sample leaky_relu_samples[] = {
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

sx_value sx_leaky_relu_at(sx_builder *b, sx_value x, double alpha, const char *file, int line)
{
    sx_alpha_attrs attrs = {.alpha = alpha};
    return sx_build_at(b, &sx_op_leaky_relu, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_leaky_relu = {
    SX_OP_NAMED(leaky_relu),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    SX_OP_ATTRS(sx_alpha_attrs, leaky_relu_attrs),
    .infer = leaky_relu_infer,
    .grad = leaky_relu_grad,
    .host = leaky_relu_host,
    .to_tf = leaky_relu_to_tf,
    SX_FROM_TF({.op = "LeakyRelu", .attrs = leaky_relu_from_tf}),
    SX_OP_SAMPLES(leaky_relu_samples),
};
