/* Fail points: tests make the n-th write, fsync, rename or unlink of the process fail, or kill the
 * process there. Every changing system call of the commit path passes sx_failpoint_hit() first.
 * Disarmed (the default) it costs one relaxed atomic add. */
#ifndef SX_IO_FAILPOINT_H
#define SX_IO_FAILPOINT_H

#include <stdbool.h>

typedef enum sx_fail_mode {
    SX_FAIL_ENOSPC, /* the call fails with ENOSPC; a write first writes half of its bytes */
    SX_FAIL_EIO,    /* the call fails with EIO */
    SX_FAIL_KILL,   /* the process dies by SIGKILL before the call */
} sx_fail_mode;

/* Arms the n-th call from now (1 = the next), once; 0 disarms. */
void sx_failpoint_arm(long n, sx_fail_mode mode);
/* How many calls there have been since the last arming. */
long sx_failpoint_count(void);

/* True when this call must fail; errno is set. */
bool sx_failpoint_hit(void);

#endif
