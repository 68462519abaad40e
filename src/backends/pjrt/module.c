/* Lowering of a graph; see module.h. */
#include "backends/pjrt/module.h"

#include <string.h>

#include "base/memory.h"
#include "graph/lower/stablehlo_graph.h"
#include "graph/ops/attrs.h"
#include "graph/spmd.h"
#include "io/commit.h"

typedef struct lowering {
    const sx_graph *g;
    sx_hlo_writer *w;
    int64_t batch, local; /* of all replicas; of one */
    int replicas;         /* replicas that share the batch */
    int copies;           /* all replicas; more than `replicas` if each computes the whole batch */
    int64_t steps;        /* more than 1: a loop */
    int ok;               /* the result that lets the loop continue, or -1 */
    bool own_moments;     /* SX_BATCH_NORM_REPLICA with replicas that share the batch */
    sx_hlo *values;       /* [n_values] */
    sx_hlo *parts; /* [n_values]: with own_moments, the replica's part of a value; NONE = the value
                      itself */
    sx_hlo first_example;
} lowering;

static bool has_batch(const lowering *l, sx_value v)
{
    return sx_type_has_batch(sx_graph_type(l->g, v));
}

/* ---- Combining over replicas ---- */

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

/* Uses integers, because collectives on booleans are poorly supported. */
static void meet_and(lowering *l, sx_hlo *out, int n)
{
    for (int i = 0; i < n; i++) {
        sx_hlo least = all_reduce(l, "minimum", sx_hlo_convert(l->w, out[i], SX_I32));
        out[i] = sx_hlo_compare(l->w, "NE", least, sx_hlo_like(l->w, least, 0));
    }
}

/* Chan's formula for parts of equal size: the mean of the variances plus the variance of the means.
 */
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
    [SX_RULE_SUM] = meet_sum,
    [SX_RULE_MAX] = meet_max,
    [SX_RULE_AND] = meet_and,
    [SX_RULE_MOMENTS] = meet_moments,
};

/* ---- Nodes ---- */

static sx_status node_error(const sx_node *n, const char *why)
{
    return n->file[0] == '\0'
               ? sx_error(SX_UNIMPLEMENTED, "%s \"%s\" %s", n->op->name, n->name, why)
               : sx_error(SX_UNIMPLEMENTED, "%s:%d: %s \"%s\" %s", n->file, n->line, n->op->name,
                          n->name, why);
}

static sx_status check_node(const lowering *l, const sx_node *n)
{
    if (n->op->flags & SX_OP_HOST) {
        return node_error(n, "runs on the host and cannot be part of a device program");
    }
    if (n->op->to_stablehlo == NULL) {
        return node_error(n, "has no lowering to StableHLO");
    }
    if (l->replicas > 1 && sx_node_division(l->g, n) == SX_GATHERED) {
        return node_error(n, "makes examples depend on each other, so it runs on one replica only");
    }
    return SX_OK;
}

enum { FIXED_INPUTS = 16 };

/* The context of a node's to_stablehlo. */
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

/* ---- Batch norm per replica ---- */

/* The operators that use the moments, sums and count of their replica. */
static bool sees_parts(const sx_node *n)
{
    return n->op->id == SX_OPID_batch_norm_train ||
           n->op->id == SX_OPID_batch_norm_train_grad_sums ||
           n->op->id == SX_OPID_batch_norm_train_grad_input;
}

static sx_hlo input_of(const lowering *l, const sx_node *n, sx_value v)
{
    sx_hlo part = l->own_moments && sees_parts(n) ? l->parts[v.id] : SX_HLO_NONE;
    return sx_hlo_is(part) ? part : l->values[v.id];
}

/* Whether a node normalizes with these moments; other moments are those of the whole batch. */
static bool normalizes(const lowering *l, const sx_node *moments)
{
    for (int k = 0; k < l->g->n_nodes; k++) {
        const sx_node *n = &l->g->nodes[k];
        if (n->op->id == SX_OPID_batch_norm_train &&
            n->inputs[3].id == sx_node_output(moments, 0).id) {
            return true;
        }
    }
    return false;
}

