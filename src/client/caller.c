/* See caller.h. */
#include "client/caller.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "client/endpoint.h"
#include "net/grpc.h"

enum {
    FIRST_WAIT_MS = 100, /* before the second try; doubles after each */
    MAX_WAIT_MS = 30000,
    MAX_HEADERS = 1 << 20,
};

struct sx_caller {
    sx_endpoint endpoint;
    sx_http_session *session;
};

/* ---- Creation and destruction ---- */

sx_status sx_caller_create(const char *server, const sx_client_options *options,
                           sx_caller **out_caller)
{
    sx_caller *caller = sx_alloc(1, sizeof(*caller));
    if (caller == NULL) {
        return sx_no_memory("for a client");
    }
    sx_status status = sx_endpoint_init(&caller->endpoint, server, options);
    if (status == SX_OK) {
        status = sx_http_session_create(&caller->session);
    }
    if (status != SX_OK) {
        sx_caller_destroy(caller);
        return status;
    }
    *out_caller = caller;
    return SX_OK;
}

void sx_caller_destroy(sx_caller *caller)
{
    if (caller != NULL) {
        sx_http_session_destroy(caller->session);
        sx_endpoint_deinit(&caller->endpoint);
        sx_free(caller);
    }
}

const char *sx_caller_address(const sx_caller *caller)
{
    return caller->endpoint.address;
}

size_t sx_caller_max_answer_bytes(const sx_caller *caller)
{
    return (size_t)caller->endpoint.options.max_answer_bytes;
}

/* ---- Tries ---- */

struct request {
    const char *url;
    sx_bytes body;
    bool grpc, repeatable;
    int64_t deadline_ns;
};

/* What came of a try. */
struct outcome {
    sx_buf headers;
    int http_status; /* 0: no answer */
    sx_bytes answer;
};

static sx_status try_once(sx_caller *caller, const struct request *request, sx_buf *body,
                          struct outcome *outcome)
{
    sx_endpoint *e = &caller->endpoint;
    sx_endpoint_call call;
    const int64_t left_ms = SX_MAX((request->deadline_ns - sx_now_ns()) / 1000000, (int64_t)1);
    SX_TRY(sx_endpoint_request(e, request->url, request->body, request->grpc, left_ms, &call));
    call.http.session = caller->session;
    sx_status status = sx_http_fetch(&call.http, body, &outcome->headers, &outcome->http_status);
    return sx_endpoint_answer(e, request->url, request->grpc, request->deadline_ns, status,
                              outcome->http_status, &outcome->headers, body, &outcome->answer);
}

/* Whether the request did not run, or may run twice. An answer that ends in the middle says
 * nothing. */
static bool may_try_again(const sx_caller *caller, const struct request *request,
                          const struct outcome *outcome, sx_code code)
{
    if (outcome->http_status == 429 || outcome->http_status == 503 ||
        (request->grpc &&
         sx_endpoint_header_number(&outcome->headers, "grpc-status:") == SX_UNAVAILABLE)) {
        return true;
    }
    return code == SX_UNAVAILABLE &&
           (request->repeatable ||
            (outcome->http_status == 0 && sx_http_session_unsent(caller->session)));
}

/* How long to wait before another try. The jitter keeps clients apart that failed together. */
static int64_t wait_ns(int tries, const struct outcome *outcome)
{
    const uint64_t now = (uint64_t)sx_now_ns();
    const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){(uint32_t)now, (uint32_t)(now >> 32)},
                                          (sx_u32x2){(uint32_t)tries, 0});
    const long told_s = sx_endpoint_header_number(&outcome->headers, "retry-after:");
    const int64_t doubled_ms = (int64_t)FIRST_WAIT_MS << SX_MIN(tries, 20);
    const int64_t ms = told_s > 0 ? SX_MIN(told_s, MAX_WAIT_MS / 1000L) * 1000 : doubled_ms;
    return (int64_t)((double)SX_MIN(ms, (int64_t)MAX_WAIT_MS) * 1e6 *
                     (1 + 0.25 * (double)sx_uniform_f32(bits.a)));
}

static sx_status send(sx_caller *caller, struct request *request, sx_buf *out)
{
    sx_buf body;
    struct outcome outcome = {0};
    bool renewed = false;
    request->deadline_ns = sx_now_ns() + caller->endpoint.options.timeout_ms * 1000000;
    sx_buf_init(&body, (size_t)caller->endpoint.options.max_answer_bytes);
    sx_buf_init(&outcome.headers, MAX_HEADERS);
    sx_status status;
    for (int tries = 0;; tries++) {
        sx_buf_reset(&body);
        sx_buf_reset(&outcome.headers);
        status = try_once(caller, request, &body, &outcome);
        const sx_code code = sx_status_code(status);
        if (code == SX_UNAUTHENTICATED && caller->endpoint.credentials != NULL && !renewed) {
            renewed = true; /* the token was revoked before its time */
            sx_credentials_forget(caller->endpoint.credentials);
            sx_status_free(status);
            continue;
        }
        if (tries >= caller->endpoint.options.retries ||
            !may_try_again(caller, request, &outcome, code)) {
            break;
        }
        const int64_t ns = wait_ns(tries, &outcome);
        if (sx_now_ns() + ns >= request->deadline_ns) {
            break;
        }
        sx_status_free(status);
        sx_sleep_ns(ns);
    }
    if (status == SX_OK) {
        sx_buf_append(out, outcome.answer.data, outcome.answer.size);
        status = sx_buf_status(out);
    }
    sx_buf_deinit(&outcome.headers);
    sx_buf_deinit(&body);
    return status;
}

static sx_status send_to(sx_caller *caller, const char *path, struct request *request, sx_buf *out)
{
    sx_buf url;
    sx_buf_init(&url, 64 * 1024);
    sx_buf_puts(&url, caller->endpoint.address);
    sx_buf_puts(&url, path);
    sx_status status = sx_buf_status(&url);
    if (status == SX_OK) {
        request->url = sx_buf_text(&url);
        status = send(caller, request, out);
    }
    sx_buf_deinit(&url);
    return status;
}

sx_status sx_caller_rest(sx_caller *caller, const char *path, sx_bytes body, bool repeatable,
                         sx_buf *out)
{
    struct request request = {.body = body, .repeatable = repeatable};
    return send_to(caller, path, &request, out);
}

sx_status sx_caller_grpc(sx_caller *caller, const char *method, sx_bytes message, bool repeatable,
                         sx_buf *out)
{
    sx_buf frame;
    sx_buf_init(&frame, 0);
    const size_t at = sx_grpc_message_begin(&frame);
    sx_buf_append(&frame, message.data, message.size);
    sx_grpc_message_end(&frame, at);
    sx_status status = sx_buf_status(&frame);
    if (status == SX_OK) {
        struct request request = {
            .body = {sx_buf_text(&frame), frame.size}, .grpc = true, .repeatable = repeatable};
        status = send_to(caller, method, &request, out);
    }
    sx_buf_deinit(&frame);
    return status;
}
