/* gRPC over HTTP/2; see grpc.h. */
#include "net/grpc.h"

#include <string.h>

#include "base/checked.h"
#include "base/hex.h"
#include "base/clock.h"
#include "io/compress.h"

enum {
    INFLATE_SLACK = 8 * 1024 * 1024, /* reserved by sx_inflate_all */
    COMPRESS_BYTES = 1024,           /* smaller responses are not worth it */
    COMPRESS_LEVEL = 1,
};

static const char content_type[] = "application/grpc";
static const char plain_headers[] = "grpc-accept-encoding: identity, gzip\r\n";
static const char gzip_headers[] =
    "grpc-encoding: gzip\r\ngrpc-accept-encoding: identity, gzip\r\n";

/* ---- Requests ---- */

bool sx_grpc_is_call(const sx_http_head *head)
{
    sx_http_text type = sx_http_header_get(head, "content-type");
    return head->http2 && type.data != NULL && sx_http_text_take_nocase(&type, content_type) &&
           (type.size == 0 || type.data[0] == '+' || type.data[0] == ';');
}

bool sx_grpc_parse_timeout(sx_http_text text, int64_t *out_ns)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {{'n', 1},
                 {'u', 1000},
                 {'m', 1000000},
                 {'S', 1000000000},
                 {'M', 60 * (int64_t)1000000000},
                 {'H', 3600 * (int64_t)1000000000}};
    int64_t count = 0;
    if (text.size < 2 || text.size > 9) {
        return false;
    }
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        count = count * 10 + (text.data[i] - '0');
    }
    for (size_t i = 0; i < SX_COUNT(units); i++) {
        if (units[i].unit == text.data[text.size - 1]) {
            if (__builtin_mul_overflow(count, units[i].ns, out_ns)) {
                *out_ns = INT64_MAX; /* 300 years */
            }
            return true;
        }
    }
    return false;
}

sx_status sx_grpc_begin(sx_http_exchange *exchange)
{
    const sx_http_head *head = sx_http_request_head(exchange);
    const sx_http_text timeout = sx_http_header_get(head, "grpc-timeout");
    const sx_http_text coding = sx_http_header_get(head, "grpc-encoding");
    int64_t timeout_ns = 0;
    if (!sx_http_text_is(head->method, "POST")) {
        return sx_error(SX_INTERNAL, "a call is a POST request");
    }
    if (timeout.data != NULL && !sx_grpc_parse_timeout(timeout, &timeout_ns)) {
        return sx_error(SX_INTERNAL, "malformed grpc-timeout: \"%.*s\"", (int)timeout.size,
                        timeout.data);
    }
    const int64_t now = sx_now_ns();
    sx_http_request_set_deadline(exchange, timeout.data == NULL || timeout_ns > INT64_MAX - now
                                               ? INT64_MAX
                                               : now + timeout_ns);
    if (coding.data != NULL && !sx_http_text_is(coding, "identity") &&
        !sx_http_text_is(coding, "gzip")) {
        return sx_error(SX_UNIMPLEMENTED, "grpc-encoding \"%.*s\" is not supported; use gzip",
                        (int)coding.size, coding.data);
    }
    return SX_OK;
}

bool sx_grpc_is_gzip(const sx_http_exchange *exchange)
{
    return sx_http_text_is(sx_http_header_get(sx_http_request_head(exchange), "grpc-encoding"),
                           "gzip");
}

