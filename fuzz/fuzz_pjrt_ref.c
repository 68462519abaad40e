/* Any bytes as a StableHLO text for the reference plugin: parsed, and run if they are small. */
#include "pjrt_ref/try.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_text((const char *)data, size);
    return 0;
}
