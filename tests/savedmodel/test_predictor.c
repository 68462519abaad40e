/* What a run of the predictor may cost: memory that does not grow with the number of images, all of
 * it charged to the arena's budget; that it stops when nobody waits; and many runs at once. */
#include "io/scratch.h"

#include <pthread.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/ir.h"
#include "image/encode.h"
#include "runtime/function_run.h"
#include "savedmodel/export.h"
#include "savedmodel/import_library.h"
#include "savedmodel/predictor.h"
#include "savedmodel/saved_model_write.h"

static const int64_t ms = 1000000;

static sx_status give_zeros(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    memset(out, 0, (size_t)sx_type_bytes(type));
    return SX_OK;
}

struct scene {
    sx_predictor *predictor;
    const sx_signature *signature;
};

/* A model whose signature takes encoded images: mean = the mean of a channel after preprocessing to
 * side x side. */
static void open_image_model(struct scene *scene, int side)
{
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    sx_preprocess preprocess;
    char *dir = NULL;
    assert_ok(sx_preprocess_recipe("simple", side, side, 3, &preprocess));
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "image", sx_type_of(SX_F32, SX_BATCH, side, side, 3));
    sx_output(b, "mean", sx_reduce_mean(b, x, .axes = SX_AXES(1, 2)));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    const sx_export_request request = {.graph = graph,
                                       .read_variable = give_zeros,
                                       .preprocess = &preprocess,
                                       .base = scratch("m")};
    assert_ok(sx_export_saved_model(&request, &dir));
    sx_graph_destroy(graph);
    assert_ok(sx_predictor_load(dir, NULL, &scene->predictor));
    sx_free(dir);
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(scene->predictor), "serving_default",
                                            &scene->signature));
}

/* A PNG of one colour: small, whatever its side. */
static void encode_png(int side, uint8_t value, sx_buf *out)
{
    const size_t size = (size_t)side * (size_t)side * 3;
    uint8_t *pixels = malloc(size);
    memset(pixels, value, size);
    const sx_image image = sx_image_view(pixels, side, side, 3);
    sx_buf_init(out, 0);
    assert_ok(sx_png_encode(&image, out));
    free(pixels);
}

/* `n` images of one pixel within 70 MiB; each has 12 * side * side bytes of floats. */
static void run_many(int side, int n)
{
    struct scene scene;
    sx_buf light, dark;
    sx_budget budget;
    sx_arena arena;
    sx_tensor output;
    sx_bytes *images = calloc((size_t)n, sizeof(*images));
    open_image_model(&scene, side);
    encode_png(1, 255, &light);
    encode_png(1, 51, &dark);
    for (int i = 0; i < n; i++) {
        const sx_buf *image = i % 3 == 0 ? &dark : &light;
        images[i] = (sx_bytes){image->data, image->size};
    }
    sx_budget_init(&budget, "one request", (size_t)70 << 20, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    const sx_tensor input = {sx_type_of(SX_STRING, n), images};
    assert_ok(sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &output));
    for (int i = 0; i < n; i++) {
        const float expected = i % 3 == 0 ? 0.2f : 1.0f;
        assert_float_equal(((const float *)output.data)[i * 3], expected,
                           1e-3); /* whose row it is */
    }
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_buf_deinit(&light);
    sx_buf_deinit(&dark);
    sx_predictor_unload(scene.predictor);
    free(images);
}

/* All at once they would take 786 and 100 MB: a piece has 64 rows, and fewer where these would be
 * large. */
static void test_savedmodel_predictor__memory_does_not_grow_with_the_batch(void **state)
{
    (void)state;
    run_many(256, 1000);
    run_many(1024, 8);
}

