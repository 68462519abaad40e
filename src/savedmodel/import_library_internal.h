/* Shared by import_library.c, which imports signatures, import_library_nodes.c, which walks graphs
 * and functions, and the other import_library_*.c, which import their nodes. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_INTERNAL_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_INTERNAL_H

#include "graph/ops/kept_variable.h"
#include "graph/tables.h"
#include "proto/saved_object_graph.pb-c.h"
#include "savedmodel/import_common.h"
#include "savedmodel/import_library.h"

typedef enum sx_tf_thing_kind {
    SX_TF_NOTHING = 0, /* an output that is not imported */
    SX_TF_REFUSED,     /* of a refused node, or of one that reads from it */
    SX_TF_VALUE,
    SX_TF_HANDLE,  /* of a variable: a value of dtype resource */
    SX_TF_REF,     /* a handle of TensorFlow 1, or a tensor that shares the variable's memory: it
                    * reads as what the variable has where it is used; no value if a table keeps
                    * that */
    SX_TF_READ,    /* of a variable that is only read: its value */
    SX_TF_LIST,    /* of tensors: [n, ...]; no value while their shape is unknown */
    SX_TF_COMPLEX, /* a complex tensor: no value, but its parts */
    SX_TF_TABLE,   /* the handle of a lookup table, or of a variable that one keeps: no value */
    SX_TF_ARRAY,   /* the handle of a TensorArrayV3: no value, its tensors are the flow's, a LIST */
    SX_TF_OPTIONAL, /* no value: its items are TUPLEs, what it may hold (import_library_variants.c)
                     */
    SX_TF_TUPLE,    /* its value is whether an optional holds it: its items */
} sx_tf_thing_kind;

/* A lookup table of the graph, or a variable that a table keeps. */
typedef struct sx_tf_table {
    sx_table_attrs attrs;
    const sx_tensor *reserved[2];           /* of a dense one: its empty and its deleted key */
    const sx_kept_variable_attrs *variable; /* NULL: a lookup table */
} sx_tf_table;

/* What a reference of TensorFlow stands for. */
typedef struct sx_tf_thing {
    sx_tf_thing_kind kind;
    sx_value value;
    const sx_tensor *known; /* of a Const */
    sx_type variable;       /* HANDLE; LIST: dtype and length, which may be unknown */
    sx_value length;        /* LIST without a value: int scalar, or none */
    int list;               /* LIST without a value: which one */
    bool resized;           /* LIST without a value: it had another length */
    const sx_tf_table *table;
    bool shared;       /* REF: not the variable, but a tensor that shares its memory */
    sx_value parts[2]; /* COMPLEX: real, imaginary */
    bool grows;        /* ARRAY: a tensor beyond the end extends it */
    bool of_complex;   /* LIST: its tensors are complex, the parts their last dimension */
    sx_dtype uneven;   /* LIST: its tensors' dtype if each is a string that holds it, of any shape
                        * (graph/ops/ragged_variant.h); else NONE */
    bool apart;        /* LIST: not read as one tensor */
    struct sx_tf_thing *items; /* OPTIONAL, TUPLE; LIST of variants: of each leaf of an element */
    int n_items;
    const struct sx_tf_thing *element; /* LIST of variants, which has no value: what they are like,
                                        * their leaves' types in `variable`; else NULL */
} sx_tf_thing;

/* How a list of tensors is read: as one tensor, or not at all; tensor by tensor; concatenated. */
typedef enum sx_tf_reading {
    SX_TF_READ_WHOLE = 0,
    SX_TF_READ_APART,
    SX_TF_CONCATENATED,
} sx_tf_reading;

/* The graph, or a function, for some argument types. */
typedef struct sx_tf_body {
    sx_builder *b;
    Tensorflow__NodeDef *const *nodes;
    size_t n_nodes;
    const Tensorflow__FunctionDef *function; /* NULL: the graph */
    const struct sx_tf_body *outer;          /* that calls it in place; NULL: none */
    const sx_tf_thing *args;
    int n_args;
    sx_map index;          /* name -> node number + 1 */
    sx_map arg_index;      /* name of an argument -> its number + 1 */
    sx_tf_thing **results; /* [n_nodes], NULL until imported, or if it is in `plain` */
    int *n_results;
    sx_value *plain;         /* [n_nodes]: of a node that gives one value and nothing else */
    struct sx_tf_use **uses; /* [n_nodes]: who reads them; NULL until asked for */
    sx_tf_reading *readings; /* [n_nodes]: how the lists that it makes are read; NULL likewise */
} sx_tf_body;

