/* Affinity mask and cgroup quota.
 *
 *   cpu.max              "150000 100000" or "max 100000"   quota, period in µs; version 2
 *   cpu.cfs_quota_us     "150000" or "-1"                  version 1
 *   cpu.cfs_period_us    "100000"
 *
 * Source: Linux Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst. */
#include "base/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/checked.h"
#include "base/pool.h"

enum { MAX_CPUS = 1 << 16 };

/* Processors in quota/period, rounded up; 0 = no limit. */
static int64_t whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long cpus = quota / period + (quota % period != 0);
    return cpus > INT_MAX ? 0 : cpus;
}

static int64_t quota_v2(const char *dir)
{
    char line[128];
    long long quota = 0, period = 0;
    if (!sx_cgroup_read(dir, "cpu.max", line, sizeof(line)) ||
        sscanf(line, "%lld %lld", &quota, &period) != 2) {
        return 0;
    }
    return whole_cpus(quota, period);
}

static int64_t quota_v1(const char *dir)
{
    char quota[64], period[64];
    if (!sx_cgroup_read(dir, "cpu.cfs_quota_us", quota, sizeof(quota)) ||
        !sx_cgroup_read(dir, "cpu.cfs_period_us", period, sizeof(period))) {
        return 0;
    }
    return whole_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

int sx_cpu_quota(const char *proc_cgroup, const char *root)
{
    return (int)sx_cgroup_limit(proc_cgroup, root, "cpu", quota_v2, quota_v1);
}

int sx_cpu_affinity(int *cpus, int capacity)
{
    for (int bits = 1024; bits <= MAX_CPUS; bits *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)bits);
        size_t bytes = CPU_ALLOC_SIZE((size_t)bits);
        if (set == NULL) {
            return 0;
        }
        int count = 0;
        bool known = sched_getaffinity(0, bytes, set) == 0;
        for (int cpu = 0; known && cpu < bits; cpu++) {
            if (CPU_ISSET_S((size_t)cpu, bytes, set)) {
                if (count < capacity) {
                    cpus[count] = cpu;
                }
                count++;
            }
        }
        CPU_FREE(set);
        if (known) {
            return count;
        }
    }
    return 0;
}

int sx_cpu_count(void)
{
    int count = sx_cpu_affinity(NULL, 0);
    if (count == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online < 1 ? 1 : (int)SX_MIN(online, (long)MAX_CPUS);
    }
    int quota = sx_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota == 0 ? count : SX_MIN(count, quota);
}
