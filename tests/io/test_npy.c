#include "io/scratch.h"

#include <sextant/complex.h>

#include "io/npy.h"

/* numpy.save of float32 [1, 2, 3]. */
static size_t golden(uint8_t *out)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    size_t size = from_hex("934e554d5059 0100 7600", out);
    memcpy(out + size, header, sizeof header - 1);
    memset(out + size + sizeof header - 1, ' ', 60);
    size += sizeof header - 1 + 60;
    out[size++] = '\n';
    size += from_hex("0000803f 00000040 00004040", out + size);
    return size;
}

static void test_io_npy__writes_the_reference(void **state)
{
    (void)state;
    uint8_t want[200];
    size_t size = golden(want);
    assert_int_equal(size, 140);
    float values[] = {1, 2, 3};
    sx_tensor tensor = {sx_type_of(SX_F32, 3), values};
    assert_ok(sx_npy_write(scratch("a.npy"), &tensor));
    assert_file(scratch("a.npy"), want, size);
    sx_tensor back = {0};
    assert_ok(sx_npy_read(scratch("a.npy"), 0, &back));
    assert_true(sx_type_equal(&back.type, &tensor.type));
    assert_memory_equal(back.data, values, sizeof values);
    sx_free(back.data);
    assert_error(sx_npy_read(scratch("a.npy"), 11, &back), SX_RESOURCE_EXHAUSTED, "limit of 11");
}

static void test_io_npy__headers_are_aligned(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 20, 300, 4000, 50000, 600000, 7, 8};
    for (int rank = 0; rank <= 8; rank++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        sx_type type = sx_type_make(SX_U8, rank, dims);
        assert_ok(sx_npy_header(&type, &out));
        assert_int_equal(out.size % 64, 0);
        assert_int_equal(out.data[out.size - 1], '\n');
        sx_buf_deinit(&out);
    }
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_type text = sx_type_of(SX_STRING, 2), batch = sx_type_of(SX_F32, SX_BATCH);
    assert_error(sx_npy_header(&text, &out), SX_UNIMPLEMENTED, "string[2]");
    assert_error(sx_npy_header(&batch, &out), SX_UNIMPLEMENTED, "float32[N]");
    sx_buf_deinit(&out);
}

static sx_status parse(const char *dict, const void *data, size_t size, sx_tensor *out)
{
    uint8_t bytes[400] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, (uint8_t)strlen(dict)};
    memcpy(bytes + 12, dict, strlen(dict));
    memcpy(bytes + 12 + strlen(dict), data, size);
    return sx_npy_parse((sx_bytes){bytes, 12 + strlen(dict) + size}, 0, "x", out);
}

static void test_io_npy__reads_both_orders_of_everything(void **state)
{
    (void)state;
    sx_tensor t = {0};
    /* column-major 2x3, big-endian: numpy's [[1,2,3],[4,5,6]] */
    assert_ok(parse("{'shape': (2, 3), 'descr': '>i2', 'fortran_order': True}",
                    "\0\1\0\4\0\2\0\5\0\3\0\6", 12, &t));
    sx_type want = sx_type_of(SX_I16, 2, 3);
    assert_true(sx_type_equal(&t.type, &want));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(((int16_t *)t.data)[i], i + 1);
    }
    sx_free(t.data);
    /* column-major 2x2x2 against the formula */
    assert_ok(parse("{'descr': \"|u1\", 'fortran_order': True, 'shape': (2,2,2,),}\n",
                    "\0\1\2\3\4\5\6\7", 8, &t));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(((uint8_t *)t.data)[i], (i >> 2 & 1) + (i & 2) + (i << 2 & 4));
    }
    sx_free(t.data);
    assert_ok(parse("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "\0\0\0\0\0\0\xf0\x3f",
                    8, &t));
    assert_int_equal(t.type.rank, 0);
    assert_true(*(double *)t.data == 1.0);
    sx_free(t.data);
    assert_ok(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 5)}", "", 0, &t));
    assert_int_equal(sx_type_elems(&t.type), 0);
    sx_free(t.data);
}

