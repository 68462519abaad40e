/* tile, reverse, mirror_pad: element i of the result is an element of the input whose place along
 * each dimension is a function of i's place along it:
 *
 *   out[i0, i1, …] = in[from[0][i0] + from[1][i1] + …]
 *
 * in elements. Trailing dimensions that are taken as they are form blocks that are copied. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/attrs.h"

typedef struct indexed_data {
    int rank;     /* dimensions before the block, at least 1 */
    size_t block; /* bytes */
    int64_t size[SX_MAX_RANK];
    int64_t *from[SX_MAX_RANK]; /* [size[d]], in bytes */
    int64_t elems;
} indexed_data;

static int64_t source(const sx_node *n, int d, int64_t size, int64_t i)
{
    if (n->op->id == SX_OPID_tile) {
        return i % size;
    }
    if (n->op->id == SX_OPID_reverse) {
        const sx_axes_attrs *a = n->attrs;
        for (int k = 0; k < a->axes.n; k++) {
            i = a->axes.v[k] == d ? size - 1 - i : i;
        }
        return i;
    }
    const sx_mirror_pad_attrs *a = n->attrs;
    const int64_t edge = a->symmetric ? 0 : 1;
    int64_t k = i - a->before.v[d];
    k = k < 0 ? -k - 1 + edge : k;
    return k < size ? k : 2 * size - 1 - edge - k;
}

/* Copies one row of blocks. */
static void copy_row(const indexed_data *d, const char *x, char *y)
{
    const int64_t *from = d->from[d->rank - 1], n = d->size[d->rank - 1];
#define COPY_ROW(type)                                                       \
    {                                                                        \
        for (int64_t i = 0; i < n; i++) {                                    \
            memcpy(y + (size_t)i * sizeof(type), x + from[i], sizeof(type)); \
        }                                                                    \
    }
    switch (d->block) {
    case 1:
        COPY_ROW(uint8_t)
        break;
    case 2:
        COPY_ROW(uint16_t)
        break;
    case 4:
        COPY_ROW(uint32_t)
        break;
    case 8:
        COPY_ROW(uint64_t)
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            memcpy(y + (size_t)i * d->block, x + from[i], d->block);
        }
        break;
    }
}

static void run_indexed(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const indexed_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    const size_t row = (size_t)d->size[d->rank - 1] * d->block;
    int64_t at[SX_MAX_RANK] = {0};
    for (int64_t done = 0; done < d->elems; done += d->size[d->rank - 1], y += row) {
        int64_t from = 0;
        for (int k = 0; k < d->rank - 1; k++) {
            from += d->from[k][at[k]];
        }
        copy_row(d, x + from, y);
        for (int k = d->rank - 2; k >= 0 && ++at[k] == d->size[k]; k--) {
            at[k] = 0;
        }
    }
}

static sx_status prepare_indexed(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[0];
    const sx_type *x = &site->in[0], *y = &site->out[0];
    indexed_data *d = sx_cpu_new(site, indexed_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (indexed_data){.rank = y->rank, .block = sx_dtype_bytes(y->dtype), .elems = 1};
    for (; d->rank > 1; d->rank--) { /* into the block */
        bool same = x->dims[d->rank - 1] == y->dims[d->rank - 1];
        for (int64_t i = 0; same && i < y->dims[d->rank - 1]; i++) {
            same = source(n, d->rank - 1, x->dims[d->rank - 1], i) == i;
        }
        if (!same) {
            break;
        }
        d->block *= (size_t)y->dims[d->rank - 1];
    }
    int64_t stride = (int64_t)d->block;
    for (int k = d->rank - 1; k >= 0; k--) {
        d->size[k] = y->dims[k];
        d->elems *= y->dims[k];
        d->from[k] = sx_arena_array(&site->plan->arena, y->dims[k] + 1, int64_t);
        if (d->from[k] == NULL) {
            return sx_cpu_no_memory();
        }
        for (int64_t i = 0; i < y->dims[k] && x->dims[k] > 0; i++) {
            d->from[k][i] = source(n, k, x->dims[k], i) * stride;
        }
        stride *= x->dims[k];
    }
    if (d->rank == 0) {
        static int64_t zero[1];
        d->rank = 1;
        d->size[0] = 1;
        d->from[0] = zero;
    }
    step->run = run_indexed;
    step->data = d;
    return SX_OK;
}

#define INDEXED_ROW(op_name)                                                    \
    const sx_cpu_kernel sx_cpu_kernel_##op_name = {.name = #op_name,            \
                                                   .op = SX_OPID_##op_name,     \
                                                   .match = sx_cpu_match_sized, \
                                                   .prepare = prepare_indexed}
INDEXED_ROW(tile);
INDEXED_ROW(reverse);
INDEXED_ROW(mirror_pad);
