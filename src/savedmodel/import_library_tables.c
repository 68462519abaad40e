/* Imports lookup tables: the handle has no value, each node that uses one has its name, kind and
 * dtypes in its attributes (graph/ops/lookup_table.h). */
#include "graph/ops/lookup_table.h"

#include "savedmodel/import_library_ops.h"

/* HashTable, MutableHashTable, MutableHashTableOfTensors, MutableDenseHashTable */
static sx_status import_table(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const Tensorflow__AttrValue *shape = sx_tf_node_attr(x->n->node, "value_shape");
    const bool dense = strncmp(op, "MutableDense", strlen("MutableDense")) == 0;
    sx_tf_table *table = sx_arena_new(&x->im->arena, sx_tf_table);
    if (table == NULL) {
        return sx_import_memory();
    }
    table->attrs =
        (sx_table_attrs){.table = sx_tf_table_name(x->n->node, &x->im->arena),
                         .kind = dense          ? SX_TABLE_DENSE
                                 : op[0] == 'M' ? SX_TABLE_MUTABLE
                                                : SX_TABLE_STATIC,
                         .keys = sx_tf_read_dtype(&x->tf.head, "key_dtype", SX_DTYPE_NONE),
                         .values = sx_tf_read_dtype(&x->tf.head, "value_dtype", SX_DTYPE_NONE)};
    if (table->attrs.table == NULL) {
        return sx_import_memory();
    }
    if (shape != NULL && shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE) {
        sx_type type;
        bool known = sx_tf_type(table->attrs.values, shape->shape, &type);
        table->attrs.shape.n = type.rank;
        for (int d = 0; d < type.rank; d++) {
            table->attrs.shape.v[d] = type.dims[d];
            known = known && type.dims[d] >= 0;
        }
        if (!known) {
            return sx_tf_unsupported("the shape of its values is not known");
        }
    }
    for (int i = 0; i < 2 && dense; i++) {
        table->reserved[i] = i < x->n->n_in ? x->n->in[i].known : NULL;
        if (table->reserved[i] == NULL || table->reserved[i]->type.rank != 0) {
            return sx_tf_unsupported("its empty and deleted keys are not constant scalars");
        }
    }
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_TABLE, .table = table};
    return SX_OK;
}

static sx_status require_table(const sx_tf_op_node *x, const sx_tf_table **out)
{
    *out = x->n->n_in > 0 && x->n->in[0].kind == SX_TF_TABLE ? x->n->in[0].table : NULL;
    return *out != NULL && (*out)->variable == NULL
               ? SX_OK
               : sx_tf_unsupported("its resource is not a table of the graph");
}

/* A node of the table: the inputs after the handle, then the reserved keys if it is given keys. */
static sx_status build(sx_tf_op_node *x, const sx_tf_table *table, const sx_op_def *op,
                       const void *attrs)
{
    enum { MOST = 5 };
    sx_value in[MOST], y = SX_NO_VALUE;
    int n = 0, n_out = 0;
    for (int i = 1; i < x->n->n_in && n < MOST - 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[n++]));
    }
    for (int i = 0; i < 2 && n > 0 && table->reserved[1] != NULL; i++) {
        SX_TRY(sx_tf_constant(x, table->reserved[i]->type, table->reserved[i]->data, &in[n++]));
    }
    SX_TRY(sx_tf_add_node(x, op, attrs, in, n, NULL, 0, &y, &n_out));
    for (int i = 0; i < n_out && (op->flags & SX_OP_EFFECT) == 0; i++) {
        sx_tf_set(x, i, sx_output_of(y, i));
    }
    return SX_OK;
}

static sx_status import_find(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    SX_TRY(require_table(x, &table));
    return build(x, table, &sx_op_lookup_table_find, &(sx_only_table_attrs){table->attrs});
}

static sx_status import_size(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    SX_TRY(require_table(x, &table));
    return build(x, table, &sx_op_lookup_table_size, &(sx_only_table_attrs){table->attrs});
}

