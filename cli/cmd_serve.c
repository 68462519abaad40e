/* sextant serve: runs the model server until SIGTERM or Ctrl-C. SIGHUP reads the model
 * configuration files, or the directory of managed models, again; without any, it ends the server,
 * too. The table has every option of
 * tensorflow_model_server; those that cannot have an effect here say why.
 *
 * The signals are blocked before the server's threads start, so that only this thread receives
 * them, and only while it waits. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "activation.h"
#include "command.h"
#include "precision_args.h"
#include "servable_args.h"
#include "serve/model_config.h"
#include "serve/predictor_model.h"
#include "serve/server.h"

typedef struct options {
    const char *host, *model_name, *model_base_path, *saved_model_tags;
    const char *managed_models_dir, *managed_storage, *model_traffic_file, *model_config_file,
        *monitoring_path, *monitoring_config_file, *version_transition;
    const char *api_keys_file, *jwks_file, *auth_rules_file, *jwt_issuer, *jwt_audience;
    const char *grpc_socket_path, *ssl_config_file, *rest_api_ssl_config_file, *json_float_format;
    const char *admin_host;
    int64_t admin_port, port, rest_api_port, rest_api_num_threads, rest_api_timeout_in_ms;
    int64_t max_num_load_retries, max_body_bytes, drain_grace_ms, model_memory_limit;
    int64_t max_request_memory_bytes, max_in_flight_memory_bytes, max_connections;
    int64_t load_retry_interval_micros, max_loaded_memory_bytes;
    double file_system_poll_wait_seconds, load_retry_interval_seconds, load_timeout_seconds;
    double model_config_file_poll_wait_seconds, version_drain_timeout_seconds;
    const char *batching_parameters_file, *batch_policy, *model_weights;
    int64_t exact_batch, num_request_iterations_for_warmup;
    bool enable_batching, enable_model_warmup;
    bool cors, allow_labels, tensor_content, version;
    const char *unused_text; /* of options without effect */
    bool unused_flag;
    const char *request_log, *access_log;
    double request_log_sampling_rate, request_log_max_file_seconds;
    int64_t request_log_max_file_bytes;
    sx_device_args device_args;
    sx_precision_args precision_args;
} options;

/* clang-format off */
#define NO_EFFECT(option, why)                                                                  \
    {option, SX_OPTION_STRING, SX_OPT(options, unused_text), why, "VALUE",                     \
     .empty_is_none = true, .no_effect = true}
#define FLAG_NO_EFFECT(option, why)                                                             \
    {option, SX_OPTION_FLAG, SX_OPT(options, unused_flag), why, .no_effect = true}
/* clang-format on */

static const char no_tensorflow[] = "it configures TensorFlow's runtime, which is not used";
static const char no_tflite[] = "models of TensorFlow Lite are not served";

