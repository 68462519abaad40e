/* iota, one_hot, stateless_random: values that are made, not computed from others. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/philox.h"
#include "graph/ops/common.h"

typedef struct fill_data {
    size_t bytes;                /* of an element */
    int64_t elems, count, inner; /* iota: of the axis, of what is behind it; one_hot: rows, depth */
    sx_dtype index;              /* iota: of the result */
    uint64_t on, off;
    bool normal;
} fill_data;

/* ---- iota ---- */

static void run_iota(const sx_cpu_step *step, const sx_cpu_call *call)
{
    enum { BLOCK = 256 };
    const fill_data *d = step->data;
    char *y = sx_cpu_out(step, call, 0);
    const size_t line = (size_t)d->inner * d->bytes, total = (size_t)d->elems * d->bytes;
    double carriers[BLOCK]; /* of any kind */
    char places[BLOCK * sizeof(double)];
    if (total == 0) {
        return;
    }
    for (int64_t first = 0; first < d->count; first += BLOCK) {
        const int64_t n = SX_MIN(d->count - first, BLOCK);
        const sx_host_tensor block = {.type = sx_type_of(d->index, n), .data = carriers};
        for (int64_t k = 0; k < n; k++) {
            sx_host_set(&block, k, (double)(first + k));
        }
        sx_host_store(&block, d->inner == 1 ? y + (size_t)first * line : places);
        for (int64_t k = 0; k < n && d->inner > 1; k++) {
            char *row = y + (size_t)(first + k) * line;
            memcpy(row, places + (size_t)k * d->bytes, d->bytes);
            sx_cpu_repeat(row, d->bytes, line);
        }
    }
    sx_cpu_repeat(y, (size_t)d->count * line, total);
}

static sx_status prepare_iota(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_iota_attrs *attrs = site->nodes[0]->attrs;
    const sx_type *y = &site->out[0];
    fill_data *d = sx_cpu_new(site, fill_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (fill_data){.bytes = sx_dtype_bytes(y->dtype),
                     .elems = sx_type_elems(y),
                     .count = y->dims[attrs->axis],
                     .inner = sx_dims_product(y, (int)attrs->axis + 1, y->rank),
                     .index = y->dtype};
    step->run = run_iota;
    step->data = d;
    return SX_OK;
}

/* ---- one_hot ---- */

static int64_t index_at(sx_dtype dtype, const void *indices, int64_t i)
{
    switch (dtype) {
    case SX_I32:
        return ((const int32_t *)indices)[i];
    case SX_I64:
        return ((const int64_t *)indices)[i];
    case SX_U8:
        return ((const uint8_t *)indices)[i];
    default:
        return (int64_t)sx_host_load_element(dtype, (const char *)indices +
                                                        (size_t)i * sx_dtype_bytes(dtype));
    }
}

static void run_one_hot(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const fill_data *d = step->data;
    const void *indices = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    if (d->elems == 0) {
        return;
    }
    memcpy(y, &d->off, d->bytes);
    sx_cpu_repeat(y, d->bytes, (size_t)d->elems * d->bytes);
    for (int64_t i = 0; i < d->count; i++) {
        const int64_t at = index_at(d->index, indices, i);
        if (at >= 0 && at < d->inner) {
            memcpy(y + (size_t)(i * d->inner + at) * d->bytes, &d->on, d->bytes);
        }
    }
}

static sx_status prepare_one_hot(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_one_hot_attrs *attrs = site->nodes[0]->attrs;
    const sx_type *y = &site->out[0];
    fill_data *d = sx_cpu_new(site, fill_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (fill_data){.bytes = sx_dtype_bytes(y->dtype),
                     .elems = sx_type_elems(y),
                     .count = sx_type_elems(&site->in[0]),
                     .inner = attrs->depth,
                     .index = site->in[0].dtype};
    sx_host_store_element(y->dtype, attrs->on, &d->on);
    sx_host_store_element(y->dtype, attrs->off, &d->off);
    step->run = run_one_hot;
    step->data = d;
    return SX_OK;
}

/* ---- stateless_random: the formulas of its file in graph/ops ---- */

static const double two_pi = 6.283185307179586;
static const uint32_t scrambler[2] = SX_PHILOX_SCRAMBLER;

static void run_random(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const fill_data *d = step->data;
    const uint64_t a = (uint64_t)index_at(d->index, sx_cpu_in(step, call, 0), 0);
    const uint64_t b = (uint64_t)index_at(d->index, sx_cpu_in(step, call, 0), 1);
    float *out = sx_cpu_out(step, call, 0);
    uint32_t counter[4] = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)};
    uint32_t mixed[4], words[4], first = 0;
    double y[4];
    if (step->n_in > 1) {
        memcpy(&first, sx_cpu_in(step, call, 1), sizeof(first));
    }
    const int64_t before = (int64_t)first * d->inner;
    sx_philox(scrambler, counter, mixed);
    counter[2] = mixed[2];
    counter[3] = mixed[3];
    for (int64_t i = -(before % 4); i < d->elems; i += 4) {
        counter[0] = (uint32_t)((before + i) / 4);
        counter[1] = (uint32_t)((uint64_t)((before + i) / 4) >> 32);
        sx_philox(mixed, counter, words);
        for (int k = 0; k < 4; k++) {
            y[k] = (double)(words[k] & 0x7fffff) * 0x1p-23;
        }
        for (int k = 0; k < 4 && d->normal; k += 2) {
            const double r = sqrt(-2 * log(fmax(y[k], (double)1e-7f)));
            const double t = (double)(float)(two_pi * y[k + 1]);
            y[k] = r * sin(t);
            y[k + 1] = r * cos(t);
        }
        for (int k = i < 0 ? (int)-i : 0; k < 4 && i + k < d->elems; k++) {
            out[i + k] = (float)y[k];
        }
    }
}

static sx_status prepare_random(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_stateless_random_attrs *attrs = site->nodes[0]->attrs;
    fill_data *d = sx_cpu_new(site, fill_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    const sx_type *y = &site->out[0];
    *d = (fill_data){.elems = sx_type_elems(y),
                     .inner = sx_dims_product(y, 1, y->rank),
                     .index = site->in[0].dtype,
                     .normal = attrs->distribution == SX_RANDOM_NORMAL};
    step->run = run_random;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_iota = {
    .name = "iota", .op = SX_OPID_iota, .match = sx_cpu_match_sized, .prepare = prepare_iota};
const sx_cpu_kernel sx_cpu_kernel_one_hot = {.name = "one_hot",
                                             .op = SX_OPID_one_hot,
                                             .match = sx_cpu_match_sized,
                                             .prepare = prepare_one_hot};
const sx_cpu_kernel sx_cpu_kernel_stateless_random = {.name = "stateless_random",
                                                      .op = SX_OPID_stateless_random,
                                                      .match = sx_cpu_match_sized,
                                                      .prepare = prepare_random};
