/* reverse_sequence. Of the two axes, in whatever order, and what is before, between and behind
 * them:
 *
 *   x [before, first, between, second, block]
 *
 * Each block is copied from the place in its sequence that the length says. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/common.h"

typedef struct reverse_sequence_data {
    int64_t before, first, between, second;
    size_t block;   /* bytes */
    bool seq_first; /* the sequence is along the first of the axes */
    bool wide;      /* lengths are int64 */
} reverse_sequence_data;

static int64_t length_of(const reverse_sequence_data *d, const void *lengths, int64_t i,
                         int64_t most)
{
    const int64_t length = d->wide ? ((const int64_t *)lengths)[i] : ((const int32_t *)lengths)[i];
    return SX_MIN(length, most);
}

/* n blocks, the first `length` of them from the last of these to the first. */
static void reverse_blocks(const char *x, char *y, int64_t n, int64_t length, size_t block)
{
    const int64_t turned = SX_MAX(length, 0);
#define REVERSE(type)                                                                     \
    for (int64_t k = 0; k < turned; k++) {                                                \
        memcpy(y + (size_t)k * sizeof(type), x + (size_t)(turned - 1 - k) * sizeof(type), \
               sizeof(type));                                                             \
    }
    switch (block) {
    case sizeof(uint32_t):
        REVERSE(uint32_t)
        break;
    case sizeof(uint64_t):
        REVERSE(uint64_t)
        break;
    default:
        for (int64_t k = 0; k < turned; k++) {
            memcpy(y + (size_t)k * block, x + (size_t)(turned - 1 - k) * block, block);
        }
    }
    memcpy(y + (size_t)turned * block, x + (size_t)turned * block, (size_t)(n - turned) * block);
}

static void run_reverse_sequence(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reverse_sequence_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    const void *lengths = sx_cpu_in(step, call, 1);
    char *y = sx_cpu_out(step, call, 0);
    const size_t row = (size_t)d->second * d->block, plane = (size_t)d->between * row;
    for (int64_t a = 0; a < d->before; a++) {
        for (int64_t i = 0; i < d->first; i++) {
            const size_t own = (size_t)(a * d->first + i) * plane;
            if (!d->seq_first) {
                const int64_t length = length_of(d, lengths, i, d->second);
                for (int64_t k = 0; k < d->between; k++) {
                    const size_t at = own + (size_t)k * row;
                    reverse_blocks(x + at, y + at, d->second, length, d->block);
                }
                continue;
            }
            for (int64_t k = 0; k < d->between * d->second; k++) {
                const int64_t length = length_of(d, lengths, k % d->second, d->first);
                const int64_t from = i < length ? length - 1 - i : i;
                const size_t at = (size_t)k * d->block;
                memcpy(y + own + at, x + (size_t)(a * d->first + from) * plane + at, d->block);
            }
        }
    }
}

static sx_status prepare_reverse_sequence(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_reverse_sequence_attrs *attrs = site->nodes[0]->attrs;
    const sx_type *x = &site->in[0];
    const int first = (int)SX_MIN(attrs->seq_axis, attrs->batch_axis),
              second = (int)SX_MAX(attrs->seq_axis, attrs->batch_axis);
    reverse_sequence_data *d = sx_cpu_new(site, reverse_sequence_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (reverse_sequence_data){
        .before = sx_dims_product(x, 0, first),
        .first = x->dims[first],
        .between = sx_dims_product(x, first + 1, second),
        .second = x->dims[second],
        .block = (size_t)sx_dims_product(x, second + 1, x->rank) * sx_dtype_bytes(x->dtype),
        .seq_first = attrs->seq_axis < attrs->batch_axis,
        .wide = site->in[1].dtype == SX_I64,
    };
    step->run = run_reverse_sequence;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_reverse_sequence = {.name = "reverse_sequence",
                                                      .op = SX_OPID_reverse_sequence,
                                                      .match = sx_cpu_match_sized,
                                                      .prepare = prepare_reverse_sequence};
