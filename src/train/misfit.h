/* Whether data fit a model, told from their types alone: before a record is read. A misfit is
 * INVALID_ARGUMENT and names the data's field, both shapes, the layer that takes or makes the value
 * with its line, and what to do. */
#ifndef SX_TRAIN_MISFIT_H
#define SX_TRAIN_MISFIT_H

#include "train/run_dir.h"

/* A component that no device can hold (a string). */
SX_MUST_USE sx_status sx_check_for_device(const sx_component *component);

/* `component` of batches against the model's features or labels; integer labels of any width are
 * int32. `program` (may be NULL) knows the layers. */
SX_MUST_USE sx_status sx_check_features(const sx_component *component, const sx_run_info *info,
                                        const sx_graph *program);
SX_MUST_USE sx_status sx_check_labels(const sx_component *component, const sx_run_info *info,
                                      const sx_graph *program);

/* The classes that a predict program tells apart: the width of its "probabilities"; 0 = unknown. */
int64_t sx_program_classes(const sx_graph *predict);
/* The data must not have more classes than the model has outputs. `has_param`: the model asks for
 * the parameter num_classes. */
SX_MUST_USE sx_status sx_check_classes(const sx_run_info *info, const sx_graph *predict,
                                       bool has_param);

/* Data with classes of other names, or in another order, than the run was trained with: the first
 * is named. */
SX_MUST_USE sx_status sx_check_class_names(const sx_dataset *data, const sx_run_info *info);

#endif
