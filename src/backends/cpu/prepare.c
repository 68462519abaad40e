/* Units -> the steps of the plan: what each runs, by its kernel, and, once values are placed, where
 * its operands lie. */
#include <pthread.h>
#include <stdatomic.h>

#include "backends/cpu/planner.h"
#include "base/checked.h"
#include "base/thread.h"
#include "graph/ops/attrs.h"

/* Elements of a range of three operands, unless a kernel says another number. */
enum { GRAIN = 8 * 1024 };

sx_status sx_cpu_own(const sx_cpu_site *site, void *object, void (*destroy)(void *))
{
    sx_cpu_cleanup *c = sx_arena_new(&site->plan->arena, sx_cpu_cleanup);
    if (c == NULL) {
        destroy(object);
        return sx_cpu_no_memory();
    }
    *c = (sx_cpu_cleanup){destroy, object, site->plan->cleanups};
    site->plan->cleanups = c;
    return SX_OK;
}

/* "a+b" of the fused nodes' names, or of their operators', in program order. */
static const char *joined_names(sx_cpu_planner *p, const sx_cpu_unit *u, bool operators)
{
    const char *text = "";
    for (int at = -1;;) {
        int next = INT32_MAX;
        for (int i = 0; i < u->n_nodes; i++) {
            next = u->nodes[i] > at && u->nodes[i] < next ? u->nodes[i] : next;
        }
        if (next == INT32_MAX) {
            return text;
        }
        const sx_node *n = &p->g->nodes[next];
        const char *name = operators ? n->op->name : n->name;
        text = sx_arena_printf(&p->plan->arena, "%s%s%s", text, *text != '\0' ? "+" : "", name);
        at = next;
        if (text == NULL) {
            return "";
        }
    }
}

static sx_status prepare_kernel(sx_cpu_planner *p, const sx_cpu_unit *u, int variant,
                                sx_cpu_step *s)
{
    sx_cpu_plan *plan = p->plan;
    const sx_graph *g = plan->variants[variant];
    const sx_node **nodes = sx_arena_array(&plan->arena, u->n_nodes, const sx_node *);
    sx_type *types = sx_arena_array(&p->scratch, u->n_in + u->n_out + 1, sx_type);
    sx_value *values = sx_arena_array(&p->scratch, u->n_in + u->n_out + 1, sx_value);
    sx_cpu_form *forms = sx_arena_array(&p->scratch, u->n_in + u->n_out + 1, sx_cpu_form);
    if (nodes == NULL || types == NULL || values == NULL || forms == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < u->n_nodes; i++) {
        nodes[i] = &g->nodes[u->nodes[i]];
        s->flops += sx_node_cost(g, nodes[i]).flops + sx_cpu_region_flops_of(g, nodes[i]);
    }
    unsigned narrow_in = 0;
    bool narrow_out = false;
    unsigned frozen_in = 0;
    const bool packed = u->packed.bytes > 0;
    for (int i = 0; i < u->n_in + u->n_out; i++) {
        int v = i < u->n_in ? u->in[i] : u->out[i - u->n_in];
        const bool narrow = p->values[v].form.dtype != SX_DTYPE_NONE;
        forms[i] = narrow ? p->values[v].form : (sx_cpu_form){.dtype = SX_F32};
        v = p->values[v].twin_of != 0 ? p->values[v].twin_of : v;
        bool hidden = v >= g->n_values;
        values[i] = hidden ? SX_NO_VALUE : (sx_value){(uint32_t)v};
        types[i] = hidden ? sx_type_of(SX_U8, p->values[v].bytes) : g->values[v].type;
        s->bytes += packed && i == 1
                        ? 0
                        : (double)sx_type_bytes(&types[i]) *
                              (narrow ? (double)sx_cpu_form_bytes(&forms[i]) / sizeof(float) : 1);
        narrow_in |= narrow && i < u->n_in ? 1u << i : 0;
        narrow_out |= narrow && i >= u->n_in;
        /* What runs once prepares nothing for a second time. */
        const bool frozen = !u->once && i < 32 && i < u->n_in;
        frozen_in |= frozen && p->values[sx_cpu_root(p, u->in[i])].frozen ? 1u << i : 0;
    }
    if (u->n_nodes == 1 && nodes[0]->op->bytes != NULL) { /* it does not read all of its operands */
        s->bytes = sx_node_cost(g, nodes[0]).bytes;
    }
    sx_cpu_site site = {.plan = plan,
                        .graph = g,
                        .nodes = nodes,
                        .n_nodes = u->n_nodes,
                        .values_in = values,
                        .values_out = values + u->n_in,
                        .in = types,
                        .out = types + u->n_in,
                        .n_in = u->n_in - packed,
                        .n_out = u->n_out,
                        .forms = forms,
                        .narrow_in = narrow_in,
                        .narrow_out = narrow_out,
                        .frozen_in = frozen_in,
                        .packed = u->packed,
                        .divided = plan->shards == 1 || !u->sharded,
                        .vec = p->vec};
    s->kernel = u->kernel->name;
    SX_TRY(u->kernel->prepare(&site, s), "preparing %s \"%s\"", nodes[0]->op->name, nodes[0]->name);
    s->prepares |= s->read_once;
    return SX_OK;
}

