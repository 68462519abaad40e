/* Assigns a place to every value.
 *   results:   written directly to the caller's buffer if its old contents are no longer read;
 *              else copied at the end
 *   in place:  an elementwise output takes the place of an input that is last used there
 *   the rest:  lifetimes in steps; packed so that those that are alive at once do not overlap
 *              (pack.h)
 * Shards run a sharded stage at different speeds, but each has its own arena, so lifetimes there
 * are counted in steps. Those of common values are rounded up to whole stages. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/memory_map.h"
#include "backends/cpu/planner.h"
#include "base/checked.h"

int64_t sx_cpu_round_up(int64_t bytes)
{
    return (bytes + SX_CPU_ALIGN - 1) / SX_CPU_ALIGN * SX_CPU_ALIGN;
}

/* ---- Results ---- */

static sx_cpu_operand result_place(const sx_cpu_planner *p, int i)
{
    int arg = p->g->results[i].arg;
    return (sx_cpu_operand){SX_CPU_ARGS + (arg >= 0 ? arg : p->g->n_args + i), 0};
}

/* Adds a unit that copies `value` to result i. */
static sx_status copy_to_result(sx_cpu_planner *p, int value, sx_cpu_operand to)
{
    sx_cpu_pvalue v = p->values[value];
    int copied;
    sx_cpu_unit *u;
    SX_TRY(sx_cpu_add_value(p,
                            &(sx_cpu_pvalue){.bytes = v.bytes,
                                             .lesser = v.lesser,
                                             .own = v.own,
                                             .maker = p->n_units,
                                             .at = to,
                                             .placed = true},
                            &copied));
    bool sharded = p->plan->shards == 1 || v.own;
    SX_TRY(sx_cpu_add_unit(p,
                           &(sx_cpu_unit){.kind = SX_CPU_UNIT_COPY,
                                          .sharded = sharded,
                                          .last_of_all = true,
                                          .node = p->g->n_nodes},
                           1, 1, &u));
    u->in[0] = value;
    u->out[0] = copied;
    return SX_OK;
}

static bool overwritten(const sx_cpu_planner *p, int space)
{
    for (int i = 0; i < p->g->n_results; i++) {
        if (p->g->results[i].arg >= 0 && SX_CPU_ARGS + p->g->results[i].arg == space) {
            return true;
        }
    }
    return false;
}

/* Every result is copied by a separate unit; place_values() then drops unnecessary copies. A source
 * that another result overwrites goes through a temporary. */
sx_status sx_cpu_place_results(sx_cpu_planner *p)
{
    for (int i = 0; i < p->g->n_results; i++) {
        int value = (int)p->g->results[i].value.id;
        sx_cpu_pvalue root = p->values[sx_cpu_root(p, value)];
        sx_cpu_operand to = result_place(p, i);
        if (root.placed && root.at.space == to.space) {
            continue; /* assigned to itself */
        }
        if (root.maker < 0 && root.placed && overwritten(p, root.at.space)) {
            int temporary;
            sx_cpu_unit *u;
            SX_TRY(sx_cpu_add_value(p,
                                    &(sx_cpu_pvalue){.bytes = root.bytes,
                                                     .lesser = root.lesser,
                                                     .own = root.own,
                                                     .maker = p->n_units},
                                    &temporary));
            SX_TRY(sx_cpu_add_unit(p,
                                   &(sx_cpu_unit){.kind = SX_CPU_UNIT_COPY,
                                                  .sharded = p->plan->shards == 1 || root.own},
                                   1, 1, &u));
            u->in[0] = value;
            u->out[0] = temporary;
            value = temporary;
        }
        SX_TRY(copy_to_result(p, value, to));
    }
    return SX_OK;
}

/* Whether unit `k` may overwrite argument `space`: all other readers have run before. */
static bool readers_done(const sx_cpu_planner *p, int space, int k)
{
    const sx_cpu_unit *writer = &p->units[k];
    for (int j = 0; j < p->n_units; j++) {
        const sx_cpu_unit *u = &p->units[j];
        for (int i = 0; i < u->n_in; i++) {
            const sx_cpu_pvalue *v = &p->values[sx_cpu_root(p, u->in[i])];
            if (!v->placed || v->at.space != space || v->maker >= 0) {
                continue;
            }
            bool itself = j == k && (writer->in_place >> i & 1);
            bool earlier = u->stage < writer->stage ||
                           (u->stage == writer->stage && u->step < writer->step &&
                            (p->plan->shards == 1 || p->plan->stages[u->stage].serial));
            if (!itself && !earlier) {
                return false;
            }
        }
    }
    return true;
}

