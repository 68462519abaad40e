/* Reductions over neighbouring axes, cumulative sums and products, and all_finite. */
#include <math.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/cumulative.h"

typedef struct reduce_data {
    const sx_cpu_vec *vec;
    int64_t outer, rows, cols;
    void (*loop)(const float *x, int64_t rows, int64_t cols, float *out);
} reduce_data;

bool sx_cpu_axis_runs(const sx_type *x, const sx_ints *reduced, int most, int64_t *sizes)
{
    bool is_reduced[SX_MAX_RANK] = {false};
    int at = 0;
    for (int i = 0; i < reduced->n; i++) {
        is_reduced[reduced->v[i]] = true;
    }
    for (int i = 0; i < most; i++) {
        sizes[i] = 1;
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1) {
            continue;
        }
        at += is_reduced[i] != (at % 2 == 1);
        if (at == most) {
            return false;
        }
        sizes[at] *= x->dims[i];
    }
    return true;
}

/* x seen as [outer, rows, cols] of which the rows are reduced; with cols 1 those are x's last axes.
 */
static bool as_rows(const sx_type *x, const sx_reduce_attrs *a, reduce_data *d)
{
    int64_t sizes[3];
    if (!sx_cpu_axis_runs(x, &a->axes, 3, sizes)) {
        return false;
    }
    d->outer = sizes[0];
    d->rows = sizes[1];
    d->cols = sizes[2];
    return sx_type_elems(x) > 0;
}

/* One element after the other: x [rows, cols] over its columns, and over its rows. */
#define FOLD_COLS(name, start, joined)                                              \
    static void name##_cols(const float *x, int64_t rows, int64_t cols, float *out) \
    {                                                                               \
        for (int64_t i = 0; i < rows; i++) {                                        \
            float all = (start);                                                    \
            for (int64_t k = 0; k < cols; k++) {                                    \
                const float v = x[i * cols + k];                                    \
                all = (joined);                                                     \
            }                                                                       \
            out[i] = all;                                                           \
        }                                                                           \
    }
#define FOLD_ROWS(name, start, joined)                                              \
    static void name##_rows(const float *x, int64_t rows, int64_t cols, float *out) \
    {                                                                               \
        for (int64_t k = 0; k < cols; k++) {                                        \
            out[k] = (start);                                                       \
        }                                                                           \
        for (int64_t i = 0; i < rows; i++) {                                        \
            for (int64_t k = 0; k < cols; k++) {                                    \
                const float v = x[i * cols + k], all = out[k];                      \
                out[k] = (joined);                                                  \
            }                                                                       \
        }                                                                           \
    }
#define LESSER  (v < all || v != v ? v : all)
#define GREATER (v > all || v != v ? v : all)
FOLD_COLS(min, INFINITY, LESSER)
FOLD_ROWS(min, INFINITY, LESSER)
FOLD_COLS(prod, 1, all *v)
FOLD_ROWS(prod, 1, all *v)
FOLD_ROWS(max, -INFINITY, GREATER)

static bool match_reduce(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    reduce_data d;
    return sx_cpu_is_f32(m, m->in[0]) && as_rows(sx_graph_type(m->graph, m->in[0]), n->attrs, &d);
}

/* Rows that end x: each of `outer` is one row of a matrix. */
static void run_trailing(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    d->loop(sx_cpu_in(step, call, 0), d->outer, d->rows, sx_cpu_out(step, call, 0));
}

static void run_leading(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0);
    float *out = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->outer; i++) {
        d->loop(x + i * d->rows * d->cols, d->rows, d->cols, out + i * d->cols);
    }
}

/* Sums where x is bfloat16. scratch: a row */
static void run_trailing_bf16(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    const uint16_t *x = sx_cpu_in(step, call, 0);
    float *out = sx_cpu_out(step, call, 0), *row = sx_cpu_at(call, step->scratch);
    for (int64_t i = 0; i < d->outer; i++) {
        d->vec->from_bf16(x + i * d->rows, row, d->rows);
        d->vec->sum_cols(row, 1, d->rows, out + i);
    }
}

