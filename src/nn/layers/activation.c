/* Activations: one row each. */
#include "nn/layer.h"

typedef struct activation_row {
    const char *name;
    const sx_op_def *op;
} activation_row;

sx_value sx_activate(sx_builder *b, sx_value x, sx_activation activation)
{
    const activation_row rows[SX_ACTIVATION_COUNT_] = {
        [SX_RELU] = {"relu", &sx_op_relu},          [SX_RELU6] = {"relu6", &sx_op_relu6},
        [SX_SIGMOID] = {"sigmoid", &sx_op_sigmoid}, [SX_TANH] = {"tanh", &sx_op_tanh},
        [SX_SOFTMAX] = {"softmax", &sx_op_softmax},
    };
    if (activation == SX_LINEAR || sx_builder_failed(b)) {
        return x;
    }
    if ((unsigned)activation >= SX_ACTIVATION_COUNT_) {
        sx_layer_fail(b, "activation",
                      sx_error(SX_INVALID_ARGUMENT,
                               "activation %d does not exist; expected 0 to %d", (int)activation,
                               SX_ACTIVATION_COUNT_ - 1));
        return SX_NO_VALUE;
    }
    x = activation == SX_SOFTMAX ? sx_widen(b, x) : x; /* probabilities are float32 */
    return sx_build(b, rows[activation].op, NULL, &x, 1);
}