/* Refused before it is decoded: the last image is damaged, and nobody notices. */
static void test_savedmodel_predictor__charges_before_it_decodes(void **state)
{
    (void)state;
    enum { SIDE = 128, N = 64 };
    struct scene scene;
    sx_buf small, large;
    sx_budget budget;
    sx_arena arena;
    sx_tensor output;
    sx_bytes images[N];
    open_image_model(&scene, SIDE);
    encode_png(1, 9, &small);
    encode_png(2000, 9, &large);
    for (int i = 0; i < N; i++) {
        images[i] = (sx_bytes){small.data, small.size - (i == N - 1 ? 20 : 0)};
    }
    sx_budget_init(&budget, "one request", (size_t)10 << 20, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    const sx_tensor many = {sx_type_of(SX_STRING, N), images};
    assert_error(sx_predictor_run(scene.predictor, scene.signature, &many, NULL, &arena, &output),
                 SX_RESOURCE_EXHAUSTED, "out of memory for 64 rows of 196608 bytes");
    assert_true(sx_budget_never_fits(&budget));
    sx_arena_deinit(&arena);
    images[0] = (sx_bytes){large.data, large.size};
    const sx_tensor one = {sx_type_of(SX_STRING, 1), images};
    assert_error(sx_predictor_run(scene.predictor, scene.signature, &one, NULL, &arena, &output),
                 SX_RESOURCE_EXHAUSTED, "out of memory to decode an image of 12000000 bytes");
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
    budget.limit_bytes = (size_t)20 << 20;
    assert_ok(sx_predictor_run(scene.predictor, scene.signature, &one, NULL, &arena, &output));
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_buf_deinit(&small);
    sx_buf_deinit(&large);
    sx_predictor_unload(scene.predictor);
}

/* One piece of 64 images takes far longer than 20 ms to decode; the last one is damaged. A run that
 * went on to the end of the piece would find that. */
static void test_savedmodel_predictor__stops_between_images(void **state)
{
    (void)state;
    enum { N = 64 };
    struct scene scene;
    sx_buf large;
    sx_arena arena;
    sx_tensor output;
    sx_cancel cancel;
    sx_bytes images[N];
    open_image_model(&scene, 8);
    encode_png(800, 9, &large);
    for (int i = 0; i < N; i++) {
        images[i] = (sx_bytes){large.data, large.size - (i == N - 1 ? 20 : 0)};
    }
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_STRING, N), images};
    sx_cancel_init(&cancel, INT64_MAX);
    assert_error(
        sx_predictor_run(scene.predictor, scene.signature, &input, &cancel, &arena, &output),
        SX_DATA_LOSS, "image 63");
    sx_cancel_init(&cancel, sx_now_ns() + 20 * ms);
    assert_error(
        sx_predictor_run(scene.predictor, scene.signature, &input, &cancel, &arena, &output),
        SX_DEADLINE_EXCEEDED, "deadline");
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    assert_error(
        sx_predictor_run(scene.predictor, scene.signature, &input, &cancel, &arena, &output),
        SX_CANCELLED, "caller");
    sx_arena_deinit(&arena);
    sx_buf_deinit(&large);
    sx_predictor_unload(scene.predictor);
}

static void test_savedmodel_predictor__stops_a_load(void **state)
{
    (void)state;
    struct scene scene;
    sx_predictor *p;
    sx_cancel cancel;
    open_image_model(&scene, 8);
    const char *dir = sx_saved_model_dir(sx_predictor_model(scene.predictor));
    const sx_predictor_options options = {.cancel = &cancel, .compile_at_load = true};
    sx_cancel_init(&cancel, INT64_MAX);
    assert_ok(sx_predictor_load(dir, &options, &p));
    sx_predictor_unload(p);
    sx_cancel_request(&cancel);
    assert_error(sx_predictor_load(dir, &options, &p), SX_CANCELLED, "loading ");
    sx_cancel_init_ms(&cancel, 1);
    while (sx_now_ns() < cancel.deadline_ns) {
    }
    assert_error(sx_predictor_load(dir, &options, &p), SX_DEADLINE_EXCEEDED, "loading ");
    sx_predictor_unload(scene.predictor);
}

