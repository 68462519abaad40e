/* The internals of the builder, for the text parser, passes and automatic differentiation: adds
 * nodes with a given name and source line instead of the current scope's. */
#ifndef SX_GRAPH_BUILDER_H
#define SX_GRAPH_BUILDER_H

#include "base/map.h"
#include "graph/ir.h"

enum { SX_GRAPH_MAX_NODES = 1 << 20, SX_NODE_MAX_INPUTS = 4096, SX_SCOPE_MAX_DEPTH = 32 };

/* A variable of a function under construction: sx_library_add() adds it to the library. */
typedef struct sx_builder_variable {
    sx_variable_spec spec;
    sx_value handle, value; /* what it is at this place of the function; none: of a region only */
} sx_builder_variable;

struct sx_builder {
    sx_graph *graph;
    int node_capacity, value_capacity, arg_capacity, result_capacity;
    sx_value *current;              /* [arg_capacity]: the current value of each variable */
    sx_builder_variable *variables; /* [n_variables]: of a function, and of its regions */
    int n_variables, variable_capacity;
    sx_status error;                        /* the first error */
    sx_status spent;                        /* `error` once the graph is finished */
    sx_map node_names, scope_names;         /* name -> number of requests for it */
    const char *scopes[SX_SCOPE_MAX_DEPTH]; /* full names, innermost last; [0] = "" */
    int depth;
    const char *devices[SX_SCOPE_MAX_DEPTH]; /* the device outside of each open device scope */
    int n_devices;
    const char *device, *file; /* of the nodes that are added: "" = anywhere */
    int line;
    bool trial; /* of the nodes that are added */
    /* Not used by the graph itself: */
    int mode;                                 /* sx_mode of nn.h: train, eval, predict */
    const struct sx_program_request *request; /* of nn, while it builds a program; NULL = none */
    sx_dtype compute; /* compute type of layers, SX_BF16; 0 = float32 (ops/precision.h) */
};

/* Everything of a node. name NULL = made from the scope and the operator. types NULL = inferred; in
 * a function body they are declared. device "" = that of the current scope. */
typedef struct sx_node_spec {
    const sx_op_def *op;
    const void *attrs;
    const sx_value *inputs;
    const sx_attr_operand *attr_operands;
    const sx_type *types;
    int n_inputs, n_attr_operands, n_types;
    const char *name, *device, *file;
    int line;
} sx_node_spec;

/* For a graph that is made from `g`: charged to the same budget, which it must not outlive. */
SX_MUST_USE sx_status sx_builder_create_like(const sx_graph *g, sx_builder **out_builder);

/* As sx_build(); an explicit name that is taken is an error. */
sx_value sx_build_node(sx_builder *b, const sx_node_spec *spec);

/* A `parameter` node and its argument; the kind and the variable's fields from `arg` (value
 * ignored). */
sx_value sx_build_arg(sx_builder *b, const sx_arg *arg, sx_type type);
/* The same on that device instead of the current scope's: a copy of another graph's. */
sx_value sx_build_arg_on(sx_builder *b, const sx_arg *arg, sx_type type, const char *device);

/* Declares the variables of a function's region as those of the function, too. */
void sx_builder_take_variables(sx_builder *b, const sx_builder *region);

/* Checks that the node has all its regions, of the same form as the surrounding graph. */
SX_MUST_USE sx_status sx_check_bodies(const sx_op_def *op, const void *attrs, bool general);

/* Checks the counts and output types declared for a node of a function body. */
SX_MUST_USE sx_status sx_check_declared(const sx_op_def *op, int n_inputs, const sx_type *types,
                                        int n_types);

/* As sx_gradients(), from any ys with given gradients dys (SX_NO_VALUE: none): what each xs[i] gets
 * of them, SX_NO_VALUE where that is nothing. One that depends on another passes nothing on. */
void sx_pull_back(sx_builder *b, const sx_value *ys, const sx_value *dys, int n_y,
                  const sx_value *xs, int n, sx_value *out);

/* For gradient rules: those of the node by a formula, ys[n_outputs] made of its operands x by
 * differentiable nodes that were added for it; nodes whose dy is none are not looked at. */
void sx_grad_of_formula(sx_grad *g, const sx_value *ys);

/* Calls op->infer on types alone; fills outputs and *out_n. */
SX_MUST_USE sx_status sx_infer_types(const sx_op_def *op, const void *attrs, const sx_type *inputs,
                                     int n_inputs, sx_type outputs[SX_MAX_OUTPUTS], int *out_n);

#endif
