/* Imports strided slices. */
#include "savedmodel/import_library_ops.h"

/* x[begin:end] with stride 1, and axes that are dropped or added. */
static sx_status import_strided_slice(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints begin = {0}, end = {0}, strides = {0}, kept = {0};
    const int64_t begins = sx_tf_read_int(&x->tf.head, "begin_mask", 0),
                  ends = sx_tf_read_int(&x->tf.head, "end_mask", 0),
                  shrinks = sx_tf_read_int(&x->tf.head, "shrink_axis_mask", 0),
                  adds = sx_tf_read_int(&x->tf.head, "new_axis_mask", 0),
                  dots = sx_tf_read_int(&x->tf.head, "ellipsis_mask", 0);
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_operand_ints(x, 1, &begin));
    SX_TRY(sx_tf_operand_ints(x, 2, &end));
    SX_TRY(sx_tf_operand_ints(x, 3, &strides));
    const sx_type *type = &x->tf.head.types[0];
    sx_slice_attrs attrs = {.begin = {.n = type->rank}, .size = {.n = type->rank}};
    bool cuts = false, whole = true; /* whether the sizes are known */
    int n_axes = 0;                  /* that the indices name */
    for (int i = 0; i < begin.n; i++) {
        n_axes += (adds >> i & 1) == 0 && (dots >> i & 1) == 0;
    }
    int d = 0;
    for (int i = 0; i <= begin.n; i++) {
        const bool dot = i == begin.n || (dots >> i & 1) != 0;
        if (!dot && (adds >> i & 1) != 0) {
            kept.v[kept.n++ % SX_MAX_RANK] = -1;
            continue;
        }
        /* an ellipsis, or the end, takes the axes that are not named */
        for (int k = 0; dot && k < type->rank - n_axes && d < type->rank; k++, d++) {
            attrs.size.v[d] = -1;
            kept.v[kept.n++ % SX_MAX_RANK] = d;
        }
        n_axes = dot ? type->rank : n_axes;
        if (dot) {
            continue;
        }
        if (d >= type->rank || i >= end.n || i >= strides.n) {
            return sx_error(SX_DATA_LOSS, "%d indices for an input of rank %d", begin.n,
                            type->rank);
        }
        const int64_t dim = type->dims[d], from = begin.v[i], to = end.v[i];
        const bool shrink = (shrinks >> i & 1) != 0, from_start = (begins >> i & 1) != 0,
                   to_end = (ends >> i & 1) != 0;
        if (strides.v[i] != 1) {
            return sx_tf_unsupported("stride %lld; only 1 is supported", (long long)strides.v[i]);
        }
        if (!shrink && (from_start || from == 0) && to_end) {
            attrs.size.v[d] = -1;
        } else if (shrink && (from >= 0 || dim >= 0)) {
            attrs.begin.v[d] = from < 0 ? from + dim : from;
            attrs.size.v[d] = 1;
            if (attrs.begin.v[d] < 0 || (dim >= 0 && attrs.begin.v[d] >= dim)) {
                return sx_error(SX_DATA_LOSS, "index %lld is out of range for %lld elements",
                                (long long)from, (long long)dim);
            }
        } else if (!shrink && dim >= 0) {
            const int64_t first =
                from_start ? 0 : SX_MIN(SX_MAX(from < 0 ? from + dim : from, 0), dim);
            const int64_t last = to_end ? dim : SX_MIN(SX_MAX(to < 0 ? to + dim : to, 0), dim);
            attrs.begin.v[d] = first;
            attrs.size.v[d] = SX_MAX(last - first, 0);
        } else if (!shrink && to_end && from > 0) {
            attrs.begin.v[d] = from;
            attrs.size.v[d] = -1;
        } else {
            return sx_tf_unsupported("it cuts an axis whose size is unknown");
        }
        cuts = cuts || attrs.size.v[d] != -1 || attrs.begin.v[d] != 0;
        if (!shrink) {
            kept.v[kept.n++ % SX_MAX_RANK] = d;
        }
        d++;
    }
    if (kept.n > SX_MAX_RANK) {
        return sx_tf_unsupported("the result has rank %d, at most %d are supported", kept.n,
                                 SX_MAX_RANK);
    }
    y = v;
    for (int k = 0; k < type->rank; k++) {
        if (attrs.size.v[k] == -1 && attrs.begin.v[k] == 0 && type->dims[k] != SX_UNKNOWN_DIM) {
            attrs.size.v[k] = type->dims[k];
        } else if (attrs.size.v[k] == -1) {
            whole = false;
        }
    }
    if (cuts && whole) {
        SX_TF_BUILD(x, &y, slice, &attrs, v);
    } else if (cuts) {
        sx_value operands[2];
        SX_TRY(sx_tf_int64s(x, &attrs.begin, &operands[0]));
        SX_TRY(sx_tf_int64s(x, &attrs.size, &operands[1]));
        const sx_attr_operand open[] = {{sx_tf_attr_row(&sx_op_slice, "begin"), operands[0]},
                                        {sx_tf_attr_row(&sx_op_slice, "size"), operands[1]}};
        sx_type out = *type;
        for (int k = 0; k < type->rank; k++) {
            out.dims[k] = attrs.size.v[k] >= 0 ? attrs.size.v[k] : SX_UNKNOWN_DIM;
        }
        y = sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_slice,
                                                .inputs = &v,
                                                .n_inputs = 1,
                                                .attr_operands = open,
                                                .n_attr_operands = 2,
                                                .types = &out,
                                                .n_types = 1,
                                                .device = "",
                                                .file = ""});
    }
    bool same = kept.n == type->rank;
    for (int k = 0; k < kept.n; k++) {
        same = same && kept.v[k] == k;
    }
    if (!same) {
        SX_TRY(sx_tf_reshape_dims(x, y, &kept, &y));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_slice_rows[] = {
    {"StridedSlice", import_strided_slice, NULL},
    {NULL, NULL, NULL},
};