/* No image is decoded here: only the pieces can be what is stopped between. */
static void test_savedmodel_predictor__stops_between_pieces(void **state)
{
    (void)state;
    enum { SIDE = 8, N = 300000 };
    struct scene scene;
    sx_arena arena;
    sx_tensor output;
    sx_cancel cancel;
    const sx_signature *tensors;
    open_image_model(&scene, SIDE);
    assert_ok(
        sx_saved_model_find_signature(sx_predictor_model(scene.predictor), "tensors", &tensors));
    float *rows = calloc((size_t)N * SIDE * SIDE * 3, sizeof(float));
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_F32, N, SIDE, SIDE, 3), rows};
    sx_cancel_init(&cancel, sx_now_ns() + 10 * ms);
    assert_error(sx_predictor_run(scene.predictor, tensors, &input, &cancel, &arena, &output),
                 SX_DEADLINE_EXCEEDED, "deadline");
    sx_arena_deinit(&arena);
    free(rows);
    sx_predictor_unload(scene.predictor);
}

static void test_savedmodel_predictor__refuses_images_by_their_headers(void **state)
{
    (void)state;
    struct scene scene;
    sx_buf good;
    sx_arena arena;
    sx_tensor output;
    sx_bytes images[3];
    /* PNG of 65500 x 65500 pixels: the header is all there is */
    static const unsigned char huge[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xdc\0\0\xff\xdc"
                                        "\x08\x02\0\0\0\0\0\0\0\0\0\0\0\0";
    open_image_model(&scene, 8);
    encode_png(1, 9, &good);
    sx_arena_init(&arena, 0);
    images[0] = images[1] = (sx_bytes){good.data, good.size};
    images[2] = (sx_bytes){huge, sizeof(huge)};
    const sx_tensor input = {sx_type_of(SX_STRING, 3), images};
    assert_error(sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &output),
                 SX_INVALID_ARGUMENT,
                 "image 2 has 65500x65500 pixels; the limit is 33554432 pixels");
    images[1] = (sx_bytes){"no image", 8};
    assert_error(sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &output),
                 SX_DATA_LOSS, "image 1");
    /* Beyond a limit that the header does not show: the image's fault as well, to be told from a
     * server that is out of memory just now. */
    sx_predictor_unload(scene.predictor);
    const sx_image_limits tight = {.max_bytes = 2};
    assert_ok(sx_predictor_load(scratch("m/1"), &(sx_predictor_options){.limits = &tight},
                                &scene.predictor));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(scene.predictor), "serving_default",
                                            &scene.signature));
    images[1] = images[2] = images[0];
    assert_error(sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &output),
                 SX_INVALID_ARGUMENT, "image 0: decoding an image of 1x1 pixels takes 3 bytes");
    sx_arena_deinit(&arena);
    sx_buf_deinit(&good);
    sx_predictor_unload(scene.predictor);
}

/* Decoding is an operator of the function: whoever runs it gets the predictor's bits, also where
 * that cuts the batch, and the same refusals. */
