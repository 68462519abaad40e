/* See profile_model.h. */
#include "profile_model.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/options.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "compile_model.h"
#include "distribute/strategy.h"
#include "generated_inputs.h"
#include "precision_args.h"
#include "profile_data.h"
#include "profile_loop.h"
#include "run_args.h"
#include "savedmodel/predictor.h"
#include "savedmodel/versions.h"
#include "waiting.h"

enum {
    WARM_UP =
        2, /* predictions that are not recorded: the first prepares, the second fills caches */
    MIN_STEPS = 3,
    MAX_STEPS = 10000,
    RECORD_NS = 2000000000,
    TRAIN_BATCH = 16,
    PREDICT_BATCH = 1,
};

typedef struct job {
    sx_invocation *inv;
    const sx_profile_request *r;
    sx_profiled *out;
    sx_strategy *strategy;
    sx_arena arena; /* of the inputs */
    sx_waiting waiting;
    sx_profile_looped looped;
    sx_session *session;
    /* One of both: */
    sx_program *program;
    const void **inputs;
    sx_predictor *predictor;
    const sx_signature *signature;
    sx_tensor *tensors, *outputs;
} job;

static void tell(job *j, const char *what)
{
    if (!sx_is_quiet(j->inv)) {
        char text[200];
        sx_terminal t = sx_terminal_of(stderr, sx_common_of(j->inv)->color);
        snprintf(text, sizeof(text), "%s %s", what, j->r->name);
        sx_waiting_begin(&j->waiting, &t, text);
    }
}

/* ---- Predictions ---- */

static bool is_on_host(const job *j)
{
    return strcmp(j->out->device, "cpu") == 0 || strcmp(j->out->device, "host") == 0;
}

/* A launch of the timeline. */
static sx_status predict(job *j)
{
    sx_timeline *timeline = j->out->timeline;
    const int launch = sx_timeline_next_launch(timeline);
    const int64_t start = sx_timeline_now(timeline);
    sx_timeline_set_steps(timeline, launch, 1, j->out->batch);
    if (j->program != NULL) {
        SX_TRY(sx_program_run(j->program, j->out->batch, j->inputs));
    } else {
        sx_arena arena;
        sx_arena_init(&arena, 0);
        sx_status status =
            sx_predictor_run(j->predictor, j->signature, j->tensors, NULL, &arena, j->outputs);
        sx_arena_deinit(&arena);
        SX_TRY(status);
    }
    sx_timeline_add(timeline, SX_SPAN_WAIT, launch, start);
    return SX_OK;
}

static sx_status run_predictions(job *j)
{
    const int64_t most = j->r->steps > 0 ? j->r->steps : MAX_STEPS;
    sx_profile_record(j->out->profile, false);
    for (int i = 0; i < WARM_UP; i++) {
        SX_TRY(predict(j));
    }
    tell(j, "profiling");
    sx_profile_record(j->out->profile, true);
    const int64_t start = sx_now_ns();
    int64_t now = start, done = 0;
    while (done < most && (j->r->steps > 0 || done < MIN_STEPS || now - start < RECORD_NS)) {
        SX_TRY(predict(j));
        now = sx_now_ns();
        done++;
    }
    sx_profile_record(j->out->profile, false);
    j->looped = (sx_profile_looped){.steps = done,
                                    .examples = done * j->out->batch,
                                    .first_launch = WARM_UP + 1,
                                    .last_launch = WARM_UP + done,
                                    .seconds = (double)(now - start) * 1e-9};
    return SX_OK;
}

/* ---- Models and runs, on generated inputs ---- */

static sx_status make_inputs(job *j, const sx_generated_sizes *sizes)
{
    const int n = sx_program_input_count(j->program);
    j->inputs = sx_arena_array(&j->arena, n + 1, const void *);
    if (j->inputs == NULL) {
        return sx_no_memory("for generated inputs");
    }
    for (int i = 0; i < n; i++) {
        sx_tensor t;
        SX_TRY(sx_generate_input(*sx_program_input_type(j->program, i), sizes, &j->arena, &t),
               "input \"%s\"", sx_program_input_name(j->program, i));
        j->inputs[i] = t.data;
    }
    return SX_OK;
}

static sx_status run_prepared(job *j)
{
    sx_profiled *out = j->out;
    const int ok = sx_program_find_output(j->program, SX_OK_OUTPUT);
    if (!out->train) {
        SX_TRY(sx_program_prepare(j->program, out->batch, NULL));
        SX_TRY(run_predictions(j));
        out->why_no_ops = "they are recorded of training steps";
        return sx_program_info(j->program, out->batch, &out->program);
    }
    const sx_profile_loop loop = {.program = j->program,
                                  .batch = out->batch,
                                  .steps = j->r->steps,
                                  .profile = out->profile,
                                  .inputs = j->inputs};
    SX_TRY(sx_program_prepare_loop(j->program, out->batch, ok, NULL));
    tell(j, "profiling");
    SX_TRY(sx_profile_loop_run(&loop, &j->looped));
    SX_TRY(sx_profile_record_ops(&loop, j->session, out));
    return sx_program_info(j->program, out->batch, &out->program);
}

