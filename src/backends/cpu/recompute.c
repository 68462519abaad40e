/* Computes values again, so that a plan takes less memory (sx_cpu_options.memory_limit_bytes).
 *
 *   x ── norm, relu ──> y ──> conv ... filter's gradient       y is kept until the gradient
 *   x ── norm, relu ──> y ──> conv
 *    ╰── norm, relu ──> y' ─────────── filter's gradient       y' is made before it
 *
 * The step in which most bytes are alive decides. Of the values that wait there for a later reader,
 * the one is taken that gives most bytes for the time it takes to make it again: with what it is
 * made of, if that is no longer there. Then follows the next such step, until all is below the
 * target, or nothing is won.
 *
 * What is made again is the same kernel with the same operands, so no bit changes. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/planner.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"

/* What a unit takes, roughly: these only order the choices. */
static const double flops_a_second = 1e11, bytes_a_second = 1e10, seconds_a_call = 1e-6;

enum {
    MOST_AGAIN = 64,  /* units for one value, */
    MOST_TRIED = 256, /* and to be looked at */
    /* An operand that is a small part of the value is kept for it; what is a small part of all is
     * not worth a step. */
    SMALL_PART = 16,
    SMALL_PART_OF_ALL = 1000,
    ROUNDS_IN_VAIN = 64 /* since the least was found */
};

typedef struct search {
    sx_cpu_planner *p;
    int at; /* the step with most bytes alive */
    int64_t peak;
    int64_t *alive; /* [max_steps]: by how many bytes more than in the step before */
    int *written;   /* [n_args]: the step in which an argument gets its new value */
    int *next;      /* [max_values]: of each root: its first reader after `at` */
    bool *common;   /* [max_values]: a reader after `at` is in a common stage */
    int *origin;    /* [max_values]: the root that a value is made again of; itself */
    int *now;       /* [max_values]: while units are repeated: what takes the place of a root; 0 */
    int max_steps, max_values;
} search;

/* Units to be repeated for one value, operands first. */
typedef struct choice {
    int value, before; /* the step that they are put before */
    int units[MOST_AGAIN], n, tried;
    int64_t bytes; /* won at the worst step */
    double seconds;
} choice;

static int64_t bytes_of(const search *s, int root)
{
    const sx_cpu_pvalue *v = &s->p->values[root];
    return v->bytes * (v->own ? s->p->plan->shards : 1);
}

/* ---- The worst step ---- */

static void find_worst(search *s)
{
    sx_cpu_planner *p = s->p;
    const int n = p->plan->n_steps;
    sx_cpu_lifetimes(p);
    memset(s->alive, 0, (size_t)(n + 1) * sizeof(*s->alive));
    for (int i = 1; i < p->n_values; i++) {
        const sx_cpu_pvalue *v = &p->values[i];
        if (v->root == i && !v->placed && !v->constant && v->last >= 0) {
            s->alive[v->first] += bytes_of(s, i);
            s->alive[v->last + 1] -= bytes_of(s, i);
        }
    }
    s->peak = 0;
    for (int64_t i = 0, sum = 0; i < n; i++) {
        sum += s->alive[i];
        if (sum > s->peak) {
            s->peak = sum;
            s->at = (int)i;
        }
    }
    for (int i = 0; i < p->n_values; i++) {
        s->next[i] = INT32_MAX;
        s->common[i] = false;
    }
    for (int i = 0; i < p->g->n_args; i++) {
        s->written[i] = INT32_MAX;
    }
    for (int i = 0; i < n; i++) {
        const sx_cpu_unit *u = &p->units[p->order[i]];
        for (int k = 0; k < u->n_in && i > s->at; k++) {
            const int root = sx_cpu_root(p, u->in[k]);
            s->next[root] = SX_MIN(s->next[root], i);
            s->common[root] = s->common[root] || !u->sharded;
        }
        for (int k = 0; k < u->n_out; k++) {
            const sx_cpu_pvalue *v = &p->values[sx_cpu_root(p, u->out[k])];
            const int arg = v->placed ? v->at.space - SX_CPU_ARGS : -1;
            if (arg >= 0 && arg < p->g->n_args) {
                s->written[arg] = SX_MIN(s->written[arg], i);
            }
        }
    }
}

