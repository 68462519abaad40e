/* Shared by operators with regions: checks of their regions' args and results (ir.h). */
#ifndef SX_GRAPH_OPS_REGIONS_H
#define SX_GRAPH_OPS_REGIONS_H

#include "graph/builder.h"
#include "graph/interpret.h"
#include "graph/ops/common.h"

/* Checks that the region's args have these types, in order. `what` names the region. */
SX_MUST_USE sx_status sx_require_region_args(const char *what, const sx_graph *body,
                                             const sx_type *types, int n);
/* Copies the elements of a tensor of the same type, represented like the call's operands. */
void sx_region_copy(const sx_kernel_call *c, const sx_host_tensor *from, const sx_host_tensor *to);

/* custom_gradient, refuse_gradient: the outputs are the first `results` operands. */
SX_MUST_USE sx_status sx_infer_first(sx_infer_context *c, int64_t results);
SX_MUST_USE sx_status sx_host_first(const sx_kernel_call *c);

/* take_row, put_row: how long axis 0 of the first input is at least. Checked it may be empty: in a
 * loop that never runs. */
static inline int64_t sx_least_rows(const sx_row_attrs *attrs)
{
    return attrs->checked ? 0 : 1;
}

/* take_row, put_row: input `input` as an index within axis 0 of the first input; INVALID_ARGUMENT
 * if it is outside and the operator checks that. */
SX_MUST_USE sx_status sx_host_row_index(const sx_kernel_call *c, int input, int64_t *out);

/* ---- Gradients ---- */

/* A region under construction: `types` are its args'. */
sx_builder *sx_region_begin(sx_grad *g, const sx_type *types, int n, sx_value *out_args);
/* Ends it with these results; NULL after an error, which g's builder gets. To be destroyed once a
 * node has copied it. */
sx_graph *sx_region_end(sx_grad *g, sx_builder *region, const sx_value *results, int n);
/* The nodes of a static graph, appended to a builder. */
void sx_region_inline(sx_builder *b, const sx_graph *body, const sx_value *args, sx_value *results);
/* Zeros of that type. */
sx_value sx_region_zeros(sx_builder *b, const sx_type *type);

/* ---- TensorFlow ---- */

/* take_row, put_row: how long axis 0 of the first input is; input `input` as an index within it. */
sx_tf_value sx_tf_row_count(sx_tf_writer *w, const sx_tf_op *op);
sx_tf_value sx_tf_row_index(sx_tf_writer *w, const sx_tf_op *op, int input);

/* ---- Samples: regions written as literals ---- */

#define SX_BODY_PARAMETER(id, name_, dtype_, ...)                                        \
    {                                                                                    \
        .op = &sx_op_parameter,                                                          \
        .attrs = &(const sx_parameter_attrs){.dtype = (dtype_), .shape = {__VA_ARGS__}}, \
        .first_output = {id}, .n_outputs = 1, .name = (name_), .device = "", .file = "", \
    }
#define SX_BODY_NODE(id, op_, attrs_, n_in, ...)                                                 \
    {                                                                                            \
        .op = &(op_), .attrs = (attrs_), .inputs = (const sx_value[]){__VA_ARGS__},              \
        .n_inputs = (n_in), .first_output = {id}, .n_outputs = 1, .name = "n" #id, .device = "", \
        .file = "",                                                                              \
    }
#define SX_BODY(nodes_, values_, args_, results_)                                            \
    {                                                                                        \
        .nodes = (nodes_), .n_nodes = (int)SX_COUNT(nodes_), .values = (values_),            \
        .n_values = (int)SX_COUNT(values_), .args = (args_), .n_args = (int)SX_COUNT(args_), \
        .results = (results_), .n_results = (int)SX_COUNT(results_),                         \
    }

#endif
