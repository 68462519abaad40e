/* Waiting for descriptors to the nanosecond: epoll_wait() knows milliseconds only. */
#ifndef SX_BASE_WAIT_H
#define SX_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Waits until the descriptor, which may be an epoll's, can be read, for at most `ns` > 0. False: a
 * signal has come. */
bool sx_wait_readable(int fd, int64_t ns);

#endif
