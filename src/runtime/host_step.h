/* A host step of a specialized function (graph/specialize.h): one node, computed by its host
 * kernel. */
#ifndef SX_RUNTIME_HOST_STEP_H
#define SX_RUNTIME_HOST_STEP_H

#include "graph/host.h"
#include "graph/specialize.h"

/* Computes the step's node from in[step->n_in]: tensors of static types, the node's inputs and then
 * its attribute operands. out[step->n_out] get their types, and data in context->arena; or their
 * type and data are set: room for what must be of that type. `batch`: the value of N in the node's
 * attributes; 0 = they have none. RESOURCE_EXHAUSTED: the arena's budget; the kernel's errors. */
SX_MUST_USE sx_status sx_host_step_run(const sx_step *step, int64_t batch, const sx_tensor *in,
                                       sx_tensor *out, const sx_host_context *context);
/* The kernel's host_check (graph/op_def.h) for these inputs. */
SX_MUST_USE sx_status sx_host_step_check(const sx_step *step, const sx_tensor *in,
                                         const sx_host_context *context, size_t *out_bytes);
/* sx_host_step_check(), then, with its bytes charged to the arena's budget, sx_host_step_run(). */
SX_MUST_USE sx_status sx_host_step_run_checked(const sx_step *step, int64_t batch,
                                               const sx_tensor *in, sx_tensor *out,
                                               const sx_host_context *context);

#endif
