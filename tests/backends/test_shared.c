/* Blocks that executables of the cpu share. */
#include "harness.h"

#include <pthread.h>

#include "backends/cpu/shared.h"
#include "base/memory.h"

enum { BYTES = 100, ROUNDS = 2000, THREADS = 3, CONTENTS = 4 };

/* A reference to the block that is full of `content`, charged to the budget. */
static sx_status get(char content, sx_budget *memory, sx_cpu_block **out)
{
    char *data = sx_alloc_aligned(BYTES, 64);
    if (data == NULL) {
        return sx_no_memory("for a test");
    }
    memset(data, content, BYTES);
    if (memory != NULL && !sx_budget_charge(memory, BYTES)) {
        sx_free_aligned(data);
        return sx_budget_over(memory, "a block", BYTES);
    }
    return sx_cpu_block_get(data, BYTES, memory, out);
}

static void test_backends_shared__equal_blocks_are_one(void **state)
{
    (void)state;
    sx_cpu_block *a, *same, *other, *paid, *free_of_charge;
    sx_budget memory, second;
    sx_budget_init(&memory, "a test", 0, NULL);
    sx_budget_init(&second, "another", 0, NULL);
    assert_ok(get('a', &memory, &a));
    assert_ok(get('a', &memory, &same));
    assert_ptr_equal(a, same);
    assert_int_equal(sx_budget_used(&memory), BYTES);
    assert_ok(get('b', &memory, &other));
    assert_ptr_not_equal(a, other);
    assert_int_equal(sx_budget_used(&memory), 2 * BYTES);
    assert_ok(get('a', &second, &paid)); /* each budget pays for what it uses */
    assert_ok(get('a', NULL, &free_of_charge));
    assert_ptr_not_equal(a, paid);
    assert_ptr_not_equal(a, free_of_charge);
    assert_ptr_equal(a->data, paid->data); /* but it lies in memory once */
    assert_ptr_equal(a->data, free_of_charge->data);
    assert_int_equal(sx_budget_used(&second), BYTES);
    sx_cpu_block_release(a);
    assert_int_equal(same->data[BYTES - 1], 'a');
    assert_int_equal(sx_budget_used(&memory), 2 * BYTES);
    sx_cpu_block_release(same);
    assert_int_equal(sx_budget_used(&memory), BYTES);
    assert_int_equal(paid->data[BYTES - 1], 'a'); /* others keep it */
    sx_cpu_block_release(other);
    sx_cpu_block_release(paid);
    sx_cpu_block_release(free_of_charge);
    sx_cpu_block_release(NULL);
    assert_int_equal(sx_budget_used(&memory) + sx_budget_used(&second), 0);
}

/* Blocks that differ where nothing is sampled are never taken for one another. */
static void test_backends_shared__every_byte_counts(void **state)
{
    (void)state;
    enum { SIZE = 5000, BLOCKS = 40 };
    sx_cpu_block *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        char *data = sx_alloc_aligned(SIZE, 64);
        assert_non_null(data);
        memset(data, 0, SIZE);
        data[SIZE / 2 - i] = 1;
        assert_ok(sx_cpu_block_get(data, SIZE, NULL, &blocks[i]));
    }
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(blocks[i]->data[SIZE / 2 - i], 1);
        assert_int_equal(blocks[i]->data[SIZE / 2 - (i + 1) % BLOCKS], 0);
    }
    for (int i = 0; i < BLOCKS; i++) {
        sx_cpu_block_release(blocks[i]);
    }
}

typedef struct worker {
    sx_budget *memory;
    int first;
    bool right;
} worker;

/* Holds two blocks at a time. */
static void *work(void *user)
{
    worker *w = user;
    sx_cpu_block *held = NULL;
    w->right = true;
    for (int i = 0; i < ROUNDS && w->right; i++) {
        const char content = (char)('a' + (w->first + i) % CONTENTS);
        sx_cpu_block *b = NULL;
        sx_status status = get(content, w->memory, &b);
        w->right = status == SX_OK && b->data[0] == content && b->data[BYTES - 1] == content;
        sx_status_free(status);
        sx_cpu_block_release(held);
        held = b;
    }
    sx_cpu_block_release(held);
    return NULL;
}

static void test_backends_shared__threads_get_and_release(void **state)
{
    (void)state;
    sx_budget memory;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    sx_budget_init(&memory, "a test", 0, NULL);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.memory = &memory, .first = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].right);
    }
    assert_int_equal(sx_budget_used(&memory), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_shared__equal_blocks_are_one),
    cmocka_unit_test(test_backends_shared__every_byte_counts),
    cmocka_unit_test(test_backends_shared__threads_get_and_release),
};
SX_TEST_MAIN(tests)
