/* Exchanges between replicas, and sums in a fixed tree (sx_pass_spmd). */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

/* Of so many replicas the moments are gathered: with more, the rows to move and to add would cost
 * more than a second exchange. */
enum { MOST_GATHERED = 64 };

void sx_hlo_lower_replica_id(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_emit(w, "replica_id", NULL, 0, &op->out_types[0], 1);
}

static sx_hlo row_of(sx_hlo_writer *w, sx_hlo x, int64_t row, const sx_type *out)
{
    sx_type type = sx_hlo_type(w, x);
    const int64_t begin[SX_MAX_RANK] = {row};
    type.dims[0] = 1;
    return sx_hlo_reshape(w, sx_hlo_slice(w, x, begin, type.dims), out);
}

static sx_hlo join_rows(sx_hlo_writer *w, const char *op, sx_hlo x, int64_t first, int64_t count,
                        const sx_type *out)
{
    if (count == 1) {
        return row_of(w, x, first, out);
    }
    const int64_t half = (count + 1) / 2;
    sx_hlo a = join_rows(w, op, x, first, half, out);
    return sx_hlo_binary(w, op, a, join_rows(w, op, x, first + half, count - half, out));
}

/* Moments of parts of one size, a row of `rows` for each: the mean of the means; the mean of the
 * variances and the means' squared distances from it. */
static void join_moments(sx_hlo_writer *w, sx_hlo means, sx_hlo variances, const sx_type *rows,
                         const sx_type *out, sx_hlo *joined)
{
    const int64_t parts = rows->dims[0];
    sx_hlo mean = join_rows(w, "add", means, 0, parts, out);
    joined[0] = mean = sx_hlo_with(w, "divide", mean, (double)parts);
    sx_hlo off = sx_hlo_binary(w, "subtract", means, sx_hlo_repeat(w, mean, rows, 0));
    sx_hlo spread = sx_hlo_binary(w, "add", variances, sx_hlo_binary(w, "multiply", off, off));
    spread = join_rows(w, "add", spread, 0, parts, out);
    joined[1] = sx_hlo_with(w, "divide", spread, (double)parts);
}

/* In one exchange: every replica gets the moments of all, and joins them in the same order. They
 * are not sums that an all_reduce could add: sums of squares would lose the digits of a variance
 * that is small beside the mean. */
static void gather_moments(sx_hlo_writer *w, const sx_hlo_op *op, int replicas)
{
    const int64_t size = sx_type_elems(&op->out_types[0]), begin[2] = {0, size};
    const sx_type vector = sx_type_of(op->out_types[0].dtype, size);
    const sx_type row = sx_type_of(vector.dtype, 1, size);
    const sx_type rows = sx_type_of(vector.dtype, replicas, size);
    sx_hlo own[2], of_all[2], joined[2];
    for (int i = 0; i < 2; i++) {
        own[i] = sx_hlo_reshape(w, op->in[i], &row);
    }
    sx_hlo all = sx_hlo_all_gather(w, sx_hlo_concat(w, own, 2, 1), 0, replicas);
    for (int i = 0; i < 2; i++) {
        of_all[i] = sx_hlo_slice(w, all, (const int64_t[]){0, begin[i]}, rows.dims);
    }
    join_moments(w, of_all[0], of_all[1], &rows, &vector, joined);
    for (int i = 0; i < 2; i++) {
        op->out[i] = sx_hlo_reshape(w, joined[i], &op->out_types[i]);
    }
}

/* In two exchanges: the mean, then the variances about it. */
static void reduce_moments(sx_hlo_writer *w, const sx_hlo_op *op, int replicas)
{
    sx_hlo mean = sx_hlo_all_reduce(w, "add", op->in[0], replicas);
    op->out[0] = mean = sx_hlo_with(w, "divide", mean, replicas);
    sx_hlo off = sx_hlo_binary(w, "subtract", op->in[0], mean);
    sx_hlo spread = sx_hlo_binary(w, "multiply", off, off);
    spread = sx_hlo_all_reduce(w, "add", sx_hlo_binary(w, "add", op->in[1], spread), replicas);
    op->out[1] = sx_hlo_with(w, "divide", spread, replicas);
}