static void test_savedmodel_predictor__decoding_is_part_of_the_function(void **state)
{
    (void)state;
    enum { N = 70, SIDE = 16 };
    struct scene scene;
    sx_buf light, dark;
    sx_bytes images[N];
    sx_library *library = NULL;
    sx_status refused[2];
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_arena arena;
    sx_tensor in_pieces, whole;
    open_image_model(&scene, SIDE);
    encode_png(37, 201, &light);
    encode_png(3, 51, &dark);
    for (int i = 0; i < N; i++) {
        const sx_buf *image = i % 3 == 0 ? &dark : &light;
        images[i] = (sx_bytes){image->data, image->size};
    }
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_STRING, N), images};
    sx_saved_model *model = NULL;
    const char *dir = sx_saved_model_dir(sx_predictor_model(scene.predictor));
    assert_ok(sx_saved_model_open(dir, &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    sx_saved_model_close(model);
    assert_ok(refused[0]);
    assert_ok(refused[1]);
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    assert_ok(
        sx_runner_create(&(sx_runner_options){.library = library, .platform = platform}, &runner));
    assert_ok(sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &in_pieces));
    assert_ok(sx_runner_run(runner, "serving_default", &input, 1, &whole, 1, &arena, NULL));
    assert_true(sx_type_equal(&in_pieces.type, &whole.type));
    assert_memory_equal(in_pieces.data, whole.data, (size_t)sx_type_bytes(&whole.type));
    images[N - 1].size -= 9;
    assert_error(sx_runner_run(runner, "serving_default", &input, 1, &whole, 1, &arena, NULL),
                 SX_DATA_LOSS, "image 69");
    assert_error(
        sx_predictor_run(scene.predictor, scene.signature, &input, NULL, &arena, &in_pieces),
        SX_DATA_LOSS, "image 69");
    images[0] = (sx_bytes){"no image", 8};
    assert_error(sx_runner_run(runner, "serving_default", &input, 1, &whole, 1, &arena, NULL),
                 SX_DATA_LOSS, "image 0");
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_library_destroy(library);
    sx_arena_deinit(&arena);
    sx_buf_deinit(&light);
    sx_buf_deinit(&dark);
    sx_predictor_unload(scene.predictor);
}

/* ---- Numbers of rows ---- */

/* y = a + b, which computes each example by itself if both have the same number of rows. */
static void test_savedmodel_predictor__inputs_have_numbers_of_rows_of_their_own(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 3}, {3, 1}, {1, 2}, {0, 0}, {0, 1}, {70, 70}};
    static float x[70 * 2];
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 2);
    sx_saved_model_writer *m;
    sx_tf_value in[2];
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    for (int i = 0; i < 2; i++) {
        in[i] = sx_tf_add(
            w, "Placeholder", i == 0 ? "a" : "b", SX_TF_NO_IN,
            sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &type)));
    }
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "a", in[0], &type);
    sx_saved_model_input(m, "b", in[1], &type);
    sx_saved_model_output(m, "y",
                          sx_tf_add(w, "AddV2", "y", sx_tf_in(in[0], in[1]),
                                    sx_tf_attrs(sx_tf_attr_type("T", SX_F32))),
                          &type);
    assert_ok(sx_saved_model_write(m, scratch("sizes/1"), NULL, NULL));
    sx_saved_model_writer_destroy(m);
    assert_ok(sx_predictor_load(scratch("sizes/1"), &(sx_predictor_options){.threads = 1}, &p));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), SX_SERVING_DEFAULT, &s));
    assert_true(sx_predictor_may_take_long(p, s));
    for (int i = 0; i < 70 * 2; i++) {
        x[i] = (float)i;
    }
    for (size_t k = 0; k < SX_COUNT(sizes); k++) {
        const int64_t n = sizes[k][0], b = sizes[k][1], rows = n == 1 ? b : n;
        const sx_tensor args[2] = {{sx_type_of(SX_F32, n, 2), x}, {sx_type_of(SX_F32, b, 2), x}};
        const sx_type want = sx_type_of(SX_F32, rows, 2);
        sx_tensor y;
        sx_arena arena;
        sx_arena_init(&arena, 0);
        assert_ok(sx_predictor_run(p, s, args, NULL, &arena, &y));
        assert_true(sx_type_equal(&y.type, &want));
        for (int64_t i = 0; i < 2 * rows; i++) {
            assert_true(((float *)y.data)[i] == x[n == 1 ? i % 2 : i] + x[b == 1 ? i % 2 : i]);
        }
        sx_arena_deinit(&arena);
    }
    const sx_tensor args[2] = {{sx_type_of(SX_F32, 2, 2), x}, {sx_type_of(SX_F32, 3, 2), x}};
    sx_tensor y;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    assert_error(sx_predictor_run(p, s, args, NULL, &arena, &y), SX_INVALID_ARGUMENT, "\"y/add\"");
    sx_arena_deinit(&arena);
    sx_predictor_unload(p);
}

