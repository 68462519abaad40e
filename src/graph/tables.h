/* Lookup tables: the state that a loaded model keeps between runs, by name.
 *
 *   sx_tables ── name -> sx_table     one for each table that a library's nodes name (attribute
 *                                     `table` of operators with SX_OP_STATE)
 *   sx_table     keys[n], values[n][value elements], and an index of slots by the keys' hashes;
 *                texts are places in one block of bytes
 *
 * A variable that no device can have is the value of key 0 of one (graph/ops/kept_variable.h).
 *
 * Tables are declared before anything runs, so that finding one takes no lock. A table is not
 * locked either: a function that writes tables runs alone (runtime/function_run.h). */
#ifndef SX_GRAPH_TABLES_H
#define SX_GRAPH_TABLES_H

#include "graph/library.h"

typedef struct sx_tables sx_tables;
typedef struct sx_table sx_table;

/* What a node says about its table. The first fields of the attributes of every operator with
 * SX_OP_STATE. */
typedef struct sx_table_attrs {
    const char *table; /* its name */
    int32_t kind;      /* sx_table_kind */
    sx_dtype keys;     /* scalars */
    sx_dtype values;   /* of shape `shape` */
    sx_ints shape;
} sx_table_attrs;

typedef enum sx_table_kind {
    SX_TABLE_STATIC, /* initialized once; a lookup before that is an error */
    SX_TABLE_MUTABLE,
    SX_TABLE_DENSE, /* mutable; two keys are reserved */
} sx_table_kind;

/* No tables yet. `memory` (may be NULL) is charged for what they hold, and outlives them. `dir`:
 * where the files are from which tables are initialized, copied; NULL = there are none. */
SX_MUST_USE sx_status sx_tables_create(sx_budget *memory, const char *dir, sx_tables **out);
void sx_tables_destroy(sx_tables *tables); /* NULL is fine */
/* Makes the tables that the library's functions name. INVALID_ARGUMENT: nodes contradict each
 * other about one of them. */
SX_MUST_USE sx_status sx_tables_declare(sx_tables *tables, const sx_library *library);
int sx_tables_count(const sx_tables *tables);
const char *sx_tables_dir(const sx_tables *tables); /* NULL = none */
/* NULL: there is none of that name. */
sx_table *sx_tables_find(const sx_tables *tables, const char *name);

const sx_table_attrs *sx_table_attrs_of(const sx_table *t);
int64_t sx_table_size(const sx_table *t);
bool sx_table_is_initialized(const sx_table *t);
void sx_table_set_initialized(sx_table *t);

/* Keys and values are elements of tensors in their carriers (graph/host.h), of the table's dtypes.
 */

/* The entry of key number `k` of `keys`, or -1. */
int64_t sx_table_find(const sx_table *t, const sx_host_tensor *keys, int64_t k);
/* Sets the value of a key to the elements of `values` from `from` on. RESOURCE_EXHAUSTED */
SX_MUST_USE sx_status sx_table_put(sx_table *t, const sx_host_tensor *keys, int64_t k,
                                   const sx_host_tensor *values, int64_t from);
/* Whether the entry's value is those elements. */
bool sx_table_has_value(const sx_table *t, int64_t entry, const sx_host_tensor *values,
                        int64_t from);
void sx_table_remove(sx_table *t, const sx_host_tensor *keys, int64_t k);
void sx_table_clear(sx_table *t);
/* Copies an entry, 0 .. size, to elements of `out`; strings point into the table until it changes.
 */
void sx_table_get_key(const sx_table *t, int64_t entry, const sx_host_tensor *out, int64_t at);
void sx_table_get_value(const sx_table *t, int64_t entry, const sx_host_tensor *out, int64_t at);

#endif
