/* ragged_cross: of each example all combinations of one value from each feature, as one string or
 * one hash, as a ragged tensor.
 *
 *   values..., splits...    of ragged features: [n], int32 or int64 [batch + 1]
 *   indices..., values..., shapes...   of sparse features [batch, _]
 *   dense...                tensors [batch, n]
 *   input_order             the features in the order of the cross: R, S, D for the next one of
 *                           each kind
 *   hashed, num_buckets, hash_key   the hash of the values, as in sparse_cross
 *   Tsplits                 int32 or int64
 *   returns                 values [n], string or int64; splits [batch + 1]
 *
 * Errors   INVALID_ARGUMENT    dtypes, numbers of operands; (running) batches that differ, splits
 *          RESOURCE_EXHAUSTED  (running) too many combinations
 * Source   TensorFlow RaggedCross (core/kernels/ragged_cross_op.cc) */
#include "graph/ops/cross.h"

typedef struct sx_ragged_cross_attrs {
    const char *input_order;
    bool hashed;
    int64_t num_buckets, hash_key;
    sx_dtype Tsplits;
} sx_ragged_cross_attrs;

static const sx_attr_def ragged_cross_attrs[] = {
    SX_ATTR_TF(sx_ragged_cross_attrs, input_order, SX_ATTR_STRING),
    SX_ATTR(sx_ragged_cross_attrs, hashed, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_ragged_cross_attrs, num_buckets, SX_ATTR_INT),
    SX_ATTR_TF(sx_ragged_cross_attrs, hash_key, SX_ATTR_INT),
    SX_ATTR(sx_ragged_cross_attrs, Tsplits, SX_ATTR_DTYPE),
};

/* How many features of each kind there are; of another letter, `other`. */
typedef struct kinds {
    int ragged, sparse, dense, other;
} kinds;

static kinds count_kinds(const sx_ragged_cross_attrs *a)
{
    kinds n = {0, 0, 0, 0};
    for (const char *at = a->input_order != NULL ? a->input_order : "";
         *at != '\0' && n.ragged + n.sparse + n.dense + n.other < SX_TF_MAX_INPUTS; at++) {
        n.ragged += *at == 'R';
        n.sparse += *at == 'S';
        n.dense += *at == 'D';
        n.other += *at != 'R' && *at != 'S' && *at != 'D';
    }
    return n;
}

