#include "harness.h"

#include "base/arena.h"
#include "base/memory.h"

static void test_base_arena__objects_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    unsigned char *blocks[500];
    for (size_t i = 0; i < 500; i++) {
        size_t size = i * 37 % 9000;
        blocks[i] = sx_arena_alloc(&arena, size, 1);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < size; j++) {
            assert_int_equal(blocks[i][j], 0);
        }
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t j = 0; j < i * 37 % 9000; j++) {
            assert_int_equal(blocks[i][j], i & 0xff);
        }
    }
    sx_arena_deinit(&arena);
    assert_int_equal(arena.used_bytes, 0);
}

static void test_base_arena__a_large_object_keeps_the_newest_chunk(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    char *small = sx_arena_alloc(&arena, 16, 1);
    assert_non_null(sx_arena_alloc(&arena, 10 << 20, 1));
    char *next = sx_arena_alloc(&arena, 16, 1);
    assert_ptr_equal(next, small + 16);
    sx_arena_deinit(&arena);
}

/* Objects that are not zeroed leave none for the others. */
static void test_base_arena__others_stay_zeroed(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 20; i++) {
            const size_t size = i * 3000 + 1;
            unsigned char *unset = sx_arena_alloc_unset(&arena, size);
            assert_int_equal((uintptr_t)unset % 16, 0);
            memset(unset, 0xff, size);
            const unsigned char *zeroed = sx_arena_alloc(&arena, 100, 1);
            for (size_t k = 0; k < 100; k++) {
                assert_int_equal(zeroed[k], 0);
            }
        }
        sx_arena_reset(&arena);
    }
    assert_null(sx_arena_alloc_unset(&arena, SIZE_MAX - 5));
    sx_arena_deinit(&arena);
}

static void test_base_arena__keeps_its_limit(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 1024);
    assert_non_null(sx_arena_alloc(&arena, 512, 1));
    assert_null(sx_arena_alloc(&arena, 513, 1));
    assert_non_null(sx_arena_alloc(&arena, 512, 1));
    assert_null(sx_arena_alloc(&arena, 1, 1));
    assert_int_equal(arena.used_bytes, 1024);
    sx_arena_deinit(&arena);
}

static void test_base_arena__charges_its_budget(void **state)
{
    (void)state;
    sx_budget budget;
    sx_arena arena;
    sx_budget_init(&budget, "a test", 100000, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    char *large = sx_arena_alloc(&arena, 50000, 1);
    assert_non_null(large);
    assert_in_range(sx_budget_used(&budget), 50000, 60000);
    assert_false(sx_budget_refused(&budget));
    assert_null(sx_arena_alloc(&arena, 50000, 1));
    assert_true(sx_budget_refused(&budget));
    assert_non_null(sx_arena_alloc(&arena, 30000, 1));
    sx_alloc_fail_after(1);
    const size_t before = sx_budget_used(&budget);
    assert_null(sx_arena_alloc(&arena, 15000, 1)); /* within the budget, but malloc fails */
    sx_alloc_fail_after(0);
    assert_int_equal(sx_budget_used(&budget), before);
    sx_arena_discard(&arena, large, 50000);
    assert_in_range(before - sx_budget_used(&budget), 50000 - 2 * 4096, 50000); /* whole pages */
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
    assert_non_null(sx_arena_alloc(&arena, 1, 1)); /* an emptied arena keeps its budget */
    assert_true(sx_budget_used(&budget) > 0);
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
}

static void test_base_arena__refuses_impossible_sizes(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    assert_null(sx_arena_alloc(&arena, SIZE_MAX, 2));
    assert_null(sx_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(sx_arena_alloc(&arena, SIZE_MAX / 2, 1));
    assert_non_null(sx_arena_alloc(&arena, 0, 8));
    sx_alloc_fail_after(1);
    assert_null(sx_arena_alloc(&arena, 1 << 20, 1));
    sx_alloc_fail_after(0);
    sx_arena_deinit(&arena);
}

/* A test can make each object fail, also one for which a chunk has room. */
static void test_base_arena__any_object_may_fail(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    assert_non_null(sx_arena_alloc(&arena, 8, 1));
    const long before = sx_alloc_count();
    assert_non_null(sx_arena_alloc(&arena, 8, 1));
    assert_int_equal(sx_alloc_count(), before); /* counted only while one is to fail */
    sx_alloc_fail_after(2);
    assert_non_null(sx_arena_alloc(&arena, 8, 1));
    assert_null(sx_arena_strdup(&arena, "kernel"));
    assert_non_null(sx_arena_alloc(&arena, 8, 1));
    assert_int_equal(sx_alloc_count(), before + 3);
    sx_alloc_fail_after(0);
    sx_arena_deinit(&arena);
}

static void test_base_arena__copies_text(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    assert_string_equal(sx_arena_strdup(&arena, "kernel"), "kernel");
    assert_string_equal(sx_arena_strndup(&arena, "kernel", 3), "ker");
    assert_string_equal(sx_arena_strndup(&arena, "ab", 9), "ab");
    assert_string_equal(sx_arena_strndup(&arena, NULL, 0), "");
    assert_string_equal(sx_arena_printf(&arena, "%s_%d", "conv2d", 12), "conv2d_12");
    assert_memory_equal(sx_arena_memdup(&arena, "\0\1\2", 3), "\0\1\2", 3);
    sx_arena_deinit(&arena);
}

/* What comes after a mark is freed, also objects that got chunks of their own; what was before it
 * stays, and new objects are zeroed. */
static void test_base_arena__goes_back_to_a_mark(void **state)
{
    (void)state;
    sx_arena arena;
    sx_budget budget;
    sx_budget_init(&budget, "the test", 0, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    const sx_arena_mark empty = sx_arena_mark_here(&arena);
    for (int round = 0; round < 3; round++) {
        char *kept = sx_arena_strdup(&arena, "kept");
        const size_t bytes = sx_arena_capacity(&arena), used = arena.used_bytes;
        const sx_arena_mark mark = sx_arena_mark_here(&arena);
        for (size_t size = 1; size < 1 << 23; size *= 3) {
            memset(sx_arena_alloc(&arena, size, 1), 7, size);
        }
        assert_true(sx_arena_capacity(&arena) > 1 << 22);
        sx_arena_rewind(&arena, &mark);
        assert_int_equal(sx_arena_capacity(&arena), bytes);
        assert_int_equal(sx_budget_used(&budget), bytes);
        assert_int_equal(arena.used_bytes, used);
        assert_string_equal(kept, "kept");
        assert_memory_equal(sx_arena_alloc(&arena, 64, 1), (char[64]){0}, 64);
    }
    sx_arena_rewind(&arena, &empty);
    assert_int_equal(sx_arena_capacity(&arena), 0);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_arena__objects_are_zeroed_aligned_and_apart),
    cmocka_unit_test(test_base_arena__a_large_object_keeps_the_newest_chunk),
    cmocka_unit_test(test_base_arena__others_stay_zeroed),
    cmocka_unit_test(test_base_arena__keeps_its_limit),
    cmocka_unit_test(test_base_arena__charges_its_budget),
    cmocka_unit_test(test_base_arena__refuses_impossible_sizes),
    cmocka_unit_test(test_base_arena__any_object_may_fail),
    cmocka_unit_test(test_base_arena__copies_text),
    cmocka_unit_test(test_base_arena__goes_back_to_a_mark),
};

SX_TEST_MAIN(tests)