/* ---- Choosing ---- */

static bool may_repeat(const sx_cpu_planner *p, const sx_cpu_unit *u)
{
    bool may = u->kind == SX_CPU_UNIT_KERNEL && u->sharded && !u->once;
    for (int i = 0; i < u->n_nodes && may; i++) {
        const sx_op_def *op = p->g->nodes[u->nodes[i]].op;
        may = (op->flags & SX_OP_EFFECT) == 0 && !sx_op_has_regions(op);
    }
    for (int i = 0; i < u->n_out && may; i++) {
        may = p->values[u->out[i]].own || p->plan->shards == 1;
    }
    return may;
}

/* A value with the same contents that is there before `step`, though not at the worst one; 0. */
static int made_again(const search *s, int root, int step)
{
    const sx_cpu_planner *p = s->p;
    for (int i = p->n_values - 1; i >= p->g->n_values; i--) {
        const sx_cpu_pvalue *v = &p->values[i];
        if (v->root == i && i != root && s->origin[i] == s->origin[root] && v->last >= 0 &&
            v->first > s->at && v->first < step) {
            return i;
        }
    }
    return 0;
}

static double seconds_of(const sx_cpu_planner *p, const sx_cpu_unit *u)
{
    double flops = 0, bytes = 0;
    for (int i = 0; i < u->n_nodes; i++) {
        flops += sx_node_cost(p->g, &p->g->nodes[u->nodes[i]]).flops;
    }
    for (int i = 0; i < u->n_in + u->n_out; i++) {
        bytes += (double)p->values[i < u->n_in ? u->in[i] : u->out[i - u->n_in]].bytes;
    }
    return flops / flops_a_second + bytes / bytes_a_second + seconds_a_call;
}

static bool is_chosen(const choice *c, int unit)
{
    for (int i = 0; i < c->n; i++) {
        if (c->units[i] == unit) {
            return true;
        }
    }
    return false;
}

static bool choose_unit(const search *s, int root, choice *c);

/* Whether `root` can be read at the step of the choice, and what that takes. */
static bool choose_operand(const search *s, int root, choice *c)
{
    const sx_cpu_planner *p = s->p;
    const sx_cpu_pvalue *v = &p->values[root];
    if (v->constant || (v->placed && v->maker >= 0)) {
        return true;
    }
    if (v->placed) {
        return s->written[v->at.space - SX_CPU_ARGS] >= c->before;
    }
    if (v->last >= s->at || made_again(s, root, c->before) != 0) {
        return true;
    }
    const choice before = *c;
    if (bytes_of(s, root) * SMALL_PART > bytes_of(s, c->value) && choose_unit(s, root, c)) {
        return true;
    }
    const int tried = c->tried;
    *c = before;
    c->tried = tried;
    c->bytes -= bytes_of(s, root); /* lives longer */
    return true;
}

static bool choose_unit(const search *s, int root, choice *c)
{
    const sx_cpu_planner *p = s->p;
    const int k = p->values[root].maker;
    if (k < 0 || c->tried++ >= MOST_TRIED || !may_repeat(p, &p->units[k])) {
        return false;
    }
    if (is_chosen(c, k)) {
        return true;
    }
    for (int i = 0; i < p->units[k].n_in; i++) {
        if (!choose_operand(s, sx_cpu_root(p, p->units[k].in[i]), c)) {
            return false;
        }
    }
    if (c->n == MOST_AGAIN) {
        return false;
    }
    c->units[c->n++] = k;
    c->seconds += seconds_of(p, &p->units[k]);
    return true;
}