static const sx_option rows[] = {
    {"model-name", SX_OPTION_STRING, SX_OPT(options, model_name),
     "name of the model in request URLs", "NAME"},
    {"model-base-path", SX_OPTION_STRING, SX_OPT(options, model_base_path),
     "directory of the numbered version directories; the highest version is served", "DIR",
     .empty_is_none = true},
    {"model-config-file", SX_OPTION_STRING, SX_OPT(options, model_config_file),
     "text of a ModelServerConfig: the models to serve, instead of the two above; read again on "
     "SIGHUP",
     "FILE", .empty_is_none = true},
    {"model-config-file-poll-wait-seconds", SX_OPTION_FLOAT,
     SX_OPT(options, model_config_file_poll_wait_seconds),
     "how often to check --model-config-file and --model-traffic-file for changes; 0: never",
     "SECONDS", .max = 1e6},
    {"model-traffic-file", SX_OPTION_STRING, SX_OPT(options, model_traffic_file),
     "text of a ModelTrafficConfig: the share of a model's requests that a canary version answers, "
     "and the share that is copied to a shadow version; read again on SIGHUP",
     "FILE", .empty_is_none = true},
    {"managed-models-dir", SX_OPTION_STRING, SX_OPT(options, managed_models_dir),
     "directory of models that clients create and delete over managed prediction's routes "
     "(/v1/projects/P/models), instead of the options above",
     "DIR", .empty_is_none = true},
    {"managed-storage", SX_OPTION_STRING, SX_OPT(options, managed_storage),
     "directory that contains the SavedModels from which clients may create versions; without it, "
     "they can create none",
     "DIR", .empty_is_none = true},
    {"allow-version-labels-for-unavailable-models", SX_OPTION_FLAG, SX_OPT(options, allow_labels),
     "when --model-config-file is read again: allow new labels of versions that are not available "
     "yet"},
    {"saved-model-tags", SX_OPTION_STRING, SX_OPT(options, saved_model_tags),
     "tags of the graph to serve, comma-separated; default: serve", "TAGS"},
    {"port", SX_OPTION_INT, SX_OPT(options, port), "port of gRPC; 0: none", "PORT", .min = 0,
     .max = 65535},
    {"rest-api-port", SX_OPTION_INT, SX_OPT(options, rest_api_port),
     "port of the REST API; 0: any free port", "PORT", .min = 0, .max = 65535},
    {"admin-port", SX_OPTION_INT, SX_OPT(options, admin_port),
     "serve metrics, the page at / and changes of the models by clients on this port only; "
     "default: on every port",
     "PORT", .min = 1, .max = 65535},
    {"admin-host", SX_OPTION_STRING, SX_OPT(options, admin_host),
     "address of --admin-port; default: 127.0.0.1", "ADDRESS"},
    {"grpc-socket-path", SX_OPTION_STRING, SX_OPT(options, grpc_socket_path),
     "UNIX socket for gRPC", "FILE", .empty_is_none = true},
    {"ssl-config-file", SX_OPTION_STRING, SX_OPT(options, ssl_config_file),
     "TLS on the port and the socket of gRPC: an SSLConfig in text format, whose server_key, "
     "server_cert and custom_ca are PEM texts or names of files with them, which are loaded again "
     "when they change; with client_verify, clients need a certificate",
     "FILE", .empty_is_none = true},
    {"rest-api-ssl-config-file", SX_OPTION_STRING, SX_OPT(options, rest_api_ssl_config_file),
     "the same on the port of the REST API, which is plain without it", "FILE",
     .empty_is_none = true},
    {"api-keys-file", SX_OPTION_STRING, SX_OPT(options, api_keys_file),
     "lines of NAME KEY, or NAME sha256:HEX: requests need one of these keys, in the header "
     "Authorization: Bearer KEY or X-API-Key; read again when it changes",
     "FILE", .empty_is_none = true},
    {"jwks-file", SX_OPTION_STRING, SX_OPT(options, jwks_file),
     "a JSON web key set: requests need a token signed by one of its keys, in the header "
     "Authorization: Bearer TOKEN; read again when it changes",
     "FILE", .empty_is_none = true},
    {"jwt-issuer", SX_OPTION_STRING, SX_OPT(options, jwt_issuer),
     "accept only tokens of this issuer (iss)", "NAME", .empty_is_none = true},
    {"jwt-audience", SX_OPTION_STRING, SX_OPT(options, jwt_audience),
     "accept only tokens for this audience (aud)", "NAME", .empty_is_none = true},
    {"auth-rules-file", SX_OPTION_STRING, SX_OPT(options, auth_rules_file),
     "lines of IDENTITY MODEL...: who may call which models, where an identity is key:NAME, "
     "jwt:SUBJECT, cert:NAME of a client's certificate, or *, and * stands for every model; "
     "MODEL:predict: may only run it; rate=N: at most N requests a second of each identity to each "
     "model; read again when it changes",
     "FILE", .empty_is_none = true},
    {"host", SX_OPTION_STRING, SX_OPT(options, host), "address to listen on; default: all",
     "ADDRESS"},

    SX_SERVABLE_ARGS_ROWS(options),
    SX_PRECISION_ARGS_ROWS(options),

    {"file-system-poll-wait-seconds", SX_OPTION_FLOAT,
     SX_OPT(options, file_system_poll_wait_seconds),
     "seconds between version checks; 0 or less: only when the file system reports a change",
     "SECONDS", .min = -1e6, .max = 1e6, .group = "Versions"},
    {"version-transition", SX_OPTION_CHOICE, SX_OPT(options, version_transition),
     "load a new version before the old one is unloaded, or after, which needs less memory: until "
     "it is loaded, the model is not served",
     .choices = "availability_preserving|resource_preserving"},
    {"max-loaded-memory-bytes", SX_OPTION_SIZE, SX_OPT(options, max_loaded_memory_bytes),
     "load a model when a request first asks for it, and unload unused models, the least recently "
     "used first, so that all models together take at most this much; requests wait for their "
     "model; default: load every model at the start",
     "SIZE", .min = 1, .max = 0x1p60},
    {"version-drain-timeout-seconds", SX_OPTION_FLOAT,
     SX_OPT(options, version_drain_timeout_seconds),
     "stop the requests that an old version still runs after this time", "SECONDS", .min = 0.001,
     .max = 1e6},
    {"max-num-load-retries", SX_OPTION_INT, SX_OPT(options, max_num_load_retries),
     "how often to retry loading a version that failed", "N", .max = 1e6},
    {"load-retry-interval-seconds", SX_OPTION_FLOAT, SX_OPT(options, load_retry_interval_seconds),
     "seconds before the first retry; doubles after each", "SECONDS", .min = 0.001, .max = 1e6},
    {"load-retry-interval-micros", SX_OPTION_INT, SX_OPT(options, load_retry_interval_micros),
     "the same in microseconds", "N", .min = 1, .max = 1e12},
    {"load-timeout-seconds", SX_OPTION_FLOAT, SX_OPT(options, load_timeout_seconds),
     "give up loading a version after this time", "SECONDS", .min = 0.001, .max = 1e6},

    {"rest-api-num-threads", SX_OPTION_INT, SX_OPT(options, rest_api_num_threads),
     "threads that parse requests and answer, and as many that run models; default: one per "
     "processor",
     "N", .min = 1, .max = 4096, .group = "Requests"},
    {"rest-api-timeout-in-ms", SX_OPTION_INT, SX_OPT(options, rest_api_timeout_in_ms),
     "maximum time to handle a request", "MS", .min = 1, .max = 1e9},
    {"max-body-bytes", SX_OPTION_SIZE, SX_OPT(options, max_body_bytes),
     "maximum size of a request body, also after decompression; larger ones get status 413, as do "
     "gzip bodies that decompress to more than 1 MiB and more than 100 times their size",
     "SIZE", .min = SX_MIN_BODY_BYTES, .max = 0x1p32},
    {"max-request-memory-bytes", SX_OPTION_SIZE, SX_OPT(options, max_request_memory_bytes),
     "maximum memory of a request: body, decoded inputs, outputs and response; larger ones get "
     "status 413; default: 8 times --max-body-bytes, at least 256K, at most half of "
     "--max-in-flight-memory-bytes",
     "SIZE", .min = SX_MIN_REQUEST_MEMORY, .max = 0x1p50},
    {"max-in-flight-memory-bytes", SX_OPTION_SIZE, SX_OPT(options, max_in_flight_memory_bytes),
     "maximum memory of all requests together; requests beyond it get status 429; default: 1 GiB, "
     "at most a quarter of the machine's memory or of the cgroup's limit",
     "SIZE", .min = SX_MIN_REQUEST_MEMORY, .max = 0x1p50},
    {"max-connections", SX_OPTION_INT, SX_OPT(options, max_connections),
     "maximum number of connections; further ones are closed; default: 10000, fewer on small "
     "machines",
     "N", .min = 1, .max = 1e6},
    {"drain-grace-ms", SX_OPTION_INT, SX_OPT(options, drain_grace_ms),
     "maximum time to wait for running requests when stopping", "MS", .min = 1, .max = 1e9},
    {"rest-api-enable-cors-support", SX_OPTION_FLAG, SX_OPT(options, cors),
     "allow requests from pages of other origins"},
    {"json-float-format", SX_OPTION_CHOICE, SX_OPT(options, json_float_format),
     "floats in JSON: the fewest digits that read back, or TensorFlow Serving's bytes",
     .choices = "shortest|tfs"},
    {"enable-serialization-as-tensor-content", SX_OPTION_FLAG, SX_OPT(options, tensor_content),
     "Predict over gRPC answers with bytes (tensor_content), not with lists of values"},
    {"monitoring-path", SX_OPTION_STRING, SX_OPT(options, monitoring_path),
     "URL path of the metrics, in Prometheus text format; empty: no metrics", "URL_PATH"},
    {"monitoring-config-file", SX_OPTION_STRING, SX_OPT(options, monitoring_config_file),
     "text of a MonitoringConfig, which has the path instead", "FILE", .empty_is_none = true},

    {"enable-batching", SX_OPTION_FLAG, SX_OPT(options, enable_batching),
     "merge requests into batches with the parameters of the next option. Without this option, "
     "requests that find every processor busy are merged, at most 16 examples at a time: none "
     "waits for others to arrive. --enable_batching=false: none are merged",
     .group = "Batching"},
    {"batching-parameters-file", SX_OPTION_STRING, SX_OPT(options, batching_parameters_file),
     "text of a BatchingParameters: the sizes of batches and how many may wait", "FILE",
     .empty_is_none = true},
    {"batch-policy", SX_OPTION_CHOICE, SX_OPT(options, batch_policy),
     "work_conserving: what waits runs as soon as a processor is idle, the earliest deadline "
     "first; tfs: as in TensorFlow Serving, a batch waits until it is full or for "
     "batch_timeout_micros",
     .choices = "work_conserving|tfs"},
    {"exact-batch", SX_OPTION_INT, SX_OPT(options, exact_batch),
     "run this many examples at a time, missing ones as padding, so that the last bits of an "
     "answer do not depend on the load; only for signatures whose batch is their only free "
     "dimension",
     "N", .min = 1, .max = SX_BATCH_MAX_EXACT},
    {"model-weights", SX_OPTION_STRING, SX_OPT(options, model_weights),
     "shares of the processors' time where models compete: flowers=3,digits=1; default: 1 each",
     "NAME=WEIGHT,..."},
    {"enable-model-warmup", SX_OPTION_FLAG, SX_OPT(options, enable_model_warmup),
     "answer the requests of a version's assets.extra/tf_serving_warmup_requests before it is "
     "served; one that fails makes the load fail"},
    {"num-request-iterations-for-warmup", SX_OPTION_INT,
     SX_OPT(options, num_request_iterations_for_warmup), "how often to run each of them; 0: once",
     "N", .max = 1e6},

    {"request-log", SX_OPTION_STRING, SX_OPT(options, request_log),
     "log requests with their answers, as PredictionLogs in TFRecord files "
     "PREFIX-MODEL-DATE-N.tfrecord; a model's logging_config in --model-config-file takes "
     "precedence. If the disk is too slow, some requests are not logged",
     "PREFIX", .empty_is_none = true, .group = "Logs"},
    {"request-log-sampling-rate", SX_OPTION_FLOAT, SX_OPT(options, request_log_sampling_rate),
     "share of the requests that are logged", "RATE", .min = 1e-9, .max = 1},
    {"request-log-max-file-bytes", SX_OPTION_SIZE, SX_OPT(options, request_log_max_file_bytes),
     "size at which the next file begins", "SIZE", .min = 1, .max = 0x1p50},
    {"request-log-max-file-seconds", SX_OPTION_FLOAT, SX_OPT(options, request_log_max_file_seconds),
     "age at which the next file begins", "SECONDS", .min = 1, .max = 1e9},
    {"access-log", SX_OPTION_STRING, SX_OPT(options, access_log),
     "a line of JSON for each request that is answered, with the identifiers of its trace (header "
     "traceparent); -: standard output. If the file is moved away, a new one is begun",
     "FILE", .empty_is_none = true},

    {"tensorflow-intra-op-parallelism", SX_OPTION_INT, SX_OPT(options, device_args.threads),
     "the same as --threads; 0: all CPUs", "N", .max = 4096,
     .group = "Other options of tensorflow_model_server"},
    {"tensorflow-session-parallelism", SX_OPTION_INT, SX_OPT(options, device_args.threads),
     "the same as --threads; 0: all CPUs", "N", .max = 4096},
    {"version", SX_OPTION_FLAG, SX_OPT(options, version), "print the version"},
    NO_EFFECT("grpc-max-threads", "see --rest-api-num-threads: REST and gRPC share the threads"),
    NO_EFFECT("grpc-channel-arguments", "they are for another implementation of gRPC"),
    FLAG_NO_EFFECT("use-alts-credentials", "see --ssl-config-file"),
    FLAG_NO_EFFECT("enable-grpc-healthcheck-service", "the health service is always there"),
    FLAG_NO_EFFECT("enable-per-model-batching-parameters",
                   "all models have the parameters of --batching-parameters-file"),
    NO_EFFECT("num-load-threads", "each model loads on a thread of its own"),
    NO_EFFECT("num-unload-threads", "each model unloads on a thread of its own"),
    FLAG_NO_EFFECT("flush-filesystem-caches", "weights are mapped, not read twice"),
    FLAG_NO_EFFECT("enable-signature-method-name-check",
                   "each API checks the tensors of the signature instead"),
    FLAG_NO_EFFECT("remove-unused-fields-from-bundle-metagraph", "they are never kept"),
    FLAG_NO_EFFECT("enable-profiler", "`sextant profile` measures a model"),
    NO_EFFECT("tensorflow-inter-op-parallelism", no_tensorflow),
    NO_EFFECT("tensorflow-session-config-file", no_tensorflow),
    NO_EFFECT("platform-config-file", no_tensorflow),
    NO_EFFECT("thread-pool-factory-config-file", no_tensorflow),
    NO_EFFECT("per-process-gpu-memory-fraction", "see --gpu-memory-limit"),
    NO_EFFECT("mixed-precision", "a model computes in the types that it was saved with"),
    FLAG_NO_EFFECT("xla-cpu-compilation-enabled", "programs are always compiled"),
    FLAG_NO_EFFECT("xla-gpu-compilation-enabled", "programs are always compiled"),
    FLAG_NO_EFFECT("skip-initialize-tpu", "see --device"),
    FLAG_NO_EFFECT("prefer-tflite-model", no_tflite),
    NO_EFFECT("num-tflite-pools", no_tflite),
    NO_EFFECT("num-tflite-interpreters-per-pool", no_tflite),
};
static const options defaults = {
    .device_args = SX_DEVICE_ARGS_DEFAULTS,
    .model_name = "default",
    .port = 8500,
    .rest_api_port = 8501,
    .rest_api_timeout_in_ms = 30000,
    .max_body_bytes = 64 << 20,
    .drain_grace_ms = 30000,
    .file_system_poll_wait_seconds = 1,
    .max_num_load_retries = 5,
    .load_retry_interval_seconds = 60,
    .load_timeout_seconds = 300,
    .version_transition = "availability_preserving",
    .json_float_format = "shortest",
    .version_drain_timeout_seconds = 60,
    .monitoring_path = "/monitoring/prometheus/metrics",
    .batch_policy = "work_conserving",
    .request_log_sampling_rate = 1,
    .request_log_max_file_bytes = 256 << 20,
    .request_log_max_file_seconds = 3600,
    .enable_model_warmup = true,
};

