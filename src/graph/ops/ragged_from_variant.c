/* ragged_from_variant: the ragged tensor of a string that ragged_to_variant wrote; of several, one
 * with their dimensions before its own.
 *
 *   x                  strings of any shape
 *   input_ragged_rank   how many ragged dimensions each has; -1: output_ragged_rank less the rank
 *                       of x. One that is not ragged has 0; -1 then means that dense tensors are
 *                       stacked, where zeros stand for a string that is empty (if any is not)
 *   output_ragged_rank  the sum of that and the rank of x
 *   Tvalues, Tsplits    the dtypes; int32 or int64 of the splits
 *   returns             splits [rows + 1] of each ragged dimension, from the outermost on, and
 *                       values [k, ...]
 *
 * Errors   INVALID_ARGUMENT    attributes; (running) other ranks, dtypes, dimensions, broken bytes
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow RaggedTensorFromVariant */
#ifdef SX_ATTRS
typedef struct sx_ragged_from_variant_attrs {
    int64_t input_ragged_rank, output_ragged_rank;
    sx_dtype Tvalues, Tsplits;
} sx_ragged_from_variant_attrs;
#endif

#include "graph/ops/ragged_variant.h"

static const sx_attr_def ragged_from_variant_attrs[] = {
    SX_ATTR_TF(sx_ragged_from_variant_attrs, input_ragged_rank, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_ragged_from_variant_attrs, output_ragged_rank, SX_ATTR_INT),
    SX_ATTR_TF(sx_ragged_from_variant_attrs, Tvalues, SX_ATTR_DTYPE),
    SX_ATTR_TF(sx_ragged_from_variant_attrs, Tsplits, SX_ATTR_DTYPE, .tf_number = SX_I64),
};

static sx_status ragged_from_variant_infer(sx_infer_context *c)
{
    const sx_ragged_from_variant_attrs *a = c->attrs;
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_STRING));
    if (a->output_ragged_rank < 0 || a->output_ragged_rank >= SX_MAX_RANK ||
        a->input_ragged_rank < -1 || sx_carrier_of(a->Tvalues) == SX_CARRIER_NONE ||
        (a->Tsplits != SX_I32 && a->Tsplits != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input_ragged_rank is %lld, output_ragged_rank %lld, Tvalues %s, Tsplits "
                        "%s",
                        (long long)a->input_ragged_rank, (long long)a->output_ragged_rank,
                        sx_dtype_name(a->Tvalues), sx_dtype_name(a->Tsplits));
    }
    const int n = (int)a->output_ragged_rank;
    c->n_outputs = n + 1;
    for (int i = 0; i < n; i++) {
        c->outputs[i] = sx_type_of(a->Tsplits, SX_UNKNOWN_DIM);
    }
    c->outputs[n] = sx_unknown_shape(a->Tvalues);
    return SX_OK;
}

/* The parts, checked against one another and the attributes; the values' type. */
static sx_status read_parts(const sx_kernel_call *c, sx_ragged_part **out_parts, int *out_rank,
                            sx_type *out_values)
{
    const sx_ragged_from_variant_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int64_t n = sx_type_elems(x), given = a->input_ragged_rank;
    const int64_t rank = given >= 0 ? given : a->output_ragged_rank - x->rank;
    if (rank < -1 || (rank >= 0 && rank + x->rank != a->output_ragged_rank)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s of ragged rank %lld, which makes no ragged rank of %lld",
                        SX_TEXT(x), (long long)rank, (long long)a->output_ragged_rank);
    }
    sx_ragged_part *parts = sx_arena_array(c->arena, n + 1, sx_ragged_part);
    if (parts == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    const bool stack = rank < 0 && x->rank > 0; /* of dense tensors, which have one shape */
    sx_type values = sx_type_of(a->Tvalues, 0);
    int64_t first = 0; /* that is set */
    while (stack && first < n - 1 && c->in[0].s[first].size == 0) {
        first++;
    }
    for (int64_t k = first; k < n; k++) {
        if (c->in[0].s[k].size == 0 && stack && k > first) {
            continue;
        }
        if (c->in[0].s[k].size == 0) { /* of a list of tensors */
            return sx_error(SX_INVALID_ARGUMENT, "element %lld was not set", (long long)k);
        }
        SX_TRY(sx_ragged_get(&c->in[0].s[k], &parts[k]));
        const sx_type *v = &parts[k].values;
        const bool dtype = v->dtype == a->Tvalues && parts[k].n_splits == SX_MAX(rank, 0);
        bool fits = dtype && (stack || x->rank == 0 || v->rank > 0);
        const int from = stack || x->rank == 0 ? 0 : 1;
        fits = fits && (k == first || v->rank == parts[first].values.rank);
        for (int d = from; d < v->rank && fits; d++) {
            fits = v->dims[d] == parts[first].values.dims[d];
        }
        if (!fits) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "element %lld is %s with %d splits, expected %s with %lld, and the "
                            "inner dimensions of the others",
                            (long long)k, SX_TEXT(v), parts[k].n_splits, sx_dtype_name(a->Tvalues),
                            (long long)SX_MAX(rank, 0));
        }
        if (k == first) {
            values = *v;
        } else if (!stack && !sx_add_i64(values.dims[0], v->dims[0], &values.dims[0])) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "the values are too many");
        }
    }
    for (int64_t k = 0; stack && k < n; k++) {
        if (parts[k].data == NULL) { /* not set: as the others */
            parts[k].values = values;
        }
    }
    if (stack) { /* the dimensions of x before those of its elements */
        sx_type made = {.dtype = a->Tvalues, .rank = x->rank + (n > 0 ? values.rank : 0)};
        if (made.rank > SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "%d dimensions, at most %d are supported",
                            made.rank, SX_MAX_RANK);
        }
        memcpy(made.dims, x->dims, (size_t)x->rank * sizeof(int64_t));
        for (int d = 0; n > 0 && d < values.rank; d++) {
            made.dims[x->rank + d] = values.dims[d];
        }
        values = made;
    }
    *out_parts = parts;
    *out_rank = (int)SX_MAX(rank, 0);
    *out_values = values;
    return SX_OK;
}

