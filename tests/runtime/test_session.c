/* Sessions: variables shared by programs, the step loop, a withheld update and its cause. */
#include "backends/pjrt_plugin.h"
#include "torture.h"

#include <math.h>

#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"

enum {
    BATCH = 4,
    PIXELS = 28 * 28,
    PLANNING_BYTES = 200 << 10, /* at most what planning takes and gives back */
};

typedef struct feed {
    float images[BATCH * PIXELS];
    int32_t labels[BATCH];
    double losses[8];
    int seen;
} feed;

static sx_graph *program(const char *model, sx_mode mode)
{
    sx_program_request r = {.def = sx_zoo_find(model), .mode = mode};
    sx_graph *g = NULL;
    assert_non_null(r.def);
    assert_ok(sx_build_program(&r, &g));
    assert_ok(sx_graph_validate(g));
    return g;
}

static void fill(feed *f)
{
    memset(f, 0, sizeof(*f));
    for (int i = 0; i < BATCH * PIXELS; i++) {
        f->images[i] = (float)((i * 37 + i / PIXELS * 11) % 101) / 101.0f;
    }
    for (int i = 0; i < BATCH; i++) {
        f->labels[i] = i;
    }
}

static sx_status feed_same(void *user, sx_step_input *out)
{
    feed *f = user;
    out->batch = BATCH;
    out->inputs[0] = f->images;
    out->inputs[1] = f->labels;
    return SX_OK;
}

static bool keep_loss(void *user, const sx_step_scalars *scalars)
{
    feed *f = user;
    f->losses[f->seen++] = scalars->values[0];
    return false;
}

static void train(const char *model, const char *device, int steps, double *losses)
{
    static feed f;
    sx_graph *g = program(model, SX_TRAIN);
    sx_session *s;
    sx_program *p;
    int64_t done;
    fill(&f);
    assert_ok(sx_session_create(&(sx_session_options){.device = device, .seed = 7}, &s));
    assert_ok(sx_session_add_program(s, g, &p));
    assert_string_equal(sx_program_output_name(p, 0), SX_LOSS);
    const sx_loop_args args = {.steps = steps,
                               .feed = feed_same,
                               .step = keep_loss,
                               .user = &f,
                               .ok_output = sx_program_output_count(p) - 1};
    assert_ok(sx_program_loop(p, &args, &done));
    assert_int_equal(done, steps);
    sx_session_destroy(s);
    sx_graph_destroy(g);
    memcpy(losses, f.losses, (size_t)steps * sizeof(double));
}

static void test_runtime_session__trains_the_linear_model(void **state)
{
    (void)state;
    double losses[4];
    train("linear", "host", 4, losses);
    for (int i = 1; i < 4; i++) {
        assert_true(losses[i] < losses[i - 1]);
    }
}

static void test_runtime_session__trains_the_convolutional_model(void **state)
{
    (void)state;
    double losses[3];
    train("mnist_cnn", "host", 3, losses);
    assert_true(isfinite(losses[2]) && fabs(losses[0] - log(10)) < 1);
}

static void test_runtime_session__names_what_is_not_finite(void **state)
{
    (void)state;
    static feed f;
    fill(&f);
    sx_graph *g = program("linear", SX_TRAIN);
    sx_session *s;
    sx_program *p;
    int64_t done, step;
    assert_ok(sx_session_create(&(sx_session_options){.device = "host", .seed = 7}, &s));
    assert_ok(sx_session_add_program(s, g, &p));
    int kernel = sx_session_find_variable(s, "dense/kernel");
    static float weights[PIXELS * 10];
    assert_ok(sx_session_read_variable(s, kernel, weights));
    weights[5] = 3e38f;
    assert_ok(sx_session_write_variable(s, kernel, weights));
    for (int i = 0; i < PIXELS; i++) {
        f.images[i] = 1e10f;
    }
    const sx_loop_args args = {
        .steps = 5, .feed = feed_same, .user = &f, .ok_output = sx_program_output_count(p) - 1};
    assert_error(sx_program_loop(p, &args, &done), SX_ABORTED, "step 1");
    assert_int_equal(done, 0);
    assert_ok(sx_session_read_step(s, &step));
    assert_int_equal(step, 0);
    assert_error(sx_program_find_nonfinite(p), SX_DATA_LOSS,
                 "matmul \"dense/matmul\" (linear.c:6)");
    sx_session_destroy(s);
    sx_graph_destroy(g);
}

