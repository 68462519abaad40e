/* Where our own files about other people's data live: indexes, schemas, labels, journals.
 *
 *   data/train-00000-of-00008          the data
 *   data/.sextant/train-00000-of-00008.index       beside them, if the directory can be written,
 *   $XDG_CACHE_HOME/sextant/<hash of data's real path>/train-00000-of-00008.index      else here
 *
 * XDG_CACHE_HOME defaults to ~/.cache. No pattern over data files matches a sidecar. */
#ifndef SX_IO_SIDECAR_H
#define SX_IO_SIDECAR_H

#include <sextant/types.h>

/* The existing sidecar of `data_path` (which itself need not exist) with this suffix, the one
 * beside the data first; NOT_FOUND if there is none. Free with sx_free. */
SX_MUST_USE sx_status sx_sidecar_find(const char *data_path, const char *suffix, char **out_path);

/* The path to write that sidecar to; makes its directory. PERMISSION_DENIED when neither place can
 * be written. Free with sx_free. */
SX_MUST_USE sx_status sx_sidecar_place(const char *data_path, const char *suffix, char **out_path);

#endif
