/* Operations that move elements and compute nothing: constant, iota, broadcast_in_dim, reshape,
 * transpose, reverse, slice, pad, concatenate. Those whose source is a linear walk over the operand
 * are one plan: for each dimension of the result, how far the operand's index goes a step. */
#include <string.h>

#include "base/checked.h"
#include "pjrt_ref/ops.h"

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

/* ---- Moving bytes ---- */

static void copy_element(ref_array *to, int64_t i, const ref_array *from, int64_t k)
{
    size_t size = sx_dtype_bytes(to->type.dtype);
    memcpy((char *)to->data + (size_t)i * size, (const char *)from->data + (size_t)k * size, size);
}

/* Element i of the result is element `start` + index(i) · steps of the operand. */
typedef struct walk {
    int64_t start, steps[SX_MAX_RANK];
} walk;

static sx_status keep_walk(ref_program *p, const walk *w, void **out_plan)
{
    *out_plan = sx_arena_memdup(&p->arena, w, sizeof(*w));
    return *out_plan == NULL ? no_memory() : SX_OK;
}

static sx_status run_walk(ref_run *r, const ref_op *op)
{
    ref_array *out;
    const walk *w = op->plan;
    const ref_array *in = ref_in(r, op, 0);
    int64_t index[SX_MAX_RANK] = {0}, i = 0;
    SX_TRY(ref_out(r, op, 0, &out));
    if (sx_type_elems(&out->type) == 0) {
        return SX_OK;
    }
    sx_type rows = out->type;
    int64_t width = rows.rank > 0 ? rows.dims[rows.rank - 1] : 1;
    int64_t step = rows.rank > 0 ? w->steps[--rows.rank] : 0;
    do {
        int64_t from = w->start + ref_dot(index, w->steps, rows.rank);
        for (int64_t k = 0; k < width; k++) {
            copy_element(out, i++, in, from + k * step);
        }
    } while (ref_next_index(&rows, index));
    return SX_OK;
}

/* ---- Checks ---- */

static sx_status check_broadcast(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0), *out = ref_out_type(p, op, 0);
    const int64_t *map;
    int64_t strides[SX_MAX_RANK];
    walk w = {0};
    SX_TRY(ref_attr_ints(op, "broadcast_dimensions", in->rank, &map, NULL));
    SX_TRY(ref_check_axes("broadcast_dimensions", map, in->rank, out->rank));
    ref_strides(in, strides);
    for (int i = 0; i < in->rank; i++) {
        if (in->dims[i] != 1 && in->dims[i] != out->dims[map[i]]) {
            return ref_wrong("cannot broadcast dimension %d of size %lld to %lld", i,
                             (long long)in->dims[i], (long long)out->dims[map[i]]);
        }
        w.steps[map[i]] = in->dims[i] == 1 ? 0 : strides[i];
    }
    return in->dtype != out->dtype ? ref_wrong("keeps the element type")
                                   : keep_walk(p, &w, out_plan);
}

static sx_status check_reshape(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0), *out = ref_out_type(p, op, 0);
    (void)out_plan;
    return in->dtype == out->dtype && sx_type_elems(in) == sx_type_elems(out)
               ? SX_OK
               : ref_wrong("keeps the element type and the number of elements");
}

static sx_status run_reshape(ref_run *r, const ref_op *op)
{
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    memcpy(out->data, ref_in(r, op, 0)->data, (size_t)out->bytes);
    return SX_OK;
}

static sx_status check_transpose(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0);
    const int64_t *perm;
    sx_type type = *in;
    int64_t strides[SX_MAX_RANK];
    walk w = {0};
    SX_TRY(ref_attr_ints(op, "permutation", in->rank, &perm, NULL));
    SX_TRY(ref_check_axes("permutation", perm, in->rank, in->rank));
    ref_strides(in, strides);
    for (int i = 0; i < in->rank; i++) {
        type.dims[i] = in->dims[perm[i]];
        w.steps[i] = strides[perm[i]];
    }
    SX_TRY(ref_expect(p, op, 0, &type));
    return keep_walk(p, &w, out_plan);
}

static sx_status check_reverse(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0);
    const int64_t *axes;
    int n = 0;
    walk w = {0};
    SX_TRY(ref_attr_ints(op, "dimensions", REF_ANY, &axes, &n));
    SX_TRY(ref_check_axes("dimensions", axes, n, in->rank));
    SX_TRY(ref_expect(p, op, 0, in));
    ref_strides(in, w.steps);
    for (int i = 0; i < n; i++) {
        w.start += (in->dims[axes[i]] - 1) * w.steps[axes[i]];
        w.steps[axes[i]] *= -1;
    }
    return keep_walk(p, &w, out_plan);
}

