/* The gradient of a function where data decide shapes, in parts: gradient rules need to know the
 * shapes of what they see. The rows of the trace are one of
 *
 *   fixed      of static types, as is what they are computed from
 *   deciding   operators of which data decide the outputs' shapes, of fixed operands
 *   behind     all others
 *
 * and what is made is a function: all rows, and then
 *
 *   pull_back of the rows behind     specialized once they are reached, then in parts again
 *   pull_back of each deciding row   its rule, which sees the shapes that its outputs have
 *   pull_back of the fixed rows      as any static graph
 *
 * Each time fewer rows are behind: where none is deciding, and none behind has an attribute that a
 * fixed row computes, the first of them is refused. */
#include <stdio.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"
#include "graph/ops/regions.h"
#include "graph/specialize_trace.h"

enum { NONE, FIXED, DECIDING, BEHIND };

typedef struct parts {
    sx_specializer *s;
    uint8_t *of;     /* [n_rows] */
    sx_value *grads; /* [n_vals]: dy/dv so far, in the graph of `e` */
    sx_emitter e;
} parts;

static bool is_fixed(const parts *p, int v)
{
    const sx_trace_val *x = &p->s->vals[v];
    return x->known != NULL || x->row == SX_NO_ROW || p->of[x->row] == FIXED;
}

/* Which part each row is of; the row's node that stands in the way, if there is one. */
static const sx_node *sort_rows(parts *p)
{
    const sx_specializer *s = p->s;
    const sx_node *first = NULL;
    bool goes_on = false;
    for (int k = 0; k < s->n_rows; k++) {
        const sx_trace_row *r = &s->rows[k];
        bool fixed = true;
        if (!r->live) {
            continue;
        }
        if (r->variable != NULL) {
            return r->node;
        }
        for (int i = 0; i < r->n_in; i++) {
            fixed = fixed && is_fixed(p, r->in[i]);
        }
        const bool decides =
            r->resolved && r->on_host && !r->control && r->node->op->host_types != NULL;
        p->of[k] = !fixed ? BEHIND : sx_row_is_static(s, r) ? FIXED : decides ? DECIDING : BEHIND;
        goes_on = goes_on || p->of[k] == DECIDING;
        for (int i = r->n_in; i < r->n_in + r->n_operands && p->of[k] == BEHIND; i++) {
            const sx_trace_val *v = &s->vals[r->in[i]];
            goes_on =
                goes_on || (v->known == NULL && v->row != SX_NO_ROW && p->of[v->row] == FIXED);
        }
        first = first == NULL && p->of[k] == BEHIND ? r->node : first;
    }
    return goes_on ? NULL : first;
}

/* The rows of one part as a function (args...) -> results. */
static sx_status emit_part(const parts *p, int part, const int *args, int n_args,
                           const int *results, int n_results, sx_graph **out)
{
    sx_specializer *s = p->s;
    bool *chosen = sx_arena_array(s->arena, s->n_rows + 1, bool);
    if (chosen == NULL) {
        return sx_specialize_no_memory();
    }
    for (int k = 0; k < s->n_rows; k++) {
        chosen[k] = p->of[k] == part;
    }
    return sx_emit_graph(s, true, chosen, args, n_args, results, n_results, out);
}

/* A deciding row as a graph of that node, its attributes resolved. */
static sx_status emit_node(const parts *p, const sx_trace_row *r, sx_graph **out)
{
    sx_specializer *s = p->s;
    sx_builder *b = NULL;
    sx_graph *made = NULL;
    sx_value *in = sx_arena_array(s->arena, r->n_in + 1, sx_value);
    sx_type types[SX_MAX_OUTPUTS];
    char name[32];
    if (in == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_builder_create_function(&b));
    for (int i = 0; i < r->n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        in[i] = sx_input(b, name, sx_type_without_batch(s->vals[r->in[i]].type));
    }
    for (int i = 0; i < r->n_out; i++) {
        types[i] = sx_type_without_batch(s->vals[r->first + i].type);
    }
    const sx_value first = sx_build_node(b, &(sx_node_spec){.op = r->node->op,
                                                            .attrs = r->attrs,
                                                            .inputs = in,
                                                            .n_inputs = r->n_in,
                                                            .types = types,
                                                            .n_types = r->n_out,
                                                            .name = r->node->name,
                                                            .device = "",
                                                            .file = r->node->file,
                                                            .line = r->node->line});
    for (int i = 0; i < r->n_out && !sx_builder_failed(b); i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, sx_output_of(first, i));
    }
    sx_status status = sx_builder_finish(b, &made);
    sx_builder_destroy(b);
    SX_TRY(status);
    *out = sx_graph_copy(s->arena, made);
    sx_graph_destroy(made);
    return *out != NULL ? SX_OK : sx_specialize_no_memory();
}

