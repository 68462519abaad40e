/* See predict_model.h.
 *
 *   data   --sx_data_open-->          batches of what the signature takes: images or records
 *                                     as strings, rows of arrays and columns by the inputs'
 *                                     names, or lines of JSON
 *   batch  --sx_predictor_run-->      outputs; example by example if the batch fails
 *   row    --sx_predict_print_row-->  {"id": 17, "file": "a.jpg", "label": "rose",
 *                                      "prediction": [0.1, 0.9]} */
#include "predict_model.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "data/element.h"
#include "dir_hint.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/path.h"
#include "predict_job.h"
#include "savedmodel/names.h"
#include "savedmodel/versions.h"
#include "servable_args.h"
#include "serve/json_scan.h"
#include "serve/predict_json.h"
#include "serve/predictor_model.h"

enum { BATCH = 32, MAX_NAME = 512 };

/* ---- The model ---- */

/* Loads the version `dir`. Examples that do not depend on one another run BATCH at a time, the last
 * ones with padding, so that no bit depends on where a shard begins. */
static sx_status load(sx_invocation *inv, const sx_predict_model_args *args, const char *dir,
                      void **out_model)
{
    static const int64_t sizes[] = {BATCH};
    const char *limit = sx_arena_printf(&inv->arena, "the model (--%s)",
                                        sx_option_typed(inv, "model-memory-limit"));
    if (limit == NULL) {
        return sx_no_memory("for the options of a model");
    }
    sx_predictor_options options = {.on = sx_device_args_read(args->device_args),
                                    .threads = (int)args->device_args->threads,
                                    .memory_limit_bytes = args->model_memory_limit,
                                    .memory_limit_of = limit,
                                    .batch_sizes = sizes,
                                    .batch_size_count = 1};
    return sx_predictor_model_ops.load(&options, dir, NULL, out_model);
}

/* The signature to run; errors list those that there are. */
static sx_status find_signature(void *model, const char *given, const sx_serve_signature **out)
{
    size_t count = 0;
    const sx_serve_signature *all = sx_predictor_model_ops.signatures(model, &count);
    const char *name = given != NULL ? given : "serving_default";
    *out = sx_serve_find_signature(all, count, (sx_bytes){name, strlen(name)});
    if (*out != NULL) {
        return SX_OK;
    }
    sx_buf names;
    sx_buf_init(&names, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, SX_INIT_SIGNATURE) != 0) {
            sx_buf_printf(&names, "%s\"%s\"", names.size == 0 ? "" : ", ", all[i].name);
        }
    }
    sx_status status = sx_error(SX_NOT_FOUND, "no signature \"%s\"; the model has %s", name,
                                names.size > 0 ? sx_buf_text(&names) : "none");
    sx_buf_deinit(&names);
    return status;
}

/* Continues a checksum over a file of the model. */
static sx_status add_checksum(const char *dir, const char *name, uint32_t *crc)
{
    enum { PIECE = 1 << 20 };
    char *path = NULL, *piece = NULL;
    sx_file *file = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = sx_file_open(path, &file);
    sx_free(path);
    if (sx_status_code(status) == SX_NOT_FOUND) { /* a model without variables */
        sx_status_free(status);
        return SX_OK;
    }
    SX_TRY(status);
    piece = sx_alloc(PIECE, 1);
    status = piece == NULL ? sx_no_memory("reading a model") : SX_OK;
    for (uint64_t at = 0; status == SX_OK && at < sx_file_size(file);) {
        const size_t size = (size_t)SX_MIN(sx_file_size(file) - at, (uint64_t)PIECE);
        status = sx_file_read_at(file, at, piece, size);
        *crc = status == SX_OK ? sx_crc32c(*crc, piece, size) : *crc;
        at += size;
    }
    sx_free(piece);
    sx_file_close(file);
    return status;
}

/* ---- The data ---- */

/* What is fed to the inputs. */
typedef struct feed {
    bool takes_string; /* one input, of strings: images or records */
    bool json;         /* lines of JSON */
    int *component;    /* [inputs] of the data; unless json */
    int label;         /* -1 = none */
} feed;

