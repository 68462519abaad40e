/* See profile_model.h. */
#include "profile_model.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/options.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "compile_model.h"
#include "generated_inputs.h"
#include "precision_args.h"
#include "runtime/session.h"
#include "savedmodel/predictor.h"
#include "savedmodel/versions.h"
#include "waiting.h"

enum {
    WARM_UP = 2, /* steps that are not recorded: the first prepare, the second fill caches */
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
    sx_arena arena; /* of the inputs */
    sx_waiting waiting;
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

/* ---- Steps ---- */

static sx_status step(job *j)
{
    if (j->program != NULL) {
        return sx_program_run(j->program, j->out->batch, j->inputs);
    }
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status =
        sx_predictor_run(j->predictor, j->signature, j->tensors, NULL, &arena, j->outputs);
    sx_arena_deinit(&arena);
    return status;
}

static sx_status run_steps(job *j)
{
    const int64_t most = j->r->steps > 0 ? j->r->steps : MAX_STEPS;
    sx_profile_record(j->out->profile, false);
    for (int i = 0; i < WARM_UP; i++) {
        SX_TRY(step(j));
    }
    tell(j, "profiling");
    sx_profile_record(j->out->profile, true);
    const int64_t start = sx_now_ns();
    int64_t now = start, done = 0;
    while (done < most && (j->r->steps > 0 || done < MIN_STEPS || now - start < RECORD_NS)) {
        SX_TRY(step(j));
        now = sx_now_ns();
        done++;
    }
    sx_profile_record(j->out->profile, false);
    j->out->steps = done;
    j->out->seconds = (double)(now - start) * 1e-9;
    return SX_OK;
}

/* ---- Models and runs ---- */

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

static sx_status run_program(job *j, const sx_graph *graph)
{
    const sx_session_options options = {
        .device = "cpu", .platform.cpu = {.threads = j->r->threads, .profile = j->out->profile}};
    const sx_generated_sizes sizes = {.batch = j->out->batch};
    sx_session *session = NULL;
    SX_TRY(sx_session_create(&options, &session));
    sx_status status = sx_session_add_program(session, graph, &j->program);
    if (status == SX_OK && !j->out->train) {
        sx_session_freeze(session);
    }
    if (status == SX_OK) {
        status = make_inputs(j, &sizes);
    }
    if (status == SX_OK) {
        status = sx_program_prepare(j->program, j->out->batch, NULL);
    }
    if (status == SX_OK) {
        status = run_steps(j);
    }
    sx_session_destroy(session);
    return status;
}

static sx_status profile_graph(job *j)
{
    const sx_profile_request *r = j->r;
    j->out->train = r->mode == NULL || strcmp(r->mode, "train") == 0;
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
    const sx_predictor_options options = {.device = "cpu",
                                          .threads = r->threads,
                                          .memory_limit_bytes = -1,
                                          .compile_at_load = true,
                                          .bfloat16 = bfloat16,
                                          .profile = j->out->profile};
    SX_TRY(check_saved(j->inv, r));
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
    return run_steps(j);
}

/* ---- Main ---- */

sx_status sx_profile_model(sx_invocation *inv, const sx_profile_request *request, sx_profiled *out)
{
    job j = {.inv = inv, .r = request, .out = out};
    const char *dir = NULL;
    *out = (sx_profiled){.threads = request->threads > 0 ? request->threads : sx_cpu_count()};
    SX_TRY(sx_profile_create(&out->profile));
    if (request->keep_events) {
        sx_profile_keep_events(out->profile);
    }
    sx_arena_init(&j.arena, 0);
    tell(&j, "preparing");
    sx_status found = sx_version_find(request->name, &inv->arena, &dir);
    sx_status status = found == SX_OK ? profile_saved(&j, dir) : profile_graph(&j);
    sx_status_free(found); /* a run, or a model to build */
    sx_predictor_unload(j.predictor);
    sx_waiting_end(&j.waiting);
    sx_arena_deinit(&j.arena);
    return status;
}
