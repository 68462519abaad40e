/* Takes products out of loops: the product of row i of a stack and a matrix that both stay the same
 * in a loop is row i of one product before it, of the whole stack. So a recurrent layer multiplies
 * its inputs of all steps at once, and a step reads the recurrent matrix only.
 *
 * It pays where a step has few rows, when reading the matrix takes longer than the product; with
 * many rows the product of the stack would only take memory. */
#include <stdio.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { MOST_PRODUCTS = 16, FEW_ROWS = 4 /* of a step */ };

typedef struct product {
    int node; /* of the body: the matmul */
    const sx_node *matmul, *row;
    int stack, matrix; /* operands of the loop */
} product;

/* The operand of the loop that `v` of its body is in all trips; -1: none. */
static int constant_operand(const sx_node *loop, sx_value v)
{
    const sx_graph *body = ((const sx_while_attrs *)loop->attrs)->body;
    for (int i = loop->n_outputs; i < body->n_args; i++) {
        if (body->args[i].value.id == v.id) {
            return i;
        }
    }
    return -1;
}

static int find_products(const sx_node *loop, int64_t batch, product *out)
{
    const sx_while_attrs *a = loop->attrs;
    const sx_graph *body = a->body;
    int count = 0;
    for (int k = 0; k < body->n_nodes && count < MOST_PRODUCTS; k++) {
        const sx_node *n = &body->nodes[k];
        if (n->op != &sx_op_matmul || ((const sx_matmul_attrs *)n->attrs)->transpose_a) {
            continue;
        }
        const sx_node *row = sx_graph_maker(body, n->inputs[0]);
        const int matrix = constant_operand(loop, n->inputs[1]);
        const int stack = row->op == &sx_op_take_row ? constant_operand(loop, row->inputs[0]) : -1;
        if (matrix < 0 || stack < 0) {
            continue;
        }
        const sx_type *x = sx_graph_type(body, row->inputs[0]);
        const sx_type *w = sx_graph_type(body, n->inputs[1]);
        int64_t rows = 1;
        for (int i = 1; i < x->rank - 1; i++) {
            rows =
                rows > FEW_ROWS ? rows : rows * (x->dims[i] < 0 ? -x->dims[i] * batch : x->dims[i]);
        }
        if (x->dtype == SX_F32 && x->rank >= 3 && w->rank == 2 && x->dims[0] <= a->trips &&
            rows <= FEW_ROWS) {
            out[count++] = (product){k, n, row, stack, matrix};
        }
    }
    return count;
}

/* The region with the products as further args; in the body, `changed`, their rows take the place
 * of the matmuls. */
static sx_status change_region(const sx_graph *region, const product *products, int n,
                               const sx_type *types, bool changed, sx_graph **out)
{
    sx_builder *b;
    char name[32];
    SX_TRY(sx_builder_create(&b));
    sx_arena *arena = sx_builder_arena(b);
    sx_graph wide = *region;
    wide.n_args += n;
    wide.n_values += n;
    sx_arg *args = sx_arena_array(arena, wide.n_args + 1, sx_arg);
    sx_node *nodes = sx_arena_array(arena, wide.n_nodes + 1, sx_node);
    sx_value *inputs = sx_arena_array(arena, 2 * n, sx_value);
    sx_value *given = sx_arena_array(arena, wide.n_args + 1, sx_value);
    sx_value *made = sx_arena_array(arena, wide.n_results + 1, sx_value);
    if (args == NULL || nodes == NULL || inputs == NULL || given == NULL || made == NULL) {
        sx_builder_destroy(b);
        return sx_no_memory("taking products out of a loop");
    }
    memcpy(args, region->args, (size_t)region->n_args * sizeof(*args));
    memcpy(nodes, region->nodes, (size_t)region->n_nodes * sizeof(*nodes));
    for (int i = 0; i < n; i++) {
        const sx_value made_before = {(uint32_t)(region->n_values + i)};
        args[region->n_args + i].value = made_before;
        if (changed) {
            sx_node *at = &nodes[products[i].node];
            inputs[2 * i] = made_before;
            inputs[2 * i + 1] = products[i].row->inputs[1];
            at->op = &sx_op_take_row;
            at->attrs = products[i].row->attrs;
            at->inputs = inputs + 2 * i;
        }
    }
    wide.args = args;
    wide.nodes = nodes;
    for (int i = 0; i < wide.n_args; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        given[i] = sx_input(b, name,
                            i < region->n_args ? *sx_graph_type(region, region->args[i].value)
                                               : types[i - region->n_args]);
    }
    sx_region_inline(b, &wide, given, made);
    for (int i = 0; i < wide.n_results; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, made[i]);
    }
    sx_status status = sx_builder_finish(b, out);
    sx_builder_destroy(b);
    return status;
}

/* The loop behind the products, as node `n` of the new graph. */
static sx_status change_loop(sx_rewrite *rw, const sx_node *n, const product *products, int count)
{
    const sx_while_attrs *a = n->attrs;
    sx_while_attrs attrs = *a;
    sx_graph *part[2] = {NULL}, *made[2] = {NULL};
    sx_type types[MOST_PRODUCTS];
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), n->n_inputs + count, sx_value);
    if (inputs == NULL) {
        return sx_no_memory("taking products out of a loop");
    }
    sx_node_spec spec = {.device = n->device, .file = n->file, .line = n->line};
    for (int i = 0; i < n->n_inputs; i++) {
        inputs[i] = rw->map[n->inputs[i].id];
    }
    for (int i = 0; i < count; i++) {
        spec.op = &sx_op_matmul;
        spec.attrs = products[i].matmul->attrs;
        spec.inputs = (const sx_value[]){inputs[products[i].stack], inputs[products[i].matrix]};
        spec.n_inputs = 2;
        inputs[n->n_inputs + i] = sx_build_node(rw->to, &spec);
        types[i] = sx_type_of_value(rw->to, inputs[n->n_inputs + i]);
    }
    sx_status status = change_region(a->condition, products, count, types, false, &part[0]);
    status =
        status == SX_OK ? change_region(a->body, products, count, types, true, &part[1]) : status;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = sx_pass_hoist_products(part[i], *(const int64_t *)rw->user, &made[i]);
    }
    if (status == SX_OK) {
        attrs.condition = made[0];
        attrs.body = made[1];
        spec.op = n->op;
        spec.attrs = &attrs;
        spec.inputs = inputs;
        spec.n_inputs = n->n_inputs + count;
        spec.name = n->name;
        const sx_value first = sx_build_node(rw->to, &spec);
        for (int i = 0; i < n->n_outputs; i++) {
            rw->map[sx_node_output(n, i).id] = sx_output_of(first, i);
        }
    }
    for (int i = 0; i < 2; i++) {
        sx_graph_destroy(part[i]);
        sx_graph_destroy(made[i]);
    }
    return status;
}

/* `user`: the batch. */
static void hoist_from_node(sx_rewrite *rw, const sx_node *n)
{
    product products[MOST_PRODUCTS];
    const int count =
        n->op == &sx_op_while ? find_products(n, *(const int64_t *)rw->user, products) : 0;
    if (count == 0) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_status status = change_loop(rw, n, products, count);
    if (status != SX_OK) {
        sx_builder_fail(rw->to,
                        sx_status_annotate(status, __FILE__, __LINE__, "while \"%s\"", n->name));
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    return sx_pass_hoist_products(region, *(const int64_t *)user, out);
}

sx_status sx_pass_hoist_products(const sx_graph *g, int64_t batch, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, hoist_from_node, in_region, &batch, out);
}
