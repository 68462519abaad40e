/* See gpu_memory.h. The driver's functions and their names: the CUDA Driver API, whose ABI is
 * stable. */
#include "backends/pjrt/gpu_memory.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/late_library.h"

sx_status sx_gpu_memory(int64_t *out_bytes)
{
    static int (*init)(unsigned flags);
    static int (*count_devices)(int *count);
    static int (*get_device)(int *device, int ordinal);
    static int (*total_memory)(size_t * bytes, int device);
    static const sx_late_function functions[] = {{"cuInit", &init},
                                                 {"cuDeviceGetCount", &count_devices},
                                                 {"cuDeviceGet", &get_device},
                                                 {"cuDeviceTotalMem_v2", &total_memory}};
    static sx_late_library driver = {.soname = "libcuda.so.1",
                                     .origin = "NVIDIA's driver",
                                     .functions = functions,
                                     .function_count = SX_COUNT(functions)};
    SX_TRY(sx_late_library_load(&driver), "cannot find out how much memory the GPU has");
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
                        driver.soname, error, n);
    }
    *out_bytes = most;
    return SX_OK;
}
