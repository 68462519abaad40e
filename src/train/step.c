/* Steps on distributed data (sextant/runtime.h): the training program, or programs of the caller's
 * that share the session's variables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "graph/host.h"
#include "graph/ir.h"
#include "io/path.h"
#include "train/choose_strategy.h"
#include "train/step.h"
#include "train/training.h"

/* ---- Adding ---- */

void sx_steps_destroy(sx_training *t)
{
    while (t->steps != NULL) {
        sx_step_program *s = t->steps;
        t->steps = s->next;
        sx_batch_gather_deinit(&s->input);
        if (s->program != NULL) {
            sx_session_drop_program(t->trainer->session, s->program);
        }
        sx_graph_destroy(s->graph);
        sx_free(s);
    }
}

static sx_status build(sx_step_program *s, sx_step_build_fn *fn)
{
    sx_trainer *trainer = s->t->trainer;
    const sx_run_info *info = &trainer->info;
    const sx_model_def named = {.name = s->name};
    sx_params *params = NULL;
    SX_TRY(sx_params_create(&params));
    sx_status status = sx_trainer_stored_params(trainer, params);
    if (status == SX_OK) {
        status = sx_build_program(
            &(sx_program_request){.def = &named,
                                  .params = params,
                                  .inputs = &info->inputs,
                                  .mode = s->mode,
                                  .precision = info->precision,
                                  .replicas = sx_run_config_replicas(&trainer->config),
                                  .batch = trainer->config.train_batch_size,
                                  .step = fn},
            &s->graph);
    }
    sx_params_destroy(params);
    return status;
}

static sx_status add_to_session(sx_step_program *s)
{
    sx_trainer *trainer = s->t->trainer;
    const int before = sx_session_variable_count(trainer->session);
    SX_TRY(sx_session_add_program(trainer->session, s->graph, &s->program));
    if (trainer->prefix != NULL && sx_session_variable_count(trainer->session) > before) {
        SX_TRY(sx_checkpoint_load(trainer->session, trainer->prefix, before));
    }
    return sx_feed_order(&trainer->info.inputs, s->program, s->order, &s->n_inputs);
}

static sx_status add(sx_training *t, sx_step_build_fn *fn, const sx_step_args *args,
                     sx_step_program **out, const char *file, int line)
{
    SX_NEED(t);
    SX_NEED(fn);
    SX_NEED(out);
    SX_TAKE_ARGS(sx_step_args, args);
    SX_TRY(sx_training_check_open(t));
    sx_step_program *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a step");
    }
    *s =
        (sx_step_program){.t = t, .file = file, .line = line, .mode = args->mode, .next = t->steps};
    t->steps = s; /* freed with the session, also if what follows fails */
    s->name = sx_arena_strdup(&t->trainer->arena, args->name != NULL ? args->name : "step");
    SX_TRY(s->name != NULL ? SX_OK : sx_no_memory("for a step"));
    SX_TRY(build(s, fn));
    SX_TRY(add_to_session(s));
    *out = s;
    return SX_OK;
}

sx_status sx_training_add_step_at(sx_training *t, sx_step_build_fn *fn, const sx_step_args *args,
                                  sx_step_program **out_step, const char *file, int line)
{
    return sx_at_user_line(add(t, fn, args, out_step, file, line), file, line);
}

sx_step_program *sx_training_train_step(sx_training *t)
{
    return t == NULL || t->trainer == NULL ? NULL : &t->train_step;
}

/* ---- Running ---- */

static bool trains_run(const sx_step_program *s)
{
    return s == &s->t->train_step;
}

static sx_status check_state(const sx_step_program *s)
{
    const sx_training *t = s->t;
    SX_TRY(sx_training_check_open(t));
    return t->begun || t->trainer->has_state
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "step \"%s\": the training has not begun, and no checkpoint is restored",
                          s->name);
}

static sx_status run_training(sx_step_program *s, const sx_distributed *data, bool *out_more)
{
    if (!s->t->begun || s->t->data != data) {
        SX_TRY(sx_training_begin_on(s->t, data));
    }
    sx_status status = sx_training_run(s->t, 1, NULL);
    *out_more = sx_status_code(status) != SX_OUT_OF_RANGE;
    if (!*out_more) {
        sx_status_free(status);
        return SX_OK;
    }
    return status;
}

/* A step with sx_minimize() that met a number that is not finite has changed nothing. */
static sx_status check_ok(sx_step_program *s)
{
    const int output = sx_program_find_output(s->program, SX_OK_OUTPUT);
    bool ok = true;
    if (output >= 0 && sx_program_output_type(s->program, output)->dtype == SX_BOOL) {
        SX_TRY(sx_program_read_output(s->program, output, &ok));
    }
    if (ok) {
        return SX_OK;
    }
    sx_status cause = sx_program_find_nonfinite(s->program);
    sx_status status =
        sx_error(SX_ABORTED, "step \"%s\": %s; the update was not applied", s->name,
                 cause != SX_OK ? sx_status_message(cause) : "a gradient is not finite");
    sx_status_free(cause);
    return status;
}

static void rewind_data(sx_step_program *s)
{
    sx_batch_gather_deinit(&s->input);
    s->data = NULL;
}

