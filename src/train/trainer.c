/* Creates a trainer from a model, or from the run in a directory. See trainer.h. */
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "checkpoint/checkpoint_state.h"
#include "distribute/strategy.h"
#include "graph/ir.h"
#include "io/path.h"
#include "io/user_cache.h"
#include "nn/model_program.h"
#include "train/choose_strategy.h"
#include "train/config.h"
#include "train/misfit.h"
#include "train/state.h"

/* ---- An existing run ---- */

static bool same_text(const sx_graph *a, const sx_graph *b)
{
    char *x = NULL, *y = NULL;
    sx_status status = sx_graph_print(a, &x);
    if (status == SX_OK) {
        status = sx_graph_print(b, &y);
    }
    bool same = status == SX_OK && strcmp(x, y) == 0;
    sx_status_free(status);
    sx_text_free(x);
    sx_text_free(y);
    return same;
}

/* The first parameter that differs, else the learning rate, as a warning in the arena; NULL if
 * neither does. */
static const char *first_difference(sx_trainer *t, const sx_run_info *stored)
{
    const sx_run_info *now = &t->info;
    for (int i = 0; i < now->n_params; i++) {
        for (int k = 0; k < stored->n_params; k++) {
            if (strcmp(now->param_names[i], stored->param_names[k]) == 0 &&
                strcmp(now->param_values[i], stored->param_values[k]) != 0) {
                return sx_arena_printf(&t->arena,
                                       "parameter %s is %s, but the run was started with %s, which "
                                       "is kept (use --fresh to start over)",
                                       now->param_names[i], now->param_values[i],
                                       stored->param_values[k]);
            }
        }
    }
    if (stored->learning_rate > 0 && stored->learning_rate != now->learning_rate) {
        return sx_arena_printf(&t->arena,
                               "the learning rate is %g, but the run was started with %g, which "
                               "is kept (use --fresh to start over)",
                               now->learning_rate, stored->learning_rate);
    }
    return NULL;
}

/* The part of the preprocessing that differs from the run's, as a warning in the arena; NULL if it
 * is the same or cannot be told. What the graphs depend on is compared there. */
static sx_status compare_preprocess(sx_trainer *t, const sx_run_info *stored, const char **out_text)
{
    const sx_run_info *infos[2] = {&t->info, stored};
    sx_buf lists[2];
    json_t *rest[2] = {NULL, NULL}; /* without the augmentations */
    sx_status status = SX_OK;
    if (!t->info.has_preprocess || !stored->has_preprocess) {
        return SX_OK;
    }
    for (int i = 0; i < 2; i++) {
        sx_buf_init(&lists[i], 1 << 12);
        sx_preprocess pre = infos[i]->preprocess;
        sx_preprocess_put_augment(&pre, &lists[i]);
        pre.label_base = 0;                     /* of the data */
        pre.extra_height = pre.extra_width = 0; /* of the crop, which is in the list */
        if (status == SX_OK) {
            status = sx_preprocess_set_augment(&pre, "none");
        }
        if (status == SX_OK) {
            status = sx_preprocess_to_json(&pre, &rest[i]);
        }
    }
    if (status == SX_OK && strcmp(sx_buf_text(&lists[0]), sx_buf_text(&lists[1])) != 0) {
        *out_text =
            sx_arena_printf(&t->arena,
                            "the augmentation is %s, but the run was started with %s, which "
                            "is kept (use --fresh to start over)",
                            sx_buf_text(&lists[0]), sx_buf_text(&lists[1]));
    } else if (status == SX_OK && !json_equal(rest[0], rest[1])) {
        *out_text =
            "the run was started with different preprocessing (recipe, scale), which is kept "
            "(use --fresh to start over)";
    }
    for (int i = 0; i < 2; i++) {
        json_decref(rest[i]);
        sx_buf_deinit(&lists[i]);
    }
    return status;
}

/* A run continues with its stored graphs and preprocessing. A model with other variables is
 * rejected; other differences become a warning at the first fit, or, with require_exact, an error:
 * the run that was asked for would end with other weights. */
