/* The Estimator API: state lives in model_dir; each call restores the newest checkpoint. */
#include <string.h>

#include "base/args.h"
#include "base/memory.h"
#include "train/choose_strategy.h"
#include "train/face.h"
#include "train/inputs.h"

struct sx_estimator {
    sx_arena arena; /* names returned to the caller */
    sx_run_config config;
    sx_model_def def;
    const sx_model_def *model; /* &def; NULL: the run in model_dir */
    sx_params *params;
    sx_trainer *trainer; /* NULL before the first call */
    bool compared;       /* the trainer was made from the model, not from the directory alone */
    int64_t predict_batch_size; /* 0 = config.eval_batch_size */
};

sx_status sx_estimator_create(const sx_model_def *model, const sx_run_config *config,
                              const char *const *params, sx_estimator **out_estimator)
{
    bool has_model = model != NULL;
    SX_TAKE_ARGS(sx_run_config, config);
    SX_TAKE_ARGS(sx_model_def, model);
    sx_estimator *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for an estimator");
    }
    sx_arena_init(&e->arena, 0);
    e->def = *model;
    e->model = has_model ? &e->def : NULL;
    e->config = *config;
    e->config.train_distribute = NULL;
    if (config->eval_distribute != NULL) {
        sx_strategy_retain(config->eval_distribute);
    }
    sx_status status = sx_face_params(params, &e->params);
    if (status == SX_OK && config->model_dir != NULL) {
        e->config.model_dir = sx_arena_strdup(&e->arena, config->model_dir);
        status = e->config.model_dir != NULL ? SX_OK : sx_no_memory("for an estimator");
    }
    if (status == SX_OK) { /* input functions get the number of replicas */
        sx_strategy *strategy = NULL;
        status = sx_choose_strategy(config, &strategy);
        if (status == SX_OK) {
            sx_settle_strategy(&e->config, strategy);
        }
    }
    if (status != SX_OK) {
        sx_estimator_destroy(e);
        return status;
    }
    *out_estimator = e;
    return SX_OK;
}

void sx_estimator_destroy(sx_estimator *e)
{
    if (e == NULL) {
        return;
    }
    sx_trainer_destroy(e->trainer);
    sx_strategy_release(e->config.train_distribute);
    sx_strategy_release(e->config.eval_distribute);
    sx_params_destroy(e->params);
    sx_arena_deinit(&e->arena);
    sx_free(e);
}

static int64_t first_given(int64_t a, int64_t b)
{
    return a != 0 ? a : b;
}

/* Rejects values of TPUEstimator's arguments that are not supported. */
static sx_status check_tpu_args(const sx_tpu_estimator_args *args)
{
    if (args->predict_batch_size < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "predict_batch_size must not be negative");
    }
    if (args->export_to_tpu) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "export_to_tpu: graphs with TPU operators (`serve,tpu`) are not supported; "
                        "exports contain the graph `serve`");
    }
    return args->embedding_config_spec == NULL
               ? SX_OK
               : sx_error(
                     SX_INVALID_ARGUMENT,
                     "embedding_config_spec must be NULL: embeddings cannot be sharded over cores");
}

/* eval_on_tpu=False: a CPU strategy, owned by the caller; else NULL. */
static sx_status choose_eval(const sx_tpu_estimator_args *args, const sx_run_config *config,
                             sx_strategy **out)
{
    *out = NULL;
    if (!args->no_eval_on_tpu || !args->use_tpu) {
        return SX_OK;
    }
    if (config->eval_distribute != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "no_eval_on_tpu and eval_distribute cannot be combined");
    }
    return sx_one_device_strategy(out, .device = "cpu");
}

