/* See caller.h. */
#include "client/caller.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "client/credentials.h"
#include "io/http_client.h"
#include "net/grpc.h"

enum {
    TIMEOUT_MS = 60000,
    RETRIES = 2,
    FIRST_WAIT_MS = 100, /* before the second try; doubles after each */
    MAX_WAIT_MS = 30000,
    MAX_TIMEOUT_MS = INT32_MAX, /* 24 days */
    MAX_HEADERS = 1 << 20,
    MAX_ANSWER = 64 << 20,
    HEADERS = 6,
    SHOWN_BYTES = 2000, /* of an answer, in an error */
};

struct sx_caller {
    sx_arena arena;
    const char *address, *socket_path;
    sx_client_options options;
    sx_http_session *session;
    sx_credentials *credentials; /* NULL: none */
    const char *identity;        /* the header of the API key; NULL: none */
};

/* ---- Creation and destruction ---- */

static sx_status read_address(sx_caller *caller, const char *server)
{
    static const char unix_prefix[] = "unix:";
    const char *scheme = strstr(server, "://");
    size_t size = strlen(server);
    if (strncmp(server, unix_prefix, sizeof(unix_prefix) - 1) == 0) {
        caller->socket_path = sx_arena_strdup(&caller->arena, server + sizeof(unix_prefix) - 1);
        caller->address = "http://localhost";
        return caller->socket_path != NULL ? SX_OK : sx_no_memory("for an address");
    }
    if (size == 0 || (scheme != NULL && strncasecmp(server, "http://", 7) != 0 &&
                      strncasecmp(server, "https://", 8) != 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: not a model server; expected http://HOST:PORT, https://HOST:PORT, "
                        "HOST:PORT or unix:PATH",
                        server);
    }
    while (size > 1 && server[size - 1] == '/') {
        size--;
    }
    caller->address = sx_arena_printf(&caller->arena, "%s%.*s", scheme == NULL ? "http://" : "",
                                      (int)size, server);
    return caller->address != NULL ? SX_OK : sx_no_memory("for an address");
}

static sx_status keep_options(sx_caller *caller, const sx_client_options *options)
{
    sx_client_options *o = &caller->options;
    const char **const texts[] = {&o->ca_file, &o->certificate_file, &o->key_file, &o->api_key};
    *o = *options;
    o->timeout_ms = o->timeout_ms > 0 ? SX_MIN(o->timeout_ms, (int64_t)MAX_TIMEOUT_MS) : TIMEOUT_MS;
    o->retries = o->retries == 0 ? RETRIES : SX_MAX(o->retries, 0);
    o->keep_ms = SX_MAX(o->keep_ms, (int64_t)0);
    o->max_answer_bytes = o->max_answer_bytes > 0 ? o->max_answer_bytes : MAX_ANSWER;
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        if (*texts[i] != NULL && (*texts[i] = sx_arena_strdup(&caller->arena, *texts[i])) == NULL) {
            return sx_no_memory("for a client");
        }
    }
    if (o->api_key != NULL && o->credentials_file != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "an API key and credentials: expected one of them");
    }
    for (const char *c = o->api_key; c != NULL && *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return sx_error(SX_INVALID_ARGUMENT, "the API key has spaces or other characters that "
                                                 "a header cannot have");
        }
    }
    if (o->api_key != NULL) {
        caller->identity = sx_arena_printf(&caller->arena, "Authorization: Bearer %s", o->api_key);
        return caller->identity != NULL ? SX_OK : sx_no_memory("for a client");
    }
    return o->credentials_file != NULL
               ? sx_credentials_read(o->credentials_file, o->scope, &caller->credentials)
               : SX_OK;
}

sx_status sx_caller_create(const char *server, const sx_client_options *options,
                           sx_caller **out_caller)
{
    sx_caller *caller = sx_alloc(1, sizeof(*caller));
    if (caller == NULL) {
        return sx_no_memory("for a client");
    }
    sx_arena_init(&caller->arena, 0);
    sx_status status = SX_OK;
    SX_TRY_GOTO(status, read_address(caller, server), failed);
    SX_TRY_GOTO(status, keep_options(caller, options), failed);
    SX_TRY_GOTO(status, sx_http_session_create(&caller->session), failed);
    *out_caller = caller;
    return SX_OK;
failed:
    sx_caller_destroy(caller);
    return status;
}

