/* What the operators of variables that a table keeps share: those of strings, of unknown
 * dimensions, or without a value when the model is loaded, which no device has.
 *
 * The table (graph/tables.h) is mutable, int64 to strings, and of key 0 has the value as
 * serialize_tensor writes it; without that key, the variable has no value. */
#ifndef SX_GRAPH_OPS_KEPT_VARIABLE_H
#define SX_GRAPH_OPS_KEPT_VARIABLE_H

#include "graph/ops/lookup_table.h"

/* kept_variable_read; kept_variable_assign */
typedef struct sx_kept_variable_attrs {
    sx_table_attrs base;
    sx_dtype dtype;
    sx_ints dims; /* that are declared: -1 = unknown */
    bool any_rank;
    bool same_shape; /* assign: a value in place of another has that one's shape */
} sx_kept_variable_attrs;
enum { SX_KEPT_VARIABLE_ATTR_COUNT = SX_TABLE_ATTR_COUNT + 4 };
extern const sx_attr_def sx_kept_variable_rows[SX_KEPT_VARIABLE_ATTR_COUNT];

/* The attributes; *out is the type that is declared. */
SX_MUST_USE sx_status sx_infer_kept_variable(const sx_infer_context *c, sx_type *out);
/* Whether the shape of a value, as far as it is known, fits the type that is declared. */
SX_MUST_USE sx_status sx_check_kept_variable(const sx_type *value, const sx_type *declared);
/* The bytes of the value, until the table changes; NULL data: it has none. */
SX_MUST_USE sx_status sx_kept_variable_value(const sx_kernel_call *c, sx_bytes *out);
/* Sets the value, of any dtype and shape, of such a table. */
SX_MUST_USE sx_status sx_kept_variable_put(sx_table *t, const sx_host_tensor *value,
                                           sx_budget *memory);

#endif
