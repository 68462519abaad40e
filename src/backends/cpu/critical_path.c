/* See critical_path.h. */
#include "backends/cpu/critical_path.h"

#include "base/checked.h"
#include "base/memory.h"

static void add(sx_cpu_work *to, const sx_cpu_step *s, double part)
{
    to->steps++;
    to->flops += s->flops * part;
    to->bytes += s->bytes * part;
}

static void add_work(sx_cpu_work *to, const sx_cpu_work *w)
{
    to->steps += w->steps;
    to->flops += w->flops;
    to->bytes += w->bytes;
}

/* On a processor that computes ten times as many operations as it reads bytes. */
static double time_of(const sx_cpu_work *w)
{
    return w->flops / 10 + w->bytes;
}

/* works, alone: [workers], zeros: what each does in the stage; alone: in steps of its own. */
static void divide_stage(const sx_cpu_plan *p, const sx_cpu_stage *stage, sx_cpu_work *works,
                         sx_cpu_work *alone)
{
    for (int i = stage->first, turn = 0; i < stage->first + stage->count; i++) {
        for (int shard = 0; shard < p->shards && stage->sharded; shard++) {
            add(&works[shard % p->workers], &p->steps[shard < p->larger ? 0 : 1][i], 1);
        }
        const sx_cpu_step *s = &p->steps[0][i];
        const int64_t parts = stage->serial ? 1 : sx_cpu_parts_of(s, s->grain, p->workers);
        for (int k = 0; k < parts && parts > 1 && !stage->sharded; k++) {
            add(&works[k], s, 1 / (double)parts);
        }
        if (!stage->sharded && parts <= 1) {
            const int worker = stage->serial ? 0 : turn++ % p->workers;
            add(&works[worker], s, 1);
            add(&alone[worker], s, 1);
        }
    }
}

sx_status sx_cpu_find_critical_path(const sx_cpu_plan *p, sx_cpu_critical_path *out)
{
    sx_cpu_work *works = sx_alloc(2 * (size_t)p->workers, sizeof(*works));
    *out = (sx_cpu_critical_path){.stages = p->n_stages};
    if (works == NULL) {
        return sx_no_memory("adding up a plan's work");
    }
    for (int i = 0; i < p->n_stages; i++) {
        int busiest = 0;
        for (int k = 0; k < 2 * p->workers; k++) {
            works[k] = (sx_cpu_work){0};
        }
        divide_stage(p, &p->stages[i], works, works + p->workers);
        for (int k = 0; k < p->workers; k++) {
            busiest = time_of(&works[k]) > time_of(&works[busiest]) ? k : busiest;
            add_work(&out->all, &works[k]);
        }
        add_work(&out->path, &works[busiest]);
        add_work(&out->alone, &works[p->workers + busiest]);
    }
    sx_free(works);
    return SX_OK;
}
