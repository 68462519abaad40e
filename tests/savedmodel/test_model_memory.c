/* The memory of a model is known before it runs, and refused beyond a limit: small files that ask
 * for much, on every backend of this machine's processors. */
#include "io/scratch.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include <sextant/infer.h>

#include "graph/ir.h"
#include "savedmodel/predictor.h"
#include "savedmodel/saved_model_write.h"

#include "imported.h"
#include "peak.h"

enum { MIB = 1 << 20 };

typedef struct scene {
    sx_saved_model_writer *m;
    sx_tf_writer *w;
    sx_tf_value x;
    sx_type x_type; /* float32[N,1] */
} scene;

static void begin(scene *s)
{
    s->x_type = sx_type_of(SX_F32, SX_BATCH, 1);
    assert_ok(sx_saved_model_writer_create(&s->m));
    s->w = sx_saved_model_nodes(s->m);
    s->x = sx_tf_add(
        s->w, "Placeholder", "x", SX_TF_NO_IN,
        sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &s->x_type)));
}

static void signature(scene *s, const char *name, sx_tf_value y)
{
    sx_saved_model_signature(s->m, name);
    sx_saved_model_input(s->m, "x", s->x, &s->x_type);
    sx_saved_model_output(s->m, "y", y, &s->x_type);
}

static void end(scene *s)
{
    assert_ok(sx_saved_model_write(s->m, scratch("m/1"), NULL, NULL));
    sx_saved_model_writer_destroy(s->m);
}

/* `count` floats, in `rank` 2: a column or a row. */
static sx_tf_value constant(scene *s, const char *name, int64_t rows, int64_t columns, float value)
{
    const int64_t count = rows * columns;
    float *data = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        data[i] = value;
    }
    sx_tf_value c = sx_tf_const(s->w, name, &(sx_tensor){sx_type_of(SX_F32, rows, columns), data});
    free(data);
    return c;
}

static sx_tf_value matmul(scene *s, sx_tf_value a, sx_tf_value b)
{
    return sx_tf_add(s->w, "MatMul", NULL, sx_tf_in(a, b),
                     sx_tf_attrs(sx_tf_attr_type("T", SX_F32)));
}

static sx_tf_value sum(scene *s, sx_tf_value x, int n_axes, bool keep)
{
    static const int32_t both[] = {0, 1};
    sx_tf_value axes = sx_tf_const_i32s(s->w, "axes", n_axes, n_axes == 2 ? both : both + 1);
    return sx_tf_add(s->w, "Sum", NULL, sx_tf_in(x, axes),
                     sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("Tidx", SX_I32),
                                 sx_tf_attr_bool("keep_dims", keep)));
}

static sx_tf_value add(scene *s, sx_tf_value a, sx_tf_value b)
{
    return sx_tf_add(s->w, "AddV2", NULL, sx_tf_in(a, b),
                     sx_tf_attrs(sx_tf_attr_type("T", SX_F32)));
}

/* y = x + the sum of a [n,1] times a [1,n]: n² values between two small constants. */
static void write_product(int64_t n)
{
    scene s;
    begin(&s);
    sx_tf_value product = matmul(&s, constant(&s, "a", n, 1, 1), constant(&s, "b", 1, n, 0.5f));
    signature(&s, SX_SERVING_DEFAULT, add(&s, s.x, sum(&s, product, 2, false)));
    end(&s);
}

static sx_status run_rows(sx_predictor *p, int64_t rows, const float *x, float *out_y)
{
    const sx_signature *s = NULL;
    sx_arena arena;
    sx_tensor output;
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), SX_SERVING_DEFAULT, &s));
    sx_arena_init(&arena, 0);
    const sx_tensor input = {sx_type_of(SX_F32, rows, 1), (void *)(uintptr_t)x};
    sx_status status = sx_predictor_run(p, s, &input, NULL, &arena, &output);
    if (status == SX_OK) {
        memcpy(out_y, output.data, (size_t)rows * sizeof(float));
    }
    sx_arena_deinit(&arena);
    return status;
}

