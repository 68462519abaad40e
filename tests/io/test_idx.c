#include "io/scratch.h"

#include "io/compress.h"
#include "io/idx.h"

static const char golden[] = "\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x02\x01\x02\x03\x04";
static const sx_bytes golden_bytes = {golden, sizeof golden - 1};

static void check_golden(const sx_tensor *tensor)
{
    sx_type want = sx_type_of(SX_U8, 2, 2);
    assert_true(sx_type_equal(&tensor->type, &want));
    assert_memory_equal(tensor->data, "\1\2\3\4", 4);
}

static void test_io_idx__reads_the_reference(void **state)
{
    (void)state;
    sx_tensor tensor = {0};
    assert_ok(sx_idx_parse(golden_bytes, 0, "g", &tensor));
    check_golden(&tensor);
    sx_free(tensor.data);
    write_file(scratch("plain"), golden, sizeof golden - 1);
    assert_ok(sx_idx_read(scratch("plain"), 0, &tensor));
    check_golden(&tensor);
    sx_free(tensor.data);
    sx_buf packed;
    sx_deflate *stream = NULL;
    sx_buf_init(&packed, 0);
    assert_ok(sx_deflate_create(SX_CODEC_GZIP, 9, sx_write_to_buf, &packed, &stream));
    assert_ok(sx_deflate_write(stream, golden, sizeof golden - 1));
    assert_ok(sx_deflate_finish(stream));
    sx_deflate_destroy(stream);
    write_file(scratch("packed"), packed.data, packed.size);
    assert_ok(sx_idx_read(scratch("packed"), 0, &tensor));
    check_golden(&tensor);
    sx_free(tensor.data);
    assert_error(sx_idx_read(scratch("packed"), 3, &tensor), SX_RESOURCE_EXHAUSTED, "limit of 3");
    sx_buf_reset(&packed); /* more than the header says: not decompressed */
    assert_ok(sx_deflate_create(SX_CODEC_GZIP, 9, sx_write_to_buf, &packed, &stream));
    assert_ok(sx_deflate_write(stream, golden, sizeof golden - 1));
    assert_ok(sx_deflate_write(stream, "", 1));
    assert_ok(sx_deflate_finish(stream));
    sx_deflate_destroy(stream);
    write_file(scratch("more"), packed.data, packed.size);
    assert_error(sx_idx_read(scratch("more"), 0, &tensor), SX_DATA_LOSS, "the file has more");
    write_file(scratch("cut"), packed.data, packed.size - 1);
    assert_error(sx_idx_read(scratch("cut"), 0, &tensor), SX_DATA_LOSS, "cut off");
    sx_buf_deinit(&packed);
}

static void test_io_idx__swaps_big_endian(void **state)
{
    (void)state;
    sx_tensor tensor = {0};
    static const char floats[] = "\x00\x00\x0d\x01\x00\x00\x00\x02\x3f\x80\x00\x00\xc0\x00\x00\x00";
    assert_ok(sx_idx_parse((sx_bytes){floats, sizeof floats - 1}, 0, "f", &tensor));
    assert_int_equal(tensor.type.dtype, SX_F32);
    assert_true(((float *)tensor.data)[0] == 1.0f && ((float *)tensor.data)[1] == -2.0f);
    sx_free(tensor.data);
    static const char shorts[] = "\x00\x00\x0b\x01\x00\x00\x00\x01\x01\x02";
    assert_ok(sx_idx_parse((sx_bytes){shorts, sizeof shorts - 1}, 0, "s", &tensor));
    assert_int_equal(((int16_t *)tensor.data)[0], 0x0102);
    sx_free(tensor.data);
}

static void test_io_idx__all_damage_to_sizes_is_detected(void **state)
{
    (void)state;
    char bytes[sizeof golden];
    memcpy(bytes, golden, sizeof golden);
    for (size_t bit = 0; bit < 12 * 8; bit++) {
        sx_tensor tensor = {0};
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        sx_status status = sx_idx_parse((sx_bytes){bytes, sizeof golden - 1}, 0, "g", &tensor);
        /* 08 -> 09: the type alone may change, to one of the same size. */
        assert_true(sx_status_code(status) == SX_DATA_LOSS || bit == 16);
        sx_status_free(status);
        sx_free(tensor.data);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < sizeof golden - 1; cut++) {
        sx_tensor tensor = {0};
        assert_error(sx_idx_parse((sx_bytes){golden, cut}, 0, "g", &tensor), SX_DATA_LOSS, "g");
    }
    sx_tensor tensor = {0};
    static const char huge[] = "\x00\x00\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_error(sx_idx_parse((sx_bytes){huge, sizeof huge - 1}, 0, "g", &tensor), SX_DATA_LOSS,
                 "float64[4294967295,4294967295,4294967295]");
}

static void test_io_idx__ranks_up_to_the_limit(void **state)
{
    (void)state;
    for (int rank = 0; rank <= SX_MAX_RANK + 1; rank++) {
        char bytes[4 + 4 * (SX_MAX_RANK + 1) + 1] = {0, 0, 8, (char)rank};
        sx_tensor tensor = {0};
        for (int d = 0; d < rank; d++) {
            bytes[4 + 4 * d + 3] = 1;
        }
        bytes[4 + 4 * rank] = 77;
        sx_bytes whole = {bytes, (size_t)(4 + 4 * rank + 1)};
        if (rank <= SX_MAX_RANK) {
            assert_ok(sx_idx_parse(whole, 0, "g", &tensor));
            assert_int_equal(tensor.type.rank, rank);
            assert_int_equal(*(uint8_t *)tensor.data, 77);
            sx_free(tensor.data);
        } else {
            assert_error(sx_idx_parse(whole, 0, "g", &tensor), SX_DATA_LOSS, "rank <= 8");
        }
    }
}

static void test_io_idx__limits_bytes(void **state)
{
    (void)state;
    sx_tensor tensor = {0};
    assert_ok(sx_idx_parse(golden_bytes, 4, "g", &tensor));
    check_golden(&tensor);
    sx_free(tensor.data);
    assert_error(sx_idx_parse(golden_bytes, 3, "g", &tensor), SX_RESOURCE_EXHAUSTED, "limit of 3");
}

static void test_io_idx__every_type(void **state)
{
    (void)state;
    static const sx_dtype known[256] = {[0x08] = SX_U8,  [0x09] = SX_I8,  [0x0b] = SX_I16,
                                        [0x0c] = SX_I32, [0x0d] = SX_F32, [0x0e] = SX_F64};
    for (int code = 0; code < 256; code++) {
        char bytes[4 + 8] = {0, 0, (char)code, 0};
        size_t size = 4 + (known[code] != SX_DTYPE_NONE ? sx_dtype_bytes(known[code]) : 1);
        sx_tensor tensor = {0};
        sx_status status = sx_idx_parse((sx_bytes){bytes, size}, 0, "g", &tensor);
        assert_int_equal(sx_status_code(status),
                         known[code] != SX_DTYPE_NONE ? SX_CODE_OK : SX_DATA_LOSS);
        assert_int_equal(tensor.type.dtype, known[code]);
        sx_status_free(status);
        sx_free(tensor.data);
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_idx__reads_the_reference),
    cmocka_unit_test(test_io_idx__swaps_big_endian),
    cmocka_unit_test(test_io_idx__all_damage_to_sizes_is_detected),
    cmocka_unit_test(test_io_idx__ranks_up_to_the_limit),
    cmocka_unit_test(test_io_idx__limits_bytes),
    cmocka_unit_test(test_io_idx__every_type),
};
SX_TEST_MAIN(tests)
