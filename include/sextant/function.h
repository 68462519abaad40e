/* Functions: programs whose shapes are not known yet.
 *
 * A function's body is a graph whose values have declared types: dimensions may be unknown
 * (SX_UNKNOWN_DIM, SX_UNKNOWN_RANK), attributes may be operands, nodes may call other functions. A
 * library contains functions by name, and the variables that they read and assign. Running a
 * function with tensors (sextant/functions.h) compiles a static program for their types.
 *
 *     sx_builder *b;
 *     sx_builder_create_function(&b);
 *     sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_UNKNOWN_DIM, 4));
 *     sx_type type = sx_type_of_value(b, x);
 *     sx_value y = sx_function_node(b, "neg", NULL, &x, 1, NULL, 0, &type, 1);
 *     sx_output(b, "y", y);
 *     sx_library_add(library, "negate", b);
 *     sx_builder_destroy(b);
 *
 * Life cycle: sx_library_create -> variables, functions -> sx_library_finish; from then on the
 * library is immutable, and any thread may use it. */
#ifndef SEXTANT_FUNCTION_H
#define SEXTANT_FUNCTION_H

#include <sextant/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_library sx_library;

/* Creates an empty library, owned by the caller. Fails only if out of memory. */
SX_API SX_MUST_USE sx_status sx_library_create(sx_library **out_library);
SX_API void sx_library_destroy(sx_library *library); /* NULL is fine */

/* Declares a variable, by its full name. Its type is static. Errors: ALREADY_EXISTS. */
SX_API SX_MUST_USE sx_status sx_library_add_variable(sx_library *library,
                                                     const sx_variable_spec *spec);
/* Finishes the builder, created by sx_builder_create_function(), and adds its graph as function
 * `name`, with the graph's inputs and outputs in order. Returns the builder's first error, if any.
 * Errors: ALREADY_EXISTS; RESOURCE_EXHAUSTED: too many functions; INVALID_ARGUMENT: a variable that
 * another function has with another type. */
SX_API SX_MUST_USE sx_status sx_library_add(sx_library *library, const char *name, sx_builder *b);
/* Checks that all functions and variables in use exist, and that calls match them in the number and
 * dtypes of inputs and outputs. Nothing can be added afterwards. Errors: INVALID_ARGUMENT, naming
 * the node. */
SX_API SX_MUST_USE sx_status sx_library_finish(sx_library *library);

/* The canonical text form of a finished library, "sextant-library 2\n…" (sx_text_free). */
SX_API SX_MUST_USE sx_status sx_library_print(const sx_library *library, char **out_text);
/* Parses the text form; the new library is finished. The text may be untrusted: nodes, functions,
 * constants and the nesting of regions are limited. */
SX_API SX_MUST_USE sx_status sx_library_parse(const char *text, size_t size,
                                              sx_library **out_library);

/* Creates a builder for the body of a function or for a region in it. sx_input() declares a
 * parameter of any type. sx_variable() reads a variable of the library, which sx_library_add() adds
 * to it if it is new; sx_assign() assigns it. Operators of sextant/ops.h and layers can be used if
 * the ranks of all operands are known: dimensions that are unknown are taken to be equal, which
 * running the function checks. A size that depends on them is an operand: x [?,32] is reshaped to
 * [?,4,8] by sx_function_node(), "reshape" with "shape=%7", where value 7 is the constant {-1,4,8}.
 * sx_function_node() can always be used. */
SX_API SX_MUST_USE sx_status sx_builder_create_function(sx_builder **out_builder);

/* Adds a function's nodes to the graph of a model (sx_builder_create()): it is made for the types
 * of `inputs`, with N as it is. Calls are inlined; loops and branches stay, where all of their
 * sizes are known; outputs[n_outputs] get its results. Variables are the model's, by their full
 * names: of two calls of a function they are the same. The model trains, on any shards and devices,
 * and is exported as if it had been built of these nodes. `library` is finished, and may be
 * destroyed afterwards. Errors, kept by the builder: NOT_FOUND; INVALID_ARGUMENT: inputs that the
 * function does not take; UNIMPLEMENTED: a node that runs on the host, or whose sizes data decide;
 * a function that is another one for some size of the batch. */
SX_API void sx_call_function_at(sx_builder *b, const sx_library *library, const char *function,
                                const sx_value *inputs, int n_inputs, sx_value *outputs,
                                int n_outputs, const char *file, int line);
#define sx_call_function(b, library, function, inputs, n_inputs, outputs, n_outputs)              \
    sx_call_function_at((b), (library), (function), (inputs), (n_inputs), (outputs), (n_outputs), \
                        SX_HERE_)

/* Adds a node of any operator of sextant-operators(7), with the declared types of its outputs.
 * `attrs` is as in the text form, "axes=[0], keep_dims=true", NULL = none; an attribute that is an
 * operand is the value's id: "shape=%4". `regions` are the builders of the operator's regions, in
 * order; this call finishes them, the caller destroys them. Returns the first of the outputs.
 *
 * sx_gradients() in a function: the gradient of a call is a call of the function's gradient
 * function, whatever the shapes (attribute `gradient`); other nodes on the path need known shapes,
 * and none of their attributes may be an operand. */
SX_API sx_value sx_function_node(sx_builder *b, const char *op, const char *attrs,
                                 const sx_value *inputs, int n_inputs, sx_builder *const *regions,
                                 int n_regions, const sx_type *types, int n_types);

#ifdef __cplusplus
}
#endif
#endif