static sx_status check_slice(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0);
    const int64_t *begin, *limit, *step;
    sx_type type = *in;
    walk w = {0};
    SX_TRY(ref_attr_ints(op, "start_indices", in->rank, &begin, NULL));
    SX_TRY(ref_attr_ints(op, "limit_indices", in->rank, &limit, NULL));
    SX_TRY(ref_attr_ints(op, "strides", in->rank, &step, NULL));
    ref_strides(in, w.steps);
    for (int i = 0; i < in->rank; i++) {
        if (begin[i] < 0 || begin[i] > limit[i] || limit[i] > in->dims[i] || step[i] < 1 ||
            step[i] > REF_MAX_ELEMS) {
            return ref_wrong("cannot take %lld to %lld by %lld of dimension %d, which has %lld",
                             (long long)begin[i], (long long)limit[i], (long long)step[i], i,
                             (long long)in->dims[i]);
        }
        type.dims[i] = (limit[i] - begin[i] + step[i] - 1) / step[i];
        w.start += begin[i] * w.steps[i];
        w.steps[i] = type.dims[i] > 1 ? w.steps[i] * step[i] : 0;
    }
    SX_TRY(ref_expect(p, op, 0, &type));
    return keep_walk(p, &w, out_plan);
}

/* ---- constant, iota ---- */

static sx_status check_constant(ref_program *p, const ref_op *op, void **out_plan)
{
    const ref_attr *value = ref_attr_find(op->attrs, op->n_attrs, "value");
    if (value == NULL || value->kind != REF_DENSE) {
        return ref_wrong("requires attribute 'value'");
    }
    *out_plan = (void *)(uintptr_t)value;
    return ref_expect(p, op, 0, &value->type);
}

static sx_status run_constant(ref_run *r, const ref_op *op)
{
    const ref_attr *value = op->plan;
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    int64_t n = sx_type_elems(&out->type);
    size_t size = sx_dtype_bytes(out->type.dtype);
    if (!value->is_splat && n > 0) {
        memcpy(out->data, value->data, (size_t)out->bytes);
    }
    for (int64_t i = 0; i < n && value->is_splat; i++) {
        memcpy((char *)out->data + (size_t)i * size, value->data, size);
    }
    return SX_OK;
}

static sx_status check_iota(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *out = ref_out_type(p, op, 0);
    int64_t axis;
    SX_TRY(ref_attr_int(op, "iota_dimension", 0, out->rank - 1, &axis));
    walk w = {.start = axis};
    return out->dtype == SX_BOOL ? ref_wrong("does not make i1") : keep_walk(p, &w, out_plan);
}

static sx_status run_iota(ref_run *r, const ref_op *op)
{
    ref_array *out;
    int64_t index[SX_MAX_RANK] = {0}, i = 0, axis = ((const walk *)op->plan)->start;
    SX_TRY(ref_out(r, op, 0, &out));
    bool is_float = ref_class_of(out->type.dtype) == REF_FLOAT;
    if (sx_type_elems(&out->type) == 0) {
        return SX_OK;
    }
    do {
        ref_put(out, i++,
                is_float ? (ref_lane){.f = (double)index[axis]} : (ref_lane){.s = index[axis]});
    } while (ref_next_index(&out->type, index));
    return SX_OK;
}

/* ---- pad, concatenate: the operand is scattered into the result ---- */

static bool pad_dim(int64_t low, int64_t high, int64_t interior, int64_t *dim)
{
    bool sane = low > -REF_MAX_ELEMS && low < REF_MAX_ELEMS && high > -REF_MAX_ELEMS &&
                high < REF_MAX_ELEMS && interior >= 0 && interior < (1 << 20);
    int64_t between = 0;
    if (!sane || (*dim > 1 && !sx_mul_i64(*dim - 1, interior, &between))) {
        return false;
    }
    *dim += between + low + high;
    return *dim >= 0;
}

typedef struct pad_plan {
    const int64_t *low, *interior;
} pad_plan;

