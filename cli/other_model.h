/* Files of models that are no SavedModel: what a path is, and what to do with it. */
#ifndef SX_CLI_OTHER_MODEL_H
#define SX_CLI_OTHER_MODEL_H

#include "base/arena.h"

/* What `path` is and which command takes it, to follow the path in a sentence: "is a TensorFlow
 * Lite model; ...". NULL: it is none of these, or cannot be read. The text is in `arena` or static.
 */
const char *sx_other_model(sx_arena *arena, const char *path);

#endif
