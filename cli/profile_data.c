/* See profile_data.h. */
#include "profile_data.h"

#include <string.h>

#include "base/log.h"
#include "model_args.h"
#include "run_args.h"
#include "train/byte_images.h"
#include "train/state.h"

typedef struct job {
    const sx_profile_data *d;
    sx_profiled *out;
    sx_trainer *trainer;
    sx_dataset *data;
    const char *spec;
    sx_batch_gather input;
    sx_program *program;
    int order[SX_MAX_MODEL_INPUTS], n_order;
} job;

/* ---- Opening ---- */

static sx_run_config config_of(const job *j, int64_t run_batch)
{
    const sx_profile_request *r = j->d->request;
    const int64_t batch = r->batch > 0 ? r->batch : run_batch;
    return (sx_run_config){.struct_size = sizeof(sx_run_config),
                           .train_batch_size = batch,
                           .iterations_per_loop = r->iterations,
                           .train_distribute = j->d->strategy,
                           .threads = (int)r->device_args->threads,
                           .no_compile_cache = !r->device_args->compile_cache,
                           .stop = sx_stop_flag()};
}

/* Whether the options ask for what is fixed in a run: said where its graph is opened. */
static bool is_refused(const job *j)
{
    const sx_profile_request *r = j->d->request;
    return r->precision != NULL || r->image_size > 0 || r->signature != NULL ||
           r->params->count > 0 || j->d->inv->rest.count > 0;
}

/* The data given, or the run's own; without either, j->data stays NULL. */
static sx_status open_run_data(job *j, const sx_run_info *info)
{
    const sx_profile_request *r = j->d->request;
    sx_invocation *inv = j->d->inv;
    if (r->data->count > 0) {
        SX_TRY(sx_data_spec(inv, r->data, &j->spec));
        return sx_open_run_data(inv, r->data, r->data_args, info, SX_TRAIN, &j->data);
    }
    const char *const own[] = {info->data};
    const sx_words words = {.items = (const char **)(uintptr_t)own, .count = 1};
    sx_status status = info->data == NULL
                           ? SX_OK
                           : sx_open_run_data(inv, &words, r->data_args, info, SX_TRAIN, &j->data);
    if (status != SX_OK) {
        sx_log(SX_LOG_WARN,
               "the run's data cannot be opened, so its inputs are generated; name others with "
               "--data: %s",
               sx_status_message(status));
        sx_status_free(status);
        j->data = NULL;
    }
    j->spec = info->data;
    return SX_OK;
}

static sx_status open_run(job *j)
{
    const sx_profile_request *r = j->d->request;
    sx_run_info info = {0};
    SX_TRY(sx_run_read(r->name, &j->d->inv->arena, NULL, NULL, &info));
    if (is_refused(j)) {
        return SX_OK;
    }
    SX_TRY(open_run_data(j, &info));
    if (j->data == NULL) {
        return SX_OK;
    }
    sx_run_config config = config_of(j, info.train_batch);
    config.model_dir = r->name;
    SX_TRY(sx_trainer_create(&(sx_trainer_options){.config = &config,
                                                   .timeline = j->out->timeline,
                                                   .profile = j->out->profile},
                             &j->trainer));
    sx_status_free(sx_trainer_restore(j->trainer, "latest")); /* initial values do as well */
    return SX_OK;
}

/* A model from the zoo or a C file, as `train` starts one. */
static sx_status open_model(job *j, sx_model_args *model)
{
    const sx_profile_request *r = j->d->request;
    sx_invocation *inv = j->d->inv;
    sx_data_options how;
    sx_model_inputs declared;
    sx_run_config config = config_of(j, 0);
    SX_TRY(sx_model_args_read(inv, r->name, r->params, model));
    SX_TRY(sx_data_args_options(inv, r->data_args, &how));
    if (sx_model_has_names(model->def)) {
        SX_TRY(sx_model_inputs_of(model->def, &inv->arena, &declared));
        SX_TRY(sx_model_inputs_specs(&declared, SX_TRAIN, &inv->arena, &how.features,
                                     &how.n_features));
    }
    SX_TRY(sx_data_spec(inv, r->data, &j->spec));
    SX_TRY(sx_data_args_open(j->spec, &how, &j->data, NULL));
    (void)(r->precision != NULL && sx_dtype_parse(r->precision, &config.precision));
    return sx_trainer_create(
        &(sx_trainer_options){.config = &config,
                              .def = model->def,
                              .source = model->file.library != NULL ? r->name : "zoo",
                              .params = model->params,
                              .data = j->data,
                              .data_spec = j->spec,
                              .image_key = how.image_key,
                              .label_key = how.label_key,
                              .label_base = how.label_base,
                              .timeline = j->out->timeline,
                              .profile = j->out->profile},
        &j->trainer);
}

