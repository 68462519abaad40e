/* mnist_cnn: the convolutional network of Keras' MNIST example; 34,826 parameters.
 * Source: keras.io "Simple MNIST convnet". */
#include "nn/zoo/zoo.h"

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features; /* [N,28,28,1] in [0,1] */
    x = sx_conv2d(b, x, 32, 3, .activation = SX_RELU);
    x = sx_max_pool2d(b, x, 2);
    x = sx_conv2d(b, x, 64, 3, .activation = SX_RELU);
    x = sx_max_pool2d(b, x, 2);
    x = sx_flatten(b, x);
    x = sx_dropout(b, x, sx_param_float(p, "dropout", 0.5));
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 10));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

const sx_model_def sx_zoo_mnist_cnn =
    SX_MODEL_DEF(.name = "mnist_cnn",
                 .about = "conv 32, pool, conv 64, pool, dropout .5, dense: digits", .build = build,
                 .image = {28, 28, 1}, .scale = SX_0_1, .num_classes = 10);