/* Drops copy unit `k` if its source can be computed in place. */
static void try_direct(sx_cpu_planner *p, int k, bool *dropped)
{
    sx_cpu_unit *copy = &p->units[k];
    int root = sx_cpu_root(p, copy->in[0]);
    sx_cpu_pvalue *v = &p->values[root];
    sx_cpu_operand to = p->values[copy->out[0]].at;
    bool is_arg = to.space < SX_CPU_ARGS + p->g->n_args;
    if (v->placed || v->constant || v->maker < 0 ||
        (is_arg && !readers_done(p, to.space, v->maker))) {
        return;
    }
    v->at = to;
    v->placed = true;
    dropped[k] = true;
}

/* ---- Lifetimes ---- */

static bool in_shard_arena(const sx_cpu_planner *p, const sx_cpu_pvalue *v)
{
    return v->own || p->plan->shards == 1;
}

static void live_at(const sx_cpu_planner *p, sx_cpu_pvalue *v, const sx_cpu_unit *u)
{
    const sx_cpu_stage *stage = &p->plan->stages[u->stage];
    bool exact = u->sharded && in_shard_arena(p, v);
    int from = exact ? u->step : stage->first;
    int to = exact ? u->step : stage->first + stage->count - 1;
    v->first = from < v->first ? from : v->first;
    v->last = to > v->last ? to : v->last;
}

void sx_cpu_lifetimes(sx_cpu_planner *p)
{
    for (int i = 0; i < p->n_values; i++) {
        p->values[i].first = INT32_MAX;
        p->values[i].last = -1;
    }
    for (int k = 0; k < p->n_units; k++) {
        sx_cpu_unit *u = &p->units[k];
        for (int i = 0; i < u->n_in && u->step >= 0; i++) {
            live_at(p, &p->values[sx_cpu_root(p, u->in[i])], u);
        }
        for (int i = 0; i < u->n_out && u->step >= 0; i++) {
            live_at(p, &p->values[sx_cpu_root(p, u->out[i])], u);
        }
    }
}

/* Output 0 of unit `k` takes the place of an input last used in this step. */
static void try_in_place(sx_cpu_planner *p, int k)
{
    sx_cpu_unit *u = &p->units[k];
    int out = u->n_out > 0 ? u->out[0] : 0;
    sx_cpu_pvalue *v = &p->values[out];
    if (u->in_place == 0 || v->placed || !(u->sharded && in_shard_arena(p, v))) {
        return;
    }
    for (int i = 0; i < u->n_in; i++) {
        int root = sx_cpu_root(p, u->in[i]);
        sx_cpu_pvalue *r = &p->values[root];
        bool twice = false;
        for (int j = 0; j < u->n_in; j++) {
            twice |= j != i && sx_cpu_root(p, u->in[j]) == root && !(u->in_place >> j & 1);
        }
        if ((u->in_place >> i & 1) && !twice && r->maker >= 0 && !r->placed && !r->frozen &&
            !v->frozen && r->last == u->step && r->bytes == v->bytes && in_shard_arena(p, r)) {
            r->last = v->last > r->last ? v->last : r->last;
            v->root = root;
            return;
        }
    }
}

/* ---- Arenas ---- */

typedef struct block {
    sx_cpu_life life;
    int space; /* SX_CPU_SHARD, SX_CPU_COMMON or SX_CPU_ONCE */
    int value; /* 0: scratch of `unit` */
    int unit;
    sx_cpu_operand *at;
} block;

const char *sx_cpu_describe_value(sx_cpu_planner *p, int value)
{
    char type[SX_TYPE_TEXT];
    const sx_node *n = &p->g->nodes[p->g->values[value].node];
    const char *text = sx_arena_printf(
        &p->scratch, "%s of %s \"%.100s\"",
        sx_type_format(&p->g->values[value].type, type, sizeof(type)), n->op->name, n->name);
    return text != NULL ? text : "";
}

