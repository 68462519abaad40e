/* See endpoint.h. */
#include "client/endpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "net/grpc.h"

enum {
    TIMEOUT_MS = 60000,
    RETRIES = 2,
    MAX_TIMEOUT_MS = INT32_MAX, /* 24 days */
    MAX_ANSWER = 64 << 20,
    SHOWN_BYTES = 2000, /* of an answer, in an error */
};

/* ---- Creation and destruction ---- */

static sx_status read_address(sx_endpoint *e, const char *server)
{
    static const char unix_prefix[] = "unix:";
    const char *scheme = strstr(server, "://");
    size_t size = strlen(server);
    if (strncmp(server, unix_prefix, sizeof(unix_prefix) - 1) == 0) {
        e->socket_path = sx_arena_strdup(&e->arena, server + sizeof(unix_prefix) - 1);
        e->address = "http://localhost";
        return e->socket_path != NULL ? SX_OK : sx_no_memory("for an address");
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
    e->address =
        sx_arena_printf(&e->arena, "%s%.*s", scheme == NULL ? "http://" : "", (int)size, server);
    return e->address != NULL ? SX_OK : sx_no_memory("for an address");
}

static sx_status keep_options(sx_endpoint *e, const sx_client_options *options)
{
    sx_client_options *o = &e->options;
    const char **const texts[] = {&o->ca_file, &o->certificate_file, &o->key_file, &o->api_key};
    *o = *options;
    o->timeout_ms = o->timeout_ms > 0 ? SX_MIN(o->timeout_ms, (int64_t)MAX_TIMEOUT_MS) : TIMEOUT_MS;
    o->retries = o->retries == 0 ? RETRIES : SX_MAX(o->retries, 0);
    o->keep_ms = SX_MAX(o->keep_ms, (int64_t)0);
    o->max_answer_bytes = o->max_answer_bytes > 0 ? o->max_answer_bytes : MAX_ANSWER;
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        if (*texts[i] != NULL && (*texts[i] = sx_arena_strdup(&e->arena, *texts[i])) == NULL) {
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
        e->identity = sx_arena_printf(&e->arena, "Authorization: Bearer %s", o->api_key);
        return e->identity != NULL ? SX_OK : sx_no_memory("for a client");
    }
    return o->credentials_file != NULL
               ? sx_credentials_read(o->credentials_file, o->scope, &e->credentials)
               : SX_OK;
}

sx_status sx_endpoint_init(sx_endpoint *e, const char *server, const sx_client_options *options)
{
    memset(e, 0, sizeof(*e));
    sx_arena_init(&e->arena, 0);
    sx_status status = read_address(e, server);
    if (status == SX_OK) {
        status = keep_options(e, options);
    }
    if (status != SX_OK) {
        sx_endpoint_deinit(e);
    }
    return status;
}

void sx_endpoint_deinit(sx_endpoint *e)
{
    sx_credentials_free(e->credentials);
    sx_arena_deinit(&e->arena);
    memset(e, 0, sizeof(*e));
}

/* ---- Requests ---- */

sx_status sx_endpoint_request(sx_endpoint *e, const char *url, sx_bytes body, bool grpc,
                              int64_t left_ms, sx_endpoint_call *out)
{
    size_t count = 0;
    const int64_t wait_ms = left_ms + (grpc ? e->options.keep_ms : 0);
    memset(out->headers, 0, sizeof(out->headers));
    if (e->identity != NULL) {
        out->headers[count++] = e->identity;
    }
    if (e->credentials != NULL) {
        SX_TRY(sx_credentials_header(e->credentials, (int)left_ms, out->authorization));
        out->headers[count++] = out->authorization;
    }
    if (grpc) {
        snprintf(out->timeout, sizeof(out->timeout), "grpc-timeout: %lldm",
                 (long long)SX_MIN(left_ms, (int64_t)99999999));
        out->headers[count++] = "TE: trailers";
        out->headers[count++] = out->timeout;
    }
    out->http = (sx_http_call){
        .url = url,
        .content_type = grpc ? "application/grpc" : NULL,
        .body = body,
        .headers = out->headers,
        .timeout_ms = (int)SX_MIN(wait_ms, (int64_t)INT32_MAX),
        .http2 = grpc,
        .socket_path = e->socket_path,
        .ca_file = e->options.ca_file,
        .certificate_file = e->options.certificate_file,
        .key_file = e->options.key_file,
    };
    return SX_OK;
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

long sx_endpoint_header_number(const sx_buf *headers, const char *name)
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
    const long code = sx_endpoint_header_number(headers, "grpc-status:");
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

sx_status sx_endpoint_answer(const sx_endpoint *e, const char *url, bool grpc, int64_t deadline_ns,
                             sx_status status, int http_status, const sx_buf *headers,
                             const sx_buf *body, sx_bytes *out_answer)
{
    const sx_bytes whole = {sx_buf_text(body), body->size};
    if (body->failed == SX_OUT_OF_RANGE) {
        sx_status_free(status);
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: the response is larger than %lld bytes", url,
                        (long long)e->options.max_answer_bytes);
    }
    SX_TRY(status);
    if (!grpc) {
        *out_answer = whole;
        return http_status / 100 == 2 ? SX_OK : rest_error(url, http_status, headers, body);
    }
    SX_TRY(grpc_error(url, http_status, headers));
    if (sx_now_ns() >= deadline_ns) {
        return sx_error(SX_DEADLINE_EXCEEDED, "%s: answered after %lld ms", url,
                        (long long)e->options.timeout_ms);
    }
    status = sx_grpc_unframe(whole, false, SIZE_MAX, NULL, out_answer);
    return sx_status_code(status) == SX_INTERNAL
               ? sx_status_annotate(status, __FILE__, __LINE__, "%s", url)
               : status;
}
