#include "harness.h"

#include "base/checked.h"
#include "net/http1.h"

enum { MAX_HEAD = 1024 };

static sx_http_progress parse(const char *text, size_t size, sx_http_head *head, size_t *used,
                              sx_http_failure *failure)
{
    size_t scanned = 0;
    return sx_http_head_parse(text, size, MAX_HEAD, &scanned, head, used, failure);
}

static void test_net_http1__reads_a_request(void **state)
{
    (void)state;
    static const char text[] = "POST /v1/models/m:predict?x=1&y HTTP/1.1\r\n"
                               "Host: localhost:8501\r\n"
                               "Content-Type:  application/json \t\r\n"
                               "Content-Length: 12\r\n"
                               "Empty:\r\n"
                               "Content-Encoding: GZIP\r\n\r\nBODY";
    sx_http_head head;
    sx_http_failure failure;
    size_t used = 0;
    assert_int_equal(parse(text, sizeof(text) - 1, &head, &used, &failure), SX_HTTP_DONE);
    assert_int_equal(used, sizeof(text) - 1 - 4);
    assert_true(sx_http_text_is(head.method, "POST"));
    assert_true(sx_http_text_is(head.path, "/v1/models/m:predict"));
    assert_true(sx_http_text_is(head.query, "x=1&y"));
    assert_int_equal(head.minor, 1);
    assert_true(head.keep_alive);
    assert_int_equal(head.content_length, 12);
    assert_int_equal(head.coding, SX_HTTP_GZIP);
    assert_int_equal(head.header_count, 5);
    assert_true(sx_http_text_is(sx_http_header_get(&head, "CONTENT-TYPE"), "application/json"));
    assert_true(sx_http_text_is(sx_http_header_get(&head, "empty"), ""));
    assert_null(sx_http_header_get(&head, "missing").data);
}

/* What a server must accept. */
static void test_net_http1__accepts_legal_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
        bool keep_alive;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "/", true},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "/", true}, /* RFC 9112 2.2 */
        {"GET http://a:80/x?q HTTP/1.1\r\nHost: a\r\n\r\n", "/x", true},
        {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "/", true},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "*", true},
        {"GET / HTTP/1.0\r\n\r\n", "/", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "/", true},
        {"GET / HTTP/1.1\r\nHost:\r\nConnection: foo, Close\r\n\r\n", "/", false},
        {"GET /%41?%00 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "/%41", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x80\xFF\t ok\r\n\r\n", "/", true},
        {"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n", "/", true},
        {"BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", "/pot", true},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_http_head head;
        sx_http_failure failure = {0, ""};
        size_t used = 0;
        if (parse(rows[i].text, strlen(rows[i].text), &head, &used, &failure) != SX_HTTP_DONE) {
            fail_msg("row %zu refused: %d %s", i, failure.status, failure.reason);
        }
        assert_int_equal(used, strlen(rows[i].text));
        assert_true(sx_http_text_is(head.path, rows[i].path));
        assert_int_equal(head.keep_alive, rows[i].keep_alive);
    }
}

