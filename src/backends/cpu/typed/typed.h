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
    const sx_host_context *context;
} sx_typed_call;

typedef struct sx_typed_kernel {
    int op;
    unsigned sizes; /* bit i: op->host_types reads the elements of in[i], those of no other input */
    bool (*takes)(const void *attrs, const sx_tensor *in); /* reads types only */
    sx_status (*run)(const sx_typed_call *c);
} sx_typed_kernel;

/* Whether the operator has one, for some dtypes. */
bool sx_typed_has(const sx_op_def *op);
/* NULL: op->host computes it. */
const sx_typed_kernel *sx_typed_find(const sx_op_def *op, const void *attrs, const sx_tensor *in);
/* As sx_host_types(), without carrying what is not read. */
SX_MUST_USE sx_status sx_typed_types(const sx_typed_kernel *kernel, const sx_op_def *op,
                                     const void *attrs, const sx_tensor *in, int n_in,
                                     sx_type *out_types, int n_out, const sx_host_context *context);

/* For kernels: `n` numbers from element `first` on as float32: in place, or converted into
 * room[n]. */
const float *sx_typed_floats(const sx_tensor *t, int64_t first, int64_t n, float *room);

#endif
