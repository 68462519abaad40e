/* sextant replay: sends the requests of a request log to a model server and compares the answers;
 * or makes warm-up records of them. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "client/messages.h"
#include "client/raw.h"
#include "client_args.h"
#include "io/commit.h"
#include "io/path.h"
#include "io/tfrecord.h"
#include "proto/wire.h"
#include "serve/predict_proto.h"
#include "serve/request_log.h"
#include "serve/warmup.h"

typedef struct options {
    const char *url, *model, *version, *warmup_dir;
    double rate, relative_tolerance, absolute_tolerance;
    int64_t connections, count, max_records;
    bool json;
    sx_client_args client_args;
} options;

static const sx_option rows[] = {
    {"url", SX_OPTION_STRING, SX_OPT(options, url), "server to send the requests to, over gRPC",
     "HOST:PORT"},
    {"model", SX_OPTION_STRING, SX_OPT(options, model),
     "send them to this model instead of the one in the log", "NAME"},
    {"version", SX_OPTION_STRING, SX_OPT(options, version),
     "send them to this version instead of the one in the log", "N"},
    {"rate", SX_OPTION_FLOAT, SX_OPT(options, rate),
     "requests a second; default: as fast as the server answers", "N", .min = 1e-3, .max = 1e6},
    {"connections", SX_OPTION_INT, SX_OPT(options, connections), "requests at once", "N", .min = 1,
     .max = 256},
    {"count", SX_OPTION_INT, SX_OPT(options, count), "stop after N requests; 0: send all", "N",
     .max = 1e12},
    {"relative-tolerance", SX_OPTION_FLOAT, SX_OPT(options, relative_tolerance),
     "how much numbers may differ from those in the log, relative to these", "X", .max = 1},
    {"absolute-tolerance", SX_OPTION_FLOAT, SX_OPT(options, absolute_tolerance),
     "how much they may differ in addition, whatever their size", "X", .max = 1e6},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print the result as JSON"},
    SX_CLIENT_ARGS_ROWS(options),
    {"warmup-dir", SX_OPTION_STRING, SX_OPT(options, warmup_dir),
     "write the requests, one of each signature and shape, as the warm-up records of this version "
     "of a model: DIR/assets.extra/tf_serving_warmup_requests",
     "DIR", .group = "Warm-up"},
    {"max-records", SX_OPTION_INT, SX_OPT(options, max_records), "write at most N records", "N",
     .min = 1, .max = SX_WARMUP_RECORDS},
};
static const options defaults = {.connections = 1,
                                 .relative_tolerance = 1e-4,
                                 .absolute_tolerance = 1e-5,
                                 .client_args.timeout = 60,
                                 .max_records = 100};

enum { MAX_RECORD = 1 << 30, SHOWN = 5, TEXT_BYTES = 300 };

/* ---- Records ---- */

/* A logged request; views of the record. */
typedef struct logged {
    sx_log_kind kind;
    sx_bytes request, response;
} logged;

static const char *method_of(sx_log_kind kind)
{
    static const struct {
        sx_log_kind kind;
        const char *method;
    } methods[] = {
        {SX_LOG_PREDICT, "/tensorflow.serving.PredictionService/Predict"},
        {SX_LOG_CLASSIFY, "/tensorflow.serving.PredictionService/Classify"},
        {SX_LOG_REGRESS, "/tensorflow.serving.PredictionService/Regress"},
        {SX_LOG_MULTI_INFERENCE, "/tensorflow.serving.PredictionService/MultiInference"},
        {SX_LOG_SESSION_RUN, "/tensorflow.serving.SessionService/SessionRun"},
    };
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        if (methods[i].kind == kind) {
            return methods[i].method;
        }
    }
    return NULL;
}

static sx_status read_record(sx_bytes record, logged *out)
{
    sx_wire wire = sx_wire_over(record);
    sx_wire_field field;
    sx_bytes log = {"", 0};
    *out = (logged){0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return sx_error(SX_DATA_LOSS, "malformed PredictionLog");
        }
        if (field.number > 1 && field.type == SX_WIRE_BYTES) {
            out->kind = (sx_log_kind)field.number;
            log = field.value;
        }
    }
    if (method_of(out->kind) == NULL) {
        return sx_error(SX_DATA_LOSS, "a PredictionLog without a request that can be sent");
    }
    return sx_client_field(log, 1, &out->request) && sx_client_field(log, 2, &out->response)
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "malformed PredictionLog");
}

