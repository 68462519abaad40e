#include "io/failpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

/* Process-wide, because the fault-injection tests count calls in every layer. */
static atomic_long fail_at; /* 0 = disarmed */
static atomic_long calls;
static atomic_int fail_mode;

void sx_failpoint_arm(long n, sx_fail_mode mode)
{
    atomic_store(&fail_mode, (int)mode);
    atomic_store(&calls, 0);
    atomic_store(&fail_at, n);
}

long sx_failpoint_count(void)
{
    return atomic_load(&calls);
}

bool sx_failpoint_hit(void)
{
    long number = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    if (atomic_load_explicit(&fail_at, memory_order_relaxed) != number) {
        return false;
    }
    int mode = atomic_load(&fail_mode);
    if (mode == SX_FAIL_KILL) {
        raise(SIGKILL);
    }
    errno = mode == SX_FAIL_EIO ? EIO : ENOSPC;
    return true;
}
