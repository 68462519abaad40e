#include "../train/run.h"
#include "../backends/pjrt_plugin.h"
#include "cloud.h"

#include "distribute/strategy.h"

static sx_status mirrored(sx_strategy_args args, sx_strategy **out)
{
    args.struct_size = sizeof(args);
    return sx_mirrored_strategy_at(&args, out);
}
#define MIRRORED(out, ...) mirrored((sx_strategy_args){__VA_ARGS__}, (out))

static void test_distribute_strategy__one_device(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    assert_ok(sx_one_device_strategy(&s, .device = "host"));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 1);
    assert_string_equal(sx_strategy_name(s), "one-device");
    assert_string_equal(sx_strategy_text(s), "one-device: 1 replica on host");
    sx_strategy_release(s);
    assert_ok(sx_one_device_strategy(&s, .device = NULL));
    assert_string_equal(sx_strategy_text(s), "one-device: 1 replica on cpu");
    sx_strategy_release(sx_strategy_retain(s));
    assert_string_equal(sx_strategy_explanation(s), "one-device: 1 replica on cpu\n");
    sx_strategy_release(s);
    sx_strategy_release(NULL);
    assert_error(sx_one_device_strategy(&s, .virtual_devices = 2), SX_INVALID_ARGUMENT,
                 "use a mirrored strategy");
    assert_error(sx_one_device_strategy(&s, .replicas = 2), SX_INVALID_ARGUMENT,
                 "one-device strategy with 2 devices; use a mirrored strategy");
    assert_ok(sx_one_device_strategy(&s, .replicas = 1));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 1);
    sx_strategy_release(s);
    assert_error(sx_one_device_strategy_at(&(sx_strategy_args){0}, &s), SX_INVALID_ARGUMENT,
                 "use the macro");
}

static void test_distribute_strategy__virtual_devices_of_cpu(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_session_options options = {.platform = {.cpu.threads = 3, .pjrt.cache_dir = "x"}, .seed = 9};
    assert_ok(sx_mirrored_strategy(&s, .device = "cpu", .virtual_devices = 4));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 4);
    assert_string_equal(sx_strategy_text(s), "mirrored: 4 virtual devices on cpu");
    assert_ok(sx_strategy_apply(s, &options));
    assert_string_equal(options.device, "cpu");
    assert_int_equal(options.shards, 4);
    assert_int_equal(options.platform.cpu.threads, 3);
    assert_string_equal(options.platform.pjrt.cache_dir, "x");
    assert_int_equal(options.seed, 9);
    options.shards = 8; /* two each */
    assert_ok(sx_strategy_apply(s, &options));
    assert_int_equal(options.shards, 8);
    options.shards = 9;
    assert_error(sx_strategy_apply(s, &options), SX_INVALID_ARGUMENT,
                 "shards is 9, which 4 virtual devices cannot share equally; give a multiple of 4, "
                 "such as 12");
    sx_strategy_release(s);
    assert_ok(MIRRORED(&s, .virtual_devices = 4, .replicas = 2));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 2);
    sx_strategy_release(s);
    assert_ok(MIRRORED(&s, .device = "host", .replicas = 3)); /* computes the batch whole */
    options.shards = 0;
    assert_ok(sx_strategy_apply(s, &options));
    assert_int_equal(options.shards, 0);
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 3);
    sx_strategy_release(s);
}

