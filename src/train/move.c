/* A trainer goes on elsewhere: a new session, the same variables. See trainer.h. */
#include "base/memory.h"
#include "train/place.h"
#include "train/state.h"

static sx_status copy_variable(sx_session *from, int i, sx_session *to)
{
    const sx_session_variable *v = sx_session_variable_at(from, i);
    int at = sx_session_find_variable(to, v->name);
    if (at < 0) {
        return sx_error(SX_INTERNAL, "no program has the variable \"%s\"", v->name);
    }
    void *data = sx_alloc_aligned((size_t)sx_type_bytes(&v->type) + 1, 64);
    if (data == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for \"%s\"", v->name);
    }
    sx_status status = sx_session_read_variable(from, i, data);
    if (status == SX_OK) {
        status = sx_session_write_variable(to, at, data);
    }
    sx_free_aligned(data);
    return status;
}

static sx_status fill(const sx_trainer *t, sx_session *to, sx_program **programs)
{
    for (int mode = 0; mode < 3; mode++) {
        if (t->programs[mode] != NULL) {
            SX_TRY(sx_session_add_program(to, t->graphs.by_mode[mode], &programs[mode]));
        }
    }
    for (int i = 0; i < sx_session_variable_count(t->session); i++) {
        SX_TRY(copy_variable(t->session, i, to));
    }
    return SX_OK;
}

static void settle(sx_trainer *t, sx_session *session, sx_program *const *programs)
{
    sx_session_destroy(t->session);
    t->session = session;
    for (int mode = 0; mode < 3; mode++) {
        t->programs[mode] = programs[mode];
        t->compiled[mode] = 0;
    }
    t->state.numerics =
        NULL; /* of the device that was left: going on elsewhere is what is wanted */
}

/* Back to where it was. */
static void stay(sx_trainer *t, const sx_run_config *config, sx_strategy *strategy)
{
    sx_strategy_release(t->strategy);
    t->strategy = strategy;
    t->config = *config;
}

sx_status sx_trainer_move(sx_trainer *t, const sx_run_config *place)
{
    sx_run_config before = t->config;
    sx_strategy *left = t->strategy, *chosen = NULL;
    sx_session *session = NULL;
    sx_program *programs[3] = {NULL};
    SX_TRY(sx_place_choose(place, &chosen), "moving");
    t->strategy = chosen;
    t->config.threads = place->threads;
    sx_place_settle(&t->config, chosen);
    sx_status status = sx_trainer_open_session(t, &session);
    if (status == SX_OK) {
        status = fill(t, session, programs);
    }
    if (status != SX_OK) {
        sx_session_destroy(session);
        status =
            sx_status_annotate(status, __FILE__, __LINE__, "moving to \"%s\"", t->config.device);
        stay(t, &before, left);
        return status;
    }
    settle(t, session, programs);
    sx_strategy_release(left);
    return SX_OK;
}
