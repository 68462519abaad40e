/* See host.h. One row per dtype: how an element is loaded into its carrier and stored back. */
#include "graph/host.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"

typedef struct dtype_row {
    sx_carrier carrier;
    void (*load)(const void *from, void *carried, int64_t n);
    void (*store)(const void *carried, void *to, int64_t n);
} dtype_row;

#define DTYPE_LOOPS(name, native, carried_type, LOAD, STORE)            \
    static void load_##name(const void *from, void *carried, int64_t n) \
    {                                                                   \
        const native *x = from;                                         \
        carried_type *y = carried;                                      \
        for (int64_t k = 0; k < n; k++) {                               \
            y[k] = (carried_type)LOAD(x[k]);                            \
        }                                                               \
    }                                                                   \
    static void store_##name(const void *carried, void *to, int64_t n)  \
    {                                                                   \
        const carried_type *x = carried;                                \
        native *y = to;                                                 \
        for (int64_t k = 0; k < n; k++) {                               \
            y[k] = STORE(x[k]);                                         \
        }                                                               \
    }

/* A NaN of 16 bits with `bits` of fraction as a double, and back. The fraction is kept, which a
 * conversion would make that of a quiet NaN. */
static double from_nan(uint16_t h, int bits)
{
    const uint64_t sign = (uint64_t)(h >> 15) << 63, fraction = h & ((1U << bits) - 1);
    const uint64_t u = sign | 0x7ffULL << 52 | fraction << (52 - bits);
    double v;
    memcpy(&v, &u, sizeof(v));
    return v;
}

static uint16_t to_nan(double v, int bits)
{
    const unsigned mask = (1U << bits) - 1;
    uint64_t u;
    memcpy(&u, &v, sizeof(u));
    const unsigned fraction = (unsigned)(u >> (52 - bits)) & mask;
    return (uint16_t)((unsigned)(u >> 63) << 15 | (0x7fffU & ~mask) |
                      (fraction != 0 ? fraction : 1U << (bits - 1)));
}

enum { BF16_FRACTION = 7, F16_FRACTION = 10 };

static double from_bf16(uint16_t h)
{
    const float v = sx_bf16_to_f32(h);
    return isnan(v) ? from_nan(h, BF16_FRACTION) : (double)v;
}

static double from_f16(uint16_t h)
{
    const float v = sx_f16_to_f32(h);
    return isnan(v) ? from_nan(h, F16_FRACTION) : (double)v;
}

static uint16_t to_bf16(double v)
{
    return isnan(v) ? to_nan(v, BF16_FRACTION) : sx_f32_to_bf16((float)v);
}

static uint16_t to_f16(double v)
{
    return isnan(v) ? to_nan(v, F16_FRACTION) : sx_f32_to_f16((float)v);
}

#define AS_IS(v)   (v)
#define TO_F32(v)  ((float)(v))
#define IS_TRUE(v) ((v) != 0)
#define TO_BITS(v) (v) /* the implicit conversion wraps */

DTYPE_LOOPS(f32, float, double, AS_IS, TO_F32)
DTYPE_LOOPS(f64, double, double, AS_IS, AS_IS)
DTYPE_LOOPS(bf16, uint16_t, double, from_bf16, to_bf16)
DTYPE_LOOPS(f16, uint16_t, double, from_f16, to_f16)
DTYPE_LOOPS(i8, int8_t, int64_t, AS_IS, (int8_t))
DTYPE_LOOPS(i16, int16_t, int64_t, AS_IS, (int16_t))
DTYPE_LOOPS(i32, int32_t, int64_t, AS_IS, (int32_t))
DTYPE_LOOPS(i64, int64_t, int64_t, AS_IS, AS_IS)
DTYPE_LOOPS(u8, uint8_t, int64_t, AS_IS, (uint8_t))
DTYPE_LOOPS(u16, uint16_t, int64_t, AS_IS, (uint16_t))
DTYPE_LOOPS(u32, uint32_t, int64_t, AS_IS, (uint32_t))
DTYPE_LOOPS(u64, uint64_t, uint64_t, AS_IS, AS_IS)
DTYPE_LOOPS(bool, uint8_t, uint8_t, IS_TRUE, IS_TRUE)

static void copy_strings(const void *from, void *to, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof(sx_bytes));
}

