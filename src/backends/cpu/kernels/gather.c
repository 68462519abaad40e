/* gather and its gradient: rows copied, and rows added up in the order of the indices. Rows of one
 * element have loops of their own. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct gather_data {
    int64_t parts; /* pairs and what is before the axis */
    int64_t before, rows, count, width;
    size_t elem;
    bool wide; /* indices are int64 */
    void (*take)(const void *table, int64_t rows, const void *index, bool wide, void *y, int64_t n);
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

/* Rows of one element: y[i] = table[index[i]], 0 where there is none. */
#define TAKE(name, type)                                                                          \
    static void name(const void *table, int64_t rows, const void *index, bool wide, void *y,      \
                     int64_t n)                                                                   \
    {                                                                                             \
        const type *from = table;                                                                 \
        type *to = y;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                         \
            const int64_t row = wide ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i]; \
            to[i] = row >= 0 && row < rows ? from[row] : 0;                                       \
        }                                                                                         \
    }
TAKE(take_1, uint8_t)
TAKE(take_2, uint16_t)
TAKE(take_4, uint32_t)
TAKE(take_8, uint64_t)
#undef TAKE

static void run_gather_elements(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const gather_data *d = step->data;
    const char *table = sx_cpu_in(step, call, 0), *indices = sx_cpu_in(step, call, 1);
    char *out = sx_cpu_out(step, call, 0);
    const size_t index_bytes = (size_t)d->count * (d->wide ? sizeof(int64_t) : sizeof(int32_t));
    for (int64_t part = 0; part < d->parts; part++) {
        const char *index = indices + (size_t)(part / d->before) * index_bytes;
        d->take(table, d->rows, index, d->wide, out, d->count);
        table += (size_t)d->rows * d->elem;
        out += (size_t)d->count * d->elem;
    }
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
    SX_TRY(prepare(site, step, &site->in[0], &site->in[1], attrs->axis, attrs->batch_dims));
    gather_data *d = (gather_data *)step->data;
    if (d->width == 1) {
        d->take = d->elem == 1   ? take_1
                  : d->elem == 2 ? take_2
                  : d->elem == 4 ? take_4
                  : d->elem == 8 ? take_8
                                 : NULL;
    }
    step->run = d->take != NULL ? run_gather_elements : run_gather;
    return SX_OK;
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