/* ---- The first run ---- */

/* Loading compiles, and prepares what only a first run does: that of a predictor which compiles
 * when it loads allocates no more than its second, that of another one does. */
static void test_savedmodel_predictor__the_first_run_is_like_a_later_one(void **state)
{
    (void)state;
    struct scene scene;
    open_image_model(&scene, 16);
    const char *dir = sx_saved_model_dir(sx_predictor_model(scene.predictor));
    for (int at_load = 0; at_load < 2; at_load++) {
        sx_predictor *p;
        const sx_signature *s;
        long allocated[2];
        float image[16 * 16 * 3] = {0};
        const sx_tensor input = {sx_type_of(SX_F32, 1, 16, 16, 3), image};
        assert_ok(sx_predictor_load(
            dir, &(sx_predictor_options){.on.device = "cpu", .compile_at_load = at_load == 1}, &p));
        assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "tensors", &s));
        for (int i = 0; i < 2; i++) {
            sx_tensor output;
            sx_arena arena;
            sx_arena_init(&arena, 0);
            const long before = sx_alloc_count();
            assert_ok(sx_predictor_run(p, s, &input, NULL, &arena, &output));
            allocated[i] = sx_alloc_count() - before;
            sx_arena_deinit(&arena);
        }
        assert_int_equal(at_load, allocated[0] == allocated[1]);
        sx_predictor_unload(p);
    }
    sx_predictor_unload(scene.predictor);
}

static sx_status give_numbers(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        ((float *)out)[i] = (float)(i % 7) - 2;
    }
    return SX_OK;
}

/* Changes a byte in the middle of a file, or changes it back. */
static void flip(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 1000, SEEK_SET), 0);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, 1000, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ 1, f), c ^ 1);
    assert_int_equal(fclose(f), 0);
}

static sx_status convolve(sx_predictor *p, int64_t rows, float *out)
{
    static float x[4 * 8 * 8 * 64];
    const sx_signature *s;
    sx_arena arena;
    sx_tensor y;
    for (int i = 0; i < 4 * 8 * 8 * 64; i++) {
        x[i] = (float)(i % (8 * 8 * 64) % 5);
    }
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), SX_SERVING_DEFAULT, &s));
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_F32, rows, 8, 8, 64), x};
    sx_status status = sx_predictor_run(p, s, &input, NULL, &arena, &y);
    if (status == SX_OK) {
        memcpy(out, (const float *)y.data + (rows - 1) * 64, 64 * sizeof(float));
    }
    sx_arena_deinit(&arena);
    return status;
}

/* A filter that is packed is read from its file for each number of rows, and checked each time;
 * where nothing is compiled at load, by the first run. */