static void refuses_a_product(const char *device, int64_t limit_bytes, const char *figures)
{
    const float x = 1;
    float y;
    sx_predictor *p = NULL;
    sx_predictor_options options = {
        .on.device = device, .threads = 1, .memory_limit_bytes = limit_bytes};
    const int64_t before = sx_peak_bytes();
    assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
    sx_status status = run_rows(p, 1, &x, &y);
    assert_non_null(strstr(sx_status_message(status), figures));
    assert_error(status, SX_RESOURCE_EXHAUSTED, "would exceed the memory limit of the model: ");
    sx_predictor_unload(p);
    options.compile_at_load = true;
    assert_error(sx_predictor_load(scratch("m/1"), &options, &p), SX_RESOURCE_EXHAUSTED, figures);
    assert_true(sx_peak_bytes() - before < 200 * MIB);
}

static void test_savedmodel_model_memory__refuses_before_allocating(void **state)
{
    (void)state;
    write_product(40000);
    refuses_a_product("cpu", 2048LL * MIB, "the largest value is float32[40000,40000] of matmul");
    refuses_a_product("cpu", 2048LL * MIB, "temporaries of 6.0 GiB");
    refuses_a_product("host", 2048LL * MIB, "the largest value is float32[40000,40000] of matmul");
    refuses_a_product("host", 2048LL * MIB, "in use");
}

/* y = x + the lengths of x's texts, whose rows are doubled 40 times. */
static void write_doubled_rows(void)
{
    const int32_t zero = 0;
    scene s;
    begin(&s);
    sx_tf_value rows =
        sx_tf_add(s.w, "AsString", NULL, sx_tf_in(s.x), sx_tf_attrs(sx_tf_attr_type("T", SX_F32)));
    sx_tf_value axis =
        sx_tf_const(s.w, "axis", &(sx_tensor){sx_scalar_type(SX_I32), (void *)(uintptr_t)&zero});
    for (int i = 0; i < 40; i++) {
        rows = sx_tf_add(s.w, "ConcatV2", NULL, sx_tf_in(rows, rows, axis),
                         sx_tf_attrs(sx_tf_attr_int("N", 2), sx_tf_attr_type("T", SX_STRING),
                                     sx_tf_attr_type("Tidx", SX_I32)));
    }
    sx_tf_value lengths = sx_tf_add(s.w, "StringLength", NULL, sx_tf_in(rows),
                                    sx_tf_attrs(sx_tf_attr_string("unit", "BYTE")));
    sx_tf_value cast =
        sx_tf_add(s.w, "Cast", NULL, sx_tf_in(lengths),
                  sx_tf_attrs(sx_tf_attr_type("SrcT", SX_I32), sx_tf_attr_type("DstT", SX_F32)));
    signature(&s, SX_SERVING_DEFAULT, add(&s, s.x, sum(&s, cast, 2, false)));
    end(&s);
}

/* What the host steps make is known to be too much before any of them runs. */
static void test_savedmodel_model_memory__refuses_rows_that_double(void **state)
{
    (void)state;
    const float x = 1;
    float y;
    sx_predictor *p = NULL;
    const sx_predictor_options options = {
        .on.device = "cpu", .threads = 1, .memory_limit_bytes = 2048LL * MIB};
    write_doubled_rows();
    const int64_t before = sx_peak_bytes();
    assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
    assert_error(run_rows(p, 1, &x, &y), SX_RESOURCE_EXHAUSTED, "the largest is string[");
    assert_true(sx_peak_bytes() - before < 64 * MIB);
    sx_predictor_unload(p);
}

