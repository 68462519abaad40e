/* sx_plan: a dataset's nodes, sorted for running.
 *
 *   batch number -> outer order ops -> batch j of an epoch -> element position
 *                -> inner order ops -> (epoch, record)           locate: under the iterator's lock
 *   (epoch, record) -> source -> map | cache -> ... -> element   produce: any worker
 *
 * Immutable except for the order states, which must be used by one thread at a time. */
#ifndef SX_DATA_PLAN_H
#define SX_DATA_PLAN_H

#include "data/dataset.h"

enum {
    SX_MAX_STAGES = 32,
    SX_MAX_RUN = 64, /* records that a producer reads at once */
};

/* How long the strings of an element are valid. */
typedef enum sx_strings_life {
    SX_STRINGS_ELEMENT, /* until the producer's next element */
    SX_STRINGS_READ,    /* they point into memory that the source read into: as long as that */
    SX_STRINGS_SOURCE,  /* as long as the dataset */
} sx_strings_life;

typedef struct sx_plan_order {
    const sx_order_op *ops[SX_MAX_STAGES]; /* outermost first: the order of application */
    sx_order_state states[SX_MAX_STAGES];
    int count;
} sx_plan_order;

typedef struct sx_plan {
    sx_dataset *dataset; /* retained */
    sx_schema element;   /* of one element: the schema before batch() */
    int64_t elements;    /* per epoch of the outer ops: input of batch() */
    int64_t batches;     /* per epoch of the outer ops */
    int64_t total;       /* batches in the whole iteration */
    int64_t batch_size;  /* 1 without batch() */
    bool batched;
    sx_plan_order outer, inner;
    const sx_dataset *stages[SX_MAX_STAGES]; /* map and cache nodes, first applied first */
    int stage_count;
    sx_strings_life strings_life;
    uint64_t fingerprint;
} sx_plan;

/* Errors: INVALID_ARGUMENT: more than SX_MAX_STAGES nodes of a kind. deinit() is safe on a zeroed
 * plan. */
SX_MUST_USE sx_status sx_plan_init(sx_plan *plan, sx_dataset *dataset);
void sx_plan_deinit(sx_plan *plan);

/* The position of a batch's elements in the input of batch(). */
typedef struct sx_plan_batch {
    uint64_t outer_epoch;
    int64_t first; /* element position */
    int64_t size;
} sx_plan_batch;

/* number in [0, total). */
SX_MUST_USE sx_status sx_plan_locate_batch(sx_plan *plan, int64_t number, sx_plan_batch *out_batch);
/* The `row`-th element of a batch. */
SX_MUST_USE sx_status sx_plan_locate(sx_plan *plan, const sx_plan_batch *batch, int64_t row,
                                     uint64_t *out_epoch, int64_t *out_record);

/* A worker's state for producing elements. */
typedef struct sx_producer {
    sx_scratch scratch;    /* of the maps, for one element */
    sx_scratch read;       /* of the source, for one read */
    sx_scratch *kept;      /* used by the source instead of `read`; NULL = none */
    const int64_t *coming; /* [coming_count] the records that will be requested next */
    int64_t coming_count;
    sx_bytes run[SX_MAX_RUN]; /* records [run_first, run_first + run_count), read at once */
    int64_t run_first, run_count;
    void *workers[SX_MAX_STAGES]; /* of the maps, by stage */
    bool created[SX_MAX_STAGES];
    sx_tensor tensors[SX_MAX_STAGES + 1][SX_MAX_COMPONENTS]; /* [stage + 1]; 0 = the source */
} sx_producer;

/* `producer` is zeroed memory; deinit() undoes a partial init too. */
SX_MUST_USE sx_status sx_producer_init(sx_producer *producer, const sx_plan *plan);
void sx_producer_deinit(sx_producer *producer, const sx_plan *plan);

/* The following calls of sx_producer_run() will request `records` in this order (some may be
 * skipped), so that neighbours can be read at once. The source reads into `kept`, which the caller
 * has reset; with NULL, its data are valid until the next element. `records` are borrowed until the
 * next call of begin(). */
void sx_producer_begin(sx_producer *producer, const int64_t *records, int64_t count,
                       sx_scratch *kept);
/* Produces one element. destinations[component] receives its data (fixed size: the row itself;
 * strings: an array of sx_bytes, valid as plan->strings_life says). Errors name the record. */
SX_MUST_USE sx_status sx_producer_run(sx_producer *producer, const sx_plan *plan, uint64_t epoch,
                                      int64_t record, void *const *destinations);

#endif
