/* CSV in memory: rows, fields, what is no CSV; every cut and every changed byte is read to the end.
 */
#include "harness.h"

#include "io/csv_reader.h"

static sx_bytes bytes_of(const char *text)
{
    return (sx_bytes){text, strlen(text)};
}

/* The rows as "[a|b][c]", quoted fields in angle brackets. */
static void print_rows(const char *text, char *out)
{
    sx_bytes rest = bytes_of(text), row;
    int64_t fields;
    size_t next, n = 0;
    for (;;) {
        size_t at = 0;
        int64_t seen = 0;
        sx_csv_field f;
        assert_ok(sx_csv_row(rest, &row, &fields, &next));
        if (row.size == 0) {
            break;
        }
        for (out[n++] = '['; sx_csv_field_next(row, &at, &f); seen++) {
            out[n] = '|';
            n += seen > 0;
            out[n] = '<';
            n += f.quoted;
            n += sx_csv_field_copy(&f, out + n);
            out[n] = '>';
            n += f.quoted;
        }
        out[n++] = ']';
        assert_int_equal(seen, fields);
        rest = (sx_bytes){(const char *)rest.data + next, rest.size - next};
    }
    assert_int_equal(next, rest.size);
    out[n] = '\0';
}

static void test_io_csv_reader__rows_and_fields(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"\n\r\n\n", ""},
        {"a", "[a]"},
        {"a,b\nc,d\n", "[a|b][c|d]"},
        {"a,b\r\n\r\nc,d\r\n", "[a|b][c|d]"},
        {",\n,", "[|][|]"},
        {"a,\n", "[a|]"},
        {"\"a\",b", "[<a>|b]"},
        {"\"a\"\r", "[<a>]"},
        {"\"a,\nb\",\"\"", "[<a,\nb>|<>]"},
        {"\"say \"\"hi\"\"\",\"\"\"\"", "[<say \"hi\">|<\">]"},
        {"a\"b\"\"c, d ", "[a\"b\"\"c| d ]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[200];
        print_rows(rows[i][0], got);
        assert_string_equal(got, rows[i][1]);
    }
}

static void test_io_csv_reader__what_is_no_row_is_named_and_passed(void **state)
{
    (void)state;
    sx_bytes row;
    int64_t fields;
    size_t next;
    const char *open = "\n\na,\"b\nc,d\n", *after = "\"a\"x,b\nc";
    assert_error(sx_csv_row(bytes_of(open), &row, &fields, &next), SX_INVALID_ARGUMENT,
                 "field 2: a quote is not closed");
    assert_memory_equal(row.data, "a,\"b", row.size);
    assert_string_equal(open + next, "c,d\n");
    assert_error(sx_csv_row(bytes_of(after), &row, &fields, &next), SX_INVALID_ARGUMENT,
                 "field 1: text follows the closing quote");
    assert_string_equal(after + next, "c");
    size_t size = (size_t)SX_CSV_MAX_ROW_BYTES + 2;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, 'x', size);
    assert_error(sx_csv_row((sx_bytes){large, size}, &row, &fields, &next), SX_INVALID_ARGUMENT,
                 "more than 16 MiB");
    assert_int_equal(next, size);
    free(large);
}

/* Reads to the end whatever the bytes. */
static void read_all(const char *text, size_t size)
{
    sx_bytes rest = {text, size}, row;
    while (rest.size > 0) {
        int64_t fields, seen = 0;
        size_t next, at = 0;
        sx_csv_field f;
        sx_status status = sx_csv_row(rest, &row, &fields, &next);
        char copy[100];
        while (status == SX_OK && row.size > 0 && sx_csv_field_next(row, &at, &f)) {
            seen++;
            assert_true(sx_csv_field_copy(&f, copy) <= f.text.size);
        }
        assert_true(status != SX_OK || row.size == 0 || seen == fields);
        assert_true(next > 0 && next <= rest.size);
        sx_status_free(status);
        rest = (sx_bytes){(const char *)rest.data + next, rest.size - next};
    }
}

static void test_io_csv_reader__every_cut_and_every_byte(void **state)
{
    (void)state;
    static const char text[] = "a,\"b \"\"c\"\"\nd\",e\r\n\n\"\",x\"y,3\n", bytes[] = "\",\r\nx";
    const size_t size = sizeof(text) - 1;
    for (size_t n = 0; n <= size; n++) {
        char *cut = malloc(n + 1); /* of its very size, for the sanitizers */
        assert_non_null(cut);
        memcpy(cut, text, n);
        read_all(cut, n);
        for (size_t k = 0; n > 0 && k < sizeof(bytes); k++) {
            cut[n - 1] = bytes[k];
            read_all(cut, n);
        }
        free(cut);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_csv_reader__rows_and_fields),
    cmocka_unit_test(test_io_csv_reader__what_is_no_row_is_named_and_passed),
    cmocka_unit_test(test_io_csv_reader__every_cut_and_every_byte),
};
SX_TEST_MAIN(tests)
