/* Calls of gradient functions (ops/call.c) in a trace. The function is made static for the types of
 * the call, as a region is, and differentiated; what comes out is inlined like any function. The
 * calls of one function with the same types share it. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"
#include "graph/passes/passes.h"
#include "graph/specialize_trace.h"

/* What the first gradient function of a call depends on is `args`; a value only where it decides
 * shapes. */
struct sx_made_gradient {
    const sx_function *function; /* NULL: of part of one */
    const sx_graph *body;
    const char *name;
    int64_t order;
    const char *variables;    /* of which the gradient is wanted, too: "a,b"; "" = none */
    const sx_trace_val *args; /* [the function's args]: type, variable, and known or counts */
    /* (args but handles..., reads..., dy...) -> dx...; a function where data decide shapes */
    sx_graph *graph;
    sx_trace_read *reads; /* [n_reads] */
    int n_reads;
    struct sx_made_gradient *next;
};

static bool same_arg(const sx_trace_val *a, const sx_trace_val *b)
{
    if (!sx_type_equal(&a->type, &b->type) || a->counts != b->counts ||
        (a->known == NULL) != (b->known == NULL) ||
        (a->variable == NULL) != (b->variable == NULL)) {
        return false;
    }
    return (a->variable == NULL || strcmp(a->variable, b->variable) == 0) &&
           (a->known == NULL || a->known->data == b->known->data ||
            memcmp(a->known->data, b->known->data, (size_t)sx_type_bytes(&a->type)) == 0);
}

static int find_name(const char *list, const char *name);

/* Which of the arguments, then of the reads, have a gradient. */
static bool *find_differing(sx_specializer *s, const struct sx_made_gradient *made,
                            const sx_specializer *inner, const int *passed, int n)
{
    bool *differ = sx_arena_array(s->arena, n + 1, bool);
    for (int i = 0; i < n && differ != NULL; i++) {
        const int r = i - (n - made->n_reads);
        differ[i] = r < 0 ? sx_dtype_is_float(inner->vals[passed[i]].type.dtype)
                          : find_name(made->variables, made->reads[r].variable) >= 0;
    }
    return differ;
}

/* The function as a static graph, (args but handles..., reads...) -> results; *out stays NULL where
 * a device cannot run it, and *out_refused is the node that stands in the way, if it is one. Where
 * data decide shapes, its first gradient is made of parts: made->graph. */
static sx_status make_static(sx_specializer *s, struct sx_made_gradient *made,
                             const sx_node **out_refused, const bool **out_differ, sx_graph **out)
{
    const sx_graph *body = made->body;
    const sx_trace_val *bound = made->args;
    bool has_batch = false;
    sx_trace_read *reads = NULL;
    sx_specializer inner = {.out = s->out,
                            .arena = s->arena,
                            .binding = {.n_args = body->n_args,
                                        .knows_batch = s->binding.knows_batch,
                                        .batch = s->binding.batch},
                            .limits = s->limits,
                            .folded_bytes = s->folded_bytes,
                            .nodes = s->nodes,
                            .depth = s->depth + 1,
                            .gradients = s->gradients,
                            .pure = true,
                            .reads = &reads};
    int *args = sx_arena_array(s->arena, body->n_args + 1, int);
    int *results = sx_arena_array(s->arena, body->n_results + 1, int), *passed = NULL;
    sx_status status = args == NULL || results == NULL ? sx_specialize_no_memory() : SX_OK;
    for (int i = 0; i < body->n_args && status == SX_OK; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        sx_trace_val arg = bound[i];
        has_batch = has_batch || sx_type_has_batch(&arg.type);
        arg.row = SX_NO_ROW;
        arg.output = i;
        status = sx_type_may_be(&arg.type, declared)
                     ? sx_new_val(&inner, &arg, &args[i])
                     : sx_contradicts("argument", i, &arg.type, declared);
    }
    if (status == SX_OK) {
        status = sx_walk_graph(&inner, body, args, "", results);
    }
    int n = 0;
    for (const sx_trace_read *r = reads; r != NULL; r = r->next) {
        made->n_reads++;
    }
    if (status == SX_OK) {
        passed = sx_arena_array(s->arena, body->n_args + made->n_reads + 1, int);
        made->reads = sx_arena_array(s->arena, made->n_reads + 1, sx_trace_read);
        status = passed == NULL || made->reads == NULL ? sx_specialize_no_memory() : SX_OK;
    }
    for (int i = 0; i < body->n_args && status == SX_OK; i++) {
        if (bound[i].variable == NULL) {
            passed[n++] = args[i];
        }
    }
    int k = 0;
    for (const sx_trace_read *r = reads; r != NULL && status == SX_OK; r = r->next) {
        made->reads[k++] = *r;
        passed[n++] = r->val;
    }
    if (status == SX_OK) {
        *out_differ = find_differing(s, made, &inner, passed, n);
        status = *out_differ == NULL ? sx_specialize_no_memory() : SX_OK;
    }
    if (status == SX_OK) {
        status = sx_emit_region(&inner, passed, n, results, body->n_results, true, out);
    }
    if (status == SX_OK && *out == NULL && !has_batch && made->order == 1) {
        status = sx_emit_gradient(&inner, passed, n, *out_differ, results, body->n_results,
                                  &made->graph);
    }
    s->folded_bytes = inner.folded_bytes;
    *out_refused = inner.refused;
    sx_free_trace(&inner);
    return status;
}