sx_status sx_tpu_estimator_create_at(const sx_model_def *model, const sx_tpu_estimator_args *args,
                                     sx_estimator **out_estimator)
{
    SX_TAKE_ARGS(sx_tpu_estimator_args, args);
    SX_TRY(check_tpu_args(args));
    sx_run_config config;
    SX_TRY(sx_take_args("sx_run_config", args->config, sizeof(config), &config));
    config.train_batch_size = first_given(args->train_batch_size, config.train_batch_size);
    config.eval_batch_size = first_given(args->eval_batch_size, config.eval_batch_size);
    config.batch_axis = args->batch_axis != 0 ? args->batch_axis : config.batch_axis;
    config.transpose_input = args->transpose_input || config.transpose_input;
    bool free_to_choose = config.train_distribute == NULL;
    if (args->use_tpu && free_to_choose && config.device == NULL && config.pjrt_plugin == NULL) {
        config.device = "tpu";
    }
    if (!args->use_tpu && free_to_choose) {
        config.replicas = config.device == NULL ? 1 : config.replicas;
        config.master = config.cluster = config.evaluation_master = NULL;
    }
    sx_strategy *eval;
    SX_TRY(choose_eval(args, &config, &eval));
    config.eval_distribute = eval != NULL ? eval : config.eval_distribute;
    sx_status status = sx_estimator_create(model, &config, args->params, out_estimator);
    sx_strategy_release(eval);
    SX_TRY(status);
    (*out_estimator)->predict_batch_size = args->predict_batch_size;
    return SX_OK;
}

/* ---- The underlying trainer ---- */

static sx_status make_trainer(sx_estimator *e, const sx_model_def *def, const sx_inputs *in)
{
    sx_trainer_options options = {.config = &e->config, .def = def, .params = e->params};
    if (in != NULL) {
        options.data = in->data[0];
        options.step_batch = in->step_batch;
        options.steps_per_epoch = in->steps_per_epoch;
    }
    sx_trainer *t = NULL;
    SX_TRY(sx_trainer_create(&options, &t));
    if (def == NULL && e->model != NULL) {
        sx_status status = sx_trainer_know_model(t, e->model);
        if (status != SX_OK) {
            sx_trainer_destroy(t);
            return status;
        }
    }
    sx_trainer_destroy(e->trainer);
    e->trainer = t;
    e->compared = def != NULL;
    e->config.fresh = false; /* only the first time */
    return SX_OK;
}

/* For training: created from the model; a run in model_dir must match it. */
static sx_status trainer_to_train(sx_estimator *e, const sx_inputs *in)
{
    if (e->trainer != NULL && (e->compared || e->model == NULL)) {
        if (e->config.model_dir != NULL) {
            e->trainer->has_state = false; /* use the newest checkpoint */
        }
        return SX_OK;
    }
    return make_trainer(e, e->model, in);
}

/* For everything else: the run in model_dir, or the one trained in memory. */
static sx_status trainer_to_use(sx_estimator *e, const char *checkpoint)
{
    if (e->trainer == NULL && e->config.model_dir == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "the model has not been trained");
    }
    if (e->trainer == NULL) {
        SX_TRY(make_trainer(e, NULL, NULL));
    }
    return e->config.model_dir != NULL ? sx_trainer_restore(e->trainer, checkpoint) : SX_OK;
}

/* ---- Training ---- */

static void put_inputs(sx_fit_request *request, const sx_inputs *in)
{
    request->train = in->data[0];
    request->shards = in->data;
    request->n_shards = in->n > 1 ? in->n : 0;
    request->pulls = in->pulls;
}

sx_status sx_estimator_train_at(sx_estimator *e, sx_input_fn *input, void *user,
                                const sx_train_args *args)
{
    sx_inputs in;
    SX_TAKE_ARGS(sx_train_args, args);
    sx_fit_request request = {.steps = args->steps,
                              .max_steps = args->max_steps,
                              .epochs = args->epochs,
                              .callbacks = args->callbacks,
                              .n_callbacks = args->n_callbacks};
    SX_TRY(sx_inputs_call(&e->config, e->params, SX_TRAIN, 0, input, user, &in));
    put_inputs(&request, &in);
    sx_status status = trainer_to_train(e, &in);
    if (status == SX_OK) {
        status = sx_trainer_fit(e->trainer, &request);
    }
    sx_inputs_release(&in);
    return status;
}

/* ---- Evaluation and prediction ---- */

sx_status sx_estimator_evaluate_at(sx_estimator *e, sx_input_fn *input, void *user,
                                   const sx_evaluate_args *args, sx_eval_result *out_result)
{
    sx_inputs in;
    sx_eval_result result;
    SX_TAKE_ARGS(sx_evaluate_args, args);
    SX_TRY(trainer_to_use(e, args->checkpoint));
    SX_TRY(sx_inputs_call(&e->config, e->params, SX_EVAL, 0, input, user, &in));
    sx_status status =
        sx_trainer_evaluate_at_most(e->trainer, in.data[0], args->examples, args->steps, &result);
    sx_inputs_release(&in);
    if (status == SX_OK) {
        status = sx_face_own_names(&e->arena, &result);
    }
    if (status == SX_OK) {
        *out_result = result;
    }
    return status;
}