static const dtype_row rows[] = {
    [SX_F32] = {SX_CARRIER_F, load_f32, store_f32},
    [SX_F64] = {SX_CARRIER_F, load_f64, store_f64},
    [SX_BF16] = {SX_CARRIER_F, load_bf16, store_bf16},
    [SX_F16] = {SX_CARRIER_F, load_f16, store_f16},
    [SX_I8] = {SX_CARRIER_I, load_i8, store_i8},
    [SX_I16] = {SX_CARRIER_I, load_i16, store_i16},
    [SX_I32] = {SX_CARRIER_I, load_i32, store_i32},
    [SX_I64] = {SX_CARRIER_I, load_i64, store_i64},
    [SX_U8] = {SX_CARRIER_I, load_u8, store_u8},
    [SX_U16] = {SX_CARRIER_I, load_u16, store_u16},
    [SX_U32] = {SX_CARRIER_I, load_u32, store_u32},
    [SX_U64] = {SX_CARRIER_U, load_u64, store_u64},
    [SX_BOOL] = {SX_CARRIER_B, load_bool, store_bool},
    [SX_STRING] = {SX_CARRIER_S, copy_strings, copy_strings},
};

static const size_t carrier_bytes[] = {
    [SX_CARRIER_F] = sizeof(double),   [SX_CARRIER_I] = sizeof(int64_t),
    [SX_CARRIER_U] = sizeof(uint64_t), [SX_CARRIER_B] = 1,
    [SX_CARRIER_S] = sizeof(sx_bytes),
};

sx_carrier sx_carrier_of(sx_dtype dtype)
{
    return (size_t)dtype < sizeof(rows) / sizeof(rows[0]) ? rows[dtype].carrier : SX_CARRIER_NONE;
}

size_t sx_carrier_bytes(sx_dtype dtype)
{
    return carrier_bytes[sx_carrier_of(dtype)];
}

/* The size of one element in host memory. */
static size_t native_bytes(sx_dtype dtype)
{
    return dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(dtype);
}

int64_t sx_host_bytes(const sx_type *type)
{
    const int64_t elems = sx_type_elems(type), each = (int64_t)native_bytes(type->dtype);
    int64_t bytes;
    return elems >= 0 && each > 0 && sx_mul_i64(elems, each, &bytes) ? bytes : -1;
}

/* Whether its host bytes are already its carrier. */
static bool is_own_carrier(sx_dtype dtype)
{
    return dtype == SX_F64 || dtype == SX_I64 || dtype == SX_U64 || dtype == SX_STRING;
}

void sx_host_load(const sx_host_tensor *t, const void *bytes)
{
    rows[t->type.dtype].load(bytes, t->data, sx_type_elems(&t->type));
}

void sx_host_store(const sx_host_tensor *t, void *bytes)
{
    rows[t->type.dtype].store(t->data, bytes, sx_type_elems(&t->type));
}

void sx_host_round(const sx_host_tensor *t)
{
    enum { CHUNK = 256 };
    const dtype_row *row = &rows[t->type.dtype];
    const size_t carried = sx_carrier_bytes(t->type.dtype);
    uint64_t native[CHUNK];
    if (is_own_carrier(t->type.dtype)) {
        return;
    }
    for (int64_t n = sx_type_elems(&t->type), k = 0; k < n; k += CHUNK) {
        char *chunk = (char *)t->data + (size_t)k * carried;
        row->store(chunk, native, SX_MIN(n - k, CHUNK));
        row->load(native, chunk, SX_MIN(n - k, CHUNK));
    }
}

double sx_host_get(const sx_host_tensor *t, int64_t k)
{
    switch (sx_carrier_of(t->type.dtype)) {
    case SX_CARRIER_F:
        return t->f[k];
    case SX_CARRIER_I:
        return (double)t->i[k];
    case SX_CARRIER_U:
        return (double)t->u[k];
    case SX_CARRIER_B:
        return t->b[k];
    default:
        return 0;
    }
}

void sx_host_set(const sx_host_tensor *t, int64_t k, double value)
{
    switch (sx_carrier_of(t->type.dtype)) {
    case SX_CARRIER_F:
        t->f[k] = value;
        break;
    case SX_CARRIER_I:
        t->i[k] = value >= 0x1p63 ? INT64_MAX : value >= -0x1p63 ? (int64_t)value : INT64_MIN;
        break;
    case SX_CARRIER_U:
        t->u[k] = value >= 0x1p64 ? UINT64_MAX : value >= 0 ? (uint64_t)value : 0;
        break;
    case SX_CARRIER_B:
        t->b[k] = value != 0;
        break;
    default:
        break;
    }
}

