/* A SavedModel on several devices of a plugin: the pieces of a batch, and the calls of several
 * threads, are divided among them, with the bits of one device. Over our own plugin, which says
 * which devices have executed. */
#include "io/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sextant/ops.h>

#include "../backends/pjrt_plugin.h"
#include "base/clock.h"
#include "base/memory.h"
#include "image/encode.h"
#include "savedmodel/export.h"
#include "savedmodel/predictor.h"

enum { IN = 5, OUT = 3, MOST_ROWS = 333, SIDE = 4 };

static sx_status give_numbers(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        ((float *)out)[i] = (float)(i * 7 % 11) / 9 - 0.5F;
    }
    return SX_OK;
}

/* x [N,IN] or an encoded image -> y = softmax(x w). */
static char *export_model(bool images)
{
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    sx_preprocess preprocess;
    char *dir = NULL;
    const int n = images ? SIDE * SIDE * 3 : IN;
    assert_ok(sx_preprocess_recipe("simple", SIDE, SIDE, 3, &preprocess));
    assert_ok(sx_builder_create(&b));
    sx_value x = images ? sx_input(b, "image", sx_type_of(SX_F32, SX_BATCH, SIDE, SIDE, 3))
                        : sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, n));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, n, OUT)});
    sx_output(b, "y", sx_softmax(b, sx_matmul(b, sx_reshape(b, x, SX_BATCH, n), w)));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    assert_ok(sx_export_saved_model(&(sx_export_request){.graph = graph,
                                                         .read_variable = give_numbers,
                                                         .preprocess = images ? &preprocess : NULL,
                                                         .base = scratch(images ? "images" : "m")},
                                    &dir));
    sx_graph_destroy(graph);
    return dir;
}

static sx_predictor *load(const char *dir, sx_predictor_options options)
{
    sx_predictor *p;
    options.on.pjrt_plugin = options.strategy == NULL ? ref_plugin() : NULL;
    options.compile_at_load = true;
    assert_ok(sx_predictor_load(dir, &options, &p));
    return p;
}

/* Runs the first rows of fixed examples. */
static sx_status run_rows_within(sx_predictor *p, int64_t rows, const sx_cancel *cancel, float *y)
{
    static float x[MOST_ROWS * IN];
    const sx_signature *signature;
    sx_arena arena;
    sx_tensor out;
    for (int i = 0; i < MOST_ROWS * IN; i++) {
        x[i] = (float)(i * 13 % 101) / 50 - 1;
    }
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &signature));
    sx_arena_init(&arena, 0);
    const sx_tensor in = {sx_type_of(SX_F32, rows, IN), x};
    sx_status status = sx_predictor_run(p, signature, &in, cancel, &arena, &out);
    if (status == SX_OK) {
        memcpy(y, out.data, (size_t)rows * OUT * sizeof(*y));
    }
    sx_arena_deinit(&arena);
    return status;
}

static sx_status run_rows(sx_predictor *p, int64_t rows, float *y)
{
    return run_rows_within(p, rows, NULL, y);
}

static atomic_ulong *executed_on(void)
{
    return (atomic_ulong *)(uintptr_t)&ref_plugin_counts()->devices;
}

static void test_savedmodel_several_devices__pieces_are_divided(void **state)
{
    (void)state;
    static const int rows[] = {1, 5, 64, 65, 200, MOST_ROWS};
    static float one[MOST_ROWS * OUT], several[MOST_ROWS * OUT];
    char *dir = export_model(false);
    sx_predictor *p = load(dir, (sx_predictor_options){.on.device = "pjrt"});
    sx_predictor *q = load(dir, (sx_predictor_options){.on.devices = "cpu:3,cpu:1,cpu:0"});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_ok(run_rows(p, rows[i], one));
        atomic_store(executed_on(), 0);
        assert_ok(run_rows(q, rows[i], several));
        assert_memory_equal(one, several, (size_t)rows[i] * OUT * sizeof(one[0]));
        /* 64 rows, and 1, are a piece each, and the first slots of both are on the first device */
        assert_int_equal(atomic_load(executed_on()), rows[i] <= 65 ? 1 << 3 : 1 << 3 | 1 << 1 | 1);
    }
    sx_predictor_unload(p);
    sx_predictor_unload(q);
    sx_free(dir);
}

typedef struct caller {
    sx_predictor *predictor;
    const float *expected;
    int64_t rows;
    pthread_t thread;
    bool right;
} caller;

