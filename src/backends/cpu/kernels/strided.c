/* Elementwise operators of any dtype and any broadcast: what the tape (elementwise.c) does not
 * take. The result is made in chunks; an operand whose elements do not lie as the result's do is
 * gathered into a chunk first.
 *
 *   float32          vector loops
 *   select, cast     loops of their own over the dtypes' bytes
 *   any other        on a chunk in its carrier: the row's loops (graph/elementwise.h), or else the
 *                    operator's host kernel
 *
 * Dimensions that follow one another in every operand are joined, so that rows are long. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/elementwise.h"
#include "graph/ops/attrs.h"

enum { CHUNK = SX_VEC_CHUNK, MAX_OPERANDS = 3 };

typedef struct operand {
    sx_dtype dtype;
    size_t bytes; /* of an element */
    bool whole;   /* lies as the result does */
    int64_t stride[SX_MAX_RANK];
} operand;

typedef void cast_fn(const void *x, void *y, int64_t n);

typedef struct strided_data strided_data;
/* out[0 .. n) from n elements of each operand. */
typedef void chunk_fn(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                      void *out, int64_t n);

struct strided_data {
    const sx_cpu_vec *vec;
    const sx_node *node;
    chunk_fn *chunk;
    sx_vec_loop *loop; /* what the chunk function calls: one of these */
    sx_vec_test *test;
    sx_row_loop *row;
    cast_fn *cast;
    void (*widen)(const uint16_t *x, float *y, int64_t n);  /* before the cast */
    void (*narrow)(const float *x, uint16_t *y, int64_t n); /* behind it */
    sx_vec_shift *shift;
    sx_vec_count *count;
    const sx_row_loops *rows;
    float a, b;         /* attributes, */
    double wide_a;      /* of float64, */
    uint64_t low, high; /* and bounds, in the dtype's carrier */
    sx_dtype dtype;     /* of the result */
    size_t bytes;
    int n_in, rank;
    int64_t size[SX_MAX_RANK];
    operand in[MAX_OPERANDS];
};

/* ---- Casts ---- */

/* The result of x86-64's scalar conversions where C leaves it undefined, as the host kernel's. */
static inline int32_t to_i32(double x)
{
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}
static inline int64_t to_i64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static inline uint64_t to_u64(double x)
{
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)to_i64(x - 0x1p63) ^ (UINT64_C(1) << 63)
                                     : (uint64_t)to_i64(x);
}

#define CAST(name, from_type, to_type, expression)        \
    static void name(const void *xs, void *ys, int64_t n) \
    {                                                     \
        const from_type *from = xs;                       \
        to_type *to = ys;                                 \
        for (int64_t i = 0; i < n; i++) {                 \
            const from_type x = from[i];                  \
            to[i] = (to_type)(expression);                \
        }                                                 \
    }
