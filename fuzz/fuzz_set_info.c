/* The sidecar schema beside record files. */
#include <stddef.h>
#include <stdint.h>

#include "data/set_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_arena arena;
    sx_set_info info;
    sx_arena_init(&arena, 0);
    sx_status status = sx_set_info_parse((sx_bytes){data, size}, "schema.json", "f", &arena, &info);
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return 0;
}
