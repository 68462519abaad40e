/* How much memory this process may use. */
#ifndef SX_BASE_RAM_H
#define SX_BASE_RAM_H

#include <stdint.h>

/* The machine's memory, or the cgroup's limit where that is smaller; 1 GiB when neither is known.
 */
int64_t sx_ram_bytes(void);

/* The cgroup's limit alone; 0 when there is none. See sx_cgroup_limit. */
int64_t sx_ram_quota(const char *proc_cgroup, const char *root);

#endif
