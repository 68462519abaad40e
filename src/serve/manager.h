/* The models of a server by name: each with its lifecycle (which versions are served) and its
 * labels (names of versions).
 *
 *   sx_manager_create(&config, &manager)
 *   sx_manager_set_models(manager, models, count)   the first time, and on each reload
 *   sx_manager_start(manager)
 *   sx_manager_acquire(manager, &spec, &servable)   for each request
 *
 * Models do not wait for one another: each lifecycle has its own thread. A new set of models is
 * taken as a whole or not at all. Models that stay keep serving; one that is left out is found no
 * more, and is unloaded when its requests have ended. */
#ifndef SX_SERVE_MANAGER_H
#define SX_SERVE_MANAGER_H

#include "serve/lifecycle.h"
#include "serve/traffic.h"

typedef struct sx_manager sx_manager;
struct sx_model_config;

typedef struct sx_manager_config {
    /* Of each model; its name, base_path, policy and residency are not used. */
    sx_lifecycle_config lifecycle;
    /* Models are loaded at their first request, and together take at most this; 0: all are loaded.
     */
    size_t max_loaded_memory_bytes;
    /* Whether a label that is not in use may be given to a version that is not available. */
    bool allow_labels_for_unavailable_models;
    /* Called with a set that is about to be served; an error refuses it. NULL: none */
    sx_status (*on_models)(void *user, const struct sx_model_config *models, size_t count);
    void *user;
} sx_manager_config;

typedef struct sx_model_label {
    const char *label;
    int64_t version;
} sx_model_label;

typedef struct sx_model_config {
    const char *name, *base_path;
    sx_version_policy policy;
    const sx_model_label *labels; /* [label_count] */
    size_t label_count;
    /* Its logging_config: which of its requests are logged, and where; NULL: none is given, "":
     * none of its requests. */
    const char *log_prefix;
    double log_sampling_rate;
    const char *where; /* in which file and line, for errors; NULL = nowhere */
} sx_model_config;

SX_MUST_USE sx_status sx_manager_create(const sx_manager_config *config, sx_manager **out_manager);
/* Serves these models, and no others. An error leaves everything as it was: INVALID_ARGUMENT (no
 * name or path, a name twice), FAILED_PRECONDITION (a label of a model that is there already is
 * moved to a version that is not available), RESOURCE_EXHAUSTED. Labels of new models need not be
 * available: they are as soon as their versions are. */
SX_MUST_USE sx_status sx_manager_set_models(sx_manager *manager, const sx_model_config *models,
                                            size_t count);
/* How requests are shared out between versions; models that are not there (yet) have no effect.
 * INVALID_ARGUMENT, RESOURCE_EXHAUSTED: everything is as it was. */
SX_MUST_USE sx_status sx_manager_set_traffic(sx_manager *manager, const sx_traffic *rows,
                                             size_t count);
SX_MUST_USE sx_status sx_manager_start(sx_manager *manager);
/* No servable may be held any more. False as from sx_lifecycle_destroy(). NULL is allowed. */
bool sx_manager_destroy(sx_manager *manager);

/* What a request asks for: ModelSpec. */
typedef struct sx_model_spec {
    const char *name;
    int64_t version;          /* SX_LATEST_VERSION, */
    const char *label;        /* or a label; NULL or "" = none */
    const char *signature;    /* that the version must have; "" = serving_default; NULL = any */
    const sx_http_head *head; /* of the request: for sticky headers; NULL = none */
} sx_model_spec;

/* The version to run a request on; release it afterwards. Any thread; never waits for loading. The
 * errors have TensorFlow Serving's texts: INVALID_ARGUMENT (no name, unknown label), NOT_FOUND,
 * FAILED_PRECONDITION (unknown signature); UNAVAILABLE while the version is being loaded. */
SX_MUST_USE sx_status sx_manager_acquire(sx_manager *manager, const sx_model_spec *spec,
                                         sx_served **out_servable);
/* The same, but what is loaded at its first request may be awaited: sx_lifecycle_choose(). The
 * signature of `spec` is not looked at. */
SX_MUST_USE sx_status sx_manager_acquire_or_await(sx_manager *manager, const sx_model_spec *spec,
                                                  sx_served **out_servable,
                                                  sx_awaited *out_awaited);

/* The version that gets a copy of this request, which `servable` answers; release it afterwards.
 * NULL: none does. */
sx_served *sx_manager_acquire_shadow(sx_manager *manager, const sx_served *servable,
                                     double *out_tolerance);

/* The known versions of a model, or one of them: sx_lifecycle_status(). Error texts name no paths.
 */
SX_MUST_USE sx_status sx_manager_status(sx_manager *manager, const char *name, int64_t version,
                                        sx_arena *arena, sx_version_status **out_rows,
                                        size_t *out_count);

/* The names of the models, in the order of the set, in `arena`. */
SX_MUST_USE sx_status sx_manager_names(sx_manager *manager, sx_arena *arena,
                                       const char ***out_names, size_t *out_count);

/* The labels of a model, and their versions, in `arena`; none of an unknown model. */
SX_MUST_USE sx_status sx_manager_labels(sx_manager *manager, const char *name, sx_arena *arena,
                                        sx_model_label **out_labels, size_t *out_count);

/* Whether a version of every model is served. */
bool sx_manager_ready(sx_manager *manager);
/* Whether nothing is to be waited for at the start: each model has a version, or failed to load. */
bool sx_manager_is_settled(sx_manager *manager);
/* Waits until it is settled, at most `timeout_ms`; returns whether it is ready. */
bool sx_manager_wait_ready(sx_manager *manager, int timeout_ms);
/* Why it is not: the error of the first such model; OK if it is. */
SX_MUST_USE sx_status sx_manager_error(sx_manager *manager);

/* Whether there is a model of that name, in whatever state. */
bool sx_manager_has(sx_manager *manager, const char *name);

/* Counts a request that was answered without a servable; of unknown models nothing is counted. */
void sx_manager_count(sx_manager *manager, const char *name, sx_code code);

/* Appends the metrics of all models, in the order of the set. */
SX_MUST_USE sx_status sx_manager_print_metrics(sx_manager *manager, sx_buf *out);

#endif
