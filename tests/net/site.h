/* A small site for tests of the HTTP server. */
#ifndef SX_TESTS_NET_SITE_H
#define SX_TESTS_NET_SITE_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "harness.h"
#include "net/http_server.h"

enum { BIG = 32 << 20 }; /* far more than the kernel buffers */

static const sx_http_address loopback = {.host = "127.0.0.1"};

struct site {
    sx_http_server *server;
    int port;
    atomic_int handled, cancelled;
    pthread_t late[64];
    atomic_int late_count, late_ms;
};

static inline void answer_text(sx_http_exchange *exchange, int status, const void *data,
                               size_t size)
{
    sx_http_response response = {.status = status, .content_type = "text/plain", .body_size = size};
    response.body = sx_alloc(size + 1, 1);
    memcpy(response.body, data, size);
    sx_http_respond(exchange, &response);
}

struct late {
    struct site *site;
    sx_http_exchange *exchange;
};

static void *answer_late(void *user)
{
    struct late late = *(struct late *)user;
    const int late_ms = atomic_load(&late.site->late_ms);
    const struct timespec nap = {late_ms / 1000, late_ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
    atomic_fetch_add(&late.site->cancelled,
                     sx_cancel_requested(sx_http_request_cancel(late.exchange)));
    answer_text(late.exchange, 200, "late", 4);
    return NULL;
}

/* /echo gives the body back, /align does and wants what lies 3 bytes behind its beginning aligned:
 * 202, it was not; /late answers from another thread after late_ms, /big has 32 MiB. */
static void handle(void *user, sx_http_exchange *exchange)
{
    struct site *site = user;
    const sx_http_head *head = sx_http_request_head(exchange);
    atomic_fetch_add(&site->handled, 1);
    if (sx_http_text_is(head->path, "/echo")) {
        const sx_bytes body = sx_http_request_body(exchange);
        answer_text(exchange, 200, body.data, body.size);
    } else if (sx_http_text_is(head->path, "/align")) {
        const sx_bytes body = sx_http_request_body(exchange);
        const char *part = (const char *)body.data + 3;
        sx_http_request_align(exchange, part);
        answer_text(exchange, (uintptr_t)part % 8 == 0 ? 200 : 202, body.data, body.size);
    } else if (sx_http_text_is(head->path, "/late")) {
        struct late *late = sx_http_request_scratch(exchange);
        *late = (struct late){site, exchange};
        pthread_create(&site->late[atomic_fetch_add(&site->late_count, 1)], NULL, answer_late,
                       late);
    } else if (sx_http_text_is(head->path, "/big")) {
        const sx_http_response zeros = {.status = 200, .body = sx_alloc(BIG, 1), .body_size = BIG};
        sx_http_respond(exchange, &zeros); /* pages that nobody has touched: takes no time */
    } else {
        answer_text(exchange, 404, "no", 2);
    }
}

static inline void open_site(struct site *site, sx_http_config config)
{
    memset(site, 0, sizeof(*site));
    atomic_store(&site->late_ms, 200);
    if (config.address_count == 0) {
        config.addresses = &loopback;
        config.address_count = 1;
    }
    config.handler = handle;
    config.user = site;
    assert_ok(sx_http_server_create(&config, &site->server));
    assert_ok(sx_http_server_start(site->server));
    site->port = sx_http_server_port(site->server, 0);
    assert_in_range(site->port, 1, 65535);
}

static inline void close_site(struct site *site)
{
    for (int i = 0; i < site->late_count; i++) {
        pthread_join(site->late[i], NULL);
    }
    sx_http_server_destroy(site->server);
}

#endif
