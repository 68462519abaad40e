/* Time. Durations and deadlines are monotonic; the wall clock is for people and files only. */
#ifndef SX_BASE_CLOCK_H
#define SX_BASE_CLOCK_H

#include <stdint.h>

int64_t sx_now_ns(void);      /* monotonic */
double sx_wall_seconds(void); /* since the epoch */

#endif