/* The place of a name in a list "a,b,c", or -1. */
static int find_name(const char *list, const char *name)
{
    const size_t size = strlen(name);
    for (int i = 0; *list != '\0'; i++) {
        const size_t length = strcspn(list, ",");
        if (length == size && memcmp(list, name, size) == 0) {
            return i;
        }
        list += length + (list[length] == ',');
    }
    return -1;
}

/* (x..., dy of each float y...) -> dx of each x[i] with differ[i]. `differ` becomes that of the new
 * graph's inputs. */
static sx_status differentiate(sx_arena *arena, const sx_graph *f, const bool *differ,
                               const bool **out_differ, sx_graph **out)
{
    const int n_x = f->n_args, n_y = f->n_results;
    sx_value *x = sx_arena_array(arena, 2 * n_x + 1, sx_value), *dx = x != NULL ? x + n_x : NULL;
    sx_value *y = sx_arena_array(arena, 3 * n_y + 1, sx_value);
    sx_value *wanted = sx_arena_array(arena, n_x + 1, sx_value);
    bool *next = sx_arena_array(arena, n_x + n_y + 1, bool);
    sx_builder *b = NULL;
    sx_graph *made = NULL;
    int n_dy = 0, n_dx = 0;
    if (x == NULL || y == NULL || wanted == NULL || next == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_builder_create(&b));
    char name[32];
    for (int i = 0; i < n_x; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = sx_input(b, name, *sx_graph_type(f, f->args[i].value));
        next[i] = differ[i];
        if (differ[i]) {
            wanted[n_dx++] = x[i];
        }
    }
    sx_region_inline(b, f, x, y);
    sx_value *ys = y + n_y, *dys = ys + n_y;
    for (int i = 0; i < n_y; i++) {
        const sx_type *type = sx_graph_type(f, f->results[i].value);
        if (sx_dtype_is_float(type->dtype)) {
            snprintf(name, sizeof(name), "dy%d", i);
            ys[n_dy] = y[i];
            dys[n_dy] = sx_input(b, name, *type);
            next[n_x + n_dy++] = true;
        }
    }
    sx_pull_back(b, ys, dys, n_dy, wanted, n_dx, dx);
    for (int i = 0; i < n_dx && !sx_builder_failed(b); i++) {
        const sx_type type = sx_type_of_value(b, wanted[i]);
        snprintf(name, sizeof(name), "dx%d", i);
        sx_output(b, name, sx_value_is(dx[i]) ? dx[i] : sx_region_zeros(b, &type));
    }
    sx_status status = sx_builder_finish(b, &made);
    sx_builder_destroy(b);
    SX_TRY(status);
    *out = sx_graph_copy(arena, made);
    *out_differ = next;
    sx_graph_destroy(made);
    return *out != NULL ? SX_OK : sx_specialize_no_memory();
}

