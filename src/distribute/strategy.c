/* See strategy.h. */
#include "distribute/strategy.h"

#include <stdatomic.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "distribute/device_spec.h"
#include "distribute/resolver.h"
#include "io/path.h"

struct sx_strategy {
    atomic_int refs;
    sx_arena arena; /* for strings */
    sx_strategy_kind kind;
    sx_device_spec spec;
    sx_session_options session; /* device, platform, shards */
    int replicas;               /* 0 = not known yet: all devices */
    sx_platform *held;          /* keeps the plugin's client open; NULL = no plugin */
    const char *device, *text, *explanation;
};

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- The device ---- */

static const char *default_device(const sx_strategy_wish *wish)
{
    bool tpu = wish->kind == SX_STRATEGY_TPU || is_given(wish->tpu) || is_given(wish->master) ||
               is_given(wish->zone) || is_given(wish->project);
    if (tpu) {
        return "tpu";
    }
    if (wish->args.pjrt_plugin != NULL) {
        return "pjrt";
    }
    return sx_default_backend();
}

static sx_status choose_device(sx_strategy *s, const sx_strategy_wish *wish)
{
    const char *fallback = default_device(wish);
    const char *text = is_given(wish->args.device) ? wish->args.device : fallback;
    SX_TRY(sx_device_spec_parse(text, &s->arena, &s->spec));
    if (strcmp(fallback, "tpu") == 0 && !s->spec.is_tpu) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device \"%s\" cannot be combined with a TPU (--tpu, --tpu-zone, "
                        "--project, --master)",
                        text);
    }
    s->device = sx_device_spec_text(&s->spec, &s->arena);
    return s->device != NULL ? SX_OK : sx_no_memory("for a strategy");
}

/* ---- Checks ---- */

static bool is_plugin(const sx_strategy *s)
{
    return strcmp(s->spec.backend, "pjrt") == 0;
}

/* Whether --virtual-devices is allowed. A plugin given by its path may support it. */
static bool has_virtual(const sx_strategy *s)
{
    const char *name = s->spec.plugin_name;
    return !is_plugin(s) || name == NULL || (strcmp(name, "tpu") != 0 && strcmp(name, "cuda") != 0);
}

static sx_status check_range(const char *name, int value)
{
    return value >= 0 && value <= SX_MAX_REPLICAS
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "%s is %d, expected 1 to %d", name, value,
                          SX_MAX_REPLICAS);
}

/* Options that apply to plugins only. */
static sx_status check_plugin_options(const sx_strategy *s, const sx_strategy_args *args)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"pjrt_plugin", args->pjrt_plugin},
        {"python", args->python},
        {"dump_stablehlo", args->dump_stablehlo},
    };
    for (size_t i = 0; !is_plugin(s) && i < SX_COUNT(rows); i++) {
        if (rows[i].value != NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s \"%.200s\" is only for PJRT devices (tpu, cuda, pjrt:NAME), not "
                            "for %s",
                            rows[i].name, rows[i].value, s->device);
        }
    }
    return SX_OK;
}

static sx_status parse_batch_norm(const sx_strategy *s, const char *text, sx_batch_norm_scope *out)
{
    if (text == NULL || strcmp(text, "sync") == 0) {
        *out = SX_BATCH_NORM_SYNC;
        return SX_OK;
    }
    if (strcmp(text, "replica") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "batch_norm is \"%.100s\", expected sync or replica",
                        text);
    }
    if (!is_plugin(s)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "batch_norm replica is not supported on %s, which uses the moments of the "
                        "whole batch (sync); it requires PJRT devices, such as --device "
                        "pjrt:cpu:4",
                        s->device);
    }
    *out = SX_BATCH_NORM_REPLICA;
    return SX_OK;
}

/* ---- The number of replicas ---- */

static sx_status disagree(const char *a, int x, const char *b, int y)
{
    return sx_error(SX_INVALID_ARGUMENT, "%s is %d, but %s is %d", a, x, b, y);
}

