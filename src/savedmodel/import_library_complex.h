/* Complex tensors of a model: two tensors, what the importers of complex nodes read and give. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_COMPLEX_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_COMPLEX_H

#include "savedmodel/import_library_ops.h"

typedef struct sx_tf_parts {
    sx_value re, im;
} sx_tf_parts;

/* Makes an output complex. */
void sx_tf_set_parts(const sx_tf_op_node *x, int output, sx_tf_parts y);
/* DATA_LOSS: input `i` is not complex. */
SX_MUST_USE sx_status sx_tf_read_parts(const sx_tf_op_node *x, int i, sx_tf_parts *out);
/* a b + sign c d */
SX_MUST_USE sx_status sx_tf_sum_of_products(const sx_tf_op_node *x, sx_value a, sx_value b,
                                            int sign, sx_value c, sx_value d, sx_value *out);

#endif
