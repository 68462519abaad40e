/* See attr_operands.h. */
#include "graph/attr_operands.h"

#include <string.h>

#include "base/checked.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"

/* The operand's integers; false if there are none, or too many. */
static bool read_counts(const sx_known_operand *o, sx_count *out, int most, int *out_n)
{
    const int64_t n = sx_type_elems(o->type);
    if (n < 0 || n > most || o->type->rank > 1 || !sx_dtype_is_integer(o->type->dtype)) {
        return false;
    }
    int64_t carried[SX_MAX_RANK] = {0};
    if (o->value != NULL) {
        sx_host_load(&(sx_host_tensor){.type = *o->type, .i = carried}, o->value->data);
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = o->value != NULL ? (sx_count){0, carried[i]} : o->counts[i];
    }
    *out_n = (int)n;
    return true;
}

/* Elements of a shape as c·N^degree; false if unknown or too large. */
static bool product_of(const int64_t *dims, int n, int skip, int64_t *out_count, int *out_degree)
{
    *out_count = 1;
    *out_degree = 0;
    for (int i = 0; i < n; i++) {
        if (i == skip) {
            continue;
        }
        if (dims[i] < 0 && !sx_dim_is_batch(dims[i])) {
            return false;
        }
        *out_degree += dims[i] < 0;
        if (!sx_mul_i64(*out_count, dims[i] < 0 ? -dims[i] : dims[i], out_count)) {
            return false;
        }
    }
    return true;
}

/* `rest` is the place of -1 in reshape's shape. */
static sx_status fill_rest(const sx_type *x, sx_ints *shape, int rest, bool *out_resolved)
{
    int64_t all, others;
    int all_degree, other_degree;
    char text[SX_TYPE_TEXT];
    if (x->rank == SX_UNKNOWN_RANK || !product_of(x->dims, x->rank, -1, &all, &all_degree) ||
        !product_of(shape->v, shape->n, rest, &others, &other_degree)) {
        *out_resolved = false;
        return SX_OK;
    }
    const int degree = all_degree - other_degree;
    if (degree < 0 || degree > 1) {
        *out_resolved = false;
        return SX_OK;
    }
    if (others > 0 && degree == 1 && all % others != 0) { /* for some sizes of the batch it is */
        *out_resolved = false;
        return SX_OK;
    }
    if (others == 0 || all % others != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "cannot reshape %s: %lld elements are not a multiple of %lld",
                        sx_type_format(x, text, sizeof(text)), (long long)all, (long long)others);
    }
    shape->v[rest] = degree == 1 ? -(all / others) : all / others;
    return SX_OK;
}

static sx_status wrong(const sx_op_def *op, int row, const sx_known_operand *o)
{
    char text[SX_TYPE_TEXT];
    return sx_error(SX_INVALID_ARGUMENT, "attribute %s of %s cannot be %s", op->attrs[row].name,
                    op->name, sx_type_format(o->type, text, sizeof(text)));
}

static sx_status set_ints(const sx_op_def *op, int row, const void *attrs, const sx_type *inputs,
                          int n_inputs, const sx_known_operand *o, sx_ints *out, bool *out_resolved)
{
    sx_count counts[SX_MAX_RANK];
    sx_ints ints = {0};
    const sx_attr_meaning means = op->attrs[row].means;
    int rest = -1;
    if (!read_counts(o, counts, SX_MAX_RANK, &ints.n)) {
        if (o->type->rank == 1 && o->type->dims[0] > SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "attribute %s of %s has %lld numbers, one for each dimension; at most "
                            "%d dimensions are supported",
                            op->attrs[row].name, op->name, (long long)o->type->dims[0],
                            SX_MAX_RANK);
        }
        return wrong(op, row, o);
    }
    for (int i = 0; i < ints.n; i++) {
        const sx_count c = counts[i];
        const bool is_dim = op->attrs[row].kind == SX_ATTR_SHAPE;
        if (c.n != 0 && (!is_dim || c.k != 0 || c.n < 0)) {
            *out_resolved = false;
            return SX_OK;
        }
        ints.v[i] = c.n != 0 ? -c.n : c.k;
        if (c.n == 0 && is_dim && c.k < 0) {
            const bool one_rest = means == SX_MEANS_SHAPE_REST && rest < 0;
            if (c.k != -1 || !(one_rest || means == SX_MEANS_TO_THE_END)) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "attribute %s of %s has the invalid value %lld at index %d",
                                op->attrs[row].name, op->name, (long long)c.k, i);
            }
            rest = i;
        }
        if (means == SX_MEANS_TO_THE_END && c.n == 0 && c.k == -1) {
            const sx_slice_attrs *slice = attrs; /* begin has been set already, if it is known */
            if (slice->begin.n == 0 || inputs[0].rank == SX_UNKNOWN_RANK) {
                *out_resolved = false;
                return SX_OK;
            }
            if (n_inputs < 1 || i >= inputs[0].rank || i >= slice->begin.n) {
                return wrong(op, row, o);
            }
            const int64_t dim = inputs[0].dims[i];
            if (dim < 0 && (slice->begin.v[i] != 0 || !sx_dim_is_batch(dim))) {
                *out_resolved = false;
                return SX_OK;
            }
            ints.v[i] = dim < 0 ? dim : dim - slice->begin.v[i];
        }
        if ((means == SX_MEANS_AXES || means == SX_MEANS_ORDER) && n_inputs > 0) {
            if (ints.v[i] < 0 && inputs[0].rank == SX_UNKNOWN_RANK) {
                *out_resolved = false;
                return SX_OK;
            }
            ints.v[i] += ints.v[i] < 0 ? inputs[0].rank : 0;
        }
    }
    if (means == SX_MEANS_SHAPE_REST && rest >= 0) {
        SX_TRY(fill_rest(&inputs[0], &ints, rest, out_resolved));
    }
    for (int i = 1; means == SX_MEANS_AXES && i < ints.n; i++) { /* few: insertion sort */
        for (int k = i; k > 0 && ints.v[k - 1] > ints.v[k]; k--) {
            const int64_t v = ints.v[k];
            ints.v[k] = ints.v[k - 1];
            ints.v[k - 1] = v;
        }
    }
    *out = ints;
    return SX_OK;
}