/* What a loop passes to its body, or a choice to its branches, beside the arguments: what gradient
 * functions of nodes in it read outside. */
typedef struct sx_tf_passed {
    const int64_t *ids;        /* [n]: objects of the model */
    const sx_tf_thing *things; /* [n]: values of b */
    int n;
    const sx_builder *b;
} sx_tf_passed;

typedef struct sx_library_importer {
    const sx_saved_model *model;
    sx_import_limits limits;
    sx_library *library;
    sx_arena arena;
    Tensorflow__NodeDef **nodes; /* of the graph, without control flow of TensorFlow 1 */
    size_t n_graph_nodes;
    sx_map defs;      /* name -> FunctionDef */
    sx_map made;      /* name and argument types -> the function */
    sx_map changes;   /* name of a FunctionDef -> how it changes its arguments, [arguments + 1] */
    sx_map changed;   /* name of a variable's node of the graph -> how signatures change it */
    sx_map gradients; /* type of a gradient -> RegisteredGradient */
    sx_map concrete;  /* name of a function -> SavedConcreteFunction */
    sx_map outside;   /* name of a function -> what its gradients read outside of it */
    Tensorflow__SavedObjectGraph *objects; /* NULL: the model has no gradient functions */
    const struct sx_tf_active_gradient *active;
    const sx_tf_passed *passed; /* to the innermost body of a loop, or branch; NULL: nothing */
    struct sx_tf_trips *trips;  /* of the innermost such body in a loop; NULL: in none */
    int64_t n_nodes, constant_bytes, depth;
    int64_t innermost; /* the depth of the latest function whose import is not complete */
    int untold;        /* functions between the first and the last that an error is in */
    int n_lists;       /* without values */
    int trials;        /* > 0: what is imported never runs, and has no effects */
    sx_import_refusals refused;
} sx_library_importer;

/* One node being imported. */
typedef struct sx_tf_import_node {
    const Tensorflow__NodeDef *node;
    const sx_tf_thing *in; /* data inputs */
    int n_in;
    sx_tf_thing *out; /* room for n_out, all NOTHING */
    int n_out;
} sx_tf_import_node;

/* ---- import_library_nodes.c ---- */

/* The body's names, of these nodes. Also after an error, sx_tf_body_deinit(). */
SX_MUST_USE sx_status sx_tf_body_init(sx_tf_body *body, Tensorflow__NodeDef *const *nodes,
                                      size_t n);
void sx_tf_body_deinit(sx_tf_body *body);
/* Imports the nodes that roots[n] name, and what they need. */
SX_MUST_USE sx_status sx_tf_import_roots(sx_library_importer *im, sx_tf_body *body,
                                         const char *const *roots, size_t n);

/* The argument of the function, or the number of the node, that a reference names; -1: none. */
int sx_tf_body_find_arg(const sx_tf_body *body, const sx_tf_ref *ref);
int sx_tf_body_find_node(const sx_tf_body *body, const sx_tf_ref *ref);

/* What is imported of a node: *out_n outputs; `one` is room for one. NULL: it is not imported. */
const sx_tf_thing *sx_tf_body_results(const sx_tf_body *body, int node, sx_tf_thing *one,
                                      int *out_n);

/* The FunctionDef that attribute `attr` of a node names; DATA_LOSS if there is none. */
SX_MUST_USE sx_status sx_tf_import_function_of(const sx_library_importer *im,
                                               const Tensorflow__NodeDef *node, const char *attr,
                                               const Tensorflow__FunctionDef **out);
/* Imports a function's body into `b`: args are what its arguments stand for, out[outputs] what it
 * returns. */
SX_MUST_USE sx_status sx_tf_import_body(sx_library_importer *im,
                                        const Tensorflow__FunctionDef *function, sx_builder *b,
                                        const sx_tf_thing *args, int n_args, sx_tf_thing *out);

/* A builder of a function or of a region in it, whose memory counts towards the import's limit. The
 * caller destroys it. */
