/* See array.h. */
#include "pjrt_ref/array.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"

/* ---- Memory ---- */

static void raise_to(_Atomic int64_t *greatest, int64_t v)
{
    int64_t seen = atomic_load(greatest);
    while (seen < v && !atomic_compare_exchange_weak(greatest, &seen, v)) {
    }
}

static sx_status exhausted(const ref_memory *m, int64_t bytes)
{
    return sx_error(SX_RESOURCE_EXHAUSTED,
                    "Out of memory allocating %lld bytes; %lld of %lld are in use",
                    (long long)bytes, (long long)atomic_load(&m->in_use), (long long)m->limit);
}

static sx_status reserve(ref_memory *m, int64_t bytes)
{
    int64_t now = atomic_fetch_add(&m->in_use, bytes) + bytes;
    if (m->limit > 0 && now > m->limit) {
        atomic_fetch_sub(&m->in_use, bytes);
        return exhausted(m, bytes);
    }
    raise_to(&m->peak, now);
    raise_to(&m->largest, bytes);
    atomic_fetch_add(&m->count, 1);
    return SX_OK;
}

sx_status ref_array_create(ref_memory *memory, const sx_type *type, ref_array **out)
{
    int64_t bytes = sx_type_bytes(type);
    if (bytes < 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "an array of more than 2^63 bytes");
    }
    SX_TRY(reserve(memory, bytes));
    ref_array *a = sx_alloc(1, sizeof(*a));
    void *data = sx_alloc((size_t)bytes + 1, 1);
    if (a == NULL || data == NULL) {
        sx_free(a);
        sx_free(data);
        atomic_fetch_sub(&memory->in_use, bytes);
        return exhausted(memory, bytes);
    }
    *a = (ref_array){.type = *type, .memory = memory, .bytes = bytes, .data = data};
    atomic_init(&a->refs, 1);
    *out = a;
    return SX_OK;
}

ref_array *ref_array_retain(ref_array *a)
{
    atomic_fetch_add(&a->refs, 1);
    return a;
}

void ref_array_release(ref_array *a)
{
    if (a != NULL && atomic_fetch_sub(&a->refs, 1) == 1) {
        atomic_fetch_sub(&a->memory->in_use, a->bytes);
        sx_free(a->data);
        sx_free(a);
    }
}

/* ---- Lanes ---- */

typedef struct dtype_row {
    ref_class class;
    int bits;
    void (*load)(const void *data, int64_t at, int n, ref_lane *out);
    void (*store)(void *data, int64_t at, int n, const ref_lane *in);
} dtype_row;

#define LANES(name, type, member, read, write)                                  \
    static void load_##name(const void *data, int64_t at, int n, ref_lane *out) \
    {                                                                           \
        const type *v = (const type *)data + at;                                \
        for (int i = 0; i < n; i++) {                                           \
            out[i].member = read(v[i]);                                         \
        }                                                                       \
    }                                                                           \
    static void store_##name(void *data, int64_t at, int n, const ref_lane *in) \
    {                                                                           \
        type *v = (type *)data + at;                                            \
        for (int i = 0; i < n; i++) {                                           \
            v[i] = (type)write(in[i].member);                                   \
        }                                                                       \
    }
#define AS_IT_IS(x)    (x)
#define LOW_BITS(x)    ((uint64_t)(x)) /* conversions to narrower unsigned types are modular */
#define TO_F32(x)      ((float)(x))
#define TO_BF16(x)     (sx_f32_to_bf16((float)(x)))
#define TO_F16(x)      (sx_f32_to_f16((float)(x)))
#define IS_NOT_ZERO(x) ((x) != 0)
LANES(f32, float, f, AS_IT_IS, TO_F32)
LANES(f64, double, f, AS_IT_IS, AS_IT_IS)
LANES(bf16, uint16_t, f, sx_bf16_to_f32, TO_BF16)
LANES(f16, uint16_t, f, sx_f16_to_f32, TO_F16)
LANES(i8, int8_t, s, AS_IT_IS, LOW_BITS)
LANES(i16, int16_t, s, AS_IT_IS, LOW_BITS)
LANES(i32, int32_t, s, AS_IT_IS, LOW_BITS)
LANES(i64, int64_t, s, AS_IT_IS, AS_IT_IS)
LANES(u8, uint8_t, u, AS_IT_IS, LOW_BITS)
LANES(u16, uint16_t, u, AS_IT_IS, LOW_BITS)
LANES(u32, uint32_t, u, AS_IT_IS, LOW_BITS)
LANES(u64, uint64_t, u, AS_IT_IS, AS_IT_IS)
LANES(bool, uint8_t, u, IS_NOT_ZERO, IS_NOT_ZERO)

