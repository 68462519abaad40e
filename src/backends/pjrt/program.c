/* Lowering a graph: see program.h. */
#include "backends/pjrt/program.h"

#include <string.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"

typedef struct lowering {
    const sx_graph *g;
    sx_hlo_writer *w;
    int64_t batch, local; /* of all replicas, of one */
    int replicas;
    sx_hlo *values; /* [n_values] */
    sx_hlo first_example;
} lowering;

static bool has_batch(const lowering *l, sx_value v)
{
    return sx_type_has_batch(sx_graph_type(l->g, v));
}

static bool reads_batch(const lowering *l, const sx_node *n)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (has_batch(l, n->inputs[i])) {
            return true;
        }
    }
    return false;
}

/* --- Meeting -----------------------------------------------------------------------------------
 */

static sx_hlo all_reduce(lowering *l, const char *op, sx_hlo x)
{
    return sx_hlo_all_reduce(l->w, op, x, l->replicas);
}

static sx_hlo mean_of_replicas(lowering *l, sx_hlo x)
{
    return sx_hlo_with(l->w, "divide", all_reduce(l, "add", x), l->replicas);
}

static void meet_sum(lowering *l, sx_hlo *out, int n)
{
    for (int i = 0; i < n; i++) {
        out[i] = all_reduce(l, "add", out[i]);
    }
}

static void meet_max(lowering *l, sx_hlo *out, int n)
{
    for (int i = 0; i < n; i++) {
        out[i] = all_reduce(l, "maximum", out[i]);
    }
}

/* Collectives of booleans are rare; of integers they are not. */
static void meet_and(lowering *l, sx_hlo *out, int n)
{
    for (int i = 0; i < n; i++) {
        sx_hlo least = all_reduce(l, "minimum", sx_hlo_convert(l->w, out[i], SX_I32));
        out[i] = sx_hlo_compare(l->w, "NE", least, sx_hlo_like(l->w, least, 0));
    }
}

/* Chan's formula for parts of one size: the variances' mean and the means' variance add up. */
static void meet_moments(lowering *l, sx_hlo *out, int n)
{
    (void)n;
    sx_hlo mean = mean_of_replicas(l, out[0]);
    sx_hlo off = sx_hlo_binary(l->w, "subtract", out[0], mean);
    sx_hlo spread = sx_hlo_binary(l->w, "multiply", off, off);
    out[0] = mean;
    out[1] = mean_of_replicas(l, sx_hlo_binary(l->w, "add", out[1], spread));
}

static void (*const meetings[])(lowering *l, sx_hlo *out, int n) = {
    [SX_COMBINE_SUM] = meet_sum,
    [SX_COMBINE_MAX] = meet_max,
    [SX_COMBINE_AND] = meet_and,
    [SX_COMBINE_MOMENTS] = meet_moments,
};

/* --- Nodes -------------------------------------------------------------------------------------
 */

static sx_status node_error(const sx_node *n, const char *why)
{
    return n->file[0] == '\0'
               ? sx_error(SX_UNIMPLEMENTED, "%s \"%s\" %s", n->op->name, n->name, why)
               : sx_error(SX_UNIMPLEMENTED, "%s:%d: %s \"%s\" %s", n->file, n->line, n->op->name,
                          n->name, why);
}

/* `size` counts the whole batch: it is known now, and needs no meeting. */
static bool is_whole(const sx_node *n)
{
    return n->op->id == SX_OPID_size;
}

static sx_status check_node(const lowering *l, const sx_node *n)
{
    if (n->op->flags & SX_OP_HOST) {
        return node_error(n, "belongs to the host segment, not to a device program");
    }
    if (n->op->to_stablehlo == NULL || n->n_bodies > 0) {
        return node_error(n, "has no lowering to StableHLO");
    }
    if (l->replicas == 1 || !reads_batch(l, n) || is_whole(n)) {
        return SX_OK;
    }
    if (n->op->flags & SX_OP_COUPLES_BATCH) {
        return node_error(n, "makes examples depend on one another: it runs on one replica only");
    }
    for (int i = 0; i < n->n_outputs; i++) {
        if (!has_batch(l, sx_node_output(n, i)) && n->op->combine == SX_COMBINE_NONE) {
            return node_error(n, "loses the batch, and its parts cannot be put together: it runs "
                                 "on one replica only");
        }
    }
    return SX_OK;
}

