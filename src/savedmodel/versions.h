/* Model versions: the numbered directories below a model's base, as TensorFlow Serving reads them.
 *
 *   base/1/saved_model.pb, base/0002/saved_model.pb      leading zeros do not change the number */
#ifndef SX_SAVEDMODEL_VERSIONS_H
#define SX_SAVEDMODEL_VERSIONS_H

#include "base/arena.h"

typedef struct sx_version {
    int64_t number;
    const char *name; /* as the directory is called: "0002" */
} sx_version;

/* The number that a name says, digits only and at most 18 of them; -1 if it says none. */
int64_t sx_version_number(const char *name);

/* The versions below `base` that hold a saved_model.pb, by number, ascending. A missing base has
 * none. */
SX_MUST_USE sx_status sx_versions_list(const char *base, sx_arena *arena, sx_version **out_versions,
                                       size_t *out_count);

/* Where to export to: base/`wanted` with its zeros kept, or, if that is NULL, base/N with N one
 * above every numbered directory (whatever it holds), 1 if there is none. Lives in `arena`.
 * INVALID_ARGUMENT: `wanted` is no number. ALREADY_EXISTS: there is that number, perhaps with other
 * zeros. */
SX_MUST_USE sx_status sx_version_directory(const char *base, const char *wanted, sx_arena *arena,
                                           const char **out_dir);

#endif
