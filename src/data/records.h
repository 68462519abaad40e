/* sx_records: the records of a list of TFRecord files, numbered through, read by number.
 *
 *   file 0: records [0, n0)    file 1: [n0, n0 + n1)    ...
 *
 * Uncompressed files are read through io's index. Compressed ones have no random access: they are
 * decompressed into memory once, under the budget. With skip_corrupt every record is checked when
 * the set is opened, and bad ones are not numbered. Immutable once open; any number of threads may
 * read. */
#ifndef SX_DATA_RECORDS_H
#define SX_DATA_RECORDS_H

#include "base/buffer.h"
#include "data/scratch.h"
#include <sextant/data.h>

typedef struct sx_records sx_records;

typedef struct sx_records_options {
    const char *compression; /* as sx_data_options */
    bool skip_corrupt;
    /* Further condition on good records for skip_corrupt; NULL = none. A failing record is bad. */
    sx_status (*check)(sx_bytes record);
    int64_t memory_budget; /* for decompressed files; 0 = half of the RAM */
} sx_records_options;

typedef struct sx_records_damage {
    int64_t records; /* dropped: checksum or check failed */
    int64_t places;  /* damaged regions */
} sx_records_damage;

SX_MUST_USE sx_status sx_records_open(const char *const *paths, size_t count,
                                      const sx_records_options *options, sx_records **out_records);
void sx_records_close(sx_records *records); /* NULL is fine */
int64_t sx_records_count(const sx_records *records);
sx_records_damage sx_records_dropped(const sx_records *records);
/* The memory used by decompressed files. */
int64_t sx_records_memory_bytes(const sx_records *records);
/* Reads the records from `first` on, at most `count` of them: sets *out_count >= 1 views in
 * out_records, as many as one read of a moderate size returns. The views are valid until the
 * scratch is reset. Errors: OUT_OF_RANGE: no record `first`; DATA_LOSS: it is damaged or the file
 * has been truncated; the message has the file, record and offset. The read ends before an
 * unreadable record after the first. */
SX_MUST_USE sx_status sx_records_read(const sx_records *records, int64_t first, int64_t count,
                                      sx_scratch *scratch, sx_bytes *out_records,
                                      int64_t *out_count);
/* Appends "data/train-0: record 17" (17 is the number in that file). */
void sx_records_name(const sx_records *records, int64_t number, sx_buf *out);

#endif
