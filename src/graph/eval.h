/* Evaluating one node by its operator's reference: the inner loop of the ref backend, of constant
 * folding and of the operator tests. */
#ifndef SX_GRAPH_EVAL_H
#define SX_GRAPH_EVAL_H

#include "graph/op_def.h"

/* Rounds each element to what `dtype` can hold (float32: to nearest even; integers: as a C cast).
 */
void sx_ref_round(const sx_ref_tensor *t);
/* Host bytes of t.type.dtype <-> doubles. */
void sx_ref_load(const sx_ref_tensor *t, const void *bytes);
void sx_ref_store(const sx_ref_tensor *t, void *bytes);
/* Runs op->ref and rounds the outputs to their dtypes; `keep_double` leaves floats in double. */
void sx_ref_run(const sx_op_def *op, const sx_ref *r, bool keep_double);

#endif
