/* The checkpoints of a model directory: listing, validation, retention.
 *
 *   dir/checkpoint                    CheckpointState in text format: TensorFlow trusts it,
 *                                     Sextant uses it as a hint
 *   dir/model.ckpt-N.index, .data-*   the checkpoints; N is the step
 *
 * A checkpoint is valid if its `.index` is readable and all its tensors match their checksums: a
 * crash between a checkpoint's commit and the writing of `checkpoint` loses nothing.
 *
 * Deleting removes `.index` first, so that a half-deleted checkpoint is not taken for a checkpoint,
 * and only after `checkpoint` no longer names it. */
#ifndef SX_CHECKPOINT_CHECKPOINT_STATE_H
#define SX_CHECKPOINT_CHECKPOINT_STATE_H

#include "base/arena.h"

#define SX_CHECKPOINT_BASENAME "model.ckpt"

/* The contents of `dir/checkpoint`. Names are prefixes as written: relative to the directory, or
 * absolute. Everything is in the arena that it was read into. */
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

/* A checkpoint found in a directory: its `.index` exists; nothing else has been checked. */
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

/* OK if the checkpoint is intact: index, shards, every checksum. */
SX_MUST_USE sx_status sx_checkpoint_verify(const char *prefix);

/* The newest checkpoint, with every checksum verified: the one with the highest step, or the one
 * named in the state file if that has no number. The prefix is in `arena`. Errors: NOT_FOUND: there
 * is none; DATA_LOSS: it is damaged or missing (the newest intact one is named, if any). */
SX_MUST_USE sx_status sx_checkpoint_latest(const char *dir, sx_arena *arena,
                                           const char **out_prefix);

/* How many to keep; fields as in RunConfig. */
typedef struct sx_checkpoint_retention {
    int keep_max;              /* 0 = all */
    double keep_every_n_hours; /* 0 = never; in addition to keep_max, keeps one for every n hours */
} sx_checkpoint_retention;

/* After dir/`name` has been committed at `now` (seconds since the epoch): makes it the latest in
 * the state file, then deletes the oldest beyond what is to be kept. Deletes nothing outside `dir`.
 */
SX_MUST_USE sx_status sx_checkpoint_register(const char *dir, const char *name, double now,
                                             const sx_checkpoint_retention *retention);

/* Clean up after killed writers; the caller holds the directory's lock.
 *
 * sweep removes their temporary files, and parts of checkpoints without an `.index`: of a save
 * killed before its commit, or of a deletion killed halfway. adopt registers numbered checkpoints
 * that the state file does not name, because the writer was killed between commit and registration
 * or between registration and deletion, and deletes those that retention then drops. Neither writes
 * anything if there is nothing to do. */
SX_MUST_USE sx_status sx_checkpoints_sweep(const char *dir);
SX_MUST_USE sx_status sx_checkpoints_adopt(const char *dir,
                                           const sx_checkpoint_retention *retention);

/* Deletes a checkpoint: `.index` first, then its data shards, then `.meta`. A missing one is not an
 * error. */
SX_MUST_USE sx_status sx_checkpoint_delete(const char *prefix);

#endif
