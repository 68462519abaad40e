/* Shared by import.c and import_ops.c: the values of imported nodes. */
#ifndef SX_SAVEDMODEL_IMPORT_INTERNAL_H
#define SX_SAVEDMODEL_IMPORT_INTERNAL_H

#include "savedmodel/import.h"
#include "savedmodel/import_common.h"

typedef enum sx_imported_kind {
    SX_IMPORTED_NONE = 0, /* an output that its row does not set */
    SX_IMPORTED_REFUSED,  /* of a refused operator, or of one that reads from it */
    SX_IMPORTED_VALUE,    /* of the graph being built */
    SX_IMPORTED_CONST,    /* a constant without a node so far */
    SX_IMPORTED_SHAPE,    /* int32 like CONST, where -1 is the batch: valid only as a shape */
    SX_IMPORTED_HANDLE,   /* of a variable */
    SX_IMPORTED_STRINGS,  /* the input of encoded images */
    SX_IMPORTED_LOOKUP,   /* strings looked up by index */
} sx_imported_kind;

typedef struct sx_imported {
    sx_imported_kind kind;
    sx_value value;     /* VALUE; LOOKUP: the indices */
    sx_tensor constant; /* CONST, SHAPE; LOOKUP: the strings */
    sx_value *node;     /* CONST: the node made at its first use, shared by all uses; may be NULL */
    const char *variable; /* HANDLE: its checkpoint key */
    sx_type type;         /* HANDLE */
} sx_imported;

typedef struct sx_importer {
    const sx_saved_model *model;
    sx_import *result;
    sx_arena *arena; /* the result's */
    sx_builder *b;
    sx_import_refusals refused;
    int n_nodes; /* inlined so far */
    int depth;   /* of calls */
} sx_importer;

/* One node being imported. `out` has room for `n_out` results, all NONE: a few more than the node
 * has inputs. */
typedef struct sx_import_node {
    const Tensorflow__NodeDef *node;
    const sx_imported *in; /* data inputs */
    int n_in;
    sx_imported *out;
    int n_out;
    const struct sx_import_row *row;
} sx_import_node;

/* Sets out[]. An UNIMPLEMENTED error refuses this node and the import continues; other errors end
 * it. */
typedef sx_status sx_import_fn(sx_importer *im, sx_import_node *n);

typedef struct sx_import_row {
    const char *tf_op;
    sx_import_fn *import;
    const char *same_as; /* TensorFlow's other name of it, or NULL */
} sx_import_row;

/* The row of a TensorFlow operator, or one for all that operators read themselves (from_tf); NULL
 * if it is not supported. */
const sx_import_row *sx_import_find(const char *tf_op);

/* Checks all inputs of the nodes of a graph or of the body of a function, needed or not, as
 * TensorFlow does: each names a node or an argument, data inputs come before control inputs, and no
 * node depends on itself, also through control inputs, but for the back edges of while loops.
 * `index` maps names to numbers + 1. DATA_LOSS names the node. */
SX_MUST_USE sx_status sx_import_check_edges(Tensorflow__NodeDef *const *nodes, size_t n_nodes,
                                            const sx_map *index,
                                            const Tensorflow__OpDef *signature);

/* A constant becomes a node; anything other than a value or a constant is UNIMPLEMENTED. */
SX_MUST_USE sx_status sx_import_value(sx_importer *im, const sx_imported *v, sx_value *out);

#endif
