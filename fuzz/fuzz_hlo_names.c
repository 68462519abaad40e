/* The names in optimized programs that a plugin hands out. */
#include <stddef.h>
#include <stdint.h>

#include "backends/pjrt/hlo_names.h"

static bool look(void *user, sx_bytes name, sx_bytes op_name)
{
    size_t *sum = user;
    *sum += name.size + op_name.size;
    return *sum < 1 << 20;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t sum = 0;
    sx_status_free(sx_hlo_names_visit(data, size, look, &sum));
    return 0;
}