/* Declares the inputs as the features that records, arrays and columns have. */
static sx_status declare_inputs(const sx_serve_signature *s, sx_arena *arena,
                                sx_data_options *options)
{
    sx_feature_spec *specs = sx_arena_array(arena, s->input_count, sx_feature_spec);
    if (specs == NULL) {
        return sx_no_memory("for the inputs");
    }
    for (int i = 0; i < (int)s->input_count; i++) {
        const sx_serve_tensor *port = &s->inputs[i];
        specs[i] = (sx_feature_spec){.name = port->name, .dtype = port->type.dtype};
        bool fits = !port->unknown_rank && port->type.rank >= 1 &&
                    port->type.rank - 1 <= SX_MAX_FEATURE_RANK;
        for (int d = 1; fits && d < port->type.rank; d++) {
            specs[i].dims[d - 1] = port->type.dims[d];
            fits = port->type.dims[d] > 0;
        }
        if (!fits) {
            char text[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT,
                            "signature %s: input \"%s\" is %s: rows of unknown size are read "
                            "from JSON lines only",
                            s->name, port->name,
                            port->unknown_rank ? "of unknown rank"
                                               : sx_type_format(&port->type, text, sizeof(text)));
        }
    }
    options->features = specs;
    options->n_features = (int)s->input_count;
    return SX_OK;
}

static sx_status open_data(sx_invocation *inv, const sx_predict_model_args *args,
                           const sx_serve_signature *s, const char *spec, feed *f,
                           sx_dataset **out_data)
{
    sx_data_options options;
    SX_TRY(sx_data_args_options(inv, args->data_args, &options));
    f->takes_string = s->input_count == 1 && s->inputs[0].type.dtype == SX_STRING;
    options.unparsed =
        f->takes_string && options.image_key == NULL && !sx_serve_holds_bytes(s->inputs[0].name);
    sx_status declared = f->takes_string ? SX_OK : declare_inputs(s, &inv->arena, &options);
    sx_status status = sx_data_args_open(spec, &options, out_data, NULL);
    if (status != SX_OK) { /* of two reasons, the one that comes first */
        sx_status_free(declared == SX_OK ? SX_OK : status);
        return declared == SX_OK ? status : declared;
    }
    const sx_schema *schema = sx_dataset_schema(*out_data);
    f->json = strcmp(schema->components[0].name, "line") == 0;
    f->label = sx_dataset_find(*out_data, "label");
    if (f->label >= 0 && (f->json || schema->components[f->label].type.rank != 0 ||
                          schema->components[f->label].type.dtype != SX_I64)) {
        f->label = -1;
    }
    if (f->json) {
        sx_status_free(declared);
        return SX_OK;
    }
    SX_TRY(declared);
    f->component = sx_arena_array(&inv->arena, s->input_count, int);
    if (f->component == NULL) {
        return sx_no_memory("for the inputs");
    }
    for (int i = 0; i < (int)s->input_count; i++) {
        int found = f->takes_string ? sx_dataset_find(*out_data, "record")
                                    : sx_dataset_find(*out_data, s->inputs[i].name);
        found = found < 0 && f->takes_string ? sx_dataset_find(*out_data, "image") : found;
        if (found < 0 || schema->components[found].type.dtype != s->inputs[i].type.dtype) {
            char text[SX_TYPE_TEXT];
            return sx_error(
                SX_INVALID_ARGUMENT,
                "%s: input \"%s\" of signature %s takes %s, but the data has %s", spec,
                s->inputs[i].name, s->name, sx_dtype_name(s->inputs[i].type.dtype),
                found < 0 ? "nothing of this name"
                          : sx_type_format(&schema->components[found].type, text, sizeof(text)));
        }
        f->component[i] = found;
    }
    return SX_OK;
}

/* ---- Predicting ---- */

typedef struct predicting {
    sx_invocation *inv;
    const sx_predict_model_args *args;
    const char *dir; /* of the version */
    void *model;     /* of sx_predictor_model_ops */
    const sx_serve_signature *signature;
    sx_dataset *data; /* all of it, not batched */
    feed feed;
    sx_predict_slots slots;
    sx_buf file, text;      /* of an example; rows not yet written */
    sx_buf errors;          /* of the shard */
    int64_t done, n_errors; /* examples in this process */
    sx_work_line line;
} predicting;