static sx_status import_export(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    SX_TRY(require_table(x, &table));
    if (table->attrs.kind == SX_TABLE_DENSE) {
        return sx_tf_unsupported("a dense table gives its free buckets, too");
    }
    return build(x, table, &sx_op_lookup_table_export, &(sx_only_table_attrs){table->attrs});
}

/* Insert; Import, Initialize, which clear the table before */
static sx_status import_insert(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    SX_TRY(require_table(x, &table));
    if (x->im->trials > 0) {
        return SX_OK;
    }
    if (table->attrs.kind == SX_TABLE_DENSE && strcmp(x->n->node->op, "LookupTableInsertV2") != 0) {
        return sx_tf_unsupported("a dense table takes its free buckets, too");
    }
    const bool clear =
        strncmp(x->n->node->op, "LookupTableInsert", strlen("LookupTableInsert")) != 0;
    return build(x, table, &sx_op_lookup_table_insert,
                 &(sx_table_insert_attrs){.base = table->attrs, .clear = clear});
}

static sx_status import_remove(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    SX_TRY(require_table(x, &table));
    return x->im->trials > 0
               ? SX_OK
               : build(x, table, &sx_op_lookup_table_remove, &(sx_only_table_attrs){table->attrs});
}

static sx_status import_text_file(sx_tf_op_node *x)
{
    const sx_tf_table *table = NULL;
    const Tensorflow__AttrValue *delimiter = sx_tf_node_attr(x->n->node, "delimiter");
    SX_TRY(require_table(x, &table));
    if (x->im->trials > 0) {
        return SX_OK;
    }
    sx_table_text_file_attrs attrs = {.base = table->attrs,
                                      .key_index = sx_tf_read_int(&x->tf.head, "key_index", 0),
                                      .value_index = sx_tf_read_int(&x->tf.head, "value_index", 0),
                                      .vocab_size = sx_tf_read_int(&x->tf.head, "vocab_size", -1),
                                      .offset = sx_tf_read_int(&x->tf.head, "offset", 0)};
    if (delimiter != NULL && delimiter->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S) {
        attrs.delimiter =
            sx_arena_strndup(&x->im->arena, (const char *)delimiter->s.data, delimiter->s.len);
        if (attrs.delimiter == NULL) {
            return sx_import_memory();
        }
    }
    return build(x, table, &sx_op_initialize_table_from_text_file, &attrs);
}

const sx_tf_op_row sx_tf_table_rows[] = {
    {"HashTable", import_table, NULL},
    {"HashTableV2", import_table, NULL},
    {"MutableHashTable", import_table, NULL},
    {"MutableHashTableV2", import_table, NULL},
    {"MutableHashTableOfTensors", import_table, NULL},
    {"MutableHashTableOfTensorsV2", import_table, NULL},
    {"MutableDenseHashTable", import_table, NULL},
    {"MutableDenseHashTableV2", import_table, NULL},
    {"LookupTableFind", import_find, NULL},
    {"LookupTableFindV2", import_find, NULL},
    {"LookupTableSize", import_size, NULL},
    {"LookupTableSizeV2", import_size, NULL},
    {"LookupTableExport", import_export, NULL},
    {"LookupTableExportV2", import_export, NULL},
    {"LookupTableInsert", import_insert, NULL},
    {"LookupTableInsertV2", import_insert, NULL},
    {"LookupTableImport", import_insert, NULL},
    {"LookupTableImportV2", import_insert, NULL},
    {"InitializeTable", import_insert, NULL},
    {"InitializeTableV2", import_insert, NULL},
    {"LookupTableRemoveV2", import_remove, NULL},
    {"InitializeTableFromTextFile", import_text_file, NULL},
    {"InitializeTableFromTextFileV2", import_text_file, NULL},
    {NULL, NULL, NULL},
};