/* Appends a message whose field 1 is a ModelSpec, with another model or version in it; other fields
 * stay as they are. */
static sx_status put_with_spec(const options *o, sx_bytes message, sx_buf *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_predict_spec spec;
    SX_TRY(sx_predict_spec_read(message, &spec));
    sx_arena arena;
    sx_arena_init(&arena, 0);
    char *name = sx_arena_strndup(&arena, spec.name.data, spec.name.size);
    char *signature = sx_arena_strndup(&arena, spec.signature.data, spec.signature.size);
    const sx_client_model model = {.name = o->model != NULL ? o->model : name,
                                   .version = o->version};
    sx_status status = name == NULL || signature == NULL
                           ? sx_no_memory("for a request")
                           : sx_client_put_spec(&model, signature, out);
    sx_arena_deinit(&arena);
    while (status == SX_OK && sx_wire_more(&wire)) {
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field)) {
            return sx_error(SX_DATA_LOSS, "malformed request");
        }
        if (field.number != 1) {
            sx_buf_append(out, at, (size_t)(wire.at - at));
        }
    }
    return status == SX_OK ? sx_buf_status(out) : status;
}

/* Appends the request, with --model and --version in place of what the log has. */
static sx_status put_request(const options *o, const logged *row, sx_buf *out)
{
    sx_wire wire = sx_wire_over(row->request);
    sx_wire_field field;
    if (o->model == NULL && o->version == NULL) {
        sx_buf_append(out, row->request.data, row->request.size);
        return sx_buf_status(out);
    }
    if (row->kind != SX_LOG_MULTI_INFERENCE) {
        return put_with_spec(o, row->request, out);
    }
    while (sx_wire_more(&wire)) { /* tasks 1, each with a spec, and the examples */
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field)) {
            return sx_error(SX_DATA_LOSS, "malformed request");
        }
        if (field.number == 1 && field.type == SX_WIRE_BYTES) {
            const size_t task = sx_wire_begin(out, 1);
            SX_TRY(put_with_spec(o, field.value, out));
            sx_wire_end(out, task);
        } else {
            sx_buf_append(out, at, (size_t)(wire.at - at));
        }
    }
    return sx_buf_status(out);
}

/* ---- Comparing ---- */

static bool are_near(const options *o, double was, double is)
{
    return was == is || (isnan(was) && isnan(is)) ||
           fabs(is - was) <= o->absolute_tolerance + o->relative_tolerance * fabs(was);
}

static double number_at(const sx_tensor *tensor, int64_t i)
{
    return tensor->type.dtype == SX_F32 ? (double)((const float *)tensor->data)[i]
                                        : ((const double *)tensor->data)[i];
}

/* What differs of an output, as text; false: nothing. */
static bool tensors_differ(const options *o, const sx_client_tensor *was, const sx_tensor *is,
                           char text[TEXT_BYTES])
{
    char was_type[SX_TYPE_TEXT], is_type[SX_TYPE_TEXT];
    const sx_type *type = &was->tensor.type;
    if (is == NULL || !sx_type_equal(type, &is->type)) {
        snprintf(text, TEXT_BYTES, "output \"%.60s\": %s in the log, now %s", was->name,
                 sx_type_format(type, was_type, sizeof(was_type)),
                 is == NULL ? "there is none"
                            : sx_type_format(&is->type, is_type, sizeof(is_type)));
        return true;
    }
    const int64_t elems = sx_type_elems(type);
    for (int64_t i = 0; i < elems; i++) {
        const size_t bytes = sx_dtype_bytes(type->dtype);
        if (type->dtype == SX_STRING) {
            if (sx_bytes_compare(((const sx_bytes *)was->tensor.data)[i],
                                 ((const sx_bytes *)is->data)[i]) != 0) {
                snprintf(text, TEXT_BYTES, "output \"%.60s\": text %lld differs", was->name,
                         (long long)i);
                return true;
            }
        } else if (type->dtype == SX_F32 || type->dtype == SX_F64) {
            const double a = number_at(&was->tensor, i), b = number_at(is, i);
            if (!are_near(o, a, b)) {
                snprintf(text, TEXT_BYTES,
                         "output \"%.60s\": element %lld is %g in the log, now %g", was->name,
                         (long long)i, a, b);
                return true;
            }
        } else if (memcmp((const char *)was->tensor.data + (size_t)i * bytes,
                          (const char *)is->data + (size_t)i * bytes, bytes) != 0) {
            snprintf(text, TEXT_BYTES, "output \"%.60s\": element %lld differs", was->name,
                     (long long)i);
            return true;
        }
    }
    return false;
}

