/* When one thread takes over from a team (cpu/pace.h), and for how long. */
#include "harness.h"

#include "backends/cpu/pace.h"

enum { MEMBERS = 2, MS = 1000000 };

static void run(sx_cpu_pace *p, int64_t team_ns, int64_t alone_ns)
{
    sx_cpu_pacing how = sx_cpu_pace_begin(p);
    int64_t ns = how == SX_CPU_ALONE ? alone_ns : team_ns;
    if (how == SX_CPU_TEAM && sx_cpu_pace_is_late(p, team_ns)) {
        how = SX_CPU_TEAM_FAILED;
        ns = p->alone_ns + alone_ns;
    }
    sx_cpu_pace_end(p, how, ns, MEMBERS);
}

/* How many of `runs` executions begin with the team. */
static int team_runs(sx_cpu_pace *p, int runs, int64_t team_ns, int64_t alone_ns)
{
    int count = 0;
    for (int i = 0; i < runs; i++) {
        count += sx_cpu_pace_begin(p) == SX_CPU_TEAM;
        run(p, team_ns, alone_ns);
    }
    return count;
}

static void test_backends_pace__a_team_that_is_faster_stays(void **state)
{
    (void)state;
    sx_cpu_pace p = {0};
    assert_int_equal(team_runs(&p, 1000, 3 * MS, 5 * MS), 1000);
}

static void test_backends_pace__a_team_that_waits_is_tried_ever_less(void **state)
{
    (void)state;
    sx_cpu_pace p = {0};
    assert_int_equal(team_runs(&p, 10, 3 * MS, 5 * MS), 10);
    assert_int_equal(team_runs(&p, 2, 80 * MS, 11 * MS), 1);
    assert_int_equal(team_runs(&p, 3, 80 * MS, 11 * MS), 1);
    assert_int_equal(team_runs(&p, 5, 80 * MS, 11 * MS), 1);
    assert_in_range(team_runs(&p, 2000, 80 * MS, 11 * MS), 9, 15);
}

static void test_backends_pace__the_team_comes_back(void **state)
{
    (void)state;
    sx_cpu_pace p = {0};
    assert_int_equal(team_runs(&p, 10, 3 * MS, 5 * MS), 10);
    team_runs(&p, 1000, 80 * MS, 11 * MS);
    team_runs(&p, 257, 3 * MS, 5 * MS);
    assert_int_equal(team_runs(&p, 1000, 3 * MS, 5 * MS), 1000);
}

/* The first execution reads memory for the first time. */
static void test_backends_pace__a_slow_first_execution_is_forgotten(void **state)
{
    (void)state;
    sx_cpu_pace p = {0};
    run(&p, 100 * MS, 0);
    run(&p, 3 * MS, 0);
    assert_true(sx_cpu_pace_is_late(&p, 7 * MS));
    assert_false(sx_cpu_pace_is_late(&p, 6 * MS));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_pace__a_team_that_is_faster_stays),
    cmocka_unit_test(test_backends_pace__a_team_that_waits_is_tried_ever_less),
    cmocka_unit_test(test_backends_pace__the_team_comes_back),
    cmocka_unit_test(test_backends_pace__a_slow_first_execution_is_forgotten),
};
SX_TEST_MAIN(tests)
