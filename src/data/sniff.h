/* Detects the kind of a data file by its first bytes. */
#ifndef SX_DATA_SNIFF_H
#define SX_DATA_SNIFF_H

#include <sextant/types.h>

typedef enum sx_file_kind {
    SX_FILE_UNKNOWN,
    SX_FILE_EMPTY,
    SX_FILE_TFRECORD, /* the checksum of the first length matches; compressed or not */
    SX_FILE_ARCHIVE,  /* tar (also compressed), zip */
    SX_FILE_IDX,      /* gzip or not */
    SX_FILE_NPY,
    SX_FILE_IMAGE, /* a single image: not a data set */
    SX_FILE_CSV,   /* lines of text, a comma in the first, and no bracket before it; gzip or not */
    SX_FILE_JSON_LINES, /* text that begins with a bracket; gzip or not */
    SX_FILE_KINDS,
} sx_file_kind;

/* By the first bytes of a file, already read. `head` should hold 512 bytes or the whole file. */
sx_file_kind sx_sniff_bytes(sx_bytes head);
/* Reads the first bytes, looking into gzip and zlib. */
SX_MUST_USE sx_status sx_sniff_file(const char *path, sx_file_kind *out_kind);

#endif