static void test_savedmodel_predictor__packed_variables_are_read_again(void **state)
{
    (void)state;
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    char *dir = NULL, path[512];
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, 64));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 3, 3, 64, 64)});
    sx_output(b, "y", sx_reduce_mean(b, sx_nn_conv2d(b, x, w), .axes = SX_AXES(1, 2)));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    const sx_export_request request = {
        .graph = graph, .read_variable = give_numbers, .base = scratch("m")};
    assert_ok(sx_export_saved_model(&request, &dir));
    sx_graph_destroy(graph);
    snprintf(path, sizeof(path), "%s/variables/variables.data-00000-of-00001", dir);
    for (int threads = 1; threads <= 2; threads++) {
        const sx_predictor_options options = {
            .on.device = "cpu", .threads = threads, .compile_at_load = true};
        const sx_predictor_options lazy = {.on.device = "cpu", .threads = threads};
        sx_predictor *p;
        float first[64], y[64];
        flip(path);
        assert_ok(sx_predictor_load(dir, &lazy, &p));
        assert_error(convolve(p, 1, y), SX_DATA_LOSS, "tensor \"w\"");
        flip(path);
        assert_ok(convolve(p, 1, y));
        sx_predictor_unload(p);
        flip(path);
        assert_error(sx_predictor_load(dir, &options, &p), SX_DATA_LOSS, "tensor \"w\"");
        flip(path);
        assert_ok(sx_predictor_load(dir, &options, &p));
        assert_ok(convolve(p, 1, first));
        flip(path);
        assert_ok(convolve(p, 1, y));
        assert_memory_equal(y, first, sizeof(y));
        assert_error(convolve(p, 2, y), SX_DATA_LOSS, "tensor \"w\"");
        flip(path);
        assert_ok(convolve(p, 2, y));
        for (int i = 0; i < 64; i++) {
            assert_float_equal(y[i], first[i], 1e-3);
        }
        if (threads == 2) {
            assert_int_equal(unlink(path), 0);
        }
        assert_ok(convolve(p, 4, y));
        for (int i = 0; i < 64; i++) {
            assert_float_equal(y[i], first[i], 1e-3);
        }
        sx_predictor_unload(p);
    }
    sx_free(dir);
}

/* ---- Several at once ---- */

static int64_t resident_bytes(void)
{
    long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld %lld", &pages, &resident), 2);
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

static void convolve_wide(sx_predictor *p, float out[2])
{
    static float x[3 * 3 * 1024];
    const sx_signature *s;
    sx_arena arena;
    sx_tensor y;
    for (int i = 0; i < 3 * 3 * 1024; i++) {
        x[i] = (float)(i % 3);
    }
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), SX_SERVING_DEFAULT, &s));
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_F32, 1, 3, 3, 1024), x};
    assert_ok(sx_predictor_run(p, s, &input, NULL, &arena, &y));
    memcpy(out, y.data, 2 * sizeof(float));
    sx_arena_deinit(&arena);
}

/* Versions of a model whose weights are equal have one packed form of them, whichever goes first.
 */
static void test_savedmodel_predictor__equal_weights_are_packed_once(void **state)
{
    (void)state;
    enum { CHANNELS = 1024, VERSIONS = 3 };
    const int64_t bytes = (int64_t)9 * CHANNELS * CHANNELS * (int64_t)sizeof(float);
    const sx_predictor_options options = {
        .on.device = "cpu", .threads = 1, .compile_at_load = true};
    if (harness_sanitizes()) {
        SX_SKIP("a sanitizer keeps freed memory");
    }
    if (getenv("LD_PRELOAD") != NULL) { /* an allocator that checks takes more memory */
        char command[200];
        snprintf(command, sizeof(command), "env -u LD_PRELOAD -u GLIBC_TUNABLES /proc/%d/exe %s",
                 (int)getpid(), __func__);
        assert_int_equal(system(command), 0);
        return;
    }
    sx_predictor *p[VERSIONS];
    int64_t resident[VERSIONS + 1];
    float first[2], y[2];
    for (int v = 0; v < VERSIONS; v++) {
        sx_builder *b = NULL;
        sx_graph *graph = NULL;
        char *dir = NULL, base[16];
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3, 3, CHANNELS));
        sx_value w = sx_variable(
            b,
            &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 3, 3, CHANNELS, CHANNELS)});
        sx_output(b, "y", sx_reduce_mean(b, sx_nn_conv2d(b, x, w), .axes = SX_AXES(1, 2)));
        assert_ok(sx_builder_finish(b, &graph));
        sx_builder_destroy(b);
        snprintf(base, sizeof(base), "m%d", v);
        const sx_export_request request = {
            .graph = graph, .read_variable = give_numbers, .base = scratch(base)};
        assert_ok(sx_export_saved_model(&request, &dir));
        sx_graph_destroy(graph);
        resident[v] = resident_bytes();
        assert_ok(sx_predictor_load(dir, &options, &p[v]));
        convolve_wide(p[v], v == 0 ? first : y);
        if (v > 0) {
            assert_memory_equal(y, first, sizeof(y));
        }
        assert_true(sx_predictor_memory_used(p[v]) >= (size_t)bytes); /* each pays for it */
        sx_free(dir);
    }
    resident[VERSIONS] = resident_bytes();
    const int64_t one = resident[1] - resident[0], more = resident[VERSIONS] - resident[1];
    if (one < bytes / 2 || more > bytes / 2) {
        fail_msg("%lld bytes of weights take %lld, in %d versions %lld more", (long long)bytes,
                 (long long)one, (int)VERSIONS, (long long)more);
    }
    for (int v = 0; v < VERSIONS; v++) {
        sx_predictor_unload(p[v]);
        if (v + 1 < VERSIONS) {
            convolve_wide(p[v + 1], y);
            assert_memory_equal(y, first, sizeof(y));
        }
    }
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 12, MOST_ROWS = 70 };

