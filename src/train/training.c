/* The public training session (sextant/runtime.h): the parts of a fit (fit.h) in a loop of the
 * caller's, on the caller's iterator or batches. */
#include <sextant/runtime.h>

#include <inttypes.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "graph/ir.h"
#include "io/dir_lock.h"
#include "io/path.h"
#include "train/face.h"
#include "train/step.h"
#include "train/training.h"

sx_status sx_training_check_open(const sx_training *t)
{
    return t->trainer != NULL ? SX_OK
                              : sx_error(SX_FAILED_PRECONDITION, "the training session is closed");
}

static sx_status check_begun(const sx_training *t)
{
    SX_TRY(sx_training_check_open(t));
    return t->begun ? SX_OK
                    : sx_error(SX_FAILED_PRECONDITION,
                               "the training has not begun; call sx_training_begin() first");
}

/* How the batches of a mode are made. */
static sx_feed_args feed_args_of(const sx_training *t, sx_mode mode)
{
    const sx_trainer *trainer = t->trainer;
    return (sx_feed_args){.mode = mode,
                          .classes = sx_trainer_classes(trainer),
                          .program = trainer->graphs.by_mode[mode],
                          .preprocess = trainer->graphs.by_mode[SX_RUN_PREPROCESS]};
}

/* ---- Opening and closing ---- */

sx_status sx_training_open_at(const sx_model_def *model, const sx_training_args *args,
                              sx_training **out_training)
{
    const bool has_model = model != NULL;
    SX_NEED(out_training);
    SX_TAKE_ARGS(sx_model_def, model);
    SX_TAKE_ARGS(sx_training_args, args);
    const sx_run_config *config = args->config;
    SX_TAKE_ARGS(sx_run_config, config);
    sx_training *t = sx_alloc(1, sizeof(*t));
    sx_params *params = NULL;
    sx_program *program;
    if (t == NULL) {
        return sx_no_memory("for a training session");
    }
    sx_status status = sx_face_params(args->params, &params);
    if (status == SX_OK) {
        status = sx_trainer_create(&(sx_trainer_options){.config = config,
                                                         .def = has_model ? model : NULL,
                                                         .params = params,
                                                         .optimizer = &args->optimizer,
                                                         .train_step = args->train_step,
                                                         .data = args->data},
                                   &t->trainer);
    }
    sx_params_destroy(params);
    if (status == SX_OK && t->trainer->processes != NULL) {
        status = sx_error(SX_UNIMPLEMENTED, "a training loop of your own runs in one process; "
                                            "several need an estimator or a model's fit");
    }
    if (status == SX_OK) {
        status = sx_trainer_program(t->trainer, SX_TRAIN, &program);
    }
    if (status != SX_OK) {
        sx_training_free(t);
        return status;
    }
    t->trainer->config.save_checkpoints_secs = SX_NEVER;
    t->trainer->config.save_checkpoints_steps = 0;
    t->request.epochs = 1; /* the iterator's position is restored even at the end of its data */
    t->fit = (sx_fit){.t = t->trainer,
                      .r = &t->request,
                      .target = INT64_MAX,
                      .saved_step = -1,
                      .partial_step = -1,
                      .lock = SX_NO_LOCK};
    t->train_step = (sx_step_program){.t = t, .name = "train", .mode = SX_TRAIN};
    *out_training = t;
    return SX_OK;
}

void sx_training_close(sx_training *t)
{
    if (t->trainer == NULL) {
        return;
    }
    sx_steps_destroy(t);
    sx_batch_gather_deinit(&t->fit.input);
    sx_batch_gather_deinit(&t->kept);
    sx_host_caller_deinit(&t->fit.host);
    sx_free(t->fit.fed);
    sx_dir_unlock(t->fit.lock);
    sx_trainer_destroy(t->trainer);
    *t = (sx_training){.train_step = {.t = t, .name = "train", .mode = SX_TRAIN}};
}

void sx_training_free(sx_training *t)
{
    if (t != NULL) {
        sx_training_close(t);
        sx_free(t);
    }
}

/* ---- Data ---- */

