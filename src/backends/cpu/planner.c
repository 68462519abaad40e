/* Makes a plan (plan.h):
 *
 *   passes -> one graph per shard size -> units -> schedule -> results, in place
 *          -> prepared steps -> arenas -> operands */
#include <inttypes.h>
#include <string.h>

#include "backends/cpu/memory_map.h"
#include "backends/cpu/options.h"
#include "backends/cpu/planner.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/quantize.h"
#include "graph/spmd.h"

/* Below this many operations, a second worker costs more than it saves, */
static const double parallel_flops = 1e6;
/* and below this many, a single shard does not use oneDNN's team. */
static const double team_flops = 2e7;

enum {
    MAX_SHARDS = 1024,
};

sx_status sx_cpu_no_memory(void)
{
    return sx_no_memory("preparing a program");
}

sx_status sx_cpu_too_large(const char *largest)
{
    return sx_error(SX_RESOURCE_EXHAUSTED,
                    "cpu: the program needs more memory than can be addressed; the largest value "
                    "is %s",
                    largest);
}

/* ---- Passes ---- */

typedef sx_status pass_fn(const sx_graph *g, const sx_cpu_plan_options *o, sx_graph **out);

/* Passes that need the graph alone. */
#define PLAIN(name)                                                                        \
    static sx_status name(const sx_graph *g, const sx_cpu_plan_options *o, sx_graph **out) \
    {                                                                                      \
        (void)o;                                                                           \
        return sx_pass_##name(g, out);                                                     \
    }
PLAIN(widen_bf16)
PLAIN(widen_f16)
PLAIN(simplify)
PLAIN(fold_constants)
PLAIN(merge_equal)
PLAIN(fuse_swish)
PLAIN(fuse_gelu)
PLAIN(freeze)
PLAIN(join_concats)
PLAIN(join_loops)
PLAIN(keep_products)
PLAIN(drop_dead)
PLAIN(drop_state)
PLAIN(repeat_norms)
PLAIN(split_checks)
#undef PLAIN

static sx_status hoist_products(const sx_graph *g, const sx_cpu_plan_options *o, sx_graph **out)
{
    return sx_pass_hoist_products(g, SX_MAX(o->batch, 1), out);
}

static sx_status round_products(const sx_graph *g, const sx_cpu_plan_options *o, sx_graph **out)
{
    (void)o;
    return sx_pass_round_products(g, out);
}

/* Whether products of a plan may be of bfloat16. */
static bool rounds(const sx_cpu_plan_options *o, bool frozen)
{
    return frozen && o->bfloat16 && sx_cpu_has_bf16();
}

static sx_status run_passes(const sx_graph *graph, const sx_cpu_plan_options *o, bool frozen,
                            sx_graph **out)
{
    static pass_fn *const passes[] = {
        widen_bf16,     widen_f16,    simplify,      fold_constants, merge_equal,  drop_dead,
        fuse_swish,     fuse_gelu,    freeze,        simplify,       join_concats, drop_dead,
        round_products, join_loops,   keep_products, hoist_products, drop_dead,    drop_state,
        drop_dead,      repeat_norms, split_checks};
    sx_graph *g = NULL;
    if (o->settled) { /* they have seen the whole */
        return sx_pass_drop_dead(graph, out);
    }
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        if ((passes[i] == freeze && (!frozen || o->region)) ||
            ((passes[i] == round_products || passes[i] == join_concats) && !rounds(o, frozen)) ||
            (passes[i] == split_checks && o->workers < 2)) {
            continue;
        }
        sx_graph *next = NULL;
        sx_status status = passes[i](g != NULL ? g : graph, o, &next);
        sx_graph_destroy(g);
        if (status != SX_OK) {
            return status;
        }
        g = next;
    }
    *out = g;
    return SX_OK;
}

/* ---- Shards ---- */

static bool assigns(const sx_graph *g)
{
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].arg != SX_RESULT_IS_OUTPUT) {
            return true;
        }
    }
    return false;
}

static int choose_shards(const sx_cpu_plan_options *o, const sx_graph *g, double flops)
{
    int wanted = o->shards;
    if (wanted <= 0) {
        const int many = o->eval_shards > 0 && !assigns(g) ? o->eval_shards : o->workers;
        wanted = flops < parallel_flops || !sx_cpu_divides_well(g) ? 1 : many;
    }
    wanted = wanted < o->batch ? wanted : (int)o->batch;
    wanted = wanted < MAX_SHARDS ? wanted : MAX_SHARDS;
    return wanted > 1 && sx_cpu_has_batch(g) ? wanted : 1;
}

