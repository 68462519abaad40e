/* Filters that several shards read are packed once for all of them, in the order in which a kernel
 * multiplies them: a unit of its own does it, in the common stage before the first reader, where
 * its range is divided among the workers.
 *
 *     filter ──> pack ──> packed ──┬──> conv of shard 0
 *                                  └──> conv of shard 1 ...
 *
 * Frozen filters are packed once for all executions (sx_cpu_step.prepare_once). Bits are those that
 * each shard would make. */
#include <string.h>

#include "backends/cpu/planner.h"

enum { LEAST_BYTES = 32 << 10 }; /* smaller ones are packed sooner than workers meet */

static sx_status site_of(const sx_cpu_planner *p, const sx_cpu_unit *u, int variant,
                         sx_arena *arena, sx_cpu_site *out)
{
    const sx_graph *g = p->plan->variants[variant];
    const sx_node **nodes = sx_arena_array(arena, u->n_nodes, const sx_node *);
    if (nodes == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < u->n_nodes; i++) {
        nodes[i] = &g->nodes[u->nodes[i]];
    }
    *out = (sx_cpu_site){
        .plan = p->plan, .graph = g, .nodes = nodes, .n_nodes = u->n_nodes, .vec = p->vec};
    return SX_OK;
}

/* Unit `k` reads what a unit of its own makes of its filter. */
static sx_status share_filter(sx_cpu_planner *p, int k, sx_cpu_packed packed)
{
    const sx_cpu_unit reader = p->units[k];
    int value;
    sx_cpu_unit *u;
    SX_TRY(sx_cpu_add_value(
        p, &(sx_cpu_pvalue){.bytes = packed.bytes, .lesser = packed.bytes, .maker = p->n_units},
        &value));
    SX_TRY(sx_cpu_add_unit(p,
                           &(sx_cpu_unit){.kind = SX_CPU_UNIT_FILTER,
                                          .kernel = reader.kernel,
                                          .nodes = reader.nodes,
                                          .n_nodes = reader.n_nodes,
                                          .node = reader.node},
                           1, 1, &u));
    u->in[0] = reader.in[1];
    u->out[0] = value;
    int *in = sx_arena_array(&p->scratch, reader.n_in + 1, int);
    if (in == NULL) {
        return sx_cpu_no_memory();
    }
    memcpy(in, reader.in, (size_t)reader.n_in * sizeof(*in));
    in[reader.n_in] = value;
    p->units[k].in = in;
    p->units[k].n_in = reader.n_in + 1;
    p->units[k].packed = packed;
    return SX_OK;
}

sx_status sx_cpu_share_filters(sx_cpu_planner *p)
{
    const int n = p->plan->shards > 1 && !p->plan->frozen ? p->n_units : 0;
    for (int k = 0; k < n; k++) {
        const sx_cpu_unit *u = &p->units[k];
        sx_cpu_site site;
        sx_cpu_packed packed;
        if (u->kind != SX_CPU_UNIT_KERNEL || !u->sharded || u->kernel->pack == NULL ||
            p->values[sx_cpu_root(p, u->in[1])].own) {
            continue;
        }
        SX_TRY(site_of(p, u, 0, &p->scratch, &site));
        SX_TRY(u->kernel->pack(&site, &packed, NULL));
        if (packed.bytes >= LEAST_BYTES) {
            SX_TRY(share_filter(p, k, packed));
        }
    }
    return SX_OK;
}

sx_status sx_cpu_prepare_filter(const sx_cpu_planner *p, const sx_cpu_unit *u, int variant,
                                sx_cpu_step *step)
{
    sx_cpu_site site;
    sx_cpu_packed packed;
    SX_TRY(site_of(p, u, variant, &p->plan->arena, &site));
    return u->kernel->pack(&site, &packed, step);
}
