/* bincount: a row of counts at a time. Those of floats are added in double and rounded once. */
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"

typedef struct row {
    const void *x, *weights; /* of row `first` on; weights: NULL without any */
    int64_t first, n, size;
    bool binary;
} row;

/* Adds the row's elements to `bins`; the place of one that is negative, or -1. */
typedef int64_t add_fn(const row *r, void *bins);

#define ADD(name, index, weight, sum)                                 \
    static int64_t name(const row *r, void *bins)                     \
    {                                                                 \
        const index *x = (const index *)r->x + r->first;              \
        const weight *w = r->weights;                                 \
        sum *y = bins;                                                \
        for (int64_t i = 0; i < r->n; i++) {                          \
            const int64_t bin = x[i];                                 \
            if (bin < 0) {                                            \
                return r->first + i;                                  \
            }                                                         \
            if (bin < r->size) {                                      \
                const sum one = w != NULL ? (sum)w[r->first + i] : 1; \
                y[bin] = r->binary ? 1 : y[bin] + one;                \
            }                                                         \
        }                                                             \
        return -1;                                                    \
    }
ADD(i32_f32, int32_t, float, double)
ADD(i32_f64, int32_t, double, double)
ADD(i32_n32, int32_t, uint32_t, uint32_t)
ADD(i32_n64, int32_t, uint64_t, uint64_t)
ADD(i64_f32, int64_t, float, double)
ADD(i64_f64, int64_t, double, double)
ADD(i64_n32, int64_t, uint32_t, uint32_t)
ADD(i64_n64, int64_t, uint64_t, uint64_t)
#undef ADD

static add_fn *add_of(sx_dtype index, sx_dtype weight)
{
    const bool wide = index == SX_I64;
    switch (weight) {
    case SX_F32:
        return wide ? i64_f32 : i32_f32;
    case SX_F64:
        return wide ? i64_f64 : i32_f64;
    case SX_I32:
        return wide ? i64_n32 : i32_n32;
    default: /* SX_I64: infer takes no other */
        return wide ? i64_n64 : i32_n64;
    }
}

static bool is_ragged(const sx_typed_call *c)
{
    return ((const sx_bincount_attrs *)c->attrs)->rows == SX_COUNTED_RAGGED;
}

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs, (void)in;
    return true;
}

static sx_status types(sx_typed_call *c, sx_type *out_types)
{
    /* size, behind the splits of ragged rows */
    return is_ragged(c) ? sx_typed_host_types(&sx_op_bincount, c, 1 | 1U << 2, out_types, 1)
                        : sx_typed_host_types(&sx_op_bincount, c, 1U << 1, out_types, 1);
}

static sx_status run(const sx_typed_call *c)
{
    const sx_bincount_attrs *attrs = c->attrs;
    const int first = is_ragged(c) ? 1 : 0;
    const sx_tensor *x = &c->in[first], *weights = &c->in[first + 2];
    const sx_type *y = &c->out[0].type;
    const int64_t *splits = first == 1 ? c->in[0].data : NULL;
    const int64_t rows = y->rank == 2 ? y->dims[0] : 1, size = y->dims[y->rank - 1];
    const int64_t width = rows > 0 ? sx_type_elems(&x->type) / rows : 0;
    add_fn *add = add_of(x->type.dtype, y->dtype);
    const size_t bytes = (size_t)size * sx_dtype_bytes(y->dtype);
    double *sums = NULL;
    if (y->dtype == SX_F32 &&
        (sums = sx_arena_array(c->context->arena, size + 1, double)) == NULL) {
        return sx_budget_error(c->context->arena->budget);
    }
    for (int64_t i = 0; i < rows; i++) {
        char *to = (char *)c->out[0].data + (size_t)i * bytes;
        const int64_t begin = splits != NULL ? splits[i] : i * width;
        const row r = {.x = x->data,
                       .weights = sx_type_elems(&weights->type) > 0 ? weights->data : NULL,
                       .first = begin,
                       .n = splits != NULL ? splits[i + 1] - begin : width,
                       .size = size,
                       .binary = attrs->binary_output};
        SX_TRY(sx_cancel_check(c->context->cancel));
        memset(sums != NULL ? (void *)sums : to, 0, sums != NULL ? (size_t)size * 8 : bytes);
        const int64_t negative = add(&r, sums != NULL ? (void *)sums : to);
        if (negative >= 0) {
            const double value = sx_host_load_element(
                x->type.dtype,
                (const char *)x->data + (size_t)negative * sx_dtype_bytes(x->type.dtype));
            return sx_error(SX_INVALID_ARGUMENT, "element %lld of x is %lld, expected 0 or more",
                            (long long)negative, (long long)value);
        }
        for (int64_t k = 0; k < size && sums != NULL; k++) {
            ((float *)(void *)to)[k] = (float)sums[k];
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_bincount = {
    .op = SX_OPID_bincount, .takes = takes, .types = types, .run = run};
