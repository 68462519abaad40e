/* Complex tensors of a model: two tensors, what the importers of complex nodes read and give. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_COMPLEX_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_COMPLEX_H

#include "savedmodel/import_library_ops.h"

typedef struct sx_tf_parts {
    sx_value re, im;
} sx_tf_parts;

/* A node that reads complex numbers. */
typedef struct sx_tf_complex_row {
    const char *tf_op; /* NULL ends a table */
    sx_status (*import)(const sx_tf_op_node *x);
} sx_tf_complex_row;

extern const sx_tf_complex_row sx_tf_complex_matrix_rows[];
/* Eig, of real or complex numbers. */
SX_MUST_USE sx_status sx_tf_import_eig(sx_tf_op_node *x);

/* Whether TensorFlow's type is one of complex numbers, and the type of their parts. */
bool sx_tf_is_complex(int64_t dtype);
sx_dtype sx_tf_part_of(int64_t dtype);
/* Makes an output complex. */
void sx_tf_set_parts(const sx_tf_op_node *x, int output, sx_tf_parts y);
/* DATA_LOSS: input `i` is not complex. */
SX_MUST_USE sx_status sx_tf_read_parts(const sx_tf_op_node *x, int i, sx_tf_parts *out);
/* a b + sign c d */
SX_MUST_USE sx_status sx_tf_sum_of_products(const sx_tf_op_node *x, sx_value a, sx_value b,
                                            int sign, sx_value c, sx_value d, sx_value *out);

#endif