static sx_status ragged_from_variant_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_ragged_from_variant_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int n_splits = (int)a->output_ragged_rank;
    sx_ragged_part *parts = NULL;
    int rank = 0;
    SX_TRY(read_parts(c, &parts, &rank, &out_types[n_splits]));
    const int outer = n_splits - rank; /* splits that are not in the parts: x's dimensions */
    int64_t rows = 1;
    for (int i = 0; i < outer; i++) {
        rows *= x->dims[i]; /* a part of x's size */
        out_types[i] = sx_type_of(a->Tsplits, rows + 1);
    }
    for (int i = 0; i < rank; i++) {
        int64_t n = 1;
        for (int64_t k = 0; k < sx_type_elems(x); k++) {
            n += parts[k].n[i] - 1;
        }
        out_types[outer + i] = sx_type_of(a->Tsplits, n);
    }
    return sx_require_made("the values", &out_types[n_splits]);
}

static sx_status ragged_from_variant_host(const sx_kernel_call *c)
{
    const sx_ragged_from_variant_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int n_splits = (int)a->output_ragged_rank;
    const int64_t n = sx_type_elems(x);
    const sx_host_tensor *y = &c->out[n_splits];
    sx_ragged_part *parts = NULL;
    int rank = 0;
    sx_type type;
    SX_TRY(read_parts(c, &parts, &rank, &type));
    const int outer = n_splits - rank;
    int64_t rows = 1;
    for (int i = 0; i + 1 < outer; i++) {
        rows *= x->dims[i];
        for (int64_t r = 0; r <= rows; r++) {
            c->out[i].i[r] = r * x->dims[i + 1];
        }
    }
    if (outer > 0) { /* the rows of each part */
        int64_t at = 0;
        c->out[outer - 1].i[0] = 0;
        for (int64_t k = 0; k < n; k++) {
            at += rank > 0 ? parts[k].n[0] - 1 : parts[k].values.dims[0];
            c->out[outer - 1].i[k + 1] = at;
        }
    }
    for (int i = 0; i < rank; i++) {
        int64_t *to = c->out[outer + i].i, base = 0;
        *to++ = 0;
        for (int64_t k = 0; k < n; k++) {
            for (int64_t r = 1; r < parts[k].n[i]; r++) {
                *to++ = base + sx_ragged_split(&parts[k], i, r);
            }
            base += sx_ragged_split(&parts[k], i, parts[k].n[i] - 1);
        }
    }
    int64_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t count = sx_type_elems(&parts[k].values);
        const uint8_t *from = parts[k].data;
        for (int64_t j = 0; j < count && type.dtype == SX_STRING; j++) {
            int64_t size = 0;
            if (from == NULL) {
                y->s[at + j] = (sx_bytes){"", 0};
                continue;
            }
            memcpy(&size, from, sizeof(size));
            SX_TRY(sx_string_copy(c, from + sizeof(size), (size_t)size, &y->s[at + j]));
            from += sizeof(size) + (size_t)size;
        }
        if (type.dtype != SX_STRING && count > 0 && from == NULL) {
            const size_t bytes = sx_carrier_bytes(type.dtype);
            memset(y->b + (size_t)at * bytes, 0, (size_t)count * bytes);
        } else if (type.dtype != SX_STRING && count > 0) {
            const sx_host_tensor part = {.type = sx_type_of(type.dtype, count),
                                         .data = y->b + (size_t)at * sx_carrier_bytes(type.dtype)};
            sx_host_load(&part, from);
        }
        at += count;
    }
    return SX_OK;
}

const sx_op_def sx_op_ragged_from_variant = {
    SX_OP_NAMED(ragged_from_variant),
    .n_in = 1,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_ragged_from_variant_attrs, ragged_from_variant_attrs),
    .infer = ragged_from_variant_infer,
    .host = ragged_from_variant_host,
    .host_types = ragged_from_variant_host_types,
    SX_FROM_TF({.op = "RaggedTensorFromVariant"}),
};
