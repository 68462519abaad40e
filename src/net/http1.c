/* HTTP/1.1 requests, strictly; see http1.h. */
#include "net/http1.h"

#include <string.h>

#include "base/checked.h"
#include "base/hex.h"

/* ---- Bytes and words ---- */

enum {
    TOKEN = 1,  /* RFC 9110 5.6.2: methods, header names */
    VALUE = 2,  /* RFC 9110 5.5: visible, blank, tab, and obs-text above 0x7F */
    TARGET = 4, /* RFC 3986, all of a URI reference but the fragment */
    HOST = 8,   /* RFC 3986 3.2.2, 3.2.3: name, IP literal, port */
};

/* The sum of the classes above for every ASCII byte; bytes above are VALUE alone. */
/* clang-format off */
static const unsigned char ascii_class[128] = {
     0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  0,  0,  0,  0,  0,  0, /* 0x00 */
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, /* 0x10 */
     2, 15,  2,  3, 15, 15, 15, 15, 14, 14, 15, 15, 14, 15, 15,  6, /* 0x20 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 14,  2, 14,  2,  6, /* 0x30 */
     6, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 0x40 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14,  2, 14,  3, 15, /* 0x50 */
     3, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 0x60 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,  2,  3,  2, 15,  0, /* 0x70 */
};
/* clang-format on */

static inline bool is_class(char c, unsigned wanted)
{
    const unsigned char byte = (unsigned char)c;
    return (byte < 128 ? ascii_class[byte] & wanted : wanted == VALUE) != 0;
}

static bool all_of_class(sx_http_text text, unsigned wanted)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_class(text.data[i], wanted)) {
            return false;
        }
    }
    return true;
}

static inline char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool sx_http_text_is(sx_http_text text, const char *expected)
{
    return text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
}

bool sx_http_text_is_nocase(sx_http_text text, const char *expected)
{
    if (text.size != strlen(expected)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (lower(text.data[i]) != lower(expected[i])) {
            return false;
        }
    }
    return true;
}

bool sx_http_text_take_nocase(sx_http_text *text, const char *prefix)
{
    const size_t size = strlen(prefix);
    if (text->size < size || !sx_http_text_is_nocase((sx_http_text){text->data, size}, prefix)) {
        return false;
    }
    text->data += size;
    text->size -= size;
    return true;
}

static sx_http_text trim(sx_http_text text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) {
        text.size--;
    }
    return text;
}

static sx_http_progress fail(sx_http_failure *failure, int status, const char *reason)
{
    *failure = (sx_http_failure){status, reason};
    return SX_HTTP_BAD;
}

/* ---- Request line ---- */

/* Splits the target into path and query. Accepts origin form, absolute form (whose authority is
 * ignored, as RFC 9112 3.2.2 allows a server with one site) and "*" for OPTIONS. */
static bool split_target(sx_http_head *head)
{
    sx_http_text rest = head->target;
    if (sx_http_text_is(rest, "*")) {
        head->path = rest;
        return sx_http_text_is(head->method, "OPTIONS");
    }
    if (sx_http_text_take_nocase(&rest, "http://")) {
        const char *slash = memchr(rest.data, '/', rest.size);
        const size_t host_size = slash != NULL ? (size_t)(slash - rest.data) : rest.size;
        if (host_size == 0 || !all_of_class((sx_http_text){rest.data, host_size}, HOST)) {
            return false;
        }
        rest =
            slash != NULL ? (sx_http_text){slash, rest.size - host_size} : (sx_http_text){"/", 1};
    }
    if (rest.size == 0 || rest.data[0] != '/') {
        return false;
    }
    const char *mark = memchr(rest.data, '?', rest.size);
    head->path = rest;
    if (mark != NULL) {
        head->path.size = (size_t)(mark - rest.data);
        head->query = (sx_http_text){mark + 1, rest.size - head->path.size - 1};
    }
    return true;
}

static sx_http_progress check_target(sx_http_head *head, sx_http_failure *failure)
{
    if (head->target.size > SX_HTTP_MAX_TARGET) {
        return fail(failure, 414, "request target too long");
    }
    if (!all_of_class(head->target, TARGET) || !split_target(head)) {
        return fail(failure, 400, "malformed request target");
    }
    return SX_HTTP_DONE;
}