sx_status sx_training_preprocess(sx_training *t, sx_mode mode, sx_dataset **data)
{
    SX_NEED(t);
    SX_NEED(data);
    SX_TRY(sx_training_check_open(t));
    if (sx_dataset_batch_size(*data) > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the data is batched; preprocess it before sx_dataset_batch()");
    }
    const sx_feed_args args = feed_args_of(t, mode);
    sx_dataset *mapped = sx_dataset_retain(*data);
    sx_status status = sx_feed_preprocess(&mapped, &t->trainer->info, &args);
    if (status != SX_OK) {
        sx_dataset_release(mapped);
        return status;
    }
    sx_dataset_release(*data);
    *data = mapped;
    return SX_OK;
}

/* Lets the fit read an iterator. */
static sx_status bind(sx_training *t, sx_iterator *batches)
{
    const sx_feed_args args = feed_args_of(t, SX_TRAIN);
    sx_batch_gather_deinit(&t->fit.input);
    sx_host_caller_deinit(&t->fit.host);
    SX_TRY(sx_batch_gather_borrow(&t->fit.input, &t->trainer->info, batches, &args));
    t->request.train = t->fit.input.feeds[0].data;
    return sx_fit_open_program(&t->fit);
}

/* ---- Distributed data ---- */

static sx_status other_strategy(const sx_training *t, const sx_distributed *data)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "the data were distributed at %s:%d over \"%s\", but the training runs under "
                    "\"%s\": distribute them over sx_training_strategy()",
                    sx_path_basename(data->file), data->line, sx_strategy_text(data->strategy),
                    sx_strategy_text(t->trainer->strategy));
}

sx_status sx_training_open_data(sx_training *t, const sx_distributed *data, sx_mode mode,
                                sx_batch_gather *out)
{
    const sx_run_config *c = &t->trainer->config;
    const sx_inputs *in = &data->inputs;
    const int64_t usual = mode == SX_TRAIN ? c->train_batch_size : c->eval_batch_size;
    if (strcmp(sx_strategy_text(data->strategy), sx_strategy_text(t->trainer->strategy)) != 0) {
        return other_strategy(t, data);
    }
    sx_feed_args args = feed_args_of(t, mode);
    args.batch_size = (data->batch > 0 ? data->batch : usual) / in->n;
    args.no_shuffle = c->no_shuffle;
    args.repeat = mode == SX_TRAIN;
    SX_TRY(sx_batch_gather_init(out, &t->trainer->info, in->data, in->n, in->pulls, &args),
           "the data distributed at %s:%d", sx_path_basename(data->file), data->line);
    sx_status status = mode == SX_TRAIN ? sx_check_batch_divides(c, out->max_batch) : SX_OK;
    if (status != SX_OK) {
        sx_batch_gather_deinit(out);
    }
    return status;
}

/* ---- Steps ---- */

/* Begins for the first time. */
static sx_status begin_first(sx_training *t, bool has_input)
{
    sx_fit *f = &t->fit;
    bool found;
    if (!has_input) {
        SX_TRY(sx_fit_open_program(f));
    }
    if (t->trainer->on_disk) {
        t->trainer->has_state = false; /* what sx_training_restore() loaded may be older */
    }
    SX_TRY(sx_fit_restore(f, &found));
    sx_fit_progress(f)->n_sums = f->n_metrics;
    SX_TRY(sx_fit_begin(f, found));
    return found ? SX_OK : sx_fit_save(f);
}

/* Begins on what is bound, if anything is. */
static sx_status begin(sx_training *t, bool has_input)
{
    sx_fit *f = &t->fit;
    f->no_position = !has_input;
    if (!t->begun) {
        SX_TRY(begin_first(t, has_input));
        t->begun = true;
        t->numerics_known = has_input;
        return SX_OK;
    }
    sx_fit_begin_epoch(f);
    if (!has_input) {
        return SX_OK;
    }
    SX_TRY(sx_fit_compile(f, f->input.max_batch));
    return sx_fit_make_queue(f);
}

sx_status sx_training_begin(sx_training *t, sx_iterator *batches)
{
    SX_NEED(t);
    SX_TRY(sx_training_check_open(t));
    if (batches != NULL) {
        SX_TRY(bind(t, batches), "training data");
        SX_TRY(sx_check_batch_divides(&t->trainer->config, t->fit.input.max_batch));
    }
    t->batches = batches;
    t->data = NULL;
    sx_batch_gather_deinit(&t->kept);
    return begin(t, batches != NULL);
}

/* Lets the fit read `input`, which it takes. */
static sx_status take_input(sx_training *t, sx_batch_gather *input)
{
    sx_batch_gather_deinit(&t->fit.input);
    sx_host_caller_deinit(&t->fit.host);
    t->fit.input = *input;
    *input = (sx_batch_gather){0};
    t->request.train = t->fit.input.feeds[0].data;
    return sx_fit_open_program(&t->fit);
}

