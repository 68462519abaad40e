/* The last row of every operator: its reference (graph/eval.h) over doubles in scratch. Right,
 * slow, and visible in the profile. Also the two steps that the planner adds itself: copies and
 * combines. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/eval.h"

typedef struct reference_data {
    const sx_op_def *op;
    const void *attrs;
    int n_in, n_out;
    sx_type *types;  /* inputs, then outputs */
    int64_t *offset; /* of each in the scratch; then of the array of sx_ref_tensor */
} reference_data;

static void run_reference(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reference_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    int n = d->n_in + d->n_out;
    sx_ref_tensor *t = (void *)(scratch + d->offset[n]);
    for (int i = 0; i < n; i++) {
        t[i] = (sx_ref_tensor){.type = d->types[i], .data = (void *)(scratch + d->offset[i])};
        if (i < d->n_in) {
            sx_ref_load(&t[i], sx_cpu_in(step, call, i));
        }
    }
    sx_ref_run(
        d->op,
        &(sx_ref){
            .attrs = d->attrs, .in = t, .out = t + d->n_in, .n_in = d->n_in, .n_out = d->n_out},
        false);
    for (int i = 0; i < d->n_out; i++) {
        sx_ref_store(&t[d->n_in + i], sx_cpu_out(step, call, i));
    }
}

static sx_status prepare_reference(const sx_cpu_site *site, sx_cpu_step *step)
{
    int n = site->n_in + site->n_out;
    reference_data *d = sx_cpu_new(site, reference_data);
    sx_type *types = sx_arena_array(&site->plan->arena, n + 1, sx_type);
    int64_t *offset = sx_arena_array(&site->plan->arena, n + 1, int64_t);
    if (d == NULL || types == NULL || offset == NULL) {
        return sx_cpu_no_memory();
    }
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        types[i] = i < site->n_in ? site->in[i] : site->out[i - site->n_in];
        offset[i] = at;
        at += (sx_type_elems(&types[i]) * (int64_t)sizeof(double) + SX_CPU_ALIGN) / SX_CPU_ALIGN *
              SX_CPU_ALIGN;
    }
    offset[n] = at;
    *d = (reference_data){.op = site->nodes[0]->op,
                          .attrs = site->nodes[0]->attrs,
                          .n_in = site->n_in,
                          .n_out = site->n_out,
                          .types = types,
                          .offset = offset};
    step->run = run_reference;
    step->data = d;
    step->scratch_bytes = at + n * (int64_t)sizeof(sx_ref_tensor);
    step->kernel = sx_arena_printf(&site->plan->arena, "%s reference", d->op->name);
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

const sx_cpu_kernel sx_cpu_kernel_reference = {.name = "reference", .prepare = prepare_reference};

/* --- copy ----------------------------------------------------------------------------------------
 */

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

/* --- combine -------------------------------------------------------------------------------------
 */

enum { MAX_PARTS = 1024 };

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
 * (1979), in a balanced tree: n, mean, M2 = n * variance. */
typedef struct moments {
    double n, mean, m2;
} moments;

static moments join_moments(const sx_cpu_combine_data *d, const float *const *mean,
                            const float *const *variance, int lo, int hi, int64_t i)
{
    if (hi - lo == 1) {
        double n = (double)d->counts[lo];
        return (moments){n, (double)mean[lo][i], n * (double)variance[lo][i]};
    }
    int middle = lo + (hi - lo + 1) / 2;
    moments a = join_moments(d, mean, variance, lo, middle, i);
    moments b = join_moments(d, mean, variance, middle, hi, i);
    double n = a.n + b.n, delta = b.mean - a.mean;
    return (moments){n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

static void combine_moments(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sx_cpu_combine_data *d = step->data;
    const float *mean[MAX_PARTS], *variance[MAX_PARTS];
    float *out_mean = sx_cpu_out(step, call, 0), *out_variance = sx_cpu_out(step, call, 1);
    for (int s = 0; s < d->shards; s++) {
        mean[s] = (void *)(call->shard_bases[s][step->in[0].space] + step->in[0].offset);
        variance[s] = (void *)(call->shard_bases[s][step->in[1].space] + step->in[1].offset);
    }
    for (int64_t i = call->begin; i < call->end; i++) {
        moments m = join_moments(d, mean, variance, 0, d->shards, i);
        out_mean[i] = (float)m.mean;
        out_variance[i] = (float)(m.m2 / m.n);
    }
}

/* Any dtype but f32, and any rule but a sum, through doubles: booleans, counts, maxima. */
static void combine_slowly(const sx_cpu_combine_data *d, const char *const *parts, char *out,
                           int64_t begin, int64_t end)
{
    size_t size = sx_dtype_bytes(d->dtype);
    sx_type one = sx_scalar_type(d->dtype);
    for (int64_t i = begin; i < end; i++) {
        double total = 0, v;
        for (int s = 0; s < d->shards; s++) {
            sx_ref_tensor t = {.type = one, .data = &v};
            sx_ref_load(&t, parts[s] + (size_t)i * size);
            bool first = s == 0, greater = v > total || v != v;
            total = first                          ? v
                    : d->combine == SX_COMBINE_SUM ? total + v
                    : d->combine == SX_COMBINE_MAX ? (greater ? v : total)
                                                   : (total != 0 && v != 0);
        }
        sx_ref_tensor t = {.type = one, .data = &total};
        sx_ref_store(&t, out + (size_t)i * size);
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
    for (int i = 0; i < d->shards; i++) {
        parts[i] = call->shard_bases[i][step->in[0].space] + step->in[0].offset;
        floats[i] = (const void *)parts[i];
    }
    if (d->combine == SX_COMBINE_SUM && d->dtype == SX_F32) {
        d->vec->sum_parts(sx_cpu_out(step, call, 0), floats, d->shards, call->begin, call->end);
    } else {
        combine_slowly(d, parts, sx_cpu_out(step, call, 0), call->begin, call->end);
    }
}