static const char *describe_block(sx_cpu_planner *p, const block *b)
{
    int value = b->value;
    if (value != 0 && p->values[value].twin_of != 0) {
        value = p->values[value].twin_of;
    }
    if (value != 0 && value < p->g->n_values) {
        return sx_cpu_describe_value(p, value);
    }
    const int unit = b->value != 0 ? p->values[b->value].maker : b->unit;
    const sx_cpu_unit *u = unit >= 0 ? &p->units[unit] : NULL;
    const sx_node *n = u != NULL && u->n_nodes > 0 ? &p->g->nodes[u->nodes[0]] : NULL;
    const char *text = n != NULL ? sx_arena_printf(&p->scratch, "scratch memory of %s \"%.100s\"",
                                                   n->op->name, n->name)
                                 : "scratch memory";
    return text != NULL ? text : "";
}

/* The sum of all blocks does not overflow, even times the number of shards. */
static const int64_t max_arena_bytes = (int64_t)1 << 52;

static void name_largest(sx_cpu_planner *p, const block *blocks, int n)
{
    const block *largest = NULL;
    for (int i = 0; i < n; i++) {
        const bool larger = largest == NULL || blocks[i].life.bytes > largest->life.bytes;
        largest = larger ? &blocks[i] : largest;
    }
    const int frozen = p->largest_frozen;
    p->largest = "none";
    if (largest != NULL && (frozen == 0 || largest->life.bytes > p->values[frozen].bytes)) {
        p->largest = describe_block(p, largest);
    } else if (frozen != 0) {
        p->largest = describe_block(p, &(block){.value = frozen, .unit = -1});
    }
}

/* Sets the lives of the blocks of one space; lives[n + n_fixed], of which the last n_fixed are the
 * caller's. */
static sx_status pack_space(sx_cpu_planner *p, block *blocks, int n, int space, sx_cpu_life *lives,
                            int n_fixed, int64_t *out_bytes)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += blocks[i].space == space;
    }
    memmove(lives + count, lives + n, (size_t)n_fixed * sizeof(*lives));
    for (int i = 0, at = 0; i < n; i++) {
        if (blocks[i].space == space) {
            lives[at++] = blocks[i].life;
        }
    }
    SX_TRY(sx_cpu_pack_lives(lives, count, n_fixed, &p->scratch, out_bytes));
    for (int i = 0, at = 0; i < n; i++) {
        if (blocks[i].space == space) {
            blocks[i].life = lives[at++];
            *blocks[i].at = (sx_cpu_operand){space, blocks[i].life.offset};
        }
    }
    return SX_OK;
}

/* Common blocks lie in the shards' arenas, too, where these are free: the lives of common blocks
 * are whole stages, and between stages all shards are at the same step. They use the first few
 * arenas; the rest of many counts as one block that lives for ever. */
enum { SHARED_ARENAS = 8 };

static sx_status pack_common(sx_cpu_planner *p, block *blocks, int n)
{
    sx_cpu_plan *plan = p->plan;
    const int shared = SX_MIN(plan->shards, (int)SHARED_ARENAS);
    sx_cpu_life *lives = sx_arena_array(&p->scratch, n + shared * n + 2, sx_cpu_life);
    int64_t end = 0;
    int n_fixed = 0;
    if (lives == NULL) {
        return sx_cpu_no_memory();
    }
    for (int s = 0; s < shared; s++) {
        for (int i = 0; i < n; i++) {
            if (blocks[i].space == SX_CPU_SHARD) {
                lives[n + n_fixed] = blocks[i].life;
                lives[n + n_fixed++].offset += s * plan->shard_bytes;
            }
        }
    }
    const int64_t arenas = plan->shards * plan->shard_bytes;
    if (shared < plan->shards) {
        const int64_t rest = (plan->shards - shared) * plan->shard_bytes;
        lives[n + n_fixed++] =
            (sx_cpu_life){.bytes = rest, .last = plan->n_steps, .offset = arenas - rest};
    }
    SX_TRY(pack_space(p, blocks, n, SX_CPU_COMMON, lives, n_fixed, &end));
    plan->common_bytes = SX_MAX(end - arenas, 0);
    return SX_OK;
}