double sx_host_load_element(sx_dtype dtype, const void *bytes)
{
    sx_bytes room;
    sx_host_tensor one = {.type = sx_scalar_type(dtype), .data = &room};
    sx_host_load(&one, bytes);
    return sx_host_get(&one, 0);
}

void sx_host_store_element(sx_dtype dtype, double value, void *bytes)
{
    uint64_t carried = 0;
    sx_host_tensor one = {.type = sx_scalar_type(dtype), .data = &carried};
    sx_host_set(&one, 0, value);
    sx_host_store(&one, bytes);
}

/* ---- Running ---- */

sx_status sx_host_run_carried_within(const sx_op_def *op, const void *attrs,
                                     const sx_host_tensor *in, int n_in, const sx_host_tensor *out,
                                     int n_out, sx_arena *arena, bool keep_double,
                                     const sx_cancel *cancel)
{
    const sx_kernel_call call = {.attrs = attrs,
                                 .in = in,
                                 .out = out,
                                 .n_in = n_in,
                                 .n_out = n_out,
                                 .elem_bytes = sx_carrier_bytes(out[0].type.dtype),
                                 .all_carried = true,
                                 .keep_double = keep_double,
                                 .arena = arena,
                                 .cancel = cancel};
    SX_TRY(op->host(&call));
    for (int k = 0; k < n_out; k++) {
        if (!keep_double || sx_carrier_of(out[k].type.dtype) != SX_CARRIER_F) {
            sx_host_round(&out[k]);
        }
    }
    return SX_OK;
}

sx_status sx_host_run_carried(const sx_op_def *op, const void *attrs, const sx_host_tensor *in,
                              int n_in, const sx_host_tensor *out, int n_out, sx_arena *arena,
                              bool keep_double)
{
    return sx_host_run_carried_within(op, attrs, in, n_in, out, n_out, arena, keep_double, NULL);
}

/* Whether operand i (outputs come after the inputs) is passed to the kernel as its own bytes. */
static bool is_moved(const sx_op_def *op, int i, int n_in)
{
    bool listed = op->moved == SX_MOVES_ALL || (i < 32 && (op->moved >> i & 1) != 0);
    return i < n_in ? listed : op->moved != 0;
}

static bool is_carried(const sx_op_def *op, int i, int n_in, sx_dtype dtype)
{
    return !is_moved(op, i, n_in) && !is_own_carrier(dtype);
}

int64_t sx_host_scratch_bytes(const sx_op_def *op, const sx_type *in, int n_in, const sx_type *out,
                              int n_out)
{
    int64_t total = (int64_t)sizeof(sx_host_tensor) * (n_in + n_out) + 16;
    for (int i = 0; i < n_in + n_out; i++) {
        const sx_type *type = i < n_in ? &in[i] : &out[i - n_in];
        int64_t bytes = 0;
        if (is_carried(op, i, n_in, type->dtype) &&
            (!sx_mul_i64(sx_type_elems(type), (int64_t)sx_carrier_bytes(type->dtype), &bytes) ||
             bytes < 0 || !sx_add_i64(bytes, 16, &bytes))) {
            return -1;
        }
        if (!sx_add_i64(total, bytes, &total)) {
            return -1;
        }
    }
    return total;
}

sx_status sx_host_types(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                        sx_type *out_types, int n_out, const sx_host_context *context)
{
    sx_arena *arena = context->arena;
    sx_host_tensor *seen = sx_arena_array(arena, n_in + 1, sx_host_tensor);
    if (seen == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < n_in; i++) {
        seen[i] = (sx_host_tensor){.type = in[i].type, .data = in[i].data};
        if (is_carried(op, i, n_in, in[i].type.dtype)) {
            seen[i].data = sx_arena_alloc(arena, (size_t)sx_type_elems(&in[i].type) + 1,
                                          sx_carrier_bytes(in[i].type.dtype));
            if (seen[i].data == NULL) {
                return sx_budget_error(arena->budget);
            }
            sx_host_load(&seen[i], in[i].data);
        }
    }
    return op->host_types(&(sx_kernel_call){.attrs = attrs,
                                            .in = seen,
                                            .n_in = n_in,
                                            .n_out = n_out,
                                            .all_carried = op->moved == 0,
                                            .arena = arena,
                                            .cancel = context->cancel,
                                            .images = context->images,
                                            .tables = context->tables},
                          out_types);
}

