/* argmax, argmin, top_k, in_top_k: places of the greatest. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct choose_data {
    sx_dtype dtype;
    int64_t outer, count, inner; /* around the axis */
    int64_t k;
    bool sorts;       /* k is a large part of the count */
    bool unsorted;    /* in the order of a heap */
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

/* ---- The k greatest ---- */

enum {
    FEW_WAITING = 64,
    LEAST_SORTED = 128, /* elements that are sorted by keys, */
    SORTED_PART = 8,    /* if an eighth of them is wanted */
};

/* For elements of a type: an element and its place; sort_TYPE() puts n of them in order, the
 * greatest first and equal ones as they are, in `items` or in `other`, and returns where;
 * merge_TYPE() adds m in order to the n of y, of which the first k are kept, and returns how many
 * there are.
 *
 * choose_unsorted_TYPE() puts the places of the k greatest of n > k in heap[k + 1], in the order of
 * the host's kernel: a heap whose first place is the last one in order, and goes when a place that
 * comes before it is added. follows_TYPE(): whether element i comes after element j. rise_TYPE()
 * moves the hole at `at` up, as far as `top`, past what comes before `place`, and puts that into
 * it. settle_TYPE() does so with the hole at `top` of a heap of n, once it has moved that down to
 * the end, each time past the later one of two. */
