#include "data/photos.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sextant/data.h>

#include "data/prepare.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/tfrecord.h"
#include "proto/example.h"

static sx_dataset *data;
static char *found;

static sx_status open_with(const char *name, const sx_data_options *options)
{
    data = NULL;
    found = NULL;
    return sx_data_open(name, options, &data, &found);
}

static void done(void)
{
    sx_dataset_release(data);
    sx_text_free(found);
}

static void assert_found(const char *part)
{
    if (strstr(found, part) == NULL) {
        print_error("\"%s\" is not in \"%s\"\n", part, found);
        fail();
    }
}

/* Reads all and checks that the labels are those of the ids' classes. */
static void count_labels(int64_t *out_count, int64_t per_label[PHOTO_CLASSES])
{
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    memset(per_label, 0, PHOTO_CLASSES * sizeof(per_label[0]));
    assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
    *out_count = sx_dataset_count(data);
    for (int64_t i = 0; i < *out_count; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        int64_t label = *(const int64_t *)one->components[1].data;
        assert_in_range(label, 0, PHOTO_CLASSES - 1);
        per_label[label]++;
    }
    sx_iterator_destroy(iterator);
}

static void check_photos(int per_class)
{
    int64_t count, per_label[PHOTO_CLASSES];
    int classes;
    count_labels(&count, per_label);
    assert_int_equal(count, PHOTO_CLASSES * per_class);
    const char *const *names = sx_dataset_class_names(data, &classes);
    assert_int_equal(classes, PHOTO_CLASSES);
    for (int c = 0; c < PHOTO_CLASSES; c++) {
        assert_int_equal(per_label[c], per_class);
        assert_string_equal(names[c], photo_classes[c]);
    }
}

static void make_records(const char *out, int per_class, int label_base)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    write_photos(per_class);
    sx_from_images_args args = {
        .source = in_dir("photos"), .out = out, .shards = 3, .label_base = label_base, .seed = 1};
    assert_ok(sx_from_images(&args, &text));
    sx_buf_deinit(&text);
}

static void test_data_open__folder_of_class_folders(void **state)
{
    (void)state;
    write_photos(4);
    assert_ok(open_with(in_dir("photos"), NULL));
    assert_found("12 images in 3 class folders");
    check_photos(4);
    char name[256];
    sx_dataset_record_name(data, 5, name, sizeof(name));
    assert_non_null(strstr(name, "photos/bees/1.png"));
    done();
}

/* A record file or archive that another process truncates while it is read: an error that names the
 * record, no signal. */
static void test_data_open__a_truncated_file_is_an_error(void **state)
{
    (void)state;
    make_records(in_dir("set"), 12, 0);
    char command[512];
    snprintf(command, sizeof(command), "tar -C %s -cf %s/p.tar photos", photo_dir, photo_dir);
    assert_int_equal(system(command), 0);
    static const char *const names[][3] = {
        {"set-*", "set-00002-of-00003", "set-00002-of-00003: record "},
        {"p.tar", "p.tar", "p.tar/photos/"}};
    for (int i = 0; i < 2; i++) {
        sx_iterator *iterator = NULL;
        const struct sx_batch_data *one;
        assert_ok(open_with(in_dir(names[i][0]), NULL));
        assert_ok(sx_iterator_create(data, &iterator, .workers = 1, .prefetch = 1));
        assert_ok(sx_iterator_next(iterator, &one));
        assert_int_equal(truncate(in_dir(names[i][1]), 1000), 0);
        sx_status status = SX_OK;
        for (int64_t k = 1; k < sx_dataset_count(data) && status == SX_OK; k++) {
            status = sx_iterator_next(iterator, &one);
        }
        assert_error(status, SX_DATA_LOSS, names[i][2]);
        status = sx_iterator_next(iterator, &one); /* says it again */
        assert_error(status, SX_DATA_LOSS, "was it truncated?");
        sx_iterator_destroy(iterator);
        done();
    }
}