/* Of predictions on the host there is nothing to tell. */
static sx_status sum_loop(job *j)
{
    return is_on_host(j) && !j->out->train
               ? SX_OK
               : sx_profile_sum_loop(&j->looped, &j->inv->arena, j->out);
}

static sx_status run_program(job *j, const sx_graph *graph)
{
    sx_session_options options = {
        .platform = {.cpu = {.threads = j->out->threads, .profile = j->out->profile},
                     .timeline = j->out->timeline},
        .launch_steps = j->r->iterations};
    const sx_generated_sizes sizes = {.batch = j->out->batch};
    sx_session *session = NULL;
    SX_TRY(sx_strategy_apply(j->strategy, &options));
    SX_TRY(sx_session_create(&options, &session));
    j->session = session;
    sx_status status = sx_session_add_program(session, graph, &j->program);
    if (status == SX_OK && !j->out->train) {
        sx_session_freeze(session);
    }
    if (status == SX_OK) {
        status = make_inputs(j, &sizes);
    }
    if (status == SX_OK) {
        status = run_prepared(j);
    }
    j->out->kind = sx_arena_strdup(&j->inv->arena, sx_session_device(session)->kind);
    sx_status summed = sum_loop(j);
    sx_session_destroy(session);
    if (status != SX_OK) {
        sx_status_free(summed);
        return status;
    }
    return summed;
}

static sx_status profile_graph(job *j)
{
    const sx_profile_request *r = j->r;
    j->out->batch = r->batch > 0 ? r->batch : j->out->train ? TRAIN_BATCH : PREDICT_BATCH;
    const sx_compile_model_request wanted = {
        .name = r->name,
        .mode = j->out->train ? SX_TRAIN : SX_PREDICT,
        .precision = r->precision,
        .by_default = SX_F32,
        .params = r->params,
        .image_size = r->image_size,
        .signature = r->signature,
    };
    sx_compile_model model;
    sx_status status = sx_compile_model_open(j->inv, &wanted, &model);
    if (status == SX_OK) {
        j->out->precision = sx_dtype_name(model.precision);
        status = sx_profile_nodes_read(model.graph, j->out->batch, &j->inv->arena, &j->out->nodes);
    }
    if (status == SX_OK) {
        status = run_program(j, model.graph);
    }
    sx_compile_model_end(&model);
    return status;
}

/* ---- SavedModels ---- */

static sx_status fill_signature(job *j, const sx_generated_sizes *sizes)
{
    const sx_signature *s = j->signature;
    j->tensors = sx_arena_array(&j->arena, (int64_t)s->n_inputs + 1, sx_tensor);
    j->outputs = sx_arena_array(&j->arena, (int64_t)s->n_outputs + 1, sx_tensor);
    if (j->tensors == NULL || j->outputs == NULL) {
        return sx_no_memory("for generated inputs");
    }
    for (size_t i = 0; i < s->n_inputs; i++) {
        const sx_signature_tensor *in = &s->inputs[i];
        sx_type type = in->type;
        type.rank = in->unknown_rank ? SX_UNKNOWN_RANK : type.rank;
        SX_TRY(sx_generate_input(type, sizes, &j->arena, &j->tensors[i]),
               "signature %s, input \"%s\"", s->key, in->key);
    }
    return SX_OK;
}

static sx_status check_saved(sx_invocation *inv, const sx_profile_request *r)
{
    const char *given = r->params->count > 0 || inv->rest.count > 0 ? "a parameter" : NULL;
    if (r->data->count > 0) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--data is for training steps; a SavedModel is profiled on "
                                      "generated inputs"));
    }
    if (r->mode != NULL && strcmp(r->mode, "predict") != 0) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "%s is a SavedModel, which has no training step; use "
                                      "--mode predict, or name the run it was exported from",
                                      r->name));
    }
    return given == NULL ? SX_OK
                         : sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                                  "a SavedModel is run as it was built; %s applies "
                                                  "only to zoo models and C files",
                                                  given));
}

static sx_status profile_saved(job *j, const char *dir)
{
    const sx_profile_request *r = j->r;
    const bool bfloat16 = r->precision != NULL && strcmp(r->precision, "bfloat16") == 0;
    sx_predictor_options options = {.on = sx_device_args_read(r->device_args),
                                    .threads = j->out->threads,
                                    .memory_limit_bytes = -1,
                                    .compile_at_load = true,
                                    .bfloat16 = bfloat16,
                                    .profile = j->out->profile,
                                    .timeline = j->out->timeline};
    options.on.device = j->out->device;
    SX_TRY(check_saved(j->inv, r));
    j->out->train = false;
    j->out->kind = j->out->device;
    j->out->why_no_ops = "they are recorded of training steps";
    j->out->batch = r->batch > 0 ? r->batch : PREDICT_BATCH;
    j->out->precision = sx_dtype_name(bfloat16 && sx_cpu_has_bf16() ? SX_BF16 : SX_F32);
    if (bfloat16) {
        sx_say_bfloat16();
    }
    const sx_generated_sizes sizes = {
        .batch = j->out->batch, .image = r->image_size, .other = r->open_size};
    SX_TRY(sx_predictor_load(dir, &options, &j->predictor));
    SX_TRY(sx_saved_model_find_signature(sx_predictor_model(j->predictor),
                                         r->signature != NULL ? r->signature : SX_SERVING_DEFAULT,
                                         &j->signature));
    j->out->signature = sx_arena_strdup(&j->inv->arena, j->signature->key);
    SX_TRY(fill_signature(j, &sizes));
    SX_TRY(run_predictions(j));
    return sum_loop(j);
}

