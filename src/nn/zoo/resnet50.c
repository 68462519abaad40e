/* resnet50: ResNet-50 v1.5 (the stride of a bottleneck is on its 3x3 convolution).
 * Source: He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015; v1.5 as in
 * tensorflow/models' resnet. 25.56 M parameters with 1000 classes at 224 x 224. */
#include "nn/zoo/zoo.h"

static sx_value conv_norm(sx_builder *b, sx_value x, int64_t filters, int64_t kernel,
                          int64_t strides)
{
    x = sx_conv2d(b, x, filters, kernel, .strides = strides, .padding = SX_SAME, .no_bias = true,
                  .kernel_initializer = SX_INIT_HE_NORMAL);
    return sx_batch_norm(b, x, .momentum = .9, .epsilon = 1.001e-5);
}

/* relu(x + f(x)): 1x1 to `filters`, 3x3, 1x1 to four times as many. */
static sx_value bottleneck(sx_builder *b, sx_value x, int64_t filters, int64_t strides,
                           bool project)
{
    sx_value shortcut = project ? conv_norm(b, x, 4 * filters, 1, strides) : x;
    sx_value y = sx_relu(b, conv_norm(b, x, filters, 1, 1));
    y = sx_relu(b, conv_norm(b, y, filters, 3, strides));
    y = conv_norm(b, y, 4 * filters, 1, 1);
    return sx_relu(b, sx_add(b, y, shortcut));
}

/* Parameter schedule=reference: the schedule used to train ResNet-50 on TPUs, for 90 epochs at any
 * batch size: 0.1 per 256 examples, rising for 5 epochs, divided by 10 at 30, 60 and 80; L2 of
 * 1e-4. Source: tensorflow/tpu models/official/resnet/resnet_main.py. */
static sx_optimizer optimizer(const sx_params *p)
{
    enum { CONSTANT, REFERENCE };
    sx_optimizer o = sx_sgd(.learning_rate = .1, .momentum = .9, .nesterov = true);
    if (sx_param_choice(p, "schedule", "constant|reference") == REFERENCE) {
        o.base_batch_size = 256;
        o.l2 = 1e-4;
        o.schedule = (sx_schedule){.kind = SX_PIECEWISE,
                                   .in_epochs = true,
                                   .warmup_epochs = 5,
                                   .n_boundaries = 3,
                                   .boundaries = {30, 60, 80},
                                   .values = {1, .1, .01, .001}};
    }
    return o;
}

static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const int blocks[] = {3, 4, 6, 3};
    sx_value x = sx_relu(b, conv_norm(b, in->features, 64, 7, 2));
    x = sx_max_pool2d(b, x, 3, .strides = 2, .padding = SX_SAME);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < blocks[stage]; i++) {
            x = bottleneck(b, x, 64 << stage, i == 0 && stage > 0 ? 2 : 1, i == 0);
        }
    }
    int64_t classes = sx_param_int(p, "num_classes", 1000);
    sx_value logits = sx_dense(b, sx_global_average_pool2d(b, x), classes);
    return sx_classifier_spec(b, logits, in->labels, .top_k = classes < 5 ? 0 : 5,
                              .optimizer = optimizer(p));
}

const sx_model_def sx_zoo_resnet50 =
    SX_MODEL_DEF(.name = "resnet50", .about = "ResNet-50 v1.5: photographs of 224 x 224",
                 .build = build, .image = {224, 224, 3}, .scale = SX_MEAN_STD,
                 .mean = {.485f, .456f, .406f}, .std = {.229f, .224f, .225f},
                 .augment = SX_FLIP_LEFT_RIGHT);