/* Keeps the replica's values before they are combined. */
static void keep_parts(lowering *l, const sx_node *n, sx_hlo *out)
{
    for (int i = 0; i < n->n_outputs; i++) {
        l->parts[sx_node_output(n, i).id] =
            n->op->id == SX_OPID_size ? sx_hlo_with(l->w, "divide", out[i], l->replicas) : out[i];
    }
}

static void meet_parts(lowering *l, const sx_node *n, sx_hlo *out)
{
    keep_parts(l, n, out);
    for (int i = 0; i < n->n_outputs && n->op->id == SX_OPID_moments; i++) {
        out[i] = mean_of_replicas(l, out[i]);
    }
    if (n->op->id == SX_OPID_batch_norm_train_grad_sums) {
        meet_sum(l, out, n->n_outputs);
    }
}

/* Whether a node's results have parts, for those operators. */
static bool has_parts(const lowering *l, const sx_node *n)
{
    return l->own_moments && sx_reads_batch(l->g, n) &&
           (n->op->id == SX_OPID_size || n->op->id == SX_OPID_batch_norm_train_grad_sums ||
            (n->op->id == SX_OPID_moments && normalizes(l, n)));
}

static sx_status frame_begin(lowering *l, const sx_node *n, frame *f)
{
    int64_t batch = sx_node_division(l->g, n) == SX_COMMON ? l->batch : l->local;
    f->in = f->in_fixed;
    f->types = f->types_fixed;
    if (n->n_inputs > FIXED_INPUTS) {
        f->in = sx_alloc((size_t)n->n_inputs, sizeof(*f->in));
        f->types = sx_alloc((size_t)n->n_inputs, sizeof(*f->types));
    }
    if (f->in == NULL || f->types == NULL) {
        frame_end(f);
        return sx_no_memory("for a program");
    }
    for (int i = 0; i < n->n_inputs; i++) {
        f->in[i] = input_of(l, n, n->inputs[i]);
        f->types[i] = sx_type_with_batch(*sx_graph_type(l->g, n->inputs[i]), batch);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        f->out[i] = SX_HLO_NONE;
        f->out_types[i] = sx_type_with_batch(*sx_graph_type(l->g, sx_node_output(n, i)), batch);
    }
    return SX_OK;
}

static sx_status lower_node(lowering *l, const sx_node *n)
{
    frame f;
    SX_TRY(check_node(l, n));
    SX_TRY(frame_begin(l, n, &f));
    sx_hlo_op op = {
        .attrs = n->attrs,
        .name = n->name,
        .in = f.in,
        .out = f.out,
        .in_types = f.types,
        .out_types = f.out_types,
        .n_in = n->n_inputs,
        .n_out = n->n_outputs,
        .first_row = sx_reads_batch(l->g, n) ? l->first_example : SX_HLO_NONE,
    };
    sx_hlo_at(l->w, n->name);
    if (n->op->batch_rule == SX_RULE_ROWS && sx_hlo_is(op.first_row)) {
        const sx_type *x = sx_graph_type(l->g, n->inputs[0]);
        int axis = sx_batch_axis(x);
        if (axis >= 0 && x->dims[axis] != SX_BATCH) { /* c*N rows */
            op.first_row = sx_hlo_with(l->w, "multiply", op.first_row, -(double)x->dims[axis]);
        }
    }
    n->op->to_stablehlo(l->w, &op);
    if (has_parts(l, n)) {
        meet_parts(l, n, f.out);
    } else if (l->replicas > 1 && sx_node_division(l->g, n) == SX_COMBINED) {
        meetings[n->op->batch_rule](l, f.out, n->n_outputs);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        l->values[sx_node_output(n, i).id] = f.out[i];
    }
    frame_end(&f);
    return SX_OK;
}

