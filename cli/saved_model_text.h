/* What a SavedModel has, in the words of TensorFlow's saved_model_cli. The text is equal to the
 * byte, but for what the original prints in no fixed order: operators and the keys of a dict are
 * sorted, the options of a function are in the order in which they were traced. Control characters
 * in names become '?'. */
#ifndef SX_CLI_SAVED_MODEL_TEXT_H
#define SX_CLI_SAVED_MODEL_TEXT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "proto/saved_model.pb-c.h"

/* Prints what `put` appends of the SavedModel in `path`, a version directory or one of versions.
 * `user` is passed on. Prints nothing on an error, which names the directory. */
typedef sx_status sx_put_model_fn(sx_buf *out, const Tensorflow__SavedModel *model,
                                  const void *user);
SX_MUST_USE sx_status sx_print_saved_model(sx_arena *arena, const char *path, sx_put_model_fn *put,
                                           const void *user);

void sx_put_tag_sets(sx_buf *out, const Tensorflow__SavedModel *model);
void sx_put_signature_keys(sx_buf *out, const Tensorflow__MetaGraphDef *graph);
/* NOT_FOUND lists those that exist. */
SX_MUST_USE sx_status sx_put_signature(sx_buf *out, const Tensorflow__MetaGraphDef *graph,
                                       const char *key);
/* The operators of the graph and of the functions that it calls. */
SX_MUST_USE sx_status sx_put_operators(sx_buf *out, const Tensorflow__MetaGraphDef *graph);
/* Of all graphs: signatures, operators, and the arguments of the model's tf.functions. */
SX_MUST_USE sx_status sx_put_saved_model(sx_buf *out, const Tensorflow__SavedModel *model);

/* Which operators of `denied` (comma-separated) a graph has. */
SX_MUST_USE sx_status sx_put_scan(sx_buf *out, const Tensorflow__MetaGraphDef *graph,
                                  const char *denied);

#endif
