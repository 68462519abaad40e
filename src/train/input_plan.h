/* TPUEstimator's input modes (sx_input_config): how often the input function is called, with which
 * batch size, and how many batches a step takes. */
#ifndef SX_TRAIN_INPUT_PLAN_H
#define SX_TRAIN_INPUT_PLAN_H

#include <sextant/train.h>

enum { SX_MAX_INPUTS = 64 }; /* calls on one host */

typedef struct sx_input_plan {
    int calls;             /* of the input function on this host */
    int64_t batch_size;    /* passed to each call: params["batch_size"] */
    int pulls;             /* batches that a step takes from each call's data set */
    int64_t replica_batch; /* examples per replica and step */
} sx_input_plan;

/* Plans steps of `global` examples on `replicas` replicas, spread evenly over `hosts` hosts.
 * Errors: INVALID_ARGUMENT: the batch is not divisible (the nearest two sizes that are get named),
 * the input mode is not available in `mode`, or more than SX_MAX_INPUTS calls are needed. */
SX_MUST_USE sx_status sx_input_plan_make(sx_mode mode, sx_input_config config, int64_t global,
                                         int replicas, int hosts, sx_input_plan *out_plan);

/* The input mode for `mode`: evaluation and prediction use training's, except SLICED if configured,
 * and PER_HOST_V1 if training uses PER_SHARD_V1. */
sx_input_config sx_input_config_of(const sx_tpu_config *config, sx_mode mode);

/* INVALID_ARGUMENT unless the training batch is divisible by the number of replicas and by that of
 * micro-batches. The last batch of an epoch need not be. */
SX_MUST_USE sx_status sx_check_batch_divides(const sx_run_config *config, int64_t batch);

/* INVALID_ARGUMENT: model parallelism, or an input mode that training or evaluation lacks. */
SX_MUST_USE sx_status sx_tpu_config_check(const sx_tpu_config *config);

#endif
