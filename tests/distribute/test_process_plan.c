/* Which of several processes this one is: options, TF_CONFIG. */
#include "harness.h"

#include <stdlib.h>

#include <sextant/distribute.h>

#include "distribute/process_plan.h"

static sx_arena arena;

static int setup(void **state)
{
    (void)state;
    sx_arena_init(&arena, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("TF_CONFIG");
    sx_arena_deinit(&arena);
    return 0;
}

/* The plan of a TF_CONFIG. */
static sx_status plan_of(const char *config, sx_process_plan *out)
{
    setenv("TF_CONFIG", config, 1);
    return sx_process_plan_make(&(sx_process_wish){.from_environment = true}, &arena, out);
}

static void test_distribute_process_plan__takes_options(void **state)
{
    (void)state;
    sx_process_plan p;
    setenv("TF_CONFIG", "no JSON", 1); /* options come first */
    assert_ok(sx_process_plan_make(
        &(sx_process_wish){
            .coordinator = "h0:2222", .count = 4, .index = 3, .from_environment = true},
        &arena, &p));
    assert_int_equal(p.count, 4);
    assert_int_equal(p.index, 3);
    assert_string_equal(p.coordinator, "h0:2222");
    assert_null(p.role);
    assert_string_equal(p.explanation, "options: process 3 of 4; process 0 is at h0:2222\n");
    assert_ok(sx_process_plan_make(&(sx_process_wish){.count = 0}, &arena, &p));
    assert_int_equal(p.count, 1);
    assert_null(p.coordinator);
    assert_error(sx_process_plan_make(&(sx_process_wish){.count = 2}, &arena, &p),
                 SX_INVALID_ARGUMENT, "need a coordinator");
    assert_error(sx_process_plan_make(&(sx_process_wish){.index = 1}, &arena, &p),
                 SX_INVALID_ARGUMENT, "need a coordinator");
    assert_error(sx_process_plan_make(
                     &(sx_process_wish){.coordinator = "h0:1", .count = 2, .index = 2}, &arena, &p),
                 SX_INVALID_ARGUMENT, "process_id is 2, expected 0 to 1, as num_processes is 2");
    assert_error(
        sx_process_plan_make(&(sx_process_wish){.coordinator = "h0:1", .count = 1025}, &arena, &p),
        SX_INVALID_ARGUMENT, "num_processes is 1025, expected 1 to 1024");
    assert_error(sx_process_plan_make(&(sx_process_wish){.coordinator = "h0:1"}, &arena, &p),
                 SX_INVALID_ARGUMENT, "coordinator \"h0:1\" needs num_processes");
    assert_error(
        sx_process_plan_make(&(sx_process_wish){.coordinator = "h0:x", .count = 2}, &arena, &p),
        SX_INVALID_ARGUMENT, "coordinator");
}

/* Options beside a TF_CONFIG: they may say the same. */
static void test_distribute_process_plan__options_and_tf_config_agree(void **state)
{
    (void)state;
    sx_process_plan p;
    sx_process_wish w = {.coordinator = "a:2", .count = 2, .index = 1, .from_environment = true};
    setenv("TF_CONFIG",
           "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": \"worker\", "
           "\"index\": 1}}",
           1);
    assert_ok(sx_process_plan_make(&w, &arena, &p));
    assert_string_equal(p.coordinator, "a:2");
    w.index = 0;
    assert_error(sx_process_plan_make(&w, &arena, &p), SX_INVALID_ARGUMENT,
                 "num_processes 2 and process_id 0 contradict TF_CONFIG, by which worker 1 is "
                 "process 1 of 2; unset TF_CONFIG");
    w.count = 3;
    w.index = 1;
    assert_error(sx_process_plan_make(&w, &arena, &p), SX_INVALID_ARGUMENT, "contradict TF_CONFIG");
    w.from_environment = false;
    assert_ok(sx_process_plan_make(&w, &arena, &p));
}

static void test_distribute_process_plan__takes_tf_config(void **state)
{
    (void)state;
    sx_process_plan p;
    assert_ok(plan_of("{\"cluster\": {\"worker\": {\"2\": \"h2:1\", \"5\": \"h5:1\"}, "
                      "\"chief\": [\"h9:7\"], \"evaluator\": [\"h1:1\"]}, "
                      "\"task\": {\"type\": \"worker\", \"index\": 5}}",
                      &p));
    assert_int_equal(p.count, 3); /* without the evaluator; the chief first, wherever it is named */
    assert_int_equal(p.index, 2);
    assert_string_equal(p.coordinator, "h9:7");
    assert_string_equal(p.role, "worker 5");
    assert_string_equal(p.explanation,
                        "TF_CONFIG: worker 5 is process 2 of 3; process 0 is at h9:7\n");
    assert_ok(plan_of("{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": "
                      "\"worker\", \"index\": 0}}",
                      &p));
    assert_int_equal(p.count, 2); /* without a chief, the first worker is it */
    assert_int_equal(p.index, 0);
    assert_string_equal(p.coordinator, "a:1");
}

static void test_distribute_process_plan__one_process_is_alone(void **state)
{
    (void)state;
    sx_process_plan p;
    static const char *const alone[] = {
        "{}",
        "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
        "{\"cluster\": {\"chief\": [\"a:1\"], \"ps\": [\"b:1\"]}, \"task\": {\"type\": \"chief\"}}",
        "{\"cluster\": {\"tpu_worker\": [\"a:1\", \"b:1\"]}}",
        "{\"cluster\": {\"worker\": [\"b:1\"]}, \"task\": {\"type\": \"evaluator\", \"index\": 0}}",
    };
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        assert_ok(plan_of(alone[i], &p));
        assert_int_equal(p.count, 1);
    }
    setenv("TF_CONFIG", "no JSON", 1);
    assert_ok(sx_process_plan_make(&(sx_process_wish){.count = 0}, &arena, &p));
    assert_error(plan_of("no JSON", &p), SX_INVALID_ARGUMENT, "TF_CONFIG: invalid JSON");
    assert_error(plan_of("{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": "
                         "\"worker\", \"index\": 2}}",
                         &p),
                 SX_INVALID_ARGUMENT, "worker 2, is none of the cluster's 2 that train");
    assert_error(plan_of("{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}}", &p),
                 SX_INVALID_ARGUMENT, "without a type");
    assert_error(plan_of("{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"], \"ps\": [\"c:1\"]}, "
                         "\"task\": {\"type\": \"worker\", \"index\": 0}}",
                         &p),
                 SX_UNIMPLEMENTED, "1 parameter server, which are not supported");
    assert_error(plan_of("{\"cluster\": {\"chief\": [\"a:1\"], \"master\": [\"b:1\"]}, \"task\": "
                         "{\"type\": \"chief\", \"index\": 0}}",
                         &p),
                 SX_INVALID_ARGUMENT, "both a chief and a master");
}

/* A strategy's own errors, before it waits for anybody. */
static void test_distribute_process_plan__of_a_strategy(void **state)
{
    (void)state;
    sx_strategy *s;
    assert_error(
        sx_mirrored_strategy(&s, .device = "cpu", .coordinator = "localhost:1", .num_processes = 2),
        SX_UNIMPLEMENTED, "2 processes can share batches on PJRT devices only");
    assert_error(sx_mirrored_strategy(&s, .device = "cpu", .num_processes = 2), SX_INVALID_ARGUMENT,
                 "need a coordinator");
    setenv("TF_CONFIG",
           "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": \"worker\", "
           "\"index\": 0}}",
           1);
    assert_ok(
        sx_mirrored_strategy(&s, .device = "cpu", .virtual_devices = 2)); /* as TensorFlow's */
    assert_int_equal(sx_strategy_num_processes(s), 1);
    assert_int_equal(sx_strategy_process_id(s), 0);
    sx_strategy_release(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_distribute_process_plan__takes_options, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_process_plan__options_and_tf_config_agree,
                                    setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_process_plan__takes_tf_config, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_process_plan__one_process_is_alone, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_distribute_process_plan__of_a_strategy, setup, teardown),
};

SX_TEST_MAIN(tests)
