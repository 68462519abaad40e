/* The internals of a library (sextant/function.h): functions and variables by name. */
#ifndef SX_GRAPH_LIBRARY_H
#define SX_GRAPH_LIBRARY_H

#include <sextant/function.h>

#include "base/digest.h"
#include "base/map.h"
#include "graph/ir.h"
#include "graph/text.h"

enum { SX_LIBRARY_MAX_FUNCTIONS = 1 << 16, SX_LIBRARY_MAX_VARIABLES = 1 << 16 };

typedef struct sx_function {
    const char *name;
    sx_graph *body; /* general; args are inputs, results outputs */
    /* Once the library is finished (function_facts.c): */
    const bool *shaping; /* [args]: whether its value decides types or branches */
    const bool
        *carries;     /* [args]: that, or whether results are computed from its value beforehand */
    bool writes;      /* variables or tables, by itself or through functions that it calls */
    sx_digest digest; /* of the body's text */
} sx_function;

struct sx_library {
    sx_arena arena;
    sx_function *functions; /* [n_functions], in the order in which they were added */
    sx_variable_spec *variables;
    int n_functions, function_capacity, n_variables, variable_capacity;
    sx_map function_index, variable_index; /* name -> index + 1 */
    bool finished;
};

/* NULL if there is none. */
const sx_function *sx_library_find(const sx_library *library, const char *name);
const sx_variable_spec *sx_library_find_variable(const sx_library *library, const char *name);
/* The error NOT_FOUND of a name: what the library has instead. */
sx_status sx_library_no_function(const sx_library *library, const char *name);
sx_status sx_library_no_variable(const sx_library *library, const char *name);

/* sx_library_parse() with limits; NULL = the defaults. */
SX_MUST_USE sx_status sx_library_parse_within(const char *text, size_t size,
                                              const sx_parse_limits *limits,
                                              sx_library **out_library);

/* Fills in the facts of every function. Recursive functions, and those whose calls nest too deeply,
 * are assumed to write and to be shaped by every argument. */
SX_MUST_USE sx_status sx_library_learn(sx_library *library);
/* `shaping` of a region or a late call's function: `out` has n_args elements. */
SX_MUST_USE sx_status sx_shaping_args(const sx_library *library, const sx_graph *body, bool *out);

/* Whether rank and dimensions are known: counts and c·N. */
bool sx_is_shape_known(const sx_type *t);
/* Whether a value of type `type` may have the declared type. Unknown parts match anything. */
bool sx_type_may_be(const sx_type *type, const sx_type *declared);

#endif
