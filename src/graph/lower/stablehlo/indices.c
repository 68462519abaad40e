/* Operators on indices. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

/* Whether 0 <= index < n. */
static sx_hlo is_inside(sx_hlo_writer *w, sx_hlo index, int64_t n)
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

/* A gather, or its gradient, seen as one of rows: table [pairs before rows, width], indices
 * [pairs before count]. */
typedef struct flat_gather {
    int64_t pairs, before, rows, count, width;
} flat_gather;

static flat_gather flat_gather_of(const sx_type *table, const sx_type *indices, int64_t axis,
                                  int64_t paired)
{
    return (flat_gather){
        .pairs = sx_dims_product(table, 0, (int)paired),
        .before = sx_dims_product(table, (int)paired, (int)axis),
        .rows = table->dims[axis],
        .count = sx_dims_product(indices, (int)paired, indices->rank),
        .width = sx_dims_product(table, (int)axis + 1, table->rank),
    };
}

/* The indices as those of the flat table's rows; *known: which are inside. */
static sx_hlo flat_indices(sx_hlo_writer *w, const flat_gather *f, sx_hlo index, sx_hlo *known)
{
    const int64_t map[2] = {0, 2};
    const sx_type own = sx_type_of(SX_I64, f->pairs, f->count);
    const sx_type all = sx_type_of(SX_I64, f->pairs, f->before, f->count);
    const sx_type flat = sx_type_of(SX_I64, f->pairs * f->before * f->count);
    const sx_type parts = sx_type_of(SX_I64, f->pairs * f->before, f->count);
    sx_hlo x = sx_hlo_reshape(w, sx_hlo_convert(w, index, SX_I64), &own);
    x = sx_hlo_reshape(w, sx_hlo_broadcast_in(w, x, &all, map), &flat);
    *known = is_inside(w, x, f->rows);
    sx_hlo first = sx_hlo_reshape(w, sx_hlo_iota(w, parts, 0), &flat);
    return sx_hlo_binary(w, "add", x, sx_hlo_with(w, "multiply", first, (double)f->rows));
}

static sx_hlo take_rows(sx_hlo_writer *w, sx_hlo table, sx_hlo index, const sx_type *out)
{
    const sx_hlo in[2] = {table, index};
    sx_type slice = sx_hlo_type(w, table);
    const int rank = sx_hlo_type(w, index).rank;
    slice.dims[0] = 1;
    sx_hlo_attr(w, "dimension_numbers",
                "#stablehlo.gather<offset_dims = [%s], collapsed_slice_dims = [0], "
                "start_index_map = [0], index_vector_dim = %d>",
                sx_hlo_numbers(rank, out->rank, (char[SX_HLO_NUMBERS]){0}), rank);
    sx_hlo_attr_i64s(w, "slice_sizes", slice.rank, slice.dims);
    sx_hlo_attr(w, "indices_are_sorted", "false");
    return sx_hlo_emit(w, "gather", in, 2, out, 1);
}

/* StableHLO ignores updates whose index is out of range, as this operator does. */
static sx_hlo add_rows(sx_hlo_writer *w, sx_hlo table, sx_hlo index, sx_hlo dy)
{
    const sx_type type = sx_hlo_type(w, table);
    const sx_hlo in[3] = {table, index, dy};
    const int rank = sx_hlo_type(w, index).rank;
    sx_hlo sum = sx_hlo_begin(w, "scatter", in, 3, &type, 1);
    sx_hlo_region_binary(w, "add", type.dtype);
    sx_hlo_attr(w, "scatter_dimension_numbers",
                "#stablehlo.scatter<update_window_dims = [%s], inserted_window_dims = [0], "
                "scatter_dims_to_operand_dims = [0], index_vector_dim = %d>",
                sx_hlo_numbers(rank, sx_hlo_type(w, dy).rank, (char[SX_HLO_NUMBERS]){0}), rank);
    sx_hlo_attr(w, "indices_are_sorted", "false");
    sx_hlo_attr(w, "unique_indices", "false");
    sx_hlo_end(w);
    return sum;
}

