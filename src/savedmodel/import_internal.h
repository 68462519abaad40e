/* What import.c and import_ops.c share: values on their way from TensorFlow nodes to ours. */
#ifndef SX_SAVEDMODEL_IMPORT_INTERNAL_H
#define SX_SAVEDMODEL_IMPORT_INTERNAL_H

#include "base/buffer.h"
#include "savedmodel/import.h"

typedef enum sx_imported_kind {
    SX_IMPORTED_NONE = 0, /* an output that its row does not set */
    SX_IMPORTED_REFUSED,  /* of an operator that was refused, or that reads from such a one */
    SX_IMPORTED_VALUE,    /* of our graph */
    SX_IMPORTED_CONST,    /* a constant that has not become a node yet */
    SX_IMPORTED_SHAPE,    /* int32 like CONST, where -1 is the batch: good for shapes only */
    SX_IMPORTED_HANDLE,   /* of a variable */
    SX_IMPORTED_STRINGS,  /* the input of encoded images */
    SX_IMPORTED_LOOKUP,   /* strings by number */
} sx_imported_kind;

typedef struct sx_imported {
    sx_imported_kind kind;
    sx_value value;       /* VALUE; LOOKUP: the numbers */
    sx_tensor constant;   /* CONST, SHAPE; LOOKUP: the strings */
    sx_value *node;       /* CONST: the node that its first use made, shared by all; may be NULL */
    const char *variable; /* HANDLE: its checkpoint key */
    sx_type type;         /* HANDLE */
} sx_imported;

/* A node that cannot be imported. */
typedef struct sx_import_refusal {
    const char *op, *node;
    const char *why; /* "" = the operator as such */
} sx_import_refusal;

enum { SX_IMPORT_MAX_REFUSALS = 64 }; /* that are kept for the message */

typedef struct sx_importer {
    const sx_saved_model *model;
    sx_import *result;
    sx_arena *arena; /* the result's */
    sx_builder *b;
    sx_import_refusal refused[SX_IMPORT_MAX_REFUSALS];
    int n_refused; /* may be greater than what is kept */
    int n_nodes;   /* inlined so far */
    int depth;     /* of calls */
} sx_importer;

/* One node being imported. `out` has room for `n_out` results, all NONE: as many as the node has
 * inputs, and some. */
typedef struct sx_import_node {
    const Tensorflow__NodeDef *node;
    const sx_imported *in; /* data inputs */
    int n_in;
    sx_imported *out;
    int n_out;
    const struct sx_import_row *row;
} sx_import_node;

/* Sets out[]. An error of code UNIMPLEMENTED refuses this node and goes on; others end the import.
 */
typedef sx_status sx_import_fn(sx_importer *im, sx_import_node *n);

typedef struct sx_import_row {
    const char *tf_op;
    sx_import_fn *import;
    const char *op; /* ours, where there is one to one */
} sx_import_row;

/* The row of a TensorFlow operator; NULL if there is none. */
const sx_import_row *sx_import_find(const char *tf_op);

/* A constant becomes a node; anything else than a value or a constant is UNIMPLEMENTED. */
SX_MUST_USE sx_status sx_import_value(sx_importer *im, const sx_imported *v, sx_value *out);

#endif
