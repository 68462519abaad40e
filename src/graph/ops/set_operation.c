/* set_operation: of each group, what is in one, in both, or in any of two sets.
 *
 *   set1, set2  of one dtype, integers or strings: each dense, [groups..., n], or sparse: indices,
 *               values, shape
 *   operation   "a-b", "b-a", "intersection", "union"
 *   sparse1, sparse2   which of them are sparse: three operands
 *   validate    sparse indices must be in order
 *   returns     sparse: indices int64 [k, rank], values [k] ascending in each group, shape int64
 *               [rank], whose last is the most that a group has
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks, an unknown operation; (running) groups that differ,
 *                              indices that are not in order
 *          RESOURCE_EXHAUSTED  (running) a result that is too large
 * Source   TensorFlow DenseToDenseSetOperation, DenseToSparseSetOperation,
 *          SparseToSparseSetOperation (core/kernels/set_kernels.cc) */
#include "graph/ops/sets.h"

typedef struct sx_set_operation_attrs {
    const char *operation;
    bool sparse1, sparse2, validate;
} sx_set_operation_attrs;

static const char *const operations[] = {"a-b", "b-a", "intersection", "union", NULL};

static const sx_attr_def set_operation_attrs[] = {
    SX_ATTR(sx_set_operation_attrs, operation, SX_ATTR_STRING),
    SX_ATTR(sx_set_operation_attrs, sparse1, SX_ATTR_BOOL),
    SX_ATTR(sx_set_operation_attrs, sparse2, SX_ATTR_BOOL),
    SX_ATTR(sx_set_operation_attrs, validate, SX_ATTR_BOOL),
};

static sx_status set_operation_infer(sx_infer_context *c)
{
    const sx_set_operation_attrs *a = c->attrs;
    const int second = a->sparse1 ? 3 : 1, n = second + (a->sparse2 ? 3 : 1);
    int64_t ranks[2];
    SX_TRY(sx_require_name("operation", a->operation, operations));
    if (c->n_inputs != n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %d", c->n_inputs, n);
    }
    const sx_dtype dtype = c->inputs[a->sparse1].dtype;
    SX_TRY(sx_infer_sets(c, 0, a->sparse1, SX_DTYPE_NONE, &ranks[0]));
    SX_TRY(sx_infer_sets(c, second, a->sparse2, dtype, &ranks[1]));
    if (ranks[0] >= 0 && ranks[1] >= 0 && ranks[0] != ranks[1]) {
        return sx_error(SX_INVALID_ARGUMENT, "the sets have ranks %lld and %lld, expected one rank",
                        (long long)ranks[0], (long long)ranks[1]);
    }
    const int64_t rank = ranks[0] >= 0 ? ranks[0] : ranks[1];
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    c->outputs[1] = sx_type_of(dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

/* What the operation chooses, in order. */
static sx_status choose(const sx_kernel_call *c, sx_sets *out)
{
    const sx_set_operation_attrs *a = c->attrs;
    sx_sets x, y;
    SX_TRY(sx_read_sets(c, 0, a->sparse1, a->validate, &x));
    SX_TRY(sx_read_sets(c, a->sparse1 ? 3 : 1, a->sparse2, a->validate, &y));
    if (x.rank != y.rank || memcmp(x.dims, y.dims, sizeof(x.dims)) != 0) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "the two sets have other groups: all dimensions but the last must be equal");
    }
    *out = x;
    out->n = 0;
    out->members = sx_arena_array(c->arena, x.n + y.n + 1, sx_member);
    if (out->members == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    const bool all = strcmp(a->operation, "union") == 0;
    const bool only1 = all || strcmp(a->operation, "a-b") == 0;
    const bool only2 = all || strcmp(a->operation, "b-a") == 0;
    const bool both = all || strcmp(a->operation, "intersection") == 0;
    for (int64_t i = 0, k = 0; i < x.n || k < y.n;) {
        const int order = i == x.n   ? 1
                          : k == y.n ? -1
                                     : sx_compare_members(&x.members[i], &y.members[k]);
        if (order == 0 ? both : order < 0 ? only1 : only2) {
            out->members[out->n++] = order <= 0 ? x.members[i] : y.members[k];
        }
        i += order <= 0;
        k += order >= 0;
    }
    return SX_OK;
}

static sx_status set_operation_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_set_operation_attrs *a = c->attrs;
    sx_sets made;
    SX_TRY(choose(c, &made));
    out_types[0] = sx_type_of(SX_I64, made.n, made.rank);
    out_types[1] = sx_type_of(c->in[a->sparse1].type.dtype, made.n);
    out_types[2] = sx_type_of(SX_I64, made.rank);
    return sx_require_made("the indices", &out_types[0]);
}

static sx_status set_operation_host(const sx_kernel_call *c)
{
    sx_sets made;
    int64_t most = 0, place = 0;
    SX_TRY(choose(c, &made));
    for (int64_t k = 0; k < made.n; k++) {
        int64_t *index = c->out[0].i + k * made.rank, group = made.members[k].group;
        place = k > 0 && made.members[k - 1].group == group ? place + 1 : 0;
        most = SX_MAX(most, place + 1);
        index[made.rank - 1] = place;
        for (int64_t d = made.rank - 2; d >= 0; d--) {
            index[d] = group % made.dims[d];
            group /= made.dims[d];
        }
        sx_copy_element(&c->out[1], k, made.members[k].values, made.members[k].at);
    }
    memcpy(c->out[2].i, made.dims, (size_t)(made.rank - 1) * sizeof(int64_t));
    c->out[2].i[made.rank - 1] = most;
    return SX_OK;
}

static sx_status read_attrs(const sx_tf_node *n, bool sparse1, bool sparse2, void *out)
{
    sx_set_operation_attrs *a = out;
    a->sparse1 = sparse1;
    a->sparse2 = sparse2;
    a->validate = sx_tf_read_bool(n, "validate_indices", true);
    for (int i = 0; operations[i] != NULL; i++) {
        if (sx_tf_read_is(n, "set_operation", operations[i], false)) {
            a->operation = operations[i];
        }
    }
    return a->operation != NULL
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED,
                          "set_operation is not one of a-b, b-a, intersection and union");
}

static sx_status dense_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, false, false, out);
}

static sx_status mixed_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, false, true, out);
}

static sx_status sparse_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, true, true, out);
}

const sx_op_def sx_op_set_operation = {
    SX_OP_NAMED(set_operation),
    .n_in = SX_VARIADIC,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_set_operation_attrs, set_operation_attrs),
    .infer = set_operation_infer,
    .host = set_operation_host,
    .host_types = set_operation_host_types,
    SX_FROM_TF({.op = "DenseToDenseSetOperation", .attrs = dense_from_tf},
               {.op = "DenseToSparseSetOperation", .attrs = mixed_from_tf},
               {.op = "SparseToSparseSetOperation", .attrs = sparse_from_tf}),
};
