/* From a data set to what a program is fed: preprocessing, order, batches; and rows of any batches
 * gathered into the fixed batches of evaluation and prediction.
 *
 *   elements  ──  image map (when the run has preprocessing)  ──  shuffle, batch, repeat (training)
 *   batches   ──  taken as they are
 *
 * Features are the component "features" or "image", else the first; labels "labels" or "label",
 * else the second. Features are float32 of the model's shape; integer labels of any width become
 * the program's int32, checked against the classes. Shapes are checked before any data is read. */
#ifndef SX_TRAIN_FEED_H
#define SX_TRAIN_FEED_H

#include "train/run_dir.h"

typedef struct sx_feed_args {
    sx_mode mode;
    int64_t batch_size; /* of unbatched data */
    bool no_shuffle;
    bool repeat;             /* training: for ever, also what is batched already but finite */
    int64_t classes;         /* labels outside [0, classes) are errors; 0 = unknown */
    const sx_graph *program; /* of that mode; names the layer of a misfit (misfit.h); may be NULL */
} sx_feed_args;

/* Running input: where the next batch comes from. {0} may be deinitialized. */
typedef struct sx_feed {
    sx_dataset *data; /* batched; one reference */
    sx_iterator *iterator;
    int features, labels; /* components; labels -1 = none */
    sx_type label_type;   /* of the program, with SX_BATCH */
    int64_t classes;
    int64_t steps_per_epoch; /* 0 = unknown */
    int64_t max_batch;
    int32_t *label_buffer; /* [max_batch × labels of an example] */
} sx_feed;

/* The components' numbers; -1 where there is none. */
void sx_feed_components(const sx_dataset *data, int *out_features, int *out_labels);
/* Whether these features are images yet to be decoded or scaled. */
bool sx_feed_needs_preprocess(const sx_dataset *data);

/* `data` is borrowed (the input retains what it needs).
 * Errors: those of misfit.h. */
SX_MUST_USE sx_status sx_feed_init(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                                   const sx_feed_args *args);
void sx_feed_deinit(sx_feed *input);

/* One batch as a program wants it; borrowed until the next call. */
typedef struct sx_feed_batch {
    const void *features, *labels; /* labels NULL when there are none */
    const int64_t *ids;            /* [size] */
    int64_t size;
    bool ends_epoch;
} sx_feed_batch;

/* OUT_OF_RANGE at the end of the data. */
SX_MUST_USE sx_status sx_feed_next(sx_feed *input, sx_feed_batch *out_batch);

/* Bytes of one row of a batch of that type. */
SX_MUST_USE sx_status sx_feed_row_bytes(const sx_type *batch_type, size_t *out);

/* The model's preprocessing; `recipe` replaces all of it but the size, `augment` (as in
 * sx_preprocess_set_augment) the augmentations. Both may be NULL. */
SX_MUST_USE sx_status sx_model_preprocess(const sx_model_def *def, const char *recipe,
                                          const char *augment, int label_base, sx_preprocess *out);

/* --- Fixed batches -------------------------------------------------------------------------------
 */

/* Gathers rows: every batch handed out has exactly `size` rows, the last one padded with copies of
 * its first row and saying how many count. */
typedef struct sx_rebatch {
    sx_feed *input;
    int64_t size;
    size_t feature_bytes, label_bytes; /* of a row; label_bytes 0 = no labels */
    char *features, *labels;
    int64_t *ids;
    sx_feed_batch pending; /* what of the last batch has not been handed out */
    int64_t taken;         /* rows of it that have */
    bool ended;
} sx_rebatch;

SX_MUST_USE sx_status sx_rebatch_init(sx_rebatch *r, sx_feed *input, const sx_run_info *info,
                                      int64_t size, bool with_labels);
void sx_rebatch_deinit(sx_rebatch *r);
/* out_batch->size is the number of rows that count, all `size` rows are there. OUT_OF_RANGE at the
 * end. */
SX_MUST_USE sx_status sx_rebatch_next(sx_rebatch *r, sx_feed_batch *out_batch);

#endif
