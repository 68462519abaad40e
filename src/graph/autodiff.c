/* Reverse-mode differentiation by rules: one walk from y back to the xs, each operator's `grad`
 * adding the nodes of its gradient (sextant/graph.h: sx_gradients).
 *
 *   needed[v]   v, a float, depends on some x; gradients are built only for these
 *   grads[v]    dy/dv so far, summed over the uses of v */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/library.h"
#include "graph/ops/attrs.h"

typedef struct walk {
    sx_builder *b;
    int n_values;    /* of the forward graph, without the nodes added since */
    bool *needed;    /* [n_values] */
    sx_value *grads; /* [n_values] */
    bool *ends;      /* [n_values]: what is before these gets nothing through them; NULL: none */
} walk;

static void mark_needed(walk *w, const sx_value *xs, int n)
{
    const sx_graph *g = w->b->graph;
    for (int i = 0; i < n; i++) {
        w->needed[xs[i].id] = true;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *node = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < node->n_inputs; i++) {
            any = any || w->needed[node->inputs[i].id];
        }
        for (int i = 0; any && !(node->op->flags & SX_OP_NO_GRAD) && i < node->n_outputs; i++) {
            const sx_value y = sx_node_output(node, i);
            w->needed[y.id] = w->needed[y.id] || sx_dtype_is_float(sx_graph_type(g, y)->dtype);
        }
    }
}

/* Adds `dx` to the gradient of `x`. */
static void accumulate(walk *w, const sx_op_def *op, sx_value x, sx_value dx)
{
    if (!sx_value_is(dx) || sx_builder_failed(w->b)) {
        return;
    }
    sx_type want = sx_type_of_value(w->b, x), got = sx_type_of_value(w->b, dx);
    if (!sx_type_equal(&want, &got)) {
        char a[SX_TYPE_TEXT], c[SX_TYPE_TEXT];
        sx_builder_fail(w->b, sx_error(SX_INTERNAL, "gradient of %s is %s for an input of %s",
                                       op->name, sx_type_format(&got, a, sizeof(a)),
                                       sx_type_format(&want, c, sizeof(c))));
        return;
    }
    sx_value *sum = &w->grads[x.id];
    const sx_value both[] = {*sum, dx};
    *sum = sx_value_is(*sum)
               ? sx_build_node(w->b, &(sx_node_spec){.op = &sx_op_add,
                                                     .inputs = both,
                                                     .n_inputs = 2,
                                                     .types = w->b->graph->general ? &want : NULL,
                                                     .n_types = 1,
                                                     .device = w->b->device,
                                                     .file = w->b->file,
                                                     .line = w->b->line})
               : dx;
}

/* Rules see types and attributes: in a function, not all of these are known yet. */
static sx_status check_known(const walk *w, const sx_node *node)
{
    bool known = true; /* of an operator of the host */
    for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
        const sx_value v =
            i < node->n_inputs ? node->inputs[i] : sx_node_output(node, i - node->n_inputs);
        known = known && ((node->op->flags & SX_OP_HOST) == 0 ||
                          sx_is_shape_known(sx_graph_type(w->b->graph, v)));
    }
    if (w->b->graph->general && node->op != &sx_op_call &&
        (node->n_attr_operands > 0 || sx_op_has_regions(node->op) || !known)) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s \"%s\" has no gradient in this function, because %s; make it part of a "
                        "function of its own and call that",
                        node->op->name, node->name,
                        node->n_attr_operands > 0 ? "its attributes are computed"
                        : !known                  ? "its shapes are not known yet"
                                                  : "its regions' types are not known yet");
    }
    return SX_OK;
}

static sx_status refuse(const sx_node *node)
{
    const char *why = node->op == &sx_op_refuse_gradient
                          ? ((const sx_refuse_gradient_attrs *)node->attrs)->why
                          : NULL;
    return why != NULL ? sx_error(SX_UNIMPLEMENTED, "%s", why)
                       : sx_error(SX_UNIMPLEMENTED,
                                  "the gradient of %s \"%s\" is not implemented; apply "
                                  "sx_stop_gradient() to its result to train without it",
                                  node->op->name, node->name);
}

static void differentiate(walk *w, const sx_node *node)
{
    sx_value y[SX_MAX_OUTPUTS], dy[SX_MAX_OUTPUTS];
    bool any_dy = false;
    for (int i = 0; i < node->n_outputs; i++) {
        y[i] = sx_node_output(node, i);
        dy[i] = w->ends != NULL && w->ends[y[i].id] ? SX_NO_VALUE : w->grads[y[i].id];
        any_dy = any_dy || sx_value_is(dy[i]);
    }
    if (!any_dy || (node->op->flags & SX_OP_NO_GRAD)) {
        return;
    }
    sx_arena *arena = sx_builder_arena(w->b);
    sx_value *dx = sx_arena_array(arena, node->n_inputs + 1, sx_value);
    bool *needed = sx_arena_array(arena, node->n_inputs + 1, bool);
    bool any_needed = false;
    if (dx == NULL || needed == NULL) {
        sx_builder_fail(w->b, sx_no_memory("for gradients"));
        return;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        needed[i] = w->needed[node->inputs[i].id];
        any_needed = any_needed || needed[i];
    }
    if (!any_needed) {
        return;
    }
    sx_builder_at(w->b, node->file, node->line);
    w->b->device = node->device;
    if ((node->op->flags & SX_OP_REFUSES_GRAD) != 0) {
        sx_builder_fail(w->b, refuse(node));
    }
    sx_builder_fail(w->b, check_known(w, node));
    if (sx_builder_failed(w->b)) {
        return;
    }
    node->op->grad(&(sx_grad){.b = w->b,
                              .attrs = node->attrs,
                              .x = node->inputs,
                              .y = y,
                              .dy = dy,
                              .dx = dx,
                              .needed = needed,
                              .n_inputs = node->n_inputs,
                              .n_outputs = node->n_outputs});
    for (int i = 0; i < node->n_inputs; i++) {
        if (needed[i]) {
            accumulate(w, node->op, node->inputs[i], dx[i]);
        }
    }
}

