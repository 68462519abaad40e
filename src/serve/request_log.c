/* See request_log.h. */
#include "serve/request_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "io/tfrecord.h"
#include "proto/wire.h"
#include "serve/inference_proto.h"
#include "serve/metrics.h"

/* One model in one file; kept until the end, so that a request may hold it across a reload. */
struct sx_logged {
    char *model, *prefix;
    double sampling_rate;
    bool active;
    uint64_t seen; /* requests, for the sample */
    sx_request_log *log;
    sx_log_file *file;
    sx_logged *next;
};

struct sx_request_log {
    pthread_mutex_t mutex;
    sx_log_writer *writer;
    char *prefix, *tags; /* prefix NULL: models without a rule are not logged */
    double sampling_rate;
    int64_t max_file_bytes;
    double max_file_seconds;
    sx_logged *all;
    /* Models whose rule says that they are not logged. */
    char **silent;
    size_t silent_count;
};

/* ---- Rules ---- */

sx_status sx_request_log_create(const sx_request_log_config *config, sx_log_writer *writer,
                                sx_request_log **out)
{
    sx_request_log *log = sx_alloc(1, sizeof(*log));
    if (log == NULL) {
        return sx_no_memory("for a request log");
    }
    pthread_mutex_init(&log->mutex, NULL);
    log->writer = writer;
    log->sampling_rate = config->sampling_rate > 0 ? config->sampling_rate : 1;
    log->max_file_bytes = config->max_file_bytes;
    log->max_file_seconds = config->max_file_seconds;
    log->prefix = config->prefix != NULL ? sx_strdup(config->prefix) : NULL;
    log->tags = sx_strdup(config->tags != NULL ? config->tags : "serve");
    if (log->tags == NULL || (config->prefix != NULL && log->prefix == NULL)) {
        sx_request_log_destroy(log);
        return sx_no_memory("for a request log");
    }
    *out = log;
    return SX_OK;
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sx_free(names[i]);
    }
    sx_free(names);
}

static void free_logged(sx_logged *logged)
{
    sx_free(logged->model);
    sx_free(logged->prefix);
    sx_free(logged);
}

void sx_request_log_destroy(sx_request_log *log)
{
    sx_logged *next;
    if (log == NULL) {
        return;
    }
    for (sx_logged *logged = log->all; logged != NULL; logged = next) {
        next = logged->next;
        free_logged(logged);
    }
    free_names(log->silent, log->silent_count);
    sx_free(log->prefix);
    sx_free(log->tags);
    pthread_mutex_destroy(&log->mutex);
    sx_free(log);
}

/* With the mutex held: the model's file of that prefix, which is opened if there is none yet. */
static sx_status add_logged(sx_request_log *log, const char *model, const char *prefix,
                            double sampling_rate, sx_logged **out)
{
    sx_logged *logged = log->all;
    while (logged != NULL &&
           (strcmp(logged->model, model) != 0 || strcmp(logged->prefix, prefix) != 0)) {
        logged = logged->next;
    }
    if (logged == NULL) {
        logged = sx_alloc(1, sizeof(*logged));
        if (logged == NULL) {
            return sx_no_memory("for a request log");
        }
        logged->log = log;
        logged->model = sx_strdup(model);
        logged->prefix = sx_strdup(prefix);
        const sx_log_file_config file = {.path = prefix,
                                         .suffix = ".tfrecord",
                                         .max_bytes = log->max_file_bytes,
                                         .max_seconds = log->max_file_seconds};
        sx_status status = logged->model == NULL || logged->prefix == NULL
                               ? sx_no_memory("for a request log")
                               : sx_log_writer_add(log->writer, &file, &logged->file);
        if (status != SX_OK) {
            free_logged(logged);
            return status;
        }
        logged->next = log->all;
        log->all = logged;
    }
    logged->sampling_rate = sampling_rate;
    *out = logged;
    return SX_OK;
}

static sx_status replace_rules(sx_request_log *log, const sx_log_rule *rules, size_t count,
                               sx_logged **chosen, char **silent)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].prefix != NULL) {
            SX_TRY(add_logged(log, rules[i].model, rules[i].prefix, rules[i].sampling_rate,
                              &chosen[i]));
        } else if ((silent[i] = sx_strdup(rules[i].model)) == NULL) {
            return sx_no_memory("for the rules of a request log");
        }
    }
    for (sx_logged *logged = log->all; logged != NULL; logged = logged->next) {
        logged->active = false;
    }
    for (size_t i = 0; i < count; i++) {
        if (chosen[i] != NULL) {
            chosen[i]->active = true;
        }
    }
    return SX_OK;
}

