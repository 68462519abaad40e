/* Writing a SavedModel (reference 03, recipe B): a graph with variables that a restore operation
 * fills from a checkpoint, signatures, assets.
 *
 *   dir/saved_model.pb         one MetaGraphDef, tag `serve`, no object graph
 *   dir/variables/variables.*  a tensor bundle under the variables' names; absent without variables
 *   dir/assets/<name>          files that the graph names
 *
 * For every variable v the graph has v (VarHandleOp), v/Read/ReadVariableOp, and
 * save/AssignVariableOp_i (its initializer too: a variable has no value but the checkpoint's).
 *
 * The directory appears under its final name complete, or not at all: it is written and synced
 * beside it, under a name that no server takes for a version, and renamed. Existing ones are never
 * replaced.
 *
 * Life cycle: create -> nodes, variables, signatures, assets -> write -> destroy. One thread. */
#ifndef SX_SAVEDMODEL_SAVED_MODEL_WRITE_H
#define SX_SAVEDMODEL_SAVED_MODEL_WRITE_H

#include "savedmodel/names.h"
#include "savedmodel/tf_graph.h"

typedef struct sx_saved_model_writer sx_saved_model_writer;

/* Gives a variable's value when the checkpoint is written: fills out[sx_type_bytes(type)]. */
typedef sx_status sx_read_variable_fn(void *user, const char *name, const sx_type *type, void *out);

SX_MUST_USE sx_status sx_saved_model_writer_create(sx_saved_model_writer **out_writer);
void sx_saved_model_writer_destroy(sx_saved_model_writer *w); /* NULL is fine */

/* Where the graph's nodes go. */
sx_tf_writer *sx_saved_model_nodes(sx_saved_model_writer *w);

/* Declares a variable and returns its value (the output of its read). `name` is its key in the
 * checkpoint. Errors are kept and come out of sx_saved_model_write(). */
sx_tf_value sx_saved_model_variable(sx_saved_model_writer *w, const char *name, const sx_type *type,
                                    bool trainable);

/* Adds the file assets/`filename` with a copy of `contents`, and returns the string scalar that is
 * its path when the model is loaded. INVALID_ARGUMENT (kept): a name that leads elsewhere. */
sx_tf_value sx_saved_model_asset(sx_saved_model_writer *w, const char *filename, sx_bytes contents);

/* Starts a signature; inputs and outputs follow. SX_BATCH and SX_DYNAMIC are unknown dimensions. */
void sx_saved_model_signature(sx_saved_model_writer *w, const char *key);
void sx_saved_model_input(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                          const sx_type *type);
void sx_saved_model_output(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                           const sx_type *type);

/* Writes everything as directory `dir`, whose parent is made if need be. `read` is called once for
 * each variable, one at a time; it may be NULL when there are none. ALREADY_EXISTS: there is
 * something of that name. Otherwise the first error kept. */
SX_MUST_USE sx_status sx_saved_model_write(sx_saved_model_writer *w, const char *dir,
                                           sx_read_variable_fn *read, void *user);

#endif
