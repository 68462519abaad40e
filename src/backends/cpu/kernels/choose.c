/* argmax, argmin, top_k, in_top_k: places of the greatest. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct choose_data {
    sx_dtype dtype;
    int64_t outer, count, inner; /* around the axis */
    int64_t k;
    bool least, wide; /* wide: places are, or targets come as, int64 */
} choose_data;

/* BODY(type) for the dtype; 16-bit floats have no row. */
#define BY_DTYPE(dtype, BODY) \
    switch (dtype) {          \
    case SX_F64:              \
        BODY(double)          \
        break;                \
    case SX_I8:               \
        BODY(int8_t)          \
        break;                \
    case SX_U8:               \
        BODY(uint8_t)         \
        break;                \
    case SX_I16:              \
        BODY(int16_t)         \
        break;                \
    case SX_U16:              \
        BODY(uint16_t)        \
        break;                \
    case SX_I32:              \
        BODY(int32_t)         \
        break;                \
    case SX_U32:              \
        BODY(uint32_t)        \
        break;                \
    case SX_I64:              \
        BODY(int64_t)         \
        break;                \
    case SX_U64:              \
        BODY(uint64_t)        \
        break;                \
    default:                  \
        BODY(float)           \
        break;                \
    }

static bool match_number(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    return dtype != SX_F16 && dtype != SX_BF16 && sx_dtype_bytes(dtype) > 0;
}

static bool match_f32(sx_cpu_match *m)
{
    return sx_cpu_is_f32(m, m->in[0]);
}

/* The first of the greatest, line by line: lines that lie side by side are passed over together. */
static void run_extreme(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const choose_data *d = step->data;
    int32_t *narrow = sx_cpu_out(step, call, 0);
    int64_t *wide = sx_cpu_out(step, call, 0);
#define EXTREME(type)                                                         \
    {                                                                         \
        const type *x = sx_cpu_in(step, call, 0);                             \
        type *best = sx_cpu_at(call, step->scratch);                          \
        for (int64_t i = 0; i < d->outer; i++) {                              \
            int64_t *places = wide + i * d->inner;                            \
            int32_t *places_4 = narrow + i * d->inner;                        \
            for (int64_t k = 0; k < d->count; k++) {                          \
                for (int64_t j = 0; j < d->inner; j++, x++) {                 \
                    if (k == 0 || (d->least ? *x < best[j] : *x > best[j])) { \
                        best[j] = *x;                                         \
                        if (d->wide) {                                        \
                            places[j] = k;                                    \
                        } else {                                              \
                            places_4[j] = (int32_t)k;                         \
                        }                                                     \
                    }                                                         \
                }                                                             \
            }                                                                 \
        }                                                                     \
    }
    BY_DTYPE(d->dtype, EXTREME)
}

static sx_status prepare_extreme(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_argmax_attrs *attrs = site->nodes[0]->attrs;
    const sx_type *x = &site->in[0];
    choose_data *d = sx_cpu_new(site, choose_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (choose_data){.dtype = x->dtype,
                       .outer = sx_dims_product(x, 0, (int)attrs->axis),
                       .count = x->dims[attrs->axis],
                       .inner = sx_dims_product(x, (int)attrs->axis + 1, x->rank),
                       .least = site->nodes[0]->op->id == SX_OPID_argmin,
                       .wide = site->out[0].dtype == SX_I64};
    step->run = run_extreme;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(d->inner * (int64_t)sizeof(int64_t));
    return SX_OK;
}

/* The k greatest so far are kept in order; an element that is none of them costs a comparison. */
static void run_top_k(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const choose_data *d = step->data;
    int32_t *places = sx_cpu_out(step, call, 1);
#define TOP(type)                                                                                 \
    {                                                                                             \
        const type *x = sx_cpu_in(step, call, 0);                                                 \
        type *y = sx_cpu_out(step, call, 0);                                                      \
        for (int64_t i = 0; i < d->outer; i++, x += d->count, y += d->k, places += d->k) {        \
            int64_t n = 0;                                                                        \
            for (int64_t j = 0; j < d->count && d->k > 0; j++) {                                  \
                const type v = x[j];                                                              \
                if (n == d->k && !(v > y[n - 1])) {                                               \
                    continue;                                                                     \
                }                                                                                 \
                int64_t low = 0, high = n; /* behind those that are not less */                   \
                while (low < high) {                                                              \
                    const int64_t middle = (low + high) / 2;                                      \
                    if (v > y[middle]) {                                                          \
                        high = middle;                                                            \
                    } else {                                                                      \
                        low = middle + 1;                                                         \
                    }                                                                             \
                }                                                                                 \
                n += n < d->k;                                                                    \
                memmove(y + low + 1, y + low, (size_t)(n - 1 - low) * sizeof(type));              \
                memmove(places + low + 1, places + low, (size_t)(n - 1 - low) * sizeof(*places)); \
                y[low] = v;                                                                       \
                places[low] = (int32_t)j;                                                         \
            }                                                                                     \
        }                                                                                         \
    }
    BY_DTYPE(d->dtype, TOP)
}

static sx_status prepare_top_k(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *x = &site->in[0];
    choose_data *d = sx_cpu_new(site, choose_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (choose_data){.dtype = x->dtype,
                       .outer = sx_dims_product(x, 0, x->rank - 1),
                       .count = x->dims[x->rank - 1],
                       .k = ((const sx_top_k_attrs *)site->nodes[0]->attrs)->k};
    step->run = run_top_k;
    step->data = d;
    return SX_OK;
}

static void run_in_top_k(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const choose_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0);
    const int32_t *narrow = sx_cpu_in(step, call, 1);
    const int64_t *wide = sx_cpu_in(step, call, 1);
    uint8_t *y = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->outer; i++, x += d->count) {
        const int64_t target = d->wide ? wide[i] : narrow[i];
        const bool is_class = target >= 0 && target < d->count && isfinite(x[target]);
        const float v = is_class ? x[target] : 0;
        int64_t greater = 0, unordered = 0;
        for (int64_t j = 0; j < d->count; j++) {
            greater += x[j] > v;
            unordered += x[j] != x[j];
        }
        y[i] = is_class && unordered == 0 && greater < d->k;
    }
}

static sx_status prepare_in_top_k(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *x = &site->in[0];
    choose_data *d = sx_cpu_new(site, choose_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (choose_data){.outer = x->dims[0],
                       .count = x->dims[1],
                       .k = ((const sx_top_k_attrs *)site->nodes[0]->attrs)->k,
                       .wide = site->in[1].dtype == SX_I64};
    step->run = run_in_top_k;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_argmax = {
    .name = "argmax", .op = SX_OPID_argmax, .match = match_number, .prepare = prepare_extreme};
const sx_cpu_kernel sx_cpu_kernel_argmin = {
    .name = "argmin", .op = SX_OPID_argmin, .match = match_number, .prepare = prepare_extreme};
const sx_cpu_kernel sx_cpu_kernel_top_k = {
    .name = "top_k", .op = SX_OPID_top_k, .match = match_number, .prepare = prepare_top_k};
const sx_cpu_kernel sx_cpu_kernel_in_top_k = {
    .name = "in_top_k", .op = SX_OPID_in_top_k, .match = match_f32, .prepare = prepare_in_top_k};
