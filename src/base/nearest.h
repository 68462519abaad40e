/* Suggestions for a mistyped name: "did you mean ...?". */
#ifndef SX_BASE_NEAREST_H
#define SX_BASE_NEAREST_H

#include <stddef.h>

#include "base/buffer.h"

/* The number of insertions, deletions, replacements and swaps of adjacent characters that turn a
 * into b (optimal string alignment distance), of the first 127 bytes of each. */
int sx_edit_distance(const char *a, const char *b);

/* Appends up to three names similar to `name`, best first, as  "a", "b" or "c"  and returns their
 * number. A name is similar if its distance is at most a third of the longer name's length, or if
 * it begins with `name` and that has at least three characters. */
int sx_nearest_names(const char *name, const char *const *names, size_t count, sx_buf *out);

/* Appends what to say of a `name` that is not among `names`:  (it has "a", "b"); did you mean "a"?
 * Without names, (it has none). */
void sx_nearest_list(const char *name, const char *const *names, size_t count, sx_buf *out);

#endif