static sx_status compare_stored(sx_trainer *t, const sx_run_graphs *stored, const sx_run_info *info)
{
    const sx_graph *kept = stored->by_mode[SX_TRAIN], *built = t->graphs.by_mode[SX_TRAIN];
    const char *preprocess = NULL;
    const bool same_preprocess =
        info->has_program == t->info.has_program &&
        (!info->has_program ||
         same_text(stored->by_mode[SX_RUN_PREPROCESS], t->graphs.by_mode[SX_RUN_PREPROCESS]));
    SX_TRY(sx_run_check_variables(t->config.model_dir, kept, built));
    SX_TRY(compare_preprocess(t, info, &preprocess));
    if (info->seed != t->info.seed && t->info.seed != 0) {
        t->warned = "the run was started with a different seed, which is kept";
    } else if (info->precision != t->info.precision) {
        t->warned =
            info->precision == SX_BF16
                ? "the run was started in bfloat16, which is kept (use --fresh to start over)"
                : "the run was started in float32, which is kept (use --fresh to start over)";
    } else if (!same_text(kept, built) || !same_preprocess) {
        const char *difference = first_difference(t, info);
        t->warned =
            difference != NULL ? difference
            : !same_preprocess
                ? "the run was started with a different preprocessing function, which is kept (use "
                  "--fresh to start over)"
                : "the model, its parameters or its optimizer differ from those the run was "
                  "started with, which are kept (use --fresh to start over)";
    } else {
        t->warned = preprocess;
    }
    return t->warned != NULL && t->config.require_exact
               ? sx_error(SX_FAILED_PRECONDITION, "cannot resume exactly: %s", t->warned)
               : SX_OK;
}

static sx_status adopt_stored(sx_trainer *t, bool compare)
{
    sx_run_graphs stored;
    sx_run_info info = {0};
    const char *dir = t->config.model_dir;
    SX_TRY(sx_run_read(dir, &t->arena, sx_trainer_warn, t, &info));
    SX_TRY(sx_run_read_graphs(dir, &info, sx_trainer_warn, t, &stored));
    /* Training needs all graphs; what else is done with a run, at least the predict graph. */
    sx_status status = sx_run_graph_lost(&stored, SX_PREDICT);
    if (status == SX_OK) {
        status = sx_run_graph_lost(&stored, SX_RUN_PREPROCESS);
    }
    for (int mode = 0; mode < SX_RUN_PREPROCESS && compare && status == SX_OK; mode++) {
        status = sx_run_graph_lost(&stored, mode);
    }
    if (status == SX_OK && compare) {
        status = compare_stored(t, &stored, &info);
    }
    if (status != SX_OK) {
        sx_run_graphs_destroy(&stored);
        return status;
    }
    sx_run_graphs_destroy(&t->graphs);
    t->graphs = stored;
    t->info = info;
    t->on_disk = true;
    return SX_OK;
}

static sx_status open_directory(sx_trainer *t, const sx_trainer_options *o)
{
    const char *dir = t->config.model_dir;
    if (dir == NULL) {
        return o->def != NULL ? SX_OK
                              : sx_error(SX_INVALID_ARGUMENT, "neither a model nor a model_dir");
    }
    if (t->config.fresh && o->def != NULL) {
        return SX_OK; /* existing files are deleted when the new run starts, not before */
    }
    bool is_run = sx_run_exists(dir);
    return is_run || o->def == NULL ? adopt_stored(t, o->def != NULL) : sx_run_check_new(dir);
}

/* A damaged history must not keep a run from being used. */
static sx_status load_history(sx_trainer *t)
{
    sx_status status = sx_history_load(&t->history, t->config.model_dir, sx_trainer_warn, t);
    if (sx_status_code(status) != SX_DATA_LOSS) {
        return status;
    }
    t->history_damaged = true;
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text,
                  "%s; continuing without the history: training saves the file as "
                  "history.json.damaged and takes the best checkpoint from new evaluations",
                  sx_status_message(status));
    sx_trainer_warn(t, sx_buf_text(&text));
    sx_buf_deinit(&text);
    sx_status_free(status);
    return SX_OK;
}