bool sx_attr_holds(const sx_tensor *number)
{
    uint64_t back = 0;
    sx_host_store_element(number->type.dtype,
                          sx_host_load_element(number->type.dtype, number->data), &back);
    return sx_dtype_is_float(number->type.dtype) ||
           memcmp(&back, number->data, sx_dtype_bytes(number->type.dtype)) == 0;
}

sx_status sx_attr_from_operand(const sx_op_def *op, int row, void *attrs, const sx_type *inputs,
                               int n_inputs, const sx_known_operand *o, bool *out_resolved)
{
    void *field = (char *)attrs + op->attrs[row].offset;
    sx_count count;
    int n = 0;
    *out_resolved = true;
    switch (op->attrs[row].kind) {
    case SX_ATTR_INTS:
    case SX_ATTR_SHAPE:
        return set_ints(op, row, attrs, inputs, n_inputs, o, field, out_resolved);
    case SX_ATTR_INT:
        if (!read_counts(o, &count, 1, &n) || n != 1) {
            return wrong(op, row, o);
        }
        if (count.n != 0) {
            *out_resolved = false;
            return SX_OK;
        }
        if (op->attrs[row].means == SX_MEANS_AXIS && count.k < 0 && n_inputs > 0) {
            if (inputs[0].rank == SX_UNKNOWN_RANK) {
                *out_resolved = false;
                return SX_OK;
            }
            count.k += inputs[0].rank;
        }
        *(int64_t *)field = count.k;
        return SX_OK;
    case SX_ATTR_FLOAT:
    case SX_ATTR_BOOL:
        if (o->value == NULL || sx_type_elems(o->type) != 1 || o->type->dtype == SX_STRING) {
            *out_resolved = o->value != NULL;
            return o->value == NULL ? SX_OK : wrong(op, row, o);
        }
        if (op->attrs[row].kind == SX_ATTR_BOOL) {
            *(bool *)field = sx_host_load_element(o->type->dtype, o->value->data) != 0;
            return SX_OK;
        }
        if (!sx_attr_holds(o->value)) {
            return sx_error(SX_UNIMPLEMENTED,
                            "attribute %s of %s is an integer that float64 does not hold exactly",
                            op->attrs[row].name, op->name);
        }
        *(double *)field = sx_host_load_element(o->type->dtype, o->value->data);
        return SX_OK;
    default:
        return wrong(op, row, o);
    }
}

void sx_attrs_put_batch(const sx_op_def *op, void *attrs, int64_t batch)
{
    for (int i = 0; i < op->n_attrs; i++) {
        sx_ints *list = (void *)((char *)attrs + op->attrs[i].offset);
        for (int k = 0; op->attrs[i].kind == SX_ATTR_SHAPE && k < list->n; k++) {
            if (sx_dim_is_batch(list->v[k]) && !sx_mul_i64(list->v[k], -batch, &list->v[k])) {
                list->v[k] = SX_UNKNOWN_DIM; /* as sx_type_with_batch() */
            }
        }
    }
}