static const sx_option_hint hints[] = {
    {"rest-api-timeout-ms", "use --rest_api_timeout_in_ms"},
};

enum { READY_SLICE_MS = 20 };

static void fill_config(const options *o, const sx_activation *a, const sx_batch_config *batching,
                        sx_server_config *c)
{
    *c = (sx_server_config){
        .host = o->host,
        .rest_api_fd = a->rest_fd,
        .grpc_fd = a->grpc_fd,
        .rest_api_port = o->rest_api_port == 0 ? SX_ANY_PORT : (int)o->rest_api_port,
        .port = (int)o->port,
        .admin_port = (int)o->admin_port,
        .admin_host = o->admin_host,
        .grpc_socket_path = o->grpc_socket_path,
        .ssl_config_file = o->ssl_config_file,
        .rest_api_ssl_config_file = o->rest_api_ssl_config_file,
        .auth = {.api_keys_file = o->api_keys_file,
                 .jwks_file = o->jwks_file,
                 .rules_file = o->auth_rules_file,
                 .jwt_issuer = o->jwt_issuer,
                 .jwt_audience = o->jwt_audience},
        .rest_api_num_threads = (int)o->rest_api_num_threads,
        .rest_api_timeout_in_ms = (int)o->rest_api_timeout_in_ms,
        .rest_api_enable_cors_support = o->cors,
        .model_name = o->model_name,
        .model_base_path = o->model_base_path,
        .model_config_file = o->model_config_file,
        .model_traffic_file = o->model_traffic_file,
        .managed_models_dir = o->managed_models_dir,
        .managed_storage = o->managed_storage,
        .model_config_file_poll_wait_seconds = o->model_config_file_poll_wait_seconds,
        .allow_version_labels_for_unavailable_models = o->allow_labels,
        .resource_preserving = strcmp(o->version_transition, "resource_preserving") == 0,
        .max_loaded_memory_bytes = (size_t)o->max_loaded_memory_bytes,
        .version_drain_timeout_seconds = o->version_drain_timeout_seconds,
        .file_system_poll_wait_seconds =
            o->file_system_poll_wait_seconds > 0 ? o->file_system_poll_wait_seconds : -1,
        .max_num_load_retries = o->max_num_load_retries > 0 ? (int)o->max_num_load_retries : -1,
        .load_retry_interval_seconds = o->load_retry_interval_micros > 0
                                           ? (double)o->load_retry_interval_micros * 1e-6
                                           : o->load_retry_interval_seconds,
        .load_timeout_seconds = o->load_timeout_seconds,
        .json_float_format =
            strcmp(o->json_float_format, "tfs") == 0 ? SX_FLOAT_TFS : SX_FLOAT_SHORTEST,
        .enable_serialization_as_tensor_content = o->tensor_content,
        .monitoring_path = o->monitoring_path,
        .request_log = o->request_log,
        .request_log_sampling_rate = o->request_log_sampling_rate,
        .request_log_max_file_bytes = o->request_log_max_file_bytes,
        .request_log_max_file_seconds = o->request_log_max_file_seconds,
        .saved_model_tags = o->saved_model_tags,
        .access_log = o->access_log,
        .max_body_bytes = (size_t)o->max_body_bytes,
        .max_request_memory_bytes = (size_t)o->max_request_memory_bytes,
        .max_in_flight_memory_bytes = (size_t)o->max_in_flight_memory_bytes,
        .max_connections = (int)o->max_connections,
        .drain_grace_ms = (int)o->drain_grace_ms,
        .batching = batching,
        .no_model_warmup = !o->enable_model_warmup,
        .num_request_iterations_for_warmup = (int)o->num_request_iterations_for_warmup,
        .ops = &sx_predictor_model_ops,
    };
}

