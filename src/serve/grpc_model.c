/* The model service; see grpc_model.h. */
#include "serve/grpc_model.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/grpc.h"
#include "proto/wire.h"
#include "serve/model_config.h"
#include "serve/predict_proto.h"
#include "serve/router.h"

/* A reload that waits for its turn; in the scratch memory of its exchange. */
struct reload {
    sx_http_exchange *exchange;
    struct reload *next;
    char *message; /* a copy: a compressed one is decompressed elsewhere */
    size_t size;
};
_Static_assert(sizeof(struct reload) <= SX_HTTP_SCRATCH, "it must fit the scratch memory");

struct sx_grpc_model {
    sx_manager *manager;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a reload is in the list, or `stopping` */
    struct reload *first, **last;
    bool stopping;
};

/* ---- Status ---- */

static void put_status(sx_buf *out, uint32_t number, sx_code code, const char *message)
{
    const size_t at = sx_wire_begin(out, number);
    sx_wire_append_number(out, 1, code);
    if (message[0] != '\0') {
        sx_wire_append_text(out, 2, message);
    }
    sx_wire_end(out, at);
}

static sx_status answer_status(sx_grpc_model *service, sx_bytes message, sx_arena *arena,
                               sx_buf *out)
{
    sx_predict_spec spec;
    sx_version_status *rows = NULL;
    size_t count = 0;
    SX_TRY(sx_predict_spec_read(message, &spec));
    if (spec.name.size >= SX_ROUTE_NAME) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the model's name has %zu bytes, expected fewer than "
                        "%d",
                        spec.name.size, (int)SX_ROUTE_NAME);
    }
    const char *name = sx_arena_strndup(arena, spec.name.data, spec.name.size);
    if (name == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_manager_status(service->manager, name,
                             spec.version < 0 ? SX_LATEST_VERSION : spec.version, arena, &rows,
                             &count));
    for (size_t i = 0; i < count; i++) {
        const size_t at = sx_wire_begin(out, 1);
        sx_wire_append_number(out, 1, (uint64_t)rows[i].version);
        sx_wire_append_number(out, 2, rows[i].state);
        put_status(out, 3, rows[i].code, sx_version_error_text(rows[i].code));
        sx_wire_end(out, at);
    }
    return sx_buf_status(out);
}

void sx_grpc_model_status(sx_grpc_model *service, sx_http_exchange *exchange, sx_bytes message)
{
    sx_arena arena;
    sx_buf out;
    sx_arena_init(&arena, 1 << 20);
    sx_buf_init(&out, 0);
    const size_t at = sx_grpc_message_begin(&out);
    sx_status status = answer_status(service, message, &arena, &out);
    sx_grpc_message_end(&out, at);
    sx_arena_deinit(&arena);
    sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
}

/* ---- Reload ---- */

static bool is_stopping(sx_grpc_model *service)
{
    pthread_mutex_lock(&service->mutex);
    const bool stopping = service->stopping;
    pthread_mutex_unlock(&service->mutex);
    return stopping;
}

/* The code of asking for the model's latest version: OK if it is served; NOT_FOUND if there is no
 * such model. */
static sx_code ask_for(sx_manager *manager, const char *name)
{
    sx_served *servable = NULL;
    const sx_model_spec spec = {.name = name, .version = SX_LATEST_VERSION};
    sx_status status = sx_manager_acquire(manager, &spec, &servable);
    const sx_code code = sx_status_code(status);
    if (status == SX_OK) {
        sx_served_release(servable);
    }
    sx_status_free(status);
    return code;
}

/* The models that are not served, of `fresh` ones. */
static size_t put_missing(sx_grpc_model *service, const sx_model_config *models, size_t count,
                          const bool *fresh, sx_buf *names)
{
    size_t missing = 0;
    sx_buf_reset(names);
    for (size_t i = 0; i < count; i++) {
        if (fresh[i] && ask_for(service->manager, models[i].name) != SX_CODE_OK) {
            sx_buf_printf(names, "%s{name: %s}", missing++ > 0 ? ", " : "", models[i].name);
        }
    }
    return missing;
}

/* Waits until the new models are served, or cannot be hoped for, or nobody waits any more. */
static sx_status await_models(sx_grpc_model *service, const struct reload *reload,
                              const sx_model_config *models, size_t count, const bool *fresh)
{
    enum { SLICE_MS = 100 };
    sx_buf names;
    bool hopeless = false;
    sx_status status = SX_OK;
    sx_buf_init(&names, 1024);
    size_t missing = put_missing(service, models, count, fresh, &names);
    while (missing > 0 && !hopeless && status == SX_OK) {
        const int64_t begin_ns = sx_now_ns();
        const bool ready = sx_manager_wait_ready(service->manager, SLICE_MS);
        hopeless = !ready && sx_now_ns() - begin_ns < SLICE_MS * (int64_t)1000000 / 2;
        status = is_stopping(service) ? sx_error(SX_UNAVAILABLE, "the server is stopping")
                                      : sx_cancel_check(sx_http_request_cancel(reload->exchange));
        missing = put_missing(service, models, count, fresh, &names);
    }
    if (status == SX_OK && missing > 0) {
        status = sx_error(SX_UNKNOWN, "%zu model(s) did not become available: {%s}", missing,
                          sx_buf_text(&names));
    }
    sx_buf_deinit(&names);
    return status;
}

