/* A trainer's internals, for the files of this directory. */
#ifndef SX_TRAIN_STATE_H
#define SX_TRAIN_STATE_H

#include "distribute/processes.h"
#include "nn/model_program.h"
#include "train/checkpoint.h"
#include "train/feed.h"
#include "train/history.h"
#include "train/saver.h"
#include "train/trainer.h"

/* How the time of a call was spent. */
typedef struct sx_train_times {
    int64_t compile_ns, train_ns, eval_ns, save_ns;
} sx_train_times;

struct sx_trainer {
    sx_run_config config; /* defaults filled in; texts in the arena */
    sx_arena arena;
    sx_run_info info;
    sx_run_graphs graphs;
    bool on_disk;            /* model_dir holds this run */
    sx_strategy *strategy;   /* the configuration's, or made from its fields; owned */
    sx_processes *processes; /* that train in step, the strategy's; NULL: this one alone */
    bool stop_agreed;        /* by them */
    bool compared;           /* their variables, since these were set */
    sx_session *session;
    struct sx_timeline *timeline; /* the options' */
    struct sx_profile *profile;   /* the same */
    sx_strategy *eval_strategy;   /* for evaluation, owned; NULL = the training devices */
    sx_session
        *eval_session; /* on its devices, with copies of the variables; NULL = not opened yet */
    sx_graph *byte_graphs[3]; /* by sx_mode: of programs that are fed bytes; NULL = of floats */
    sx_program *programs[3];  /* by sx_mode; NULL = not needed yet */
    int64_t compiled[3];      /* batch size that evaluation and prediction are compiled for */
    bool has_state;           /* the variables are restored or trained, not just initialized */
    char *prefix;             /* of the checkpoint restored last; NULL = none */
    sx_train_state state;     /* that checkpoint's; after training, the session's */
    sx_host_functions host;   /* the model's, if it is known; names are static */
    const char *rate_text;    /* how the learning rate was scaled; NULL = not scaled */
    const char *warned;       /* warnings of creation, emitted at the first fit; NULL = none */
    sx_history history;
    bool history_damaged;         /* history.json and its copy; `history` is empty */
    sx_saver saver;               /* of the checkpoints of a fit */
    int64_t saved_step;           /* of the newest that is written or was restored; -1 = none */
    sx_status save_failed;        /* the first write that failed: the fit ends with it */
    const sx_callback *callbacks; /* of the fit in progress */
    int n_callbacks;
    sx_train_times times;
};

/* build.c: fills info, graphs, host and rate_text from a model and data. Errors: the model's own
 * (layer, line, shapes); INVALID_ARGUMENT: parameters that the model does not have, data that do
 * not fit. */
SX_MUST_USE sx_status sx_trainer_build(sx_trainer *t, const sx_trainer_options *options);

/* Sets the parameters that the run was started with. */
SX_MUST_USE sx_status sx_trainer_stored_params(const sx_trainer *t, sx_params *params);

/* Fills in the times and notifies observer and callbacks. */
void sx_trainer_emit(sx_trainer *t, sx_train_event *event);
/* An sx_warn_fn; `trainer` is an sx_trainer. A warning that no observer receives is logged. */
void sx_trainer_warn(void *trainer, const char *text);

/* The program of a mode, added to the session on first use; variables new to the session are loaded
 * from the checkpoint restored last. */
SX_MUST_USE sx_status sx_trainer_program(sx_trainer *t, sx_mode mode, sx_program **out_program);
/* The graph of that program. */
static inline const sx_graph *sx_trainer_graph(const sx_trainer *t, sx_mode mode)
{
    return t->byte_graphs[mode] != NULL ? t->byte_graphs[mode] : t->graphs.by_mode[mode];
}
/* The session that runs the program of a mode. */
static inline sx_session *sx_trainer_session_of(const sx_trainer *t, sx_mode mode)
{
    return mode == SX_EVAL && t->eval_strategy != NULL ? t->eval_session : t->session;
}
/* Opens a session without programs on the strategy's devices. */
SX_MUST_USE sx_status sx_trainer_open_session(const sx_trainer *t, const sx_strategy *strategy,
                                              sx_session **out_session);
/* move.c: call before an evaluation; copies the variables to its devices if it has its own. */
SX_MUST_USE sx_status sx_trainer_bring_to_eval(sx_trainer *t);
/* Compiles the program of a mode for a batch size, `looped` for the step loop, and reports the time
 * to the observers. */
SX_MUST_USE sx_status sx_trainer_compile(sx_trainer *t, sx_mode mode, int64_t batch, bool looped);

/* The number of classes: the width of the predict program's "probabilities"; 0 = unknown. */
int64_t sx_trainer_classes(const sx_trainer *t);

/* A path below model_dir; free with sx_free. */
SX_MUST_USE sx_status sx_trainer_path(const sx_trainer *t, const char *name, char **out_path);

/* restore.c: loads the newest intact checkpoint of model_dir, with its state and, during a fit, the
 * callbacks'. *out_found is false if there is none. */
SX_MUST_USE sx_status sx_trainer_restore_latest(sx_trainer *t, bool *out_found);

/* Whether this process writes the run's files. */
static inline bool sx_trainer_writes(const sx_trainer *t)
{
    return t->config.model_dir != NULL && sx_is_chief(t->processes);
}

/* FAILED_PRECONDITION: this process is not the chief, and does not write. */
static inline sx_status sx_trainer_check_chief(const sx_trainer *t, const char *what)
{
    return sx_is_chief(t->processes)
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "process %d of %d cannot %s: process 0 alone writes files",
                          sx_processes_index(t->processes), sx_processes_count(t->processes), what);
}

/* Whether a stop was requested; of several processes, whether they have agreed to stop. */
static inline bool sx_trainer_stopped(const sx_trainer *t)
{
    return t->processes != NULL ? t->stop_agreed : t->config.stop != NULL && *t->config.stop != 0;
}

#endif
