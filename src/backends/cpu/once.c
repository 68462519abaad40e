/* The order in which what follows from frozen arguments is prepared (kept.c).
 *
 *   group    steps that hand values to one another: a convolution's folded filter, its scale and
 *            bias, packing it; in the order of the plan's steps
 *
 * Groups share nothing that is written, so workers prepare one each. What only steps of a group
 * read lives as long as they need it: all groups use the same memory, SX_CPU_ONCE, and a worker
 * has its own. */
#include <stdlib.h>

#include "backends/cpu/planner.h"
#include "base/checked.h"

static const sx_cpu_unit *unit_of(const sx_cpu_planner *p, int step)
{
    return &p->units[p->order[step]];
}

static bool has_part(const sx_cpu_planner *p, int step)
{
    bool has = unit_of(p, step)->once;
    for (int v = 0; v < p->plan->n_variants; v++) {
        has = has || p->plan->steps[v][step].prepare_once != NULL;
    }
    return has;
}

/* Whether the part of the step that is prepared once reads operand k. */
static bool reads(const sx_cpu_planner *p, int step, int k)
{
    bool does = unit_of(p, step)->once;
    for (int v = 0; v < p->plan->n_variants && k < 32; v++) {
        does = does || (p->plan->steps[v][step].prepares >> k & 1) != 0;
    }
    return does;
}

static int first_of(int *group, int step)
{
    while (group[step] != step) {
        step = group[step] = group[group[step]];
    }
    return step;
}

static int by_group(const void *a, const void *b, void *group)
{
    const int i = *(const int *)a, j = *(const int *)b;
    const int x = ((const int *)group)[i], y = ((const int *)group)[j];
    return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

/* Which arguments can be read from their sources to where the step that reads them writes. */
static sx_status find_over(sx_cpu_planner *p)
{
    int *readers = sx_arena_array(&p->scratch, p->n_values + 1, int);
    if (readers == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < p->plan->n_steps; i++) {
        for (int k = 0; k < unit_of(p, i)->n_in; k++) {
            readers[sx_cpu_root(p, unit_of(p, i)->in[k])]++;
        }
    }
    for (int i = 0; i < p->plan->n_steps; i++) {
        const sx_cpu_unit *u = unit_of(p, i);
        unsigned *over = &p->plan->steps[0][i].over;
        for (int k = 0; u->once && *over == 0 && k < SX_MIN(u->n_in, 32); k++) {
            const int in = sx_cpu_root(p, u->in[k]);
            const sx_cpu_pvalue *x = &p->values[in], *y = &p->values[sx_cpu_root(p, u->out[0])];
            if ((u->in_place >> k & 1) != 0 && readers[in] == 1 && x->maker < 0 && !x->constant &&
                x->bytes == y->bytes) {
                *over = 1u << k;
            }
        }
    }
    return SX_OK;
}

/* What a group reads and writes, about. */
static double size_of(const sx_cpu_plan *plan, int group)
{
    double bytes = 0;
    for (int k = plan->once_groups[group]; k < plan->once_groups[group + 1]; k++) {
        const sx_cpu_step *s = &plan->steps[0][plan->once_order[k]];
        bytes += s->once ? s->bytes : (double)s->kept_bytes;
    }
    return bytes;
}

static int larger_first(const void *a, const void *b, void *plan)
{
    const int i = *(const int *)a, j = *(const int *)b;
    const double x = size_of(plan, i), y = size_of(plan, j);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

/* Workers that take the largest first end at about the same time. */
static sx_status sort_by_size(sx_cpu_plan *plan)
{
    const int n = plan->n_once_groups;
    plan->once_by_size = sx_arena_array(&plan->arena, n + 1, int);
    if (plan->once_by_size == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < n; i++) {
        plan->once_by_size[i] = i;
    }
    qsort_r(plan->once_by_size, (size_t)n, sizeof(int), larger_first, plan);
    return SX_OK;
}

sx_status sx_cpu_order_once(sx_cpu_planner *p)
{
    sx_cpu_plan *plan = p->plan;
    int *group = sx_arena_array(&p->scratch, plan->n_steps + 1, int);
    int *order = sx_arena_array(&plan->arena, plan->n_steps + 1, int);
    int *groups = sx_arena_array(&plan->arena, plan->n_steps + 2, int);
    if (group == NULL || order == NULL || groups == NULL) {
        return sx_cpu_no_memory();
    }
    int n = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const sx_cpu_unit *u = unit_of(p, i);
        group[i] = i;
        if (!has_part(p, i)) {
            continue;
        }
        order[n++] = i;
        for (int k = 0; k < u->n_in; k++) {
            const int maker = p->values[sx_cpu_root(p, u->in[k])].maker;
            if (maker >= 0 && p->units[maker].once && reads(p, i, k)) {
                const int x = first_of(group, i), y = first_of(group, p->units[maker].step);
                group[SX_MAX(x, y)] = SX_MIN(x, y);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        group[order[i]] = first_of(group, order[i]);
    }
    qsort_r(order, (size_t)n, sizeof(int), by_group, group);
    plan->once_order = order;
    plan->once_groups = groups;
    for (int at = 0; at < n; at++) {
        const sx_cpu_unit *u = unit_of(p, order[at]);
        if (at == 0 || group[order[at]] != group[order[at - 1]]) {
            groups[plan->n_once_groups++] = at;
        }
        for (int k = 0; k < u->n_out && u->once; k++) {
            p->values[u->out[k]].first = p->values[u->out[k]].last = at;
        }
        for (int k = 0; k < u->n_in; k++) {
            sx_cpu_pvalue *v = &p->values[sx_cpu_root(p, u->in[k])];
            if (v->frozen && v->maker >= 0 && reads(p, order[at], k)) {
                v->last = at;
            }
        }
    }
    groups[plan->n_once_groups] = n;
    SX_TRY(find_over(p));
    return sort_by_size(plan);
}