static sx_status outputs_differ(const options *o, sx_bytes was, sx_bytes is, sx_arena *arena,
                                char text[TEXT_BYTES], bool *out)
{
    sx_client_tensor *then, *now;
    int then_count, now_count;
    SX_TRY(sx_client_read_outputs(was, "the log", arena, &then, &then_count));
    SX_TRY(sx_client_read_outputs(is, o->url, arena, &now, &now_count));
    *out = then_count != now_count;
    snprintf(text, TEXT_BYTES, "%d outputs in the log, now %d", then_count, now_count);
    for (int i = 0; i < then_count && !*out; i++) {
        const sx_tensor *found = NULL;
        for (int k = 0; k < now_count && found == NULL; k++) {
            found = strcmp(now[k].name, then[i].name) == 0 ? &now[k].tensor : NULL;
        }
        *out = tensors_differ(o, &then[i], found, text);
    }
    return SX_OK;
}

static sx_status results_differ(const options *o, sx_inference_method method, sx_bytes was,
                                sx_bytes is, sx_arena *arena, char text[TEXT_BYTES], bool *out)
{
    sx_inference_result then, now;
    SX_TRY(sx_client_read_inference(method, was, "the log", arena, &then));
    SX_TRY(sx_client_read_inference(method, is, o->url, arena, &now));
    *out = then.examples != now.examples || then.classes != now.classes;
    snprintf(text, TEXT_BYTES, "%zu examples of %zu results in the log, now %zu of %zu",
             then.examples, then.classes, now.examples, now.classes);
    for (size_t i = 0; i < then.examples * then.classes && !*out; i++) {
        *out = (method == SX_CLASSIFY && sx_bytes_compare(then.labels[i], now.labels[i]) != 0) ||
               !are_near(o, (double)then.scores[i], (double)now.scores[i]);
        snprintf(text, TEXT_BYTES, "example %zu: %g in the log, now %g", i / then.classes,
                 (double)then.scores[i], (double)now.scores[i]);
    }
    return SX_OK;
}

static sx_status tasks_differ(const options *o, sx_bytes was, sx_bytes is, sx_arena *arena,
                              char text[TEXT_BYTES], bool *out)
{
    sx_wire then = sx_wire_over(was), now = sx_wire_over(is);
    const uint8_t *at;
    sx_bytes a, b, part_a, part_b;
    snprintf(text, TEXT_BYTES, "another number of tasks");
    for (*out = false; !*out;) {
        const bool more = sx_wire_find(&then, 1, &at, &a) == SX_WIRE_FOUND;
        *out = more != (sx_wire_find(&now, 1, &at, &b) == SX_WIRE_FOUND);
        if (!more) {
            break;
        }
        for (int method = SX_CLASSIFY; method <= SX_REGRESS && !*out; method++) {
            const uint32_t number = method == SX_CLASSIFY ? 2 : 3;
            if (!sx_client_field(a, number, &part_a) || !sx_client_field(b, number, &part_b)) {
                return sx_error(SX_DATA_LOSS, "a malformed answer");
            }
            SX_TRY(
                results_differ(o, (sx_inference_method)method, part_a, part_b, arena, text, out));
        }
    }
    return SX_OK;
}

static sx_status compare(const options *o, const logged *row, sx_bytes answer,
                         char text[TEXT_BYTES], bool *out_differs)
{
    sx_arena arena;
    sx_bytes was, is;
    sx_status status;
    sx_arena_init(&arena, 0);
    if (row->kind == SX_LOG_PREDICT || row->kind == SX_LOG_SESSION_RUN) {
        status = outputs_differ(o, row->response, answer, &arena, text, out_differs);
    } else if (row->kind == SX_LOG_MULTI_INFERENCE) {
        status = tasks_differ(o, row->response, answer, &arena, text, out_differs);
    } else {
        status = sx_client_field(row->response, 1, &was) && sx_client_field(answer, 1, &is)
                     ? results_differ(o, row->kind == SX_LOG_CLASSIFY ? SX_CLASSIFY : SX_REGRESS,
                                      was, is, &arena, text, out_differs)
                     : sx_error(SX_DATA_LOSS, "a malformed answer");
    }
    sx_arena_deinit(&arena);
    return status;
}