/* The position of this replica's first example in the batch, for random operators. */
static void make_first_example(lowering *l)
{
    const sx_type scalar = sx_scalar_type(SX_U32);
    if (l->replicas > 1) {
        sx_hlo_at(l->w, "replica");
        sx_hlo id = sx_hlo_emit(l->w, "replica_id", NULL, 0, &scalar, 1);
        l->first_example = sx_hlo_with(l->w, "multiply", id, (double)l->local);
    }
}

/* The first replica's value, on all replicas. */
static sx_hlo of_first_replica(lowering *l, sx_hlo x)
{
    const sx_type id_type = sx_scalar_type(SX_U32);
    sx_hlo_at(l->w, "replica");
    sx_hlo id = sx_hlo_emit(l->w, "replica_id", NULL, 0, &id_type, 1);
    sx_hlo is_first = sx_hlo_compare(l->w, "EQ", id, sx_hlo_like(l->w, id, 0));
    sx_hlo own = sx_hlo_select(l->w, is_first, x, sx_hlo_like(l->w, x, 0));
    return sx_hlo_all_reduce(l->w, "add", own, l->copies);
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
        if (l->copies > l->replicas && l->g->results[i].arg >= 0) {
            results[i] = of_first_replica(l, results[i]);
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
    sx_hlo *state, *next, *results;
    int *rings; /* [n_results]: index in the state, or -1 */
    int n;
} loop;

static void loop_end(loop *p)
{
    sx_free(p->types);
    sx_free(p->state);
    sx_free(p->next);
    sx_free(p->results);
    sx_free(p->rings);
}

static sx_status loop_begin(lowering *l, const sx_hlo *args, loop *p)
{
    const sx_graph *g = l->g;
    size_t most = (size_t)AT_ARGS + (size_t)g->n_args + (size_t)g->n_results;
    *p = (loop){.types = sx_alloc(most, sizeof(*p->types)),
                .state = sx_alloc(most, sizeof(*p->state)),
                .next = sx_alloc(most, sizeof(*p->next)),
                .results = sx_alloc((size_t)g->n_results + 1, sizeof(*p->results)),
                .rings = sx_alloc((size_t)g->n_results + 1, sizeof(*p->rings))};
    if (p->types == NULL || p->state == NULL || p->next == NULL || p->results == NULL ||
        p->rings == NULL) {
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
            p->state[p->rings[i]] = sx_hlo_splat(l->w, result_type(g, i, l->local, l->steps), 0);
        }
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

static sx_status loop_body(lowering *l, loop *p)
{
    const sx_graph *g = l->g;
    sx_hlo_region(l->w, p->types, p->n, p->next);
    sx_hlo i = p->next[AT_I];
    for (int k = 0; k < g->n_args; k++) {
        sx_hlo arg = p->next[AT_ARGS + k];
        bool is_stack = has_batch(l, g->args[k].value);
        l->values[g->args[k].value.id] = is_stack ? sx_hlo_row(l->w, arg, i) : arg;
    }
    SX_TRY(lower_graph(l, p->results));
    sx_hlo_at(l->w, "step_loop");
    p->next[AT_I] = sx_hlo_with(l->w, "add", i, 1);
    p->next[AT_GO] = l->ok >= 0 ? p->results[l->ok] : p->next[AT_GO];
    for (int k = 0; k < g->n_results; k++) {
        int ring = p->rings[k], at = ring >= 0 ? ring : AT_ARGS + g->results[k].arg;
        p->next[at] =
            ring >= 0 ? sx_hlo_set_row(l->w, p->next[ring], p->results[k], i) : p->results[k];
    }
    sx_hlo_region_end(l->w, p->next, p->n);
    return SX_OK;
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
        status = loop_body(l, &p);
        if (status == SX_OK) {
            sx_hlo_end(l->w);
        }
        for (int i = 0; i < g->n_results; i++) {
            results[i] =
                sx_hlo_result(first, p.rings[i] >= 0 ? p.rings[i] : AT_ARGS + g->results[i].arg);
        }
        results[g->n_results] = sx_hlo_result(first, AT_I);
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

static sx_status begin(lowering *l, const sx_pjrt_module_options *options, sx_hlo *in)
{
    const sx_graph *g = l->g;
    int n = g->n_args + (l->steps > 1);
    sx_hlo_arg *args = sx_alloc((size_t)n + 1, sizeof(*args));
    l->values = sx_alloc((size_t)g->n_values, sizeof(*l->values));
    l->parts = sx_alloc((size_t)g->n_values, sizeof(*l->parts));
    if (args == NULL || l->values == NULL || l->parts == NULL) {
        sx_free(args);
        return sx_no_memory("for a program");
    }
    for (int i = 0; i < g->n_values; i++) {
        l->values[i] = l->parts[i] = SX_HLO_NONE;
    }
    for (int i = 0; i < n; i++) {
        args[i] = (sx_hlo_arg){arg_type(g, i, l->local, l->steps), alias_of(g, i)};
    }
    sx_status status = sx_hlo_create(&options->hlo, args, n, 0, in, &l->w);
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        l->values[g->args[i].value.id] = in[i];
    }
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
    int n = o->replicas > 0 ? o->replicas : 1;
    return o->any_batch && o->batch % n != 0 ? 1 : n;
}

static sx_status divide_batch(lowering *l, const sx_pjrt_module_options *options)
{
    bool batched = false;
    for (int i = 0; i < l->g->n_args; i++) {
        batched = batched || has_batch(l, l->g->args[i].value);
    }
    l->copies = l->replicas;
    l->replicas = sx_pjrt_batch_parts(options);
    l->local = l->batch / l->replicas;
    l->own_moments = options->batch_norm == SX_BATCH_NORM_REPLICA && l->replicas > 1;
    if (!batched || l->batch % l->replicas == 0) {
        return SX_OK;
    }
    return sx_error(
        SX_INVALID_ARGUMENT,
        "batch size %lld is not a multiple of %d replicas; the nearest are %lld and %lld",
        (long long)l->batch, l->replicas, (long long)(l->local * l->replicas),
        (long long)((l->local + 1) * l->replicas));
}

sx_status sx_pjrt_module_create(const sx_graph *g, const sx_pjrt_module_options *options,
                                sx_pjrt_module *out)
{
    lowering l = {.g = g,
                  .batch = options->batch,
                  .replicas = options->replicas > 0 ? options->replicas : 1,
                  .steps = options->steps,
                  .first_example = SX_HLO_NONE};
    sx_pjrt_module p = {0};
    l.ok = options->ok_output == NULL ? -1 : sx_graph_find_output(g, options->ok_output);
    SX_TRY(divide_batch(&l, options));
    SX_TRY(check_loop(&l, options));
    sx_hlo *args = sx_alloc((size_t)g->n_args + 2, sizeof(*args));
    sx_hlo *results = sx_alloc((size_t)g->n_results + 2, sizeof(*results));
    sx_status status =
        args == NULL || results == NULL ? sx_no_memory("for a program") : begin(&l, options, args);
    if (status == SX_OK) {
        status = l.steps > 1 ? lower_loop(&l, args, results) : lower_graph(&l, results);
    }
    if (status == SX_OK) {
        status = sx_hlo_finish(l.w, results, g->n_results + (l.steps > 1), &p.text, &p.size);
    }
    sx_free(args);
    sx_free(results);
    sx_free(l.values);
    sx_free(l.parts);
    if (status != SX_OK) {
        sx_hlo_destroy(l.w);
        return status;
    }
    p.writer = l.w;
    *out = p;
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
        if (size > longest && at != NULL && at > message && at[-1] == '"' && at[size] == '"') {
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