/* The hostile forms of reliability.md T5 and R11, and their kin: each gets the status given. */
static void test_net_http1__refuses_hostile_heads(void **state)
{
    (void)state;
#define H "GET / HTTP/1.1\r\nHost: a\r\n"
#define P "POST / HTTP/1.1\r\nHost: a\r\n"
    static const struct {
        const char *text;
        size_t size; /* 0 = strlen */
        int status;
    } rows[] = {
        /* lengths */
        {P "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 0, 400},
        {P "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 0, 400},
        {P "Content-Length: 5, 5\r\n\r\n", 0, 400},
        {P "Content-Length: +5\r\n\r\n", 0, 400},
        {P "Content-Length: -5\r\n\r\n", 0, 400},
        {P "Content-Length: 0x5\r\n\r\n", 0, 400},
        {P "Content-Length: 5 5\r\n\r\n", 0, 400},
        {P "Content-Length: 5a\r\n\r\n", 0, 400},
        {P "Content-Length:\r\n\r\n", 0, 400},
        {P "Content-Length: 18446744073709551616\r\n\r\n", 0, 400},
        {P "Content-Length: 99999999999999999999999999\r\n\r\n", 0, 400},
        {P "Content-Length : 5\r\n\r\n", 0, 400},
        {P " Content-Length: 5\r\n\r\n", 0, 400},
        {P "Content-Length\t: 5\r\n\r\n", 0, 400},
        /* encodings */
        {P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 0, 400},
        {P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: chunked, chunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: identity\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: xchunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: chunked;q=1\r\n\r\n", 0, 400},
        {P "Transfer-Encoding: \x0b"
           "chunked\r\n\r\n",
         0, 400},
        {P "Transfer-Encoding : chunked\r\n\r\n", 0, 400},
        {P "Transfer-Encoding:\r\n chunked\r\n\r\n", 0, 400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 400},
        {P "Content-Encoding: br\r\n\r\n", 0, 415},
        {P "Content-Encoding: gzip, gzip\r\n\r\n", 0, 415},
        {P "Expect: 200-ok\r\n\r\n", 0, 417},
        /* bytes */
        {H "X: a\0b\r\n\r\n", sizeof(H "X: a\0b\r\n\r\n") - 1, 400},
        {H "X\0Y: a\r\n\r\n", sizeof(H "X\0Y: a\r\n\r\n") - 1, 400},
        {H "X: a\rb\r\n\r\n", 0, 400},
        {H "X: a\x7f\r\n\r\n", 0, 400},
        {H "X: a\n\r\n", 0, 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 0, 400},
        {H "X: a\r\n folded\r\n\r\n", 0, 400},
        {H "\tX: a\r\n\r\n", 0, 400},
        {H ": a\r\n\r\n", 0, 400},
        {H "no colon\r\n\r\n", 0, 400},
        {H "X(Y): a\r\n\r\n", 0, 400},
        {H "\x80: a\r\n\r\n", 0, 400},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"\rXGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"\x16\x03\x01\x02", 0, 400}, /* TLS */
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        /* request line */
        {"GET /\r\nHost: a\r\n\r\n", 0, 400},
        {"GET\r\nHost: a\r\n\r\n", 0, 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 0, 400},
        {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/11\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 0, 505},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 0, 505},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 505},
        {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
        /* Host */
        {"GET / HTTP/1.1\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 0, 400},
        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 0, 400},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const size_t size = rows[i].size ? rows[i].size : strlen(rows[i].text);
        sx_http_head head;
        sx_http_failure failure = {0, ""};
        size_t used = 0;
        if (parse(rows[i].text, size, &head, &used, &failure) != SX_HTTP_BAD ||
            failure.status != rows[i].status) {
            fail_msg("row %zu: got %d, expected %d:\n%s", i, failure.status, rows[i].status,
                     rows[i].text);
        }
    }
}

static void test_net_http1__bounds_heads(void **state)
{
    (void)state;
    char text[8192];
    sx_http_head head;
    sx_http_failure failure;
    size_t used = 0, scanned = 0;
    memset(text, 'a', sizeof(text));
    assert_int_equal(parse(text, MAX_HEAD, &head, &used, &failure), SX_HTTP_BAD);
    assert_int_equal(failure.status, 431);
    assert_int_equal(parse(text, MAX_HEAD - 1, &head, &used, &failure), SX_HTTP_MORE);
    size_t size = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < SX_HTTP_MAX_HEADERS; i++) {
        size += (size_t)snprintf(text + size, sizeof(text) - size, "X: %d\r\n", i);
    }
    size += (size_t)snprintf(text + size, sizeof(text) - size, "\r\n");
    assert_int_equal(parse(text, size, &head, &used, &failure), SX_HTTP_BAD);
    assert_int_equal(failure.status, 431);
    size = (size_t)snprintf(text, sizeof(text), "GET /%05000d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    assert_int_equal(sx_http_head_parse(text, size, sizeof(text), &scanned, &head, &used, &failure),
                     SX_HTTP_BAD);
    assert_int_equal(failure.status, 414);
}

/* Byte by byte gives the same as at once, and every shorter text is "more" or a refusal. */
static void test_net_http1__takes_heads_in_pieces(void **state)
{
    (void)state;
    static const char text[] = "\r\nPOST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\n";
    sx_http_head head;
    sx_http_failure failure;
    size_t used = 0, scanned = 0;
    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        assert_int_equal(sx_http_head_parse(text, size, MAX_HEAD, &scanned, &head, &used, &failure),
                         SX_HTTP_MORE);
    }
    assert_int_equal(
        sx_http_head_parse(text, sizeof(text) - 1, MAX_HEAD, &scanned, &head, &used, &failure),
        SX_HTTP_DONE);
    assert_int_equal(used, sizeof(text) - 1);
    assert_int_equal(head.content_length, 3);
}

