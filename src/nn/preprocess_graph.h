/* A model's own preprocessing (sx_preprocess_fn) as a graph: the declared inputs in, by the names
 * that programs give them, "features/age", "labels/kind"; the model's features, and labels that
 * it changes, out, by name. Its nodes run on the
 * host, for one example in the input pipeline, for a batch in an exported model: what one example
 * gives depends on that example alone. */
#ifndef SX_NN_PREPROCESS_GRAPH_H
#define SX_NN_PREPROCESS_GRAPH_H

#include "nn/model_inputs.h"

/* Calls def->preprocess on the inputs `declared`, and again without labels if it changes none;
 * *out_inputs, in `arena`, are those of the model's programs. Errors: INVALID_ARGUMENT: the
 * function's own (line, shapes); those of sx_preprocess_graph_check(); a parameter that is not a
 * number. */
SX_MUST_USE sx_status sx_build_preprocess(const sx_model_def *def, const sx_params *params,
                                          const sx_model_inputs *declared, sx_arena *arena,
                                          sx_graph **out_graph, sx_model_inputs *out_inputs);

/* The part of it that serving needs: without labels. The caller owns *out. */
SX_MUST_USE sx_status sx_preprocess_features(const sx_graph *g, const sx_model_inputs *declared,
                                             sx_graph **out);

/* Checks that a graph, built here or read from a file, computes the features of `inputs` from those
 * of `declared`. INVALID_ARGUMENT: other inputs or outputs, an output that is not [N, ...],
 * variables, random numbers, a node that computes one example from others. */
SX_MUST_USE sx_status sx_preprocess_graph_check(const sx_graph *g, const sx_model_inputs *declared,
                                                const sx_model_inputs *inputs);

#endif