static sx_status check_pad(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0), *value = ref_in_type(p, op, 1);
    sx_type type = *in;
    const int64_t *high;
    pad_plan *plan = sx_arena_new(&p->arena, pad_plan);
    if (plan == NULL) {
        return no_memory();
    }
    SX_TRY(ref_attr_ints(op, "edge_padding_low", in->rank, &plan->low, NULL));
    SX_TRY(ref_attr_ints(op, "edge_padding_high", in->rank, &high, NULL));
    SX_TRY(ref_attr_ints(op, "interior_padding", in->rank, &plan->interior, NULL));
    for (int i = 0; i < in->rank; i++) {
        if (!pad_dim(plan->low[i], high[i], plan->interior[i], &type.dims[i])) {
            return ref_wrong("cannot pad dimension %d by %lld, %lld, %lld", i,
                             (long long)plan->low[i], (long long)high[i],
                             (long long)plan->interior[i]);
        }
    }
    *out_plan = plan;
    return value->rank != 0 || value->dtype != in->dtype
               ? ref_wrong("pads with a scalar of the operand's element type")
               : ref_expect(p, op, 0, &type);
}

static sx_status run_pad(ref_run *r, const ref_op *op)
{
    const pad_plan *plan = op->plan;
    const ref_array *in = ref_in(r, op, 0), *value = ref_in(r, op, 1);
    ref_array *out;
    int64_t index[SX_MAX_RANK] = {0}, to[SX_MAX_RANK], strides[SX_MAX_RANK], k = 0;
    SX_TRY(ref_out(r, op, 0, &out));
    int64_t n = sx_type_elems(&out->type);
    for (int64_t i = 0; i < n; i++) {
        copy_element(out, i, value, 0);
    }
    if (sx_type_elems(&in->type) == 0) {
        return SX_OK;
    }
    ref_strides(&out->type, strides);
    do {
        bool inside = true;
        for (int i = 0; i < in->type.rank; i++) {
            to[i] = plan->low[i] + index[i] * (1 + plan->interior[i]);
            inside = inside && to[i] >= 0 && to[i] < out->type.dims[i];
        }
        if (inside) {
            copy_element(out, ref_dot(to, strides, in->type.rank), in, k);
        }
        k++;
    } while (ref_next_index(&in->type, index));
    return SX_OK;
}

static sx_status check_concatenate(ref_program *p, const ref_op *op, void **out_plan)
{
    int64_t axis;
    if (op->n_in == 0) {
        return ref_wrong("joins at least one operand");
    }
    sx_type type = *ref_in_type(p, op, 0);
    SX_TRY(ref_attr_int(op, "dimension", 0, type.rank - 1, &axis));
    type.dims[axis] = 0;
    for (int i = 0; i < op->n_in; i++) {
        sx_type part = *ref_in_type(p, op, i);
        int64_t size = part.dims[axis];
        if (part.rank == type.rank) {
            part.dims[axis] = type.dims[axis];
        }
        if (!sx_type_equal(&part, &type)) {
            return ref_wrong("operand %d has another shape", i);
        }
        type.dims[axis] += size;
    }
    walk w = {.start = axis};
    SX_TRY(ref_expect(p, op, 0, &type));
    return keep_walk(p, &w, out_plan);
}

/* Rows of bytes: each operand gives its part of every outer index. */
static sx_status run_concatenate(ref_run *r, const ref_op *op)
{
    int64_t axis = ((const walk *)op->plan)->start, outer = 1, at = 0;
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    for (int i = 0; i < axis; i++) {
        outer *= out->type.dims[i];
    }
    for (int i = 0; i < op->n_in && outer > 0; i++) {
        const ref_array *in = ref_in(r, op, i);
        int64_t row = in->bytes / outer, stride = out->bytes / outer;
        for (int64_t k = 0; k < outer; k++) {
            memcpy((char *)out->data + k * stride + at, (const char *)in->data + k * row,
                   (size_t)row);
        }
        at += row;
    }
    return SX_OK;
}

const ref_row ref_shape_rows[] = {
    {.name = "constant", .n_out = 1, .check = check_constant, .run = run_constant},
    {.name = "iota", .n_out = 1, .check = check_iota, .run = run_iota},
    {.name = "broadcast_in_dim", .n_in = 1, .n_out = 1, .check = check_broadcast, .run = run_walk},
    {.name = "reshape", .n_in = 1, .n_out = 1, .check = check_reshape, .run = run_reshape},
    {.name = "transpose", .n_in = 1, .n_out = 1, .check = check_transpose, .run = run_walk},
    {.name = "reverse", .n_in = 1, .n_out = 1, .check = check_reverse, .run = run_walk},
    {.name = "slice", .n_in = 1, .n_out = 1, .check = check_slice, .run = run_walk},
    {.name = "pad", .n_in = 2, .n_out = 1, .check = check_pad, .run = run_pad},
    {.name = "concatenate",
     .n_in = REF_ANY,
     .n_out = 1,
     .check = check_concatenate,
     .run = run_concatenate},
    {.name = NULL},
};
