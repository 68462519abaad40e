/* How many steps the next launch of the step loop gets: as many as take the time wished for, by
 * what the launches before took.
 *
 * A launch costs something itself: its superbatch is copied, it is handed over, its results are
 * fetched. In a short launch this is most of a step's time, so that launches, once short, would
 * never get longer again. So two launches of different lengths, one after the other, give the
 * launch's own cost, which is not counted; and now and then a launch is tried that is twice as
 * long. */
#ifndef SX_RUNTIME_LAUNCH_PACE_H
#define SX_RUNTIME_LAUNCH_PACE_H

#include <stdint.h>

/* {0} = nothing is known yet. */
typedef struct sx_launch_pace {
    int64_t rows, ns; /* steps and time of the last launch; 0 = there was none */
    double own_ns;    /* of that, what the launch costs itself */
    double wanted;    /* steps, of the one before the next */
    int since, every; /* launches since the last that was tried, and until the next */
} sx_launch_pace;

/* A launch of so many steps took so long. */
void sx_launch_pace_add(sx_launch_pace *p, int64_t rows, int64_t ns);
/* The steps of the next launch: at least 1, at most `most`. */
int64_t sx_launch_pace_next(sx_launch_pace *p, double wish_ns, int64_t most);

#endif
