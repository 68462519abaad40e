/* unique: the different elements of a vector, or slices along an axis, in the order in which they
 * come first.
 *
 *   x        any dtype: [n]; with `slices` of any rank but 0
 *   out_idx  int32 or int64
 *   slices   along `axis`, which counts from the end if it is negative; otherwise x is a vector
 *   returns  y, x with k elements along the axis; idx out_idx [n]: x[i] = y[idx[i]]; count out_idx
 *            [k]
 *
 * Errors   INVALID_ARGUMENT  ranks, dtypes, axis
 * Numbers  exact; 0 and -0 are equal, NaN differs from all
 * Source   TensorFlow Unique, UniqueWithCounts, UniqueV2, UniqueWithCountsV2 */
#ifdef SX_ATTRS
typedef struct sx_unique_attrs {
    sx_dtype out_idx;
    bool slices;
    int64_t axis;
} sx_unique_attrs;
#endif

#include <stdlib.h>

#include "base/map.h"
#include "graph/ops/host_ops.h"

static const sx_attr_def unique_attrs[] = {
    SX_ATTR_TF(sx_unique_attrs, out_idx, SX_ATTR_DTYPE, .tf_number = SX_I32),
    SX_ATTR(sx_unique_attrs, slices, SX_ATTR_BOOL),
    SX_ATTR(sx_unique_attrs, axis, SX_ATTR_INT),
};