static void assert_strings(const sx_tensor *t, const char *first, const char *second)
{
    const sx_bytes *s = t->data;
    assert_int_equal(t->type.dtype, SX_STRING);
    assert_int_equal(t->type.rank, 1);
    assert_int_equal(t->type.dims[0], 2);
    assert_int_equal(s[0].size, strlen(first));
    assert_memory_equal(s[0].data, first, s[0].size);
    assert_int_equal(s[1].size, strlen(second));
    assert_memory_equal(s[1].data, second, s[1].size);
}

static void test_io_npy__reads_and_writes_complex_numbers(void **state)
{
    (void)state;
    float values[] = {1, -2, 0.5F, 3};
    uint8_t swapped[sizeof values];
    for (size_t i = 0; i < sizeof values; i++) {
        swapped[i] = ((const uint8_t *)values)[i / 4 * 4 + 3 - i % 4];
    }
    sx_tensor tensor = {sx_type_of(SX_C64, 2), values}, back = {0};
    assert_ok(sx_npy_write(scratch("c.npy"), &tensor));
    assert_ok(sx_npy_read(scratch("c.npy"), 0, &back));
    assert_true(sx_type_equal(&back.type, &tensor.type));
    assert_memory_equal(back.data, values, sizeof values);
    sx_free(back.data);
    static const char *const orders[] = {"False", "True"};
    for (int i = 0; i < 2; i++) {
        char dict[100];
        snprintf(dict, sizeof dict, "{'descr': '>c8', 'fortran_order': %s, 'shape': (1, 2), }",
                 orders[i]);
        assert_ok(parse(dict, swapped, sizeof swapped, &back));
        assert_memory_equal(back.data, values, sizeof values);
        sx_free(back.data);
    }
}

static void test_io_npy__reads_and_writes_strings(void **state)
{
    (void)state;
    sx_tensor t = {0};
    assert_ok(parse("{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", "abcd\0\0", 6, &t));
    assert_strings(&t, "abc", "d");
    assert_ok(sx_npy_write(scratch("s.npy"), &t));
    sx_free(t.data);
    assert_ok(sx_npy_read(scratch("s.npy"), 0, &t));
    assert_strings(&t, "abc", "d");
    sx_free(t.data);
    assert_ok(parse("{'descr': '|S0', 'fortran_order': False, 'shape': (2,)}", "", 0, &t));
    assert_strings(&t, "", "");
    sx_free(t.data);
    assert_ok(parse("{'descr': '<U2', 'fortran_order': False, 'shape': (2,)}",
                    "\xfc\0\0\0x\0\0\0\x00\xf6\x01\0\0\0\0\0", 16, &t));
    assert_strings(&t, "\xc3\xbcx", "\xf0\x9f\x98\x80");
    sx_free(t.data);
    assert_ok(
        parse("{'descr': '>U1', 'fortran_order': False, 'shape': (2,)}", "\0\0\0a\0\0\0b", 8, &t));
    assert_strings(&t, "a", "b");
    sx_free(t.data);
    t.data = NULL;
    static const struct {
        const char *dict, *says;
        sx_code code;
    } rows[] = {
        {"{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", "do not fill", SX_DATA_LOSS},
        {"{'descr': '<U9223372036854775807', 'fortran_order': False, 'shape': (2,)}", "do not fill",
         SX_DATA_LOSS},
        {"{'descr': '<U', 'fortran_order': False, 'shape': (2,)}", "invalid element type",
         SX_DATA_LOSS},
        {"{'descr': '|S2', 'fortran_order': True, 'shape': (1, 2)}", "Fortran", SX_UNIMPLEMENTED},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "not text", SX_DATA_LOSS},
        {"{'descr': '|S0', 'fortran_order': False, 'shape': (999999999999,)}", "do not fill",
         SX_DATA_LOSS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_error(parse(rows[i].dict, "\xff\xff\xff\xff", 4, &t), rows[i].code, rows[i].says);
    }
    assert_error(
        parse("{'descr': '|S0', 'fortran_order': False, 'shape': (99999999999,)}", "", 0, &t),
        SX_RESOURCE_EXHAUSTED, "more than");
    assert_null(t.data);
}

