/* The model server: one call each to create, start, stop and destroy it. `sextant serve` is a thin
 * command on top of this header.
 *
 *   sx_server_create(&config, &server)   checks the configuration, binds the port
 *   sx_server_start(server)              loads models in the background, serves requests
 *   sx_server_stop(server)               refuses new connections, finishes running requests
 *   sx_server_destroy(server)
 *
 * The fields of the configuration have the names of tensorflow_model_server's flags. */
#ifndef SX_SERVE_SERVER_H
#define SX_SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

#include "serve/auth.h"
#include "serve/batch_config.h"
#include "serve/manager.h"
#include "serve/predict_json.h"

typedef struct sx_server sx_server;

/* A zero takes the default in the comment. */
typedef struct sx_server_config {
    const char *host;         /* every address; --rest_api_host */
    int rest_api_port;        /* 8501; SX_ANY_PORT lets the kernel choose */
    int port;                 /* of gRPC: 0 = none; SX_ANY_PORT lets the kernel choose */
    int rest_api_fd, grpc_fd; /* sockets that listen already, in place of the two ports; 0 = none */
    /* Where alone the metrics, the page for people and changes of the models are then served: */
    int admin_port;               /* 0 = none: they are at every address; SX_ANY_PORT */
    const char *admin_host;       /* 127.0.0.1 */
    const char *grpc_socket_path; /* a UNIX socket for gRPC; NULL or "" = none */
    const char *ssl_config_file;  /* TLS on `port` and the socket, see ssl_config.h; NULL or "" =
                                     none */
    const char *rest_api_ssl_config_file; /* the same on rest_api_port */
    int rest_api_num_threads;   /* that parse and answer, and as many that run models; as many as
                                   processors */
    int rest_api_num_loops;     /* event loops; half as many as processors */
    int rest_api_timeout_in_ms; /* 30000 */
    bool rest_api_enable_cors_support;
    const char *model_name;         /* "default" */
    const char *model_base_path;    /* required, unless there is a model_config_file */
    const char *managed_models_dir; /* of models that clients create, instead of the others:
                                       managed.h; NULL or "" = none */
    const char *managed_storage;    /* below which their versions come from; NULL or "" = none */
    const char *model_config_file;  /* text of a ModelServerConfig, instead of these two */
    const char *model_traffic_file; /* how requests are shared out: traffic.h; NULL or "" = none */
    double model_config_file_poll_wait_seconds; /* of both; 0: only on sx_server_reload() */
    bool allow_version_labels_for_unavailable_models;
    bool resource_preserving; /* --version_transition; see lifecycle.h */
    /* Models are loaded at their first request, and idle ones unloaded, so that together they take
     * at most this; 0: all are loaded */
    size_t max_loaded_memory_bytes;
    double version_drain_timeout_seconds; /* 60 */
    double file_system_poll_wait_seconds; /* 1; negative: never poll */
    int max_num_load_retries;             /* 5; negative: none */
    double load_retry_interval_seconds;   /* 60: before the first retry; doubles after each */
    double load_timeout_seconds;          /* 300: then a load is abandoned */
    const char *monitoring_path;          /* "/monitoring/prometheus/metrics"; "" = off */
    sx_auth_config auth;                  /* everybody may call everything */
    size_t max_body_bytes;                /* 64 MiB; see sx_http_config */
    /* Of one request: body, decoded inputs, outputs and response. 8 * max_body_bytes, at least
     * SX_MIN_REQUEST_MEMORY, at most half of max_in_flight_memory_bytes */
    size_t max_request_memory_bytes;
    size_t max_in_flight_memory_bytes; /* of all requests; 1 GiB, at most a quarter of
                                          sx_ram_bytes() */
    size_t max_queued_requests;        /* 1024 that have not been read; those that wait for their
                                          turn are bounded by `batching` */
    /* How calls are merged into batches (batch_config.h); NULL: as --enable_batching is left out */
    const sx_batch_config *batching;
    bool no_model_warmup;                  /* do not replay warm-up records: warmup.h */
    int num_request_iterations_for_warmup; /* 1 */
    int max_connections; /* 10,000, or fewer so that their buffers take at most an eighth of the
                            memory */
    int header_timeout_ms, body_timeout_ms, idle_timeout_ms; /* 10 s, 30 s, 60 s */
    int drain_grace_ms;                /* 30000: how long stop waits for running requests */
    sx_float_format json_float_format; /* shortest */
    /* request_log.h: PREFIX of its files, and the rate of the requests that are logged, for models
     * whose configuration does not say; NULL or "" = they are not. */
    const char *request_log;
    double request_log_sampling_rate;    /* 1 */
    int64_t request_log_max_file_bytes;  /* 256 MiB */
    double request_log_max_file_seconds; /* an hour */
    size_t log_max_waiting_bytes;        /* 64 MiB that are not written yet; more is dropped */
    const char *saved_model_tags;        /* as the request log names them; "serve" */
    const char *access_log;              /* access_log.h: a file, or "-"; NULL or "" = none */
    bool enable_serialization_as_tensor_content;
    const sx_serve_model_ops *ops; /* required: the model runtime */
    void *ops_user;
} sx_server_config;

enum {
    SX_ANY_PORT = -1,
    SX_MIN_REQUEST_MEMORY = 256 * 1024, /* the least limit of the memory of requests */
    SX_MIN_BODY_BYTES = 1024,           /* and of the size of a body */
};

/* Errors: INVALID_ARGUMENT (port out of range, no model, a mistake in the model_config_file, an
 * unusable certificate, a memory limit below SX_MIN_REQUEST_MEMORY, a max_body_bytes below
 * SX_MIN_BODY_BYTES, a monitoring_path that is no URL path or that of another page), ALREADY_EXISTS
 * (port in use), RESOURCE_EXHAUSTED. Nothing in `config` is kept except the ops. */
SX_MUST_USE sx_status sx_server_check_metrics_path(const char *path); /* those of monitoring_path */
SX_MUST_USE sx_status sx_server_create(const sx_server_config *config, sx_server **out_server);
int sx_server_rest_port(const sx_server *server);
int sx_server_grpc_port(const sx_server *server);  /* 0 = none */
int sx_server_admin_port(const sx_server *server); /* 0 = none */

/* Begins to load the models; requests are not accepted yet. */
SX_MUST_USE sx_status sx_server_load(sx_server *server);
/* The same unless that was done, and accepts requests. */
SX_MUST_USE sx_status sx_server_start(sx_server *server);
/* The requests so far, and those being answered. Any thread. */
void sx_server_count_requests(const sx_server *server, uint64_t *out_requests,
                              uint64_t *out_running);
/* Reads the model_config_file and the model_traffic_file again, soon and on other threads; if one
 * has a mistake, that is logged, and what it says stays as it is. Of managed models, looks at their
 * directory again. */
void sx_server_reload(sx_server *server);
/* Waits for a version of every model to be served; false if one failed or took too long. The server
 * keeps running; sx_server_model_error() has the reason. */
bool sx_server_wait_ready(sx_server *server, int timeout_ms);
/* Whether each model has a version that is served, or failed to load. */
bool sx_server_is_settled(sx_server *server);
/* Why a model is not served: the error of its base path or of its newest version; OK if all are. */
SX_MUST_USE sx_status sx_server_model_error(sx_server *server);

/* Drains and stops; true if every request ended within the grace period. Idempotent. */
bool sx_server_stop(sx_server *server);
/* Stops first; NULL is allowed. Returns false as sx_lifecycle_destroy() does: a load is still
 * running, and the process should end with _exit(). */
bool sx_server_destroy(sx_server *server);

#endif
