/* histogram_fixed_width: the bins of a chunk of values, by a vector loop, then their counts. */
#include <math.h>
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"

enum { CHUNK = 512, CHUNKS_A_CHECK = 64 };

/* Where values lie among bins [0, last], `range` being their dtype's two bounds; whether one is
 * NaN. */
typedef bool bins_fn(const void *values, int64_t first, int64_t n, const void *range, int32_t last,
                     int32_t *bins);

/* DIFFERENCE has the dtype of the values, as the host kernel's. */
#define BINS(name, type, DIFFERENCE)                                                  \
    static bool name(const void *values, int64_t first, int64_t n, const void *range, \
                     int32_t last, int32_t *bins)                                     \
    {                                                                                 \
        const type *x = (const type *)values + first;                                 \
        const type low = ((const type *)range)[0], high = ((const type *)range)[1];   \
        const double step = (double)(DIFFERENCE(high, low)) / ((double)last + 1);     \
        int nan = 0;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                             \
            const type v = x[i];                                                      \
            const double at = v < low ? 0 : (double)(DIFFERENCE(v, low)) / step;      \
            const double above = at > 0 ? at : 0;                                     \
            bins[i] = (int32_t)(above < (double)last ? above : (double)last);         \
            nan |= v != v;                                                            \
        }                                                                             \
        return nan != 0;                                                              \
    }
#define MINUS(a, b)    ((a) - (b))
#define MINUS_32(a, b) ((int32_t)((uint32_t)(a) - (uint32_t)(b)))
#define MINUS_64(a, b) ((int64_t)((uint64_t)(a) - (uint64_t)(b)))
BINS(bins_f32, float, MINUS)
BINS(bins_f64, double, MINUS)
BINS(bins_i32, int32_t, MINUS_32)
BINS(bins_i64, int64_t, MINUS_64)
#undef BINS

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs, (void)in;
    return true;
}

static sx_status run(const sx_typed_call *c)
{
    const sx_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t elems = sx_type_elems(&x->type);
    const int32_t count = *(const int32_t *)c->in[2].data;
    const sx_dtype dtype = x->type.dtype;
    bins_fn *bins_of = dtype == SX_F32   ? bins_f32
                       : dtype == SX_F64 ? bins_f64
                       : dtype == SX_I32 ? bins_i32
                                         : bins_i64; /* infer takes no other */
    int32_t bins[CHUNK];
    memset(y->data, 0, (size_t)count * sx_dtype_bytes(y->type.dtype));
    for (int64_t at = 0; at < elems; at += CHUNK) {
        const int64_t n = SX_MIN(elems - at, (int64_t)CHUNK);
        if (at % (CHUNKS_A_CHECK * CHUNK) == 0) {
            SX_TRY(sx_cancel_check(c->context->cancel));
        }
        if (bins_of(x->data, at, n, c->in[1].data, count - 1, bins)) {
            int64_t k = at;
            while (!isnan(dtype == SX_F32 ? (double)((const float *)x->data)[k]
                                          : ((const double *)x->data)[k])) {
                k++;
            }
            return sx_error(SX_INVALID_ARGUMENT, "element %lld of values is NaN", (long long)k);
        }
        for (int64_t k = 0; k < n && y->type.dtype == SX_I32; k++) {
            ((int32_t *)y->data)[bins[k]]++;
        }
        for (int64_t k = 0; k < n && y->type.dtype != SX_I32; k++) {
            ((int64_t *)y->data)[bins[k]]++;
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_histogram_fixed_width = {
    .op = SX_OPID_histogram_fixed_width, .sizes = 1U << 1 | 1U << 2, .takes = takes, .run = run};