static void test_distribute_strategy__what_does_not_go_together(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    static const struct {
        sx_strategy_args args;
        const char *says;
    } rows[] = {
        {{.device = "tpu", .virtual_devices = 4}, "only cpu, host and pjrt:cpu support"},
        {{.device = "pjrt:cuda", .virtual_devices = 4}, "only cpu, host and pjrt:cpu support"},
        {{.virtual_devices = 2, .replicas = 4}, "replicas is 4, but virtual_devices is 2"},
        {{.virtual_devices = 3, .replicas = 4}, "replicas is 4, but virtual_devices is 3"},
        {{.device = "pjrt:cuda:2", .replicas = 1}, "the number of devices in its name is 2"},
        {{.replicas = -1}, "replicas is -1"},
        {{.replicas = 1025}, "replicas is 1025"},
        {{.virtual_devices = 1025}, "virtual_devices is 1025"},
        {{.virtual_devices = -1}, "virtual_devices is -1"},
        {{.replicas = 5000}, "replicas is 5000"},
        {{.device = "pjrt:cpu:4", .replicas = 2}, "the number of devices in its name is 4"},
        {{.device = "cpu", .pjrt_plugin = "x.so"}, "pjrt_plugin \"x.so\" is only for PJRT devices"},
        {{.device = "cpu", .python = "py"}, "python \"py\" is only for PJRT devices"},
        {{.device = "cpu", .dump_stablehlo = "d"}, "dump_stablehlo \"d\" is only for PJRT devices"},
        {{.device = "cpu", .batch_norm = "replica"}, "uses the moments of the whole batch"},
        {{.device = "cpu", .batch_norm = "both"}, "expected sync or replica"},
        {{.device = "cpo"}, "did you mean \"cpu\"?"},
        {{.devices = ","}, "expected names such as /gpu:0,/gpu:2"},
        {{.devices = "cpu:0,gpu:0"}, "devices of one type, not CPU and GPU"},
        {{.devices = "cpu:1,/device:CPU:1"}, "CPU:1 is there twice"},
        {{.devices = "/job:worker/replica:0/task:1/cpu:0"}, "is of another process"},
        {{.devices = "cpu:x"}, "is not a part of a device's name"},
        {{.devices = "cpu:1024"}, "expected 0 to 1023"},
        {{.devices = "xpu:0"}, "unknown device \"xpu:0\""},
        {{.devices = "cpu"}, "unknown device \"cpu\""},
        {{.devices = "cpu:0,cpu:1", .replicas = 3}, "the number of devices that are named is 2"},
        {{.devices = "cpu:0,cpu:4", .virtual_devices = 4},
         "there is no CPU:4; virtual_devices has"},
        {{.device = "pjrt:cpu",
          .devices = "cpu:0,cpu:1",
          .coordinator = "127.0.0.1:8470",
          .num_processes = 2},
         "each of 2 processes uses the first of its own"},
        {{.devices = "gpu:0", .device = "cpu"}, "\"gpu:0\" are not of cpu"},
        {{.device = "cpu", .cross_device_ops = "ring"}, "virtual devices share one memory"},
        {{.device = "cpu", .cross_device_ops = "nccl"}, "cross_device_ops nccl"},
        {{.device = "cpu", .cross_device_ops = "fast"}, "expected auto, reduction-to-one-device"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(mirrored(rows[i].args, &s), SX_INVALID_ARGUMENT, rows[i].says);
    }
}

static void test_distribute_strategy__no_plugin_says_what_to_install(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    unsetenv("VIRTUAL_ENV");
    assert_error(MIRRORED(&s, .device = "cuda"), SX_UNAVAILABLE, "pip install jax-cuda13-pjrt");
    assert_error(sx_tpu_strategy(&s, .tpu = "local"), SX_UNAVAILABLE, "pip install libtpu");
    assert_error(MIRRORED(&s, .pjrt_plugin = "/no/such.so"), SX_NOT_FOUND, "/no/such.so");
}

static void test_distribute_strategy__a_tpu_of_another_machine(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    cloud_start("vm");
    assert_error(sx_tpu_strategy(&s, .tpu = "grpc://10.0.0.2"), SX_UNIMPLEMENTED,
                 "TPU 10.0.0.2:8470 (of unknown type) is attached to another machine, at "
                 "grpc://10.0.0.2:8470");
    assert_error(sx_tpu_strategy(&s, .tpu = "idle"), SX_UNIMPLEMENTED,
                 "gcloud compute tpus tpu-vm ssh idle) and run it with --tpu local");
    assert_error(sx_tpu_strategy(&s, .tpu = "four"), SX_UNIMPLEMENTED,
                 "TPU four, v5litepod-16 spans 4 hosts");
    assert_error(sx_tpu_strategy(&s, .tpu = "creating"), SX_FAILED_PRECONDITION, "CREATING");
    sx_buf told;
    sx_buf_init(&told, 0);
    assert_error(sx_strategy_create(&(sx_strategy_wish){.tpu = "gone", .explanation = &told}, &s),
                 SX_NOT_FOUND, "gone");
    assert_non_null(strstr(sx_buf_text(&told), "no TPU:"));
    sx_buf_deinit(&told);
    assert_error(
        sx_strategy_create(&(sx_strategy_wish){.tpu = "idle", .args = {.device = "cpu"}}, &s),
        SX_INVALID_ARGUMENT, "device \"cpu\" cannot be combined with a TPU");
}

static void test_distribute_strategy__over_a_plugin(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    char dump[300];
    const char *path = ref_plugin();
    setenv("SX_PJRT_REF", "devices=4", 1);
    snprintf(dump, sizeof(dump), "%s", scratch("hlo/deep"));
    assert_ok(sx_mirrored_strategy(&s, .pjrt_plugin = path, .virtual_devices = 3,
                                   .dump_stablehlo = dump));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 3);
    assert_true(sx_path_is_dir(dump));
    sx_session_options options = {0};
    assert_ok(sx_strategy_apply(s, &options));
    assert_string_equal(options.device, "pjrt");
    assert_int_equal(options.platform.pjrt.replicas, 3);
    assert_int_equal(options.platform.pjrt.virtual_devices, 3);
    assert_int_equal(options.shards, 0);
    sx_strategy_release(s);
    assert_ok(sx_one_device_strategy(&s, .pjrt_plugin = path));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 1);
    sx_strategy_release(s);
    assert_error(sx_tpu_strategy(&s, .pjrt_plugin = path), SX_FAILED_PRECONDITION,
                 "device tpu requested, but the plugin offers /device:CPU:0");
    setenv("SX_PJRT_REF", "devices=4,platform=tpu", 1);
    assert_ok(sx_tpu_strategy(&s, .pjrt_plugin = path)); /* all that it offers */
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 4);
    assert_string_equal(sx_strategy_text(s), "tpu: 4 replicas on tpu");
    sx_strategy_release(s);
    setenv("SX_PJRT_REF", "devices=4", 1);
    assert_error(MIRRORED(&s, .pjrt_plugin = path, .replicas = 9), SX_INVALID_ARGUMENT,
                 "9 replicas requested, but pjrt has 4 devices");
    char named[5000];
    snprintf(named, sizeof(named), "cpu:%s", path);
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", named, 1);
    assert_ok(MIRRORED(&s, .device = "pjrt:cpu:5"));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 5);
    sx_strategy_release(s);
}

