/* Keeps products for the gradient of a loop. Its two loops (src/graph/ops/while.c) are
 *
 *   keeping:    kept[t] = state; state = body(state)
 *   returning:  for t down to 0:  state = kept[t]; body(state) again, and its gradient
 *
 * Of what the returning loop computes again, matrix products and convolutions become rows that the
 * keeping loop keeps, too, with what only they go into: of an LSTM the sum of both products and the
 * bias, which is one stack. TensorFlow keeps all of the body. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"
#include "graph/passes/change_loop.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { MOST_KEPT = 16 };

/* Two loops and what the first keeps for the second. */
typedef struct keeping {
    const sx_node *loop, *returning; /* loop NULL: none */
    sx_value index;                  /* of rows, in the keeping body */
    sx_loop_row rows[MOST_KEPT];     /* in the returning body */
    sx_loop_put puts[MOST_KEPT];     /* in the keeping body */
    sx_type types[MOST_KEPT];        /* of stacks */
    int n;
    sx_value stacks[MOST_KEPT]; /* in the new graph, once the keeping loop is made */
} keeping;

typedef struct keepings {
    keeping *all;
    int n;
} keepings;

static const sx_graph *body_of(const sx_node *loop)
{
    return ((const sx_while_attrs *)loop->attrs)->body;
}

static bool is_i32(const sx_graph *g, sx_value v, int32_t number)
{
    const sx_node *n = sx_graph_maker(g, v);
    if (n->op != &sx_op_constant) {
        return false;
    }
    const sx_tensor *value = &((const sx_constant_attrs *)n->attrs)->value;
    return value->type.dtype == SX_I32 && sx_type_elems(&value->type) == 1 &&
           *(const int32_t *)value->data == number;
}

/* The state whose arg `v` of the loop's body is; -1: none. */
static int state_of(const sx_node *loop, sx_value v)
{
    for (int i = 0; i < loop->n_outputs; i++) {
        if (body_of(loop)->args[i].value.id == v.id) {
            return i;
        }
    }
    return -1;
}

/* Whether `v` = op(state, 1), which the state becomes; -1: not, else the state. */
static int counter_of(const sx_node *loop, sx_value v, const sx_op_def *op)
{
    const sx_graph *body = body_of(loop);
    const sx_node *n = sx_graph_maker(body, v);
    const int state = n->op == op ? state_of(loop, n->inputs[0]) : -1;
    return state >= 0 && is_i32(body, n->inputs[1], 1) && body->results[state].value.id == v.id
               ? state
               : -1;
}

/* ---- Finding ---- */

/* Output `o` of the loop is a stack of which a trip t writes row t with a state at its beginning:
 * of which one, and *out_index = t. -1: it is not. */
static int kept_state(const sx_graph *g, const sx_node *loop, int o, sx_value *out_index)
{
    const sx_graph *body = body_of(loop);
    const sx_node *put = sx_graph_maker(body, body->results[o].value);
    if (put->op != &sx_op_put_row || put->inputs[0].id != body->args[o].value.id) {
        return -1;
    }
    const int counter = state_of(loop, put->inputs[2]);
    *out_index = put->inputs[2];
    return counter >= 0 && is_i32(g, loop->inputs[counter], 0) &&
                   counter_of(loop, body->results[counter].value, &sx_op_add) == counter
               ? state_of(loop, put->inputs[1])
               : -1;
}

/* Whether the loop runs while counter > 0, and counts the trips of `first` back: row `index` is
 * that of a trip of `first`. */
static bool returns(const sx_node *loop, sx_value index, const sx_node *first, sx_value first_index)
{
    const sx_graph *condition = ((const sx_while_attrs *)loop->attrs)->condition;
    const sx_node *greater = sx_graph_maker(condition, condition->results[0].value);
    const int counter = counter_of(loop, index, &sx_op_sub);
    return counter >= 0 && greater->op == &sx_op_greater &&
           greater->inputs[0].id == condition->args[counter].value.id &&
           is_i32(condition, greater->inputs[1], 0) &&
           loop->inputs[counter].id == sx_node_output(first, state_of(first, first_index)).id;
}

/* like[] of all values of k's returning body: that of the keeping one which it computes again; 0:
 * none. And the row index of its kept states. */