/* *g, if it has forms of norms or swish, becomes the graph with these fused. */
static sx_status fuse_forms(sx_arena *arena, sx_graph **g)
{
    sx_graph *fused;
    SX_TRY(sx_pass_fuse_forms(*g, &fused));
    if (fused != NULL) {
        *g = sx_graph_copy(arena, fused);
        sx_graph_destroy(fused);
    }
    return *g != NULL ? SX_OK : sx_specialize_no_memory();
}

static bool has_batch(const struct sx_made_gradient *made)
{
    bool has = false;
    for (int i = 0; i < made->body->n_args; i++) {
        has = has || sx_type_has_batch(&made->args[i].type);
    }
    return has;
}

static sx_status make_gradient(sx_specializer *s, struct sx_made_gradient *made, bool *out_waits)
{
    const sx_graph *g = NULL;
    sx_graph *next = NULL;
    const sx_node *refused = NULL;
    const bool *differs = NULL;
    SX_TRY(make_static(s, made, &refused, &differs, &next));
    if (made->graph != NULL) {
        s->out->n_gradients++;
        return SX_OK;
    }
    if (next == NULL && has_batch(made)) { /* a loop over the examples, say */
        *out_waits = true;
        return SX_OK;
    }
    if (next == NULL && refused != NULL) {
        return sx_error(SX_UNIMPLEMENTED, "%s \"%.100s\" has no %s: %s \"%.100s\" %s",
                        made->function != NULL ? "function" : "part", made->name,
                        made->order == 1 ? "gradient" : "gradient of its gradient",
                        refused->op->name, refused->name,
                        made->order == 1
                            ? "assigns a variable, or has regions that only the host runs"
                            : "assigns a variable, has shapes that depend on data, or regions "
                              "that only the host runs");
    }
    if (next == NULL) {
        return sx_error(
            SX_UNIMPLEMENTED,
            "function \"%.100s\" has no gradient: the shapes of its results depend on data",
            made->name);
    }
    if (made->order == 1 && !s->pure && !s->binding.differentiated) {
        SX_TRY(fuse_forms(s->arena, &next));
    }
    for (int64_t k = 0; k < made->order; k++) {
        g = next;
        SX_TRY(differentiate(s->arena, g, differs, &differs, &next));
    }
    made->graph = next;
    s->out->n_gradients++;
    return SX_OK;
}

