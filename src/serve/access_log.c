/* See access_log.h. */
#include "serve/access_log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "serve/predict_json.h"

enum { LINE_BYTES = 16 * 1024, TRACE_DIGITS = 32, SPAN_DIGITS = 16 };

struct sx_access_log {
    sx_log_file *file;
    sx_u32x2 key; /* of the identifiers that are made here */
    atomic_uint_fast64_t count;
};

sx_status sx_access_log_create(const char *path, sx_log_writer *writer, sx_access_log **out)
{
    sx_access_log *log = sx_alloc(1, sizeof(*log));
    if (log == NULL) {
        return sx_no_memory("for the access log");
    }
    if (getrandom(&log->key, sizeof(log->key), GRND_NONBLOCK) != (ssize_t)sizeof(log->key)) {
        const uint64_t now = (uint64_t)(sx_wall_seconds() * 1e6);
        log->key = (sx_u32x2){(uint32_t)now, (uint32_t)(now >> 32)};
    }
    const sx_log_file_config file = {.path = path};
    sx_status status = sx_log_writer_add(writer, &file, &log->file);
    if (status != SX_OK) {
        sx_access_log_destroy(log);
        return status;
    }
    *out = log;
    return SX_OK;
}

void sx_access_log_destroy(sx_access_log *log)
{
    sx_free(log);
}

/* ---- Traces ---- */

static bool are_digits(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) {
        i++;
    }
    return i == size;
}

/* Identifiers of zeros are invalid. */
static bool is_identifier(const char *text, size_t size)
{
    size_t zeros = 0;
    while (zeros < size && text[zeros] == '0') {
        zeros++;
    }
    return zeros < size && are_digits(text, size);
}

/* "00-<32 digits>-<16 digits>-01": later versions may have more behind. */
static bool read_traceparent(sx_http_text text, const char **trace_id, const char **parent_id)
{
    enum { BYTES = 55, TRACE_AT = 3, PARENT_AT = 36, FLAGS_AT = 53 };
    const char *data = text.data;
    if (data == NULL || text.size < BYTES || memcmp(data, "ff", 2) == 0 || data[2] != '-' ||
        data[PARENT_AT - 1] != '-' || data[PARENT_AT + SPAN_DIGITS] != '-' ||
        (memcmp(data, "00", 2) == 0 && text.size != BYTES) ||
        (text.size > BYTES && data[BYTES] != '-') || !are_digits(data, 2) ||
        !are_digits(data + FLAGS_AT, 2) || !is_identifier(data + TRACE_AT, TRACE_DIGITS) ||
        !is_identifier(data + PARENT_AT, SPAN_DIGITS)) {
        return false;
    }
    *trace_id = data + TRACE_AT;
    *parent_id = data + PARENT_AT;
    return true;
}

static void put_trace(sx_access_log *log, const sx_http_exchange *exchange, sx_buf *out)
{
    const char *trace_id = NULL, *parent_id = NULL;
    const uint64_t n = atomic_fetch_add_explicit(&log->count, 1, memory_order_relaxed) * 2;
    const sx_u32x2 counter = {(uint32_t)n, (uint32_t)(n >> 32)};
    const sx_u32x2 span = sx_threefry2x32(log->key, counter);
    if (read_traceparent(sx_http_header_get(sx_http_request_head(exchange), "traceparent"),
                         &trace_id, &parent_id)) {
        sx_buf_printf(out, ",\"trace_id\":\"%.*s\",\"parent_id\":\"%.*s\"", (int)TRACE_DIGITS,
                      trace_id, (int)SPAN_DIGITS, parent_id);
    } else {
        const sx_u32x2 more = sx_threefry2x32(log->key, (sx_u32x2){counter.a + 1, counter.b});
        sx_buf_printf(out, ",\"trace_id\":\"%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "\"",
                      more.a, more.b, span.b, span.a ^ 1);
    }
    sx_buf_printf(out, ",\"span_id\":\"%08" PRIx32 "%08" PRIx32 "\"", span.a, span.b);
}

/* ---- Lines ---- */

static void put_text(sx_buf *out, const char *name, const char *text, size_t size)
{
    sx_buf_printf(out, ",\"%s\":", name);
    sx_json_print_string(out, text, size);
}

static void put_time(sx_buf *out)
{
    struct timespec now;
    struct tm parts;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    sx_buf_printf(out, "{\"time\":\"%s.%06ldZ\"", text, now.tv_nsec / 1000);
}

/* The status in the trailers of a call of gRPC, which are behind the body; false: it is none. */
static bool find_grpc_status(const sx_http_response *response, int *out)
{
    static const char name[] = "grpc-status: ";
    const char *trailers = response->body + response->body_size;
    if (response->body == NULL || response->trailers_size < sizeof(name) ||
        memcmp(trailers, name, sizeof(name) - 1) != 0) {
        return false;
    }
    *out = 0;
    for (const char *c = trailers + sizeof(name) - 1; *c >= '0' && *c <= '9'; c++) {
        *out = *out * 10 + (*c - '0');
    }
    return true;
}

void sx_access_log_add(sx_access_log *log, const sx_http_exchange *exchange,
                       const sx_http_response *response)
{
    const sx_http_head *head = sx_http_request_head(exchange);
    const sx_http_subject *subject = sx_http_request_subject(exchange);
    const char *peer = sx_http_request_peer(exchange), *remote = sx_http_request_remote(exchange);
    int grpc_status = 0;
    sx_buf line;
    sx_buf_init(&line, LINE_BYTES + head->path.size * 6);
    put_time(&line);
    if (remote[0] != '\0') {
        put_text(&line, "remote", remote, strlen(remote));
    }
    if (peer != NULL) {
        put_text(&line, "peer", peer, strlen(peer));
    }
    put_text(&line, "protocol", head->http2 ? "HTTP/2" : "HTTP/1.1", head->http2 ? 6 : 8);
    put_text(&line, "method", head->method.data, head->method.size);
    put_text(&line, "path", head->path.data, head->path.size);
    if (subject->name[0] != '\0') {
        put_text(&line, "model", subject->name, strlen(subject->name));
        sx_buf_printf(&line, ",\"version\":%" PRId64, subject->version);
    }
    sx_buf_printf(&line, ",\"status\":%d", response->status);
    if (find_grpc_status(response, &grpc_status)) {
        sx_buf_printf(&line, ",\"grpc_status\":%d", grpc_status);
    }
    sx_buf_printf(&line, ",\"request_bytes\":%zu,\"response_bytes\":%zu,\"duration_us\":%.1f",
                  sx_http_request_body(exchange).size, response->body_size,
                  (double)(sx_now_ns() - sx_http_request_begun_ns(exchange)) / 1000);
    put_trace(log, exchange, &line);
    sx_buf_puts(&line, "}\n");
    sx_log_file_put(log->file, &line);
}
