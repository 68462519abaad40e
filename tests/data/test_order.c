#include "harness.h"

#include "data/order.h"

static void test_data_order__permutation_is_a_bijection(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 100, 127, 128, 129, 1000, 4097};
    static bool seen[5000];
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            sx_permutation permutation;
            sx_permutation_init(&permutation, counts[i], 42, epoch);
            memset(seen, 0, sizeof(seen));
            for (int64_t p = 0; p < counts[i]; p++) {
                int64_t at = sx_permutation_at(&permutation, p);
                assert_in_range(at, 0, counts[i] - 1);
                assert_false(seen[at]);
                seen[at] = true;
            }
        }
    }
}

static void test_data_order__permutation_of_large_counts(void **state)
{
    (void)state;
    static const int64_t counts[] = {(int64_t)1 << 40, ((int64_t)1 << 61) + 12345};
    for (size_t i = 0; i < 2; i++) {
        sx_permutation permutation;
        sx_permutation_init(&permutation, counts[i], 7, 0);
        int64_t low = 0;
        for (int64_t p = 0; p < 1000; p++) {
            int64_t at = sx_permutation_at(&permutation, p);
            assert_true(at >= 0 && at < counts[i]);
            low += at < counts[i] / 2;
        }
        assert_in_range(low, 400, 600);
    }
}

/* Every element is equally often at every place: chi-square over 10 x 10 cells, 81 degrees of
 * freedom; 150 lies 5 standard deviations out. */
static void test_data_order__permutation_is_uniform(void **state)
{
    (void)state;
    enum { N = 10, SEEDS = 20000 };
    static int hits[N][N];
    memset(hits, 0, sizeof(hits));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sx_permutation permutation;
        sx_permutation_init(&permutation, N, seed, 3);
        for (int64_t p = 0; p < N; p++) {
            hits[p][sx_permutation_at(&permutation, p)]++;
        }
    }
    double chi = 0, expected = (double)SEEDS / N;
    for (int i = 0; i < N * N; i++) {
        double d = hits[i / N][i % N] - expected;
        chi += d * d / expected;
    }
    assert_true(chi < 150);
}

/* Neighbours in the input are no neighbours in the output: how often is successor kept? ~ 1 of n.
 */
static void test_data_order__permutation_breaks_neighbours(void **state)
{
    (void)state;
    enum { N = 3057 };
    int kept = 0;
    for (uint64_t epoch = 0; epoch < 100; epoch++) {
        sx_permutation permutation;
        sx_permutation_init(&permutation, N, 1, epoch);
        int64_t last = sx_permutation_at(&permutation, 0);
        for (int64_t p = 1; p < N; p++) {
            int64_t at = sx_permutation_at(&permutation, p);
            kept += at == last + 1;
            last = at;
        }
    }
    assert_in_range(kept, 50, 160); /* 100 expected */
}

static void test_data_order__permutation_depends_on_seed_and_epoch(void **state)
{
    (void)state;
    sx_permutation a, b, c, again;
    sx_permutation_init(&a, 1000, 1, 0);
    sx_permutation_init(&b, 1000, 2, 0);
    sx_permutation_init(&c, 1000, 1, 1);
    sx_permutation_init(&again, 1000, 1, 0);
    int same_b = 0, same_c = 0;
    for (int64_t p = 0; p < 1000; p++) {
        int64_t at = sx_permutation_at(&a, p);
        same_b += at == sx_permutation_at(&b, p);
        same_c += at == sx_permutation_at(&c, p);
        assert_int_equal(at, sx_permutation_at(&again, p));
    }
    assert_true(same_b < 10 && same_c < 10);
}

/* The sequence is part of every saved cursor's meaning: it must never change. */
static void test_data_order__permutation_is_stable(void **state)
{
    (void)state;
    static const int64_t expected[8] = {909, 886, 154, 248, 283, 86, 642, 586};
    sx_permutation permutation;
    sx_permutation_init(&permutation, 1000, 7, 1);
    for (int64_t p = 0; p < 8; p++) {
        assert_int_equal(sx_permutation_at(&permutation, p), expected[p]);
    }
}

static void test_data_order__buffer_shuffle_stays_within_its_buffer(void **state)
{
    (void)state;
    enum { N = 500, BUFFER = 16 };
    sx_order_op op = {.def = &sx_order_buffer, .in_count = N, .a = BUFFER, .seed = 5};
    sx_order_state order = {0};
    bool seen[N] = {false};
    int moved = 0;
    for (int64_t p = 0; p < N; p++) {
        uint64_t epoch = 2;
        int64_t at = p;
        assert_ok(op.def->at(&op, &order, &epoch, &at));
        assert_in_range(at, 0, p + BUFFER - 1); /* nothing comes before it entered the buffer */
        assert_int_equal(epoch, 2);
        assert_false(seen[at]);
        seen[at] = true;
        moved += at != p;
    }
    assert_true(moved > N / 2);
    sx_order_state_deinit(&order);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_order__permutation_is_a_bijection),
    cmocka_unit_test(test_data_order__permutation_of_large_counts),
    cmocka_unit_test(test_data_order__permutation_is_uniform),
    cmocka_unit_test(test_data_order__permutation_breaks_neighbours),
    cmocka_unit_test(test_data_order__permutation_depends_on_seed_and_epoch),
    cmocka_unit_test(test_data_order__permutation_is_stable),
    cmocka_unit_test(test_data_order__buffer_shuffle_stays_within_its_buffer),
};
SX_TEST_MAIN(tests)
