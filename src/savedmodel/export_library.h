/* Functions of a library as a SavedModel: each signature is a call of a function, and the functions
 * that it needs, their branches and loops are FunctionDefs (export_body.h).
 *
 *   signature     inputs and outputs by the names of the function's, of any dtype but resource;
 *                 dimensions that are no counts are unknown
 *   variables     those that an exported function uses, by their names */
#ifndef SX_SAVEDMODEL_EXPORT_LIBRARY_H
#define SX_SAVEDMODEL_EXPORT_LIBRARY_H

#include <sextant/saved_model.h>

#include "graph/library.h"
#include "savedmodel/saved_model_write.h"

typedef struct sx_library_export {
    const sx_library *library;               /* finished */
    const sx_signature_function *signatures; /* [n_signatures] */
    int n_signatures;
    sx_read_variable_fn *read_variable; /* gives the variables' values, one at a time */
    void *user;
    const char *base;    /* models/text */
    const char *version; /* "0001", or NULL = the highest + 1, again if it is taken meanwhile */
} sx_library_export;

/* Writes base/<version>; its path goes to *out_dir (sx_free). NOT_FOUND: no such function.
 * INVALID_ARGUMENT: a function without outputs, or with resources as inputs or outputs. And the
 * errors of sx_tf_exporter_check and sx_saved_model_write_version. */
SX_MUST_USE sx_status sx_export_library(const sx_library_export *request, char **out_dir);

#endif
