/* A model in its own file, for photographs of flowers (or anything else in class folders):
 *
 *     sextant train ./examples/flowers.c --data 'data/train-*' --eval-data 'data/val-*' \
 *         --model-dir run1 --epochs 20 -- --num_classes 5
 *
 * The function is called once for each mode and only builds the network; shapes are checked at
 * every call, and errors are reported with the line in this file. */
#include <sextant/sextant.h>

/* x: [N,128,128,3] in [-1,1] */
static sx_spec flowers(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features;
    for (int filters = 32; filters <= 128; filters *= 2) {
        x = sx_conv2d(b, x, filters, 3, .padding = SX_SAME, .activation = SX_RELU);
        x = sx_max_pool2d(b, x, 2);
    }
    x = sx_dense(b, sx_flatten(b, x), 256, .activation = SX_RELU);
    x = sx_dropout(b, x, sx_param_float(p, "dropout", 0.4));
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 5));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

SX_MODEL(flowers, .about = "three conv + pool, dense 256", .build = flowers, .image = {128, 128, 3},
         .scale = SX_MINUS1_1, .augment = SX_FLIP_LEFT_RIGHT)
