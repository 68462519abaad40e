#include "torture.h"

#include "proto/example.h"

/* {"b": ["hi", "!"], "f": [0.5, -2.0], "i": [1, 300, -1]} */
static const char golden[] = "\x0a\x3b"
                             "\x0a\x0e\x0a\x01\x62\x12\x09\x0a\x07\x0a\x02\x68\x69\x0a\x01\x21"
                             "\x0a\x11\x0a\x01\x66\x12\x0c\x12\x0a\x0a\x08\x00\x00\x00\x3f\x00\x00"
                             "\x00\xc0\x0a\x16\x0a\x01\x69\x12\x11\x1a\x0f\x0a\x0d\x01\xac\x02\xff"
                             "\xff\xff\xff\xff\xff\xff\xff\xff\x01";
static const sx_bytes golden_bytes = {golden, sizeof golden - 1};

static void add_golden(sx_example_writer *writer)
{
    const sx_bytes strings[] = {{"hi", 2}, {"!", 1}};
    const float floats[] = {0.5f, -2.0f};
    const int64_t ints[] = {1, 300, -1};
    sx_example_add_ints(writer, "i", ints, 3);
    sx_example_add_bytes(writer, "b", strings, 2);
    sx_example_add_floats(writer, "f", floats, 2);
}

static void test_proto_example__writes_the_reference(void **state)
{
    (void)state;
    sx_example_writer writer;
    sx_buf out;
    sx_example_writer_init(&writer);
    sx_buf_init(&out, 0);
    for (int round = 0; round < 2; round++) {
        add_golden(&writer);
        sx_buf_reset(&out);
        assert_ok(sx_example_finish(&writer, &out));
        assert_int_equal(out.size, 61);
        assert_memory_equal(out.data, golden, 61);
    }
    sx_buf_reset(&out);
    assert_ok(sx_example_finish(&writer, &out));
    assert_int_equal(out.size, 2); /* an empty Features */
    assert_memory_equal(out.data, "\x0a\x00", 2);
    sx_buf_reset(&out);
    sx_example_add_bytes(&writer, "b", NULL, 0);
    sx_example_add_floats(&writer, "f", NULL, 0);
    sx_example_add_ints(&writer, "i", NULL, 0);
    assert_ok(sx_example_finish(&writer, &out));
    static const char empties[] = "\x0a\x1b"
                                  "\x0a\x07\x0a\x01\x62\x12\x02\x0a\x00"
                                  "\x0a\x07\x0a\x01\x66\x12\x02\x12\x00"
                                  "\x0a\x07\x0a\x01\x69\x12\x02\x1a\x00";
    assert_int_equal(out.size, sizeof empties - 1);
    assert_memory_equal(out.data, empties, out.size);
    sx_buf_deinit(&out);
    sx_example_writer_deinit(&writer);
}

static void test_proto_example__refuses_a_name_twice(void **state)
{
    (void)state;
    sx_example_writer writer;
    sx_buf out;
    sx_example_writer_init(&writer);
    sx_buf_init(&out, 0);
    sx_example_add_int(&writer, "a", 1);
    sx_example_add_text(&writer, "b", "x");
    sx_example_add_text(&writer, "a", "x");
    assert_error(sx_example_finish(&writer, &out), SX_ALREADY_EXISTS, "'a' was added twice");
    sx_example_add_int(&writer, "a", 1);
    assert_ok(sx_example_finish(&writer, &out));
    sx_buf_deinit(&out);
    sx_example_writer_deinit(&writer);
}

static void test_proto_example__reads_the_reference(void **state)
{
    (void)state;
    sx_example example;
    sx_example_init(&example);
    assert_ok(sx_example_parse(&example, golden_bytes));
    assert_int_equal(example.count, 3);
    sx_bytes strings[3];
    float floats[3];
    int64_t ints[4];
    assert_int_equal(sx_feature_bytes(sx_example_find(&example, "b"), strings, 3), 2);
    assert_memory_equal(strings[0].data, "hi", 2);
    assert_int_equal(strings[1].size, 1);
    assert_int_equal(sx_feature_floats(sx_example_find(&example, "f"), floats, 3), 2);
    assert_true(floats[0] == 0.5f && floats[1] == -2.0f);
    assert_int_equal(sx_feature_ints(sx_example_find(&example, "i"), ints, 4), 3);
    assert_true(ints[0] == 1 && ints[1] == 300 && ints[2] == -1);
    assert_int_equal(sx_feature_ints(sx_example_find(&example, "i"), ints, 2), 2);
    assert_int_equal(sx_feature_ints(sx_example_find(&example, "f"), ints, 2), 0);
    assert_null(sx_example_find(&example, "x"));
    assert_null(sx_example_find(&example, ""));
    sx_example_deinit(&example);
}