/* METHOD SP target SP HTTP/1.x, exactly. */
static sx_http_progress parse_request_line(sx_http_text line, sx_http_head *head,
                                           sx_http_failure *failure)
{
    const char *first = memchr(line.data, ' ', line.size);
    if (first == NULL) {
        return fail(failure, 400, "malformed request line; expected METHOD TARGET HTTP/1.1");
    }
    head->method = (sx_http_text){line.data, (size_t)(first - line.data)};
    sx_http_text rest = {first + 1, line.size - head->method.size - 1};
    const char *second = memchr(rest.data, ' ', rest.size);
    if (second == NULL) {
        return fail(failure, 400, "request line without HTTP version");
    }
    head->target = (sx_http_text){rest.data, (size_t)(second - rest.data)};
    const sx_http_text version = {second + 1, rest.size - head->target.size - 1};
    if (head->method.size == 0 || !all_of_class(head->method, TOKEN)) {
        return fail(failure, 400, "malformed method");
    }
    if (version.size != 8 || memcmp(version.data, "HTTP/", 5) != 0 || version.data[6] != '.' ||
        version.data[5] < '0' || version.data[5] > '9' || version.data[7] < '0' ||
        version.data[7] > '9') {
        return fail(failure, 400, "malformed HTTP version");
    }
    if (version.data[5] != '1' || version.data[7] > '1') {
        return fail(failure, 505, "unsupported HTTP version; use HTTP/1.1");
    }
    head->minor = version.data[7] - '0';
    return check_target(head, failure);
}

/* ---- Headers ---- */

static sx_http_progress parse_header(sx_http_text line, sx_http_header *out,
                                     sx_http_failure *failure)
{
    if (line.data[0] == ' ' || line.data[0] == '\t') {
        return fail(failure, 400, "folded header lines are not supported");
    }
    const char *colon = memchr(line.data, ':', line.size);
    if (colon == NULL) {
        return fail(failure, 400, "header line without colon");
    }
    out->name = (sx_http_text){line.data, (size_t)(colon - line.data)};
    out->value = (sx_http_text){colon + 1, line.size - out->name.size - 1};
    if (out->name.size == 0 || !all_of_class(out->name, TOKEN)) {
        return fail(failure, 400, "malformed header name");
    }
    if (!all_of_class(out->value, VALUE)) {
        return fail(failure, 400, "control character in header value");
    }
    out->value = trim(out->value);
    return SX_HTTP_DONE;
}

/* The headers that frame the message, and how often each was seen. */
struct framing {
    int hosts, lengths, encodings, codings, expectations;
    bool close, keep_alive;
};

typedef sx_http_progress header_fn(sx_http_text value, sx_http_head *head, struct framing *seen,
                                   sx_http_failure *failure);

static sx_http_progress on_host(sx_http_text value, sx_http_head *head, struct framing *seen,
                                sx_http_failure *failure)
{
    (void)head;
    if (seen->hosts++ > 0) {
        return fail(failure, 400, "multiple Host headers");
    }
    return all_of_class(value, HOST) ? SX_HTTP_DONE : fail(failure, 400, "malformed Host");
}

static sx_http_progress on_content_length(sx_http_text value, sx_http_head *head,
                                          struct framing *seen, sx_http_failure *failure)
{
    if (seen->lengths++ > 0) {
        return fail(failure, 400, "multiple Content-Length headers");
    }
    uint64_t length = 0;
    for (size_t i = 0; i < value.size; i++) {
        const char c = value.data[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(length, (uint64_t)10, &length) ||
            __builtin_add_overflow(length, (uint64_t)(c - '0'), &length)) {
            return fail(failure, 400, "malformed Content-Length");
        }
    }
    head->content_length = length;
    return value.size > 0 ? SX_HTTP_DONE : fail(failure, 400, "empty Content-Length");
}

static sx_http_progress on_transfer_encoding(sx_http_text value, sx_http_head *head,
                                             struct framing *seen, sx_http_failure *failure)
{
    if (seen->encodings++ > 0 || !sx_http_text_is_nocase(value, "chunked")) {
        return fail(failure, 400, "unsupported Transfer-Encoding; use chunked");
    }
    head->chunked = true;
    return SX_HTTP_DONE;
}

