/* The map of sx_image_pipeline() for callers that have an sx_preprocess. */
#ifndef SX_DATA_IMAGE_PIPELINE_H
#define SX_DATA_IMAGE_PIPELINE_H

#include <sextant/data.h>

#include "image/preprocess.h"

/* As sx_image_pipeline(); uses only training, seed, num_classes and label_dtype of `args`. `pre` is
 * copied. With `bytes`, images are uint8 and not scaled; sx_preprocess_is_whole() must say that
 * they can be. */
SX_MUST_USE sx_status sx_dataset_preprocess_at(sx_dataset **dataset, const sx_preprocess *pre,
                                               bool bytes, const sx_image_args *args);
#define sx_dataset_preprocess(dataset, pre, ...) \
    sx_dataset_preprocess_at((dataset), (pre), false, SX_ARGS_(sx_image_args, __VA_ARGS__))

/* The same for the component of that name alone; all others stay as they are. */
SX_MUST_USE sx_status sx_dataset_preprocess_component(sx_dataset **dataset, const char *component,
                                                      const sx_preprocess *pre, bool bytes,
                                                      bool training, uint64_t seed);

#endif