static sx_status unique_infer(sx_infer_context *c)
{
    const sx_unique_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (attrs->out_idx != SX_I32 && attrs->out_idx != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "out_idx is %s, expected int32 or int64",
                        sx_dtype_name(attrs->out_idx));
    }
    const bool known = x->rank != SX_UNKNOWN_RANK;
    const bool fits = attrs->slices ? attrs->axis < x->rank && attrs->axis >= -x->rank
                                    : x->rank == 1 && attrs->axis == 0;
    if (sx_carrier_of(x->dtype) == SX_CARRIER_NONE || (known && !fits)) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected %s %lld", SX_TEXT(x),
                        attrs->slices ? "a tensor with axis" : "a vector, and axis",
                        (long long)attrs->axis);
    }
    const int64_t axis = attrs->axis + (attrs->axis < 0 ? x->rank : 0);
    c->outputs[0] = known           ? *x
                    : attrs->slices ? sx_unknown_shape(x->dtype)
                                    : sx_type_of(x->dtype, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(attrs->out_idx, known ? x->dims[axis] : SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(attrs->out_idx, SX_UNKNOWN_DIM);
    if (known) {
        c->outputs[0].dims[axis] = SX_UNKNOWN_DIM;
    }
    return SX_OK;
}

static int compare_elements(const sx_host_tensor *t, int64_t a, int64_t b)
{
#define ORDER(x, y) ((x) < (y) ? -1 : (x) > (y))
    switch (sx_carrier_of(t->type.dtype)) {
    case SX_CARRIER_F: /* NaNs after numbers, by place */
        return isnan(t->f[a]) || isnan(t->f[b]) ? (isnan(t->f[a]) && isnan(t->f[b]) ? ORDER(a, b)
                                                   : isnan(t->f[a])                 ? 1
                                                                                    : -1)
                                                : ORDER(t->f[a], t->f[b]);
    case SX_CARRIER_I:
        return ORDER(t->i[a], t->i[b]);
    case SX_CARRIER_U:
        return ORDER(t->u[a], t->u[b]);
    case SX_CARRIER_B:
        return ORDER(t->b[a], t->b[b]);
    default: {
        const sx_bytes *p = &t->s[a], *q = &t->s[b];
        const size_t common = SX_MIN(p->size, q->size);
        const int order = common > 0 ? memcmp(p->data, q->data, common) : 0;
        return order != 0 ? order : ORDER(p->size, q->size);
    }
    }
}

/* The slices of x: element `in` of part `out` of slice k is element (out * n + k) * inner + in. */
typedef struct slices {
    const sx_host_tensor *x;
    int64_t outer, n, inner;
} slices;

static slices slices_of(const sx_kernel_call *c)
{
    const sx_unique_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int axis = (int)(attrs->axis + (attrs->axis < 0 ? x->rank : 0));
    return (slices){.x = &c->in[0],
                    .outer = sx_dims_product(x, 0, axis),
                    .n = x->dims[axis],
                    .inner = sx_dims_product(x, axis + 1, x->rank)};
}

static int compare_slices(const slices *s, int64_t a, int64_t b)
{
    int order = 0;
    for (int64_t out = 0; out < s->outer && order == 0; out++) {
        const int64_t at_a = (out * s->n + a) * s->inner, at_b = (out * s->n + b) * s->inner;
        for (int64_t in = 0; in < s->inner && order == 0; in++) {
            order = compare_elements(s->x, at_a + in, at_b + in);
        }
    }
    return order;
}

static int compare_places(const void *a, const void *b, void *user)
{
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int order = compare_slices(user, i, k);
    return order != 0 ? order : ORDER(i, k);
}

/* A number that equal slices have in common, 0 if the slice has a NaN and equals none. */
static uint64_t hash_slice(const slices *s, int64_t k)
{
    uint64_t hash = 0;
#define MIX(word)                                               \
    {                                                           \
        hash = (hash ^ (uint64_t)(word)) * 0x9e3779b97f4a7c15u; \
        hash ^= hash >> 32;                                     \
    }
    for (int64_t out = 0; out < s->outer; out++) {
        const int64_t begin = (out * s->n + k) * s->inner;
        for (int64_t at = begin; at < begin + s->inner; at++) {
            switch (sx_carrier_of(s->x->type.dtype)) {
            case SX_CARRIER_F: {
                const double v = s->x->f[at] + 0.0; /* -0 becomes 0 */
                uint64_t bits;
                if (isnan(v)) {
                    return 0;
                }
                memcpy(&bits, &v, sizeof(bits));
                MIX(bits)
                break;
            }
            case SX_CARRIER_I:
            case SX_CARRIER_U:
                MIX(s->x->u[at])
                break;
            case SX_CARRIER_B:
                MIX(s->x->b[at])
                break;
            default:
                MIX(sx_hash64(s->x->s[at].data, s->x->s[at].size))
                break;
            }
        }
    }
    return hash | 1;
}

/* first[i] = the place of the first slice that equals slice i; how many are their own. By sorting:
 * whatever the numbers are, n log n steps. */
static sx_status find_by_order(const sx_kernel_call *c, const slices *s, int64_t *first,
                               int64_t *out_count)
{
    int64_t *order = sx_arena_array(c->arena, s->n + 1, int64_t);
    if (order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < s->n; k++) {
        order[k] = k;
    }
    qsort_r(order, (size_t)s->n, sizeof(*order), compare_places, (void *)(uintptr_t)s);
    *out_count = 0;
    for (int64_t k = 0; k < s->n; k++) {
        const bool same = k > 0 && compare_slices(s, order[k - 1], order[k]) == 0;
        first[order[k]] = same ? first[order[k - 1]] : order[k];
        *out_count += !same;
    }
    return SX_OK;
}

/* The same by a table of hashes, or by sorting where these were chosen to be in one another's way.
 */
static sx_status find_first(const sx_kernel_call *c, const slices *s, int64_t **out_first,
                            int64_t *out_count)
{
    typedef struct slot {
        uint64_t hash; /* 0 = free */
        int64_t first;
    } slot;
    enum { MOST_PROBES = 8 }; /* of a slice on average, at most half of the slots being taken */
    int64_t size = 16, probes = 0;
    while (size < 2 * s->n) {
        size *= 2;
    }
    slot *slots = sx_arena_array(c->arena, size, slot);
    int64_t *first = sx_arena_array(c->arena, s->n + 1, int64_t);
    if (slots == NULL || first == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    *out_first = first;
    *out_count = 0;
    for (int64_t k = 0; k < s->n; k++) {
        const uint64_t hash = hash_slice(s, k);
        int64_t at = (int64_t)(hash >> 1) & (size - 1);
        while (hash != 0 && slots[at].hash != 0 &&
               (slots[at].hash != hash || compare_slices(s, slots[at].first, k) != 0)) {
            at = (at + 1) & (size - 1);
            if (++probes > MOST_PROBES * s->n) {
                return find_by_order(c, s, first, out_count);
            }
        }
        const bool known = hash != 0 && slots[at].hash != 0;
        first[k] = known ? slots[at].first : k;
        *out_count += !known;
        if (hash != 0 && !known) {
            slots[at] = (slot){hash, k};
        }
    }
    return SX_OK;
}

static sx_status unique_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_unique_attrs *attrs = c->attrs;
    const slices s = slices_of(c);
    int64_t *first, count;
    SX_TRY(find_first(c, &s, &first, &count));
    out_types[0] = c->in[0].type;
    out_types[0].dims[attrs->axis + (attrs->axis < 0 ? out_types[0].rank : 0)] = count;
    out_types[1] = sx_type_of(attrs->out_idx, s.n);
    out_types[2] = sx_type_of(attrs->out_idx, count);
    return SX_OK;
}

static sx_status unique_host(const sx_kernel_call *c)
{
    const slices s = slices_of(c);
    const size_t bytes = sx_carrier_bytes(s.x->type.dtype) * (size_t)s.inner;
    int64_t *first, count, at = 0;
    SX_TRY(find_first(c, &s, &first, &count));
    memset(c->out[2].i, 0, (size_t)count * sizeof(int64_t));
    for (int64_t k = 0; k < s.n; k++) {
        for (int64_t out = 0; out < s.outer && first[k] == k; out++) {
            memcpy((char *)c->out[0].data + (size_t)(out * count + at) * bytes,
                   (const char *)s.x->data + (size_t)(out * s.n + k) * bytes, bytes);
        }
        c->out[1].i[k] = first[k] == k ? at++ : c->out[1].i[first[k]];
        c->out[2].i[c->out[1].i[k]]++;
    }
    return SX_OK;
}

/* Along an axis [1], or of a vector []. */
static sx_status unique_v2_from_tf(const sx_tf_node *n, void *out)
{
    sx_unique_attrs *attrs = out;
    const sx_tensor *axis;
    SX_TRY(sx_tf_read_value(n, 1, &axis));
    const int64_t count = sx_type_elems(&axis->type);
    if (count > 1) {
        return sx_error(SX_UNIMPLEMENTED, "%lld axes, expected one or none", (long long)count);
    }
    attrs->slices = count == 1;
    attrs->axis = count == 1 ? (int64_t)sx_host_load_element(axis->type.dtype, axis->data) : 0;
    return SX_OK;
}

static void unique_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_unique_attrs *attrs = op->attrs;
    const sx_tf_attr type = sx_tf_attr_type("T", (int)op->in_types[0].dtype);
    if (!attrs->slices) {
        sx_tf_same(w, op, &sx_op_unique, "UniqueWithCounts", sx_tf_attrs(type));
        return;
    }
    const sx_ints along = {1, {attrs->axis}};
    op->out[0] =
        sx_tf_add(w, "UniqueWithCountsV2", NULL, sx_tf_in(op->in[0], sx_tf_ints(w, "axis", &along)),
                  sx_tf_attrs(type, sx_tf_attr_type("Taxis", SX_I32),
                              sx_tf_attr_type("out_idx", (int)attrs->out_idx)));
    op->out[1] = sx_tf_output(op->out[0], 1);
    op->out[2] = sx_tf_output(op->out[0], 2);
}