void sx_caller_destroy(sx_caller *caller)
{
    if (caller != NULL) {
        sx_http_session_destroy(caller->session);
        sx_credentials_free(caller->credentials);
        sx_arena_deinit(&caller->arena);
        sx_free(caller);
    }
}

const char *sx_caller_address(const sx_caller *caller)
{
    return caller->address;
}

size_t sx_caller_max_answer_bytes(const sx_caller *caller)
{
    return (size_t)caller->options.max_answer_bytes;
}

/* ---- Answers ---- */

/* The value of the last header line of that name, which has a colon at its end; false if there is
 * none. */
static bool find_header(const sx_buf *headers, const char *name, sx_bytes *out)
{
    const size_t size = strlen(name);
    bool found = false;
    for (const char *line = sx_buf_text(headers); line != NULL && *line != '\0';) {
        if (strncasecmp(line, name, size) == 0) {
            const char *value = line + size + strspn(line + size, " \t");
            *out = (sx_bytes){value, strcspn(value, "\r\n")};
            found = out->size > 0;
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return found;
}

/* A header that is a number; -1 if there is none. */
static long header_number(const sx_buf *headers, const char *name)
{
    sx_bytes value;
    return find_header(headers, name, &value) ? strtol(value.data, NULL, 10) : -1;
}

/* The server's message, {"error": "..."}, or else the body. Redirects are not followed: the inputs
 * would go to a server that the user has not named. */
static sx_status rest_error(const char *url, int http_status, const sx_buf *headers,
                            const sx_buf *body)
{
    static const struct {
        int http_status;
        sx_code code;
    } rows[] = {{401, SX_UNAUTHENTICATED},    {403, SX_PERMISSION_DENIED},
                {404, SX_NOT_FOUND},          {409, SX_FAILED_PRECONDITION},
                {429, SX_RESOURCE_EXHAUSTED}, {501, SX_UNIMPLEMENTED}};
    sx_bytes location;
    if (http_status / 100 == 3 && find_header(headers, "location:", &location)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: HTTP status %d: redirected to %.*s; redirects are not followed, give "
                        "the URL of the model server",
                        url, http_status, (int)SX_MIN(location.size, (size_t)SHOWN_BYTES),
                        (const char *)location.data);
    }
    sx_code code = http_status < 500 ? SX_INVALID_ARGUMENT : SX_UNAVAILABLE;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        code = rows[i].http_status == http_status ? rows[i].code : code;
    }
    json_t *answer = json_loadb(sx_buf_text(body), body->size, 0, NULL);
    const char *error = json_string_value(json_object_get(answer, "error"));
    sx_status status = sx_error(code, "%s: HTTP status %d%s%.*s", url, http_status,
                                error != NULL || body->size > 0 ? ": " : "", (int)SHOWN_BYTES,
                                error != NULL ? error : sx_buf_text(body));
    json_decref(answer);
    return status;
}

/* Decodes %XX; a '%' before anything else stands for itself. */
static void put_percent_decoded(sx_buf *out, sx_bytes text)
{
    const char *data = text.data;
    for (size_t i = 0; i < text.size; i++) {
        const int byte = sx_percent_byte(data + i, text.size - i);
        sx_buf_putc(out, byte >= 0 ? (char)byte : data[i]);
        i += byte >= 0 ? 2 : 0;
    }
}

