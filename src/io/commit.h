/* Atomic commit: files appear under their final names complete, or not at all.
 *
 *   add      .NAME.tmp-<16 hex digits> in the directory of NAME, locked while its writer is alive
 *   finish   flush and fsync every file
 *            rename all but the last to their final names, in the order added; fsync directories
 *            rename the last                     <- the commit point
 *            fsync its directory
 *
 * A reader that looks for the last file first (a checkpoint's `.index`) therefore never sees it
 * without the others, even after a power failure. Temporary names start with a dot, so no data
 * pattern matches them.
 *
 * A failure leaves no temporary files; files renamed before it keep their final names, and the last
 * file its previous content. A failed fsync is never retried, because the kernel may have dropped
 * the pages: the commit has failed, and so does every later call. A killed process leaves unlocked
 * temporary files, which sx_commit_sweep() removes.
 *
 * Life cycle: create, add, write..., finish, destroy; destroy without finish discards everything.
 * Not thread-safe, except that different threads may write different files of a commit. */
#ifndef SX_IO_COMMIT_H
#define SX_IO_COMMIT_H

#include <stdint.h>

#include <sextant/types.h>

typedef struct sx_commit sx_commit;
typedef struct sx_commit_file sx_commit_file;

SX_MUST_USE sx_status sx_commit_create(sx_commit **out_commit);
void sx_commit_destroy(sx_commit *commit); /* NULL is fine; removes uncommitted files */

/* Opens the temporary file for `path`, whose directory must exist. The commit owns the file.
 * Errors: INVALID_ARGUMENT: `path` exists and is not a regular file; errors of creating it. */
SX_MUST_USE sx_status sx_commit_add(sx_commit *commit, const char *path, sx_commit_file **out_file);
/* Adds `path` as a hard link to the file `from`, or as a copy where the file system has no hard
 * links. Nothing may be written to it. Errors: those of reading `from` and of sx_commit_add(). */
SX_MUST_USE sx_status sx_commit_add_link(sx_commit *commit, const char *from, const char *path);
/* Appends to the file, buffered. An sx_write_fn. */
SX_MUST_USE sx_status sx_commit_write(void *commit_file, const void *data, size_t size);
/* Bytes appended so far. */
uint64_t sx_commit_offset(const sx_commit_file *file);

SX_MUST_USE sx_status sx_commit_finish(sx_commit *commit);

/* Commits one file from memory. */
SX_MUST_USE sx_status sx_commit_bytes(const char *path, const void *data, size_t size);

/* Removes the temporary files that killed writers left in a directory. */
SX_MUST_USE sx_status sx_commit_sweep(const char *dir);

/* The temporary path of a file or directory: dir/.NAME.tmp-<16 hex digits>, of a long NAME its
 * first 200 bytes. Free with sx_free. */
SX_MUST_USE sx_status sx_temp_path(const char *path, char **out_temp);
bool sx_is_temp_name(const char *name);

/* A sink for bytes: the interface between writers (of records, compressed streams) and files. */
typedef sx_status sx_write_fn(void *user, const void *data, size_t size);

#endif