sx_status sx_request_log_set_rules(sx_request_log *log, const sx_log_rule *rules, size_t count)
{
    sx_logged **chosen = sx_alloc(count + 1, sizeof(chosen[0]));
    char **silent = sx_alloc(count + 1, sizeof(silent[0]));
    sx_status status =
        chosen == NULL || silent == NULL ? sx_no_memory("for the rules of a request log") : SX_OK;
    if (status == SX_OK) {
        pthread_mutex_lock(&log->mutex);
        status = replace_rules(log, rules, count, chosen, silent);
        if (status == SX_OK) {
            free_names(log->silent, log->silent_count);
            log->silent = silent;
            log->silent_count = count;
            silent = NULL;
        }
        pthread_mutex_unlock(&log->mutex);
    }
    if (silent != NULL) {
        free_names(silent, count);
    }
    sx_free(chosen);
    return status;
}

static bool is_silent(const sx_request_log *log, const char *model)
{
    for (size_t i = 0; i < log->silent_count; i++) {
        if (log->silent[i] != NULL && strcmp(log->silent[i], model) == 0) {
            return true;
        }
    }
    return false;
}

/* PREFIX-MODEL, with '_' for what a name of a file should not have. */
static sx_logged *add_default(sx_request_log *log, const char *model)
{
    sx_logged *logged = NULL;
    sx_buf prefix;
    sx_buf_init(&prefix, 64 * 1024);
    sx_buf_printf(&prefix, "%s-", log->prefix);
    for (const char *c = model; *c != '\0'; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9') || *c == '-' || *c == '.' || *c == '_';
        sx_buf_putc(&prefix, plain ? *c : '_');
    }
    sx_status status = sx_buf_status(&prefix);
    if (status == SX_OK) {
        status = add_logged(log, model, sx_buf_text(&prefix), log->sampling_rate, &logged);
    }
    sx_status_free(status); /* the next request tries again */
    sx_buf_deinit(&prefix);
    if (logged != NULL) {
        logged->active = true;
    }
    return logged;
}

sx_logged *sx_request_log_sample(sx_request_log *log, const char *model)
{
    if (log == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&log->mutex);
    sx_logged *logged = log->all;
    while (logged != NULL && (!logged->active || strcmp(logged->model, model) != 0)) {
        logged = logged->next;
    }
    if (logged == NULL && log->prefix != NULL && !is_silent(log, model)) {
        logged = add_default(log, model);
    }
    if (logged != NULL) {
        const uint64_t n = logged->seen++;
        const sx_u32x2 bits =
            sx_threefry2x32((sx_u32x2){0x6c6f67, 0}, (sx_u32x2){(uint32_t)n, (uint32_t)(n >> 32)});
        const double drawn = ((double)bits.a * 0x1p32 + (double)bits.b) * 0x1p-64;
        logged = drawn < logged->sampling_rate ? logged : NULL;
    }
    pthread_mutex_unlock(&log->mutex);
    return logged;
}

/* ---- Records ---- */

/* Begins a record: room for the frame's header, the metadata, the head of the log. */
static size_t begin_record(const sx_logged *logged, sx_log_kind kind, const sx_predict_spec *ran,
                           sx_buf *out)
{
    const double rate = logged->sampling_rate;
    sx_buf_init(out, 0);
    (void)sx_buf_extend(out, SX_TFRECORD_HEADER);
    const size_t metadata = sx_wire_begin(out, 1);
    sx_predict_spec_print(ran, 1, out);
    const size_t sampling = sx_wire_begin(out, 2);
    sx_wire_append_tag(out, 1, SX_WIRE_FIXED64);
    sx_buf_append(out, &rate, sizeof(rate));
    sx_wire_end(out, sampling);
    for (const char *tag = logged->log->tags; *tag != '\0';) {
        const size_t size = strcspn(tag, ",");
        sx_wire_append_bytes(out, 3, (sx_bytes){tag, size});
        tag += size + (tag[size] == ',');
    }
    sx_wire_append_number(out, 4, (uint64_t)sx_wall_seconds());
    sx_wire_end(out, metadata);
    return sx_wire_begin(out, (uint32_t)kind);
}

static void end_record(sx_logged *logged, size_t log, sx_buf *out)
{
    uint8_t header[SX_TFRECORD_HEADER], footer[SX_TFRECORD_FOOTER];
    sx_wire_end(out, log);
    if (!out->failed) {
        sx_tfrecord_frame(
            (sx_bytes){out->data + SX_TFRECORD_HEADER, out->size - SX_TFRECORD_HEADER}, header,
            footer);
        memcpy(out->data, header, sizeof(header));
        sx_buf_append(out, footer, sizeof(footer));
    }
    sx_log_file_put(logged->file, out);
}

