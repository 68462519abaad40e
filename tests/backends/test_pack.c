/* pack.h: nothing that is alive at once overlaps, and little more memory is used than that. */
#include "backends/cpu/pack.h"
#include "harness.h"

enum { MOST = 600 };

/* The bytes of a packing that is checked. */
static int64_t packed(sx_cpu_life *lives, int n)
{
    sx_arena arena;
    int64_t bytes, end = 0;
    sx_arena_init(&arena, 0);
    assert_ok(sx_cpu_pack_lives(lives, n, 0, &arena, &bytes));
    for (int i = 0; i < n; i++) {
        const sx_cpu_life *a = &lives[i];
        assert_true(a->offset >= 0 && a->offset % 64 == 0);
        end = a->offset + a->bytes > end ? a->offset + a->bytes : end;
        for (int j = 0; j < i; j++) {
            const sx_cpu_life *b = &lives[j];
            const bool meet = a->first <= b->last && b->first <= a->last;
            const bool overlap =
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            assert_false(meet && overlap);
        }
    }
    assert_int_equal(end, bytes);
    sx_arena_deinit(&arena);
    return bytes;
}

static int64_t least(const sx_cpu_life *lives, int n, int *out_step)
{
    sx_arena arena;
    int64_t bytes;
    sx_arena_init(&arena, 0);
    assert_ok(sx_cpu_most_alive(lives, n, &arena, &bytes, out_step));
    sx_arena_deinit(&arena);
    return bytes;
}

static void test_backends_pack__most_alive(void **state)
{
    const sx_cpu_life lives[] = {{.bytes = 64, .first = 0, .last = 2},
                                 {.bytes = 128, .first = 2, .last = 3},
                                 {.bytes = 64, .first = 3, .last = 9}};
    int step = -1;
    (void)state;
    assert_int_equal(least(lives, 3, &step), 192);
    assert_int_equal(step, 2);
    assert_int_equal(least(lives, 0, NULL), 0);
    assert_int_equal(packed(&(sx_cpu_life){0}, 0), 0);
}

/* The first block of DenseNet121: a chain of growing values, each made from the one before. From
 * the bottom alone, 5.6 % would be lost, in the order of their sizes 11 %. */
static void test_backends_pack__growing_chain(void **state)
{
    static const int blocks[][3] = {
        {6, 0, 4},    {32, 4, 5},   {33, 5, 6},   {8, 6, 15},   {8, 9, 13},   {16, 13, 14},
        {4, 14, 15},  {12, 15, 24}, {12, 18, 22}, {16, 22, 23}, {4, 23, 24},  {16, 24, 33},
        {16, 27, 31}, {16, 31, 32}, {4, 32, 33},  {20, 33, 42}, {20, 36, 40}, {16, 40, 41},
        {4, 41, 42},  {24, 42, 51}, {24, 45, 49}, {16, 49, 50}, {4, 50, 51},  {28, 51, 60},
        {28, 54, 58}, {16, 58, 59}, {4, 59, 60},  {32, 60, 64}};
    enum { N = sizeof(blocks) / sizeof(blocks[0]) };
    sx_cpu_life lives[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        lives[i] =
            (sx_cpu_life){.bytes = 64 * blocks[i][0], .first = blocks[i][1], .last = blocks[i][2]};
    }
    assert_int_equal(packed(lives, N), least(lives, N, NULL));
}

/* A network's training step: values of the forward pass live until the backward pass reads them. */
static void test_backends_pack__there_and_back(void **state)
{
    sx_cpu_life lives[MOST];
    int n = 0;
    (void)state;
    for (int k = 0; k < 100; k++) {
        const int64_t bytes = 64 * (int64_t)(1 + 5000 / (k / 10 + 1));
        lives[n++] = (sx_cpu_life){.bytes = bytes, .first = k, .last = 200 - k};
        lives[n++] = (sx_cpu_life){.bytes = bytes, .first = 200 - k, .last = 201 - k};
        lives[n++] = (sx_cpu_life){.bytes = bytes / 128 * 64 + 64, .first = k, .last = k};
    }
    const int64_t bound = least(lives, n, NULL);
    assert_true(packed(lives, n) <= bound + bound / 20);
}

/* Any lives are packed soundly, and the same each time. */
static void test_backends_pack__random(void **state)
{
    sx_cpu_life lives[MOST], again[MOST];
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < MOST; i++) {
            random = random * 1664525U + 1013904223U;
            const int first = (int)(random >> 8) % 300;
            lives[i] = (sx_cpu_life){.bytes = 64 * (int64_t)(1 + random % (round + 2)),
                                     .first = first,
                                     .last = first + (int)(random >> 20) % (1 + round)};
            again[i] = lives[i];
        }
        const int64_t bytes = packed(lives, MOST);
        assert_true(bytes >= least(lives, MOST, NULL));
        assert_int_equal(packed(again, MOST), bytes);
        for (int i = 0; i < MOST; i++) {
            assert_int_equal(lives[i].offset, again[i].offset);
        }
    }
}

/* Around blocks that stay where they are. */
static void test_backends_pack__around_fixed(void **state)
{
    sx_cpu_life lives[] = {{.bytes = 64, .first = 5, .last = 6},
                           {.bytes = 128, .first = 0, .last = 9},
                           {.bytes = 128, .first = 0, .last = 4, .offset = 0},
                           {.bytes = 64, .first = 0, .last = 9, .offset = 256}};
    sx_arena arena;
    int64_t bytes;
    (void)state;
    sx_arena_init(&arena, 0);
    assert_ok(sx_cpu_pack_lives(lives, 2, 2, &arena, &bytes));
    sx_arena_deinit(&arena);
    assert_int_equal(lives[0].offset, 0);
    assert_int_equal(lives[1].offset, 128);
    assert_int_equal(lives[3].offset, 256);
    assert_int_equal(bytes, 320);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_pack__most_alive),
    cmocka_unit_test(test_backends_pack__growing_chain),
    cmocka_unit_test(test_backends_pack__there_and_back),
    cmocka_unit_test(test_backends_pack__random),
    cmocka_unit_test(test_backends_pack__around_fixed),
};
SX_TEST_MAIN(tests)
