/* See cross.h. */
#include "graph/ops/cross.h"

sx_status sx_infer_feature(const sx_type *values)
{
    return values->dtype == SX_STRING || values->dtype == SX_I64
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "a feature is %s, expected int64 or strings",
                          SX_TEXT(values));
}

static sx_status make_starts(const sx_kernel_call *c, int64_t batch, sx_cross_feature *out)
{
    if (batch < 0 || batch > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld examples", (long long)batch);
    }
    out->starts = sx_arena_array(c->arena, batch + 1, int64_t);
    return out->starts != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

sx_status sx_cross_dense(const sx_kernel_call *c, int values, int64_t batch, sx_cross_feature *out)
{
    const sx_type *x = &c->in[values].type;
    if (x->rank != 2 || x->dims[0] != batch) {
        return sx_error(SX_INVALID_ARGUMENT, "a feature is %s, expected [%lld, n]", SX_TEXT(x),
                        (long long)batch);
    }
    SX_TRY(make_starts(c, batch, out));
    out->values = &c->in[values];
    for (int64_t b = 0; b <= batch; b++) {
        out->starts[b] = b * x->dims[1];
    }
    return SX_OK;
}

sx_status sx_cross_sparse(const sx_kernel_call *c, int i, int v, int s, int64_t batch,
                          sx_cross_feature *out)
{
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, i, v, s, &t));
    if (t.rank != 2 || t.shape[0] != batch) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a sparse feature is not of %lld examples in two dimensions",
                        (long long)batch);
    }
    SX_TRY(make_starts(c, batch, out));
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
               : sx_error(SX_INVALID_ARGUMENT, "the indices of a sparse feature are not in order");
}

sx_status sx_cross_ragged(const sx_kernel_call *c, int values, int splits, int64_t batch,
                          sx_cross_feature *out)
{
    const sx_host_tensor *s = &c->in[splits];
    const int64_t n = sx_type_elems(&c->in[values].type);
    if (s->type.dims[0] != batch + 1 || !sx_splits_are_sound(s, n)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the row splits of a feature, %s, do not ascend from 0 to its %lld values "
                        "in %lld rows",
                        SX_TEXT(&s->type), (long long)n, (long long)batch);
    }
    SX_TRY(make_starts(c, batch, out));
    out->values = &c->in[values];
    memcpy(out->starts, s->i, (size_t)(batch + 1) * sizeof(int64_t));
    return SX_OK;
}

sx_status sx_cross_count(const sx_cross *x, int64_t b, int64_t *out)
{
    enum { MOST = 1 << 28 };
    *out = 1;
    for (int k = 0; k < x->n_features; k++) {
        const int64_t *starts = x->features[k].starts;
        if (!sx_mul_i64(*out, starts[b + 1] - starts[b], out) || *out > MOST) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "example %lld has more than %d combinations of its features",
                            (long long)b, MOST);
        }
    }
    return SX_OK;
}

sx_status sx_cross_count_all(const sx_cross *x, int64_t *out)
{
    *out = 0;
    for (int64_t b = 0; b < x->batch; b++) {
        int64_t n = 0;
        SX_TRY(sx_cross_count(x, b, &n));
        if (!sx_add_i64(*out, n, out)) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "the examples have too many combinations");
        }
    }
    return SX_OK;
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

static uint64_t hash_of(const sx_cross *x, int feature, int64_t k)
{
    const sx_host_tensor *values = x->features[feature].values;
    /* TensorFlow hashes as many bytes of an integer as an enum has */
    const uint32_t low = values->type.dtype == SX_STRING ? 0 : (uint32_t)values->i[k];
    const sx_bytes bytes =
        values->type.dtype == SX_STRING ? values->s[k] : (sx_bytes){&low, sizeof(low)};
    if (x->hash == SX_CROSS_STRONG) {
        return sx_strong_hash(bytes.data, bytes.size, x->salt);
    }
    const bool hashed =
        values->type.dtype == SX_STRING || (x->hash == SX_CROSS_KEYED && !x->dense[feature]);
    return hashed ? sx_fingerprint64(bytes.data, bytes.size) : (uint64_t)values->i[k];
}

sx_status sx_cross_write(const sx_kernel_call *c, const sx_cross *x, int64_t b, int64_t k,
                         int64_t *place, sx_buf *text, int output, int64_t at)
{
    for (int i = x->n_features - 1; i >= 0; i--) {
        const int64_t *starts = x->features[i].starts, size = starts[b + 1] - starts[b];
        place[i] = starts[b] + k % size;
        k /= size;
    }
    if (x->hash != SX_CROSS_TEXT) {
        const bool from_first = x->hash != SX_CROSS_NUMBER;
        uint64_t hash = from_first ? hash_of(x, 0, place[0]) : x->key;
        for (int i = from_first; i < x->n_features; i++) {
            hash = combine(hash, hash_of(x, i, place[i]));
        }
        const uint64_t buckets = x->num_buckets > 0 ? (uint64_t)x->num_buckets : INT64_MAX;
        c->out[output].i[at] = (int64_t)(hash % buckets);
        return SX_OK;
    }
    for (int i = 0; i < x->n_features; i++) {
        const sx_host_tensor *values = x->features[i].values;
        sx_buf_append(text, x->separator.data, i > 0 ? x->separator.size : 0);
        if (values->type.dtype == SX_STRING) {
            sx_buf_append(text, values->s[place[i]].data, values->s[place[i]].size);
        } else {
            sx_buf_printf(text, "%lld", (long long)values->i[place[i]]);
        }
    }
    return sx_string_put(c, output, at, text);
}
