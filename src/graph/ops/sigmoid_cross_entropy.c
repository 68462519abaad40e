/* sigmoid_cross_entropy, elementwise: the loss of a logit x against a probability z.
 *
 *   y  = max(x, 0) - x z + ln(1 + exp(-|x|))
 *   dx = dy (sigmoid(x) - z),  dz = -dy x
 *
 *   x, z     one float type
 *   returns  that type
 *
 * Errors   INVALID_ARGUMENT  types differ or are not float types
 * Numbers  no overflow for any x
 * Source   TensorFlow tf.nn.sigmoid_cross_entropy_with_logits */
#ifdef SX_PUBLIC
/* Elementwise: max(x, 0) - x z + log(1 + exp(-|x|)). */
sx_value sx_nn_sigmoid_cross_entropy(sx_builder *b, sx_value logits, sx_value labels);
#endif

#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void sigmoid_cross_entropy_grad(sx_grad *g)
{
    if (g->needed[0]) {
        sx_value p = sx_build_op(g->b, sigmoid, NULL, g->x[0]);
        sx_value error = sx_build_op(g->b, sub, NULL, p, g->x[1]);
        g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], error);
    }
    if (g->needed[1]) {
        sx_value product = sx_build_op(g->b, mul, NULL, g->dy[0], g->x[0]);
        g->dx[1] = sx_build_op(g->b, neg, NULL, product);
    }
}

#define NN SX_FILL_NORMAL
static const sx_op_sample sigmoid_cross_entropy_samples[] = {
    {.name = "column",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 1), SX_SAMPLE_F32(SX_FILL_POSITIVE, SX_BATCH, 1)},
     .n_inputs = 2},
    {.name = "vector",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH), SX_SAMPLE_F32(SX_FILL_POSITIVE, SX_BATCH)},
     .n_inputs = 2},
    {.name = "many",
     .inputs = {SX_SAMPLE_F32(NN, 3, 7), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3, 7)},
     .n_inputs = 2},
};

sx_value sx_nn_sigmoid_cross_entropy_at(sx_builder *b, sx_value logits, sx_value labels,
                                        const char *file, int line)
{
    return sx_build_at(b, &sx_op_sigmoid_cross_entropy, NULL, (const sx_value[]){logits, labels}, 2,
                       file, line);
}

const sx_op_def sx_op_sigmoid_cross_entropy = {
    SX_OP_NAMED(sigmoid_cross_entropy),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_zip_equal,
    .grad = sigmoid_cross_entropy_grad,
    SX_OP_ROW(sigmoid_cross_entropy),
    SX_OP_SAMPLES(sigmoid_cross_entropy_samples),
};
