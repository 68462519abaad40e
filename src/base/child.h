/* Runs code that may crash or exit (such as another library's) in a forked child.
 *
 *   parent                         child
 *   sx_run_in_child ── fork ─────> work(user, answer)
 *        <── code, message or answer ── pipe
 *        <── stdout and stderr ──────── pipe (only the end is kept)
 *
 * The child writes no core dump, has default handlers for SIGINT and SIGTERM, and is killed when
 * its parent ends. The work must not use anything that other threads of the parent may have locked.
 */
#ifndef SX_BASE_CHILD_H
#define SX_BASE_CHILD_H

#include "base/buffer.h"

typedef sx_status sx_child_work(void *user, sx_buf *answer);

/* Appends the answer of the work to `answer`, within its maximum. Returns the work's own error, or
 * UNAVAILABLE "<what> crashed (Aborted); output: …" if the child crashed, exited or took longer
 * than `seconds`. */
SX_MUST_USE sx_status sx_run_in_child(const char *what, int seconds, sx_child_work *work,
                                      void *user, sx_buf *answer);

#endif
