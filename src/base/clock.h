/* Time. Durations and deadlines use the monotonic clock; the wall clock is only for display and
 * files. */
#ifndef SX_BASE_CLOCK_H
#define SX_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t sx_now_ns(void);                    /* monotonic */
int64_t sx_thread_cpu_ns(void);             /* processor time of the calling thread */
struct timespec sx_timespec_of(int64_t ns); /* for waits until a time of that clock */
double sx_wall_seconds(void);               /* since the epoch */
void sx_sleep_ns(int64_t ns);               /* less if a signal comes */

#endif