sx_status sx_training_begin_on(sx_training *t, const sx_distributed *data)
{
    sx_batch_gather input;
    SX_TRY(sx_training_check_open(t));
    SX_TRY(sx_training_open_data(t, data, SX_TRAIN, &input));
    t->batches = NULL;
    t->data = data;
    sx_batch_gather_deinit(&t->kept);
    SX_TRY(take_input(t, &input));
    return begin(t, true);
}

sx_status sx_training_begin_distributed_at(sx_training *t, const sx_distributed *data,
                                           const char *file, int line)
{
    SX_NEED(t);
    SX_NEED(data);
    return sx_at_user_line(sx_training_begin_on(t, data), file, line);
}

static void describe_step(sx_fit *f, sx_training_step *out)
{
    if (out == NULL) {
        return;
    }
    *out = (sx_training_step){.step = f->step,
                              .epoch = sx_fit_event(f, SX_EVENT_PROGRESS).epoch,
                              .examples = f->batch,
                              .ends_epoch = f->epoch_ended,
                              .learning_rate = f->learning_rate,
                              .n_metrics = f->n_metrics};
    for (int k = 0; k < f->n_metrics; k++) {
        out->metrics[k] = (sx_metric){f->metrics[k].name, f->last[k]};
        out->means[k] = f->metrics[k].value;
    }
}

/* Runs up to `steps` steps on what is bound. */
static sx_status run(sx_training *t, int64_t steps, sx_training_step *out_step)
{
    sx_fit *f = &t->fit;
    const int64_t first = f->step, until = steps < INT64_MAX - first ? first + steps : INT64_MAX;
    bool more = true;
    while (more && !sx_trainer_stopped(t->trainer)) {
        SX_TRY(sx_fit_run_segment(f, until - f->step));
        if (f->epoch_ended) {
            sx_fit_end_epoch(f);
        }
        SX_TRY(sx_fit_record(f, f->epoch_ended));
        more = f->step < until && !f->epoch_ended && !sx_fit_progress(f)->data_ended;
    }
    if (f->step == first) {
        return more ? sx_error(SX_CANCELLED, "stopped at step %" PRId64, f->step)
                    : sx_error(SX_OUT_OF_RANGE, "the data ended at step %" PRId64, f->step);
    }
    describe_step(f, out_step);
    return more ? sx_error(SX_CANCELLED, "stopped at step %" PRId64, f->step) : SX_OK;
}

sx_status sx_training_run(sx_training *t, int64_t steps, sx_training_step *out_step)
{
    SX_NEED(t);
    SX_TRY(check_begun(t));
    if (steps < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "steps is %" PRId64 ", expected at least 1", steps);
    }
    if (t->batches == NULL && t->data == NULL) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the training has no iterator; give one to sx_training_begin(), or call "
                        "sx_training_run_batch()");
    }
    if (t->fit.no_position) { /* after a batch of the caller's */
        SX_TRY(t->data != NULL ? take_input(t, &t->kept) : bind(t, t->batches));
        t->fit.no_position = false;
    }
    return run(t, steps, out_step);
}

/* Whether a tensor of that name is the input: its component's name or, without named inputs, the
 * other name for it. */
static bool is_input(const sx_model_inputs *inputs, const sx_model_input *input, const char *name)
{
    const char *other = input->kind == SX_INPUT_FEATURE ? "image" : "label";
    return strcmp(input->name, name) == 0 || (!inputs->named && strcmp(other, name) == 0);
}