#define DEFINE_TOP_K(type)                                                                         \
    typedef struct item_##type {                                                                   \
        type value;                                                                                \
        int32_t place;                                                                             \
    } item_##type;                                                                                 \
    static item_##type *sort_##type(item_##type *items, int64_t n, item_##type *other)             \
    {                                                                                              \
        for (int64_t width = 1; width < n; width *= 2) {                                           \
            for (int64_t at = 0; at < n; at += 2 * width) {                                        \
                const int64_t middle = SX_MIN(at + width, n), end = SX_MIN(at + 2 * width, n);     \
                int64_t a = at, b = middle, i = at;                                                \
                while (a < middle && b < end) { /* without a branch on what is compared */         \
                    const bool second = items[b].value > items[a].value;                           \
                    other[i++] = items[second ? b : a];                                            \
                    a += !second;                                                                  \
                    b += second;                                                                   \
                }                                                                                  \
                memcpy(other + i, items + a, (size_t)(middle - a) * sizeof(*items));               \
                memcpy(other + i + middle - a, items + b, (size_t)(end - b) * sizeof(*items));     \
            }                                                                                      \
            item_##type *sorted = other;                                                           \
            other = items;                                                                         \
            items = sorted;                                                                        \
        }                                                                                          \
        return items;                                                                              \
    }                                                                                              \
    static int64_t merge_##type(const item_##type *items, int64_t m, type *y, int32_t *places,     \
                                int64_t n, int64_t k)                                              \
    {                                                                                              \
        int64_t a = 0, b = 0; /* how many of y and of the items are kept */                        \
        while (a + b < k && (a < n || b < m)) {                                                    \
            const bool second = a == n || (b < m && items[b].value > y[a]);                        \
            a += !second;                                                                          \
            b += second;                                                                           \
        }                                                                                          \
        const int64_t kept = a + b;                                                                \
        while (b > 0) { /* from the last one on */                                                 \
            const int64_t at = a + b - 1;                                                          \
            const bool second = a == 0 || !(items[b - 1].value > y[a - 1]);                        \
            y[at] = second ? items[b - 1].value : y[a - 1];                                        \
            places[at] = second ? items[b - 1].place : places[a - 1];                              \
            a -= !second;                                                                          \
            b -= second;                                                                           \
        }                                                                                          \
        return kept;                                                                               \
    }                                                                                              \
    static bool follows_##type(const type *x, int32_t i, int32_t j)                                \
    {                                                                                              \
        return x[i] < x[j] || (!(x[i] > x[j]) && i > j);                                           \
    }                                                                                              \
    static void rise_##type(const type *x, int32_t *heap, int64_t at, int64_t top, int32_t place)  \
    {                                                                                              \
        for (; at > top && follows_##type(x, place, heap[(at - 1) / 2]); at = (at - 1) / 2) {      \
            heap[at] = heap[(at - 1) / 2];                                                         \
        }                                                                                          \
        heap[at] = place;                                                                          \
    }                                                                                              \
    static void settle_##type(const type *x, int32_t *heap, int64_t n, int64_t top, int32_t place) \
    {                                                                                              \
        int64_t at = top;                                                                          \
        while (2 * at + 2 <= n) {                                                                  \
            const int64_t left = 2 * at + 1, right = left + 1;                                     \
            const bool to_left = right == n || follows_##type(x, heap[left], heap[right]);         \
            heap[at] = heap[to_left ? left : right];                                               \
            at = to_left ? left : right;                                                           \
        }                                                                                          \
        rise_##type(x, heap, at, top, place);                                                      \
    }                                                                                              \
    static void choose_unsorted_##type(const type *x, int64_t n, int64_t k, int32_t *heap)         \
    {                                                                                              \
        for (int32_t i = 0; i <= k; i++) {                                                         \
            heap[i] = i;                                                                           \
        }                                                                                          \
        for (int64_t i = (k + 1) / 2; i > 0; i--) {                                                \
            settle_##type(x, heap, k + 1, i - 1, heap[i - 1]);                                     \
        }                                                                                          \
        settle_##type(x, heap, k, 0, heap[k]);                                                     \
        for (int32_t i = (int32_t)k + 1; i < n; i++) {                                             \
            if (follows_##type(x, heap[0], i)) {                                                   \
                settle_##type(x, heap, k - 1, 0, heap[k - 1]);                                     \
                rise_##type(x, heap, k - 1, 0, i);                                                 \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_TOP_K(double)
DEFINE_TOP_K(float)
DEFINE_TOP_K(int8_t)
DEFINE_TOP_K(uint8_t)
DEFINE_TOP_K(int16_t)
DEFINE_TOP_K(uint16_t)
DEFINE_TOP_K(int32_t)
DEFINE_TOP_K(uint32_t)
DEFINE_TOP_K(int64_t)
DEFINE_TOP_K(uint64_t)

/* An element's key, whose order is the reverse of the elements'; -0 has that of 0. */
#define DEFINE_KEY(type, bits_type, flipped)                        \
    static inline uint64_t key_##type(type v)                       \
    {                                                               \
        const bits_type sign = (bits_type)1 << (8 * sizeof(v) - 1); \
        const type x = (type)(v + 0);                               \
        bits_type bits;                                             \
        memcpy(&bits, &x, sizeof(bits));                            \
        return (bits_type) ~(bits ^ (flipped));                     \
    }
DEFINE_KEY(float, uint32_t, (bits & sign) != 0 ? UINT32_MAX : sign)
DEFINE_KEY(double, uint64_t, (bits & sign) != 0 ? UINT64_MAX : sign)
DEFINE_KEY(int8_t, uint8_t, sign)
DEFINE_KEY(int16_t, uint16_t, sign)
DEFINE_KEY(int32_t, uint32_t, sign)
DEFINE_KEY(int64_t, uint64_t, sign)
DEFINE_KEY(uint8_t, uint8_t, sign & 0)
DEFINE_KEY(uint16_t, uint16_t, sign & 0)
DEFINE_KEY(uint32_t, uint32_t, sign & 0)
DEFINE_KEY(uint64_t, uint64_t, sign & 0)

typedef struct keyed {
    uint64_t key;
    int32_t place;
} keyed;

/* Puts keys of `bytes` bytes in order, equal ones as they are, in `items` or in `other`: where. */
static keyed *sort_keys(keyed *items, int64_t n, size_t bytes, keyed *other)
{
    for (size_t shift = 0; shift < 8 * bytes; shift += 8) {
        int64_t at[256] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            at[items[i].key >> shift & 255]++;
        }
        if (at[items[0].key >> shift & 255] == n) {
            continue;
        }
        for (int v = 0; v < 256; v++) {
            const int64_t count = at[v];
            at[v] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) {
            other[at[items[i].key >> shift & 255]++] = items[i];
        }
        keyed *sorted = other;
        other = items;
        items = sorted;
    }
    return items;
}

/* How many elements wait to be sorted at once. */
static int64_t most_waiting(const choose_data *d)
{
    return d->sorts ? d->count : SX_MIN(d->count, SX_MAX(d->k, FEW_WAITING));
}

/* Where many are wanted, all are sorted by keys, unless one is not a number. Else
 * elements that are greater than the last of the k so far wait, and are sorted and merged in when
 * they are as many: few pass in most orders, and in none are there more than count log k steps. */
static void run_top_k(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const choose_data *d = step->data;
    const int64_t most = most_waiting(d);
    int32_t *places = sx_cpu_out(step, call, 1);
    keyed *keys = sx_cpu_at(call, step->scratch);
#define TOP(type)                                                                               \
    {                                                                                           \
        const type *x = sx_cpu_in(step, call, 0);                                               \
        type *y = sx_cpu_out(step, call, 0);                                                    \
        item_##type *items = sx_cpu_at(call, step->scratch), *other = items + most;             \
        for (int64_t i = 0; i < d->outer; i++, x += d->count, y += d->k, places += d->k) {      \
            int64_t n = 0, waiting = 0;                                                         \
            bool unordered = false;                                                             \
            if (d->unsorted) {                                                                  \
                int32_t *heap = sx_cpu_at(call, step->scratch);                                 \
                choose_unsorted_##type(x, d->count, d->k, heap);                                \
                for (int64_t j = 0; j < d->k; j++) {                                            \
                    places[j] = heap[j];                                                        \
                    y[j] = x[heap[j]];                                                          \
                }                                                                               \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t j = 0; j < d->count && d->sorts; j++) {                                \
                keys[j] = (keyed){key_##type(x[j]), (int32_t)j};                                \
                unordered = unordered || x[j] != x[j];                                          \
            }                                                                                   \
            if (d->sorts && !unordered) {                                                       \
                const keyed *sorted = sort_keys(keys, d->count, sizeof(type), keys + most);     \
                for (int64_t j = 0; j < d->k; j++) {                                            \
                    places[j] = sorted[j].place;                                                \
                    y[j] = x[places[j]];                                                        \
                }                                                                               \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t j = 0; j < d->count && d->k > 0; j++) {                                \
                if (n < d->k || x[j] > y[n - 1]) {                                              \
                    items[waiting++] = (item_##type){x[j], (int32_t)j};                         \
                }                                                                               \
                if (waiting == most || (waiting > 0 && j + 1 == d->count)) {                    \
                    n = merge_##type(sort_##type(items, waiting, other), waiting, y, places, n, \
                                     d->k);                                                     \
                    waiting = 0;                                                                \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
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
    const sx_top_k_attrs *attrs = site->nodes[0]->attrs;
    *d = (choose_data){.dtype = x->dtype,
                       .outer = sx_dims_product(x, 0, x->rank - 1),
                       .count = x->dims[x->rank - 1],
                       .k = attrs->k};
    d->unsorted = attrs->unsorted && d->k > 1 && d->k < d->count;
    d->sorts = d->count >= LEAST_SORTED && d->k >= d->count / SORTED_PART;
    step->run = run_top_k;
    step->data = d;
    step->scratch_bytes =
        sx_cpu_round_up(2 * most_waiting(d) * (int64_t)sizeof(keyed)); /* the widest */
    return SX_OK;
}

#define IN_TOP_K(name, type)                                                               \
    static void name(const sx_cpu_step *step, const sx_cpu_call *call)                     \
    {                                                                                      \
        const choose_data *d = step->data;                                                 \
        const type *x = sx_cpu_in(step, call, 0);                                          \
        const int32_t *narrow = sx_cpu_in(step, call, 1);                                  \
        const int64_t *wide = sx_cpu_in(step, call, 1);                                    \
        uint8_t *y = sx_cpu_out(step, call, 0);                                            \
        for (int64_t i = 0; i < d->outer; i++, x += d->count) {                            \
            const int64_t target = d->wide ? wide[i] : narrow[i];                          \
            const bool is_class = target >= 0 && target < d->count && isfinite(x[target]); \
            const type v = is_class ? x[target] : 0;                                       \
            int64_t greater = 0, unordered = 0;                                            \
            for (int64_t j = 0; j < d->count; j++) {                                       \
                greater += x[j] > v;                                                       \
                unordered += x[j] != x[j];                                                 \
            }                                                                              \
            y[i] = is_class && unordered == 0 && greater < d->k;                           \
        }                                                                                  \
    }
IN_TOP_K(run_in_top_k, float)
IN_TOP_K(run_in_top_k_f64, double)
#undef IN_TOP_K

static bool match_in_top_k(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    return dtype == SX_F32 || dtype == SX_F64;
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
    step->run = x->dtype == SX_F64 ? run_in_top_k_f64 : run_in_top_k;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_argmax = {
    .name = "argmax", .op = SX_OPID_argmax, .match = match_number, .prepare = prepare_extreme};
const sx_cpu_kernel sx_cpu_kernel_argmin = {
    .name = "argmin", .op = SX_OPID_argmin, .match = match_number, .prepare = prepare_extreme};
const sx_cpu_kernel sx_cpu_kernel_top_k = {
    .name = "top_k", .op = SX_OPID_top_k, .match = match_number, .prepare = prepare_top_k};
const sx_cpu_kernel sx_cpu_kernel_in_top_k = {.name = "in_top_k",
                                              .op = SX_OPID_in_top_k,
                                              .match = match_in_top_k,
                                              .prepare = prepare_in_top_k};
