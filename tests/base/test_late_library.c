#include "harness.h"

#include "base/checked.h"
#include "base/late_library.h"

static double (*loaded_cos)(double);
static double (*loaded_sin)(double);
static int starts;

static const sx_late_function functions[] = {{"cos", &loaded_cos}, {"sin", &loaded_sin}};

static sx_status start(void)
{
    return starts++ == 0 ? sx_error(SX_UNKNOWN, "not yet") : SX_OK;
}

/* A failure to start is not the last word; a success is. */
static void test_base_late_library__is_loaded_once(void **state)
{
    (void)state;
    static sx_late_library library = {
        .soname = "libm.so.6", .functions = functions, .function_count = 2, .start = start};
    starts = 0;
    assert_error(sx_late_library_load(&library), SX_UNKNOWN, "not yet");
    assert_ok(sx_late_library_load(&library));
    assert_true(loaded_cos(0) == 1 && loaded_sin(0) == 0);
    assert_ok(sx_late_library_load(&library));
    assert_int_equal(starts, 2);
}

static void test_base_late_library__says_what_is_missing(void **state)
{
    (void)state;
    static const sx_late_function unknown[] = {{"cos", &loaded_cos}, {"sx_nowhere", &loaded_sin}};
    static const struct {
        sx_late_library library;
        const char *says;
    } rows[] = {
        {{.soname = "libsx-nowhere.so.3"}, "libsx-nowhere.so.3: cannot open"},
        {{.soname = "libm.so.6", .functions = unknown, .function_count = 2},
         "undefined symbol: sx_nowhere"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_late_library library = rows[i].library;
        library.origin = "Debian's package libx";
        library.start = start;
        starts = 0;
        assert_error(sx_late_library_load(&library), SX_FAILED_PRECONDITION, rows[i].says);
        assert_error(sx_late_library_load(&library), SX_FAILED_PRECONDITION,
                     "is part of Debian's package libx");
        assert_int_equal(starts, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_late_library__is_loaded_once),
    cmocka_unit_test(test_base_late_library__says_what_is_missing),
};
SX_TEST_MAIN(tests)