/* Every byte of a head set to every value: never a crash, and a head that still parses never has
 * both framings. */
static void test_net_http1__survives_flipped_bytes(void **state)
{
    (void)state;
    static const char text[] = "POST /a?b HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n"
                               "Connection: close\r\n\r\n";
    char flipped[sizeof(text)];
    long accepted = 0;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        for (int value = 0; value < 256; value++) {
            sx_http_head head;
            sx_http_failure failure;
            size_t used = 0;
            memcpy(flipped, text, sizeof(text));
            flipped[i] = (char)value;
            if (parse(flipped, sizeof(text) - 1, &head, &used, &failure) == SX_HTTP_DONE) {
                assert_true(used <= sizeof(text) - 1);
                assert_false(head.chunked && head.content_length > 0);
                accepted++;
            }
        }
    }
    assert_in_range(accepted, 1000, 10000);
}

/* ---- Chunks ---- */

/* Decodes `text` in pieces of `step` bytes. */
static sx_http_progress decode(const char *text, size_t size, size_t step, size_t max, sx_buf *body,
                               size_t *used, sx_http_failure *failure)
{
    sx_http_chunks chunks;
    sx_http_progress progress = SX_HTTP_MORE;
    sx_buf_init(body, max);
    sx_http_chunks_init(&chunks);
    *used = 0;
    while (*used < size && progress == SX_HTTP_MORE) {
        size_t took = 0;
        progress = sx_http_chunks_decode(&chunks, text + *used, SX_MIN(step, size - *used), body,
                                         &took, failure);
        *used += took;
    }
    return progress;
}

static void test_net_http1__decodes_chunks(void **state)
{
    (void)state;
    static const char text[] = "5\r\nhello\r\n00001;ext=\"v\"\r\n \r\nA\r\n0123456789\r\n0\r\n"
                               "Trailer: x\r\nOther:\r\n\r\nNEXT";
    for (size_t step = 1; step < sizeof(text); step++) {
        sx_buf body;
        sx_http_failure failure;
        size_t used = 0;
        assert_int_equal(decode(text, sizeof(text) - 1, step, 100, &body, &used, &failure),
                         SX_HTTP_DONE);
        assert_int_equal(used, sizeof(text) - 1 - 4);
        assert_string_equal(sx_buf_text(&body), "hello 0123456789");
        sx_buf_deinit(&body);
    }
}

static void test_net_http1__refuses_hostile_chunks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"0x5\r\nhello\r\n", 400},
        {"+5\r\nhello\r\n", 400},
        {"-1\r\n", 400},
        {" 5\r\nhello\r\n", 400},
        {"5 \r\nhello\r\n", 400},
        {"5\nhello\r\n", 400},
        {"5\r\nhello", 0}, /* more */
        {"5\r\nhelloX\r\n", 400},
        {"5\r\nhello\n", 400},
        {"5\r\nhello\rX", 400},
        {"\r\n", 400},
        {";x\r\n", 400},
        {"g\r\n", 400},
        {"10000000000000000\r\n", 400},
        {"fffffffffffffffff\r\n", 400},
        {"fffffff\r\n", 413},
        {"5;a\x01\r\nhello\r\n", 400},
        {"5;a\nhello\r\n", 400},
        {"5\rhello\r\n", 400},
        {"0\r\nX\r\n\r\n", 400},
        {"0\r\n folded: x\r\n\r\n", 400},
        {"0\r\nX: a\n\r\n", 400},
        {"0\r\nX : a\r\n\r\n", 400},
        {"0\r\n\rX", 400},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_buf body;
        sx_http_failure failure = {0, ""};
        size_t used = 0;
        const sx_http_progress progress =
            decode(rows[i].text, strlen(rows[i].text), 1000, 100, &body, &used, &failure);
        if (progress != (rows[i].status ? SX_HTTP_BAD : SX_HTTP_MORE) ||
            failure.status != rows[i].status) {
            fail_msg("row %zu: got %d, expected %d: %s", i, failure.status, rows[i].status,
                     rows[i].text);
        }
        sx_buf_deinit(&body);
    }
}

