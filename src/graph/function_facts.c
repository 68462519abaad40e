/* What is known of a library's functions before any is specialized: see library.h. Each function is
 * looked at once, after those that it calls. */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "graph/library.h"
#include "graph/ops/attrs.h"
#include "graph/text.h"

enum { MAX_DEPTH = 64, UNSEEN = 0, OPEN, DONE };

typedef struct learner {
    sx_library *library;
    uint8_t *states; /* [functions]; NULL = all are DONE */
    int depth;
    bool writes; /* a variable or a table, in the nodes seen so far of in the current function */
} learner;

static sx_status learn(learner *l, int i);

/* The function that a call names, once its facts are known; NULL where they cannot be. */
static sx_status callee_of(learner *l, const char *name, const sx_function **out)
{
    const sx_function *f = sx_library_find(l->library, name != NULL ? name : "");
    const int i = f != NULL ? (int)(f - l->library->functions) : -1;
    *out = f;
    if (f == NULL || l->states == NULL) {
        return SX_OK;
    }
    if (l->states[i] == UNSEEN && l->depth < MAX_DEPTH) {
        SX_TRY(learn(l, i));
    }
    *out = l->states[i] == DONE ? f : NULL;
    return SX_OK;
}

/* Backwards from attribute operands, and from the results if `results`, to the arguments that they
 * are computed from. */
static sx_status mark_shaping(learner *l, const sx_graph *g, bool results, bool *out)
{
    bool *shapes = sx_alloc((size_t)g->n_values, sizeof(bool));
    sx_status status = shapes == NULL ? sx_no_memory("learning about a function") : SX_OK;
    for (int i = 0; i < g->n_results && status == SX_OK; i++) {
        shapes[g->results[i].value.id] = results;
    }
    for (int k = g->n_nodes - 1; k >= 0 && status == SX_OK; k--) {
        const sx_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_outputs; i++) {
            any = any || shapes[sx_node_output(n, i).id];
        }
        for (int i = 0; i < n->n_attr_operands; i++) {
            shapes[n->attr_operands[i].value.id] = true;
        }
        const unsigned both = SX_OP_STATE | SX_OP_EFFECT;
        l->writes = l->writes || n->op == &sx_op_assign_variable || (n->op->flags & both) == both;
        /* The result of a host node is known when it has run, not before; of a call, see below. */
        const bool ends =
            (n->op->flags & (SX_OP_SHAPE_SOURCE | SX_OP_HOST)) != 0 || n->op == &sx_op_call;
        for (int i = 0; any && i < n->n_inputs && !ends; i++) {
            shapes[n->inputs[i].id] = true;
        }
        if (n->op == &sx_op_call) {
            const sx_call_attrs *attrs = n->attrs;
            const sx_function *f = NULL;
            status = callee_of(l, attrs->function, &f);
            l->writes = l->writes || f == NULL || f->writes;
            for (int i = 0; i < n->n_inputs && status == SX_OK; i++) {
                const bool *of = f == NULL ? NULL : any ? f->carries : f->shaping;
                const bool shapes_callee = of == NULL || i >= f->body->n_args || of[i];
                shapes[n->inputs[i].id] = shapes[n->inputs[i].id] || shapes_callee;
            }
        }
        const int first = n->op == &sx_op_if ? 1 : 0;
        for (int row = 0; row < n->op->n_attrs && status == SX_OK; row++) {
            if (n->op->attrs[row].kind != SX_ATTR_BODY) {
                continue;
            }
            const sx_graph *body = sx_node_body(n, row);
            bool *inner = sx_alloc((size_t)body->n_args + 1, sizeof(bool));
            status = inner == NULL ? sx_no_memory("learning about a function")
                                   : mark_shaping(l, body, false, inner);
            for (int i = 0; i < body->n_args && first + i < n->n_inputs && status == SX_OK; i++) {
                shapes[n->inputs[first + i].id] = shapes[n->inputs[first + i].id] || inner[i];
            }
            sx_free(inner);
        }
    }
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        out[i] = shapes[g->args[i].value.id];
    }
    sx_free(shapes);
    return status;
}

static sx_status learn(learner *l, int i)
{
    sx_function *f = &l->library->functions[i];
    const bool outer_writes = l->writes;
    bool *shaping = sx_arena_array(&l->library->arena, f->body->n_args + 1, bool);
    bool *carries = sx_arena_array(&l->library->arena, f->body->n_args + 1, bool);
    if (shaping == NULL || carries == NULL) {
        return sx_no_memory("learning about a function");
    }
    l->states[i] = OPEN;
    l->writes = false;
    l->depth++;
    SX_TRY(mark_shaping(l, f->body, false, shaping));
    SX_TRY(mark_shaping(l, f->body, true, carries));
    l->depth--;
    SX_TRY(sx_graph_digest(f->body, true, &f->digest));
    f->shaping = shaping;
    f->carries = carries;
    f->writes = l->writes;
    l->writes = outer_writes;
    l->states[i] = DONE;
    return SX_OK;
}

sx_status sx_library_learn(sx_library *library)
{
    learner l = {.library = library,
                 .states = sx_alloc((size_t)library->n_functions + 1, sizeof(uint8_t))};
    sx_status status = l.states == NULL ? sx_no_memory("learning about a library") : SX_OK;
    for (int i = 0; i < library->n_functions && status == SX_OK; i++) {
        status = l.states[i] == UNSEEN ? learn(&l, i) : SX_OK;
    }
    sx_free(l.states);
    return status;
}

sx_status sx_shaping_args(const sx_library *library, const sx_graph *body, bool *out)
{
    learner l = {.library = (sx_library *)library}; /* without states nothing is written */
    return mark_shaping(&l, body, false, out);
}
