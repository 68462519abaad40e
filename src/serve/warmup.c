/* See warmup.h. */
#include "serve/warmup.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/path.h"
#include "io/tfrecord.h"
#include "proto/wire.h"
#include "serve/batch_merge.h"
#include "serve/inference_proto.h"
#include "serve/json_scan.h"

/* The fields of PredictionLog, whose messages have the request as field 1. */
enum { CLASSIFY_LOG = 2, REGRESS_LOG = 3, MULTI_INFERENCE_LOG = 4, PREDICT_LOG = 6 };

typedef struct warming {
    const sx_serve_model_ops *ops;
    void *model;
    const sx_warmup_options *options;
    const sx_cancel *cancel;
    sx_budget memory;
} warming;

/* ---- Running ---- */

static sx_status run(warming *w, const sx_serve_signature *signature, const sx_tensor *inputs)
{
    sx_status status = SX_OK;
    for (int i = 0; i < SX_MAX(w->options->iterations, 1) && status == SX_OK; i++) {
        sx_arena arena;
        sx_arena_init(&arena, 0);
        arena.budget = &w->memory;
        sx_tensor *outputs = sx_arena_array(&arena, signature->output_count + 1, sx_tensor);
        status = outputs == NULL ? sx_no_memory("for the outputs") : sx_cancel_check(w->cancel);
        if (status == SX_OK) {
            status = w->ops->run(w->model, signature, inputs, w->cancel, &arena, outputs);
        }
        sx_arena_deinit(&arena);
    }
    return status;
}

/* The request's rows and copies of the first, up to the size. */
static sx_status run_padded(warming *w, const sx_serve_signature *signature,
                            const sx_tensor *inputs, int64_t size)
{
    sx_merged *batch = NULL;
    const sx_batch_call call = {.inputs = inputs, .rows = inputs[0].type.dims[0]};
    SX_TRY(sx_merged_create(signature, &call, size, &w->memory, &batch));
    sx_status status = run(w, signature, batch->inputs);
    sx_merged_release(batch);
    return status;
}

static sx_status run_sizes(warming *w, const sx_serve_signature *signature, const sx_tensor *inputs)
{
    SX_TRY(run(w, signature, inputs));
    for (int i = 0; i < signature->batch_size_count; i++) {
        const int64_t size = signature->batch_sizes[i];
        if (size > inputs[0].type.dims[0] && size <= w->options->max_rows) {
            SX_TRY(run_padded(w, signature, inputs, size), "with %lld rows", (long long)size);
        }
    }
    return SX_OK;
}

static sx_status run_predict(warming *w, sx_bytes request, sx_arena *arena)
{
    sx_predict_spec spec;
    sx_predict_call call;
    size_t count;
    const sx_serve_signature *signatures = w->ops->signatures(w->model, &count);
    SX_TRY(sx_predict_spec_read(request, &spec));
    SX_TRY(sx_predict_proto_read(request, &spec, signatures, count, arena, &call));
    return run_sizes(w, call.signature, call.inputs);
}

static sx_status run_examples(warming *w, sx_inference_method method, sx_bytes signature_name,
                              const sx_tensor *examples)
{
    size_t count;
    const sx_serve_signature *signatures = w->ops->signatures(w->model, &count), *signature = NULL;
    SX_TRY(sx_inference_find(method, signatures, count, signature_name, &signature));
    return run_sizes(w, signature, examples);
}

static sx_status run_inference(warming *w, uint32_t log, sx_bytes request, sx_arena *arena)
{
    sx_tensor examples;
    sx_predict_spec spec;
    sx_inference_task *tasks = NULL;
    size_t count = 0;
    SX_TRY(sx_examples_read(request, arena, &examples));
    if (log != MULTI_INFERENCE_LOG) {
        SX_TRY(sx_predict_spec_read(request, &spec));
        return run_examples(w, log == CLASSIFY_LOG ? SX_CLASSIFY : SX_REGRESS, spec.signature,
                            &examples);
    }
    SX_TRY(sx_inference_tasks_read(request, arena, &tasks, &count));
    for (size_t i = 0; i < count; i++) {
        const bool classifies = sx_bytes_is(tasks[i].method, "tensorflow/serving/classify");
        SX_TRY(run_examples(w, classifies ? SX_CLASSIFY : SX_REGRESS, tasks[i].spec.signature,
                            &examples));
    }
    return SX_OK;
}

/* ---- Records ---- */

static sx_status malformed(void)
{
    return sx_error(SX_INVALID_ARGUMENT, "malformed PredictionLog");
}

/* Field 1 of a message. */
static sx_status request_of(sx_bytes log, sx_bytes *out)
{
    sx_wire wire = sx_wire_over(log);
    sx_wire_field field;
    *out = (sx_bytes){"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed();
        }
        if (field.number == 1 && field.type == SX_WIRE_BYTES) {
            *out = field.value;
        }
    }
    return SX_OK;
}

static sx_status replay(warming *w, sx_bytes record)
{
    sx_wire wire = sx_wire_over(record);
    sx_wire_field field, log = {0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed();
        }
        if (field.number >= CLASSIFY_LOG && field.type == SX_WIRE_BYTES) {
            log = field;
        }
    }
    const bool inference = log.number == CLASSIFY_LOG || log.number == REGRESS_LOG ||
                           log.number == MULTI_INFERENCE_LOG;
    if (log.number != PREDICT_LOG && !inference) {
        return sx_error(SX_UNIMPLEMENTED, "Unsupported log type for warmup: field %u",
                        (unsigned)log.number);
    }
    sx_bytes request;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    arena.budget = &w->memory;
    sx_status status = request_of(log.value, &request);
    if (status == SX_OK) {
        status = inference ? run_inference(w, log.number, request, &arena)
                           : run_predict(w, request, &arena);
    }
    sx_arena_deinit(&arena);
    return status;
}

static sx_status replay_all(warming *w, sx_tfrecord_reader *reader, int *out_count)
{
    sx_bytes record;
    bool more;
    for (*out_count = 0;; ++*out_count) {
        SX_TRY(sx_tfrecord_next(reader, &record, &more));
        if (!more) {
            return SX_OK;
        }
        if (*out_count == SX_WARMUP_RECORDS) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "Number of warmup records exceeds the maximum (%d)",
                            (int)SX_WARMUP_RECORDS);
        }
        SX_TRY(replay(w, record), "record %d", *out_count);
    }
}

static sx_status replay_file(warming *w, const char *path)
{
    const sx_tfrecord_options options = {.max_record_bytes = SX_WARMUP_RECORD_BYTES};
    sx_tfrecord_reader *reader = NULL;
    int count = 0;
    SX_TRY(sx_tfrecord_reader_open(path, &options, &reader));
    sx_status status = replay_all(w, reader, &count);
    sx_tfrecord_reader_destroy(reader);
    if (status == SX_OK) {
        sx_log(SX_LOG_INFO,
               "Finished reading warmup data for model at %s. Number of warmup records "
               "read: %d",
               path, count);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "warmup: %s", path);
}

sx_status sx_warmup(const char *version_dir, const sx_serve_model_ops *ops, void *model,
                    const sx_warmup_options *options, const sx_cancel *cancel)
{
    warming w = {.ops = ops, .model = model, .options = options, .cancel = cancel};
    char *path = NULL;
    sx_budget_init(&w.memory, "warm-up", SX_WARMUP_MEMORY_BYTES, NULL);
    SX_TRY(sx_path_join(version_dir, "assets.extra/tf_serving_warmup_requests", &path));
    sx_status status = sx_path_exists(path) ? replay_file(&w, path) : SX_OK;
    sx_free(path);
    return status;
}
