/* mlp: one hidden layer over the pixels. */
#include "nn/zoo/zoo.h"

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_flatten(b, in->features);
    x = sx_dense(b, x, sx_param_int(p, "hidden", 128), .activation = SX_RELU);
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 10));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

const sx_model_def sx_zoo_mlp =
    SX_MODEL_DEF(.name = "mlp", .about = "dense 128, dense: 28 x 28 pixels", .build = build,
                 .image = {28, 28, 1}, .scale = SX_0_1, .num_classes = 10);
