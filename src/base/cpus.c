/* Affinity mask and cgroup quota.
 *
 *   /proc/self/cgroup            0::/user.slice/job       version 2
 *                                4:cpu,cpuacct:/job       version 1
 *   <root>/<group>/cpu.max                "150000 100000" or "max 100000"   quota, period in µs
 *   <root>/cpu/<group>/cpu.cfs_quota_us   "150000" or "-1"
 *   <root>/cpu/<group>/cpu.cfs_period_us  "100000"
 *
 * Source: Linux Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst. */
#include "base/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pool.h"

enum { MAX_LINE = 4096, MAX_CPUS = 1 << 16 };

/* The first line of a small file; false when it is missing or empty. */
static bool read_line(const char *path, char *line, int capacity)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fgets(line, capacity, file) != NULL;
    fclose(file);
    return ok;
}

/* Processors in quota/period, rounded up; 0 for "none". */
static int whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long cpus = quota / period + (quota % period != 0);
    return cpus > INT_MAX ? 0 : (int)cpus;
}

static int quota_v2(const char *dir)
{
    char path[MAX_LINE + 32], line[128];
    long long quota = 0, period = 0;
    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld %lld", &quota, &period) != 2) {
        return 0;
    }
    return whole_cpus(quota, period);
}

static int quota_v1(const char *dir)
{
    char path[MAX_LINE + 32], quota[64], period[64];
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (!read_line(path, quota, sizeof(quota))) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (!read_line(path, period, sizeof(period))) {
        return 0;
    }
    return whole_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static int smaller_quota(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest quota of `hierarchy` + `group` and of every group above it. */
static int walk_up(const char *hierarchy, const char *group, int (*quota_of)(const char *dir))
{
    char dir[MAX_LINE];
    int quota = 0;
    int length = snprintf(dir, sizeof(dir), "%s%s", hierarchy, group);
    if (length < 0 || (size_t)length >= sizeof(dir)) {
        return 0;
    }
    for (;;) {
        quota = smaller_quota(quota, quota_of(dir));
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < strlen(hierarchy)) {
            return quota;
        }
        *slash = '\0';
    }
}

/* True when the comma-separated `list` of controllers names "cpu". */
static bool names_cpu(const char *list, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t word = strcspn(list + at, ",:");
        if (word == 3 && strncmp(list + at, "cpu", 3) == 0) {
            return true;
        }
        at += word + 1;
    }
    return false;
}

/* One line "number:controllers:/group". */
static int quota_of_line(char *line, const char *root)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(++controllers, ':');
    if (group == NULL) {
        return 0;
    }
    size_t length = (size_t)(group++ - controllers);
    if (length == 0) {
        return walk_up(root, group, quota_v2);
    }
    char hierarchy[MAX_LINE];
    int written = snprintf(hierarchy, sizeof(hierarchy), "%s/cpu", root);
    if (!names_cpu(controllers, length) || written < 0 || (size_t)written >= sizeof(hierarchy)) {
        return 0;
    }
    return walk_up(hierarchy, group, quota_v1);
}

int sx_cpu_quota(const char *proc_cgroup, const char *root)
{
    FILE *file = fopen(proc_cgroup, "re");
    if (file == NULL) {
        return 0;
    }
    char line[MAX_LINE];
    int quota = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        quota = smaller_quota(quota, quota_of_line(line, root));
    }
    fclose(file);
    return quota;
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