static void test_net_http1__bounds_chunked_bodies(void **state)
{
    (void)state;
    sx_buf text, body;
    sx_http_failure failure;
    size_t used = 0;
    sx_buf_init(&text, 0);
    for (int i = 0; i < 200000; i++) {
        sx_buf_puts(&text, "1\r\nx\r\n");
    }
    assert_int_equal(decode(text.data, text.size, 65536, 1 << 20, &body, &used, &failure),
                     SX_HTTP_BAD);
    assert_int_equal(failure.status, 413); /* framing, not payload, filled it */
    assert_true(body.size < 20000);
    sx_buf_deinit(&body);
    sx_buf_reset(&text);
    sx_buf_puts(&text, "5\r\nhello\r\n6\r\nworld!\r\n0\r\n\r\n");
    assert_int_equal(decode(text.data, text.size, 1, 11, &body, &used, &failure), SX_HTTP_DONE);
    sx_buf_deinit(&body);
    assert_int_equal(decode(text.data, text.size, 1, 10, &body, &used, &failure), SX_HTTP_BAD);
    assert_int_equal(failure.status, 413);
    sx_buf_deinit(&body);
    sx_buf_deinit(&text);
}

/* The limits themselves are allowed, one more is refused. */
static void test_net_http1__limits_themselves_are_allowed(void **state)
{
    (void)state;
    static char text[16384];
    for (int extra = 0; extra < 2; extra++) {
        sx_http_head head;
        sx_http_failure failure = {0, ""};
        size_t used = 0, scanned = 0;
        /* a head of that many bytes */
        size_t size =
            (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n\r\n",
                             MAX_HEAD - 32 + extra, 0);
        assert_int_equal(size, MAX_HEAD + extra);
        assert_int_equal(parse(text, size, &head, &used, &failure),
                         extra == 0 ? SX_HTTP_DONE : SX_HTTP_BAD);
        assert_int_equal(failure.status, extra == 0 ? 0 : 431);
        /* that many headers */
        size = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < SX_HTTP_MAX_HEADERS - 1 + extra; i++) {
            size += (size_t)snprintf(text + size, sizeof text - size, "X: %d\r\n", i);
        }
        size += (size_t)snprintf(text + size, sizeof text - size, "\r\n");
        assert_int_equal(parse(text, size, &head, &used, &failure),
                         extra == 0 ? SX_HTTP_DONE : SX_HTTP_BAD);
        assert_int_equal(failure.status, extra == 0 ? 0 : 431);
        if (extra == 0) {
            assert_int_equal(head.header_count, SX_HTTP_MAX_HEADERS);
        }
        /* a target of that many bytes */
        size = (size_t)snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n",
                                SX_HTTP_MAX_TARGET - 1 + extra, 0);
        assert_int_equal(
            sx_http_head_parse(text, size, sizeof text, &scanned, &head, &used, &failure),
            extra == 0 ? SX_HTTP_DONE : SX_HTTP_BAD);
        assert_int_equal(failure.status, extra == 0 ? 0 : 414);
    }
}

