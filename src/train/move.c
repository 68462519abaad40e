/* Moves a trainer's variables to other devices, for good or for an evaluation. See trainer.h. */
#include "base/memory.h"
#include "distribute/strategy.h"
#include "train/choose_strategy.h"
#include "train/state.h"

/* Copies variable i of `to` from the variable of the same name. */
static sx_status copy_variable(sx_session *from, sx_session *to, int i)
{
    const sx_session_variable *v = sx_session_variable_at(to, i);
    int at = sx_session_find_variable(from, v->name);
    if (at < 0) {
        return sx_error(SX_INTERNAL, "no program has the variable \"%s\"", v->name);
    }
    void *data = sx_alloc_aligned((size_t)sx_type_bytes(&v->type) + 1, 64);
    if (data == NULL) {
        return sx_no_memory("for \"%s\"", v->name);
    }
    sx_status status = sx_session_read_variable(from, at, data);
    if (status == SX_OK) {
        status = sx_session_write_variable(to, i, data);
    }
    sx_free_aligned(data);
    return status;
}

static sx_status copy_variables(sx_session *from, sx_session *to)
{
    for (int i = 0; i < sx_session_variable_count(to); i++) {
        SX_TRY(copy_variable(from, to, i));
    }
    return SX_OK;
}

/* ---- Moving a trainer ---- */

static sx_status fill(const sx_trainer *t, sx_session *to, sx_program **programs)
{
    for (int mode = 0; mode < 3; mode++) {
        bool there = t->programs[mode] != NULL && sx_trainer_session_of(t, mode) == t->session;
        if (there) {
            SX_TRY(sx_session_add_program(to, sx_trainer_graph(t, mode), &programs[mode]));
        }
    }
    return copy_variables(t->session, to);
}

static void settle(sx_trainer *t, sx_session *session, sx_program *const *programs)
{
    for (int mode = 0; mode < 3; mode++) {
        if (sx_trainer_session_of(t, mode) == t->session) {
            t->programs[mode] = programs[mode];
            t->compiled[mode] = 0;
        }
    }
    sx_session_destroy(t->session);
    t->session = session;
    t->state.numerics = NULL; /* those of the old device: the change is intended */
}

/* Undoes a move that failed. */
static void stay(sx_trainer *t, const sx_run_config *config, sx_strategy *strategy)
{
    sx_strategy_release(t->strategy);
    t->strategy = strategy;
    t->processes = NULL;
    t->config = *config;
}

sx_status sx_trainer_move(sx_trainer *t, const sx_run_config *place)
{
    sx_run_config before = t->config;
    sx_strategy *left = t->strategy, *chosen = NULL;
    sx_session *session = NULL;
    sx_program *programs[3] = {NULL};
    if (t->processes != NULL) {
        return sx_error(SX_UNIMPLEMENTED,
                        "moving: a model that several processes train stays on their devices");
    }
    SX_TRY(sx_choose_strategy(place, &chosen), "moving");
    t->processes = sx_strategy_processes(chosen);
    t->strategy = chosen;
    t->config.threads = place->threads;
    sx_settle_strategy(&t->config, chosen);
    sx_status status = sx_trainer_open_session(t, chosen, &session);
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

/* ---- Moving for an evaluation ---- */

sx_status sx_trainer_bring_to_eval(sx_trainer *t)
{
    sx_program *program;
    if (t->eval_strategy == NULL) {
        return SX_OK;
    }
    if (t->eval_session == NULL) {
        SX_TRY(sx_trainer_open_session(t, t->eval_strategy, &t->eval_session));
    }
    SX_TRY(sx_trainer_program(t, SX_EVAL, &program));
    return copy_variables(t->session, t->eval_session);
}