/* The inputs of `count` examples of a batch from `first` on, in the arena. */
static sx_status make_inputs(predicting *p, const struct sx_batch_data *batch, int64_t first,
                             int64_t count, sx_arena *arena, const sx_tensor **out)
{
    if (!p->feed.json) {
        sx_tensor *inputs = sx_arena_array(arena, p->signature->input_count, sx_tensor);
        if (inputs == NULL) {
            return sx_no_memory("for the inputs");
        }
        for (size_t i = 0; i < p->signature->input_count; i++) {
            inputs[i] = batch->components[p->feed.component[i]];
            const size_t elems =
                (size_t)sx_type_elems(&inputs[i].type) / (size_t)inputs[i].type.dims[0];
            const size_t bytes = inputs[i].type.dtype == SX_STRING
                                     ? sizeof(sx_bytes)
                                     : sx_dtype_bytes(inputs[i].type.dtype);
            inputs[i].data = (char *)inputs[i].data + (size_t)first * elems * bytes;
            inputs[i].type.dims[0] = count;
        }
        *out = inputs;
        return SX_OK;
    }
    const sx_bytes *lines = (const sx_bytes *)batch->components[0].data + first;
    sx_predict_request request;
    sx_buf body;
    for (int64_t i = 0; i < count; i++) { /* half a value, or two, would move the rows after it */
        sx_json json;
        sx_json_init(&json, lines[i], arena);
        SX_TRY(sx_json_skip(&json));
        SX_TRY(sx_json_finish(&json));
    }
    sx_buf_init(&body, 0);
    sx_buf_puts(&body, "{\"signature_name\": ");
    sx_json_print_string(&body, p->signature->name, strlen(p->signature->name));
    sx_buf_puts(&body, ", \"instances\": [");
    for (int64_t i = 0; i < count; i++) {
        sx_buf_puts(&body, i > 0 ? ",\n" : "");
        sx_buf_append(&body, lines[i].data, lines[i].size);
    }
    sx_buf_puts(&body, "]}");
    /* strings of the tensors are views of the text */
    char *text = sx_arena_strndup(arena, sx_buf_text(&body), body.size);
    const size_t size = body.size;
    sx_status status = sx_buf_status(&body);
    sx_buf_deinit(&body);
    if (status == SX_OK) {
        status = text == NULL ? sx_no_memory("for the inputs")
                              : sx_predict_parse((sx_bytes){text, size}, p->signature, 1, arena,
                                                 &p->slots, &request);
    }
    if (status == SX_OK) {
        *out = request.inputs;
    }
    return status;
}

/* {"id": 17, "file": "a.jpg", "label": "rose", and what is told of it begins. Example i of `batch`,
 * which is NULL if it could not be read. */
static void begin_row(predicting *p, const struct sx_batch_data *batch, int64_t i, int64_t id,
                      sx_buf *out)
{
    sx_buf_printf(out, "{\"id\": %" PRId64, id);
    sx_buf_reset(&p->file);
    if (sx_record_file(p->data, id, &p->file)) {
        sx_buf_puts(out, ", \"file\": ");
        sx_json_print_string(out, sx_buf_text(&p->file), p->file.size);
    }
    if (p->feed.label >= 0 && batch != NULL) {
        const int64_t label = ((const int64_t *)batch->components[p->feed.label].data)[i];
        int n = 0;
        const char *const *names = sx_dataset_class_names(p->data, &n);
        sx_buf_puts(out, ", \"label\": ");
        if (label >= 0 && label < n) {
            sx_json_print_string(out, names[label], strlen(names[label]));
        } else {
            sx_buf_printf(out, "%" PRId64, label);
        }
    }
}

