/* Shared by export_body.c, which walks the nodes of a body, export_body_operands.c, which writes
 * those of one operator, and export_body_functions.c, which writes calls, branches and loops. */
#ifndef SX_SAVEDMODEL_EXPORT_BODY_INTERNAL_H
#define SX_SAVEDMODEL_EXPORT_BODY_INTERNAL_H

#include "base/buffer.h"
#include "graph/ops/common.h"
#include "savedmodel/export_body.h"

/* Nodes of called functions that are written where they are called. Of functions that call others
 * more than once there may be very many: what is left are calls. */
enum { SX_EXPORT_MOST_IN_PLACE = 20000 };

/* What a body does, by itself, in its regions and in what it calls. */
typedef struct sx_export_facts {
    bool *uses; /* [handles] */
    bool reads, effects;
    bool passes;   /* a handle to something that is neither a read nor an assignment */
    int64_t nodes; /* with calls in place; SX_EXPORT_MOST_IN_PLACE + 1 = or more */
} sx_export_facts;

typedef struct sx_export_function {
    sx_export_facts facts;
    bool known, visiting, checked;
    /* its name in TensorFlow, as it takes handles of variables and as it takes values; NULL = not
     * yet */
    const char *written[2];
} sx_export_function;

struct sx_tf_exporter {
    const sx_library *library;
    sx_arena arena;
    int n_handles; /* the library's variables, then the vocabularies */
    int n_variables, n_vocabularies;
    const sx_node **vocabularies;  /* [n_vocabularies]: vocabulary_lookup nodes of other words */
    sx_export_function *functions; /* [library's functions] */
    int64_t n_in_place;            /* nodes of calls that are written so */
    sx_buf refused;
};

/* A body under construction. */
typedef struct sx_export_body {
    sx_tf_exporter *e;
    sx_tf_writer *w;
    const sx_graph *graph;
    sx_tf_value *values;        /* [graph's values] */
    const sx_tf_value *handles; /* [handles]; NULL in a static graph */
    bool by_value;              /* of variables they are the values, which nothing here assigns */
    /* Where something has effects: the last node that has, and those that read since. */
    bool ordered, has_last;
    sx_tf_value last, *readers; /* [graph's nodes] */
    int n_readers;
} sx_export_body;

/* Writes a node of s->graph and sets the values of its outputs. */
typedef sx_status sx_export_node_fn(sx_export_body *s, const sx_node *node);

/* ---- export_body.c ---- */

sx_status sx_export_no_memory(void);
/* The number of a node's vocabulary, or n_vocabularies. */
int sx_export_find_vocabulary(const sx_tf_exporter *e, const sx_node *node);
sx_tf_value sx_export_value(const sx_export_body *s, sx_value v);
int sx_export_dtype(const sx_export_body *s, sx_value v);
/* The type, its dimensions of the batch unknown. */
sx_type sx_export_any_shape(const sx_type *type);
/* Puts a node that reads, or that has effects, into its order. */
void sx_export_order(sx_export_body *s, sx_tf_value node, bool effects);
/* All nodes of s->graph but its parameters. */
SX_MUST_USE sx_status sx_export_nodes(sx_export_body *s);

/* ---- export_body_operands.c ---- */

/* By the operator's `to_tf`. */
SX_MUST_USE sx_status sx_export_operator(sx_export_body *s, const sx_node *node);
/* The form whose inputs are all attributes of the node that are operands; NULL if there is none. */
const sx_tf_form *sx_export_form(const sx_node *node);

/* ---- export_body_functions.c ---- */

SX_MUST_USE sx_status sx_export_call(sx_export_body *s, const sx_node *node);
SX_MUST_USE sx_status sx_export_if(sx_export_body *s, const sx_node *node);
SX_MUST_USE sx_status sx_export_while(sx_export_body *s, const sx_node *node);
SX_MUST_USE sx_status sx_export_map(sx_export_body *s, const sx_node *node);

/* The region of a custom_gradient node as a function of the graph. */
SX_MUST_USE sx_status sx_export_gradient(sx_export_body *s, const sx_node *node,
                                         const char **out_name);

/* The function that a `call` node names. NOT_FOUND. */
SX_MUST_USE sx_status sx_export_find_function(const sx_tf_exporter *e, const sx_node *call,
                                              const sx_function **out);
sx_export_function *sx_export_state(const sx_tf_exporter *e, const sx_function *function);
/* Facts of nothing; adds a body's. */
SX_MUST_USE sx_status sx_export_facts_init(sx_tf_exporter *e, sx_export_facts *out);
SX_MUST_USE sx_status sx_export_learn(sx_tf_exporter *e, const sx_graph *graph,
                                      sx_export_facts *out);

#endif
