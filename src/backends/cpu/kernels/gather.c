/* gather and its gradient: rows copied, and rows added up in the order of the indices. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct gather_data {
    int64_t parts; /* pairs and what is before the axis */
    int64_t before, rows, count, width;
    size_t elem;
    bool wide; /* indices are int64 */
} gather_data;

static bool match_gather(sx_cpu_match *m)
{
    return sx_graph_type(m->graph, m->in[0])->dtype != SX_STRING;
}

static bool match_gather_grad(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[1])->dtype;
    return dtype == SX_F32 || dtype == SX_F64;
}

/* The row of the table that slice `i` of the result is, or -1. */
static int64_t row_of(const gather_data *d, const void *indices, int64_t i)
{
    const int64_t part = i / d->count, at = part / d->before * d->count + i % d->count;
    const int64_t row = d->wide ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
    return row >= 0 && row < d->rows ? part * d->rows + row : -1;
}

static void run_gather(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const gather_data *d = step->data;
    const char *table = sx_cpu_in(step, call, 0);
    const void *indices = sx_cpu_in(step, call, 1);
    char *out = sx_cpu_out(step, call, 0);
    const size_t bytes = (size_t)d->width * d->elem;
    for (int64_t i = 0; i < d->parts * d->count; i++) {
        const int64_t row = row_of(d, indices, i);
        if (row >= 0) {
            memcpy(out + (size_t)i * bytes, table + (size_t)row * bytes, bytes);
        } else {
            memset(out + (size_t)i * bytes, 0, bytes);
        }
    }
}

#define GATHER_GRAD(name, type)                                            \
    static void name(const sx_cpu_step *step, const sx_cpu_call *call)     \
    {                                                                      \
        const gather_data *d = step->data;                                 \
        const void *indices = sx_cpu_in(step, call, 0);                    \
        const type *dy = sx_cpu_in(step, call, 1);                         \
        type *out = sx_cpu_out(step, call, 0);                             \
        memset(out, 0, (size_t)(d->parts * d->rows * d->width) * d->elem); \
        for (int64_t i = 0; i < d->parts * d->count; i++) {                \
            const int64_t row = row_of(d, indices, i);                     \
            for (int64_t k = 0; k < d->width && row >= 0; k++) {           \
                out[row * d->width + k] += dy[i * d->width + k];           \
            }                                                              \
        }                                                                  \
    }
GATHER_GRAD(run_gather_grad, float)
GATHER_GRAD(run_gather_grad_f64, double)
#undef GATHER_GRAD

static sx_status prepare(const sx_cpu_site *site, sx_cpu_step *step, const sx_type *table,
                         const sx_type *indices, int64_t axis, int64_t paired)
{
    gather_data *d = sx_cpu_new(site, gather_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (gather_data){
        .parts = sx_dims_product(table, 0, (int)axis),
        .before = sx_dims_product(table, (int)paired, (int)axis),
        .rows = table->dims[axis],
        .count = sx_dims_product(indices, (int)paired, indices->rank),
        .width = sx_dims_product(table, (int)axis + 1, table->rank),
        .elem = sx_dtype_bytes(table->dtype),
        .wide = indices->dtype == SX_I64,
    };
    step->data = d;
    return SX_OK;
}

static sx_status prepare_gather(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_gather_attrs *attrs = site->nodes[0]->attrs;
    step->run = run_gather;
    return prepare(site, step, &site->in[0], &site->in[1], attrs->axis, attrs->batch_dims);
}

static sx_status prepare_gather_grad(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_gather_grad_attrs *attrs = site->nodes[0]->attrs;
    step->run = site->in[1].dtype == SX_F64 ? run_gather_grad_f64 : run_gather_grad;
    return prepare(site, step, &site->out[0], &site->in[0], attrs->axis, attrs->batch_dims);
}

const sx_cpu_kernel sx_cpu_kernel_gather = {
    .name = "gather", .op = SX_OPID_gather, .match = match_gather, .prepare = prepare_gather};
const sx_cpu_kernel sx_cpu_kernel_gather_grad = {.name = "gather_grad",
                                                 .op = SX_OPID_gather_grad,
                                                 .match = match_gather_grad,
                                                 .prepare = prepare_gather_grad};