/* Appends the rows of `count` examples. Nothing is appended on failure. */
static sx_status run_rows(predicting *p, const struct sx_batch_data *batch, int64_t first,
                          int64_t count)
{
    sx_arena arena;
    const sx_tensor *inputs = NULL;
    const size_t before = p->text.size;
    sx_arena_init(&arena, 0);
    sx_tensor *outputs = sx_arena_array(&arena, p->signature->output_count, sx_tensor);
    sx_status status = outputs == NULL ? sx_no_memory("for the outputs")
                                       : make_inputs(p, batch, first, count, &arena, &inputs);
    if (status == SX_OK) {
        status = sx_predictor_model_ops.run(p->model, p->signature, inputs, NULL, &arena, outputs);
    }
    sx_predict_slots_trim(&p->slots);
    for (size_t i = 0; i < p->signature->output_count && status == SX_OK; i++) {
        if (outputs[i].type.rank == 0 || outputs[i].type.dims[0] != count) {
            char text[SX_TYPE_TEXT];
            status = sx_error(SX_INVALID_ARGUMENT,
                              "output \"%s\" is %s: it has no row for each of %" PRId64
                              " example%s; --signature names another signature",
                              p->signature->outputs[i].name,
                              sx_type_format(&outputs[i].type, text, sizeof(text)), count,
                              count == 1 ? "" : "s");
        }
    }
    for (int64_t i = 0; i < count && status == SX_OK; i++) {
        begin_row(p, batch, first + i, batch->ids[first + i], &p->text);
        sx_buf_puts(&p->text, ", \"prediction\": ");
        status = sx_predict_print_row(p->signature, outputs, i, &p->text);
        sx_buf_puts(&p->text, "}\n");
    }
    if (status != SX_OK) {
        p->text.size = before;
    }
    sx_arena_deinit(&arena);
    return status;
}

/* Notes the error of example i of a batch, or (NULL) of one that could not be read; or returns it
 * if there have been too many. Consumes `status`. */
static sx_status note_error(predicting *p, const struct sx_batch_data *batch, int64_t i, int64_t id,
                            sx_status status)
{
    if (++p->n_errors > p->args->max_errors) {
        char name[MAX_NAME];
        return batch == NULL /* then it is named */
                   ? status
                   : sx_status_annotate(status, __FILE__, __LINE__, "%s",
                                        sx_dataset_record_name(p->data, id, name, sizeof(name)));
    }
    begin_row(p, batch, i, id, &p->errors);
    sx_buf_puts(&p->errors, ", \"error\": ");
    sx_json_print_string(&p->errors, sx_status_message(status), strlen(sx_status_message(status)));
    sx_buf_puts(&p->errors, "}\n");
    sx_status_free(status);
    return sx_buf_status(&p->errors);
}

/* Whether an example's data may be the cause. */
static bool may_be_of_example(sx_status status)
{
    const sx_code code = sx_status_code(status);
    return code != SX_RESOURCE_EXHAUSTED && code != SX_CANCELLED && code != SX_UNIMPLEMENTED &&
           code != SX_INTERNAL;
}

static sx_status predict_batch(predicting *p, const struct sx_batch_data *batch)
{
    sx_status status = run_rows(p, batch, 0, batch->size);
    if (status == SX_OK || !may_be_of_example(status)) {
        return status;
    }
    if (batch->size == 1) {
        return note_error(p, batch, 0, batch->ids[0], status);
    }
    sx_status_free(status);
    status = SX_OK;
    for (int64_t i = 0; i < batch->size && status == SX_OK; i++) {
        status = run_rows(p, batch, i, 1);
        if (status != SX_OK && may_be_of_example(status)) {
            status = note_error(p, batch, i, batch->ids[i], status);
        }
    }
    return status;
}

/* The size is the user's where a batch's examples may depend on one another. */
static int64_t batch_size(const predicting *p)
{
    return p->signature->batch_sizes == NULL && p->args->batch_size > 0 ? p->args->batch_size
                                                                        : BATCH;
}

/* Examples [begin, end), in batches of `size`. */
static sx_status open_range(const predicting *p, int64_t begin, int64_t end, int64_t size,
                            sx_iterator **out)
{
    sx_dataset *data = sx_dataset_retain(p->data);
    sx_status status = sx_dataset_skip(&data, begin);
    if (status == SX_OK) {
        status = sx_dataset_take(&data, end - begin);
    }
    if (status == SX_OK) {
        status = sx_dataset_batch(&data, .size = size);
    }
    if (status == SX_OK) {
        status = sx_iterator_create(data, out, .workers = 1);
    }
    sx_dataset_release(data);
    return status;
}

/* Each by itself, where one of them cannot be read. */
static sx_status predict_one_by_one(predicting *p, int64_t begin, int64_t end)
{
    sx_status status = SX_OK;
    for (int64_t i = begin; i < end && status == SX_OK; i++) {
        sx_iterator *iterator = NULL;
        const struct sx_batch_data *batch;
        status = open_range(p, i, i + 1, 1, &iterator);
        if (status == SX_OK) {
            status = sx_iterator_next(iterator, &batch);
            if (status == SX_OK) {
                status = predict_batch(p, batch);
            } else if (may_be_of_example(status)) {
                status = note_error(p, NULL, 0, i, status);
            }
        }
        sx_iterator_destroy(iterator);
    }
    return status;
}

