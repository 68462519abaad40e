/* See profile_loop.h. */
#include "profile_loop.h"

#include "base/clock.h"
#include "command.h"

enum {
    MIN_STEPS = 3,
    MIN_LAUNCHES = 4,
    RECORDED = 8,      /* steps whose operations are recorded */
    MOST_ALONE = 4000, /* batches that are read to time the input */
    /* Not recorded: steps of which the first prepares and the second fills caches; of a device that
     * loops, the launches whose length is not yet that of the others. */
    WARM_UP_STEPS = 2,
    WARM_UP_LAUNCHES = 3,
};
static const int64_t RECORD_NS = 2000000000, ALONE_NS = 700000000;

typedef struct looping {
    const sx_profile_loop *l;
    sx_profile_looped *out;
    int64_t warm_up; /* launches */
    int64_t start_ns, end_ns;
} looping;

/* ---- Feeding ---- */

static sx_status feed(void *user, sx_step_input *out)
{
    const looping *g = user;
    const sx_profile_loop *l = g->l;
    out->batch = l->batch;
    if (l->input == NULL) {
        for (int i = 0; i < sx_program_input_count(l->program); i++) {
            out->inputs[i] = l->inputs[i];
        }
        return SX_OK;
    }
    sx_feed_batch batch;
    SX_TRY(sx_batch_gather_next(l->input, &batch));
    sx_feed_bind(&batch, l->order, l->n_order, out->inputs);
    out->batch = batch.size;
    out->ends_launch = batch.ends_epoch; /* where `train` looks at the results first */
    return SX_OK;
}

/* How fast the pipeline is when nothing else is done. Its first batch comes late. */
static sx_status time_input(const sx_profile_loop *l, double *out_rate)
{
    sx_feed_batch batch;
    int64_t examples = 0;
    SX_TRY(sx_batch_gather_next(l->input, &batch));
    const int64_t start = sx_now_ns();
    int64_t now = start;
    for (int i = 0; i < MOST_ALONE && now - start < ALONE_NS && sx_stop_signal() == 0; i++) {
        sx_status status = sx_batch_gather_next(l->input, &batch);
        if (sx_status_code(status) == SX_OUT_OF_RANGE) {
            sx_status_free(status);
            break;
        }
        SX_TRY(status);
        examples += batch.size;
        now = sx_now_ns();
    }
    *out_rate = now > start ? (double)examples / ((double)(now - start) * 1e-9) : 0;
    return SX_OK;
}

/* ---- Seeing ---- */

static bool see_step(void *user, const sx_step_scalars *s)
{
    looping *g = user;
    sx_profile_looped *out = g->out;
    if (s->launch <= g->warm_up) {
        g->start_ns = g->end_ns = s->ended_ns;
        if (s->launch == g->warm_up && g->l->profile != NULL) {
            sx_profile_record(g->l->profile, true);
        }
        return false;
    }
    out->steps++;
    out->last_launch = s->launch;
    out->examples += s->batch;
    g->end_ns = s->ended_ns;
    if (g->l->steps > 0) {
        return out->steps >= g->l->steps || sx_stop_signal() != 0;
    }
    return sx_stop_signal() != 0 ||
           (out->steps >= MIN_STEPS && s->launch - g->warm_up >= MIN_LAUNCHES &&
            g->end_ns - g->start_ns >= RECORD_NS);
}

sx_status sx_profile_loop_run(const sx_profile_loop *l, sx_profile_looped *out)
{
    const int ok = sx_program_find_output(l->program, SX_OK_OUTPUT);
    const bool loops = sx_program_launches(l->program) > 1;
    looping g = {.l = l, .out = out, .warm_up = loops ? WARM_UP_LAUNCHES : WARM_UP_STEPS};
    const sx_loop_args args = {
        .steps = INT64_MAX, .feed = feed, .step = see_step, .user = &g, .ok_output = ok};
    int64_t done = 0;
    *out = (sx_profile_looped){.first_launch = g.warm_up + 1};
    if (l->input != NULL) {
        SX_TRY(time_input(l, &out->input_rate));
    }
    if (l->profile != NULL) {
        sx_profile_record(l->profile, false);
    }
    SX_TRY(sx_program_loop(l->program, &args, &done));
    if (l->profile != NULL) {
        sx_profile_record(l->profile, false);
    }
    out->seconds = (double)(g.end_ns - g.start_ns) * 1e-9;
    if (out->steps == 0) {
        return sx_stop_signal() != 0
                   ? sx_error(SX_CANCELLED, "stopped before a step was recorded")
                   : sx_error(SX_INVALID_ARGUMENT,
                              "the data ended after %lld steps, before one could be recorded",
                              (long long)done);
    }
    return SX_OK;
}

sx_status sx_profile_loop_record(const sx_profile_loop *l, sx_platform *platform,
                                 sx_device_op_visit *visit, void *user, int64_t *out_steps,
                                 sx_status *out_refused)
{
    looping g = {.l = l};
    const sx_loop_args args = {.steps = RECORDED,
                               .feed = feed,
                               .user = &g,
                               .ok_output = sx_program_find_output(l->program, SX_OK_OUTPUT)};
    *out_refused = sx_platform_record(platform);
    if (*out_refused != SX_OK) {
        return SX_OK;
    }
    sx_status status = sx_program_loop(l->program, &args, out_steps);
    *out_refused = sx_platform_recorded(platform, visit, user);
    return status;
}
