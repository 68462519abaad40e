/* TFRecord files: a plain concatenation of checksummed records (reference 01).
 *
 *   8  length of data, uint64 LE
 *   4  masked CRC32C of those 8 bytes, uint32 LE
 *   n  data
 *   4  masked CRC32C of the data, uint32 LE
 *
 * No header, no padding, no sync marks; compression wraps the whole stream of a file. The end of a
 * file is clean only at a record boundary. A length is believed only after its checksum.
 *
 * Three ways in, one way out:
 *   sx_tfrecord_writer   appends records to a sink; sx_tfrecord_shards to a set of files
 *   sx_tfrecord_reader   one file from beginning to end, any compression
 *   sx_tfrecord_file     any record of an uncompressed file by number, through an index; many
 *                        threads at once
 * Records of uncompressed files are views into the mapped file: no byte is copied. */
#ifndef SX_IO_TFRECORD_H
#define SX_IO_TFRECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "io/compress.h"

enum { SX_TFRECORD_HEADER = 12, SX_TFRECORD_FOOTER = 4 };

/* The frame around `data`, for writers that append to a file of their own (event files). */
void sx_tfrecord_frame(sx_bytes data, uint8_t out_header[SX_TFRECORD_HEADER],
                       uint8_t out_footer[SX_TFRECORD_FOOTER]);

/* ---- writing ------------------------------------------------------------------------------ */

typedef struct sx_tfrecord_writer sx_tfrecord_writer;

/* Frames, compresses as `codec` says at zlib's default level, and hands the bytes to the sink. */
SX_MUST_USE sx_status sx_tfrecord_writer_create(sx_codec codec, sx_write_fn *sink, void *user,
                                                sx_tfrecord_writer **out_writer);
void sx_tfrecord_writer_destroy(sx_tfrecord_writer *writer); /* NULL is fine */
SX_MUST_USE sx_status sx_tfrecord_write(sx_tfrecord_writer *writer, sx_bytes record);
/* Ends the compressed stream; the sink stays the caller's. */
SX_MUST_USE sx_status sx_tfrecord_writer_finish(sx_tfrecord_writer *writer);

/* A set of files prefix-00000-of-00008, committed together: all appear, or none. Each shard may be
 * written by its own thread. */
typedef struct sx_tfrecord_shards sx_tfrecord_shards;

enum { SX_MAX_SHARDS = 16384 };

/* "prefix-00003-of-00008"; free with sx_free. */
SX_MUST_USE sx_status sx_tfrecord_shard_name(const char *prefix, int shard, int count,
                                             char **out_path);
/* 1 <= count <= SX_MAX_SHARDS; makes the directory of the prefix. */
SX_MUST_USE sx_status sx_tfrecord_shards_create(const char *prefix, int count, sx_codec codec,
                                                sx_tfrecord_shards **out_shards);
SX_MUST_USE sx_status sx_tfrecord_shards_write(sx_tfrecord_shards *shards, int shard,
                                               sx_bytes record);
SX_MUST_USE sx_status sx_tfrecord_shards_finish(sx_tfrecord_shards *shards);
/* Without finish before it, abandons the files. NULL is fine. */
void sx_tfrecord_shards_destroy(sx_tfrecord_shards *shards);

/* ---- reading in order --------------------------------------------------------------------- */

typedef struct sx_tfrecord_options {
    sx_codec codec;            /* AUTO: plain if the first length's checksum fits, else by magic */
    bool skip_corrupt;         /* go on behind damage, and count it */
    uint64_t max_record_bytes; /* 0 = 1 GiB */
} sx_tfrecord_options;

typedef struct sx_tfrecord_damage {
    uint64_t places; /* runs of damaged bytes passed over: usually one record each */
    uint64_t bytes;
} sx_tfrecord_damage;

typedef struct sx_tfrecord_reader sx_tfrecord_reader;

/* `options` may be NULL. */
SX_MUST_USE sx_status sx_tfrecord_reader_open(const char *path, const sx_tfrecord_options *options,
                                              sx_tfrecord_reader **out_reader);
/* The same over bytes in memory, which stay valid while the reader lives; `name` is for messages.
 */
SX_MUST_USE sx_status sx_tfrecord_reader_over(sx_bytes bytes, const char *name,
                                              const sx_tfrecord_options *options,
                                              sx_tfrecord_reader **out_reader);
void sx_tfrecord_reader_destroy(sx_tfrecord_reader *reader); /* NULL is fine */

/* The next record: *out_more = true and the record, or false at the clean end. The view is valid
 * until the next call (uncompressed: while the reader lives). DATA_LOSS names file, record number
 * and offset. With skip_corrupt, damage behind a good length costs that record, a bad length sends
 * the reader forward to the next place where length and data both verify; in a compressed file,
 * where there is nothing to search, it ends the file. */
SX_MUST_USE sx_status sx_tfrecord_next(sx_tfrecord_reader *reader, sx_bytes *out_record,
                                       bool *out_more);
sx_tfrecord_damage sx_tfrecord_reader_damage(const sx_tfrecord_reader *reader);

/* ---- reading by number -------------------------------------------------------------------- */

typedef struct sx_tfrecord_file sx_tfrecord_file;

/* Maps the file and finds its records: from the index in the sidecar directory (sidecar.h) when it
 * is of this size and modification time, else by reading every header, after which the index is
 * saved there if possible. FAILED_PRECONDITION for a compressed file. `options` may be NULL; its
 * codec must be AUTO or NONE. */
SX_MUST_USE sx_status sx_tfrecord_file_open(const char *path, const sx_tfrecord_options *options,
                                            sx_tfrecord_file **out_file);
void sx_tfrecord_file_close(sx_tfrecord_file *file); /* NULL is fine */
uint64_t sx_tfrecord_file_count(const sx_tfrecord_file *file);
const char *sx_tfrecord_file_path(const sx_tfrecord_file *file);
/* Damage passed over while indexing (skip_corrupt only). Damaged data show when they are read. */
sx_tfrecord_damage sx_tfrecord_file_damage(const sx_tfrecord_file *file);
/* Record `number`, its checksum verified; a view valid while the file is open. Thread-safe.
 * OUT_OF_RANGE beyond the last, DATA_LOSS for damaged data. */
SX_MUST_USE sx_status sx_tfrecord_file_record(const sx_tfrecord_file *file, uint64_t number,
                                              sx_bytes *out_record);

#endif