static void test_io_npy__refuses(void **state)
{
    (void)state;
    sx_tensor t = {0};
    static const struct {
        const char *dict;
        sx_code code;
        const char *says;
    } rows[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", SX_UNIMPLEMENTED,
         "x is an array of Python objects (a pickle), which only Python can read; save strings as "
         "numpy.array(x, 'S')"},
        {"{'descr': [('a', '<f4'), ('b]', '<i8', (3,))], 'fortran_order': False, 'shape': (2,)}",
         SX_UNIMPLEMENTED, "x is a structured array"},
        {"{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (2,)}", SX_DATA_LOSS, "dict"},
        {"{'descr': '<M8[D]', 'fortran_order': False, 'shape': ()}", SX_UNIMPLEMENTED,
         "elements of type '<M8[D]' are not supported; save numbers"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': ()}", SX_UNIMPLEMENTED, "'<f16'"},
        {"{'descr': '', 'fortran_order': False, 'shape': ()}", SX_UNIMPLEMENTED, "''"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", SX_DATA_LOSS, "needs 8 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", SX_DATA_LOSS, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", SX_DATA_LOSS,
         "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999,9999999999)}", SX_DATA_LOSS,
         "larger than any file"},
        {"{'descr': '<f4', 'fortran_order': False}", SX_DATA_LOSS, "dict"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", SX_DATA_LOSS,
         "dict"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", SX_DATA_LOSS, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", SX_DATA_LOSS,
         "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", SX_DATA_LOSS, "dict"},
        {"", SX_DATA_LOSS, "dict"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_error(parse(rows[i].dict, "", 0, &t), rows[i].code, rows[i].says);
    }
    assert_error(sx_npy_parse((sx_bytes){"PK", 2}, 0, "x", &t), SX_DATA_LOSS, "not a .npy");
    assert_error(sx_npy_parse((sx_bytes){"", 0}, 0, "x", &t), SX_DATA_LOSS, "x is an empty file");
    assert_error(sx_npy_parse((sx_bytes){"\x80\x04.", 3}, 0, "x", &t), SX_UNIMPLEMENTED,
                 "x is a pickle of Python");
    assert_error(sx_npy_parse((sx_bytes){"\x93NUMPY\x04\0\0\0\0\0", 12}, 0, "x", &t),
                 SX_UNIMPLEMENTED, "version 4.0");
    assert_null(t.data);
}

static void test_io_npy__flips_and_cuts(void **state)
{
    (void)state;
    uint8_t bytes[200];
    size_t size = golden(bytes);
    for (size_t cut = 0; cut < size; cut++) {
        sx_tensor t = {0};
        sx_status status = sx_npy_parse((sx_bytes){bytes, cut}, 0, "x", &t);
        assert_int_equal(sx_status_code(status), SX_DATA_LOSS);
        sx_status_free(status);
    }
    for (size_t bit = 0; bit < 128 * 8; bit++) {
        sx_tensor t = {0};
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sx_status status = sx_npy_parse((sx_bytes){bytes, size}, 0, "x", &t);
        assert_true(status != SX_OK || sx_type_bytes(&t.type) == 12);
        sx_status_free(status);
        sx_free(t.data);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_npy__writes_the_reference),
    cmocka_unit_test(test_io_npy__headers_are_aligned),
    cmocka_unit_test(test_io_npy__reads_both_orders_of_everything),
    scratch_test(test_io_npy__reads_and_writes_complex_numbers),
    scratch_test(test_io_npy__reads_and_writes_strings),
    cmocka_unit_test(test_io_npy__refuses),
    cmocka_unit_test(test_io_npy__flips_and_cuts),
};
SX_TEST_MAIN(tests)