static sx_status prepare_combine(sx_cpu_planner *p, const sx_cpu_unit *u, sx_cpu_step *s)
{
    sx_cpu_plan *plan = p->plan;
    const sx_node *n = &p->g->nodes[u->nodes[0]];
    const sx_type *type = &p->g->values[u->out[0]].type;
    sx_cpu_combine_data *d = sx_arena_new(&plan->arena, sx_cpu_combine_data);
    int64_t *counts = sx_arena_array(&plan->arena, plan->shards, int64_t);
    if (d == NULL || counts == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < plan->shards; i++) {
        const sx_graph *g = plan->variants[i < plan->larger ? 0 : 1];
        counts[i] = ((const sx_all_reduce_attrs *)g->nodes[u->nodes[0]].attrs)->elems;
    }
    *d = (sx_cpu_combine_data){.vec = p->vec,
                               .combine = ((const sx_all_reduce_attrs *)n->attrs)->how,
                               .shards = plan->shards,
                               .dtype = type->dtype,
                               .elems = sx_type_elems(type),
                               .counts = counts};
    s->run = sx_cpu_run_combine;
    s->data = d;
    s->range = d->elems;
    s->grain = SX_MAX(3 * GRAIN / (plan->shards + 1) / (d->combine == SX_COMBINE_MOMENTS ? 16 : 1),
                      SX_CPU_SPLIT);
    s->kernel = "combine";
    s->flops = (double)(d->elems * plan->shards);
    s->bytes = (double)(sx_type_bytes(type) * (plan->shards + 1));
    return SX_OK;
}

static sx_status prepare_copy(sx_cpu_planner *p, const sx_cpu_unit *u, int variant, sx_cpu_step *s)
{
    const sx_cpu_pvalue *v = &p->values[u->in[0]];
    const int64_t bytes = variant == 1 ? v->lesser : v->bytes;
    sx_cpu_site site = {.plan = p->plan, .vec = p->vec};
    s->kernel = "copy";
    s->bytes = 2.0 * (double)bytes;
    return sx_cpu_prepare_copy(&site, bytes, s);
}

static sx_status prepare_packing(sx_cpu_planner *p, const sx_cpu_unit *u, int variant,
                                 sx_cpu_step *s)
{
    const bool pack = u->kind == SX_CPU_UNIT_PACK;
    const sx_cpu_pvalue *narrow = &p->values[pack ? u->out[0] : u->in[0]];
    const int64_t bytes = sx_cpu_form_bytes(&narrow->form);
    const int64_t elems = (variant == 1 ? narrow->lesser : narrow->bytes) / bytes;
    sx_cpu_site site = {.plan = p->plan, .vec = p->vec};
    s->kernel = pack ? "pack" : "unpack";
    s->bytes = (double)((bytes + (int64_t)sizeof(float)) * elems);
    return sx_cpu_prepare_packing(&site, elems, &narrow->form, pack, s);
}

static sx_status prepare_step(sx_cpu_planner *p, const sx_cpu_unit *u, int variant)
{
    sx_cpu_step *s = &p->plan->steps[variant][u->step];
    s->node = joined_names(p, u, false);
    s->ops = joined_names(p, u, true);
    s->grain = GRAIN;
    switch (u->kind) {
    case SX_CPU_UNIT_KERNEL:
        return prepare_kernel(p, u, variant, s);
    case SX_CPU_UNIT_COMBINE:
        return prepare_combine(p, u, s);
    case SX_CPU_UNIT_FILTER:
        return sx_cpu_prepare_filter(p, u, variant, s);
    case SX_CPU_UNIT_PACK:
    case SX_CPU_UNIT_UNPACK:
        return prepare_packing(p, u, variant, s);
    default:
        return prepare_copy(p, u, variant, s);
    }
}

/* Preparing steps takes long where oneDNN makes machine code for them: threads take them one by
 * one, the last step first, since that is often a product, the code of which takes longest. Each
 * has memory of its own, in a plan that ends up as part of the whole one's. */