static void run_leading_bf16(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    const uint16_t *x = sx_cpu_in(step, call, 0);
    float *out = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->outer; i++) {
        d->vec->sum_rows_bf16(x + i * d->rows * d->cols, d->rows, d->cols, out + i * d->cols);
    }
}

static sx_status prepare_reduce(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[0];
    reduce_data *d = sx_cpu_new(site, reduce_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    (void)as_rows(&site->in[0], n->attrs, d);
    step->run = d->cols == 1 ? run_trailing : run_leading;
    const bool last = d->cols == 1;
    d->loop = n->op->id == SX_OPID_reduce_max    ? last ? site->vec->max_cols : max_rows
              : n->op->id == SX_OPID_reduce_min  ? last ? min_cols : min_rows
              : n->op->id == SX_OPID_reduce_prod ? last ? prod_cols : prod_rows
              : last                             ? site->vec->sum_cols
                                                 : site->vec->sum_rows;
    if (site->narrow_in != 0) {
        step->run = last ? run_trailing_bf16 : run_leading_bf16;
        step->scratch_bytes = last ? d->rows * (int64_t)sizeof(float) : 0;
    }
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_reduce_sum = {.name = "reduce_sum",
                                                .op = SX_OPID_reduce_sum,
                                                .match = match_reduce,
                                                .prepare = prepare_reduce,
                                                .narrow_in = 1};
const sx_cpu_kernel sx_cpu_kernel_reduce_max = {.name = "reduce_max",
                                                .op = SX_OPID_reduce_max,
                                                .match = match_reduce,
                                                .prepare = prepare_reduce};
const sx_cpu_kernel sx_cpu_kernel_reduce_min = {.name = "reduce_min",
                                                .op = SX_OPID_reduce_min,
                                                .match = match_reduce,
                                                .prepare = prepare_reduce};
const sx_cpu_kernel sx_cpu_kernel_reduce_prod = {.name = "reduce_prod",
                                                 .op = SX_OPID_reduce_prod,
                                                 .match = match_reduce,
                                                 .prepare = prepare_reduce};

/* ---- cumsum, cumprod, cumulative_logsumexp ---- */

typedef struct cumulative_data {
    sx_cumulative_lines lines;
    bool exclusive, reverse, product;
} cumulative_data;

static bool match_cumulative(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    return dtype != SX_F16 && dtype != SX_BF16 && sx_dtype_bytes(dtype) > 0;
}

/* `inner` lines, which lie side by side, advance together: each element is START of x, or JOIN of
 * the sum before it in y and of x. Integers are unsigned: modulo 2^bits. */
#define CUMULATE(name, type, START, JOIN)                                                \
    static void name(const sx_cpu_step *step, const sx_cpu_call *call)                   \
    {                                                                                    \
        const cumulative_data *d = step->data;                                           \
        const sx_cumulative_lines *l = &d->lines;                                        \
        const type *x = sx_cpu_in(step, call, 0);                                        \
        type *y = sx_cpu_out(step, call, 0);                                             \
        for (int64_t first = 0; first < l->lines; first += l->inner) {                   \
            for (int64_t k = 0; k < l->count; k++) {                                     \
                const int64_t place = d->reverse ? l->count - 1 - k : k;                 \
                const int64_t before = d->reverse ? place + 1 : place - 1;               \
                const int64_t from = d->exclusive && k > 0 ? before : place;             \
                const type *now = x + sx_cumulative_at(l, first, from);                  \
                const type *sum = k > 0 ? y + sx_cumulative_at(l, first, before) : NULL; \
                type *to = y + sx_cumulative_at(l, first, place);                        \
                for (int64_t i = 0; i < l->inner; i++) {                                 \
                    to[i] = k > 0          ? (type)JOIN(sum[i], now[i])                  \
                            : d->exclusive ? (type)(START)                               \
                                           : now[i];                                     \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }
#define JOIN_NUMBERS(a, b) (d->product ? (a) * (b) : (a) + (b))
/* products of uint16_t would be those of int, which overflow */
#define JOIN_SMALL(a, b) JOIN_NUMBERS((uint32_t)(a), (uint32_t)(b))
CUMULATE(cumulate_f32, float, d->product, JOIN_NUMBERS)
CUMULATE(cumulate_f64, double, d->product, JOIN_NUMBERS)
CUMULATE(cumulate_8, uint8_t, d->product, JOIN_SMALL)
CUMULATE(cumulate_16, uint16_t, d->product, JOIN_SMALL)
CUMULATE(cumulate_32, uint32_t, d->product, JOIN_NUMBERS)
CUMULATE(cumulate_64, uint64_t, d->product, JOIN_NUMBERS)
CUMULATE(cumulate_logs_f32, float, -INFINITY, sx_log_add_exp)
CUMULATE(cumulate_logs_f64, double, -INFINITY, sx_log_add_exp)

static sx_status prepare_cumulative(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_cumulative_attrs *attrs = site->nodes[0]->attrs;
    cumulative_data *d = sx_cpu_new(site, cumulative_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (cumulative_data){.lines = sx_cumulative_lines_of(&site->in[0], attrs->axis),
                           .exclusive = attrs->exclusive,
                           .reverse = attrs->reverse,
                           .product = site->nodes[0]->op->id == SX_OPID_cumprod};
    const sx_dtype dtype = site->in[0].dtype;
    const size_t bytes = sx_dtype_bytes(dtype);
    const bool logs = site->nodes[0]->op->id == SX_OPID_cumulative_logsumexp;
    step->run = logs              ? (dtype == SX_F32 ? cumulate_logs_f32 : cumulate_logs_f64)
                : dtype == SX_F32 ? cumulate_f32
                : dtype == SX_F64 ? cumulate_f64
                : bytes == 1      ? cumulate_8
                : bytes == 2      ? cumulate_16
                : bytes == 4      ? cumulate_32
                                  : cumulate_64;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_cumsum = {.name = "cumsum",
                                            .op = SX_OPID_cumsum,
                                            .match = match_cumulative,
                                            .prepare = prepare_cumulative};
const sx_cpu_kernel sx_cpu_kernel_cumprod = {.name = "cumprod",
                                             .op = SX_OPID_cumprod,
                                             .match = match_cumulative,
                                             .prepare = prepare_cumulative};

const sx_cpu_kernel sx_cpu_kernel_cumulative_logsumexp = {.name = "cumulative_logsumexp",
                                                          .op = SX_OPID_cumulative_logsumexp,
                                                          .match = match_cumulative,
                                                          .prepare = prepare_cumulative};

/* ---- all_finite ---- */

typedef struct finite_operand {
    int64_t elems;
    bool wide; /* float64 */
} finite_operand;

typedef struct finite_data {
    const sx_cpu_vec *vec;
    const finite_operand *in; /* [n_in] */
} finite_data;

static bool match_finite(sx_cpu_match *m)
{
    for (int i = 0; i < m->n_in; i++) {
        const sx_dtype dtype = sx_graph_type(m->graph, m->in[i])->dtype;
        if (dtype != SX_F32 && dtype != SX_F64) {
            return false;
        }
    }
    return true;
}

static void run_finite(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const finite_data *d = step->data;
    bool ok = true;
    for (int i = 0; i < step->n_in && ok; i++) {
        const void *x = sx_cpu_in(step, call, i);
        ok = d->in[i].wide ? d->vec->all_finite_f64(x, d->in[i].elems)
                           : d->vec->all_finite(x, d->in[i].elems);
    }
    *(uint8_t *)sx_cpu_out(step, call, 0) = ok;
}

static sx_status prepare_finite(const sx_cpu_site *site, sx_cpu_step *step)
{
    finite_data *d = sx_cpu_new(site, finite_data);
    finite_operand *in = sx_arena_array(&site->plan->arena, site->n_in + 1, finite_operand);
    if (d == NULL || in == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < site->n_in; i++) {
        in[i] = (finite_operand){sx_type_elems(&site->in[i]), site->in[i].dtype == SX_F64};
    }
    *d = (finite_data){site->vec, in};
    step->run = run_finite;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_all_finite = {.name = "all_finite",
                                                .op = SX_OPID_all_finite,
                                                .match = match_finite,
                                                .prepare = prepare_finite};
