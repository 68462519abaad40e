#include "harness.h"

#include "base/args.h"

typedef struct options {
    size_t struct_size;
    int a;
    double b;
} options;

static sx_status take(const void *args, options *out)
{
    return sx_take_args("options", args, sizeof(*out), out);
}

static void test_base_args__a_smaller_struct_gets_defaults(void **state)
{
    (void)state;
    options out;
    /* What follows the caller's struct in memory is not its. */
    const options older = {.struct_size = offsetof(options, b), .a = 7, .b = 3.5};
    assert_ok(take(&older, &out));
    assert_int_equal(out.struct_size, sizeof(out));
    assert_int_equal(out.a, 7);
    assert_true(out.b == 0);
    assert_ok(take(&(size_t){sizeof(size_t)}, &out));
    assert_int_equal(out.a, 0);
    assert_ok(take(NULL, &out));
    assert_int_equal(out.struct_size, sizeof(out));
    assert_true(out.a == 0 && out.b == 0);
}

static void test_base_args__a_larger_struct_may_set_only_what_is_known(void **state)
{
    (void)state;
    struct newer {
        options known;
        char unknown[16];
    } newer = {.known = {.struct_size = sizeof(newer), .a = 1, .b = 2}};
    options out;
    assert_ok(take(&newer, &out));
    assert_int_equal(out.struct_size, sizeof(out));
    assert_true(out.a == 1 && out.b == 2);
    newer.unknown[15] = 1;
    assert_error(take(&newer, &out), SX_UNIMPLEMENTED,
                 "options has 40 bytes and an option set in byte 39; this library knows 24");
}

static void test_base_args__a_struct_without_its_size_is_refused(void **state)
{
    (void)state;
    options out = {.a = 9};
    assert_error(take(&(options){.a = 1}, &out), SX_INVALID_ARGUMENT,
                 "options has struct_size 0: use the macro");
    assert_error(take(&(options){.struct_size = 7}, &out), SX_INVALID_ARGUMENT, "struct_size 7");
    assert_error(take(&(options){.struct_size = (size_t)-1}, &out), SX_INVALID_ARGUMENT,
                 "use the macro");
    static union {
        size_t struct_size;
        char bytes[(1 << 16) + 1];
    } huge = {1 << 16};
    assert_ok(take(&huge, &out)); /* the largest; all that is unknown in it is zero */
    assert_int_equal(out.a, 0);
    out.a = 9;
    huge.struct_size++;
    assert_error(take(&huge, &out), SX_INVALID_ARGUMENT, "struct_size 65537");
    assert_int_equal(out.a, 9);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_args__a_smaller_struct_gets_defaults),
    cmocka_unit_test(test_base_args__a_larger_struct_may_set_only_what_is_known),
    cmocka_unit_test(test_base_args__a_struct_without_its_size_is_refused),
};

SX_TEST_MAIN(tests)
