#include "run_args.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "data/relabel.h"
#include "dir_hint.h"
#include "distribute/strategy.h"
#include "train/misfit.h"

/* What says that there are several processes, and which of them this one is, comes together. */
static sx_status check_processes(const sx_invocation *inv)
{
    static const char *const names[] = {"coordinator", "num-processes", "process-id"};
    int given = 0;
    const char *missing = "";
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        given += sx_option_given(inv, names[i]);
        missing = sx_option_given(inv, names[i]) ? missing : names[i];
    }
    return given == 0 || given == (int)SX_COUNT(names)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "--%s is missing: --coordinator, --num-processes and --process-id belong "
                          "together",
                          missing);
}

sx_status sx_device_args_strategy(sx_invocation *inv, const sx_device_args *args,
                                  sx_strategy **out_strategy)
{
    sx_buf explanation;
    sx_strategy_kind kind;
    SX_TRY(sx_usage(inv, check_processes(inv)));
    SX_TRY(sx_strategy_kind_of(args->strategy, &kind));
    const sx_strategy_wish wish = {.kind = kind,
                                   .args = sx_device_args_read(args),
                                   .from_environment = args->in_processes,
                                   .tpu = args->tpu,
                                   .zone = args->tpu_zone,
                                   .project = args->project,
                                   .master = args->master,
                                   .explanation = args->explain ? &explanation : NULL};
    sx_buf_init(&explanation, 1 << 20);
    sx_status status = sx_strategy_create(&wish, out_strategy);
    if (args->explain) {
        fputs(sx_buf_text(&explanation), stderr);
    }
    sx_buf_deinit(&explanation);
    return sx_status_code(status) == SX_INVALID_ARGUMENT ? sx_usage(inv, status) : status;
}

static sx_status check_checkpoint(const char *text)
{
    bool digits = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
    if (digits || strcmp(text, "latest") == 0 || strcmp(text, "best") == 0) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "--checkpoint is \"%s\", expected a step, latest or best",
                    text);
}

sx_status sx_open_run(sx_invocation *inv, const char *dir, const char *checkpoint,
                      const sx_run_config *config, sx_trainer **out_trainer)
{
    sx_run_config c = *config;
    c.model_dir = dir;
    sx_trainer *t = NULL;
    SX_TRY(sx_usage(inv, check_checkpoint(checkpoint)));
    sx_status status = sx_trainer_create(&(sx_trainer_options){.config = &c}, &t);
    if (status != SX_OK) {
        return sx_status_code(status) == SX_NOT_FOUND
                   ? sx_dir_explain(status, &inv->arena, dir, SX_WANTED_RUN)
                   : status;
    }
    status = sx_trainer_restore(t, checkpoint);
    if (status != SX_OK) {
        sx_trainer_destroy(t);
        return status;
    }
    *out_trainer = t;
    return SX_OK;
}

sx_status sx_open_run_on(sx_invocation *inv, const sx_device_args *args, const char *checkpoint,
                         int64_t batch_size, sx_trainer **out_trainer)
{
    sx_run_config config = {
        .struct_size = sizeof(config),
        .eval_batch_size = batch_size,
        .threads = (int)args->threads,
        .no_compile_cache = !args->compile_cache,
        .stop = sx_stop_flag(),
    };
    SX_TRY(sx_device_args_strategy(inv, args, &config.train_distribute));
    sx_status status = sx_open_run(inv, inv->words.items[0], checkpoint, &config, out_trainer);
    status = sx_processes_end(sx_strategy_processes(config.train_distribute), status);
    sx_strategy_release(config.train_distribute);
    return status;
}

sx_status sx_open_run_data(sx_invocation *inv, const sx_words *data, const sx_data_args *args,
                           const sx_run_info *info, sx_mode mode, sx_dataset **out_dataset)
{
    sx_data_options how;
    const char *spec;
    SX_TRY(sx_data_args_options(inv, args, &how));
    SX_TRY(sx_data_spec(inv, data, &spec));
    how.image_key = how.image_key != NULL ? how.image_key : info->image_key;
    how.label_key = how.label_key != NULL ? how.label_key : info->label_key;
    if (!how.label_base_set && info->label_base != 0) {
        how.label_base = info->label_base;
        how.label_base_set = true;
    }
    SX_TRY(
        sx_model_inputs_specs(&info->declared, mode, &inv->arena, &how.features, &how.n_features));
    sx_dataset *dataset = NULL;
    SX_TRY(sx_data_args_open(spec, &how, &dataset, NULL));
    sx_status status = sx_dataset_relabel(&dataset, info->class_names, info->n_classes);
    if (status == SX_OK) {
        status = sx_check_class_names(dataset, info);
    }
    if (status != SX_OK) {
        sx_dataset_release(dataset);
        return sx_status_annotate(status, __FILE__, __LINE__, "%s", spec);
    }
    *out_dataset = dataset;
    return SX_OK;
}
