/* Sidecars: Sextant's own files about a user's data (indexes, schemas, labels, journals).
 *
 *   data/train-00000-of-00008                      the data
 *   data/.sextant/train-00000-of-00008.index       its index, if the directory is writable, or
 *   $XDG_CACHE_HOME/sextant/<hash of data's real path>/train-00000-of-00008.index
 *
 * XDG_CACHE_HOME defaults to ~/.cache. Patterns for data files do not match sidecars. */
#ifndef SX_IO_SIDECAR_H
#define SX_IO_SIDECAR_H

#include <sextant/types.h>

/* Finds the sidecar of `data_path` (which need not exist) with this suffix, beside the data or in
 * the cache, in this order. Free with sx_free. Errors: NOT_FOUND. */
SX_MUST_USE sx_status sx_sidecar_find(const char *data_path, const char *suffix, char **out_path);

/* The path to write that sidecar to; creates its directory. Free with sx_free. Errors:
 * PERMISSION_DENIED: neither place is writable. */
SX_MUST_USE sx_status sx_sidecar_place(const char *data_path, const char *suffix, char **out_path);

#endif
