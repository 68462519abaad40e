#include "torture.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/pool.h"

/* All that this layer can allocate, in one call that cleans up after itself. */
static sx_status use_everything(void *user)
{
    (void)user;
    sx_status status = SX_OK;
    sx_pool *pool = NULL;
    sx_arena arena;
    sx_buf buf;
    sx_map map;
    sx_arena_init(&arena, 0);
    sx_buf_init(&buf, 0);
    sx_map_init(&map);
    for (int i = 0; i < 40; i++) {
        char *key = sx_arena_printf(&arena, "conv2d_%d/kernel", i);
        if (key == NULL) {
            status = sx_error(SX_RESOURCE_EXHAUSTED, "no memory for key %d", i);
            goto done;
        }
        SX_TRY_GOTO(status, sx_map_put(&map, key, key), done);
        sx_buf_printf(&buf, "%s\n", key);
    }
    SX_TRY_GOTO(status, sx_buf_status(&buf), done);
    SX_TRY_GOTO(status, sx_pool_create(3, &pool), done);
done:
    sx_pool_destroy(pool);
    sx_map_deinit(&map);
    sx_buf_deinit(&buf);
    sx_arena_deinit(&arena);
    return sx_status_annotate(status, __FILE__, __LINE__, "using everything");
}

static void test_base_torture__each_failing_allocation_is_survived(void **state)
{
    (void)state;
    assert_in_range(sx_torture(use_everything, NULL), 50, 1000);
}

static sx_status needs_nothing(void *user)
{
    *(int *)user += 1;
    return SX_OK;
}

static void test_base_torture__ends_when_nothing_is_left_to_fail(void **state)
{
    (void)state;
    int calls = 0;
    assert_int_equal(sx_torture(needs_nothing, &calls), 0);
    assert_int_equal(calls, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_torture__each_failing_allocation_is_survived),
    cmocka_unit_test(test_base_torture__ends_when_nothing_is_left_to_fail),
};

SX_TEST_MAIN(tests)
