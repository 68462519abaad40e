/* The names nearest to a mistyped one: "did you mean ...?". */
#ifndef SX_BASE_NEAREST_H
#define SX_BASE_NEAREST_H

#include <stddef.h>

#include "base/buffer.h"

/* How many single-character insertions, deletions, replacements and swaps of neighbours turn a into
 * b (optimal string alignment). Only the first 127 bytes of each count. */
int sx_edit_distance(const char *a, const char *b);

/* Appends the up to three names nearest to `name`, nearest first, as  "a", "b" or "c"  and returns
 * how many there were. Names further than a third of the longer length are not near. */
int sx_nearest_names(const char *name, const char *const *names, size_t count, sx_buf *out);

#endif