sx_status sx_estimator_predict_at(sx_estimator *e, sx_input_fn *input, void *user,
                                  sx_prediction_fn *row, void *row_user,
                                  const sx_evaluate_args *args)
{
    sx_inputs in;
    SX_TAKE_ARGS(sx_evaluate_args, args);
    if (args->steps != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "predict: `steps` is not supported, use `examples`");
    }
    SX_TRY(trainer_to_use(e, args->checkpoint));
    SX_TRY(
        sx_inputs_call(&e->config, e->params, SX_PREDICT, e->predict_batch_size, input, user, &in));
    sx_status status = sx_trainer_predict(e->trainer, in.data[0], args->examples, row, row_user);
    sx_inputs_release(&in);
    return status;
}

sx_status sx_estimator_export_saved_model_at(sx_estimator *e, const char *base,
                                             const sx_export_args *args, char **out_dir)
{
    SX_TAKE_ARGS(sx_export_args, args);
    sx_serving_input serving = {0};
    if (args->serving_input_fn != NULL) {
        SX_TRY(args->serving_input_fn(args->serving_user, &serving), "the serving input function");
    }
    SX_TRY(trainer_to_use(e, args->checkpoint));
    return sx_trainer_export(e->trainer, base, args->version, &serving, out_dir);
}

/* ---- Train and evaluate ---- */

/* The evaluation of the final step; evaluates now if that has not been done. */
static sx_status last_result(sx_estimator *e, const sx_fit_request *request, sx_eval_result *out)
{
    const sx_eval_result *known =
        sx_history_find(&e->trainer->history, sx_trainer_step(e->trainer));
    if (known != NULL) {
        *out = *known;
    } else {
        SX_TRY(sx_trainer_evaluate_at_most(e->trainer, request->eval, request->eval_examples,
                                           request->eval_steps, out));
    }
    return sx_face_own_names(&e->arena, out);
}

static sx_status fit_and_evaluate(sx_estimator *e, const sx_inputs *in, const sx_eval_spec *eval,
                                  sx_fit_request *request, sx_eval_result *out)
{
    put_inputs(request, in);
    SX_TRY(trainer_to_train(e, in));
    int64_t every = e->trainer->config.steps_per_eval;
    if (eval->every_steps > 0) {
        e->trainer->config.steps_per_eval = eval->every_steps;
    }
    sx_status status = sx_trainer_fit(e->trainer, request);
    e->trainer->config.steps_per_eval = every;
    return status == SX_OK ? last_result(e, request, out) : status;
}

static sx_status train_and_evaluate(sx_estimator *e, const sx_train_spec *train,
                                    const sx_eval_spec *eval, sx_eval_result *out)
{
    sx_fit_request request = {.max_steps = train->max_steps,
                              .epochs = train->epochs,
                              .eval_examples = eval->examples,
                              .eval_steps = eval->steps,
                              .callbacks = train->callbacks,
                              .n_callbacks = train->n_callbacks};
    sx_inputs in, eval_in;
    SX_TRY(sx_inputs_call(&e->config, e->params, SX_TRAIN, 0, train->input, train->user, &in),
           "training");
    sx_status status =
        sx_inputs_call(&e->config, e->params, SX_EVAL, 0, eval->input, eval->user, &eval_in);
    if (status == SX_OK) {
        request.eval = eval_in.data[0];
        status = fit_and_evaluate(e, &in, eval, &request, out);
        sx_inputs_release(&eval_in);
    }
    sx_inputs_release(&in);
    return status;
}

sx_status sx_train_and_evaluate(sx_estimator *e, const sx_train_spec *train,
                                const sx_eval_spec *eval, sx_eval_result *out_result)
{
    SX_TAKE_ARGS(sx_train_spec, train);
    SX_TAKE_ARGS(sx_eval_spec, eval);
    sx_eval_result result;
    SX_TRY(train_and_evaluate(e, train, eval, &result));
    if (out_result != NULL) {
        *out_result = result;
    }
    return SX_OK;
}
