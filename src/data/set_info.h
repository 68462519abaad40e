/* sx_set_info: the schema that writers of record files store beside them, for readers.
 *
 *   data/train-00000-of-00008 ...
 *   data/.sextant/schema.json     {"version": 1, "sets": {"train": {...}, "val": {...}}}
 *
 * One object for each set (file name prefix) of the directory:
 *
 *   count        records                     label_base   number of the first class in the records
 *   classes      names by class, from 0      features     {"image": key, "label": key}
 *   format       "encoded" or "raw"          files        [{"name", "records", "bytes", "crc32c"}]
 *   shape        [height, width, channels] of raw images
 *   checksum     CRC-32C (hex) of the files' CRCs in order: one number for the whole set
 *
 * The schema is optional; without it, the format of the data is detected. */
#ifndef SX_DATA_SET_INFO_H
#define SX_DATA_SET_INFO_H

#include "base/arena.h"
#include <sextant/types.h>

typedef struct sx_set_file {
    const char *name; /* without directory */
    int64_t records, bytes;
    uint32_t crc32c;
} sx_set_file;

/* Strings and arrays are borrowed from the caller; after find(), from `arena`. */
typedef struct sx_set_info {
    const char *set; /* "train" */
    int64_t count;
    int label_base;
    const char *const *classes; /* [class_count] */
    int class_count;
    const char *image_key, *label_key;
    bool raw;                 /* pixels instead of encoded images */
    int64_t shape[3];         /* of raw images */
    const sx_set_file *files; /* [file_count] */
    int file_count;
} sx_set_info;

/* Stores `info` next to the files of `prefix` ("data/train"); other sets of the directory are kept.
 * If the directory cannot be written, it is stored in the user cache (io/sidecar.h). */
SX_MUST_USE sx_status sx_set_info_save(const char *prefix, const sx_set_info *info);

/* The schema of the data file at `path`. Errors: NOT_FOUND: there is none; DATA_LOSS: an invalid
 * sidecar, which the message names. */
SX_MUST_USE sx_status sx_set_info_find(const char *path, sx_arena *arena, sx_set_info *out_info);

/* The same from a sidecar's bytes: the set that lists a file called `file`. `path` names the
 * sidecar in messages. */
SX_MUST_USE sx_status sx_set_info_parse(sx_bytes bytes, const char *path, const char *file,
                                        sx_arena *arena, sx_set_info *out_info);

#endif
