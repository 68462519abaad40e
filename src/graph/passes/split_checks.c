/* A training step checks all gradients in one node, which one thread would compute while the others
 * wait:
 *
 *   ok = all_finite(a, b, c, d)     ok = logical_and(all_finite(a, b), all_finite(c, d))
 *
 * The parts are of about so many bytes, and may be computed at the same time. */
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { PART_BYTES = 4 << 20 };

static sx_value part(sx_rewrite *rw, const sx_node *n, int first, int count, int number)
{
    sx_value *in = sx_arena_array(sx_builder_arena(rw->to), count, sx_value);
    if (in == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return SX_NO_VALUE;
    }
    for (int i = 0; i < count; i++) {
        in[i] = rw->map[n->inputs[first + i].id];
    }
    return sx_rewrite_beside(rw, n, n->op, NULL, in, count, "/part_%d", number);
}

static void split(sx_rewrite *rw, const sx_node *n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_inputs && n->op == &sx_op_all_finite; i++) {
        const int64_t more = sx_type_bytes(sx_graph_type(rw->from, n->inputs[i]));
        bytes += more > 0 ? more : 0; /* a batch whose size is unknown stays with its neighbours */
    }
    if (bytes <= PART_BYTES) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_value ok = SX_NO_VALUE;
    for (int first = 0, count, number = 0; first < n->n_inputs; first += count, number++) {
        bytes = 0;
        for (count = 0; first + count < n->n_inputs && bytes < PART_BYTES; count++) {
            const int64_t more = sx_type_bytes(sx_graph_type(rw->from, n->inputs[first + count]));
            bytes += more > 0 ? more : 0;
        }
        const sx_value finite = part(rw, n, first, count, number);
        ok = number == 0 ? finite
                         : sx_rewrite_beside(rw, n, &sx_op_logical_and, NULL,
                                             (sx_value[]){ok, finite}, 2, "/and_%d", number);
    }
    rw->map[n->first_output.id] = ok;
}

sx_status sx_pass_split_checks(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run(g, 0, split, NULL, out);
}