sx_status sx_walk_gradient(sx_specializer *s, const sx_node *n, const sx_function *f, const int *in,
                           const char *name, int *out_vals, bool *out_waits)
{
    enum { MOST_ORDER = 4 };
    const sx_call_attrs *attrs = n->attrs;
    const sx_graph *body = f->body;
    const char *variables = attrs->variables != NULL ? attrs->variables : "";
    struct sx_made_gradient *made = *s->gradients;
    sx_trace_val *bound = sx_arena_array(s->arena, body->n_args + 1, sx_trace_val);
    if (attrs->gradient < 1 || attrs->gradient > MOST_ORDER || body->n_args > n->n_inputs) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "gradient function %lld of function \"%.100s\", of %d inputs; expected 1 to "
            "%d, and at least %d inputs",
            (long long)attrs->gradient, f->name, n->n_inputs, MOST_ORDER, body->n_args);
    }
    if (variables[0] != '\0' && attrs->gradient != 1) {
        return sx_error(SX_UNIMPLEMENTED,
                        "gradient function %lld of function \"%.100s\" with respect to variables; "
                        "only the first has them",
                        (long long)attrs->gradient, f->name);
    }
    if (bound == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_check_depth(s)); /* of a function that calls its own gradient */
    for (int i = 0; i < body->n_args; i++) {
        const sx_trace_val *v = &s->vals[in[i]];
        bound[i] = (sx_trace_val){.type = v->type, .variable = v->variable};
        if (f->shaping[i]) {
            bound[i].known = v->known;
            bound[i].counts = v->counts;
        }
    }
    for (; made != NULL; made = made->next) {
        bool same = made->function == f && made->order == attrs->gradient &&
                    strcmp(made->variables, variables) == 0;
        for (int i = 0; i < body->n_args && same; i++) {
            same = same_arg(&made->args[i], &bound[i]);
        }
        if (same) {
            break;
        }
    }
    if (made == NULL) {
        made = sx_arena_new(s->arena, struct sx_made_gradient);
        if (made == NULL) {
            return sx_specialize_no_memory();
        }
        *made = (struct sx_made_gradient){.function = f,
                                          .body = body,
                                          .name = f->name,
                                          .order = attrs->gradient,
                                          .variables = variables,
                                          .args = bound};
        SX_TRY(make_gradient(s, made, out_waits), "the gradient of function \"%.100s\"", f->name);
        if (*out_waits) {
            return SX_OK;
        }
        made->next = *s->gradients;
        *s->gradients = made;
    }
    const sx_graph *g = made->graph;
    int *args = sx_arena_array(s->arena, n->n_inputs + made->n_reads + 1, int), k = 0;
    if (args == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i <= n->n_inputs; i++) {
        for (int r = 0; i == body->n_args && r < made->n_reads; r++) {
            SX_TRY(sx_read_variable(s, &made->reads[r], name, &args[k++]));
        }
        if (i < n->n_inputs && (i >= body->n_args || bound[i].variable == NULL)) {
            args[k++] = in[i];
        }
    }
    int n_dx = g->n_results, n_wanted = 0; /* of the arguments; variables asked for */
    for (int r = 0; r < made->n_reads; r++) {
        n_dx -= find_name(variables, made->reads[r].variable) >= 0;
    }
    for (const char *at = variables; *at != '\0'; n_wanted++) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (k != g->n_args || n->n_outputs != n_dx + n_wanted) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "gradient function %lld of \"%.100s\" has %d inputs and %d outputs, but the call has "
            "%d and %d",
            (long long)attrs->gradient, f->name, n->n_inputs + g->n_args - k, n_dx + n_wanted,
            n->n_inputs, n->n_outputs);
    }
    int *results = sx_arena_array(s->arena, g->n_results + 1, int);
    if (results == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_inline_body(s, g, args, k, name, results));
    memcpy(out_vals, results, (size_t)n_dx * sizeof(*results));
    for (int i = n_dx; i < n->n_outputs; i++) {
        out_vals[i] = -1;
    }
    for (int r = 0, at = n_dx; r < made->n_reads; r++) {
        const int wanted = find_name(variables, made->reads[r].variable);
        if (wanted >= 0) {
            out_vals[n_dx + wanted] = results[at++];
        }
    }
    for (int i = n_dx; i < n->n_outputs; i++) { /* a variable that nothing reads with these types */
        if (out_vals[i] < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "function \"%.100s\" does not read variable %d of the list \"%.200s\"",
                            f->name, i - n_dx + 1, variables);
        }
    }
    return SX_OK;
}

/* ---- Parts of functions ---- */

