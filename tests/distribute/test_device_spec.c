#include "harness.h"

#include "distribute/device_spec.h"

static sx_arena arena;

static int setup(void **state)
{
    (void)state;
    sx_arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sx_arena_deinit(&arena);
    return 0;
}

static void test_distribute_device_spec__reads_what_users_write(void **state)
{
    (void)state;
    static const struct {
        const char *text, *backend, *plugin, *again;
        int devices;
        bool is_tpu;
    } rows[] = {
        {"cpu", "cpu", NULL, "cpu", 0, false},
        {"host", "host", NULL, "host", 0, false},
        {"tpu", "pjrt", "tpu", "tpu", 0, true},
        {"tpu:8", "pjrt", "tpu", "tpu", 8, true},
        {"cuda", "pjrt", "cuda", "pjrt:cuda", 0, false},
        {"cuda:2", "pjrt", "cuda", "pjrt:cuda", 2, false},
        {"pjrt", "pjrt", NULL, "pjrt", 0, false},
        {"pjrt:cpu", "pjrt", "cpu", "pjrt:cpu", 0, false},
        {"pjrt:cpu:4", "pjrt", "cpu", "pjrt:cpu", 4, false},
        {"pjrt:tpu:1024", "pjrt", "tpu", "pjrt:tpu", 1024, false},
        {"tpu:1024", "pjrt", "tpu", "tpu", 1024, true},
        {"tpu:1", "pjrt", "tpu", "tpu", 1, true},
        {"pjrt:a1", "pjrt", "a1", "pjrt:a1", 0, false},
        {"pjrt:neuron", "pjrt", "neuron", "pjrt:neuron", 0, false},
        {"/device:CPU:0", "cpu", NULL, "cpu", 0, false},
        {"/cpu:0", "cpu", NULL, "cpu", 0, false},
        {"/gpu:0", "pjrt", "cuda", "pjrt:cuda", 1, false},
        {"/job:localhost/replica:0/task:0/device:TPU:0", "pjrt", "tpu", "tpu", 1, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_device_spec spec;
        assert_ok(sx_device_spec_parse(rows[i].text, &arena, &spec));
        assert_string_equal(spec.backend, rows[i].backend);
        assert_int_equal(spec.plugin_name == NULL, rows[i].plugin == NULL);
        if (rows[i].plugin != NULL) {
            assert_string_equal(spec.plugin_name, rows[i].plugin);
        }
        assert_int_equal(spec.devices, rows[i].devices);
        assert_int_equal(spec.is_tpu, rows[i].is_tpu);
        assert_string_equal(sx_device_spec_text(&spec, &arena), rows[i].again);
    }
}

static void test_distribute_device_spec__names_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"tpuu", "did you mean \"tpu\"?"},
        {"tup:4", "did you mean \"tpu\"?"},
        {"cud", "\"cuda\""},
        {"quantum", "unknown device \"quantum\"; expected cpu, host, tpu, cuda or pjrt:NAME[:N]"},
        {"gpu", "unknown device \"gpu\"; use --device cuda for GPUs"},
        {"cpu,cpu", "device \"cpu,cpu\" is a list, for models whose layers are on several devices"},
        {"GPU:2", "unknown device \"GPU:2\"; use --device cuda for GPUs"},
        {"", "unknown device \"\"; expected cpu"},
        {":", "unknown device \":\"; expected cpu"},
        {"cpu:4",
         "there is only one cpu; to divide each batch among virtual devices, use --device cpu "
         "--virtual-devices N (virtual_devices)"},
        {"host:2", "there is only one host; use --device host"},
        {"tpu:0", "invalid number of devices \"0\", expected 1 to"},
        {"tpu:1025", "expected 1 to 1024"},
        {"tpu:4x", "invalid number of devices \"4x\""},
        {"tpu:", "invalid number of devices \"\""},
        {"pjrt:", "expected pjrt:NAME[:N]"},
        {"pjrt:0x", "expected pjrt:NAME[:N]"},
        {"pjrt:9x", "expected pjrt:NAME[:N]"},
        {"pjrt:4", "expected pjrt:NAME[:N]"},
        {"pjrt:cpu:-1", "invalid number of devices \"-1\""},
        {"pjrt:cpu:99999999999999999999", "invalid number of devices"},
        {"/device:TPU:3", "only the first device can be named so, TPU:0"},
        {"/device:XPU:0", "unknown device \"/device:XPU:0\""},
        {"/", "unknown device \"/\""},
        {"/cpu", "unknown device \"/cpu\""},
        {"/foo/cpu:0", "\"foo\" in the device \"/foo/cpu:0\" is not a part of a device's name; "
                       "expected names such "
                       "as /cpu:1"},
        {"/job:worker/cpu:0", "device \"/job:worker/cpu:0\" is of another process"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_device_spec spec;
        assert_error(sx_device_spec_parse(rows[i].text, &arena, &spec), SX_INVALID_ARGUMENT,
                     rows[i].says);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_distribute_device_spec__reads_what_users_write, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_distribute_device_spec__names_the_nearest, setup,
                                    teardown),
};
SX_TEST_MAIN(tests)
