/* What this process may use of the machine's processors, apart from sx_cpu_count() in pool.h. */
#ifndef SX_BASE_CPUS_H
#define SX_BASE_CPUS_H

/* The cgroup quota in whole processors, rounded up; 0 when there is none. `proc_cgroup` is the text
 * file that says which groups we are in (/proc/self/cgroup), `root` the mounted hierarchy
 * (/sys/fs/cgroup). Both versions are looked at, and every group from ours up to the root, as each
 * may hold a limit; the smallest wins. */
int sx_cpu_quota(const char *proc_cgroup, const char *root);

/* The processors of the affinity mask in rising order: writes at most `capacity` of them, returns
 * how many there are, or 0 when the kernel does not say. */
int sx_cpu_affinity(int *cpus, int capacity);

#endif