/* On the host a replica is a part of the batch: a shard on `cpu`; `ref` computes the whole batch,
 * which is equivalent. */
static sx_status count_on_host(sx_strategy *s, const sx_strategy_wish *wish, int wanted)
{
    int made = wish->args.virtual_devices;
    if (wanted > made && made > 0) {
        return disagree("replicas", wanted, "virtual_devices", made);
    }
    s->replicas = wanted > 0 ? wanted : SX_MAX(made, 1);
    bool shards = strcmp(s->spec.backend, "cpu") == 0 && (made > 0 || wanted > 1);
    s->session.shards = shards ? s->replicas : 0;
    return SX_OK;
}

/* The number given, otherwise one, or all devices if the strategy needs several. */
static void count_on_plugin(sx_strategy *s, const sx_strategy_wish *wish, int wanted)
{
    int made = wish->args.virtual_devices;
    bool all = s->kind == SX_STRATEGY_MIRRORED || s->kind == SX_STRATEGY_TPU || made > 0;
    s->replicas = wanted > 0 ? wanted : all ? 0 : 1;
    bool is_cpu = s->spec.plugin_name != NULL && strcmp(s->spec.plugin_name, "cpu") == 0;
    s->session.platform.virtual_devices = made > 0                    ? made
                                          : is_cpu && s->replicas > 1 ? s->replicas
                                                                      : 0;
}

static sx_status count_replicas(sx_strategy *s, const sx_strategy_wish *wish)
{
    const sx_strategy_args *args = &wish->args;
    int wanted = args->replicas > 0 ? args->replicas : s->spec.devices;
    SX_TRY(check_range("replicas", args->replicas));
    SX_TRY(check_range("virtual_devices", args->virtual_devices));
    if (s->spec.devices > 0 && args->replicas > 0 && args->replicas != s->spec.devices) {
        return disagree("replicas", args->replicas, "the number of devices in its name",
                        s->spec.devices);
    }
    if (args->virtual_devices > 0 && !has_virtual(s)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "virtual_devices is %d: only cpu, ref and pjrt:cpu support virtual "
                        "devices, not %s",
                        args->virtual_devices, s->device);
    }
    if (s->kind == SX_STRATEGY_ONE_DEVICE && (wanted > 1 || args->virtual_devices > 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "one-device strategy with %d devices; use a mirrored strategy",
                        SX_MAX(wanted, args->virtual_devices));
    }
    if (!is_plugin(s)) {
        return count_on_host(s, wish, wanted);
    }
    count_on_plugin(s, wish, wanted);
    return SX_OK;
}

/* ---- A TPU ---- */

static sx_status refuse_remote(const sx_tpu_cluster *c)
{
    const char *type = c->accelerator_type != NULL ? c->accelerator_type : "of unknown type";
    bool named = strcmp(c->name, c->workers[0]) != 0;
    return sx_error(SX_UNIMPLEMENTED,
                    "TPU %s (%s) is attached to another machine, at %s; Sextant must run on that "
                    "machine: %s%s%s",
                    c->name, type, c->master,
                    named ? "log in there (gcloud compute tpus tpu-vm ssh " : "log in there",
                    named ? c->name : "",
                    named ? ") and run it with --tpu local" : " and run it with --tpu local");
}

static sx_status check_cluster(const sx_tpu_cluster *c)
{
    if (!c->local) {
        return refuse_remote(c);
    }
    if (c->n_workers > 1) {
        return sx_error(SX_UNIMPLEMENTED,
                        "TPU %s%s%s spans %d hosts; only slices with a single host are supported",
                        c->name, c->accelerator_type != NULL ? ", " : "",
                        c->accelerator_type != NULL ? c->accelerator_type : "", c->n_workers);
    }
    return SX_OK;
}

