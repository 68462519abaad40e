/* Model parallelism: a stack of LSTMs, each layer on a device of its own, for `sextant train`.
 *
 *     sextant train ./examples/lstm_stack.c --device cpu:0,cpu:1 --data sequence.npy,kind.npy \
 *         --model-dir run1 --epochs 5
 *
 * A layer's variables lie on its device, where they are updated; only its outputs, and their
 * gradients, go to the other. On one device (--device cpu) the scopes say nothing, and the weights
 * that are learned are the same. */
#include <sextant/sextant.h>
#include <stdio.h>

enum { STEPS = 8, INPUTS = 4, UNITS = 16, LAYERS = 2 };

static sx_value part(sx_builder *b, sx_value gates, int k)
{
    return sx_slice(b, gates, .begin = {0, (int64_t)k * UNITS}, .size = {SX_BATCH, UNITS});
}

/* x[STEPS], each [N,inputs], become the outputs h[STEPS] of the layer, each [N,UNITS]. */
static void lstm(sx_builder *b, const char *name, int64_t inputs, sx_value x[STEPS])
{
    char kernel_name[32], bias_name[32];
    snprintf(kernel_name, sizeof(kernel_name), "%s/kernel", name);
    snprintf(bias_name, sizeof(bias_name), "%s/bias", name);
    const sx_type kernel_type = sx_type_of(SX_F32, inputs + UNITS, 4 * UNITS);
    sx_value kernel = sx_variable(b, &(sx_variable_spec){.name = kernel_name,
                                                         .type = kernel_type,
                                                         .init = SX_INIT_GLOROT_UNIFORM});
    sx_value bias = sx_variable(
        b, &(sx_variable_spec){.name = bias_name, .type = sx_type_of(SX_F32, 4 * UNITS)});
    const sx_tensor zeros = {sx_type_of(SX_F32, 1, UNITS), (float[UNITS]){0}};
    sx_value none = sx_mul(b, sx_slice(b, x[0], .size = {SX_BATCH, 1}), sx_constant_f32(b, 0));
    sx_value h = sx_add(b, none, sx_constant(b, zeros)), c = h; /* [N,UNITS] of 0 */
    for (int t = 0; t < STEPS; t++) {
        sx_value gates = sx_add(b, sx_matmul(b, sx_concat(b, 1, x[t], h), kernel), bias);
        c = sx_add(b, sx_mul(b, sx_sigmoid(b, part(b, gates, 1)), c),
                   sx_mul(b, sx_sigmoid(b, part(b, gates, 0)), sx_tanh(b, part(b, gates, 2))));
        x[t] = h = sx_mul(b, sx_sigmoid(b, part(b, gates, 3)), sx_tanh(b, c));
    }
}

static sx_spec lstm_stack(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x[STEPS];
    for (int t = 0; t < STEPS; t++) {
        x[t] = sx_reshape(
            b, sx_slice(b, in->features, .begin = {0, t, 0}, .size = {SX_BATCH, 1, INPUTS}),
            SX_BATCH, INPUTS);
    }
    for (int i = 0; i < LAYERS; i++) {
        char name[16], device[16];
        snprintf(name, sizeof(name), "lstm_%d", i);
        snprintf(device, sizeof(device), "/cpu:%d", i);
        sx_device_scope_begin(b, device);
        lstm(b, name, i == 0 ? INPUTS : UNITS, x);
        sx_device_scope_end(b);
    }
    sx_device_scope_begin(b, "/cpu:1"); /* where the last output is */
    sx_value logits = sx_dense(b, x[STEPS - 1], sx_param_int(p, "num_classes", 3));
    sx_spec spec =
        sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-2));
    sx_device_scope_end(b);
    return spec;
}

SX_MODEL(lstm_stack, .build = lstm_stack, .about = "two LSTMs, each on a device of its own",
         .num_classes = 3, .inputs = {{"sequence", .dims = {STEPS, INPUTS}}},
         .labels = {{.name = "kind"}})
