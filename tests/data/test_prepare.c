#include "data/photos.h"

#include <sextant/data.h>

#include "data/prepare.h"
#include "data/set_info.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/tfrecord.h"
#include "proto/example.h"

static sx_buf text;

static int begin(void **state)
{
    sx_buf_init(&text, 0);
    return make_photo_dir(state);
}

static int end(void **state)
{
    sx_buf_deinit(&text);
    return remove_photo_dir(state);
}

#define prepare_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

static sx_status from_images(const char *out, const char *split, uint64_t seed)
{
    sx_from_images_args args = {
        .source = in_dir("photos"), .out = out, .split = split, .shards = 2, .seed = seed};
    sx_buf_reset(&text);
    return sx_from_images(&args, &text);
}

/* How many examples of each class a set holds are added to per_class. */
static int64_t count_set(const char *pattern, int per_class[PHOTO_CLASSES])
{
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    assert_ok(sx_data_open(pattern, NULL, &data, NULL));
    int64_t count = sx_dataset_count(data);
    assert_ok(sx_iterator_create(data, &iterator, .workers = -1));
    for (int64_t i = 0; i < count; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        per_class[*(const int64_t *)one->components[1].data]++;
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    return count;
}

static void test_data_prepare__splits_in_exact_proportions(void **state)
{
    (void)state;
    write_photos(10);
    assert_ok(from_images(in_dir("data"), "train=.8,val=.1,test=.1", 1));
    assert_non_null(strstr(sx_buf_text(&text), "data/train: 24 records in 2 files"));
    assert_non_null(strstr(sx_buf_text(&text), "data/val: 3 records in 2 files"));
    assert_non_null(strstr(sx_buf_text(&text), "data/test: 3 records in 2 files"));
    int per_class[PHOTO_CLASSES] = {0};
    assert_int_equal(count_set(in_dir("data/train-*"), per_class), 24);
    assert_int_equal(count_set(in_dir("data/val-*"), per_class), 3);
    assert_int_equal(count_set(in_dir("data/test-*"), per_class), 3);
    for (int c = 0; c < PHOTO_CLASSES; c++) {
        assert_int_equal(per_class[c], 10);
    }
}

static void read_set(const char *name, sx_buf *out)
{
    char path[256], *data = NULL;
    size_t size;
    sx_buf_reset(out);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s-%05d-of-00002", in_dir(name), i);
        assert_ok(sx_file_read(path, 1 << 20, &data, &size));
        sx_buf_append(out, data, size);
        sx_free(data);
    }
}

static void test_data_prepare__same_seed_same_bytes(void **state)
{
    (void)state;
    write_photos(10);
    sx_buf a, b, c;
    sx_buf_init(&a, 0);
    sx_buf_init(&b, 0);
    sx_buf_init(&c, 0);
    assert_ok(from_images(in_dir("a"), NULL, 1));
    assert_ok(from_images(in_dir("b"), NULL, 1));
    assert_ok(from_images(in_dir("c"), NULL, 2));
    read_set("a", &a);
    read_set("b", &b);
    read_set("c", &c);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    assert_int_equal(a.size, c.size);
    assert_memory_not_equal(a.data, c.data, a.size);
    sx_buf_deinit(&a);
    sx_buf_deinit(&b);
    sx_buf_deinit(&c);
}

static void test_data_prepare__refuses_bad_splits(void **state)
{
    (void)state;
    write_photos(1);
    static const char *const bad[] = {
        "train",     "train=",     "train=2",   "=1",    "a=.6,a=.4", "a=.6,b=.6",    "a=.5,",
        "a=.5;b=.5", "../evil=.5", ".hidden=1", "a b=1", "a=nan",     "a=.999,b=.001"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_error(from_images(in_dir("data"), bad[i], 1), SX_INVALID_ARGUMENT, "split");
    }
    assert_error(from_images(in_dir("data/"), NULL, 1), SX_INVALID_ARGUMENT,
                 "expected a prefix of file names");
    assert_false(sx_path_exists(in_dir("data/train-00000-of-00002")));
}

