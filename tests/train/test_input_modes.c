/* TPUEstimator's input modes and global batches: the table, what input functions are told, how
 * their batches make a step's, and resuming in the middle of them. */
#include "run.h"

#include "train/config.h"
#include "train/inputs.h"
#include "train/state.h"

/* ---- The table ---- */

static void test_train_input_modes__the_table(void **state)
{
    (void)state;
    /* 1024 examples, 8 replicas on 2 hosts: TensorFlow's tpu_context.py */
    static const struct {
        sx_mode mode;
        sx_input_config config;
        int calls, pulls;
        int64_t batch, replica_batch;
    } rows[] = {
        {SX_TRAIN, SX_PER_SHARD_V1, 4, 1, 128, 128}, {SX_TRAIN, SX_PER_HOST_V1, 1, 1, 512, 128},
        {SX_TRAIN, SX_PER_HOST_V2, 1, 4, 128, 128},  {SX_TRAIN, SX_BROADCAST, 1, 1, 1024, 1024},
        {SX_EVAL, SX_PER_HOST_V1, 1, 1, 512, 128},   {SX_EVAL, SX_PER_HOST_V2, 1, 4, 128, 128},
        {SX_EVAL, SX_BROADCAST, 1, 1, 1024, 1024},   {SX_EVAL, SX_SLICED, 1, 1, 1024, 128},
        {SX_PREDICT, SX_SLICED, 1, 1, 1024, 128},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_input_plan plan;
        assert_ok(sx_input_plan_make(rows[i].mode, rows[i].config, 1024, 8, 2, &plan));
        assert_int_equal(plan.calls, rows[i].calls);
        assert_int_equal(plan.pulls, rows[i].pulls);
        assert_int_equal(plan.batch_size, rows[i].batch);
        assert_int_equal(plan.replica_batch, rows[i].replica_batch);
    }
}

static void test_train_input_modes__refuses_by_name(void **state)
{
    (void)state;
    sx_input_plan plan;
    assert_error(sx_input_plan_make(SX_TRAIN, SX_PER_HOST_V1, 50, 4, 1, &plan), SX_INVALID_ARGUMENT,
                 "batch of 50 examples is not divisible by 4 replicas: the nearest are 48 "
                 "and 52");
    assert_error(sx_input_plan_make(SX_TRAIN, SX_PER_HOST_V2, 3, 4, 1, &plan), SX_INVALID_ARGUMENT,
                 "the smallest is 4");
    assert_ok(sx_input_plan_make(SX_TRAIN, SX_BROADCAST, 50, 4, 1, &plan));
    assert_ok(sx_input_plan_make(SX_EVAL, SX_PER_HOST_V1, 50, 4, 1, &plan));
    assert_error(sx_input_plan_make(SX_TRAIN, SX_SLICED, 8, 4, 1, &plan), SX_INVALID_ARGUMENT,
                 "SLICED is for evaluation and prediction only");
    assert_error(sx_input_plan_make(SX_EVAL, SX_PER_SHARD_V1, 8, 4, 1, &plan), SX_INVALID_ARGUMENT,
                 "PER_SHARD_V1 is for training only");
    assert_error(sx_input_plan_make(SX_TRAIN, SX_PER_SHARD_V1, 128, 128, 1, &plan),
                 SX_INVALID_ARGUMENT, "128 calls of the input function; the maximum is 64");
}

static void test_train_input_modes__tpu_config_is_checked(void **state)
{
    (void)state;
    static const struct {
        sx_tpu_config config;
        const char *says;
    } rows[] = {
        {{.num_cores_per_replica = 2}, "expected 1: model parallelism"},
        {{.per_host_input_for_training = SX_SLICED}, "SLICED is for evaluation"},
        {{.eval_training_input_configuration = SX_PER_SHARD_V1}, "PER_SHARD_V1 is for training"},
        {{.per_host_input_for_training = (sx_input_config)9}, "per_host_input_for_training is 9"},
        {{.experimental_host_call_every_n_steps = -1}, "host_call_every_n_steps is -1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_run_config config = tiny_config(NULL, NULL);
        sx_inputs in;
        config.tpu_config = rows[i].config;
        assert_error(sx_inputs_call(&config, NULL, SX_TRAIN, 0, NULL, NULL, &in),
                     SX_INVALID_ARGUMENT, rows[i].says);
    }
}

static void test_train_input_modes__one_master(void **state)
{
    (void)state;
    sx_inputs in;
    sx_run_config both = {.master = "local", .cluster = "mine"};
    sx_run_config other = {.master = "local", .evaluation_master = "grpc://10.1.2.3:8470"};
    both.struct_size = other.struct_size = sizeof(sx_run_config);
    assert_error(sx_inputs_call(&both, NULL, SX_TRAIN, 0, NULL, NULL, &in), SX_INVALID_ARGUMENT,
                 "cannot be combined");
    assert_error(sx_inputs_call(&other, NULL, SX_TRAIN, 0, NULL, NULL, &in), SX_INVALID_ARGUMENT,
                 "evaluation runs where training does");
}

static void test_train_input_modes__iterations_per_loop(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL), resolved;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    config.tpu_config.iterations_per_loop = 7;
    assert_ok(sx_run_config_resolve(&config, &arena, &resolved));
    assert_int_equal(resolved.iterations_per_loop, 7);
    config.iterations_per_loop = 8;
    assert_error(sx_run_config_resolve(&config, &arena, &resolved), SX_INVALID_ARGUMENT,
                 "tpu_config.iterations_per_loop is 7");
    sx_arena_deinit(&arena);
}