static sx_http_progress on_content_encoding(sx_http_text value, sx_http_head *head,
                                            struct framing *seen, sx_http_failure *failure)
{
    const bool gzip =
        sx_http_text_is_nocase(value, "gzip") || sx_http_text_is_nocase(value, "x-gzip");
    if (seen->codings++ > 0 || !(gzip || sx_http_text_is_nocase(value, "identity"))) {
        return fail(failure, 415, "unsupported Content-Encoding; use gzip");
    }
    head->coding = gzip ? SX_HTTP_GZIP : SX_HTTP_IDENTITY;
    return SX_HTTP_DONE;
}

static sx_http_progress on_connection(sx_http_text value, sx_http_head *head, struct framing *seen,
                                      sx_http_failure *failure)
{
    (void)head;
    (void)failure;
    while (value.size > 0) {
        const char *comma = memchr(value.data, ',', value.size);
        const size_t size = comma != NULL ? (size_t)(comma - value.data) : value.size;
        const sx_http_text option = trim((sx_http_text){value.data, size});
        seen->close |= sx_http_text_is_nocase(option, "close");
        seen->keep_alive |= sx_http_text_is_nocase(option, "keep-alive");
        const size_t used = SX_MIN(size + 1, value.size);
        value.data += used;
        value.size -= used;
    }
    return SX_HTTP_DONE;
}

static sx_http_progress on_expect(sx_http_text value, sx_http_head *head, struct framing *seen,
                                  sx_http_failure *failure)
{
    if (seen->expectations++ > 0 || !sx_http_text_is_nocase(value, "100-continue")) {
        return fail(failure, 417, "unsupported Expect; use 100-continue");
    }
    head->expect_continue = true;
    return SX_HTTP_DONE;
}

static const struct {
    const char *name;
    header_fn *fn;
} framing_headers[] = {
    {"host", on_host},
    {"content-length", on_content_length},
    {"transfer-encoding", on_transfer_encoding},
    {"content-encoding", on_content_encoding},
    {"connection", on_connection},
    {"expect", on_expect},
};

static sx_http_progress note_header(const sx_http_header *header, sx_http_head *head,
                                    struct framing *seen, sx_http_failure *failure)
{
    for (size_t i = 0; i < SX_COUNT(framing_headers); i++) {
        if (sx_http_text_is_nocase(header->name, framing_headers[i].name)) {
            return framing_headers[i].fn(header->value, head, seen, failure);
        }
    }
    return SX_HTTP_DONE;
}

/* Checks the headers that frame the message against each other. */
static sx_http_progress check_framing(sx_http_head *head, const struct framing *seen,
                                      sx_http_failure *failure)
{
    if (head->minor == 1 && seen->hosts == 0) {
        return fail(failure, 400, "missing Host header");
    }
    if (head->chunked && seen->lengths > 0) {
        return fail(failure, 400, "both Content-Length and Transfer-Encoding are set");
    }
    if (head->chunked && head->minor == 0) {
        return fail(failure, 400, "Transfer-Encoding is not allowed in HTTP/1.0");
    }
    head->expect_continue = head->expect_continue && head->minor == 1;
    head->keep_alive = !seen->close && (head->minor == 1 || seen->keep_alive);
    return SX_HTTP_DONE;
}

/* Finds the end of the head: the first empty line. Every LF must follow a CR, so that a bare LF is
 * refused as soon as it arrives. `*scanned` is the start of the current line. */
static sx_http_progress find_head_end(const char *data, size_t size, size_t *scanned,
                                      size_t *out_size, sx_http_failure *failure)
{
    size_t begin = *scanned;
    for (;;) {
        const char *lf = memchr(data + begin, '\n', size - begin);
        if (lf == NULL) {
            *scanned = begin;
            return SX_HTTP_MORE;
        }
        const size_t at = (size_t)(lf - data);
        if (at == begin || data[at - 1] != '\r') {
            return fail(failure, 400, "line does not end with CRLF");
        }
        if (at - begin == 1) {
            *out_size = at + 1;
            return SX_HTTP_DONE;
        }
        begin = at + 1;
    }
}

static sx_http_progress parse_lines(const char *data, size_t size, sx_http_head *head,
                                    sx_http_failure *failure)
{
    struct framing seen = {0};
    const char *p = data, *end = data + size - 2; /* before the empty line */
    for (bool first = true; p < end; first = false) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        const sx_http_text line = {p, (size_t)(lf - p) - 1};
        p = lf + 1;
        if (first) {
            if (parse_request_line(line, head, failure) == SX_HTTP_BAD) {
                return SX_HTTP_BAD;
            }
            continue;
        }
        if (head->header_count == SX_HTTP_MAX_HEADERS) {
            return fail(failure, 431, "too many headers");
        }
        sx_http_header *header = &head->headers[head->header_count++];
        if (parse_header(line, header, failure) == SX_HTTP_BAD ||
            note_header(header, head, &seen, failure) == SX_HTTP_BAD) {
            return SX_HTTP_BAD;
        }
    }
    return check_framing(head, &seen, failure);
}