static void test_data_open__archives(void **state)
{
    (void)state;
    write_photos(3);
    char command[512];
    static const char *const makers[] = {"tar -C %s -cf %s/p.tar photos",
                                         "tar -C %s -czf %s/p.tar.gz photos",
                                         "cd %s && python3 -m zipfile -c %s/p.zip photos"};
    static const char *const names[] = {"p.tar", "p.tar.gz", "p.zip"};
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof(command), makers[i], photo_dir, photo_dir);
        assert_int_equal(system(command), 0);
        assert_ok(open_with(in_dir(names[i]), NULL));
        check_photos(3);
        done();
    }
    sx_data_options tight = {.struct_size = sizeof(tight), .memory_budget = 100};
    assert_error(open_with(in_dir("p.zip"), &tight), SX_RESOURCE_EXHAUSTED,
                 "p.zip: its members, which are decompressed into memory, do not fit in 100 bytes; "
                 "unpack the archive");
    assert_ok(open_with(in_dir("p.tar"), &tight));
    done();
}

static void test_data_open__record_files_with_schema(void **state)
{
    (void)state;
    make_records(in_dir("set"), 5, 1);
    assert_ok(open_with(in_dir("set-*"), NULL));
    assert_found("15 records in 3 files; image: image/encoded, PNG; label: image/class/label, "
                 "from 1 (schema file); 3 classes: ants, bees, cats");
    check_photos(5);
    done();
}

static void test_data_open__record_files_without_schema(void **state)
{
    (void)state;
    make_records(in_dir("set"), 5, 1);
    assert_ok(sx_dir_remove(in_dir(".sextant")));
    sx_data_options options = {.struct_size = sizeof(options), .label_base = 1};
    assert_ok(open_with(in_dir("set-*"), &options));
    assert_found("from 1 (as given); 3 classes: ants, bees, cats");
    check_photos(5);
    done();
    assert_ok(open_with(in_dir("set-*"), NULL));
    assert_found("from 0 (assumed; change with --label-base); 4 classes: 0, ants, bees, cats");
    done();
    options.image_key = "image/filename";
    assert_error(open_with(in_dir("set-*"), &options), SX_INVALID_ARGUMENT,
                 "neither a JPEG or PNG");
    options.image_key = "picture";
    assert_error(open_with(in_dir("set-*"), &options), SX_NOT_FOUND, "picture");
    options = (sx_data_options){.struct_size = sizeof(options), .label_key = "grade"};
    assert_error(open_with(in_dir("set-*"), &options), SX_NOT_FOUND, "grade");
}

static void test_data_open__raw_records(void **state)
{
    (void)state;
    make_records(in_dir("set"), 5, 0);
    const char *patterns[] = {in_dir("set-00000*"), in_dir("set-00002*")};
    data = NULL;
    assert_ok(sx_dataset_from_records(patterns, 2, NULL, &data));
    assert_int_equal(sx_dataset_count(data), 10);
    assert_string_equal(sx_dataset_schema(data)->components[0].name, "record");
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    sx_example example;
    sx_example_init(&example);
    assert_ok(sx_dataset_batch(&data, .size = 10));
    assert_ok(sx_iterator_create(data, &iterator));
    assert_ok(sx_iterator_next(iterator, &batch));
    for (int i = 0; i < 10; i++) {
        assert_ok(sx_example_parse(&example, ((const sx_bytes *)batch->components[0].data)[i]));
        assert_int_equal(example.count, 7);
    }
    sx_example_deinit(&example);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    patterns[1] = in_dir("none-*");
    assert_error(sx_dataset_from_records(patterns, 2, NULL, &data), SX_NOT_FOUND, "none-*");
    assert_error(sx_dataset_from_records(patterns, 0, NULL, &data), SX_INVALID_ARGUMENT, "no file");
}

static void test_data_open__a_folder_of_records_must_be_one_set(void **state)
{
    (void)state;
    make_records(in_dir("rec/train"), 4, 0);
    assert_ok(open_with(in_dir("rec"), NULL));
    check_photos(4);
    done();
    make_records(in_dir("rec/val"), 4, 0);
    assert_error(open_with(in_dir("rec"), NULL), SX_INVALID_ARGUMENT, "rec/train-*'");
    assert_ok(open_with(in_dir("rec/val-*"), NULL));
    done();
}

