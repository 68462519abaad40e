/* The object graph beside TF1 names, so that one checkpoint serves both of TensorFlow's readers.
 *
 *   conv/kernel, conv/kernel/Momentum    become    root ── conv ── kernel ── Momentum
 *                                                    └── save_counter
 *
 * Each variable gets a second key, `<path>/.ATTRIBUTES/VARIABLE_VALUE`, for the same bytes, and
 * `_CHECKPOINTABLE_OBJECT_GRAPH` holds the tree: tf.train.Checkpoint walks it by child names. */
#ifndef SX_CHECKPOINT_OBJECT_GRAPH_H
#define SX_CHECKPOINT_OBJECT_GRAPH_H

#include "checkpoint/bundle.h"

/* Adds the object graph and the second keys of `names` [n] (all added before, without repeats) to a
 * bundle. `save_counter` is how many times this model has been saved, as tf.train.Checkpoint
 * counts. INVALID_ARGUMENT: an empty name, an empty part ("a//b"). */
SX_MUST_USE sx_status sx_object_graph_add(sx_bundle_writer *w, const char *const *names, size_t n,
                                          int64_t save_counter);

#endif