/* Each input of the training program is there, and nothing else. */
static sx_status check_names(const sx_trainer *trainer, int count, const char *const *names)
{
    const sx_model_inputs *inputs = &trainer->info.inputs;
    const char *wanted[SX_MAX_MODEL_INPUTS];
    size_t n = 0;
    for (int i = 0; i < inputs->n; i++) {
        if (sx_mode_feeds(SX_TRAIN, &inputs->items[i])) {
            wanted[n++] = inputs->items[i].name;
        }
    }
    bool given[SX_MAX_MODEL_INPUTS] = {false};
    for (int c = 0; c < count; c++) {
        bool known = false;
        for (int i = 0; i < inputs->n && names[c] != NULL; i++) {
            bool match = is_input(inputs, &inputs->items[i], names[c]);
            given[i] = given[i] || match;
            known = known || match;
        }
        if (!known) {
            sx_buf text;
            sx_buf_init(&text, 1 << 14);
            const char *name = names[c] != NULL ? names[c] : "(null)";
            sx_nearest_list(name, wanted, n, &text);
            sx_status status =
                sx_error(SX_INVALID_ARGUMENT, "model \"%s\" has no input \"%.100s\" %s",
                         trainer->info.model, name, sx_buf_text(&text));
            sx_buf_deinit(&text);
            return status;
        }
    }
    for (int i = 0; i < inputs->n; i++) {
        if (!given[i] && sx_mode_feeds(SX_TRAIN, &inputs->items[i])) {
            return sx_error(SX_INVALID_ARGUMENT, "the batch lacks \"%s\", a %s of model \"%s\"",
                            inputs->items[i].name, sx_input_kind_names[inputs->items[i].kind],
                            trainer->info.model);
        }
    }
    return SX_OK;
}

sx_status sx_training_run_batch(sx_training *t, int count, const char *const *names,
                                const sx_tensor *tensors, sx_training_step *out_step)
{
    SX_NEED(t);
    SX_NEED(names);
    SX_NEED(tensors);
    SX_TRY(check_begun(t));
    SX_TRY(check_names(t->trainer, count, names));
    sx_fit *f = &t->fit;
    sx_dataset *data = NULL;
    sx_iterator *batch = NULL;
    SX_TRY(sx_dataset_from_tensors(count, names, tensors, NULL, NULL, &data));
    sx_status status = sx_dataset_batch(&data, .size = tensors[0].type.dims[0]);
    if (status == SX_OK) {
        status = sx_iterator_create(data, &batch, .workers = -1, .prefetch = 1);
    }
    if (status == SX_OK) {
        if (t->data != NULL && !f->no_position) { /* their position */
            t->kept = f->input;
            f->input = (sx_batch_gather){0};
        }
        status = bind(t, batch);
        f->no_position = true;
    }
    if (status == SX_OK && !t->numerics_known) {
        status = sx_fit_compile(f, f->input.max_batch);
        status = status == SX_OK ? sx_fit_check_numerics(f) : status;
        t->numerics_known = status == SX_OK;
    }
    if (status == SX_OK) {
        status = run(t, 1, out_step);
    }
    if (batch != NULL) { /* then it is bound */
        sx_batch_gather_deinit(&f->input);
    }
    sx_iterator_destroy(batch);
    sx_dataset_release(data);
    return status;
}

int64_t sx_training_global_step(const sx_training *t)
{
    if (t == NULL || t->trainer == NULL) {
        return 0;
    }
    return t->begun ? t->fit.step : sx_trainer_step(t->trainer);
}

sx_strategy *sx_training_strategy(const sx_training *t)
{
    return t == NULL || t->trainer == NULL ? NULL : t->trainer->strategy;
}

/* ---- Checkpoints ---- */

sx_status sx_training_save(sx_training *t)
{
    SX_NEED(t);
    SX_TRY(check_begun(t));
    return t->trainer->config.model_dir != NULL
               ? sx_fit_save(&t->fit)
               : sx_error(SX_FAILED_PRECONDITION,
                          "the training session has no model_dir to save in");
}

sx_status sx_training_restore(sx_training *t, const char *checkpoint)
{
    SX_NEED(t);
    SX_TRY(sx_training_check_open(t));
    return !t->begun ? sx_trainer_restore(t->trainer, checkpoint)
                     : sx_error(SX_FAILED_PRECONDITION,
                                "the training has begun; open another session to restore "
                                "checkpoint %s",
                                checkpoint != NULL ? checkpoint : "latest");
}

/* ---- Evaluation and prediction ---- */

sx_status sx_training_evaluate(sx_training *t, sx_dataset *data, sx_eval_result *out_result)
{
    SX_NEED(t);
    SX_NEED(data);
    SX_NEED(out_result);
    SX_TRY(sx_training_check_open(t));
    return sx_trainer_evaluate(t->trainer, data, 0, out_result);
}

sx_status sx_training_predict(sx_training *t, sx_dataset *data, sx_prediction_fn *row,
                              void *row_user)
{
    SX_NEED(t);
    SX_NEED(data);
    SX_NEED(row);
    SX_TRY(sx_training_check_open(t));
    return sx_trainer_predict(t->trainer, data, 0, row, row_user);
}