/* Of the values that wait at the worst step; false if none gives anything. */
static bool choose(const search *s, choice *best)
{
    const sx_cpu_planner *p = s->p;
    *best = (choice){.n = 0};
    for (int i = 1; i < p->n_values; i++) {
        const sx_cpu_pvalue *v = &p->values[i];
        const int maker = v->maker;
        if (v->root != i || v->placed || v->constant || v->first >= s->at || v->last <= s->at ||
            s->common[i] || maker < 0 || s->next[i] == INT32_MAX ||
            bytes_of(s, i) * SMALL_PART_OF_ALL < s->peak) {
            continue;
        }
        bool read_now = false;
        const sx_cpu_unit *worst = &p->units[p->order[s->at]];
        for (int k = 0; k < worst->n_in; k++) {
            read_now = read_now || sx_cpu_root(p, worst->in[k]) == i;
        }
        choice c = {.value = i, .before = s->next[i], .bytes = bytes_of(s, i)};
        if (!read_now && choose_unit(s, i, &c) && c.bytes > 0 &&
            (best->n == 0 || (double)c.bytes * best->seconds > (double)best->bytes * c.seconds)) {
            *best = c;
        }
    }
    return best->n > 0;
}

/* ---- Repeating ---- */

/* The order with `unit` before step `step`, or without the unit at it. */
static void renumber(sx_cpu_planner *p, int step, int unit)
{
    sx_cpu_plan *plan = p->plan;
    const int by = unit >= 0 ? 1 : -1;
    const int stage = p->units[p->order[step]].stage;
    if (unit >= 0) {
        memmove(p->order + step + 1, p->order + step,
                (size_t)(plan->n_steps - step) * sizeof(*p->order));
        p->order[step] = unit;
        p->units[unit].stage = stage;
    } else {
        p->units[p->order[step]].step = -1;
        memmove(p->order + step, p->order + step + 1,
                (size_t)(plan->n_steps - step - 1) * sizeof(*p->order));
    }
    plan->n_steps += by;
    plan->stages[stage].count += by;
    for (int i = stage + 1; i < plan->n_stages; i++) {
        plan->stages[i].first += by;
    }
    for (int i = step; i < plan->n_steps; i++) {
        p->units[p->order[i]].step = i;
    }
}

/* What reads `from`, from step `step` on, reads `to`. */
static sx_status redirect(search *s, int from, int to, int step)
{
    sx_cpu_planner *p = s->p;
    for (int k = 0; k < p->n_units; k++) {
        for (int i = 0; i < p->units[k].n_in && p->units[k].step >= step; i++) {
            if (sx_cpu_root(p, p->units[k].in[i]) == from) {
                SX_TRY(sx_cpu_read_twin(p, k, i, to));
            }
        }
    }
    return SX_OK;
}

static sx_status repeat_unit(search *s, int of, int step)
{
    sx_cpu_planner *p = s->p;
    sx_cpu_unit *u;
    const sx_cpu_unit proto = p->units[of];
    SX_TRY(sx_cpu_add_unit(p, &proto, proto.n_in, proto.n_out, &u));
    const int k = p->n_units - 1;
    u->again = true;
    memcpy(u->in, proto.in, (size_t)proto.n_in * sizeof(int));
    renumber(p, step, k);
    for (int i = 0; i < proto.n_in; i++) {
        const int root = sx_cpu_root(p, proto.in[i]);
        const sx_cpu_pvalue *v = &p->values[root];
        const bool there = v->placed || v->constant || v->last >= s->at;
        const int twin = s->now[root] != 0 ? s->now[root] : there ? 0 : made_again(s, root, step);
        if (twin != 0) {
            SX_TRY(sx_cpu_read_twin(p, k, i, twin));
        }
    }
    for (int i = 0; i < proto.n_out; i++) {
        sx_cpu_pvalue v = p->values[proto.out[i]];
        v.twin_of = v.twin_of != 0 ? v.twin_of : proto.out[i];
        v.maker = k;
        v.last = -1;
        SX_TRY(sx_cpu_add_value(p, &v, &p->units[k].out[i]));
        s->origin[p->units[k].out[i]] = s->origin[proto.out[i]];
        s->now[proto.out[i]] = p->units[k].out[i];
    }
    return SX_OK;
}