sx_status sx_host_run(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                      const sx_tensor *out, int n_out, void *scratch, sx_arena *arena)
{
    return sx_host_run_within(op, attrs, in, n_in, out, n_out, scratch,
                              &(sx_host_context){.arena = arena});
}

sx_status sx_host_check(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                        const sx_host_context *context, size_t *out_bytes)
{
    *out_bytes = 0;
    if (op->host_check == NULL) {
        return SX_OK;
    }
    sx_host_tensor *seen = sx_arena_array(context->arena, n_in + 1, sx_host_tensor);
    if (seen == NULL) {
        return sx_budget_error(context->arena->budget);
    }
    for (int i = 0; i < n_in; i++) {
        seen[i] = (sx_host_tensor){.type = in[i].type, .data = in[i].data};
    }
    return op->host_check(&(sx_kernel_call){.attrs = attrs,
                                            .in = seen,
                                            .n_in = n_in,
                                            .arena = context->arena,
                                            .cancel = context->cancel,
                                            .images = context->images,
                                            .first_row = context->first_row},
                          out_bytes);
}

sx_status sx_host_run_within(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                             const sx_tensor *out, int n_out, void *scratch,
                             const sx_host_context *context)
{
    sx_host_tensor *seen = scratch;
    char *free_bytes = (char *)scratch + sx_align_up((size_t)(n_in + n_out) * sizeof(*seen), 16);
    for (int i = 0; i < n_in + n_out; i++) {
        const sx_tensor *t = i < n_in ? &in[i] : &out[i - n_in];
        seen[i] = (sx_host_tensor){.type = t->type, .data = t->data};
        if (!is_carried(op, i, n_in, t->type.dtype)) {
            continue;
        }
        size_t bytes = (size_t)sx_type_elems(&t->type) * sx_carrier_bytes(t->type.dtype);
        seen[i].data = free_bytes;
        free_bytes += sx_align_up(bytes, 16);
        if (i < n_in) {
            sx_host_load(&seen[i], t->data);
        }
    }
    const sx_kernel_call call = {.attrs = attrs,
                                 .in = seen,
                                 .out = seen + n_in,
                                 .n_in = n_in,
                                 .n_out = n_out,
                                 .elem_bytes = op->moved != 0 ? native_bytes(out[0].type.dtype)
                                                              : sx_carrier_bytes(out[0].type.dtype),
                                 .all_carried = op->moved == 0,
                                 .arena = context->arena,
                                 .cancel = context->cancel,
                                 .images = context->images,
                                 .tables = context->tables,
                                 .first_row = context->first_row};
    SX_TRY(op->host(&call));
    for (int k = 0; k < n_out; k++) {
        if (is_carried(op, n_in + k, n_in, out[k].type.dtype)) {
            sx_host_store(&seen[n_in + k], out[k].data);
        }
    }
    return SX_OK;
}

/* ---- For kernels ---- */

void sx_host_fill(const sx_kernel_call *c, int output, double value)
{
    const sx_host_tensor *t = &c->out[output];
    int64_t n = sx_type_elems(&t->type);
    uint64_t element = 0;
    if (t->type.dtype == SX_STRING) { /* empty strings */
        memset(t->data, 0, (size_t)n * sizeof(sx_bytes));
        return;
    }
    if (c->all_carried) {
        sx_host_set(&(sx_host_tensor){.type = t->type, .data = &element}, 0, value);
    } else {
        sx_host_store_element(t->type.dtype, value, &element);
    }
    for (int64_t k = 0; k < n; k++) {
        memcpy((char *)t->data + (size_t)k * c->elem_bytes, &element, c->elem_bytes);
    }
}

void sx_host_move(const sx_kernel_call *c, int64_t to, int input, int64_t from, int64_t count)
{
    memcpy((char *)c->out[0].data + (size_t)to * c->elem_bytes,
           (const char *)c->in[input].data + (size_t)from * c->elem_bytes,
           (size_t)count * c->elem_bytes);
}
