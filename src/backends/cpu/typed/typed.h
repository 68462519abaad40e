/* Kernels of host operators (SX_OP_HOST) on their tensors' own bytes: a host step of a function
 * (runtime/host_step.h) runs them instead of op->host, which gets every element in its carrier, a
 * double, and remains the standard: the results are equal within float32's precision, random
 * numbers to the bit.
 *
 * To add one: a sx_typed_<operator> in this folder and its row in typed.def.
 * tests/backends/test_typed.c then compares it with op->host. */
#ifndef SX_BACKENDS_CPU_TYPED_TYPED_H
#define SX_BACKENDS_CPU_TYPED_TYPED_H

#include "graph/host.h"

typedef struct sx_typed_call {
    const void *attrs;
    const sx_tensor *in,
        *out; /* out: of the types that op->host_types says, to be written in full */
    int n_in;
    const sx_host_context *context;
    void *found; /* by types(), in the context's arena */
} sx_typed_call;

/* Of sizes: the inputs of the first half, and no others. */
#define SX_TYPED_FIRST_HALF (1U << 31)

typedef struct sx_typed_kernel {
    int op;
    unsigned sizes; /* bit i: op->host_types reads the elements of in[i], those of no other input */
    bool (*takes)(const void *attrs, const sx_tensor *in); /* reads types only */
    /* Instead of op->host_types: the types of the outputs, and c->found for run(). NULL: none. */
    sx_status (*types)(sx_typed_call *c, sx_type *out_types);
    sx_status (*run)(const sx_typed_call *c);
} sx_typed_kernel;

/* Whether the operator has one, for some dtypes. */
bool sx_typed_has(const sx_op_def *op);
/* NULL: op->host computes it. */
const sx_typed_kernel *sx_typed_find(const sx_op_def *op, const void *attrs, const sx_tensor *in);
/* As sx_host_types(), without carrying what is not read. Of the call, all but `out` is read. */
SX_MUST_USE sx_status sx_typed_types(const sx_typed_kernel *kernel, const sx_op_def *op,
                                     sx_typed_call *call, sx_type *out_types, int n_out);

/* For kernels: op->host_types, which reads the elements of the inputs that `sizes` names. */
SX_MUST_USE sx_status sx_typed_host_types(const sx_op_def *op, const sx_typed_call *call,
                                          unsigned sizes, sx_type *out_types, int n_out);

/* For kernels: `n` numbers from element `first` on as float32: in place, or converted into
 * room[n]. */
const float *sx_typed_floats(const sx_tensor *t, int64_t first, int64_t n, float *room);

#endif