static volatile sig_atomic_t hangup;

static void on_hangup(int number)
{
    (void)number;
    hangup = 1;
}

static void print_url(sx_server *server, const options *o)
{
    const char *scheme = o->rest_api_ssl_config_file != NULL ? "https" : "http";
    if (o->managed_models_dir != NULL) {
        printf("Serving the models of %s at %s://localhost:%d/v1/projects/P/models\n",
               o->managed_models_dir, scheme, sx_server_rest_port(server));
    } else if (o->model_config_file != NULL) {
        printf("Serving the models of %s at %s://localhost:%d/v1/models/NAME\n",
               o->model_config_file, scheme, sx_server_rest_port(server));
    } else {
        printf("Serving %s at %s://localhost:%d/v1/models/%s\n", o->model_name, scheme,
               sx_server_rest_port(server), o->model_name);
    }
    fflush(stdout);
}

static void report(const sx_server *server, const sx_activation *a, bool ready)
{
    sx_report_line line = {.ready = ready};
    if (a->report_fd > 0) {
        sx_server_count_requests(server, &line.requests, &line.running);
        sx_report_write(a->report_fd, &line);
    }
}

/* Waits until stopped, with the signals unblocked. Prints the URL once the models are served; until
 * then, the log shows why they are not. */
static void wait_for_stop(sx_server *server, const options *o, const sx_activation *a,
                          const sigset_t *unblocked)
{
    const struct timespec slice = {.tv_nsec = READY_SLICE_MS * 1000000L},
                          next_report = {.tv_nsec = SX_REPORT_MS * 1000000L};
    bool serving = false;
    while (sx_stop_signal() == 0) {
        if (hangup) {
            hangup = 0;
            sx_server_reload(server);
        }
        if (!serving && sx_server_wait_ready(server, 0)) {
            serving = true;
            print_url(server, o);
        }
        report(server, a, true);
        ppoll(NULL, 0, !serving ? &slice : a->report_fd > 0 ? &next_report : NULL, unblocked);
    }
}

