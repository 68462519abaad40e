/* The JSON that launchers set in the environment, parsed with limits on strings and lists. Errors
 * name the invalid member.
 *
 *   TF_CONFIG    {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", …]},
 *                 "task": {"type": "worker", "index": 0}, "rpc_layer": "grpc",
 *                 "session_master": "grpc://…", "service": {"tpu_worker_job_name": …}}
 *   TPU_CONFIG   {"tpu_node_name": "…", "project": "…", "zone": "…"}
 *
 * A job's tasks are a list, or a map from index to address (sparse, as written by Kubeflow); an
 * index may be a number or a string of digits. Source: TensorFlow's tfconfig_cluster_resolver and
 * cluster_spec, Estimator's run_config. */
#ifndef SX_DISTRIBUTE_TF_CONFIG_H
#define SX_DISTRIBUTE_TF_CONFIG_H

#include <jansson.h>

#include "base/arena.h"

enum {
    SX_LAUNCH_JSON_BYTES = 1 << 20, /* size of a text */
    SX_MAX_JOBS = 64,
    SX_MAX_TASKS = 65536, /* in all jobs together */
    SX_MAX_ADDRESS = 512, /* bytes of an address or name */
};

typedef struct sx_tf_task {
    int index;
    const char *address; /* "host:port" */
} sx_tf_task;

typedef struct sx_tf_job {
    const char *name;
    int n_tasks;
    const sx_tf_task *tasks; /* by index, ascending */
} sx_tf_job;

typedef struct sx_tf_config {
    int n_jobs, n_tasks;
    const sx_tf_job *jobs;
    const char *task_type; /* NULL = not given */
    int task_index;
    const char *rpc_layer;      /* NULL = not given */
    const char *session_master; /* NULL = not given */
} sx_tf_config;

/* Strings are allocated in the arena. Errors: INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_tf_config_parse(const char *text, size_t size, sx_arena *arena,
                                         sx_tf_config *out);
/* A job by name, or NULL. */
const sx_tf_job *sx_tf_config_job(const sx_tf_config *config, const char *name);

/* What $TPU_CONFIG says. */
typedef struct sx_env_tpu_config {
    const char *name, *project, *zone; /* NULL = not given; the name always is */
} sx_env_tpu_config;

SX_MUST_USE sx_status sx_env_tpu_config_parse(const char *text, size_t size, sx_arena *arena,
                                              sx_env_tpu_config *out);

/* Parses an untrusted JSON object, with a size limit and without duplicate members. Errors begin
 * with `what`. */
SX_MUST_USE sx_status sx_foreign_json(const char *text, size_t size, const char *what,
                                      json_t **out_object);
/* A string member without control characters, of at most SX_MAX_ADDRESS bytes; *out is unchanged if
 * it is absent, null or empty. */
SX_MUST_USE sx_status sx_foreign_text(const json_t *object, const char *member, const char *what,
                                      sx_arena *arena, const char **out);

/* "host", "host:port", "grpc://host:port", "[::1]:port" -> "host:port" in the arena; the default
 * port is 8470. Errors: INVALID_ARGUMENT: not an address. */
SX_MUST_USE sx_status sx_tpu_address(const char *text, size_t size, sx_arena *arena,
                                     const char **out);

#endif
