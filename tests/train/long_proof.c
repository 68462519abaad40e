/* Issue 4's proof: models of the zoo from equal weights on the cpu backend, on XLA's CPU plugin,
 * and on four replicas of it, batch norm over all of them.
 *
 *   one step    loss and every gradient within 1e-4 of the largest of that gradient
 *   100 steps   losses within 1e-4 for the first 10, within 1e-2 after
 *
 * The optimizer is momentum at a rate so small that 100 steps of another rounding stay comparable;
 * after one step its slots are the gradients. */
#include "harness.h"

#include <math.h>

#include "../backends/pjrt_plugin.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "nn/params.h"
#include "nn/program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"

enum { BATCH = 8, STEPS = 100, CLASSES = 5 };

typedef struct subject {
    const char *model;
    int64_t side, channels; /* of the pictures */
    double learning_rate;
} subject;

typedef struct place {
    const char *device;
    int replicas;
} place;

static const place places[] = {{"cpu", 0}, {"pjrt", 1}, {"pjrt", 4}};

typedef struct run {
    sx_graph *graph;
    sx_session *session;
    sx_program *program;
    float *pictures; /* [BATCH × picture] of the step being fed */
    int64_t picture;
    int32_t labels[BATCH];
    int64_t n_fed;
    int n_shown;
    double losses[STEPS];
} run;

/* Noise, brighter where the class says: there is something to learn. */
static void draw(run *r, int64_t step)
{
    for (int i = 0; i < BATCH; i++) {
        r->labels[i] = (int32_t)((step * 3 + i * 7) % CLASSES);
        for (int64_t k = 0; k < r->picture; k++) {
            uint32_t word =
                sx_threefry2x32((sx_u32x2){(uint32_t)step, (uint32_t)i}, (sx_u32x2){(uint32_t)k, 0})
                    .a;
            r->pictures[i * r->picture + k] =
                2 * sx_uniform_f32(word) - 1 + (k % CLASSES == r->labels[i] ? 0.3f : 0.0f);
        }
    }
}

static sx_status feed(void *user, sx_step_input *out)
{
    run *r = user;
    draw(r, r->n_fed++ % 10); /* ten batches, again and again */
    out->batch = BATCH;
    out->inputs[0] = r->pictures;
    out->inputs[1] = r->labels;
    return SX_OK;
}

static bool show(void *user, const sx_step_scalars *s)
{
    run *r = user;
    r->losses[r->n_shown++] = s->values[0];
    return false;
}

static void build(const subject *s, run *r)
{
    const sx_optimizer optimizer = sx_sgd(.learning_rate = s->learning_rate, .momentum = 0.9);
    sx_params *params = NULL;
    assert_ok(sx_params_create(&params));
    assert_ok(sx_params_set(params, "num_classes", "5"));
    sx_program_request request = {.def = sx_zoo_find(s->model),
                                  .params = params,
                                  .mode = SX_TRAIN,
                                  .features =
                                      sx_type_of(SX_F32, SX_BATCH, s->side, s->side, s->channels),
                                  .labels = sx_type_of(SX_I32, SX_BATCH),
                                  .optimizer = &optimizer};
    assert_ok(sx_build_program(&request, &r->graph));
    sx_params_destroy(params);
}

static run *open_run(const subject *s, const place *where)
{
    run *r = sx_alloc(1, sizeof(*r));
    assert_non_null(r);
    r->picture = s->side * s->side * s->channels;
    r->pictures = sx_alloc((size_t)(BATCH * r->picture), sizeof(float));
    assert_non_null(r->pictures);
    build(s, r);
    const sx_session_options options = {
        .device = where->device,
        .seed = 11,
        .launch_steps = 10,
        .platform = {.plugin_path = where->replicas > 0 ? pjrt_plugin() : NULL,
                     .virtual_devices = where->replicas > 0 ? 4 : 0,
                     .replicas = where->replicas,
                     .threads = 2}};
    assert_ok(sx_session_create(&options, &r->session));
    assert_ok(sx_session_add_program(r->session, r->graph, &r->program));
    return r;
}

