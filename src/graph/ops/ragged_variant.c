/* See ragged_variant.h. */
#include "graph/ops/ragged_variant.h"

static void put64(sx_buf *out, int64_t v)
{
    sx_buf_append(out, &v, sizeof(v));
}

void sx_ragged_put(const sx_host_tensor *splits, int n_splits, const int64_t *first,
                   const int64_t *n, const sx_host_tensor *values, int64_t from, int64_t count,
                   sx_buf *out)
{
    const sx_type *x = &values->type;
    const int64_t inner = count < 0 ? sx_type_elems(x) : sx_dims_product(x, 1, x->rank);
    const int64_t begin = count < 0 ? 0 : from * inner, size = count < 0 ? inner : count * inner;
    put64(out, n_splits);
    put64(out, x->dtype);
    put64(out, x->rank);
    for (int d = 0; d < x->rank; d++) {
        put64(out, d == 0 && count >= 0 ? count : x->dims[d]);
    }
    for (int i = 0; i < n_splits; i++) {
        put64(out, n[i] + 1);
        for (int64_t r = 0; r <= n[i]; r++) {
            put64(out, splits[i].i[first[i] + r] - splits[i].i[first[i]]);
        }
    }
    for (int64_t k = begin; k < begin + size && x->dtype == SX_STRING; k++) {
        put64(out, (int64_t)values->s[k].size);
        sx_buf_append(out, values->s[k].data, values->s[k].size);
    }
    for (int64_t k = begin; k < begin + size && x->dtype != SX_STRING; k++) {
        uint64_t bytes = 0;
        const sx_host_tensor one = {.type = sx_scalar_type(x->dtype),
                                    .data = values->b + (size_t)k * sx_carrier_bytes(x->dtype)};
        sx_host_store(&one, &bytes);
        sx_buf_append(out, &bytes, sx_dtype_bytes(x->dtype));
    }
}

static int64_t get64(const uint8_t *at)
{
    int64_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

int64_t sx_ragged_split(const sx_ragged_part *p, int i, int64_t row)
{
    return get64(p->splits[i] + (size_t)row * sizeof(int64_t));
}

sx_status sx_ragged_get(const sx_bytes *bytes, sx_ragged_part *out)
{
    const uint8_t *at = bytes->data, *end = at + bytes->size;
    *out = (sx_ragged_part){.n_splits = 0};
    bool sound = bytes->size >= SX_RAGGED_HEADER * sizeof(int64_t);
    const int64_t n_splits = sound ? get64(at) : 0, dtype = sound ? get64(at + 8) : 0,
                  rank = sound ? get64(at + 16) : 0;
    sound = sound && n_splits >= 0 && n_splits < SX_MAX_RANK && rank >= 0 && rank <= SX_MAX_RANK &&
            dtype > 0 && dtype < INT16_MAX && sx_carrier_of((sx_dtype)dtype) != SX_CARRIER_NONE &&
            (n_splits == 0 || rank > 0);
    if (sound) {
        at += SX_RAGGED_HEADER * sizeof(int64_t);
        sound = (size_t)(end - at) / sizeof(int64_t) >= (size_t)rank;
        out->n_splits = (int)n_splits;
        out->values = (sx_type){.dtype = (sx_dtype)dtype, .rank = (int)rank};
    }
    for (int d = 0; d < rank && sound; d++, at += sizeof(int64_t)) {
        out->values.dims[d] = get64(at);
        sound = out->values.dims[d] >= 0;
    }
    for (int i = 0; i < n_splits && sound; i++) {
        sound = (size_t)(end - at) >= sizeof(int64_t);
        out->n[i] = sound ? get64(at) : 0;
        at += sound ? sizeof(int64_t) : 0;
        sound =
            sound && out->n[i] > 0 && (uint64_t)out->n[i] <= (size_t)(end - at) / sizeof(int64_t);
        out->splits[i] = at;
        at += sound ? (size_t)out->n[i] * sizeof(int64_t) : 0;
        sound = sound && sx_ragged_split(out, i, 0) == 0 &&
                (i == 0 || sx_ragged_split(out, i - 1, out->n[i - 1] - 1) == out->n[i] - 1);
        for (int64_t r = 1; r < out->n[i] && sound; r++) {
            sound = sx_ragged_split(out, i, r) >= sx_ragged_split(out, i, r - 1);
        }
    }
    if (sound && n_splits > 0) {
        const int last = (int)n_splits - 1;
        sound = sx_ragged_split(out, last, out->n[last] - 1) == out->values.dims[0];
    }
    const int64_t elems = sound ? sx_type_elems(&out->values) : -1;
    int64_t size = 0;
    sound = sound && elems >= 0;
    if (sound && out->values.dtype == SX_STRING) {
        const uint8_t *s = at;
        for (int64_t k = 0; k < elems && sound; k++) {
            sound = (size_t)(end - s) >= sizeof(int64_t) && get64(s) >= 0 &&
                    (uint64_t)get64(s) <= (size_t)(end - s) - sizeof(int64_t);
            s += sound ? sizeof(int64_t) + (size_t)get64(s) : 0;
        }
        sound = sound && s == end;
    } else if (sound) {
        sound = sx_mul_i64(elems, (int64_t)sx_dtype_bytes(out->values.dtype), &size) &&
                size == end - at;
    }
    out->data = at;
    out->end = end;
    return sound ? SX_OK
                 : sx_error(SX_INVALID_ARGUMENT,
                            "a value of %zu bytes holds no ragged tensor, or a broken one",
                            bytes->size);
}
