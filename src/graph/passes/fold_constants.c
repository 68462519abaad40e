/* Nodes whose inputs are all constants become constants, computed by the operator's reference and
 * rounded to its dtype, as any backend would be held to. */
#include "base/memory.h"
#include "graph/eval.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { MAX_FOLDED_BYTES = 64 << 10 };

/* The constant that a new value is, or NULL. */
static const sx_tensor *constant_of(const sx_rewrite *rw, sx_value v)
{
    const sx_node *maker = sx_builder_maker(rw->to, v);
    return maker != NULL && maker->op == &sx_op_constant
               ? &((const sx_constant_attrs *)maker->attrs)->value
               : NULL;
}

static bool can_fold(const sx_rewrite *rw, const sx_node *n)
{
    if (n->op == &sx_op_constant || n->op->ref == NULL || n->n_inputs > SX_MAX_RANK) {
        return false;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        if (constant_of(rw, rw->map[n->inputs[i].id]) == NULL) {
            return false;
        }
    }
    for (int i = 0; i < n->n_outputs; i++) {
        int64_t bytes = sx_type_bytes(sx_graph_type(rw->from, sx_node_output(n, i)));
        if (bytes < 0 || bytes > MAX_FOLDED_BYTES) {
            return false;
        }
    }
    return true;
}

static sx_ref_tensor ref_tensor(sx_arena *scratch, sx_type type)
{
    int64_t n = sx_type_elems(&type);
    return (sx_ref_tensor){type, n < 0 ? NULL : sx_arena_array(scratch, n + 1, double)};
}

/* Computes the node; each output becomes a constant of the new graph. */
static sx_status fold(sx_rewrite *rw, const sx_node *n, sx_arena *scratch)
{
    sx_ref_tensor in[SX_MAX_RANK], out[SX_MAX_OUTPUTS];
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_tensor *t = constant_of(rw, rw->map[n->inputs[i].id]);
        in[i] = ref_tensor(scratch, t->type);
        if (in[i].data == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory folding constants");
        }
        sx_ref_load(&in[i], t->data);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        out[i] = ref_tensor(scratch, *sx_graph_type(rw->from, sx_node_output(n, i)));
        if (out[i].data == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory folding constants");
        }
    }
    sx_ref_run(n->op, &(sx_ref){n->attrs, in, out, n->n_inputs, n->n_outputs}, false);
    for (int i = 0; i < n->n_outputs; i++) {
        void *bytes = sx_arena_alloc(scratch, (size_t)sx_type_bytes(&out[i].type) + 1, 1);
        if (bytes == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory folding constants");
        }
        sx_ref_store(&out[i], bytes);
        sx_rewrite_constant(rw, n, i, &(sx_tensor){out[i].type, bytes});
    }
    return SX_OK;
}

static void fold_node(sx_rewrite *rw, const sx_node *n)
{
    if (!can_fold(rw, n)) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_arena scratch;
    sx_arena_init(&scratch, 0);
    sx_status status = fold(rw, n, &scratch);
    if (status != SX_OK) {
        sx_builder_fail(rw->to, status);
    }
    sx_arena_deinit(&scratch);
}

sx_status sx_pass_fold_constants(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run(g, 0, fold_node, NULL, out);
}
