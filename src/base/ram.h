/* How much memory this process may use, and giving some of it back. */
#ifndef SX_BASE_RAM_H
#define SX_BASE_RAM_H

#include <stddef.h>
#include <stdint.h>

/* The machine's memory, or the cgroup's limit if that is smaller; 1 GiB if neither is known. */
int64_t sx_ram_bytes(void);

/* The cgroup's limit; 0 if there is none. See sx_cgroup_limit. */
int64_t sx_ram_quota(const char *proc_cgroup, const char *root);

/* Gives the whole pages of data[bytes] back to the system: they read as zeros then, and take memory
 * again when they are written. The bytes given back; for an arena's object: sx_arena_discard(). */
size_t sx_ram_discard(void *data, size_t bytes);

#endif