static void test_distribute_strategy__devices_by_name(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_session_options options = {0};
    const char *path = ref_plugin();
    assert_ok(sx_mirrored_strategy(&s, .devices = "cpu:0, /device:CPU:3",
                                   .cross_device_ops = "reduction-to-one-device"));
    assert_string_equal(sx_strategy_text(s),
                        "mirrored: 2 virtual devices on cpu: cpu:0, /device:CPU:3");
    assert_ok(sx_strategy_apply(s, &options));
    assert_string_equal(options.device, "cpu");
    assert_int_equal(options.shards, 2);
    sx_strategy_release(s);

    setenv("SX_PJRT_REF", "devices=4", 1);
    assert_ok(sx_mirrored_strategy(&s, .pjrt_plugin = path, .devices = "cpu:3,cpu:1",
                                   .cross_device_ops = "reduction-to-one-device"));
    assert_string_equal(sx_strategy_text(s), "mirrored: 2 replicas on pjrt: cpu:3,cpu:1; sums in a "
                                             "fixed order");
    options = (sx_session_options){0};
    assert_ok(sx_strategy_apply(s, &options));
    assert_int_equal(options.platform.pjrt.replicas, 2);
    assert_int_equal(options.platform.pjrt.n_chosen, 2);
    assert_int_equal(options.platform.pjrt.chosen[0], 3);
    assert_int_equal(options.platform.pjrt.chosen[1], 1);
    assert_true(options.platform.pjrt.ordered_sums);
    sx_strategy_release(s);
    assert_ok(sx_one_device_strategy(&s, .pjrt_plugin = path, .devices = "cpu:2"));
    options = (sx_session_options){0};
    assert_ok(sx_strategy_apply(s, &options));
    assert_int_equal(options.platform.pjrt.replicas, 1);
    assert_int_equal(options.platform.pjrt.chosen[0], 2);
    assert_false(options.platform.pjrt.ordered_sums);
    sx_strategy_release(s);
    assert_error(sx_one_device_strategy(&s, .pjrt_plugin = path, .devices = "cpu:2,cpu:0"),
                 SX_INVALID_ARGUMENT, "use a mirrored strategy");
    assert_error(MIRRORED(&s, .pjrt_plugin = path, .devices = "cpu:1,cpu:4"), SX_INVALID_ARGUMENT,
                 "there is no CPU:4; pjrt has 4 devices, from CPU:0");
    assert_error(MIRRORED(&s, .pjrt_plugin = path, .devices = "gpu:1"), SX_INVALID_ARGUMENT,
                 "\"gpu:1\" are not of pjrt, which has /device:CPU:0");
    assert_error(MIRRORED(&s, .pjrt_plugin = path, .cross_device_ops = "hierarchical-copy"),
                 SX_INVALID_ARGUMENT, "XLA chooses the algorithm");
    assert_error(MIRRORED(&s, .pjrt_plugin = path, .cross_device_ops = "nccl"), SX_INVALID_ARGUMENT,
                 "XLA chooses the algorithm");
    setenv("SX_PJRT_REF", "devices=2,platform=cuda", 1);
    assert_ok(
        MIRRORED(&s, .pjrt_plugin = path, .devices = "/gpu:1,/gpu:0", .cross_device_ops = "nccl"));
    sx_strategy_release(s);
    unsetenv("SX_PJRT_REF");
}

