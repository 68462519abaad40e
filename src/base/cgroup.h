/* Limits that control groups put on this process.
 *
 *   /proc/self/cgroup            0::/user.slice/job       version 2
 *                                4:cpu,cpuacct:/job       version 1
 *   <root>/<group>/cpu.max                version 2
 *   <root>/cpu/<group>/cpu.cfs_quota_us   version 1: a hierarchy for each controller
 *
 * Source: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/. */
#ifndef SX_BASE_CGROUP_H
#define SX_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the limit that the group in directory `dir` sets; 0 = none. */
typedef int64_t sx_cgroup_limit_fn(const char *dir);

/* The smallest limit of the process's group and of every group above it; 0 = none. `proc_cgroup` is
 * the file that names the groups of the process (/proc/self/cgroup), `root` the mounted hierarchy
 * (/sys/fs/cgroup), `controller` the one that sets the limit ("cpu", "memory"). */
int64_t sx_cgroup_limit(const char *proc_cgroup, const char *root, const char *controller,
                        sx_cgroup_limit_fn *v2, sx_cgroup_limit_fn *v1);

/* The first line of dir/name in `line`; false when the file is missing or empty. */
bool sx_cgroup_read(const char *dir, const char *name, char *line, size_t capacity);

#endif
