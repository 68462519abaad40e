/* What nodes and functions of TensorFlow say, for the importer (import_library.h), and the list of
 * nodes that cannot be imported. */
#ifndef SX_SAVEDMODEL_IMPORT_COMMON_H
#define SX_SAVEDMODEL_IMPORT_COMMON_H

#include "base/map.h"
#include "graph/builder.h"
#include "graph/lower/tf_reader.h"
#include "savedmodel/saved_model_read.h"

/* RESOURCE_EXHAUSTED */
SX_MUST_USE sx_status sx_import_memory(void);

/* ---- Nodes ---- */

/* A node as the operators' `from_tf` reads it. Who reads its inputs sets `head`'s types, values and
 * n_in. */
typedef struct sx_import_reader {
    sx_tf_node head;
    const Tensorflow__NodeDef *node;
    sx_arena *arena; /* of attributes that are texts */
    sx_builder *b;   /* fails if there is no memory for a text */
} sx_import_reader;

sx_import_reader sx_import_reader_of(const Tensorflow__NodeDef *node, sx_arena *arena,
                                     sx_builder *b);

/* Whether an attribute of the node is one of TensorFlow's later types (sx_tf_dtype_is_new), and the
 * name of that. */
bool sx_import_has_new_dtype(const Tensorflow__NodeDef *node, char text[SX_TF_DTYPE_TEXT]);

/* The integers of input number `input`, a constant; UNIMPLEMENTED if it is not a list, or one
 * number. */
SX_MUST_USE sx_status sx_import_ints(const sx_tensor *constant, int input, sx_ints *out);

/* The value of a Const, in `arena`. */
SX_MUST_USE sx_status sx_import_const_value(const Tensorflow__NodeDef *node, sx_arena *arena,
                                            sx_tensor *out);

/* Whether the checkpoint has a value for the variable of a VarHandleOp. */
bool sx_import_variable_is_saved(const sx_saved_model *model, const Tensorflow__NodeDef *node);
/* The name of the table that keeps that variable, if one does (graph/ops/kept_variable.h). NULL: no
 * memory. */
const char *sx_import_kept_name(const sx_saved_model *model, const Tensorflow__NodeDef *node,
                                sx_arena *arena);
/* The checkpoint key and the type of the variable of a VarHandleOp. DATA_LOSS: the checkpoint has
 * no value for it. */
SX_MUST_USE sx_status sx_import_variable(const sx_saved_model *model,
                                         const Tensorflow__NodeDef *node, const char **out_key,
                                         sx_type *out_type);

/* ---- Functions ---- */

/* Whether nodes of the operator call the function that their attribute f names. */
bool sx_import_is_call(const char *op);

/* The name of the function that a node calls, if there is one of that name; NULL if it does not.
 * `supported`: its operator is one that the importer knows. */
const char *sx_import_called(const Tensorflow__NodeDef *node, bool supported);

/* The output of `node` that a reference names: inside a function "node:arg:k" is output k of that
 * output argument, elsewhere "node:k". `function` is what the node calls, or NULL; `op` its
 * operator's definition in the model, or NULL. -1: none. */
int sx_import_output_of(const Tensorflow__FunctionDef *function, const Tensorflow__OpDef *op,
                        const Tensorflow__NodeDef *node, const sx_tf_ref *ref);

/* The references that a function returns: out[outputs]. DATA_LOSS: it lacks one. */
SX_MUST_USE sx_status sx_import_returned(const Tensorflow__FunctionDef *function, const char **out);

/* The argument of a function that a reference in its body names, or -1. `signature` may be NULL. */
int sx_import_find_arg(const Tensorflow__OpDef *signature, const sx_tf_ref *ref);

/* Checks all inputs of the nodes of a graph or of the body of a function, needed or not, as
 * TensorFlow does: each names a node or an argument, data inputs come before control inputs, and no
 * node depends on itself, also through control inputs, but for the back edges of while loops.
 * `index` maps names of nodes to numbers + 1, `args` those of arguments. DATA_LOSS names the node.
 */
SX_MUST_USE sx_status sx_import_check_edges(Tensorflow__NodeDef *const *nodes, size_t n_nodes,
                                            const sx_map *index, const sx_map *args);

/* ---- Nodes that cannot be imported ---- */

enum { SX_IMPORT_MAX_REFUSALS = 1024 }; /* kept for the message */

typedef struct sx_import_refusals {
    struct {
        const char *op, *node;
        const char *function; /* whose body it is in; NULL = the graph */
        const char *why;      /* "" = the operator itself is not supported */
    } items[SX_IMPORT_MAX_REFUSALS];
    int n; /* may exceed SX_IMPORT_MAX_REFUSALS */
} sx_import_refusals;

/* Adds a node of a function (NULL = of the graph); `why` is copied into `arena`. */
SX_MUST_USE sx_status sx_import_refuse(sx_import_refusals *list, sx_arena *arena,
                                       const Tensorflow__NodeDef *node, const char *function,
                                       const char *why);

/* UNIMPLEMENTED, with all operators, how many nodes they have, and the first nodes of each:
 * unsupported operators: Erf (2 nodes: "a", "b" of function "f"), Conv2D (1 node: "c": data_format
 * is not NHWC) */
SX_MUST_USE sx_status sx_import_refusals_error(const sx_import_refusals *list);

#endif
