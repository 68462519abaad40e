/* The public API of a predictor (sextant/infer.h): refcounted, with results that own their memory.
 */
#include <sextant/infer.h>

#include <stdatomic.h>
#include <string.h>

#include "backends/profile.h"
#include "base/args.h"
#include "base/memory.h"
#include "savedmodel/predictor.h"
#include "savedmodel/versions.h"

struct sx_servable {
    atomic_int refs;
    sx_predictor *predictor;
    sx_profile *profile; /* NULL: no times are kept */
    sx_profile_fn *on_profile;
    void *profile_user;
    int64_t timeout_ms;
    sx_arena arena;
    const sx_signature *signatures; /* [count], the model's; infos[i] describes signatures[i] */
    sx_signature_info *infos;
    int count;
};

struct sx_outputs {
    sx_arena arena;
    sx_servable *servable; /* retained: it owns names and constants */
    const sx_signature_info *signature;
    sx_tensor *tensors;
};

/* ---- Loading ---- */

static sx_port *describe_ports(sx_arena *arena, const sx_signature_tensor *tensors, size_t n)
{
    sx_port *ports = sx_arena_array(arena, n + 1, sx_port);
    for (size_t i = 0; ports != NULL && i < n; i++) {
        ports[i] =
            (sx_port){tensors[i].key, tensors[i].tensor, tensors[i].type, tensors[i].unknown_rank};
    }
    return ports;
}

static sx_status describe(sx_servable *s)
{
    size_t n;
    s->signatures = sx_saved_model_signatures(sx_predictor_model(s->predictor), &n);
    s->infos = sx_arena_array(&s->arena, n + 1, sx_signature_info);
    if (s->infos == NULL) {
        return sx_no_memory("for a model");
    }
    s->count = (int)n;
    for (size_t i = 0; i < n; i++) {
        const sx_signature *from = &s->signatures[i];
        s->infos[i] = (sx_signature_info){
            .name = from->key,
            .method = from->method,
            .n_inputs = (int)from->n_inputs,
            .n_outputs = (int)from->n_outputs,
            .inputs = describe_ports(&s->arena, from->inputs, from->n_inputs),
            .outputs = describe_ports(&s->arena, from->outputs, from->n_outputs),
        };
        if (s->infos[i].inputs == NULL || s->infos[i].outputs == NULL) {
            return sx_no_memory("for a model");
        }
    }
    return SX_OK;
}

static void destroy(sx_servable *s)
{
    sx_predictor_unload(s->predictor);
    int n = 0;
    const sx_kernel_time *rows = s->profile != NULL ? sx_profile_rows(s->profile, &n) : NULL;
    for (int i = 0; i < n; i++) {
        const sx_kernel_profile row = {.kernel = rows[i].kernel,
                                       .node = rows[i].node,
                                       .calls = rows[i].calls,
                                       .seconds = (double)rows[i].total_ns * 1e-9,
                                       .flops = rows[i].flops,
                                       .bytes = rows[i].bytes};
        s->on_profile(s->profile_user, &row);
    }
    sx_profile_destroy(s->profile);
    sx_arena_deinit(&s->arena);
    sx_free(s);
}