/* Every byte in every place of a head is accepted exactly where the RFCs allow it. */
static void test_net_http1__knows_which_bytes_go_where(void **state)
{
    (void)state;
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const struct {
        const char *form, *marks; /* marks: what is legal beside letters and digits */
    } rows[] = {
        {"G%cT / HTTP/1.1\r\nHost: a\r\n\r\n", "!#$%&'*+-.^_`|~"},            /* RFC 9110 5.6.2 */
        {"GET / HTTP/1.1\r\nHost: a\r\nX%cY: z\r\n\r\n", "!#$%&'*+-.^_`|~:"}, /* : ends the name */
        {"GET /%c HTTP/1.1\r\nHost: a\r\n\r\n", "!$%&'()*+,-./:;=?@[]_~"},    /* RFC 3986 */
        {"GET / HTTP/1.1\r\nHost: a%cb\r\n\r\n", "!$%&'()*+,-.:;=[]_~"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        for (int byte = 1; byte < 256; byte++) {
            char text[100];
            sx_http_head head;
            sx_http_failure failure;
            size_t used = 0;
            size_t size = (size_t)snprintf(text, sizeof text, rows[i].form, byte);
            bool legal = strchr(alnum, byte) != NULL || strchr(rows[i].marks, byte) != NULL;
            if ((parse(text, size, &head, &used, &failure) == SX_HTTP_DONE) != legal) {
                fail_msg("row %zu, byte 0x%02x: expected %s", i, byte, legal ? "yes" : "no");
            }
        }
    }
    for (int byte = 1; byte < 256; byte++) { /* a value: blank, tab, visible, above 0x7F */
        char text[100];
        sx_http_head head;
        sx_http_failure failure;
        size_t used = 0;
        size_t size = (size_t)snprintf(text, sizeof text,
                                       "GET / HTTP/1.1\r\nHost: a\r\nX: b%cc\r\n\r\n", byte);
        bool legal = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        assert_int_equal(parse(text, size, &head, &used, &failure) == SX_HTTP_DONE, legal);
    }
}

static void test_net_http1__last_framing_header_forms(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        int minor, status; /* 0: accepted */
        bool keep_alive, expects, gzip;
        uint64_t length;
    } rows[] = {
        {"Content-Length: 18446744073709551615\r\n", 1, 0, true, false, false, UINT64_MAX},
        {"Content-Length: 0012\r\n", 1, 0, true, false, false, 12},
        {"Content-Encoding: identity\r\n", 1, 0, true, false, false, 0},
        {"Content-Encoding: X-Gzip\r\n", 1, 0, true, false, true, 0},
        {"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", 1, 415, 0, 0, 0, 0},
        {"Content-Encoding: gzipp\r\n", 1, 415, 0, 0, 0, 0},
        {"Expect: 100-Continue\r\n", 1, 0, true, true, false, 0},
        {"Expect: 100-continue\r\n", 0, 0, false, false, false, 0}, /* HTTP/1.0 has none */
        {"Expect: 100-continue\r\nExpect: 100-continue\r\n", 1, 417, 0, 0, 0, 0},
        {"Connection: close, keep-alive\r\n", 1, 0, false, false, false, 0},
        {"Connection: keep-alive ,close\r\n", 0, 0, false, false, false, 0},
        {"Connection: x\r\nConnection: keep-alive\r\n", 0, 0, true, false, false, 0},
        {"Connection: closed\r\n", 1, 0, true, false, false, 0},
        {"Connection:\r\n", 1, 0, true, false, false, 0},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        char text[300];
        sx_http_head head;
        sx_http_failure failure = {0, ""};
        size_t used = 0;
        size_t size = (size_t)snprintf(text, sizeof text, "POST / HTTP/1.%d\r\nHost: a\r\n%s\r\n",
                                       rows[i].minor, rows[i].lines);
        const sx_http_progress progress = parse(text, size, &head, &used, &failure);
        if (progress != (rows[i].status == 0 ? SX_HTTP_DONE : SX_HTTP_BAD) ||
            failure.status != rows[i].status) {
            fail_msg("row %zu: %d", i, failure.status);
        }
        if (rows[i].status == 0) {
            assert_int_equal(head.minor, rows[i].minor);
            assert_int_equal(head.keep_alive, rows[i].keep_alive);
            assert_int_equal(head.expect_continue, rows[i].expects);
            assert_int_equal(head.coding, rows[i].gzip ? SX_HTTP_GZIP : SX_HTTP_IDENTITY);
            assert_int_equal(head.content_length, rows[i].length);
        }
    }
}

