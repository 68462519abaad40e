/* catsdogs_cnn: a small network for binary classification of photographs. */
#include "nn/zoo/zoo.h"

static sx_value block(sx_builder *b, sx_value x, int64_t filters)
{
    x = sx_conv2d(b, x, filters, 3, .activation = SX_RELU,
                  .kernel_initializer = SX_INIT_HE_UNIFORM);
    return sx_max_pool2d(b, x, 2);
}

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features; /* [N,150,150,3] in [0,1] */
    x = block(b, x, 32);
    x = block(b, x, 32);
    x = block(b, x, 64);
    x = sx_dense(b, sx_flatten(b, x), 64, .activation = SX_RELU,
                 .kernel_initializer = SX_INIT_HE_UNIFORM);
    x = sx_dropout(b, x, sx_param_float(p, "dropout", 0.5));
    sx_value logit = sx_dense(b, x, 1);
    return sx_classifier_spec(b, logit, in->labels, .optimizer = sx_rmsprop(.learning_rate = 1e-3));
}

const sx_model_def sx_zoo_catsdogs_cnn =
    SX_MODEL_DEF(.name = "catsdogs_cnn",
                 .about =
                     "conv 32, 32, 64 with pooling, dense 64, dropout .5, dense 1: two classes",
                 .build = build, .image = {150, 150, 3}, .scale = SX_0_1,
                 .augment = SX_FLIP_LEFT_RIGHT, .num_classes = 2);