#define CASTS_FROM_INTEGER(name, from_type)  \
    CAST(name##_f32, from_type, float, x)    \
    CAST(name##_f64, from_type, double, x)   \
    CAST(name##_n8, from_type, uint8_t, x)   \
    CAST(name##_n16, from_type, uint16_t, x) \
    CAST(name##_n32, from_type, uint32_t, x) \
    CAST(name##_n64, from_type, uint64_t, x) \
    CAST(name##_bool, from_type, uint8_t, x != 0)
CASTS_FROM_INTEGER(u8, uint8_t)
CASTS_FROM_INTEGER(i8, int8_t)
CASTS_FROM_INTEGER(u16, uint16_t)
CASTS_FROM_INTEGER(i16, int16_t)
CASTS_FROM_INTEGER(u32, uint32_t)
CASTS_FROM_INTEGER(i32, int32_t)
CASTS_FROM_INTEGER(u64, uint64_t)
CASTS_FROM_INTEGER(i64, int64_t)
#define CASTS_FROM_FLOAT(name, from_type)            \
    CAST(name##_f32, from_type, float, x)            \
    CAST(name##_f64, from_type, double, x)           \
    CAST(name##_n8, from_type, uint8_t, to_i32(x))   \
    CAST(name##_n16, from_type, uint16_t, to_i32(x)) \
    CAST(name##_n32, from_type, uint32_t, to_i32(x)) \
    CAST(name##_n64, from_type, uint64_t, to_i64(x)) \
    CAST(name##_u32, from_type, uint32_t, to_i64(x)) \
    CAST(name##_u64, from_type, uint64_t, to_u64(x)) \
    CAST(name##_bool, from_type, uint8_t, x != 0)
CASTS_FROM_FLOAT(f32, float)
CASTS_FROM_FLOAT(f64, double)

/* A column of the table: from any dtype to this one. */
#define COLUMN(to)                                                                          \
    {                                                                                       \
        [SX_U8] = u8_##to, [SX_I8] = i8_##to, [SX_U16] = u16_##to, [SX_I16] = i16_##to,     \
        [SX_U32] = u32_##to, [SX_I32] = i32_##to, [SX_U64] = u64_##to, [SX_I64] = i64_##to, \
        [SX_BOOL] = u8_##to, [SX_F32] = f32_##to, [SX_F64] = f64_##to                       \
    }
enum { MAX_DTYPE = 64 };

static cast_fn *cast_of(sx_dtype from, sx_dtype to)
{
    static cast_fn *const f32[MAX_DTYPE] = COLUMN(f32), *const f64[MAX_DTYPE] = COLUMN(f64),
                          *const n8[MAX_DTYPE] = COLUMN(n8), *const n16[MAX_DTYPE] = COLUMN(n16),
                          *const n32[MAX_DTYPE] = COLUMN(n32), *const n64[MAX_DTYPE] = COLUMN(n64),
                          *const b[MAX_DTYPE] = COLUMN(bool);
    if ((int)from < 0 || (int)from >= MAX_DTYPE) {
        return NULL;
    }
    switch (to) {
    case SX_F32:
        return f32[from];
    case SX_F64:
        return f64[from];
    case SX_BOOL:
        return b[from];
    case SX_U8:
    case SX_I8:
        return n8[from];
    case SX_U16:
    case SX_I16:
        return n16[from];
    case SX_I32:
        return n32[from];
    case SX_U32:
        return from == SX_F32 ? f32_u32 : from == SX_F64 ? f64_u32 : n32[from];
    case SX_I64:
        return n64[from];
    case SX_U64:
        return from == SX_F32 ? f32_u64 : from == SX_F64 ? f64_u64 : n64[from];
    default:
        return NULL;
    }
}

/* ---- Chunks ---- */

static void chunk_float(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                        void *out, int64_t n)
{
    (void)call;
    d->loop(out, in[0], in[d->n_in - 1], n);
}

static void chunk_test(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                       void *out, int64_t n)
{
    (void)call;
    d->test(out, in[0], in[d->n_in - 1], n);
}

/* 16-bit floats by way of float32, which has all of them, and to which others are rounded first. */
static void chunk_cast(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                       void *out, int64_t n)
{
    float wide[CHUNK], made[CHUNK];
    const void *x = in[0];
    (void)call;
    if (d->widen != NULL) {
        void *to = d->cast == NULL && d->narrow == NULL ? out : wide;
        d->widen(x, to, n);
        x = to;
    }
    if (d->cast != NULL) {
        void *to = d->narrow == NULL ? out : made;
        d->cast(x, to, n);
        x = to;
    }
    if (d->narrow != NULL) {
        d->narrow(x, out, n);
    }
}

static void chunk_shift(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                        void *out, int64_t n)
{
    (void)call;
    d->shift(in[0], in[1], out, n);
}

static void chunk_count(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                        void *out, int64_t n)
{
    (void)call;
    d->count(in[0], out, n);
}

static void chunk_clip(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                       void *out, int64_t n)
{
    (void)call;
    d->vec->clip(in[0], out, n, d->a, d->b);
}

static void chunk_leaky_relu(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                             void *out, int64_t n)
{
    (void)call;
    d->vec->leaky_relu(in[0], out, n, d->a);
}

static void chunk_elu(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                      void *out, int64_t n)
{
    (void)call;
    d->vec->elu(in[0], out, n, d->a);
}

static void chunk_leaky_relu_f64(const strided_data *d, const sx_cpu_call *call,
                                 const void *const *in, void *out, int64_t n)
{
    const double *x = in[0];
    double *y = out;
    (void)call;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] > 0 ? x[i] : d->wide_a * x[i];
    }
}

static void chunk_elu_f64(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                          void *out, int64_t n)
{
    const double *x = in[0];
    double *y = out;
    (void)call;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] > 0 ? x[i] : d->wide_a * expm1(x[i]);
    }
}

static void chunk_select(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                         void *out, int64_t n)
{
    const uint8_t *condition = in[0];
    (void)call;
    if (d->bytes == 4) {
        d->vec->select_4(condition, in[1], in[2], out, n);
        return;
    }
#define PICK(type)                                  \
    {                                               \
        const type *x = in[1], *y = in[2];          \
        type *z = out;                              \
        for (int64_t i = 0; i < n; i++) {           \
            z[i] = condition[i] != 0 ? x[i] : y[i]; \
        }                                           \
    }
    if (d->bytes == 1) {
        PICK(uint8_t)
    } else if (d->bytes == 2) {
        PICK(uint16_t)
    } else {
        PICK(uint64_t)
    }
}

static sx_host_tensor row_of(sx_dtype dtype, int64_t n, void *data)
{
    return (sx_host_tensor){.type = {.dtype = dtype, .rank = 1, .dims = {n}}, .data = data};
}

/* Elements in their carrier, in `to` unless that is how they lie. */
static const void *carried(sx_dtype dtype, const void *raw, void *to, int64_t n)
{
    if (dtype == SX_F64 || dtype == SX_I64 || dtype == SX_U64 || dtype == SX_BOOL) {
        return raw;
    }
    const sx_host_tensor t = row_of(dtype, n, to);
    sx_host_load(&t, raw);
    return to;
}

static void chunk_row(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                      void *out, int64_t n)
{
    double room[2][CHUNK], made[CHUNK];
    const void *x = carried(d->in[0].dtype, in[0], room[0], n);
    const void *y = d->n_in > 1 ? carried(d->in[1].dtype, in[1], room[1], n) : x;
    sx_status status = sx_row_check(d->rows, d->in[d->n_in - 1].dtype, y, n);
    if (status != SX_OK) {
        sx_cpu_fail(call, sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"",
                                             d->node->op->name, d->node->name));
        return;
    }
    d->row(x, 1, y, 1, made, n);
    const sx_host_tensor t = row_of(d->dtype, n, made);
    sx_host_store(&t, out);
}

/* Numbers between two bounds; NaN stays. */
static void chunk_clip_any(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                           void *out, int64_t n)
{
    double room[CHUNK], made[CHUNK];
    const sx_clip_attrs *attrs = d->node->attrs;
    const void *x = carried(d->dtype, in[0], room, n);
    (void)call;
#define CLIP(type, least, most)                                            \
    {                                                                      \
        const type *from = x, low = (type)(least), high = (type)(most);    \
        type *to = (type *)(void *)made;                                   \
        for (int64_t i = 0; i < n; i++) {                                  \
            to[i] = from[i] < low ? low : from[i] > high ? high : from[i]; \
        }                                                                  \
    }
    if (sx_carrier_of(d->dtype) == SX_CARRIER_F) {
        CLIP(double, attrs->low, attrs->high)
    } else if (sx_carrier_of(d->dtype) == SX_CARRIER_I) {
        CLIP(int64_t, d->low, d->high)
    } else {
        CLIP(uint64_t, d->low, d->high)
    }
    const sx_host_tensor t = row_of(d->dtype, n, made);
    sx_host_store(&t, out);
}

/* The operator's host kernel, of a chunk. */
static void chunk_host(const strided_data *d, const sx_cpu_call *call, const void *const *in,
                       void *out, int64_t n)
{
    double room[MAX_OPERANDS][CHUNK], made[CHUNK];
    sx_host_tensor t[MAX_OPERANDS];
    const sx_host_tensor y = row_of(d->dtype, n, made);
    for (int i = 0; i < d->n_in; i++) {
        t[i] = row_of(d->in[i].dtype, n, room[i]);
        sx_host_load(&t[i], in[i]);
    }
    sx_status status =
        sx_host_run_carried(d->node->op, d->node->attrs, t, d->n_in, &y, 1, NULL, false);
    if (status != SX_OK) {
        sx_cpu_fail(call, status);
        return;
    }
    sx_host_store(&y, out);
}

/* ---- Gathering ---- */

#define GATHER_ROW(type)                      \
    {                                         \
        const type *from = x;                 \
        type *to = y;                         \
        if (stride == 0) {                    \
            const type v = from[0];           \
            for (int64_t i = 0; i < n; i++) { \
                to[i] = v;                    \
            }                                 \
        } else {                              \
            for (int64_t i = 0; i < n; i++) { \
                to[i] = from[i * stride];     \
            }                                 \
        }                                     \
    }

static void gather_row(const void *x, int64_t stride, void *y, int64_t n, size_t bytes)
{
    if (stride == 1) {
        memcpy(y, x, (size_t)n * bytes);
    } else if (bytes == 1) {
        GATHER_ROW(uint8_t)
    } else if (bytes == 2) {
        GATHER_ROW(uint16_t)
    } else if (bytes == 4) {
        GATHER_ROW(uint32_t)
    } else {
        GATHER_ROW(uint64_t)
    }
}

/* The operand's elements for the result's [at, at + n). */
static const void *fetch(const strided_data *d, const operand *o, const char *data, int64_t at,
                         int64_t n, char *to)
{
    int64_t place[SX_MAX_RANK], offset = 0;
    const int inner = d->rank - 1;
    if (o->whole) {
        return data + (size_t)at * o->bytes;
    }
    for (int k = inner; k >= 0; k--) {
        place[k] = at % d->size[k];
        at /= d->size[k];
        offset += place[k] * o->stride[k];
    }
    for (int64_t done = 0;;) {
        const int64_t row = SX_MIN(d->size[inner] - place[inner], n - done);
        gather_row(data + (size_t)offset * o->bytes, o->stride[inner], to + (size_t)done * o->bytes,
                   row, o->bytes);
        done += row;
        if (done == n) {
            return to;
        }
        offset -= place[inner] * o->stride[inner];
        place[inner] = 0;
        sx_cpu_next_row(d->rank, d->size, o->stride, place, &offset);
    }
}

static void run_strided(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const strided_data *d = step->data;
    _Alignas(64) char room[MAX_OPERANDS][CHUNK * sizeof(double)];
    char *out = sx_cpu_out(step, call, 0);
    for (int64_t at = call->begin; at < call->end; at += CHUNK) {
        const int64_t n = SX_MIN(call->end - at, (int64_t)CHUNK);
        const void *in[MAX_OPERANDS];
        for (int i = 0; i < d->n_in; i++) {
            in[i] = fetch(d, &d->in[i], sx_cpu_in(step, call, i), at, n, room[i]);
        }
        d->chunk(d, call, in, out + (size_t)at * d->bytes, n);
    }
}

/* ---- Preparing ---- */

static const struct {
    int op;
    sx_vec_code code;
} codes[] = {
#define MAP(name, dtypes, tf, expression) {SX_OPID_##name, SX_VEC_##name},
#define ZIP(name, dtypes, tf, expression) MAP(name, dtypes, tf, expression)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
};

/* Which of its stages the cast has; false: the host's. */
static bool choose_cast(strided_data *d)
{
    const sx_cpu_vec *vec = d->vec;
    sx_dtype from = d->in[0].dtype, to = d->dtype;
    if (from == SX_F16 || from == SX_BF16) {
        d->widen = from == SX_F16 ? vec->from_f16 : vec->from_bf16;
        from = SX_F32;
    }
    if (to == SX_F16 || to == SX_BF16) {
        d->narrow = to == SX_F16 ? vec->to_f16 : vec->to_bf16;
        to = SX_F32;
    }
    if (from == to && (d->widen != NULL || d->narrow != NULL)) {
        return true;
    }
    d->cast = cast_of(from, to);
    return d->cast != NULL;
}

static int log2_of(size_t bytes)
{
    return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

static chunk_fn *choose_chunk(strided_data *d, bool all_f32)
{
    const sx_op_def *op = d->node->op;
    const void *attrs = d->node->attrs;
    const sx_row_loops *rows = sx_row_loops_of(op->id);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]) && all_f32; i++) {
        if (codes[i].op == op->id) {
            d->loop = d->dtype == SX_F32 ? d->vec->loops[codes[i].code] : NULL;
            d->test = d->dtype == SX_BOOL ? d->vec->tests[codes[i].code] : NULL;
        }
    }
    if (op->id == SX_OPID_atan2 && all_f32) {
        d->loop = d->vec->atan2;
    }
    if (d->loop != NULL) {
        return chunk_float;
    }
    if (d->test != NULL) {
        return chunk_test;
    }
    if (rows != NULL && d->in[0].dtype != SX_F16 && d->in[0].dtype != SX_BF16) {
        d->row = sx_row_loop_of(rows, d->in[0].dtype);
        d->rows = rows;
        return d->row != NULL ? chunk_row : chunk_host;
    }
    switch (op->id) {
    case SX_OPID_select:
        return chunk_select;
    case SX_OPID_cast:
        return choose_cast(d) ? chunk_cast : chunk_host;
    case SX_OPID_shift: {
        const bool is_signed =
            d->dtype == SX_I8 || d->dtype == SX_I16 || d->dtype == SX_I32 || d->dtype == SX_I64;
        const sx_vec_shifts *shifts =
            (is_signed ? d->vec->signed_shifts : d->vec->unsigned_shifts) + log2_of(d->bytes);
        d->shift = ((const sx_shift_attrs *)attrs)->right ? shifts->right : shifts->left;
        return chunk_shift;
    }
    case SX_OPID_population_count:
        d->count = d->vec->bit_counts[log2_of(d->in[0].bytes)];
        return chunk_count;
    case SX_OPID_clip:
        d->a = (float)((const sx_clip_attrs *)attrs)->low;
        d->b = (float)((const sx_clip_attrs *)attrs)->high;
        if (!all_f32 && d->dtype != SX_BOOL) {
            sx_host_tensor bound = {.type = sx_scalar_type(d->dtype), .data = &d->low};
            sx_host_set(&bound, 0, ((const sx_clip_attrs *)attrs)->low);
            bound.data = &d->high;
            sx_host_set(&bound, 0, ((const sx_clip_attrs *)attrs)->high);
        }
        return all_f32 ? chunk_clip : d->dtype != SX_BOOL ? chunk_clip_any : chunk_host;
    case SX_OPID_leaky_relu:
        d->a = (float)((const sx_alpha_attrs *)attrs)->alpha;
        d->wide_a = ((const sx_alpha_attrs *)attrs)->alpha;
        return all_f32 ? chunk_leaky_relu : d->dtype == SX_F64 ? chunk_leaky_relu_f64 : chunk_host;
    case SX_OPID_elu:
        d->a = (float)((const sx_alpha_attrs *)attrs)->alpha;
        d->wide_a = ((const sx_alpha_attrs *)attrs)->alpha;
        return all_f32 ? chunk_elu : d->dtype == SX_F64 ? chunk_elu_f64 : chunk_host;
    default:
        return chunk_host;
    }
}

/* Strides of `in` broadcast to out; dimensions that follow one another in all are joined. */
static void set_strides(strided_data *d, const sx_cpu_site *site)
{
    const sx_type *out = &site->out[0];
    d->rank = 0;
    for (int k = 0; k < out->rank; k++) {
        int64_t stride[MAX_OPERANDS];
        bool joins = d->rank > 0;
        if (out->dims[k] == 1) {
            continue;
        }
        for (int i = 0; i < d->n_in; i++) {
            const sx_type *in = &site->in[i];
            const int at = k - (out->rank - in->rank);
            stride[i] = at < 0 || in->dims[at] == 1 ? 0 : 1;
            for (int j = at + 1; at >= 0 && j < in->rank; j++) {
                stride[i] *= in->dims[j];
            }
            joins = joins && d->in[i].stride[d->rank - 1] == stride[i] * out->dims[k];
        }
        if (!joins) {
            d->size[d->rank++] = 1;
        }
        d->size[d->rank - 1] *= out->dims[k];
        for (int i = 0; i < d->n_in; i++) {
            d->in[i].stride[d->rank - 1] = stride[i];
        }
    }
    if (d->rank == 0) {
        d->size[d->rank++] = 1;
    }
    for (int i = 0; i < d->n_in; i++) {
        d->in[i].whole = sx_type_elems(&site->in[i]) == sx_type_elems(out);
    }
}

static bool match_strided(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    for (int i = 0; i < m->n_in; i++) {
        const sx_type *in = sx_graph_type(m->graph, m->in[i]);
        const sx_type *out = sx_graph_type(m->graph, m->out[0]);
        const size_t bytes = sx_dtype_bytes(in->dtype);
        if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || in->rank > out->rank) {
            return false;
        }
    }
    return (n->op->flags & SX_OP_ELEMENTWISE) != 0 && m->n_out == 1 && m->n_in >= 1 &&
           m->n_in <= MAX_OPERANDS &&
           sx_dtype_bytes(sx_graph_type(m->graph, m->out[0])->dtype) <= 8;
}

static sx_status prepare_strided(const sx_cpu_site *site, sx_cpu_step *step)
{
    strided_data *d = sx_cpu_new(site, strided_data);
    bool all_f32 = true;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (strided_data){.vec = site->vec,
                        .node = site->nodes[0],
                        .dtype = site->out[0].dtype,
                        .bytes = sx_dtype_bytes(site->out[0].dtype),
                        .n_in = site->n_in};
    for (int i = 0; i < d->n_in; i++) {
        d->in[i].dtype = site->in[i].dtype;
        d->in[i].bytes = sx_dtype_bytes(site->in[i].dtype);
        all_f32 = all_f32 && d->in[i].dtype == SX_F32;
    }
    set_strides(d, site);
    d->chunk = choose_chunk(d, all_f32);
    step->run = run_strided;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    step->kernel = site->nodes[0]->op->name;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_strided = {
    .name = "strided", .match = match_strided, .prepare = prepare_strided};
