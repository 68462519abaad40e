/* Work that may end the process that does it (a foreign library's), done in a forked child.
 *
 *   parent                         child
 *   sx_run_in_child ── fork ─────> work(user, answer)
 *        <── code, message or answer ── pipe
 *        <── what it prints ─────────── pipe (only the end is kept: its last words)
 *
 * The child has no core dumps, the usual meaning of signals, and ends with its parent. Code that
 * runs in it must not touch what other threads of the parent may hold locked. */
#ifndef SX_BASE_CHILD_H
#define SX_BASE_CHILD_H

#include "base/buffer.h"

typedef sx_status sx_child_work(void *user, sx_buf *answer);

/* `what` begins the errors: UNAVAILABLE "WHAT ended the process that tried it (Aborted); it wrote:
 * …", or that it took longer than `seconds`. The work's own error is returned as it is. The answer
 * is appended to `answer`, within its maximum. */
SX_MUST_USE sx_status sx_run_in_child(const char *what, int seconds, sx_child_work *work,
                                      void *user, sx_buf *answer);

#endif
