/* Joins a loop and a later one that does the same and more: the gradient of a loop runs it again to
 * keep its states (src/graph/ops/while.c), and what the first run gives, the second gives too. The
 * later loop moves to the earlier one's place. */
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum {
    MOST_MOVED = 64,   /* nodes that move with a loop: its initial values */
    MOST_TRIED = 4096, /* pairs of loops of a graph */
};

/* By node of the old graph. */
typedef struct joins {
    int *larger; /* of a loop: the later one that takes its place; 0 = none */
    int *offset; /* of its first state among the later one's */
    bool *moves; /* takes an earlier one's place */
    bool *made;  /* is in the new graph */
} joins;

/* ---- Finding ---- */

/* Whether each node of `a` has its like in `b`. `map`: by value of `a` that of `b`; it begins with
 * the args. */
static bool contains(const sx_graph *b, const sx_graph *a, uint32_t *map)
{
    int at = 0;
    for (int k = 0; k < a->n_nodes; k++) {
        const sx_node *n = &a->nodes[k];
        const sx_node *like = sx_rewrite_find_like(b, n, map, &at);
        if (like == NULL && n->op != &sx_op_parameter) {
            return false;
        }
        for (int i = 0; like != NULL && i < n->n_outputs; i++) {
            map[sx_node_output(n, i).id] = sx_node_output(like, i).id;
        }
    }
    return true;
}

/* The same of a region of loops `b` and `a`, whose state begins at `offset` in that of `b`; and its
 * results, first of b's at `result`. */
static bool contains_region(const sx_node *b, const sx_graph *of_b, const sx_node *a,
                            const sx_graph *of_a, int offset, int result)
{
    uint32_t *map = sx_alloc((size_t)of_a->n_values, sizeof(*map));
    bool found = map != NULL; /* without memory it stays as it is */
    for (int i = 0; i < a->n_inputs && found; i++) {
        int j = i < a->n_outputs ? offset + i : b->n_outputs;
        while (j < b->n_inputs && b->inputs[j].id != a->inputs[i].id) {
            j = i < a->n_outputs ? b->n_inputs : j + 1;
        }
        found = j < b->n_inputs;
        if (found) {
            map[of_a->args[i].value.id] = of_b->args[j].value.id;
        }
    }
    found = found && contains(of_b, of_a, map);
    for (int i = 0; i < of_a->n_results && found; i++) {
        found = map[of_a->results[i].value.id] == of_b->results[result + i].value.id;
    }
    sx_free(map);
    return found;
}

/* The first state of loop `a` among those of `b`, which does the same to them; -1: it does not. */
static int find_state(const sx_node *b, const sx_node *a)
{
    const sx_while_attrs *of_a = a->attrs, *of_b = b->attrs;
    for (int at = 0; at + a->n_outputs <= b->n_outputs && of_a->trips == of_b->trips; at++) {
        if (contains_region(b, of_b->condition, a, of_a->condition, at, 0) &&
            contains_region(b, of_b->body, a, of_a->body, at, at)) {
            return at;
        }
    }
    return -1;
}

/* Whether node `k` can be before node `place`, with what it needs, none of it a loop or an
 * argument; counts those nodes. */
static bool can_move(const sx_graph *g, int k, int place, int *count)
{
    for (int i = 0; i < g->nodes[k].n_inputs; i++) {
        const int maker = (int)g->values[g->nodes[k].inputs[i].id].node;
        if (maker < place) {
            continue;
        }
        const sx_op_def *op = g->nodes[maker].op;
        if (op == &sx_op_parameter || sx_op_has_regions(op) || ++*count > MOST_MOVED ||
            !can_move(g, maker, place, count)) {
            return false;
        }
    }
    return true;
}

static void find_joins(const sx_graph *g, joins *j)
{
    int tried = 0;
    for (int b = 0; b < g->n_nodes; b++) {
        for (int a = 0; a < b && g->nodes[b].op == &sx_op_while && tried < MOST_TRIED; a++) {
            int count = 0;
            if (g->nodes[a].op != &sx_op_while || j->larger[a] != 0 || j->moves[a]) {
                continue;
            }
            tried++;
            const int at = find_state(&g->nodes[b], &g->nodes[a]);
            if (at >= 0 && can_move(g, b, a, &count)) {
                j->larger[a] = b;
                j->offset[a] = at;
                j->moves[b] = true;
                break;
            }
        }
    }
}

/* ---- Joining ---- */

static void join_node(sx_rewrite *rw, const sx_node *n);

/* The node and what it needs. */
static void make(sx_rewrite *rw, int k)
{
    joins *j = rw->user;
    const sx_node *n = &rw->from->nodes[k];
    for (int i = 0; i < n->n_inputs; i++) {
        if (rw->map[n->inputs[i].id].id == SX_NO_VALUE.id) {
            make(rw, (int)rw->from->values[n->inputs[i].id].node);
        }
    }
    join_node(rw, n);
    j->made[k] = true;
}

static void join_node(sx_rewrite *rw, const sx_node *n)
{
    joins *j = rw->user;
    const int k = (int)(n - rw->from->nodes);
    if (j->made[k]) {
        return;
    }
    if (j->larger[k] == 0) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    const sx_node *larger = &rw->from->nodes[j->larger[k]];
    make(rw, j->larger[k]);
    for (int i = 0; i < n->n_outputs; i++) {
        rw->map[sx_node_output(n, i).id] = rw->map[sx_node_output(larger, j->offset[k] + i).id];
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_join_loops(region, out);
}

sx_status sx_pass_join_loops(const sx_graph *g, sx_graph **out)
{
    const size_t n = (size_t)g->n_nodes + 1;
    joins j = {.larger = sx_alloc(n, sizeof(int)),
               .offset = sx_alloc(n, sizeof(int)),
               .moves = sx_alloc(n, sizeof(bool)),
               .made = sx_alloc(n, sizeof(bool))};
    sx_status status = SX_OK;
    if (j.larger == NULL || j.offset == NULL || j.moves == NULL || j.made == NULL) {
        status = sx_no_memory("joining loops");
    } else {
        find_joins(g, &j);
        status = sx_rewrite_run_deep(g, 0, join_node, in_region, &j, out);
    }
    sx_free(j.larger);
    sx_free(j.offset);
    sx_free(j.moves);
    sx_free(j.made);
    return status;
}
