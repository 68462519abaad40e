/* See inputs.h. */
#include "train/inputs.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "train/choose_strategy.h"
#include "train/config.h"

enum { HOSTS = 1 }; /* one process drives the device */

/* ---- The context ---- */

typedef struct call {
    const sx_run_config *config; /* resolved */
    sx_mode mode;
    int64_t global;
    sx_input_plan plan;
    sx_params *params; /* the model's, and batch_size */
    sx_input_fn *fn;
    void *user;
} call;

static sx_status call_once(const call *c, int index, sx_dataset **out)
{
    int replicas = sx_run_config_replicas_of(c->config, c->mode);
    const sx_input_context context = {.struct_size = sizeof(context),
                                      .mode = c->mode,
                                      .batch_size = c->plan.batch_size,
                                      .global_batch_size = c->global,
                                      .num_replicas = replicas,
                                      .num_hosts = HOSTS,
                                      .num_of_replicas_per_host = replicas / HOSTS,
                                      .invocation_index = index,
                                      .num_invocations = c->plan.calls,
                                      .params = c->params};
    SX_TRY(c->fn(c->user, &context, out), "the input function");
    if (*out == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "the input function returned no data set");
    }
    return sx_params_status(c->params);
}

/* ---- Results ---- */

/* Either all calls returned batches, or all returned single elements. */
static sx_status check_parts(const sx_inputs *in)
{
    for (int i = 1; i < in->n; i++) {
        if ((sx_dataset_batch_size(in->data[i]) > 0) != (sx_dataset_batch_size(in->data[0]) > 0)) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "the input function returned batches in one call and elements in another");
        }
    }
    return SX_OK;
}

/* Single elements are batched by the global batch size; nothing needs to be assembled. */
static sx_status measure(const call *c, sx_inputs *in)
{
    bool batched = sx_dataset_batch_size(in->data[0]) > 0;
    in->pulls = batched ? c->plan.pulls : 1;
    if (in->n * in->pulls == 1) {
        return SX_OK;
    }
    for (int i = 0; i < in->n; i++) {
        int64_t batch = batched ? sx_dataset_batch_size(in->data[i]) : c->plan.batch_size, rows;
        int64_t count = sx_dataset_count(in->data[i]), per = batched ? in->pulls : batch;
        if (!sx_mul_i64(batch, in->pulls, &rows) ||
            !sx_add_i64(in->step_batch, rows, &in->step_batch)) {
            return sx_error(SX_INVALID_ARGUMENT, "batches of %" PRId64 " are too large", batch);
        }
        if (count != SX_ENDLESS) {
            in->steps_per_epoch = SX_MAX(in->steps_per_epoch, (count + per - 1) / per);
        }
    }
    return SX_OK;
}

static sx_status call_all(const call *c, sx_inputs *in)
{
    while (in->n < c->plan.calls) {
        SX_TRY(call_once(c, in->n, &in->data[in->n]));
        in->n++;
    }
    SX_TRY(check_parts(in));
    return measure(c, in);
}

static sx_status call_with_params(call *c, sx_params *model_params, sx_inputs *in)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, c->plan.batch_size);
    SX_TRY(sx_params_create(&c->params));
    sx_status status = sx_params_add_all(c->params, model_params);
    if (status == SX_OK) {
        status = sx_params_set(c->params, "batch_size", text);
    }
    if (status == SX_OK) {
        status = call_all(c, in);
    }
    if (model_params != NULL) {
        sx_params_add_asked(model_params, c->params);
    }
    sx_params_destroy(c->params);
    return status;
}

static sx_status plan_and_call(call *c, sx_params *params, int64_t global, sx_inputs *in)
{
    const sx_run_config *config = c->config;
    c->global = c->mode == SX_TRAIN ? config->train_batch_size : config->eval_batch_size;
    c->global = global > 0 ? global : c->global;
    SX_TRY(sx_input_plan_make(c->mode, sx_input_config_of(&config->tpu_config, c->mode), c->global,
                              sx_run_config_replicas_of(config, c->mode), HOSTS, &c->plan));
    return call_with_params(c, params, in);
}

sx_status sx_inputs_call(const sx_run_config *config, sx_params *params, sx_mode mode,
                         int64_t global, sx_input_fn *fn, void *user, sx_inputs *out_inputs)
{
    sx_run_config resolved;
    sx_arena arena;
    sx_inputs in = {0};
    call c = {.config = &resolved, .mode = mode, .fn = fn, .user = user};
    sx_arena_init(&arena, 0);
    sx_status status = sx_run_config_resolve(config, &arena, &resolved);
    if (status == SX_OK) {
        status = plan_and_call(&c, params, global, &in);
    }
    sx_arena_deinit(&arena);
    if (status != SX_OK) {
        sx_inputs_release(&in);
        return status;
    }
    *out_inputs = in;
    return SX_OK;
}

void sx_inputs_release(sx_inputs *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        sx_dataset_release(inputs->data[i]);
    }
    *inputs = (sx_inputs){0};
}
