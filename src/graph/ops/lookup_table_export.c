/* lookup_table_export: all keys of a table, in no particular order, and their values.
 *
 *   returns   keys [n], values [n, shape of a value]
 *
 * Errors   FAILED_PRECONDITION  (running) the table is not initialized
 * Source   TensorFlow LookupTableExport, LookupTableExportV2 */
#include "graph/ops/lookup_table.h"

static sx_status lookup_table_export_infer(sx_infer_context *c)
{
    const sx_table_attrs *attrs = c->attrs;
    SX_TRY(sx_infer_table(c, -1));
    c->outputs[0] = sx_type_of(attrs->keys, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_table_values_type(attrs, &c->outputs[0]);
    return SX_OK;
}

static sx_status lookup_table_export_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_table_attrs *attrs = c->attrs;
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    SX_TRY(sx_require_initialized(t));
    out_types[0] = sx_type_of(attrs->keys, sx_table_size(t));
    out_types[1] = sx_table_values_type(attrs, &out_types[0]);
    return sx_require_made("the values", &out_types[1]);
}

static sx_status lookup_table_export_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type), all = sx_type_elems(&c->out[1].type);
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    for (int64_t e = 0; e < n; e++) {
        sx_table_get_key(t, e, &c->out[0], e);
        sx_table_get_value(t, e, &c->out[1], e * (all / n));
    }
    for (int i = 0; i < 2; i++) {
        sx_bytes *s = c->out[i].type.dtype == SX_STRING ? c->out[i].s : NULL;
        for (int64_t k = 0; s != NULL && k < (i == 0 ? n : all); k++) {
            SX_TRY(sx_string_copy(c, s[k].data, s[k].size, &s[k]));
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_lookup_table_export = {
    SX_OP_NAMED(lookup_table_export),
    .n_in = 0,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_only_table_attrs, sx_only_table_rows),
    .infer = lookup_table_export_infer,
    .host_types = lookup_table_export_host_types,
    .host = lookup_table_export_host,
};