typedef struct client {
    const struct scene *scene;
    const sx_bytes *images; /* [MOST_ROWS]: every third is dark */
    int rows;
    pthread_t thread;
    bool right;
} client;

static void *ask(void *user)
{
    client *c = user;
    c->right = true;
    for (int k = 0; k < ROUNDS; k++) {
        sx_arena arena;
        sx_tensor output;
        const int n = k % 2 == 0 ? c->rows : 1;
        const sx_tensor input = {sx_type_of(SX_STRING, n), (void *)(uintptr_t)c->images};
        sx_arena_init(&arena, 0);
        assert_ok(sx_predictor_run(c->scene->predictor, c->scene->signature, &input, NULL, &arena,
                                   &output));
        for (int i = 0; i < n; i++) {
            const float error = ((const float *)output.data)[3 * i] - (i % 3 == 0 ? 0.2f : 1.0f);
            c->right = c->right && error < 1e-3f && error > -1e-3f;
        }
        sx_arena_deinit(&arena);
    }
    return NULL;
}

/* Batches of several sizes from several threads: each gets its own rows' results. */
static void test_savedmodel_predictor__threads_run_at_once(void **state)
{
    (void)state;
    static const int rows[THREADS] = {MOST_ROWS, 5, 33, 2};
    struct scene scene;
    sx_buf light, dark;
    sx_bytes images[MOST_ROWS];
    client clients[THREADS];
    open_image_model(&scene, 16);
    encode_png(3, 255, &light);
    encode_png(3, 51, &dark);
    for (int i = 0; i < MOST_ROWS; i++) {
        const sx_buf *image = i % 3 == 0 ? &dark : &light;
        images[i] = (sx_bytes){image->data, image->size};
    }
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (client){.scene = &scene, .images = images, .rows = rows[i]};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, ask, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_true(clients[i].right);
    }
    sx_buf_deinit(&light);
    sx_buf_deinit(&dark);
    sx_predictor_unload(scene.predictor);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_predictor__memory_does_not_grow_with_the_batch),
    scratch_test(test_savedmodel_predictor__charges_before_it_decodes),
    scratch_test(test_savedmodel_predictor__stops_between_images),
    scratch_test(test_savedmodel_predictor__stops_a_load),
    scratch_test(test_savedmodel_predictor__stops_between_pieces),
    scratch_test(test_savedmodel_predictor__refuses_images_by_their_headers),
    scratch_test(test_savedmodel_predictor__decoding_is_part_of_the_function),
    scratch_test(test_savedmodel_predictor__inputs_have_numbers_of_rows_of_their_own),
    scratch_test(test_savedmodel_predictor__the_first_run_is_like_a_later_one),
    scratch_test(test_savedmodel_predictor__packed_variables_are_read_again),
    scratch_test(test_savedmodel_predictor__equal_weights_are_packed_once),
    scratch_test(test_savedmodel_predictor__threads_run_at_once),
};

SX_TEST_MAIN(tests)
