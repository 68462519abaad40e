/* The checkpoints of a model directory: which there are, which to trust, which to keep.
 *
 *   dir/checkpoint                       text CheckpointState: TensorFlow trusts it, we take it as
 *                                        a hint
 *   dir/model.ckpt-N.index, .data-*      the checkpoints; N is the step
 *
 * What counts is a readable `.index` whose tensors all match their checksums (design D8): a crash
 * between a checkpoint's commit and the writing of `checkpoint` loses nothing.
 *
 * Deleting removes `.index` first, so a half-deleted checkpoint is no checkpoint; and only after
 * `checkpoint` has stopped naming it. */
#ifndef SX_CHECKPOINT_CHECKPOINT_STATE_H
#define SX_CHECKPOINT_CHECKPOINT_STATE_H

#include "base/arena.h"

#define SX_CHECKPOINT_BASENAME "model.ckpt"

/* What `dir/checkpoint` says. Names are prefixes as written: relative to the directory, or
 * absolute. Everything lives in the arena that it was read into. */
typedef struct sx_checkpoint_state {
    const char *latest; /* NULL if there is none */
    const char **names; /* [count], oldest first */
    double *times;      /* [count], seconds since the epoch; 0 = unknown */
    size_t count;
    double last_preserved; /* time of the last one kept by `keep every n hours`; 0 = none */
    /* Those kept by it, which TensorFlow's list no longer names: comments in the file. */
    const char **preserved; /* [n_preserved] */
    size_t n_preserved;
} sx_checkpoint_state;

/* A missing file reads as an empty state. DATA_LOSS: not a CheckpointState in text form. */
SX_MUST_USE sx_status sx_checkpoint_state_read(const char *dir, sx_arena *arena,
                                               sx_checkpoint_state *out_state);
SX_MUST_USE sx_status sx_checkpoint_state_write(const char *dir, const sx_checkpoint_state *state);

/* The N of "path/name-N", or -1. */
int64_t sx_checkpoint_step(const char *prefix);

/* A checkpoint found in a directory; its `.index` exists, more is not said. */
typedef struct sx_checkpoint {
    const char *prefix; /* dir/name */
    int64_t step;
} sx_checkpoint;

typedef struct sx_checkpoints {
    sx_checkpoint *items; /* [count], by step, ascending */
    size_t count;
} sx_checkpoints;

/* Lists the numbered checkpoints (`name-N.index`) of a directory. A missing directory has none. */
SX_MUST_USE sx_status sx_checkpoints_list(const char *dir, sx_arena *arena,
                                          sx_checkpoints *out_list);

/* The newest checkpoint that is whole, every checksum verified: the highest step, or what the state
 * file names if that has no number. Each one that is not whole is logged as a warning and passed
 * over. NOT_FOUND when none is left. The prefix lives in `arena`. */
SX_MUST_USE sx_status sx_checkpoint_latest(const char *dir, sx_arena *arena,
                                           const char **out_prefix);

/* How many to keep, as RunConfig says it. */
typedef struct sx_checkpoint_retention {
    int keep_max; /* 0 = all */
    double
        keep_every_n_hours; /* 0 = never; beyond keep_max, one for every n hours stays for ever */
} sx_checkpoint_retention;

/* After dir/`name` has been committed at `now` (seconds since the epoch): makes it the latest in
 * the state file, then deletes the oldest beyond what is to be kept. Deletes nothing outside `dir`.
 */
SX_MUST_USE sx_status sx_checkpoint_register(const char *dir, const char *name, double now,
                                             const sx_checkpoint_retention *retention);

/* What writers that were killed leave behind; the caller holds the directory's lock.
 *
 * sweep removes their temporaries, and parts of checkpoints without an `.index`: of a save killed
 * before its commit, of a deletion killed halfway. adopt registers numbered checkpoints that the
 * state file does not name, killed between commit and registration or between registration and
 * deletion, and deletes what retention then drops. Both write nothing where there is nothing to do.
 */
SX_MUST_USE sx_status sx_checkpoints_sweep(const char *dir);
SX_MUST_USE sx_status sx_checkpoints_adopt(const char *dir,
                                           const sx_checkpoint_retention *retention);

/* Deletes a checkpoint: `.index` first, then its data shards, then `.meta`. A missing one is fine.
 */
SX_MUST_USE sx_status sx_checkpoint_delete(const char *prefix);

#endif
