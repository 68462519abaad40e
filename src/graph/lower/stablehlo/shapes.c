/* Constants, and operators that move elements. */
#include "graph/lower/stablehlo/rows.h"

#include <string.h>

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

/* Axis after axis: what lies beside it, turned round, before and behind. */
void sx_hlo_lower_mirror_pad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_mirror_pad_attrs *attrs = op->attrs;
    sx_hlo y = op->in[0];
    for (int d = 0; d < op->in_types[0].rank; d++) {
        const int64_t before = attrs->before.v[d], after = attrs->after.v[d], axis = d;
        const sx_type type = sx_hlo_type(w, y);
        sx_hlo parts[3];
        int n = 0;
        int64_t begin[SX_MAX_RANK] = {0}, size[SX_MAX_RANK];
        memcpy(size, type.dims, sizeof(size));
        if (before > 0) {
            begin[d] = attrs->symmetric ? 0 : 1;
            size[d] = before;
            parts[n++] = sx_hlo_reverse(w, sx_hlo_slice(w, y, begin, size), 1, &axis);
        }
        parts[n++] = y;
        if (after > 0) {
            begin[d] = type.dims[d] - after - (attrs->symmetric ? 0 : 1);
            size[d] = after;
            parts[n++] = sx_hlo_reverse(w, sx_hlo_slice(w, y, begin, size), 1, &axis);
        }
        y = n > 1 ? sx_hlo_concat(w, parts, n, d) : y;
    }
    op->out[0] = y;
}

void sx_hlo_lower_reverse(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_axes_attrs *attrs = op->attrs;
    op->out[0] =
        attrs->axes.n > 0 ? sx_hlo_reverse(w, op->in[0], attrs->axes.n, attrs->axes.v) : op->in[0];
}

/* Axis after axis: [before, d, after] is repeated as [before, m, d, after]. */
void sx_hlo_lower_tile(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_tile_attrs *attrs = op->attrs;
    sx_type type = op->in_types[0];
    sx_hlo y = op->in[0];
    for (int d = 0; d < type.rank; d++) {
        if (attrs->multiples.v[d] == 1) {
            continue;
        }
        const int64_t inner = sx_dims_product(&type, d, type.rank), map[2] = {0, 2};
        const sx_type rows = sx_type_of(type.dtype, sx_dims_product(&type, 0, d), inner);
        const sx_type all = sx_type_of(type.dtype, rows.dims[0], attrs->multiples.v[d], inner);
        type.dims[d] *= attrs->multiples.v[d];
        y = sx_hlo_broadcast_in(w, sx_hlo_reshape(w, y, &rows), &all, map);
        y = sx_hlo_reshape(w, y, &type);
    }
    op->out[0] = y;
}

/* Axis after axis, the last one first, whose places lie closest: [n, before, s b, after] is
 * [b n, before, s, after]. */
void sx_hlo_lower_space_to_batch(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_blocks_attrs *attrs = op->attrs;
    const int64_t perm[5] = {3, 0, 1, 2, 4};
    int64_t low[SX_MAX_RANK] = {0}, high[SX_MAX_RANK] = {0};
    for (int d = 0; d < attrs->block.n; d++) {
        low[d + 1] = attrs->pads.v[2 * d];
        high[d + 1] = attrs->pads.v[2 * d + 1];
    }
    sx_hlo y = sx_hlo_pad(w, op->in[0], 0, low, high, NULL);
    sx_type type = sx_hlo_type(w, y);
    for (int d = attrs->block.n; d > 0; d--) {
        const int64_t size = attrs->block.v[d - 1];
        type.dims[d] /= size;
        const sx_type parts =
            sx_type_of(type.dtype, type.dims[0], sx_dims_product(&type, 1, d), type.dims[d], size,
                       sx_dims_product(&type, d + 1, type.rank));
        type.dims[0] *= size;
        y = sx_hlo_transpose(w, sx_hlo_reshape(w, y, &parts), perm);
        y = sx_hlo_reshape(w, y, &type);
    }
    op->out[0] = y;
}

/* The same backwards. */
void sx_hlo_lower_batch_to_space(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_blocks_attrs *attrs = op->attrs;
    const int64_t perm[5] = {1, 2, 3, 0, 4};
    int64_t begin[SX_MAX_RANK] = {0};
    sx_type type = op->in_types[0];
    sx_hlo y = op->in[0];
    for (int d = 1; d <= attrs->block.n; d++) {
        const int64_t size = attrs->block.v[d - 1];
        begin[d] = attrs->pads.v[2 * (d - 1)];
        type.dims[0] /= size;
        const sx_type parts =
            sx_type_of(type.dtype, size, type.dims[0], sx_dims_product(&type, 1, d), type.dims[d],
                       sx_dims_product(&type, d + 1, type.rank));
        type.dims[d] *= size;
        y = sx_hlo_transpose(w, sx_hlo_reshape(w, y, &parts), perm);
        y = sx_hlo_reshape(w, y, &type);
    }
    op->out[0] = sx_hlo_slice(w, y, begin, op->out_types[0].dims);
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
    op->out[0] = op->in_types[0].dims[0] == 0
                     ? sx_hlo_splat(w, op->out_types[0], 0) /* there is none: it never runs */
                     : sx_hlo_take_row(w, op->in[0], sx_hlo_convert(w, op->in[1], SX_I64));
}

void sx_hlo_lower_put_row(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] =
        op->in_types[0].dims[0] == 0
            ? op->in[0]
            : sx_hlo_put_row(w, op->in[0], op->in[1], sx_hlo_convert(w, op->in[2], SX_I64));
}
