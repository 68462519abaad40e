/* flowers_cnn: three convolutions with pooling and a dense layer, for small photographs. */
#include "nn/zoo/zoo.h"

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features; /* [N,128,128,3] in [-1,1] */
    for (int filters = 32; filters <= 128; filters *= 2) {
        x = sx_conv2d(b, x, filters, 3, .padding = SX_SAME, .activation = SX_RELU);
        x = sx_max_pool2d(b, x, 2);
    }
    x = sx_dense(b, sx_flatten(b, x), 256, .activation = SX_RELU);
    x = sx_dropout(b, x, sx_param_float(p, "dropout", 0.4));
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 5));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

const sx_model_def sx_zoo_flowers_cnn =
    SX_MODEL_DEF(.name = "flowers_cnn",
                 .about =
                     "three conv + pool, dense 256, dropout .4, dense: photographs of 128 x 128",
                 .build = build, .image = {128, 128, 3}, .scale = SX_MINUS1_1,
                 .augment = SX_FLIP_LEFT_RIGHT);
