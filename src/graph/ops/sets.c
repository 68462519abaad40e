/* See sets.h. */
#include "graph/ops/sets.h"

#include <stdlib.h>

sx_status sx_infer_sets(const sx_infer_context *c, int at, bool sparse, sx_dtype dtype,
                        int64_t *out_rank)
{
    const sx_type *values = &c->inputs[at + sparse];
    const sx_dtype d = values->dtype;
    if (sparse) {
        SX_TRY(sx_infer_sparse(c, at, at + 1, at + 2));
    }
    *out_rank = sparse                            ? sx_vector_size(&c->inputs[at + 2])
                : values->rank == SX_UNKNOWN_RANK ? SX_UNKNOWN_DIM
                                                  : values->rank;
    const bool fits = d == SX_I8 || d == SX_I16 || d == SX_I32 || d == SX_I64 || d == SX_U8 ||
                      d == SX_U16 || d == SX_STRING;
    if (!fits || (dtype != SX_DTYPE_NONE && d != dtype) || *out_rank == 0 || *out_rank == 1 ||
        *out_rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a set is %s of rank %lld, expected %s of rank 2 or more", SX_TEXT(values),
                        (long long)*out_rank,
                        dtype != SX_DTYPE_NONE ? sx_dtype_name(dtype) : "integers or strings");
    }
    return SX_OK;
}

static int compare_values(const sx_member *a, const sx_member *b)
{
    if (a->values->type.dtype != SX_STRING) {
        const int64_t x = a->values->i[a->at], y = b->values->i[b->at];
        return (x > y) - (x < y);
    }
    const sx_bytes *x = &a->values->s[a->at], *y = &b->values->s[b->at];
    const size_t shared = SX_MIN(x->size, y->size);
    const int order = shared > 0 ? memcmp(x->data, y->data, shared) : 0;
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

int sx_compare_members(const sx_member *a, const sx_member *b)
{
    return a->group != b->group ? (a->group > b->group) - (a->group < b->group)
                                : compare_values(a, b);
}

static int compare(const void *a, const void *b)
{
    return sx_compare_members(a, b);
}

sx_status sx_read_sets(const sx_kernel_call *c, int at, bool sparse, bool ordered, sx_sets *out)
{
    const sx_host_tensor *values = &c->in[at + sparse];
    sx_sparse t = {.n = sx_type_elems(&values->type), .rank = values->type.rank};
    if (sparse) {
        SX_TRY(sx_read_sparse(c, at, at + 1, at + 2, &t));
    }
    if (t.rank < 2 || t.rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "a set has rank %lld, expected 2 to %d",
                        (long long)t.rank, SX_MAX_RANK);
    }
    *out = (sx_sets){.members = sx_arena_array(c->arena, t.n + 1, sx_member), .rank = t.rank};
    if (out->members == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    int64_t groups = 1;
    for (int64_t d = 0; d + 1 < t.rank; d++) {
        out->dims[d] = sparse ? t.shape[d] : values->type.dims[d];
        if (!sx_mul_i64(groups, out->dims[d], &groups)) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "a set has too many groups");
        }
    }
    const int64_t width = sparse ? 0 : values->type.dims[t.rank - 1];
    for (int64_t k = 0; k < t.n; k++) {
        int64_t group = sparse ? 0 : k / width;
        for (int64_t d = 0; sparse && d + 1 < t.rank; d++) {
            group = group * out->dims[d] + t.indices[k * t.rank + d];
        }
        if (sparse && ordered && k > 0 &&
            sx_compare_indices(t.indices + (k - 1) * t.rank, t.indices + k * t.rank, t.rank) >= 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the indices of a set are not in order, at %lld",
                            (long long)k);
        }
        out->members[k] = (sx_member){group, k, values};
    }
    SX_TRY(sx_cancel_check(c->cancel));
    qsort(out->members, (size_t)t.n, sizeof(*out->members), compare);
    for (int64_t k = 0; k < t.n; k++) {
        if (out->n == 0 || sx_compare_members(&out->members[out->n - 1], &out->members[k]) != 0) {
            out->members[out->n++] = out->members[k];
        }
    }
    return SX_OK;
}
