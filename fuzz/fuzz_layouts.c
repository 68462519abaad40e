/* Optimised programs that a plugin hands out. */
#include <stddef.h>
#include <stdint.h>

#include "backends/pjrt/layouts.h"

static void look(void *user, const sx_layout_array *array)
{
    int64_t *sum = user;
    *sum += array->padded & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t sum = 0;
    sx_status_free(sx_layouts_visit(data, size, look, &sum));
    return 0;
}
