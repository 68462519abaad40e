/* The nodes as which TensorFlow and programs for it write gelu, x/2 times
 *
 *   erfc(-x c)       tf.nn.gelu
 *   1 + erf(x c)     tf.nn.gelu before, and others; x / (1/c), too
 *
 * in any order, where c = 1/sqrt 2, become the operator gelu, unless something else reads what is
 * between them. 1 + erf has no digits left far below 0; gelu has. */
#include <math.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { FACTORS = 3 };

static const double c = 0.70710678118654752440;

/* What makes v, if it is that operator and nothing but one node reads it. */
static const sx_node *only_made_by(const sx_rewrite *rw, sx_value v, int op)
{
    const int *readers = rw->user;
    const sx_node *n = sx_graph_maker(rw->from, v);
    return n->op->id == op && readers[v.id] == 1 ? n : NULL;
}

/* Whether v is a constant of one element, about x. */
static bool is_number(const sx_graph *g, sx_value v, double x)
{
    const sx_node *n = sx_graph_maker(g, v);
    const sx_tensor *t =
        n->op->id == SX_OPID_constant ? &((const sx_constant_attrs *)n->attrs)->value : NULL;
    return t != NULL && t->type.dtype == SX_F32 && sx_type_elems(&t->type) == 1 &&
           fabs((double)*(const float *)t->data - x) < 1e-6;
}

/* Whether v = x factor. */
static bool is_times(const sx_rewrite *rw, sx_value v, sx_value x, double factor)
{
    const sx_graph *g = rw->from;
    const sx_node *mul = only_made_by(rw, v, SX_OPID_mul);
    const sx_node *div = only_made_by(rw, v, SX_OPID_div);
    for (int i = 0; i < 2 && mul != NULL; i++) {
        const sx_node *neg = only_made_by(rw, mul->inputs[i], SX_OPID_neg);
        if ((mul->inputs[i].id == x.id && is_number(g, mul->inputs[1 - i], factor)) ||
            (neg != NULL && neg->inputs[0].id == x.id &&
             is_number(g, mul->inputs[1 - i], -factor))) {
            return true;
        }
    }
    return div != NULL && div->inputs[0].id == x.id && is_number(g, div->inputs[1], 1 / factor);
}

/* Whether v = erfc(-x c) or 1 + erf(x c). */
static bool is_share(const sx_rewrite *rw, sx_value v, sx_value x)
{
    const sx_node *erfc = only_made_by(rw, v, SX_OPID_erfc);
    const sx_node *add = only_made_by(rw, v, SX_OPID_add);
    for (int i = 0; i < 2 && add != NULL; i++) {
        const sx_node *erf = only_made_by(rw, add->inputs[i], SX_OPID_erf);
        if (erf != NULL && is_number(rw->from, add->inputs[1 - i], 1) &&
            is_times(rw, erf->inputs[0], x, c)) {
            return true;
        }
    }
    return erfc != NULL && is_times(rw, erfc->inputs[0], x, -c);
}

/* x, if `n` is x/2 times its share; else SX_NO_VALUE. */
static sx_value find(const sx_rewrite *rw, const sx_node *n)
{
    const sx_graph *g = rw->from;
    if (n->op->id != SX_OPID_mul || sx_graph_type(g, n->first_output)->dtype != SX_F32) {
        return SX_NO_VALUE;
    }
    for (int i = 0; i < 2; i++) {
        const sx_node *inner = only_made_by(rw, n->inputs[i], SX_OPID_mul);
        if (inner == NULL) {
            continue;
        }
        const sx_value f[FACTORS] = {n->inputs[1 - i], inner->inputs[0], inner->inputs[1]};
        for (int half = 0; half < FACTORS; half++) {
            const sx_value a = f[(half + 1) % FACTORS], b = f[(half + 2) % FACTORS];
            const sx_value x = is_share(rw, a, b) ? b : a;
            if (is_number(g, f[half], 0.5) && (x.id == b.id || is_share(rw, b, a)) &&
                sx_type_equal(sx_graph_type(g, x), sx_graph_type(g, n->first_output))) {
                return x;
            }
        }
    }
    return SX_NO_VALUE;
}

static void fuse_node(sx_rewrite *rw, const sx_node *n)
{
    const sx_value x = find(rw, n);
    if (!sx_value_is(x)) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_gelu, NULL, &rw->map[x.id], 1);
}

sx_status sx_pass_fuse_gelu(const sx_graph *g, sx_graph **out)
{
    int *readers = sx_alloc((size_t)g->n_values, sizeof(*readers));
    if (readers == NULL) {
        return sx_no_memory("rewriting a graph");
    }
    sx_rewrite_count_readers(g, readers);
    sx_status status = sx_rewrite_run(g, 0, fuse_node, readers, out);
    sx_free(readers);
    return status;
}
