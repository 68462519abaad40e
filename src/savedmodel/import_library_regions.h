/* Regions under construction: what branches (import_library_branches.c) and loops
 * (import_library_loops.c) have in common.
 *
 * A region sees only its operands, and these are values: a variable that no branch or body assigns
 * is read before, and a list of tensors (import_library_lists.c) whose shape is not known gets it
 * from a trial, which imports the functions once beside the node, for the types of their results.
 * No result reads these nodes, so they do not run, nor are they specialized: they may be wrong
 * where the loop has no trip. A trial leaves out effects. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_REGIONS_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_REGIONS_H

#include "savedmodel/import_library_ops.h"

/* ---- Things ---- */

bool sx_tf_has_value(const sx_tf_thing *t);
/* Whether it is a list of tensors whose shape is not known. */
bool sx_tf_lacks_shape(const sx_tf_thing *t);
/* Whether one of two lists whose shape is not known could be in the place of the other: they are as
 * long, since they are the same, or that is known. */
bool sx_tf_are_as_long(const sx_tf_thing *a, const sx_tf_thing *b);
/* Whether it is a list that could give its shape to another. */
bool sx_tf_has_shape(const sx_tf_thing *t);
/* The inputs from number `first` on, to be changed. */
SX_MUST_USE sx_status sx_tf_copy_args(const sx_tf_op_node *x, int first, sx_tf_thing **out);
/* A region takes and gives a complex tensor as one of real numbers: its value, while the regions
 * are built. */
SX_MUST_USE sx_status sx_tf_join_all(const sx_tf_op_node *x, sx_tf_thing *things, int n);
/* Whether the type leaves something of the shape open. */
bool sx_tf_is_open(const sx_type *type);
/* What both types have in common. */
sx_type sx_tf_join_types(sx_type a, const sx_type *b);

/* ---- Functions ---- */

/* DATA_LOSS if the function has other numbers of them. */
SX_MUST_USE sx_status sx_tf_check_signature(const Tensorflow__FunctionDef *function, int n_args,
                                            int n_results);
/* Room for the function's results as outputs, and how many there are. */
SX_MUST_USE sx_status sx_tf_make_room(sx_tf_op_node *x, const Tensorflow__FunctionDef *function,
                                      int *out_n);
/* Values in place of handles, unless one of the functions assigns variables. */
SX_MUST_USE sx_status sx_tf_only_read(const sx_tf_op_node *x,
                                      const Tensorflow__FunctionDef *const *functions,
                                      int n_functions, sx_tf_thing *args, int n);
/* Imports a function in place, without its effects. */
SX_MUST_USE sx_status sx_tf_try_function(const sx_tf_op_node *x,
                                         const Tensorflow__FunctionDef *function,
                                         const sx_tf_thing *args, int n, sx_tf_thing *results);
/* Imports the body of a loop, or a branch, into `b`. `things`: what `passed` is there. */
SX_MUST_USE sx_status sx_tf_import_passing(const sx_tf_op_node *x,
                                           const Tensorflow__FunctionDef *function, sx_builder *b,
                                           const sx_tf_thing *args, int n_args,
                                           const sx_tf_passed *passed, const sx_tf_thing *things,
                                           sx_tf_thing *results);
/* A condition that is a number is true if it is not 0. */
SX_MUST_USE sx_status sx_tf_to_bool(const sx_tf_op_node *x, sx_value v, sx_value *out);

/* ---- Trips: import_library_trips.c ---- */

enum { SX_TF_DIFFERENT_VALUE = 1, SX_TF_DIFFERENT_SHAPE = 2 };

/* What the values of a builder, that of a loop's body or of a branch in one, differ in from one
 * trip to the next. */
typedef struct sx_tf_trips {
    const sx_builder *b;
    sx_arena *arena;
    uint8_t *differs; /* [n_values], of those that nodes [0, n_nodes) make */
    int n_values, capacity, n_nodes;
} sx_tf_trips;

/* Notes that a value differs; those that are computed from it later do, too. */
SX_MUST_USE sx_status sx_tf_trips_note(sx_tf_trips *t, sx_value v, unsigned differs);
/* What a value of `b` differs in: 0 outside of loops. */
SX_MUST_USE sx_status sx_tf_differs(const sx_library_importer *im, const sx_builder *b, sx_value v,
                                    unsigned *out);

/* ---- Regions ---- */

typedef struct sx_tf_region {
    sx_builder *b;
    sx_tf_thing *args; /* the node's arguments as they are inside */
    int refused;       /* nodes, before */
    sx_tf_trips trips; /* its arguments differ as they do outside of it */
} sx_tf_region;

/* The region takes the arguments order[n_order], all of which have values. Destroy out->b. */
SX_MUST_USE sx_status sx_tf_region_begin(const sx_tf_op_node *x, const sx_tf_thing *args,
                                         const sx_type *types, int n, const int *order, int n_order,
                                         sx_tf_region *out);
sx_type sx_tf_type_in(const sx_builder *b, const sx_tf_thing *t);
/* The value of an argument that is a constant inside a region, too: of axes, strides, shapes. */
const sx_tensor *sx_tf_small_constant(const sx_tf_op_node *x, const sx_tf_thing *arg);
/* Arguments that are small constants, of those that are `chosen` (NULL: of all), are constants of
 * the region. */
SX_MUST_USE sx_status sx_tf_keep_constants(const sx_tf_op_node *x, const sx_tf_thing *args,
                                           const bool *chosen, int n, sx_tf_region *r);
/* Whether no node of it was refused. */
bool sx_tf_region_is_whole(const sx_tf_op_node *x, const sx_tf_region *r,
                           const sx_tf_thing *results, int n);
/* The region gives the results order[n_order] that have values; one without results, which runs
 * for what it assigns, gives true. The caller destroys *out. */
SX_MUST_USE sx_status sx_tf_region_end(const sx_tf_op_node *inside, const sx_tf_region *r,
                                       const sx_tf_thing *results, const int *order, int n_order,
                                       sx_graph **out);

#endif
