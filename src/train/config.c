/* See config.h. */
#include "train/config.h"

#include <inttypes.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "train/input_plan.h"

typedef enum field_kind { INTEGER, COUNT, FLAG, TEXT, REAL, PRECISION, REFUSED } field_kind;

/* COUNT is an int, INTEGER an int64_t, REFUSED a pointer that must be NULL. The minimum is `low`; 0
 * becomes `otherwise`, except for ignored fields, where 0 means not set. */
typedef struct field {
    const char *name;
    size_t offset;
    field_kind kind;
    int64_t low, high, otherwise;
    const char *why; /* why it is ignored or rejected; NULL = supported */
} field;

#define IGNORED(name, kind, low, high, otherwise, why)                                  \
    {                                                                                   \
#name, offsetof(sx_run_config, name), (kind), (low), (high), (otherwise), (why) \
    }
#define FIELD(name, kind, low, high, otherwise) IGNORED(name, kind, low, high, otherwise, NULL)
#define REFUSE(name, why)                       IGNORED(name, REFUSED, 0, 0, 0, why)

enum { DEFAULT_BATCH = 32, MAX_BATCH = 1 << 24, MAX_WORKERS = 1 << 12, MAX_REPLICAS = 1024 };

static const field fields[] = {
    FIELD(model_dir, TEXT, 0, 0, 0),
    FIELD(save_checkpoints_steps, INTEGER, SX_NEVER, INT64_MAX, SX_NEVER),
    FIELD(save_checkpoints_secs, INTEGER, SX_NEVER, INT64_MAX, SX_NEVER),
    FIELD(keep_checkpoint_max, COUNT, SX_KEEP_ALL, INT32_MAX, 5),
    FIELD(keep_checkpoint_every_n_hours, REAL, 0, INT64_MAX, 10000),
    FIELD(log_step_count_steps, INTEGER, SX_NEVER, INT64_MAX, 100),
    FIELD(iterations_per_loop, INTEGER, 0, INT64_MAX, 0),
    FIELD(iterations_per_loop_secs, REAL, 0, INT64_MAX, 0),
    FIELD(train_batch_size, INTEGER, 1, MAX_BATCH, DEFAULT_BATCH),
    FIELD(eval_batch_size, INTEGER, 1, MAX_BATCH, DEFAULT_BATCH),
    FIELD(steps_per_eval, INTEGER, SX_EVERY_EPOCH, INT64_MAX, SX_EVERY_EPOCH),
    FIELD(device, TEXT, 0, 0, 0),
    FIELD(replicas, COUNT, 0, MAX_REPLICAS, 0),
    FIELD(virtual_devices, COUNT, 0, MAX_REPLICAS, 0),
    FIELD(batch_norm, TEXT, 0, 0, 0),
    FIELD(pjrt_plugin, TEXT, 0, 0, 0),
    FIELD(python, TEXT, 0, 0, 0),
    FIELD(dump_stablehlo, TEXT, 0, 0, 0),
    FIELD(coordinator, TEXT, 0, 0, 0),
    FIELD(num_processes, COUNT, 0, MAX_REPLICAS, 0),
    FIELD(process_id, COUNT, 0, MAX_REPLICAS - 1, 0),
    FIELD(threads, COUNT, 0, MAX_WORKERS, 0),
    FIELD(shards, COUNT, 0, MAX_WORKERS, 0),
    FIELD(memory_limit_bytes, INTEGER, 0, INT64_MAX, 0),
    FIELD(strict_placement, FLAG, 0, 1, 0),
    FIELD(log_device_placement, FLAG, 0, 1, 0),
    FIELD(inter_op, COUNT, 0, MAX_WORKERS, 0),
    FIELD(intra_op, COUNT, 0, MAX_WORKERS, 0),
    FIELD(micro_batches, COUNT, 0, MAX_REPLICAS, 0),
    IGNORED(tpu_config.num_shards, COUNT, 0, MAX_WORKERS, 0,
            "the number of replicas is determined by the device"),
    FIELD(tpu_config.num_cores_per_replica, COUNT, 1, 128, 1),
    FIELD(tpu_config.per_host_input_for_training, COUNT, SX_PER_SHARD_V1, SX_SLICED,
          SX_PER_HOST_V1),
    IGNORED(tpu_config.tpu_job_name, TEXT, 0, 0, 0, "one process drives the TPU"),
    IGNORED(tpu_config.initial_infeed_sleep_secs, COUNT, 0, INT32_MAX, 0, "there is no infeed"),
    REFUSE(tpu_config.input_partition_dims, "an input is not divided among the cores of a TPU"),
    FIELD(tpu_config.eval_training_input_configuration, COUNT, SX_PER_SHARD_V1, SX_SLICED,
          SX_PER_HOST_V1),
    FIELD(tpu_config.experimental_host_call_every_n_steps, INTEGER, 1, INT64_MAX, 1),
    IGNORED(tpu_config.experimental_allow_per_host_v2_parallel_get_next, FLAG, 0, 1, 0,
            "reading is always parallel"),
    REFUSE(tpu_config.experimental_feed_hook, "there is no infeed"),
    FIELD(precision, PRECISION, 0, 0, 0),
    FIELD(master, TEXT, 0, 0, 0),
    FIELD(cluster, TEXT, 0, 0, 0),
    FIELD(evaluation_master, TEXT, 0, 0, 0),
    IGNORED(save_summary_steps, INTEGER, SX_NEVER, INT64_MAX, 100,
            "event files for TensorBoard are not written; history.json has the metrics, and "
            "observers receive them"),
    IGNORED(experimental_max_worker_delay_secs, COUNT, 0, INT32_MAX, 0,
            "there are no other workers"),
    IGNORED(session_creation_timeout_secs, COUNT, 1, INT32_MAX, 7200,
            "a device opens immediately or fails"),
    IGNORED(checkpoint_save_graph_def, COUNT, SX_NEVER, 1, 1,
            "the graphs are stored once, in graphs/"),
    IGNORED(protocol, TEXT, 0, 0, 0, "training runs in one process, without servers"),
    IGNORED(batch_axis, COUNT, 0, SX_MAX_RANK - 1, 0,
            "data sets put examples along the first axis, whatever the layout on the device"),
    IGNORED(transpose_input, FLAG, 0, 1, 0, "the device's compiler chooses the layout of inputs"),
    REFUSE(session_config,
           "there is no TensorFlow session; use the fields for threads, device and precision"),
    REFUSE(device_fn, "there are no parameter servers"),
    REFUSE(experimental_distribute, "use train_distribute"),
    FIELD(warm_start_from, TEXT, 0, 0, 0),
    FIELD(vars_to_warm_start, TEXT, 0, 0, 0),
    FIELD(no_shuffle, FLAG, 0, 1, 0),
    FIELD(require_exact, FLAG, 0, 1, 0),
    FIELD(no_compile_cache, FLAG, 0, 1, 0),
};

