/* sx_set_writer: one set of record files and its entry in the sidecar schema.
 *
 * open, write record by record, finish: only then do the files appear under their names, and the
 * schema is updated. close without finish leaves nothing behind. */
#ifndef SX_DATA_SET_WRITER_H
#define SX_DATA_SET_WRITER_H

#include "base/buffer.h"
#include "data/set_info.h"

typedef struct sx_set_writer sx_set_writer;

/* The `total` records are written to `shards` files prefix-00000-of-0000N, in order and in equal
 * parts. */
SX_MUST_USE sx_status sx_set_writer_open(const char *prefix, int shards, int64_t total,
                                         sx_set_writer **out_writer);
void sx_set_writer_close(sx_set_writer *writer); /* NULL is fine */
SX_MUST_USE sx_status sx_set_writer_write(sx_set_writer *writer, sx_bytes record);
/* `info` contains everything except set, count and files, which the writer sets. Appends a line to
 * `text`. */
SX_MUST_USE sx_status sx_set_writer_finish(sx_set_writer *writer, const sx_set_info *info,
                                           sx_buf *text);

/* The default number of files for this many bytes: one per 128 MiB. */
int sx_default_shards(int64_t bytes);

#endif
