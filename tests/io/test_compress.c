#include "io/scratch.h"

#include "io/compress.h"

static const sx_codec both[] = {SX_CODEC_GZIP, SX_CODEC_ZLIB};

/* Compressible and not: runs, then noise. */
static char *sample(size_t size)
{
    char *data = malloc(size + 1);
    uint32_t x = 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (char)(i < size / 2 ? i / 1000 : x >> 24);
    }
    return data;
}

static void deflate_into(sx_codec codec, const char *data, size_t size, sx_buf *out)
{
    sx_deflate *stream = NULL;
    assert_ok(sx_deflate_create(codec, -1, sx_write_to_buf, out, &stream));
    for (size_t at = 0, piece = 1; at < size; piece = piece * 2 + 1) {
        size_t n = piece < size - at ? piece : size - at;
        assert_ok(sx_deflate_write(stream, data + at, n));
        at += n;
    }
    assert_ok(sx_deflate_finish(stream));
    assert_error(sx_deflate_write(stream, "x", 1), SX_FAILED_PRECONDITION, "finished");
    sx_deflate_destroy(stream);
}

static void test_io_compress__round_trip(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 300000, 3000000};
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *data = sample(sizes[i]);
            sx_buf packed, back;
            sx_buf_init(&packed, 0);
            sx_buf_init(&back, 0);
            deflate_into(both[c], data, sizes[i], &packed);
            sx_bytes bytes = {packed.data, packed.size};
            assert_int_equal(sx_codec_guess(bytes), both[c]);
            assert_ok(sx_inflate_all(both[c], bytes, sizes[i], "it", &back));
            assert_int_equal(back.size, sizes[i]);
            if (sizes[i] > 0) {
                assert_memory_equal(back.data, data, sizes[i]);
                sx_buf_reset(&back);
                assert_error(sx_inflate_all(both[c], bytes, sizes[i] - 1, "it", &back),
                             SX_RESOURCE_EXHAUSTED, "it decompresses to more than");
            }
            sx_buf_deinit(&back);
            sx_buf_deinit(&packed);
            free(data);
        }
    }
}

static void test_io_compress__a_bomb_stops_at_the_cap(void **state)
{
    (void)state;
    sx_buf packed, out;
    sx_buf_init(&packed, 0);
    sx_buf_init(&out, 0);
    size_t size = 64 << 20;
    char *zeros = calloc(size, 1);
    deflate_into(SX_CODEC_GZIP, zeros, size, &packed);
    free(zeros);
    assert_true(packed.size < size / 1000);
    assert_error(
        sx_inflate_all(SX_CODEC_GZIP, (sx_bytes){packed.data, packed.size}, 1 << 20, "bomb", &out),
        SX_RESOURCE_EXHAUSTED, "1048576");
    assert_true(out.capacity < 4 << 20);
    sx_buf_deinit(&out);
    sx_buf_deinit(&packed);
}

static void test_io_compress__damage_is_data_loss(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        sx_buf packed, out;
        sx_buf_init(&packed, 0);
        sx_buf_init(&out, 0);
        deflate_into(both[c], "hello hello hello hello", 23, &packed);
        for (size_t cut = 0; cut < packed.size; cut++) {
            sx_buf_reset(&out);
            assert_error(sx_inflate_all(both[c], (sx_bytes){packed.data, cut}, 1 << 20, "it", &out),
                         SX_DATA_LOSS, "cut off");
        }
        packed.data[packed.size - 3] ^= 1; /* inside the checksum or the length */
        assert_error(
            sx_inflate_all(both[c], (sx_bytes){packed.data, packed.size}, 1 << 20, "it", &out),
            SX_DATA_LOSS, "corrupt");
        packed.data[packed.size - 3] ^= 1;
        sx_buf_append(&packed, "junk", 4);
        assert_error(
            sx_inflate_all(both[c], (sx_bytes){packed.data, packed.size}, 1 << 20, "it", &out),
            SX_DATA_LOSS, "4 unexpected bytes after the end of the");
        sx_buf_deinit(&out);
        sx_buf_deinit(&packed);
    }
}

static void test_io_compress__gzip_members_follow_one_another(void **state)
{
    (void)state;
    sx_buf packed, out;
    sx_buf_init(&packed, 0);
    sx_buf_init(&out, 0);
    deflate_into(SX_CODEC_GZIP, "hello ", 6, &packed);
    deflate_into(SX_CODEC_GZIP, "", 0, &packed);
    deflate_into(SX_CODEC_GZIP, "world", 5, &packed);
    assert_ok(sx_inflate_all(SX_CODEC_GZIP, (sx_bytes){packed.data, packed.size}, 11, "it", &out));
    assert_string_equal(sx_buf_text(&out), "hello world");
    sx_buf_deinit(&out);
    sx_buf_deinit(&packed);
}

static void test_io_compress__names_and_guesses(void **state)
{
    (void)state;
    sx_codec codec = SX_CODEC_AUTO;
    assert_true(sx_codec_parse("gzip", &codec));
    assert_int_equal(codec, SX_CODEC_GZIP);
    assert_true(sx_codec_parse("", &codec));
    assert_int_equal(codec, SX_CODEC_NONE);
    assert_false(sx_codec_parse("lzma", &codec));
    assert_string_equal(sx_codec_name(SX_CODEC_ZLIB), "ZLIB");
    assert_int_equal(sx_codec_guess((sx_bytes){"\x78\x9c", 2}), SX_CODEC_ZLIB);
    assert_int_equal(sx_codec_guess((sx_bytes){"\x78\x9d", 2}), SX_CODEC_NONE);
    assert_int_equal(sx_codec_guess((sx_bytes){"\x78", 1}), SX_CODEC_NONE);
    sx_inflate *in = NULL;
    sx_deflate *out = NULL;
    assert_error(sx_inflate_create(SX_CODEC_NONE, (sx_bytes){"", 0}, 1, "it", &in),
                 SX_INVALID_ARGUMENT, "no compression");
    assert_error(sx_deflate_create(SX_CODEC_GZIP, 10, sx_write_to_buf, NULL, &out),
                 SX_INVALID_ARGUMENT, "-1..9");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_compress__round_trip),
    cmocka_unit_test(test_io_compress__a_bomb_stops_at_the_cap),
    cmocka_unit_test(test_io_compress__damage_is_data_loss),
    cmocka_unit_test(test_io_compress__gzip_members_follow_one_another),
    cmocka_unit_test(test_io_compress__names_and_guesses),
};
SX_TEST_MAIN(tests)