/* A plugin given by its path is assumed to drive a TPU of this machine. */
static sx_status find_tpu(sx_strategy *s, const sx_strategy_wish *wish)
{
    const sx_tpu_request request = {.struct_size = sizeof(request),
                                    .tpu = wish->tpu,
                                    .zone = wish->zone,
                                    .project = wish->project,
                                    .master = wish->master};
    bool asked = is_given(wish->tpu) || is_given(wish->master);
    sx_tpu_cluster cluster = {0};
    if (!s->spec.is_tpu || (wish->args.pjrt_plugin != NULL && !asked)) {
        return SX_OK;
    }
    sx_status status = sx_tpu_find(&request, SX_PCI_DEVICES, &s->arena, &cluster, &s->explanation);
    return status == SX_OK ? check_cluster(&cluster) : status;
}

/* ---- Opening ---- */

static sx_status keep_text(sx_strategy *s, const char *text, const char **out)
{
    *out = text != NULL ? sx_arena_strdup(&s->arena, text) : NULL;
    return text == NULL || *out != NULL ? SX_OK : sx_no_memory("for a strategy");
}

static sx_status take_options(sx_strategy *s, const sx_strategy_args *args)
{
    sx_platform_options *p = &s->session.platform;
    s->session.device = s->spec.backend;
    p->plugin_name = s->spec.plugin_name;
    SX_TRY(parse_batch_norm(s, args->batch_norm, &p->batch_norm));
    SX_TRY(keep_text(s, args->pjrt_plugin, &p->plugin_path));
    SX_TRY(keep_text(s, args->python, &p->python));
    SX_TRY(keep_text(s, args->dump_stablehlo, &p->dump_dir));
    return p->dump_dir != NULL ? sx_dir_create(p->dump_dir) : SX_OK;
}

/* Opens the plugin, to count its devices, and keeps it open. */
static sx_status open_plugin(sx_strategy *s)
{
    if (!is_plugin(s)) {
        return SX_OK;
    }
    SX_TRY(sx_device_open(&s->spec, &s->session.platform, &s->held));
    int n = s->held->n_devices;
    s->replicas = s->replicas > 0 ? s->replicas : n;
    if (s->replicas > n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas requested, but %s has %d device%s",
                        s->replicas, s->device, n, n == 1 ? "" : "s");
    }
    s->session.platform.replicas = s->replicas;
    return SX_OK;
}

static void choose_kind(sx_strategy *s, const sx_strategy_wish *wish)
{
    bool several = wish->args.replicas > 1 || wish->args.virtual_devices > 0 || s->spec.devices > 1;
    s->kind = wish->kind != SX_STRATEGY_AS_SAID ? wish->kind
              : s->spec.is_tpu                  ? SX_STRATEGY_TPU
              : several                         ? SX_STRATEGY_MIRRORED
                                                : SX_STRATEGY_ONE_DEVICE;
}

static sx_status describe(sx_strategy *s)
{
    bool virtual = !is_plugin(s) && s->kind == SX_STRATEGY_MIRRORED;
    s->text = sx_arena_printf(&s->arena, "%s: %d %s%s on %s", sx_strategy_name(s), s->replicas,
                              virtual ? "virtual device" : "replica", s->replicas == 1 ? "" : "s",
                              s->device);
    if (s->text != NULL) {
        s->explanation = sx_arena_printf(&s->arena, "%s%s\n",
                                         s->explanation != NULL ? s->explanation : "", s->text);
    }
    return s->text != NULL && s->explanation != NULL ? SX_OK : sx_no_memory("for a strategy");
}

static sx_status create(sx_strategy *s, const sx_strategy_wish *wish)
{
    SX_TRY(choose_device(s, wish));
    choose_kind(s, wish);
    SX_TRY(check_plugin_options(s, &wish->args));
    SX_TRY(count_replicas(s, wish));
    SX_TRY(find_tpu(s, wish));
    SX_TRY(take_options(s, &wish->args));
    SX_TRY(open_plugin(s));
    return describe(s);
}