static sx_status pack(sx_cpu_planner *p, block *blocks, int n)
{
    int64_t sum = 0;
    name_largest(p, blocks, n);
    for (int i = 0; i < n; i++) {
        if (!sx_add_i64(sum, blocks[i].life.bytes, &sum) || sum > max_arena_bytes) {
            return sx_cpu_too_large(p->largest);
        }
    }
    sx_cpu_life *lives = sx_arena_array(&p->scratch, n + 1, sx_cpu_life);
    if (lives == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(pack_space(p, blocks, n, SX_CPU_ONCE, lives, 0, &p->plan->once_bytes));
    SX_TRY(pack_space(p, blocks, n, SX_CPU_SHARD, lives, 0, &p->plan->shard_bytes));
    return pack_common(p, blocks, n);
}

/* The layer of a block's value, or of the unit whose scratch it is. */
static const char *layer_of(const sx_cpu_planner *p, const block *b)
{
    const int unit = b->value != 0 ? p->values[b->value].maker : b->unit;
    const sx_cpu_unit *u = unit >= 0 ? &p->units[unit] : NULL;
    return u != NULL && u->n_nodes > 0 ? p->g->nodes[u->nodes[0]].name : "";
}

static bool maker_is_again(const sx_cpu_planner *p, int value)
{
    return p->values[value].maker >= 0 && p->units[p->values[value].maker].again;
}

static sx_status draw_map(sx_cpu_planner *p, const block *blocks, int n)
{
    sx_cpu_plan *plan = p->plan;
    sx_cpu_memory_map *map = plan->map;
    sx_cpu_life *lives = sx_arena_array(&p->scratch, n + 1, sx_cpu_life);
    map->blocks = sx_arena_array(&plan->arena, n + 1, sx_cpu_mapped);
    map->step_layers = sx_arena_array(&plan->arena, plan->n_steps + 1, const char *);
    if (lives == NULL || map->blocks == NULL || map->step_layers == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < n; i++) {
        const block *b = &blocks[i];
        if (b->space == SX_CPU_ONCE) {
            continue;
        }
        const bool common = b->space == SX_CPU_COMMON;
        sx_cpu_mapped *to = &map->blocks[map->n];
        *to = (sx_cpu_mapped){.life = b->life,
                              .common = common,
                              .what = sx_arena_strdup(&plan->arena, describe_block(p, b)),
                              .layer = sx_arena_strdup(&plan->arena, layer_of(p, b)),
                              .scratch = b->value == 0,
                              .again = b->value != 0 && maker_is_again(p, b->value)};
        lives[map->n] = b->life;
        lives[map->n++].bytes *= common ? 1 : plan->shards;
        if (to->what == NULL || to->layer == NULL) {
            return sx_cpu_no_memory();
        }
    }
    for (int i = 0; i < plan->n_steps; i++) {
        const bool again = p->units[p->order[i]].again;
        map->step_layers[i] = plan->steps[0][i].node;
        map->again_steps += again;
        map->again_flops += again ? plan->steps[0][i].flops : 0;
    }
    map->n_steps = plan->n_steps;
    map->shards = plan->shards;
    map->shard_bytes = plan->shard_bytes;
    map->bytes = plan->shards * plan->shard_bytes + plan->common_bytes;
    return sx_cpu_most_alive(lives, map->n, &p->scratch, &map->least_bytes, &map->least_step);
}

static sx_status place_temporaries(sx_cpu_planner *p)
{
    block *blocks = sx_arena_array(&p->scratch, p->n_values + p->n_units + 1, block);
    int n = 0;
    if (blocks == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 1; i < p->n_values; i++) {
        sx_cpu_pvalue *v = &p->values[i];
        if (v->root == i && !v->placed && !v->constant && v->last >= 0) {
            blocks[n++] = (block){.life = {.bytes = sx_cpu_round_up(v->bytes + (v->bytes == 0)),
                                           .first = v->first,
                                           .last = v->last},
                                  .space = v->frozen              ? SX_CPU_ONCE
                                           : in_shard_arena(p, v) ? SX_CPU_SHARD
                                                                  : SX_CPU_COMMON,
                                  .value = i,
                                  .at = &v->at};
        }
    }
    for (int k = 0; k < p->n_units; k++) {
        sx_cpu_unit *u = &p->units[k];
        int64_t bytes = 0;
        for (int i = 0; i < p->plan->n_variants && u->step >= 0; i++) {
            int64_t b = p->plan->steps[i][u->step].scratch_bytes;
            bytes = b > bytes ? b : bytes;
        }
        if (bytes > 0) {
            const sx_cpu_stage *s = &p->plan->stages[u->stage];
            int first = u->sharded ? u->step : s->first;
            int last = u->sharded ? u->step : s->first + s->count - 1;
            blocks[n++] =
                (block){.life = {.bytes = sx_cpu_round_up(bytes), .first = first, .last = last},
                        .space = u->sharded ? SX_CPU_SHARD : SX_CPU_COMMON,
                        .unit = k,
                        .at = &u->scratch};
        }
    }
    SX_TRY(pack(p, blocks, n));
    return p->plan->map != NULL ? draw_map(p, blocks, n) : SX_OK;
}

/* A space of its own, if there are such and it is large. */
static bool place_large(sx_cpu_planner *p, int64_t bytes, bool kept, sx_cpu_operand *out)
{
    sx_cpu_plan *plan = p->plan;
    if (!p->shares_large || bytes < SX_CPU_LARGE) {
        return false;
    }
    if (plan->n_large == plan->max_large) {
        const int most = SX_MAX(16, 2 * plan->max_large);
        sx_cpu_large *grown = sx_arena_array(&plan->arena, most, sx_cpu_large);
        if (grown == NULL) {
            return false;
        }
        for (int i = 0; i < plan->n_large; i++) {
            grown[i] = plan->large[i];
        }
        plan->large = grown;
        plan->max_large = most;
    }
    plan->large[plan->n_large] = (sx_cpu_large){.bytes = bytes, .kept = kept};
    *out = (sx_cpu_operand){plan->first_large + plan->n_large++, 0};
    plan->n_spaces++;
    plan->large_bytes += bytes;
    return true;
}

static void place_constants(sx_cpu_planner *p)
{
    int64_t at = 0;
    for (int i = 1; i < p->n_values; i++) {
        sx_cpu_pvalue *v = &p->values[i];
        if (v->constant && v->root == i) {
            v->placed = true;
            if (!place_large(p, v->bytes, false, &v->at)) {
                v->at = (sx_cpu_operand){SX_CPU_CONST, at};
                at += sx_cpu_round_up(v->bytes);
            }
        }
    }
    p->plan->const_bytes = at;
}

/* Removes dropped steps. */
static void drop_steps(sx_cpu_planner *p, const bool *dropped)
{
    sx_cpu_plan *plan = p->plan;
    int step = 0, n_stages = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        sx_cpu_stage stage = plan->stages[s];
        int first = step;
        for (int i = stage.first; i < stage.first + stage.count; i++) {
            int k = p->order[i];
            if (dropped[k]) {
                p->units[k].step = -1;
                continue;
            }
            p->order[step] = k;
            p->units[k].step = step++;
            p->units[k].stage = n_stages;
        }
        if (step > first) {
            plan->stages[n_stages++] =
                (sx_cpu_stage){first, step - first, stage.sharded, stage.serial};
        }
    }
    plan->n_stages = n_stages;
    plan->n_steps = step;
}

