/* Names of nodes in messages. */
#ifndef SX_GRAPH_NODE_LABEL_H
#define SX_GRAPH_NODE_LABEL_H

enum { SX_NODE_LABEL = 400 };

/* The name, shorter if the node is in more than three calls: of the names of these, the first and
 * the last ("f/call/... 12 more .../g/call/add"). It is `name`, or in `text`. */
const char *sx_node_label(const char *name, char text[SX_NODE_LABEL]);

#endif
