/* sextant serve: runs the model server until SIGTERM, SIGHUP or Ctrl-C. Options have
 * tensorflow_model_server's names.
 *
 * The signals are blocked before the server's threads start, so that only this thread receives
 * them, and only while it waits. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "command.h"
#include "int8_args.h"
#include "servable_args.h"
#include "serve/predictor_model.h"
#include "serve/server.h"

typedef struct options {
    const char *host, *model_name, *model_base_path, *saved_model_tags, *monitoring_path;
    const char *grpc_socket_path, *ssl_config_file;
    int64_t port, rest_api_port, rest_api_num_threads, rest_api_timeout_in_ms;
    int64_t max_num_load_retries, max_body_bytes, drain_grace_ms, model_memory_limit;
    int64_t max_request_memory_bytes, max_in_flight_memory_bytes, max_connections;
    double file_system_poll_wait_seconds, load_retry_interval_seconds, load_timeout_seconds;
    bool cors;
    sx_device_args device_args;
    sx_int8_args int8_args;
} options;

static const sx_option rows[] = {
    {"model-name", SX_OPTION_STRING, SX_OPT(options, model_name),
     "name of the model in request URLs", "NAME"},
    {"model-base-path", SX_OPTION_STRING, SX_OPT(options, model_base_path),
     "directory of the numbered version directories; the highest version is served", "DIR",
     .required = true},
    {"saved-model-tags", SX_OPTION_STRING, SX_OPT(options, saved_model_tags),
     "tags of the graph to serve, comma-separated; default: serve", "TAGS"},
    {"port", SX_OPTION_INT, SX_OPT(options, port), "port of gRPC; 0: none", "PORT", .min = 0,
     .max = 65535},
    {"rest-api-port", SX_OPTION_INT, SX_OPT(options, rest_api_port),
     "port of the REST API; 0: any free port", "PORT", .min = 0, .max = 65535},
    {"grpc-socket-path", SX_OPTION_STRING, SX_OPT(options, grpc_socket_path),
     "UNIX socket for gRPC", "FILE"},
    {"ssl-config-file", SX_OPTION_STRING, SX_OPT(options, ssl_config_file),
     "TLS on the port and the socket of gRPC: an SSLConfig in text format, whose server_key, "
     "server_cert and custom_ca are PEM texts or names of files with them, which are loaded again "
     "when they change; with client_verify, clients need a certificate",
     "FILE"},
    {"host", SX_OPTION_STRING, SX_OPT(options, host), "address to listen on; default: all",
     "ADDRESS"},

    SX_SERVABLE_ARGS_ROWS(options),
    SX_INT8_ARGS_ROWS(options),

    {"file-system-poll-wait-seconds", SX_OPTION_FLOAT,
     SX_OPT(options, file_system_poll_wait_seconds), "seconds between version checks", "SECONDS",
     .min = 0.001, .max = 1e6, .group = "Versions"},
    {"max-num-load-retries", SX_OPTION_INT, SX_OPT(options, max_num_load_retries),
     "how often to retry loading a version that failed", "N", .min = 1, .max = 1e6},
    {"load-retry-interval-seconds", SX_OPTION_FLOAT, SX_OPT(options, load_retry_interval_seconds),
     "seconds before the first retry; doubles after each", "SECONDS", .min = 0.001, .max = 1e6},
    {"load-timeout-seconds", SX_OPTION_FLOAT, SX_OPT(options, load_timeout_seconds),
     "give up loading a version after this time", "SECONDS", .min = 0.001, .max = 1e6},

    {"rest-api-num-threads", SX_OPTION_INT, SX_OPT(options, rest_api_num_threads),
     "threads that handle requests; default: one per processor", "N", .min = 1, .max = 4096,
     .group = "Requests"},
    {"rest-api-timeout-in-ms", SX_OPTION_INT, SX_OPT(options, rest_api_timeout_in_ms),
     "maximum time to handle a request", "MS", .min = 1, .max = 1e9},
    {"max-body-bytes", SX_OPTION_SIZE, SX_OPT(options, max_body_bytes),
     "maximum size of a request body, also after decompression; larger ones get status 413, as do "
     "gzip bodies that decompress to more than 1 MiB and more than 100 times their size",
     "SIZE", .min = SX_MIN_BODY_BYTES, .max = 0x1p32},
    {"max-request-memory-bytes", SX_OPTION_SIZE, SX_OPT(options, max_request_memory_bytes),
     "maximum memory of a request: body, decoded inputs, outputs and response; larger ones get "
     "status 413; default: 8 times --max-body-bytes, at most half of --max-in-flight-memory-bytes",
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
    {"monitoring-path", SX_OPTION_STRING, SX_OPT(options, monitoring_path),
     "URL path of the metrics, in Prometheus text format; empty: no metrics", "URL_PATH"},
};
static const options defaults = {
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
    .monitoring_path = "/monitoring/prometheus/metrics",
};

/* Options of tensorflow_model_server. */
static const sx_option_hint hints[] = {
    {"model-config-file",
     "a server serves one model, given by --model_name and --model_base_path; start one for each"},
    {"model-config-file-poll-wait-seconds",
     "a server serves one model, given by --model_name and --model_base_path"},
    {"monitoring-config-file", "metrics are always served, at the URL path --monitoring_path"},
    {"enable-batching", "requests are not combined into batches"},
    {"batching-parameters-file", "requests are not combined into batches"},
    {"tensorflow-intra-op-parallelism", "use --threads"},
    {"tensorflow-session-parallelism", "use --threads"},
    {"rest-api-timeout-ms", "use --rest_api_timeout_in_ms"},
};

