/* Runs a program over data, every example once and in order, in batches of one fixed size, and
 * passes on the valid rows batch by batch. The basis of evaluation and prediction. On a device with
 * memory of its own, a batch is read and copied to it while it computes the one before. */
#ifndef SX_TRAIN_DATA_PASS_H
#define SX_TRAIN_DATA_PASS_H

#include "runtime/lanes.h"
#include "train/state.h"

/* Outputs of eval: the loss, metrics, tensors for two host functions. */
enum { SX_MAX_DATA_PASS_OUTPUTS = 1 + SX_MAX_METRICS + 2 * SX_MAX_HOST_TENSORS };
_Static_assert(SX_MAX_DATA_PASS_OUTPUTS >= (int)SX_MAX_PREDICTIONS,
               "room for both programs' outputs");

typedef struct sx_data_pass {
    sx_trainer *t;
    sx_mode mode;
    sx_program *program;
    sx_feed input;
    sx_rebatch batches;
    sx_lanes *lanes; /* NULL: the device computes when it is asked */
    struct {
        sx_feed_rows rows;                   /* [size] */
        bool is_pinned[SX_MAX_MODEL_INPUTS]; /* of `rows` */
        sx_feed_batch batch;                 /* of them; its size is 0 if nothing is running */
    } ahead[SX_LANES];
    int64_t size;  /* of the batches, padding included */
    int64_t limit; /* maximum number of examples; 0 = all */
    int64_t read;  /* examples so far, and those passed on */
    int64_t done;
    int64_t told_ns;
    int64_t asked; /* batches that were asked for */
    int n_inputs;
    int order[SX_MAX_MODEL_INPUTS]; /* the run's input of each of the program */
    int n_outputs;
    void *outputs[SX_MAX_DATA_PASS_OUTPUTS]; /* [size] rows each */
    size_t row_bytes[SX_MAX_DATA_PASS_OUTPUTS];
    sx_type row_types[SX_MAX_DATA_PASS_OUTPUTS];
} sx_data_pass;

/* Compiles the program and opens the data. Must be closed even after an error.
 * Errors: FAILED_PRECONDITION: nothing is trained or loaded; INVALID_ARGUMENT: the data do not fit
 * (misfit.h), or are infinite and there is no limit. */
SX_MUST_USE sx_status sx_data_pass_open(sx_data_pass *p, sx_trainer *t, sx_mode mode,
                                        sx_dataset *data, int64_t limit);
void sx_data_pass_close(sx_data_pass *p);

/* The first batch->size rows of each output are valid; p->done is the index of the first. */
typedef sx_status sx_rows_fn(sx_data_pass *p, const sx_feed_batch *batch, void *user);
/* Errors: CANCELLED: a stop was requested; INVALID_ARGUMENT: there are no examples; those of
 * `rows`. */
SX_MUST_USE sx_status sx_data_pass_run(sx_data_pass *p, sx_rows_fn *rows, void *user);

#endif
