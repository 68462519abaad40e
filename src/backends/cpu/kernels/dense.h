/* Products of rows by a frozen matrix, which is packed once (dense.c). */
#ifndef SX_BACKENDS_CPU_KERNELS_DENSE_H
#define SX_BACKENDS_CPU_KERNELS_DENSE_H

#include "backends/cpu/kernel.h"
#include "backends/cpu/vec/vec.h"

/* An operator behind the sums that is computed from them before they are written. */
typedef struct sx_cpu_dense_act {
    int op;
    sx_vec_act act;
    float low, high;
} sx_cpu_dense_act;

/* That of a node; NULL: it is another operator. */
const sx_cpu_dense_act *sx_cpu_dense_act_of(const sx_node *n);

/* y[m,n] = act(x[m,k] b[k,n] + bias + added) */
typedef struct sx_cpu_dense_spec {
    int64_t m, k, n;
    bool transposed;             /* b is [n,k] */
    const sx_cpu_dense_act *act; /* NULL: none */
} sx_cpu_dense_spec;

/* The step. in: x, b, and bias[n] and what is added, if there are any. */
SX_MUST_USE sx_status sx_cpu_prepare_dense(const sx_cpu_site *site, const sx_cpu_dense_spec *spec,
                                           sx_cpu_step *step);

/* Workers divide `units` of as much work, `flops` together: run() gets them as multiples of
 * SX_CPU_SPLIT. */
void sx_cpu_divide_products(sx_cpu_step *step, int64_t units, double flops);

/* Whether products of `m` rows, those of all examples, by such a matrix are best computed so. */
bool sx_cpu_product_is_dense(int64_t m, int64_t k, int64_t n, int64_t examples, bool region);
/* The same of that of matmul.c by in[1], which may not be frozen. */
bool sx_cpu_matmul_is_dense(const sx_cpu_site *site, int64_t m, int64_t k, int64_t n);

#endif
