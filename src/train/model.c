/* The Model API: state lives in memory; fit() continues where the last one ended. */
#include <inttypes.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/choose_strategy.h"
#include "train/face.h"

enum { MAX_EPOCHS = 1 << 20 };

struct sx_model {
    sx_arena arena;   /* names returned to the caller */
    sx_model_def def; /* zero: loaded from a run */
    sx_params *params;
    sx_run_config config;
    sx_optimizer optimizer;
    sx_trainer *trainer; /* NULL before the first fit() */
    sx_observer_fn *observer;
    void *observer_user;
    sx_history_row *rows;
    int n_rows, capacity;
};

/* ---- History ---- */

static bool grow(sx_model *m)
{
    int capacity = m->capacity > 0 ? 2 * m->capacity : 16;
    if (m->n_rows < m->capacity) {
        return true;
    }
    sx_history_row *rows =
        capacity <= MAX_EPOCHS ? sx_realloc(m->rows, (size_t)capacity, sizeof(*rows)) : NULL;
    if (rows != NULL) {
        m->rows = rows;
        m->capacity = capacity;
    }
    return rows != NULL;
}

/* The name with its prefix; each is stored once. */
static const char *own_name(sx_model *m, const char *prefix, const char *name)
{
    char text[256];
    snprintf(text, sizeof(text), "%s%s", prefix, name);
    for (int i = 0; m->n_rows > 0 && i < m->rows[0].n_metrics; i++) {
        if (strcmp(m->rows[0].metrics[i].name, text) == 0) {
            return m->rows[0].metrics[i].name;
        }
    }
    const char *copy = sx_arena_strdup(&m->arena, text);
    return copy != NULL ? copy : "?";
}

static void add_metrics(sx_model *m, sx_history_row *row, const char *prefix,
                        const sx_train_event *e)
{
    for (int i = 0; i < e->n_metrics && row->n_metrics < 2 * SX_MAX_RESULTS; i++) {
        const sx_metric metric = {own_name(m, prefix, e->metrics[i].name), e->metrics[i].value};
        row->metrics[row->n_metrics++] = metric;
    }
}

static void keep_row(sx_model *m, const sx_train_event *e)
{
    if (e->kind == SX_EVENT_EPOCH && grow(m)) {
        sx_history_row *row = &m->rows[m->n_rows];
        *row = (sx_history_row){.epoch = e->epoch, .step = e->step};
        add_metrics(m, row, "", e);
        m->n_rows++;
    } else if (e->kind == SX_EVENT_EVAL && m->n_rows > 0 &&
               m->rows[m->n_rows - 1].step == e->step) {
        add_metrics(m, &m->rows[m->n_rows - 1], "val_", e);
    }
}

static void observe(void *user, const sx_train_event *e)
{
    sx_model *m = user;
    keep_row(m, e);
    if (m->observer != NULL) {
        m->observer(m->observer_user, e);
    } else if (e->kind == SX_EVENT_WARNING) {
        sx_log(SX_LOG_WARN, "%s", e->text);
    }
}

const sx_history_row *sx_model_history(const sx_model *m, int *out_count)
{
    *out_count = m->n_rows;
    return m->rows;
}

/* ---- Creation ---- */

static sx_status create_empty(sx_model **out)
{
    sx_model *m = sx_alloc(1, sizeof(*m));
    if (m == NULL) {
        return sx_no_memory("for a model");
    }
    sx_arena_init(&m->arena, 0);
    m->config = *sx_run_config_of(.observer = observe, .observer_user = m);
    *out = m;
    return SX_OK;
}

sx_status sx_model_create(const sx_model_def *def, const char *const *params, sx_model **out_model)
{
    SX_TAKE_ARGS(sx_model_def, def);
    sx_model *m = NULL;
    SX_TRY(create_empty(&m));
    m->def = *def;
    sx_status status = sx_face_params(params, &m->params);
    if (status != SX_OK) {
        sx_model_destroy(m);
        return status;
    }
    *out_model = m;
    return SX_OK;
}

void sx_model_destroy(sx_model *m)
{
    if (m == NULL) {
        return;
    }
    sx_trainer_destroy(m->trainer);
    sx_strategy_release(m->config.train_distribute);
    sx_params_destroy(m->params);
    sx_free(m->rows);
    sx_arena_deinit(&m->arena);
    sx_free(m);
}

/* Sets the devices to use from now on: `place` holds the device fields of a configuration. */
static sx_status choose_place(sx_model *m, const sx_run_config *place)
{
    sx_strategy *strategy = NULL;
    SX_TRY(sx_choose_strategy(place, &strategy));
    sx_run_config settled = m->config;
    settled.threads = place->threads;
    sx_settle_strategy(&settled, strategy);
    sx_status status = m->trainer != NULL ? sx_trainer_move(m->trainer, &settled) : SX_OK;
    if (status != SX_OK) {
        sx_strategy_release(strategy);
        return status;
    }
    sx_strategy_release(m->config.train_distribute);
    m->config = settled;
    return SX_OK;
}

/* The device fields of any struct that has them, as a configuration. */
#define PLACE_OF(args)                                              \
    (&(sx_run_config){.struct_size = sizeof(sx_run_config),         \
                      .train_distribute = (args)->train_distribute, \
                      .device = (args)->device,                     \
                      .replicas = (args)->replicas,                 \
                      .virtual_devices = (args)->virtual_devices,   \
                      .batch_norm = (args)->batch_norm,             \
                      .pjrt_plugin = (args)->pjrt_plugin,           \
                      .python = (args)->python,                     \
                      .dump_stablehlo = (args)->dump_stablehlo,     \
                      .threads = (args)->threads})

