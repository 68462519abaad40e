/* Model versions: the numbered directories below a model's base, as TensorFlow Serving reads them.
 *
 *   base/1/saved_model.pb, base/0002/saved_model.pb      leading zeros do not change the number */
#ifndef SX_SAVEDMODEL_VERSIONS_H
#define SX_SAVEDMODEL_VERSIONS_H

#include "base/arena.h"

enum { SX_VERSION_NAME = 24 }; /* including the NUL */

typedef struct sx_version {
    int64_t number;
    char name[SX_VERSION_NAME]; /* as the directory is called: "0002" */
} sx_version;

/* The number in a name, or -1: digits only, fewer than SX_VERSION_NAME of them, at most INT64_MAX.
 */
int64_t sx_version_number(const char *name);

/* The numbered directories below `base`, highest first; of two names with the same number, the one
 * that sorts first. `holding`: only those that contain a file of this name; NULL: all, including
 * symbolic links, which are not followed: nothing below `base` is opened. The list is in `arena`.
 * NOT_FOUND, PERMISSION_DENIED: `base` does not exist, is not a directory, or cannot be read. */
SX_MUST_USE sx_status sx_versions_list(const char *base, const char *holding, sx_arena *arena,
                                       sx_version **out_versions, size_t *out_count);

/* Whether a list from sx_versions_list() contains this version. */
bool sx_versions_contain(const sx_version *versions, size_t count, int64_t version);

/* The version that `path` names: `path` itself if it contains a SavedModel, else the highest
 * version below it that does. The path is in `arena`. NOT_FOUND: there is none. */
SX_MUST_USE sx_status sx_version_find(const char *path, sx_arena *arena, const char **out_dir);

/* The directory for an export: base/`wanted`, leading zeros kept, or, if that is NULL, base/N with
 * N one above the highest numbered name (of any file), or 1. The path is in `arena`.
 * INVALID_ARGUMENT: `wanted` is not a number. ALREADY_EXISTS: that number exists, perhaps with
 * other zeros. OUT_OF_RANGE: the highest possible number is taken. */
SX_MUST_USE sx_status sx_version_directory(const char *base, const char *wanted, sx_arena *arena,
                                           const char **out_dir);

#endif