static const dtype_row dtype_rows[] = {
    [SX_F32] = {REF_FLOAT, 32, load_f32, store_f32},
    [SX_F64] = {REF_FLOAT, 64, load_f64, store_f64},
    [SX_BF16] = {REF_FLOAT, 16, load_bf16, store_bf16},
    [SX_F16] = {REF_FLOAT, 16, load_f16, store_f16},
    [SX_I8] = {REF_SIGNED, 8, load_i8, store_i8},
    [SX_I16] = {REF_SIGNED, 16, load_i16, store_i16},
    [SX_I32] = {REF_SIGNED, 32, load_i32, store_i32},
    [SX_I64] = {REF_SIGNED, 64, load_i64, store_i64},
    [SX_U8] = {REF_UNSIGNED, 8, load_u8, store_u8},
    [SX_U16] = {REF_UNSIGNED, 16, load_u16, store_u16},
    [SX_U32] = {REF_UNSIGNED, 32, load_u32, store_u32},
    [SX_U64] = {REF_UNSIGNED, 64, load_u64, store_u64},
    [SX_BOOL] = {REF_UNSIGNED, 1, load_bool, store_bool},
};

ref_class ref_class_of(sx_dtype dtype)
{
    return dtype_rows[dtype].class;
}

int ref_bits_of(sx_dtype dtype)
{
    return dtype_rows[dtype].bits;
}

void ref_load(sx_dtype dtype, const void *data, int64_t at, int n, ref_lane *out)
{
    dtype_rows[dtype].load(data, at, n, out);
}

void ref_store(sx_dtype dtype, void *data, int64_t at, int n, const ref_lane *in)
{
    dtype_rows[dtype].store(data, at, n, in);
}

ref_lane ref_get(const ref_array *a, int64_t at)
{
    ref_lane v;
    ref_load(a->type.dtype, a->data, at, 1, &v);
    return v;
}

void ref_put(ref_array *a, int64_t at, ref_lane v)
{
    ref_store(a->type.dtype, a->data, at, 1, &v);
}

/* ---- Conversions ---- */

/* 2^63 and 2^64 are doubles; what is below them fits. */
static int64_t to_signed(double v, int bits)
{
    double most = ldexp(1, bits - 1);
    if (isnan(v)) {
        return 0;
    }
    if (v >= most) {
        return (int64_t)(UINT64_MAX >> (65 - bits));
    }
    return v < -most ? -(int64_t)(UINT64_MAX >> (65 - bits)) - 1 : (int64_t)v;
}

static uint64_t to_unsigned(double v, int bits)
{
    if (!(v > 0)) { /* NaN too */
        return 0;
    }
    return v >= ldexp(1, bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)v;
}

static void float_to_integer(sx_dtype to, int n, const ref_lane *in, ref_lane *out)
{
    int bits = ref_bits_of(to);
    for (int i = 0; i < n; i++) {
        if (to == SX_BOOL) {
            out[i].u = in[i].f != 0;
        } else if (ref_class_of(to) == REF_SIGNED) {
            out[i].s = to_signed(in[i].f, bits);
        } else {
            out[i].u = to_unsigned(in[i].f, bits);
        }
    }
}

void ref_convert(sx_dtype from, sx_dtype to, int n, const ref_lane *in, ref_lane *out)
{
    ref_class of = ref_class_of(from);
    if (of == REF_FLOAT && ref_class_of(to) != REF_FLOAT) {
        float_to_integer(to, n, in, out);
        return;
    }
    bool to_float = ref_class_of(to) == REF_FLOAT && of != REF_FLOAT;
    for (int i = 0; i < n; i++) {
        if (to_float) {
            out[i].f = of == REF_SIGNED ? (double)in[i].s : (double)in[i].u;
        } else {
            out[i] = in[i]; /* integers wrap when they are stored */
        }
    }
}

/* ---- Indices ---- */

void ref_strides(const sx_type *type, int64_t strides[SX_MAX_RANK])
{
    int64_t step = 1;
    for (int i = type->rank; i-- > 0;) {
        strides[i] = step;
        step *= type->dims[i];
    }
}

bool ref_next_index(const sx_type *type, int64_t index[SX_MAX_RANK])
{
    for (int i = type->rank; i-- > 0;) {
        if (++index[i] < type->dims[i]) {
            return true;
        }
        index[i] = 0;
    }
    return false;
}

int64_t ref_dot(const int64_t *index, const int64_t *strides, int rank)
{
    int64_t sum = 0;
    for (int i = 0; i < rank; i++) {
        sum += index[i] * strides[i];
    }
    return sum;
}