static sx_status divide(sx_cpu_planner *p, const sx_cpu_plan_options *o)
{
    sx_cpu_plan *plan = p->plan;
    sx_graph *whole;
    plan->batch = o->batch > 0 ? o->batch : 1;
    SX_TRY(sx_pass_fix_batch(plan->graph, plan->batch, &whole));
    plan->variants[0] = whole;
    plan->n_variants = 1;
    plan->workers = o->workers;
    plan->flops = sx_cpu_graph_flops(whole);
    const double flops = plan->flops + sx_cpu_region_flops(whole);
    plan->shards = choose_shards(o, plan->graph, flops);
    plan->shard_max = (plan->batch + plan->shards - 1) / plan->shards;
    plan->larger = (int)(plan->batch - (plan->shard_max - 1) * plan->shards);
    plan->parallel = plan->shards > 1 && o->workers > 1 && flops >= parallel_flops;
    plan->team = o->team || (plan->shards == 1 && o->shards <= 0 && o->workers > 1 &&
                             plan->flops >= team_flops);
    plan->flushes = (assigns(plan->graph) || o->of_training) && !plan->team;
    plan->n_variants = plan->shards > 1 && plan->larger < plan->shards ? 2 : 1;
    for (int i = 0; i < plan->n_variants && plan->shards > 1; i++) {
        sx_spmd program;
        SX_TRY(sx_pass_spmd(plan->graph,
                            &(sx_spmd_options){.batch = plan->batch,
                                               .replicas = plan->shards,
                                               .largest = plan->shard_max - i,
                                               .larger = plan->n_variants > 1 ? plan->larger : 0,
                                               .byte_ranges = true},
                            &program));
        sx_graph_destroy(plan->variants[i]);
        plan->variants[i] = program.graph;
        program.graph = NULL;
        p->own = i == 0 ? sx_arena_memdup(&p->scratch, program.own,
                                          (size_t)plan->variants[0]->n_values * sizeof(bool))
                        : p->own;
        sx_spmd_deinit(&program);
        if (p->own == NULL) {
            return sx_cpu_no_memory();
        }
    }
    p->g = plan->variants[0];
    return SX_OK;
}

/* Arguments and outputs: whole or in pieces, and a piece's bytes for each example. */
static sx_status describe_ends(sx_cpu_plan *plan)
{
    const sx_graph *g = plan->graph;
    bool *batched = sx_arena_array(&plan->arena, g->n_args + g->n_results + 1, bool);
    int64_t *bytes = sx_arena_array(&plan->arena, g->n_args + g->n_results + 1, int64_t);
    if (batched == NULL || bytes == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        sx_type one = sx_type_with_batch(*sx_graph_type(g, v), 1);
        batched[i] = plan->shards > 1 && sx_spmd_is_byte_range(sx_graph_type(g, v));
        bytes[i] = sx_type_bytes(&one);
    }
    plan->arg_batched = batched;
    plan->out_batched = batched + g->n_args;
    plan->arg_example_bytes = bytes;
    plan->out_example_bytes = bytes + g->n_args;
    plan->n_spaces = plan->first_large = SX_CPU_ARGS + g->n_args + g->n_results;
    return SX_OK;
}

/* ---- Constants ---- */

/* The output of a node whose host kernel reads nothing but types. */
static sx_status compute_from_types(sx_cpu_planner *p, const sx_node *n, void *bytes)
{
    const sx_graph *g = p->g;
    sx_host_tensor *in = sx_arena_array(&p->scratch, n->n_inputs + 1, sx_host_tensor);
    sx_host_tensor y = {.type = *sx_graph_type(g, n->first_output)};
    y.data = sx_arena_alloc(&p->scratch, (size_t)sx_type_elems(&y.type) + 1, sizeof(double));
    if (in == NULL || y.data == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in[i].type = *sx_graph_type(g, n->inputs[i]);
    }
    SX_TRY(sx_host_run_carried(n->op, n->attrs, in, n->n_inputs, &y, 1, NULL, false));
    sx_host_store(&y, bytes);
    return SX_OK;
}

