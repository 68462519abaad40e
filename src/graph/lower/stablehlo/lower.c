/* See lower.h. */
#include "graph/lower/stablehlo/lower.h"

#include "base/checked.h"
#include "base/memory.h"
#include "graph/lower/stablehlo/rows.h"

/* ---- The table ---- */

const sx_hlo_row sx_hlo_rows[SX_OPID_COUNT] = {
#define HLO(name)       [SX_OPID_##name] = {.lower = sx_hlo_lower_##name},
#define NONE(name, why) [SX_OPID_##name] = {.none = why},
#include "graph/lower/stablehlo/rows.def"
};

/* ---- Graphs ---- */

static void lower_node(sx_hlo_writer *w, const sx_graph *g, const sx_node *n, sx_hlo *values,
                       sx_hlo *in, sx_type *types)
{
    sx_hlo out[SX_MAX_OUTPUTS];
    sx_type out_types[SX_MAX_OUTPUTS];
    for (int i = 0; i < n->n_inputs; i++) {
        in[i] = values[n->inputs[i].id];
        types[i] = *sx_graph_type(g, n->inputs[i]);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        out[i] = SX_HLO_NONE;
        out_types[i] = *sx_graph_type(g, sx_node_output(n, i));
    }
    const sx_hlo_row *row = &sx_hlo_rows[n->op->id];
    if (row->lower == NULL) {
        sx_hlo_fail(w, sx_error(SX_UNIMPLEMENTED,
                                "%s \"%s\" cannot be part of a device program: %s", n->op->name,
                                n->name, row->none != NULL ? row->none : "it runs on the host"));
        return;
    }
    sx_hlo_at(w, n->name);
    row->lower(w, &(sx_hlo_op){.attrs = n->attrs,
                               .name = n->name,
                               .in = in,
                               .out = out,
                               .in_types = types,
                               .out_types = out_types,
                               .n_in = n->n_inputs,
                               .n_out = n->n_outputs});
    for (int i = 0; i < n->n_outputs; i++) {
        values[sx_node_output(n, i).id] = out[i];
    }
}

void sx_hlo_graph(sx_hlo_writer *w, const sx_graph *g, const sx_hlo *args, sx_hlo *results)
{
    int widest = 1;
    for (int k = 0; k < g->n_nodes; k++) {
        widest = SX_MAX(widest, g->nodes[k].n_inputs);
    }
    sx_hlo *values = sx_alloc((size_t)(g->n_values + widest), sizeof(*values));
    sx_type *types = sx_alloc((size_t)widest, sizeof(*types));
    for (int i = 0; i < g->n_results; i++) {
        results[i] = SX_HLO_NONE;
    }
    if (values == NULL || types == NULL) {
        sx_hlo_fail(w, sx_no_memory("lowering a region"));
    } else {
        for (int i = 0; i < g->n_args; i++) {
            values[g->args[i].value.id] = args[i];
        }
        for (int k = 0; k < g->n_nodes && !sx_hlo_failed(w); k++) {
            if ((g->nodes[k].op->flags & SX_OP_NO_HOST) == 0) { /* no parameter */
                lower_node(w, g, &g->nodes[k], values, values + g->n_values, types);
            }
        }
        for (int i = 0; i < g->n_results && !sx_hlo_failed(w); i++) {
            results[i] = values[g->results[i].value.id];
        }
    }
    sx_free(values);
    sx_free(types);
}

/* (i, 0, 0, …) */
static void row_at(sx_hlo_writer *w, sx_hlo i, int rank, sx_hlo *at)
{
    sx_hlo zero = sx_hlo_scalar(w, SX_I64, 0);
    for (int k = 0; k < rank; k++) {
        at[k] = k == 0 ? i : zero;
    }
}

sx_hlo sx_hlo_take_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo i)
{
    const sx_type type = sx_hlo_type(w, stack);
    sx_type row = type;
    const sx_type one = sx_type_make(type.dtype, SX_MAX(type.rank, 1) - 1, type.dims + 1);
    sx_hlo in[SX_MAX_RANK + 1] = {stack};
    row.dims[0] = 1;
    row_at(w, i, type.rank, in + 1);
    sx_hlo_attr_i64s(w, "slice_sizes", row.rank, row.dims);
    return sx_hlo_reshape(w, sx_hlo_emit(w, "dynamic_slice", in, type.rank + 1, &row, 1), &one);
}

sx_hlo sx_hlo_put_row(sx_hlo_writer *w, sx_hlo stack, sx_hlo value, sx_hlo i)
{
    const sx_type type = sx_hlo_type(w, stack);
    sx_type row = type;
    row.dims[0] = 1;
    sx_hlo in[SX_MAX_RANK + 2] = {stack, sx_hlo_reshape(w, value, &row)};
    row_at(w, i, type.rank, in + 2);
    return sx_hlo_emit(w, "dynamic_update_slice", in, type.rank + 2, &type, 1);
}
