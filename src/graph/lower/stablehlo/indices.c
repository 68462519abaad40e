/* Operators on indices. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

sx_hlo sx_hlo_known(sx_hlo_writer *w, sx_hlo index, int64_t n)
{
    sx_hlo begun = sx_hlo_compare(w, "GE", index, sx_hlo_like(w, index, 0));
    sx_hlo not_ended = sx_hlo_compare(w, "LT", index, sx_hlo_like(w, index, (double)n));
    return sx_hlo_binary(w, "and", begun, not_ended);
}

sx_hlo sx_hlo_hits(sx_hlo_writer *w, sx_hlo index, int64_t depth)
{
    sx_type type = sx_hlo_type(w, index);
    type.dims[type.rank++] = depth;
    sx_hlo numbers = sx_hlo_iota(w, type, type.rank - 1);
    return sx_hlo_compare(w, "EQ", numbers, sx_hlo_repeat(w, index, &type, type.rank - 1));
}

void sx_hlo_lower_one_hot(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_one_hot_attrs *attrs = op->attrs;
    sx_hlo hits = sx_hlo_hits(w, op->in[0], attrs->depth);
    sx_hlo on = sx_hlo_splat(w, op->out_types[0], attrs->on);
    op->out[0] = sx_hlo_select(w, hits, on, sx_hlo_splat(w, op->out_types[0], attrs->off));
}

void sx_hlo_lower_gather(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *table = &op->in_types[0], *out = &op->out_types[0];
    const int64_t map[SX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    sx_type slice = *table;
    if (table->dims[0] == 0) {
        op->out[0] = sx_hlo_splat(w, *out, 0);
        return;
    }
    slice.dims[0] = 1;
    int rank = op->in_types[1].rank;
    sx_hlo_attr(w, "dimension_numbers",
                "#stablehlo.gather<offset_dims = [%s], collapsed_slice_dims = [0], "
                "start_index_map = [0], index_vector_dim = %d>",
                sx_hlo_numbers(rank, out->rank, (char[SX_HLO_NUMBERS]){0}), rank);
    sx_hlo_attr_i64s(w, "slice_sizes", slice.rank, slice.dims);
    sx_hlo_attr(w, "indices_are_sorted", "false");
    sx_hlo taken = sx_hlo_emit(w, "gather", op->in, 2, out, 1);
    sx_hlo known = sx_hlo_known(w, op->in[1], table->dims[0]);
    known = sx_hlo_broadcast_in(w, known, out, map);
    op->out[0] = sx_hlo_select(w, known, taken, sx_hlo_like(w, taken, 0));
}

/* StableHLO ignores updates whose index is out of range, as this operator does. */
void sx_hlo_lower_gather_grad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    int rank = op->in_types[0].rank;
    sx_type table = op->out_types[0];
    sx_hlo dy = sx_hlo_widen(w, op->in[1]);
    table.dtype = sx_hlo_type(w, dy).dtype;
    sx_hlo in[3] = {sx_hlo_splat(w, table, 0), op->in[0], dy}, sum = in[0];
    if (table.dims[0] > 0) {
        sum = sx_hlo_begin(w, "scatter", in, 3, &table, 1);
        sx_hlo_region_binary(w, "add", table.dtype);
        sx_hlo_attr(w, "scatter_dimension_numbers",
                    "#stablehlo.scatter<update_window_dims = [%s], inserted_window_dims = [0], "
                    "scatter_dims_to_operand_dims = [0], index_vector_dim = %d>",
                    sx_hlo_numbers(rank, op->in_types[1].rank, (char[SX_HLO_NUMBERS]){0}), rank);
        sx_hlo_attr(w, "indices_are_sorted", "false");
        sx_hlo_attr(w, "unique_indices", "false");
        sx_hlo_end(w);
    }
    op->out[0] = sx_hlo_convert(w, sum, op->out_types[0].dtype);
}

/* A stable sort of (element, index) pairs in descending order. */
void sx_hlo_lower_top_k(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_dtype dtype = op->in_types[0].dtype;
    sx_type types[2] = {op->in_types[0], op->in_types[0]};
    const sx_type scalars[4] = {sx_scalar_type(dtype), sx_scalar_type(dtype),
                                sx_scalar_type(SX_I32), sx_scalar_type(SX_I32)};
    const int64_t begin[SX_MAX_RANK] = {0};
    types[1].dtype = SX_I32;
    sx_hlo in[2] = {op->in[0], sx_hlo_iota(w, types[1], types[1].rank - 1)}, a[4];
    sx_hlo sorted = sx_hlo_begin(w, "sort", in, 2, types, 2);
    sx_hlo_region(w, scalars, 4, a);
    sx_hlo greater = sx_hlo_compare(w, "GT", a[0], a[1]);
    sx_hlo_region_end(w, &greater, 1);
    sx_hlo_attr(w, "dimension", "%d : i64", types[0].rank - 1);
    sx_hlo_attr(w, "is_stable", "true");
    sx_hlo_end(w);
    for (int k = 0; k < 2; k++) {
        op->out[k] = sx_hlo_slice(w, sx_hlo_result(sorted, k), begin, op->out_types[k].dims);
    }
}

/* own = the target's prediction, -inf if there is none; true if own is finite, nothing is NaN, and
 * fewer than k predictions are larger. */
void sx_hlo_lower_in_top_k(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_top_k_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[0], *out = &op->out_types[0];
    const int64_t last = 1;
    sx_type counts = *type;
    counts.dtype = SX_I64;
    sx_hlo x = op->in[0], hits = sx_hlo_hits(w, op->in[1], type->dims[1]);
    sx_hlo only = sx_hlo_select(w, hits, x, sx_hlo_like(w, x, -INFINITY));
    sx_hlo own = sx_hlo_reduce(w, "maximum", only, 1, &last, false);
    sx_hlo greater = sx_hlo_compare(w, "GT", x, sx_hlo_repeat(w, own, type, 1));
    sx_hlo ones = sx_hlo_convert(w, greater, counts.dtype);
    sx_hlo before = sx_hlo_reduce(w, "add", ones, 1, &last, false);
    sx_hlo in = sx_hlo_compare(w, "LT", before, sx_hlo_like(w, before, (double)attrs->k));
    sx_hlo nan = sx_hlo_reduce(w, "or", sx_hlo_compare(w, "NE", x, x), 1, &last, false);
    in = sx_hlo_binary(w, "and", in, sx_hlo_unary(w, "not", nan));
    op->out[0] = sx_hlo_binary(w, "and", in, sx_hlo_emit(w, "is_finite", &own, 1, out, 1));
}
