/* softmax_cross_entropy: the loss of logits against class distributions, and its gradient.
 *
 *   loss[n]        = sum_j z[n,j] (log sum_k exp(x[n,k]) - x[n,j])
 *   backprop[n,c]  = softmax(x[n])[c] - z[n,c]
 *   dx             = dloss backprop + (dback - sum_k dback[k] p[k]) p,   p = softmax(x)
 *   dz             = -dloss log_softmax(x) - dback
 *
 *   logits   [N,C], a float type
 *   labels   [N,C] of the same dtype, rows that sum to 1 as a rule
 *   returns  loss [N], backprop [N,C]
 *
 * backprop is the gradient of the loss where labels sum to 1, and is taken for it elsewhere, as in
 * TensorFlow: an example whose labels are all 0 has no loss, but pulls its logits together.
 * Errors   INVALID_ARGUMENT  ranks, dtypes, shapes differ
 * Numbers  accumulates in f32 for f16, bf16
 * Source   TensorFlow tf.nn.softmax_cross_entropy_with_logits */
#ifdef SX_PUBLIC
/* logits [N,C], labels [N,C] -> loss [N]; output 1 is its gradient [N,C]. */
sx_value sx_nn_softmax_cross_entropy(sx_builder *b, sx_value logits, sx_value labels);
#endif

#include "graph/ops/common.h"

static sx_status softmax_cross_entropy_infer(sx_infer_context *c)
{
    const sx_type *logits = &c->inputs[0];
    SX_TRY(sx_require_rank("logits", logits, 2, "[N,C]"));
    SX_TRY(sx_require_classes("logits", logits));
    SX_TRY(sx_require_equal("labels", &c->inputs[1], "logits", logits));
    c->outputs[0] = sx_type_of(logits->dtype, logits->dims[0]);
    c->outputs[1] = *logits;
    return SX_OK;
}

static sx_value labels_from_loss(const sx_grad *g)
{
    if (!sx_value_is(g->dy[0])) {
        return SX_NO_VALUE;
    }
    sx_value log_p = sx_build_op(g->b, log_softmax, NULL, g->x[0]);
    sx_value scaled = sx_scale_rows(g->b, g->dy[0], log_p);
    return sx_build_op(g->b, neg, NULL, scaled);
}

static void softmax_cross_entropy_grad(sx_grad *g)
{
    if (g->needed[0]) {
        sx_value along_loss = sx_scale_rows(g->b, g->dy[0], g->y[1]);
        g->dx[0] = sx_add_maybe(g->b, along_loss, sx_softmax_pull(g->b, g->x[0], g->dy[1]));
    }
    if (g->needed[1]) {
        sx_value from_backprop = SX_NO_VALUE;
        if (sx_value_is(g->dy[1])) {
            from_backprop = sx_build_op(g->b, neg, NULL, g->dy[1]);
        }
        g->dx[1] = sx_add_maybe(g->b, labels_from_loss(g), from_backprop);
    }
}

static sx_status softmax_cross_entropy_host(const sx_kernel_call *c)
{
    int64_t n = c->in[0].type.dims[0], classes = c->in[0].type.dims[1];
    for (int64_t i = 0; i < n; i++) {
        const double *x = &c->in[0].f[i * classes], *z = &c->in[1].f[i * classes];
        double greatest, log_sum = sx_log_sum_exp(x, classes, &greatest), loss = 0;
        for (int64_t j = 0; j < classes; j++) {
            loss += z[j] * (log_sum - (x[j] - greatest));
        }
        c->out[0].f[i] = loss;
        for (int64_t j = 0; j < classes; j++) {
            c->out[1].f[i * classes + j] = exp(x[j] - greatest - log_sum) - z[j];
        }
    }
    return SX_OK;
}

static void softmax_cross_entropy_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    op->out[0] = sx_tf_add(w, "SoftmaxCrossEntropyWithLogits", NULL, sx_tf_in(op->in[0], op->in[1]),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
    op->out[1] = sx_tf_output(op->out[0], 1);
}

/* Rows that sum to 1, in 16 bits, too. */
static const double ten[] = {0.25, 0.125, 0.0625, 0.3125, 0, 0.125, 0.03125, 0.03125, 0, 0.0625};
static const double two[] = {0.25, 0.75, 1, 0, 0.5, 0.5};
#define LABELS(numbers_, ...) SX_SAMPLE_LIST(SX_F32, numbers_, __VA_ARGS__)
#define NN                    SX_FILL_NORMAL
static const sx_op_sample softmax_cross_entropy_samples[] = {
    {.name = "ten",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 10), LABELS(ten, SX_BATCH, 10)},
     .n_inputs = 2},
    {.name = "static", .inputs = {SX_SAMPLE_F32(NN, 3, 2), LABELS(two, 3, 2)}, .n_inputs = 2},
};

sx_value sx_nn_softmax_cross_entropy_at(sx_builder *b, sx_value logits, sx_value labels,
                                        const char *file, int line)
{
    return sx_build_at(b, &sx_op_softmax_cross_entropy, NULL, (const sx_value[]){logits, labels}, 2,
                       file, line);
}

const sx_op_def sx_op_softmax_cross_entropy = {
    SX_OP_NAMED(softmax_cross_entropy),
    .n_in = 2,
    .n_out = 2,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x3,
    .infer = softmax_cross_entropy_infer,
    .grad = softmax_cross_entropy_grad,
    .host = softmax_cross_entropy_host,
    .to_tf = softmax_cross_entropy_to_tf,
    SX_FROM_TF({.op = "SoftmaxCrossEntropyWithLogits"}),
    SX_OP_SAMPLES(softmax_cross_entropy_samples),
};
