/* Fail points: tests make the n-th write, fsync, rename, link or unlink of the process fail, or
 * kill the process there. The commit code calls sx_failpoint_hit() before every system call that
 * changes the file system. When disarmed (the default), that costs one relaxed atomic add. */
#ifndef SX_IO_FAILPOINT_H
#define SX_IO_FAILPOINT_H

#include <stdbool.h>

typedef enum sx_fail_mode {
    SX_FAIL_ENOSPC, /* the call fails with ENOSPC; a write writes half of its bytes first */
    SX_FAIL_EIO,    /* the call fails with EIO */
    SX_FAIL_KILL,   /* the process kills itself with SIGKILL before the call */
} sx_fail_mode;

/* Arms the n-th call from now (1 = the next), once; 0 disarms. */
void sx_failpoint_arm(long n, sx_fail_mode mode);
/* The number of calls since the last sx_failpoint_arm(). */
long sx_failpoint_count(void);

/* True if this call must fail; errno is set. */
bool sx_failpoint_hit(void);

#endif
