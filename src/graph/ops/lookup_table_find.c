/* lookup_table_find: the value of each key, or a default.
 *
 *   keys       of the table's dtype of keys, any shape
 *   otherwise  of its dtype of values: one value, or one for each key
 *   empty, deleted   scalars: the keys that a dense table reserves
 *   returns    the shape of keys, then that of a value
 *
 * Errors   INVALID_ARGUMENT     dtypes, shapes; (running) a reserved key
 *          FAILED_PRECONDITION  (running) the table is not initialized
 * Source   TensorFlow LookupTableFind, LookupTableFindV2 */
#include "graph/ops/lookup_table.h"

static sx_status lookup_table_find_infer(sx_infer_context *c)
{
    const sx_table_attrs *attrs = c->attrs;
    SX_TRY(sx_infer_table(c, 2));
    SX_TRY(sx_require_dtype("keys", &c->inputs[0], attrs->keys));
    SX_TRY(sx_require_dtype("the default", &c->inputs[1], attrs->values));
    c->outputs[0] = sx_table_values_type(attrs, &c->inputs[0]);
    if (c->outputs[0].rank == SX_UNKNOWN_RANK && c->inputs[0].rank != SX_UNKNOWN_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "keys are %s, too many dimensions with the value's %d",
                        SX_TEXT(&c->inputs[0]), attrs->shape.n);
    }
    return SX_OK;
}

static sx_status lookup_table_find_host(const sx_kernel_call *c)
{
    const sx_table_attrs *attrs = c->attrs;
    const sx_host_tensor *keys = &c->in[0], *otherwise = &c->in[1], *out = &c->out[0];
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    SX_TRY(sx_require_initialized(t));
    const int64_t n = sx_type_elems(&keys->type), total = sx_type_elems(&out->type);
    sx_type value = {.dtype = attrs->values, .rank = attrs->shape.n};
    memcpy(value.dims, attrs->shape.v, (size_t)attrs->shape.n * sizeof(int64_t));
    const int64_t width = sx_type_elems(&value);
    const bool full = sx_same_dims(&otherwise->type, &out->type);
    if (!full && !sx_same_dims(&otherwise->type, &value)) {
        return sx_error(SX_INVALID_ARGUMENT, "the default is %s, expected %s or %s",
                        SX_TEXT(&otherwise->type), SX_TEXT(&value), SX_TEXT(&out->type));
    }
    const bool each = full && total != width && attrs->kind != SX_TABLE_STATIC;
    for (int64_t k = 0; k < n; k++) {
        SX_TRY(sx_require_free_key(c, k, 2));
        const int64_t entry = sx_table_find(t, keys, k);
        if (entry >= 0) {
            sx_table_get_value(t, entry, out, k * width);
        } else {
            const size_t size = sx_carrier_bytes(attrs->values) * (size_t)width;
            memcpy(out->b + (size_t)k * size, otherwise->b + (each ? (size_t)k * size : 0), size);
        }
        /* the table may change before the results are read */
        for (int64_t j = 0; j < width && attrs->values == SX_STRING; j++) {
            sx_bytes *s = &out->s[k * width + j];
            SX_TRY(sx_string_copy(c, s->data, s->size, s));
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_lookup_table_find = {
    SX_OP_NAMED(lookup_table_find),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_only_table_attrs, sx_only_table_rows),
    .infer = lookup_table_find_infer,
    .host = lookup_table_find_host,
};