/* ---- Main ---- */

static sx_status open_device(job *j)
{
    sx_profiled *out = j->out;
    SX_TRY(sx_device_args_strategy(j->inv, j->r->device_args, &j->strategy));
    out->device = sx_strategy_device(j->strategy);
    out->device = sx_arena_strdup(&j->inv->arena, out->device);
    return out->device != NULL ? SX_OK : sx_no_memory("for a profile");
}

static sx_status profile_data(job *j, bool *out_done)
{
    const sx_profile_data data = {.inv = j->inv, .request = j->r, .strategy = j->strategy};
    SX_TRY(sx_profile_data_run(&data, j->out, &j->looped, out_done));
    return SX_OK;
}

/* On data if there are any, else on generated inputs. */
static sx_status profile_model(job *j)
{
    const sx_profile_request *r = j->r;
    bool done = false;
    j->out->train = r->mode == NULL || strcmp(r->mode, "train") == 0;
    if (j->out->train) {
        SX_TRY(profile_data(j, &done));
    } else if (r->data->count > 0) {
        return sx_usage(j->inv, sx_error(SX_INVALID_ARGUMENT,
                                         "--data is for training steps; predictions are profiled "
                                         "on generated inputs"));
    }
    return done ? SX_OK : profile_graph(j);
}

sx_status sx_profile_model(sx_invocation *inv, const sx_profile_request *request, sx_profiled *out)
{
    job j = {.inv = inv, .r = request, .out = out};
    const char *dir = NULL;
    const int64_t threads = request->device_args->threads;
    *out =
        (sx_profiled){.threads = threads > 0 ? (int)threads : sx_cpu_count(), .unit = "examples"};
    sx_map_init(&out->nodes.by_name);
    sx_profile_ops_init(&out->ops, &inv->arena);
    SX_TRY(sx_profile_create(&out->profile));
    SX_TRY(sx_timeline_create(&out->timeline));
    if (request->keep_events) {
        sx_profile_keep_events(out->profile);
    }
    SX_TRY(open_device(&j));
    sx_arena_init(&j.arena, 0);
    tell(&j, "preparing");
    sx_status found = sx_version_find(request->name, &inv->arena, &dir);
    sx_status status = found == SX_OK ? profile_saved(&j, dir) : profile_model(&j);
    sx_status_free(found); /* a run, or a model to build */
    sx_predictor_unload(j.predictor);
    sx_waiting_end(&j.waiting);
    sx_strategy_release(j.strategy);
    sx_arena_deinit(&j.arena);
    const bool is_timed = out->loop.all.steps > 0; /* then all tables are of the timeline's steps */
    out->steps = is_timed ? out->loop.all.steps : j.looped.steps;
    out->seconds = is_timed ? out->loop.total : j.looped.seconds;
    out->input_rate = j.looped.input_rate;
    if (strcmp(out->device, "cpu") == 0) {
        out->kind = NULL;
    } else {
        out->threads = 1;
    }
    return status;
}

sx_status sx_profile_sum_loop(const sx_profile_looped *looped, sx_arena *arena, sx_profiled *out)
{
    sx_status status = sx_timeline_sum(out->timeline, looped->first_launch, looped->last_launch,
                                       arena, &out->loop);
    if (sx_status_code(status) == SX_FAILED_PRECONDITION) {
        out->why_no_loop = sx_arena_strdup(arena, sx_status_message(status));
        out->loop.n = 0;
        sx_status_free(status);
        status = SX_OK;
    }
    return status;
}

sx_status sx_profile_record_ops(const sx_profile_loop *loop, sx_session *session, sx_profiled *out)
{
    sx_platform *platform = sx_session_device(session)->platform;
    if (sx_session_replicas(session) > 0) {
        out->ops.devices = sx_session_replicas(session);
    }
    sx_status refused = SX_OK;
    sx_status status = sx_profile_loop_record(loop, platform, sx_profile_ops_add, &out->ops,
                                              &out->ops.steps, &refused);
    if (refused != SX_OK) {
        out->why_no_ops = sx_arena_strdup(out->ops.arena, sx_status_message(refused));
        out->ops.n = 0;
        sx_status_free(refused);
    } else if (out->ops.n == 0) {
        out->why_no_ops = "the plugin's profiler recorded none";
    }
    return status;
}

void sx_profiled_end(sx_profiled *p)
{
    sx_profile_ops_deinit(&p->ops);
    sx_profile_nodes_deinit(&p->nodes);
    sx_timeline_destroy(p->timeline);
    sx_profile_destroy(p->profile);
}