void sx_log_messages(sx_logged *logged, sx_log_kind kind, const sx_predict_spec *ran,
                     sx_bytes request, sx_bytes response)
{
    sx_buf out;
    const size_t log = begin_record(logged, kind, ran, &out);
    sx_wire_append_bytes(&out, 1, request);
    sx_wire_append_bytes(&out, 2, response);
    end_record(logged, log, &out);
}

/* The spec of a request: it is replayed on whatever version is served then. */
static void put_asked(const sx_predict_spec *ran, sx_buf *out)
{
    const size_t spec = sx_wire_begin(out, 1);
    sx_wire_append_bytes(out, 1, ran->name);
    sx_wire_append_bytes(out, 3, ran->signature);
    sx_wire_end(out, spec);
}

/* Appends tensors as entries of the map that is field `number`; texts in a list, since TensorFlow's
 * Python reads no others. One without values in a message
 * makes the record fail. */
static void put_tensors(sx_buf *out, uint32_t number, const sx_serve_tensor *infos,
                        const sx_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sx_status status = sx_predict_tensor_print(number, infos[i].name, &tensors[i],
                                                   tensors[i].type.dtype != SX_STRING, out);
        if (status != SX_OK) {
            out->failed = (int)sx_status_code(status);
            sx_status_free(status);
        }
    }
}

void sx_log_run(sx_logged *logged, const sx_predict_spec *ran, const sx_serve_signature *signature,
                const sx_tensor *inputs, const sx_tensor *outputs)
{
    sx_buf out;
    const size_t log = begin_record(logged, SX_LOG_PREDICT, ran, &out);
    const size_t request = sx_wire_begin(&out, 1);
    put_asked(ran, &out);
    put_tensors(&out, 2, signature->inputs, inputs, signature->input_count);
    sx_wire_end(&out, request);
    const size_t response = sx_wire_begin(&out, 2);
    put_tensors(&out, 1, signature->outputs, outputs, signature->output_count);
    sx_predict_spec_print(ran, 2, &out);
    sx_wire_end(&out, response);
    end_record(logged, log, &out);
}

void sx_log_inference(sx_logged *logged, const sx_predict_spec *ran, const sx_tensor *examples,
                      const sx_inference_result *result)
{
    sx_buf out;
    const size_t log = begin_record(
        logged, result->method == SX_CLASSIFY ? SX_LOG_CLASSIFY : SX_LOG_REGRESS, ran, &out);
    const size_t request = sx_wire_begin(&out, 1);
    put_asked(ran, &out);
    sx_examples_print(examples, &out);
    sx_wire_end(&out, request);
    const size_t response = sx_wire_begin(&out, 2);
    sx_inference_print(result, ran, &out);
    sx_wire_end(&out, response);
    end_record(logged, log, &out);
}

/* ---- Metrics ---- */

static void print_count(sx_buf *out, const char *model, const char *code, uint64_t count)
{
    if (count > 0) {
        sx_metrics_print_series(out, ":tensorflow:serving:request_log_count", "", "model_name",
                                model, "");
        sx_buf_printf(out, ",status_code=\"%s\"} %" PRIu64 "\n", code, count);
    }
}

void sx_request_log_print_metrics(sx_request_log *log, sx_buf *out)
{
    sx_metrics_print_head(out, ":tensorflow:serving:request_log_count", "counter",
                          "Requests that were logged, by what came of it.");
    if (log == NULL) {
        return;
    }
    pthread_mutex_lock(&log->mutex);
    for (const sx_logged *logged = log->all; logged != NULL; logged = logged->next) {
        sx_log_stats sum = {0};
        bool printed = false; /* a model that was moved to another prefix is one series */
        bool before = true;
        for (const sx_logged *other = log->all; other != NULL; other = other->next) {
            before = before && other != logged;
            if (strcmp(other->model, logged->model) == 0) {
                const sx_log_stats stats = sx_log_file_stats(other->file);
                printed = printed || before;
                sum.written += stats.written;
                sum.dropped += stats.dropped;
                sum.failed += stats.failed;
            }
        }
        if (printed) {
            continue;
        }
        print_count(out, logged->model, "OK", sum.written);
        print_count(out, logged->model, "RESOURCE_EXHAUSTED", sum.dropped);
        print_count(out, logged->model, "UNAVAILABLE", sum.failed);
    }
    pthread_mutex_unlock(&log->mutex);
}
