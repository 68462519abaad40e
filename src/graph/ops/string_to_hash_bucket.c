/* string_to_hash_bucket: the hash of each string's bytes modulo a number.
 *
 *   x            strings
 *   hash         fast: FarmHash's Fingerprint64; strong: SipHash-2-4 with a key of two numbers;
 *                legacy: MurmurHash64A with the seed 0xDECAFCAFFE
 *   num_buckets  1 or more
 *   returns      int64 of x's shape, in [0, num_buckets)
 *
 * Errors   INVALID_ARGUMENT  dtype, attributes
 * Numbers  exact
 * Source   TensorFlow StringToHashBucketFast, StringToHashBucketStrong, StringToHashBucket;
 *          github.com/google/farmhash (farmhashna::Hash64); Aumasson and Bernstein, SipHash, 2012
 */
#ifdef SX_PUBLIC
/* tf.strings.to_hash_bucket_fast: an int64 in [0, num_buckets) for each string. */
sx_value sx_string_to_hash_bucket(sx_builder *b, sx_value x, int64_t num_buckets);
#endif

#include <string.h>

#include "graph/ops/host_ops.h"

enum { SX_HASH_FAST, SX_HASH_STRONG, SX_HASH_LEGACY };
typedef struct sx_hash_bucket_attrs {
    int32_t hash;
    int64_t num_buckets;
    sx_ints key; /* strong only: two numbers */
} sx_hash_bucket_attrs;

static const char *const hashes[] = {"fast", "strong", "legacy", NULL};
static const sx_attr_def string_to_hash_bucket_attrs[] = {
    SX_ATTR_NAMES(sx_hash_bucket_attrs, hash, hashes),
    SX_ATTR_TF(sx_hash_bucket_attrs, num_buckets, SX_ATTR_INT),
    SX_ATTR_TF(sx_hash_bucket_attrs, key, SX_ATTR_INTS),
};

static sx_status string_to_hash_bucket_infer(sx_infer_context *c)
{
    const sx_hash_bucket_attrs *attrs = c->attrs;
    const int keys = attrs->hash == SX_HASH_STRONG ? 2 : 0;
    SX_TRY(sx_infer_string_map(c));
    if (attrs->num_buckets < 1 || attrs->key.n != keys) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "num_buckets is %lld and key has %d numbers, expected at least 1 bucket and "
            "%d numbers",
            (long long)attrs->num_buckets, attrs->key.n, keys);
    }
    c->outputs[0].dtype = SX_I64;
    return SX_OK;
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v; /* little-endian, as every machine that Sextant runs on */
}

static uint64_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t rotate(uint64_t v, int right)
{
    return v >> right | v << (64 - right);
}

static uint64_t fold(uint64_t v)
{
    return v ^ v >> 47;
}

/* ---- FarmHash ---- */

static const uint64_t K0 = 0xc3a5c85c97cb3127, K1 = 0xb492b66fbe98f273, K2 = 0x9ae16a3b2f90404f;

static uint64_t mix(uint64_t u, uint64_t v, uint64_t by)
{
    const uint64_t a = fold((u ^ v) * by);
    return fold((v ^ a) * by) * by;
}

typedef struct pair {
    uint64_t a, b;
} pair;

/* Of 32 bytes and two words. */
static pair weak32(const uint8_t *s, uint64_t a, uint64_t b)
{
    const uint64_t w = get64(s), x = get64(s + 8), y = get64(s + 16), z = get64(s + 24);
    a += w;
    const uint64_t sum = a + x + y;
    b = rotate(b + a + z, 21) + rotate(sum, 44);
    return (pair){sum + z, b + a};
}

static uint64_t farm_short(const uint8_t *s, uint64_t n) /* at most 64 bytes */
{
    const uint64_t by = K2 + n * 2;
    if (n > 32) {
        const uint64_t a = get64(s) * K2, b = get64(s + 8), c = get64(s + n - 8) * by,
                       d = get64(s + n - 16) * K2;
        const uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d,
                       z = mix(y, a + rotate(b + K2, 18) + c, by);
        const uint64_t e = get64(s + 16) * by, f = get64(s + 24), g = (y + get64(s + n - 32)) * by,
                       h = (z + get64(s + n - 24)) * by;
        return mix(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, by);
    }
    if (n > 16) {
        const uint64_t a = get64(s) * K1, b = get64(s + 8), c = get64(s + n - 8) * by,
                       d = get64(s + n - 16) * K2;
        return mix(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, by);
    }
    if (n >= 8) {
        const uint64_t a = get64(s) + K2, b = get64(s + n - 8);
        return mix(rotate(b, 37) * by + a, (rotate(a, 25) + b) * by, by);
    }
    if (n >= 4) {
        return mix(n + (get32(s) << 3), get32(s + n - 4), by);
    }
    if (n > 0) {
        const uint32_t y = s[0] + ((uint32_t)s[n >> 1] << 8),
                       z = (uint32_t)n + ((uint32_t)s[n - 1] << 2);
        return fold(y * K2 ^ z * K0) * K2;
    }
    return K2;
}

