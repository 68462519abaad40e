/* Imports scattering into zeros and sums over segments, from tensor_scatter. */
#include "savedmodel/import_library_ops.h"

#include <float.h>
#include <string.h>

/* ---- Scattering ---- */

/* GatherNd(x, indices): the rank of the result is known if the last dimension of the indices is. */
static sx_status import_gather_nd(sx_tf_op_node *x)
{
    static const sx_gather_nd_attrs attrs = {.skip_negative = false};
    const sx_type *indices = &x->tf.head.types[1];
    sx_value in[2];
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if (indices->rank > 0 && indices->dims[indices->rank - 1] >= 0) {
        return sx_tf_import_one(x);
    }
    const sx_type y = sx_tf_unknown_shape(x->tf.head.types[0].dtype);
    sx_tf_set(x, 0, sx_tf_build_as(x, &sx_op_gather_nd, &attrs, in, 2, NULL, 0, &y));
    return SX_OK;
}

/* ScatterNd(indices, updates, shape): added to zeros. */
static sx_status import_scatter_nd(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD};
    sx_value indices = SX_NO_VALUE, u = SX_NO_VALUE, shape = SX_NO_VALUE, zeros = SX_NO_VALUE,
             y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &indices));
    SX_TRY(sx_tf_operand(x, 1, &u));
    SX_TRY(sx_tf_operand(x, 2, &shape));
    SX_TRY(sx_tf_number(x, x->tf.head.types[1].dtype, 0, &zeros));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, zeros, "shape", shape, &zeros));
    SX_TF_BUILD(x, &y, tensor_scatter, &add, zeros, indices, u);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Segments ---- */

/* The least or the greatest number of a dtype. */
static sx_status extreme(const sx_tf_op_node *x, sx_dtype dtype, bool least, sx_value *out)
{
    const bool is_unsigned =
        dtype == SX_U8 || dtype == SX_U16 || dtype == SX_U32 || dtype == SX_U64;
    const size_t bits = 8 * sx_dtype_bytes(dtype);
    if (sx_dtype_is_float(dtype)) {
        const double most = dtype == SX_F64    ? DBL_MAX
                            : dtype == SX_F16  ? 65504
                            : dtype == SX_BF16 ? 3.3895313892515355e38
                                               : (double)FLT_MAX;
        return sx_tf_number(x, dtype, least ? -most : most, out);
    }
    const uint64_t low = is_unsigned ? 0 : (uint64_t)1 << (bits - 1); /* little-endian */
    const uint64_t value = least ? low : ~low;
    return sx_tf_constant(x, sx_scalar_type(dtype), &value, out);
}

/* segments x `value`, in the shape of the rows of data; `n`: int64 [1] */
static sx_status filled(const sx_tf_op_node *x, sx_value data, int n_ids, sx_value n,
                        sx_value value, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, data);
    const sx_slice_attrs rest = {.begin = {1, {n_ids}}, .size = {1, {type.rank - n_ids}}};
    sx_value shape = SX_NO_VALUE;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), data);
    SX_TF_BUILD(x, &shape, slice, &rest, shape);
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), n, shape);
    return sx_tf_build_open(x, &sx_op_broadcast_to, NULL, value, "shape", shape, out);
}

/* SegmentSum(data, ids), UnsortedSegmentSum(data, ids, n) and their kin. Segments of sorted ids end
 * with the last one; those between that are empty are 0 of them, else what changes nothing. */
