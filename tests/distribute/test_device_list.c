/* Lists of devices that programs are placed on, and the strategy made of one. */
#include "harness.h"

#include "../backends/pjrt_plugin.h"
#include "base/buffer.h"
#include "distribute/device_list.h"
#include "distribute/strategy.h"

static void test_distribute_device_list__names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *backends, *plugin;
        int plugin_devices;
        const char *says;
    } rows[] = {
        {"cpu:0,cpu:1", "cpu cpu ", NULL, 0, NULL},
        {"cpu,CPU,host", "cpu cpu host ", NULL, 0, NULL},
        {"cpu", "cpu ", NULL, 0, NULL},
        {"/cpu:0,/job:localhost/device:CPU:1", "cpu cpu ", NULL, 0, NULL},
        {"/cpu:0,/cpu:2", NULL, NULL, 0,
         "\"/cpu:2\" is CPU:1, as devices of a type are numbered in the list's order; write CPU:1"},
        {"pjrt:cpu:2,cpu", "pjrt cpu ", "cpu", 2, NULL},
        {"cpu,cuda", "cpu pjrt ", "cuda", 1, NULL},
        {"cpu:1,cpu:0", NULL, NULL, 0, "\"cpu:1\" is CPU:0"},
        {"cpu,host:1", NULL, NULL, 0, "\"host:1\" is HOST:0"},
        /* Those of `host` and of a plugin count by their types. */
        {"host:0,cpu:0,host:1", "host cpu host ", NULL, 0, NULL},
        {"host,cpu:1", NULL, NULL, 0, "\"cpu:1\" is CPU:0"},
        {"pjrt:cpu:2,cpu:2", "pjrt cpu ", "cpu", 2, NULL},
        {"pjrt:cpu:2,cpu:0", NULL, NULL, 0, "\"cpu:0\" is CPU:2"},
        {"pjrt:mine:2,cpu:0", "pjrt cpu ", "mine", 2, NULL},
        {"cpu,gpu:0", "cpu pjrt ", "cuda", 1, NULL},
        {"/gpu:0,/gpu:1,cpu", "pjrt cpu ", "cuda", 2, NULL},
        {"/gpu:1,/gpu:0", NULL, NULL, 0, "\"/gpu:0\" is the second plugin of the list"},
        {"cpu,/gpu:1", NULL, NULL, 0, "\"/gpu:1\" is GPU:0"},
        {"/gpu:0,cpu,/gpu:1", NULL, NULL, 0, "\"/gpu:1\" is the second plugin of the list"},
        {"cpu:0, cpu:1 ,host", "cpu cpu host ", NULL, 0, NULL},
        {"cpu,", NULL, NULL, 0, "devices \"cpu,\": a name is missing"},
        {"cpu, ,cpu", NULL, NULL, 0, "a name is missing"},
        {"cpu,cp:1", NULL, NULL, 0, "unknown device \"cp:1\""},
        {"cpu,:1", NULL, NULL, 0, "unknown device \":1\""},
        {"cpu,/foo/cpu:1", NULL, NULL, 0,
         "\"foo\" in the device \"/foo/cpu:1\" is not a part of a device's name; expected"},
        {"/job:worker/task:3/device:CPU:0,cpu:1", NULL, NULL, 0, "is of another process"},
        {"cpu,cup", NULL, NULL, 0, "did you mean \"cpu\"?"},
        {"pjrt:cpu,cuda", NULL, NULL, 0, "\"cuda\" is the second plugin of the list"},
        {"cpu,pjrt:cpu:0", NULL, NULL, 0, "invalid number of devices"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_arena arena;
        sx_device_list_spec list;
        sx_buf backends;
        sx_buf_init(&backends, 64);
        sx_arena_init(&arena, 0);
        sx_status status = sx_device_list_parse(rows[i].text, &arena, &list);
        status = status == SX_OK ? sx_device_list_check(&list, "XPU") : status;
        if (rows[i].says != NULL) {
            assert_error(status, SX_INVALID_ARGUMENT, rows[i].says);
        } else {
            assert_ok(status);
            for (int k = 0; k < list.n_devices; k++) {
                sx_buf_printf(&backends, "%s ", list.devices[k].backend);
            }
            const char *plugin = list.plugin.plugin_name;
            assert_string_equal(sx_buf_text(&backends), rows[i].backends);
            assert_int_equal(list.plugin.devices, rows[i].plugin_devices);
            assert_string_equal(plugin != NULL ? plugin : "",
                                rows[i].plugin != NULL ? rows[i].plugin : "");
        }
        sx_buf_deinit(&backends);
        sx_arena_deinit(&arena);
    }
}

