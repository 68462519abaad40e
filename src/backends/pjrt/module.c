/* Lowering of a graph; see module.h. */
#include "backends/pjrt/module.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/lower/stablehlo/lower.h"
#include "graph/spmd.h"
#include "io/commit.h"

typedef struct lowering {
    const sx_graph *g; /* the caller's, symbolic */
    sx_spmd program;   /* of each replica */
    sx_hlo_writer *w;
    int64_t local; /* examples of each replica */
    int64_t given; /* and in each of its results */
    int64_t steps; /* more than 1: a loop */
    bool bounds;   /* the program's loops have bounds */
    int ok;        /* the result that lets the loop continue, or -1 */
} lowering;

static sx_status node_error(const sx_node *n, const char *why)
{
    return n->file[0] == '\0'
               ? sx_error(SX_UNIMPLEMENTED, "%s \"%s\" %s", n->op->name, n->name, why)
               : sx_error(SX_UNIMPLEMENTED, "%s:%d: %s \"%s\" %s", n->file, n->line, n->op->name,
                          n->name, why);
}

static sx_status check_nodes(const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (sx_hlo_rows[n->op->id].lower == NULL && !(n->op->flags & SX_OP_NO_HOST)) {
            char why[256];
            snprintf(why, sizeof(why), "cannot be part of a device program: %s",
                     sx_hlo_rows[n->op->id].none);
            return node_error(n, why);
        }
    }
    return SX_OK;
}

/* ---- The step loop ---- */

/* The type [K, …]. */
static sx_type stacked(const sx_type *type, int64_t steps)
{
    sx_type out = {.dtype = type->dtype, .rank = type->rank + 1, .dims = {steps}};
    for (int i = 0; i < type->rank && i + 1 < SX_MAX_RANK; i++) {
        out.dims[i + 1] = type->dims[i];
    }
    return out;
}

static sx_type arg_type(const sx_graph *g, int i, int64_t batch, int64_t steps)
{
    if (i == g->n_args) {
        return sx_scalar_type(SX_I64);
    }
    const sx_type *type = sx_graph_type(g, g->args[i].value);
    sx_type one = sx_type_with_batch(*type, batch);
    return steps > 1 && sx_type_has_batch(type) ? stacked(&one, steps) : one;
}

static sx_type result_type(const sx_graph *g, int i, int64_t batch, int64_t steps)
{
    if (i == g->n_results) {
        return sx_scalar_type(SX_I64);
    }
    sx_type one = sx_type_with_batch(*sx_graph_type(g, g->results[i].value), batch);
    return steps > 1 && g->results[i].arg < 0 ? stacked(&one, steps) : one;
}

sx_type sx_pjrt_module_arg_type(const sx_graph *g, const sx_pjrt_module_options *o, int i)
{
    return arg_type(g, i, o->batch, o->steps);
}

sx_type sx_pjrt_module_result_type(const sx_graph *g, const sx_pjrt_module_options *o, int i)
{
    return result_type(g, i, o->batch, o->steps);
}

/* The loop's state: {i, n, go, args…, rings of outputs…}. */
enum { AT_I, AT_N, AT_GO, AT_ARGS };

typedef struct loop {
    sx_type *types;
    sx_hlo *state, *next, *args, *results;
    int *rings;  /* [n_results]: index in the state, or -1 */
    int reached; /* index in the state, where there are bounds */
    int n;
} loop;

static void loop_end(loop *p)
{
    sx_free(p->types);
    sx_free(p->state);
    sx_free(p->next);
    sx_free(p->args);
    sx_free(p->results);
    sx_free(p->rings);
}

static sx_status loop_begin(lowering *l, const sx_hlo *args, loop *p)
{
    const sx_graph *g = l->g;
    size_t most = (size_t)AT_ARGS + (size_t)g->n_args + (size_t)g->n_results + 1;
    *p = (loop){.types = sx_alloc(most, sizeof(*p->types)),
                .state = sx_alloc(most, sizeof(*p->state)),
                .next = sx_alloc(most, sizeof(*p->next)),
                .args = sx_alloc((size_t)g->n_args + 1, sizeof(*p->args)),
                .results = sx_alloc((size_t)g->n_results + 1, sizeof(*p->results)),
                .rings = sx_alloc((size_t)g->n_results + 1, sizeof(*p->rings))};
    if (p->types == NULL || p->state == NULL || p->next == NULL || p->args == NULL ||
        p->results == NULL || p->rings == NULL) {
        return sx_no_memory("for a program");
    }
    p->state[AT_I] = sx_hlo_scalar(l->w, SX_I64, 0);
    p->state[AT_N] = args[g->n_args];
    p->state[AT_GO] = sx_hlo_scalar(l->w, SX_BOOL, 1);
    for (int i = 0; i < g->n_args; i++) {
        p->state[AT_ARGS + i] = args[i];
    }
    p->n = AT_ARGS + g->n_args;
    for (int i = 0; i < g->n_results; i++) {
        bool is_ring = g->results[i].arg < 0;
        p->rings[i] = is_ring ? p->n++ : -1;
        if (is_ring) {
            p->state[p->rings[i]] = sx_hlo_splat(l->w, result_type(g, i, l->given, l->steps), 0);
        }
    }
    if (l->bounds) {
        p->reached = p->n++;
        p->state[p->reached] = sx_hlo_scalar(l->w, SX_I32, 0);
    }
    for (int i = 0; i < p->n; i++) {
        p->types[i] = sx_hlo_type(l->w, p->state[i]);
    }
    return SX_OK;
}

