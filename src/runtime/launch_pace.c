/* See launch_pace.h. */
#include "runtime/launch_pace.h"

#include <stdbool.h>

#include "base/checked.h"

enum {
    MOST_GROWTH = 4, /* times the steps of the last launch, by an estimate of its own cost */
    /* Launches between two that are tried: at first, after the length fell by so much, at most. */
    TRY_FIRST = 16,
    TRY_SOON = 4,
    FELL = 4,
    TRY_SELDOM = 512,
};

/* What a launch of `rows` steps costs itself, by the one before it, of a length that differs by a
 * factor of two at least: the line through both. */
static double own_cost(const sx_launch_pace *before, int64_t rows, int64_t ns)
{
    const double step_ns = (double)(ns - before->ns) / (double)(rows - before->rows);
    const double least = (double)SX_MIN(ns, before->ns);
    return SX_MIN(SX_MAX((double)ns - step_ns * (double)rows, 0), least);
}

void sx_launch_pace_add(sx_launch_pace *p, int64_t rows, int64_t ns)
{
    if (p->rows > 0 && (rows >= 2 * p->rows || p->rows >= 2 * rows)) {
        p->own_ns = own_cost(p, rows, ns);
    }
    p->own_ns = SX_MIN(p->own_ns, (double)ns);
    p->rows = rows;
    p->ns = ns;
}

/* By the time of the last launch; and without its own cost, if this gives more. */
static double steps_within(const sx_launch_pace *p, double wish_ns)
{
    if (p->rows == 0) {
        return 1;
    }
    const double rows = (double)p->rows, ns = (double)p->ns;
    const double without = wish_ns * rows / SX_MAX(ns - p->own_ns, 1);
    return SX_MAX(wish_ns * rows / SX_MAX(ns, 1), SX_MIN(without, MOST_GROWTH * rows));
}

int64_t sx_launch_pace_next(sx_launch_pace *p, double wish_ns, int64_t most)
{
    const double wanted = SX_MAX(steps_within(p, wish_ns), 1);
    const bool fell = wanted * FELL <= p->wanted;
    p->every = p->every == 0 ? TRY_FIRST : fell ? TRY_SOON : p->every;
    p->since = fell ? 0 : p->since + 1;
    p->wanted = wanted;
    int64_t steps = wanted > (double)most ? most : (int64_t)wanted;
    if (p->since >= p->every) {
        p->since = 0;
        p->every = SX_MIN(2 * p->every, TRY_SELDOM);
        steps = SX_MIN(2 * steps, most);
    }
    return steps;
}