/* Records as others write them: no schema of ours, other keys. */
static void write_foreign(const char *path, bool raw)
{
    sx_tfrecord_shards *files = NULL;
    sx_example_writer writer;
    sx_buf record;
    uint8_t pixels[12] = {0};
    assert_ok(sx_tfrecord_shards_create(path, 1, SX_CODEC_GZIP, &files));
    sx_example_writer_init(&writer);
    sx_buf_init(&record, 0);
    for (int i = 0; i < 6; i++) {
        sx_bytes image = {pixels, raw ? 12 : 5};
        pixels[0] = (uint8_t)i;
        sx_example_add_bytes(&writer, raw ? "image_raw" : "picture", &image, 1);
        sx_example_add_int(&writer, "label", i % 3);
        sx_example_add_int(&writer, "height", 3);
        sx_example_add_int(&writer, "width", 4);
        sx_buf_reset(&record);
        assert_ok(sx_example_finish(&writer, &record));
        assert_ok(sx_tfrecord_shards_write(files, 0, (sx_bytes){record.data, record.size}));
    }
    assert_ok(sx_tfrecord_shards_finish(files));
    sx_tfrecord_shards_destroy(files);
    sx_example_writer_deinit(&writer);
    sx_buf_deinit(&record);
}

static void test_data_open__raw_pixels_and_compressed_files(void **state)
{
    (void)state;
    write_foreign(in_dir("raw"), true);
    assert_ok(open_with(in_dir("raw-*"), NULL));
    assert_found("raw 3x4x1; label: label");
    assert_found("kept decompressed");
    const sx_type *type = &sx_dataset_schema(data)->components[0].type;
    assert_int_equal(type->dtype, SX_U8);
    assert_int_equal(type->dims[0], 3);
    assert_int_equal(type->dims[1], 4);
    assert_int_equal(type->dims[2], 1);
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_dataset_batch(&data, .size = 6));
    assert_ok(sx_iterator_create(data, &iterator));
    assert_ok(sx_iterator_next(iterator, &batch));
    assert_int_equal(((const uint8_t *)batch->components[0].data)[4 * 12], 4);
    assert_int_equal(((const int64_t *)batch->components[1].data)[4], 1);
    sx_iterator_destroy(iterator);
    done();
    write_foreign(in_dir("odd"), false);
    assert_error(open_with(in_dir("odd-*"), NULL), SX_INVALID_ARGUMENT, "picture (bytes)");
}

static void write_idx(const char *path, int rank, const uint8_t *sizes, const uint8_t *values,
                      size_t count)
{
    uint8_t bytes[256] = {0, 0, 8, (uint8_t)rank};
    for (int i = 0; i < rank; i++) {
        bytes[4 + 4 * i + 3] = sizes[i];
    }
    memcpy(bytes + 4 + 4 * rank, values, count);
    write_file(path, bytes, 4 + 4 * (size_t)rank + count);
}

static void write_idx_pair(void)
{
    uint8_t pixels[5 * 2 * 3], labels[5] = {2, 0, 1, 2, 1};
    for (int i = 0; i < 30; i++) {
        pixels[i] = (uint8_t)i;
    }
    write_idx(in_dir("idx/t-images-idx3-ubyte"), 3, (uint8_t[]){5, 2, 3}, pixels, 30);
    write_idx(in_dir("idx/t-labels-idx1-ubyte"), 1, (uint8_t[]){5}, labels, 5);
}

static void check_idx(void)
{
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_dataset_batch(&data, .size = 5));
    assert_ok(sx_iterator_create(data, &iterator));
    assert_ok(sx_iterator_next(iterator, &batch));
    assert_int_equal(batch->components[0].type.rank, 4);
    assert_int_equal(((const uint8_t *)batch->components[0].data)[29], 29);
    assert_int_equal(((const int64_t *)batch->components[1].data)[3], 2);
    sx_iterator_destroy(iterator);
}

static void test_data_open__idx_pairs(void **state)
{
    (void)state;
    write_idx_pair();
    static const char *const specs[] = {"idx", "idx/t-*", "idx/t-images-idx3-ubyte"};
    for (int i = 0; i < 3; i++) {
        assert_ok(open_with(in_dir(specs[i]), NULL));
        assert_found("IDX, image: uint8[5,2,3,1]; 3 classes");
        check_idx();
        done();
    }
    char both[512];
    snprintf(both, sizeof(both), "%s,%s", in_dir("idx/t-labels-idx1-ubyte"),
             in_dir("idx/t-images-idx3-ubyte"));
    assert_ok(open_with(both, NULL));
    check_idx();
    done();
    write_idx(in_dir("idx/t-labels-idx1-ubyte"), 1, (uint8_t[]){4}, (uint8_t[4]){0}, 4);
    assert_error(open_with(in_dir("idx"), NULL), SX_INVALID_ARGUMENT, "5 examples");
    write_idx(in_dir("idx/v-images-idx3-ubyte"), 3, (uint8_t[]){1, 1, 1}, (uint8_t[1]){0}, 1);
    assert_error(open_with(in_dir("idx"), NULL), SX_INVALID_ARGUMENT, "idx/t-*'");
}