static sx_status central(sx_strategy_args args, sx_strategy **out)
{
    args.struct_size = sizeof(args);
    return sx_central_storage_strategy_at(&args, out);
}

static void test_distribute_strategy__central_storage(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_session_options options = {0};
    setenv("SX_PJRT_REF", "devices=4", 1);
    assert_ok(
        sx_central_storage_strategy(&s, .devices = "cpu:0,cpu:1", .parameter_device = "/cpu:0"));
    assert_string_equal(sx_strategy_name(s), "central-storage");
    assert_string_equal(sx_strategy_text(s), "central-storage: 2 virtual devices on cpu: "
                                             "cpu:0,cpu:1; variables on cpu:0");
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 2);
    assert_ok(sx_strategy_apply(s, &options));
    assert_int_equal(options.shards, 2);
    sx_strategy_release(s);
    assert_ok(sx_central_storage_strategy(&s, .pjrt_plugin = ref_plugin(), .devices = "cpu:2",
                                          .parameter_device = "cpu:2"));
    assert_string_equal(sx_strategy_text(s), "central-storage: 1 replica on pjrt: cpu:2");
    sx_strategy_release(s);
    static const struct {
        sx_strategy_args args;
        sx_code code;
        const char *says;
    } rows[] = {
        {{.devices = "cpu:0,cpu:1", .parameter_device = "cpu:1"}, SX_UNIMPLEMENTED, "device 0"},
        {{.device = "cpu", .parameter_device = "gpu:0"}, SX_UNIMPLEMENTED, "on cpu are on its"},
        {{.device = "cpu", .parameter_device = "here"}, SX_INVALID_ARGUMENT, "parameter_device"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(central(rows[i].args, &s), rows[i].code, rows[i].says);
    }
    assert_error(sx_central_storage_strategy(&s, .pjrt_plugin = ref_plugin(), .replicas = 2),
                 SX_UNIMPLEMENTED, "use mirrored, which computes the same");
    assert_error(sx_central_storage_strategy(&s, .pjrt_plugin = ref_plugin(), .devices = "cpu:2",
                                             .parameter_device = "cpu:1"),
                 SX_UNIMPLEMENTED, "on its device 2");
    assert_error(MIRRORED(&s, .device = "cpu", .parameter_device = "cpu:0"), SX_INVALID_ARGUMENT,
                 "only for central storage");
    unsetenv("SX_PJRT_REF");
}

/* ---- Training under one ---- */

typedef struct outcome {
    double loss;
    float kernel[FEATURES * 8];
} outcome;

static void train_under(sx_strategy *strategy, const char *device, outcome *out)
{
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_run_config config = *sx_run_config_of(.train_batch_size = BATCH, .tf_random_seed = 5,
                                             .train_distribute = strategy, .device = device);
    sx_eval_result result;
    assert_ok(sx_trainer_create(
        &(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t));
    assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .epochs = 3}));
    assert_ok(sx_trainer_evaluate(t, data, 0, &result));
    assert_int_equal(result.examples, EXAMPLES);
    out->loss = result.loss;
    sx_session *session = sx_trainer_session(t);
    int i = sx_session_find_variable(session, "dense/kernel");
    assert_true(i >= 0);
    assert_ok(sx_session_read_variable(session, i, out->kernel));
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

/* Virtual devices of cpu: the same to the bit as so many shards, whatever the threads; and a last
 * batch that divides by nothing. */
static void test_distribute_strategy__virtual_devices_train(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    static outcome one, four, again;
    train_under(NULL, "host", &one);
    assert_ok(sx_mirrored_strategy(&s, .virtual_devices = 4));
    train_under(s, NULL, &four);
    train_under(s, NULL, &again);
    sx_strategy_release(s);
    assert_memory_equal(&four, &again, sizeof(four));
    assert_true(fabs(one.loss - four.loss) < 1e-4);
}

