/* Replaces nodes whose inputs are all constants by constants, computed by the operator's host
 * kernel, the reference for every backend. */
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum {
    MAX_FOLDED_BYTES = 64 << 10, /* one result */
    MAX_FOLDED_TOTAL_BYTES =
        64 << 20, /* all results of a graph: a long chain keeps every intermediate result */
    MAX_SCRATCH_BYTES = 16 << 20, /* inputs and results of one node, in doubles */
};

/* The constant that a new value is, or NULL. */
static const sx_tensor *constant_of(const sx_rewrite *rw, sx_value v)
{
    const sx_node *maker = sx_builder_maker(rw->to, v);
    return maker != NULL && maker->op == &sx_op_constant
               ? &((const sx_constant_attrs *)maker->attrs)->value
               : NULL;
}

/* A loop may never end, and folding, as part of compiling, cannot be stopped. */
static bool has_loop(const sx_node *n)
{
    bool some = n->op == &sx_op_while;
    for (int i = 0; i < n->op->n_attrs && !some; i++) {
        const sx_graph *body = n->op->attrs[i].kind == SX_ATTR_BODY ? sx_node_body(n, i) : NULL;
        for (int k = 0; body != NULL && k < body->n_nodes && !some; k++) {
            some = has_loop(&body->nodes[k]);
        }
    }
    return some;
}

/* Whether to fold the node; counts its results. */
static bool can_fold(const sx_rewrite *rw, const sx_node *n)
{
    if (n->op == &sx_op_constant || n->op->host == NULL || n->n_inputs > SX_MAX_RANK ||
        (n->op->flags & SX_OP_BY_REPLICA)) {
        return false;
    }
    int64_t scratch = 0, results = 0;
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_tensor *constant = constant_of(rw, rw->map[n->inputs[i].id]);
        const int64_t elems = constant != NULL ? sx_type_elems(&constant->type) : -1;
        if (elems < 0 || elems > MAX_SCRATCH_BYTES) {
            return false;
        }
        scratch += elems * (int64_t)sizeof(double);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_type *type = sx_graph_type(rw->from, sx_node_output(n, i));
        int64_t bytes = sx_type_bytes(type);
        if (bytes < 0 || bytes > MAX_FOLDED_BYTES) {
            return false;
        }
        scratch += sx_type_elems(type) * (int64_t)sizeof(double);
        results += bytes;
    }
    int64_t *total = rw->user;
    if (scratch > MAX_SCRATCH_BYTES || results > MAX_FOLDED_TOTAL_BYTES - *total || has_loop(n)) {
        return false;
    }
    *total += results;
    return true;
}

/* Computes the node; each output becomes a constant of the new graph. */
static sx_status fold(sx_rewrite *rw, const sx_node *n, sx_arena *scratch)
{
    sx_tensor in[SX_MAX_RANK], out[SX_MAX_OUTPUTS];
    sx_type in_types[SX_MAX_RANK], out_types[SX_MAX_OUTPUTS];
    for (int i = 0; i < n->n_inputs; i++) {
        in[i] = *constant_of(rw, rw->map[n->inputs[i].id]);
        in_types[i] = in[i].type;
    }
    for (int k = 0; k < n->n_outputs; k++) {
        out[k].type = out_types[k] = *sx_graph_type(rw->from, sx_node_output(n, k));
        out[k].data = sx_arena_alloc(scratch, (size_t)sx_type_bytes(&out[k].type) + 1, 1);
        if (out[k].data == NULL) {
            return sx_no_memory("folding constants");
        }
    }
    int64_t bytes = sx_host_scratch_bytes(n->op, in_types, n->n_inputs, out_types, n->n_outputs);
    void *carriers = bytes < 0 ? NULL : sx_arena_alloc(scratch, (size_t)bytes, 1);
    if (carriers == NULL) {
        return sx_no_memory("folding constants");
    }
    SX_TRY(sx_host_run(n->op, n->attrs, in, n->n_inputs, out, n->n_outputs, carriers, scratch));
    for (int k = 0; k < n->n_outputs; k++) {
        sx_rewrite_constant(rw, n, k, &out[k]);
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

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_fold_constants(region, out);
}

sx_status sx_pass_fold_constants(const sx_graph *g, sx_graph **out)
{
    int64_t total = 0; /* bytes of results so far */
    return sx_rewrite_run_deep(g, 0, fold_node, in_region, &total, out);
}