static size_t message_size(const uint8_t *prefix)
{
    return (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
           (size_t)prefix[4];
}

bool sx_grpc_has_message(sx_bytes body)
{
    return body.size >= SX_GRPC_PREFIX && body.size - SX_GRPC_PREFIX >= message_size(body.data);
}

sx_bytes sx_grpc_take_message(sx_bytes *body)
{
    sx_bytes frame = *body;
    if (body->size >= SX_GRPC_PREFIX) {
        frame.size = SX_MIN(body->size, SX_GRPC_PREFIX + message_size(body->data));
    }
    *body = (sx_bytes){(const uint8_t *)body->data + frame.size, body->size - frame.size};
    return frame;
}

sx_status sx_grpc_unframe(sx_bytes body, bool gzip, size_t max_bytes, sx_buf *inflated,
                          sx_bytes *out_message)
{
    const uint8_t *prefix = body.data;
    if (body.size < SX_GRPC_PREFIX) {
        return sx_error(SX_INTERNAL, "the request has %zu bytes and no message", body.size);
    }
    const size_t size = message_size(prefix);
    const sx_bytes message = {prefix + SX_GRPC_PREFIX, size};
    if (size != body.size - SX_GRPC_PREFIX) {
        return sx_error(SX_INTERNAL, "a message of %zu bytes in a request of %zu: expected one",
                        size, body.size);
    }
    if (size > max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "a message of %zu bytes, the limit is %zu", size,
                        max_bytes);
    }
    if (prefix[0] > 1 || (prefix[0] == 1 && !gzip)) {
        return sx_error(SX_INTERNAL, "a compressed message without grpc-encoding");
    }
    if (prefix[0] == 0) {
        *out_message = message;
        return SX_OK;
    }
    const size_t by_ratio = SX_MAX(size * SX_GRPC_INFLATE_RATIO, (size_t)SX_GRPC_INFLATE_FREE);
    const size_t limit = SX_MIN(max_bytes, by_ratio);
    inflated->max_bytes = limit + INFLATE_SLACK;
    sx_status status =
        sx_inflate_all(SX_CODEC_GZIP, message, limit, "a compressed message", inflated);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* of the client's making */
        sx_status error = sx_error(SX_INTERNAL, "%s", sx_status_message(status));
        sx_status_free(status);
        return error;
    }
    *out_message = (sx_bytes){sx_buf_text(inflated), inflated->size};
    return status;
}

sx_status sx_grpc_request(const sx_http_exchange *exchange, size_t max_bytes, sx_buf *inflated,
                          sx_bytes *out_message)
{
    return sx_grpc_unframe(sx_http_request_body(exchange), sx_grpc_is_gzip(exchange), max_bytes,
                           inflated, out_message);
}

/* ---- Responses ---- */

size_t sx_grpc_message_begin(sx_buf *out)
{
    static const char prefix[SX_GRPC_PREFIX] = {0};
    const size_t at = out->size;
    sx_buf_append(out, prefix, sizeof(prefix));
    return at;
}

void sx_grpc_message_end(sx_buf *out, size_t at)
{
    const size_t size = out->size - at - SX_GRPC_PREFIX;
    if (!out->failed) {
        for (int i = 0; i < 4; i++) {
            out->data[at + 1 + (size_t)i] = (char)(size >> (24 - 8 * i));
        }
    }
}

/* The text in the characters that a header may have; others, and '%', as %XX. */
static void put_percent_encoded(sx_buf *out, const char *text)
{
    const size_t length = strlen(text);
    size_t size = SX_MIN(length, (size_t)SX_GRPC_MESSAGE_BYTES);
    while (size < length && size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80) {
        size--; /* not within a character */
    }
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            sx_buf_putc(out, (char)c);
        } else {
            char escaped[3];
            sx_buf_append(out, sx_percent_put(escaped, c), sizeof(escaped));
        }
    }
    sx_buf_puts(out, size < length ? "...TRUNCATED" : "");
}

/* Without padding, as gRPC wants it. */
static void put_base64(sx_buf *out, sx_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *data = bytes.data;
    uint32_t bits = 0;
    int count = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        bits = bits << 8 | data[i];
        for (count += 8; count >= 6; count -= 6) {
            sx_buf_putc(out, digits[bits >> (count - 6) & 63]);
        }
    }
    if (count > 0) {
        sx_buf_putc(out, digits[bits << (6 - count) & 63]);
    }
}

void sx_grpc_put_trailers(sx_buf *out, int code, const char *message, sx_bytes details)
{
    if (code == 0) {
        sx_buf_puts(out, "grpc-status: 0\r\n");
        return;
    }
    sx_buf_printf(out, "grpc-status: %d\r\ngrpc-message: ", code);
    put_percent_encoded(out, message);
    sx_buf_puts(out, "\r\n");
    if (details.size > 0) {
        sx_buf_puts(out, "grpc-status-details-bin: ");
        put_base64(out, details);
        sx_buf_puts(out, "\r\n");
    }
}

static sx_http_response response_of(const char *headers)
{
    return (sx_http_response){.status = 200, .content_type = content_type, .headers = headers};
}

/* Takes [0, body_size) as messages and the rest as trailers. */
static void respond_with(sx_http_exchange *exchange, const char *headers, sx_buf *out,
                         size_t body_size)
{
    sx_http_response response = response_of(headers);
    size_t size = 0;
    response.body = sx_buf_take(out, &size);
    if (response.body == NULL) { /* out of memory: the client sees that the status is missing */
        response.status = 503;
    } else {
        response.body_size = body_size;
        response.trailers_size = size - body_size;
    }
    sx_buf_deinit(out);
    sx_http_respond(exchange, &response);
}