static int64_t resident_bytes(void)
{
    long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld %lld", &pages, &resident), 2);
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

/* Runs the model at several batch sizes, each with an executable of its own, and compares the
 * memory that it keeps with its constants' bytes. */
static void keeps_constants_twice(int64_t bytes, float expected)
{
    static const int64_t batches[] = {1, 2, 4, 8};
    const float x[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    sx_predictor *p = NULL;
    const int64_t before = resident_bytes();
    assert_ok(sx_predictor_load(scratch("m/1"),
                                &(sx_predictor_options){.on.device = "cpu", .threads = 1}, &p));
    for (int k = 0; k < 4; k++) {
        float y[8] = {0};
        assert_ok(run_rows(p, batches[k], x, y));
        for (int64_t i = 0; i < batches[k]; i++) {
            assert_float_equal(y[i], expected, 1e-5f * expected);
        }
    }
    const int64_t kept = resident_bytes() - before;
    sx_predictor_unload(p);
    if (kept > bytes * 5 / 2) {
        fail_msg("%lld bytes of constants take %lld", (long long)bytes, (long long)kept);
    }
    assert_ok(sx_dir_remove(scratch("m")));
}

/* A constant is kept by the library and by the executables, as a convolution's packed filter or as
 * it is; the graphs between them have none. */
static void test_savedmodel_model_memory__graphs_share_large_constants(void **state)
{
    (void)state;
    enum { SIDE = 4096 };
    scene s;
    if (harness_sanitizes()) {
        SX_SKIP("a sanitizer keeps freed memory");
    }
    begin(&s);
    const sx_tf_value row = matmul(&s, s.x, constant(&s, "a", 1, SIDE, 1));
    const sx_tf_value product = matmul(&s, row, constant(&s, "b", SIDE, SIDE, 0.5f));
    signature(&s, SX_SERVING_DEFAULT, sum(&s, product, 1, true));
    end(&s);
    keeps_constants_twice((int64_t)SIDE * SIDE * (int64_t)sizeof(float), 3 * 0.5f * SIDE * SIDE);

    enum { IMAGE = 2, CHANNELS = 1024, FILTERS = CHANNELS * CHANNELS };
    begin(&s);
    const int32_t image[] = {-1, IMAGE, IMAGE, CHANNELS}, flat[] = {-1, IMAGE * IMAGE * CHANNELS};
    const sx_tf_attr_list reshape =
        sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("Tshape", SX_I32));
    sx_tf_value y = matmul(&s, s.x, constant(&s, "a", 1, flat[1], 1));
    y = sx_tf_add(s.w, "Reshape", NULL, sx_tf_in(y, sx_tf_const_i32s(s.w, "image", 4, image)),
                  reshape);
    float *filter = malloc(sizeof(float) * FILTERS * 9);
    for (int i = 0; i < FILTERS * 9; i++) {
        filter[i] = i / FILTERS == 4 ? 0.5f : 0; /* at the middle */
    }
    const sx_type type = sx_type_of(SX_F32, 3, 3, CHANNELS, CHANNELS);
    y = sx_tf_add(s.w, "Conv2D", NULL,
                  sx_tf_in(y, sx_tf_const(s.w, "filter", &(sx_tensor){type, filter})),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_F32),
                              sx_tf_attr_ints("strides", 4, (const int64_t[]){1, 1, 1, 1}),
                              sx_tf_attr_string("padding", "SAME")));
    free(filter);
    y = sx_tf_add(s.w, "Reshape", NULL, sx_tf_in(y, sx_tf_const_i32s(s.w, "flat", 2, flat)),
                  reshape);
    signature(&s, SX_SERVING_DEFAULT, sum(&s, y, 1, true));
    end(&s);
    keeps_constants_twice(sx_type_bytes(&type), 3 * 0.5f * FILTERS * IMAGE * IMAGE);
}

/* The sum over all elements of `rank` vectors of 2^15 values, each along an axis of its own, added
 * to one another: 2^62 bytes for 4 of them, and a count that no integer holds for 5. */
