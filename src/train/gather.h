/* Assembles a step's batch from several smaller ones, as the input mode requires:
 *
 *   PER_HOST_V1     one feed, one batch per step: passed on without a copy
 *   PER_HOST_V2     one feed, `pulls` batches per step
 *   PER_SHARD_V1    `n` feeds, one batch of each per step
 *
 * Rows keep their order: feed by feed, batch by batch. A step never spans two epochs: the last
 * batch of an epoch is smaller instead, and a feed that has finished its epoch contributes nothing
 * until the others have, too. */
#ifndef SX_TRAIN_GATHER_H
#define SX_TRAIN_GATHER_H

#include "train/feed.h"
#include "train/input_plan.h"

typedef struct sx_batch_gather {
    sx_feed *feeds; /* [n] */
    int n, pulls;
    int64_t max_batch;
    int64_t steps_per_epoch; /* 0 = unknown */
    int64_t step_in_epoch;   /* of the next batch */
    sx_feed_rows rows;       /* [max_batch]; empty when nothing is copied */
} sx_batch_gather;

/* `data` [n] are borrowed. Errors: those of sx_feed_init. {0} may be deinitialized. */
SX_MUST_USE sx_status sx_batch_gather_init(sx_batch_gather *g, const sx_run_info *info,
                                           sx_dataset *const *data, int n, int pulls,
                                           const sx_feed_args *args);
/* Reads one iterator of the caller's, as sx_feed_borrow(). */
SX_MUST_USE sx_status sx_batch_gather_borrow(sx_batch_gather *g, const sx_run_info *info,
                                             sx_iterator *iterator, const sx_feed_args *args);
void sx_batch_gather_deinit(sx_batch_gather *g);

/* Borrowed until the next call. OUT_OF_RANGE at the end of the data. */
SX_MUST_USE sx_status sx_batch_gather_next(sx_batch_gather *g, sx_feed_batch *out_batch);

/* Saves the position: n cursors, one after another. */
void sx_batch_gather_save(const sx_batch_gather *g, uint8_t *cursors);
/* `step_in_epoch` is the value at the time of saving. FAILED_PRECONDITION: `count` is not n, or the
 * cursors belong to other data. */
SX_MUST_USE sx_status sx_batch_gather_restore(sx_batch_gather *g, const uint8_t *cursors, int count,
                                              int64_t step_in_epoch);
/* Moves to the beginning of step `step`. */
SX_MUST_USE sx_status sx_batch_gather_seek(sx_batch_gather *g, int64_t step);

/* The total time spent waiting for data, in nanoseconds. */
int64_t sx_batch_gather_waited(const sx_batch_gather *g);

#endif