/* ---- Creation ---- */

/* The directory for compiled programs; NULL = none. */
static char *compile_cache(const sx_trainer *t)
{
    char *dir = NULL;
    if (!t->config.no_compile_cache) {
        sx_status_free(
            sx_user_cache("compiled", &dir)); /* without a home directory there is no cache */
    }
    return dir;
}

/* Must run before the graphs are built: a loss may depend on the number of replicas. */
static sx_status choose_strategy(sx_trainer *t, const sx_run_config *config)
{
    SX_TRY(sx_choose_strategy(config, &t->strategy));
    sx_settle_strategy(&t->config, t->strategy);
    t->processes = sx_strategy_processes(t->strategy);
    if (t->processes != NULL && config->eval_distribute != NULL &&
        config->eval_distribute != t->strategy) {
        return sx_error(SX_UNIMPLEMENTED, "several processes evaluate on the devices of training; "
                                          "eval_distribute cannot be given");
    }
    if (config->eval_distribute != NULL && config->eval_distribute != t->strategy) {
        t->eval_strategy = sx_strategy_retain(config->eval_distribute);
    }
    return SX_OK;
}

sx_status sx_trainer_open_session(const sx_trainer *t, const sx_strategy *strategy,
                                  sx_session **out_session)
{
    const sx_run_config *c = &t->config;
    char *cache_dir = compile_cache(t);
    sx_session_options options = {.platform = {.cpu = {.threads = c->threads,
                                                       .eval_shards = SX_EVAL_SHARDS,
                                                       .memory_limit_bytes = c->memory_limit_bytes,
                                                       .profile = t->profile},
                                               .pjrt = {.cache_dir = cache_dir},
                                               .timeline = t->timeline},
                                  .shards = c->shards,
                                  .seed = t->info.seed,
                                  .launch_steps = c->iterations_per_loop,
                                  .launch_seconds = c->iterations_per_loop_secs};
    sx_status status = sx_strategy_apply(strategy, &options);
    if (status == SX_OK) {
        status = sx_session_create(&options, out_session);
    }
    sx_free(cache_dir);
    return status;
}

static sx_status create(sx_trainer *t, const sx_trainer_options *o)
{
    t->timeline = o->timeline;
    t->profile = o->profile;
    SX_TRY(sx_run_config_resolve(o->config, &t->arena, &t->config));
    SX_TRY(choose_strategy(t, o->config));
    if (o->def != NULL) {
        SX_TRY(sx_trainer_build(t, o));
    }
    SX_TRY(open_directory(t, o));
    if (t->on_disk) {
        SX_TRY(load_history(t));
    }
    return sx_trainer_open_session(t, t->strategy, &t->session);
}

sx_status sx_trainer_create(const sx_trainer_options *options, sx_trainer **out_trainer)
{
    sx_trainer *t = sx_alloc(1, sizeof(*t));
    if (t == NULL) {
        return sx_no_memory("for a trainer");
    }
    sx_arena_init(&t->arena, 0);
    sx_history_init(&t->history);
    sx_status status = create(t, options);
    if (status != SX_OK) {
        sx_trainer_destroy(t);
        return status;
    }
    *out_trainer = t;
    return SX_OK;
}

void sx_trainer_destroy(sx_trainer *t)
{
    if (t == NULL) {
        return;
    }
    sx_saver_deinit(&t->saver);
    sx_status_free(t->save_failed);
    sx_session_destroy(t->eval_session);
    sx_session_destroy(t->session);
    sx_strategy_release(t->eval_strategy);
    sx_strategy_release(t->strategy);
    for (int mode = 0; mode < 3; mode++) {
        sx_graph_destroy(t->byte_graphs[mode]);
    }
    sx_run_graphs_destroy(&t->graphs);
    sx_history_deinit(&t->history);
    sx_free(t->prefix);
    sx_arena_deinit(&t->arena);
    sx_free(t);
}

/* ---- Properties ---- */

const sx_run_info *sx_trainer_info(const sx_trainer *t)
{
    return &t->info;
}