static void write_outer_sum(int rank)
{
    static const int32_t axes[] = {0, 1, 2, 3, 4};
    static float values[1 << 15];
    scene s;
    begin(&s);
    sx_tf_value y = s.x;
    for (int i = 0; i < rank; i++) {
        sx_type type = {.dtype = SX_F32, .rank = rank, .dims = {1, 1, 1, 1, 1}};
        type.dims[i] = 1 << 15;
        sx_tf_value c = sx_tf_const(s.w, "c", &(sx_tensor){type, values});
        y = i == 0 ? c : add(&s, y, c);
    }
    y = sx_tf_add(s.w, "Sum", NULL, sx_tf_in(y, sx_tf_const_i32s(s.w, "axes", rank, axes)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("Tidx", SX_I32)));
    signature(&s, SX_SERVING_DEFAULT, add(&s, s.x, y));
    end(&s);
}

static void test_savedmodel_model_memory__sizes_do_not_wrap(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "host"};
    for (int rank = 4; rank <= 5; rank++) {
        write_outer_sum(rank);
        for (int i = 0; i < 2; i++) {
            const float x = 1;
            float out;
            sx_predictor *p = NULL;
            const sx_predictor_options options = {
                .on.device = devices[i], .threads = 1, .memory_limit_bytes = 64 * MIB};
            assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
            assert_error(run_rows(p, 1, &x, &out), SX_RESOURCE_EXHAUSTED,
                         "more memory than can be addressed");
            sx_predictor_unload(p);
        }
        assert_ok(sx_dir_remove(scratch("m")));
    }
}

static void test_savedmodel_model_memory__runs_what_fits(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "host"};
    write_product(500); /* 1 MB, 2 MB more in doubles */
    for (int i = 0; i < 2; i++) {
        const float x = 1;
        float y = 0;
        sx_predictor *p = NULL;
        const sx_predictor_options options = {.on.device = devices[i],
                                              .threads = 1,
                                              .memory_limit_bytes = 8 * MIB,
                                              .compile_at_load = true};
        assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
        assert_ok(run_rows(p, 1, &x, &y));
        assert_true(y == 125001);
        assert_int_equal(sx_predictor_memory_limit(p), 8 * MIB);
        sx_predictor_unload(p);
    }
    refuses_a_product("cpu", 512 * 1024, "float32[500,500]");
    refuses_a_product("host", 512 * 1024, "float32[500,500]");
}

/* Each row takes a megabyte while it runs: large batches run in parts, small ones as ever. */
static void test_savedmodel_model_memory__large_batches_run_in_parts(void **state)
{
    (void)state;
    enum { ROWS = 70, WIDTH = 256 * 1024 };
    scene s;
    begin(&s);
    sx_tf_value wide = matmul(&s, s.x, constant(&s, "b", 1, WIDTH, 0.25f));
    signature(&s, SX_SERVING_DEFAULT, sum(&s, wide, 1, true));
    end(&s);
    float x[ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[i] = (float)i;
    }
    sx_predictor *p = NULL;
    const sx_predictor_options options = {.threads = 1, .memory_limit_bytes = 16 * MIB};
    assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
    static const int64_t batches[] = {1, ROWS, 3, 64, 1, ROWS};
    for (size_t k = 0; k < sizeof(batches) / sizeof(batches[0]); k++) {
        memset(y, 0, sizeof(y));
        assert_ok(run_rows(p, batches[k], x, y));
        for (int64_t i = 0; i < batches[k]; i++) {
            assert_float_equal(y[i], 0.25 * WIDTH * (double)i, 1e-6 * WIDTH * (double)i);
        }
    }
    sx_predictor_unload(p);
}

/* A constant that many nodes read is one node. */
static void test_savedmodel_model_memory__constants_are_shared(void **state)
{
    (void)state;
    enum { USES = 40 };
    scene s;
    begin(&s);
    sx_tf_value c = constant(&s, "c", 1, 1000, 2), y = s.x;
    for (int i = 0; i < USES; i++) {
        y = sum(&s, add(&s, y, c), 1, true);
    }
    signature(&s, SX_SERVING_DEFAULT, y);
    end(&s);
    sx_saved_model *model = NULL;
    imported import;
    int count = 0;
    assert_ok(sx_saved_model_open(scratch("m/1"), &model));
    assert_ok(import_signature(model, SX_SERVING_DEFAULT, &import));
    assert_non_null(import.graph);
    for (int k = 0; k < import.graph->n_nodes; k++) {
        const sx_node *n = &import.graph->nodes[k];
        count += n->op->id == SX_OPID_constant &&
                 sx_type_elems(sx_graph_type(import.graph, n->first_output)) == 1000;
    }
    assert_int_equal(count, 1);
    imported_end(&import);
    sx_saved_model_close(model);
}

