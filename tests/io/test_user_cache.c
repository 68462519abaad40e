#include "harness.h"

#include "base/memory.h"
#include "io/user_cache.h"

/* The value of a variable, or none. */
static void set(const char *name, const char *value)
{
    assert_int_equal(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* XDG's rules: relative paths count as unset. */
static void test_io_user_cache__follows_xdg(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *home, *expected; /* NULL: there is none */
    } rows[] = {
        {"/c", "/h", "/c/sextant/x"},
        {"/c", NULL, "/c/sextant/x"},
        {NULL, "/h", "/h/.cache/sextant/x"},
        {"", "/h", "/h/.cache/sextant/x"},
        {"relative", "/h", "/h/.cache/sextant/x"},
        {NULL, NULL, NULL},
        {NULL, "", NULL},
        {"relative", "relative", NULL},
    };
    char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    cache = cache != NULL ? strdup(cache) : NULL;
    home = home != NULL ? strdup(home) : NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *dir = NULL;
        set("XDG_CACHE_HOME", rows[i].cache);
        set("HOME", rows[i].home);
        if (rows[i].expected != NULL) {
            assert_ok(sx_user_cache("x", &dir));
            assert_string_equal(dir, rows[i].expected);
            sx_free(dir);
        } else {
            assert_error(sx_user_cache("x", &dir), SX_NOT_FOUND,
                         "neither XDG_CACHE_HOME nor HOME is set");
        }
    }
    set("XDG_CACHE_HOME", cache);
    set("HOME", home);
    free(cache);
    free(home);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_user_cache__follows_xdg),
};
SX_TEST_MAIN(tests)