/* What the executable was charged for a large constant becomes its block's. */
static sx_status fill_constants(sx_cpu_planner *p, sx_executable *e)
{
    sx_cpu_plan *plan = p->plan;
    plan->constants = sx_alloc_aligned((size_t)plan->const_bytes + SX_CPU_ALIGN, SX_CPU_ALIGN);
    if (plan->constants == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 1; i < p->g->n_values; i++) {
        const sx_cpu_pvalue *v = &p->values[i];
        const sx_node *n = &p->g->nodes[p->g->values[i].node];
        if (!v->constant) {
            continue;
        }
        sx_cpu_large *large =
            v->at.space >= plan->first_large ? &plan->large[v->at.space - plan->first_large] : NULL;
        char *to = large == NULL ? plan->constants + v->at.offset
                                 : sx_alloc_aligned((size_t)v->bytes + SX_CPU_ALIGN, SX_CPU_ALIGN);
        sx_status status = SX_OK;
        if (to == NULL) {
            return sx_cpu_no_memory();
        }
        if (n->op->id == SX_OPID_constant) {
            memcpy(to, ((const sx_constant_attrs *)n->attrs)->value.data, (size_t)v->bytes);
        } else {
            status = compute_from_types(p, n, to);
        }
        if (large != NULL && status != SX_OK) {
            sx_free_aligned(to);
        } else if (large != NULL) {
            status = sx_cpu_block_get(to, v->bytes, e->memory, &large->block);
            sx_executable_hand_over(e, status == SX_OK ? v->bytes : 0);
        }
        SX_TRY(status);
    }
    return SX_OK;
}

/* Large constants are kept once: the variants refer to their blocks, which may be gone once the
 * first execution has read them. */
static void share_constants(sx_cpu_planner *p)
{
    const sx_cpu_plan *plan = p->plan;
    for (int k = 0; k < plan->n_variants; k++) {
        sx_graph *g = plan->variants[k];
        for (int i = 1; i < g->n_values; i++) {
            const sx_cpu_pvalue *v = &p->values[i];
            const sx_node *n = &g->nodes[g->values[i].node];
            if (v->constant && v->at.space >= plan->first_large && n->op->id == SX_OPID_constant) {
                sx_constant_attrs *attrs = (sx_constant_attrs *)(uintptr_t)n->attrs;
                sx_arena_discard(&g->arena, attrs->value.data, (size_t)v->bytes);
                attrs->value.data = plan->large[v->at.space - plan->first_large].block->data;
            }
        }
    }
}

/* Charges the memory that the executable will keep, beside what arenas are charged for. */
static sx_status charge(const sx_cpu_planner *p, const sx_cpu_plan_options *o)
{
    const sx_cpu_plan *plan = p->plan;
    int64_t temporaries, constants;
    if (!sx_mul_i64(plan->shard_bytes, plan->shards, &temporaries) ||
        !sx_add_i64(temporaries, plan->common_bytes, &temporaries) ||
        !sx_add_i64(plan->const_bytes, plan->large_bytes, &constants) ||
        !sx_add_i64(constants, plan->kept_bytes, &constants) ||
        !sx_add_i64(constants, plan->once_bytes, &constants)) {
        return sx_cpu_too_large(p->largest);
    }
    return o->executable != NULL
               ? sx_executable_charge(o->executable, temporaries, constants, p->largest)
               : SX_OK;
}

/* ---- Main ---- */

static sx_status plan_units(sx_cpu_planner *p, bool crop)
{
    sx_cpu_plan *plan = p->plan;
    p->sharded = sx_arena_array(&p->scratch, p->g->n_nodes + 1, bool);
    p->cropped = sx_arena_array(&p->scratch, p->g->n_nodes + 1, bool);
    if (p->own == NULL) {
        p->own = sx_arena_array(&p->scratch, p->g->n_values + 1, bool);
    }
    if (p->own == NULL || p->sharded == NULL || p->cropped == NULL) {
        return sx_cpu_no_memory();
    }
    for (int k = 0; k < p->g->n_nodes; k++) { /* one shard: every node is that shard's */
        const sx_node *n = &p->g->nodes[k];
        p->sharded[k] = plan->shards == 1 || (n->n_outputs > 0 && p->own[n->first_output.id]);
    }
    for (int i = 0; i < plan->n_variants && crop; i++) {
        SX_TRY(sx_cpu_crop(plan->variants[i], &p->scratch, p->cropped));
    }
    return sx_cpu_make_units(p);
}

