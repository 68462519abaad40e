/* lookup_table_insert: puts keys and their values into a table.
 *
 *   keys      of the table's dtype of keys, any shape
 *   values    of its dtype of values: a value for each key
 *   empty, deleted   scalars: the keys that a dense table reserves
 *   clear     whether what the table had is removed before; a static table, which has nothing, is
 *             then initialized
 *   returns   int64 scalar: how many keys the table has
 *
 * Errors   INVALID_ARGUMENT     dtypes, shapes; (running) a reserved key
 *          FAILED_PRECONDITION  (running) a static table gets two values for a key, or is
 * initialized again with other values RESOURCE_EXHAUSTED   (running) the model's memory limit
 * Source   TensorFlow LookupTableInsert, LookupTableInsertV2; with `clear` LookupTableImport,
 *          LookupTableImportV2, InitializeTable, InitializeTableV2 */
#include "graph/ops/lookup_table.h"

static const sx_attr_def lookup_table_insert_attrs[] = {
    SX_TABLE_ATTR_ROWS(sx_table_insert_attrs),
    SX_ATTR(sx_table_insert_attrs, clear, SX_ATTR_BOOL),
};

static sx_status lookup_table_insert_infer(sx_infer_context *c)
{
    const sx_table_insert_attrs *attrs = c->attrs;
    SX_TRY(sx_infer_table(c, 2));
    SX_TRY(sx_require_dtype("keys", &c->inputs[0], attrs->base.keys));
    SX_TRY(sx_require_dtype("values", &c->inputs[1], attrs->base.values));
    if (attrs->base.kind == SX_TABLE_STATIC && !attrs->clear) {
        return sx_error(SX_INVALID_ARGUMENT, "the table is static: it is only initialized");
    }
    c->outputs[0] = sx_scalar_type(SX_I64);
    return SX_OK;
}

/* Whether the table has exactly these entries. */
static bool has_all(const sx_table *t, const sx_kernel_call *c, int64_t n, int64_t width)
{
    bool same = sx_table_size(t) <= n;
    for (int64_t k = 0; k < n && same; k++) {
        const int64_t entry = sx_table_find(t, &c->in[0], k);
        same = entry >= 0 && sx_table_has_value(t, entry, &c->in[1], k * width);
    }
    return same;
}

static sx_status lookup_table_insert_host(const sx_kernel_call *c)
{
    const sx_table_insert_attrs *attrs = c->attrs;
    const sx_host_tensor *keys = &c->in[0], *values = &c->in[1];
    const sx_type expected = sx_table_values_type(&attrs->base, &keys->type);
    const int64_t n = sx_type_elems(&keys->type);
    const bool is_static = attrs->base.kind == SX_TABLE_STATIC;
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    if (!sx_same_dims(&values->type, &expected)) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected %s: one for each key",
                        SX_TEXT(&values->type), SX_TEXT(&expected));
    }
    const int64_t width = n > 0 ? sx_type_elems(&values->type) / n : 0;
    if (is_static && sx_table_is_initialized(t)) {
        c->out[0].i[0] = sx_table_size(t);
        return has_all(t, c, n, width)
                   ? SX_OK
                   : sx_error(SX_FAILED_PRECONDITION,
                              "table \"%.200s\" is already initialized, with other values",
                              attrs->base.table);
    }
    for (int64_t k = 0; k < n; k++) {
        SX_TRY(sx_require_free_key(c, k, 2));
    }
    if (attrs->clear) {
        sx_table_clear(t);
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t entry = is_static ? sx_table_find(t, keys, k) : -1;
        if (entry >= 0 && !sx_table_has_value(t, entry, values, k * width)) {
            sx_table_clear(t);
            return sx_error(SX_FAILED_PRECONDITION,
                            "table \"%.200s\": key %lld has two different values",
                            attrs->base.table, (long long)k);
        }
        SX_TRY(entry >= 0 ? SX_OK : sx_table_put(t, keys, k, values, k * width));
    }
    if (is_static) {
        sx_table_set_initialized(t);
    }
    c->out[0].i[0] = sx_table_size(t);
    return SX_OK;
}

const sx_op_def sx_op_lookup_table_insert = {
    SX_OP_NAMED(lookup_table_insert),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_table_insert_attrs, lookup_table_insert_attrs),
    .infer = lookup_table_insert_infer,
    .host = lookup_table_insert_host,
};
