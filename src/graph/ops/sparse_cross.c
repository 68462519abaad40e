/* sparse_cross: of each example all combinations of one value from each feature, as one string or
 * one hash.
 *
 *   indices..., values..., shapes...   `sparse` of each: sparse tensors [batch, _]
 *   dense...    tensors [batch, n]
 *   separator   (only with `separated`) string scalar, between the values; else "_X_"
 *   texts       integers are refused
 *   hashed      the hash of the values, modulo num_buckets (0: 2^63 - 1); integers count as they
 *               are, of strings FarmHash's Fingerprint64, combined from hash_key on
 *   returns     indices int64 [n, 2], values [n]: int64 if hashed, else string, shape int64 [2]
 *
 * The first feature's value changes last.
 *
 * Errors   INVALID_ARGUMENT    dtypes, numbers of operands; (running) batches that differ
 *          RESOURCE_EXHAUSTED  (running) too many combinations
 * Source   TensorFlow SparseCross, SparseCrossV2 (core/kernels/sparse_cross_op.cc) */
#include <stdio.h>

#include "graph/ops/sparse.h"

typedef struct sx_sparse_cross_attrs {
    int64_t sparse, dense; /* how many features */
    bool hashed, separated, texts;
    int64_t num_buckets, hash_key;
} sx_sparse_cross_attrs;

static const sx_attr_def sparse_cross_attrs[] = {
    SX_ATTR(sx_sparse_cross_attrs, sparse, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, dense, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, hashed, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, separated, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, texts, SX_ATTR_BOOL),
    SX_ATTR(sx_sparse_cross_attrs, num_buckets, SX_ATTR_INT),
    SX_ATTR(sx_sparse_cross_attrs, hash_key, SX_ATTR_INT),
};

static sx_status sparse_cross_infer(sx_infer_context *c)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    const bool counts = a->sparse >= 0 && a->dense >= 0 && a->sparse < SX_TF_MAX_INPUTS &&
                        a->dense < SX_TF_MAX_INPUTS && a->sparse + a->dense > 0;
    if (!counts || c->n_inputs != 3 * a->sparse + a->dense + a->separated || a->num_buckets < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d operands for %lld sparse and %lld dense features, %lld buckets",
                        c->n_inputs, (long long)a->sparse, (long long)a->dense,
                        (long long)a->num_buckets);
    }
    const int n = (int)a->sparse;
    for (int k = 0; k < n; k++) {
        SX_TRY(sx_infer_sparse(c, k, n + k, 2 * n + k));
    }
    for (int k = n; k < c->n_inputs; k++) {
        const sx_type *x = &c->inputs[k];
        const bool values = k < 2 * n || k >= 3 * n;
        if (values && x->dtype != SX_STRING && (a->texts || x->dtype != SX_I64)) {
            return sx_error(SX_INVALID_ARGUMENT, "a feature is %s, expected %sstrings", SX_TEXT(x),
                            a->texts ? "" : "int64 or ");
        }
    }
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, 2);
    c->outputs[1] = sx_type_of(a->hashed ? SX_I64 : SX_STRING, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, 2);
    return SX_OK;
}

/* A feature: example b has the values [starts[b], starts[b + 1]). */
typedef struct feature {
    const sx_host_tensor *values;
    int64_t *starts;
} feature;

/* A sparse tensor's values, in the order of its indices. */
static sx_status read_sparse_feature(const sx_kernel_call *c, int k, int n, int64_t batch,
                                     feature *out)
{
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, k, n + k, 2 * n + k, &t));
    if (t.rank != 2 || t.shape[0] != batch) {
        return sx_error(SX_INVALID_ARGUMENT, "feature %d is not of %lld examples in two dimensions",
                        k, (long long)batch);
    }
    out->values = t.values;
    int64_t at = 0;
    for (int64_t b = 0; b < batch; b++) {
        out->starts[b] = at;
        for (; at < t.n && t.indices[at * 2] == b; at++) {
        }
    }
    out->starts[batch] = at;
    return at == t.n
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "the indices of feature %d are not in order", k);
}

static sx_status read_features(const sx_kernel_call *c, feature **out, int64_t *out_batch)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    const int n = (int)a->sparse, all = n + (int)a->dense;
    const int64_t batch = n > 0 ? (sx_type_elems(&c->in[2 * n].type) > 0 ? c->in[2 * n].i[0] : 0)
                                : c->in[3 * n].type.dims[0];
    feature *f = sx_arena_array(c->arena, all, feature);
    if (batch < 0 || batch > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld examples", (long long)batch);
    }
    for (int k = 0; k < all && f != NULL; k++) {
        f[k].starts = sx_arena_array(c->arena, batch + 1, int64_t);
        if (f[k].starts == NULL) {
            return sx_budget_error(c->arena->budget);
        }
        if (k < n) {
            SX_TRY(read_sparse_feature(c, k, n, batch, &f[k]));
            continue;
        }
        f[k].values = &c->in[2 * n + k];
        const sx_type *x = &f[k].values->type;
        if (x->rank != 2 || x->dims[0] != batch) {
            return sx_error(SX_INVALID_ARGUMENT, "feature %d is %s, expected [%lld, n]", k,
                            SX_TEXT(x), (long long)batch);
        }
        for (int64_t b = 0; b <= batch; b++) {
            f[k].starts[b] = b * x->dims[1];
        }
    }
    *out = f;
    *out_batch = batch;
    return f != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

