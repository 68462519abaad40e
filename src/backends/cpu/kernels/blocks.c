/* space_to_batch, batch_to_space: runs of elements along the axes after the blocks' are copied to
 * or from their places in the blocks. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct blocks_data {
    sx_blocks_attrs attrs;
    sx_type batch, space; /* with blocks as examples, with blocks in space */
    int64_t places;       /* in the blocks of the axes, of all examples */
    size_t run;           /* bytes */
} blocks_data;

/* The run of `space` that is run `i` of `batch`; -1 in the padding. */
static int64_t run_in_space(const blocks_data *d, int64_t i)
{
    const int m = d->attrs.block.n;
    int64_t at[SX_MAX_RANK] = {0}, place = 0;
    for (int k = m; k >= 0; k--) {
        at[k] = i % d->batch.dims[k];
        i /= d->batch.dims[k];
    }
    place = at[0] / d->space.dims[0];
    for (int k = m; k > 0; k--) {
        const int64_t size = d->attrs.block.v[k - 1];
        at[k] = at[k] * size + place % size - d->attrs.pads.v[2 * (k - 1)];
        place /= size;
    }
    int64_t to = at[0] % d->space.dims[0];
    for (int k = 1; k <= m; k++) {
        if (at[k] < 0 || at[k] >= d->space.dims[k]) {
            return -1;
        }
        to = to * d->space.dims[k] + at[k];
    }
    return to;
}

static void run_space_to_batch(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const blocks_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->places; i++, y += d->run) {
        const int64_t from = run_in_space(d, i);
        if (from < 0) {
            memset(y, 0, d->run);
        } else {
            memcpy(y, x + (size_t)from * d->run, d->run);
        }
    }
}

static void run_batch_to_space(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const blocks_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->places; i++, x += d->run) {
        const int64_t to = run_in_space(d, i);
        if (to >= 0) {
            memcpy(y + (size_t)to * d->run, x, d->run);
        }
    }
}

static sx_status prepare_blocks(const sx_cpu_site *site, sx_cpu_step *step)
{
    const bool to_batch = site->nodes[0]->op->id == SX_OPID_space_to_batch;
    blocks_data *d = sx_cpu_new(site, blocks_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (blocks_data){.attrs = *(const sx_blocks_attrs *)site->nodes[0]->attrs,
                       .batch = to_batch ? site->out[0] : site->in[0],
                       .space = to_batch ? site->in[0] : site->out[0]};
    const int m = d->attrs.block.n;
    d->run =
        sx_dtype_bytes(d->space.dtype) * (size_t)sx_dims_product(&d->space, m + 1, d->space.rank);
    d->places = d->space.dims[0] > 0 ? sx_dims_product(&d->batch, 0, m + 1) : 0;
    step->run = to_batch ? run_space_to_batch : run_batch_to_space;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_space_to_batch = {.name = "space_to_batch",
                                                    .op = SX_OPID_space_to_batch,
                                                    .match = sx_cpu_match_sized,
                                                    .prepare = prepare_blocks};
const sx_cpu_kernel sx_cpu_kernel_batch_to_space = {.name = "batch_to_space",
                                                    .op = SX_OPID_batch_to_space,
                                                    .match = sx_cpu_match_sized,
                                                    .prepare = prepare_blocks};