static void test_data_prepare__names_what_is_no_image_and_keeps_nothing(void **state)
{
    (void)state;
    write_photos(3);
    write_file(in_dir("photos/bees/x.jpg"), "not a picture", 13);
    assert_error(from_images(in_dir("data/set"), NULL, 1), SX_DATA_LOSS,
                 "photos/bees/x.jpg: not an image: 13 bytes starting with 6e 6f 74 20");
    write_file(in_dir("photos/bees/x.jpg"), "GIF89a\x10\0\x10\0\0\0\0", 13);
    assert_error(from_images(in_dir("data/set"), NULL, 1), SX_DATA_LOSS,
                 "photos/bees/x.jpg: unsupported format GIF");
    assert_false(sx_path_exists(in_dir("data")));
}

static bool stop_early(void *user, int64_t done, int64_t total)
{
    *(int64_t *)user = total;
    return done < 1;
}

static void test_data_prepare__can_be_stopped(void **state)
{
    (void)state;
    int64_t total = 0;
    write_photos(3);
    sx_from_images_args args = {.source = in_dir("photos"),
                                .out = in_dir("set"),
                                .shards = 1,
                                .progress = stop_early,
                                .user = &total};
    assert_error(sx_from_images(&args, &text), SX_CANCELLED, "interrupted");
    assert_int_equal(total, 9);
    assert_false(sx_path_exists(in_dir("set-00000-of-00001")));
}

static void test_data_prepare__notes_the_set(void **state)
{
    (void)state;
    write_photos(4);
    assert_ok(from_images(in_dir("data"), "train=.5,val=.5", 1));
    sx_arena arena;
    sx_set_info info;
    sx_arena_init(&arena, 0);
    assert_ok(sx_set_info_find(in_dir("data/val-00001-of-00002"), &arena, &info));
    assert_string_equal(info.set, "val");
    assert_int_equal(info.count, 6);
    assert_int_equal(info.class_count, 3);
    assert_string_equal(info.classes[1], "bees");
    assert_int_equal(info.file_count, 2);
    assert_int_equal(info.files[0].records + info.files[1].records, 6);
    assert_error(sx_set_info_find(in_dir("data/other-0"), &arena, &info), SX_NOT_FOUND, "other-0");
    write_file(in_dir("data/.sextant/schema.json"), "{\"sets\": 5}", 11);
    assert_error(sx_set_info_find(in_dir("data/val-00001-of-00002"), &arena, &info), SX_DATA_LOSS,
                 "schema.json");
    sx_arena_deinit(&arena);
}

static sx_status verify(const char *pattern, bool decode, bool skip, sx_verify_result *result)
{
    sx_paths paths = {0};
    const char *patterns[] = {in_dir(pattern)};
    assert_ok(sx_paths_glob(patterns, 1, &paths));
    sx_data_options options = {.struct_size = sizeof(options), .skip_corrupt = skip};
    sx_verify_args args = {.paths = (const char *const *)paths.items,
                           .path_count = paths.count,
                           .decode = decode,
                           .options = &options};
    sx_buf_reset(&text);
    sx_status status = sx_data_verify(&args, &text, result);
    sx_paths_deinit(&paths);
    return status;
}