static void *call_often(void *user)
{
    caller *c = user;
    float y[MOST_ROWS * OUT];
    c->right = true;
    for (int k = 0; k < 20; k++) {
        assert_ok(run_rows(c->predictor, c->rows, y));
        c->right = c->right && memcmp(y, c->expected, (size_t)c->rows * OUT * sizeof(y[0])) == 0;
    }
    return NULL;
}

/* More threads than slots, with batches of several pieces: none waits for another for ever. */
static void test_savedmodel_several_devices__threads_share_them(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    static float expected[THREADS][MOST_ROWS * OUT];
    static const int64_t rows[THREADS] = {1, MOST_ROWS, 200, 3, MOST_ROWS, 130};
    caller callers[THREADS];
    char *dir = export_model(false);
    sx_predictor *one = load(dir, (sx_predictor_options){.on.device = "pjrt"});
    sx_predictor *p = load(dir, (sx_predictor_options){.on.replicas = 4});
    for (int i = 0; i < THREADS; i++) { /* fewer rows can be another program */
        assert_ok(run_rows(one, rows[i], expected[i]));
    }
    atomic_store(executed_on(), 0);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){.predictor = p, .expected = expected[i], .rows = rows[i]};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_true(callers[i].right);
    }
    assert_int_equal(atomic_load(executed_on()), 0xf);
    sx_predictor_unload(p);
    sx_predictor_unload(one);
    sx_free(dir);
}

/* Decoding, on the host, is before the device's step: the rows of each piece are its own. */
static void test_savedmodel_several_devices__images_stay_in_order(void **state)
{
    (void)state;
    enum { IMAGES = 150 };
    static float y[2][IMAGES * OUT];
    sx_buf encoded[3];
    sx_bytes images[IMAGES];
    uint8_t pixels[SIDE * SIDE * 3];
    char *dir = export_model(true);
    for (int i = 0; i < 3; i++) {
        memset(pixels, 40 + 80 * i, sizeof(pixels));
        sx_buf_init(&encoded[i], 0);
        const sx_image image = sx_image_view(pixels, SIDE, SIDE, 3);
        assert_ok(sx_png_encode(&image, &encoded[i]));
    }
    for (int i = 0; i < IMAGES; i++) {
        images[i] = (sx_bytes){encoded[i * i % 3].data, encoded[i * i % 3].size};
    }
    for (int k = 0; k < 2; k++) {
        const sx_signature *signature;
        sx_arena arena;
        sx_tensor out;
        const sx_tensor in = {sx_type_of(SX_STRING, IMAGES), images};
        sx_predictor *p = load(dir, (sx_predictor_options){.on.replicas = k == 0 ? 1 : 4});
        assert_ok(
            sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &signature));
        sx_arena_init(&arena, 0);
        assert_ok(sx_predictor_run(p, signature, &in, NULL, &arena, &out));
        memcpy(y[k], out.data, sizeof(y[k]));
        sx_arena_deinit(&arena);
        sx_predictor_unload(p);
    }
    assert_memory_equal(y[0], y[1], sizeof(y[0]));
    assert_true(memcmp(&y[0][0], &y[0][OUT], OUT * sizeof(float)) != 0); /* images differ */
    for (int i = 0; i < 3; i++) {
        sx_buf_deinit(&encoded[i]);
    }
    sx_free(dir);
}

/* An execution that fails is the run's error; the others are waited for, and later runs are right.
 */
static void test_savedmodel_several_devices__a_failed_piece_ends_the_run(void **state)
{
    (void)state;
    static float one[MOST_ROWS * OUT], y[MOST_ROWS * OUT];
    char *dir = export_model(false);
    sx_predictor *p = load(dir, (sx_predictor_options){.on.device = "pjrt"});
    assert_ok(run_rows(p, MOST_ROWS, one));
    sx_predictor_unload(p);
    setenv("SX_PJRT_REF_FAULT", "later:3:the core has stopped", 1);
    p = load(dir, (sx_predictor_options){.on.replicas = 3});
    assert_error(run_rows(p, MOST_ROWS, y), SX_UNAVAILABLE,
                 "executing on /device:CPU:2: PJRT Event_Await: the core has stopped");
    assert_ok(run_rows(p, MOST_ROWS, y));
    assert_memory_equal(one, y, sizeof(y));
    sx_predictor_unload(p);
    unsetenv("SX_PJRT_REF_FAULT");
    sx_free(dir);
}

