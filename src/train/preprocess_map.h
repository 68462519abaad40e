/* A model's own preprocessing (nn/preprocess_graph.h) as a map of a data set: for each element, the
 * graph runs on its features, with host kernels; labels and weights stay as they are. The result
 * depends on the element alone: not on threads, batches or the machine. */
#ifndef SX_TRAIN_PREPROCESS_MAP_H
#define SX_TRAIN_PREPROCESS_MAP_H

#include "train/run_dir.h"

/* `graph` turns info->declared into the features of info->inputs; it is copied. Errors:
 * INVALID_ARGUMENT: a declared feature that the data do not have, or that is of another type. */
SX_MUST_USE sx_status sx_dataset_run_preprocess(sx_dataset **dataset, const sx_graph *graph,
                                                const sx_run_info *info, sx_mode mode);

#endif
