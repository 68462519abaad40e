/* The inside of a trainer, for the files of this directory. */
#ifndef SX_TRAIN_STATE_H
#define SX_TRAIN_STATE_H

#include "train/checkpoint.h"
#include "train/history.h"
#include "train/feed.h"
#include "nn/model_program.h"
#include "train/trainer.h"

/* Where the time of a call went. */
typedef struct sx_train_times {
    int64_t compile_ns, train_ns, eval_ns, save_ns;
} sx_train_times;

struct sx_trainer {
    sx_run_config config; /* defaults filled in; texts in the arena */
    sx_arena arena;
    sx_run_info info;
    sx_run_graphs graphs;
    bool on_disk;          /* model_dir holds this run */
    sx_strategy *strategy; /* the configuration's, or made from its fields; held */
    sx_session *session;
    sx_strategy *eval_strategy; /* of evaluation, held; NULL = where training is */
    sx_session *eval_session;   /* there, with copies of the variables; NULL = not opened yet */
    sx_program *programs[3];    /* by sx_mode; NULL = not asked for yet */
    int64_t compiled[3];        /* batch size that evaluation and prediction are compiled for */
    bool has_state;             /* the session's variables are a checkpoint's, or trained */
    char *prefix;               /* of the checkpoint restored last; NULL = none */
    sx_train_state state;       /* of that checkpoint; after training, of the session */
    sx_host_functions host;     /* of the model, where it is known; names are static */
    const char *rate_text;      /* how the learning rate was scaled; NULL = it was not */
    const char *warned; /* unused warnings of creation, told at the first fit; NULL = none */
    sx_history history;
    const sx_callback *callbacks; /* of the fit in progress */
    int n_callbacks;
    sx_train_times times;
};

/* build.c: what the run is (info, graphs, host, rate_text), of a model and data. Errors: the
 * model's own (layer, line, shapes); INVALID_ARGUMENT parameters that no model asked for, data that
 * do not fit. */
SX_MUST_USE sx_status sx_trainer_build(sx_trainer *t, const sx_trainer_options *options);

/* Tells observer and callbacks; fills the times in. */
void sx_trainer_emit(sx_trainer *t, sx_train_event *event);
void sx_trainer_warn(sx_trainer *t, const char *text);

/* The program of a mode, added to the session when first asked for; variables that come with it are
 * taken from the checkpoint that the others came from. */
SX_MUST_USE sx_status sx_trainer_program(sx_trainer *t, sx_mode mode, sx_program **out_program);
/* The session that the program of a mode is in. */
static inline sx_session *sx_trainer_session_of(const sx_trainer *t, sx_mode mode)
{
    return mode == SX_EVAL && t->eval_strategy != NULL ? t->eval_session : t->session;
}
/* A session on those devices, without programs. */
SX_MUST_USE sx_status sx_trainer_open_session(const sx_trainer *t, const sx_strategy *strategy,
                                              sx_session **out_session);
/* move.c: before an evaluation. Where it has devices of its own, brings the variables there. */
SX_MUST_USE sx_status sx_trainer_bring_to_eval(sx_trainer *t);
/* Compiles it for a batch size, `looped` for the step loop, telling the observers how long that
 * took. */
SX_MUST_USE sx_status sx_trainer_compile(sx_trainer *t, sx_mode mode, int64_t batch, bool looped);

/* The classes that labels name: the width of the predict program's "probabilities"; 0 = unknown. */
int64_t sx_trainer_classes(const sx_trainer *t);

/* A path below model_dir; free with sx_free. */
SX_MUST_USE sx_status sx_trainer_path(const sx_trainer *t, const char *name, char **out_path);

/* restore.c: the newest whole checkpoint of model_dir, with its state and the callbacks' (during a
 * fit). *out_found false: there is none. */
SX_MUST_USE sx_status sx_trainer_restore_latest(sx_trainer *t, bool *out_found);

/* Whether a stop was asked for. */
static inline bool sx_trainer_stopped(const sx_trainer *t)
{
    return t->config.stop != NULL && *t->config.stop != 0;
}

#endif
