/* The text of a ModelTrafficConfig: any bytes are shares, or an error. */
#include "serve/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_traffic *rows = NULL;
    size_t count = 0;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status_free(sx_traffic_parse((sx_bytes){data, size}, "traffic", &arena, &rows, &count));
    sx_arena_deinit(&arena);
    return 0;
}