static sx_status run_own(sx_step_program *s, const sx_distributed *data, bool *out_more)
{
    sx_feed_batch batch;
    const void *inputs[SX_MAX_MODEL_INPUTS];
    SX_TRY(check_state(s));
    if (s->data != data) {
        rewind_data(s);
        SX_TRY(sx_training_open_data(s->t, data, s->mode, &s->input), "step \"%s\"", s->name);
        s->data = data;
    }
    sx_status status = sx_batch_gather_next(&s->input, &batch);
    *out_more = sx_status_code(status) != SX_OUT_OF_RANGE;
    if (!*out_more) {
        sx_status_free(status);
        rewind_data(s);
        return SX_OK;
    }
    SX_TRY(status, "step \"%s\"", s->name);
    sx_feed_bind(&batch, s->order, s->n_inputs, inputs);
    s->batch = 0;
    SX_TRY(sx_program_run(s->program, batch.size, inputs), "step \"%s\"", s->name);
    s->batch = batch.size;
    return check_ok(s);
}

sx_status sx_step_run_at(sx_step_program *s, const sx_distributed *data, bool *out_more,
                         const char *file, int line)
{
    SX_NEED(s);
    SX_NEED(data);
    SX_NEED(out_more);
    *out_more = false;
    return sx_at_user_line(
        trains_run(s) ? run_training(s, data, out_more) : run_own(s, data, out_more), file, line);
}

/* ---- Outputs ---- */

static sx_status no_output(const sx_step_program *s, const char *output)
{
    const int n = sx_program_output_count(s->program);
    char where[512] = "the step";
    const char **names = sx_alloc((size_t)n + 1, sizeof(*names));
    for (int i = 0; i < n && names != NULL; i++) {
        names[i] = sx_program_output_name(s->program, i);
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 14);
    sx_nearest_list(output, names, names != NULL ? (size_t)n : 0, &text);
    if (s->line > 0) {
        snprintf(where, sizeof(where), "the function of %s:%d", sx_path_basename(s->file), s->line);
    }
    sx_status status = sx_error(SX_NOT_FOUND,
                                "step \"%s\" has no output \"%.100s\" %s; to fetch it, add "
                                "sx_output(b, \"%.100s\", value) to %s",
                                s->name, output, sx_buf_text(&text), output, where);
    sx_buf_deinit(&text);
    sx_free(names);
    return status;
}

/* The output's index in the program, and its type with the batch of the last run. */
static sx_status find_output(sx_step_program *s, const char *output, int *out_index,
                             sx_type *out_type)
{
    SX_NEED(s);
    SX_NEED(output);
    SX_TRY(sx_training_check_open(s->t));
    if (trains_run(s)) { /* the fit may have opened another program, and knows the batch */
        s->program = s->t->fit.program;
        s->batch = s->t->fit.n_shown > 0 ? s->t->fit.batch : 0;
    }
    if (s->program == NULL || s->batch == 0) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "output \"%.100s\" of step \"%s\" is asked for, but the step has not run",
                        output, s->name);
    }
    *out_index = sx_program_find_output(s->program, output);
    if (*out_index < 0) {
        return no_output(s, output);
    }
    *out_type = sx_type_with_batch(*sx_program_output_type(s->program, *out_index), s->batch);
    return SX_OK;
}

sx_status sx_step_fetch(sx_step_program *s, const char *output, sx_tensor *out)
{
    int i = 0;
    SX_TRY(find_output(s, output, &i, &out->type));
    out->data = sx_alloc((size_t)sx_type_bytes(&out->type) + 1, 1);
    if (out->data == NULL) {
        return sx_no_memory("for an output");
    }
    sx_status status = sx_program_read_output(s->program, i, out->data);
    if (status != SX_OK) {
        sx_free(out->data);
        out->data = NULL;
    }
    return status;
}

bool sx_step_has_output(const sx_step_program *s, const char *output)
{
    return sx_program_find_output(s->program, output) >= 0;
}

int64_t sx_step_batch(const sx_step_program *s)
{
    return s->batch;
}

static sx_status reduce(sx_step_program *s, sx_reduce_op op, const char *output, double *out_value)
{
    sx_tensor t;
    SX_NEED(out_value);
    SX_TRY(sx_step_fetch(s, output, &t));
    const int64_t n = sx_type_elems(&t.type);
    const size_t size = sx_dtype_bytes(t.type.dtype);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += sx_host_load_element(t.type.dtype, (const char *)t.data + (size_t)i * size);
    }
    *out_value = op == SX_REDUCE_MEAN && n > 0 ? sum / (double)n : sum;
    sx_free(t.data);
    return SX_OK;
}

sx_status sx_step_reduce_at(sx_step_program *step, sx_reduce_op op, const char *output,
                            double *out_value, const char *file, int line)
{
    return sx_at_user_line(reduce(step, op, output, out_value), file, line);
}

static sx_status read_output(sx_step_program *s, const char *output, void *data, size_t bytes)
{
    int i = 0;
    sx_type type;
    char text[SX_TYPE_TEXT];
    SX_NEED(data);
    SX_TRY(find_output(s, output, &i, &type));
    if (bytes != (size_t)sx_type_bytes(&type)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "output \"%s\" of step \"%s\" is %s, %" PRId64 " bytes; got %zu", output,
                        s->name, sx_type_format(&type, text, sizeof(text)), sx_type_bytes(&type),
                        bytes);
    }
    return sx_program_read_output(s->program, i, data);
}

sx_status sx_step_read_at(sx_step_program *step, const char *output, void *data, size_t bytes,
                          const char *file, int line)
{
    return sx_at_user_line(read_output(step, output, data, bytes), file, line);
}
