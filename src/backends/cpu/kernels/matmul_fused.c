/* Products of rows by a frozen matrix with what follows them, in frozen graphs:
 *
 *   y = act(a b + bias + added)
 *
 * where act and added may be absent. Views between the parts may give the sums another shape, such
 * as that of attention's heads. All of it is computed from sums that are in registers (dense.c). */
#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/dense.h"
#include "graph/ops/attrs.h"

/* ---- Matching ---- */

/* A variable's matrix that no result assigns, or a view of one. */
static bool is_frozen_matrix(const sx_graph *g, sx_value v)
{
    while ((sx_graph_maker(g, v)->op->flags & SX_OP_VIEW) != 0) {
        v = sx_graph_maker(g, v)->inputs[0];
    }
    int arg = 0;
    while (arg < g->n_args && g->args[arg].value.id != v.id) {
        arg++;
    }
    bool kept = arg < g->n_args && g->args[arg].kind == SX_ARG_VARIABLE;
    for (int i = 0; i < g->n_results; i++) {
        kept = kept && g->results[i].arg != arg;
    }
    return kept;
}

static sx_cpu_dense_spec spec_of(const sx_graph *g, const sx_node *product)
{
    const sx_type *b = sx_graph_type(g, product->inputs[1]);
    const bool transposed = ((const sx_matmul_attrs *)product->attrs)->transpose_b;
    const int64_t k = b->dims[transposed],
                  elems = sx_type_elems(sx_graph_type(g, product->inputs[0]));
    return (sx_cpu_dense_spec){
        .m = k > 0 ? elems / k : 0, .k = k, .n = b->dims[!transposed], .transposed = transposed};
}

static bool is_product(const sx_cpu_match *m, const sx_node *n)
{
    const sx_graph *g = m->graph;
    if (((const sx_matmul_attrs *)n->attrs)->transpose_a ||
        sx_graph_type(g, n->inputs[1])->rank != 2 || !is_frozen_matrix(g, n->inputs[1])) {
        return false;
    }
    const sx_cpu_dense_spec spec = spec_of(g, n);
    return sx_cpu_product_is_dense(spec.m, spec.k, spec.n, m->examples, m->region);
}

/* Whether `bias` adds one number to each of n columns of `sums`, which lie there as the sum `y`. */
static bool is_bias(const sx_graph *g, sx_value bias, sx_value sums, const sx_type *y, int64_t n)
{
    const sx_type *t = sx_graph_type(g, bias);
    int64_t tail = 1;
    if (sx_type_elems(sx_graph_type(g, sums)) != sx_type_elems(y)) {
        return false; /* they are repeated, too */
    }
    for (int i = 1; i <= t->rank && i <= y->rank && tail < n; i++) {
        if (t->dims[t->rank - i] != y->dims[y->rank - i]) {
            return false;
        }
        tail *= t->dims[t->rank - i];
    }
    return tail == n && sx_type_elems(t) == n;
}

/* The product to which node `n` adds a bias; claims it. */
static const sx_node *claim_product(sx_cpu_match *m, const sx_node *n, sx_value *bias)
{
    const sx_graph *g = m->graph;
    const int sides = n->op->id == SX_OPID_add ? 2 : n->op->id == SX_OPID_bias_add ? 1 : 0;
    for (int i = 0; i < sides; i++) {
        const int k = sx_cpu_claimable(m, sx_cpu_behind_views(m, n->inputs[i]), SX_OPID_matmul);
        const sx_node *product = k < 0 ? NULL : &g->nodes[k];
        if (product != NULL && is_product(m, product) &&
            is_bias(g, n->inputs[1 - i], n->inputs[i], sx_graph_type(g, n->first_output),
                    spec_of(g, product).n)) {
            sx_cpu_claim(m, k);
            *bias = n->inputs[1 - i];
            return product;
        }
    }
    return NULL;
}

/* The same where `n` adds something as large to that sum; claims both. */
static const sx_node *claim_sum(sx_cpu_match *m, const sx_node *n, sx_value *bias, sx_value *added)
{
    const sx_graph *g = m->graph;
    const sx_type *y = sx_graph_type(g, n->first_output);
    for (int i = 1; i >= 0 && n->op->id == SX_OPID_add; i--) {
        const int k = sx_cpu_claimable(m, sx_cpu_behind_views(m, n->inputs[i]), -1);
        if (k < 0 || sx_type_elems(sx_graph_type(g, n->inputs[0])) != sx_type_elems(y) ||
            sx_type_elems(sx_graph_type(g, n->inputs[1])) != sx_type_elems(y)) {
            continue;
        }
        sx_cpu_claim(m, k);
        const sx_node *product = claim_product(m, &g->nodes[k], bias);
        if (product != NULL) {
            *added = n->inputs[1 - i];
            return product;
        }
        m->n_nodes--;
    }
    return NULL;
}

static bool match_matmul_fused(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    const sx_node *n = sx_cpu_node(m, 0);
    sx_value bias = SX_NO_VALUE, added = SX_NO_VALUE;
    if (!m->frozen) {
        return false;
    }
    if (sx_cpu_dense_act_of(n) != NULL) {
        const int k = sx_cpu_claimable(m, sx_cpu_behind_views(m, n->inputs[0]), -1);
        if (k < 0) {
            return false;
        }
        sx_cpu_claim(m, k);
        n = &g->nodes[k];
    }
    const sx_node *product = claim_product(m, n, &bias);
    product = product == NULL ? claim_sum(m, n, &bias, &added) : product;
    if (product == NULL) {
        return false;
    }
    m->in[0] = product->inputs[0];
    m->in[1] = product->inputs[1];
    m->in[2] = bias;
    m->in[3] = added;
    m->n_in = sx_value_is(added) ? 4 : 3;
    m->in_place = m->n_in == 4 ? 1u << 3 : 0;
    bool all = sx_cpu_is_f32(m, m->out[0]);
    for (int i = 0; i < m->n_in; i++) {
        all = all && sx_cpu_is_f32(m, m->in[i]);
    }
    return all;
}

/* ---- Preparing ---- */

static sx_status prepare_matmul_fused(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *product = site->nodes[site->n_nodes - 1];
    sx_cpu_dense_spec spec = spec_of(site->graph, product);
    spec.act = sx_cpu_dense_act_of(site->nodes[0]);
    step->kernel = "matmul dense fused";
    return sx_cpu_prepare_dense(site, &spec, step);
}

#define FUSED_ROW(op_name)                                                                   \
    const sx_cpu_kernel sx_cpu_kernel_matmul_fused_##op_name = {.name = "matmul_fused",      \
                                                                .op = SX_OPID_##op_name,     \
                                                                .match = match_matmul_fused, \
                                                                .prepare = prepare_matmul_fused}
FUSED_ROW(relu);
FUSED_ROW(relu6);
FUSED_ROW(swish);
FUSED_ROW(gelu);
FUSED_ROW(add);
FUSED_ROW(bias_add);
