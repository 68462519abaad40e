/* What a plugin's profiler hands out. */
#include <stddef.h>
#include <stdint.h>

#include "backends/pjrt/xspace.h"

static void look(void *user, const sx_xspace_event *event)
{
    size_t *sum = user;
    *sum += event->plane.size + event->line.size + event->name.size + event->op.size +
            event->op_name.size + (event->seconds >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t sum = 0;
    sx_status_free(sx_xspace_read(data, size, look, &sum));
    return 0;
}