static bool find_likes(const sx_graph *g, keeping *k, uint32_t *like, sx_value *out_row)
{
    const sx_node *loop = k->loop, *back = k->returning;
    const sx_graph *body = body_of(back);
    uint32_t of_stack[3 * SX_MAX_OUTPUTS] = {0}; /* by operand of `back`: what its rows are */
    *out_row = k->index = SX_NO_VALUE;
    if (back->n_inputs > (int)SX_COUNT(of_stack)) {
        return false;
    }
    for (int i = back->n_outputs; i < back->n_inputs; i++) {
        sx_value index;
        const int o = (int)(back->inputs[i].id - loop->first_output.id);
        const int state =
            sx_graph_maker(g, back->inputs[i]) == loop ? kept_state(g, loop, o, &index) : -1;
        if (state >= 0 && (k->index.id == SX_NO_VALUE.id || k->index.id == index.id)) {
            of_stack[i] = body_of(loop)->args[state].value.id;
            k->index = index;
        }
        for (int j = loop->n_outputs; j < loop->n_inputs; j++) {
            if (loop->inputs[j].id == back->inputs[i].id) {
                like[body->args[i].value.id] = body_of(loop)->args[j].value.id;
            }
        }
    }
    for (int node = 0, at = 0; node < body->n_nodes; node++) {
        const sx_node *n = &body->nodes[node];
        uint32_t row = 0;
        for (int i = back->n_outputs; n->op == &sx_op_take_row && i < back->n_inputs; i++) {
            row = n->inputs[0].id == body->args[i].value.id ? of_stack[i] : row;
        }
        if (row != 0 && out_row->id == SX_NO_VALUE.id &&
            returns(back, n->inputs[1], loop, k->index)) {
            *out_row = n->inputs[1];
        }
        if (row != 0 && n->inputs[1].id == out_row->id) {
            like[n->first_output.id] = row;
            continue;
        }
        const sx_node *same =
            n->n_outputs == 1 ? sx_rewrite_find_like(body_of(loop), n, like, &at) : NULL;
        if (same != NULL) {
            like[n->first_output.id] = same->first_output.id;
        }
    }
    return out_row->id != SX_NO_VALUE.id;
}

/* The node whose result to keep instead of n's: as long as one node alone reads that, which is
 * computed again, too, and gives as much, this one. */
static const sx_node *climb(const sx_graph *body, const sx_node *n, const uint32_t *like)
{
    for (;;) {
        const sx_value v = n->first_output;
        const sx_node *reader = NULL;
        int reads = 0;
        for (int k = 0; k < body->n_nodes; k++) {
            for (int i = 0; i < body->nodes[k].n_inputs; i++) {
                const bool is = body->nodes[k].inputs[i].id == v.id;
                reader = is ? &body->nodes[k] : reader;
                reads += is ? 1 : 0;
            }
        }
        for (int i = 0; i < body->n_results; i++) {
            reads += body->results[i].value.id == v.id ? 2 : 0;
        }
        if (reads != 1 || like[reader->first_output.id] == 0 ||
            !sx_type_equal(sx_graph_type(body, reader->first_output), sx_graph_type(body, v))) {
            return n;
        }
        n = reader;
    }
}

/* What loop `k->loop` can keep for `k->returning`. */
static sx_status find_kept(const sx_graph *g, keeping *k)
{
    const sx_graph *body = body_of(k->returning);
    const int64_t trips = ((const sx_while_attrs *)k->loop->attrs)->trips;
    uint32_t *like = sx_alloc((size_t)body->n_values, sizeof(*like));
    sx_value row;
    if (like == NULL) {
        return sx_no_memory("keeping products");
    }
    const bool found = trips > 0 && find_likes(g, k, like, &row);
    /* Those that know their operations are products: of others it is one for each element. */
    for (int node = 0; found && node < body->n_nodes && k->n < MOST_KEPT; node++) {
        if (body->nodes[node].op->flops == NULL || like[body->nodes[node].first_output.id] == 0) {
            continue;
        }
        const sx_node *n = climb(body, &body->nodes[node], like);
        const sx_type *type = sx_graph_type(body, n->first_output);
        bool skip = type->rank == SX_MAX_RANK || k->loop->n_outputs + k->n == SX_MAX_OUTPUTS;
        for (int i = 0; i < k->n; i++) {
            skip = skip || k->rows[i].node == (int)(n - body->nodes);
        }
        if (skip) {
            continue;
        }
        int64_t dims[SX_MAX_RANK] = {trips};
        memcpy(dims + 1, type->dims, (size_t)type->rank * sizeof(dims[0]));
        k->types[k->n] = sx_type_make(type->dtype, type->rank + 1, dims);
        k->rows[k->n] = (sx_loop_row){.node = (int)(n - body->nodes), .arg = k->n, .index = row};
        k->puts[k->n] = (sx_loop_put){{like[n->first_output.id]}, k->index};
        k->n++;
    }
    sx_free(like);
    return SX_OK;
}

