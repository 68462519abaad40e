/* Shared by the files that import arithmetic of quantized numbers, import_library_quantized.c and
 * import_library_uniform.c: expressions of nodes, and the integers of a range. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_QUANTIZED_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_QUANTIZED_H

#include "savedmodel/import_library_ops.h"

/* Builds nodes of one output; after an error it builds no more. */
typedef struct sx_tf_expression {
    const sx_tf_op_node *x;
    sx_status status;
} sx_tf_expression;

sx_value sx_tf_node_of(sx_tf_expression *e, const sx_op_def *op, const void *attrs, int n,
                       const sx_value *in);
sx_value sx_tf_number_of(sx_tf_expression *e, sx_dtype dtype, double value);
/* Input i. */
sx_value sx_tf_input_of(sx_tf_expression *e, int i);
sx_value sx_tf_cast_of(sx_tf_expression *e, sx_value v, sx_dtype dtype);
/* To the nearest integer, halves away from 0. */
sx_value sx_tf_round_away(sx_tf_expression *e, sx_value v, sx_dtype dtype);
/* A number for each element along the axis, in a shape that broadcasts with `rank` axes; -1: one
 * for all. */
sx_value sx_tf_along_axis(sx_tf_expression *e, sx_value v, int64_t axis, int rank);

#define NUMBER(value)      sx_tf_number_of(e, SX_F32, (value))
#define WIDE(value)        sx_tf_number_of(e, SX_F64, (value))
#define MAP(op_name, a)    sx_tf_node_of(e, &sx_op_##op_name, NULL, 1, (const sx_value[]){(a)})
#define ZIP(op_name, a, b) sx_tf_node_of(e, &sx_op_##op_name, NULL, 2, (const sx_value[]){(a), (b)})
#define CHOOSE(c, a, b)    sx_tf_node_of(e, &sx_op_select, NULL, 3, (const sx_value[]){(c), (a), (b)})

typedef struct sx_tf_integers {
    sx_dtype dtype;
    double lowest, highest;
    double steps; /* how many there are, less one */
    bool is_signed;
} sx_tf_integers;

/* Those of the type attribute `name`. */
SX_MUST_USE sx_status sx_tf_integers_of(const sx_tf_op_node *x, const char *name,
                                        sx_dtype otherwise, sx_tf_integers *out);

#endif