/* Several operands as one vector: XLA's CPU compiler refuses all_reduce of several. */
static void all_reduce_together(sx_hlo_writer *w, const char *op, const sx_hlo *x, int n,
                                int replicas, const sx_type *types, sx_hlo *out)
{
    sx_hlo flat[SX_MAX_OUTPUTS];
    int64_t begin = 0;
    if (n <= 1) {
        out[0] = sx_hlo_all_reduce(w, op, x[0], replicas);
        return;
    }
    for (int i = 0; i < n; i++) {
        const sx_type vector = sx_type_of(types[i].dtype, sx_type_elems(&types[i]));
        flat[i] = sx_hlo_reshape(w, x[i], &vector); /* keeps x's dtype */
    }
    sx_hlo all = sx_hlo_all_reduce(w, op, sx_hlo_concat(w, flat, n, 0), replicas);
    for (int i = 0; i < n; i++) {
        const int64_t size = sx_type_elems(&types[i]);
        out[i] = sx_hlo_reshape(w, sx_hlo_slice(w, all, &begin, &size), &types[i]);
        begin += size;
    }
}

void sx_hlo_lower_all_reduce(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_all_reduce_attrs *attrs = op->attrs;
    const int n = op->n_in, replicas = (int)attrs->replicas;
    if (replicas == 1) {
        for (int i = 0; i < n; i++) {
            op->out[i] = op->in[i];
        }
        return;
    }
    if (attrs->how == SX_COMBINE_MOMENTS) {
        (replicas <= MOST_GATHERED ? gather_moments : reduce_moments)(w, op, replicas);
        return;
    }
    const bool flags = attrs->how == SX_COMBINE_AND || attrs->how == SX_COMBINE_OR;
    const bool greatest = attrs->how == SX_COMBINE_MAX || attrs->how == SX_COMBINE_OR;
    const bool least = attrs->how == SX_COMBINE_MIN || attrs->how == SX_COMBINE_AND;
    sx_hlo x[SX_MAX_OUTPUTS];
    for (int i = 0; i < n; i++) {
        /* integers: collectives on booleans are poorly supported */
        x[i] = flags ? sx_hlo_convert(w, op->in[i], SX_I32) : op->in[i];
    }
    all_reduce_together(w,
                        greatest                        ? "maximum"
                        : least                         ? "minimum"
                        : attrs->how == SX_COMBINE_PROD ? "multiply"
                                                        : "add",
                        x, n, replicas, op->out_types, op->out);
    for (int i = 0; i < n; i++) {
        if (flags) {
            op->out[i] = sx_hlo_compare(w, "NE", op->out[i], sx_hlo_like(w, op->out[i], 0));
        } else if (attrs->how == SX_COMBINE_MEAN) {
            op->out[i] = sx_hlo_with(w, "divide", op->out[i], replicas);
        }
    }
}

void sx_hlo_lower_all_gather(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_all_gather_attrs *attrs = op->attrs;
    op->out[0] = attrs->replicas == 1
                     ? op->in[0]
                     : sx_hlo_all_gather(w, op->in[0], (int)attrs->axis, (int)attrs->replicas);
}

void sx_hlo_lower_all_slice(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_all_gather_attrs *attrs = op->attrs;
    if (attrs->replicas == 1) {
        op->out[0] = op->in[0];
        return;
    }
    const sx_type *y = &op->out_types[0], id_type = sx_scalar_type(SX_U32);
    sx_hlo in[SX_MAX_RANK + 1] = {op->in[0]};
    sx_hlo id = sx_hlo_emit(w, "replica_id", NULL, 0, &id_type, 1);
    sx_hlo first = sx_hlo_with(w, "multiply", sx_hlo_convert(w, id, SX_I64), (double)attrs->size);
    sx_hlo zero = sx_hlo_scalar(w, SX_I64, 0);
    for (int i = 0; i < y->rank; i++) {
        in[1 + i] = i == attrs->axis ? first : zero;
    }
    sx_hlo_attr_i64s(w, "slice_sizes", y->rank, y->dims);
    op->out[0] = sx_hlo_emit(w, "dynamic_slice", in, 1 + y->rank, y, 1);
}

void sx_hlo_lower_reduce_tree(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_reduce_tree_attrs *attrs = op->attrs;
    const char *joined = attrs->how == SX_COMBINE_AND    ? "and"
                         : attrs->how == SX_COMBINE_OR   ? "or"
                         : attrs->how == SX_COMBINE_MAX  ? "maximum"
                         : attrs->how == SX_COMBINE_MIN  ? "minimum"
                         : attrs->how == SX_COMBINE_PROD ? "multiply"
                                                         : "add";
    const int64_t parts = op->in_types[0].dims[0];
    if (attrs->how == SX_COMBINE_MOMENTS) {
        join_moments(w, op->in[0], op->in[1], &op->in_types[0], &op->out_types[0], op->out);
        return;
    }
    for (int k = 0; k < op->n_in; k++) {
        sx_hlo y = join_rows(w, joined, op->in[k], 0, op->in_types[k].dims[0], &op->out_types[k]);
        op->out[k] = attrs->how == SX_COMBINE_MEAN ? sx_hlo_with(w, "divide", y, (double)parts) : y;
    }
}
