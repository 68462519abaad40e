/* What N is in a run of a function: the size of the batch. */
#ifndef SX_RUNTIME_FUNCTION_BATCH_H
#define SX_RUNTIME_FUNCTION_BATCH_H

#include "graph/ir.h"
#include "runtime/function_frame.h"

enum { SX_NO_BATCH = -1 /* nothing says what N is */ };

/* N: what args[n] have where the function declares c·N. If it declares none, and `symbols`, the
 * size that most of the symbols have that it declares. SX_NO_BATCH if there is neither.
 * INVALID_ARGUMENT, naming the arguments: two sizes of N, or of a symbol. */
SX_MUST_USE sx_status sx_function_batch(const sx_graph *body, const sx_run_value *args, int n,
                                        bool symbols, int64_t *out_batch);

#endif
