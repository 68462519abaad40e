/* Reductions of any dtype over any axes: what reduce.c does not take. The operand is read once, in
 * order, row after row of what lies together; results are kept in their carriers, in scratch. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"

enum { CHUNK = 512 };
typedef enum how { SUM, PROD, MIN, MAX, ALL, ANY, HOWS } how;

typedef struct any_data {
    how how;
    sx_dtype dtype;
    size_t bytes;
    int rank;
    int64_t elems, results;
    int64_t size[SX_MAX_RANK], stride[SX_MAX_RANK]; /* stride: in the result; 0 = reduced */
} any_data;

#define JOIN_SUM(a, v)  ((a) + (v))
#define JOIN_PROD(a, v) ((a) * (v))
#define JOIN_MIN(a, v)  ((v) < (a) || (v) != (v) ? (v) : (a))
#define JOIN_MAX(a, v)  ((v) > (a) || (v) != (v) ? (v) : (a))
#define JOIN_ALL(a, v)  ((a) & ((v) != 0))
#define JOIN_ANY(a, v)  ((a) | ((v) != 0))

/* n elements into one result, or into results side by side. */
#define JOIN_ROW(type, JOIN)                     \
    {                                            \
        const type *v = x;                       \
        type *to = y;                            \
        if (together) {                          \
            type all = to[0];                    \
            for (int64_t i = 0; i < n; i++) {    \
                all = (type)JOIN(all, v[i]);     \
            }                                    \
            to[0] = all;                         \
        } else {                                 \
            for (int64_t i = 0; i < n; i++) {    \
                to[i] = (type)JOIN(to[i], v[i]); \
            }                                    \
        }                                        \
        return;                                  \
    }
#define BY_HOW(type)                  \
    {                                 \
        switch (h) {                  \
        case SUM:                     \
            JOIN_ROW(type, JOIN_SUM)  \
        case PROD:                    \
            JOIN_ROW(type, JOIN_PROD) \
        case MIN:                     \
            JOIN_ROW(type, JOIN_MIN)  \
        default:                      \
            JOIN_ROW(type, JOIN_MAX)  \
        }                             \
    }

static void join_row(how h, sx_carrier carrier, const void *x, void *y, int64_t n, bool together)
{
    if (h == ALL) {
        JOIN_ROW(uint8_t, JOIN_ALL)
    }
    if (h == ANY) {
        JOIN_ROW(uint8_t, JOIN_ANY)
    }
    if (carrier == SX_CARRIER_F) {
        BY_HOW(double)
    }
    if (carrier == SX_CARRIER_U || h == SUM || h == PROD) { /* modulo 2^64 */
        BY_HOW(uint64_t)
    }
    BY_HOW(int64_t)
}

static double start_of(how h)
{
    static const double starts[HOWS] = {[PROD] = 1, [MIN] = INFINITY, [MAX] = -INFINITY, [ALL] = 1};
    return starts[h];
}

static void run_any(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const any_data *d = step->data;
    const sx_carrier carrier = sx_carrier_of(d->dtype);
    const size_t wide = sx_carrier_bytes(d->dtype);
    const int inner = d->rank - 1;
    const char *x = sx_cpu_in(step, call, 0);
    char *results = sx_cpu_at(call, step->scratch);
    const sx_host_tensor all = {.type = sx_type_of(d->dtype, d->results), .data = results};
    int64_t at[SX_MAX_RANK] = {0}, to = 0;
    double room[CHUNK];
    for (int64_t i = 0; i < d->results; i++) {
        sx_host_set(&all, i, start_of(d->how));
    }
    for (int64_t done = 0; done < d->elems; done += d->size[inner]) {
        for (int64_t k = 0, n; k < d->size[inner]; k += n) {
            n = SX_MIN(d->size[inner] - k, (int64_t)CHUNK);
            sx_host_tensor t = {.type = sx_type_of(d->dtype, n), .data = room};
            sx_host_load(&t, x);
            x += (size_t)n * d->bytes;
            join_row(d->how, carrier, room, results + (size_t)(to + k * d->stride[inner]) * wide, n,
                     d->stride[inner] == 0);
        }
        sx_cpu_next_row(d->rank, d->size, d->stride, at, &to);
    }
    sx_host_round(&all);
    sx_host_store(&all, sx_cpu_out(step, call, 0));
}

