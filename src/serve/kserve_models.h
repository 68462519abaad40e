/* What KServe's protocol tells about the server and its models, for REST and gRPC. */
#ifndef SX_SERVE_KSERVE_MODELS_H
#define SX_SERVE_KSERVE_MODELS_H

#include "base/arena.h"
#include "serve/manager.h"

#define SX_KSERVE_NAME "sextant"
extern const char *const sx_kserve_extensions[]; /* ends with NULL */

typedef struct sx_kserve_known {
    sx_served *servable; /* to be released; it keeps the signature */
    int64_t *versions;   /* [version_count], those that are served, highest first; in the arena */
    size_t version_count;
    const sx_serve_signature *signature; /* the default one; NULL: it has none */
} sx_kserve_known;

/* Errors: as sx_manager_acquire, and no memory. */
SX_MUST_USE sx_status sx_kserve_find(sx_manager *manager, const sx_model_spec *spec,
                                     sx_arena *arena, sx_kserve_known *out);

/* A version as the index of the repository has it. */
typedef struct sx_kserve_indexed {
    const char *name;
    int64_t version;
    const char *state, *reason; /* "READY", ""; reasons name no paths */
} sx_kserve_indexed;

/* Calls `row` for each known version of each model. */
SX_MUST_USE sx_status sx_kserve_index(sx_manager *manager, sx_arena *arena,
                                      void (*row)(void *user, const sx_kserve_indexed *row),
                                      void *user);

#endif