static sx_status predict_range(predicting *p, int64_t begin, int64_t end, sx_commit_file *file)
{
    const int64_t size = batch_size(p);
    sx_iterator *iterator = NULL;
    sx_status status = SX_OK;
    while (begin < end && status == SX_OK) {
        const struct sx_batch_data *batch;
        const int64_t next = SX_MIN(begin + size, end);
        if (iterator == NULL) {
            SX_TRY(open_range(p, begin, end, size, &iterator));
        }
        status = sx_iterator_next(iterator, &batch);
        if (status == SX_OK) {
            status = predict_batch(p, batch);
        } else if (may_be_of_example(status)) {
            sx_status_free(status);
            sx_iterator_destroy(iterator);
            iterator = NULL;
            status = predict_one_by_one(p, begin, next);
        }
        if (status == SX_OK) {
            status = sx_buf_status(&p->text);
        }
        if (status == SX_OK) {
            status = sx_commit_write(file, sx_buf_text(&p->text), p->text.size);
            sx_buf_reset(&p->text);
            p->done += next - begin;
            begin = next;
        }
        if (status == SX_OK && !sx_work_progress(&p->line, p->done, sx_dataset_count(p->data))) {
            status = sx_error(SX_CANCELLED, "stopped");
        }
    }
    sx_iterator_destroy(iterator);
    return status;
}

static sx_status predict_shard(predicting *p, const sx_predict_job *job, int64_t shard)
{
    sx_commit *commit = NULL;
    sx_commit_file *results = NULL;
    sx_arena arena;
    int64_t begin, end;
    sx_arena_init(&arena, 0);
    sx_predict_job_range(job, shard, &begin, &end);
    const char *results_path = sx_predict_job_path(job, "results", shard, &arena);
    const char *errors_path = sx_predict_job_path(job, "errors", shard, &arena);
    sx_status status = results_path == NULL || errors_path == NULL ? sx_no_memory("for a path")
                                                                   : sx_commit_create(&commit);
    sx_buf_reset(&p->errors);
    if (status == SX_OK) {
        status = sx_commit_add(commit, results_path, &results);
    }
    if (status == SX_OK && begin < end) {
        status = predict_range(p, begin, end, results);
    }
    /* a shard is complete when its results are there: they come last */
    if (status == SX_OK && p->errors.size > 0) {
        status = sx_commit_bytes(errors_path, sx_buf_text(&p->errors), p->errors.size);
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    sx_arena_deinit(&arena);
    return status;
}

static void print_result(predicting *p, const sx_predict_job *job, int64_t shards, int64_t examples,
                         bool stopped)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text, "%s: %" PRId64 " of %" PRId64 " shard%s, %" PRId64 " example%s",
                  p->args->out, shards, job->shards, job->shards == 1 ? "" : "s", examples,
                  examples == 1 ? "" : "s");
    if (shards < job->shards) {
        sx_buf_puts(&text, stopped ? "; run the same command to continue"
                                   : "; other processes work on the rest");
    }
    if (p->n_errors > 0) {
        sx_buf_printf(&text, "; %" PRId64 " failed, see %s/prediction.errors-*", p->n_errors,
                      p->args->out);
    }
    sx_buf_putc(&text, '\n');
    sx_print_done(p->inv, sx_buf_text(&text));
    sx_buf_deinit(&text);
}

static sx_status predict_shards(predicting *p, sx_predict_job *job)
{
    int64_t shards = 0, examples = 0;
    SX_TRY(sx_predict_job_done(job, &shards, &p->done));
    sx_status status = SX_OK;
    bool worked = true;
    while (status == SX_OK && worked) { /* once more for shards of processes killed meanwhile */
        worked = false;
        for (int64_t shard = 0; status == SX_OK; shard++) {
            status = sx_predict_job_take(job, &shard);
            if (status != SX_OK || shard < 0) {
                break;
            }
            status = predict_shard(p, job, shard);
            sx_predict_job_release(job, shard);
            worked = true;
        }
    }
    sx_work_end(&p->line);
    const bool stopped = sx_status_code(status) == SX_CANCELLED;
    if (status != SX_OK && !stopped) {
        return status;
    }
    sx_status counted = sx_predict_job_done(job, &shards, &examples);
    if (counted != SX_OK) {
        sx_status_free(status);
        return counted;
    }
    print_result(p, job, shards, examples, stopped);
    return status;
}

