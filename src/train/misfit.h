/* Checks that data fit a model, by their types alone, before a record is read. The error is
 * INVALID_ARGUMENT and names the data's field, both shapes, the layer that reads or produces the
 * value with its line, and what to do. */
#ifndef SX_TRAIN_MISFIT_H
#define SX_TRAIN_MISFIT_H

#include "train/run_dir.h"

/* INVALID_ARGUMENT: no device can hold the component (a string). */
SX_MUST_USE sx_status sx_check_for_device(const sx_component *component);

/* Checks a batch's `component` against the model's input; integers of any width count as int32.
 * `program` (may be NULL) is used to name layers. */
SX_MUST_USE sx_status sx_check_input(const sx_component *component, const sx_run_info *info,
                                     const sx_model_input *input, const sx_graph *program);
/* The error for a named input that the data do not have; lists their components. */
SX_MUST_USE sx_status sx_missing_input(const sx_dataset *data, const sx_run_info *info,
                                       const sx_model_input *input);

/* The number of classes of a predict program: the width of its "probabilities"; 0 = unknown. */
int64_t sx_program_classes(const sx_graph *predict);
/* The data must not have more classes than the model has outputs. `has_param`: the model has the
 * parameter num_classes. */
SX_MUST_USE sx_status sx_check_classes(const sx_run_info *info, const sx_graph *predict,
                                       bool has_param);

/* The data's class names must equal, in order, those that the run was trained with; the error names
 * the first difference. */
SX_MUST_USE sx_status sx_check_class_names(const sx_dataset *data, const sx_run_info *info);

#endif