/* With sockets that others opened, connections wait until the models are loaded, or have failed to.
 */
static sx_status load_first(sx_server *server, const sx_activation *a, const sigset_t *unblocked)
{
    const struct timespec slice = {.tv_nsec = READY_SLICE_MS * 1000000L};
    SX_TRY(sx_server_load(server));
    report(server, a, false); /* also if it is to stop already: it has begun to serve */
    while (sx_stop_signal() == 0 && !sx_server_is_settled(server)) {
        report(server, a, false);
        ppoll(NULL, 0, &slice, unblocked);
    }
    return SX_OK;
}

static sx_status serve(sx_invocation *inv, sx_server *server, const sx_activation *a,
                       const sigset_t *unblocked)
{
    const options *o = inv->options;
    if (a->rest_fd > 0 || a->grpc_fd > 0) {
        SX_TRY(load_first(server, a, unblocked));
    }
    SX_TRY(sx_server_start(server));
    printf("Listening on port %d\n", sx_server_rest_port(server));
    if (o->port != 0 || a->grpc_fd > 0) {
        printf("Running gRPC ModelServer at %s:%d ...\n", o->host != NULL ? o->host : "0.0.0.0",
               a->grpc_fd > 0 ? sx_server_grpc_port(server) : (int)o->port);
    }
    fflush(stdout);
    wait_for_stop(server, o, a, unblocked);
    pthread_sigmask(SIG_SETMASK, unblocked, NULL); /* a second signal kills the process */
    sx_log(SX_LOG_INFO, "stopping: waiting for running requests");
    return sx_server_stop(server)
               ? SX_OK
               : sx_error(SX_DEADLINE_EXCEEDED,
                          "requests still running after %lld ms were cut off (--%s)",
                          (long long)o->drain_grace_ms, sx_option_typed(inv, "drain-grace-ms"));
}

