/* lookup_table_size: how many keys a table has.
 *
 *   returns   int64 scalar; 0 if the table is not initialized
 *
 * Source   TensorFlow LookupTableSize, LookupTableSizeV2 */
#include "graph/ops/lookup_table.h"

static sx_status lookup_table_size_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_table(c, -1));
    c->outputs[0] = sx_scalar_type(SX_I64);
    return SX_OK;
}

static sx_status lookup_table_size_host(const sx_kernel_call *c)
{
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    c->out[0].i[0] = sx_table_size(t);
    return SX_OK;
}

const sx_op_def sx_op_lookup_table_size = {
    SX_OP_NAMED(lookup_table_size),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_only_table_attrs, sx_only_table_rows),
    .infer = lookup_table_size_infer,
    .host = lookup_table_size_host,
};