enum { FIXED_INPUTS = 16 };

/* What a node's facet sees. */
typedef struct frame {
    sx_hlo in_fixed[FIXED_INPUTS], out[SX_MAX_OUTPUTS], *in;
    sx_type types_fixed[FIXED_INPUTS], out_types[SX_MAX_OUTPUTS], *types;
} frame;

static void frame_end(frame *f)
{
    if (f->in != f->in_fixed) {
        sx_free(f->in);
        sx_free(f->types);
    }
}

static sx_status frame_begin(lowering *l, const sx_node *n, frame *f)
{
    int64_t batch = is_whole(n) ? l->batch : l->local;
    f->in = f->in_fixed;
    f->types = f->types_fixed;
    if (n->n_inputs > FIXED_INPUTS) {
        f->in = sx_alloc((size_t)n->n_inputs, sizeof(*f->in));
        f->types = sx_alloc((size_t)n->n_inputs, sizeof(*f->types));
    }
    if (f->in == NULL || f->types == NULL) {
        frame_end(f);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
    }
    for (int i = 0; i < n->n_inputs; i++) {
        f->in[i] = l->values[n->inputs[i].id];
        f->types[i] = sx_type_with_batch(*sx_graph_type(l->g, n->inputs[i]), batch);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        f->out[i] = SX_HLO_NONE;
        f->out_types[i] = sx_type_with_batch(*sx_graph_type(l->g, sx_node_output(n, i)), batch);
    }
    return SX_OK;
}

/* Do this node's results meet over the replicas? */
static bool meets(const lowering *l, const sx_node *n)
{
    bool loses = false;
    for (int i = 0; i < n->n_outputs; i++) {
        loses = loses || !has_batch(l, sx_node_output(n, i));
    }
    return l->replicas > 1 && loses && reads_batch(l, n) && !is_whole(n);
}

static sx_status lower_node(lowering *l, const sx_node *n)
{
    frame f;
    SX_TRY(check_node(l, n));
    SX_TRY(frame_begin(l, n, &f));
    const sx_hlo_op op = {
        .attrs = n->attrs,
        .name = n->name,
        .in = f.in,
        .out = f.out,
        .in_types = f.types,
        .out_types = f.out_types,
        .n_in = n->n_inputs,
        .n_out = n->n_outputs,
        .first_example = reads_batch(l, n) ? l->first_example : SX_HLO_NONE,
    };
    sx_hlo_at(l->w, n->name);
    n->op->to_stablehlo(l->w, &op);
    if (meets(l, n)) {
        meetings[n->op->combine](l, f.out, n->n_outputs);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        l->values[sx_node_output(n, i).id] = f.out[i];
    }
    frame_end(&f);
    return SX_OK;
}

/* Where this replica's examples begin: what random operators add. */
static void make_first_example(lowering *l)
{
    const sx_type scalar = sx_scalar_type(SX_U32);
    if (l->replicas > 1) {
        sx_hlo_at(l->w, "replica");
        sx_hlo id = sx_hlo_emit(l->w, "replica_id", NULL, 0, &scalar, 1);
        l->first_example = sx_hlo_with(l->w, "multiply", id, (double)l->local);
    }
}

static sx_status lower_graph(lowering *l, sx_hlo *results)
{
    make_first_example(l);
    for (int k = 0; k < l->g->n_nodes && !sx_hlo_failed(l->w); k++) {
        if (l->g->nodes[k].op->id != SX_OPID_parameter) {
            SX_TRY(lower_node(l, &l->g->nodes[k]));
        }
    }
    for (int i = 0; i < l->g->n_results; i++) {
        results[i] = l->values[l->g->results[i].value.id];
    }
    return SX_OK;
}