static int64_t get(const sx_run_config *c, const field *f)
{
    const char *at = (const char *)c + f->offset;
    return f->kind == COUNT ? *(const int *)at : *(const int64_t *)at;
}

static void set(sx_run_config *c, const field *f, int64_t value)
{
    char *at = (char *)c + f->offset;
    if (f->kind == COUNT) {
        *(int *)at = (int)value;
    } else {
        *(int64_t *)at = value;
    }
}

static sx_status resolve_number(sx_run_config *c, const field *f)
{
    int64_t value = get(c, f);
    if (value == 0) {
        set(c, f, f->why == NULL ? f->otherwise : 0);
        return SX_OK;
    }
    if (value < f->low || value > f->high) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %" PRId64 ", expected %" PRId64 " … %" PRId64,
                        f->name, value, f->low, f->high);
    }
    return SX_OK;
}

static sx_status resolve_text(sx_run_config *c, const field *f, sx_arena *arena)
{
    const char **text = (const char **)((char *)c + f->offset);
    if (*text != NULL) {
        *text = sx_arena_strdup(arena, *text);
        return *text != NULL ? SX_OK : sx_no_memory("for a configuration");
    }
    return SX_OK;
}

static sx_status resolve_real(sx_run_config *c, const field *f)
{
    double *value = (double *)((char *)c + f->offset);
    if (!(*value >= 0)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %g, expected a non-negative number", f->name,
                        *value);
    }
    *value = *value == 0 ? (double)f->otherwise : *value;
    return SX_OK;
}

/* 0 = not set. */
static sx_status check_precision(const sx_run_config *c, const field *f)
{
    sx_dtype dtype = *(const sx_dtype *)(const void *)((const char *)c + f->offset);
    if (dtype == SX_DTYPE_NONE || dtype == SX_F32 || dtype == SX_BF16) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected float32 or bfloat16", f->name,
                    sx_dtype_name(dtype));
}

static sx_status check_refused(const sx_run_config *c, const field *f)
{
    const void *given = *(const void *const *)((const char *)c + f->offset);
    return given == NULL ? SX_OK
                         : sx_error(SX_INVALID_ARGUMENT, "%s must be NULL: %s", f->name, f->why);
}

