/* Feeds programs from a data set: preprocessing, order, batches; and regroups batches of any size
 * into the fixed batches of evaluation and prediction.
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
    bool repeat;     /* training: repeat forever, even finite data that are batched already */
    int64_t classes; /* labels outside [0, classes) are errors; 0 = unknown */
    const sx_graph *program; /* of that mode; names the layer of a misfit (misfit.h); may be NULL */
} sx_feed_args;

/* An input being read. {0} may be deinitialized. */
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

/* The indices of the components; -1 = absent. */
void sx_feed_components(const sx_dataset *data, int *out_features, int *out_labels);
/* Whether the features are images that must be decoded or scaled. */
bool sx_feed_needs_preprocess(const sx_dataset *data);

/* `data` is borrowed (the input retains what it needs).
 * Errors: those of misfit.h. */
SX_MUST_USE sx_status sx_feed_init(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                                   const sx_feed_args *args);
void sx_feed_deinit(sx_feed *input);

/* A batch in the form that programs take; borrowed until the next call. */
typedef struct sx_feed_batch {
    const void *features, *labels; /* labels NULL when there are none */
    const int64_t *ids;            /* [size] */
    int64_t size;
    bool ends_epoch;
} sx_feed_batch;

/* OUT_OF_RANGE at the end of the data. */
SX_MUST_USE sx_status sx_feed_next(sx_feed *input, sx_feed_batch *out_batch);

/* The size of one row of a batch of this type. */
SX_MUST_USE sx_status sx_feed_row_bytes(const sx_type *batch_type, size_t *out);

/* The model's preprocessing; `recipe` replaces all of it but the size, `augment` (as in
 * sx_preprocess_set_augment) the augmentations. Both may be NULL. */
SX_MUST_USE sx_status sx_model_preprocess(const sx_model_def *def, const char *recipe,
                                          const char *augment, int label_base, sx_preprocess *out);

/* ---- Fixed batches ---- */

/* Regroups rows: every batch returned has exactly `size` rows. The last one is padded with copies
 * of its first row and says how many are valid. */
typedef struct sx_rebatch {
    sx_feed *input;
    int64_t size;
    size_t feature_bytes, label_bytes; /* of a row; label_bytes 0 = no labels */
    char *features, *labels;
    int64_t *ids;
    sx_feed_batch pending; /* the input's last batch */
    int64_t taken;         /* rows of it already used */
    bool ended;
} sx_rebatch;

SX_MUST_USE sx_status sx_rebatch_init(sx_rebatch *r, sx_feed *input, const sx_run_info *info,
                                      int64_t size, bool with_labels);
void sx_rebatch_deinit(sx_rebatch *r);
/* out_batch->size is the number of valid rows; the buffers hold `size` rows. OUT_OF_RANGE at the
 * end. */
SX_MUST_USE sx_status sx_rebatch_next(sx_rebatch *r, sx_feed_batch *out_batch);

#endif
