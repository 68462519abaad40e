/* TFRecord files: a concatenation of checksummed records.
 *
 *   8  length of data, uint64 LE
 *   4  masked CRC32C of those 8 bytes, uint32 LE
 *   n  data
 *   4  masked CRC32C of the data, uint32 LE
 *
 * There is no header, padding or sync marker; compression applies to the whole file. A file must
 * end at a record boundary. A length is used only after its checksum has been verified.
 *
 *   sx_tfrecord_writer   appends records to a sink
 *   sx_tfrecord_shards   appends records to a set of files
 *   sx_tfrecord_reader   reads a file from beginning to end, any compression
 *   sx_tfrecord_file     reads records of an uncompressed file by number, through an index; from
 *                        any number of threads
 *
 * Files are read, not mapped: window.h says why. */
#ifndef SX_IO_TFRECORD_H
#define SX_IO_TFRECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "io/compress.h"

enum { SX_TFRECORD_HEADER = 12, SX_TFRECORD_FOOTER = 4 };

/* The header and footer for `data`, for callers that write the file themselves (event files). */
void sx_tfrecord_frame(sx_bytes data, uint8_t out_header[SX_TFRECORD_HEADER],
                       uint8_t out_footer[SX_TFRECORD_FOOTER]);

/* ---- Writing ---- */

typedef struct sx_tfrecord_writer sx_tfrecord_writer;

/* Frames records, compresses them with `codec` at zlib's default level and writes them to `sink`.
 */
SX_MUST_USE sx_status sx_tfrecord_writer_create(sx_codec codec, sx_write_fn *sink, void *user,
                                                sx_tfrecord_writer **out_writer);
void sx_tfrecord_writer_destroy(sx_tfrecord_writer *writer); /* NULL is fine */
SX_MUST_USE sx_status sx_tfrecord_write(sx_tfrecord_writer *writer, sx_bytes record);
/* Ends the compressed stream; does not close the sink. */
SX_MUST_USE sx_status sx_tfrecord_writer_finish(sx_tfrecord_writer *writer);

/* A set of files prefix-00000-of-00008 that is committed as one. Different threads may write
 * different shards. */
typedef struct sx_tfrecord_shards sx_tfrecord_shards;

enum { SX_MAX_SHARDS = 16384 };

/* "prefix-00003-of-00008"; free with sx_free. */
SX_MUST_USE sx_status sx_tfrecord_shard_name(const char *prefix, int shard, int count,
                                             char **out_path);
/* 1 <= count <= SX_MAX_SHARDS. Creates the directory of the prefix. */
SX_MUST_USE sx_status sx_tfrecord_shards_create(const char *prefix, int count, sx_codec codec,
                                                sx_tfrecord_shards **out_shards);
SX_MUST_USE sx_status sx_tfrecord_shards_write(sx_tfrecord_shards *shards, int shard,
                                               sx_bytes record);
SX_MUST_USE sx_status sx_tfrecord_shards_finish(sx_tfrecord_shards *shards);
/* Discards the files unless sx_tfrecord_shards_finish() succeeded. NULL is fine. */
void sx_tfrecord_shards_destroy(sx_tfrecord_shards *shards);

/* ---- Reading in order ---- */

typedef struct sx_tfrecord_options {
    sx_codec codec;    /* AUTO: none if the first length's checksum matches, else by magic */
    bool skip_corrupt; /* skip damaged parts and count them */
    uint64_t max_record_bytes; /* 0 = 1 GiB */
} sx_tfrecord_options;

typedef struct sx_tfrecord_damage {
    uint64_t places; /* damaged parts skipped, usually one record each */
    uint64_t bytes;
} sx_tfrecord_damage;

typedef struct sx_tfrecord_reader sx_tfrecord_reader;

/* `options` may be NULL. */
SX_MUST_USE sx_status sx_tfrecord_reader_open(const char *path, const sx_tfrecord_options *options,
                                              sx_tfrecord_reader **out_reader);
/* The same for bytes in memory, which must outlive the reader; `name` is used in messages. */
SX_MUST_USE sx_status sx_tfrecord_reader_over(sx_bytes bytes, const char *name,
                                              const sx_tfrecord_options *options,
                                              sx_tfrecord_reader **out_reader);
void sx_tfrecord_reader_destroy(sx_tfrecord_reader *reader); /* NULL is fine */

/* Reads the next record; *out_more = false at the end of the file. The view is valid until the next
 * call. DATA_LOSS: the message has the file, record number and offset. With skip_corrupt, a record
 * with damaged data is skipped; after a damaged length, an uncompressed file is searched for the
 * next record whose length and data both verify, and a compressed file ends. */
SX_MUST_USE sx_status sx_tfrecord_next(sx_tfrecord_reader *reader, sx_bytes *out_record,
                                       bool *out_more);
sx_tfrecord_damage sx_tfrecord_reader_damage(const sx_tfrecord_reader *reader);

/* ---- Reading by number ---- */

typedef struct sx_tfrecord_file sx_tfrecord_file;

/* Opens the file and finds its records: from the index in its sidecar (sidecar.h) if size and
 * modification time match, otherwise by reading every header, and then saves the index if possible.
 * `options` may be NULL; its codec must be AUTO or NONE. Errors: FAILED_PRECONDITION: a compressed
 * file. */
SX_MUST_USE sx_status sx_tfrecord_file_open(const char *path, const sx_tfrecord_options *options,
                                            sx_tfrecord_file **out_file);
void sx_tfrecord_file_close(sx_tfrecord_file *file); /* NULL is fine */
uint64_t sx_tfrecord_file_count(const sx_tfrecord_file *file);
/* Damage skipped while indexing (skip_corrupt only). Damaged data is only detected when it is read.
 */
sx_tfrecord_damage sx_tfrecord_file_damage(const sx_tfrecord_file *file);
/* The run of records that begins with `first`: at most `count` records that lie one after the other
 * in the file and take at most max_bytes with their headers and footers; the first record in any
 * case. Returns the bytes of the run, 0 if there is no record `first`. */
size_t sx_tfrecord_file_run(const sx_tfrecord_file *file, uint64_t first, uint64_t count,
                            size_t max_bytes, uint64_t *out_count);
/* Reads a run into `frames`, which has room for its bytes, and verifies the checksums. out_records
 * [count] are views into `frames`; *out_count of them are set, fewer than `count` where a record
 * after the first cannot be read: reading from there on returns its error. Thread-safe.
 * Errors: OUT_OF_RANGE: no record `first`; DATA_LOSS: its data are damaged, or the file has been
 * truncated. */
SX_MUST_USE sx_status sx_tfrecord_file_read(const sx_tfrecord_file *file, uint64_t first,
                                            uint64_t count, void *frames, sx_bytes *out_records,
                                            uint64_t *out_count);

#endif