/* ---- What follows from frozen arguments alone ---- */

static bool runs_alike(const sx_cpu_planner *p, const sx_cpu_unit *u)
{
    for (int i = 0; i < u->n_nodes; i++) {
        const sx_op_def *op = p->g->nodes[u->nodes[i]].op;
        if (sx_op_has_regions(op) || (op->flags & (SX_OP_BY_REPLICA | SX_OP_EFFECT)) != 0) {
            return false;
        }
    }
    return true;
}

/* Constants, variables that nothing assigns, and what steps make of them. Such steps run once,
 * unless they make a result. */
static void find_frozen(sx_cpu_planner *p)
{
    if (!p->plan->frozen) {
        return;
    }
    for (int i = 1; i < p->g->n_values; i++) {
        p->values[i].frozen = p->values[i].constant;
    }
    for (int i = 0; i < p->g->n_args; i++) {
        p->values[p->g->args[i].value.id].frozen =
            p->g->args[i].kind == SX_ARG_VARIABLE && !overwritten(p, SX_CPU_ARGS + i);
    }
    for (int i = 0; i < p->plan->n_steps; i++) {
        sx_cpu_unit *u = &p->units[p->order[i]];
        u->once =
            u->kind == SX_CPU_UNIT_KERNEL && u->n_in > 0 && !p->plan->region && runs_alike(p, u);
        for (int k = 0; k < u->n_in; k++) {
            u->once = u->once && p->values[sx_cpu_root(p, u->in[k])].frozen;
        }
        for (int k = 0; k < u->n_out; k++) {
            const sx_cpu_pvalue *v = &p->values[sx_cpu_root(p, u->out[k])];
            u->once = u->once && !v->placed && v->form.dtype == SX_DTYPE_NONE &&
                      (!v->own || p->plan->shards == 1);
        }
        for (int k = 0; k < u->n_out && u->once; k++) {
            p->values[u->out[k]].frozen = true;
        }
    }
}

