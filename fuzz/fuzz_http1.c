/* HTTP/1.1: any bytes are a request, a refusal, or not enough; read in one piece or in two makes no
 * difference; a head never has two framings; a body never exceeds its limit. */
#include <stdlib.h>
#include <string.h>

#include "net/http1.h"

enum { MAX_HEAD = 2048, MAX_BODY = 4096 };

/* Parses `size` bytes that arrive as `first` and the rest. */
static sx_http_progress parse(const char *data, size_t size, size_t first, sx_http_head *head,
                              size_t *used)
{
    size_t scanned = 0;
    sx_http_failure failure;
    sx_http_progress progress =
        sx_http_head_parse(data, first, MAX_HEAD, &scanned, head, used, &failure);
    if (progress == SX_HTTP_MORE) {
        progress = sx_http_head_parse(data, size, MAX_HEAD, &scanned, head, used, &failure);
    }
    return progress;
}

static void check_body(const char *data, size_t size)
{
    sx_http_chunks chunks;
    sx_http_failure failure;
    sx_buf body;
    size_t used = 0;
    sx_buf_init(&body, MAX_BODY);
    sx_http_chunks_init(&chunks);
    sx_http_chunks_decode(&chunks, data, size, &body, &used, &failure);
    if (used > size || body.size > MAX_BODY) {
        abort();
    }
    sx_buf_deinit(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sx_http_head whole, pieces;
    size_t whole_used = 0, pieces_used = 0;
    const char *text = (const char *)data;
    const size_t first = size > 0 ? data[size - 1] % size : 0;
    const sx_http_progress at_once = parse(text, size, size, &whole, &whole_used);
    const sx_http_progress in_two = parse(text, size, first, &pieces, &pieces_used);
    if (at_once == SX_HTTP_DONE) {
        if (in_two != SX_HTTP_DONE || whole_used != pieces_used || whole_used > size ||
            (whole.chunked && whole.content_length > 0)) {
            abort();
        }
        check_body(text + whole_used, size - whole_used);
    }
    check_body(text, size);
    return 0;
}
