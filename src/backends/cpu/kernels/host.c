/* The last row of every operator: its host kernel (graph/host.h), whose carriers lie in the step's
 * scratch. Right, slow, and visible in the profile. Also the steps that the planner adds itself:
 * copies, packing and combines. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/host.h"

typedef struct host_data {
    const sx_op_def *op;
    const void *attrs;
    int n_in, n_out;
    sx_type *types;   /* inputs, then outputs */
    int64_t carriers; /* where the carriers lie in the scratch, after the array of sx_tensor */
} host_data;

static void run_host(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const host_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    sx_tensor *t = (void *)scratch;
    sx_arena arena;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        t[i].type = d->types[i];
        t[i].data = i < d->n_in ? sx_cpu_in(step, call, i) : sx_cpu_out(step, call, i - d->n_in);
    }
    sx_arena_init(&arena, 0);
    arena.budget = call->memory;
    sx_status status = sx_host_run(d->op, d->attrs, t, d->n_in, t + d->n_in, d->n_out,
                                   scratch + d->carriers, &arena);
    sx_arena_deinit(&arena);
    if (status != SX_OK) {
        sx_cpu_fail(call, sx_status_annotate(status, __FILE__, __LINE__, "%s", step->node));
    }
}

static sx_status prepare_host(const sx_cpu_site *site, sx_cpu_step *step)
{
    int n = site->n_in + site->n_out;
    const sx_op_def *op = site->nodes[0]->op;
    host_data *d = sx_cpu_new(site, host_data);
    sx_type *types = sx_arena_array(&site->plan->arena, n + 1, sx_type);
    if (d == NULL || types == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < n; i++) {
        types[i] = i < site->n_in ? site->in[i] : site->out[i - site->n_in];
    }
    int64_t carriers = sx_cpu_round_up(n * (int64_t)sizeof(sx_tensor));
    int64_t bytes = sx_host_scratch_bytes(op, site->in, site->n_in, site->out, site->n_out);
    if (bytes < 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "cpu: not enough memory for %s", op->name);
    }
    *d = (host_data){.op = op,
                     .attrs = site->nodes[0]->attrs,
                     .n_in = site->n_in,
                     .n_out = site->n_out,
                     .types = types,
                     .carriers = carriers};
    step->host = true;
    step->run = run_host;
    step->data = d;
    step->scratch_bytes = carriers + bytes;
    step->kernel = sx_arena_printf(&site->plan->arena, "%s host", op->name);
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

const sx_cpu_kernel sx_cpu_kernel_host = {.name = "host", .prepare = prepare_host};

/* ---- Copy ---- */

static void run_copy(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const int64_t *bytes = step->data;
    memmove(sx_cpu_out(step, call, 0), sx_cpu_in(step, call, 0), (size_t)*bytes);
}

sx_status sx_cpu_prepare_copy(const sx_cpu_site *site, int64_t bytes, sx_cpu_step *step)
{
    int64_t *data = sx_cpu_new(site, int64_t);
    if (data == NULL) {
        return sx_cpu_no_memory();
    }
    *data = bytes;
    step->run = run_copy;
    step->data = data;
    return SX_OK;
}

/* ---- Packing ---- */

void sx_cpu_to_form(const sx_cpu_vec *vec, const sx_cpu_form *form, const float *x, void *y,
                    int64_t n)
{
    if (form->dtype == SX_BF16) {
        vec->to_bf16(x, y, n);
    } else if (form->dtype == SX_U8) {
        vec->to_u8(x, 1 / form->step, y, n);
    } else {
        vec->to_s8(x, 1 / form->step, y, n);
    }
}

void sx_cpu_from_form(const sx_cpu_vec *vec, const sx_cpu_form *form, const void *x, float *y,
                      int64_t n)
{
    if (form->dtype == SX_BF16) {
        vec->from_bf16(x, y, n);
    } else if (form->dtype == SX_U8) {
        vec->from_u8(x, form->step, y, n);
    } else {
        vec->from_s8(x, form->step, y, n);
    }
}

typedef struct packing_data {
    const sx_cpu_vec *vec;
    sx_cpu_form form;
    int64_t elems;
} packing_data;

static void run_pack(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const packing_data *d = step->data;
    sx_cpu_to_form(d->vec, &d->form, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0), d->elems);
}

static void run_unpack(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const packing_data *d = step->data;
    sx_cpu_from_form(d->vec, &d->form, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0),
                     d->elems);
}

