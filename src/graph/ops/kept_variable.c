/* See kept_variable.h. */
#include "graph/ops/kept_variable.h"

#include "graph/ops/tensor_proto.h"

const sx_attr_def sx_kept_variable_rows[SX_KEPT_VARIABLE_ATTR_COUNT] = {
    SX_TABLE_ATTR_ROWS(sx_kept_variable_attrs),
    SX_ATTR(sx_kept_variable_attrs, dtype, SX_ATTR_DTYPE),
    SX_ATTR(sx_kept_variable_attrs, dims, SX_ATTR_INTS),
    SX_ATTR(sx_kept_variable_attrs, any_rank, SX_ATTR_BOOL),
    SX_ATTR(sx_kept_variable_attrs, same_shape, SX_ATTR_BOOL),
};

static const int64_t key_number = 0;

static sx_host_tensor the_key(void)
{
    return (sx_host_tensor){.type = sx_scalar_type(SX_I64), .data = (void *)(uintptr_t)&key_number};
}

sx_status sx_infer_kept_variable(const sx_infer_context *c, sx_type *out)
{
    const sx_kept_variable_attrs *a = c->attrs;
    SX_TRY(sx_infer_table(c, -1));
    if (a->base.kind != SX_TABLE_MUTABLE || a->base.keys != SX_I64 || a->base.values != SX_STRING ||
        a->base.shape.n != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the table of a variable is mutable, of int64 to a string each");
    }
    if (sx_carrier_of(a->dtype) == SX_CARRIER_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "dtype is %s, expected numbers or strings",
                        sx_dtype_name(a->dtype));
    }
    *out =
        a->any_rank ? sx_unknown_shape(a->dtype) : (sx_type){.dtype = a->dtype, .rank = a->dims.n};
    for (int d = 0; d < a->dims.n && !a->any_rank; d++) {
        if (a->dims.v[d] < -1) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %d is %lld, expected -1 or a size", d,
                            (long long)a->dims.v[d]);
        }
        out->dims[d] = a->dims.v[d] < 0 ? SX_UNKNOWN_DIM : a->dims.v[d];
    }
    return SX_OK;
}

sx_status sx_check_kept_variable(const sx_type *value, const sx_type *declared)
{
    sx_type known = *value, both;
    for (int d = 0; d < known.rank; d++) {
        known.dims[d] = known.dims[d] < 0 ? SX_UNKNOWN_DIM : known.dims[d]; /* the batch, too */
    }
    return sx_merge_shapes("the value", &known, "the variable", declared, &both);
}

sx_status sx_kept_variable_value(const sx_kernel_call *c, sx_bytes *out)
{
    const sx_host_tensor key = the_key();
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    const int64_t entry = sx_table_find(t, &key, 0);
    *out = (sx_bytes){NULL, 0};
    if (entry >= 0) {
        sx_table_get_value(t, entry,
                           &(sx_host_tensor){.type = sx_scalar_type(SX_STRING), .data = out}, 0);
    }
    return SX_OK;
}

sx_status sx_kept_variable_put(sx_table *t, const sx_host_tensor *value, sx_budget *memory)
{
    const sx_host_tensor key = the_key();
    sx_buf text;
    sx_buf_init(&text, 0);
    text.budget = memory;
    sx_tensor_put(value, &text);
    sx_bytes bytes = {sx_buf_text(&text), text.size};
    sx_status status = sx_buf_status(&text);
    if (status == SX_OK) {
        status = sx_table_put(
            t, &key, 0, &(sx_host_tensor){.type = sx_scalar_type(SX_STRING), .data = &bytes}, 0);
    }
    sx_buf_deinit(&text);
    return status;
}
