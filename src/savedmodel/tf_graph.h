/* sx_tf_graph: a TensorFlow GraphDef under construction, with its library of functions.
 *
 * It implements graph/lower/tf_writer.h twice over one arena: as the graph itself, where a value is
 * spelled `node` or `node:k`, and as the body of a function, where it is `arg3` or
 * `node:output_arg:k`. The messages are protobuf-c's own structs, so finishing copies nothing.
 *
 *   sx_tf_graph ── nodes of the graph
 *       └── library ── FunctionDef per closed function body
 *
 * Names: scope path + "/" + last part; characters that TensorFlow does not allow become '_'; a
 * taken name gets _1, _2 … sx_tf_graph_node_name() returns the result.
 *
 * Life cycle: create -> writer calls -> finish -> (pack, once or more) -> destroy. One thread. */
#ifndef SX_SAVEDMODEL_TF_GRAPH_H
#define SX_SAVEDMODEL_TF_GRAPH_H

#include "base/arena.h"
#include "graph/lower/tf_writer.h"
#include "proto/graph.pb-c.h"

typedef struct sx_tf_graph sx_tf_graph;

/* The versions recorded in the graph: written as by TensorFlow 2.2, readable from 1.0 on. */
enum { SX_TF_GRAPH_PRODUCER = 175, SX_TF_GRAPH_MIN_CONSUMER = 12 };

SX_MUST_USE sx_status sx_tf_graph_create(sx_tf_graph **out_graph);
void sx_tf_graph_destroy(sx_tf_graph *graph); /* NULL is allowed */

/* The writer of the graph's own nodes; borrowed. */
sx_tf_writer *sx_tf_graph_writer(sx_tf_graph *graph);
/* What is written from here on through this writer, of a graph or a function, names this device:
 * "/device:CPU:1"; "" = none, as at first. Borrowed while nodes are written. */
void sx_tf_graph_set_device(sx_tf_writer *w, const char *device);

/* "save/RestoreV2", and "save/RestoreV2:1" as in signatures: owned by the graph. "" if `value` is
 * not a value of the graph; the second NULL if out of memory. */
const char *sx_tf_graph_node_name(sx_tf_graph *graph, sx_tf_value value);
const char *sx_tf_graph_tensor_name(sx_tf_graph *graph, sx_tf_value value);

/* The arena of the graph's messages, also for messages that are packed with them. */
sx_arena *sx_tf_graph_arena(sx_tf_graph *graph);

/* The tables of sx_tf_vocabulary(). Each is one node of the graph, because TensorFlow 2's loader
 * gives every HashTableV2 a table of its own, whatever its shared name. The caller writes what
 * fills them. */
typedef struct sx_tf_vocabulary_table {
    struct sx_tf_vocabulary_table *next;
    const char *shared_name;
    sx_bytes lines; /* of the words, each with its line feed */
    int64_t first_id;
    sx_tf_value handle; /* in the graph */
} sx_tf_vocabulary_table;

const sx_tf_vocabulary_table *sx_tf_graph_vocabularies(const sx_tf_graph *graph);

/* The first error, or the message: owned by the graph, valid until destroy. */
SX_MUST_USE sx_status sx_tf_graph_finish(sx_tf_graph *graph, Tensorflow__GraphDef **out_message);

/* Which output of operator `op` is item `index` of its output argument `arg`; `index` itself for an
 * operator or argument that the table does not have. */
int sx_tf_op_output(const char *op, sx_bytes arg, int index);

/* How many outputs operator `op` has; -1 for one that the table does not have, or whose number of
 * outputs depends on its attributes. */
int sx_tf_op_outputs(const char *op);

#endif