sx_status sx_model_compile_at(sx_model *m, const sx_compile_args *args)
{
    SX_TAKE_ARGS(sx_compile_args, args);
    if (m->trainer != NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "compile() must be called before fit() and load()");
    }
    m->optimizer = args->optimizer;
    m->config.iterations_per_loop = args->steps_per_execution;
    m->config.tf_random_seed = args->seed;
    m->config.precision = args->precision;
    m->config.stop = args->stop;
    SX_TRY(choose_place(m, PLACE_OF(args)));
    m->observer = args->observer;
    m->observer_user = args->observer_user;
    return SX_OK;
}

/* ---- Moving ---- */

sx_status sx_model_to_at(sx_model *m, const sx_to_args *args)
{
    SX_TAKE_ARGS(sx_to_args, args);
    return choose_place(m, PLACE_OF(args));
}

/* ---- Fit ---- */

static sx_status make_trainer(sx_model *m, sx_dataset *data, const sx_fit_args *args)
{
    m->config.model_dir = args->backup_dir;
    m->config.train_batch_size = args->batch_size;
    const sx_trainer_options options = {.config = &m->config,
                                        .def = &m->def,
                                        .params = m->params,
                                        .optimizer = &m->optimizer,
                                        .data = data};
    if (m->def.build == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "the model has no function");
    }
    return sx_trainer_create(&options, &m->trainer);
}

/* `epochs` counts this call's epochs; with a backup directory, those of all calls. */
static sx_status choose_length(const sx_model *m, sx_dataset *data, const sx_fit_args *args,
                               sx_fit_request *request)
{
    int64_t epochs = args->epochs > 0 ? args->epochs : 1, n = sx_dataset_count(data);
    int64_t batch = m->trainer->config.train_batch_size;
    if (m->trainer->config.model_dir != NULL) {
        request->epochs = epochs;
        return SX_OK;
    }
    if (n == SX_ENDLESS || n < 1 || !sx_mul_i64(epochs, (n + batch - 1) / batch, &request->steps)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "fit: the data is endless, or there are too many epochs");
    }
    return SX_OK;
}

sx_status sx_model_fit_at(sx_model *m, sx_dataset *data, const sx_fit_args *args)
{
    SX_TAKE_ARGS(sx_fit_args, args);
    if (args->epochs < 0 || args->batch_size < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "fit: epochs %" PRId64 " and batch_size %" PRId64 " must not be negative",
                        args->epochs, args->batch_size);
    }
    if (sx_dataset_batch_size(data) > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "fit: the data must not be batched; fit() batches them");
    }
    if (m->trainer == NULL) {
        SX_TRY(make_trainer(m, data, args));
    }
    sx_fit_request request = {.train = data,
                              .eval = args->validation_data,
                              .callbacks = args->callbacks,
                              .n_callbacks = args->n_callbacks};
    m->trainer->config.train_batch_size = args->batch_size > 0 ? args->batch_size : 32;
    m->trainer->config.no_shuffle = args->no_shuffle;
    SX_TRY(choose_length(m, data, args, &request));
    return sx_trainer_fit(m->trainer, &request);
}

/* ---- Evaluation, prediction, saving ---- */

static sx_status require_trainer(const sx_model *m)
{
    return m->trainer != NULL
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION, "the model has been neither fitted nor loaded");
}

sx_status sx_model_evaluate(sx_model *m, sx_dataset *data, sx_eval_result *out_result)
{
    sx_eval_result result;
    SX_TRY(require_trainer(m));
    SX_TRY(sx_trainer_evaluate(m->trainer, data, 0, &result));
    SX_TRY(sx_face_own_names(&m->arena, &result));
    *out_result = result;
    return SX_OK;
}

sx_status sx_model_predict(sx_model *m, sx_dataset *data, sx_prediction_fn *row, void *row_user)
{
    SX_TRY(require_trainer(m));
    return sx_trainer_predict(m->trainer, data, 0, row, row_user);
}

sx_status sx_model_save(sx_model *m, const char *dir)
{
    SX_TRY(require_trainer(m));
    return sx_trainer_save_as(m->trainer, dir);
}

static sx_status load(sx_model *m, const char *dir, const char *checkpoint)
{
    m->config.model_dir = dir;
    SX_TRY(sx_trainer_create(&(sx_trainer_options){.config = &m->config}, &m->trainer));
    SX_TRY(sx_trainer_restore(m->trainer, checkpoint));
    m->trainer->config.model_dir = NULL; /* kept in memory from here on */
    m->trainer->on_disk = false;
    m->config.model_dir = NULL;
    return SX_OK;
}

sx_status sx_model_load_checkpoint(const char *dir, const char *checkpoint, sx_model **out_model)
{
    sx_model *m = NULL;
    SX_TRY(create_empty(&m));
    sx_status status = load(m, dir, checkpoint);
    if (status != SX_OK) {
        sx_model_destroy(m);
        return status;
    }
    *out_model = m;
    return SX_OK;
}

sx_status sx_model_load(const char *dir, sx_model **out_model)
{
    return sx_model_load_checkpoint(dir, "latest", out_model);
}
