/* See profile_causes.h. */
#include "profile_causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

const struct sx_cause_name sx_cause_names[SX_CAUSES] = {
    [SX_CAUSE_COMPUTING] = {"computing", "computing, at the processor's rate", "#2f6fb2"},
    [SX_CAUSE_MEMORY] = {"memory", "memory traffic", "#e08a1e"},
    [SX_CAUSE_SLOW] = {"slow", "kernels below their limits", "#c2413b"},
    [SX_CAUSE_SMALL] = {"small", "calls too small", "#8c5fb0"},
    [SX_CAUSE_HOST] = {"host", "host kernels", "#7a4b2a"},
    [SX_CAUSE_ALONE] = {"alone", "threads wait for one kernel on one thread", "#b7bec9"},
    [SX_CAUSE_WAITING] = {"waiting", "threads wait for each other, for barriers", "#8b95a5"},
    [SX_CAUSE_OUTSIDE] = {"outside", "outside of programs: inputs, host steps", "#4f9d69"},
};

/* A call below this is mostly the cost of calling it. */
static const double small_seconds = 10e-6;

/* ---- One kernel ---- */

static void describe(const sx_kernel_time *t, const sx_cpu_limits *limits, sx_profile_kernel *k)
{
    const double pieces = (double)SX_MAX(t->pieces, 1);
    const double busy = (double)t->total_ns * 1e-9 * t->threads;
    const double cached = (double)limits->cache_bytes * t->threads;
    *k = (sx_profile_kernel){.kernel = t->kernel,
                             .ops = t->ops,
                             .node = t->node,
                             .count = 1,
                             .calls = t->calls,
                             .seconds = busy,
                             .flops = t->total_flops,
                             .bytes = t->total_bytes};
    k->flops_limit = t->bf16 && limits->bf16 > 0 ? limits->bf16 : limits->f32;
    k->bytes_limit =
        t->total_bytes / pieces <= cached ? limits->cache : limits->memory / limits->threads;
    const double computing = SX_MIN(k->flops / k->flops_limit, busy);
    const double memory = SX_MIN(k->bytes / k->bytes_limit, busy);
    k->causes[SX_CAUSE_COMPUTING] = computing;
    k->causes[SX_CAUSE_MEMORY] = SX_MAX(memory - computing, 0);
    const sx_cause rest = t->host                         ? SX_CAUSE_HOST
                          : busy / pieces < small_seconds ? SX_CAUSE_SMALL
                                                          : SX_CAUSE_SLOW;
    k->causes[rest] = busy - computing - k->causes[SX_CAUSE_MEMORY];
    k->causes[SX_CAUSE_ALONE] = t->alone ? (limits->threads - t->threads) * busy / t->threads : 0;
}

/* ---- All of them ---- */

static int by_time(const void *a, const void *b)
{
    const sx_profile_kernel *x = a, *y = b;
    return (y->seconds > x->seconds) - (y->seconds < x->seconds);
}

void sx_profile_sort(sx_profile_kernel *kernels, int n)
{
    qsort(kernels, (size_t)n, sizeof(*kernels), by_time);
}

/* The rate of two amounts, one after the other, each at its own rate. */
static double joined_limit(double a, double a_limit, double b, double b_limit)
{
    const double seconds = a / a_limit + b / b_limit;
    return seconds > 0 ? (a + b) / seconds : SX_MAX(a_limit, b_limit);
}

sx_status sx_profile_group(sx_profile_groups *groups, sx_map *index, const char *name,
                           sx_profile_kernel **out)
{
    const uintptr_t at = (uintptr_t)sx_map_get(index, name);
    if (at == 0) {
        SX_TRY(sx_map_put(index, name, (void *)(uintptr_t)(groups->n + 1)));
        groups->items[groups->n++] = (sx_profile_kernel){.kernel = name};
    }
    *out = &groups->items[at == 0 ? groups->n - 1 : (int)at - 1];
    return SX_OK;
}

static sx_status add_to_group(sx_profile_groups *groups, sx_map *index, const char *name,
                              const sx_profile_kernel *k)
{
    sx_profile_kernel *g;
    SX_TRY(sx_profile_group(groups, index, name, &g));
    if (g->count == 0) {
        *g = *k;
        g->kernel = name;
        g->ops = g->node = NULL;
        return SX_OK;
    }
    g->flops_limit = joined_limit(g->flops, g->flops_limit, k->flops, k->flops_limit);
    g->bytes_limit = joined_limit(g->bytes, g->bytes_limit, k->bytes, k->bytes_limit);
    g->count++;
    g->calls += k->calls;
    g->seconds += k->seconds;
    g->flops += k->flops;
    g->bytes += k->bytes;
    for (int cause = 0; cause < SX_CAUSES; cause++) {
        g->causes[cause] += k->causes[cause];
    }
    return SX_OK;
}

/* The operator with the most arithmetic of those that the kernel computes; of what the planner does
 * beside them, the first word of the kernel. */