sx_status sx_training_predict_batch(sx_training *t, int count, const char *const *names,
                                    const sx_tensor *tensors, sx_prediction_fn *row, void *row_user)
{
    sx_dataset *data = NULL;
    SX_NEED(t);
    SX_NEED(names);
    SX_NEED(tensors);
    SX_NEED(row);
    SX_TRY(sx_training_check_open(t));
    SX_TRY(sx_dataset_from_tensors(count, names, tensors, NULL, NULL, &data));
    sx_status status = sx_trainer_predict(t->trainer, data, 0, row, row_user);
    sx_dataset_release(data);
    return status;
}

sx_status sx_training_export(sx_training *t, const char *base, const char *version, char **out_dir)
{
    SX_NEED(t);
    SX_NEED(base);
    SX_TRY(sx_training_check_open(t));
    return sx_trainer_export(t->trainer, base, version, NULL, out_dir);
}

/* ---- Variables ---- */

int sx_training_variable_count(const sx_training *t)
{
    return t == NULL || t->trainer == NULL ? 0 : sx_session_variable_count(t->trainer->session);
}

sx_status sx_training_variable_at(const sx_training *t, int i, sx_variable_info *out_info)
{
    SX_NEED(t);
    SX_NEED(out_info);
    SX_TRY(sx_training_check_open(t));
    const int n = sx_session_variable_count(t->trainer->session);
    if (i < 0 || i >= n) {
        return sx_error(SX_OUT_OF_RANGE, "variable %d of %d", i, n);
    }
    const sx_session_variable *v = sx_session_variable_at(t->trainer->session, i);
    *out_info = (sx_variable_info){.name = v->name, .type = v->type, .role = v->role};
    return SX_OK;
}

/* The index of a variable whose value has that many bytes. */
static sx_status find_variable(const sx_training *t, const char *name, size_t bytes, int *out)
{
    const sx_session *session = t->trainer->session;
    const int n = sx_session_variable_count(session);
    *out = sx_session_find_variable(session, name);
    if (*out < 0) {
        sx_buf text;
        sx_buf_init(&text, 1 << 16);
        const char **names = sx_alloc((size_t)n + 1, sizeof(*names));
        for (int i = 0; names != NULL && i < n; i++) {
            names[i] = sx_session_variable_at(session, i)->name;
        }
        sx_nearest_list(name, names, names != NULL ? (size_t)n : 0, &text);
        sx_status status = sx_error(SX_NOT_FOUND, "model \"%s\" has no variable \"%.100s\" %s",
                                    t->trainer->info.model, name, sx_buf_text(&text));
        sx_free(names);
        sx_buf_deinit(&text);
        return status;
    }
    const sx_type *type = &sx_session_variable_at(session, *out)->type;
    char text[SX_TYPE_TEXT];
    return bytes == (size_t)sx_type_bytes(type)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "variable \"%s\" is %s, %" PRId64 " bytes; got %zu",
                          name, sx_type_format(type, text, sizeof(text)), sx_type_bytes(type),
                          bytes);
}

sx_status sx_training_read_variable(sx_training *t, const char *name, void *data, size_t bytes)
{
    int i;
    SX_NEED(t);
    SX_NEED(name);
    SX_NEED(data);
    SX_TRY(sx_training_check_open(t));
    SX_TRY(find_variable(t, name, bytes, &i));
    return sx_session_read_variable(t->trainer->session, i, data);
}

sx_status sx_training_write_variable(sx_training *t, const char *name, const void *data,
                                     size_t bytes)
{
    int i;
    SX_NEED(t);
    SX_NEED(name);
    SX_NEED(data);
    SX_TRY(sx_training_check_open(t));
    SX_TRY(find_variable(t, name, bytes, &i));
    t->fit.saved_step = -1; /* the checkpoint of this step has the old value */
    SX_TRY(sx_session_write_variable(t->trainer->session, i, data));
    t->fit.step = sx_trainer_step(t->trainer); /* it may be that one */
    return SX_OK;
}

sx_status sx_training_graph(const sx_training *t, sx_mode mode, const sx_graph **out_graph)
{
    SX_NEED(t);
    SX_NEED(out_graph);
    SX_TRY(sx_training_check_open(t));
    SX_TRY(sx_run_graph_lost(&t->trainer->graphs, mode));
    *out_graph = t->trainer->graphs.by_mode[mode];
    return SX_OK;
}
