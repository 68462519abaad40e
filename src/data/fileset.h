/* sx_fileset: many small files by index, below a folder or in an archive. Immutable once open; any
 * number of threads may read. */
#ifndef SX_DATA_FILESET_H
#define SX_DATA_FILESET_H

#include "data/scratch.h"
#include <sextant/data.h>

typedef struct sx_fileset sx_fileset;

/* `path` is a folder, or a .tar (or .tar.gz etc.) or .zip, detected by content. Members without
 * random access are kept in memory, at most memory_budget bytes (0 = half of the RAM). All members
 * may be decompressed to max_unpacked_bytes (0 = the default of sx_archive_limits). */
SX_MUST_USE sx_status sx_fileset_open(const char *path, int64_t memory_budget,
                                      int64_t max_unpacked_bytes, sx_fileset **out_set);
void sx_fileset_close(sx_fileset *set); /* NULL is fine */

size_t sx_fileset_count(const sx_fileset *set);
/* [count] relative names; borrowed. */
const char *const *sx_fileset_names(const sx_fileset *set);
/* The path that it was opened with. */
const char *sx_fileset_path(const sx_fileset *set);
/* Whether views from read() are valid as long as the set, not only until the scratch is reset. */
bool sx_fileset_stable(const sx_fileset *set);
/* The bytes of file `index`, a view. At most 1 GiB each. Errors name the file. */
SX_MUST_USE sx_status sx_fileset_read(const sx_fileset *set, size_t index, sx_scratch *scratch,
                                      sx_bytes *out_bytes);

#endif
