/* One step's batch from several: the input modes that hand out less than a global batch at a time.
 *
 *   PER_HOST_V1     one feed, one batch a step: handed through, nothing is copied
 *   PER_HOST_V2     one feed, `pulls` batches a step
 *   PER_SHARD_V1    `n` feeds, one batch of each a step
 *
 * Rows keep their order: feed by feed, batch by batch. No step straddles the end of an epoch: its
 * batch is smaller instead, and a feed whose epoch is over adds nothing until the others' are. */
#ifndef SX_TRAIN_GATHER_H
#define SX_TRAIN_GATHER_H

#include "train/feed.h"
#include "train/input_plan.h"

typedef struct sx_batch_gather {
    sx_feed *feeds; /* [n] */
    int n, pulls;
    int64_t max_batch;
    int64_t steps_per_epoch;           /* 0 = unknown */
    int64_t step_in_epoch;             /* of the next batch */
    size_t feature_bytes, label_bytes; /* of a row */
    char *features, *labels;           /* [max_batch] rows; NULL when nothing is copied */
    int64_t *ids;
} sx_batch_gather;

/* `data` [n] are borrowed. Errors: those of sx_feed_init. {0} may be deinitialized. */
SX_MUST_USE sx_status sx_batch_gather_init(sx_batch_gather *g, const sx_run_info *info,
                                           sx_dataset *const *data, int n, int pulls,
                                           const sx_feed_args *args);
void sx_batch_gather_deinit(sx_batch_gather *g);

/* Borrowed until the next call. OUT_OF_RANGE at the end of the data. */
SX_MUST_USE sx_status sx_batch_gather_next(sx_batch_gather *g, sx_feed_batch *out_batch);

/* The place: n cursors, one after another. */
void sx_batch_gather_save(const sx_batch_gather *g, uint8_t *cursors);
/* `step_in_epoch` as it was then. FAILED_PRECONDITION: `count` is not n, or cursors of other data.
 */
SX_MUST_USE sx_status sx_batch_gather_restore(sx_batch_gather *g, const uint8_t *cursors, int count,
                                              int64_t step_in_epoch);
/* To the beginning of step `step` of these data. */
SX_MUST_USE sx_status sx_batch_gather_seek(sx_batch_gather *g, int64_t step);

/* Time that the caller has waited for data, in nanoseconds. */
int64_t sx_batch_gather_waited(const sx_batch_gather *g);

#endif
