/* Groups units into stages (plan.h).
 *
 * Sharded units have even phases, common ones odd: a sharded unit runs in the earliest phase after
 * everything it reads, a common one in the latest before its readers. But partial results are
 * combined as soon as a phase ends, since they take the memory of one for each shard until then,
 * and where many are waiting, a phase ends for them. Within a common phase, dependent units are
 * ordered by levels; consecutive small levels become one stage of one worker, because a barrier
 * would cost more. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/planner.h"

enum {
    SMALL_BYTES = 32 * 1024,
    /* Partial results of all shards that may wait for the end of a phase: enough that the work
     * which makes them takes far longer than a barrier. */
    WAITING_BYTES = 128 << 20
};

/* ---- Topological order ---- */

typedef struct sorter {
    sx_cpu_planner *p;
    int *order;
    int n;
    bool cycle;
} sorter;

static void visit(sorter *s, int k)
{
    sx_cpu_unit *u = &s->p->units[k];
    if (u->state != 0) {
        s->cycle |= u->state == 1;
        return;
    }
    u->state = 1;
    for (int i = 0; i < u->n_in; i++) {
        int maker = s->p->values[sx_cpu_root(s->p, u->in[i])].maker;
        if (maker >= 0) {
            visit(s, maker);
        }
    }
    u->state = 2;
    s->order[s->n++] = k;
}

/* Rewrites p->units in the new order, and every maker. */
static sx_status reorder(sx_cpu_planner *p, const int *order)
{
    sx_cpu_unit *units = sx_arena_array(&p->scratch, p->n_units + 1, sx_cpu_unit);
    int *place = sx_arena_array(&p->scratch, p->n_units + 1, int);
    if (units == NULL || place == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < p->n_units; i++) {
        units[i] = p->units[order[i]];
        place[order[i]] = i;
    }
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].maker >= 0) {
            p->values[i].maker = place[p->values[i].maker];
        }
    }
    p->units = units;
    p->max_units = p->n_units;
    return SX_OK;
}

/* By node, so that the program's order decides where dependencies leave a choice. Units were added
 * from the end; a unit's makers have lower nodes but for siblings, so the recursion is shallow. */
static int by_node(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (x[1] > y[1]) - (x[1] < y[1]) != 0 ? (x[1] > y[1]) - (x[1] < y[1])
                                              : (x[0] > y[0]) - (x[0] < y[0]);
}

static sx_status sort_units(sx_cpu_planner *p)
{
    int(*keys)[2] = sx_arena_alloc(&p->scratch, (size_t)p->n_units + 1, sizeof(*keys));
    sorter s = {.p = p, .order = sx_arena_array(&p->scratch, p->n_units + 1, int)};
    if (keys == NULL || s.order == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < p->n_units; i++) {
        keys[i][0] = i;
        keys[i][1] = p->units[i].last_of_all ? INT32_MAX : p->units[i].node;
    }
    qsort(keys, (size_t)p->n_units, sizeof(*keys), by_node);
    for (int i = 0; i < p->n_units; i++) {
        visit(&s, keys[i][0]);
    }
    if (s.cycle) {
        return sx_error(SX_INTERNAL, "cpu: fusion made a cycle");
    }
    return reorder(p, s.order);
}

/* ---- Phases ---- */

static sx_cpu_unit *maker_of(sx_cpu_planner *p, int value)
{
    int maker = p->values[sx_cpu_root(p, value)].maker;
    return maker >= 0 ? &p->units[maker] : NULL;
}

/* [n_values]: partial results that are combined. */
static bool *find_partial(sx_cpu_planner *p)
{
    bool *partial = sx_arena_array(&p->scratch, p->n_values + 1, bool);
    for (int k = 0; k < p->n_units && partial != NULL; k++) {
        const sx_cpu_unit *u = &p->units[k];
        for (int i = 0; i < u->n_in && u->kind == SX_CPU_UNIT_COMBINE; i++) {
            partial[sx_cpu_root(p, u->in[i])] = true;
        }
    }
    return partial;
}

/* Earliest: sharded phases are 0, 2, ...; common -1, 1, ... */
static int earliest_phases(sx_cpu_planner *p, const bool *partial)
{
    int last = -1, first = 0; /* of sharded units */
    int64_t waiting = 0;      /* bytes that the units of phase `made` make */
    int made = 0;
    for (int k = 0; k < p->n_units; k++) {
        sx_cpu_unit *u = &p->units[k];
        u->phase = u->sharded ? first : -1;
        for (int i = 0; i < u->n_in; i++) {
            const sx_cpu_unit *m = maker_of(p, u->in[i]);
            if (m != NULL) {
                int phase = m->phase + (m->sharded != u->sharded);
                u->phase = phase > u->phase ? phase : u->phase;
            }
        }
        last = u->phase > last ? u->phase : last;
        if (u->sharded && u->phase > made) {
            made = u->phase;
            waiting = 0;
        }
        for (int i = 0; i < u->n_out && u->sharded; i++) {
            waiting += partial[u->out[i]] ? p->values[u->out[i]].bytes * p->plan->shards : 0;
        }
        first = waiting > WAITING_BYTES ? made + 2 : first;
    }
    return last;
}