/* ---- Replaying ---- */

typedef struct replay {
    const options *o;
    sx_client_options call;
    sx_paths files;
    pthread_mutex_t mutex; /* guards all below */
    size_t next_file;
    sx_tfrecord_reader *reader; /* NULL: none is open */
    int64_t taken, same, differ, failed;
    int64_t begin_ns;
    sx_status status; /* of reading the log, which ends the replay */
} replay;

/* With the mutex held: a copy of the next record; *out_more false: there is none. */
static sx_status next_record(replay *r, sx_buf *out, bool *out_more)
{
    const sx_tfrecord_options reading = {.max_record_bytes = MAX_RECORD};
    sx_bytes record;
    *out_more = false;
    while (!*out_more) {
        if (r->reader == NULL) {
            if (r->next_file == r->files.count) {
                return SX_OK;
            }
            SX_TRY(sx_tfrecord_reader_open(r->files.items[r->next_file++], &reading, &r->reader));
        }
        SX_TRY(sx_tfrecord_next(r->reader, &record, out_more));
        if (!*out_more) {
            sx_tfrecord_reader_destroy(r->reader);
            r->reader = NULL;
        }
    }
    sx_buf_reset(out);
    sx_buf_append(out, record.data, record.size);
    return sx_buf_status(out);
}

/* Takes the next record, and waits for its time. */
static bool take(replay *r, sx_buf *out, int64_t *out_number)
{
    bool more = false;
    pthread_mutex_lock(&r->mutex);
    const bool go_on =
        r->status == SX_OK && sx_stop_signal() == 0 && (r->o->count == 0 || r->taken < r->o->count);
    if (go_on) {
        r->status = next_record(r, out, &more);
    }
    *out_number = more ? r->taken++ : 0;
    pthread_mutex_unlock(&r->mutex);
    if (more && r->o->rate > 0) {
        const struct timespec due =
            sx_timespec_of(r->begin_ns + (int64_t)((double)*out_number / r->o->rate * 1e9));
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR &&
               sx_stop_signal() == 0) {
        }
    }
    return more;
}

static void note(replay *r, int64_t number, sx_status status, bool differs, const char *text)
{
    pthread_mutex_lock(&r->mutex);
    const int64_t shown = r->failed + r->differ;
    r->failed += status != SX_OK;
    r->differ += status == SX_OK && differs;
    r->same += status == SX_OK && !differs;
    if ((status != SX_OK || differs) && shown < SHOWN) {
        fprintf(stderr, "record %lld: ", (long long)number);
        sx_print_visible(stderr, status != SX_OK ? sx_status_message(status) : text);
        fprintf(stderr, "%s\n", shown + 1 == SHOWN ? " (others are not shown)" : "");
    }
    pthread_mutex_unlock(&r->mutex);
    sx_status_free(status);
}

static void *run_sender(void *user)
{
    replay *r = user;
    sx_client *client = NULL;
    sx_buf record, request, answer;
    int64_t number;
    sx_buf_init(&record, MAX_RECORD);
    sx_buf_init(&request, MAX_RECORD);
    sx_buf_init(&answer, SIZE_MAX / 4);
    sx_status status = sx_client_open(r->o->url, &r->call, &client);
    while (status == SX_OK && take(r, &record, &number)) {
        logged row;
        char text[TEXT_BYTES] = "";
        bool differs = false;
        sx_buf_reset(&request);
        sx_buf_reset(&answer);
        sx_status sent = read_record((sx_bytes){sx_buf_text(&record), record.size}, &row);
        if (sent == SX_OK) {
            sent = put_request(r->o, &row, &request);
        }
        if (sent == SX_OK) {
            sent = sx_client_call(client, method_of(row.kind),
                                  (sx_bytes){sx_buf_text(&request), request.size}, &answer);
        }
        if (sent == SX_OK && row.response.size > 0) {
            sent =
                compare(r->o, &row, (sx_bytes){sx_buf_text(&answer), answer.size}, text, &differs);
        }
        note(r, number, sent, differs, text);
    }
    pthread_mutex_lock(&r->mutex);
    if (r->status == SX_OK) {
        r->status = status;
    } else {
        sx_status_free(status);
    }
    pthread_mutex_unlock(&r->mutex);
    sx_client_close(client);
    sx_buf_deinit(&record);
    sx_buf_deinit(&request);
    sx_buf_deinit(&answer);
    return NULL;
}