static void test_runtime_session__programs_share_variables(void **state)
{
    (void)state;
    sx_graph *train_graph = program("linear", SX_TRAIN), *eval_graph = program("linear", SX_EVAL);
    sx_session *s;
    sx_program *train_program, *eval_program;
    assert_ok(sx_session_create(&(sx_session_options){.device = "host"}, &s));
    assert_ok(sx_session_add_program(s, train_graph, &train_program));
    int count = sx_session_variable_count(s);
    assert_ok(sx_session_add_program(s, eval_graph, &eval_program));
    assert_int_equal(sx_session_variable_count(s), count);
    sx_graph *other = program("mlp", SX_EVAL);
    sx_program *wrong;
    assert_error(sx_session_add_program(s, other, &wrong), SX_FAILED_PRECONDITION,
                 "variable \"dense/kernel\" is float32[784,10]");
    sx_session_destroy(s);
    sx_graph_destroy(train_graph);
    sx_graph_destroy(eval_graph);
    sx_graph_destroy(other);
}

/* A variable is charged to the budget before its memory exists, and given back with the session. */
static void test_runtime_session__variables_are_held_to_the_budget(void **state)
{
    (void)state;
    sx_budget budget;
    sx_session *s = NULL;
    sx_program *p = NULL;
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "small", .type = sx_type_of(SX_F32, 256)});
    sx_output(b, "y", w);
    w = sx_variable(b,
                    &(sx_variable_spec){.name = "vast", .type = sx_type_of(SX_F32, 1 << 20, 4096)});
    sx_output(b, "z", w);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_budget_init(&budget, "this test", 1 << 30, NULL);
    assert_ok(sx_session_create(&(sx_session_options){.device = "cpu", .memory = &budget}, &s));
    assert_error(
        sx_session_add_program(s, g, &p), SX_RESOURCE_EXHAUSTED,
        "variable \"vast\": float32[1048576,4096] of 16.0 GiB would exceed the memory limit "
        "of this test: 1.0 KiB of 1.0 GiB in use");
    assert_int_equal(sx_budget_used(&budget), 1024);
    sx_session_destroy(s);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_graph_destroy(g);
}

/* Programs are charged with all that they allocate; one for another batch size that does not fit
 * takes the place of those there are. */
static void test_runtime_session__programs_are_held_to_the_budget(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "host"};
    for (int d = 0; d < 2; d++) {
        sx_budget budget;
        sx_session *s = NULL;
        sx_program *p = NULL;
        sx_executable_info info;
        sx_graph *g = program("mnist_cnn", SX_PREDICT);
        sx_budget_init(&budget, "this test", 0, NULL);
        assert_ok(
            sx_session_create(&(sx_session_options){.device = devices[d], .memory = &budget}, &s));
        assert_ok(sx_session_add_program(s, g, &p));
        const size_t variables = sx_budget_used(&budget);
        assert_true(variables > 0);
        assert_ok(sx_program_prepare(p, 64, NULL));
        assert_ok(sx_program_info(p, 64, &info));
        const size_t large = sx_budget_used(&budget) - variables;
        assert_true(info.temporary_bytes > 64 * 28 * 28 * 4);
        assert_true((int64_t)large >= info.temporary_bytes + info.output_bytes);
        budget.limit_bytes = variables + large + PLANNING_BYTES;
        assert_ok(sx_program_prepare(p, 32, NULL)); /* only without the other */
        assert_true(sx_budget_used(&budget) < variables + large);
        assert_error(sx_program_prepare(p, 128, NULL), SX_RESOURCE_EXHAUSTED,
                     "compiling for batch size 128: ");
        assert_int_equal(sx_budget_used(&budget), variables);
        assert_ok(sx_program_prepare(p, 64, NULL));
        sx_session_destroy(s);
        assert_int_equal(sx_budget_used(&budget), 0);
        sx_graph_destroy(g);
    }
}

/* A region's values, 4 MiB here, are charged: on the cpu when its plan is made, by host kernels
 * while it runs. */
static void test_runtime_session__regions_are_held_to_the_budget(void **state)
{
    (void)state;
    static const char text[] = "sextant-graph 2\n"
                               "input %1 float32[] \"x\"\n"
                               "input %2 bool[] \"wide\"\n"
                               "%3 = if(%2, %1) float32[] \"if\"\n"
                               "  then\n"
                               "    input %1 float32[] \"x\"\n"
                               "    %2 = broadcast_to(%1) {shape=[1024,1024]} "
                               "float32[1024,1024] \"all\"\n"
                               "    %3 = reduce_max(%2) {axes=[0,1], keep_dims=false} "
                               "float32[] \"max\"\n"
                               "    output \"y\" %3\n"
                               "  end\n"
                               "  else\n"
                               "    input %1 float32[] \"x\"\n"
                               "    output \"y\" %1\n"
                               "  end\n"
                               "output \"y\" %3\n";
    static const char *const devices[] = {"cpu", "host"};
    const float x = 2;
    for (int d = 0; d < 2; d++) {
        sx_budget budget;
        sx_session *s = NULL;
        sx_program *p = NULL;
        sx_graph *g = NULL;
        bool wide = false;
        const void *const inputs[] = {&x, &wide};
        assert_ok(sx_graph_parse(text, sizeof(text) - 1, &g));
        sx_budget_init(&budget, "this test", 1 << 20, NULL);
        assert_ok(
            sx_session_create(&(sx_session_options){.device = devices[d], .memory = &budget}, &s));
        assert_ok(sx_session_add_program(s, g, &p));
        if (strcmp(devices[d], "cpu") == 0) {
            assert_error(sx_program_prepare(p, 1, NULL), SX_RESOURCE_EXHAUSTED,
                         "temporaries of 4.0 MiB and constants of 0 bytes (the largest value is "
                         "scratch memory of if \"if\") would exceed the memory limit of this test");
            budget.limit_bytes = 64 << 20;
        }
        assert_ok(sx_program_prepare(p, 1, NULL));
        assert_ok(sx_program_run(p, 1, inputs));
        wide = true;
        if (strcmp(devices[d], "cpu") != 0) {
            assert_error(sx_program_run(p, 1, inputs), SX_RESOURCE_EXHAUSTED, "of this test");
            budget.limit_bytes = 64 << 20;
        }
        assert_ok(sx_program_run(p, 1, inputs));
        sx_session_destroy(s);
        assert_int_equal(sx_budget_used(&budget), 0);
        sx_graph_destroy(g);
    }
}

