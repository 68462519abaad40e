/* The parts of the text form shared by printer and parser, and used by libraries. */
#ifndef SX_GRAPH_TEXT_H
#define SX_GRAPH_TEXT_H

#include "base/buffer.h"
#include "base/digest.h"
#include "graph/ir.h"
#include "graph/lexer.h"

enum { SX_GRAPH_MAX_TEXT_BYTES = 1 << 30 };

extern const char *const sx_role_names[];        /* by sx_variable_role, NULL-terminated */
extern const char *const sx_initializer_names[]; /* by sx_initializer, NULL-terminated */

/* Limits of a text over all its graphs and regions; 0 = the default maximum. */
typedef struct sx_parse_limits {
    int64_t nodes;          /* SX_GRAPH_MAX_NODES */
    int64_t constant_bytes; /* 1 GiB */
    int64_t functions;      /* of a library: SX_LIBRARY_MAX_FUNCTIONS */
} sx_parse_limits;

/* A text being read, and the limits used so far. */
typedef struct sx_parser {
    sx_lexer lexer;
    sx_parse_limits limits;
    int64_t nodes, constant_bytes;
    int depth; /* of regions */
} sx_parser;

/* Without a first line; `depth` times two spaces before each. */
void sx_graph_print_lines(const sx_graph *g, int depth, sx_buf *out);

/* Of the text, constants included: equal digests, equal graphs. Without `names` those of nodes,
 * inputs and outputs do not count, nor places in source files: graphs with equal digests compute
 * the same from the same variables. */
SX_MUST_USE sx_status sx_graph_digest(const sx_graph *g, bool names, sx_digest *out);

/* "sextant-<form> <version>": takes it and checks the version against `newest`. */
SX_MUST_USE sx_status sx_parse_first_line(sx_parser *p, const char *form, int newest,
                                          int64_t *out_version);
/* Lines up to "end", or the end of the text. `version` 1 has no regions. */
SX_MUST_USE sx_status sx_parse_graph_lines(sx_parser *p, bool general, int64_t version,
                                           sx_graph **out);
/* A variable's type, name, role and initializer, from after the word and its value. */
SX_MUST_USE sx_status sx_parse_variable(sx_lexer *l, sx_arg *out, sx_type *out_type);
/* The same line's end: " weight zeros 0.1". */
void sx_print_variable(const sx_arg *arg, sx_buf *out);

#endif
