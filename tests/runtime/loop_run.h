/* A model, a session and a program for tests of the step loop; batches that are fed, and what is
 * shown. */
#ifndef SX_TESTS_RUNTIME_LOOP_RUN_H
#define SX_TESTS_RUNTIME_LOOP_RUN_H

#include "harness.h"

#include <math.h>
#include <unistd.h>

#include "../backends/pjrt_plugin.h"
#include "base/memory.h"
#include "nn/model_program.h"
#include "runtime/session.h"

enum { BATCH = 8, FEATURES = 6, CLASSES = 3, STEPS = 12, MOST_VALUES = 4096 };

/* A model with everything that meets over replicas: dense layers, batch norm, a mean loss. */
static inline sx_spec normed_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 5);
    x = sx_relu(b, sx_batch_norm(b, x));
    sx_value logits = sx_dense(b, x, CLASSES);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_sgd(.learning_rate = 0.1));
}

static const sx_model_def normed =
    SX_MODEL_DEF(.name = "normed", .build = normed_build, .features = FEATURES);

/* What the loop was fed and has shown. */
typedef struct run {
    sx_graph *graph;
    sx_session *session;
    sx_program *program;
    float x[STEPS][BATCH][FEATURES];
    int32_t y[STEPS][BATCH];
    int64_t sizes[STEPS];
    bool ends[STEPS];
    int n_fed, n_shown,
        end_at; /* end_at: feed says OUT_OF_RANGE there; fail_at likewise an error */
    int fail_at, stop_at;
    int64_t plans[STEPS]; /* of launches, by plan(); n_planned of them were asked for */
    int n_planned;
    int fed_when_shown[STEPS];
    double losses[STEPS];
    float read[STEPS]; /* the loss again, by sx_program_read_output() */
    int64_t steps[STEPS], ended[STEPS], device_step[STEPS];
} run;

static inline sx_status feed(void *user, sx_step_input *out)
{
    run *r = user;
    int k = r->n_fed;
    if (k == r->fail_at) {
        return sx_error(SX_DATA_LOSS, "record 7 is broken");
    }
    if (k == r->end_at) {
        return sx_error(SX_OUT_OF_RANGE, "end");
    }
    r->n_fed++;
    out->batch = r->sizes[k];
    out->inputs[0] = r->x[k];
    out->inputs[1] = r->y[k];
    out->ends_launch = r->ends[k];
    return SX_OK;
}

static inline bool show(void *user, const sx_step_scalars *s)
{
    run *r = user;
    int k = r->n_shown++;
    r->losses[k] = s->values[0];
    r->steps[k] = s->step;
    r->ended[k] = s->ended_ns;
    r->fed_when_shown[k] = r->n_fed;
    assert_int_equal(s->batch, r->sizes[k]);
    assert_ok(sx_program_read_output(r->program, 0, &r->read[k]));
    return k + 1 == r->stop_at;
}

static inline run *open_run(const sx_session_options *options)
{
    run *r = sx_alloc(1, sizeof(*r));
    const sx_program_request request = {.def = &normed, .mode = SX_TRAIN};
    assert_non_null(r);
    assert_ok(sx_build_program(&request, &r->graph));
    assert_ok(sx_session_create(options, &r->session));
    assert_ok(sx_session_add_program(r->session, r->graph, &r->program));
    for (int k = 0; k < STEPS; k++) {
        for (int i = 0; i < BATCH; i++) {
            r->y[k][i] = (k + i * 5) % CLASSES;
            for (int f = 0; f < FEATURES; f++) {
                r->x[k][i][f] = (float)((k * 7 + i * 13 + f * 5 + i * f) % 17) / 17.0f -
                                (f == r->y[k][i] ? 0.5f : 0.0f);
            }
        }
        r->sizes[k] = BATCH;
    }
    r->fail_at = r->end_at = -1;
    return r;
}

static inline run *open_pjrt(int64_t launch_steps, int replicas, bool own_moments)
{
    const sx_platform_options platform = {
        .pjrt.plugin_path = pjrt_plugin(), .pjrt.virtual_devices = 4, .pjrt.replicas = replicas};
    return open_run(&(sx_session_options){.device = "pjrt",
                                          .platform = platform,
                                          .own_moments = own_moments,
                                          .seed = 3,
                                          .launch_steps = launch_steps});
}

static inline void close_run(run *r)
{
    sx_session_destroy(r->session);
    sx_graph_destroy(r->graph);
    sx_free(r);
}

static inline sx_status loop(run *r, int64_t steps, int64_t *out_done)
{
    int ok = sx_program_find_output(r->program, SX_OK_OUTPUT);
    const sx_loop_args args = {
        .steps = steps, .feed = feed, .step = show, .user = r, .ok_output = ok};
    assert_ok(sx_program_prepare_loop(r->program, BATCH, ok, NULL));
    return sx_program_loop(r->program, &args, out_done);
}

#endif
