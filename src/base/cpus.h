/* The processors that this process may use: its quota and affinity. See sx_cpu_count() in pool.h.
 */
#ifndef SX_BASE_CPUS_H
#define SX_BASE_CPUS_H

/* The cgroup quota in whole processors, rounded up; 0 if there is none. `proc_cgroup` is the file
 * that lists the groups of the process (/proc/self/cgroup), `root` the mounted hierarchy
 * (/sys/fs/cgroup). Both cgroup versions are checked. Every group up to the root may have a limit;
 * the smallest applies. */
int sx_cpu_quota(const char *proc_cgroup, const char *root);

/* Stores the processors in the affinity mask, in ascending order, at most `capacity` of them.
 * Returns their total number, or 0 if the kernel does not tell. */
int sx_cpu_affinity(int *cpus, int capacity);

#endif
