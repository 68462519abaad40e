/* sparse_softmax_cross_entropy: the loss of logits against class indices, and its gradient.
 *
 *   loss[n]        = log sum_j exp(x[n,j]) - x[n, label[n]]
 *   backprop[n,c]  = softmax(x[n])[c] - (c == label[n])
 *   dx             = dloss backprop + (dback - sum_j dback[j] p[j]) p,   p = softmax(x)
 *
 *   logits   [N,C], a float type
 *   labels   [N], int32 or int64; outside [0, C) that example's results are NaN
 *   returns  loss [N], backprop [N,C], both of the logits' dtype
 *
 * Errors   INVALID_ARGUMENT  ranks, dtypes, N differs
 * Numbers  accumulates in f32 for f16, bf16
 * Source   TensorFlow tf.nn.sparse_softmax_cross_entropy_with_logits */
#ifdef SX_PUBLIC
/* logits [N,C], labels int32 or int64 [N] -> loss [N]; output 1 is its gradient [N,C]. */
sx_value sx_nn_sparse_softmax_cross_entropy(sx_builder *b, sx_value logits, sx_value labels);
#endif

#include "graph/ops/common.h"

static sx_status sparse_softmax_cross_entropy_infer(sx_infer_context *c)
{
    const sx_type *logits = &c->inputs[0], *labels = &c->inputs[1];
    SX_TRY(sx_require_rank("logits", logits, 2, "[N,C]"));
    SX_TRY(sx_require_classes("logits", logits));
    SX_TRY(sx_require_index("labels", labels));
    SX_TRY(sx_require_vector("labels", labels, labels->dtype, logits->dims[0]));
    c->outputs[0] = sx_type_of(logits->dtype, logits->dims[0]);
    c->outputs[1] = *logits;
    return SX_OK;
}

static void sparse_softmax_cross_entropy_grad(sx_grad *g)
{
    sx_value along_loss = sx_scale_rows(g->b, g->dy[0], g->y[1]);
    sx_value along_backprop = sx_softmax_pull(g->b, g->x[0], g->dy[1]);
    g->dx[0] = sx_add_maybe(g->b, along_loss, along_backprop);
}

static sx_status sparse_softmax_cross_entropy_host(const sx_kernel_call *c)
{
    int64_t n = c->in[0].type.dims[0], classes = c->in[0].type.dims[1];
    for (int64_t i = 0; i < n; i++) {
        const double *x = &c->in[0].f[i * classes];
        double *backprop = &c->out[1].f[i * classes];
        int64_t label = c->in[1].i[i];
        bool known = label >= 0 && label < classes;
        double greatest, log_sum = sx_log_sum_exp(x, classes, &greatest);
        c->out[0].f[i] = known ? log_sum - (x[label] - greatest) : NAN;
        for (int64_t j = 0; j < classes; j++) {
            backprop[j] = known ? exp(x[j] - greatest - log_sum) - (j == label) : NAN;
        }
    }
    return SX_OK;
}

static void sparse_softmax_cross_entropy_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    op->out[0] =
        sx_tf_add(w, "SparseSoftmaxCrossEntropyWithLogits", NULL, sx_tf_in(op->in[0], op->in[1]),
                  sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                              sx_tf_attr_type("Tlabels", (int)op->in_types[1].dtype)));
    op->out[1] = sx_tf_output(op->out[0], 1);
}

static const sx_op_sample sparse_softmax_cross_entropy_samples[] = {
    {.name = "ten",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 10), SX_SAMPLE_I32(10, SX_BATCH)},
     .n_inputs = 2},
    {.name = "one_class",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 1), SX_SAMPLE_I32(1, SX_BATCH)},
     .n_inputs = 2},
    {.name = "static",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 4), SX_SAMPLE_I32(4, 3)},
     .n_inputs = 2},
    {.name = "tokens",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, -4, 5), SX_SAMPLE_I32(5, -4)},
     .n_inputs = 2},
};

sx_value sx_nn_sparse_softmax_cross_entropy_at(sx_builder *b, sx_value logits, sx_value labels,
                                               const char *file, int line)
{
    return sx_build_at(b, &sx_op_sparse_softmax_cross_entropy, NULL,
                       (const sx_value[]){logits, labels}, 2, file, line);
}

const sx_op_def sx_op_sparse_softmax_cross_entropy = {
    SX_OP_NAMED(sparse_softmax_cross_entropy),
    .n_in = 2,
    .n_out = 2,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .infer = sparse_softmax_cross_entropy_infer,
    .grad = sparse_softmax_cross_entropy_grad,
    .host = sparse_softmax_cross_entropy_host,
    .to_tf = sparse_softmax_cross_entropy_to_tf,
    SX_FROM_TF({.op = "SparseSoftmaxCrossEntropyWithLogits"}),
    SX_OP_SAMPLES(sparse_softmax_cross_entropy_samples),
};
