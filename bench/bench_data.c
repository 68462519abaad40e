/* Reading records, and JPEG to 224x224 batches. bench_data.py runs the same tasks in tf.data.
 *
 *   bench_data                     writes drawn pictures to a temporary folder and measures them
 *   bench_data make PREFIX N       N drawn flowers, 384 pixels, JPEG quality 90, as TFRecords
 *   bench_data records PATTERN     one pass: every record, checksum verified; prints
 *   bench_data jpeg PATTERN        seconds of wall and processor time, examples, and a checksum of
 *                                  what was consumed; of JPEGs, in a second pass
 *   bench_data scaled PATTERN      the same with SX_SCALED_DECODE
 *   bench_data bare PATTERN        libjpeg alone: every image decoded to a buffer of one
 *
 * Bounds: records by memory bandwidth; JPEG by Huffman decoding. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <sextant/data.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/set_writer.h"
#include "image/encode.h"
#include "image/generate.h"
#include "data/image_pipeline.h"
#include "io/path.h"
#include "proto/example.h"

enum { SIDE = 384, QUALITY = 90, MADE = 400 };

static void make(const char *prefix, int count)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    sx_image image = sx_image_view(pixels, SIDE, SIDE, 3);
    sx_set_writer *writer = NULL;
    sx_example_writer example;
    sx_buf jpeg, record, text;
    sx_buf_init(&jpeg, 0);
    sx_buf_init(&record, 0);
    sx_buf_init(&text, 0);
    sx_example_writer_init(&example);
    bench_check(sx_set_writer_open(prefix, 4, count, &writer));
    for (int i = 0; i < count; i++) {
        int label;
        bench_check(sx_flowers_draw(1, (uint64_t)i, SIDE, pixels, &label));
        sx_buf_reset(&jpeg);
        sx_buf_reset(&record);
        bench_check(sx_jpeg_encode(&image, QUALITY, &jpeg));
        sx_bytes bytes = {jpeg.data, jpeg.size};
        sx_example_add_bytes(&example, "image/encoded", &bytes, 1);
        sx_example_add_int(&example, "image/class/label", label);
        bench_check(sx_example_finish(&example, &record));
        bench_check(sx_set_writer_write(writer, (sx_bytes){record.data, record.size}));
    }
    sx_set_info info = {.image_key = "image/encoded", .label_key = "image/class/label"};
    bench_check(sx_set_writer_finish(writer, &info, &text));
    sx_set_writer_close(writer);
    sx_example_writer_deinit(&example);
    sx_buf_deinit(&jpeg);
    sx_buf_deinit(&record);
    sx_buf_deinit(&text);
}

struct pass {
    double seconds, cpu_seconds, checksum;
    int64_t examples;
};

/* What was consumed: the bytes of records, the first pixel of images. */
static double consume(const struct sx_batch_data *batch, bool records)
{
    double sum = 0;
    int64_t row = records ? 0 : sx_type_elems(&batch->components[0].type) / batch->size;
    for (int64_t i = 0; i < batch->size; i++) {
        sum += records ? (double)((const sx_bytes *)batch->components[0].data)[i].size
                       : (double)((const float *)batch->components[0].data)[i * row];
    }
    return sum;
}

enum task { RECORDS, JPEG, SCALED, BARE, TASKS };
static const char *const task_names[] = {"records", "jpeg", "scaled", "bare"};

static void decode_bare(sx_bytes encoded, uint8_t *pixels)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr error;
    info.err = jpeg_std_error(&error);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, encoded.data, encoded.size);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    info.dct_method = JDCT_IFAST;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels + (size_t)info.output_scanline * info.output_width * 3;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

static void open_batches(const char *pattern, enum task task, sx_dataset **data)
{
    if (task == RECORDS) {
        bench_check(sx_dataset_from_records(&pattern, 1, NULL, data));
        bench_check(sx_dataset_batch(data, .size = 256));
        return;
    }
    bench_check(sx_data_open(pattern, NULL, data, NULL));
    if (task != BARE) {
        sx_preprocess pre;
        bench_check(sx_preprocess_recipe("simple", 224, 224, 3, &pre));
        pre.scale = SX_SCALE_NONE;
        pre.scaled_decode = task == SCALED;
        bench_check(sx_dataset_preprocess(data, &pre, .training = task == SCALED));
    }
    bench_check(sx_dataset_batch(data, .size = 32));
    bench_check(sx_dataset_repeat(data, 2));
}

/* Reads an epoch. */
static void read_all(sx_iterator *iterator, enum task task, uint8_t *pixels, struct pass *pass)
{
    const struct sx_batch_data *batch;
    do {
        bench_check(sx_iterator_next(iterator, &batch));
        pass->examples += batch->size;
        for (int64_t i = 0; task == BARE && i < batch->size; i++) {
            decode_bare(((const sx_bytes *)batch->components[0].data)[i], pixels);
        }
        pass->checksum += task == BARE ? 0 : consume(batch, task == RECORDS);
    } while (!batch->ends_epoch);
}

static struct pass run(const char *pattern, enum task task)
{
    struct pass pass = {0};
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    uint8_t *pixels = sx_alloc((size_t)64 << 20, 1);
    open_batches(pattern, task, &data);
    double cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t begin_ns = sx_now_ns();
    /* For bare records a hand-over between threads costs more than the reading itself. */
    const bool here = task == RECORDS || task == BARE;
    bench_check(sx_iterator_create(data, &iterator, .workers = here ? -1 : sx_cpu_count()));
    read_all(iterator, task, pixels, &pass);
    if (task != RECORDS) { /* the second epoch, in memory that has been used before */
        cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
        begin_ns = sx_now_ns();
        pass = (struct pass){0};
        read_all(iterator, task, pixels, &pass);
    }
    pass.seconds = (double)(sx_now_ns() - begin_ns) * 1e-9;
    pass.cpu_seconds = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    sx_free(pixels);
    return pass;
}

static void print_pass(const char *pattern, enum task task)
{
    struct pass pass = run(pattern, task);
    printf("%.6f %.6f %lld %.3f\n", pass.seconds, pass.cpu_seconds, (long long)pass.examples,
           pass.checksum);
}

static void run_records(void *pattern)
{
    run(pattern, RECORDS);
}

static void run_jpeg(void *pattern)
{
    run(pattern, JPEG);
}

static void run_scaled(void *pattern)
{
    run(pattern, SCALED);
}

static void run_bare(void *pattern)
{
    run(pattern, BARE);
}

static void measure_all(void)
{
    char dir[] = "/tmp/sextant-bench-XXXXXX", prefix[64], pattern[64];
    bench_make_dir(dir);
    snprintf(prefix, sizeof(prefix), "%s/jpeg", dir);
    snprintf(pattern, sizeof(pattern), "%s/jpeg-*", dir);
    make(prefix, MADE);
    double bytes = run(pattern, RECORDS).checksum;
    bench_rate("records: open, read, verify", bytes, "B/s", run_records, pattern);
    bench_rate("jpeg 384 to batches of 224", MADE, "img/s", run_jpeg, pattern);
    bench_rate("the same, decoded scaled", MADE, "img/s", run_scaled, pattern);
    bench_rate("libjpeg alone", MADE, "img/s", run_bare, pattern);
    bench_check(sx_dir_remove(dir));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        make(argv[2], atoi(argv[3]));
        return 0;
    }
    for (int task = 0; argc == 3 && task < TASKS; task++) {
        if (strcmp(argv[1], task_names[task]) == 0) {
            print_pass(argv[2], (enum task)task);
            return 0;
        }
    }
    measure_all();
    return 0;
}
