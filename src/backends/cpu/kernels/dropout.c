/* Dropout: the bits of graph/ops/dropout.c, many counters at a time. */
#include <math.h>

#include "backends/cpu/kernel.h"

typedef struct dropout_data {
    const sx_cpu_vec *vec;
    const sx_dropout_attrs *attrs;
    int64_t examples, elems; /* rows of this shard, elements of a row */
    bool wide;               /* float64 */
} dropout_data;

static bool match_dropout(sx_cpu_match *m)
{
    m->in_place = 1;
    const sx_type *x = sx_graph_type(m->graph, m->in[0]);
    return (x->dtype == SX_F32 || x->dtype == SX_F64) && sx_type_elems(x) > 0;
}

static void run_dropout(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const dropout_data *d = step->data;
    const uint32_t *seed = sx_cpu_in(step, call, 1);
    const int64_t *at = sx_cpu_in(step, call, 2);
    const uint32_t *first = step->n_in > 3 ? sx_cpu_in(step, call, 3) : NULL;
    sx_vec_dropout v = {
        .key = {seed[0] ^ (uint32_t)d->attrs->key_lo, seed[1] ^ (uint32_t)d->attrs->key_hi},
        .step = (uint32_t)*at,
        .threshold = (uint32_t)floor(d->attrs->rate * 0x1p32),
        .scale = 1 / (1 - d->attrs->rate),
        .first_example = first != NULL ? *first : 0,
        .examples = d->examples,
        .elems = d->elems,
    };
    if (d->wide) {
        d->vec->dropout_f64(&v, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0));
    } else {
        d->vec->dropout(&v, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0));
    }
}

static sx_status prepare_dropout(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *x = &site->in[0];
    dropout_data *d = sx_cpu_new(site, dropout_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->attrs = site->nodes[0]->attrs;
    d->examples = x->rank == 0 ? 1 : x->dims[0];
    d->elems = sx_type_elems(x) / d->examples;
    d->wide = x->dtype == SX_F64;
    step->run = run_dropout;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_dropout = {
    .name = "dropout", .op = SX_OPID_dropout, .match = match_dropout, .prepare = prepare_dropout};