static void test_distribute_strategy__estimator_and_model_hold_it(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_estimator *e = NULL;
    sx_model *m = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    sx_eval_result result;
    assert_ok(sx_mirrored_strategy(&s, .virtual_devices = 2));
    assert_ok(sx_estimator_create(&tiny, sx_run_config_of(.train_distribute = s), NULL, &e));
    assert_ok(sx_model_create(&tiny, NULL, &m));
    assert_ok(sx_model_compile(m, .train_distribute = s));
    assert_ok(sx_model_compile(m, .train_distribute = s)); /* again: the first is let go */
    sx_strategy_release(s);
    assert_ok(sx_model_fit(m, data, .epochs = 1));
    assert_ok(sx_model_evaluate(m, data, &result));
    assert_int_equal(result.examples, EXAMPLES);
    sx_model_destroy(m);
    sx_estimator_destroy(e);
    sx_dataset_release(data);
}

static void test_distribute_strategy__the_configuration_says_it_once(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    assert_ok(sx_one_device_strategy(&s, .device = "host"));
    sx_run_config config = *sx_run_config_of(.train_distribute = s, .device = "cpu");
    assert_error(
        sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t),
        SX_INVALID_ARGUMENT, "cannot be combined with device");
    config.train_distribute = NULL;
    config.virtual_devices = 2;
    config.shards = 3;
    assert_error(
        sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t),
        SX_INVALID_ARGUMENT, "shards is 3, which 2 virtual devices cannot share equally");
    sx_strategy_release(s);
    sx_dataset_release(data);
}

/* Two replicas, and a last batch that does not divide by them: the loss of one device but for
 * rounding. */
static void test_distribute_strategy__trains_over_a_plugin(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    static outcome one, many;
    train_under(NULL, "host", &one);
    assert_ok(sx_mirrored_strategy(&s, .pjrt_plugin = ref_plugin(), .replicas = 2));
    train_under(s, NULL, &many);
    sx_strategy_release(s);
    assert_true(fabs(one.loss - many.loss) < 1e-4);
}

/* Whichever of its names is given, a TPU is what is looked for; an empty name is none, a plugin
 * given by its path is believed unless there is a name. */
static void test_distribute_strategy__names_of_a_tpu(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    const char *path = ref_plugin();
    const struct {
        sx_strategy_wish wish;
        sx_code code;
        const char *says;
    } rows[] = {
        {{.tpu = "g"}, SX_NOT_FOUND, "status 404"},
        {{.master = "grpc://h"}, SX_UNIMPLEMENTED, "at grpc://h:8470"},
        {{.zone = "z"}, SX_UNAVAILABLE, "no TPU found"},
        {{.project = "p"}, SX_UNAVAILABLE, "no TPU found"},
        {{.kind = SX_STRATEGY_TPU}, SX_UNAVAILABLE, "no TPU found"},
        {{.tpu = "g", .args.pjrt_plugin = path}, SX_NOT_FOUND, "status 404"},
        {{.master = "grpc://h", .args.pjrt_plugin = path}, SX_UNIMPLEMENTED, "at grpc://h:8470"},
        {{.zone = "z", .args.pjrt_plugin = path}, SX_FAILED_PRECONDITION, "the plugin offers"},
    };
    cloud_start("vm");
    setenv("SX_PJRT_REF", "devices=1", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(sx_strategy_create(&rows[i].wish, &s), rows[i].code, rows[i].says);
    }
    assert_ok(sx_strategy_create(&(sx_strategy_wish){.tpu = "", .master = "", .zone = ""}, &s));
    assert_string_equal(sx_strategy_text(s), "one-device: 1 replica on cpu");
    sx_strategy_release(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, cloud_setup, cloud_teardown)
static const struct CMUnitTest tests[] = {
    TEST(test_distribute_strategy__one_device),
    TEST(test_distribute_strategy__virtual_devices_of_cpu),
    TEST(test_distribute_strategy__what_does_not_go_together),
    TEST(test_distribute_strategy__no_plugin_says_what_to_install),
    TEST(test_distribute_strategy__a_tpu_of_another_machine),
    TEST(test_distribute_strategy__over_a_plugin),
    TEST(test_distribute_strategy__devices_by_name),
    TEST(test_distribute_strategy__central_storage),
    TEST(test_distribute_strategy__virtual_devices_train),
    TEST(test_distribute_strategy__estimator_and_model_hold_it),
    TEST(test_distribute_strategy__the_configuration_says_it_once),
    TEST(test_distribute_strategy__trains_over_a_plugin),
    TEST(test_distribute_strategy__names_of_a_tpu),
};
SX_TEST_MAIN(tests)