/* Parses one feature "i" whose Feature message is `feature`. */
static sx_status parse_one(sx_example *example, const char *feature, size_t size)
{
    static uint8_t record[200];
    uint8_t head[] = {0x0a, (uint8_t)(size + 7), 0x0a, (uint8_t)(size + 5), 0x0a, 1, 'i',
                      0x12, (uint8_t)size};
    memcpy(record, head, sizeof head);
    memcpy(record + sizeof head, feature, size);
    return sx_example_parse(example, (sx_bytes){record, sizeof head + size});
}

static void test_proto_example__accepts_every_way_to_write_a_list(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } ways[] = {
        {"\x1a\x04\x0a\x02\x05\x06", 6},             /* packed */
        {"\x1a\x04\x08\x05\x08\x06", 6},             /* unpacked */
        {"\x1a\x05\x0a\x01\x05\x08\x06", 7},         /* mixed */
        {"\x1a\x02\x08\x05\x1a\x03\x0a\x01\x06", 9}, /* two lists: they go on */
        {"\x12\x00\x1a\x04\x0a\x02\x05\x06", 8},     /* another kind before: replaced */
        {"\x1a\x02\x08\x09\x12\x00\x1a\x04\x0a\x02\x05\x06", 12},
        {"\x22\x01x\x1a\x07\x12\x01x\x0a\x02\x05\x06\x22\x01y", 15}, /* unknown fields */
        {"\x1a\x06\x0a\x00\x0a\x02\x05\x06", 8},                     /* an empty piece */
    };
    sx_example example;
    sx_example_init(&example);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int64_t values[3] = {0};
        assert_ok(parse_one(&example, ways[i].bytes, ways[i].size));
        assert_int_equal(example.features[0].kind, SX_FEATURE_INTS);
        assert_int_equal(example.features[0].count, 2);
        assert_int_equal(sx_feature_ints(&example.features[0], values, 3), 2);
        assert_true(values[0] == 5 && values[1] == 6);
    }
    float f[3];
    assert_ok(parse_one(&example, "\x12\x0b\x0a\x04\x00\x00\x80\x3f\x0d\x00\x00\x00\x40", 13));
    assert_int_equal(sx_feature_floats(&example.features[0], f, 3), 2);
    assert_true(f[0] == 1.0f && f[1] == 2.0f);
    assert_ok(parse_one(&example, "", 0));
    assert_int_equal(example.features[0].kind, SX_FEATURE_EMPTY);
    assert_int_equal(example.features[0].count, 0);
    sx_example_deinit(&example);
}

static void test_proto_example__last_of_equal_names_wins(void **state)
{
    (void)state;
    static const char record[] = "\x0a\x0b\x0a\x09\x0a\x01z\x12\x04\x1a\x02\x08\x01"
                                 "\x0a\x16\x0a\x09\x0a\x01"
                                 "a\x12\x04\x1a\x02\x08\x02"
                                 "\x0a\x09\x0a\x01z\x12\x04\x1a\x02\x08\x03";
    sx_example example;
    int64_t value = 0;
    sx_example_init(&example);
    assert_ok(sx_example_parse(&example, (sx_bytes){record, sizeof record - 1}));
    assert_int_equal(example.count, 2);
    assert_ok(sx_example_get_int(&example, "z", &value));
    assert_int_equal(value, 3);
    assert_ok(sx_example_get_int(&example, "a", &value));
    assert_int_equal(value, 2);
    sx_example_deinit(&example);
}

static void test_proto_example__single_values(void **state)
{
    (void)state;
    sx_example_writer writer;
    sx_example example;
    sx_buf out;
    sx_example_writer_init(&writer);
    sx_example_init(&example);
    sx_buf_init(&out, 0);
    float half = 0.5f;
    sx_example_add_int(&writer, "image/class/label", -7);
    sx_example_add_text(&writer, "image/format", "jpeg");
    sx_example_add_floats(&writer, "weight", &half, 1);
    sx_example_add_ints(&writer, "none", NULL, 0);
    assert_ok(sx_example_finish(&writer, &out));
    assert_ok(sx_example_parse(&example, (sx_bytes){out.data, out.size}));
    sx_bytes text;
    int64_t label;
    float weight;
    assert_ok(sx_example_get_bytes(&example, "image/format", &text));
    assert_int_equal(text.size, 4);
    assert_memory_equal(text.data, "jpeg", 4);
    assert_ok(sx_example_get_int(&example, "image/class/label", &label));
    assert_int_equal(label, -7);
    assert_int_equal(sx_feature_floats(sx_example_find(&example, "weight"), &weight, 1), 1);
    assert_true(weight == 0.5f);
    assert_error(sx_example_get_int(&example, "label", &label), SX_NOT_FOUND,
                 "no feature 'label'; its features: image/class/label, image/format, none, weight");
    assert_error(sx_example_get_int(&example, "weight", &label), SX_INVALID_ARGUMENT,
                 "feature 'weight' has 1 values of kind float, expected 1 of kind int64");
    assert_error(sx_example_get_int(&example, "none", &label), SX_INVALID_ARGUMENT, "0 values");
    sx_buf_deinit(&out);
    sx_example_deinit(&example);
    sx_example_writer_deinit(&writer);
}

