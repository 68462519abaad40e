/* log_softmax over the last axis:  y[i] = x[i] - log sum_j exp(x[j])
 *
 *   dx = dy - exp(y) sum_j dy[j]
 *
 *   x        [..., C], rank 1 or more, a float type; the last axis is not the batch
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  not a float type, rank 0, the last axis is the batch
 * Numbers  accumulates in f32 for f16, bf16
 * Source   TensorFlow tf.nn.log_softmax with axis -1 */
#ifdef SX_PUBLIC
/* The logarithm of softmax, over the last axis */
sx_value sx_log_softmax(sx_builder *b, sx_value x);
#endif

#include "graph/ops/common.h"

static sx_status log_softmax_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_float("x", x));
    if (x->rank < 1 || x->dims[x->rank - 1] < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, expected [...,C] with C other than the batch", SX_TEXT(x));
    }
    c->outputs[0] = *x;
    return SX_OK;
}

static void log_softmax_grad(sx_grad *g)
{
    sx_value p = sx_build_op(g->b, exp, NULL, g->y[0]);
    sx_value sum = sx_sum_last(g->b, g->dy[0]);
    sx_value pull = sx_build_op(g->b, mul, NULL, p, sum);
    g->dx[0] = sx_build_op(g->b, sub, NULL, g->dy[0], pull);
}

static sx_status log_softmax_host(const sx_kernel_call *c)
{
    int64_t classes = c->in[0].type.dims[c->in[0].type.rank - 1], n = sx_type_elems(&c->in[0].type);
    for (int64_t row = 0; row < n; row += classes) {
        const double *x = &c->in[0].f[row];
        double greatest, log_sum = sx_log_sum_exp(x, classes, &greatest);
        for (int64_t i = 0; i < classes; i++) {
            c->out[0].f[row + i] = x[i] - greatest - log_sum;
        }
    }
    return SX_OK;
}

static void log_softmax_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "LogSoftmax");
}

static const sx_op_sample log_softmax_samples[] = {
    SX_SAMPLES_CLASSES(SX_FILL_NORMAL),
    {.name = "no_classes", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 0)}, .n_inputs = 1},
};

SX_PUBLIC_MAP(log_softmax)

const sx_op_def sx_op_log_softmax = {
    SX_OP_NAMED(log_softmax),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .infer = log_softmax_infer,
    .grad = log_softmax_grad,
    .host = log_softmax_host,
    .to_tf = log_softmax_to_tf,
    SX_FROM_TF({.op = "LogSoftmax"}),
    SX_OP_SAMPLES(log_softmax_samples),
};