/* --- every allocation fails once ----------------------------------------------------------------
 */

typedef struct victim {
    const char *device;
    sx_graph *train, *eval;
} victim;

/* Two programs of one session, a loop of the one and a single step of the other, a variable read
 * and written. */
static sx_status session_of(void *user)
{
    static feed f;
    const victim *v = user;
    const sx_session_options options = {
        .device = v->device,
        .seed = 7,
        .platform = {.cpu.threads = 1, .pjrt.plugin_path = ref_plugin()}};
    sx_session *s = NULL;
    sx_program *train = NULL, *eval = NULL;
    int64_t done = 0;
    static float kernel[PIXELS * 10];
    fill(&f);
    SX_TRY(sx_session_create(&options, &s));
    sx_status status = sx_session_add_program(s, v->train, &train);
    status = status != SX_OK ? status : sx_session_add_program(s, v->eval, &eval);
    if (status == SX_OK) {
        const sx_loop_args args = {.steps = 2,
                                   .feed = feed_same,
                                   .step = keep_loss,
                                   .user = &f,
                                   .ok_output = sx_program_output_count(train) - 1};
        status = sx_program_loop(train, &args, &done);
    }
    const void *inputs[] = {f.images, f.labels};
    status = status != SX_OK ? status : sx_program_run(eval, BATCH, inputs);
    int at = sx_session_find_variable(s, "dense/kernel");
    status = status != SX_OK ? status : sx_session_read_variable(s, at, kernel);
    status = status != SX_OK ? status : sx_session_write_variable(s, at, kernel);
    sx_session_destroy(s);
    return status;
}

static void test_runtime_session__any_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const devices[] = {"host", "cpu", "pjrt"};
    victim v = {.train = program("linear", SX_TRAIN), .eval = program("linear", SX_EVAL)};
    for (int i = 0; i < 3; i++) {
        v.device = devices[i];
        assert_in_range(sx_torture_some(session_of, &v), 50, 20000);
    }
    sx_graph_destroy(v.train);
    sx_graph_destroy(v.eval);
}

/* A variable whose value the caller writes is not drawn; those added later are. */
static void test_runtime_session__variables_may_be_written_instead_of_drawn(void **state)
{
    (void)state;
    static const char *const names[] = {"written", "drawn"};
    sx_session *s;
    assert_ok(sx_session_create(&(sx_session_options){.device = "cpu", .seed = 7}, &s));
    for (int i = 0; i < 2; i++) {
        const sx_variable_spec spec = {
            .name = names[i], .type = sx_type_of(SX_F32, 2), .init = SX_INIT_ONES};
        float value[2];
        int index;
        sx_session_draw_variables(s, i > 0);
        assert_ok(sx_session_add_variable(s, &spec, &index));
        assert_ok(sx_session_read_variable(s, index, value));
        assert_true(value[1] == (float)i);
    }
    (void)sx_session_destroy(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_session__trains_the_linear_model),
    cmocka_unit_test(test_runtime_session__trains_the_convolutional_model),
    cmocka_unit_test(test_runtime_session__names_what_is_not_finite),
    cmocka_unit_test(test_runtime_session__programs_share_variables),
    cmocka_unit_test(test_runtime_session__variables_are_held_to_the_budget),
    cmocka_unit_test(test_runtime_session__programs_are_held_to_the_budget),
    cmocka_unit_test(test_runtime_session__regions_are_held_to_the_budget),
    cmocka_unit_test(test_runtime_session__variables_may_be_written_instead_of_drawn),
    cmocka_unit_test(test_runtime_session__any_allocation_may_fail),
};
SX_TEST_MAIN(tests)