static void test_data_open__numpy_arrays(void **state)
{
    (void)state;
    float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, target[4] = {.5f, 1, 2, 3};
    assert_ok(sx_npy_write(in_dir("x.npy"), &(sx_tensor){sx_type_of(SX_F32, 4, 2), x}));
    assert_ok(sx_npy_write(in_dir("y.npy"), &(sx_tensor){sx_type_of(SX_F32, 4), target}));
    char both[512];
    snprintf(both, sizeof(both), "%s,%s", in_dir("x.npy"), in_dir("y.npy"));
    assert_ok(open_with(both, NULL));
    assert_found("features: float32[4,2]; label: float32[4]");
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    assert_ok(sx_iterator_create(data, &iterator));
    assert_ok(sx_iterator_next(iterator, &one));
    assert_true(((const float *)one->components[0].data)[1] == 2);
    assert_true(((const float *)one->components[1].data)[0] == .5f);
    sx_iterator_destroy(iterator);
    done();
}

static void test_data_open__generated_digits_and_flowers(void **state)
{
    (void)state;
    assert_ok(open_with("generated:digits?n=100&seed=3", NULL));
    assert_int_equal(sx_dataset_count(data), 100);
    assert_int_equal(sx_dataset_schema(data)->components[0].type.dims[0], 28);
    done();
    assert_ok(open_with("generated:flowers?n=10&size=32", NULL));
    assert_int_equal(sx_dataset_schema(data)->components[0].type.dims[1], 32);
    int classes;
    assert_string_equal(sx_dataset_class_names(data, &classes)[4], "tulips");
    done();
    assert_error(open_with("generated:cats", NULL), SX_INVALID_ARGUMENT, "unknown data set");
    assert_error(open_with("generated:digits?n=0", NULL), SX_INVALID_ARGUMENT, "n must be");
    assert_error(open_with("generated:digits?n=x", NULL), SX_INVALID_ARGUMENT,
                 "must be an integer");
    assert_error(open_with("generated:digits?size=5", NULL), SX_INVALID_ARGUMENT, "unknown param");
    assert_error(open_with("generated:digits?n", NULL), SX_INVALID_ARGUMENT, "key=number");
    assert_ok(open_with("generated:digits?n=268435456", NULL));
    assert_int_equal(sx_dataset_count(data), 268435456);
    done();
    assert_error(open_with("generated:digits?n=268435457", NULL), SX_INVALID_ARGUMENT, "n must be");
    assert_error(open_with("generated:digits?n=-1", NULL), SX_INVALID_ARGUMENT,
                 "must be an integer");
    assert_error(open_with("generated:digits?n=1x", NULL), SX_INVALID_ARGUMENT,
                 "must be an integer");
    assert_error(open_with("generated:digits?nn=1", NULL), SX_INVALID_ARGUMENT, "unknown param");
    assert_error(open_with("generated:flowers?size=15", NULL), SX_INVALID_ARGUMENT, "size");
    assert_error(open_with("generated:flowers?size=1025", NULL), SX_INVALID_ARGUMENT, "size");
    assert_ok(open_with("generated:flowers?size=1024&n=1", NULL));
    done();
    static const struct {
        const char *spec;
        int64_t count, side;
        int classes;
    } defaults[] = {{"generated:digits", 60000, 28, 10}, {"generated:flowers", 1000, 64, 5}};
    for (int i = 0; i < 2; i++) {
        assert_ok(open_with(defaults[i].spec, NULL));
        assert_int_equal(sx_dataset_count(data), defaults[i].count);
        assert_int_equal(sx_dataset_schema(data)->components[0].type.dims[0], defaults[i].side);
        sx_dataset_class_names(data, &classes);
        assert_int_equal(classes, defaults[i].classes);
        done();
    }
}