/* Whether what frozen variables give takes more than a small share of the memory limit: the plan is
 * then made without. It does not depend on what else is in use, so neither do results. */
enum { KEPT_SHARE = 8 };

static bool keeps_too_much(const sx_cpu_plan *plan, const sx_executable *e)
{
    const size_t limit = e != NULL && e->memory != NULL ? e->memory->limit_bytes : 0;
    int64_t bytes = plan->kept_bytes + plan->once_bytes;
    for (int i = 0; i < plan->n_large; i++) {
        bytes += plan->large[i].kept ? plan->large[i].bytes : 0;
    }
    return plan->frozen && limit > 0 && bytes > (int64_t)(limit / KEPT_SHARE);
}

/* How to plan: a way that fails is given up, and the graph planned again. */
typedef struct planning_way {
    bool crop, frozen;
    int64_t target; /* bytes of temporaries, scratch memory left out; 0 = any number */
    bool least;     /* which is the least there is */
} planning_way;

static int64_t temporary_bytes(const sx_cpu_plan *plan)
{
    return plan->shards * plan->shard_bytes + plan->common_bytes;
}

/* What the plan takes beside temporaries: arguments, outputs, constants. */
static int64_t other_bytes(const sx_cpu_plan *plan)
{
    const sx_graph *g = plan->graph;
    int64_t sum = plan->const_bytes + plan->large_bytes;
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        const bool assigns = i >= g->n_args && g->results[i - g->n_args].arg >= 0;
        const sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        const sx_type type = sx_type_with_batch(*sx_graph_type(g, v), plan->batch);
        sum += assigns ? 0 : SX_MAX(sx_type_bytes(&type), 0);
    }
    return sum;
}

/* Whether the plan keeps to the memory limit; else how to plan, or why that is in vain. */
static sx_status check_limit(sx_cpu_planner *p, int64_t limit, planning_way *way)
{
    const int64_t temporaries = temporary_bytes(p->plan), others = other_bytes(p->plan);
    const int64_t over = temporaries + others - limit;
    p->over_limit = limit > 0 && assigns(p->plan->graph) && over > 0;
    if (!p->over_limit) {
        return SX_OK;
    }
    if (way->least) {
        sx_buf text;
        sx_buf_init(&text, 0);
        sx_buf_puts(&text, "a training step with batch size ");
        sx_buf_printf(&text, "%" PRId64 " takes at least ", p->plan->batch);
        sx_buf_put_size(&text, (double)(temporaries + others));
        sx_buf_puts(&text, " of memory, ");
        sx_buf_put_size(&text, (double)temporaries);
        sx_buf_puts(&text, " of them for temporaries when all is computed again that can be: more "
                           "than the memory limit of ");
        sx_buf_put_size(&text, (double)limit);
        sx_buf_puts(&text, "; give more, or take a smaller batch, fewer threads or bfloat16");
        sx_status status = sx_error(SX_RESOURCE_EXHAUSTED, "%s", sx_buf_text(&text));
        sx_buf_deinit(&text);
        return status;
    }
    if (way->target == 0) {
        way->target = SX_MAX(limit - others, 1);
    } else if (p->least > way->target) {
        way->target = p->least;
        way->least = true;
    } else {
        way->target = SX_MAX(way->target - over, 1);
    }
    return SX_OK;
}

static sx_status plan_all(sx_cpu_planner *p, const sx_cpu_plan_options *o, planning_way *way)
{
    SX_TRY(divide(p, o));
    SX_TRY(describe_ends(p->plan));
    SX_TRY(plan_units(p, way->crop));
    if (p->crop_failed) {
        return SX_OK;
    }
    SX_TRY(sx_cpu_share_filters(p));
    SX_TRY(sx_cpu_place_results(p));
    SX_TRY(sx_cpu_schedule(p));
    SX_TRY(sx_cpu_place_direct(p));
    SX_TRY(sx_cpu_prepare_steps(p));
    SX_TRY(sx_cpu_place_values(p));
    SX_TRY(sx_cpu_set_operands(p));
    SX_TRY(check_limit(p, o->memory_limit_bytes, way));
    p->keeps_too_much = keeps_too_much(p->plan, o->executable);
    if (p->over_limit || p->keeps_too_much) {
        return SX_OK;
    }
    SX_TRY(charge(p, o));
    SX_TRY(fill_constants(p, o->executable));
    share_constants(p);
    return SX_OK;
}