/* ---- Gradients ---- */

static bool is_float(const parts *p, int v)
{
    return sx_dtype_is_float(p->s->vals[v].type.dtype);
}

/* Adds dx to the gradient of a val. */
static void accumulate(parts *p, int v, sx_value dx)
{
    const sx_type type = sx_type_without_batch(p->s->vals[v].type);
    const sx_value both[] = {p->grads[v], dx};
    p->grads[v] = sx_value_is(p->grads[v]) ? sx_build_node(p->e.b, &(sx_node_spec){.op = &sx_op_add,
                                                                                   .inputs = both,
                                                                                   .n_inputs = 2,
                                                                                   .types = &type,
                                                                                   .n_types = 1,
                                                                                   .device = "",
                                                                                   .file = ""})
                                           : dx;
}

/* A pull_back of a region that takes the vals xs and has dy[n_dy] after them and, if it ran, after
 * ys; what it gives is added to the gradients of the xs. */
static sx_status pull(parts *p, const sx_graph *body, const int *xs, int n_x, const sx_value *ys,
                      int n_y, const sx_value *dy, int n_dy, const sx_node *at)
{
    sx_specializer *s = p->s;
    const sx_pull_back_attrs attrs = {.body = body, .ran = n_y > 0};
    sx_value *in = sx_arena_array(s->arena, n_x + n_y + n_dy + 1, sx_value);
    sx_type *types = sx_arena_array(s->arena, n_x + 1, sx_type);
    int n_in = 0, n_dx = 0;
    if (in == NULL || types == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n_x; i++) {
        in[n_in++] = sx_emitted_value(&p->e, xs[i]);
        if (is_float(p, xs[i])) {
            types[n_dx++] = sx_type_without_batch(s->vals[xs[i]].type);
        }
    }
    for (int i = 0; i < n_y + n_dy; i++) {
        in[n_in++] = i < n_y ? ys[i] : dy[i - n_y];
    }
    if (n_dx == 0 || n_dy == 0) {
        return SX_OK;
    }
    if (n_dx > SX_MAX_OUTPUTS) {
        return sx_error(SX_UNIMPLEMENTED,
                        "its shapes depend on data, and %d values have a gradient there, more than "
                        "%d",
                        n_dx, SX_MAX_OUTPUTS);
    }
    const sx_value first =
        sx_build_node(p->e.b, &(sx_node_spec){.op = &sx_op_pull_back,
                                              .attrs = &attrs,
                                              .inputs = in,
                                              .n_inputs = n_in,
                                              .types = types,
                                              .n_types = n_dx,
                                              .device = "",
                                              .file = at != NULL ? at->file : "",
                                              .line = at != NULL ? at->line : 0});
    for (int i = 0, k = 0; i < n_x; i++) {
        if (is_float(p, xs[i])) {
            accumulate(p, xs[i], sx_output_of(first, k++));
        }
    }
    return SX_OK;
}

/* The vals that rows of a part make, of floats, that have a gradient: vals[], and those. */
static int given_of(const parts *p, int part, int *vals, sx_value *dy)
{
    const sx_specializer *s = p->s;
    int n = 0;
    for (int v = 0; v < s->n_vals; v++) {
        const int row = s->vals[v].row;
        if (row != SX_NO_ROW && p->of[row] == part && s->vals[v].known == NULL && is_float(p, v) &&
            sx_value_is(p->grads[v])) {
            vals[n] = v;
            dy[n++] = p->grads[v];
        }
    }
    return n;
}

static sx_status pull_behind(parts *p, int *vals, int *xs, sx_value *dy)
{
    const sx_specializer *s = p->s;
    sx_graph *body = NULL;
    int n_x = 0;
    const int n = given_of(p, BEHIND, vals, dy);
    bool *read = sx_arena_array(s->arena, s->n_vals + 1, bool);
    if (read == NULL) {
        return sx_specialize_no_memory();
    }
    for (int k = 0; k < s->n_rows; k++) {
        const sx_trace_row *r = &s->rows[k];
        for (int i = 0; i < r->n_in + r->n_operands && p->of[k] == BEHIND; i++) {
            const sx_trace_val *v = &s->vals[r->in[i]];
            read[r->in[i]] = v->known == NULL && v->variable == NULL &&
                             (v->row == SX_NO_ROW || p->of[v->row] != BEHIND);
        }
    }
    for (int v = 0; v < s->n_vals; v++) {
        if (read[v]) {
            xs[n_x++] = v;
        }
    }
    if (n == 0) {
        return SX_OK;
    }
    SX_TRY(emit_part(p, BEHIND, xs, n_x, vals, n, &body));
    return pull(p, body, xs, n_x, NULL, 0, dy, n, NULL);
}

