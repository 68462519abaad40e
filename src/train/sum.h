/* Sums that do not lose small terms. */
#ifndef SX_TRAIN_SUM_H
#define SX_TRAIN_SUM_H

#include <math.h>

/* Σ with Neumaier's compensation: the error does not grow with the count. */
typedef struct sx_sum {
    double sum, lost;
} sx_sum;

static inline void sx_sum_add(sx_sum *s, double x)
{
    double t = s->sum + x;
    s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - t) + x : (x - t) + s->sum;
    s->sum = t;
}

static inline double sx_sum_value(const sx_sum *s)
{
    return s->sum + s->lost;
}

#endif
