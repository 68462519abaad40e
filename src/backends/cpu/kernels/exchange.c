/* What shards exchange besides partial results: their numbers, pieces put together, pieces taken.
 */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/attrs.h"

typedef struct exchange_data {
    int shards, larger;
    int64_t outer;             /* rows of bytes: the product of the dimensions before the axis */
    int64_t example_bytes;     /* of an example in such a row */
    int64_t largest, examples; /* of the larger shards; of all */
    int64_t mine;              /* all_slice: of this shard */
} exchange_data;

/* Divided, or alone: a copy. */
static bool match_divided(sx_cpu_match *m)
{
    const sx_all_gather_attrs *attrs = m->graph->nodes[m->root].attrs;
    return m->shards > 1 || attrs->replicas <= 1;
}

/* Also in a region, whose plan has one shard: its caller's. */
static bool match_replica_id(sx_cpu_match *m)
{
    (void)m;
    return true;
}

static sx_status prepare(const sx_cpu_site *site, sx_cpu_step *step, const sx_type *piece)
{
    const sx_all_gather_attrs *attrs = site->nodes[0]->attrs;
    const sx_cpu_plan *plan = site->plan;
    exchange_data *d = sx_cpu_new(site, exchange_data);
    int64_t inner = (int64_t)sx_dtype_bytes(piece->dtype);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (exchange_data){.shards = plan->shards,
                         .larger = plan->larger,
                         .outer = 1,
                         .largest = plan->shard_max,
                         .examples = plan->batch};
    for (int i = 0; i < piece->rank; i++) {
        *(i < attrs->axis ? &d->outer : &inner) *= i == attrs->axis ? 1 : piece->dims[i];
    }
    d->mine = site->graph == plan->variants[0] ? plan->shard_max : plan->shard_max - 1;
    d->example_bytes = d->mine > 0 ? inner * piece->dims[attrs->axis] / d->mine : 0;
    step->data = d;
    step->bytes = 2.0 * (double)d->outer * (double)(d->example_bytes * d->examples);
    return SX_OK;
}

/* Copies `count` examples of each row. */
static void copy_examples(const exchange_data *d, char *to, int64_t to_row, const char *from,
                          int64_t from_row, int64_t count)
{
    for (int64_t k = 0; k < d->outer; k++) {
        memcpy(to + k * to_row * d->example_bytes, from + k * from_row * d->example_bytes,
               (size_t)(count * d->example_bytes));
    }
}

static void run_all_gather(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const exchange_data *d = step->data;
    char *to = sx_cpu_out(step, call, 0);
    for (int s = 0; s < d->shards; s++) {
        const int64_t count = s < d->larger ? d->largest : d->largest - 1;
        const char *from = call->shard_bases[s][step->in[0].space] + step->in[0].offset;
        copy_examples(d, to, d->examples, from, count, count);
        to += count * d->example_bytes;
    }
}

static sx_status prepare_all_gather(const sx_cpu_site *site, sx_cpu_step *step)
{
    if (site->plan->shards == 1) {
        return sx_cpu_prepare_copy(site, sx_type_bytes(&site->out[0]), step);
    }
    step->run = run_all_gather;
    return prepare(site, step, &site->in[0]);
}

static void run_all_slice(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const exchange_data *d = step->data;
    const char *from = sx_cpu_in(step, call, 0);
    copy_examples(d, sx_cpu_out(step, call, 0), d->mine,
                  from + call->first_example * d->example_bytes, d->examples, d->mine);
}

static sx_status prepare_all_slice(const sx_cpu_site *site, sx_cpu_step *step)
{
    if (site->plan->shards == 1) {
        return sx_cpu_prepare_copy(site, sx_type_bytes(&site->out[0]), step);
    }
    step->run = run_all_slice;
    return prepare(site, step, &site->out[0]);
}

static void run_replica_id(const sx_cpu_step *step, const sx_cpu_call *call)
{
    *(uint32_t *)sx_cpu_out(step, call, 0) = (uint32_t)call->shard;
}

static sx_status prepare_replica_id(const sx_cpu_site *site, sx_cpu_step *step)
{
    (void)site;
    step->run = run_replica_id;
    return SX_OK;
}

/* ---- Of one replica ---- */

static bool match_one_replica(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    return ((const sx_all_reduce_attrs *)n->attrs)->replicas <= 1;
}

static void run_all_reduce(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const int64_t *bytes = step->data;
    for (int i = 0; i < step->n_in; i++) {
        memcpy(sx_cpu_out(step, call, i), sx_cpu_in(step, call, i), (size_t)bytes[i]);
    }
}

static sx_status prepare_all_reduce(const sx_cpu_site *site, sx_cpu_step *step)
{
    int64_t *bytes = sx_arena_array(&site->plan->arena, site->n_in + 1, int64_t);
    if (bytes == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < site->n_in; i++) {
        bytes[i] = sx_type_bytes(&site->in[i]);
    }
    step->run = run_all_reduce;
    step->data = bytes;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_all_reduce = {.name = "all_reduce",
                                                .op = SX_OPID_all_reduce,
                                                .match = match_one_replica,
                                                .prepare = prepare_all_reduce};
const sx_cpu_kernel sx_cpu_kernel_all_gather = {.name = "all_gather",
                                                .op = SX_OPID_all_gather,
                                                .match = match_divided,
                                                .prepare = prepare_all_gather};
const sx_cpu_kernel sx_cpu_kernel_all_slice = {.name = "all_slice",
                                               .op = SX_OPID_all_slice,
                                               .match = match_divided,
                                               .prepare = prepare_all_slice};
const sx_cpu_kernel sx_cpu_kernel_replica_id = {.name = "replica_id",
                                                .op = SX_OPID_replica_id,
                                                .match = match_replica_id,
                                                .prepare = prepare_replica_id};
