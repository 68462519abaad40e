/* Constants, and operators that move elements. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

void sx_hlo_lower_constant(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_constant_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_constant(w, &attrs->value);
}

void sx_hlo_lower_reshape(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_reshape(w, op->in[0], &op->out_types[0]);
}

void sx_hlo_lower_broadcast_to(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_broadcast_to(w, op->in[0], &op->out_types[0]);
}

void sx_hlo_lower_transpose(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_transpose_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_transpose(w, op->in[0], attrs->perm.v);
}

void sx_hlo_lower_concat(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_axis_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_concat(w, op->in, op->n_in, (int)attrs->axis);
}

void sx_hlo_lower_slice(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_slice_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_slice(w, op->in[0], attrs->begin.v, op->out_types[0].dims);
}

void sx_hlo_lower_pad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_pad_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_pad(w, op->in[0], attrs->value, attrs->before.v, attrs->after.v, NULL);
}

void sx_hlo_lower_shape(sx_hlo_writer *w, const sx_hlo_op *op)
{
    int64_t wide[SX_MAX_RANK];
    int32_t narrow[SX_MAX_RANK];
    const bool is_wide = op->out_types[0].dtype == SX_I64;
    for (int i = 0; i < op->in_types[0].rank; i++) {
        wide[i] = op->in_types[0].dims[i];
        narrow[i] = (int32_t)SX_MIN(wide[i], INT32_MAX);
    }
    op->out[0] =
        sx_hlo_constant(w, &(sx_tensor){op->out_types[0], is_wide ? (void *)wide : (void *)narrow});
}

void sx_hlo_lower_iota(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_iota_attrs *attrs = op->attrs;
    op->out[0] = sx_hlo_iota(w, op->out_types[0], (int)attrs->axis);
}

void sx_hlo_lower_take_row(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_take_row(w, op->in[0], sx_hlo_convert(w, op->in[1], SX_I64));
}

void sx_hlo_lower_put_row(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_put_row(w, op->in[0], op->in[1], sx_hlo_convert(w, op->in[2], SX_I64));
}