/* --- what an input function is told -------------------------------------------------------------
 */

typedef struct asked {
    int calls;
    sx_input_context last;
    int64_t param, hidden;
    bool batches; /* make batches of the size that is asked for */
} asked;

/* Call i of n gets every n-th example; batched as asked. */
static sx_status tell(void *user, const sx_input_context *c, sx_dataset **out)
{
    asked *a = user;
    assert_int_equal(c->invocation_index, a->calls % c->num_invocations);
    a->calls++;
    a->last = *c;
    a->param = sx_param_int(c->params, "batch_size", -1);
    a->hidden = sx_param_int(c->params, "rows", EXAMPLES);
    *out = tiny_data(0, a->hidden);
    if (c->num_invocations > 1) {
        SX_TRY(sx_dataset_shard(out, c->num_invocations, c->invocation_index));
    }
    return a->batches ? sx_dataset_batch(out, .size = c->batch_size) : SX_OK;
}

static sx_estimator *open_with(sx_input_config mode, int replicas, const char *dir,
                               const char *const *params)
{
    sx_estimator *e = NULL;
    sx_run_config config = tiny_config(dir, NULL);
    config.replicas = replicas;
    config.no_shuffle = true;
    config.tpu_config.per_host_input_for_training = mode;
    assert_ok(sx_estimator_create(&tiny, &config, params, &e));
    return e;
}

static void test_train_input_modes__context_and_params(void **state)
{
    (void)state;
    asked a = {0};
    const char *const params[] = {"rows=40", NULL}; /* the input function's own */
    sx_eval_result result;
    sx_estimator *e = open_with(SX_PER_HOST_V2, 4, NULL, params);
    assert_ok(sx_estimator_train(e, tell, &a, .steps = 2));
    assert_int_equal(a.calls, 1);
    assert_int_equal(a.last.mode, SX_TRAIN);
    assert_int_equal(a.last.batch_size, BATCH / 4);
    assert_int_equal(a.param, BATCH / 4);
    assert_int_equal(a.hidden, 40);
    assert_int_equal(a.last.global_batch_size, BATCH);
    assert_int_equal(a.last.num_replicas, 4);
    assert_int_equal(a.last.num_hosts, 1);
    assert_int_equal(a.last.num_of_replicas_per_host, 4);
    assert_int_equal(a.last.current_host, 0);
    assert_ok(sx_estimator_evaluate(e, tell, &a, &result));
    assert_int_equal(a.last.mode, SX_EVAL);
    assert_int_equal(a.last.global_batch_size, 32);
    assert_int_equal(result.examples, 40);
    sx_estimator_destroy(e);
    e = open_with(SX_PER_SHARD_V1, 4, NULL, params);
    a = (asked){0};
    assert_ok(sx_estimator_train(e, tell, &a, .steps = 2));
    assert_int_equal(a.calls, 4);
    sx_estimator_destroy(e);
}

static void test_train_input_modes__reserved_parameters(void **state)
{
    (void)state;
    sx_estimator *e = NULL;
    const char *const batch[] = {"batch_size=8", NULL}, *const context[] = {"context=1", NULL};
    assert_error(sx_estimator_create(&tiny, sx_run_config_of(.device = "host"), batch, &e),
                 SX_INVALID_ARGUMENT, "\"batch_size\" is reserved");
    assert_error(sx_estimator_create(&tiny, sx_run_config_of(.device = "host"), context, &e),
                 SX_INVALID_ARGUMENT, "\"context\" is reserved");
}