static sx_status find_all(const sx_graph *g, keepings *out)
{
    int loops = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        loops += g->nodes[i].op == &sx_op_while;
    }
    out->all = sx_alloc((size_t)loops + 1, sizeof(*out->all));
    if (out->all == NULL) {
        return sx_no_memory("keeping products");
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const sx_node *back = &g->nodes[i];
        keeping *k = &out->all[out->n];
        for (int in = 0; back->op == &sx_op_while && in < back->n_inputs && k->n == 0; in++) {
            const sx_node *loop = sx_graph_maker(g, back->inputs[in]);
            bool taken = loop->op != &sx_op_while || loop == k->loop;
            for (int j = 0; j < out->n; j++) { /* a loop keeps, or returns, for one other */
                const keeping *other = &out->all[j];
                taken = taken || other->loop == loop || other->returning == loop;
            }
            if (!taken) {
                *k = (keeping){.loop = loop, .returning = back};
                SX_TRY(find_kept(g, k));
            }
        }
        out->n += k->n > 0 ? 1 : 0;
    }
    return SX_OK;
}

/* ---- Changing ---- */

/* Zeros of a type, named after node `n`. */
static sx_value zeros(sx_rewrite *rw, const sx_node *n, int k, const sx_type *type)
{
    const sx_shape_attrs shape = {.shape = sx_ints_of(type->rank, type->dims)};
    const double bytes = 0;
    const sx_constant_attrs zero = {{sx_scalar_type(type->dtype), (void *)&bytes}};
    const sx_value scalar = sx_rewrite_beside(rw, n, &sx_op_constant, &zero, NULL, 0, ".zero%d", k);
    return sx_rewrite_beside(rw, n, &sx_op_broadcast_to, &shape, &scalar, 1, ".kept%d", k);
}

/* Both loops of `k`: the keeping one, then the returning one. */
static sx_status change(sx_rewrite *rw, const sx_node *n, keeping *k)
{
    sx_loop_change c = {.n_added = k->n, .added = k->stacks};
    sx_value first;
    if (n == k->returning) {
        c.n_rows = k->n;
        c.rows = k->rows;
        return sx_rewrite_loop(rw, n, &c, &first);
    }
    for (int i = 0; i < k->n; i++) {
        k->stacks[i] = zeros(rw, n, i, &k->types[i]);
    }
    c.puts = k->puts;
    SX_TRY(sx_rewrite_loop(rw, n, &c, &first));
    for (int i = 0; i < k->n; i++) {
        k->stacks[i] = sx_output_of(first, n->n_outputs + i);
    }
    return SX_OK;
}

static void keep_node(sx_rewrite *rw, const sx_node *n)
{
    const keepings *all = rw->user;
    for (int i = 0; i < all->n; i++) {
        keeping *k = &all->all[i];
        if (n == k->loop || n == k->returning) {
            sx_status status = change(rw, n, k);
            if (status != SX_OK) {
                sx_builder_fail(rw->to, status);
            }
            return;
        }
    }
    sx_rewrite_keep(rw, n, NULL);
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_keep_products(region, out);
}

sx_status sx_pass_keep_products(const sx_graph *g, sx_graph **out)
{
    keepings all = {.n = 0};
    sx_status status = find_all(g, &all);
    status = status == SX_OK ? sx_rewrite_run_deep(g, 0, keep_node, in_region, &all, out) : status;
    sx_free(all.all);
    return status;
}