/* Removes units that were repeated and that nothing reads any more. */
static void drop_unread(search *s)
{
    sx_cpu_planner *p = s->p;
    bool *read = s->common;
    memset(read, 0, (size_t)s->max_values * sizeof(*read));
    for (int i = p->plan->n_steps - 1; i >= 0; i--) {
        const sx_cpu_unit *u = &p->units[p->order[i]];
        bool needed = !u->again;
        for (int k = 0; k < u->n_out; k++) {
            needed = needed || read[u->out[k]];
        }
        for (int k = 0; k < u->n_in && needed; k++) {
            read[sx_cpu_root(p, u->in[k])] = true;
        }
        if (!needed) {
            renumber(p, i, -1);
        }
    }
}

/* Whether a value was made again, but later than now. */
static bool is_later(const search *s, int value, const choice *c)
{
    const sx_cpu_pvalue *v = &s->p->values[value];
    const sx_cpu_unit *u = v->root == value && v->maker >= 0 ? &s->p->units[v->maker] : NULL;
    return u != NULL && u->again && u->step >= c->before + c->n;
}

static sx_status repeat(search *s, const choice *c)
{
    sx_cpu_planner *p = s->p;
    const int n_values = p->n_values;
    memset(s->now, 0, (size_t)s->max_values * sizeof(*s->now));
    for (int i = 0; i < c->n; i++) {
        SX_TRY(repeat_unit(s, c->units[i], c->before + i));
    }
    SX_TRY(redirect(s, c->value, s->now[c->value], c->before + c->n));
    for (int i = 0; i < c->n; i++) {
        const sx_cpu_unit u = p->units[c->units[i]];
        for (int k = 0; k < u.n_out; k++) {
            for (int v = p->g->n_values; v < n_values; v++) {
                if (v != u.out[k] && s->origin[v] == s->origin[u.out[k]] && is_later(s, v, c)) {
                    SX_TRY(redirect(s, v, s->now[u.out[k]], c->before + c->n));
                }
            }
        }
    }
    drop_unread(s);
    return SX_OK;
}

/* Makes room for what a round adds: units, their results, views of these. */
static sx_status grow(search *s)
{
    sx_cpu_planner *p = s->p;
    const int steps = p->plan->n_steps + MOST_AGAIN;
    int values = p->n_values + MOST_AGAIN * SX_MAX_OUTPUTS;
    for (int k = 0; k < p->n_units; k++) {
        values += p->units[k].n_in + (p->units[k].step >= 0 ? p->units[k].n_in : 0);
    }
    if (steps < s->max_steps && values <= s->max_values) {
        return SX_OK;
    }
    const int max_steps = 2 * steps, max_values = 2 * values;
    int *order = sx_arena_array(&p->scratch, max_steps, int);
    int *origin = sx_arena_array(&p->scratch, max_values, int);
    s->alive = sx_arena_array(&p->scratch, max_steps + 1, int64_t);
    s->written = sx_arena_array(&p->scratch, p->g->n_args + 1, int);
    s->next = sx_arena_array(&p->scratch, max_values, int);
    s->now = sx_arena_array(&p->scratch, max_values, int);
    s->common = sx_arena_array(&p->scratch, max_values, bool);
    if (order == NULL || origin == NULL || s->alive == NULL || s->written == NULL ||
        s->next == NULL || s->now == NULL || s->common == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < max_values; i++) {
        origin[i] = i < s->max_values ? s->origin[i] : i;
    }
    memcpy(order, p->order, (size_t)p->plan->n_steps * sizeof(int));
    p->order = order;
    s->origin = origin;
    s->max_steps = max_steps;
    s->max_values = max_values;
    return SX_OK;
}

sx_status sx_cpu_recompute(sx_cpu_planner *p, int64_t target, int64_t *out_least)
{
    search s = {.p = p};
    choice c;
    *out_least = INT64_MAX;
    for (int in_vain = 0; in_vain < ROUNDS_IN_VAIN; in_vain++) {
        SX_TRY(grow(&s));
        find_worst(&s);
        if (s.peak < *out_least) {
            *out_least = s.peak;
            in_vain = 0;
        }
        if (s.peak <= target || !choose(&s, &c)) {
            return SX_OK;
        }
        SX_TRY(repeat(&s, &c));
    }
    return SX_OK;
}
