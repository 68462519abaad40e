/* Archives: tar (plain or compressed), zip. Members one after the other, or unpacked to a folder.
 * libarchive underneath, limits and names ours.
 *
 * A member's name is handed out only when it may be used below a folder (sx_path_is_safe(); a
 * leading "./" is dropped): another one ends the reading as INVALID_ARGUMENT. Links, devices and
 * the like are passed over and counted. */
#ifndef SX_IO_ARCHIVE_H
#define SX_IO_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/buffer.h"

/* Zero fields mean the default. */
typedef struct sx_archive_limits {
    uint64_t max_members;      /* 16 Mi */
    uint64_t max_member_bytes; /* 16 GiB; of one member, decompressed */
    uint64_t max_total_bytes;  /* 1 TiB; of all members read */
} sx_archive_limits;

/* Valid until the next call of sx_archive_next(). */
typedef struct sx_archive_member {
    const char *name; /* relative, without "." and ".." */
    uint64_t size;    /* as the archive claims; 0 when it does not say */
    /* Where its bytes lie in the file, for members of an uncompressed tar; else -1. Whoever maps
     * the file may read them in any order. */
    int64_t data_offset;
} sx_archive_member;

typedef struct sx_archive sx_archive;

/* Whether the bytes begin like a tar, zip or compressed tar. Compressed ones are not looked into.
 */
bool sx_archive_is(sx_bytes head);

/* `limits` may be NULL. */
SX_MUST_USE sx_status sx_archive_open(const char *path, const sx_archive_limits *limits,
                                      sx_archive **out_archive);
SX_MUST_USE sx_status sx_archive_open_bytes(sx_bytes bytes, const char *name,
                                            const sx_archive_limits *limits,
                                            sx_archive **out_archive);
void sx_archive_close(sx_archive *archive); /* NULL is fine */

/* The next regular file. Folders are passed over; so are links and devices, which are counted. */
SX_MUST_USE sx_status sx_archive_next(sx_archive *archive, sx_archive_member *out_member,
                                      bool *out_more);
/* Appends the current member's content to `out`. Once per member. */
SX_MUST_USE sx_status sx_archive_read(sx_archive *archive, sx_buf *out);
/* How many links, devices and the like were passed over. */
uint64_t sx_archive_skipped(const sx_archive *archive);

/* Called after each member; false stops with CANCELLED. */
typedef bool sx_archive_progress_fn(void *user, uint64_t members, uint64_t bytes);

/* Writes every regular file below `dir` (made if missing). Never follows a symbolic link below it,
 * never writes outside it; existing files are replaced. `progress` may be NULL. */
SX_MUST_USE sx_status sx_archive_unpack(const char *path, const char *dir,
                                        const sx_archive_limits *limits,
                                        sx_archive_progress_fn *progress, void *user);

#endif