enum { READY_SLICE_MS = 20 };

static void fill_config(const options *o, sx_server_config *c)
{
    *c = (sx_server_config){
        .host = o->host,
        .rest_api_port = o->rest_api_port == 0 ? SX_ANY_PORT : (int)o->rest_api_port,
        .port = (int)o->port,
        .grpc_socket_path = o->grpc_socket_path,
        .ssl_config_file = o->ssl_config_file,
        .rest_api_num_threads = (int)o->rest_api_num_threads,
        .rest_api_timeout_in_ms = (int)o->rest_api_timeout_in_ms,
        .rest_api_enable_cors_support = o->cors,
        .model_name = o->model_name,
        .model_base_path = o->model_base_path,
        .file_system_poll_wait_seconds = o->file_system_poll_wait_seconds,
        .max_num_load_retries = (int)o->max_num_load_retries,
        .load_retry_interval_seconds = o->load_retry_interval_seconds,
        .load_timeout_seconds = o->load_timeout_seconds,
        .monitoring_path = o->monitoring_path,
        .max_body_bytes = (size_t)o->max_body_bytes,
        .max_request_memory_bytes = (size_t)o->max_request_memory_bytes,
        .max_in_flight_memory_bytes = (size_t)o->max_in_flight_memory_bytes,
        .max_connections = (int)o->max_connections,
        .drain_grace_ms = (int)o->drain_grace_ms,
        .ops = &sx_predictor_model_ops,
    };
}

/* Waits until stopped, with the signals unblocked. Prints the URL once the model is served; until
 * then, the log shows why it is not. */
static void wait_for_stop(sx_server *server, const options *o, const sigset_t *unblocked)
{
    const struct timespec slice = {.tv_nsec = READY_SLICE_MS * 1000000L};
    bool serving = false;
    while (sx_stop_signal() == 0) {
        if (!serving && sx_server_wait_ready(server, 0)) {
            serving = true;
            printf("Serving %s at http://localhost:%d/v1/models/%s\n", o->model_name,
                   sx_server_rest_port(server), o->model_name);
            fflush(stdout);
        }
        ppoll(NULL, 0, serving ? NULL : &slice, unblocked);
    }
}

static sx_status serve(sx_invocation *inv, sx_server *server, const sigset_t *unblocked)
{
    const options *o = inv->options;
    SX_TRY(sx_server_start(server));
    printf("Listening on port %d\n", sx_server_rest_port(server));
    if (o->port != 0) {
        printf("Running gRPC ModelServer at %s:%d ...\n", o->host != NULL ? o->host : "0.0.0.0",
               (int)o->port);
    }
    fflush(stdout);
    wait_for_stop(server, o, unblocked);
    pthread_sigmask(SIG_SETMASK, unblocked, NULL); /* a second signal kills the process */
    sx_log(SX_LOG_INFO, "stopping: waiting for running requests");
    return sx_server_stop(server)
               ? SX_OK
               : sx_error(SX_DEADLINE_EXCEEDED,
                          "requests still running after %lld ms were cut off (--%s)",
                          (long long)o->drain_grace_ms, sx_option_typed(inv, "drain-grace-ms"));
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_predictor_options runtime = {.device = o->device_args.device,
                                    .pjrt_plugin = o->device_args.pjrt_plugin,
                                    .python = o->device_args.python,
                                    .threads = (int)o->device_args.threads,
                                    .memory_limit_bytes = o->model_memory_limit,
                                    .tags = o->saved_model_tags,
                                    .compile_at_load = true};
    sx_server_config config;
    sx_server *server = NULL;
    sigset_t blocked, unblocked;
    SX_TRY(sx_servable_args_check(inv, &o->device_args));
    SX_TRY(sx_int8_args_check(inv, &o->int8_args));
    SX_TRY(sx_int8_args_read(inv, &o->int8_args, o->model_base_path, o->saved_model_tags, NULL,
                             &runtime.int8));
    fill_config(o, &config);
    config.ops_user = &runtime;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked, &unblocked);
    sx_status status = sx_server_check_metrics_path(o->monitoring_path);
    if (status != SX_OK) {
        return sx_usage(inv, sx_status_annotate(status, __FILE__, __LINE__, "--%s",
                                                sx_option_typed(inv, "monitoring-path")));
    }
    status = sx_server_create(&config, &server);
    if (status == SX_OK) {
        status = serve(inv, server, &unblocked);
    }
    inv->left_behind = !sx_server_destroy(server);
    return status;
}

const sx_command sx_command_serve = {
    .name = "serve",
    .summary = "serve a model over TensorFlow Serving's REST and gRPC APIs",
    .words = "",
    .about =
        "A new version directory is loaded while the old version still serves, and replaces it "
        "when it is ready; a version that cannot be loaded is logged and replaces nothing. "
        "On SIGTERM, SIGHUP or Ctrl-C, the server finishes running requests and exits with 0.",
    .examples = "  sextant serve --model_name=flowers --model_base_path=$PWD/models/flowers "
                "--port=8500 --rest_api_port=8501\n"
                "  sextant serve --model_name=flowers --model_base_path=$PWD/models/flowers "
                "--precision=int8 --calibration=photos/",
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
