#include "../backends/pjrt_plugin.h"
#include "cloud.h"

#include <sextant/distribute.h>

static void test_distribute_devices__lists_processors(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    assert_ok(sx_list_devices(&list, .type = NULL));
    assert_true(list->n_devices >= 2);
    const sx_device_info *d = &list->devices[0];
    assert_string_equal(d->device, "cpu");
    assert_string_equal(d->name, "/device:CPU:0");
    assert_string_equal(d->full_name, "/job:localhost/replica:0/task:0/device:CPU:0");
    assert_string_equal(d->type, "CPU");
    assert_true(d->kind[0] != '\0');
    assert_true(d->memory_bytes > 1 << 20);
    assert_int_equal(d->n_coords, 0);
    assert_int_equal(d->core_on_chip, -1);
    sx_device_list_free(list);
    sx_device_list_free(NULL);
}

static void test_distribute_devices__what_is_missing_says_why(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    unsetenv("VIRTUAL_ENV");
    assert_ok(sx_list_devices(&list, .type = "tpu"));
    assert_int_equal(list->n_devices, 0);
    assert_int_equal(list->n_missing, 1);
    assert_string_equal(list->missing[0].device, "tpu");
    assert_non_null(strstr(list->missing[0].reason, "pip install libtpu"));
    assert_int_equal(list->tpu_cores, 0);
    sx_device_list_free(list);
    assert_error(sx_list_devices(&list, .device = "tpu"), SX_UNAVAILABLE, "pip install libtpu");
    assert_error(sx_list_devices(&list, .type = "NPU"), SX_INVALID_ARGUMENT,
                 "expected CPU, GPU or TPU");
    assert_error(sx_list_devices(&list, .device = "tpi"), SX_INVALID_ARGUMENT, "\"tpu\"");
    assert_error(sx_list_devices(&list, .virtual_devices = 5000), SX_INVALID_ARGUMENT, "5000");
    assert_error(sx_list_devices_at(&(sx_list_devices_args){0}, &list), SX_INVALID_ARGUMENT,
                 "use the macro");
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/no/such.so,x", 1);
    assert_ok(sx_list_devices(&list, .type = NULL));
    const sx_missing_device *last = &list->missing[list->n_missing - 1];
    assert_string_equal(last->device, "pjrt:mine");
    assert_non_null(strstr(last->reason, "/no/such.so"));
    sx_device_list_free(list);
}

static void test_distribute_devices__virtual_ones_of_cpu(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    assert_ok(sx_list_devices(&list, .device = "cpu", .virtual_devices = 20));
    assert_int_equal(list->n_devices, 20);
    assert_string_equal(list->devices[19].name, "/device:CPU:19");
    assert_non_null(strstr(list->devices[3].kind, "virtual, part 4 of 20"));
    sx_device_list_free(list);
}

static void test_distribute_devices__of_a_plugin(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    assert_ok(sx_list_devices(&list, .pjrt_plugin = ref_plugin(), .virtual_devices = 3));
    assert_int_equal(list->n_devices, 3);
    assert_string_equal(list->devices[2].full_name, "/job:localhost/replica:0/task:0/device:CPU:2");
    assert_string_equal(list->devices[2].device, "pjrt");
    sx_device_list_free(list);
    assert_ok(sx_list_devices(&list, .pjrt_plugin = ref_plugin(), .type = "GPU"));
    assert_int_equal(list->n_devices, 0);
    sx_device_list_free(list);
}

static void test_distribute_devices__a_plugin_of_another_type(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    unsetenv("SX_PJRT_REF");
    assert_error(sx_list_devices(&list, .device = "tpu", .pjrt_plugin = ref_plugin()),
                 SX_FAILED_PRECONDITION,
                 "device tpu requested, but the plugin offers /device:CPU:0");
    assert_error(sx_list_devices(&list, .device = "cuda", .pjrt_plugin = ref_plugin()),
                 SX_FAILED_PRECONDITION, "use --device pjrt");
    assert_ok(sx_list_devices(&list, .device = "pjrt:cpu", .pjrt_plugin = ref_plugin()));
    sx_device_list_free(list);
}

/* Our own plugin, dressed as a TPU v5 lite of eight cores. */
static void test_distribute_devices__of_a_tpu(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    setenv("SX_PJRT_REF", "devices=8,platform=tpu,kind=TPU v5 lite,limit=1000000", 1);
    assert_ok(sx_list_devices(&list, .device = "tpu", .pjrt_plugin = ref_plugin()));
    assert_int_equal(list->n_devices, 8);
    assert_int_equal(list->tpu_cores, 8);
    assert_int_equal(list->tpu_workers, 1);
    assert_int_equal(list->tpu_cores_per_worker, 8);
    const sx_device_info *d = &list->devices[5];
    assert_string_equal(d->name, "/device:TPU:5");
    assert_string_equal(d->full_name, "/job:localhost/replica:0/task:0/device:TPU:5");
    assert_string_equal(d->type, "TPU");
    assert_string_equal(d->kind, "TPU v5 lite");
    assert_int_equal(d->memory_bytes, 1000000);
    assert_int_equal(d->n_coords, 3);
    assert_int_equal(d->coords[0], 2);
    assert_int_equal(d->coords[1], 1);
    assert_int_equal(d->coords[2], 0);
    sx_device_list_free(list);
    assert_ok(sx_list_devices(&list, .pjrt_plugin = ref_plugin(), .type = "CPU"));
    assert_int_equal(list->n_devices, 0);
    sx_device_list_free(list);
    sx_strategy *s = NULL;
    assert_ok(sx_tpu_strategy(&s, .tpu = "local", .pjrt_plugin = ref_plugin()));
    assert_int_equal(sx_strategy_num_replicas_in_sync(s), 8);
    sx_strategy_release(s);
    unsetenv("SX_PJRT_REF");
}

/* A plugin that cannot be opened is missing, with its words. */
static void test_distribute_devices__a_plugin_that_fails(void **state)
{
    (void)state;
    sx_device_list *list = NULL;
    char named[5000];
    snprintf(named, sizeof(named), "tpu:%s", ref_plugin());
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", named, 1);
    setenv("SX_PJRT_REF_FAULT", "client:0:the TPU is already in use", 1);
    assert_ok(sx_list_devices(&list, .type = "TPU"));
    assert_int_equal(list->n_devices, 0);
    assert_non_null(strstr(list->missing[0].reason, "the TPU is already in use"));
    sx_device_list_free(list);
    unsetenv("SX_PJRT_REF_FAULT");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, cloud_setup, cloud_teardown)
static const struct CMUnitTest tests[] = {
    TEST(test_distribute_devices__lists_processors),
    TEST(test_distribute_devices__what_is_missing_says_why),
    TEST(test_distribute_devices__virtual_ones_of_cpu),
    TEST(test_distribute_devices__of_a_plugin),
    TEST(test_distribute_devices__a_plugin_of_another_type),
    TEST(test_distribute_devices__of_a_tpu),
    TEST(test_distribute_devices__a_plugin_that_fails),
};
SX_TEST_MAIN(tests)