static sx_status pull_deciding(parts *p, const sx_trace_row *r)
{
    sx_value ys[SX_MAX_OUTPUTS], dy[SX_MAX_OUTPUTS];
    sx_graph *body = NULL;
    int n_dy = 0;
    bool any = false;
    for (int i = 0; i < r->n_out; i++) {
        const int v = r->first + i;
        ys[i] = p->e.here[v];
        any = any || sx_value_is(p->grads[v]);
        if (is_float(p, v)) {
            dy[n_dy++] = sx_value_is(p->grads[v]) ? p->grads[v] : sx_zeros_like(p->e.b, ys[i]);
        }
    }
    bool takes = false;
    for (int i = 0; i < r->n_in; i++) {
        takes = takes || is_float(p, r->in[i]);
    }
    if (!any || !takes || (r->node->op->flags & SX_OP_NO_GRAD) != 0) {
        return SX_OK;
    }
    if ((r->node->op->flags & SX_OP_REFUSES_GRAD) != 0) {
        return sx_error(SX_UNIMPLEMENTED,
                        "the gradient of %s \"%s\" is not implemented; apply sx_stop_gradient() to "
                        "its result to train without it",
                        r->node->op->name, r->node->name);
    }
    SX_TRY(emit_node(p, r, &body));
    return pull(p, body, r->in, r->n_in, ys, r->n_out, dy, n_dy, r->node);
}

static sx_status build(parts *p, const int *args, int n_args, const bool *differ,
                       const int *results, int n_results)
{
    sx_specializer *s = p->s;
    char name[32];
    int *vals = sx_arena_array(s->arena, s->n_vals + 1, int);
    int *xs = sx_arena_array(s->arena, s->n_vals + 1, int);
    sx_value *dy = sx_arena_array(s->arena, s->n_vals + 1, sx_value);
    sx_graph *body = NULL;
    if (vals == NULL || xs == NULL || dy == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_emitter_begin(&p->e, true));
    for (int i = 0; i < n_args; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        p->e.here[args[i]] = sx_input(p->e.b, name, sx_type_without_batch(s->vals[args[i]].type));
    }
    for (int i = 0; i < n_results; i++) {
        if (is_float(p, results[i])) {
            snprintf(name, sizeof(name), "dy%d", i);
            accumulate(p, results[i],
                       sx_input(p->e.b, name, sx_type_without_batch(s->vals[results[i]].type)));
        }
    }
    for (int k = 0; k < s->n_rows; k++) {
        if (p->of[k] != NONE) {
            SX_TRY(sx_name_node(s->rows[k].node, sx_emit_row(&p->e, &s->rows[k])));
        }
    }
    SX_TRY(pull_behind(p, vals, xs, dy));
    for (int k = s->n_rows - 1; k >= 0; k--) {
        if (p->of[k] == DECIDING) {
            SX_TRY(sx_name_node(s->rows[k].node, pull_deciding(p, &s->rows[k])));
        }
    }
    const int n = given_of(p, FIXED, vals, dy);
    if (n > 0) {
        SX_TRY(emit_part(p, FIXED, args, n_args, vals, n, &body));
        SX_TRY(pull(p, body, args, n_args, NULL, 0, dy, n, NULL));
    }
    for (int i = 0; i < n_args; i++) {
        if (differ[i]) {
            const sx_value dx = p->grads[args[i]];
            const sx_value zeros = sx_value_is(dx) ? dx : sx_zeros_like(p->e.b, p->e.here[args[i]]);
            snprintf(name, sizeof(name), "dx%d", i);
            sx_output(p->e.b, name, sx_value_is(dx) ? dx : zeros);
        }
    }
    return SX_OK;
}

sx_status sx_emit_gradient(sx_specializer *s, const int *args, int n_args, const bool *differ,
                           const int *results, int n_results, sx_graph **out)
{
    parts p = {.s = s,
               .of = sx_arena_array(s->arena, s->n_rows + 1, uint8_t),
               .grads = sx_arena_array(s->arena, s->n_vals + 1, sx_value)};
    sx_graph *made = NULL;
    if (p.of == NULL || p.grads == NULL) {
        return sx_specialize_no_memory();
    }
    *out = NULL;
    sx_mark_live(s, results, n_results, false);
    s->refused = sort_rows(&p);
    if (s->refused != NULL) {
        return SX_OK;
    }
    sx_status status = sx_emitter_init(&p.e, s);
    status = status != SX_OK ? status : build(&p, args, n_args, differ, results, n_results);
    status = status != SX_OK ? status : sx_builder_finish(p.e.b, &made);
    if (status == SX_OK) {
        *out = sx_graph_copy(s->arena, made);
        status = *out == NULL ? sx_specialize_no_memory() : SX_OK;
    }
    sx_graph_destroy(made);
    sx_emitter_deinit(&p.e);
    return status;
}