static bool check_arguments(sx_builder *b, sx_value y, const sx_value *xs, int n)
{
    sx_type type = sx_type_of_value(b, y);
    if (!sx_builder_failed(b) && (type.rank != 0 || !sx_dtype_is_float(type.dtype))) {
        char text[SX_TYPE_TEXT];
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "gradients: y is %s, expected a floating-point scalar; "
                                    "reduce the loss with sx_reduce_mean()",
                                    sx_type_format(&type, text, sizeof(text))));
    }
    for (int i = 0; i < n; i++) {
        if (!sx_builder_failed(b) &&
            (!sx_value_is(xs[i]) || xs[i].id >= (uint32_t)b->graph->n_values)) {
            sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                        "gradients: xs[%d] is not a value of this graph", i));
        }
    }
    return !sx_builder_failed(b);
}

/* Back from node `from` to the first; the gradients of the ys are set. */
static void walk_back(walk *w, int from)
{
    sx_builder *b = w->b;
    const char *file = b->file, *device = b->device;
    int line = b->line;
    sx_scope_begin(b, "gradients", NULL);
    for (int k = from; k >= 0 && !sx_builder_failed(b); k--) {
        sx_node node = b->graph->nodes[k]; /* a copy, because the array may be reallocated */
        differentiate(w, &node);
    }
    sx_scope_end(b);
    sx_builder_at(b, file, line);
    b->device = device;
}

static void run_walk(walk *w, sx_value y, const sx_value *xs, int n)
{
    sx_builder *b = w->b;
    mark_needed(w, xs, n);
    double one = 1;
    float one_f32 = 1;
    sx_type type = sx_type_of_value(b, y);
    if (type.dtype != SX_F32 && type.dtype != SX_F64) {
        sx_builder_fail(b,
                        sx_error(SX_UNIMPLEMENTED, "gradients: y is %s; cast the loss to float32",
                                 sx_dtype_name(type.dtype)));
        return;
    }
    int from = (int)b->graph->values[y.id].node;
    w->grads[y.id] =
        sx_constant(b, (sx_tensor){type, type.dtype == SX_F64 ? (void *)&one : &one_f32});
    walk_back(w, from);
}

void sx_pull_back(sx_builder *b, const sx_value *ys, const sx_value *dys, int n_y,
                  const sx_value *xs, int n, sx_value *out)
{
    memset(out, 0, (size_t)n * sizeof(*out));
    if (sx_builder_failed(b)) {
        return;
    }
    walk w = {.b = b, .n_values = b->graph->n_values};
    w.needed = sx_alloc((size_t)w.n_values, sizeof(bool));
    w.grads = sx_alloc((size_t)w.n_values, sizeof(sx_value));
    w.ends = sx_alloc((size_t)w.n_values, sizeof(bool));
    if (w.needed == NULL || w.grads == NULL || w.ends == NULL) {
        sx_builder_fail(b, sx_no_memory("for gradients"));
    } else {
        for (int i = 0; i < n; i++) {
            w.ends[xs[i].id] = true;
        }
        const int from = b->graph->n_nodes - 1;
        mark_needed(&w, xs, n);
        for (int i = 0; i < n_y; i++) {
            accumulate(&w, sx_builder_maker(b, ys[i])->op, ys[i], dys[i]);
        }
        walk_back(&w, from);
        for (int i = 0; i < n && !sx_builder_failed(b); i++) {
            out[i] = w.grads[xs[i].id];
        }
    }
    sx_free(w.needed);
    sx_free(w.grads);
    sx_free(w.ends);
}

void sx_grad_of_formula(sx_grad *g, const sx_value *ys)
{
    sx_value *xs = sx_arena_array(sx_builder_arena(g->b), 2 * g->n_inputs + 1, sx_value);
    int at[SX_NODE_MAX_INPUTS], n = 0;
    if (xs == NULL) {
        sx_builder_fail(g->b, sx_no_memory("for gradients"));
        return;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        bool again = false; /* an operand that occurs twice gets all at its first place */
        for (int k = 0; k < n; k++) {
            again = again || xs[k].id == g->x[i].id;
        }
        if (g->needed[i] && !again) {
            at[n] = i;
            xs[n++] = g->x[i];
        }
    }
    sx_value *dx = xs + n;
    sx_pull_back(g->b, ys, g->dy, g->n_outputs, xs, n, dx);
    for (int k = 0; k < n; k++) {
        g->dx[at[k]] = dx[k];
    }
}

void sx_gradients(sx_builder *b, sx_value y, const sx_value *xs, int n, sx_value *out)
{
    memset(out, 0, (size_t)n * sizeof(*out));
    if (!check_arguments(b, y, xs, n)) {
        return;
    }
    walk w = {.b = b, .n_values = b->graph->n_values};
    w.needed = sx_alloc((size_t)w.n_values, sizeof(bool));
    w.grads = sx_alloc((size_t)w.n_values, sizeof(sx_value));
    if (w.needed == NULL || w.grads == NULL) {
        sx_builder_fail(b, sx_no_memory("for gradients"));
    } else {
        run_walk(&w, y, xs, n);
        for (int i = 0; i < n && !sx_builder_failed(b); i++) {
            out[i] = w.grads[xs[i].id];
        }
    }
    sx_free(w.needed);
    sx_free(w.grads);
}