static uint64_t farm_hash(const uint8_t *s, uint64_t n)
{
    if (n <= 64) {
        return farm_short(s, n);
    }
    uint64_t x = 81, y = 81 * K1 + 113, z = fold(y * K2 + 113) * K2, swap;
    pair v = {0, 0}, w = {0, 0};
    const uint8_t *last = s + n - 64, *end = s + (n - 1) / 64 * 64;
    x = x * K2 + get64(s);
    for (uint64_t by = K1;; s += 64) {
        const bool tail = s == end;
        if (tail) {
            by = K1 + ((z & 0xff) << 1);
            s = last;
            w.a += (n - 1) & 63;
            v.a += w.a;
            w.a += v.a;
        }
        x = rotate(x + y + v.a + get64(s + 8), 37) * by;
        y = rotate(y + v.b + get64(s + 48), 42) * by;
        x ^= tail ? w.b * 9 : w.b;
        y += (tail ? v.a * 9 : v.a) + get64(s + 40);
        z = rotate(z + w.a, 33) * by;
        v = weak32(s, v.b * by, x + w.a);
        w = weak32(s + 32, z + w.b, y + get64(s + 16));
        swap = z;
        z = x;
        x = swap;
        if (tail) {
            return mix(mix(v.a, w.a, by) + fold(y) * K0 + z, mix(v.b, w.b, by) + x, by);
        }
    }
}

uint64_t sx_fingerprint64(const void *data, size_t size)
{
    return farm_hash(data, size);
}

/* ---- SipHash, MurmurHash ---- */

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 51) ^ v[0];
    v[3] = rotate(v[3], 48) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 47) ^ v[2];
    v[3] = rotate(v[3], 43) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t sx_strong_hash(const void *data, size_t size, const uint64_t key[2])
{
    const uint8_t *s = data;
    const uint64_t n = size, k0 = key[0], k1 = key[1];
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};
    for (uint64_t left = n;; left -= 8, s += 8) {
        uint64_t word = n << 56;
        if (left >= 8) {
            word = get64(s);
        } else {
            for (uint64_t i = 0; i < left; i++) {
                word |= (uint64_t)s[i] << 8 * i;
            }
        }
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
        if (left < 8) {
            break;
        }
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t murmur_hash(const uint8_t *s, uint64_t n)
{
    const uint64_t by = 0xc6a4a7935bd1e995;
    uint64_t hash = 0xDECAFCAFFE ^ n * by;
    for (; n >= 8; n -= 8, s += 8) {
        hash = (hash ^ fold(get64(s) * by) * by) * by;
    }
    for (uint64_t i = 0; i < n; i++) {
        hash ^= (uint64_t)s[i] << 8 * i;
    }
    hash = n > 0 ? hash * by : hash;
    return fold(fold(hash) * by);
}

static sx_status string_to_hash_bucket_host(const sx_kernel_call *c)
{
    const sx_hash_bucket_attrs *attrs = c->attrs;
    const uint64_t key[2] = {(uint64_t)attrs->key.v[0], (uint64_t)attrs->key.v[1]};
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const uint8_t *s = c->in[0].s[k].data;
        const uint64_t size = c->in[0].s[k].size;
        const uint64_t hash = attrs->hash == SX_HASH_FAST     ? farm_hash(s, size)
                              : attrs->hash == SX_HASH_STRONG ? sx_strong_hash(s, size, key)
                                                              : murmur_hash(s, size);
        c->out[0].i[k] = (int64_t)(hash % (uint64_t)attrs->num_buckets);
    }
    return SX_OK;
}

static void string_to_hash_bucket_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    static const char *const names[] = {"StringToHashBucketFast", "StringToHashBucketStrong",
                                        "StringToHashBucket"};
    const sx_hash_bucket_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_string_to_hash_bucket, names[attrs->hash], SX_TF_NO_ATTRS);
}

static sx_status strong_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_hash_bucket_attrs *)out)->hash = SX_HASH_STRONG;
    return SX_OK;
}

static sx_status legacy_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_hash_bucket_attrs *)out)->hash = SX_HASH_LEGACY;
    return SX_OK;
}

#define BUCKETS(...)                       \
    .attrs = &(const sx_hash_bucket_attrs) \
    {                                      \
        __VA_ARGS__                        \
    }
static const sx_op_sample string_to_hash_bucket_samples[] = {
    SX_SAMPLES_STRING_MAP(BUCKETS(.num_buckets = 1000003)),
    {.name = "strong",
     .inputs = {SX_SAMPLE_TEXT(10)},
     .n_inputs = 1,
     BUCKETS(.hash = SX_HASH_STRONG, .num_buckets = INT64_MAX, .key = {2, {123, 45}})},
    {.name = "legacy",
     .inputs = {SX_SAMPLE_TEXT(10)},
     .n_inputs = 1,
     BUCKETS(.hash = SX_HASH_LEGACY, .num_buckets = INT64_MAX)},
};

sx_value sx_string_to_hash_bucket_at(sx_builder *b, sx_value x, int64_t num_buckets,
                                     const char *file, int line)
{
    const sx_hash_bucket_attrs attrs = {.hash = SX_HASH_FAST, .num_buckets = num_buckets};
    return sx_build_at(b, &sx_op_string_to_hash_bucket, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_string_to_hash_bucket = {
    SX_OP_NAMED(string_to_hash_bucket),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_hash_bucket_attrs, string_to_hash_bucket_attrs),
    .infer = string_to_hash_bucket_infer,
    .host = string_to_hash_bucket_host,
    .to_tf = string_to_hash_bucket_to_tf,
    SX_FROM_TF({.op = "StringToHashBucketFast"},
               {.op = "StringToHashBucketStrong", .attrs = strong_from_tf},
               {.op = "StringToHashBucket", .attrs = legacy_from_tf}),
    SX_OP_SAMPLES(string_to_hash_bucket_samples),
};
