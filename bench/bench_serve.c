/* Predict over gRPC on a model that does nothing: the server's processor time of one request, with
 * a tensor of 10 floats, asked by h2load on 8 connections with 16 streams each. The least of ROUNDS
 * counts, because of the machine's other work. Goal: 2 times the 71,700 requests a processor second
 * of gRPC C++ (its asynchronous server, the same messages and client). What limits it has not been
 * profiled; more streams share more of the system calls. */
#include "bench.h"

#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "serve/server.h"

extern char **environ;

enum { ROUNDS = 7, REQUESTS = 40000, SKIPPED = 77 };

static sx_status load(void *user, const char *version_dir, const sx_cancel *cancel,
                      void **out_model)
{
    (void)version_dir;
    (void)cancel;
    *out_model = user;
    return SX_OK;
}

static const sx_serve_signature *signatures(void *model, size_t *out_count)
{
    static const sx_serve_tensor x = {
        .name = "x", .tensor_name = "x:0", .type = {SX_F32, 1, {SX_BATCH}}};
    static const sx_serve_tensor y = {
        .name = "y", .tensor_name = "y:0", .type = {SX_F32, 1, {SX_BATCH}}};
    static const sx_serve_signature one = {.name = "serving_default",
                                           .method = "tensorflow/serving/predict",
                                           .input_count = 1,
                                           .output_count = 1,
                                           .inputs = &x,
                                           .outputs = &y};
    (void)model;
    *out_count = 1;
    return &one;
}

static atomic_long runs; /* h2load does not see a call's status */

static sx_status run(void *model, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    (void)model;
    (void)signature;
    (void)cancel;
    (void)arena;
    atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
    outputs[0] = inputs[0];
    return SX_OK;
}

static void unload(void *model)
{
    (void)model;
}

static const sx_serve_model_ops null_ops = {
    .load = load, .signatures = signatures, .run = run, .unload = unload};

/* A call of a PredictRequest: model m, x = 10 floats. */
static void write_call(const char *path)
{
    static const unsigned char head[] = {
        0,    0,  0,    0, 62,             /* gRPC */
        0x0a, 3,  0x0a, 1, 'm',            /* model_spec { name } */
        0x12, 55, 0x0a, 1, 'x',  0x12, 50, /* inputs { key, value */
        0x08, 1,                           /* DT_FLOAT */
        0x12, 4,  0x12, 2, 0x08, 10,       /* shape */
        0x22, 40,                          /* tensor_content */
    };
    const float values[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    FILE *file = fopen(path, "wb");
    fwrite(head, 1, sizeof(head), file);
    fwrite(values, 1, sizeof(values), file);
    fclose(file);
}

/* False if h2load is not installed or a request failed. */
static bool ask(int port, const char *call, const char *clients, const char *streams)
{
    char url[100], requests[20], command[500];
    int status = 0;
    pid_t child;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/tensorflow.serving.PredictionService/Predict",
             port);
    snprintf(requests, sizeof(requests), "%d", REQUESTS);
    snprintf(command, sizeof(command),
             "h2load -n%s -c%s -m%s -d %s -H 'content-type: application/grpc' -H 'te: trailers' "
             "%s | grep -q ' %s succeeded'",
             requests, clients, streams, call, url, requests);
    char *args[] = {"sh", "-c", command, NULL};
    return posix_spawnp(&child, "sh", NULL, NULL, args, environ) == 0 &&
           waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    char dir[] = "/tmp/sextant-bench-XXXXXX", version[64], call[64];
    sx_server *server = NULL;
    if (mkdtemp(dir) == NULL) {
        return 1;
    }
    snprintf(version, sizeof(version), "%s/1", dir);
    snprintf(call, sizeof(call), "%s/call", dir);
    mkdir(version, 0777);
    write_call(call);
    const sx_server_config config = {.host = "127.0.0.1",
                                     .port = SX_ANY_PORT,
                                     .rest_api_port = SX_ANY_PORT,
                                     .rest_api_num_loops = 1,
                                     .model_name = "m",
                                     .model_base_path = dir,
                                     .ops = &null_ops,
                                     .ops_user = (void *)&null_ops};
    bench_check(sx_server_create(&config, &server));
    bench_check(sx_server_start(server));
    const bool ready = sx_server_wait_ready(server, 10000);
    static const struct {
        const char *clients, *streams;
    } loads[] = {{"1", "1"}, {"8", "1"}, {"8", "16"}};
    for (size_t i = 0; ready && i < SX_COUNT(loads); i++) {
        double least = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            const double before = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
            atomic_store(&runs, 0);
            if (!ask(sx_server_grpc_port(server), call, loads[i].clients, loads[i].streams) ||
                atomic_load(&runs) != REQUESTS) {
                puts("h2load (nghttp2-client) is not installed, or requests failed");
                return SKIPPED;
            }
            least =
                SX_MIN(least, (bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / REQUESTS);
        }
        printf("gRPC Predict, null model, %s connections x %s streams: %.2f us, %.0f requests a "
               "processor second\n",
               loads[i].clients, loads[i].streams, least * 1e6, 1 / least);
        fflush(stdout);
    }
    sx_server_destroy(server);
    unlink(call);
    rmdir(version);
    rmdir(dir);
    return 0;
}
