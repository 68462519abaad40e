/* Reading records, and JPEG to 224x224 batches. bench_data.py runs the same tasks in tf.data.
 *
 *   bench_data                     writes drawn pictures to a temporary folder and measures them
 *   bench_data make PREFIX N       N drawn flowers, 384 pixels, JPEG quality 90, as TFRecords
 *   bench_data records PATTERN     one pass: every record, checksum verified; prints
 *   bench_data jpeg PATTERN        seconds of wall and processor time, examples, and a checksum of
 *                                  what was consumed
 *
 * Bounds: records by memory bandwidth; JPEG by Huffman decoding. */
#include "bench.h"

#include <string.h>

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

static struct pass run(const char *pattern, bool records)
{
    struct pass pass = {0};
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    if (records) {
        bench_check(sx_dataset_from_records(&pattern, 1, NULL, &data));
        bench_check(sx_dataset_batch(&data, .size = 256));
    } else {
        sx_preprocess pre;
        bench_check(sx_preprocess_recipe("simple", 224, 224, 3, &pre));
        pre.scale = SX_SCALE_NONE;
        bench_check(sx_data_open(pattern, NULL, &data, NULL));
        bench_check(sx_dataset_preprocess(&data, &pre));
        bench_check(sx_dataset_batch(&data, .size = 32));
    }
    double cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t begin_ns = sx_now_ns();
    /* For bare records a hand-over between threads costs more than the reading itself. */
    bench_check(sx_iterator_create(data, &iterator, .workers = records ? -1 : sx_cpu_count()));
    while (pass.examples < sx_dataset_records(data)) {
        bench_check(sx_iterator_next(iterator, &batch));
        pass.examples += batch->size;
        pass.checksum += consume(batch, records);
    }
    pass.seconds = (double)(sx_now_ns() - begin_ns) * 1e-9;
    pass.cpu_seconds = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    return pass;
}

static void print_pass(const char *pattern, bool records)
{
    struct pass pass = run(pattern, records);
    printf("%.6f %.6f %lld %.3f\n", pass.seconds, pass.cpu_seconds, (long long)pass.examples,
           pass.checksum);
}

static void run_records(void *pattern)
{
    run(pattern, true);
}

static void run_jpeg(void *pattern)
{
    run(pattern, false);
}

static void measure_all(void)
{
    char dir[] = "/tmp/sextant-bench-XXXXXX", prefix[64], pattern[64];
    bench_make_dir(dir);
    snprintf(prefix, sizeof(prefix), "%s/jpeg", dir);
    snprintf(pattern, sizeof(pattern), "%s/jpeg-*", dir);
    make(prefix, MADE);
    double bytes = run(pattern, true).checksum;
    bench_rate("records: open, read, verify", bytes, "B/s", run_records, pattern);
    bench_rate("jpeg 384 to batches of 224", MADE, "img/s", run_jpeg, pattern);
    bench_check(sx_dir_remove(dir));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        make(argv[2], atoi(argv[3]));
    } else if (argc == 3 && strcmp(argv[1], "records") == 0) {
        print_pass(argv[2], true);
    } else if (argc == 3 && strcmp(argv[1], "jpeg") == 0) {
        print_pass(argv[2], false);
    } else {
        measure_all();
    }
    return 0;
}
