/* RunConfig and TPUConfig: every field of TensorFlow's is there, and none is silently without
 * effect. */
#include "run.h"

#include "base/arena.h"
#include "train/config.h"

typedef enum fate { WORKS, IGNORED, REFUSED } fate;

typedef struct tf_field {
    const char *name;
    size_t offset, bytes;
    const char *otherwise; /* the default in sextant.json; NULL = kept elsewhere */
    fate fate;
    sx_run_config given; /* the field with a value that is not the default */
} tf_field;

#define TF_FIELD(name, otherwise, fate, ...)                                                    \
    {                                                                                           \
#name, offsetof(sx_run_config, name), sizeof(((sx_run_config *)NULL)->name), otherwise, \
            fate,                                                                               \
        {                                                                                       \
            __VA_ARGS__                                                                         \
        }                                                                                       \
    }
#define WORKING(name, otherwise)         TF_FIELD(name, otherwise, WORKS, .struct_size = 0)
#define IGNORING(name, otherwise, value) TF_FIELD(name, otherwise, IGNORED, .name = (value))
#define REFUSING(name)                   TF_FIELD(name, "null", REFUSED, .name = (const void *)"any")

/* estimator/run_config.py and estimator/tpu/tpu_config.py, whole, with their defaults; and what
 * TPUEstimator and TensorFlow's models for TPUs take beside them. */
static const tf_field tf_fields[] = {
    WORKING(model_dir, "null"),
    WORKING(tf_random_seed, NULL),
    IGNORING(save_summary_steps, "100", 100),
    WORKING(save_checkpoints_steps, "-1"),
    WORKING(save_checkpoints_secs, "600"),
    REFUSING(session_config),
    WORKING(keep_checkpoint_max, "5"),
    WORKING(keep_checkpoint_every_n_hours, "10000.0"),
    WORKING(log_step_count_steps, "100"),
    WORKING(train_distribute, NULL),
    REFUSING(device_fn),
    IGNORING(protocol, "null", "grpc"),
    WORKING(eval_distribute, NULL),
    REFUSING(experimental_distribute),
    IGNORING(experimental_max_worker_delay_secs, "0", 7),
    IGNORING(session_creation_timeout_secs, "7200", 7),
    IGNORING(checkpoint_save_graph_def, "1", SX_NEVER),
    WORKING(tpu_config, NULL),
    WORKING(evaluation_master, "null"),
    WORKING(master, "null"),
    WORKING(cluster, "null"),
    WORKING(tpu_config.iterations_per_loop, NULL),
    IGNORING(tpu_config.num_shards, "0", 7),
    WORKING(tpu_config.num_cores_per_replica, "1"),
    WORKING(tpu_config.per_host_input_for_training, "2"), /* True = PER_HOST_V1 */
    IGNORING(tpu_config.tpu_job_name, "null", "worker"),
    IGNORING(tpu_config.initial_infeed_sleep_secs, "0", 7),
    REFUSING(tpu_config.input_partition_dims),
    WORKING(tpu_config.eval_training_input_configuration, "2"),
    WORKING(tpu_config.experimental_host_call_every_n_steps, "1"),
    IGNORING(tpu_config.experimental_allow_per_host_v2_parallel_get_next, "false", true),
    REFUSING(tpu_config.experimental_feed_hook),
    IGNORING(batch_axis, "0", 3),
    IGNORING(transpose_input, "false", true),
};
enum { N_FIELDS = sizeof(tf_fields) / sizeof(tf_fields[0]) };

static void test_train_config__has_tensorflows_defaults(void **state)
{
    (void)state;
    sx_arena arena;
    sx_run_config resolved;
    json_t *json = NULL;
    sx_arena_init(&arena, 0);
    assert_ok(sx_run_config_resolve(sx_run_config_of(0), &arena, &resolved));
    assert_ok(sx_run_config_to_json(&resolved, &json));
    for (int i = 0; i < N_FIELDS; i++) {
        const tf_field *f = &tf_fields[i];
        if (f->otherwise != NULL) {
            char *text = json_dumps(json_object_get(json, f->name), JSON_ENCODE_ANY);
            assert_non_null(text);
            assert_string_equal(text, f->otherwise);
            free(text);
        }
    }
    json_decref(json);
    sx_arena_deinit(&arena);
}

static sx_run_config with_field(const tf_field *f, seen *s)
{
    sx_run_config config = tiny_config(NULL, s);
    memcpy((char *)&config + f->offset, (const char *)&f->given + f->offset, f->bytes);
    return config;
}

