/* sparse_cross: of each example all combinations of one value from each feature, as one string or
 * one hash.
 *
 *   indices..., values..., shapes...   `sparse` of each: sparse tensors [batch, _]
 *   dense...    tensors [batch, n]
 *   separator   (only with `separated`) string scalar, between the values; else "_X_"
 *   num_buckets, strong_hash, salt   (only with `keyed`) int64 scalar, bool scalar, int64 [2]
 *   texts       integers are refused
 *   hashed      the hash of the values, modulo num_buckets (0: 2^63 - 1), as cross.h says
 *   returns     indices int64 [n, 2], values [n]: int64 if hashed or keyed, else string, shape
 *               int64 [2]
 *
 * The first feature's value changes last.
 *
 * Errors   INVALID_ARGUMENT    dtypes, numbers of operands; (running) batches that differ
 *          RESOURCE_EXHAUSTED  (running) too many combinations
 * Source   TensorFlow SparseCross, SparseCrossV2, SparseCrossHashed
 *          (core/kernels/sparse_cross_op.cc) */
#include "graph/ops/cross.h"

typedef struct sx_sparse_cross_attrs {
    int64_t sparse, dense; /* how many features */
    bool hashed, separated, keyed, texts;
    int64_t num_buckets, hash_key;
} sx_sparse_cross_attrs;

static const sx_attr_def sparse_cross_attrs[] = {
    SX_ATTR(sx_sparse_cross_attrs, sparse, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, dense, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, hashed, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, separated, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, keyed, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, texts, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, num_buckets, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, hash_key, SX_ATTR_INT),
};

/* The operands after the features. */
static int n_last(const sx_sparse_cross_attrs *a)
{
    return a->keyed ? 3 : a->separated;
}

static sx_status sparse_cross_infer(sx_infer_context *c)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    const bool counts = a->sparse >= 0 && a->dense >= 0 && a->sparse < SX_TF_MAX_INPUTS &&
                        a->dense < SX_TF_MAX_INPUTS && a->sparse + a->dense > 0;
    if (!counts || c->n_inputs != 3 * a->sparse + a->dense + n_last(a) || a->num_buckets < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d operands for %lld sparse and %lld dense features, %lld buckets",
                        c->n_inputs, (long long)a->sparse, (long long)a->dense,
                        (long long)a->num_buckets);
    }
    const int n = (int)a->sparse, last = c->n_inputs - n_last(a);
    for (int k = 0; k < n; k++) {
        SX_TRY(sx_infer_sparse(c, k, n + k, 2 * n + k));
    }
    for (int k = n; k < last; k++) {
        if (k < 2 * n || k >= 3 * n) {
            SX_TRY(sx_infer_feature(&c->inputs[k]));
            if (a->texts) {
                SX_TRY(sx_require_dtype("a feature", &c->inputs[k], SX_STRING));
            }
        }
    }
    if (a->keyed) {
        SX_TRY(sx_require_maybe("num_buckets", &c->inputs[last], SX_I64, 0, "a scalar"));
        SX_TRY(sx_require_maybe("strong_hash", &c->inputs[last + 1], SX_BOOL, 0, "a scalar"));
        SX_TRY(sx_require_maybe("salt", &c->inputs[last + 2], SX_I64, 1, "[2]"));
    } else if (a->separated) {
        SX_TRY(sx_require_maybe("separator", &c->inputs[last], SX_STRING, 0, "a scalar"));
    }
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, 2);
    c->outputs[1] = sx_type_of(a->hashed || a->keyed ? SX_I64 : SX_STRING, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, 2);
    return SX_OK;
}

