/* What the operators of lookup tables (graph/tables.h) share. */
#ifndef SX_GRAPH_OPS_LOOKUP_TABLE_H
#define SX_GRAPH_OPS_LOOKUP_TABLE_H

#include "graph/ops/host_ops.h"
#include "graph/tables.h"

extern const char *const sx_table_kinds[]; /* names of sx_table_kind */

/* The rows of sx_table_attrs, the first member `table` of the struct. */
#define SX_TABLE_ATTR(struct_type, field, kind_)                                     \
    {                                                                                \
        .name = #field, .kind = (kind_), .offset = offsetof(struct_type, base.field) \
    }
#define SX_TABLE_ATTR_ROWS(struct_type)                    \
    SX_TABLE_ATTR(struct_type, table, SX_ATTR_STRING),     \
        {.name = "kind",                                   \
         .kind = SX_ATTR_ENUM,                             \
         .offset = offsetof(struct_type, base.kind),       \
         .names = sx_table_kinds},                         \
        SX_TABLE_ATTR(struct_type, keys, SX_ATTR_DTYPE),   \
        SX_TABLE_ATTR(struct_type, values, SX_ATTR_DTYPE), \
        SX_TABLE_ATTR(struct_type, shape, SX_ATTR_INTS)

/* lookup_table_insert */
typedef struct sx_table_insert_attrs {
    sx_table_attrs base;
    bool clear;
} sx_table_insert_attrs;

/* initialize_table_from_text_file */
typedef struct sx_table_text_file_attrs {
    sx_table_attrs base;
    int64_t key_index, value_index, vocab_size, offset;
    const char *delimiter;
} sx_table_text_file_attrs;

/* random_state */
typedef struct sx_random_state_attrs {
    sx_table_attrs base;
    int64_t seed, seed2, group, each;
} sx_random_state_attrs;

/* For operators that have no other attributes. */
typedef struct sx_only_table_attrs {
    sx_table_attrs base;
} sx_only_table_attrs;
enum { SX_TABLE_ATTR_COUNT = 5 };
extern const sx_attr_def sx_only_table_rows[SX_TABLE_ATTR_COUNT];

/* The table's own attributes, and the operands: keys, with the reserved keys of a dense table at
 * the end, from operand `first_reserved` on. */
SX_MUST_USE sx_status sx_infer_table(const sx_infer_context *c, int first_reserved);
/* A value for each key: the keys' shape, then the table's. */
sx_type sx_table_values_type(const sx_table_attrs *attrs, const sx_type *keys);
/* NOT_FOUND: the run has no such table. */
SX_MUST_USE sx_status sx_require_table(const sx_kernel_call *c, sx_table **out);

/* The bytes of a file of the model, in the run's arena; `name` is a path in the model's directory
 * that begins with `below`. INVALID_ARGUMENT: it leads out of there; `what` says whose it is. */
SX_MUST_USE sx_status sx_read_asset(const sx_kernel_call *c, const char *what, const sx_bytes *name,
                                    const char *below, char **out, size_t *out_size);
/* FAILED_PRECONDITION: nothing has initialized it. */
SX_MUST_USE sx_status sx_require_initialized(const sx_table *t);
/* INVALID_ARGUMENT: key k of input 0 is one of the reserved keys, from input `first` on. */
SX_MUST_USE sx_status sx_require_free_key(const sx_kernel_call *c, int64_t k, int first);

#endif