static sx_status send_all(replay *r)
{
    const options *o = r->o;
    pthread_t threads[256];
    int started = 0;
    r->begin_ns = sx_now_ns();
    while (started < o->connections &&
           sx_thread_create(&threads[started], NULL, run_sender, r) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    const double seconds = (double)(sx_now_ns() - r->begin_ns) * 1e-9;
    SX_TRY(r->status);
    const int64_t sent = r->same + r->differ + r->failed;
    if (o->json) {
        printf("{\"requests\": %lld, \"same\": %lld, \"differ\": %lld, \"failed\": %lld, "
               "\"seconds\": %.3f}\n",
               (long long)sent, (long long)r->same, (long long)r->differ, (long long)r->failed,
               seconds);
    } else {
        printf("%lld request%s in %.2f s: %lld answered as in the log, %lld differ, %lld failed\n",
               (long long)sent, sent == 1 ? "" : "s", seconds, (long long)r->same,
               (long long)r->differ, (long long)r->failed);
    }
    return r->differ + r->failed == 0
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION, "%lld of %lld answers are not those of the log",
                          (long long)(r->differ + r->failed), (long long)sent);
}

/* ---- Warm-up records ---- */

/* What makes two requests alike: kind, signature, and the inputs' names, dtypes and shapes but for
 * the number of rows, of which warming up tries several. */
static sx_status put_likeness(const logged *row, sx_buf *out)
{
    sx_wire wire = sx_wire_over(row->request);
    const uint8_t *at;
    sx_bytes entry, name, tensor, shape, dim;
    sx_predict_spec spec = {.signature = {"", 0}};
    if (row->kind != SX_LOG_MULTI_INFERENCE) {
        SX_TRY(sx_predict_spec_read(row->request, &spec));
    }
    sx_buf_printf(out, "%d|", (int)row->kind);
    const sx_bytes signature = sx_serve_signature_name(spec.signature);
    sx_buf_append(out, signature.data, signature.size);
    while (row->kind == SX_LOG_PREDICT && sx_wire_find(&wire, 2, &at, &entry) == SX_WIRE_FOUND) {
        if (!sx_client_field(entry, 1, &name) || !sx_client_field(entry, 2, &tensor) ||
            !sx_client_field(tensor, 2, &shape)) {
            return sx_error(SX_DATA_LOSS, "malformed request");
        }
        sx_buf_putc(out, '|');
        sx_buf_append(out, name.data, name.size);
        sx_wire dims = sx_wire_over(shape);
        for (int i = 0; sx_wire_find(&dims, 2, &at, &dim) == SX_WIRE_FOUND; i++) {
            sx_buf_putc(out, ',');
            sx_buf_append(out, dim.data, i > 0 ? dim.size : 0);
        }
    }
    return sx_buf_status(out);
}

static void put_warmup_record(const logged *row, sx_buf *record)
{
    sx_buf_reset(record);
    const size_t log = sx_wire_begin(record, (uint32_t)row->kind);
    sx_wire_append_bytes(record, 1, row->request);
    sx_wire_end(record, log);
}

static sx_status write_warmup(replay *r, sx_arena *arena, sx_tfrecord_writer *writer,
                              int64_t *out_count)
{
    const options *o = r->o;
    const char **seen = sx_arena_array(arena, o->max_records, const char *);
    sx_buf copy, likeness, record;
    bool more = true;
    sx_status status = seen != NULL ? SX_OK : sx_no_memory("for warm-up records");
    sx_buf_init(&copy, MAX_RECORD);
    sx_buf_init(&likeness, 0);
    sx_buf_init(&record, MAX_RECORD);
    *out_count = 0;
    while (status == SX_OK && *out_count < o->max_records) {
        logged row;
        SX_TRY_GOTO(status, next_record(r, &copy, &more), done);
        if (!more) {
            break;
        }
        SX_TRY_GOTO(status, read_record((sx_bytes){sx_buf_text(&copy), copy.size}, &row), done);
        if (row.kind == SX_LOG_SESSION_RUN) {
            continue; /* no request that a version can be warmed up with */
        }
        sx_buf_reset(&likeness);
        SX_TRY_GOTO(status, put_likeness(&row, &likeness), done);
        bool known = false;
        for (int64_t i = 0; i < *out_count && !known; i++) {
            known = strlen(seen[i]) == likeness.size &&
                    memcmp(seen[i], likeness.data, likeness.size) == 0;
        }
        if (known) {
            continue;
        }
        seen[*out_count] = sx_arena_strndup(arena, likeness.data, likeness.size);
        status = seen[*out_count] != NULL ? SX_OK : sx_no_memory("for warm-up records");
        ++*out_count;
        put_warmup_record(&row, &record);
        if (status == SX_OK) {
            status = sx_tfrecord_write(writer, (sx_bytes){sx_buf_text(&record), record.size});
        }
    }
done:
    sx_buf_deinit(&copy);
    sx_buf_deinit(&likeness);
    sx_buf_deinit(&record);
    return status;
}

