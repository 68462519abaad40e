/* Reflection requests: any bytes are answered, or an error. */
#include "serve/grpc_reflection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_status_free(sx_grpc_reflect((sx_bytes){data, size}, &out));
    sx_buf_deinit(&out);
    return 0;
}