sx_status sx_servable_load(const char *dir, const sx_servable_options *options,
                           sx_servable **out_servable)
{
    SX_TAKE_ARGS(sx_servable_options, options);
    SX_TRY(sx_check_timeout_ms(options->timeout_ms));
    sx_cancel cancel;
    sx_servable *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a model");
    }
    atomic_init(&s->refs, 1);
    sx_arena_init(&s->arena, 0);
    s->on_profile = options->on_profile;
    s->profile_user = options->profile_user;
    s->timeout_ms = options->timeout_ms;
    sx_cancel_init_ms(&cancel, options->timeout_ms);
    const char *limit = options->memory_limit_name;
    const char *limit_of =
        sx_arena_printf(&s->arena, "the model (%s)", limit != NULL ? limit : "memory_limit_bytes");
    sx_status status = limit_of == NULL        ? sx_no_memory("for a model")
                       : s->on_profile != NULL ? sx_profile_create(&s->profile)
                                               : SX_OK;
    const sx_predictor_options wanted = {
        .on = {.device = options->device,
               .pjrt_plugin = options->pjrt_plugin,
               .python = options->python,
               .device_options = options->device_options,
               .xla_options = options->xla_options,
               .gpu_memory_limit = options->gpu_memory_limit,
               .devices = options->devices,
               .replicas = options->replicas,
               .virtual_devices = options->virtual_devices,
               .strict_placement = options->strict_placement,
               .log_device_placement = options->log_device_placement},
        .strategy = options->strategy,
        .threads = options->threads,
        .memory_limit_bytes = options->memory_limit_bytes,
        .memory_limit_of = limit_of,
        .compile_at_load = !options->lazy,
        .cancel = &cancel,
        .profile = s->profile,
        .int8 = options->int8,
        .bfloat16 = options->bfloat16,
        .tags = options->tags};
    status = status == SX_OK ? sx_version_find(dir, &s->arena, &dir) : status;
    if (status == SX_OK) {
        status = sx_say_timeout_ms(sx_predictor_load(dir, &wanted, &s->predictor), s->timeout_ms);
    }
    if (status == SX_OK) {
        status = describe(s);
    }
    if (status != SX_OK) {
        destroy(s);
        return status;
    }
    *out_servable = s;
    return SX_OK;
}

sx_servable *sx_servable_retain(sx_servable *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void sx_servable_release(sx_servable *s)
{
    if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        destroy(s);
    }
}

const char *sx_servable_dir(const sx_servable *s)
{
    return sx_saved_model_dir(sx_predictor_model(s->predictor));
}

const sx_signature_info *sx_servable_signatures(const sx_servable *s, int *out_count)
{
    *out_count = s->count;
    return s->infos;
}

sx_status sx_servable_find(const sx_servable *s, const char *name,
                           const sx_signature_info **out_signature)
{
    const sx_signature *found;
    SX_TRY(sx_saved_model_find_signature(sx_predictor_model(s->predictor),
                                         name != NULL ? name : "serving_default", &found));
    *out_signature = &s->infos[found - s->signatures];
    return SX_OK;
}

/* ---- Running ---- */

static sx_status run_into(sx_servable *s, const sx_tensor *inputs, sx_outputs *outputs)
{
    const sx_signature *signature = &s->signatures[outputs->signature - s->infos];
    outputs->tensors = sx_arena_array(&outputs->arena, signature->n_outputs + 1, sx_tensor);
    if (outputs->tensors == NULL) {
        return sx_no_memory("for a model");
    }
    sx_cancel cancel;
    sx_cancel_init_ms(&cancel, s->timeout_ms);
    sx_status status = sx_predictor_run(s->predictor, signature, inputs, &cancel, &outputs->arena,
                                        outputs->tensors);
    return sx_say_timeout_ms(status, s->timeout_ms);
}

sx_status sx_servable_run(sx_servable *s, const char *signature, const sx_tensor *inputs,
                          sx_outputs **out_outputs)
{
    const sx_signature_info *info;
    SX_TRY(sx_servable_find(s, signature, &info));
    sx_outputs *outputs = sx_alloc(1, sizeof(*outputs));
    if (outputs == NULL) {
        return sx_no_memory("for a model");
    }
    sx_arena_init(&outputs->arena, sx_predictor_memory_limit(s->predictor));
    outputs->signature = info;
    outputs->servable = sx_servable_retain(s);
    sx_status status = run_into(s, inputs, outputs);
    if (status != SX_OK) {
        sx_outputs_free(outputs);
        return status;
    }
    *out_outputs = outputs;
    return SX_OK;
}

const sx_tensor *sx_outputs_at(const sx_outputs *outputs, int i)
{
    bool exists = i >= 0 && i < outputs->signature->n_outputs;
    return exists ? &outputs->tensors[i] : NULL;
}

const sx_tensor *sx_outputs_find(const sx_outputs *outputs, const char *name)
{
    for (int i = 0; i < outputs->signature->n_outputs; i++) {
        if (strcmp(outputs->signature->outputs[i].name, name) == 0) {
            return &outputs->tensors[i];
        }
    }
    return NULL;
}

void sx_outputs_free(sx_outputs *outputs)
{
    if (outputs != NULL) {
        sx_servable_release(outputs->servable);
        sx_arena_deinit(&outputs->arena);
        sx_free(outputs);
    }
}