static sx_status apply(sx_grpc_model *service, const struct reload *reload, sx_bytes config,
                       sx_arena *arena)
{
    sx_model_config *models = NULL;
    size_t count = 0;
    SX_TRY(sx_model_config_read(config, arena, &models, &count));
    bool *fresh = sx_arena_array(arena, count + 1, bool);
    if (fresh == NULL) {
        return sx_no_memory("for %zu models", count);
    }
    for (size_t i = 0; i < count; i++) {
        fresh[i] = ask_for(service->manager, models[i].name) == SX_NOT_FOUND;
    }
    SX_TRY(sx_manager_set_models(service->manager, models, count));
    sx_log(SX_LOG_INFO, "the models are now those of a ReloadConfigRequest");
    return await_models(service, reload, models, count, fresh);
}

static sx_status answer_reload(sx_grpc_model *service, const struct reload *reload, sx_buf *out)
{
    sx_wire wire = sx_wire_over((sx_bytes){reload->message, reload->size});
    sx_wire_field field;
    sx_bytes config = {"", 0};
    sx_arena arena;
    put_status(out, 1, SX_CODE_OK, "");
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return sx_error(SX_INVALID_ARGUMENT, "malformed ReloadConfigRequest");
        }
        if (field.number == 1) {
            config = field.value;
        } else if (field.number == 2) { /* a metric that no reload increases */
            const size_t at = sx_wire_begin(out, 2);
            sx_wire_append_bytes(out, 1, field.value);
            sx_wire_append_tag(out, 2, SX_WIRE_VARINT);
            sx_wire_append_varint(out, 0);
            sx_wire_end(out, at);
        }
    }
    sx_arena_init(&arena, 0);
    sx_status status = apply(service, reload, config, &arena);
    sx_arena_deinit(&arena);
    SX_TRY(status);
    return sx_buf_status(out);
}

static void finish(struct reload *reload, sx_status status, sx_buf *out)
{
    sx_http_exchange *exchange = reload->exchange;
    sx_free(reload->message); /* before the response: then the reload is gone */
    sx_grpc_respond(exchange, status, (sx_bytes){0}, out);
}

static void run_reload(sx_grpc_model *service, struct reload *reload)
{
    sx_buf out;
    sx_buf_init(&out, 0);
    const size_t at = sx_grpc_message_begin(&out);
    sx_status status = answer_reload(service, reload, &out);
    sx_grpc_message_end(&out, at);
    if (status != SX_OK) {
        sx_log(SX_LOG_ERROR, "ReloadConfig failed: %s", sx_status_message(status));
    }
    finish(reload, status, &out);
}

static void *run(void *user)
{
    sx_grpc_model *service = user;
    pthread_mutex_lock(&service->mutex);
    while (!service->stopping) {
        struct reload *reload = service->first;
        if (reload == NULL) {
            pthread_cond_wait(&service->changed, &service->mutex);
            continue;
        }
        service->first = reload->next;
        service->last = service->first == NULL ? &service->first : service->last;
        pthread_mutex_unlock(&service->mutex);
        run_reload(service, reload);
        pthread_mutex_lock(&service->mutex);
    }
    pthread_mutex_unlock(&service->mutex);
    return NULL;
}

void sx_grpc_model_reload(sx_grpc_model *service, sx_http_exchange *exchange, sx_bytes message)
{
    struct reload *reload = sx_http_request_scratch(exchange);
    *reload = (struct reload){
        .exchange = exchange, .message = sx_alloc(message.size + 1, 1), .size = message.size};
    if (reload->message == NULL) {
        sx_grpc_respond(exchange, sx_no_memory("for a request"), (sx_bytes){0}, NULL);
        return;
    }
    if (message.size > 0) {
        memcpy(reload->message, message.data, message.size);
    }
    pthread_mutex_lock(&service->mutex);
    const bool stopping = service->stopping;
    if (!stopping) {
        *service->last = reload;
        service->last = &reload->next;
        pthread_cond_signal(&service->changed);
    }
    pthread_mutex_unlock(&service->mutex);
    if (stopping) {
        finish(reload, sx_error(SX_UNAVAILABLE, "the server is stopping"), NULL);
    }
}

/* ---- Creation and destruction ---- */

sx_status sx_grpc_model_create(sx_manager *manager, sx_grpc_model **out)
{
    sx_grpc_model *service = sx_alloc(1, sizeof(*service));
    if (service == NULL) {
        return sx_no_memory("for the model service");
    }
    service->manager = manager;
    service->last = &service->first;
    pthread_mutex_init(&service->mutex, NULL);
    pthread_cond_init(&service->changed, NULL);
    const int error = sx_thread_create(&service->thread, NULL, run, service);
    service->started = error == 0;
    if (error != 0) {
        sx_grpc_model_destroy(service);
        return sx_error(SX_RESOURCE_EXHAUSTED, "model service: cannot start a thread: %s",
                        strerror(error));
    }
    *out = service;
    return SX_OK;
}

void sx_grpc_model_stop(sx_grpc_model *service)
{
    if (service == NULL || !service->started) {
        return;
    }
    pthread_mutex_lock(&service->mutex);
    service->stopping = true;
    pthread_cond_signal(&service->changed);
    pthread_mutex_unlock(&service->mutex);
    pthread_join(service->thread, NULL);
    service->started = false;
    while (service->first != NULL) {
        struct reload *reload = service->first;
        service->first = reload->next;
        finish(reload, sx_error(SX_UNAVAILABLE, "the server is stopping"), NULL);
    }
}

void sx_grpc_model_destroy(sx_grpc_model *service)
{
    if (service == NULL) {
        return;
    }
    sx_grpc_model_stop(service);
    pthread_mutex_destroy(&service->mutex);
    pthread_cond_destroy(&service->changed);
    sx_free(service);
}