/* Moves common units to just before their first reader, but for those that combine. */
static void latest_phases(sx_cpu_planner *p, int last)
{
    int *limit = sx_arena_array(&p->scratch, p->n_units + 1, int);
    if (limit == NULL) {
        return; /* the earliest phases are also valid */
    }
    int last_common = last % 2 == 0 ? last + 1 : last;
    for (int k = 0; k < p->n_units; k++) {
        limit[k] = last_common;
    }
    for (int k = p->n_units - 1; k >= 0; k--) {
        sx_cpu_unit *u = &p->units[k];
        if (!u->sharded && u->kind != SX_CPU_UNIT_COMBINE) {
            u->phase = limit[k];
        }
        for (int i = 0; i < u->n_in; i++) {
            int m = p->values[sx_cpu_root(p, u->in[i])].maker;
            if (m >= 0) {
                int before = u->phase - (p->units[m].sharded != u->sharded);
                limit[m] = before < limit[m] ? before : limit[m];
            }
        }
    }
}

static void levels(sx_cpu_planner *p)
{
    int deepest = 0;
    for (int k = 0; k < p->n_units; k++) {
        sx_cpu_unit *u = &p->units[k];
        u->level = u->last_of_all ? deepest + 1 : 0;
        for (int i = 0; i < u->n_in && !u->sharded; i++) {
            const sx_cpu_unit *m = maker_of(p, u->in[i]);
            if (m != NULL && m->phase == u->phase && m->level >= u->level) {
                u->level = m->level + 1;
            }
        }
        deepest = u->level > deepest ? u->level : deepest;
    }
}

/* ---- Stages ---- */

static int by_stage(const void *a, const void *b, void *units)
{
    int i = *(const int *)a, j = *(const int *)b;
    const sx_cpu_unit *x = (sx_cpu_unit *)units + i, *y = (sx_cpu_unit *)units + j;
    if (x->phase != y->phase) {
        return x->phase < y->phase ? -1 : 1;
    }
    if (x->level != y->level) {
        return x->level < y->level ? -1 : 1;
    }
    return (i > j) - (i < j);
}

static int64_t unit_bytes(const sx_cpu_planner *p, const sx_cpu_unit *u)
{
    int64_t bytes = 0;
    for (int i = 0; i < u->n_in; i++) {
        bytes += p->values[u->in[i]].bytes;
    }
    for (int i = 0; i < u->n_out; i++) {
        bytes += p->values[u->out[i]].bytes;
    }
    return bytes;
}

/* Steps first .. first+count-1 of one (phase, level). */
static int64_t group_bytes(const sx_cpu_planner *p, int first, int count)
{
    int64_t bytes = 0;
    for (int i = first; i < first + count; i++) {
        bytes += unit_bytes(p, &p->units[p->order[i]]);
    }
    return bytes;
}

static bool same_group(const sx_cpu_planner *p, int a, int b)
{
    const sx_cpu_unit *x = &p->units[p->order[a]], *y = &p->units[p->order[b]];
    return x->phase == y->phase && (x->sharded || x->level == y->level);
}

static sx_status cut_stages(sx_cpu_planner *p)
{
    sx_cpu_plan *plan = p->plan;
    plan->stages = sx_arena_array(&plan->arena, p->n_units + 1, sx_cpu_stage);
    if (plan->stages == NULL) {
        return sx_cpu_no_memory();
    }
    for (int first = 0, count; first < p->n_units; first += count) {
        for (count = 1; first + count < p->n_units && same_group(p, first, first + count);) {
            count++;
        }
        bool sharded = p->units[p->order[first]].sharded;
        bool serial = !sharded && group_bytes(p, first, count) <= SMALL_BYTES;
        sx_cpu_stage *before = plan->n_stages > 0 ? &plan->stages[plan->n_stages - 1] : NULL;
        if (serial && before != NULL && before->serial) {
            before->count += count;
        } else {
            plan->stages[plan->n_stages++] = (sx_cpu_stage){first, count, sharded, serial};
        }
        for (int i = first; i < first + count; i++) {
            p->units[p->order[i]].stage = plan->n_stages - 1;
            p->units[p->order[i]].step = i;
        }
    }
    plan->n_steps = p->n_units;
    return SX_OK;
}

sx_status sx_cpu_schedule(sx_cpu_planner *p)
{
    SX_TRY(sort_units(p));
    const bool *partial = find_partial(p);
    if (partial == NULL) {
        return sx_cpu_no_memory();
    }
    latest_phases(p, earliest_phases(p, partial));
    levels(p);
    p->order = sx_arena_array(&p->scratch, p->n_units + 1, int);
    if (p->order == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < p->n_units; i++) {
        p->order[i] = i;
    }
    qsort_r(p->order, (size_t)p->n_units, sizeof(int), by_stage, p->units);
    return cut_stages(p);
}
