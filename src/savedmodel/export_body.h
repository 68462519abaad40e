/* Writing nodes of ours as TensorFlow's: a body's nodes, and as functions of the graph what they
 * call and the regions that they have.
 *
 *   an operator of one node           its `to_tf`; an attribute that is an operand replaces the
 *                                     constant that `to_tf` writes for it, as `from_tf` reads it
 *   call                              what it calls, in its place: TensorFlow has gradients of
 *                                     that; of what has effects StatefulPartitionedCall
 *   if, while                         If, While; where nothing in them has effects the stateless
 *                                     ones, which get the values of variables
 *   map                               a loop over lists of tensors, as tf.map_fn makes it
 *   variable_handle                   in other functions an argument: resources are handed down
 *                                     from the graph, as TensorFlow 2 does
 *   vocabulary_lookup                 the same of its table
 *   assign_variable, assert, print    stateful nodes, in their order by control inputs
 *
 * Life cycle: create -> check -> bodies, calls -> destroy. One thread. */
#ifndef SX_SAVEDMODEL_EXPORT_BODY_H
#define SX_SAVEDMODEL_EXPORT_BODY_H

#include "graph/library.h"

typedef struct sx_tf_exporter sx_tf_exporter;

/* `library` (NULL: none; outlives it) has the functions that nodes call. */
SX_MUST_USE sx_status sx_tf_exporter_create(const sx_library *library, sx_tf_exporter **out);
void sx_tf_exporter_destroy(sx_tf_exporter *e); /* NULL is allowed */

/* UNIMPLEMENTED names all nodes that TensorFlow has no form of: of the bodies, their regions and
 * the functions that they call. Functions that call themselves are INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_tf_exporter_check(sx_tf_exporter *e, const sx_graph *const *bodies, int n);

/* Writes the nodes of a static graph, but its parameters: values[graph's values] of those are set,
 * those of the nodes are filled in. */
SX_MUST_USE sx_status sx_tf_exporter_nodes(sx_tf_exporter *e, sx_tf_writer *w,
                                           const sx_graph *graph, sx_tf_value *values);

/* The handles of a library: first its variables', then those of the tables of vocabularies. */
int sx_tf_exporter_handles(const sx_tf_exporter *e);
/* The handle of a table, by its number, in the graph; the writer keeps errors. */
sx_tf_value sx_tf_exporter_table(const sx_tf_exporter *e, sx_tf_writer *w, int handle);
/* Which of them a function uses, by itself or in what it calls: [handles]. */
SX_MUST_USE sx_status sx_tf_exporter_uses(sx_tf_exporter *e, const sx_function *function,
                                          const bool **out);
/* A call of a function. in[args]; handles[handles]: of those that it uses;
 * out[results]. */
SX_MUST_USE sx_status sx_tf_exporter_call(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                                          const sx_function *function, const sx_tf_value *in,
                                          const sx_tf_value *handles, sx_tf_value *out);

#endif
