/* See wait.h. */
#include "base/wait.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"

bool sx_wait_readable(int fd, int64_t ns)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    const struct timespec most = sx_timespec_of(ns);
    return ppoll(&ready, 1, &most, NULL) >= 0 || errno != EINTR;
}