static sx_status import_segments(sx_tf_op_node *x)
{
    static const struct {
        const char *name;
        int32_t how;
        double empty;
    } kinds[] = {{"Sum", SX_SCATTER_ADD, 0},
                 {"Mean", SX_SCATTER_ADD, 0},
                 {"Prod", SX_SCATTER_MUL, 1},
                 {"Min", SX_SCATTER_MIN, 0},
                 {"Max", SX_SCATTER_MAX, 0}};
    const bool sorted = strncmp(x->n->node->op, "Segment", strlen("Segment")) == 0;
    const char *name = x->n->node->op + strlen(sorted ? "Segment" : "UnsortedSegment");
    const int check = sorted ? SX_SCATTER_ASCENDING : SX_SCATTER_SKIP_NEGATIVE;
    sx_value data = SX_NO_VALUE, ids = SX_NO_VALUE, n = SX_NO_VALUE, y = SX_NO_VALUE,
             at = SX_NO_VALUE, start = SX_NO_VALUE;
    size_t kind = 0;
    while (kind + 1 < SX_COUNT(kinds) && strcmp(kinds[kind].name, name) != 0) {
        kind++;
    }
    SX_TRY(sx_tf_operand(x, 0, &data));
    SX_TRY(sx_tf_operand(x, 1, &ids));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_require_rank(x, 1));
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    const int n_ids = x->tf.head.types[1].rank;
    const bool ends = kinds[kind].how == SX_SCATTER_MIN || kinds[kind].how == SX_SCATTER_MAX;
    if (n_ids > x->tf.head.types[0].rank || (sorted && n_ids != 1)) {
        return sx_error(SX_DATA_LOSS, "the ids have rank %d, the data %d", n_ids,
                        x->tf.head.types[0].rank);
    }
    if (x->tf.head.types[1].dtype != SX_I64) {
        SX_TF_BUILD(x, &ids, cast, (&(sx_cast_attrs){SX_I64}), ids);
    }
    if (sorted) { /* the last id, -1 of none, and 1 */
        const sx_ints none = {1, {-1}}, one = {1, {1}};
        const sx_reduce_attrs over = {.axes = {1, {0}}, .keep_dims = true};
        sx_value first = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &none, &first));
        SX_TF_BUILD(x, &n, concat, (&(sx_axis_attrs){0}), first, ids);
        SX_TF_BUILD(x, &n, reduce_max, &over, n);
        SX_TRY(sx_tf_int64s(x, &one, &first));
        SX_TF_BUILD(x, &n, add, NULL, n, first);
    } else {
        SX_TRY(sx_tf_operand(x, 2, &n));
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I64}), n);
        SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{1, {1}}}), n);
    }
    SX_TRY(sx_tf_expand(x, ids, -1, &at));
    if (ends) {
        SX_TRY(extreme(x, dtype, kinds[kind].how == SX_SCATTER_MAX, &start));
    } else {
        SX_TRY(sx_tf_number(x, dtype, kinds[kind].empty, &start));
    }
    SX_TRY(filled(x, data, n_ids, n, start, &start));
    const sx_tensor_scatter_attrs attrs = {.how = kinds[kind].how, .check = check};
    SX_TF_BUILD(x, &y, tensor_scatter, &attrs, start, at, data);
    const bool mean = strcmp(name, "Mean") == 0;
    if (mean || (sorted && ends)) { /* how many rows each segment has */
        const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD, .check = check};
        sx_value one = SX_NO_VALUE, zero = SX_NO_VALUE, counts = SX_NO_VALUE, ones = SX_NO_VALUE;
        SX_TRY(sx_tf_number(x, dtype, 1, &one));
        SX_TRY(sx_tf_number(x, dtype, 0, &zero));
        SX_TF_BUILD(x, &ones, shape, (&(sx_cast_attrs){SX_I64}), data);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", ones, &ones));
        SX_TRY(filled(x, data, n_ids, n, zero, &counts));
        SX_TF_BUILD(x, &counts, tensor_scatter, &add, counts, at, ones);
        if (mean) {
            SX_TF_BUILD(x, &counts, maximum, NULL, counts, one);
            if (sx_dtype_is_float(dtype)) {
                SX_TF_BUILD(x, &y, div, NULL, y, counts);
            } else {
                SX_TF_BUILD(x, &y, truncate_div, NULL, y, counts);
            }
        } else {
            SX_TF_BUILD(x, &counts, greater, NULL, counts, zero);
            SX_TF_BUILD(x, &y, select, NULL, counts, y, zero);
        }
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_scatter_rows[] = {
    {"GatherNd", import_gather_nd, NULL},           {"ScatterNd", import_scatter_nd, NULL},
    {"SegmentSum", import_segments, NULL},          {"SegmentMean", import_segments, NULL},
    {"SegmentProd", import_segments, NULL},         {"SegmentMin", import_segments, NULL},
    {"SegmentMax", import_segments, NULL},          {"UnsortedSegmentSum", import_segments, NULL},
    {"UnsortedSegmentProd", import_segments, NULL}, {"UnsortedSegmentMin", import_segments, NULL},
    {"UnsortedSegmentMax", import_segments, NULL},  {NULL, NULL, NULL},
};
