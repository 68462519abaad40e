#include "torture.h"

#include "proto/sequence_example.h"

/* context {"n": [5], "t": ["a", ""]}, lists {"v": [[1, 2], [3, 4]], "x": [["q"], []], "e": []} */
static const char golden[] =
    "\x0a\x1a\x0a\x0a\x0a\x01\x6e\x12\x05\x1a\x03\x0a\x01\x05\x0a\x0c\x0a\x01"
    "\x74\x12\x07\x0a\x05\x0a\x01\x61\x0a\x00\x12\x38\x0a\x21\x0a\x01\x76\x12"
    "\x1c\x0a\x0c\x12\x0a\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x0a\x0c\x12"
    "\x0a\x0a\x08\x00\x00\x40\x40\x00\x00\x80\x40\x0a\x0e\x0a\x01\x78\x12\x09"
    "\x0a\x05\x0a\x03\x0a\x01\x71\x0a\x00\x0a\x03\x0a\x01\x65";
static const sx_bytes golden_bytes = {golden, sizeof golden - 1};

static size_t count_values(const sx_example_feature *feature)
{
    sx_bytes strings[64];
    float floats[64];
    int64_t ints[64];
    return sx_feature_bytes(feature, strings, 64) + sx_feature_floats(feature, floats, 64) +
           sx_feature_ints(feature, ints, 64);
}

static void test_proto_sequence_example__reads_context_and_lists(void **state)
{
    (void)state;
    sx_sequence_example e;
    sx_example_feature f;
    float pair[3];
    sx_sequence_example_init(&e);
    for (int round = 0; round < 2; round++) {
        assert_ok(sx_sequence_example_parse(&e, golden_bytes));
        int64_t n = 0;
        assert_ok(sx_example_get_int(&e.context, "n", &n));
        assert_int_equal(n, 5);
        assert_int_equal(sx_example_find(&e.context, "t")->count, 2);
        assert_int_equal(e.count, 3);
        assert_null(sx_sequence_example_find(&e, "n"));
        assert_int_equal(sx_sequence_example_find(&e, "e")->count, 0);
        const sx_feature_list *v = sx_sequence_example_find(&e, "v");
        assert_int_equal(v->count, 2);
        sx_bytes rest = v->wire;
        for (int step = 0; step < 2; step++) {
            assert_true(sx_feature_list_next(&rest, &f));
            assert_int_equal(sx_feature_floats(&f, pair, 3), 2);
            assert_true(pair[0] == (float)(2 * step + 1) && pair[1] == (float)(2 * step + 2));
        }
        assert_false(sx_feature_list_next(&rest, &f));
        const sx_feature_list *x = sx_sequence_example_find(&e, "x");
        rest = x->wire;
        assert_true(sx_feature_list_next(&rest, &f) && f.kind == SX_FEATURE_BYTES);
        assert_true(sx_feature_list_next(&rest, &f) && f.kind == SX_FEATURE_EMPTY);
        assert_false(sx_feature_list_next(&rest, &f));
    }
    sx_sequence_example_deinit(&e);
}

static void test_proto_sequence_example__keeps_the_last_of_equal_names(void **state)
{
    (void)state;
    /* lists {"v": [[]], "v": [[], []]} */
    static const char twice[] = "\x12\x12\x0a\x07\x0a\x01\x76\x12\x02\x0a\x00"
                                "\x0a\x09\x0a\x01\x76\x12\x04\x0a\x00\x0a\x00";
    sx_sequence_example e;
    sx_sequence_example_init(&e);
    char record[sizeof twice];
    memcpy(record, twice, sizeof twice);
    record[1] = (char)(sizeof twice - 3);
    assert_ok(sx_sequence_example_parse(&e, (sx_bytes){record, sizeof twice - 1}));
    assert_int_equal(e.count, 1);
    assert_int_equal(e.lists[0].count, 2);
    sx_sequence_example_deinit(&e);
}

/* The record is on the heap, exactly as long as it is: a sanitizer finds overruns. */
static void test_proto_sequence_example__flips_and_cuts(void **state)
{
    (void)state;
    sx_sequence_example e;
    sx_sequence_example_init(&e);
    const size_t size = golden_bytes.size;
    size_t parsed = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        for (size_t cut = bit == 0 ? 0 : size; cut <= size; cut++) {
            uint8_t *record = malloc(cut == 0 ? 1 : cut);
            memcpy(record, golden, cut);
            if (bit / 8 < cut) {
                record[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            sx_status status = sx_sequence_example_parse(&e, (sx_bytes){record, cut});
            parsed += status == SX_OK;
            sx_status_free(status);
            for (size_t i = 0; i < e.count; i++) {
                sx_bytes rest = e.lists[i].wire;
                sx_example_feature f;
                size_t n = 0;
                for (; sx_feature_list_next(&rest, &f); n++) {
                    assert_int_equal(count_values(&f), f.count);
                }
                assert_int_equal(n, e.lists[i].count);
            }
            free(record);
        }
    }
    assert_in_range(parsed, 50, 8 * size);
    sx_sequence_example_deinit(&e);
}

static sx_status read_golden(void *user)
{
    (void)user;
    sx_sequence_example e;
    sx_sequence_example_init(&e);
    sx_status status = sx_sequence_example_parse(&e, golden_bytes);
    sx_sequence_example_deinit(&e);
    return status;
}

static void test_proto_sequence_example__survives_failing_allocations(void **state)
{
    (void)state;
    assert_in_range(sx_torture(read_golden, NULL), 2, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_proto_sequence_example__reads_context_and_lists),
    cmocka_unit_test(test_proto_sequence_example__keeps_the_last_of_equal_names),
    cmocka_unit_test(test_proto_sequence_example__flips_and_cuts),
    cmocka_unit_test(test_proto_sequence_example__survives_failing_allocations),
};
SX_TEST_MAIN(tests)
