/* Feeds programs from a data set: preprocessing, order, batches; and regroups batches of any size
 * into the fixed batches of evaluation and prediction.
 *
 *   elements  ──  image map, or the model's own preprocessing  ──  shuffle, batch, repeat
 * (training) batches   ──  taken as they are
 *
 * Each of the run's inputs (model_inputs.h) is a component. Without named ones, features are the
 * component "features" or "image", else the first; labels "labels" or "label", else the second.
 * Integers of any width become int32 where the program has that, class labels checked against the
 * classes. Shapes are checked before any data is read. */
#ifndef SX_TRAIN_FEED_H
#define SX_TRAIN_FEED_H

#include "data/part.h"
#include "runtime/session.h"
#include "train/run_dir.h"

typedef struct sx_feed_args {
    sx_mode mode;
    int64_t batch_size; /* of unbatched data */
    bool no_shuffle;
    bool repeat;     /* training: repeat forever, even finite data that are batched already */
    int64_t classes; /* labels outside [0, classes) are errors; 0 = unknown */
    const sx_graph *program; /* of that mode; names the layer of a misfit (misfit.h); may be NULL */
    const sx_graph *preprocess; /* the run's, of named inputs; NULL = none */
    bool bytes;   /* the image stays uint8, which the program scales (byte_images.h) */
    sx_part part; /* of each batch; rows outside it are not set */
} sx_feed_args;

/* One of the run's inputs in the data. */
typedef struct sx_feed_column {
    int component;      /* -1 = not fed in this mode */
    sx_dtype dtype;     /* as fed */
    bool is_class;      /* a label, checked against the classes */
    int32_t *converted; /* [max_batch × elements of an example]; NULL = fed as it is */
} sx_feed_column;

/* An input being read. {0} may be deinitialized. */
typedef struct sx_feed {
    const sx_model_inputs *inputs; /* the run's */
    sx_dataset *data;              /* batched; one reference */
    sx_iterator *iterator;
    bool borrowed;                               /* the iterator is the caller's */
    sx_feed_column columns[SX_MAX_MODEL_INPUTS]; /* [inputs->n] */
    int64_t classes;
    int64_t steps_per_epoch; /* 0 = unknown */
    int64_t max_batch;
    sx_part part;
} sx_feed;

/* The indices of the components without named inputs; -1 = absent. */
void sx_feed_components(const sx_dataset *data, int *out_features, int *out_labels);
/* Whether the features are images that must be decoded or scaled. */
bool sx_feed_needs_preprocess(const sx_dataset *data);

/* Whether integers of this type are converted to a program's int32. */
static inline bool sx_feed_converts(sx_dtype dtype)
{
    return dtype == SX_I64 || dtype == SX_U8;
}

/* `data` is borrowed (the input retains what it needs).
 * Errors: those of misfit.h. */
SX_MUST_USE sx_status sx_feed_init(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                                   const sx_feed_args *args);
/* Reads the caller's iterator over batches, which must outlive the feed. INVALID_ARGUMENT: its data
 * is not batched; those of misfit.h. */
SX_MUST_USE sx_status sx_feed_borrow(sx_feed *input, const sx_run_info *info, sx_iterator *iterator,
                                     const sx_feed_args *args);
void sx_feed_deinit(sx_feed *input);
/* Adds the run's preprocessing in args->mode to unbatched data. */
SX_MUST_USE sx_status sx_feed_preprocess(sx_dataset **data, const sx_run_info *info,
                                         const sx_feed_args *args);

/* A batch in the form that programs take; borrowed until the next call. */
typedef struct sx_feed_batch {
    const void *inputs[SX_MAX_MODEL_INPUTS]; /* as the run's; NULL = not fed in this mode */
    const int64_t *ids;                      /* [size] */
    int64_t size;
    bool ends_epoch;
} sx_feed_batch;

/* OUT_OF_RANGE at the end of the data. */
SX_MUST_USE sx_status sx_feed_next(sx_feed *input, sx_feed_batch *out_batch);

/* Points a program's inputs, in its order, to a batch's. `order` is from sx_feed_order. */
void sx_feed_bind(const sx_feed_batch *batch, const int *order, int n, const void **out_inputs);
/* The run's input, by index, of each input of the program; at most SX_MAX_MODEL_INPUTS. */
SX_MUST_USE sx_status sx_feed_order(const sx_model_inputs *inputs, const sx_program *program,
                                    int out_order[SX_MAX_MODEL_INPUTS], int *out_n);

/* ---- Rows ---- */

/* Rows of the fed inputs, copied together. {0} may be deinitialized. */
typedef struct sx_feed_rows {
    int n;
    int64_t room;
    struct {
        char *data;   /* [room] rows; NULL = not fed */
        size_t bytes; /* of a row */
    } inputs[SX_MAX_MODEL_INPUTS];
    int64_t *ids; /* [room] */
} sx_feed_rows;

SX_MUST_USE sx_status sx_feed_rows_init(sx_feed_rows *rows, const sx_feed *feed, int64_t room);
void sx_feed_rows_deinit(sx_feed_rows *rows);
/* Copies rows [from, from + count) of a batch to row `at`. */
void sx_feed_rows_put(sx_feed_rows *rows, int64_t at, const sx_feed_batch *batch, int64_t from,
                      int64_t count);
/* The rows as a batch; borrowed. */
sx_feed_batch sx_feed_rows_batch(const sx_feed_rows *rows, int64_t size);

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
    sx_feed_rows rows;
    sx_feed_batch pending; /* the input's last batch */
    int64_t taken;         /* rows of it already used */
    bool ended;
} sx_rebatch;

SX_MUST_USE sx_status sx_rebatch_init(sx_rebatch *r, sx_feed *input, int64_t size);
void sx_rebatch_deinit(sx_rebatch *r);
/* out_batch->size is the number of valid rows; the buffers hold `size` rows. OUT_OF_RANGE at the
 * end. */
SX_MUST_USE sx_status sx_rebatch_next(sx_rebatch *r, sx_feed_batch *out_batch);

#endif