static bool accepts_gzip(const sx_http_exchange *exchange)
{
    sx_http_text list = sx_http_header_get(sx_http_request_head(exchange), "grpc-accept-encoding");
    for (; list.size >= 4; list.data++, list.size--) {
        if (memcmp(list.data, "gzip", 4) == 0) {
            return true;
        }
    }
    return false;
}

/* Puts the one message of `plain` into `out`, compressed. */
static sx_status compress_message(const sx_buf *plain, sx_buf *out)
{
    sx_deflate *stream = NULL;
    const size_t at = sx_grpc_message_begin(out);
    SX_TRY(sx_deflate_create(SX_CODEC_GZIP, COMPRESS_LEVEL, sx_write_to_buf, out, &stream));
    sx_status status =
        sx_deflate_write(stream, plain->data + SX_GRPC_PREFIX, plain->size - SX_GRPC_PREFIX);
    if (status == SX_OK) {
        status = sx_deflate_finish(stream);
    }
    sx_deflate_destroy(stream);
    SX_TRY(status);
    sx_grpc_message_end(out, at);
    out->data[at] = 1;
    return SX_OK;
}

static void respond_well(sx_http_exchange *exchange, sx_buf *out)
{
    const char *headers = plain_headers;
    if (out->size >= COMPRESS_BYTES && sx_grpc_is_gzip(exchange) && accepts_gzip(exchange)) {
        sx_buf packed;
        sx_buf_init(&packed, out->max_bytes);
        packed.budget = out->budget;
        sx_status status = compress_message(out, &packed);
        if (status == SX_OK) {
            sx_buf_deinit(out);
            *out = packed;
            headers = gzip_headers;
        } else { /* sent as it is */
            sx_buf_deinit(&packed);
            sx_status_free(status);
        }
    }
    const size_t body_size = out->size;
    sx_grpc_put_trailers(out, 0, "", (sx_bytes){0});
    respond_with(exchange, headers, out, body_size);
}

void sx_grpc_respond(sx_http_exchange *exchange, sx_status status, sx_bytes details, sx_buf *out)
{
    if (status == SX_OK && out != NULL && !out->failed) {
        respond_well(exchange, out);
        return;
    }
    sx_buf trailers;
    sx_buf_init(&trailers, 64 * 1024);
    if (status == SX_OK && out != NULL) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "no memory for the response");
    }
    sx_grpc_put_trailers(&trailers, (int)sx_status_code(status), sx_status_message(status),
                         details);
    sx_status_free(status);
    if (out != NULL) {
        sx_buf_deinit(out);
    }
    respond_with(exchange, plain_headers, &trailers, 0);
}

void sx_grpc_send(sx_http_exchange *exchange, sx_buf *out,
                  void (*on_sent)(void *user, sx_http_exchange *exchange))
{
    sx_http_response response = response_of(plain_headers);
    response.body = sx_buf_take(out, &response.body_size);
    sx_buf_deinit(out);
    if (response.body == NULL) {
        sx_grpc_respond(exchange, sx_error(SX_RESOURCE_EXHAUSTED, "no memory for the response"),
                        (sx_bytes){0}, NULL);
        return;
    }
    response.on_sent = on_sent;
    sx_http_respond(exchange, &response);
}

sx_http_response sx_grpc_refusal(int http_status, const char *reason)
{
    static const struct {
        int http_status;
        sx_code code;
    } codes[] = {{413, SX_RESOURCE_EXHAUSTED}, {429, SX_RESOURCE_EXHAUSTED},
                 {431, SX_RESOURCE_EXHAUSTED}, {503, SX_UNAVAILABLE},
                 {504, SX_DEADLINE_EXCEEDED},  {408, SX_CANCELLED},
                 {415, SX_UNIMPLEMENTED}};
    sx_http_response response = response_of(NULL);
    sx_code code = SX_INTERNAL;
    for (size_t i = 0; i < SX_COUNT(codes); i++) {
        code = codes[i].http_status == http_status ? codes[i].code : code;
    }
    sx_buf trailers;
    sx_buf_init(&trailers, 4096);
    sx_grpc_put_trailers(&trailers, (int)code,
                         code == SX_DEADLINE_EXCEEDED ? "Deadline Exceeded" : reason,
                         (sx_bytes){0});
    response.body = sx_buf_take(&trailers, &response.trailers_size);
    if (response.body == NULL) {
        sx_buf_deinit(&trailers);
        response.trailers_size = 0;
    }
    return response;
}
