/* edit_distance: how many insertions, deletions and substitutions turn each sequence into another:
 * Levenshtein's distance.
 *
 *   hypothesis  indices, values, shape: a sparse tensor whose last axis is the sequence
 *   truth       the same, of one rank and dtype
 *   normalize   divided by the length of the truth; of an empty truth inf, or 0 if the hypothesis
 *               is empty, too
 *   returns     float32: the axes but the last, each the larger of the two shapes; 0 where neither
 *               has a sequence
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) indices outside of the shape or not in
 * order RESOURCE_EXHAUSTED  (running) a result that is too large Source   TensorFlow EditDistance
 * (core/kernels/edit_distance_op.cc) */
#include "graph/ops/sparse.h"

#include <math.h>

typedef struct sx_edit_distance_attrs {
    bool normalize;
} sx_edit_distance_attrs;

static const sx_attr_def edit_distance_attrs[] = {
    SX_ATTR_TF(sx_edit_distance_attrs, normalize, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status edit_distance_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_infer_sparse(c, 3, 4, 5));
    SX_TRY(sx_require_dtype("the truth", &c->inputs[4], c->inputs[1].dtype));
    const int64_t a = sx_vector_size(&c->inputs[2]), b = sx_vector_size(&c->inputs[5]);
    const int64_t rank = a >= 0 ? a : b;
    if ((a >= 0 && b >= 0 && a != b) || rank == 0 || rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "shapes are %s and %s, expected one rank from 1 to %d",
                        SX_TEXT(&c->inputs[2]), SX_TEXT(&c->inputs[5]), SX_MAX_RANK);
    }
    c->outputs[0] = sx_unknown_shape(SX_F32);
    if (rank > 0) {
        c->outputs[0].rank = (int)rank - 1;
        for (int d = 0; d < rank - 1; d++) {
            c->outputs[0].dims[d] = SX_UNKNOWN_DIM;
        }
    }
    return SX_OK;
}

static sx_status read_both(const sx_kernel_call *c, sx_sparse *hypothesis, sx_sparse *truth)
{
    sx_sparse *all[] = {hypothesis, truth};
    for (int i = 0; i < 2; i++) {
        sx_sparse *t = all[i];
        SX_TRY(sx_read_sparse(c, 3 * i, 3 * i + 1, 3 * i + 2, t));
        for (int64_t k = 1; k < t->n; k++) {
            if (sx_compare_indices(t->indices + (k - 1) * t->rank, t->indices + k * t->rank,
                                   t->rank) >= 0) {
                return sx_error(SX_INVALID_ARGUMENT, "the indices of the %s are not in order",
                                i == 0 ? "hypothesis" : "truth");
            }
        }
    }
    return hypothesis->rank == truth->rank && truth->rank > 0 && truth->rank <= SX_MAX_RANK
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "hypothesis and truth have ranks %lld and %lld",
                          (long long)hypothesis->rank, (long long)truth->rank);
}

static sx_status edit_distance_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    sx_sparse a, b;
    SX_TRY(read_both(c, &a, &b));
    out_types[0] = (sx_type){.dtype = SX_F32, .rank = (int)a.rank - 1};
    for (int d = 0; d < a.rank - 1; d++) {
        out_types[0].dims[d] = SX_MAX(a.shape[d], b.shape[d]);
    }
    return sx_require_made("the distances", &out_types[0]);
}

static bool same_element(const sx_host_tensor *a, int64_t i, const sx_host_tensor *b, int64_t j)
{
    switch (sx_carrier_of(a->type.dtype)) {
    case SX_CARRIER_F:
        return a->f[i] == b->f[j];
    case SX_CARRIER_B:
        return a->b[i] == b->b[j];
    case SX_CARRIER_S:
        return a->s[i].size == b->s[j].size &&
               (a->s[i].size == 0 || memcmp(a->s[i].data, b->s[j].data, a->s[i].size) == 0);
    default:
        return a->i[i] == b->i[j];
    }
}

/* The end of the sequence whose first value is number `from`. */
static int64_t end_of(const sx_sparse *t, int64_t from)
{
    int64_t to = from + 1;
    while (to < t->n && sx_compare_indices(t->indices + from * t->rank, t->indices + to * t->rank,
                                           t->rank - 1) == 0) {
        to++;
    }
    return to;
}

static sx_status edit_distance_host(const sx_kernel_call *c)
{
    const sx_edit_distance_attrs *attrs = c->attrs;
    sx_sparse a, b;
    SX_TRY(read_both(c, &a, &b));
    int64_t *row = sx_arena_array(c->arena, b.n + 2, int64_t); /* distances to a prefix of a */
    if (row == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0, j = 0; i < a.n || j < b.n;) {
        const int order = i == a.n   ? 1
                          : j == b.n ? -1
                                     : sx_compare_indices(a.indices + i * a.rank,
                                                          b.indices + j * b.rank, a.rank - 1);
        const int64_t *group = order <= 0 ? a.indices + i * a.rank : b.indices + j * b.rank;
        const int64_t i_end = order <= 0 ? end_of(&a, i) : i,
                      j_end = order >= 0 ? end_of(&b, j) : j;
        const int64_t n = i_end - i, m = j_end - j;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t q = 0; q <= m; q++) {
            row[q] = q;
        }
        for (int64_t p = 1; p <= n; p++) {
            int64_t corner = row[0];
            row[0] = p;
            if (p % 64 == 0) {
                SX_TRY(sx_cancel_check(c->cancel));
            }
            for (int64_t q = 1; q <= m; q++) {
                const int64_t swapped =
                    corner + !same_element(a.values, i + p - 1, b.values, j + q - 1);
                corner = row[q];
                row[q] = SX_MIN(swapped, SX_MIN(row[q - 1], row[q]) + 1);
            }
        }
        int64_t at = 0;
        for (int d = 0; d < a.rank - 1; d++) {
            at = at * c->out[0].type.dims[d] + group[d];
        }
        c->out[0].f[at] = !attrs->normalize ? (double)row[m]
                          : m > 0           ? (double)row[m] / (double)m
                                            : INFINITY;
        i = i_end;
        j = j_end;
    }
    return SX_OK;
}

const sx_op_def sx_op_edit_distance = {
    SX_OP_NAMED(edit_distance),
    .n_in = 6,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_edit_distance_attrs, edit_distance_attrs),
    .infer = edit_distance_infer,
    .host = edit_distance_host,
    .host_types = edit_distance_host_types,
    SX_FROM_TF({.op = "EditDistance"}),
};