static void test_train_input_modes__indivisible_before_data(void **state)
{
    (void)state;
    asked a = {0};
    sx_estimator *e = open_with(SX_PER_HOST_V1, 3, NULL, NULL);
    assert_error(sx_estimator_train(e, tell, &a, .steps = 1), SX_INVALID_ARGUMENT,
                 "the nearest are 6 and 9");
    assert_int_equal(a.calls, 0);
    sx_estimator_destroy(e);
    /* batches of the data's own size count, too */
    sx_trainer *t;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_run_config config = tiny_config(NULL, NULL);
    config.replicas = 3;
    assert_ok(sx_dataset_batch(&data, .size = 10));
    assert_ok(sx_trainer_create(
        &(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t));
    assert_error(sx_trainer_fit(t, &(sx_fit_request){.train = data, .steps = 1}),
                 SX_INVALID_ARGUMENT, "the nearest are 9 and 12");
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

/* --- batches put together ------------------------------------------------------------------------
 */

static uint64_t hash_run(const char *dir)
{
    sx_run_config config = tiny_config(dir, NULL);
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
    assert_ok(sx_trainer_restore(t, NULL));
    sx_program *program;
    assert_ok(sx_trainer_program(t, SX_TRAIN, &program));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

/* Trains `steps` in one go or in pieces; the hash of all variables. */
static uint64_t train_in(sx_input_config mode, int replicas, bool batches, const char *name,
                         const int64_t *until, int n)
{
    uint64_t hash = 0;
    char dir[600];
    snprintf(dir, sizeof(dir), "%s", scratch(name));
    for (int i = 0; i < n; i++) {
        asked a = {.batches = batches};
        sx_estimator *e = open_with(mode, replicas, dir, NULL);
        assert_ok(sx_estimator_train(e, tell, &a, .max_steps = until[i]));
        hash = hash_run(dir);
        sx_estimator_destroy(e);
    }
    return hash;
}

/* One replica's batches of 8, and four of 2 pulled together: the same steps, to the bit. */
static void test_train_input_modes__pulled_batches_are_global_ones(void **state)
{
    (void)state;
    const int64_t until[] = {6}; /* the end of the data comes after */
    uint64_t whole = train_in(SX_PER_HOST_V1, 1, true, "whole", until, 1);
    assert_true(whole == train_in(SX_PER_HOST_V2, 4, true, "pulled", until, 1));
    assert_true(whole == train_in(SX_PER_HOST_V1, 4, true, "host", until, 1));
    assert_true(whole == train_in(SX_BROADCAST, 4, true, "broadcast", until, 1));
    assert_true(whole == train_in(SX_PER_HOST_V2, 4, false, "elements", until, 1));
}

/* 53 examples in batches of 2: 27 of them, 7 steps; the last one is of 3 batches and 5 examples. */
static void test_train_input_modes__no_example_is_lost(void **state)
{
    (void)state;
    seen s = {0};
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_run_config config = tiny_config(NULL, &s);
    sx_trainer *t;
    config.replicas = 4;
    assert_ok(sx_dataset_batch(&data, .size = 2));
    assert_ok(sx_trainer_create(
        &(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t));
    assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .pulls = 4, .epochs = 2}));
    assert_int_equal(s.last_step, 2 * STEPS_PER_EPOCH);
    assert_int_equal(s.count[SX_EVENT_EPOCH], 2);
    assert_int_equal(s.examples, 2 * EXAMPLES);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

static void test_train_input_modes__one_input_for_each_replica(void **state)
{
    (void)state;
    /* shards of 14, 13, 13, 13 examples in batches of 2: 7 steps an epoch; elements and batches are
     * cut alike */
    const int64_t until[] = {7};
    assert_true(train_in(SX_PER_SHARD_V1, 4, true, "a", until, 1) ==
                train_in(SX_PER_SHARD_V1, 4, false, "b", until, 1));
    asked a = {.batches = true};
    sx_estimator *e = open_with(SX_PER_SHARD_V1, 4, NULL, NULL);
    assert_ok(sx_estimator_train(e, tell, &a)); /* until the data end */
    sx_eval_result result;
    a.batches = false;
    assert_ok(sx_estimator_evaluate(e, tell, &a, &result));
    assert_int_equal(result.step, 7);
    sx_estimator_destroy(e);
}

/* Stopping anywhere and going on: the same bits as in one go. */
static void test_train_input_modes__resume_is_exact(void **state)
{
    (void)state;
    static const sx_input_config modes[] = {SX_PER_SHARD_V1, SX_PER_HOST_V2};
    const int64_t in_one_go[] = {17}, in_pieces[] = {3, 7, 12, 17};
    for (int i = 0; i < 2; i++) {
        char one[16], more[16];
        snprintf(one, sizeof(one), "one%d", i);
        snprintf(more, sizeof(more), "more%d", i);
        assert_true(train_in(modes[i], 4, false, one, in_one_go, 1) ==
                    train_in(modes[i], 4, false, more, in_pieces, 4));
    }
}

/* --- the estimator of that name ------------------------------------------------------------------
 */

static void test_train_input_modes__tpu_estimator(void **state)
{
    (void)state;
    sx_estimator *e = NULL;
    asked a = {0};
    const sx_run_config *config = sx_run_config_of(.device = "host", .replicas = 4);
    assert_ok(sx_tpu_estimator_create(&tiny, &e, .config = config, .use_tpu = true,
                                      .train_batch_size = 16, .eval_batch_size = 24));
    assert_ok(sx_estimator_train(e, tell, &a, .max_steps = 2));
    assert_int_equal(a.last.global_batch_size, 16);
    assert_int_equal(a.last.num_replicas, 4);
    sx_eval_result result;
    assert_ok(sx_estimator_evaluate(e, tell, &a, &result));
    assert_int_equal(a.last.global_batch_size, 24);
    sx_estimator_destroy(e);
    /* without use_tpu: where the device says, else one replica on the CPU */
    assert_ok(sx_tpu_estimator_create(&tiny, &e, .config = config, .train_batch_size = 8));
    assert_ok(sx_estimator_train(e, tell, &a, .max_steps = 2));
    assert_int_equal(a.last.num_replicas, 4);
    sx_estimator_destroy(e);
    assert_ok(sx_tpu_estimator_create(&tiny, &e, .config = sx_run_config_of(.replicas = 4),
                                      .train_batch_size = 6));
    assert_ok(sx_estimator_train(e, tell, &a, .max_steps = 2));
    assert_int_equal(a.last.num_replicas, 1);
    assert_int_equal(a.last.batch_size, 6);
    sx_estimator_destroy(e);
}

/* What a step takes and how many make an epoch, of batches and elements, several data sets or
 * several batches a step: 53 examples in steps of 8 are 7. One data set alone determines them. */
static void test_train_input_modes__steps_and_batches_of_what_was_returned(void **state)
{
    (void)state;
    static const struct {
        sx_input_config mode;
        bool batches;
        int n, pulls;
        int64_t step_batch, steps_per_epoch;
    } rows[] = {
        {SX_PER_SHARD_V1, false, 4, 1, 8, 7}, /* shards of 14, 13, 13, 13 in twos */
        {SX_PER_SHARD_V1, true, 4, 1, 8, 7},  {SX_PER_HOST_V2, true, 1, 4, 8, 7},
        {SX_PER_HOST_V2, false, 1, 1, 0, 0},  {SX_PER_HOST_V1, true, 1, 1, 0, 0},
        {SX_BROADCAST, true, 1, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        asked a = {.batches = rows[i].batches};
        sx_inputs in;
        sx_run_config config = tiny_config(NULL, NULL);
        config.replicas = 4;
        config.tpu_config.per_host_input_for_training = rows[i].mode;
        assert_ok(sx_inputs_call(&config, NULL, SX_TRAIN, 0, tell, &a, &in));
        assert_int_equal(in.n, rows[i].n);
        assert_int_equal(in.pulls, rows[i].pulls);
        assert_int_equal(in.step_batch, rows[i].step_batch);
        assert_int_equal(in.steps_per_epoch, rows[i].steps_per_epoch);
        sx_inputs_release(&in);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_input_modes__the_table),
    cmocka_unit_test(test_train_input_modes__refuses_by_name),
    cmocka_unit_test(test_train_input_modes__tpu_config_is_checked),
    cmocka_unit_test(test_train_input_modes__one_master),
    cmocka_unit_test(test_train_input_modes__iterations_per_loop),
    cmocka_unit_test(test_train_input_modes__context_and_params),
    cmocka_unit_test(test_train_input_modes__reserved_parameters),
    cmocka_unit_test(test_train_input_modes__indivisible_before_data),
    scratch_test(test_train_input_modes__pulled_batches_are_global_ones),
    cmocka_unit_test(test_train_input_modes__no_example_is_lost),
    scratch_test(test_train_input_modes__one_input_for_each_replica),
    scratch_test(test_train_input_modes__resume_is_exact),
    cmocka_unit_test(test_train_input_modes__tpu_estimator),
    cmocka_unit_test(test_train_input_modes__steps_and_batches_of_what_was_returned),
};
SX_TEST_MAIN(tests)
