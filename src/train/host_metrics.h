/* TPUEstimator's eval_metrics: metrics that a function of the model computes on the host from
 * tensors of every example (sextant/model.h: sx_eval_metrics), in the order of the data. The
 * tensors are the outputs "eval_metrics/<name>" of the eval program. */
#ifndef SX_TRAIN_HOST_METRICS_H
#define SX_TRAIN_HOST_METRICS_H

#include "nn/model_program.h"

typedef struct sx_host_metrics {
    const sx_host_functions *functions;
    void *states[SX_MAX_METRICS];
    int n_values;
    int outputs[SX_MAX_HOST_TENSORS]; /* of the program */
    sx_host_value values[SX_MAX_HOST_TENSORS];
} sx_host_metrics;

/* Whether the output exists only for these metrics. */
bool sx_is_host_metric(const char *output_name);

/* Zeroed states. {0} may be deinitialized. */
SX_MUST_USE sx_status sx_host_metrics_init(sx_host_metrics *m, const sx_host_functions *functions);
void sx_host_metrics_deinit(sx_host_metrics *m);
/* Registers output `output` with its name and the type of its rows; call in the order of outputs.
 */
void sx_host_metrics_add_output(sx_host_metrics *m, int output, const char *name,
                                const sx_type *row_type);
/* Adds one example; rows[output] is its row of each output. */
void sx_host_metrics_add(sx_host_metrics *m, const void *const *rows);
/* The value of metric i, i < functions->n_metrics. */
double sx_host_metrics_result(const sx_host_metrics *m, int i);

#endif