static void poke(const char *name, long at, int value)
{
    FILE *file = fopen(in_dir(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    fputc(value, file);
    fclose(file);
}

static void test_data_prepare__verify_finds_every_fault(void **state)
{
    (void)state;
    sx_verify_result result;
    write_photos(4);
    assert_ok(from_images(in_dir("set"), NULL, 1));
    assert_ok(verify("set-*", true, false, &result));
    assert_int_equal(result.files, 2);
    assert_int_equal(result.records, 12);
    assert_int_equal(result.corrupt, 0);

    poke("set-00001-of-00002", 40, 0x5a);
    assert_error(verify("set-*", false, false, &result), SX_DATA_LOSS,
                 "set-00001-of-00002: record 0 at offset 0");
    assert_ok(verify("set-*", false, true, &result));
    assert_int_equal(result.corrupt, 1);
    assert_int_equal(result.records, 11);

    /* A whole record less: every checksum fits, only the schema knows. */
    assert_ok(from_images(in_dir("set"), NULL, 1));
    sx_tfrecord_file *file = NULL;
    assert_ok(sx_tfrecord_file_open(in_dir("set-00000-of-00002"), NULL, &file));
    uint64_t count;
    long cut = (long)sx_tfrecord_file_run(file, 0, 1, 0, &count);
    sx_tfrecord_file_close(file);
    char *data = NULL;
    size_t size;
    assert_ok(sx_file_read(in_dir("set-00000-of-00002"), 1 << 20, &data, &size));
    write_file(in_dir("set-00000-of-00002"), data + cut, size - (size_t)cut);
    sx_free(data);
    assert_error(verify("set-*", false, false, &result), SX_DATA_LOSS, "5 records in");
}

static void test_data_prepare__verify_decodes_and_checks_labels(void **state)
{
    (void)state;
    sx_verify_result result;
    write_photos(2);
    char path[256];
    snprintf(path, sizeof(path), "%s", in_dir("photos/ants/0.png"));
    char *data = NULL;
    size_t size;
    assert_ok(sx_file_read(path, 1 << 20, &data, &size));
    write_file(path, data, size - 20); /* the header is whole, the pixels are not */
    sx_free(data);
    sx_from_images_args unchecked = {.source = in_dir("photos"),
                                     .out = in_dir("set"),
                                     .shards = 2,
                                     .seed = 1,
                                     .no_decode = true};
    assert_error(from_images(in_dir("set"), NULL, 1), SX_DATA_LOSS, "photos/ants/0.png");
    assert_ok(sx_from_images(&unchecked, &text));
    assert_ok(verify("set-*", false, false, &result));
    assert_error(verify("set-*", true, false, &result), SX_DATA_LOSS, "set-0000");
    assert_ok(verify("set-*", true, true, &result));
    assert_int_equal(result.undecodable, 1);

    sx_paths paths = {0};
    const char *patterns[] = {in_dir("set-*")};
    assert_ok(sx_paths_glob(patterns, 1, &paths));
    sx_data_options options = {.struct_size = sizeof(options), .label_base = 1};
    sx_verify_args args = {
        .paths = (const char *const *)paths.items, .path_count = paths.count, .options = &options};
    assert_error(sx_data_verify(&args, &text, &result), SX_OUT_OF_RANGE, "label 0 out of range");
    sx_paths_deinit(&paths);
}

static void test_data_prepare__show_prints_features(void **state)
{
    (void)state;
    write_photos(2);
    assert_ok(from_images(in_dir("set"), NULL, 1));
    assert_ok(sx_data_show(in_dir("set-*"), NULL, 2, &text));
    assert_non_null(strstr(sx_buf_text(&text), "image/encoded (bytes): <PNG 6x8, 3 channels"));
    assert_non_null(strstr(sx_buf_text(&text), "image/height (int64): 6"));
    assert_non_null(strstr(sx_buf_text(&text), "image/format (bytes): \"PNG\""));
    sx_buf_reset(&text);
    assert_ok(sx_data_show(in_dir("photos"), NULL, 3, &text));
    assert_non_null(strstr(sx_buf_text(&text), "photos/bees/0.png"));
    assert_non_null(strstr(sx_buf_text(&text), "class: bees"));
}

static void test_data_prepare__take_stacks_images(void **state)
{
    (void)state;
    sx_dataset *data = NULL;
    sx_tensor x = {0}, y = {0};
    write_photos(3);
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_ok(sx_data_take(data, 2, 3, in_dir("x.npy"), in_dir("y.npy")));
    assert_ok(sx_npy_read(in_dir("x.npy"), 0, &x));
    assert_ok(sx_npy_read(in_dir("y.npy"), 0, &y));
    assert_int_equal(x.type.dtype, SX_U8);
    assert_int_equal(x.type.dims[0], 3);
    assert_int_equal(x.type.dims[1], PHOTO_HEIGHT);
    assert_int_equal(x.type.dims[2], PHOTO_WIDTH);
    assert_int_equal(((uint8_t *)x.data)[0], 20); /* ants/2, bees/0, bees/1 */
    assert_int_equal(((uint8_t *)x.data)[PHOTO_HEIGHT * PHOTO_WIDTH * 3], 1);
    assert_int_equal(((int64_t *)y.data)[2], 1);
    assert_error(sx_data_take(data, 8, 2, in_dir("x.npy"), NULL), SX_OUT_OF_RANGE,
                 "8 to 9 requested; the data has 9");
    sx_dataset_release(data);
    sx_free(x.data);
    sx_free(y.data);

    uint8_t pixels[12] = {0};
    sx_image small = sx_image_view(pixels, 2, 2, 3);
    sx_buf png;
    sx_buf_init(&png, 0);
    assert_ok(sx_png_encode(&small, &png));
    write_file(in_dir("photos/ants/1.png"), png.data, png.size);
    sx_buf_deinit(&png);
    assert_ok(sx_data_open(in_dir("photos"), NULL, &data, NULL));
    assert_error(sx_data_take(data, 0, 3, in_dir("x.npy"), NULL), SX_INVALID_ARGUMENT,
                 "use --size");
    sx_dataset_release(data);
}

static void write_idx(const char *path, const uint8_t *head, size_t head_size, size_t count)
{
    uint8_t bytes[256];
    memcpy(bytes, head, head_size);
    for (size_t i = 0; i < count; i++) {
        bytes[head_size + i] = (uint8_t)(i % 3);
    }
    write_file(path, bytes, head_size + count);
}

static void test_data_prepare__from_idx_both_formats(void **state)
{
    (void)state;
    write_idx(in_dir("i"), (uint8_t[]){0, 0, 8, 3, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 5}, 16, 140);
    write_idx(in_dir("l"), (uint8_t[]){0, 0, 8, 1, 0, 0, 0, 7}, 8, 7);
    for (int png = 0; png < 2; png++) {
        sx_from_idx_args args = {.images = in_dir("i"),
                                 .labels = in_dir("l"),
                                 .shards = 2,
                                 .out = in_dir(png ? "png" : "raw"),
                                 .png = png,
                                 .label_base = png};
        assert_ok(sx_from_idx(&args, &text));
        sx_dataset *data = NULL;
        assert_ok(sx_data_open(in_dir(png ? "png-*" : "raw-*"), NULL, &data, NULL));
        assert_int_equal(sx_dataset_count(data), 7);
        assert_ok(sx_data_take(data, 0, 7, in_dir("x.npy"), in_dir("y.npy")));
        sx_dataset_release(data);
        sx_tensor x = {0}, y = {0};
        assert_ok(sx_npy_read(in_dir("x.npy"), 0, &x));
        assert_ok(sx_npy_read(in_dir("y.npy"), 0, &y));
        for (int i = 0; i < 140; i++) {
            assert_int_equal(((uint8_t *)x.data)[i], i % 3);
        }
        for (int i = 0; i < 7; i++) {
            assert_int_equal(((int64_t *)y.data)[i], i % 3);
        }
        sx_free(x.data);
        sx_free(y.data);
    }
    sx_from_idx_args swapped = {.images = in_dir("l"), .labels = in_dir("l"), .out = in_dir("z")};
    assert_error(sx_from_idx(&swapped, &text), SX_INVALID_ARGUMENT, "expected");
}

typedef struct progress_log {
    int64_t last, total;
    int calls;
} progress_log;

static bool note_progress(void *user, int64_t done, int64_t total)
{
    progress_log *log = user;
    assert_true(done > log->last || done == 1); /* of each pass */
    log->last = done;
    log->total = total;
    log->calls++;
    return true;
}

/* The first image, every 64th after it, and the last: of checking and of writing. */
static void test_data_prepare__tells_its_progress(void **state)
{
    (void)state;
    progress_log log = {0};
    write_photos(22);
    sx_from_images_args args = {.source = in_dir("photos"),
                                .out = in_dir("set"),
                                .shards = 1,
                                .progress = note_progress,
                                .user = &log};
    assert_ok(sx_from_images(&args, &text));
    assert_int_equal(log.last, 66);
    assert_int_equal(log.total, 66);
    assert_int_equal(log.calls, 2 * 3); /* 1, 65, 66 */
}

/* Of many broken images the first twenty are named, the others counted. */
static void test_data_prepare__names_twenty_faults(void **state)
{
    (void)state;
    for (int n = 20; n <= 21; n++) {
        write_photos(1);
        for (int i = 0; i < n; i++) {
            char path[64];
            snprintf(path, sizeof(path), "photos/bees/x%02d.jpg", i);
            write_file(in_dir(path), "not a picture", 13);
        }
        sx_status status = from_images(in_dir("data/set"), NULL, 1);
        assert_int_equal(sx_status_code(status), SX_DATA_LOSS);
        assert_non_null(strstr(sx_status_message(status), "bees/x19.jpg"));
        assert_null(strstr(sx_status_message(status), "bees/x20.jpg"));
        assert_int_equal(strstr(sx_status_message(status), "and 1 more") != NULL, n == 21);
        sx_status_free(status);
    }
}

/* How values are shown: text that can be read, at most 60 bytes of it; everything else counted. */
static void test_data_prepare__show_cuts_values(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *shown;
    } rows[] = {
        {"short", 5, "(bytes): \"short\"\n"},
        {"gr\xc3\xbc\xc3\x9f", 6, "(bytes): \"gr\xc3\xbc\xc3\x9f\"\n"},
        {"tab\t", 4, "(bytes): <4 bytes>\n"},
        {"\0text", 5, "(bytes): <5 bytes>\n"},
        {"", 0, "(bytes): <0 bytes>\n"},
        {"012345678901234567890123456789012345678901234567890123456789", 60, "56789\"\n"},
        {"0123456789012345678901234567890123456789012345678901234567890", 61, "56789\"...\n"},
    };
    char *png = NULL;
    size_t png_size = 0;
    write_photos(1);
    assert_ok(sx_file_read(in_dir("photos/ants/0.png"), 1 << 20, &png, &png_size));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_tfrecord_shards *files = NULL;
        sx_example_writer writer;
        sx_buf record;
        const int64_t nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        const float third = 1.0f / 3;
        sx_bytes value = {rows[i].bytes, rows[i].size};
        assert_ok(sx_tfrecord_shards_create(in_dir("show/x"), 1, SX_CODEC_NONE, &files));
        sx_example_writer_init(&writer);
        sx_buf_init(&record, 0);
        sx_example_add_bytes(&writer, "text", &value, 1);
        sx_example_add_bytes(&writer, "image/encoded", &(sx_bytes){png, png_size}, 1);
        sx_example_add_int(&writer, "image/class/label", 0);
        sx_example_add_ints(&writer, "eight", nine, 8);
        sx_example_add_ints(&writer, "nine", nine, 9);
        sx_example_add_floats(&writer, "third", &third, 1);
        assert_ok(sx_example_finish(&writer, &record));
        assert_ok(sx_tfrecord_shards_write(files, 0, (sx_bytes){record.data, record.size}));
        assert_ok(sx_tfrecord_shards_finish(files));
        sx_tfrecord_shards_destroy(files);
        sx_example_writer_deinit(&writer);
        sx_buf_deinit(&record);
        sx_buf_reset(&text);
        assert_ok(sx_data_show(in_dir("show/x-*"), NULL, 1, &text));
        if (strstr(sx_buf_text(&text), rows[i].shown) == NULL) {
            fail_msg("row %zu is not shown in\n%s", i, sx_buf_text(&text));
        }
        assert_non_null(strstr(sx_buf_text(&text), "eight (int64): 1, 2, 3, 4, 5, 6, 7, 8\n"));
        assert_non_null(
            strstr(sx_buf_text(&text), "nine (int64): 1, 2, 3, 4, 5, 6, 7, 8, ... (9 values)"));
        assert_non_null(strstr(sx_buf_text(&text), "third (float): 0.333333343\n"));
    }
    sx_free(png);
}

static const struct CMUnitTest tests[] = {
    prepare_test(test_data_prepare__splits_in_exact_proportions),
    prepare_test(test_data_prepare__same_seed_same_bytes),
    prepare_test(test_data_prepare__refuses_bad_splits),
    prepare_test(test_data_prepare__names_what_is_no_image_and_keeps_nothing),
    prepare_test(test_data_prepare__can_be_stopped),
    prepare_test(test_data_prepare__notes_the_set),
    prepare_test(test_data_prepare__verify_finds_every_fault),
    prepare_test(test_data_prepare__verify_decodes_and_checks_labels),
    prepare_test(test_data_prepare__show_prints_features),
    prepare_test(test_data_prepare__take_stacks_images),
    prepare_test(test_data_prepare__from_idx_both_formats),
    prepare_test(test_data_prepare__tells_its_progress),
    prepare_test(test_data_prepare__names_twenty_faults),
    prepare_test(test_data_prepare__show_cuts_values),
};
SX_TEST_MAIN(tests)
