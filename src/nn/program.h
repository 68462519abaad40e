/* From a model to its three programs: the graphs that a session runs.
 *
 *   mode      inputs                 outputs
 *   train     features, labels,      loss, each metric (means over the batch), learning_rate,
 *             _seed                  ok; assigns weights, state, slots, global_step
 *   eval      features, labels       loss [N], each metric [N]
 *   predict   features               the predictions by name, [N, ...]
 *
 * Inputs, variables and outputs are float32 whatever the precision: that is the layers' affair
 * (sx_builder_set_precision). */
#ifndef SX_NN_PROGRAM_H
#define SX_NN_PROGRAM_H

#include <sextant/model.h>

/* Names of the inputs and of train's own outputs. */
#define SX_FEATURES      "features"
#define SX_LABELS        "labels"
#define SX_LOSS          "loss"
#define SX_OK_OUTPUT     "ok"
#define SX_LEARNING_RATE "learning_rate"

typedef struct sx_program_request {
    const sx_model_def *def;
    const sx_params *params;
    sx_type features; /* of a batch: float32 [SX_BATCH, ...] */
    sx_type labels;   /* int32 [SX_BATCH] */
    sx_mode mode;
    const sx_optimizer
        *optimizer;     /* overrides the model's (kind DEFAULT: only its learning_rate) */
    sx_dtype precision; /* what its layers compute in: SX_BF16; 0 and SX_F32 = float32 */
} sx_program_request;

/* Calls the model's function and wraps what it returns. Errors: the builder's first (layer, line,
 * shapes); a loss or prediction that is missing or not [N]; a parameter that is no number; a
 * precision that is none. */
SX_MUST_USE sx_status sx_build_program(const sx_program_request *request, sx_graph **out_graph);

/* The features' type of a model: its image, or its vector; INVALID_ARGUMENT if it says neither. */
SX_MUST_USE sx_status sx_model_features(const sx_model_def *def, sx_type *out_type);

/* Weights and other variables of a graph: counts of elements by role. */
int64_t sx_graph_count_elems(const sx_graph *g, sx_variable_role role);

#endif
