/* list_diff: the elements of a vector that another has not, and their places.
 *
 *   x, y      vectors of one dtype
 *   out_idx   int32 or int64
 *   returns   values [k], places of out_idx [k]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks
 * Numbers  exact
 * Source   TensorFlow ListDiff */
#ifdef SX_ATTRS
typedef struct sx_list_diff_attrs {
    sx_dtype out_idx;
} sx_list_diff_attrs;
#endif

#include <stdlib.h>

#include "graph/ops/host_ops.h"

static const sx_attr_def list_diff_attrs[] = {
    SX_ATTR_TF(sx_list_diff_attrs, out_idx, SX_ATTR_DTYPE, .tf_number = SX_I32)};

static sx_status list_diff_infer(sx_infer_context *c)
{
    const sx_list_diff_attrs *attrs = c->attrs;
    const sx_dtype dtype = c->inputs[0].dtype;
    SX_TRY(sx_require_maybe("x", &c->inputs[0], dtype, 1, "[n]"));
    SX_TRY(sx_require_maybe("y", &c->inputs[1], dtype, 1, "[m]"));
    if (sx_carrier_of(dtype) == SX_CARRIER_NONE ||
        (attrs->out_idx != SX_I32 && attrs->out_idx != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, out_idx %s", SX_TEXT(&c->inputs[0]),
                        sx_dtype_name(attrs->out_idx));
    }
    c->outputs[0] = sx_type_of(dtype, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(attrs->out_idx, SX_UNKNOWN_DIM);
    return SX_OK;
}

/* An element of `b` for bsearch: NaN equals nothing, so it is never looked for. */
static int compare(const void *a, const void *b)
{
    const sx_bytes *x = a, *y = b;
    const size_t common = SX_MIN(x->size, y->size);
    const int order = common > 0 ? memcmp(x->data, y->data, common) : 0;
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* The elements as bytes; of floats, -0 as 0. */
static sx_status elements(const sx_kernel_call *c, const sx_host_tensor *t, sx_bytes **out)
{
    const int64_t n = sx_type_elems(&t->type);
    const size_t size = sx_carrier_bytes(t->type.dtype);
    *out = sx_arena_array(c->arena, n + 1, sx_bytes);
    if (*out == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        if (t->type.dtype == SX_STRING) {
            (*out)[k] = t->s[k];
            continue;
        }
        if (sx_carrier_of(t->type.dtype) == SX_CARRIER_F && t->f[k] == 0) {
            t->f[k] = 0;
        }
        (*out)[k] = (sx_bytes){t->b + (size_t)k * size, size};
    }
    return SX_OK;
}

/* kept[k]: whether element k of x stays. */
static sx_status find(const sx_kernel_call *c, bool **out_kept, int64_t *out_count)
{
    const int64_t n = sx_type_elems(&c->in[0].type), m = sx_type_elems(&c->in[1].type);
    sx_bytes *x, *y;
    SX_TRY(elements(c, &c->in[0], &x));
    SX_TRY(elements(c, &c->in[1], &y));
    *out_kept = sx_arena_array(c->arena, n + 1, bool);
    if (*out_kept == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    qsort(y, (size_t)m, sizeof(*y), compare);
    *out_count = 0;
    for (int64_t k = 0; k < n; k++) {
        const bool nan = sx_carrier_of(c->in[0].type.dtype) == SX_CARRIER_F && isnan(c->in[0].f[k]);
        (*out_kept)[k] = nan || bsearch(&x[k], y, (size_t)m, sizeof(*y), compare) == NULL;
        *out_count += (*out_kept)[k];
    }
    return SX_OK;
}

static sx_status list_diff_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_list_diff_attrs *attrs = c->attrs;
    bool *kept = NULL;
    int64_t n = 0;
    SX_TRY(find(c, &kept, &n));
    out_types[0] = sx_type_of(c->in[0].type.dtype, n);
    out_types[1] = sx_type_of(attrs->out_idx, n);
    return SX_OK;
}

static sx_status list_diff_host(const sx_kernel_call *c)
{
    const size_t size = sx_carrier_bytes(c->in[0].type.dtype);
    bool *kept = NULL;
    int64_t n = 0, at = 0;
    SX_TRY(find(c, &kept, &n));
    for (int64_t k = 0; at < n; k++) {
        if (kept[k]) {
            memcpy(c->out[0].b + (size_t)at * size, c->in[0].b + (size_t)k * size, size);
            c->out[1].i[at++] = k;
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_list_diff = {
    SX_OP_NAMED(list_diff),
    .n_in = 2,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_list_diff_attrs, list_diff_attrs),
    .infer = list_diff_infer,
    .host = list_diff_host,
    .host_types = list_diff_host_types,
    SX_FROM_TF({.op = "ListDiff"}),
};
