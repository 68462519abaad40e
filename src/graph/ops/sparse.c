/* See sparse.h. */
#include "graph/ops/sparse.h"

#include <stdlib.h>

sx_status sx_infer_sparse(const sx_infer_context *c, int i, int v, int s)
{
    SX_TRY(sx_require_maybe("indices", &c->inputs[i], SX_I64, 2, "[n, rank]"));
    SX_TRY(sx_require_maybe("shape", &c->inputs[s], SX_I64, 1, "[rank]"));
    const sx_type *values = &c->inputs[v];
    if (sx_carrier_of(values->dtype) == SX_CARRIER_NONE ||
        (values->rank != SX_UNKNOWN_RANK && values->rank != 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected [n]", SX_TEXT(values));
    }
    return SX_OK;
}

sx_status sx_read_sparse(const sx_kernel_call *c, int i, int v, int s, sx_sparse *out)
{
    const sx_sparse t = {.values = &c->in[v],
                         .indices = c->in[i].i,
                         .shape = c->in[s].i,
                         .n = c->in[i].type.dims[0],
                         .rank = sx_type_elems(&c->in[s].type)};
    bool sound = c->in[i].type.dims[1] == t.rank && sx_type_elems(&c->in[v].type) == t.n;
    if (!sound) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "indices are %s, values %s, and shape %s: they do not match",
                        SX_TEXT(&c->in[i].type), SX_TEXT(&c->in[v].type), SX_TEXT(&c->in[s].type));
    }
    for (int64_t d = 0; d < t.rank; d++) {
        if (t.shape[d] < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %lld of shape is %lld", (long long)d,
                            (long long)t.shape[d]);
        }
    }
    for (int64_t k = 0; k < t.n * t.rank; k++) {
        if (t.indices[k] < 0 || t.indices[k] >= t.shape[k % t.rank]) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "index %lld of value %lld is %lld, outside of dimension %lld",
                            (long long)(k % t.rank), (long long)(k / t.rank),
                            (long long)t.indices[k], (long long)t.shape[k % t.rank]);
        }
    }
    *out = t;
    return SX_OK;
}

int sx_compare_indices(const int64_t *a, const int64_t *b, int64_t rank)
{
    for (int64_t d = 0; d < rank; d++) {
        if (a[d] != b[d]) {
            return a[d] < b[d] ? -1 : 1;
        }
    }
    return 0;
}

typedef struct rows {
    const int64_t *indices;
    int64_t rank;
} rows;

static int by_indices(const void *a, const void *b, void *user)
{
    const rows *r = user;
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int order =
        sx_compare_indices(r->indices + i * r->rank, r->indices + k * r->rank, r->rank);
    return order != 0 ? order : i < k ? -1 : i > k;
}

int64_t *sx_order_indices(const sx_kernel_call *c, const int64_t *indices, int64_t n, int64_t rank)
{
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    rows r = {indices, rank};
    for (int64_t k = 0; order != NULL && k < n; k++) {
        order[k] = k;
    }
    if (order != NULL) {
        qsort_r(order, (size_t)n, sizeof(*order), by_indices, &r);
    }
    return order;
}

void sx_copy_element(const sx_host_tensor *out, int64_t to, const sx_host_tensor *in, int64_t from)
{
    const size_t size = sx_carrier_bytes(out->type.dtype);
    memcpy(out->b + (size_t)to * size, in->b + (size_t)from * size, size);
}

/* ---- Gradients ---- */

sx_value sx_flat_places(sx_builder *b, sx_value indices, sx_value shape)
{
    const sx_cumulative_attrs behind = {.exclusive = true, .reverse = true};
    const sx_value steps = sx_build_op(b, cumprod, &behind, shape);
    return sx_build_op(b, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {1}}}),
                       sx_build_op(b, mul, NULL, indices, steps));
}

sx_value sx_take_places(sx_builder *b, sx_value dy, sx_value places, sx_value at)
{
    const int64_t m = sx_type_of_value(b, places).dims[0], n = sx_type_of_value(b, at).dims[0];
    const sx_gather_attrs first = {.axis = 0};
    const sx_value k = sx_reshape_dims(
        b,
        sx_build_op(b, search_sorted, (&(sx_search_sorted_attrs){.out_type = SX_I64}),
                    sx_reshape_dims(b, places, 2, (const int64_t[]){1, m}),
                    sx_reshape_dims(b, at, 2, (const int64_t[]){1, n})),
        1, &n);
    const sx_value there =
        sx_build_op(b, equal, NULL, sx_build_op(b, gather, &first, places, k), at);
    const sx_value inside = sx_build_op(b, less, NULL, k, sx_scalar(b, SX_I64, (double)m));
    return sx_build_op(b, select, NULL, sx_build_op(b, logical_and, NULL, there, inside),
                       sx_build_op(b, gather, &first, dy, k), sx_scalar_like(b, dy, 0));
}