/* Continues a checksum over vocabularies and the like. */
static sx_status add_assets(const char *dir, uint32_t *crc)
{
    sx_paths names = {0};
    char *assets = NULL;
    SX_TRY(sx_path_join(dir, "assets", &assets));
    sx_status status = sx_path_exists(assets) ? sx_dir_list(assets, &names) : SX_OK;
    for (size_t i = 0; i < names.count && status == SX_OK; i++) {
        status = add_checksum(assets, names.items[i], crc);
    }
    sx_paths_deinit(&names);
    sx_free(assets);
    return status;
}

/* What makes a job this job. */
static sx_status make_settings(predicting *p, const char *spec, json_t **out)
{
    const sx_data_args *data = p->args->data_args;
    uint32_t crc = 0;
    char model[16];
    if (!sx_utf8_valid(spec, strlen(spec))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "--data is \"%s\", which is not UTF-8; rename the files", spec);
    }
    SX_TRY(add_checksum(p->dir, "saved_model.pb", &crc));
    SX_TRY(add_checksum(p->dir, "variables/variables.index", &crc));
    SX_TRY(add_assets(p->dir, &crc));
    snprintf(model, sizeof(model), "%08" PRIx32, crc);
    json_t *features = json_array();
    for (int i = 0; i < data->feature.count; i++) {
        json_array_append_new(features, json_string(data->feature.items[i]));
    }
    *out = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:I, s:b, s:b}", "checksum of the model",
                     model, "signature", p->signature->name, "data", spec, "number of examples",
                     (json_int_t)sx_dataset_count(p->data), "batch size", (json_int_t)batch_size(p),
                     "--feature", features, "--label-base", (json_int_t)data->label_base,
                     "--recursive", data->recursive, "--skip-corrupt", data->skip_corrupt);
    return *out == NULL ? sx_no_memory("for the job") : SX_OK;
}

static sx_status predict(predicting *p, const char *spec)
{
    json_t *settings = NULL;
    sx_predict_job job = {.fd = -1};
    SX_TRY(open_data(p->inv, p->args, p->signature, spec, &p->feed, &p->data));
    if (p->args->examples > 0) {
        SX_TRY(sx_dataset_take(&p->data, p->args->examples));
    }
    const int64_t count = sx_dataset_count(p->data);
    SX_TRY(make_settings(p, spec, &settings));
    sx_status status = sx_predict_job_open(p->args->out, settings, p->args->shards, count, &job);
    json_decref(settings);
    if (status == SX_OK) {
        status = predict_shards(p, &job);
    }
    sx_predict_job_close(&job);
    return status;
}

sx_status sx_predict_model(sx_invocation *inv, const sx_predict_model_args *args)
{
    predicting p = {.inv = inv, .args = args, .line = {.inv = inv, .what = "examples"}};
    const char *spec = NULL;
    SX_TRY(sx_servable_args_check(inv, args->device_args));
    SX_TRY(sx_data_spec(inv, &args->data, &spec));
    sx_status status = sx_version_find(args->model, &inv->arena, &p.dir);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        return sx_dir_explain(status, &inv->arena, args->model, SX_WANTED_SAVED_MODEL);
    }
    SX_TRY(status);
    SX_TRY(load(inv, args, p.dir, &p.model));
    sx_buf_init(&p.file, 1 << 16);
    sx_buf_init(&p.text, 0);
    sx_buf_init(&p.errors, 0);
    sx_predict_slots_init(&p.slots);
    status = find_signature(p.model, args->signature, &p.signature);
    if (status == SX_OK) {
        status = predict(&p, spec);
    }
    sx_dataset_release(p.data);
    sx_predict_slots_deinit(&p.slots);
    sx_buf_deinit(&p.errors);
    sx_buf_deinit(&p.text);
    sx_buf_deinit(&p.file);
    sx_predictor_model_ops.unload(p.model);
    return status;
}