static sx_status read_cross(const sx_kernel_call *c, sx_cross *out)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    const int n = (int)a->sparse, all = n + (int)a->dense, last = c->n_in - n_last(a);
    sx_cross_feature *f = sx_arena_array(c->arena, all, sx_cross_feature);
    bool *dense = sx_arena_array(c->arena, all, bool);
    if (f == NULL || dense == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    const sx_type *first = &c->in[n > 0 ? 2 * n : 3 * n].type;
    *out = (sx_cross){.features = f,
                      .n_features = all,
                      .dense = dense,
                      .batch = n == 0                     ? first->dims[0]
                               : sx_type_elems(first) > 0 ? c->in[2 * n].i[0]
                                                          : 0,
                      .hash = a->hashed ? SX_CROSS_NUMBER : SX_CROSS_TEXT,
                      .separator = a->separated ? c->in[last].s[0] : (sx_bytes){"_X_", 3},
                      .key = (uint64_t)a->hash_key,
                      .num_buckets = a->num_buckets};
    if (a->keyed) {
        if (sx_type_elems(&c->in[last + 2].type) != 2 || c->in[last].i[0] < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "salt is %s and num_buckets %lld, expected 2 numbers, and 0 or more",
                            SX_TEXT(&c->in[last + 2].type), (long long)c->in[last].i[0]);
        }
        out->hash = c->in[last + 1].b[0] ? SX_CROSS_STRONG : SX_CROSS_KEYED;
        for (int k = n; k < last && out->hash == SX_CROSS_STRONG; k++) {
            if ((k < 2 * n || k >= 3 * n) && c->in[k].type.dtype != SX_STRING) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "a feature is %s, expected strings for a strong hash",
                                SX_TEXT(&c->in[k].type));
            }
        }
        out->num_buckets = c->in[last].i[0];
        out->salt[0] = (uint64_t)c->in[last + 2].i[0];
        out->salt[1] = (uint64_t)c->in[last + 2].i[1];
    }
    for (int k = 0; k < all; k++) {
        dense[k] = k >= n;
        SX_TRY(dense[k] ? sx_cross_dense(c, 2 * n + k, out->batch, &f[k])
                        : sx_cross_sparse(c, k, n + k, 2 * n + k, out->batch, &f[k]));
    }
    return SX_OK;
}

static sx_status sparse_cross_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    sx_cross x;
    int64_t all = 0;
    SX_TRY(read_cross(c, &x));
    SX_TRY(sx_cross_count_all(&x, &all));
    out_types[0] = sx_type_of(SX_I64, all, 2);
    out_types[1] = sx_type_of(a->hashed || a->keyed ? SX_I64 : SX_STRING, all);
    out_types[2] = sx_type_of(SX_I64, 2);
    return sx_require_made("the combinations", &out_types[0]);
}

static sx_status sparse_cross_host(const sx_kernel_call *c)
{
    sx_cross x;
    int64_t at = 0, most = 0;
    SX_TRY(read_cross(c, &x));
    int64_t *place = sx_arena_array(c->arena, x.n_features, int64_t);
    if (place == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t b = 0; b < x.batch && status == SX_OK; b++) {
        int64_t all = 0;
        status = sx_cross_count(&x, b, &all);
        most = SX_MAX(most, all);
        for (int64_t k = 0; k < all && status == SX_OK; k++, at++) {
            c->out[0].i[at * 2] = b;
            c->out[0].i[at * 2 + 1] = k;
            status = sx_cross_write(c, &x, b, k, place, &text, 1, at);
        }
    }
    sx_buf_deinit(&text);
    c->out[2].i[0] = x.batch;
    c->out[2].i[1] = most;
    return status;
}

static sx_status read_counts(const sx_tf_node *n, sx_sparse_cross_attrs *a)
{
    a->sparse = sx_tf_read_int(n, "N", 0);
    a->dense = n->n_in - 3 * a->sparse - n_last(a);
    return SX_OK;
}

static sx_status cross_from_tf(const sx_tf_node *n, void *out)
{
    sx_sparse_cross_attrs *a = out;
    a->hashed = sx_tf_read_bool(n, "hashed_output", false);
    a->num_buckets = sx_tf_read_int(n, "num_buckets", 0);
    a->hash_key = sx_tf_read_int(n, "hash_key", 0);
    const sx_dtype internal = sx_tf_read_dtype(n, "internal_type", SX_I64);
    a->texts = internal == SX_STRING;
    return read_counts(n, a);
}

static sx_status cross_v2_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_sparse_cross_attrs *)out)->separated = true;
    return read_counts(n, out);
}

static sx_status cross_hashed_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_sparse_cross_attrs *)out)->keyed = true;
    return read_counts(n, out);
}

const sx_op_def sx_op_sparse_cross = {
    SX_OP_NAMED(sparse_cross),
    .n_in = SX_VARIADIC,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_cross_attrs, sparse_cross_attrs),
    .infer = sparse_cross_infer,
    .host = sparse_cross_host,
    .host_types = sparse_cross_host_types,
    SX_FROM_TF({.op = "SparseCross", .attrs = cross_from_tf},
               {.op = "SparseCrossV2", .attrs = cross_v2_from_tf},
               {.op = "SparseCrossHashed", .attrs = cross_hashed_from_tf}),
};