static any_data describe(const sx_cpu_site *site, const sx_ints *axes)
{
    const sx_type *x = &site->in[0];
    const int op = site->nodes[0]->op->id;
    bool reduced[SX_MAX_RANK] = {false};
    any_data made, *d = &made;
    *d = (any_data){.how = op == SX_OPID_reduce_sum    ? SUM
                           : op == SX_OPID_reduce_prod ? PROD
                           : op == SX_OPID_reduce_min  ? MIN
                           : op == SX_OPID_reduce_max  ? MAX
                           : op == SX_OPID_reduce_all  ? ALL
                                                       : ANY,
                    .dtype = x->dtype,
                    .bytes = sx_dtype_bytes(x->dtype),
                    .elems = sx_type_elems(x),
                    .results = sx_type_elems(&site->out[0])};
    for (int i = 0; i < axes->n; i++) {
        reduced[axes->v[i]] = true;
    }
    for (int k = 0; k < x->rank; k++) { /* neighbours of one kind are one dimension */
        const bool joins = d->rank > 0 && (d->stride[d->rank - 1] == 0) == reduced[k];
        if (x->dims[k] == 1) {
            continue;
        }
        if (!joins) {
            d->size[d->rank] = 1;
            d->stride[d->rank++] = reduced[k] ? 0 : 1;
        }
        d->size[d->rank - 1] *= x->dims[k];
    }
    if (d->rank == 0) {
        d->size[d->rank++] = 1;
    }
    int64_t stride = 1;
    for (int k = d->rank - 1; k >= 0; k--) {
        if (d->stride[k] != 0) {
            d->stride[k] = stride;
            stride *= d->size[k];
        }
    }
    return made;
}

static sx_status prepare_any(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_reduce_attrs *attrs = site->nodes[0]->attrs;
    any_data *d = sx_cpu_new(site, any_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = describe(site, &attrs->axes);
    step->run = run_any;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(d->results * (int64_t)sx_carrier_bytes(d->dtype));
    return SX_OK;
}

/* ---- moments ---- */

/* Adds n elements of x, or with `mean` the squares of their differences from it, to y: all of them
 * to y[0] if `together`, else each to a y of its own. */
#define ADD_MOMENTS(name, type)                                                              \
    static void name(const type *x, const double *mean, double *y, int64_t n, bool together) \
    {                                                                                        \
        if (together) {                                                                      \
            double sum[4] = {0}; /* independent, so that additions overlap */                \
            const double centre = mean != NULL ? mean[0] : 0;                                \
            for (int64_t i = 0; i < n; i++) {                                                \
                const double v = (double)x[i] - centre;                                      \
                sum[i % 4] += mean != NULL ? v * v : v;                                      \
            }                                                                                \
            y[0] += (sum[0] + sum[1]) + (sum[2] + sum[3]);                                   \
            return;                                                                          \
        }                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                    \
            const double v = (double)x[i] - (mean != NULL ? mean[i] : 0);                    \
            y[i] += mean != NULL ? v * v : v;                                                \
        }                                                                                    \
    }
ADD_MOMENTS(add_floats, float)
ADD_MOMENTS(add_doubles, double)
#undef ADD_MOMENTS

/* Two passes over the operand; the scratch holds means and sums of squares in double. */
static void run_moments_any(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const any_data *d = step->data;
    const int inner = d->rank - 1;
    const bool wide = d->dtype == SX_F64;
    const double count = (double)d->elems / (double)SX_MAX(d->results, 1);
    double *mean = sx_cpu_at(call, step->scratch), *square = mean + d->results;
    memset(mean, 0, 2 * (size_t)d->results * sizeof(*mean));
    for (int pass = 0; pass < 2; pass++) {
        const void *x = sx_cpu_in(step, call, 0);
        void *out = sx_cpu_out(step, call, pass);
        double *y = pass == 0 ? mean : square;
        int64_t at[SX_MAX_RANK] = {0}, to = 0;
        for (int64_t done = 0; done < d->elems; done += d->size[inner]) {
            const double *centre = pass == 0 ? NULL : mean + to;
            if (wide) {
                add_doubles((const double *)x + done, centre, y + to, d->size[inner],
                            d->stride[inner] == 0);
            } else {
                add_floats((const float *)x + done, centre, y + to, d->size[inner],
                           d->stride[inner] == 0);
            }
            sx_cpu_next_row(d->rank, d->size, d->stride, at, &to);
        }
        for (int64_t i = 0; i < d->results; i++) {
            y[i] /= count;
        }
        if (wide) {
            memcpy(out, y, (size_t)d->results * sizeof(*y));
        }
        for (int64_t i = 0; i < d->results && !wide; i++) {
            ((float *)out)[i] = (float)y[i];
        }
    }
}

static bool match_moments_any(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    return dtype == SX_F32 || dtype == SX_F64;
}

static sx_status prepare_moments_any(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_axes_attrs *attrs = site->nodes[0]->attrs;
    any_data *d = sx_cpu_new(site, any_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = describe(site, &attrs->axes);
    step->run = run_moments_any;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(2 * d->results * (int64_t)sizeof(double));
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_moments_any = {.name = "moments any",
                                                 .op = SX_OPID_moments,
                                                 .match = match_moments_any,
                                                 .prepare = prepare_moments_any};

#define ANY_ROW(row_name, op_name)                                               \
    const sx_cpu_kernel sx_cpu_kernel_##row_name = {.name = #op_name " any",     \
                                                    .op = SX_OPID_##op_name,     \
                                                    .match = sx_cpu_match_sized, \
                                                    .prepare = prepare_any}
ANY_ROW(reduce_sum_any, reduce_sum);
ANY_ROW(reduce_max_any, reduce_max);
ANY_ROW(reduce_min_any, reduce_min);
ANY_ROW(reduce_prod_any, reduce_prod);
ANY_ROW(reduce_all, reduce_all);
ANY_ROW(reduce_any, reduce_any);
