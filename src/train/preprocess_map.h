/* A model's own preprocessing (nn/preprocess_graph.h) as a map of a data set: for each element, the
 * graph runs on its features and labels, with host kernels; weights, and labels that it does not
 * give, stay as they are. In SX_PREDICT the labels may be missing. The result depends on the
 * element alone: not on threads, batches or the machine. */
#ifndef SX_TRAIN_PREPROCESS_MAP_H
#define SX_TRAIN_PREPROCESS_MAP_H

#include "train/run_dir.h"

/* `graph` turns info->declared into info->inputs; it is copied. Errors:
 * INVALID_ARGUMENT: a declared feature that the data do not have, or that is of another type. */
SX_MUST_USE sx_status sx_dataset_run_preprocess(sx_dataset **dataset, const sx_graph *graph,
                                                const sx_run_info *info, sx_mode mode);

#endif
