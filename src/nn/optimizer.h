/* Optimizers: rows that turn gradients into assignments of the training program. */
#ifndef SX_NN_OPTIMIZER_H
#define SX_NN_OPTIMIZER_H

#include <sextant/nn.h>

/* Fields at 0 become the optimizer's defaults; SX_OPTIMIZER_DEFAULT becomes Adam.
 * INVALID_ARGUMENT for values out of range. */
SX_MUST_USE sx_status sx_optimizer_resolve(sx_optimizer *optimizer);
const char *sx_optimizer_name(sx_optimizer_kind kind);

/* The rate at `step` (int64 scalar), float32 scalar. */
sx_value sx_build_learning_rate(sx_builder *b, double base, const sx_schedule *schedule,
                                sx_value step);

/* Assigns variable `name` (current value `var`) and its slots, which it makes: TF1's names
 * `<name>/Momentum`, `<name>/RMSProp`, `<name>/Adam`, `<name>/Adam_1`. With `ok` false at run time
 * nothing changes. `step` counts from 0 before the first update. */
void sx_build_update(sx_builder *b, const sx_optimizer *optimizer, const char *name, sx_value var,
                     sx_value gradient, sx_value learning_rate, sx_value step, sx_value ok);

#endif
