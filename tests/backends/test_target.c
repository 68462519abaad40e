/* Names of targets of `sextant compile`. */
#include "harness.h"

#include "backends/pjrt/target.h"

typedef struct name_case {
    const char *text, *topology, *type;
    int chips, host_chips, devices;
} name_case;

static void test_backends_target__names_as_cloud_users_write_them(void **state)
{
    (void)state;
    static const name_case cases[] = {
        {"tpu:v5e:2x2", "v5e:2x2", "v5litepod-4", 4, 4, 4},
        {"v5e:4x4", "v5e:4x4", "v5litepod-16", 16, 4, 16},
        {"v5litepod-4", "v5e:2x2", "v5litepod-4", 4, 4, 4},
        {"v5litepod-1", "v5e:1x1", "v5litepod-1", 1, 1, 1},
        {"v5e-8", "v5e:2x4", "v5litepod-8", 8, 8, 8},
        {"v6e-8", "v6e:2x4", "v6e-8", 8, 8, 8},
        {"tpu:v6e-256", "v6e:16x16", "v6e-256", 256, 4, 256},
        {"v4-8", "v4:2x2x1", "v4-8", 4, 4, 4},
        {"v4-16", "v4:2x2x2", "v4-16", 8, 4, 8},
        {"v4:2x2x2", "v4:2x2x2", "v4-16", 8, 4, 8},
        {"v4:2x2", "v4:2x2x1", "v4-8", 4, 4, 4},
        {"v5p-8", "v5p:2x2x1", "v5p-8", 4, 4, 4},
        {"v5p-64", "v5p:2x4x4", "v5p-64", 32, 4, 32},
        {"v2-8", "v2:2x2", "v2-8", 4, 4, 8},
        {"v3-32", "v3:4x4", "v3-32", 16, 4, 32},
        {"tpu7x-8", "tpu7x:2x2x1", "tpu7x-8", 4, 4, 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_target t;
        assert_ok(sx_target_parse(cases[i].text, &t));
        assert_string_equal(t.topology, cases[i].topology);
        assert_string_equal(t.type, cases[i].type);
        assert_int_equal(t.n_chips, cases[i].chips);
        assert_int_equal(t.devices, cases[i].devices);
        assert_int_equal(t.host_chips[0] * t.host_chips[1] * t.host_chips[2], cases[i].host_chips);
    }
}

static void test_backends_target__the_cpu_plugin(void **state)
{
    (void)state;
    sx_target t;
    assert_ok(sx_target_parse("pjrt-cpu", &t));
    assert_null(t.tpu);
    assert_int_equal(t.devices, 1);
    assert_ok(sx_target_parse("pjrt-cpu:4", &t));
    assert_int_equal(t.devices, 4);
    assert_error(sx_target_parse("pjrt-cpu:0", &t), SX_INVALID_ARGUMENT, "N from 1 to 64");
    assert_error(sx_target_parse("pjrt-cpu4", &t), SX_INVALID_ARGUMENT, "N from 1 to 64");
}

static void test_backends_target__wrong_names_say_what_there_is(void **state)
{
    (void)state;
    sx_target t;
    assert_error(sx_target_parse("v5lite-4", &t), SX_INVALID_ARGUMENT, "did you mean");
    assert_error(sx_target_parse("v5e", &t), SX_INVALID_ARGUMENT, "expected a TPU such as v5e:2x2");
    assert_error(sx_target_parse("", &t), SX_INVALID_ARGUMENT, "unknown target \"\"");
    assert_error(sx_target_parse("v5litepod-3", &t), SX_INVALID_ARGUMENT, "must be a power of two");
    assert_error(sx_target_parse("v4-7", &t), SX_INVALID_ARGUMENT, "cores (two per chip)");
    assert_error(sx_target_parse("v4-4", &t), SX_INVALID_ARGUMENT, "at least 8");
    assert_error(sx_target_parse("v5e:2x", &t), SX_INVALID_ARGUMENT, "the chips along each axis");
    assert_error(sx_target_parse("v5e:2x2x2", &t), SX_INVALID_ARGUMENT, "as v5e:4x4");
    assert_error(sx_target_parse("v5e:99999x9", &t), SX_INVALID_ARGUMENT, "at most 16384");
    assert_error(sx_target_parse("v5e-99999999999999999999", &t), SX_INVALID_ARGUMENT, "power");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_target__names_as_cloud_users_write_them),
    cmocka_unit_test(test_backends_target__the_cpu_plugin),
    cmocka_unit_test(test_backends_target__wrong_names_say_what_there_is),
};
SX_TEST_MAIN(tests)
