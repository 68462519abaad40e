/* Archives: tar (plain or compressed) and zip, read with libarchive: member by member, or extracted
 * to a directory.
 *
 * A member with an unsafe name (sx_path_is_safe(); a leading "./" is dropped) ends the reading with
 * INVALID_ARGUMENT. Links, devices and other special members are skipped. */
#ifndef SX_IO_ARCHIVE_H
#define SX_IO_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/buffer.h"

/* A field that is 0 takes its default. */
typedef struct sx_archive_limits {
    uint64_t max_members;      /* 16 Mi */
    uint64_t max_member_bytes; /* 16 GiB; for each member, decompressed */
    /* For all members read: 100 times the archive's size, but at least 256 MiB. Photos and records
     * do not compress that well, so what does is an error or an attack. */
    uint64_t max_total_bytes;
} sx_archive_limits;

/* Valid until the next call of sx_archive_next(). */
typedef struct sx_archive_member {
    const char *name; /* relative, without "." and ".." */
    uint64_t size;    /* claimed by the archive; 0 = unknown */
    /* Offset of its bytes in the file, for members of an uncompressed tar, so that they can be read
     * in any order; otherwise -1. */
    int64_t data_offset;
} sx_archive_member;

typedef struct sx_archive sx_archive;

/* `limits` may be NULL. */
SX_MUST_USE sx_status sx_archive_open(const char *path, const sx_archive_limits *limits,
                                      sx_archive **out_archive);
SX_MUST_USE sx_status sx_archive_open_bytes(sx_bytes bytes, const char *name,
                                            const sx_archive_limits *limits,
                                            sx_archive **out_archive);
void sx_archive_close(sx_archive *archive); /* NULL is fine */

/* The next regular file. Skips directories, links and devices. */
SX_MUST_USE sx_status sx_archive_next(sx_archive *archive, sx_archive_member *out_member,
                                      bool *out_more);
/* Appends the contents of the current member to `out`. May be called once per member. */
SX_MUST_USE sx_status sx_archive_read(sx_archive *archive, sx_buf *out);

/* Appends at most `most` bytes, those that follow what was read; fewer at the member's end. */
SX_MUST_USE sx_status sx_archive_read_some(sx_archive *archive, size_t most, sx_buf *out);

/* How many bytes more the current member may have within the limits. */
uint64_t sx_archive_room(const sx_archive *archive);

/* Called after each member; if it returns false, extraction ends with CANCELLED. */
typedef bool sx_archive_progress_fn(void *user, uint64_t members, uint64_t bytes);

/* Extracts every regular file to `dir`, which is created if missing. Replaces existing files, never
 * follows a symbolic link below `dir` and never writes outside it. `progress` may be NULL. */
SX_MUST_USE sx_status sx_archive_unpack(const char *path, const char *dir,
                                        const sx_archive_limits *limits,
                                        sx_archive_progress_fn *progress, void *user);

#endif
