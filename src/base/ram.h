/* How much memory this process may use. */
#ifndef SX_BASE_RAM_H
#define SX_BASE_RAM_H

#include <stdint.h>

/* The machine's memory, or the cgroup's limit if that is smaller; 1 GiB if neither is known. */
int64_t sx_ram_bytes(void);

/* The cgroup's limit; 0 if there is none. See sx_cgroup_limit. */
int64_t sx_ram_quota(const char *proc_cgroup, const char *root);

#endif
