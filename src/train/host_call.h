/* TPUEstimator's host_call: a function of the model that runs on the host and gets tensors of each
 * step (sextant/model.h: sx_host_call). They are the outputs "host_call/<name>" of the train and
 * eval programs. In training, scalars come with the step's other scalars and arrays are read from
 * the program; in evaluation all outputs have been read already. */
#ifndef SX_TRAIN_HOST_CALL_H
#define SX_TRAIN_HOST_CALL_H

#include "nn/model_program.h"
#include "runtime/session.h"

typedef struct sx_host_caller {
    sx_program *program;
    sx_host_call call; /* fn NULL = nothing is called */
    int64_t every;     /* steps */
    int n;
    int outputs[SX_MAX_HOST_TENSORS];
    int scalars[SX_MAX_HOST_TENSORS]; /* index among the step's scalars, or -1 */
    sx_host_value values[SX_MAX_HOST_TENSORS];
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        bool b;
    } numbers[SX_MAX_HOST_TENSORS]; /* scalars */
    void *arrays[SX_MAX_HOST_TENSORS];
} sx_host_caller;

/* Whether the output exists only for the host call. */
bool sx_is_host_call(const char *output_name);

/* Batches have at most `max_batch` examples. {0} may be deinitialized.
 * Errors: INVALID_ARGUMENT: a tensor whose type cannot be passed to the host. */
SX_MUST_USE sx_status sx_host_caller_init(sx_host_caller *h, sx_program *program,
                                          const sx_host_call *call, int64_t max_batch,
                                          int64_t every);
void sx_host_caller_deinit(sx_host_caller *h);

/* Call after each step, while its outputs can be read: calls the function every `every` steps. */
SX_MUST_USE sx_status sx_host_caller_step(sx_host_caller *h, const sx_step_scalars *scalars);

/* Call in evaluation after each batch; its first `size` examples are valid. `outputs` are the
 * program's, one row per example. */
SX_MUST_USE sx_status sx_host_call_batch(const sx_host_call *call, const sx_program *program,
                                         int64_t step, void *const *outputs, int64_t size);

#endif
