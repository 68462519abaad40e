/* sigmoid_cross_entropy, elementwise: the loss of a logit x against a probability z.
 *
 *   y  = max(x, 0) - x z + ln(1 + exp(-|x|))
 *   dx = dy (sigmoid(x) - z),  dz = -dy x
 *
 *   x, z     one float type
 *   returns  that type
 *
 * Errors   INVALID_ARGUMENT  types differ, or no float
 * Numbers  no overflow for any x
 * Source   TensorFlow tf.nn.sigmoid_cross_entropy_with_logits */
#include "graph/ops/common.h"

static sx_status sigmoid_cross_entropy_infer(sx_infer *c)
{
    return sx_infer_zip_equal(c);
}

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

static double sigmoid_cross_entropy_of(double x, double z)
{
    return fmax(x, 0) - x * z + log1p(exp(-fabs(x)));
}

static void sigmoid_cross_entropy_ref(const sx_ref *r)
{
    sx_ref_zip(r, sigmoid_cross_entropy_of);
}

static void sigmoid_cross_entropy_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_value x = op->in[0], z = op->in[1];
    sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype));
    sx_tf_value positive = sx_tf_add(w, "Relu", NULL, sx_tf_in(x), t);
    sx_tf_value product = sx_tf_add(w, "Mul", NULL, sx_tf_in(x, z), t);
    sx_tf_value straight = sx_tf_add(w, "Sub", NULL, sx_tf_in(positive, product), t);
    sx_tf_value distance = sx_tf_add(w, "Abs", NULL, sx_tf_in(x), t);
    sx_tf_value negative = sx_tf_add(w, "Neg", NULL, sx_tf_in(distance), t);
    sx_tf_value power = sx_tf_add(w, "Exp", NULL, sx_tf_in(negative), t);
    sx_tf_value curve = sx_tf_add(w, "Log1p", NULL, sx_tf_in(power), t);
    op->out[0] = sx_tf_add(w, "AddV2", NULL, sx_tf_in(straight, curve), t);
}

static void sigmoid_cross_entropy_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo x = sx_hlo_widen(w, op->in[0]), z = sx_hlo_widen(w, op->in[1]);
    sx_hlo away = sx_hlo_unary(w, "negate", sx_hlo_unary(w, "abs", x));
    sx_hlo tail = sx_hlo_unary(w, "log_plus_one", sx_hlo_unary(w, "exponential", away));
    sx_hlo head = sx_hlo_with(w, "maximum", x, 0);
    head = sx_hlo_binary(w, "subtract", head, sx_hlo_binary(w, "multiply", x, z));
    op->out[0] = sx_hlo_convert(w, sx_hlo_binary(w, "add", head, tail), op->out_types[0].dtype);
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
    .infer = sigmoid_cross_entropy_infer,
    .grad = sigmoid_cross_entropy_grad,
    .ref = sigmoid_cross_entropy_ref,
    .to_tf = sigmoid_cross_entropy_to_tf,
    .to_stablehlo = sigmoid_cross_entropy_to_stablehlo,
    SX_OP_SAMPLES(sigmoid_cross_entropy_samples),
};