static void loop_condition(lowering *l, loop *p)
{
    sx_hlo_region(l->w, p->types, p->n, p->next);
    sx_hlo more = sx_hlo_compare(l->w, "LT", p->next[AT_I], p->next[AT_N]);
    sx_hlo test = sx_hlo_binary(l->w, "and", more, p->next[AT_GO]);
    sx_hlo_region_end(l->w, &test, 1);
}

static void loop_body(lowering *l, loop *p)
{
    const sx_graph *g = l->g;
    sx_hlo_region(l->w, p->types, p->n, p->next);
    sx_hlo i = p->next[AT_I];
    for (int k = 0; k < g->n_args; k++) {
        sx_hlo arg = p->next[AT_ARGS + k];
        bool is_stack = sx_type_has_batch(sx_graph_type(g, g->args[k].value));
        p->args[k] = is_stack ? sx_hlo_take_row(l->w, arg, i) : arg;
    }
    sx_hlo_set_reached(l->w, l->bounds ? p->next[p->reached] : SX_HLO_NONE);
    sx_hlo_graph(l->w, l->program.graph, p->args, p->results);
    sx_hlo_at(l->w, "step_loop");
    if (l->bounds) {
        p->next[p->reached] = sx_hlo_reached(l->w);
    }
    p->next[AT_I] = sx_hlo_with(l->w, "add", i, 1);
    p->next[AT_GO] = l->ok >= 0 ? p->results[l->ok] : p->next[AT_GO];
    for (int k = 0; k < g->n_results; k++) {
        int ring = p->rings[k], at = ring >= 0 ? ring : AT_ARGS + g->results[k].arg;
        p->next[at] =
            ring >= 0 ? sx_hlo_put_row(l->w, p->next[ring], p->results[k], i) : p->results[k];
    }
    sx_hlo_region_end(l->w, p->next, p->n);
}

/* results[n_results + 1] */
static sx_status lower_loop(lowering *l, const sx_hlo *args, sx_hlo *results)
{
    const sx_graph *g = l->g;
    loop p = {0};
    sx_hlo_at(l->w, "step_loop");
    sx_status status = loop_begin(l, args, &p);
    if (status == SX_OK) {
        sx_hlo first = sx_hlo_begin(l->w, "while", p.state, p.n, p.types, p.n);
        loop_condition(l, &p);
        loop_body(l, &p);
        sx_hlo_end(l->w);
        for (int i = 0; i < g->n_results; i++) {
            results[i] =
                sx_hlo_result(first, p.rings[i] >= 0 ? p.rings[i] : AT_ARGS + g->results[i].arg);
        }
        results[g->n_results] = sx_hlo_result(first, AT_I);
        sx_hlo_set_reached(l->w, l->bounds ? sx_hlo_result(first, p.reached) : SX_HLO_NONE);
    }
    loop_end(&p);
    return status;
}

/* ---- The program ---- */

/* The result that assigns argument i, or -1. */
static int alias_of(const sx_graph *g, int i)
{
    for (int k = 0; k < g->n_results; k++) {
        if (g->results[k].arg == i) {
            return k;
        }
    }
    return -1;
}

bool sx_pjrt_module_donates(const sx_graph *g, const sx_pjrt_module_options *o, int i)
{
    return o->donate_inputs && i < g->n_args && g->args[i].kind == SX_ARG_INPUT &&
           sx_type_has_batch(sx_graph_type(g, g->args[i].value));
}

static sx_status begin(lowering *l, const sx_pjrt_module_options *options, sx_hlo *in)
{
    const sx_graph *g = l->g;
    int n = g->n_args + (l->steps > 1);
    sx_hlo_arg *args = sx_alloc((size_t)n + 1, sizeof(*args));
    if (args == NULL) {
        return sx_no_memory("for a program");
    }
    for (int i = 0; i < n; i++) {
        args[i] = (sx_hlo_arg){.type = arg_type(g, i, l->local, l->steps),
                               .alias = alias_of(g, i),
                               .donated = sx_pjrt_module_donates(g, options, i)};
    }
    sx_status status = sx_hlo_create(&options->hlo, args, n, 0, in, &l->w);
    sx_free(args);
    return status;
}