/* --- The whole ---------------------------------------------------------------------------------
 */

/* Which result assigns argument i, or -1. */
static int alias_of(const sx_graph *g, int i)
{
    for (int k = 0; k < g->n_results; k++) {
        if (g->results[k].arg == i) {
            return k;
        }
    }
    return -1;
}

static sx_status begin(lowering *l, const sx_pjrt_program_options *options)
{
    const sx_graph *g = l->g;
    sx_hlo_arg *args = sx_alloc((size_t)g->n_args + 1, sizeof(*args));
    sx_hlo *in = sx_alloc((size_t)g->n_args + 1, sizeof(*in));
    sx_status status = SX_OK;
    l->values = sx_alloc((size_t)g->n_values, sizeof(*l->values));
    if (args == NULL || in == NULL || l->values == NULL) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
        goto done;
    }
    for (int i = 0; i < g->n_values; i++) {
        l->values[i] = SX_HLO_NONE;
    }
    for (int i = 0; i < g->n_args; i++) {
        args[i].type = sx_type_with_batch(*sx_graph_type(g, g->args[i].value), l->local);
        args[i].alias = alias_of(g, i);
    }
    status = sx_hlo_create(&options->hlo, args, g->n_args, 0, in, &l->w);
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        l->values[g->args[i].value.id] = in[i];
    }
done:
    sx_free(args);
    sx_free(in);
    return status;
}

static sx_status divide_batch(lowering *l)
{
    bool batched = false;
    for (int i = 0; i < l->g->n_args; i++) {
        batched = batched || has_batch(l, l->g->args[i].value);
    }
    l->local = l->batch / l->replicas;
    if (!batched || l->batch % l->replicas == 0) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "a batch of %lld does not divide by %d replicas; the nearest that do are %lld "
                    "and %lld",
                    (long long)l->batch, l->replicas, (long long)(l->local * l->replicas),
                    (long long)((l->local + 1) * l->replicas));
}

sx_status sx_pjrt_program_create(const sx_graph *g, const sx_pjrt_program_options *options,
                                 sx_pjrt_program *out)
{
    lowering l = {.g = g,
                  .batch = options->batch,
                  .replicas = options->replicas > 0 ? options->replicas : 1,
                  .first_example = SX_HLO_NONE};
    sx_pjrt_program p = {0};
    sx_hlo *results = NULL;
    sx_status status = divide_batch(&l);
    SX_TRY_GOTO(status, status, done);
    SX_TRY_GOTO(status, begin(&l, options), done);
    results = sx_alloc((size_t)g->n_results + 1, sizeof(*results));
    if (results == NULL) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
        goto done;
    }
    SX_TRY_GOTO(status, lower_graph(&l, results), done);
    SX_TRY_GOTO(status, sx_hlo_finish(l.w, results, g->n_results, &p.text, &p.size), done);
    p.writer = l.w;
    *out = p;
done:
    sx_free(results);
    sx_free(l.values);
    if (status != SX_OK) {
        sx_hlo_destroy(l.w);
    }
    return status;
}

void sx_pjrt_program_destroy(sx_pjrt_program *p)
{
    sx_hlo_destroy(p->writer);
    *p = (sx_pjrt_program){0};
}

const sx_node *sx_pjrt_node_of_message(const sx_graph *g, const char *message)
{
    const sx_node *best = NULL;
    size_t longest = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        size_t size = strlen(g->nodes[k].name);
        const char *at = strstr(message, g->nodes[k].name);
        if (size > longest && at != NULL && at > message && at[-1] == '"' && at[size] == '"') {
            best = &g->nodes[k];
            longest = size;
        }
    }
    return best;
}
