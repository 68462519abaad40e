/* One row per StableHLO operation: how its attributes and types are checked, how it runs.
 *
 * check   has the op with operands' and results' types known and its regions parsed; says what the
 *         results' types must be through ref_expect(), keeps what running needs in op->plan
 * run     reads operands by ref_in(), sets results by ref_set()
 *
 * To add an operation: its row in the table of the file that it fits in. */
#ifndef PJRT_REF_OPS_H
#define PJRT_REF_OPS_H

#include "pjrt_ref/program.h"
#include "pjrt_ref/run.h"

enum { REF_ANY = -1 };

typedef struct ref_row {
    const char *name;
    int n_in, n_out, n_regions; /* REF_ANY = check decides */
    sx_status (*check)(ref_program *p, const ref_op *op, void **out_plan);
    sx_status (*run)(ref_run *r, const ref_op *op);
    const void *kernels; /* of elementwise operations: a ref_kernels */
} ref_row;

/* The tables, each ending with a row without name. */
extern const ref_row ref_elementwise_rows[];
extern const ref_row ref_shape_rows[];
extern const ref_row ref_index_rows[];
extern const ref_row ref_reduce_rows[];
extern const ref_row ref_product_rows[];
extern const ref_row ref_control_rows[];

const ref_row *ref_row_find(const char *name, size_t size); /* NULL = none */

/* ---- For checks: an op's text says what it is about; so do these errors ---- */

#define ref_wrong(...) sx_error(SX_INVALID_ARGUMENT, __VA_ARGS__)

const sx_type *ref_in_type(const ref_program *p, const ref_op *op, int i);
const sx_type *ref_out_type(const ref_program *p, const ref_op *op, int i);
/* Result i is of this type, or else. */
SX_MUST_USE sx_status ref_expect(const ref_program *p, const ref_op *op, int i,
                                 const sx_type *type);
bool ref_same_dims(const sx_type *a, const sx_type *b);

const ref_attr *ref_attr_find(const ref_attr *attrs, int n, const char *name); /* NULL = none */
/* Numbers of an attribute of the op. Errors: it is missing, or has not `n` of them (n REF_ANY: at
 * most SX_MAX_RANK). */
SX_MUST_USE sx_status ref_attr_ints(const ref_op *op, const char *name, int n, const int64_t **out,
                                    int *out_n);
/* The same of a field of a record. */
SX_MUST_USE sx_status ref_field_ints(const ref_attr *record, const char *name, int n,
                                     const int64_t **out, int *out_n);
SX_MUST_USE sx_status ref_attr_int(const ref_op *op, const char *name, int64_t low, int64_t high,
                                   int64_t *out);
SX_MUST_USE sx_status ref_attr_word(const ref_op *op, const char *name, const char **out);
/* Each of v[n] is in [0, limit), and none twice. */
SX_MUST_USE sx_status ref_check_axes(const char *what, const int64_t *v, int n, int limit);

/* A region takes and returns these types. */
SX_MUST_USE sx_status ref_check_region(const ref_program *p, const ref_op *op, int region,
                                       const sx_type *args, int n_args, const sx_type *results,
                                       int n_results);

#endif