static void warn_of_no_effect(sx_invocation *inv, const sx_activation *a)
{
    if (a->rest_fd > 0 && sx_option_given(inv, "rest-api-port")) {
        sx_log(SX_LOG_WARN, "--%s has no effect: the socket was handed over",
               sx_option_typed(inv, "rest-api-port"));
    }
    if (a->grpc_fd > 0 && sx_option_given(inv, "port")) {
        sx_log(SX_LOG_WARN, "--%s has no effect: the socket was handed over",
               sx_option_typed(inv, "port"));
    }
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].no_effect && sx_option_given(inv, rows[i].name)) {
            sx_log(SX_LOG_WARN, "--%s has no effect: %s", sx_option_typed(inv, rows[i].name),
                   rows[i].help);
        }
    }
}

/* Which models: of the options or, as in tensorflow_model_server's image, of the environment. */
static sx_status choose_models(sx_invocation *inv, options *o)
{
    static const char *const one_or_many[] = {"model-base-path", "model-config-file",
                                              "managed-models-dir", NULL};
    const char *name = getenv("MODEL_NAME"), *base = getenv("MODEL_BASE_PATH");
    SX_TRY(sx_options_exclusive(inv, one_or_many));
    if ((o->model_config_file != NULL || o->managed_models_dir != NULL) &&
        o->precision_args.calibration.count > 0) {
        return sx_error(SX_INVALID_ARGUMENT, "--precision int8 is for one model: give --%s",
                        sx_option_typed(inv, "model-base-path"));
    }
    if (o->managed_models_dir == NULL && o->managed_storage != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s needs --managed_models_dir",
                        sx_option_typed(inv, "managed-storage"));
    }
    if (o->model_base_path != NULL || o->model_config_file != NULL ||
        o->managed_models_dir != NULL) {
        return SX_OK;
    }
    if (name == NULL && base == NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "--%s DIR is required, or --%s FILE, or $MODEL_NAME and $MODEL_BASE_PATH",
                        sx_option_typed(inv, "model-base-path"),
                        sx_option_typed(inv, "model-config-file"));
    }
    name = name != NULL ? name : "model";
    o->model_base_path =
        sx_arena_printf(&inv->arena, "%s/%s", base != NULL ? base : "/models", name);
    o->model_name = sx_option_given(inv, "model-name") ? o->model_name : name;
    return o->model_base_path != NULL ? SX_OK : sx_no_memory("for a path");
}