static sx_status give_ones(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        ((float *)out)[i] = 1;
    }
    return SX_OK;
}

/* A signature that runs in pieces and one whose examples depend on one another share 12 MiB of
 * variables; while the last is added, its value is there twice. */
static void test_savedmodel_model_memory__variables_exist_once(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_F32, 1, MIB);
    scene s;
    begin(&s);
    sx_tf_value y = s.x;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        y = add(&s, y, sum(&s, sx_saved_model_variable(s.m, name, &type, true), 2, false));
    }
    signature(&s, SX_SERVING_DEFAULT, y);
    signature(&s, "whole", add(&s, y, sum(&s, s.x, 2, false)));
    assert_ok(sx_saved_model_write(s.m, scratch("m/1"), give_ones, NULL));
    sx_saved_model_writer_destroy(s.m);
    static const char *const keys[] = {SX_SERVING_DEFAULT, "whole"};
    static float x[70] = {1, 2};
    sx_predictor *p = NULL;
    const sx_predictor_options options = {.threads = 1, .memory_limit_bytes = 18 * MIB};
    assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
    for (int i = 0; i < 2; i++) {
        const sx_signature *found = NULL;
        sx_arena arena;
        sx_tensor output;
        assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), keys[i], &found));
        sx_arena_init(&arena, 0);
        const sx_tensor input = {sx_type_of(SX_F32, 70, 1), x};
        assert_ok(sx_predictor_run(p, found, &input, NULL, &arena, &output));
        assert_true(((const float *)output.data)[1] == (float)(3 * MIB + 2 + (i == 1 ? 3 : 0)));
        sx_arena_deinit(&arena);
    }
    sx_predictor_unload(p);
}

/* Signatures import their constants each for itself: together they are held to the limit. */
static void test_savedmodel_model_memory__graphs_count(void **state)
{
    (void)state;
    scene s;
    begin(&s);
    sx_tf_value c = constant(&s, "c", 1, MIB, 2); /* 4 MiB */
    sx_tf_value y = sum(&s, add(&s, s.x, c), 1, true);
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof(name), "s%d", i);
        signature(&s, name, y);
    }
    end(&s);
    sx_predictor *p = NULL;
    sx_predictor_options options = {.threads = 1, .memory_limit_bytes = 40 * MIB};
    assert_error(sx_predictor_load(scratch("m/1"), &options, &p), SX_RESOURCE_EXHAUSTED,
                 "the graph would exceed the memory limit of the model: ");
    options.memory_limit_bytes = -1;
    assert_ok(sx_predictor_load(scratch("m/1"), &options, &p));
    assert_int_equal(sx_predictor_memory_limit(p), 0);
    sx_predictor_unload(p);
}

/* The file itself, and what it unpacks to. */
static void test_savedmodel_model_memory__files_count(void **state)
{
    (void)state;
    scene s;
    begin(&s);
    signature(&s, SX_SERVING_DEFAULT, sum(&s, add(&s, s.x, constant(&s, "c", 1, MIB, 2)), 1, true));
    end(&s);
    sx_predictor *p = NULL;
    sx_predictor_options options = {.threads = 1, .memory_limit_bytes = 6 * MIB};
    sx_status status = sx_predictor_load(scratch("m/1"), &options, &p);
    assert_int_equal(sx_status_code(status), SX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(sx_status_message(status), "unpacking /"));
    assert_non_null(strstr(
        sx_status_message(status),
        "/saved_model.pb would exceed the memory limit of the model: 4.0 MiB of 6.0 MiB in use"));
    sx_status_free(status);
    assert_int_equal(truncate(scratch("m/1/saved_model.pb"), 64 * MIB), 0);
    options.memory_limit_bytes = 40 * MIB;
    const int64_t before = sx_peak_bytes();
    assert_error(sx_predictor_load(scratch("m/1"), &options, &p), SX_RESOURCE_EXHAUSTED,
                 "/saved_model.pb of 64.0 MiB would exceed the memory limit of the model: ");
    assert_true(sx_peak_bytes() - before < 32 * MIB);
}

