/* See interpret.h. */
#include "graph/interpret.h"

#include <string.h>

#include "base/checked.h"
#include "graph/ir.h"

static size_t elem_bytes(const sx_kernel_call *like, sx_dtype dtype)
{
    return like->all_carried    ? sx_carrier_bytes(dtype)
           : dtype == SX_STRING ? sizeof(sx_bytes)
                                : sx_dtype_bytes(dtype);
}

int64_t sx_interpret_bytes(const sx_kernel_call *like, const sx_type *type)
{
    const int64_t n = sx_type_elems(type);
    int64_t bytes = 0;
    return n >= 0 && sx_mul_i64(n, (int64_t)elem_bytes(like, type->dtype), &bytes) ? bytes : -1;
}

/* Runs one node whose inputs have been computed and whose outputs are allocated. */
static sx_status run_node(const sx_kernel_call *like, const sx_node *n,
                          const sx_host_tensor *values, sx_arena *arena)
{
    sx_host_tensor *in = sx_arena_array(arena, n->n_inputs + 1, sx_host_tensor);
    if (in == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in[i] = values[n->inputs[i].id];
    }
    const sx_host_tensor *out = &values[n->first_output.id];
    if (like->all_carried) {
        return sx_host_run_carried_within(n->op, n->attrs, in, n->n_inputs, out, n->n_outputs,
                                          arena, like->keep_double, like->cancel);
    }
    sx_type *types = sx_arena_array(arena, n->n_inputs + n->n_outputs, sx_type);
    sx_tensor *t = sx_arena_array(arena, n->n_inputs + n->n_outputs, sx_tensor);
    for (int i = 0; types != NULL && t != NULL && i < n->n_inputs + n->n_outputs; i++) {
        const sx_host_tensor *value = i < n->n_inputs ? &in[i] : &out[i - n->n_inputs];
        types[i] = value->type;
        t[i] = (sx_tensor){value->type, value->data};
    }
    const int64_t bytes = types == NULL ? -1
                                        : sx_host_scratch_bytes(n->op, types, n->n_inputs,
                                                                types + n->n_inputs, n->n_outputs);
    void *scratch = t == NULL || bytes < 0 ? NULL : sx_arena_alloc(arena, (size_t)bytes, 1);
    if (scratch == NULL) {
        return sx_budget_error(arena->budget);
    }
    return sx_host_run_within(n->op, n->attrs, t, n->n_inputs, t + n->n_inputs, n->n_outputs,
                              scratch,
                              &(sx_host_context){.arena = arena,
                                                 .cancel = like->cancel,
                                                 .images = like->images,
                                                 .first_row = like->first_row});
}

sx_status sx_interpret(const sx_kernel_call *like, const sx_graph *g, const sx_host_tensor *args,
                       const sx_host_tensor *results)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    arena.budget = like->arena != NULL ? like->arena->budget : NULL;
    sx_host_tensor *values = sx_arena_array(&arena, g->n_values, sx_host_tensor);
    sx_status status = values == NULL ? sx_budget_error(arena.budget) : SX_OK;
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        values[g->args[i].value.id] = args[i];
    }
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        const sx_node *n = &g->nodes[k];
        if (n->op->flags & SX_OP_NO_HOST) {
            continue; /* a parameter */
        }
        for (int i = 0; i < n->n_outputs && status == SX_OK; i++) {
            sx_host_tensor *value = &values[sx_node_output(n, i).id];
            value->type = *sx_graph_type(g, sx_node_output(n, i));
            const int64_t bytes = sx_interpret_bytes(like, &value->type);
            value->data = bytes < 0 ? NULL : sx_arena_alloc(&arena, (size_t)bytes + 1, 1);
            if (bytes < 0) {
                char text[SX_TYPE_TEXT];
                status = sx_error(SX_RESOURCE_EXHAUSTED, "%s \"%s\": the size of %s overflows",
                                  n->op->name, n->name,
                                  sx_type_format(&value->type, text, sizeof(text)));
            } else if (value->data == NULL) {
                status = sx_budget_error(arena.budget);
            }
        }
        if (status == SX_OK) {
            status = sx_status_annotate(run_node(like, n, values, &arena), __FILE__, __LINE__,
                                        "%s \"%s\"", n->op->name, n->name);
        }
    }
    for (int i = 0; i < g->n_results && status == SX_OK; i++) {
        const sx_host_tensor *value = &values[g->results[i].value.id];
        memcpy(results[i].data, value->data, (size_t)sx_interpret_bytes(like, &value->type));
    }
    sx_arena_deinit(&arena);
    return status;
}