/* How many combinations an example has; -1: too many. */
static int64_t count(const feature *f, int n, int64_t b)
{
    enum { MOST = 1 << 28 };
    int64_t all = 1;
    for (int k = 0; k < n; k++) {
        if (!sx_mul_i64(all, f[k].starts[b + 1] - f[k].starts[b], &all) || all > MOST) {
            return -1;
        }
    }
    return all;
}

static sx_status sparse_cross_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    feature *f = NULL;
    int64_t batch = 0, all = 0;
    SX_TRY(read_features(c, &f, &batch));
    for (int64_t b = 0; b < batch; b++) {
        const int64_t n = count(f, (int)(a->sparse + a->dense), b);
        if (n < 0 || !sx_add_i64(all, n, &all)) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "example %lld has too many combinations",
                            (long long)b);
        }
    }
    out_types[0] = sx_type_of(SX_I64, all, 2);
    out_types[1] = sx_type_of(a->hashed ? SX_I64 : SX_STRING, all);
    out_types[2] = sx_type_of(SX_I64, 2);
    return sx_require_made("the combinations", &out_types[0]);
}

/* TensorFlow's FingerprintCat64. */
static uint64_t combine(uint64_t a, uint64_t b)
{
    static const uint64_t by = 0xc6a4a7935bd1e995;
    b *= by;
    uint64_t hash = a ^ by;
    hash = (hash ^ (b ^ b >> 47) * by) * by;
    hash = (hash ^ hash >> 47) * by;
    return hash ^ hash >> 47;
}

static uint64_t hash_of(const sx_host_tensor *values, int64_t k)
{
    return values->type.dtype == SX_STRING ? sx_fingerprint64(values->s[k].data, values->s[k].size)
                                           : (uint64_t)values->i[k];
}

static sx_status sparse_cross_host(const sx_kernel_call *c)
{
    const sx_sparse_cross_attrs *a = c->attrs;
    const int n = (int)(a->sparse + a->dense);
    const sx_bytes *separator = a->separated ? &c->in[c->n_in - 1].s[0] : &(sx_bytes){"_X_", 3};
    feature *f = NULL;
    int64_t batch = 0, at = 0, most = 0, *place = sx_arena_array(c->arena, n, int64_t);
    SX_TRY(read_features(c, &f, &batch));
    if (place == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t b = 0; b < batch && status == SX_OK; b++) {
        const int64_t all = count(f, n, b);
        most = SX_MAX(most, all);
        for (int64_t k = 0; k < all && status == SX_OK; k++, at++) {
            int64_t rest = k;
            for (int i = n - 1; i >= 0; i--) {
                const int64_t size = f[i].starts[b + 1] - f[i].starts[b];
                place[i] = f[i].starts[b] + rest % size;
                rest /= size;
            }
            c->out[0].i[at * 2] = b;
            c->out[0].i[at * 2 + 1] = k;
            uint64_t hash = (uint64_t)a->hash_key;
            for (int i = 0; i < n; i++) {
                if (a->hashed) {
                    hash = combine(hash, hash_of(f[i].values, place[i]));
                    continue;
                }
                sx_buf_append(&text, separator->data, i > 0 ? separator->size : 0);
                if (f[i].values->type.dtype == SX_STRING) {
                    const sx_bytes *s = &f[i].values->s[place[i]];
                    sx_buf_append(&text, s->data, s->size);
                } else {
                    sx_buf_printf(&text, "%lld", (long long)f[i].values->i[place[i]]);
                }
            }
            if (a->hashed) {
                const uint64_t buckets = a->num_buckets > 0 ? (uint64_t)a->num_buckets : INT64_MAX;
                c->out[1].i[at] = (int64_t)(hash % buckets);
            } else {
                status = sx_string_put(c, 1, at, &text);
            }
        }
    }
    sx_buf_deinit(&text);
    c->out[2].i[0] = batch;
    c->out[2].i[1] = most;
    return status;
}

static sx_status read_counts(const sx_tf_node *n, sx_sparse_cross_attrs *a)
{
    a->sparse = sx_tf_read_int(n, "N", 0);
    a->dense = n->n_in - 3 * a->sparse - a->separated;
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
               {.op = "SparseCrossV2", .attrs = cross_v2_from_tf}),
};
