/* gRPC framing: any body is one message within its limit, or an error; trailers of any text are
 * lines of printable characters; a timeout is not negative. */
#include <stdlib.h>
#include <string.h>

#include "net/grpc.h"

enum { MAX_MESSAGE = 64 * 1024 };

static void check_body(sx_bytes body, bool gzip)
{
    sx_buf inflated;
    sx_bytes message = {NULL, 0};
    sx_buf_init(&inflated, 0);
    sx_status status = sx_grpc_unframe(body, gzip, MAX_MESSAGE, &inflated, &message);
    if (status == SX_OK && (message.size > MAX_MESSAGE || (message.size > 0 && !message.data))) {
        abort();
    }
    sx_status_free(status);
    sx_buf_deinit(&inflated);
}

static void check_trailers(const uint8_t *data, size_t size)
{
    sx_buf out;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    sx_buf_init(&out, 0);
    sx_grpc_put_trailers(&out, 3, text, (sx_bytes){data, size});
    for (size_t i = 0; i < out.size; i++) {
        const char c = out.data[i];
        if (c != '\r' && c != '\n' && (c < ' ' || c > '~')) {
            abort();
        }
    }
    sx_buf_deinit(&out);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns = 0;
    check_body((sx_bytes){data, size}, false);
    check_body((sx_bytes){data, size}, true);
    check_trailers(data, size);
    if (sx_grpc_parse_timeout((sx_http_text){(const char *)data, size}, &ns) && ns < 0) {
        abort();
    }
    return 0;
}
