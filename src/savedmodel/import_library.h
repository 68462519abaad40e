/* Imports the signatures of a SavedModel as functions of a library (sextant/function.h).
 *
 *   signature "serving_default"   function "serving_default": inputs and outputs by the
 *                                 signature's keys; an unknown first dimension is the batch, or,
 *                                 if several inputs have one, a symbol of that input: it becomes
 *                                 the batch where the sizes are equal
 *   FunctionDef                   a function for each combination of argument types that a call
 *                                 passes
 *   PartitionedCall, a call       call
 *   If, While                     if, while: the branches and bodies become regions. A handle that
 *                                 they only read becomes a value, which a device can use
 *   Switch, Merge, Enter … in the graph (import_v1_control.h): If and While
 *   TensorList, TensorArray       one value [n, ...]
 *   Optional, lists of variants   the values in them, and whether they are held
 *   tf.custom_gradient            custom_gradient, or refuse_gradient without its function
 *   control edges                 the order of nodes: assignments and asserts keep theirs
 *   variables                     the library's, by their checkpoint keys
 *   lookup tables                 by name, in attributes of the nodes that use them
 *
 * Shapes stay as general as they are in the model: dimensions and ranks may be unknown. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_H

#include "base/cancel.h"
#include "graph/library.h"
#include "savedmodel/saved_model_read.h"

/* 0 = the default. */
typedef struct sx_import_limits {
    int64_t nodes;     /* imported, in all functions: 200,000 */
    int64_t functions; /* of the library: 10,000 */
    int64_t calls;     /* nested: 64 */
    /* Of all constants: 1 GiB, or without `memory` sx_saved_model_budget() */
    int64_t constant_bytes;
    bool devices;            /* nodes are on the devices that NodeDef.device says; else on none */
    const sx_cancel *cancel; /* checked before each node; NULL = none */
    sx_budget *memory;       /* charged for the library, which it outlives; NULL = none */
} sx_import_limits;

/* `model` may be closed afterwards. *out_library is finished. out_refused[] has an element for each
 * signature of the model, in its order: NULL, or why it is not in the library, which the caller
 * frees: UNIMPLEMENTED names all nodes that cannot be imported, by operator and name; DATA_LOSS: an
 * invalid graph. Errors: RESOURCE_EXHAUSTED: a limit, of all signatures together; CANCELLED,
 * DEADLINE_EXCEEDED: according to `cancel`. */
SX_MUST_USE sx_status sx_import_library(const sx_saved_model *model, const sx_import_limits *limits,
                                        sx_library **out_library, sx_status *out_refused);

/* Imports what initializes the model (sx_saved_model_init_op) as function SX_INIT_SIGNATURE of a
 * library, without arguments and results; it is run once, before any other, and names the same
 * tables (graph/tables.h) and variables. The paths of assets are relative to the model's directory.
 * *out_library is NULL if there is nothing to run. */
SX_MUST_USE sx_status sx_import_initializer(const sx_saved_model *model,
                                            const sx_import_limits *limits,
                                            sx_library **out_library);

/* Whether a TensorFlow operator can be imported, in the form that its nodes most often have. */
bool sx_tf_import_has_op(const char *tf_op);
/* Why an operator that has none is left out; "" if there is no more to say. */
const char *sx_tf_import_why_not(const char *tf_op);
/* The names of those that the importer itself reads, not one operator of ours; NULL ends them. */
const char *sx_tf_import_op_name(size_t i);
/* The operator of ours that the node and those before it stand for, if it has the attribute that
 * export gave it (import_composed.c), and how it is read; else NULL. The nodes before it say to
 * other runtimes how the operator is computed, and are not imported. */
const struct sx_op_def *sx_tf_composed_op(const Tensorflow__NodeDef *node,
                                          const struct sx_tf_form **out_form);

#endif
