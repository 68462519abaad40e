/* The health service; see grpc_health.h.
 *
 *   HealthCheckRequest  service 1        HealthCheckResponse  status 1
 *
 * A watch is an exchange that stays with us between its messages, in a list that one thread looks
 * at: nobody tells us when the readiness of a model changes. The thread runs while there are any.
 */
#include "serve/grpc_health.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/grpc.h"
#include "proto/wire.h"
#include "serve/json_scan.h"

enum { LOOK_MS = 100 };

enum serving { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

/* In the scratch memory of a watch's exchange. */
struct watch {
    sx_grpc_health *health;
    sx_http_exchange *exchange;
    struct watch *next;
    bool known;
    enum serving sent;
};
_Static_assert(sizeof(struct watch) <= SX_HTTP_SCRATCH, "a watch must fit the scratch memory");

struct sx_grpc_health {
    sx_manager *manager;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a watch is in the list, or `stopping` */
    struct watch *watches;  /* that are ours now; others are being sent */
    bool stopping;
    pthread_t thread;
    bool started;
};

/* The name that a request asks for; false if it is malformed. */
static bool read_service(sx_bytes message, sx_bytes *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    *out = (sx_bytes){"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number == 1 && field.type != SX_WIRE_BYTES)) {
            return false;
        }
        *out = field.number == 1 ? field.value : *out;
    }
    return true;
}

static bool is_known(sx_bytes service)
{
    static const char *const names[] = {"", "PredictionService", "ModelService",
                                        "tensorflow.serving.PredictionService",
                                        "tensorflow.serving.ModelService"};
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (sx_bytes_is(service, names[i])) {
            return true;
        }
    }
    return false;
}

static enum serving serving_now(sx_grpc_health *health)
{
    pthread_mutex_lock(&health->mutex);
    const bool stopping = health->stopping;
    pthread_mutex_unlock(&health->mutex);
    return !stopping && sx_manager_ready(health->manager) ? SERVING : NOT_SERVING;
}

static void put_answer(sx_buf *out, enum serving status)
{
    const size_t at = sx_grpc_message_begin(out);
    sx_buf_putc(out, 1 << 3 | SX_WIRE_VARINT);
    sx_buf_putc(out, (char)status);
    sx_grpc_message_end(out, at);
}

void sx_grpc_health_check(sx_grpc_health *health, sx_http_exchange *exchange, sx_bytes message)
{
    sx_bytes service;
    sx_buf out;
    sx_status status = !read_service(message, &service)
                           ? sx_error(SX_INVALID_ARGUMENT, "malformed HealthCheckRequest")
                       : !is_known(service) ? sx_error(SX_NOT_FOUND, "unknown service")
                                            : SX_OK;
    sx_buf_init(&out, 0);
    if (status == SX_OK) {
        put_answer(&out, serving_now(health));
    }
    sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
}

/* ---- Watches ---- */

static void finish_watch(struct watch *watch)
{
    sx_buf out;
    sx_status status = sx_cancel_check(sx_http_request_cancel(watch->exchange));
    sx_buf_init(&out, 0);
    if (status == SX_OK && watch->sent == SERVING) {
        put_answer(&out, NOT_SERVING);
    }
    sx_grpc_respond(watch->exchange, status, (sx_bytes){0}, &out);
}

/* The exchange of a watch is ours again, after its message has been sent. */
static void on_sent(void *user, sx_http_exchange *exchange)
{
    struct watch *watch = sx_http_request_scratch(exchange);
    sx_grpc_health *health = watch->health;
    (void)user;
    pthread_mutex_lock(&health->mutex);
    const bool stopping = health->stopping;
    if (!stopping) {
        watch->next = health->watches;
        health->watches = watch;
        pthread_cond_signal(&health->changed);
    }
    pthread_mutex_unlock(&health->mutex);
    if (stopping) {
        finish_watch(watch);
    }
}