/* Where the metrics are. */
static sx_status choose_metrics(sx_invocation *inv, options *o)
{
    static const char *const path_or_file[] = {"monitoring-path", "monitoring-config-file", NULL};
    SX_TRY(sx_options_exclusive(inv, path_or_file));
    if (o->monitoring_config_file == NULL) {
        SX_TRY(sx_server_check_metrics_path(o->monitoring_path), "--%s",
               sx_option_typed(inv, "monitoring-path"));
        return SX_OK;
    }
    SX_TRY(sx_monitoring_config_read(o->monitoring_config_file, &inv->arena, &o->monitoring_path));
    SX_TRY(sx_server_check_metrics_path(o->monitoring_path), "%s: prometheus_config.path",
           o->monitoring_config_file);
    return SX_OK;
}

/* "flowers=3,digits=1". */
static sx_status read_weights(sx_invocation *inv, const options *o, sx_batcher_config *c)
{
    const char *at = o->model_weights;
    size_t count = 1;
    for (const char *p = at; *p != '\0'; p++) {
        count += *p == ',';
    }
    sx_batch_weight *weights = sx_arena_array(&inv->arena, count, sx_batch_weight);
    if (weights == NULL) {
        return sx_no_memory("for %zu weights", count);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(at, ",");
        const char *item = sx_arena_strndup(&inv->arena, at, length);
        const char *equals = item != NULL ? strrchr(item, '=') : NULL;
        char *end = NULL;
        weights[i].weight = equals != NULL ? strtod(equals + 1, &end) : 0;
        if (equals == NULL || equals == item || *end != '\0' || !(weights[i].weight >= 1e-3) ||
            weights[i].weight > 1e3) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "--%s: \"%.*s\", expected NAME=WEIGHT with a weight of 0.001 to 1000",
                            sx_option_typed(inv, "model-weights"), (int)length, at);
        }
        weights[i].model = sx_arena_strndup(&inv->arena, item, (size_t)(equals - item));
        at += length + 1;
    }
    c->weights = weights;
    c->weight_count = count;
    return SX_OK;
}

