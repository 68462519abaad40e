/* The training step: means over the batch, gradients, updates; of a model's spec, or in a step
 * function of the caller's (sx_minimize() of sextant/nn.h). */
#ifndef SX_NN_TRAIN_STEP_H
#define SX_NN_TRAIN_STEP_H

#include "nn/model_program.h"

/* Adds the step of a training program: loss, metrics, gradients, updates, step. `example_weights`
 * [N] may be empty. Reads the builder's request. Errors, kept by the builder: the optimizer's. */
void sx_build_train(sx_builder *b, const sx_spec *spec, sx_value example_weights);
/* Checks what a step function of the caller's has added, if it is the run's training step: its
 * first output is the loss, and it calls sx_minimize(). */
void sx_check_train_step(sx_builder *b);

#endif