static void test_proto_example__malformed(void **state)
{
    (void)state;
    sx_example example;
    sx_example_init(&example);
    static const struct {
        const char *bytes;
        size_t size;
    } lists[] = {
        {"\x1a\x03\x0a\x01\x80", 5}, /* a varint cut off */
        {"\x12\x05\x0a\x03xyz", 7},  /* three quarters of a float */
        {"\x12\x02\x08\x01", 4},     /* a varint in a float list */
        {"\x0a\x02\x08\x01", 4},     /* a varint in a bytes list */
        {"\x18\x01", 2},             /* a number for a list */
        {"\x1a\x05\x08", 3},         /* longer than the feature */
        {"\x1b\x1c", 2},             /* a group */
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_error(parse_one(&example, lists[i].bytes, lists[i].size), SX_DATA_LOSS,
                     "not a tf.train.Example: byte 7: malformed feature list");
        assert_int_equal(example.count, 0);
    }
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } records[] = {
        {"\x08\x01", 2, "byte 0: number instead of features"},
        {"\x0a\x02\x08\x01", 4, "byte 2: number instead of a feature"},
        {"\x0a\x04\x0a\x02\x08\x01", 6, "byte 4: feature entry has a number"},
        {"\x0a\x06\x0a\x04\x12\x00\x12\x00", 8, "byte 6: feature entry has two values"},
        {"\x0a\x05\x0a\x03\x0a\x01\xff", 7, "byte 6: feature name is not UTF-8"},
        {"\xff\xd8\xff\xe0", 4, "byte 0: malformed"},
    };
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        assert_error(sx_example_parse(&example, (sx_bytes){records[i].bytes, records[i].size}),
                     SX_DATA_LOSS, records[i].says);
    }
    assert_ok(sx_example_parse(&example, (sx_bytes){NULL, 0}));
    assert_int_equal(example.count, 0);
    sx_example_deinit(&example);
}

/* Whatever parses hands out values within the record. Under a sanitizer this finds overruns: the
 * record is on the heap, exactly as long as it is. */
static void test_proto_example__flips_and_cuts(void **state)
{
    (void)state;
    sx_example example;
    sx_example_init(&example);
    size_t size = sizeof golden - 1, parsed = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        for (size_t cut = bit == 0 ? 0 : size; cut <= size; cut++) {
            uint8_t *record = malloc(cut + 1);
            memcpy(record, golden, cut);
            if (bit / 8 < cut) {
                record[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            uint8_t *exact = realloc(record, cut == 0 ? 1 : cut);
            sx_status status = sx_example_parse(&example, (sx_bytes){exact, cut});
            parsed += status == SX_OK;
            sx_status_free(status);
            for (size_t i = 0; i < example.count; i++) {
                const sx_example_feature *feature = &example.features[i];
                sx_bytes strings[64];
                float floats[64];
                int64_t ints[64];
                size_t n = sx_feature_bytes(feature, strings, 64) +
                           sx_feature_floats(feature, floats, 64) +
                           sx_feature_ints(feature, ints, 64);
                assert_int_equal(n, feature->count);
            }
            free(exact);
        }
    }
    assert_in_range(parsed, 50, 8 * size);
    sx_example_deinit(&example);
}

static sx_status write_and_read(void *user)
{
    (void)user;
    sx_example_writer writer;
    sx_example example;
    sx_buf out;
    sx_example_writer_init(&writer);
    sx_example_init(&example);
    sx_buf_init(&out, 0);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        sx_example_add_int(&writer, name, i);
    }
    sx_status status = sx_example_finish(&writer, &out);
    if (status == SX_OK) {
        status = sx_example_parse(&example, (sx_bytes){out.data, out.size});
    }
    sx_buf_deinit(&out);
    sx_example_deinit(&example);
    sx_example_writer_deinit(&writer);
    return status;
}

static void test_proto_example__survives_failing_allocations(void **state)
{
    (void)state;
    assert_in_range(sx_torture(write_and_read, NULL), 5, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_proto_example__writes_the_reference),
    cmocka_unit_test(test_proto_example__refuses_a_name_twice),
    cmocka_unit_test(test_proto_example__reads_the_reference),
    cmocka_unit_test(test_proto_example__accepts_every_way_to_write_a_list),
    cmocka_unit_test(test_proto_example__last_of_equal_names_wins),
    cmocka_unit_test(test_proto_example__single_values),
    cmocka_unit_test(test_proto_example__malformed),
    cmocka_unit_test(test_proto_example__flips_and_cuts),
    cmocka_unit_test(test_proto_example__survives_failing_allocations),
};
SX_TEST_MAIN(tests)