/* ---- Running ---- */

static sx_status open_input(job *j)
{
    sx_trainer *t = j->trainer;
    const sx_feed_args args = {.mode = SX_TRAIN,
                               .batch_size = t->config.train_batch_size,
                               .repeat = true,
                               .classes = sx_trainer_classes(t),
                               .program = t->graphs.by_mode[SX_TRAIN],
                               .preprocess = t->graphs.by_mode[SX_RUN_PREPROCESS],
                               .bytes = sx_can_feed_bytes(t, SX_TRAIN, &j->data, 1)};
    SX_TRY(sx_batch_gather_init(&j->input, &t->info, &j->data, 1, 1, &args), "%s", j->spec);
    SX_TRY(sx_trainer_feed_bytes(t, SX_TRAIN, args.bytes));
    SX_TRY(sx_trainer_program(t, SX_TRAIN, &j->program));
    return sx_feed_order(&t->info.inputs, j->program, j->order, &j->n_order);
}

/* The programs of full batches and of an epoch's last one. */
static sx_status compile(job *j)
{
    const int64_t batch = j->input.max_batch, n = sx_dataset_count(j->data);
    const int64_t rest = n == SX_ENDLESS || sx_dataset_batch_size(j->data) > 0 ? 0 : n % batch;
    SX_TRY(sx_trainer_compile(j->trainer, SX_TRAIN, batch, true));
    return rest > 0 ? sx_program_prepare(j->program, rest, NULL) : SX_OK;
}

static sx_status run(job *j, sx_profile_looped *looped)
{
    sx_profiled *out = j->out;
    sx_trainer *t = j->trainer;
    sx_arena *arena = &j->d->inv->arena;
    SX_TRY(open_input(j));
    SX_TRY(compile(j));
    out->batch = j->input.max_batch;
    out->data = j->spec;
    out->unit = t->info.has_preprocess ? "images" : "examples";
    out->precision = sx_dtype_name(t->info.precision);
    out->kind = sx_arena_strdup(arena, sx_session_device(t->session)->kind);
    SX_TRY(sx_profile_nodes_read(sx_trainer_graph(t, SX_TRAIN), out->batch, arena, &out->nodes));
    const sx_profile_loop loop = {.program = j->program,
                                  .batch = out->batch,
                                  .steps = j->d->request->steps,
                                  .profile = out->profile,
                                  .input = &j->input,
                                  .order = j->order,
                                  .n_order = j->n_order};
    SX_TRY(sx_profile_loop_run(&loop, looped));
    SX_TRY(sx_profile_record_ops(&loop, t->session, out));
    return sx_program_info(j->program, out->batch, &out->program);
}

sx_status sx_profile_data_run(const sx_profile_data *data, sx_profiled *out,
                              sx_profile_looped *looped, bool *out_done)
{
    job j = {.d = data, .out = out};
    sx_model_args model = {.def = NULL};
    sx_status status = SX_OK, summed = SX_OK;
    if (sx_run_exists(data->request->name)) {
        status = open_run(&j);
    } else if (data->request->data->count > 0) {
        status = open_model(&j, &model);
    }
    *out_done = j.trainer != NULL;
    if (status == SX_OK && j.trainer != NULL) {
        status = run(&j, looped);
        summed = sx_profile_sum_loop(looped, &data->inv->arena, out);
    }
    sx_batch_gather_deinit(&j.input);
    sx_trainer_destroy(j.trainer);
    sx_dataset_release(j.data);
    sx_model_args_end(&model);
    if (status != SX_OK) {
        sx_status_free(summed);
        return status;
    }
    return summed;
}
