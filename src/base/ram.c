/* Physical memory and cgroup limit.
 *
 *   memory.max               "268435456" or "max"                   bytes; version 2
 *   memory.limit_in_bytes    "268435456"; no limit = about 2^63     version 1
 *
 * Source: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst. */
#include "base/ram.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/checked.h"

static int64_t limit_in(const char *dir, const char *name)
{
    char line[64];
    const long long bytes =
        sx_cgroup_read(dir, name, line, sizeof(line)) ? strtoll(line, NULL, 10) : 0;
    return bytes > 0 ? bytes : 0; /* "max" reads as 0 */
}

static int64_t limit_v2(const char *dir)
{
    return limit_in(dir, "memory.max");
}

static int64_t limit_v1(const char *dir)
{
    return limit_in(dir, "memory.limit_in_bytes");
}

int64_t sx_ram_quota(const char *proc_cgroup, const char *root)
{
    return sx_cgroup_limit(proc_cgroup, root, "memory", limit_v2, limit_v1);
}

int64_t sx_ram_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const int64_t quota = sx_ram_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (pages <= 0 || page <= 0) {
        return quota > 0 ? quota : (int64_t)1 << 30;
    }
    const int64_t machine = (int64_t)pages * page;
    return quota > 0 ? SX_MIN(quota, machine) : machine;
}

size_t sx_ram_discard(void *data, size_t bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t size = page > 0 ? (uintptr_t)page : 4096, at = (uintptr_t)data;
    const uintptr_t first = (at + size - 1) / size * size, end = (at + bytes) / size * size;
    return first < end && madvise((void *)first, end - first, MADV_DONTNEED) == 0 ? end - first : 0;
}
