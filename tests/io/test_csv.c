#include "harness.h"

#include "io/csv.h"

static void test_io_csv__quotes_what_needs_it(void **state)
{
    (void)state;
    sx_buf out;
    sx_buf_init(&out, 0);
    static const char *const fields[] = {"plain", "a,b", "say \"hi\"", "two\nlines", " edge", ""};
    for (size_t i = 0; i < 6; i++) {
        sx_csv_text(&out, fields[i]);
    }
    sx_csv_end(&out);
    sx_csv_int(&out, -5);
    sx_csv_bytes(&out, (sx_bytes){"x", 1});
    sx_csv_end(&out);
    assert_string_equal(sx_buf_text(&out),
                        "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\" edge\",\"\"\n-5,x\n");
    sx_buf_deinit(&out);
}

static void test_io_csv__floats_read_back(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits < 0x7f800000u; bits += 0x00103f51u) {
        float value;
        memcpy(&value, &bits, sizeof value);
        sx_buf out;
        sx_buf_init(&out, 0);
        sx_csv_float(&out, value);
        assert_true(strtof(sx_buf_text(&out), NULL) == value);
        sx_buf_deinit(&out);
    }
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_csv_float(&out, 0.1f);
    sx_csv_float(&out, 0.25f);
    sx_csv_float(&out, 1.0f / 3);
    assert_string_equal(sx_buf_text(&out), "0.1,0.25,0.33333334");
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_csv__quotes_what_needs_it),
    cmocka_unit_test(test_io_csv__floats_read_back),
};
SX_TEST_MAIN(tests)