typedef struct preparing {
    atomic_int next, failed; /* of the steps of all variants, from the last */
} preparing;

typedef struct preparer {
    preparing *all;
    sx_cpu_planner planner;
    sx_cpu_plan part;
    sx_status status;
    pthread_t thread;
} preparer;

static void *prepare_some(void *user)
{
    preparer *w = user;
    const int n = w->part.n_steps;
    for (int i; (i = atomic_fetch_sub(&w->all->next, 1)) >= 0 && !atomic_load(&w->all->failed);) {
        const sx_cpu_unit *u = &w->planner.units[w->planner.order[i % n]];
        w->status = prepare_step(&w->planner, u, i / n);
        if (w->status != SX_OK) {
            atomic_store(&w->all->failed, 1);
        }
    }
    return NULL;
}

enum { ALONE_FLOPS = 1 << 20 }; /* what computes so little is prepared at once, too */

sx_status sx_cpu_prepare_steps(sx_cpu_planner *p)
{
    sx_cpu_plan *plan = p->plan;
    for (int v = 0; v < plan->n_variants; v++) {
        plan->steps[v] = sx_arena_array(&plan->arena, plan->n_steps + 1, sx_cpu_step);
        if (plan->steps[v] == NULL) {
            return sx_cpu_no_memory();
        }
    }
    const bool alone = plan->n_steps < 2 || sx_cpu_graph_flops(p->g) < ALONE_FLOPS;
    const int n = alone ? 1 : SX_MIN(plan->workers, (int)SX_CPU_MAX_PARTS);
    preparing all;
    atomic_init(&all.next, plan->n_variants * plan->n_steps - 1);
    atomic_init(&all.failed, 0);
    preparer workers[SX_CPU_MAX_PARTS];
    for (int i = 0; i < n; i++) {
        preparer *w = &workers[i];
        *w = (preparer){.all = &all, .planner = *p, .part = *plan};
        w->planner.plan = &w->part;
        w->part.cleanups = NULL;
        sx_arena_init(&w->planner.scratch, 0);
        sx_arena_init(&w->part.arena, 0);
        w->planner.scratch.budget = w->part.arena.budget = plan->arena.budget;
    }
    int started = 1;
    while (started < n &&
           sx_thread_create(&workers[started].thread, NULL, prepare_some, &workers[started]) == 0) {
        started++;
    }
    (void)prepare_some(&workers[0]);
    sx_status status = SX_OK;
    for (int i = 0; i < n; i++) {
        preparer *w = &workers[i];
        if (i > 0 && i < started) {
            pthread_join(w->thread, NULL);
        }
        sx_arena_deinit(&w->planner.scratch);
        plan->parts[plan->n_parts++] = w->part.arena;
        plan->bf16 = plan->bf16 || w->part.bf16;
        while (w->part.cleanups != NULL) {
            sx_cpu_cleanup *c = w->part.cleanups;
            w->part.cleanups = c->next;
            c->next = plan->cleanups;
            plan->cleanups = c;
        }
        if (status == SX_OK) {
            status = w->status;
        } else {
            sx_status_free(w->status);
        }
    }
    return status;
}

/* Operations and bytes between two looks at the clock: some 100 us. */
enum { BETWEEN_LOOKS = 1 << 20 };

sx_status sx_cpu_set_operands(sx_cpu_planner *p)
{
    sx_cpu_plan *plan = p->plan;
    double since_look = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const sx_cpu_unit *u = &p->units[p->order[i]];
        sx_cpu_operand *at = sx_arena_array(&plan->arena, u->n_in + u->n_out + 1, sx_cpu_operand);
        if (at == NULL) {
            return sx_cpu_no_memory();
        }
        for (int j = 0; j < u->n_in + u->n_out; j++) {
            at[j] = p->values[j < u->n_in ? u->in[j] : u->out[j - u->n_in]].at;
        }
        const bool packed = u->packed.bytes > 0;
        for (int v = 0; v < plan->n_variants; v++) {
            sx_cpu_step *s = &plan->steps[v][i];
            s->in = at;
            s->n_in = u->n_in - packed;
            s->kept = packed ? at[u->n_in - 1] : s->kept;
            s->out = at + u->n_in;
            s->n_out = u->n_out;
            s->scratch = u->scratch;
            s->index = i;
            s->once = u->once;
            s->looks = since_look > BETWEEN_LOOKS;
        }
        const sx_cpu_step *s = &plan->steps[0][i];
        since_look = (s->looks ? 0 : since_look) + (s->once ? 0 : s->flops + s->bytes);
    }
    return SX_OK;
}