static void send_watch(struct watch *watch, enum serving now)
{
    sx_buf out;
    sx_buf_init(&out, 0);
    watch->sent = now;
    put_answer(&out, now);
    sx_grpc_send(watch->exchange, &out, on_sent);
}

void sx_grpc_health_watch(sx_grpc_health *health, sx_http_exchange *exchange, sx_bytes message)
{
    struct watch *watch = sx_http_request_scratch(exchange);
    sx_bytes service;
    if (!read_service(message, &service)) {
        sx_grpc_respond(exchange, sx_error(SX_INVALID_ARGUMENT, "malformed HealthCheckRequest"),
                        (sx_bytes){0}, NULL);
        return;
    }
    *watch = (struct watch){.health = health, .exchange = exchange, .known = is_known(service)};
    send_watch(watch, watch->known ? serving_now(health) : SERVICE_UNKNOWN);
}

/* Takes the watches about which there is something to do out of the list. */
static struct watch *take_due(sx_grpc_health *health, enum serving now)
{
    struct watch *due = NULL;
    for (struct watch **link = &health->watches; *link != NULL;) {
        struct watch *watch = *link;
        const bool ended =
            health->stopping || sx_cancel_requested(sx_http_request_cancel(watch->exchange));
        if (ended || (watch->known && watch->sent != now)) {
            *link = watch->next;
            watch->next = due;
            due = watch;
        } else {
            link = &watch->next;
        }
    }
    return due;
}

static void *look(void *user)
{
    sx_grpc_health *health = user;
    bool stopping = false;
    while (!stopping) {
        pthread_mutex_lock(&health->mutex);
        while (health->watches == NULL && !health->stopping) {
            pthread_cond_wait(&health->changed, &health->mutex);
        }
        pthread_mutex_unlock(&health->mutex);
        const enum serving now = serving_now(health); /* after the wait, which may be long */
        const struct timespec next = sx_timespec_of(sx_now_ns() + LOOK_MS * (int64_t)1000000);
        pthread_mutex_lock(&health->mutex);
        stopping = health->stopping;
        struct watch *due = take_due(health, now);
        if (due == NULL && !stopping) {
            pthread_cond_clockwait(&health->changed, &health->mutex, CLOCK_MONOTONIC, &next);
        }
        pthread_mutex_unlock(&health->mutex);
        while (due != NULL) {
            struct watch *watch = due;
            due = watch->next; /* the watch is gone when it has been answered */
            if (stopping || sx_cancel_requested(sx_http_request_cancel(watch->exchange))) {
                finish_watch(watch);
            } else {
                send_watch(watch, now);
            }
        }
    }
    return NULL;
}

/* ---- Creation and destruction ---- */

sx_status sx_grpc_health_create(sx_manager *manager, sx_grpc_health **out)
{
    sx_grpc_health *health = sx_alloc(1, sizeof(*health));
    if (health == NULL) {
        return sx_no_memory("for the health service");
    }
    health->manager = manager;
    pthread_mutex_init(&health->mutex, NULL);
    pthread_cond_init(&health->changed, NULL);
    const int error = sx_thread_create(&health->thread, NULL, look, health);
    health->started = error == 0;
    if (error != 0) {
        sx_grpc_health_destroy(health);
        return sx_error(SX_RESOURCE_EXHAUSTED, "health service: cannot start a thread: %s",
                        strerror(error));
    }
    *out = health;
    return SX_OK;
}

void sx_grpc_health_stop(sx_grpc_health *health)
{
    if (health == NULL || !health->started) {
        return;
    }
    pthread_mutex_lock(&health->mutex);
    health->stopping = true;
    pthread_cond_signal(&health->changed);
    pthread_mutex_unlock(&health->mutex);
    pthread_join(health->thread, NULL);
    health->started = false;
}

void sx_grpc_health_destroy(sx_grpc_health *health)
{
    if (health == NULL) {
        return;
    }
    sx_grpc_health_stop(health);
    pthread_mutex_destroy(&health->mutex);
    pthread_cond_destroy(&health->changed);
    sx_free(health);
}
