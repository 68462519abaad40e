/* Kernels over lanes, and regions that are one of them. */
#ifndef PJRT_REF_ELEMENTWISE_H
#define PJRT_REF_ELEMENTWISE_H

#include "pjrt_ref/ops.h"

/* out[n] from a[n] and b[n] (not read by unary ones); out may be a or b. */
typedef void ref_kernel(const ref_lane *a, const ref_lane *b, ref_lane *out, int n);

typedef struct ref_kernels {
    ref_kernel *f, *s, *u; /* by class; NULL = not defined for it */
    ref_kernel *b;         /* of i1: `add` is or, `multiply` is and */
} ref_kernels;

ref_kernel *ref_kernel_of(const ref_kernels *k, sx_dtype dtype); /* NULL = none */

/* The region of a reduction: a kernel, if it is one operation of its two arguments in order; else
 * (kernel NULL) a block to run. */
typedef struct ref_lambda {
    ref_kernel *kernel;
    const ref_block *block;
} ref_lambda;
ref_lambda ref_lambda_of(const ref_program *p, const ref_block *block);

#endif
