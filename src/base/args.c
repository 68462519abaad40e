/* See args.h. */
#include "base/args.h"

#include <string.h>

#include "base/checked.h"

enum { MAX_BYTES = 1 << 16 }; /* larger sizes are invalid */

sx_status sx_take_args(const char *name, const void *args, size_t size, void *out)
{
    size_t has = size;
    if (args != NULL) {
        memcpy(&has, args, sizeof(has));
    }
    if (has < sizeof(has) || has > MAX_BYTES) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s has struct_size %zu: use the macro that fills it, or set struct_size "
                        "to sizeof(%s)",
                        name, has, name);
    }
    const char *bytes = args;
    for (size_t i = size; i < has; i++) {
        if (bytes[i] != 0) {
            return sx_error(SX_UNIMPLEMENTED,
                            "%s has %zu bytes and an option set in byte %zu; this library knows "
                            "%zu: update the library, or leave the option out",
                            name, has, i, size);
        }
    }
    memset(out, 0, size);
    if (args != NULL) {
        memcpy(out, args, SX_MIN(has, size));
    }
    memcpy(out, &size, sizeof(size));
    return SX_OK;
}