static void clear_head(sx_http_head *head)
{
    memset(head, 0, offsetof(sx_http_head, headers)); /* entries from header_count on are unused */
}

sx_http_progress sx_http_head_parse(const char *data, size_t size, size_t max_bytes,
                                    size_t *scanned, sx_http_head *out_head, size_t *out_size,
                                    sx_http_failure *out_failure)
{
    size_t skip = 0, end = 0;
    if (size > 0 &&
        data[0] == '\r') { /* RFC 9112 2.2: one empty line before a request is harmless */
        if (size == 1) {
            return SX_HTTP_MORE;
        }
        skip = 2;
        *scanned = SX_MAX(*scanned, skip);
        if (data[1] != '\n' || (size > 2 && data[2] == '\r')) {
            return fail(out_failure, 400, "missing request line");
        }
    }
    if (size > skip && !is_class(data[skip], TOKEN)) {
        return fail(out_failure, 400, "not an HTTP request");
    }
    const sx_http_progress found = find_head_end(data, size, scanned, &end, out_failure);
    if (found == SX_HTTP_BAD) {
        return found;
    }
    if (found == SX_HTTP_MORE ? size >= max_bytes : end > max_bytes) {
        return fail(out_failure, 431, "request header too large");
    }
    if (found == SX_HTTP_MORE) {
        return found;
    }
    clear_head(out_head);
    *out_size = end;
    return parse_lines(data + skip, end - skip, out_head, out_failure);
}

bool sx_http_head_complete(sx_http_head *head, sx_http_failure *out_failure)
{
    struct framing seen = {0};
    head->http2 = true;
    head->minor = 1;
    if (check_target(head, out_failure) == SX_HTTP_BAD) {
        return false;
    }
    for (int i = 0; i < head->header_count; i++) {
        if (note_header(&head->headers[i], head, &seen, out_failure) == SX_HTTP_BAD) {
            return false;
        }
    }
    if (head->chunked) {
        fail(out_failure, 400, "Transfer-Encoding is not allowed in HTTP/2");
        return false;
    }
    return true;
}

sx_http_text sx_http_header_get(const sx_http_head *head, const char *name)
{
    for (int i = 0; i < head->header_count; i++) {
        if (sx_http_text_is_nocase(head->headers[i].name, name)) {
            return head->headers[i].value;
        }
    }
    return (sx_http_text){NULL, 0};
}

/* ---- Chunked bodies ---- */

enum {
    CHUNK_SIZE,      /* hexadecimal digits */
    CHUNK_EXTENSION, /* after ';' */
    CHUNK_SIZE_LF,   /* the LF after the CR of the size line */
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_START, /* first byte of a trailer line, or CR of the empty one */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
};

enum {
    MAX_SIZE_DIGITS = 15, /* below 2^60 */
    MAX_EXTENSION_BYTES = 256,
    MAX_TRAILER_BYTES = 8192,
    FREE_FRAMING_BYTES = 65536,
};

void sx_http_chunks_init(sx_http_chunks *chunks)
{
    *chunks = (sx_http_chunks){.state = CHUNK_SIZE};
}

static sx_http_progress step_size(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    const int digit = sx_hex_digit(c);
    if (digit >= 0) {
        if (++k->size_digits > MAX_SIZE_DIGITS) {
            return fail(failure, 400, "chunk size too large");
        }
        k->remaining = k->remaining * 16 + (unsigned)digit;
        return SX_HTTP_MORE;
    }
    if (k->size_digits == 0 || (c != ';' && c != '\r')) {
        return fail(failure, 400, "malformed chunk size");
    }
    k->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
    k->line_bytes = 0;
    return SX_HTTP_MORE;
}

static sx_http_progress step_extension(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    if (c == '\r') {
        k->state = CHUNK_SIZE_LF;
    } else if (!is_class(c, VALUE) || ++k->line_bytes > MAX_EXTENSION_BYTES) {
        return fail(failure, 400, "malformed or too long chunk extension");
    }
    return SX_HTTP_MORE;
}