static sx_status check_loop(const lowering *l, const sx_pjrt_module_options *options)
{
    const sx_graph *g = l->g;
    const sx_type flag = sx_scalar_type(SX_BOOL);
    for (int i = 0; l->steps > 1 && i < g->n_args + g->n_results; i++) {
        sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        if (sx_graph_type(g, v)->rank >= SX_MAX_RANK) {
            return sx_error(SX_UNIMPLEMENTED, "step loops support values of rank %d at most",
                            SX_MAX_RANK - 1);
        }
    }
    if (l->steps > 1 && options->ok_output != NULL &&
        (l->ok < 0 || !sx_type_equal(sx_graph_type(g, g->results[l->ok].value), &flag))) {
        return sx_error(SX_INVALID_ARGUMENT, "the program has no bool output \"%s\"",
                        options->ok_output);
    }
    return SX_OK;
}

int sx_pjrt_batch_parts(const sx_pjrt_module_options *o)
{
    const int n = SX_MAX(o->replicas, 1), divisor = SX_MAX(o->shards, n);
    return o->any_batch && o->batch % divisor != 0 ? 1 : n;
}

sx_status sx_pjrt_module_create(const sx_graph *g, const sx_pjrt_module_options *options,
                                sx_pjrt_module *out)
{
    const int parts = sx_pjrt_batch_parts(options), replicas = SX_MAX(options->replicas, 1);
    const bool whole =
        options->any_batch && options->batch % SX_MAX(options->shards, replicas) != 0;
    const sx_spmd_options division = {
        .batch = options->batch,
        .replicas = parts,
        .parts = whole ? 0 : options->shards,
        .ordered = options->ordered_sums,
        .copies = whole ? replicas : 1,
        .whole_results = options->whole_results,
        .exchange_in_regions = true,
    };
    lowering l = {.g = g,
                  .local = options->batch / parts,
                  .given = options->whole_results ? options->batch : options->batch / parts,
                  .steps = options->steps,
                  .ok = options->ok_output == NULL ? -1
                                                   : sx_graph_find_output(g, options->ok_output)};
    SX_TRY(check_nodes(g));
    SX_TRY(check_loop(&l, options));
    SX_TRY(sx_pass_spmd(g, &division, &l.program));
    sx_hlo *args = sx_alloc((size_t)g->n_args + 2, sizeof(*args));
    sx_hlo *results = sx_alloc((size_t)g->n_results + 3, sizeof(*results));
    sx_status status =
        args == NULL || results == NULL ? sx_no_memory("for a program") : begin(&l, options, args);
    l.bounds = status == SX_OK && sx_hlo_has_bounds(l.w, l.program.graph);
    if (status == SX_OK && l.steps > 1) {
        status = lower_loop(&l, args, results);
    } else if (status == SX_OK) {
        sx_hlo_graph(l.w, l.program.graph, args, results);
    }
    if (status == SX_OK) {
        const int n = g->n_results + (l.steps > 1);
        results[n] = l.bounds ? sx_hlo_reached_value(l.w) : SX_HLO_NONE;
        out->bounds = l.bounds;
        status = sx_hlo_finish(l.w, results, n + l.bounds, &out->text, &out->size);
    }
    sx_free(args);
    sx_free(results);
    sx_spmd_deinit(&l.program);
    if (status != SX_OK) {
        sx_hlo_destroy(l.w);
        return status;
    }
    out->writer = l.w;
    return SX_OK;
}

sx_status sx_pjrt_module_save(const sx_pjrt_module *p, const char *path)
{
    return sx_commit_bytes(path, p->text, p->size);
}

void sx_pjrt_module_destroy(sx_pjrt_module *p)
{
    sx_hlo_destroy(p->writer);
    *p = (sx_pjrt_module){0};
}

const sx_node *sx_pjrt_node_of_message(const sx_graph *g, const char *message)
{
    const sx_node *best = NULL;
    size_t longest = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        size_t size = strlen(g->nodes[k].name);
        const char *at = strstr(message, g->nodes[k].name);
        /* what sx_pass_spmd() makes of a node is named after it: "dense/matmul/part2" */
        if (size > longest && at != NULL && at > message && at[-1] == '"' &&
            (at[size] == '"' || at[size] == '/')) {
            best = &g->nodes[k];
            longest = size;
        }
    }
    return best;
}

sx_status sx_pjrt_locate(const sx_graph *g, sx_status status, bool *out_named)
{
    const sx_node *n =
        status == SX_OK ? NULL : sx_pjrt_node_of_message(g, sx_status_message(status));
    if (out_named != NULL) {
        *out_named = n != NULL;
    }
    return n == NULL ? status
                     : sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: %s \"%s\"",
                                          n->file[0] == '\0' ? "(built in)" : n->file, n->line,
                                          n->op->name, n->name);
}
