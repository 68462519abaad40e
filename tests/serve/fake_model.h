/* A model runtime for tests. A version's directory holds model.txt:
 *
 *   scale=2 load_ms=0 run_ms=0 fail=0       load_ms=-1 hangs (fake_runtime.hanging)
 *
 * and the model answers y = scale * x, whatever x's shape. Signatures: serving_default (x -> y),
 * pair (a, b -> sum, twice), text (s -> echo, echo_bytes). */
#ifndef SX_TESTS_SERVE_FAKE_MODEL_H
#define SX_TESTS_SERVE_FAKE_MODEL_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve/model.h"

/* The `user` of the table: what the runtime has done so far. */
struct fake_runtime {
    atomic_int loads, unloads, runs, running;
    atomic_int most_loaded;   /* models that were in memory at once */
    size_t model_bytes;       /* that each takes, with fake_sized_ops */
    bool may_take_long;       /* what its one signature says */
    bool batched;             /* its one signature may be merged */
    int row_ms;               /* that a run takes more for each row of its first input */
    atomic_int thread;        /* of the latest run */
    atomic_bool gated;        /* a run that finds no other one running waits until this is false */
    atomic_int stopped;       /* runs that ended early: cancelled, or beyond their deadline */
    atomic_int failing_loads; /* that many loads fail, whatever the files say, */
    sx_code failing_code;     /* with this; 0: RESOURCE_EXHAUSTED */
    int unload_ms;
    atomic_bool hanging; /* loads with a negative load_ms wait until this is false */
    atomic_bool heeding; /* or, if this is true, until they are cancelled */
    atomic_int hung;     /* loads that wait so */
};

struct fake_model {
    struct fake_runtime *runtime;
    int scale, run_ms;
    char *block; /* of model_bytes */
};

static inline void fake_sleep(int ms)
{
    if (ms <= 0) {
        return;
    }
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
}

static sx_status fake_load(void *user, const char *version_dir, const sx_cancel *cancel,
                           void **out_model)
{
    struct fake_runtime *runtime = user;
    char path[1024];
    int scale, load_ms, run_ms, fails;
    snprintf(path, sizeof(path), "%s/model.txt", version_dir);
    if (atomic_load(&runtime->failing_loads) > 0) {
        atomic_fetch_sub(&runtime->failing_loads, 1);
        return sx_error(runtime->failing_code != SX_CODE_OK ? runtime->failing_code
                                                            : SX_RESOURCE_EXHAUSTED,
                        "no memory just now");
    }
    FILE *file = fopen(path, "r");
    if (!file) {
        return sx_error(SX_NOT_FOUND, "%s is missing", path);
    }
    const int fields =
        fscanf(file, "scale=%d load_ms=%d run_ms=%d fail=%d", &scale, &load_ms, &run_ms, &fails);
    fclose(file);
    if (fields != 4 || fails) {
        return sx_error(SX_DATA_LOSS, "%s is corrupt", path);
    }
    fake_sleep(load_ms);
    atomic_fetch_add(&runtime->hung, load_ms < 0);
    bool stopped = false;
    while (load_ms < 0 && atomic_load(&runtime->hanging) && !stopped) {
        fake_sleep(1);
        stopped = atomic_load(&runtime->heeding) && sx_cancel_requested(cancel);
    }
    atomic_fetch_sub(&runtime->hung, load_ms < 0);
    if (stopped) {
        return sx_cancel_check(cancel);
    }
    struct fake_model *model = sx_alloc(1, sizeof(*model));
    *model = (struct fake_model){runtime, scale, run_ms, NULL};
    if (runtime->model_bytes > 0) {
        model->block = sx_alloc(runtime->model_bytes, 1);
        memset(model->block, 1, runtime->model_bytes);
    }
    const int loaded = atomic_fetch_add(&runtime->loads, 1) + 1 - atomic_load(&runtime->unloads);
    if (loaded > atomic_load(&runtime->most_loaded)) {
        atomic_store(&runtime->most_loaded, loaded);
    }
    *out_model = model;
    return SX_OK;
}

