/* What export needs of vocabulary_lookup in functions, where a table is an argument. */
#ifndef SX_GRAPH_OPS_VOCABULARY_LOOKUP_H
#define SX_GRAPH_OPS_VOCABULARY_LOOKUP_H

#include "base/arena.h"
#include "graph/op_def.h"

/* Of the attributes of two nodes: one table serves both. */
bool sx_same_vocabulary(const void *a, const void *b);
/* The handle of the table of a node's vocabulary. The writer keeps errors. */
sx_tf_value sx_vocabulary_table(sx_tf_writer *w, const char *name, const void *attrs);
/* The node that looks up in a table. */
void sx_vocabulary_find(sx_tf_writer *w, const sx_tf_op *op, sx_tf_value table);

#endif