/* A plugin of a list has the devices that the list says, of the type that it says. */
static void test_distribute_device_list__plugin(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    assert_error(sx_placed_strategy(&s, .device = "cpu,tpu", .pjrt_plugin = ref_plugin()),
                 SX_FAILED_PRECONDITION,
                 "device \"cpu,tpu\": device tpu requested, but the plugin offers /device:CPU:0");
    assert_error(sx_placed_strategy(&s, .device = "cpu,pjrt:x:99", .pjrt_plugin = ref_plugin()),
                 SX_INVALID_ARGUMENT,
                 "device \"cpu,pjrt:x:99\": 99 devices of /device:CPU:0 requested, but");
    assert_error(sx_placed_strategy(&s, .device = "pjrt,cpu:0", .pjrt_plugin = ref_plugin()),
                 SX_INVALID_ARGUMENT, "\"cpu:0\" is CPU:1");
    assert_ok(sx_placed_strategy(&s, .device = "pjrt,cpu:1", .pjrt_plugin = ref_plugin()));
    sx_strategy_release(s);
}

static void test_distribute_device_list__strategy(void **state)
{
    (void)state;
    sx_strategy *s = NULL;
    sx_session_options options = {.platform.cpu.threads = 4, .seed = 9};
    assert_ok(sx_placed_strategy(&s, .device = "cpu:0,cpu:1,cpu:2", .inter_op = 2, .intra_op = 3,
                                 .micro_batches = 4, .strict_placement = true));
    assert_string_equal(sx_strategy_name(s), "placed");
    assert_string_equal(sx_strategy_text(s), "placed: on cpu:0,cpu:1,cpu:2");
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 1);
    assert_ok(sx_strategy_apply(s, &options));
    assert_string_equal(options.device, "placed");
    assert_int_equal(options.shards, 4); /* as many as micro-batches */
    assert_int_equal(options.seed, 9);
    assert_int_equal(options.platform.cpu.threads, 4);
    assert_int_equal(options.platform.placed.n_devices, 3);
    assert_int_equal(options.platform.placed.at_once, 2);
    assert_int_equal(options.platform.placed.threads, 3);
    assert_true(options.platform.placed.strict);
    options.shards = 3;
    assert_error(sx_strategy_apply(s, &options), SX_INVALID_ARGUMENT,
                 "shards is 3, but micro_batches is 4");
    options.platform.cpu.memory_limit_bytes = 1 << 20;
    options.shards = 0;
    assert_ok(sx_strategy_apply(s, &options)); /* of each */
    sx_strategy_release(s);
    assert_ok(sx_placed_strategy(&s, .device = "host,host"));
    options.shards = 0;
    assert_error(sx_strategy_apply(s, &options), SX_INVALID_ARGUMENT,
                 "memory_limit_bytes (--memory-limit) is of cpu; host,host has no limit of memory");
    sx_strategy_release(s);

    options = (sx_session_options){.seed = 9};
    assert_ok(sx_one_device_strategy(&s, .device = "cpu", .intra_op = 2)); /* as `threads` */
    assert_ok(sx_strategy_apply(s, &options));
    assert_string_equal(options.device, "cpu");
    assert_int_equal(options.platform.cpu.threads, 2);
    sx_strategy_release(s);
    assert_error(sx_mirrored_strategy(&s, .device = "cpu,cpu"), SX_INVALID_ARGUMENT,
                 "the list of devices \"cpu,cpu\" places a program on devices by the scopes of its "
                 "model, and mirrored shares batches among them: give one or the other");
    assert_error(sx_placed_strategy(&s, .device = "cpu,cpu", .replicas = 2), SX_INVALID_ARGUMENT,
                 "and replicas shares batches");
    assert_error(sx_one_device_strategy(&s, .inter_op = 2, .replicas = 2), SX_INVALID_ARGUMENT,
                 "inter_op places a program on devices");
    assert_error(sx_one_device_strategy(&s, .micro_batches = 2, .virtual_devices = 2),
                 SX_INVALID_ARGUMENT, "micro_batches places a program");
    assert_error(sx_one_device_strategy(&s, .device = "cpu:0,cpu:1"), SX_INVALID_ARGUMENT,
                 "names several devices, expected one");
    assert_error(sx_one_device_strategy(&s, .device = "pjrt:cpu:2", .inter_op = 1),
                 SX_INVALID_ARGUMENT, "names several devices, expected one");
    assert_error(sx_placed_strategy(&s, .device = "cpu,cpu", .inter_op = -1), SX_INVALID_ARGUMENT,
                 "inter_op is -1, expected 1 to 4096, or 0: one on each device");
    assert_error(sx_placed_strategy(&s, .device = "cpu,cpu", .micro_batches = -3),
                 SX_INVALID_ARGUMENT,
                 "micro_batches is -3, expected 1 to 1024, or 0: batches are not divided");
    assert_error(
        sx_placed_strategy(&s, .device = "cpu,cpu", .cross_device_ops = "reduction-to-one-device"),
        SX_INVALID_ARGUMENT, "a program that is placed on cpu,cpu has none");
    assert_error(sx_placed_strategy(&s, .device = "cpu,cpu", .pjrt_plugin = "x"),
                 SX_INVALID_ARGUMENT, "only for PJRT devices");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distribute_device_list__names),
    cmocka_unit_test(test_distribute_device_list__plugin),
    cmocka_unit_test(test_distribute_device_list__strategy),
};
SX_TEST_MAIN(tests)