static const sx_serve_signature *fake_signatures(void *model, size_t *out_count)
{
    static const sx_serve_tensor x[] = {
        {.name = "x", .tensor_name = "x:0", .type = {.dtype = SX_F32}, .unknown_rank = true}};
    static const sx_serve_tensor y[] = {
        {.name = "y", .tensor_name = "y:0", .type = {SX_F32, 2, {SX_BATCH, 3}}}};
    static const sx_serve_tensor ab[] = {
        {.name = "a", .tensor_name = "a:0", .type = {SX_F32, 1, {SX_BATCH}}},
        {.name = "b", .tensor_name = "b:0", .type = {SX_F32, 1, {SX_BATCH}}}};
    static const sx_serve_tensor sums[] = {
        {.name = "sum", .tensor_name = "sum:0", .type = {SX_F32, 1, {SX_BATCH}}},
        {.name = "twice", .tensor_name = "twice:0", .type = {SX_F32, 1, {SX_BATCH}}}};
    static const sx_serve_tensor s[] = {
        {.name = "s", .tensor_name = "s:0", .type = {SX_STRING, 1, {SX_BATCH}}}};
    static const sx_serve_tensor echoes[] = {
        {.name = "echo", .tensor_name = "echo:0", .type = {SX_STRING, 1, {SX_BATCH}}},
        {.name = "echo_bytes", .tensor_name = "echo:1", .type = {SX_STRING, 1, {SX_BATCH}}}};
#define FAKE_SIGNATURE(key, n, m, in, out, ...)                                                   \
    {                                                                                             \
        .name = key, .method = "tensorflow/serving/predict", .input_count = n, .output_count = m, \
        .inputs = in, .outputs = out, __VA_ARGS__                                                 \
    }
    static const sx_serve_signature signatures[] = {
        FAKE_SIGNATURE("serving_default", 1, 1, x, y, .may_take_long = false),
        FAKE_SIGNATURE("pair", 2, 2, ab, sums, .may_take_long = false),
        FAKE_SIGNATURE("text", 1, 2, s, echoes, .may_take_long = false)};
    static const sx_serve_signature images[] = {
        FAKE_SIGNATURE("serving_default", 1, 1, x, y, .may_take_long = true)};
    static const int64_t sizes[] = {1, 2, 4, 8};
    static const sx_serve_signature batched[] = {
        FAKE_SIGNATURE("serving_default", 1, 1, x, y, .batch_sizes = sizes, .batch_size_count = 4)};
    const struct fake_model *fake = model;
    *out_count = fake->runtime->may_take_long || fake->runtime->batched ? 1 : 3;
    return fake->runtime->may_take_long ? images : fake->runtime->batched ? batched : signatures;
}

/* Takes its time in pieces of 5 ms. */
static sx_status fake_run(void *model, const sx_serve_signature *signature, const sx_tensor *inputs,
                          const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    const struct fake_model *fake = model;
    const size_t count = (size_t)sx_type_elems(&inputs[0].type);
    sx_status status = SX_OK;
    atomic_fetch_add(&fake->runtime->runs, 1);
    const bool first = atomic_fetch_add(&fake->runtime->running, 1) == 0;
    atomic_store(&fake->runtime->thread, gettid());
    while (first && atomic_load(&fake->runtime->gated)) {
        fake_sleep(1);
    }
    const int row_ms = inputs[0].type.rank > 0 ? fake->runtime->row_ms : 0;
    for (int left_ms = fake->run_ms + row_ms * (int)inputs[0].type.dims[0];
         left_ms > 0 && status == SX_OK; left_ms -= 5) {
        fake_sleep(left_ms < 5 ? left_ms : 5);
        status = sx_cancel_check(cancel);
    }
    atomic_fetch_sub(&fake->runtime->running, 1);
    if (status != SX_OK) {
        atomic_fetch_add(&fake->runtime->stopped, 1);
        return status;
    }
    if (inputs[0].type.dtype == SX_STRING) {
        outputs[0] = outputs[1] = inputs[0];
        return SX_OK;
    }
    const float *a = inputs[0].data, *b = signature->input_count == 2 ? inputs[1].data : a;
    for (size_t o = 0; o < signature->output_count; o++) {
        float *out = sx_arena_array(arena, count + 1, float);
        if (!out) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "no memory for %zu outputs", count);
        }
        for (size_t i = 0; i < count; i++) {
            out[i] = signature->input_count == 1 ? a[i] * (float)fake->scale
                     : o == 0                    ? a[i] + b[i]
                                                 : 2 * a[i];
        }
        outputs[o] = (sx_tensor){inputs[0].type, out};
    }
    return SX_OK;
}

static void fake_unload(void *model)
{
    struct fake_model *fake = model;
    fake_sleep(fake->runtime->unload_ms);
    atomic_fetch_add(&fake->runtime->unloads, 1);
    sx_free(fake->block);
    sx_free(fake);
}

static const sx_serve_model_ops fake_ops = {
    .load = fake_load, .signatures = fake_signatures, .run = fake_run, .unload = fake_unload};

static inline size_t fake_memory_bytes(void *model)
{
    return ((const struct fake_model *)model)->runtime->model_bytes;
}

static inline sx_serve_model_ops fake_sized_ops(void)
{
    sx_serve_model_ops ops = fake_ops;
    ops.memory_bytes = fake_memory_bytes;
    return ops;
}

/* ---- Directories ---- */

/* A fresh directory, in `out`. */
static inline void fake_base_path(char out[64])
{
    snprintf(out, 64, "/tmp/sextant-serve-XXXXXX");
    if (!mkdtemp(out)) {
        abort();
    }
}

/* Writes a version in one piece: beside, then renamed. */
static inline void fake_publish(const char *base, const char *version, int scale, int load_ms,
                                int run_ms, int fails)
{
    char beside[200], path[300], target[200];
    snprintf(beside, sizeof(beside), "%s/tmp.%s", base, version);
    snprintf(target, sizeof(target), "%s/%s", base, version);
    snprintf(path, sizeof(path), "%s/model.txt", beside);
    mkdir(beside, 0777);
    FILE *file = fopen(path, "w");
    if (!file) {
        abort();
    }
    fprintf(file, "scale=%d load_ms=%d run_ms=%d fail=%d\n", scale, load_ms, run_ms, fails);
    fclose(file);
    if (rename(beside, target) != 0) {
        abort();
    }
}

static inline void fake_remove_version(const char *base, const char *version)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s/model.txt", base, version);
    unlink(path);
    snprintf(path, sizeof(path), "%s/%s", base, version);
    rmdir(path);
}

#endif