static sx_status resolve_field(sx_run_config *c, const field *f, sx_arena *arena)
{
    switch (f->kind) {
    case INTEGER:
    case COUNT:
        return resolve_number(c, f);
    case TEXT:
        return resolve_text(c, f, arena);
    case REAL:
        return resolve_real(c, f);
    case PRECISION:
        return check_precision(c, f);
    case REFUSED:
        return check_refused(c, f);
    default:
        return SX_OK;
    }
}

static bool is_given(const sx_run_config *c, const field *f)
{
    const char *at = (const char *)c + f->offset;
    switch (f->kind) {
    case TEXT:
        return *(const char *const *)at != NULL;
    case FLAG:
        return *(const bool *)at;
    default:
        return get(c, f) != 0;
    }
}

bool sx_run_config_next_ignored(const sx_run_config *config, size_t *i, const char **out_name,
                                const char **out_why)
{
    for (; *i < SX_COUNT(fields); ++*i) {
        const field *f = &fields[*i];
        if (f->why != NULL && f->kind != REFUSED && is_given(config, f)) {
            ++*i;
            *out_name = f->name;
            *out_why = f->why;
            return true;
        }
    }
    return false;
}

static sx_status check_places(const sx_run_config *c)
{
    if (c->master != NULL && c->cluster != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "master \"%s\" and cluster \"%s\" cannot be combined",
                        c->master, c->cluster);
    }
    if (c->evaluation_master != NULL &&
        (c->master == NULL || strcmp(c->evaluation_master, c->master) != 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "evaluation_master \"%s\" differs from master \"%s\": evaluation runs "
                        "where training does",
                        c->evaluation_master, c->master != NULL ? c->master : "");
    }
    return SX_OK;
}

/* Takes iterations_per_loop from TPUConfig. */
static sx_status take_iterations(sx_run_config *c)
{
    int64_t *own = &c->iterations_per_loop, given = c->tpu_config.iterations_per_loop;
    if (given < 0 ||
        (given > 0 && (*own > 0 || c->iterations_per_loop_secs > 0) && *own != given)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "tpu_config.iterations_per_loop is %" PRId64
                        ", but iterations_per_loop differs",
                        given);
    }
    *own = given > 0 ? given : *own;
    return SX_OK;
}

static sx_status check_pairs(const sx_run_config *c)
{
    if (c->save_checkpoints_steps > 0 && c->save_checkpoints_secs > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "save_checkpoints_steps and save_checkpoints_secs cannot be combined");
    }
    if (c->iterations_per_loop > 0 && c->iterations_per_loop_secs > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "iterations_per_loop and iterations_per_loop_secs cannot be combined");
    }
    if (c->vars_to_warm_start != NULL && c->warm_start_from == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "vars_to_warm_start requires warm_start_from");
    }
    return SX_OK;
}

sx_status sx_run_config_resolve(const sx_run_config *config, sx_arena *arena, sx_run_config *out)
{
    sx_run_config c;
    SX_TRY(sx_take_args("sx_run_config", config, sizeof(c), &c));
    SX_TRY(take_iterations(&c));
    SX_TRY(check_pairs(&c));
    if (c.save_checkpoints_steps == 0 && c.save_checkpoints_secs == 0) {
        c.save_checkpoints_secs = 600;
    }
    for (size_t i = 0; i < SX_COUNT(fields); i++) {
        SX_TRY(resolve_field(&c, &fields[i], arena));
    }
    SX_TRY(check_places(&c));
    SX_TRY(sx_tpu_config_check(&c.tpu_config));
    *out = c;
    return SX_OK;
}

static json_t *field_to_json(const sx_run_config *c, const field *f)
{
    const char *at = (const char *)c + f->offset;
    switch (f->kind) {
    case TEXT:
        return *(const char *const *)at != NULL ? json_string(*(const char *const *)at)
                                                : json_null();
    case FLAG:
        return json_boolean(*(const bool *)at);
    case REAL:
        return json_real(*(const double *)at);
    case PRECISION:
        return json_string(sx_dtype_name(*(const sx_dtype *)(const void *)at));
    case REFUSED:
        return json_null();
    default:
        return json_integer(get(c, f) != 0 ? get(c, f) : f->otherwise);
    }
}

sx_status sx_run_config_to_json(const sx_run_config *config, json_t **out_json)
{
    json_t *json = json_object();
    for (size_t i = 0; i < SX_COUNT(fields); i++) {
        if (json_object_set_new(json, fields[i].name, field_to_json(config, &fields[i])) != 0) {
            json_decref(json);
            return sx_error(SX_INVALID_ARGUMENT, "%s is not UTF-8", fields[i].name);
        }
    }
    *out_json = json;
    return SX_OK;
}