static const double repeated[] = {3, 1, 3, 0, -0.0, 1, 7};
static const char *const words[] = {"b", "", "a", NULL};
#define INDICES(dtype)                \
    .attrs = &(const sx_unique_attrs) \
    {                                 \
        .out_idx = (dtype)            \
    }
static const sx_op_sample unique_samples[] = {
    {.name = "floats",
     .inputs = {SX_SAMPLE_LIST(SX_F32, repeated, 7)},
     .n_inputs = 1,
     INDICES(SX_I32)},
    {.name = "integers",
     .inputs = {SX_SAMPLE_LIST(SX_I64, repeated, 14)},
     .n_inputs = 1,
     INDICES(SX_I64)},
    {.name = "strings", .inputs = {SX_SAMPLE_TEXTS(words, 7)}, .n_inputs = 1, INDICES(SX_I64)},
    {.name = "rows",
     .inputs = {SX_SAMPLE_LIST(SX_I32, repeated, 14, 2)},
     .n_inputs = 1,
     .attrs = &(const sx_unique_attrs){.out_idx = SX_I32, .slices = true}},
    {.name = "columns_of_strings",
     .inputs = {SX_SAMPLE_TEXTS(words, 2, 5, 1)},
     .n_inputs = 1,
     .attrs = &(const sx_unique_attrs){.out_idx = SX_I64, .slices = true, .axis = -2}},
};

const sx_op_def sx_op_unique = {
    SX_OP_NAMED(unique),
    .n_in = 1,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD,
    SX_OP_ATTRS(sx_unique_attrs, unique_attrs),
    .infer = unique_infer,
    .host = unique_host,
    .host_types = unique_host_types,
    .to_tf = unique_to_tf,
    SX_FROM_TF({.op = "UniqueWithCounts"}, {.op = "Unique"},
               {.op = "UniqueV2", .operands = {{1, ""}}, .attrs = unique_v2_from_tf},
               {.op = "UniqueWithCountsV2", .operands = {{1, ""}}, .attrs = unique_v2_from_tf}),
    SX_OP_SAMPLES(unique_samples),
};
