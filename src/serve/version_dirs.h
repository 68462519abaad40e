/* The versions of a model on disk: subdirectories of its base path whose names are numbers.
 *
 *   models/flowers/1/  models/flowers/0002/  (leading zeros are fine: 2)
 *
 * A version that is still being copied must not be loaded, so each can be fingerprinted: when its
 * files stay the same for a while, it is complete as far as anybody can see. */
#ifndef SX_SERVE_VERSION_DIRS_H
#define SX_SERVE_VERSION_DIRS_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

enum { SX_MAX_VERSIONS = 1024 };

typedef struct sx_version_dir {
    int64_t version;
    char name[24]; /* as on disk */
} sx_version_dir;

/* Lists the versions under `base_path`, highest first, at most SX_MAX_VERSIONS (the highest); of
 * two names of the same number the one that sorts first stays. *out_dirs is heap memory (sx_free),
 * NULL if there are none. Errors: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION (not a
 * directory). */
SX_MUST_USE sx_status sx_version_dirs_list(const char *base_path, sx_version_dir **out_dirs,
                                           size_t *out_count);

/* A hash of the names, sizes and times of all files under `dir` (bounded: 8 levels, 65536 entries);
 * 0 if it cannot be read. Equal fingerprints some time apart mean that nobody is writing. */
uint64_t sx_version_dir_fingerprint(const char *dir);

#endif