static sx_status try_plan(const sx_graph *graph, const sx_cpu_plan_options *options,
                          planning_way *way, sx_cpu_plan **out)
{
    sx_cpu_plan *plan = sx_alloc(1, sizeof(*plan));
    *out = NULL;
    if (plan == NULL) {
        return sx_cpu_no_memory();
    }
    const sx_executable *e = options->executable;
    sx_arena_init(&plan->arena, 0);
    sx_cpu_planner p = {.plan = plan,
                        .vec = sx_cpu_vec_best(),
                        .shares_large = options->shares_large,
                        .target = way->target};
    sx_arena_init(&p.scratch, 0);
    plan->arena.budget = p.scratch.budget = e != NULL ? e->memory : NULL;
    plan->frozen = way->frozen;
    plan->region = options->region;
    plan->integers = options->integers;
    plan->rounds = rounds(options, way->frozen);
    plan->map = options->map ? sx_arena_new(&plan->arena, sx_cpu_memory_map) : NULL;
    if (options->map && plan->map == NULL) {
        sx_cpu_plan_destroy(plan);
        return sx_cpu_no_memory();
    }
    sx_status status = run_passes(graph, options, plan->frozen, &plan->graph);
    if (status == SX_OK) {
        status = plan_all(&p, options, way);
    }
    way->crop = way->crop && !p.crop_failed;
    way->frozen = way->frozen && !p.keeps_too_much;
    sx_arena_deinit(&p.scratch);
    if (status != SX_OK || p.crop_failed || p.keeps_too_much || p.over_limit) {
        sx_cpu_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return SX_OK;
}

/* Whether the copies that planning makes of the graph's constants fit, before it makes them. */
static sx_status check_constants(const sx_graph *g, sx_executable *executable)
{
    int64_t bytes = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (n->op->id == SX_OPID_constant &&
            !sx_add_i64(bytes, sx_type_bytes(sx_graph_type(g, n->first_output)), &bytes)) {
            return sx_cpu_too_large("a constant");
        }
    }
    int64_t copies;
    if (executable == NULL || !sx_mul_i64(bytes, 3, &copies)) {
        return SX_OK;
    }
    SX_TRY(sx_executable_charge(executable, 0, copies, NULL));
    sx_executable_discharge(executable);
    return SX_OK;
}

sx_status sx_cpu_plan_create(const sx_graph *graph, const sx_cpu_plan_options *options,
                             sx_cpu_plan **out)
{
    planning_way way = {.crop = true, .frozen = options->frozen};
    *out = NULL;
    SX_TRY(check_constants(graph, options->executable));
    while (*out == NULL) { /* a few times */
        SX_TRY(try_plan(graph, options, &way, out));
    }
    return SX_OK;
}

sx_status sx_cpu_plan_settle(const sx_graph *graph, const sx_cpu_plan_options *options,
                             sx_graph **out, int *out_shards)
{
    sx_graph *settled = NULL, *whole = NULL;
    SX_TRY(run_passes(graph, options, options->frozen, &settled));
    sx_status status = sx_pass_fix_batch(settled, SX_MAX(options->batch, 1), &whole);
    if (status != SX_OK) {
        sx_graph_destroy(settled);
        return status;
    }
    *out_shards =
        choose_shards(options, settled, sx_cpu_graph_flops(whole) + sx_cpu_region_flops(whole));
    sx_graph_destroy(whole);
    *out = settled;
    return SX_OK;
}

void sx_cpu_plan_destroy(sx_cpu_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (sx_cpu_cleanup *c = plan->cleanups; c != NULL; c = c->next) {
        c->destroy(c->object);
    }
    for (int i = 0; i < plan->n_large; i++) {
        sx_cpu_block_release(plan->large[i].block);
    }
    sx_graph_destroy(plan->graph);
    sx_graph_destroy(plan->variants[0]);
    sx_graph_destroy(plan->variants[1]);
    sx_free_aligned(plan->constants);
    for (int i = 0; i < plan->n_parts; i++) {
        sx_arena_deinit(&plan->parts[i]);
    }
    sx_arena_deinit(&plan->arena);
    sx_free(plan);
}