sx_session *sx_trainer_session(sx_trainer *t)
{
    return t->session;
}

bool sx_trainer_is_chief(const sx_trainer *t)
{
    return sx_is_chief(t->processes);
}

int64_t sx_trainer_step(sx_trainer *t)
{
    int64_t step = 0;
    if (t->prefix != NULL && sx_session_find_variable(t->session, "global_step") < 0) {
        return sx_checkpoint_step(t->prefix); /* without a train program the step does not change */
    }
    sx_status_free(sx_session_read_step(t->session, &step));
    return step;
}

int64_t sx_trainer_classes(const sx_trainer *t)
{
    return sx_program_classes(t->graphs.by_mode[SX_PREDICT]);
}

sx_status sx_trainer_path(const sx_trainer *t, const char *name, char **out_path)
{
    return sx_path_join(t->config.model_dir, name, out_path);
}

/* ---- Events ---- */

void sx_trainer_emit(sx_trainer *t, sx_train_event *event)
{
    event->struct_size = sizeof(*event);
    event->compile_seconds = (double)t->times.compile_ns * 1e-9;
    event->train_seconds = (double)t->times.train_ns * 1e-9;
    event->eval_seconds = (double)t->times.eval_ns * 1e-9;
    event->save_seconds = (double)t->times.save_ns * 1e-9;
    if (t->config.observer != NULL) {
        t->config.observer(t->config.observer_user, event);
    }
    for (int i = 0; i < t->n_callbacks; i++) {
        if (t->callbacks[i].observe != NULL) {
            t->callbacks[i].observe(t->callbacks[i].user, event);
        }
    }
}

void sx_trainer_warn(void *trainer, const char *text)
{
    sx_trainer *t = trainer;
    int64_t step = t->session != NULL ? sx_trainer_step(t) : 0;
    sx_trainer_emit(t, &(sx_train_event){.kind = SX_EVENT_WARNING, .text = text, .step = step});
    if (t->config.observer == NULL) {
        sx_log(SX_LOG_WARN, "%s", text);
    }
}

/* ---- Programs ---- */

static sx_status add_program(sx_trainer *t, sx_mode mode)
{
    sx_session *session = sx_trainer_session_of(t, mode);
    int before = sx_session_variable_count(session);
    SX_TRY(sx_run_graph_lost(&t->graphs, mode));
    SX_TRY(sx_session_add_program(session, sx_trainer_graph(t, mode), &t->programs[mode]));
    if (t->prefix != NULL && session == t->session && sx_session_variable_count(session) > before) {
        return sx_checkpoint_load(session, t->prefix, before);
    }
    return SX_OK;
}

sx_status sx_trainer_program(sx_trainer *t, sx_mode mode, sx_program **out_program)
{
    if (t->programs[mode] == NULL) {
        SX_TRY(add_program(t, mode));
    }
    *out_program = t->programs[mode];
    return SX_OK;
}

sx_status sx_trainer_compile(sx_trainer *t, sx_mode mode, int64_t batch, bool looped)
{
    sx_program *p = t->programs[mode];
    static const char *const names[3] = {"train", "eval", "predict"};
    sx_train_event event = {.kind = SX_EVENT_COMPILE_BEGIN,
                            .text = names[mode],
                            .batch = batch,
                            .device = sx_session_device(sx_trainer_session_of(t, mode))->name};
    sx_executable_info info;
    int64_t ns = 0;
    event.step = sx_trainer_step(t);
    sx_trainer_emit(t, &event);
    SX_TRY(looped ? sx_program_prepare_loop(p, batch, sx_program_find_output(p, SX_OK_OUTPUT), &ns)
                  : sx_program_prepare(p, batch, &ns));
    t->times.compile_ns += ns;
    SX_TRY(sx_program_info(t->programs[mode], batch, &info));
    event.kind = SX_EVENT_COMPILE_END;
    event.from_cache = info.from_cache;
    event.seconds = (double)ns * 1e-9;
    sx_trainer_emit(t, &event);
    return SX_OK;
}
