/* One writer at a time in a folder: an advisory lock on the folder itself (flock), so that nothing
 * is left behind, whatever ends the process. */
#ifndef SX_IO_DIR_LOCK_H
#define SX_IO_DIR_LOCK_H

#include <sextant/status.h>

enum { SX_NO_LOCK = -1 };

/* Takes the lock without waiting. *out_lock is SX_NO_LOCK where the file system knows no locks.
 * Errors: FAILED_PRECONDITION another process, or another lock of this one, has it; NOT_FOUND and
 * the like for a folder that cannot be opened. */
SX_MUST_USE sx_status sx_dir_lock(const char *dir, int *out_lock);
void sx_dir_unlock(int lock); /* SX_NO_LOCK is fine */

#endif