/* The status in the trailers, or in the head of an answer without a body. */
static sx_status grpc_error(const char *url, int http_status, const sx_buf *headers)
{
    sx_bytes message = {"", 0};
    const long code = header_number(headers, "grpc-status:");
    if (code < 0) {
        return sx_error(http_status == 404 ? SX_UNIMPLEMENTED : SX_UNAVAILABLE,
                        "%s: HTTP status %d and no gRPC status: not a gRPC server?", url,
                        http_status);
    }
    if (code == 0) {
        return SX_OK;
    }
    sx_buf text;
    sx_buf_init(&text, 64 * 1024);
    (void)find_header(headers, "grpc-message:", &message);
    put_percent_decoded(&text, message);
    sx_status status =
        sx_error(code <= SX_UNAUTHENTICATED ? (sx_code)code : SX_UNKNOWN, "%s: %s: %.*s", url,
                 sx_code_name(code <= SX_UNAUTHENTICATED ? (sx_code)code : SX_UNKNOWN),
                 (int)SHOWN_BYTES, sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

/* ---- Tries ---- */

struct request {
    const char *url, *path;
    sx_bytes body;
    bool grpc, repeatable;
    int64_t deadline_ns;
};

/* What came of a try. */
struct outcome {
    sx_buf headers;
    int http_status; /* 0: no answer */
    sx_bytes message;
};

static sx_status try_once(sx_caller *caller, const struct request *request, sx_buf *body,
                          struct outcome *outcome)
{
    char timeout[48], authorization[SX_TOKEN_HEADER];
    const char *headers[HEADERS] = {0};
    size_t count = 0;
    const int64_t left_ms = SX_MAX((request->deadline_ns - sx_now_ns()) / 1000000, (int64_t)1);
    const int64_t wait_ms = left_ms + (request->grpc ? caller->options.keep_ms : 0);
    if (caller->identity != NULL) {
        headers[count++] = caller->identity;
    }
    if (caller->credentials != NULL) {
        SX_TRY(sx_credentials_header(caller->credentials, (int)left_ms, authorization));
        headers[count++] = authorization;
    }
    if (request->grpc) {
        snprintf(timeout, sizeof(timeout), "grpc-timeout: %lldm",
                 (long long)SX_MIN(left_ms, (int64_t)99999999));
        headers[count++] = "TE: trailers";
        headers[count++] = timeout;
    }
    const sx_http_call call = {
        .url = request->url,
        .content_type = request->grpc ? "application/grpc" : NULL,
        .body = request->body,
        .headers = headers,
        .timeout_ms = (int)SX_MIN(wait_ms, (int64_t)INT32_MAX),
        .session = caller->session,
        .http2 = request->grpc,
        .socket_path = caller->socket_path,
        .ca_file = caller->options.ca_file,
        .certificate_file = caller->options.certificate_file,
        .key_file = caller->options.key_file,
    };
    sx_status status = sx_http_fetch(&call, body, &outcome->headers, &outcome->http_status);
    if (body->failed == SX_OUT_OF_RANGE) {
        sx_status_free(status);
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: the response is larger than %lld bytes",
                        request->url, (long long)caller->options.max_answer_bytes);
    }
    SX_TRY(status);
    if (!request->grpc) {
        return outcome->http_status / 100 == 2
                   ? SX_OK
                   : rest_error(request->url, outcome->http_status, &outcome->headers, body);
    }
    SX_TRY(grpc_error(request->url, outcome->http_status, &outcome->headers));
    if (sx_now_ns() >= request->deadline_ns) {
        return sx_error(SX_DEADLINE_EXCEEDED, "%s: answered after %lld ms", request->url,
                        (long long)caller->options.timeout_ms);
    }
    status = sx_grpc_unframe((sx_bytes){sx_buf_text(body), body->size}, false, SIZE_MAX, NULL,
                             &outcome->message);
    return sx_status_code(status) == SX_INTERNAL
               ? sx_status_annotate(status, __FILE__, __LINE__, "%s", request->url)
               : status;
}

/* Whether the request did not run, or may run twice. An answer that ends in the middle says
 * nothing. */
static bool may_try_again(const sx_caller *caller, const struct request *request,
                          const struct outcome *outcome, sx_code code)
{
    if (outcome->http_status == 429 || outcome->http_status == 503 ||
        (request->grpc && header_number(&outcome->headers, "grpc-status:") == SX_UNAVAILABLE)) {
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
    const long told_s = header_number(&outcome->headers, "retry-after:");
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
    request->deadline_ns = sx_now_ns() + caller->options.timeout_ms * 1000000;
    sx_buf_init(&body, (size_t)caller->options.max_answer_bytes);
    sx_buf_init(&outcome.headers, MAX_HEADERS);
    sx_status status;
    for (int tries = 0;; tries++) {
        sx_buf_reset(&body);
        sx_buf_reset(&outcome.headers);
        status = try_once(caller, request, &body, &outcome);
        const sx_code code = sx_status_code(status);
        if (code == SX_UNAUTHENTICATED && caller->credentials != NULL && !renewed) {
            renewed = true; /* the token was revoked before its time */
            sx_credentials_forget(caller->credentials);
            sx_status_free(status);
            continue;
        }
        if (tries >= caller->options.retries || !may_try_again(caller, request, &outcome, code)) {
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
        const sx_bytes whole = {sx_buf_text(&body), body.size};
        const sx_bytes answer = request->grpc ? outcome.message : whole;
        sx_buf_append(out, answer.data, answer.size);
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
    sx_buf_puts(&url, caller->address);
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
