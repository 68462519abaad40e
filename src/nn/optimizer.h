/* Optimizers: rows that turn gradients into assignments of the training program. */
#ifndef SX_NN_OPTIMIZER_H
#define SX_NN_OPTIMIZER_H

#include <sextant/nn.h>

/* Fields at 0 become the optimizer's defaults; SX_OPTIMIZER_DEFAULT becomes Adam. INVALID_ARGUMENT
 * names the field that is out of range, including those of the schedule. */
SX_MUST_USE sx_status sx_optimizer_resolve(sx_optimizer *optimizer);
SX_MUST_USE sx_status sx_schedule_check(const sx_schedule *schedule);

/* Resolves the fields that depend on the batch size and on epochs (base_batch_size, warmup_epochs,
 * in_epochs) to a rate and steps. 0 = unknown. INVALID_ARGUMENT: an unknown value is needed. */
SX_MUST_USE sx_status sx_optimizer_settle_rate(sx_optimizer *optimizer, int64_t batch,
                                               int64_t steps_per_epoch);
/* "learning rate 0.4 = 0.1 x 1024 / 256, rising over the first 1560 steps" of an unresolved
 * optimizer; empty if its rate depends on neither. Returns `buffer`. */
char *sx_optimizer_rate_text(const sx_optimizer *optimizer, int64_t batch, int64_t steps_per_epoch,
                             char *buffer, size_t capacity);

/* The rate at `step` (int64 scalar), float32 scalar. */
sx_value sx_build_learning_rate(sx_builder *b, double base, const sx_schedule *schedule,
                                sx_value step);

/* Whether a variable is a batch normalization's gamma or beta. */
bool sx_is_batch_norms(const char *variable);
/* Σ x², float32 scalar. */
sx_value sx_build_square_sum(sx_builder *b, sx_value x);
/* rate · Σ w²/2 over weights [n] with those names, except batch normalization's; float32 scalar,
 * empty if there are none. Source: tf.nn.l2_loss, and models/official/resnet/resnet_main.py of
 * tensorflow/tpu. */
sx_value sx_build_l2(sx_builder *b, double rate, const sx_value *weights, const char *const *names,
                     int n);

/* A gradient by rows: those of a table that sx_gather() took, [I..., J...] at indices [I...]. */
typedef struct sx_row_gradient {
    sx_value indices, rows;
} sx_row_gradient;
/* Whether the update changes those rows alone, without a gradient of the whole table: of a large
 * one, by plain SGD. The other optimizers move rows that have no gradient, too, as in Keras 3. */
bool sx_updates_rows(const sx_builder *b, const sx_optimizer *optimizer, sx_value gradient,
                     sx_row_gradient *out);

/* Updates variable `name` (current value `var`) and its slots, which it creates with TF1's names:
 * `<name>/Momentum`, `<name>/RMSProp`, `<name>/Adam`, `<name>/Adam_1`. If `ok` is false at run
 * time, nothing changes. `step` counts from 0 before the first update. */
void sx_build_update(sx_builder *b, const sx_optimizer *optimizer, const char *name, sx_value var,
                     sx_value gradient, sx_value learning_rate, sx_value step, sx_value ok);

#endif
