/* gather_nd, tensor_scatter: slices at rows of indices. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct slices_data {
    sx_type x;
    sx_dtype index;
    int k;         /* indices of a slice */
    int64_t count; /* of slices that are taken, or updated */
    int64_t width; /* elements of one */
    size_t run;    /* bytes of one */
    size_t bytes;  /* of x */
    int32_t how, check;
} slices_data;

/* Update moves elements; the others compute with those that are listed in run_scatter(). */
static bool match_slices(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    const sx_tensor_scatter_attrs *attrs = n->attrs;
    m->in_place = n->op->id == SX_OPID_tensor_scatter ? 1 : 0;
    return n->op->id == SX_OPID_gather_nd || attrs->how == SX_SCATTER_UPDATE
               ? sx_dtype_bytes(dtype) > 0
               : dtype == SX_F32 || dtype == SX_F64 || dtype == SX_I32 || dtype == SX_I64;
}

static int64_t index_of(const slices_data *d, const void *indices, int64_t i)
{
    return d->index == SX_I64 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* The number of slice i, -1 if it is left out; -2 if it is outside, which is the run's error. */
static int64_t slice_of(const sx_cpu_step *step, const sx_cpu_call *call, const void *indices,
                        int64_t i)
{
    const slices_data *d = step->data;
    int64_t row = 0;
    bool inside = true, negative = false;
    for (int k = 0; k < d->k; k++) {
        const int64_t at = index_of(d, indices, i * d->k + k);
        negative = negative || at < 0;
        inside = inside && at >= 0 && at < d->x.dims[k];
        row = inside ? row * d->x.dims[k] + at : 0;
    }
    const bool descends = d->check == SX_SCATTER_ASCENDING && i > 0 &&
                          index_of(d, indices, i) < index_of(d, indices, i - 1);
    if (inside && !descends) {
        return row;
    }
    if (negative && !descends && d->check == SX_SCATTER_SKIP_NEGATIVE) {
        return -1;
    }
    sx_cpu_fail(call,
                sx_error(SX_INVALID_ARGUMENT, "\"%s\": index %lld %s %s", step->node, (long long)i,
                         descends ? "descends, of slices of" : "is not inside", SX_TEXT(&d->x)));
    return -2;
}

static void run_gather(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const slices_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    const void *indices = sx_cpu_in(step, call, 1);
    char *y = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->count; i++, y += d->run) {
        const int64_t row = slice_of(step, call, indices, i);
        if (row >= 0) {
            memcpy(y, x + (size_t)row * d->run, d->run);
        } else {
            memset(y, 0, d->run);
        }
    }
}

/* Integers wrap: they are added and multiplied without a sign. */
#define COMBINE(type, wraps)                                             \
    {                                                                    \
        type *to = (type *)(void *)y + row * d->width;                   \
        const type *from = (const type *)(const void *)u + i * d->width; \
        for (int64_t j = 0; j < d->width; j++) {                         \
            const type v = from[j];                                      \
            switch (d->how) {                                            \
            case SX_SCATTER_ADD:                                         \
                to[j] = (type)((wraps)to[j] + (wraps)v);                 \
                break;                                                   \
            case SX_SCATTER_SUB:                                         \
                to[j] = (type)((wraps)to[j] - (wraps)v);                 \
                break;                                                   \
            case SX_SCATTER_MUL:                                         \
                to[j] = (type)((wraps)to[j] * (wraps)v);                 \
                break;                                                   \
            case SX_SCATTER_MIN:                                         \
                to[j] = v < to[j] ? v : to[j];                           \
                break;                                                   \
            default:                                                     \
                to[j] = v > to[j] ? v : to[j];                           \
                break;                                                   \
            }                                                            \
        }                                                                \
    }

static void run_scatter(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const slices_data *d = step->data;
    const void *indices = sx_cpu_in(step, call, 1);
    const char *u = sx_cpu_in(step, call, 2);
    char *y = sx_cpu_out(step, call, 0);
    if (y != sx_cpu_in(step, call, 0)) {
        memcpy(y, sx_cpu_in(step, call, 0), d->bytes);
    }
    for (int64_t i = 0; i < d->count; i++) {
        const int64_t row = slice_of(step, call, indices, i);
        if (row == -2) {
            return;
        }
        if (row == -1) {
            continue;
        }
        if (d->how == SX_SCATTER_UPDATE) {
            memcpy(y + (size_t)row * d->run, u + (size_t)i * d->run, d->run);
        } else if (d->x.dtype == SX_F32) {
            COMBINE(float, float)
        } else if (d->x.dtype == SX_F64) {
            COMBINE(double, double)
        } else if (d->x.dtype == SX_I32) {
            COMBINE(int32_t, uint32_t)
        } else {
            COMBINE(int64_t, uint64_t)
        }
    }
}

static sx_status prepare_slices(const sx_cpu_site *site, sx_cpu_step *step)
{
    const bool gathers = site->nodes[0]->op->id == SX_OPID_gather_nd;
    const sx_type *x = &site->in[0], *indices = &site->in[1];
    slices_data *d = sx_cpu_new(site, slices_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (slices_data){.x = *x,
                       .index = indices->dtype,
                       .k = (int)indices->dims[indices->rank - 1],
                       .count = sx_dims_product(indices, 0, indices->rank - 1),
                       .bytes = (size_t)sx_type_bytes(x)};
    if (gathers) {
        const sx_gather_nd_attrs *attrs = site->nodes[0]->attrs;
        d->check = attrs->skip_negative ? SX_SCATTER_SKIP_NEGATIVE : SX_SCATTER_INSIDE;
    } else {
        const sx_tensor_scatter_attrs *attrs = site->nodes[0]->attrs;
        d->how = attrs->how;
        d->check = attrs->check;
    }
    d->width = sx_dims_product(x, d->k, x->rank);
    d->run = (size_t)d->width * sx_dtype_bytes(x->dtype);
    step->run = gathers ? run_gather : run_scatter;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_gather_nd = {
    .name = "gather_nd", .op = SX_OPID_gather_nd, .match = match_slices, .prepare = prepare_slices};
const sx_cpu_kernel sx_cpu_kernel_tensor_scatter = {.name = "tensor_scatter",
                                                    .op = SX_OPID_tensor_scatter,
                                                    .match = match_slices,
                                                    .prepare = prepare_slices};