/* The public interface: a directory of versions, and its limit. */
static void test_savedmodel_model_memory__servables(void **state)
{
    (void)state;
    const float x = 1;
    const sx_tensor input = {sx_type_of(SX_F32, 1, 1), (void *)(uintptr_t)&x};
    sx_servable *servable = NULL;
    sx_outputs *outputs = NULL;
    sx_servable_options options = {
        .struct_size = sizeof(options), .threads = 1, .memory_limit_bytes = 2LL * MIB};
    assert_error(sx_servable_load(scratch("m"), NULL, &servable), SX_NOT_FOUND, "m");
    write_product(500);
    assert_ok(sx_dir_create(scratch("m/7"))); /* no model in it */
    assert_ok(sx_servable_load(scratch("m"), &options, &servable));
    assert_string_equal(sx_servable_dir(servable), scratch("m/1"));
    assert_ok(sx_servable_run(servable, NULL, &input, &outputs));
    assert_true(((const float *)sx_outputs_at(outputs, 0)->data)[0] == 125001);
    sx_outputs_free(outputs);
    sx_servable_release(servable);
    options.memory_limit_bytes = MIB / 2;
    assert_error(sx_servable_load(scratch("m/1"), &options, &servable), SX_RESOURCE_EXHAUSTED,
                 "would exceed the memory limit of the model (memory_limit_bytes): ");
    options.lazy = true; /* it is compiled when it runs */
    assert_ok(sx_servable_load(scratch("m/1"), &options, &servable));
    sx_status status = sx_servable_run(servable, NULL, &input, &outputs);
    assert_non_null(strstr(sx_status_message(status), "float32[500,500]"));
    assert_error(status, SX_RESOURCE_EXHAUSTED,
                 "would exceed the memory limit of the model (memory_limit_bytes): ");
    sx_servable_release(servable);
    char name[] = "max_model_bytes";
    options.memory_limit_name = name;
    assert_ok(sx_servable_load(scratch("m/1"), &options, &servable));
    name[0] = '?'; /* it was copied */
    assert_error(sx_servable_run(servable, NULL, &input, &outputs), SX_RESOURCE_EXHAUSTED,
                 "would exceed the memory limit of the model (max_model_bytes): ");
    sx_servable_release(servable);
    assert_ok(sx_dir_remove(scratch("m/1")));
    assert_error(sx_servable_load(scratch("m"), NULL, &servable), SX_NOT_FOUND,
                 "has no saved_model.pb, and no numbered version directory with one");
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_model_memory__graphs_share_large_constants),
    scratch_test(test_savedmodel_model_memory__refuses_before_allocating),
    scratch_test(test_savedmodel_model_memory__refuses_rows_that_double),
    scratch_test(test_savedmodel_model_memory__sizes_do_not_wrap),
    scratch_test(test_savedmodel_model_memory__runs_what_fits),
    scratch_test(test_savedmodel_model_memory__large_batches_run_in_parts),
    scratch_test(test_savedmodel_model_memory__constants_are_shared),
    scratch_test(test_savedmodel_model_memory__variables_exist_once),
    scratch_test(test_savedmodel_model_memory__graphs_count),
    scratch_test(test_savedmodel_model_memory__files_count),
    scratch_test(test_savedmodel_model_memory__servables),
};
SX_TEST_MAIN(tests)
