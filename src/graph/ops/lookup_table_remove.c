/* lookup_table_remove: removes keys from a table that is not static.
 *
 *   keys      of the table's dtype of keys, any shape; those that it lacks change nothing
 *   empty, deleted   scalars: the keys that a dense table reserves
 *   returns   int64 scalar: how many keys the table has
 *
 * Errors   INVALID_ARGUMENT  dtype, a static table; (running) a reserved key
 * Source   TensorFlow LookupTableRemoveV2 */
#include "graph/ops/lookup_table.h"

static sx_status lookup_table_remove_infer(sx_infer_context *c)
{
    const sx_table_attrs *attrs = c->attrs;
    SX_TRY(sx_infer_table(c, 1));
    SX_TRY(sx_require_dtype("keys", &c->inputs[0], attrs->keys));
    if (attrs->kind == SX_TABLE_STATIC) {
        return sx_error(SX_INVALID_ARGUMENT, "the table is static: nothing is removed from it");
    }
    c->outputs[0] = sx_scalar_type(SX_I64);
    return SX_OK;
}

static sx_status lookup_table_remove_host(const sx_kernel_call *c)
{
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        SX_TRY(sx_require_free_key(c, k, 1));
        sx_table_remove(t, &c->in[0], k);
    }
    c->out[0].i[0] = sx_table_size(t);
    return SX_OK;
}

const sx_op_def sx_op_lookup_table_remove = {
    SX_OP_NAMED(lookup_table_remove),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_only_table_attrs, sx_only_table_rows),
    .infer = lookup_table_remove_infer,
    .host = lookup_table_remove_host,
};