void sx_hlo_lower_gather(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_gather_attrs *attrs = op->attrs;
    const sx_type *table = &op->in_types[0], *out = &op->out_types[0];
    const int64_t map[SX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const flat_gather f = flat_gather_of(table, &op->in_types[1], attrs->axis, attrs->batch_dims);
    if (sx_type_elems(table) == 0 || sx_type_elems(out) == 0) {
        op->out[0] = sx_hlo_splat(w, *out, 0);
        return;
    }
    if (attrs->axis == 0) {
        sx_hlo taken = take_rows(w, op->in[0], op->in[1], out);
        sx_hlo known = is_inside(w, op->in[1], f.rows);
        known = sx_hlo_broadcast_in(w, known, out, map);
        op->out[0] = sx_hlo_select(w, known, taken, sx_hlo_like(w, taken, 0));
        return;
    }
    const sx_type flat = sx_type_of(table->dtype, f.pairs * f.before * f.rows, f.width);
    const sx_type rows = sx_type_of(table->dtype, f.pairs * f.before * f.count, f.width);
    sx_hlo known, index = flat_indices(w, &f, op->in[1], &known);
    sx_hlo taken = take_rows(w, sx_hlo_reshape(w, op->in[0], &flat), index, &rows);
    known = sx_hlo_broadcast_in(w, known, &rows, map);
    taken = sx_hlo_select(w, known, taken, sx_hlo_like(w, taken, 0));
    op->out[0] = sx_hlo_reshape(w, taken, out);
}

void sx_hlo_lower_gather_grad(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_gather_grad_attrs *attrs = op->attrs;
    sx_type table = op->out_types[0];
    sx_hlo dy = sx_hlo_widen(w, op->in[1]);
    table.dtype = sx_hlo_type(w, dy).dtype;
    const flat_gather f = flat_gather_of(&table, &op->in_types[0], attrs->axis, attrs->batch_dims);
    if (sx_type_elems(&table) == 0 || sx_type_elems(&op->in_types[1]) == 0) {
        op->out[0] = sx_hlo_splat(w, op->out_types[0], 0);
        return;
    }
    sx_hlo sum;
    if (attrs->axis == 0) {
        sum = add_rows(w, sx_hlo_splat(w, table, 0), op->in[0], dy);
    } else {
        const sx_type flat = sx_type_of(table.dtype, f.pairs * f.before * f.rows, f.width);
        const sx_type rows = sx_type_of(table.dtype, f.pairs * f.before * f.count, f.width);
        sx_hlo known, index = flat_indices(w, &f, op->in[0], &known);
        index = sx_hlo_select(w, known, index, sx_hlo_like(w, index, -1));
        sum = add_rows(w, sx_hlo_splat(w, flat, 0), index, sx_hlo_reshape(w, dy, &rows));
        sum = sx_hlo_reshape(w, sum, &table);
    }
    op->out[0] = sx_hlo_convert(w, sum, op->out_types[0].dtype);
}

/* x as [B, S, ...], of which rows are taken: row k of example i is row k < lengths[i] ? lengths[i]
 * - 1 - k : k. */
void sx_hlo_lower_reverse_sequence(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_reverse_sequence_attrs *attrs = op->attrs;
    const sx_type *x = &op->in_types[0];
    const int64_t batch = x->dims[attrs->batch_axis], size = x->dims[attrs->seq_axis];
    const sx_type places = sx_type_of(SX_I64, batch, size), all = sx_type_of(SX_I64, batch * size);
    int64_t perm[SX_MAX_RANK] = {attrs->batch_axis, attrs->seq_axis}, back[SX_MAX_RANK];
    sx_type moved = *x;
    if (sx_type_elems(x) == 0) {
        op->out[0] = op->in[0];
        return;
    }
    for (int d = 0, k = 2; d < x->rank; d++) {
        if (d != attrs->batch_axis && d != attrs->seq_axis) {
            perm[k++] = d;
        }
    }
    for (int d = 0; d < x->rank; d++) {
        moved.dims[d] = x->dims[perm[d]];
        back[perm[d]] = d;
    }
    const sx_type rows = sx_type_of(x->dtype, batch * size, sx_dims_product(&moved, 2, x->rank));
    sx_hlo length = sx_hlo_clamp(w, sx_hlo_convert(w, op->in[1], SX_I64), 0, (double)size);
    sx_hlo place = sx_hlo_iota(w, places, 1), last = sx_hlo_repeat(w, length, &places, 1);
    sx_hlo inside = sx_hlo_compare(w, "LT", place, last);
    last = sx_hlo_with(w, "subtract", last, 1);
    place = sx_hlo_select(w, inside, sx_hlo_binary(w, "subtract", last, place), place);
    sx_hlo first = sx_hlo_with(w, "multiply", sx_hlo_iota(w, places, 0), (double)size);
    sx_hlo index = sx_hlo_reshape(w, sx_hlo_binary(w, "add", first, place), &all);
    sx_hlo flat = sx_hlo_reshape(w, sx_hlo_transpose(w, op->in[0], perm), &rows);
    sx_hlo taken = sx_hlo_reshape(w, take_rows(w, flat, index, &rows), &moved);
    op->out[0] = sx_hlo_transpose(w, taken, back);
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

/* ---- Slices at places of several axes ---- */

/* The slices at rows of indices [I..., K]; where they are outside, zeros. */
void sx_hlo_lower_gather_nd(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_type *x = &op->in_types[0], *indices = &op->in_types[1], *out = &op->out_types[0];
    const int outer = indices->rank - 1, k = (int)indices->dims[outer];
    int64_t map[SX_MAX_RANK], last = outer;
    for (int d = 0; d < SX_MAX_RANK; d++) {
        map[d] = k == 0 ? outer + d : d;
    }
    if (k == 0 || sx_type_elems(x) == 0 || sx_type_elems(out) == 0) {
        op->out[0] = k == 0 && sx_type_elems(out) != 0 ? sx_hlo_broadcast_in(w, op->in[0], out, map)
                                                       : sx_hlo_splat(w, *out, 0);
        return;
    }
    const sx_hlo in[2] = {op->in[0], op->in[1]};
    sx_type slice = *x;
    for (int d = 0; d < k; d++) {
        slice.dims[d] = 1;
    }
    sx_hlo_attr(w, "dimension_numbers",
                "#stablehlo.gather<offset_dims = [%s], collapsed_slice_dims = [%s], "
                "start_index_map = [%s], index_vector_dim = %d>",
                sx_hlo_numbers(outer, out->rank, (char[SX_HLO_NUMBERS]){0}),
                sx_hlo_numbers(0, k, (char[SX_HLO_NUMBERS]){0}),
                sx_hlo_numbers(0, k, (char[SX_HLO_NUMBERS]){0}), outer);
    sx_hlo_attr_i64s(w, "slice_sizes", slice.rank, slice.dims);
    sx_hlo_attr(w, "indices_are_sorted", "false");
    sx_hlo taken = sx_hlo_emit(w, "gather", in, 2, out, 1);
    sx_type sizes = sx_type_of(indices->dtype, k);
    int64_t dims[SX_MAX_RANK];
    int32_t narrow[SX_MAX_RANK];
    for (int d = 0; d < k; d++) {
        dims[d] = x->dims[d];
        narrow[d] = (int32_t)SX_MIN(x->dims[d], INT32_MAX);
    }
    sx_hlo limit = sx_hlo_constant(
        w, &(sx_tensor){sizes, sizes.dtype == SX_I64 ? (void *)dims : (void *)narrow});
    limit = sx_hlo_broadcast_in(w, limit, indices, &last);
    sx_hlo known = sx_hlo_compare(w, "GE", op->in[1], sx_hlo_like(w, op->in[1], 0));
    known = sx_hlo_binary(w, "and", known, sx_hlo_compare(w, "LT", op->in[1], limit));
    known = sx_hlo_reduce(w, "and", known, 1, &last, false);
    known = sx_hlo_broadcast_in(w, known, out, map);
    op->out[0] = sx_hlo_select(w, known, taken, sx_hlo_like(w, taken, 0));
}

/* StableHLO leaves out updates whose index is outside. */
void sx_hlo_lower_tensor_scatter(sx_hlo_writer *w, const sx_hlo_op *op)
{
    static const char *const combine[] = {
        [SX_SCATTER_UPDATE] = NULL,    [SX_SCATTER_ADD] = "add",     [SX_SCATTER_SUB] = "add",
        [SX_SCATTER_MUL] = "multiply", [SX_SCATTER_MIN] = "minimum", [SX_SCATTER_MAX] = "maximum"};
    const sx_tensor_scatter_attrs *attrs = op->attrs;
    const sx_type *x = &op->in_types[0], *indices = &op->in_types[1], *u = &op->in_types[2];
    const int outer = indices->rank - 1, k = (int)indices->dims[outer];
    if (sx_type_elems(x) == 0 || sx_type_elems(u) == 0) {
        op->out[0] = op->in[0];
        return;
    }
    sx_hlo updates =
        attrs->how == SX_SCATTER_SUB ? sx_hlo_unary(w, "negate", op->in[2]) : op->in[2];
    const sx_hlo in[3] = {op->in[0], op->in[1], updates};
    op->out[0] = sx_hlo_begin(w, "scatter", in, 3, x, 1);
    if (combine[attrs->how] != NULL) {
        sx_hlo_region_binary(w, combine[attrs->how], x->dtype);
    } else {
        const sx_type scalars[2] = {sx_scalar_type(x->dtype), sx_scalar_type(x->dtype)};
        sx_hlo a[2];
        sx_hlo_region(w, scalars, 2, a);
        sx_hlo_region_end(w, &a[1], 1);
    }
    sx_hlo_attr(w, "scatter_dimension_numbers",
                "#stablehlo.scatter<update_window_dims = [%s], inserted_window_dims = [%s], "
                "scatter_dims_to_operand_dims = [%s], index_vector_dim = %d>",
                sx_hlo_numbers(outer, u->rank, (char[SX_HLO_NUMBERS]){0}),
                sx_hlo_numbers(0, k, (char[SX_HLO_NUMBERS]){0}),
                sx_hlo_numbers(0, k, (char[SX_HLO_NUMBERS]){0}), outer);
    sx_hlo_attr(w, "indices_are_sorted", "false");
    sx_hlo_attr(w, "unique_indices", "false");
    sx_hlo_end(w);
}