static void test_train_config__says_what_it_ignores(void **state)
{
    (void)state;
    for (int i = 0; i < N_FIELDS; i++) {
        if (tf_fields[i].fate == IGNORED) {
            seen s = {0};
            char says[128];
            sx_run_config config = with_field(&tf_fields[i], &s);
            sx_trainer *t = open_tiny(&config);
            assert_ok(fit_tiny(t, 1, false));
            snprintf(says, sizeof(says), "%s is ignored: ", tf_fields[i].name);
            assert_int_equal(s.count[SX_EVENT_WARNING], 1);
            assert_ptr_equal(strstr(s.warning, says), s.warning);
            sx_trainer_destroy(t);
        }
    }
}

static void test_train_config__refuses_what_has_no_meaning(void **state)
{
    (void)state;
    for (int i = 0; i < N_FIELDS; i++) {
        if (tf_fields[i].fate == REFUSED) {
            char says[128];
            sx_run_config config = with_field(&tf_fields[i], NULL);
            sx_trainer *t = NULL;
            snprintf(says, sizeof(says), "%s must be NULL: ", tf_fields[i].name);
            assert_error(
                sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &tiny}, &t),
                SX_INVALID_ARGUMENT, says);
        }
    }
}

/* The bounds of every whole number: at them it is taken or refused for another reason, beyond them
 * the error has both. 0 is the default. */
static void test_train_config__numbers_have_bounds(void **state)
{
    (void)state;
#define INT_FIELD(name, low, high)                                                             \
    {                                                                                          \
#name, offsetof(sx_run_config, name), sizeof(((sx_run_config *)NULL)->name), low, high \
    }
    static const struct {
        const char *name;
        size_t offset, bytes;
        int64_t low, high;
    } rows[] = {
        INT_FIELD(save_checkpoints_steps, -1, INT64_MAX),
        INT_FIELD(save_checkpoints_secs, -1, INT64_MAX),
        INT_FIELD(keep_checkpoint_max, -1, INT32_MAX),
        INT_FIELD(log_step_count_steps, -1, INT64_MAX),
        INT_FIELD(iterations_per_loop, 0, INT64_MAX),
        INT_FIELD(train_batch_size, 1, 1 << 24),
        INT_FIELD(eval_batch_size, 1, 1 << 24),
        INT_FIELD(steps_per_eval, SX_EVERY_EPOCH, INT64_MAX),
        INT_FIELD(replicas, 0, 1024),
        INT_FIELD(virtual_devices, 0, 1024),
        INT_FIELD(threads, 0, 4096),
        INT_FIELD(shards, 0, 4096),
        INT_FIELD(tpu_config.num_shards, 0, 4096),
        INT_FIELD(tpu_config.num_cores_per_replica, 1, 128),
        INT_FIELD(tpu_config.per_host_input_for_training, 1, 5),
        INT_FIELD(tpu_config.initial_infeed_sleep_secs, 0, INT32_MAX),
        INT_FIELD(tpu_config.eval_training_input_configuration, 1, 5),
        INT_FIELD(tpu_config.experimental_host_call_every_n_steps, 1, INT64_MAX),
        INT_FIELD(save_summary_steps, -1, INT64_MAX),
        INT_FIELD(experimental_max_worker_delay_secs, 0, INT32_MAX),
        INT_FIELD(session_creation_timeout_secs, 1, INT32_MAX),
        INT_FIELD(checkpoint_save_graph_def, -1, 1),
    };
#undef INT_FIELD
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t low = rows[i].low, high = rows[i].high;
        const int64_t values[] = {low, high, low - 1 == 0 ? -1 : low - 1,
                                  high + (high < INT64_MAX)};
        for (int k = 0; k < 4; k++) {
            sx_run_config config = tiny_config(NULL, NULL), resolved;
            sx_arena arena;
            char *at = (char *)&config + rows[i].offset, bounds[160];
            const int narrow = (int)values[k];
            const bool fits = rows[i].bytes == sizeof(int64_t) || narrow == values[k];
            if (!fits || (k == 3 && values[k] == high)) {
                continue; /* no value of the field is beyond */
            }
            if (rows[i].bytes == sizeof(int64_t)) {
                memcpy(at, &values[k], sizeof(int64_t));
            } else {
                memcpy(at, &narrow, sizeof(narrow));
            }
            sx_arena_init(&arena, 0);
            snprintf(bounds, sizeof(bounds), "%s is %lld, expected %lld … %lld", rows[i].name,
                     (long long)values[k], (long long)low, (long long)high);
            sx_status status = sx_run_config_resolve(&config, &arena, &resolved);
            const bool refused = strcmp(sx_status_message(status), bounds) == 0;
            if (refused != (k > 1)) {
                fail_msg("%s = %lld: \"%s\"", rows[i].name, (long long)values[k],
                         sx_status_message(status));
            }
            sx_status_free(status);
            sx_arena_deinit(&arena);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_config__has_tensorflows_defaults),
    cmocka_unit_test(test_train_config__says_what_it_ignores),
    cmocka_unit_test(test_train_config__refuses_what_has_no_meaning),
    cmocka_unit_test(test_train_config__numbers_have_bounds),
};
SX_TEST_MAIN(tests)
