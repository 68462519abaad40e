/* Writing a SavedModel: a graph with variables that a restore operation fills from a checkpoint,
 * signatures, assets.
 *
 *   dir/saved_model.pb         one MetaGraphDef, tag `serve`, no object graph
 *   dir/variables/variables.*  a tensor bundle, keyed by variable name; absent without variables
 *   dir/assets/<name>          files that the graph refers to
 *
 * For every variable v the graph has v (VarHandleOp), v/Read/ReadVariableOp, and
 * save/AssignVariableOp_i (its initializer too: a variable has no value but the checkpoint's).
 *
 * The directory appears complete or not at all: it is written and synced under a temporary name
 * that no server takes for a version, then renamed. An existing directory is never replaced.
 *
 * Life cycle: create -> nodes, variables, signatures, assets -> write -> destroy. One thread. */
#ifndef SX_SAVEDMODEL_SAVED_MODEL_WRITE_H
#define SX_SAVEDMODEL_SAVED_MODEL_WRITE_H

#include "savedmodel/names.h"
#include "savedmodel/tf_graph.h"

typedef struct sx_saved_model_writer sx_saved_model_writer;

/* Fills out[sx_type_bytes(type)] with a variable's value while the checkpoint is written. */
typedef sx_status sx_read_variable_fn(void *user, const char *name, const sx_type *type, void *out);

SX_MUST_USE sx_status sx_saved_model_writer_create(sx_saved_model_writer **out_writer);
void sx_saved_model_writer_destroy(sx_saved_model_writer *w); /* NULL is allowed */

/* The writer of the graph's nodes. */
sx_tf_writer *sx_saved_model_nodes(sx_saved_model_writer *w);

/* Declares a variable and returns its value (the output of its read). `name` is its key in the
 * checkpoint. Errors are kept and returned by sx_saved_model_write(). */
sx_tf_value sx_saved_model_variable(sx_saved_model_writer *w, const char *name, const sx_type *type,
                                    bool trainable);

/* The handle of a declared variable; {-1, 0} if there is none of that name. */
sx_tf_value sx_saved_model_handle(sx_saved_model_writer *w, const char *name);

/* Adds the file assets/`filename` with a copy of `contents`, and returns the string scalar that is
 * its path when the model is loaded. INVALID_ARGUMENT (kept): not a plain file name. */
sx_tf_value sx_saved_model_asset(sx_saved_model_writer *w, const char *filename, sx_bytes contents);

/* Starts a signature; inputs and outputs follow. Dimensions that are no counts are unknown. */
void sx_saved_model_signature(sx_saved_model_writer *w, const char *key);
void sx_saved_model_input(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                          const sx_type *type);
void sx_saved_model_output(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                           const sx_type *type);

/* Writes everything as directory `dir`, whose parent is created if missing. `read` is called once
 * for each variable, one at a time; it may be NULL if there are none. ALREADY_EXISTS: `dir` exists.
 * Otherwise the first error kept. */
SX_MUST_USE sx_status sx_saved_model_write(sx_saved_model_writer *w, const char *dir,
                                           sx_read_variable_fn *read, void *user);

/* The same as base/<version>, whose path goes to *out_dir (sx_free): `version` is "0001", or NULL =
 * the highest + 1, again if it is taken meanwhile. And the errors of sx_version_directory. */
SX_MUST_USE sx_status sx_saved_model_write_version(sx_saved_model_writer *w, const char *base,
                                                   const char *version, sx_read_variable_fn *read,
                                                   void *user, char **out_dir);

#endif
