/* Allows one writer at a time in a directory, by an advisory lock (flock) on the directory itself:
 * nothing is left behind, however the process ends. */
#ifndef SX_IO_DIR_LOCK_H
#define SX_IO_DIR_LOCK_H

#include <sextant/status.h>

enum { SX_NO_LOCK = -1 };

/* Acquires the lock without waiting. *out_lock is SX_NO_LOCK if the file system does not support
 * locks. Errors: FAILED_PRECONDITION: the lock is held, by another process or by this one; errors
 * of opening the directory. */
SX_MUST_USE sx_status sx_dir_lock(const char *dir, int *out_lock);
void sx_dir_unlock(int lock); /* SX_NO_LOCK is fine */

#endif
