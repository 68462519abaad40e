/* Torture: the same call with its 1st, 2nd, 3rd ... allocation failing, until none is left to fail.
 * An object of an arena counts, too. Long calls make thousands: past the first 100 (a test may
 * define SX_TORTURE_ALL), strides of one percent.
 *
 *   static sx_status load(void *user) { ... make, use and free everything; return the first error }
 *   sx_torture(load, &input);
 *
 * Each run must give RESOURCE_EXHAUSTED, and the run with nothing failing OK. sx_torture_some() is
 * for calls with allocations that can be done without, a cache's for instance: OK is right, too.
 * Crashes show by themselves, leaks by the harness.
 */
#ifndef SX_TESTS_TORTURE_H
#define SX_TESTS_TORTURE_H

#include "harness.h"

#include "base/memory.h"

enum { SX_TORTURE_MAX = 1000000 };
#ifndef SX_TORTURE_ALL
#define SX_TORTURE_ALL 100
#endif

static inline long torture_each(sx_status (*call)(void *user), void *user, bool all)
{
    long failed = 0;
    for (long n = 1; n <= SX_TORTURE_MAX; n += 1 + n / SX_TORTURE_ALL) {
        long before = sx_alloc_count();
        sx_alloc_fail_after(n);
        sx_status status = call(user);
        sx_alloc_fail_after(0);
        bool hit = sx_alloc_count() - before >= n;
        if (status != SX_OK && (!hit || sx_status_code(status) != SX_RESOURCE_EXHAUSTED)) {
            print_error("with allocation %ld failing: ", n);
            assert_ok(status);
        }
        if (all && hit && status == SX_OK) {
            fail_msg("allocation %ld failed, and nothing was said", n);
        }
        sx_status_free(status);
        if (!hit) {
            return failed;
        }
        failed++;
    }
    fail_msg("more than %d allocations", SX_TORTURE_MAX);
    return 0;
}

/* Return how many allocations were made to fail. */
static inline long sx_torture(sx_status (*call)(void *user), void *user)
{
    return torture_each(call, user, true);
}
static inline long sx_torture_some(sx_status (*call)(void *user), void *user)
{
    return torture_each(call, user, false);
}

#endif
