/* The graph: nodes of operators in SSA form. Built by sx_builder or the text parser, immutable once
 * finished; passes make new graphs.
 *
 *   static graph     types are inferred; a dimension is a count or c·N. Compiled by backends.
 *   function body    (`general`) types are declared and may be unknown, attributes may be operands,
 *                    nodes may call functions (library.h). Input of sx_specialize().
 *
 * Either may have regions: graphs of the same form that a node holds as attributes (SX_ATTR_BODY).
 * A region only sees its args, which are all inputs; its results are all outputs, by position.
 *
 *   values   1 .. n_values-1, in order of creation; 0 is "none"
 *   node k   op(attrs; inputs...) -> outputs first_output, first_output + 1, ...
 *
 *   args     variables and inputs, each a value made by a `parameter` node
 *   results  outputs by name, and the last assignment of each assigned variable
 *
 * The order of nodes is a topological order and the program order, in which effects happen.
 * Everything, including regions, is in one arena. */
#ifndef SX_GRAPH_IR_H
#define SX_GRAPH_IR_H

#include <sextant/graph.h>

#include "base/arena.h"
#include "graph/op_def.h"

/* An attribute whose value is an operand; in function bodies only. */
typedef struct sx_attr_operand {
    int row; /* of op->attrs */
    sx_value value;
} sx_attr_operand;

typedef struct sx_node {
    const sx_op_def *op;
    const void *attrs; /* op->attrs_bytes of them; never NULL when the operator has attributes */
    const sx_value *inputs;
    const sx_attr_operand *attr_operands; /* by row, ascending */
    sx_value first_output;
    int n_inputs, n_outputs, n_attr_operands;
    const char *name;   /* unique: scope/op, scope/op_1 */
    const char *device; /* scope, "" = anywhere */
    const char *file;   /* the line of user code, or "" */
    int line;
    bool trial; /* in a function: made for its types; if nothing reads it, it may be wrong */
} sx_node;

typedef struct sx_value_info {
    sx_type type;
    uint32_t node;   /* index of the node that makes it */
    uint16_t output; /* which of its outputs */
} sx_value_info;

typedef enum sx_arg_kind { SX_ARG_VARIABLE, SX_ARG_INPUT } sx_arg_kind;

typedef struct sx_arg {
    sx_arg_kind kind;
    const char *name;
    sx_value value;
    /* variables only */
    sx_variable_role role;
    sx_initializer init;
    double init_value;
} sx_arg;

enum { SX_RESULT_IS_OUTPUT = -1 };

typedef struct sx_result {
    const char *name; /* the output's, or the variable's */
    sx_value value;
    int arg; /* index of the variable that it assigns, or SX_RESULT_IS_OUTPUT */
} sx_result;

struct sx_graph {
    sx_arena arena; /* of a region: unused, it lives in the outermost graph's */
    bool general;   /* a function body */
    sx_node *nodes;
    int n_nodes;
    sx_value_info *values; /* [n_values]; values[0] unused */
    int n_values;
    sx_arg *args;
    int n_args;
    sx_result *results;
    int n_results;
    size_t array_bytes; /* of the four arrays, charged to the arena's budget */
};

static inline const sx_type *sx_graph_type(const sx_graph *g, sx_value v)
{
    return &g->values[v.id].type;
}
static inline const sx_node *sx_graph_maker(const sx_graph *g, sx_value v)
{
    return &g->nodes[g->values[v.id].node];
}
/* Arguments and constants. */
static inline bool sx_node_is_source(const sx_node *n)
{
    return n->n_inputs == 0;
}
static inline sx_value sx_node_output(const sx_node *n, int i)
{
    return (sx_value){n->first_output.id + (uint32_t)i};
}

/* A region that a node's attribute row `row` (SX_ATTR_BODY) holds. */
static inline const sx_graph *sx_node_body(const sx_node *n, int row)
{
    return *(const sx_graph *const *)(const void *)((const char *)n->attrs +
                                                    n->op->attrs[row].offset);
}

enum {
    SX_GRAPH_MAX_NESTING = 16, /* regions in regions */
};
/* A deep copy whose every part, but not the struct's own arena, is in `arena`; NULL without memory.
 */
sx_graph *sx_graph_copy(sx_arena *arena, const sx_graph *g);
/* The same nodes, types, args and results; names and lines of user code are not looked at. */
bool sx_graph_equal(const sx_graph *a, const sx_graph *b);
uint64_t sx_graph_hash(const sx_graph *g); /* equal of equal graphs */
/* The nesting depth of its regions; 0 = none. */
int sx_graph_nesting(const sx_graph *g);

/* Index of the argument or output of that name, or -1. */
int sx_graph_find_arg(const sx_graph *g, const char *name);
int sx_graph_find_output(const sx_graph *g, const char *name);

/* What the node costs, by its operator's formulas. Types are static. */
typedef struct sx_cost {
    double flops, bytes; /* bytes read and written */
} sx_cost;
sx_cost sx_node_cost(const sx_graph *g, const sx_node *n);
/* The same of types with a batch, which is `batch`. */
sx_cost sx_node_cost_at(const sx_graph *g, const sx_node *n, int64_t batch);

/* Checks the invariants of this header, but for the uniqueness of names, and infers every type
 * again. sx_builder_finish() calls it, so that every graph has passed: a model's, an importer's, a
 * parser's, a pass's; it takes a fiftieth of the time of building. INTERNAL names the node. */
SX_MUST_USE sx_status sx_graph_validate(const sx_graph *g);

/* ---- Building, for operators and passes ---- */

/* Adds a node; types come from op->infer, and a failure is annotated with the current scope and
 * user line. `attrs` is copied (deeply); may be NULL when all are default (zero). Returns the first
 * output, or SX_NO_VALUE after an error. */
sx_value sx_build(sx_builder *b, const sx_op_def *op, const void *attrs, const sx_value *inputs,
                  int n_inputs);
#define sx_build_op(b, op_name, attrs, ...)                                   \
    sx_build((b), &sx_op_##op_name, (attrs), (const sx_value[]){__VA_ARGS__}, \
             (int)(sizeof((const sx_value[]){__VA_ARGS__}) / sizeof(sx_value)))
/* The i-th output of the node whose first output is `first`; SX_NO_VALUE of SX_NO_VALUE. */
static inline sx_value sx_output_of(sx_value first, int i)
{
    return sx_value_is(first) ? (sx_value){first.id + (uint32_t)i} : SX_NO_VALUE;
}
/* The node that makes `v`, while building; NULL for SX_NO_VALUE. Borrowed until the next node is
 * added. */
const sx_node *sx_builder_maker(const sx_builder *b, sx_value v);
/* In a function: declares the rank of what a node makes, if it was declared with none. */
void sx_builder_know_rank(sx_builder *b, sx_value v, int rank);
/* The arena of the graph under construction. */
sx_arena *sx_builder_arena(sx_builder *b);

#endif
