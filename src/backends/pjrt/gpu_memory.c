/* See gpu_memory.h. The driver's functions and their names: the CUDA Driver API, whose ABI is
 * stable. */
#include "backends/pjrt/gpu_memory.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/checked.h"

sx_status sx_gpu_memory(int64_t *out_bytes)
{
    static const char library[] = "libcuda.so.1";
    int (*init)(unsigned flags) = NULL;
    int (*count_devices)(int *count) = NULL;
    int (*get_device)(int *device, int ordinal) = NULL;
    int (*total_memory)(size_t * bytes, int device) = NULL;
    const struct {
        const char *name;
        void **to;
    } functions[] = {{"cuInit", (void **)&init},
                     {"cuDeviceGetCount", (void **)&count_devices},
                     {"cuDeviceGet", (void **)&get_device},
                     {"cuDeviceTotalMem_v2", (void **)&total_memory}};
    void *driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    bool known = driver != NULL;
    for (size_t i = 0; known && i < SX_COUNT(functions); i++) {
        *functions[i].to = dlsym(driver, functions[i].name);
        known = *functions[i].to != NULL;
    }
    if (!known) { /* it stays open: the plugin is to use it next */
        return sx_error(SX_UNAVAILABLE,
                        "cannot find out how much memory the GPU has: there is no %s, the driver "
                        "of CUDA, or it lacks a function",
                        library);
    }
    int n = 0, error = init(0);
    error = error == 0 ? count_devices(&n) : error;
    int64_t most = 0;
    for (int i = 0; error == 0 && i < n; i++) {
        size_t bytes = 0;
        int device = 0;
        error = get_device(&device, i);
        error = error == 0 ? total_memory(&bytes, device) : error;
        most = SX_MAX(most, (int64_t)SX_MIN(bytes, (size_t)INT64_MAX));
    }
    if (error != 0 || most == 0) {
        return sx_error(SX_UNAVAILABLE,
                        "cannot find out how much memory the GPU has: %s gives error %d, %d GPUs",
                        library, error, n);
    }
    *out_bytes = most;
    return SX_OK;
}
