/* How long launches get, of a device whose time is made up: two are under way at once, as in the
 * step loop. */
#include "harness.h"

#include <math.h>

#include "runtime/launch_pace.h"

enum { MS = 1000000, LAUNCHES = 400, MOST = 1024, SLOW_AT = 100 };
static const double WISH_NS = 500.0 * MS;

/* A launch costs `own`, and `step` for each step; one of them, if wanted, 20 s more. Milliseconds.
 */
typedef struct device {
    double own, step;
    bool is_slow_once, is_noisy;
} device;

static int64_t time_of(const device *d, int launch, int64_t steps)
{
    const double noise = d->is_noisy ? 1 + 0.1 * sin(launch * 2.4) : 1;
    const double slow = d->is_slow_once && launch == SLOW_AT ? 20000 : 0;
    return (int64_t)((noise * (d->own + d->step * (double)steps) + slow) * MS);
}

/* Fills in the steps of each launch. */
static void simulate(device d, int64_t steps[LAUNCHES])
{
    sx_launch_pace p = {0};
    for (int i = 0; i < LAUNCHES; i++) {
        if (i >= 2) { /* the launch before the one that runs has ended */
            sx_launch_pace_add(&p, steps[i - 2], time_of(&d, i - 2, steps[i - 2]));
        }
        steps[i] = sx_launch_pace_next(&p, WISH_NS, MOST);
        assert_true(steps[i] >= 1 && steps[i] <= MOST);
    }
}

/* The number of launches from `from` on that have fewer steps than that. */
static int count_below(const int64_t steps[LAUNCHES], int from, int64_t least)
{
    int n = 0;
    for (int i = from; i < LAUNCHES; i++) {
        n += steps[i] < least;
    }
    return n;
}

/* Launches take about the time wished for; twice as long, where one is tried. */
static void test_runtime_launch_pace__launches_last_as_long_as_asked(void **state)
{
    int64_t steps[LAUNCHES];
    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        const device d = {.step = 5, .is_noisy = noisy};
        int longer = 0;
        simulate(d, steps);
        assert_int_equal(count_below(steps, 4, 75), 0);
        for (int i = 0; i < LAUNCHES; i++) {
            assert_true(steps[i] <= 300);
            longer += steps[i] > 160;
        }
        assert_true(longer <= 8);
    }
}

/* Steps that are longer than that run one by one; two, where that is tried. */
static void test_runtime_launch_pace__long_steps_run_alone(void **state)
{
    int64_t steps[LAUNCHES];
    int several = 0;
    (void)state;
    simulate((device){.step = 700}, steps);
    for (int i = 0; i < LAUNCHES; i++) {
        assert_true(steps[i] <= 2);
        several += steps[i] > 1;
    }
    assert_true(several <= 8);
}

/* Whatever a launch costs itself, its length is that of cheap launches, from the beginning and
 * after one that was slow. */
static void test_runtime_launch_pace__gets_longer_again(void **state)
{
    static const device devices[] = {
        {.own = 0, .step = 1},   {.own = 0, .step = 1, .is_noisy = true},
        {.own = 10, .step = 1},  {.own = 10, .step = 1, .is_noisy = true},
        {.own = 300, .step = 1}, {.own = 300, .step = 1, .is_noisy = true},
        {.own = 700, .step = 1}, {.own = 700, .step = 1, .is_noisy = true},
        {.own = 5000, .step = 1}};
    int64_t steps[LAUNCHES];
    (void)state;
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        device d = devices[i];
        d.is_slow_once = true;
        simulate(d, steps);
        assert_true(steps[SLOW_AT - 10] >= 200);
        assert_true(count_below(steps, SLOW_AT, 200) <= 12);
        assert_true(steps[LAUNCHES - 1] >= 200);
    }
}

/* The room is never exceeded, and is used if steps take no time. */
static void test_runtime_launch_pace__fills_the_room(void **state)
{
    sx_launch_pace p = {0};
    (void)state;
    assert_int_equal(sx_launch_pace_next(&p, WISH_NS, 7), 1);
    sx_launch_pace_add(&p, 1, 0);
    assert_int_equal(sx_launch_pace_next(&p, WISH_NS, 7), 7);
    sx_launch_pace_add(&p, 7, 1);
    assert_int_equal(sx_launch_pace_next(&p, 1, INT64_MAX), 7);
    assert_int_equal(sx_launch_pace_next(&p, 1, 1), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_launch_pace__launches_last_as_long_as_asked),
    cmocka_unit_test(test_runtime_launch_pace__long_steps_run_alone),
    cmocka_unit_test(test_runtime_launch_pace__gets_longer_again),
    cmocka_unit_test(test_runtime_launch_pace__fills_the_room),
};
SX_TEST_MAIN(tests)