/* How calls are merged. */
static sx_status choose_batching(sx_invocation *inv, const options *o, sx_batch_config *out)
{
    const sx_batch_policy policy =
        strcmp(o->batch_policy, "tfs") == 0 ? SX_BATCH_TFS : SX_BATCH_CONSERVE;
    if (!o->enable_batching && (o->batching_parameters_file != NULL || policy == SX_BATCH_TFS)) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s needs --enable_batching",
                        sx_option_typed(inv, policy == SX_BATCH_TFS ? "batch-policy"
                                                                    : "batching-parameters-file"));
    }
    if (o->batching_parameters_file != NULL) {
        SX_TRY(sx_batch_config_read(o->batching_parameters_file, policy, out));
    } else {
        *out = o->enable_batching                        ? sx_batch_config_enabled(policy)
               : sx_option_given(inv, "enable-batching") ? sx_batch_config_off()
                                                         : sx_batch_config_default();
    }
    if (o->exact_batch > 0) {
        sx_batch_config_pin(out, o->exact_batch);
    }
    return o->model_weights != NULL ? read_weights(inv, o, &out->batcher) : SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    static const char *const intervals[] = {"load-retry-interval-seconds",
                                            "load-retry-interval-micros", NULL};
    options *o = inv->options;
    if (o->version) {
        printf("sextant %s\n", SX_VERSION);
        return SX_OK;
    }
    SX_TRY(sx_usage(inv, choose_models(inv, o)));
    SX_TRY(sx_usage(inv, choose_metrics(inv, o)));
    SX_TRY(sx_usage(inv, sx_options_exclusive(inv, intervals)));
    sx_batch_config batching;
    SX_TRY(sx_usage(inv, choose_batching(inv, o, &batching)));
    sx_activation activation;
    SX_TRY(sx_activation_read(&activation));
    warn_of_no_effect(inv, &activation);
    sx_predictor_options runtime = {
        .on = sx_device_args_read(&o->device_args),
        .threads = (int)o->device_args.threads,
        .memory_limit_bytes = o->model_memory_limit,
        .tags = o->saved_model_tags,
        .compile_at_load = true,
        .compile_rows = SX_MIN(batching.batcher.rules.max_rows, (int64_t)SX_BATCH_MAX_ROWS),
        .batch_sizes = batching.size_count > 0 ? batching.sizes : NULL,
        .batch_size_count = batching.size_count,
        .bfloat16 = sx_precision_args_want_bfloat16(&o->precision_args)};
    sx_server_config config;
    sx_server *server = NULL;
    if (activation.rest_fd > 0 && !sx_option_given(inv, "port")) {
        o->port = 0; /* who gives the sockets decides which there are */
    }
    sigset_t blocked, unblocked;
    SX_TRY(sx_servable_args_check(inv, &o->device_args));
    SX_TRY(sx_precision_args_check(inv, &o->precision_args));
    SX_TRY(sx_precision_args_read(inv, &o->precision_args, o->model_base_path, o->saved_model_tags,
                                  NULL, &runtime.int8));
    fill_config(o, &activation, &batching, &config);
    config.ops_user = &runtime;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked, &unblocked);
    if (o->model_config_file != NULL || o->model_traffic_file != NULL ||
        o->managed_models_dir != NULL) {
        const struct sigaction action = {.sa_handler = on_hangup};
        sigaction(SIGHUP, &action, NULL);
    }
    sx_status status = sx_server_create(&config, &server);
    if (status == SX_OK) {
        status = serve(inv, server, &activation, &unblocked);
    }
    inv->left_behind = !sx_server_destroy(server);
    return status;
}

const sx_command sx_command_serve = {
    .name = "serve",
    .summary = "serve models over TensorFlow Serving's and KServe's APIs",
    .words = "",
    .about =
        "A new version directory is loaded while the old version still serves, and replaces it "
        "when it is ready; a version that cannot be loaded is logged and replaces nothing. "
        "Without --model_base_path and --model_config_file, $MODEL_NAME (default: model) and "
        "$MODEL_BASE_PATH (default: /models) say which model: the directory "
        "$MODEL_BASE_PATH/$MODEL_NAME. "
        "On SIGTERM or Ctrl-C, the server finishes running requests and exits with 0. On SIGHUP, "
        "it reads --model_config_file and --model_traffic_file again; without such files it ends "
        "as on SIGTERM. tensorflow_model_server reads the same model configuration files; the "
        "traffic file is Sextant's own.",
    .examples = "  sextant serve --model_name=flowers --model_base_path=$PWD/models/flowers "
                "--port=8500 --rest_api_port=8501\n"
                "  sextant serve --model_name=flowers --model_base_path=$PWD/models/flowers "
                "--precision=int8 --calibration=photos/\n"
                "  sextant serve --model_config_file=models.config "
                "--model_config_file_poll_wait_seconds=60\n"
                "    where models.config is:\n"
                "      model_config_list {\n"
                "        config {\n"
                "          name: \"flowers\"  base_path: \"/models/flowers\"\n"
                "          model_version_policy { specific { versions: 41 versions: 42 } }\n"
                "          version_labels { key: \"stable\" value: 41 }\n"
                "          version_labels { key: \"canary\" value: 42 }\n"
                "        }\n"
                "        config { name: \"digits\"  base_path: \"/models/digits\" }\n"
                "      }\n"
                "  curl -d @request.json "
                "http://localhost:8501/v1/models/flowers/labels/stable:predict\n"
                "  sextant serve --model_config_file=models.config "
                "--model_traffic_file=traffic.config\n"
                "    where traffic.config is (percentages of requests; both parts may be left "
                "out):\n"
                "      model {\n"
                "        name: \"flowers\"\n"
                "        canary { version: 42 percent: 5 sticky_header: \"x-user\" }\n"
                "        shadow { version: 42 percent: 10 tolerance: 0.001 }\n"
                "      }\n"
                "  sextant serve --managed_models_dir=managed/ --managed_storage=/exports",
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