static void close_run(run *r)
{
    sx_session_destroy(r->session);
    sx_graph_destroy(r->graph);
    sx_free(r->pictures);
    sx_free(r);
}

static void steps(run *r, int64_t n)
{
    int64_t done;
    int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {.steps = n, .feed = feed, .step = show, .user = r, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
    assert_ok(sx_program_loop(r->program, &args, &done));
    assert_int_equal(done, n);
}

/* Slot i, if it is one: after one step of momentum it is the gradient. */
static float *read_gradient(const run *r, int i, int64_t *out_n)
{
    static const char suffix[] = "/Momentum";
    const sx_session_variable *v = sx_session_variable_at(r->session, i);
    size_t size = strlen(v->name);
    if (size < sizeof(suffix) || strcmp(v->name + size - sizeof(suffix) + 1, suffix) != 0) {
        return NULL;
    }
    *out_n = sx_type_elems(&v->type);
    float *data = sx_alloc((size_t)*out_n, sizeof(float));
    assert_non_null(data);
    assert_ok(sx_session_read_variable(r->session, i, data));
    return data;
}

static void compare_gradient(const run *a, const run *b, int i, int *compared)
{
    int64_t n = 0;
    float *x = read_gradient(a, i, &n), *y = read_gradient(b, i, &n);
    double most = 0, off = 0;
    for (int64_t k = 0; x != NULL && k < n; k++) {
        most = fmax(most, fabs((double)x[k]));
        off = fmax(off, fabs((double)x[k] - (double)y[k]));
    }
    if (off > 1e-4 * most) {
        fail_msg("%s: off by %g of %g", sx_session_variable_at(a->session, i)->name, off, most);
    }
    *compared += x != NULL;
    sx_free(x);
    sx_free(y);
}

static void compare_one_step(const run *a, const run *b)
{
    int compared = 0;
    int n = sx_session_variable_count(a->session);
    assert_int_equal(sx_session_variable_count(b->session), n);
    for (int i = 0; i < n; i++) {
        compare_gradient(a, b, i, &compared);
    }
    assert_true(compared > 4);
    assert_true(fabs(a->losses[0] - b->losses[0]) <= 1e-4 * fabs(a->losses[0]));
}

static void compare_losses(const run *a, const run *b)
{
    for (int k = 0; k < STEPS; k++) {
        double off = fabs(a->losses[k] - b->losses[k]), allowed = k < 10 ? 1e-4 : 1e-2;
        if (!(off <= allowed)) {
            fail_msg("step %d: loss %.8g, expected %.8g", k + 1, b->losses[k], a->losses[k]);
        }
    }
    assert_true(a->losses[STEPS - 1] < a->losses[0]); /* it does train */
}

static void prove(const subject *s)
{
    SKIP_WITHOUT_PJRT();
    run *runs[SX_COUNT(places)];
    for (size_t k = 0; k < SX_COUNT(places); k++) {
        runs[k] = open_run(s, &places[k]);
        steps(runs[k], 1);
        compare_one_step(runs[0], runs[k]);
    }
    for (size_t k = 0; k < SX_COUNT(places); k++) {
        steps(runs[k], STEPS - 1);
        compare_losses(runs[0], runs[k]);
    }
    for (size_t k = 0; k < SX_COUNT(places); k++) {
        close_run(runs[k]);
    }
}

static void test_train_proof__mnist_cnn(void **state)
{
    (void)state;
    prove(&(subject){"mnist_cnn", 28, 1, 1e-3});
}

static void test_train_proof__flowers_cnn(void **state)
{
    (void)state;
    prove(&(subject){"flowers_cnn", 32, 3, 1e-3});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_proof__mnist_cnn),
    cmocka_unit_test(test_train_proof__flowers_cnn),
};
SX_TEST_MAIN(tests)
