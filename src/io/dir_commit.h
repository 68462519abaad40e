/* Atomic creation of a directory: it appears complete or not at all.
 *
 *   begin    make parent/.NAME.tmp-<16 hex digits>, locked while its writer lives
 *   ...      the caller fills it (every file through io/commit, which syncs it)
 *   finish   sync it, rename it to parent/NAME, sync the parent   <- the rename is the commit
 *
 * An existing NAME is never replaced. The next begin in the same parent removes what killed writers
 * left behind, recognized by their released locks. */
#ifndef SX_IO_DIR_COMMIT_H
#define SX_IO_DIR_COMMIT_H

#include <sextant/types.h>

typedef struct sx_dir_commit {
    char *final_path, *temp_path, *parent;
    int lock_fd; /* of the temporary */
} sx_dir_commit;

/* Creates the parents and the temporary directory, out_commit->temp_path. ALREADY_EXISTS: `path`
 * exists. */
SX_MUST_USE sx_status sx_dir_commit_begin(const char *path, sx_dir_commit *out_commit);
SX_MUST_USE sx_status sx_dir_commit_finish(sx_dir_commit *commit);
/* Frees, and removes the temporary directory unless it was committed; {.lock_fd = -1} is allowed.
 */
void sx_dir_commit_deinit(sx_dir_commit *commit);

#endif