/* Digits of a size, bytes of an extension and of the trailers: as many as allowed, and one more. */
static void test_net_http1__bounds_chunk_framing(void **state)
{
    (void)state;
    enum { DIGITS, EXTENSION, TRAILERS, WHATS };
    static const int limits[WHATS] = {15, 256, 8192}, refusals[WHATS] = {400, 400, 431};
    static char text[16384];
    for (int what = 0; what < WHATS; what++) {
        for (int extra = 0; extra < 2; extra++) {
            sx_buf body;
            sx_http_failure failure = {0, ""};
            size_t used = 0;
            const int n = limits[what] + extra;
            if (what == DIGITS) {
                snprintf(text, sizeof text, "%0*d\r\nhello\r\n0\r\n\r\n", n, 5);
            } else if (what == EXTENSION) {
                snprintf(text, sizeof text, "5;%0*d\r\nhello\r\n0\r\n\r\n", n, 1);
            } else { /* "X: ...\r\n" and the CR of the empty line count */
                snprintf(text, sizeof text, "5\r\nhello\r\n0\r\nX: %0*d\r\n\r\n", n - 6, 1);
            }
            const sx_http_progress progress =
                decode(text, strlen(text), sizeof text, 100, &body, &used, &failure);
            if (progress != (extra == 0 ? SX_HTTP_DONE : SX_HTTP_BAD) ||
                failure.status != (extra == 0 ? 0 : refusals[what])) {
                fail_msg("%d with %d: %d", what, n, failure.status);
            }
            if (extra == 0) {
                assert_string_equal(sx_buf_text(&body), "hello");
            }
            sx_buf_deinit(&body);
        }
    }
}

/* 64 KiB of framing are free; beyond, each byte of it needs one of data. */
static void test_net_http1__bounds_framing_by_data(void **state)
{
    (void)state;
    sx_buf text, body;
    sx_http_failure failure = {0, ""};
    size_t used = 0;
    sx_buf_init(&text, 0);
    /* Chunks of one byte have five of framing: 5 n + the last three and two = 65536 + n. */
    for (int extra = 0; extra < 2; extra++) {
        sx_buf_reset(&text);
        for (int i = 0; i < 16383; i++) {
            sx_buf_puts(&text, "1\r\nx\r\n");
        }
        sx_buf_puts(&text, extra == 0 ? "0\r\n" : "0;\r\n");
        sx_buf_puts(&text, "X\r\n");
        failure.status = 0;
        decode(text.data, text.size, 65536, 1 << 20, &body, &used, &failure);
        assert_int_equal(body.size, 16383);
        assert_int_equal(failure.status, extra == 0 ? 400 : 413);
        sx_buf_deinit(&body);
    }
    sx_buf_deinit(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_http1__reads_a_request),
    cmocka_unit_test(test_net_http1__accepts_legal_forms),
    cmocka_unit_test(test_net_http1__refuses_hostile_heads),
    cmocka_unit_test(test_net_http1__bounds_heads),
    cmocka_unit_test(test_net_http1__takes_heads_in_pieces),
    cmocka_unit_test(test_net_http1__survives_flipped_bytes),
    cmocka_unit_test(test_net_http1__decodes_chunks),
    cmocka_unit_test(test_net_http1__refuses_hostile_chunks),
    cmocka_unit_test(test_net_http1__bounds_chunked_bodies),
    cmocka_unit_test(test_net_http1__limits_themselves_are_allowed),
    cmocka_unit_test(test_net_http1__knows_which_bytes_go_where),
    cmocka_unit_test(test_net_http1__last_framing_header_forms),
    cmocka_unit_test(test_net_http1__bounds_chunk_framing),
    cmocka_unit_test(test_net_http1__bounds_framing_by_data),
};
SX_TEST_MAIN(tests)
