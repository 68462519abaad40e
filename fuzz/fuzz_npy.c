/* .npy: what parses has a header that writes, and parses again to the same tensor; strings, of
 * which no header is written, lie in the tensor's own bytes. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_tensor tensor = {0}, again = {0};
    sx_status status = sx_npy_parse((sx_bytes){data, size}, 1 << 20, "fuzz", &tensor);
    if (status == SX_OK && tensor.type.dtype == SX_STRING) {
        const sx_bytes *strings = tensor.data;
        size_t zeros = 0;
        for (int64_t i = 0; i < sx_type_elems(&tensor.type); i++) {
            for (size_t k = 0; k < strings[i].size; k++) {
                zeros += ((const char *)strings[i].data)[k] == 0;
            }
        }
        assert(zeros <= size);
    } else if (status == SX_OK) {
        sx_buf out;
        sx_buf_init(&out, 0);
        status = sx_npy_header(&tensor.type, &out);
        assert(status == SX_OK);
        size_t bytes = (size_t)sx_type_bytes(&tensor.type);
        sx_buf_append(&out, tensor.data, bytes);
        status = sx_npy_parse((sx_bytes){out.data, out.size}, 0, "own", &again);
        assert(status == SX_OK && sx_type_equal(&tensor.type, &again.type));
        assert(memcmp(tensor.data, again.data, bytes) == 0);
        sx_buf_deinit(&out);
    }
    sx_status_free(status);
    sx_free(again.data);
    sx_free(tensor.data);
    return 0;
}
