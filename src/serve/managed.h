/* Managed models: created and deleted by clients, kept in a directory.
 *
 *   DIR/flowers/            a model
 *   DIR/flowers/3           a version: a symbolic link to a SavedModel in the storage
 *   DIR/flowers/default     a symbolic link to "3": the version of requests that name none
 *
 * What is there when the server starts is served again. All functions may be called from any
 * thread; those that change something read and write files. */
#ifndef SX_SERVE_MANAGED_H
#define SX_SERVE_MANAGED_H

#include "serve/manager.h"

typedef struct sx_managed sx_managed;

/* Serves the models of `dir`, which is created if it does not exist. Versions may be created of
 * SavedModels below `storage`; NULL: of none. */
SX_MUST_USE sx_status sx_managed_create(const char *dir, const char *storage, sx_manager *manager,
                                        sx_managed **out_managed);
void sx_managed_destroy(sx_managed *managed); /* NULL is allowed */

/* Looks at the directory again. A version whose SavedModel is not in the storage any more is served
 * no more, which is logged; so it is when the server starts, and after each change below. */
void sx_managed_reload(sx_managed *managed);

/* INVALID_ARGUMENT: a name is letters, digits and _, and begins with a letter. ALREADY_EXISTS. */
SX_MUST_USE sx_status sx_managed_create_model(sx_managed *managed, const char *name);
/* NOT_FOUND; FAILED_PRECONDITION: it has versions. */
SX_MUST_USE sx_status sx_managed_delete_model(sx_managed *managed, const char *name);

/* A version of the SavedModel at `uri`: a path, or file:// and a path. The first one becomes the
 * default. INVALID_ARGUMENT, NOT_FOUND (the model, the SavedModel), ALREADY_EXISTS,
 * PERMISSION_DENIED (not in the storage). */
SX_MUST_USE sx_status sx_managed_create_version(sx_managed *managed, const char *model,
                                                int64_t version, const char *uri);
/* NOT_FOUND; FAILED_PRECONDITION: it is the default, and there are others. */
SX_MUST_USE sx_status sx_managed_delete_version(sx_managed *managed, const char *model,
                                                int64_t version);
SX_MUST_USE sx_status sx_managed_set_default(sx_managed *managed, const char *model,
                                             int64_t version);
/* SX_LATEST_VERSION: there is none. */
int64_t sx_managed_default(sx_managed *managed, const char *model);

#endif
