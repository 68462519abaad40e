/* linear: softmax regression over the pixels. */
#include "nn/zoo/zoo.h"

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value logits = sx_dense(b, sx_flatten(b, in->features), sx_param_int(p, "num_classes", 10));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_sgd(.learning_rate = .01));
}

const sx_model_def sx_zoo_linear =
    SX_MODEL_DEF(.name = "linear", .about = "one dense layer: 28 x 28 pixels", .build = build,
                 .image = {28, 28, 1}, .scale = SX_0_1, .num_classes = 10);
