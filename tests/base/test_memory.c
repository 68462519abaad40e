#include "harness.h"

#include "base/memory.h"

static void test_base_memory__zeroes_and_checks_products(void **state)
{
    (void)state;
    unsigned char *block = sx_alloc(100, 10);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(block[i], 0);
    }
    assert_null(sx_realloc(block, SIZE_MAX, 2));
    block = sx_realloc(block, 2000, 1);
    assert_non_null(block);
    sx_free(block);
    assert_null(sx_alloc(SIZE_MAX / 2, 4));
    block = sx_alloc(0, 8);
    assert_non_null(block);
    sx_free(block);
}

static void test_base_memory__aligns(void **state)
{
    (void)state;
    for (size_t align = 16; align <= 4096; align *= 2) {
        void *block = sx_alloc_aligned(100, align);
        assert_int_equal((uintptr_t)block % align, 0);
        sx_free_aligned(block);
    }
}

static void test_base_memory__fails_the_nth_once(void **state)
{
    (void)state;
    sx_alloc_fail_after(2);
    char *first = sx_strdup("a");
    char *second = sx_strdup("b");
    char *third = sx_strdup("c");
    sx_alloc_fail_after(0);
    assert_string_equal(first, "a");
    assert_null(second);
    assert_string_equal(third, "c");
    sx_free(first);
    sx_free(third);
}

static void test_base_memory__counts(void **state)
{
    (void)state;
    long before = sx_alloc_count();
    sx_free(sx_alloc(1, 1));
    sx_free_aligned(sx_alloc_aligned(64, 64));
    sx_free(sx_realloc(NULL, 1, 1));
    assert_int_equal(sx_alloc_count() - before, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_memory__zeroes_and_checks_products),
    cmocka_unit_test(test_base_memory__aligns),
    cmocka_unit_test(test_base_memory__fails_the_nth_once),
    cmocka_unit_test(test_base_memory__counts),
};

SX_TEST_MAIN(tests)