sx_status sx_cpu_prepare_packing(const sx_cpu_site *site, int64_t elems, const sx_cpu_form *form,
                                 bool pack, sx_cpu_step *step)
{
    packing_data *d = sx_cpu_new(site, packing_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (packing_data){site->vec, *form, elems};
    step->run = pack ? run_pack : run_unpack;
    step->data = d;
    return SX_OK;
}

/* ---- Combine ---- */

enum { MAX_PARTS = 1024 };

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
 * (1979), in a balanced tree: n, mean, M2 = n * variance. */
typedef struct moments {
    double n, mean, m2;
} moments;

/* Of parts [lo, hi). */
static moments join_moments(const moments *parts, int lo, int hi)
{
    if (hi - lo == 1) {
        return parts[lo];
    }
    const int middle = lo + (hi - lo + 1) / 2;
    const moments a = join_moments(parts, lo, middle), b = join_moments(parts, middle, hi);
    const double n = a.n + b.n, delta = b.mean - a.mean;
    return (moments){n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

static double number_at(sx_dtype dtype, const void *x, int64_t i)
{
    return dtype == SX_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void combine_moments(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sx_cpu_combine_data *d = step->data;
    void *out[2] = {sx_cpu_out(step, call, 0), sx_cpu_out(step, call, 1)};
    moments parts[MAX_PARTS];
    for (int64_t i = call->begin; i < call->end; i++) {
        for (int s = 0; s < d->shards; s++) {
            const double n = (double)d->counts[s];
            double found[2];
            for (int k = 0; k < 2; k++) {
                const sx_cpu_operand *in = &step->in[k];
                found[k] = number_at(d->dtype, call->shard_bases[s][in->space] + in->offset, i);
            }
            parts[s] = (moments){n, found[0], n * found[1]};
        }
        const moments all = join_moments(parts, 0, d->shards);
        const double results[2] = {all.mean, all.m2 / all.n};
        for (int k = 0; k < 2; k++) {
            if (d->dtype == SX_F64) {
                ((double *)out[k])[i] = results[k];
            } else {
                ((float *)out[k])[i] = (float)results[k];
            }
        }
    }
}

/* Any dtype but f32 and f64, and any rule but a sum, element by element in its carrier: booleans,
 * counts, maxima. */
static void combine_slowly(const sx_cpu_combine_data *d, const char *const *parts, char *out,
                           int64_t begin, int64_t end)
{
    const size_t size = sx_dtype_bytes(d->dtype);
    const sx_carrier carrier = sx_carrier_of(d->dtype);
    uint64_t total_bits, part_bits;
    sx_host_tensor total = {.type = sx_scalar_type(d->dtype), .data = &total_bits};
    sx_host_tensor part = {.type = sx_scalar_type(d->dtype), .data = &part_bits};
    for (int64_t i = begin; i < end; i++) {
        sx_host_load(&total, parts[0] + (size_t)i * size);
        for (int s = 1; s < d->shards; s++) {
            sx_host_load(&part, parts[s] + (size_t)i * size);
            if (d->combine == SX_COMBINE_AND) {
                *total.b = *total.b && *part.b;
            } else if (d->combine == SX_COMBINE_OR) {
                *total.b = *total.b || *part.b;
            } else if (d->combine == SX_COMBINE_PROD) {
                if (carrier == SX_CARRIER_F) {
                    *total.f *= *part.f;
                } else {
                    *total.u *= *part.u;
                }
            } else if (d->combine == SX_COMBINE_MIN) {
                bool less = carrier == SX_CARRIER_F   ? *part.f < *total.f || *part.f != *part.f
                            : carrier == SX_CARRIER_I ? *part.i < *total.i
                                                      : *part.u < *total.u;
                total_bits = less ? part_bits : total_bits;
            } else if (d->combine == SX_COMBINE_MAX) {
                bool greater = carrier == SX_CARRIER_F   ? *part.f > *total.f || *part.f != *part.f
                               : carrier == SX_CARRIER_I ? *part.i > *total.i
                                                         : *part.u > *total.u;
                total_bits = greater ? part_bits : total_bits;
            } else if (carrier == SX_CARRIER_F) {
                *total.f += *part.f;
            } else {
                *total.u += *part.u;
            }
        }
        if (d->combine == SX_COMBINE_MEAN) {
            *total.f /= d->shards;
        }
        sx_host_store(&total, out + (size_t)i * size);
    }
}

void sx_cpu_run_combine(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sx_cpu_combine_data *d = step->data;
    if (d->combine == SX_COMBINE_MOMENTS) {
        combine_moments(step, call);
        return;
    }
    const char *parts[MAX_PARTS];
    const float *floats[MAX_PARTS];
    const double *doubles[MAX_PARTS];
    for (int i = 0; i < d->shards; i++) {
        parts[i] = call->shard_bases[i][step->in[0].space] + step->in[0].offset;
        floats[i] = (const void *)parts[i];
        doubles[i] = (const void *)parts[i];
    }
    if (d->combine == SX_COMBINE_SUM && d->dtype == SX_F32) {
        d->vec->sum_parts(sx_cpu_out(step, call, 0), floats, d->shards, call->begin, call->end);
    } else if (d->combine == SX_COMBINE_SUM && d->dtype == SX_F64) {
        d->vec->sum_parts_f64(sx_cpu_out(step, call, 0), doubles, d->shards, call->begin,
                              call->end);
    } else {
        combine_slowly(d, parts, sx_cpu_out(step, call, 0), call->begin, call->end);
    }
}