static void test_data_open__says_what_is_wrong(void **state)
{
    (void)state;
    make_records(in_dir("train"), 4, 0);
    write_file(in_dir("empty.bin"), "", 0);
    write_file(in_dir("text.txt"), "hello, this is no data", 22);
    assert_ok(sx_dir_create(in_dir("nothing")));
    assert_error(open_with("", NULL), SX_INVALID_ARGUMENT, "empty");
    assert_error(open_with(in_dir("trian-00000-of-00003"), NULL), SX_NOT_FOUND,
                 "similar names: \"train-00000-of-00003\"");
    assert_error(open_with(in_dir("val-*"), NULL), SX_NOT_FOUND, "no file matches");
    assert_error(open_with(in_dir("nowhere/x-*"), NULL), SX_NOT_FOUND, "nowhere");
    assert_error(open_with(in_dir("nothing"), NULL), SX_INVALID_ARGUMENT, "empty directory");
    assert_error(open_with(in_dir("nothing/*"), NULL), SX_NOT_FOUND, "is empty");
    assert_error(open_with(in_dir("empty.bin"), NULL), SX_INVALID_ARGUMENT,
                 "empty.bin is an empty file");
    sx_status empty = open_with(in_dir("empty.bin"), NULL);
    assert_null(strstr(strstr(sx_status_message(empty), "empty.bin") + 1, "empty.bin"));
    sx_status_free(empty);
    assert_error(open_with(in_dir("text.txt"), NULL), SX_INVALID_ARGUMENT, "unknown format");
    assert_error(open_with(in_dir("photos/ants/0.png"), NULL), SX_INVALID_ARGUMENT, "single image");
    if (geteuid() != 0) {
        assert_int_equal(chmod(in_dir("text.txt"), 0), 0);
        assert_error(open_with(in_dir("text.txt"), NULL), SX_PERMISSION_DENIED, "text.txt");
    }
}

/* The first length of a shard is damaged: it no longer looks like a record file, but the schema
 * knows it. */
static void test_data_open__damaged_files_are_named(void **state)
{
    (void)state;
    make_records(in_dir("set"), 1, 0);
    FILE *file = fopen(in_dir("set-00000-of-00003"), "r+b");
    assert_non_null(file);
    fputc(0x77, file);
    fclose(file);
    assert_error(open_with(in_dir("set-00000-of-00003"), NULL), SX_DATA_LOSS,
                 "set-00000-of-00003: record 0 at offset 0");
    sx_data_options skip = {.struct_size = sizeof(skip), .skip_corrupt = true};
    assert_ok(open_with(in_dir("set-*"), &skip));
    assert_int_equal(sx_dataset_count(data), 2);
    assert_found("skipped");
    done();
}

/* --skip-corrupt is named where it helps: not for the only record. */
static void test_data_open__skipping_is_offered_where_records_remain(void **state)
{
    (void)state;
    for (int records = 1; records <= 2; records++) {
        sx_tfrecord_shards *shards = NULL;
        assert_ok(sx_tfrecord_shards_create(in_dir("no"), 1, SX_CODEC_NONE, &shards));
        for (int i = 0; i < records; i++) {
            assert_ok(sx_tfrecord_shards_write(shards, 0, (sx_bytes){"no Example", 10}));
        }
        assert_ok(sx_tfrecord_shards_finish(shards));
        sx_tfrecord_shards_destroy(shards);
        sx_status status = open_with(in_dir("no-00000-of-00001"), NULL);
        assert_int_equal(sx_status_code(status), SX_DATA_LOSS);
        assert_non_null(strstr(sx_status_message(status), "record 0"));
        assert_int_equal(strstr(sx_status_message(status), "--skip-corrupt") != NULL, records > 1);
        sx_status_free(status);
    }
}

/* The files of one folder, by their names: those of one set are opened together, two sets are not
 * mixed. "-of-" counts only behind the number of a shard. */
