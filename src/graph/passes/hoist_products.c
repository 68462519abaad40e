/* Takes products out of loops: the product of row i of a stack and a matrix that both stay the same
 * in a loop is row i of one product before it, of the whole stack. So a recurrent layer multiplies
 * its inputs of all steps at once, and a step reads the recurrent matrix only.
 *
 * It pays where a step has few rows, when reading the matrix takes longer than the product; with
 * many rows the product of the stack would only take memory. */
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/change_loop.h"
#include "graph/passes/passes.h"

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

/* The products, and the loop behind them. */
static sx_status hoist(sx_rewrite *rw, const sx_node *n, const product *products, int count)
{
    sx_value added[MOST_PRODUCTS], first;
    sx_loop_row rows[MOST_PRODUCTS];
    for (int i = 0; i < count; i++) {
        const product *p = &products[i];
        const sx_value in[] = {rw->map[n->inputs[p->stack].id], rw->map[n->inputs[p->matrix].id]};
        added[i] =
            sx_rewrite_beside(rw, n, &sx_op_matmul, p->matmul->attrs, in, 2, ".product%d", i);
        rows[i] = (sx_loop_row){.node = p->node,
                                .arg = i,
                                .index = p->row->inputs[1],
                                .checked = ((const sx_row_attrs *)p->row->attrs)->checked};
    }
    const sx_loop_change change = {.n_added = count, .added = added, .n_rows = count, .rows = rows};
    return sx_rewrite_loop(rw, n, &change, &first);
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
    sx_status status = hoist(rw, n, products, count);
    if (status != SX_OK) {
        sx_builder_fail(rw->to, status);
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
