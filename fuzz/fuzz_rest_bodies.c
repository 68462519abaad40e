/* The Content-Type of raw tensors: what is taken is a type with a known shape. */
#include <stdlib.h>

#include "serve/rest_bodies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_type type;
    if (sx_rest_tensor_type((sx_http_text){(const char *)data, size}, &type) &&
        (!sx_type_is_static(&type) || sx_dtype_bytes(type.dtype) == 0)) {
        abort();
    }
    return 0;
}
