/* Model versions: the numbered directories below a model's base, as TensorFlow Serving reads them.
 *
 *   base/1/saved_model.pb, base/0002/saved_model.pb      leading zeros do not change the number */
#ifndef SX_SAVEDMODEL_VERSIONS_H
#define SX_SAVEDMODEL_VERSIONS_H

#include "base/arena.h"

enum { SX_VERSION_NAME = 24 }; /* with its NUL */

typedef struct sx_version {
    int64_t number;
    char name[SX_VERSION_NAME]; /* as the directory is called: "0002" */
} sx_version;

/* The number that a name says, -1 if it says none: digits only, fewer than SX_VERSION_NAME of them,
 * at most INT64_MAX. */
int64_t sx_version_number(const char *name);

/* The numbered directories below `base`, highest first; of two names of one number the one that
 * sorts first stays. `holding`: only those that hold a file of this name; NULL: all, and symbolic
 * links, which are not followed: nothing below `base` is opened. Lives in `arena`. NOT_FOUND,
 * PERMISSION_DENIED: `base` is missing, no directory, or closed to us. */
SX_MUST_USE sx_status sx_versions_list(const char *base, const char *holding, sx_arena *arena,
                                       sx_version **out_versions, size_t *out_count);

/* Whether a list of the kind that sx_versions_list() gives has this version. */
bool sx_versions_contain(const sx_version *versions, size_t count, int64_t version);

/* The version that `path` names: `path` itself if it holds a SavedModel, else the highest version
 * below it that does. Lives in `arena`. NOT_FOUND: there is none. */
SX_MUST_USE sx_status sx_version_find(const char *path, sx_arena *arena, const char **out_dir);

/* Where to export to: base/`wanted` with its zeros kept, or, if that is NULL, base/N with N one
 * above every numbered name (whatever it is), 1 if there is none, or no base. Lives in `arena`.
 * INVALID_ARGUMENT: `wanted` is not a number. ALREADY_EXISTS: there is that number, perhaps with
 * other zeros. OUT_OF_RANGE: the highest number there can be is taken. */
SX_MUST_USE sx_status sx_version_directory(const char *base, const char *wanted, sx_arena *arena,
                                           const char **out_dir);

#endif