static void test_data_open__one_set_by_names(void **state)
{
    (void)state;
    static const struct {
        const char *names[2];
        bool one;
    } rows[] = {
        {{"a-00000-of-00002", "a-00001-of-00002"}, true},
        {{"a-00000-of-00002", "b-00001-of-00002"}, false},
        {{"a-00000-of-00002", "aa-00000-of-00001"}, false},
        {{"a-00000-of-00001", "other"}, false},
        {{"other", "some"}, true}, /* nothing says that they are sets */
        {{"x-of-y", "z-of-y"}, true},
        {{"12345-of-1", "z"}, true},
        {{"-00000-of-00002", "-00001-of-00002"}, true},
    };
    make_records(in_dir("from/t"), 1, 0);
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(in_dir("from/t-00000-of-00003"), 1 << 20, &bytes, &size));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[128], dir[64];
        snprintf(dir, sizeof(dir), "sets%zu", i);
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof(path), "%s/%s", dir, rows[i].names[k]);
            write_file(in_dir(path), bytes, size);
        }
        sx_status status = open_with(in_dir(dir), NULL);
        if (rows[i].one) {
            assert_ok(status);
            assert_int_equal(sx_dataset_count(data), 2);
            done();
        } else {
            assert_error(status, SX_INVALID_ARGUMENT, "contains several sets");
        }
    }
    sx_free(bytes);
}

/* A record without an image: its features are listed, 32 of them. */
static void test_data_open__lists_features(void **state)
{
    (void)state;
    for (int n = 32; n <= 33; n++) {
        char name[32];
        sx_tfrecord_shards *files = NULL;
        sx_example_writer writer;
        sx_buf record;
        snprintf(name, sizeof(name), "f%d/x", n);
        assert_ok(sx_tfrecord_shards_create(in_dir(name), 1, SX_CODEC_NONE, &files));
        sx_example_writer_init(&writer);
        sx_buf_init(&record, 0);
        for (int i = 0; i < n; i++) {
            char key[16];
            snprintf(key, sizeof(key), "k%02d", i);
            sx_example_add_int(&writer, key, i);
        }
        assert_ok(sx_example_finish(&writer, &record));
        assert_ok(sx_tfrecord_shards_write(files, 0, (sx_bytes){record.data, record.size}));
        assert_ok(sx_tfrecord_shards_finish(files));
        sx_tfrecord_shards_destroy(files);
        sx_example_writer_deinit(&writer);
        sx_buf_deinit(&record);
        snprintf(name, sizeof(name), "f%d/x-*", n);
        assert_error(open_with(in_dir(name), NULL), SX_INVALID_ARGUMENT,
                     n == 32 ? "k30 (int64), k31 (int64); use" : "k31 (int64), ...; use");
    }
}

/* Labels that count from 1 are classes from 0. */
static void test_data_open__idx_labels_from_one(void **state)
{
    (void)state;
    write_idx(in_dir("one/t-images-idx3-ubyte"), 3, (uint8_t[]){3, 1, 1}, (uint8_t[3]){0}, 3);
    write_idx(in_dir("one/t-labels-idx1-ubyte"), 1, (uint8_t[]){3}, (uint8_t[]){1, 3, 2}, 3);
    static const int expected[] = {0, 2, 1};
    sx_data_options options = {.struct_size = sizeof(options), .label_base = 1};
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *one;
    int classes;
    assert_ok(open_with(in_dir("one"), &options));
    sx_dataset_class_names(data, &classes);
    assert_int_equal(classes, 3);
    assert_ok(sx_iterator_create(data, &iterator));
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_iterator_next(iterator, &one));
        assert_int_equal(*(const int64_t *)one->components[1].data, expected[i]);
    }
    sx_iterator_destroy(iterator);
    done();
    assert_ok(open_with(in_dir("one"), NULL));
    sx_dataset_class_names(data, &classes);
    assert_int_equal(classes, 4);
    done();
}

static const struct CMUnitTest tests[] = {
    photo_test(test_data_open__folder_of_class_folders),
    photo_test(test_data_open__a_truncated_file_is_an_error),
    photo_test(test_data_open__archives),
    photo_test(test_data_open__record_files_with_schema),
    photo_test(test_data_open__record_files_without_schema),
    photo_test(test_data_open__raw_records),
    photo_test(test_data_open__a_folder_of_records_must_be_one_set),
    photo_test(test_data_open__raw_pixels_and_compressed_files),
    photo_test(test_data_open__idx_pairs),
    photo_test(test_data_open__numpy_arrays),
    photo_test(test_data_open__generated_digits_and_flowers),
    photo_test(test_data_open__says_what_is_wrong),
    photo_test(test_data_open__damaged_files_are_named),
    photo_test(test_data_open__skipping_is_offered_where_records_remain),
    photo_test(test_data_open__one_set_by_names),
    photo_test(test_data_open__lists_features),
    photo_test(test_data_open__idx_labels_from_one),
};
SX_TEST_MAIN(tests)