static sx_status ragged_cross_infer(sx_infer_context *c)
{
    const sx_ragged_cross_attrs *a = c->attrs;
    const kinds n = count_kinds(a);
    const int sparse = 2 * n.ragged, dense = sparse + 3 * n.sparse;
    if (n.other > 0 || n.ragged + n.sparse + n.dense == 0 || c->n_inputs != dense + n.dense ||
        a->num_buckets < 0 || (a->Tsplits != SX_I32 && a->Tsplits != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d operands for input_order \"%s\" (letters R, S, D), %lld buckets, "
                        "splits of %s",
                        c->n_inputs, a->input_order != NULL ? a->input_order : "",
                        (long long)a->num_buckets, sx_dtype_name(a->Tsplits));
    }
    for (int k = 0; k < n.ragged; k++) {
        SX_TRY(sx_infer_feature(&c->inputs[k]));
        SX_TRY(sx_require_maybe("values", &c->inputs[k], c->inputs[k].dtype, 1, "[n]"));
        SX_TRY(sx_require_integers("row splits", &c->inputs[n.ragged + k], 1, "[rows + 1]"));
    }
    for (int k = sparse; k < sparse + n.sparse; k++) {
        SX_TRY(sx_infer_sparse(c, k, n.sparse + k, 2 * n.sparse + k));
        SX_TRY(sx_infer_feature(&c->inputs[n.sparse + k]));
    }
    for (int k = dense; k < c->n_inputs; k++) {
        SX_TRY(sx_infer_feature(&c->inputs[k]));
    }
    c->outputs[0] = sx_type_of(a->hashed ? SX_I64 : SX_STRING, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(a->Tsplits, SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status read_cross(const sx_kernel_call *c, sx_cross *out)
{
    const sx_ragged_cross_attrs *a = c->attrs;
    const kinds n = count_kinds(a);
    const int all = n.ragged + n.sparse + n.dense;
    const int sparse = 2 * n.ragged, dense = sparse + 3 * n.sparse;
    sx_cross_feature *f = sx_arena_array(c->arena, all, sx_cross_feature);
    if (f == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    const sx_host_tensor *shape = &c->in[sparse + 2 * n.sparse];
    *out = (sx_cross){.features = f,
                      .n_features = all,
                      .batch = n.ragged > 0                      ? c->in[n.ragged].type.dims[0] - 1
                               : n.sparse == 0                   ? c->in[dense].type.dims[0]
                               : sx_type_elems(&shape->type) > 0 ? shape->i[0]
                                                                 : 0,
                      .hash = a->hashed ? SX_CROSS_NUMBER : SX_CROSS_TEXT,
                      .separator = {"_X_", 3},
                      .key = (uint64_t)a->hash_key,
                      .num_buckets = a->num_buckets};
    if (out->batch < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the row splits of a feature are empty");
    }
    kinds next = {0, 0, 0, 0};
    for (int k = 0; k < all; k++) {
        if (a->input_order[k] == 'R') {
            SX_TRY(sx_cross_ragged(c, next.ragged, n.ragged + next.ragged, out->batch, &f[k]));
            next.ragged++;
        } else if (a->input_order[k] == 'S') {
            const int i = sparse + next.sparse++;
            SX_TRY(sx_cross_sparse(c, i, n.sparse + i, 2 * n.sparse + i, out->batch, &f[k]));
        } else {
            SX_TRY(sx_cross_dense(c, dense + next.dense++, out->batch, &f[k]));
        }
    }
    return SX_OK;
}

static sx_status ragged_cross_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_ragged_cross_attrs *a = c->attrs;
    sx_cross x;
    int64_t all = 0;
    SX_TRY(read_cross(c, &x));
    SX_TRY(sx_cross_count_all(&x, &all));
    if (a->Tsplits == SX_I32 && all > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld combinations, too many for int32 splits",
                        (long long)all);
    }
    out_types[0] = sx_type_of(a->hashed ? SX_I64 : SX_STRING, all);
    out_types[1] = sx_type_of(a->Tsplits, x.batch + 1);
    return sx_require_made("the combinations", &out_types[0]);
}

static sx_status ragged_cross_host(const sx_kernel_call *c)
{
    sx_cross x;
    int64_t at = 0;
    SX_TRY(read_cross(c, &x));
    int64_t *place = sx_arena_array(c->arena, x.n_features, int64_t);
    if (place == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t b = 0; b < x.batch && status == SX_OK; b++) {
        int64_t all = 0;
        c->out[1].i[b] = at;
        status = sx_cross_count(&x, b, &all);
        for (int64_t k = 0; k < all && status == SX_OK; k++, at++) {
            status = sx_cross_write(c, &x, b, k, place, &text, 0, at);
        }
    }
    sx_buf_deinit(&text);
    c->out[1].i[x.batch] = at;
    return status;
}

static sx_status ragged_cross_from_tf(const sx_tf_node *n, void *out)
{
    sx_ragged_cross_attrs *a = out;
    a->hashed = sx_tf_read_dtype(n, "out_values_type", SX_STRING) == SX_I64;
    a->Tsplits = sx_tf_read_dtype(n, "out_row_splits_type", SX_I64);
    return SX_OK;
}

const sx_op_def sx_op_ragged_cross = {
    SX_OP_NAMED(ragged_cross),
    .n_in = SX_VARIADIC,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_ragged_cross_attrs, ragged_cross_attrs),
    .infer = ragged_cross_infer,
    .host = ragged_cross_host,
    .host_types = ragged_cross_host_types,
    SX_FROM_TF({.op = "RaggedCross", .attrs = ragged_cross_from_tf}),
};
