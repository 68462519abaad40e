/* Entries of the cache of compiled programs. The key is that of the input itself, where it has one,
 * so that the fuzzer gets past it. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/pjrt/cache.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_pjrt_cache_key key = {{0}};
    sx_pjrt_cache_entry entry;
    char *copy = sx_alloc(size + 1, 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    if (size >= 8 + sizeof(key.bytes)) {
        memcpy(key.bytes, data + 8, sizeof(key.bytes));
    }
    sx_status_free(sx_pjrt_cache_parse(&key, copy, size, &entry));
    sx_free(copy);
    return 0;
}
