/* JSON of a REST predict request and of its numbers: seconds to parse the file that is its argument
 * into a tensor, then to write these numbers, the least of several. For bench_serve_peers.py, which
 * compares them with RapidJSON's; without a file, a request of its own. Limited by decimal
 * conversion, 8 digits at a time. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "bench.h"
#include "io/file.h"
#include "serve/predict_json.h"

enum { SIDE = 224, TIMES = 15 };

static void write_request(sx_buf *out)
{
    sx_buf_printf(out, "{\"instances\":[[");
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double x = (double)(i * 7919 % 1000003) / 1000003;
        sx_buf_printf(out, "%s[%.7f,%.7f,%.7f]%s", i % SIDE == 0 ? "[" : "", x, x / 2, x / 3,
                      i + 1 == SIDE * SIDE   ? "]"
                      : i % SIDE == SIDE - 1 ? "],"
                                             : ",");
    }
    sx_buf_printf(out, "]]}");
}

int main(int argc, char **argv)
{
    static const sx_serve_tensor x = {
        .name = "x", .tensor_name = "x:0", .type = {SX_F32, 4, {SX_BATCH, SIDE, SIDE, 3}}};
    const sx_serve_signature signature = {.name = "serving_default",
                                          .method = "tensorflow/serving/predict",
                                          .input_count = 1,
                                          .output_count = 1,
                                          .inputs = &x,
                                          .outputs = &x};
    sx_buf made, text;
    sx_bytes body;
    char *read = NULL;
    sx_buf_init(&made, 0);
    sx_buf_init(&text, 0);
    if (argc > 1) {
        size_t size;
        bench_check(sx_file_read(argv[1], 1 << 30, &read, &size));
        body = (sx_bytes){read, size};
    } else {
        write_request(&made);
        bench_check(sx_buf_status(&made));
        body = (sx_bytes){made.data, made.size};
    }
    sx_predict_slots slots;
    sx_predict_slots_init(&slots);
    double parse = 1e9, write = 1e9;
    for (int i = 0; i < TIMES; i++) {
        sx_arena arena;
        sx_predict_request request;
        sx_arena_init(&arena, 0);
        double start = bench_cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        bench_check(sx_predict_parse(body, &signature, 1, &arena, &slots, &request));
        double end = bench_cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        parse = SX_MIN(parse, end - start);
        text.size = 0;
        bench_check(sx_predict_print_numbers(&request.inputs[0], SX_FLOAT_SHORTEST, NULL, &text));
        write = SX_MIN(write, bench_cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - end);
        sx_arena_deinit(&arena);
    }
    printf("%.9f\n%.9f\n", parse, write);
    sx_predict_slots_deinit(&slots);
    sx_free(read);
    sx_buf_deinit(&made);
    sx_buf_deinit(&text);
    return 0;
}
