/* See eval.h. One row per dtype converts an element to and from double. */
#include "graph/eval.h"

#include <math.h>

#include "base/half.h"

typedef struct element_row {
    double (*load)(const void *bytes, int64_t i);
    void (*store)(void *bytes, int64_t i, double v);
} element_row;

#define PLAIN_ROW(name, c_type)                                \
    static double load_##name(const void *bytes, int64_t i)    \
    {                                                          \
        return (double)((const c_type *)bytes)[i];             \
    }                                                          \
    static void store_##name(void *bytes, int64_t i, double v) \
    {                                                          \
        ((c_type *)bytes)[i] = (c_type)v;                      \
    }

PLAIN_ROW(f32, float)
PLAIN_ROW(f64, double)
PLAIN_ROW(i8, int8_t)
PLAIN_ROW(i16, int16_t)
PLAIN_ROW(i32, int32_t)
PLAIN_ROW(i64, int64_t)
PLAIN_ROW(u8, uint8_t)
PLAIN_ROW(u16, uint16_t)
PLAIN_ROW(u32, uint32_t)
PLAIN_ROW(u64, uint64_t)

static double load_bool(const void *bytes, int64_t i)
{
    return ((const uint8_t *)bytes)[i] != 0;
}
static void store_bool(void *bytes, int64_t i, double v)
{
    ((uint8_t *)bytes)[i] = v != 0;
}
static double load_bf16(const void *bytes, int64_t i)
{
    return (double)sx_bf16_to_f32(((const uint16_t *)bytes)[i]);
}
static void store_bf16(void *bytes, int64_t i, double v)
{
    ((uint16_t *)bytes)[i] = sx_f32_to_bf16((float)v);
}
static double load_f16(const void *bytes, int64_t i)
{
    return (double)sx_f16_to_f32(((const uint16_t *)bytes)[i]);
}
static void store_f16(void *bytes, int64_t i, double v)
{
    ((uint16_t *)bytes)[i] = sx_f32_to_f16((float)v);
}

static const element_row rows[] = {
    [SX_F32] = {load_f32, store_f32},    [SX_F64] = {load_f64, store_f64},
    [SX_I32] = {load_i32, store_i32},    [SX_U8] = {load_u8, store_u8},
    [SX_I16] = {load_i16, store_i16},    [SX_I8] = {load_i8, store_i8},
    [SX_I64] = {load_i64, store_i64},    [SX_BOOL] = {load_bool, store_bool},
    [SX_BF16] = {load_bf16, store_bf16}, [SX_U16] = {load_u16, store_u16},
    [SX_F16] = {load_f16, store_f16},    [SX_U32] = {load_u32, store_u32},
    [SX_U64] = {load_u64, store_u64},
};

void sx_ref_load(const sx_ref_tensor *t, const void *bytes)
{
    int64_t n = sx_type_elems(&t->type);
    const element_row *row = &rows[t->type.dtype];
    for (int64_t i = 0; i < n; i++) {
        t->data[i] = row->load(bytes, i);
    }
}

void sx_ref_store(const sx_ref_tensor *t, void *bytes)
{
    int64_t n = sx_type_elems(&t->type);
    const element_row *row = &rows[t->type.dtype];
    for (int64_t i = 0; i < n; i++) {
        row->store(bytes, i, t->data[i]);
    }
}

void sx_ref_round(const sx_ref_tensor *t)
{
    int64_t n = sx_type_elems(&t->type);
    const element_row *row = &rows[t->type.dtype];
    uint64_t element;
    for (int64_t i = 0; i < n; i++) {
        row->store(&element, 0, t->data[i]);
        t->data[i] = row->load(&element, 0);
    }
}

void sx_ref_run(const sx_op_def *op, const sx_ref *r, bool keep_double)
{
    op->ref(r);
    for (int i = 0; i < r->n_out; i++) {
        if (!keep_double || !sx_dtype_is_float(r->out[i].type.dtype)) {
            sx_ref_round(&r->out[i]);
        }
    }
}