static sx_status make_warmup(replay *r)
{
    const char *dir = r->o->warmup_dir;
    char *folder = NULL, *path = NULL, *model = NULL;
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    sx_tfrecord_writer *writer = NULL;
    sx_arena arena;
    int64_t count = 0;
    sx_status status = SX_OK;
    sx_arena_init(&arena, 0);
    SX_TRY_GOTO(status, sx_path_join(dir, "saved_model.pb", &model), done);
    if (!sx_path_exists(model)) {
        status =
            sx_error(SX_NOT_FOUND, "%s: not a version of a model: it has no saved_model.pb", dir);
        goto done;
    }
    SX_TRY_GOTO(status, sx_path_join(dir, "assets.extra", &folder), done);
    SX_TRY_GOTO(status, sx_dir_create(folder), done);
    SX_TRY_GOTO(status, sx_path_join(folder, "tf_serving_warmup_requests", &path), done);
    SX_TRY_GOTO(status, sx_commit_create(&commit), done);
    SX_TRY_GOTO(status, sx_commit_add(commit, path, &file), done);
    SX_TRY_GOTO(status, sx_tfrecord_writer_create(SX_CODEC_NONE, sx_commit_write, file, &writer),
                done);
    SX_TRY_GOTO(status, write_warmup(r, &arena, writer, &count), done);
    SX_TRY_GOTO(status, sx_tfrecord_writer_finish(writer), done);
    if (count == 0) {
        status = sx_error(SX_NOT_FOUND, "the log has no requests");
        goto done;
    }
    SX_TRY_GOTO(status, sx_commit_finish(commit), done);
    printf("%s: %lld warm-up records\n", path, (long long)count);
done:
    sx_tfrecord_writer_destroy(writer);
    sx_commit_destroy(commit);
    sx_arena_deinit(&arena);
    sx_free(folder);
    sx_free(path);
    sx_free(model);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    if ((o->url == NULL) == (o->warmup_dir == NULL)) {
        return sx_usage(inv,
                        sx_error(SX_INVALID_ARGUMENT, "expected either --%s or --%s",
                                 sx_option_typed(inv, "url"), sx_option_typed(inv, "warmup-dir")));
    }
    replay r = {.o = o};
    SX_TRY(sx_client_args_options(inv, &o->client_args, &r.call));
    r.call.protocol = SX_CLIENT_GRPC;
    r.call.max_answer_bytes = MAX_RECORD;
    SX_TRY(sx_paths_glob(inv->words.items, (size_t)inv->words.count, &r.files));
    pthread_mutex_init(&r.mutex, NULL);
    sx_status status = o->warmup_dir != NULL ? make_warmup(&r) : send_all(&r);
    pthread_mutex_destroy(&r.mutex);
    sx_tfrecord_reader_destroy(r.reader);
    sx_paths_deinit(&r.files);
    return status;
}

const sx_command sx_command_replay = {
    .name = "replay",
    .summary = "send logged requests again, or make warm-up records",
    .words = "LOG...",
    .about = "LOG is a file that `sextant serve --request-log` wrote, or a pattern of such files: "
             "TFRecords of PredictionLogs, as TensorFlow Serving's. Each answer is compared with "
             "the one in the log; numbers may differ by the tolerances.",
    .examples = "  sextant replay '/var/log/requests-flowers-*' --url localhost:8500\n"
                "  sextant replay '/var/log/requests-flowers-*' --url localhost:8500 --version 7 "
                "--rate 200 --connections 16\n"
                "  sextant replay '/var/log/requests-flowers-*' --warmup-dir models/flowers/7",
    .min_words = 1,
    .max_words = -1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