SX_MUST_USE sx_status sx_tf_create_builder(const sx_library_importer *im, sx_builder **out_b);
/* The builder's error, if it has failed, in place of `status`: later nodes lack their inputs'
 * types, and say something else. */
SX_MUST_USE sx_status sx_tf_first_error(sx_builder *b, sx_status status);
/* What a reference to a tensor stands for, which is imported. */
SX_MUST_USE sx_status sx_tf_body_resolve(const sx_library_importer *im, const sx_tf_body *body,
                                         const char *text, sx_tf_thing *out);

/* ---- import_library_custom_gradients.c ---- */

/* Reads what the model says of gradient functions. */
SX_MUST_USE sx_status sx_tf_read_gradients(sx_library_importer *im);
/* The tensors of the body that are read by the gradient function of a node, or by those of nodes of
 * the functions that it calls, of its branches, of its loop. */
SX_MUST_USE sx_status sx_tf_gradient_captures(sx_library_importer *im, const sx_tf_body *body,
                                              const Tensorflow__NodeDef *node,
                                              const char *const **out, size_t *out_n);
/* Whether gradient functions of a function's nodes read something outside of it, so that a call
 * must be imported in place. */
SX_MUST_USE sx_status sx_tf_gradients_read_outside(sx_library_importer *im,
                                                   const Tensorflow__FunctionDef *function,
                                                   bool *out);

/* ---- import_composed.c ---- */

/* A node of sx_tf_composed_op(), number `node` of the body. UNIMPLEMENTED: what is fed to the nodes
 * before it is not what the operator takes. */
SX_MUST_USE sx_status sx_tf_import_composed(sx_library_importer *im, sx_tf_body *body, int node,
                                            const struct sx_op_def *op, const sx_tf_form *form,
                                            sx_tf_import_node *n);

/* ---- import_library_complex.c ---- */

/* A complex tensor of a signature is float32 or float64 in the library, with a last dimension of 2:
 * the real and the imaginary part. Sets *out to such an input; sets y->value to an output from its
 * parts. */
SX_MUST_USE sx_status sx_tf_feed_complex(sx_library_importer *im, sx_tf_body *body, const char *key,
                                         sx_type type, sx_tf_thing *out);
SX_MUST_USE sx_status sx_tf_give_complex(sx_library_importer *im, sx_tf_body *body, sx_tf_thing *y);

/* ---- import_library_devices.c ---- */

/* Replaces each function that is written for another device by its equal for the CPU, in `defs`. */
SX_MUST_USE sx_status sx_tf_choose_implementations(sx_library_importer *im);

/* ---- import_library_changes.c ---- */

typedef enum sx_tf_change {
    SX_TF_ASSIGNED = 1, /* elements or all of it, by any operator */
    SX_TF_REPLACED = 2, /* by a value that may have another shape */
} sx_tf_change;

/* Finds how the signatures, and the functions that they call, change the graph's variables. */
SX_MUST_USE sx_status sx_tf_find_changes(sx_library_importer *im);
/* Of a variable's node: sx_tf_change; 0: only read. */
unsigned sx_tf_changes_of(const sx_library_importer *im, const Tensorflow__NodeDef *node);
/* Whether a function assigns variables, by itself or in what it calls. */
SX_MUST_USE sx_status sx_tf_assigns(sx_library_importer *im,
                                    const Tensorflow__FunctionDef *function, bool *out);

/* ---- import_library_variables.c ---- */

/* Turns a tensor that shares a variable's memory into the value that it has now. */
SX_MUST_USE sx_status sx_tf_settle(sx_library_importer *im, sx_tf_body *body, sx_tf_thing *t);
/* How many of its first inputs, variables, a TensorFlow operator of that name assigns. Its row runs
 * outside of trials only; of a reference variable it gives that. */
int sx_tf_assigned_inputs(const char *tf_op);

/* ---- import_library_ops.c ---- */

/* Whether importing the node leaves more in the importer's arena than its outputs. */
bool sx_tf_import_keeps(const Tensorflow__NodeDef *node);

/* Sets n->out. UNIMPLEMENTED refuses the node, and the import goes on. */
SX_MUST_USE sx_status sx_tf_import_op(sx_library_importer *im, sx_tf_body *body,
                                      sx_tf_import_node *n);

#endif
