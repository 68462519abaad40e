/* Writes checkpoints while training goes on.
 *
 *   begin   a snapshot: every variable, copied from the devices     training waits for this copy,
 *   ─────   its files, written by a thread of the saver's           not for the files
 *   end     the result: the prefix, or what went wrong
 *
 * One write at a time: beginning another waits for the one before. The memory of a snapshot is kept
 * for the next. Used by one thread. */
#ifndef SX_TRAIN_SAVER_H
#define SX_TRAIN_SAVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint/checkpoint_state.h"
#include "train/checkpoint.h"

typedef struct sx_saver {
    bool running; /* a write has begun, and was not ended */
    atomic_bool done;
    bool has_thread;
    pthread_t thread;
    sx_snapshot snapshot;
    char *dir, *name, *prefix;
    sx_checkpoint_retention keep;
    int64_t step, began_ns, ended_ns;
    sx_status status;
} sx_saver;

/* Copies the session's variables and what else a checkpoint has, and begins to write it as
 * dir/<name>, and to register it. None is running. Errors: DATA_LOSS: a variable is not finite;
 * those of reading the variables. */
SX_MUST_USE sx_status sx_saver_begin(sx_saver *saver, sx_session *session, const char *dir,
                                     const char *name, const sx_checkpoint_contents *contents,
                                     const sx_checkpoint_retention *keep);
/* Whether a write is running that has not come to its end. */
static inline bool sx_saver_is_busy(const sx_saver *saver)
{
    return saver->running && !atomic_load(&saver->done);
}
/* Waits for the end of the write that is running; its status. */
SX_MUST_USE sx_status sx_saver_end(sx_saver *saver);
void sx_saver_deinit(sx_saver *saver); /* waits; {0} is fine */

#endif
