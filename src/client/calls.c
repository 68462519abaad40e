/* See calls.h. */
#include "client/calls.h"

#include "base/clock.h"
#include "base/memory.h"
#include "client/endpoint.h"
#include "io/http_multi.h"
#include "net/http2_calls.h"

typedef struct call {
    sx_client_calls *calls;
    int64_t due_ns, deadline_ns;
    struct call *next_free, *next; /* of all */
} call;

struct sx_client_calls {
    sx_client_calls_config config;
    sx_endpoint endpoint;
    const char *url;
    sx_http_multi *rest; /* one of both */
    sx_http2_calls *grpc;
    call *all, *free;
    int under_way;
};

/* ---- Creation and destruction ---- */

static sx_status open_connections(sx_client_calls *calls)
{
    sx_endpoint *e = &calls->endpoint;
    const sx_http_call to = {.url = calls->url,
                             .socket_path = e->socket_path,
                             .ca_file = e->options.ca_file,
                             .certificate_file = e->options.certificate_file,
                             .key_file = e->options.key_file};
    return e->options.protocol == SX_CLIENT_GRPC
               ? sx_http2_calls_create(&to, calls->config.connections, &calls->grpc)
               : sx_http_multi_create(calls->config.connections, &calls->rest);
}

sx_status sx_client_calls_create(const sx_client_calls_config *config, sx_client_calls **out_calls)
{
    sx_client_calls *calls = sx_alloc(1, sizeof(*calls));
    if (calls == NULL) {
        return sx_no_memory("for a client");
    }
    calls->config = *config;
    sx_endpoint *e = &calls->endpoint;
    sx_status status = SX_OK;
    SX_TRY_GOTO(status, sx_endpoint_init(e, config->server, config->options), failed);
    calls->url = sx_arena_printf(&e->arena, "%s%s", e->address, config->path);
    if (calls->url == NULL) {
        status = sx_no_memory("for an address");
        goto failed;
    }
    SX_TRY_GOTO(status, open_connections(calls), failed);
    *out_calls = calls;
    return SX_OK;
failed:
    sx_client_calls_destroy(calls);
    return status;
}

void sx_client_calls_destroy(sx_client_calls *calls)
{
    if (calls != NULL) {
        sx_http_multi_destroy(calls->rest);
        sx_http2_calls_destroy(calls->grpc);
        while (calls->all != NULL) {
            call *c = calls->all;
            calls->all = c->next;
            sx_free(c);
        }
        sx_endpoint_deinit(&calls->endpoint);
        sx_free(calls);
    }
}

/* ---- Calls ---- */

bool sx_client_calls_has_room(const sx_client_calls *calls)
{
    return calls->grpc != NULL ? sx_http2_calls_has_room(calls->grpc)
                               : sx_http_multi_has_room(calls->rest);
}

int sx_client_calls_under_way(const sx_client_calls *calls)
{
    return calls->under_way;
}

static call *new_call(sx_client_calls *calls)
{
    call *c = calls->free;
    if (c != NULL) {
        calls->free = c->next_free;
        return c;
    }
    c = sx_alloc(1, sizeof(*c));
    if (c != NULL) {
        c->calls = calls;
        c->next = calls->all;
        calls->all = c;
    }
    return c;
}

static void free_call(call *c)
{
    c->next_free = c->calls->free;
    c->calls->free = c;
}

static void finish(void *user, sx_status status, int http_status, const sx_buf *headers,
                   const sx_buf *body)
{
    call *c = user;
    sx_client_calls *calls = c->calls;
    sx_bytes answer = {NULL, 0};
    calls->under_way--;
    status = sx_endpoint_answer(&calls->endpoint, calls->url, calls->grpc != NULL, c->deadline_ns,
                                status, http_status, headers, body, &answer);
    calls->config.done(calls->config.user, c->due_ns, status, answer);
    free_call(c);
}

sx_status sx_client_calls_start(sx_client_calls *calls, int64_t due_ns)
{
    sx_endpoint *e = &calls->endpoint;
    sx_endpoint_call request;
    const int64_t deadline_ns = due_ns + e->options.timeout_ms * 1000000;
    const int64_t left_ms = (deadline_ns - sx_now_ns() + 500000) / 1000000;
    if (left_ms <= 0) {
        return sx_error(SX_DEADLINE_EXCEEDED, "%s: not sent within %lld ms", calls->url,
                        (long long)e->options.timeout_ms);
    }
    SX_TRY(sx_endpoint_request(e, calls->url, calls->config.body, calls->grpc != NULL, left_ms,
                               &request));
    call *c = new_call(calls);
    if (c == NULL) {
        return sx_no_memory("for a request");
    }
    c->due_ns = due_ns;
    c->deadline_ns = deadline_ns;
    const size_t max_bytes = (size_t)e->options.max_answer_bytes;
    sx_status status = calls->grpc != NULL
                           ? sx_http2_calls_start(calls->grpc, &request.http, max_bytes, finish, c)
                           : sx_http_multi_start(calls->rest, &request.http, max_bytes, finish, c);
    if (status != SX_OK) {
        free_call(c);
        return status;
    }
    calls->under_way++;
    return SX_OK;
}

sx_status sx_client_calls_wait(sx_client_calls *calls, int64_t until_ns)
{
    return calls->grpc != NULL ? sx_http2_calls_wait(calls->grpc, until_ns)
                               : sx_http_multi_wait(calls->rest, until_ns);
}
