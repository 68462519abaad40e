/* Whether a directory is still being written to. A version of a model that is being copied must not
 * be loaded: if its files do not change for a while, it is taken to be complete. */
#ifndef SX_SERVE_FINGERPRINT_H
#define SX_SERVE_FINGERPRINT_H

#include <stdint.h>

/* A hash of the names, sizes and times of all files under `dir` (bounded: 8 levels, 65536 entries);
 * 0 if it cannot be read. Equal fingerprints at two times mean that nothing was written in between.
 * `*out_bytes` is the size of these files together; it may be NULL. */
uint64_t sx_dir_fingerprint(const char *dir, uint64_t *out_bytes);

#endif