static sx_http_progress step_size_lf(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    if (c != '\n') {
        return fail(failure, 400, "chunk size line does not end with CRLF");
    }
    k->state = k->remaining > 0 ? CHUNK_DATA : TRAILER_START;
    return SX_HTTP_MORE;
}

static sx_http_progress step_data_cr(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    if (c != '\r') {
        return fail(failure, 400, "chunk is longer than its size");
    }
    k->state = CHUNK_DATA_LF;
    return SX_HTTP_MORE;
}

static sx_http_progress step_data_lf(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    if (c != '\n') {
        return fail(failure, 400, "chunk does not end with CRLF");
    }
    k->state = CHUNK_SIZE;
    k->size_digits = 0;
    return SX_HTTP_MORE;
}

/* Trailers must not affect framing or routing (RFC 9110 6.5.1); they are checked and discarded. */
static sx_http_progress step_trailer(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    if (++k->trailer_bytes > MAX_TRAILER_BYTES) {
        return fail(failure, 431, "trailers too large");
    }
    if (k->state == TRAILER_START && c == '\r') {
        k->state = LAST_LF;
    } else if (k->state == TRAILER_NAME && c == ':') {
        k->state = TRAILER_VALUE;
    } else if (k->state == TRAILER_VALUE && c == '\r') {
        k->state = TRAILER_LF;
    } else if (k->state == TRAILER_LF && c == '\n') {
        k->state = TRAILER_START;
    } else if (k->state == TRAILER_START && is_class(c, TOKEN)) {
        k->state = TRAILER_NAME;
    } else if (k->state == TRAILER_LF || !is_class(c, k->state == TRAILER_VALUE ? VALUE : TOKEN)) {
        return fail(failure, 400, "malformed trailer");
    }
    return SX_HTTP_MORE;
}

static sx_http_progress step_last_lf(sx_http_chunks *k, char c, sx_http_failure *failure)
{
    (void)k;
    return c == '\n' ? SX_HTTP_DONE : fail(failure, 400, "last chunk does not end with CRLF");
}

typedef sx_http_progress step_fn(sx_http_chunks *k, char c, sx_http_failure *failure);

static step_fn *const chunk_steps[] = {
    [CHUNK_SIZE] = step_size,       [CHUNK_EXTENSION] = step_extension,
    [CHUNK_SIZE_LF] = step_size_lf, [CHUNK_DATA] = NULL,
    [CHUNK_DATA_CR] = step_data_cr, [CHUNK_DATA_LF] = step_data_lf,
    [TRAILER_START] = step_trailer, [TRAILER_NAME] = step_trailer,
    [TRAILER_VALUE] = step_trailer, [TRAILER_LF] = step_trailer,
    [LAST_LF] = step_last_lf,
};

static sx_http_progress take_chunk_data(sx_http_chunks *k, const char *data, size_t size,
                                        sx_buf *body, size_t *used, sx_http_failure *failure)
{
    const size_t piece = k->remaining < size ? (size_t)k->remaining : size;
    sx_buf_append(body, data, piece);
    if (body->failed) {
        return fail(failure, 503, "out of memory");
    }
    k->payload_bytes += piece;
    k->remaining -= piece;
    if (k->remaining == 0) {
        k->state = CHUNK_DATA_CR;
    }
    *used += piece;
    return SX_HTTP_MORE;
}

sx_http_progress sx_http_chunks_decode(sx_http_chunks *k, const char *data, size_t size,
                                       sx_buf *body, size_t *out_used, sx_http_failure *out_failure)
{
    size_t used = 0;
    sx_http_progress progress = SX_HTTP_MORE;
    while (progress == SX_HTTP_MORE && used < size) {
        if (k->state == CHUNK_DATA) {
            progress = take_chunk_data(k, data + used, size - used, body, &used, out_failure);
            continue;
        }
        progress = chunk_steps[k->state](k, data[used++], out_failure);
        k->framing_bytes++;
        if (progress == SX_HTTP_MORE && k->framing_bytes > FREE_FRAMING_BYTES + k->payload_bytes) {
            progress = fail(out_failure, 413, "chunks too small: more framing than data");
        }
        if (k->state == CHUNK_DATA && k->remaining > body->max_bytes - body->size) {
            progress = fail(out_failure, 413, "request body too large");
        }
    }
    *out_used = used;
    return progress;
}