/* The gradient rule of the only node of a region, which has run: (x..., y..., dy...) -> dx. */
static sx_status apply_rule(sx_specializer *s, const sx_graph *body, const int *in, int n_in,
                            const sx_node **out_node, sx_graph **out)
{
    const sx_node *n = NULL;
    for (int k = 0; k < body->n_nodes; k++) {
        n = body->nodes[k].op != &sx_op_parameter ? &body->nodes[k] : n;
    }
    const int n_x = body->n_args, n_y = body->n_results;
    if (n == NULL || n->n_inputs != n_x || n->n_outputs != n_y || n_in < n_x + n_y ||
        n->op->grad == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "its region is not one operator with a gradient");
    }
    sx_value *x = sx_arena_array(s->arena, 2 * n_in + n_y + 1, sx_value);
    bool *needed = sx_arena_array(s->arena, n_x + 1, bool);
    sx_builder *b = NULL;
    if (x == NULL || needed == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_builder_create(&b));
    sx_value *dy = x + n_in, *dx = dy + n_y;
    for (int i = 0; i < n_in; i++) {
        char name[32];
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = sx_input(b, name, s->vals[in[i]].type);
    }
    for (int k = 0, at = n_x + n_y; k < n_y && at < n_in; k++) {
        if (sx_dtype_is_float(sx_graph_type(body, body->results[k].value)->dtype)) {
            dy[k] = x[at++];
        }
    }
    for (int i = 0; i < n_x; i++) {
        needed[i] = sx_dtype_is_float(s->vals[in[i]].type.dtype);
    }
    sx_builder_at(b, n->file, n->line);
    if (!sx_builder_failed(b)) {
        n->op->grad(&(sx_grad){.b = b,
                               .attrs = n->attrs,
                               .x = x,
                               .y = x + n_x,
                               .dy = dy,
                               .dx = dx,
                               .needed = needed,
                               .n_inputs = n_x,
                               .n_outputs = n_y});
    }
    for (int i = 0; i < n_x && !sx_builder_failed(b); i++) {
        char name[32];
        snprintf(name, sizeof(name), "dx%d", i);
        if (needed[i]) {
            sx_output(b, name,
                      sx_value_is(dx[i]) ? dx[i] : sx_region_zeros(b, &s->vals[in[i]].type));
        }
    }
    sx_graph *made = NULL;
    sx_status status = sx_builder_finish(b, &made);
    sx_builder_destroy(b);
    *out_node = n;
    SX_TRY(status);
    *out = sx_graph_copy(s->arena, made);
    sx_graph_destroy(made);
    return *out != NULL ? SX_OK : sx_specialize_no_memory();
}

sx_status sx_walk_pull_back(sx_specializer *s, const sx_node *n, const int *in, const char *name,
                            int *out_vals, bool *out_waits)
{
    const sx_pull_back_attrs *attrs = n->attrs;
    const sx_graph *body = attrs->body;
    sx_graph *g = NULL;
    int n_reads = 0;
    struct sx_made_gradient *made = sx_arena_new(s->arena, struct sx_made_gradient);
    sx_trace_val *bound = sx_arena_array(s->arena, body->n_args + 1, sx_trace_val);
    if (made == NULL || bound == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_check_depth(s));
    if (attrs->ran) {
        const sx_node *rule = n;
        SX_TRY(sx_name_node(rule, apply_rule(s, body, in, n->n_inputs, &rule, &g)));
    } else {
        for (int i = 0; i < body->n_args; i++) {
            const sx_trace_val *v = &s->vals[in[i]];
            bound[i] = (sx_trace_val){
                .type = v->type, .variable = v->variable, .known = v->known, .counts = v->counts};
        }
        *made = (struct sx_made_gradient){
            .body = body, .name = name, .order = 1, .variables = "", .args = bound};
        SX_TRY(make_gradient(s, made, out_waits));
        g = made->graph;
        n_reads = made->n_reads;
    }
    if (*out_waits) {
        return SX_OK;
    }
    int *args = sx_arena_array(s->arena, n->n_inputs + n_reads + 1, int), k = 0;
    int *results = sx_arena_array(s->arena, g->n_results + 1, int);
    if (args == NULL || results == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i <= n->n_inputs; i++) {
        for (int r = 0; i == body->n_args && r < n_reads; r++) {
            SX_TRY(sx_read_variable(s, &made->reads[r], name, &args[k++]));
        }
        if (i < n->n_inputs) {
            args[k++] = in[i];
        }
    }
    if (k != g->n_args || n->n_outputs != g->n_results) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "it has %d operands and %d outputs, expected %d and %d", k, n->n_outputs,
                        g->n_args, g->n_results);
    }
    SX_TRY(sx_inline_body(s, g, args, k, name, results));
    memcpy(out_vals, results, (size_t)g->n_results * sizeof(*results));
    return SX_OK;
}