/* Where a piece takes a device 50 ms: five pieces on four devices. */
static void test_savedmodel_several_devices__compute_at_once(void **state)
{
    (void)state;
    enum { STEP_US = 50000, ROWS = 5 * 64 };
    static float y[ROWS * OUT];
    int64_t took[2];
    char *dir = export_model(false);
    setenv("SX_PJRT_REF", "step=50000", 1);
    for (int k = 0; k < 2; k++) {
        sx_predictor *p = load(dir, (sx_predictor_options){.on.replicas = k == 0 ? 1 : 4});
        assert_ok(run_rows(p, ROWS, y)); /* compiles, and makes slots */
        const int64_t start = sx_now_ns();
        assert_ok(run_rows(p, ROWS, y));
        took[k] = (sx_now_ns() - start) / 1000;
        sx_predictor_unload(p);
    }
    unsetenv("SX_PJRT_REF");
    assert_true(took[0] >= (int64_t)5 * STEP_US);
    assert_true(took[1] >= (int64_t)2 * STEP_US);
    if (took[1] > (int64_t)4 * STEP_US) {
        fail_msg("%lld us on one device, %lld on four", (long long)took[0], (long long)took[1]);
    }
    sx_free(dir);
}

/* At the deadline, all executions are left to their devices, which end them by themselves. */
static void test_savedmodel_several_devices__are_left_at_the_deadline(void **state)
{
    (void)state;
    char *dir = export_model(false);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        static float one[MOST_ROWS * OUT], y[MOST_ROWS * OUT];
        sx_cancel cancel;
        sx_predictor *p = load(dir, (sx_predictor_options){.on.device = "pjrt"});
        assert_ok(run_rows(p, MOST_ROWS, one));
        sx_predictor_unload(p);
        setenv("SX_PJRT_REF_FAULT", "stuck:3", 1);
        p = load(dir, (sx_predictor_options){.on.replicas = 3});
        sx_cancel_init(&cancel, sx_now_ns() + 200000000);
        assert_error(run_rows_within(p, MOST_ROWS, &cancel, y), SX_DEADLINE_EXCEEDED, "in time");
        assert_ok(run_rows(p, 1, y));
        assert_memory_equal(one, y, OUT * sizeof(y[0]));
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
    sx_free(dir);
}

static void test_savedmodel_several_devices__under_a_strategy(void **state)
{
    (void)state;
    static float one[MOST_ROWS * OUT], y[MOST_ROWS * OUT];
    sx_strategy *s = NULL, *virtual = NULL;
    sx_predictor *p = NULL;
    char *dir = export_model(false);
    assert_ok(sx_mirrored_strategy(&s, .pjrt_plugin = ref_plugin(), .devices = "cpu:2,cpu:1"));
    p = load(dir, (sx_predictor_options){.strategy = s});
    sx_strategy_release(s);
    atomic_store(executed_on(), 0);
    assert_ok(run_rows(p, MOST_ROWS, y));
    assert_int_equal(atomic_load(executed_on()), 1 << 2 | 1 << 1);
    sx_predictor_unload(p);

    assert_ok(sx_mirrored_strategy(&virtual, .device = "cpu", .virtual_devices = 3));
    assert_ok(sx_predictor_load(dir, &(sx_predictor_options){.on.device = "cpu"}, &p));
    assert_ok(run_rows(p, MOST_ROWS, one));
    sx_predictor_unload(p);
    assert_ok(sx_predictor_load(dir, &(sx_predictor_options){.strategy = virtual}, &p));
    assert_ok(run_rows(p, MOST_ROWS, y));
    assert_memory_equal(one, y, sizeof(y));
    sx_predictor_unload(p);
    assert_error(
        sx_predictor_load(dir, &(sx_predictor_options){.strategy = virtual, .on.replicas = 2}, &p),
        SX_INVALID_ARGUMENT, "strategy cannot be combined with");
    sx_strategy_release(virtual);
    sx_free(dir);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_several_devices__pieces_are_divided),
    scratch_test(test_savedmodel_several_devices__threads_share_them),
    scratch_test(test_savedmodel_several_devices__images_stay_in_order),
    scratch_test(test_savedmodel_several_devices__a_failed_piece_ends_the_run),
    scratch_test(test_savedmodel_several_devices__compute_at_once),
    scratch_test(test_savedmodel_several_devices__are_left_at_the_deadline),
    scratch_test(test_savedmodel_several_devices__under_a_strategy),
};
SX_TEST_MAIN(tests)
