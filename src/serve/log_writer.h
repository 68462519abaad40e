/* Files that a server appends to without waiting for the disk: what is put waits in memory, up to a
 * limit, for one thread that writes it. What does not fit is dropped and counted, and so is what
 * cannot be written; neither delays or fails the request that it is about.
 *
 * A file is one path, opened again when it has been moved away; or numbered ones,
 * PATH-DATE-N.SUFFIX, each begun when the last has reached a size or an age. */
#ifndef SX_SERVE_LOG_WRITER_H
#define SX_SERVE_LOG_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

#include "base/buffer.h"

typedef struct sx_log_writer sx_log_writer;
typedef struct sx_log_file sx_log_file;

/* max_waiting_bytes: of all files; 0 = 64 MiB. */
SX_MUST_USE sx_status sx_log_writer_create(size_t max_waiting_bytes, sx_log_writer **out);
/* Writes what waits. Nobody may put any more. NULL is allowed. */
void sx_log_writer_destroy(sx_log_writer *writer);

typedef struct sx_log_file_config {
    const char *path;   /* of a numbered one the beginning; "-": standard output */
    const char *suffix; /* ".tfrecord": numbered; NULL: one path */
    int64_t max_bytes;  /* of numbered ones: 256 MiB */
    double max_seconds; /* likewise: an hour */
} sx_log_file_config;

/* Lives as long as the writer. The first file is opened at once: errors are those of that. */
SX_MUST_USE sx_status sx_log_writer_add(sx_log_writer *writer, const sx_log_file_config *config,
                                        sx_log_file **out);

/* Takes the bytes, which then are empty. Any thread; never waits for the disk. */
void sx_log_file_put(sx_log_file *file, sx_buf *bytes);

typedef struct sx_log_stats {
    uint64_t written; /* puts */
    uint64_t dropped; /* there was no room */
    uint64_t failed;  /* the disk did not take them */
} sx_log_stats;

sx_log_stats sx_log_file_stats(sx_log_file *file);

#endif
