/* Builds a model's three programs, the graphs that a session runs.
 *
 *   mode      inputs                 outputs
 *   train     features…, labels…,    loss, each metric (means over the batch), learning_rate,
 *             weights, _seed         ok, weight_sum, host_call/<name>; assigns weights, state,
 *                                    slots, global_step
 *   eval      features…, labels…     loss [N], each metric [N], eval_metrics/<name> [N, ...],
 *                                    host_call/<name> [N, ...]
 *   predict   features…              the predictions by name, [N, ...]
 *
 * Their names are those of model_inputs.h. Inputs, variables and outputs do not depend on the
 * precision, which only applies within layers (sx_builder_set_precision). */
#ifndef SX_NN_MODEL_PROGRAM_H
#define SX_NN_MODEL_PROGRAM_H

#include "nn/model_inputs.h"
#include "runtime/session.h"

/* Names of outputs that every training program has, beside the session's SX_OK_OUTPUT. */
#define SX_LOSS          "loss"
#define SX_LEARNING_RATE "learning_rate"
/* Of a model with example weights: their sum over the batch. */
#define SX_WEIGHT_SUM "weight_sum"

/* Prefixes of outputs for host functions, before the tensor's name. */
#define SX_HOST_CALL_PREFIX    "host_call/"
#define SX_EVAL_METRICS_PREFIX "eval_metrics/"

/* Functions of a model that run on the host; not part of a graph. */
typedef struct sx_host_functions {
    int n_metrics;
    sx_host_metric metrics[SX_MAX_METRICS];
    sx_host_call calls[2]; /* by sx_mode, of train and eval; fn NULL = none */
} sx_host_functions;

/* A builder of a program has its request, for sx_minimize(). */
typedef struct sx_program_request {
    const sx_model_def *def;
    const sx_params *params;
    const sx_model_inputs *inputs; /* of the programs; NULL = as the model declares */
    sx_mode mode;
    const sx_optimizer *optimizer; /* overrides the model's (kind DEFAULT: only l2 and the given
                                      fields of the rate) */
    sx_dtype precision;            /* compute type of the layers: SX_BF16; 0 and SX_F32 = float32 */
    /* Needed by some learning rates (train): the global batch size, and the steps per epoch. 0 =
     * unknown. */
    int64_t batch, steps_per_epoch;
    int replicas; /* 0 = 1 */
    /* Builds the program instead of the model's function, from the inputs of the mode; NULL = none.
     * `step_trains_run`: it is the run's training program, with what train_step.h checks. */
    sx_step_build_fn *step;
    bool step_trains_run;
    sx_optimizer *out_optimizer; /* train: the optimizer before its rate is resolved; may be NULL */
    sx_host_functions *out_host; /* train: its call; eval: its call and metrics; may be NULL */
} sx_program_request;

/* Calls the model's function and wraps what it returns. Errors: those of sx_model_inputs_of(); the
 * builder's first (layer, line, shapes); a loss or prediction that is missing or not [N]; an input
 * of the function's own; a parameter that is not a number; an invalid precision. */
SX_MUST_USE sx_status sx_build_program(const sx_program_request *request, sx_graph **out_graph);

/* Checks that a graph, built here or read from a file, can be fed: its inputs are `inputs` (in
 * prediction, the features) with their types, and the session's seed.
 * Errors: INVALID_ARGUMENT naming the first other input. */
SX_MUST_USE sx_status sx_program_check_inputs(const sx_graph *g, sx_mode mode,
                                              const sx_model_inputs *inputs);

/* The number of elements of a graph's variables with that role. */
int64_t sx_graph_count_elems(const sx_graph *g, sx_variable_role role);

#endif