static const char *operator_of(const sx_profile_kernel *k, const sx_profile_nodes *nodes,
                               sx_arena *arena)
{
    const sx_profile_node *node = sx_profile_nodes_find(nodes, k->node);
    const char *text = *k->ops != '\0' ? k->ops : k->kernel;
    return node != NULL && *k->ops != '\0'
               ? node->op
               : sx_arena_printf(arena, "%.*s", (int)strcspn(text, "+ /"), text);
}

enum { GROUPS = 3 };

static sx_status group_all(sx_profile_causes *c, const sx_profile_nodes *nodes, sx_arena *arena,
                           sx_map index[GROUPS])
{
    for (int i = 0; i < c->n; i++) {
        const sx_profile_kernel *k = &c->kernels[i];
        const char *op = operator_of(k, nodes, arena);
        const char *layer = sx_profile_layer_of(nodes, k->node, arena);
        if (op == NULL || layer == NULL) {
            return sx_no_memory("for a profile");
        }
        SX_TRY(add_to_group(&c->by_kernel, &index[0], k->kernel, k));
        SX_TRY(add_to_group(&c->by_op, &index[1], op, k));
        SX_TRY(add_to_group(&c->by_layer, &index[2], layer, k));
    }
    return SX_OK;
}

static sx_status group(sx_profile_causes *c, const sx_profile_nodes *nodes, sx_arena *arena)
{
    sx_profile_groups *const all[GROUPS] = {&c->by_kernel, &c->by_op, &c->by_layer};
    sx_map index[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        all[g]->items = sx_arena_array(arena, c->n + 1, sx_profile_kernel);
        if (all[g]->items == NULL) {
            return sx_no_memory("for a profile");
        }
    }
    for (int g = 0; g < GROUPS; g++) {
        sx_map_init_borrowed(&index[g]);
    }
    sx_status status = group_all(c, nodes, arena, index);
    for (int g = 0; g < GROUPS; g++) {
        sx_map_deinit(&index[g]);
        sx_profile_sort(all[g]->items, all[g]->n);
    }
    return status;
}

sx_status sx_profile_find_causes(sx_profile *profile, const sx_cpu_limits *limits,
                                 const sx_profile_nodes *nodes, double seconds, sx_arena *arena,
                                 sx_profile_causes *out)
{
    int n = 0;
    int64_t in_executions_ns = 0;
    const sx_kernel_time *rows = sx_profile_rows(profile, &n);
    *out =
        (sx_profile_causes){.total = seconds * limits->threads, .whole = seconds * limits->threads};
    out->kernels = sx_arena_array(arena, n + 1, sx_profile_kernel);
    if (out->kernels == NULL) {
        return sx_no_memory("for a profile");
    }
    for (int i = 0; i < n; i++) {
        if (rows[i].calls > 0) {
            describe(&rows[i], limits, &out->kernels[out->n++]);
        }
    }
    double known = 0;
    for (int i = 0; i < out->n; i++) {
        for (int k = 0; k < SX_CAUSES; k++) {
            out->causes[k] += out->kernels[i].causes[k];
            known += out->kernels[i].causes[k];
        }
    }
    (void)sx_profile_executions(profile, &in_executions_ns);
    const double inside = (double)in_executions_ns * 1e-9 * limits->threads;
    out->causes[SX_CAUSE_WAITING] = SX_MAX(inside - known, 0);
    out->causes[SX_CAUSE_OUTSIDE] = SX_MAX(out->total - inside, 0);
    sx_profile_sort(out->kernels, out->n);
    return group(out, nodes, arena);
}

/* ---- The verdict ---- */

static const sx_profile_kernel *most_of(const sx_profile_causes *c, sx_cause cause)
{
    const sx_profile_kernel *most = NULL;
    for (int i = 0; i < c->by_kernel.n; i++) {
        const sx_profile_kernel *k = &c->by_kernel.items[i];
        most = most == NULL || k->causes[cause] > most->causes[cause] ? k : most;
    }
    return most;
}

void sx_put_profile_cause(sx_buf *out, const sx_profile_causes *c, const sx_cpu_limits *limits)
{
    sx_cause cause = SX_CAUSE_COMPUTING;
    for (int i = 0; i < SX_CAUSES; i++) {
        cause = c->causes[i] > c->causes[cause] ? (sx_cause)i : cause;
    }
    const sx_profile_kernel *k = most_of(c, cause);
    sx_buf_printf(out, "%s, %.0f %% of the time", sx_cause_names[cause].name,
                  100 * c->causes[cause] / SX_MAX(c->total, 1e-12));
    if (k == NULL || k->causes[cause] <= 0) {
        return;
    }
    sx_buf_printf(out, "; %.0f %% in %s", 100 * k->causes[cause] / c->total, k->kernel);
    if (cause == SX_CAUSE_COMPUTING || cause == SX_CAUSE_SLOW) {
        sx_buf_printf(out, ", at %.0f of %.0f GFLOP/s a thread", k->flops / k->seconds * 1e-9,
                      k->flops_limit * 1e-9);
    } else if (cause == SX_CAUSE_MEMORY) {
        sx_buf_printf(out, ", at %.1f GB/s a thread; memory gives %.1f",
                      k->bytes / k->seconds * 1e-9, limits->memory / limits->threads * 1e-9);
    }
}