sx_status sx_strategy_create(const sx_strategy_wish *wish, sx_strategy **out_strategy)
{
    sx_strategy *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a strategy");
    }
    atomic_init(&s->refs, 1);
    sx_arena_init(&s->arena, 0);
    sx_status status = create(s, wish);
    if (wish->explanation != NULL && s->explanation != NULL) {
        sx_buf_puts(wish->explanation, s->explanation);
    }
    if (status != SX_OK) {
        sx_strategy_release(s);
        return status;
    }
    *out_strategy = s;
    return SX_OK;
}

/* ---- Public functions ---- */

sx_status sx_one_device_strategy_at(const sx_strategy_args *args, sx_strategy **out_strategy)
{
    SX_TAKE_ARGS(sx_strategy_args, args);
    const sx_strategy_wish wish = {.kind = SX_STRATEGY_ONE_DEVICE, .args = *args};
    return sx_strategy_create(&wish, out_strategy);
}

sx_status sx_mirrored_strategy_at(const sx_strategy_args *args, sx_strategy **out_strategy)
{
    SX_TAKE_ARGS(sx_strategy_args, args);
    const sx_strategy_wish wish = {.kind = SX_STRATEGY_MIRRORED, .args = *args};
    return sx_strategy_create(&wish, out_strategy);
}

sx_status sx_tpu_strategy_at(const sx_tpu_strategy_args *args, sx_strategy **out_strategy)
{
    SX_TAKE_ARGS(sx_tpu_strategy_args, args);
    const sx_strategy_wish wish = {.kind = SX_STRATEGY_TPU,
                                   .args = {.replicas = args->replicas,
                                            .pjrt_plugin = args->pjrt_plugin,
                                            .python = args->python,
                                            .dump_stablehlo = args->dump_stablehlo,
                                            .batch_norm = args->batch_norm},
                                   .tpu = args->tpu,
                                   .zone = args->zone,
                                   .project = args->project,
                                   .master = args->master};
    return sx_strategy_create(&wish, out_strategy);
}

sx_strategy *sx_strategy_retain(sx_strategy *strategy)
{
    atomic_fetch_add(&strategy->refs, 1);
    return strategy;
}

void sx_strategy_release(sx_strategy *strategy)
{
    if (strategy != NULL && atomic_fetch_sub(&strategy->refs, 1) == 1) {
        sx_platform_close(strategy->held);
        sx_arena_deinit(&strategy->arena);
        sx_free(strategy);
    }
}

sx_status sx_strategy_apply(const sx_strategy *strategy, sx_session_options *options)
{
    const sx_platform_options *from = &strategy->session.platform;
    sx_platform_options *to = &options->platform;
    int shards = strategy->session.shards;
    if (shards > 0 && options->shards > 0 && options->shards != shards) {
        return disagree("shards", options->shards, "the number of virtual devices", shards);
    }
    options->device = strategy->session.device;
    options->shards = shards > 0 ? shards : options->shards;
    to->plugin_path = from->plugin_path;
    to->plugin_name = from->plugin_name;
    to->python = from->python;
    to->dump_dir = from->dump_dir;
    to->virtual_devices = from->virtual_devices;
    to->replicas = from->replicas;
    to->batch_norm = from->batch_norm;
    return SX_OK;
}

const char *sx_strategy_device(const sx_strategy *strategy)
{
    return strategy->device;
}

const char *sx_strategy_batch_norm(const sx_strategy *strategy)
{
    bool own = strategy->session.platform.batch_norm == SX_BATCH_NORM_REPLICA;
    return own ? "replica" : "sync";
}

int sx_strategy_num_replicas_in_sync(const sx_strategy *strategy)
{
    return strategy->replicas;
}

const char *sx_strategy_name(const sx_strategy *strategy)
{
    static const char *const names[] = {"as said", "one-device", "mirrored", "tpu"};
    return names[strategy->kind];
}

const char *sx_strategy_text(const sx_strategy *strategy)
{
    return strategy->text;
}

const char *sx_strategy_explanation(const sx_strategy *strategy)
{
    return strategy->explanation;
}