/* Places what the steps that run once make and other steps read in every execution, and what those
 * prepare then. The rest of what steps that run once make is read only until all is prepared, in
 * the order of the steps: it shares memory as temporaries do. */
static sx_status place_frozen(sx_cpu_planner *p)
{
    sx_cpu_plan *plan = p->plan;
    bool *read_later = sx_arena_array(&p->scratch, p->n_values + 1, bool);
    if (read_later == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < plan->n_steps; i++) {
        const sx_cpu_unit *u = &p->units[p->order[i]];
        for (int k = 0; k < u->n_in && !u->once; k++) {
            bool once = k < 32;
            for (int v = 0; v < plan->n_variants && once; v++) {
                once = (plan->steps[v][i].read_once >> k & 1) != 0;
            }
            read_later[sx_cpu_root(p, u->in[k])] |= !once;
        }
    }
    for (int i = 0; i < plan->n_steps; i++) {
        const sx_cpu_unit *u = &p->units[p->order[i]];
        for (int k = 0; k < u->n_out && u->once; k++) {
            sx_cpu_pvalue *v = &p->values[u->out[k]];
            if (!read_later[u->out[k]]) {
                continue;
            }
            v->placed = true;
            if (!place_large(p, v->bytes, true, &v->at)) {
                v->at = (sx_cpu_operand){SX_CPU_KEPT, plan->kept_bytes};
                plan->kept_bytes += sx_cpu_round_up(v->bytes + (v->bytes == 0));
            }
            if (p->largest_frozen == 0 || v->bytes > p->values[p->largest_frozen].bytes) {
                p->largest_frozen = u->out[k];
            }
        }
        for (int v = 0; v < plan->n_variants; v++) {
            sx_cpu_step *s = &plan->steps[v][i];
            if (place_large(p, s->kept_bytes, true, &s->kept)) {
                plan->large[plan->n_large - 1].read_once = u->once;
            } else {
                s->kept = (sx_cpu_operand){SX_CPU_KEPT, plan->kept_bytes};
                plan->kept_bytes += sx_cpu_round_up(s->kept_bytes);
            }
        }
    }
    plan->arg_read_once = sx_arena_array(&plan->arena, p->g->n_args + 1, bool);
    if (plan->arg_read_once == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < p->g->n_args; i++) {
        const int value = p->g->args[i].value.id;
        plan->arg_read_once[i] = p->values[value].frozen && !read_later[value];
    }
    for (int i = 1; i < p->n_values && plan->frozen; i++) {
        const sx_cpu_pvalue *v = &p->values[i];
        if (v->constant && v->root == i && v->at.space >= plan->first_large) {
            plan->large[v->at.space - plan->first_large].read_once = !read_later[i];
        }
    }
    return SX_OK;
}

sx_status sx_cpu_place_direct(sx_cpu_planner *p)
{
    bool *dropped = sx_arena_array(&p->scratch, p->n_units + 1, bool);
    if (dropped == NULL) {
        return sx_cpu_no_memory();
    }
    place_constants(p);
    for (int k = 0; k < p->n_units; k++) {
        if (p->units[k].kind == SX_CPU_UNIT_COPY) {
            try_direct(p, k, dropped);
        }
    }
    drop_steps(p, dropped);
    SX_TRY(sx_cpu_narrow(p));
    find_frozen(p);
    if (p->target > 0) {
        SX_TRY(sx_cpu_recompute(p, p->target, &p->least));
    }
    sx_cpu_lifetimes(p);
    for (int i = 0; i < p->plan->n_steps; i++) {
        try_in_place(p, p->order[i]);
    }
    return SX_OK;
}

sx_status sx_cpu_place_values(sx_cpu_planner *p)
{
    SX_TRY(place_frozen(p));
    SX_TRY(sx_cpu_order_once(p));
    SX_TRY(place_temporaries(p));
    for (int i = 1; i < p->n_values; i++) {
        p->values[i].at = p->values[sx_cpu_root(p, i)].at;
    }
    return SX_OK;
}
