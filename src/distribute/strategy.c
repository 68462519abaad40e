/* See strategy.h. */
#include "distribute/strategy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "distribute/device_list.h"
#include "distribute/device_choice.h"
#include "distribute/device_spec.h"
#include "distribute/resolver.h"
#include "graph/device_name.h"
#include "io/path.h"

struct sx_strategy {
    atomic_int refs;
    sx_arena arena; /* for strings */
    sx_strategy_kind kind;
    sx_device_spec spec;
    sx_device_choice chosen;    /* devices given by name; n is 0 if there are none */
    sx_device_list_spec list;   /* those that a program is placed on */
    sx_session_options session; /* device, platform, shards */
    int replicas;               /* 0 = not known yet: all devices */
    const int *numbers;         /* [replicas] of a plugin: of its devices */
    sx_platform *held;          /* keeps the plugin's client open; NULL = no plugin */
    sx_process_plan plan;       /* which process this is */
    sx_processes *processes;    /* NULL = it is alone */
    const char *device, *text, *explanation;
};

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- The device ---- */

static bool is_plugin(const sx_strategy *s)
{
    return strcmp(s->spec.backend, "pjrt") == 0;
}

/* Whether PJRT devices are among those that a program runs on. */
static bool has_plugin(const sx_strategy *s)
{
    return is_plugin(s) || s->list.plugin.backend != NULL;
}

/* Whether `cpu` is among them. */
static bool has_cpu(const sx_strategy *s)
{
    bool any = strcmp(s->spec.backend, "cpu") == 0;
    for (int i = 0; i < s->list.n_devices; i++) {
        any = any || strcmp(s->list.devices[i].backend, "cpu") == 0;
    }
    return any;
}

/* By sx_strategy_kind. */
static const char *const kind_names[] = {"as said", "one-device",      "mirrored",
                                         "tpu",     "central-storage", "placed"};

/* What says that the program is placed, on several devices, or with a wish about how; NULL: nothing
 * does. Without memory it is "device". */
static const char *placed_by(sx_strategy *s, const char *text, const sx_strategy_wish *wish)
{
    const sx_strategy_args *args = &wish->args;
    if (sx_is_device_list(text)) {
        const char *why = sx_arena_printf(&s->arena, "the list of devices \"%.200s\"", text);
        return why != NULL ? why : "device";
    }
    return args->inter_op > 0                 ? "inter_op"
           : args->micro_batches > 0          ? "micro_batches"
           : args->log_device_placement       ? "log_device_placement"
           : args->strict_placement           ? "placement without soft placement"
           : wish->kind == SX_STRATEGY_PLACED ? "the strategy placed"
                                              : NULL;
}

/* What shares batches, which a program that is placed does not; NULL: nothing. */
static const char *sharing(const sx_strategy *s, const sx_strategy_wish *wish)
{
    return s->plan.count > 1                ? "several processes"
           : wish->args.replicas > 1        ? "replicas"
           : wish->args.virtual_devices > 0 ? "virtual_devices"
           : s->chosen.n > 0                ? "devices"
           : wish->kind == SX_STRATEGY_MIRRORED || wish->kind == SX_STRATEGY_TPU ||
                   wish->kind == SX_STRATEGY_CENTRAL_STORAGE
               ? kind_names[wish->kind]
               : NULL;
}

/* Takes the list of devices, and how programs are placed on them. `why`: what asks for it. */
static sx_status place(sx_strategy *s, const char *text, const char *why,
                       const sx_strategy_wish *wish)
{
    const sx_strategy_args *args = &wish->args;
    sx_device_list_spec *list = &s->list;
    SX_TRY(sx_device_list_parse(text, &s->arena, list));
    const int n_plugin = list->plugin.devices;
    if (sharing(s, wish) != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s places a program on devices by the scopes of its model, and %s shares "
                        "batches among them: give one or the other",
                        why, sharing(s, wish));
    }
    if (wish->kind == SX_STRATEGY_ONE_DEVICE && (list->n_devices > 1 || n_plugin > 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "device \"%s\" names several devices, expected one",
                        text);
    }
    if (n_plugin > 1 && wish->kind != SX_STRATEGY_PLACED && !sx_is_device_list(text)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s is for a program that is placed on one device or on a list, such as "
                        "cpu:0,cpu:1; the %d devices of \"%s\" share each batch",
                        why, n_plugin, text);
    }
    s->kind = SX_STRATEGY_PLACED;
    s->replicas = 1;
    s->spec = (sx_device_spec){.backend = "placed",
                               .plugin_name = list->plugin.plugin_name,
                               .is_tpu = list->plugin.is_tpu};
    s->session.platform.placed = (sx_placed_options){.devices = list->devices,
                                                     .n_devices = list->n_devices,
                                                     .threads = args->intra_op,
                                                     .at_once = args->inter_op,
                                                     .micro_batches = args->micro_batches,
                                                     .strict = args->strict_placement,
                                                     .logs = args->log_device_placement};
    if (list->plugin.plugin_name != NULL && strcmp(list->plugin.plugin_name, "cpu") == 0) {
        s->session.platform.pjrt.virtual_devices = n_plugin;
    }
    return SX_OK;
}

/* Chooses the device and the kind of strategy. */
static sx_status choose_device(sx_strategy *s, const sx_strategy_wish *wish)
{
    const bool tpu = wish->kind == SX_STRATEGY_TPU || is_given(wish->tpu) ||
                     is_given(wish->master) || is_given(wish->zone) || is_given(wish->project);
    const char *text = is_given(wish->args.device)      ? wish->args.device
                       : tpu                            ? "tpu"
                       : wish->args.pjrt_plugin != NULL ? "pjrt"
                                                        : sx_default_backend();
    if (is_given(wish->args.devices)) {
        SX_TRY(sx_device_choice_parse(wish->args.devices, &s->arena, &s->chosen));
    }
    const char *why = placed_by(s, text, wish);
    if (why != NULL) {
        SX_TRY(place(s, text, why, wish));
    } else {
        SX_TRY(sx_device_spec_parse(text, &s->arena, &s->spec));
    }
    if (s->chosen.n > 0 && !is_given(wish->args.device) && wish->args.pjrt_plugin == NULL && !tpu) {
        s->spec = s->chosen.spec;
        s->spec.devices = 0;
    }
    if (tpu && !s->spec.is_tpu) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device \"%s\" cannot be combined with a TPU (--tpu, --tpu-zone, "
                        "--project, --master)",
                        text);
    }
    s->device = s->kind == SX_STRATEGY_PLACED ? sx_arena_strdup(&s->arena, text)
                                              : sx_device_spec_text(&s->spec, &s->arena);
    if (s->device == NULL) {
        return sx_no_memory("for a strategy");
    }
    if (s->kind == SX_STRATEGY_PLACED) {
        return SX_OK;
    }
    bool several = s->plan.count > 1 || wish->args.replicas > 1 || wish->args.virtual_devices > 0 ||
                   s->spec.devices > 1 || s->chosen.n > 1;
    s->kind = wish->kind != SX_STRATEGY_AS_SAID                ? wish->kind
              : s->spec.is_tpu && (several || !wish->one_core) ? SX_STRATEGY_TPU
              : several                                        ? SX_STRATEGY_MIRRORED
                                                               : SX_STRATEGY_ONE_DEVICE;
    return SX_OK;
}

/* ---- The number of replicas ---- */

static sx_status check_range(const char *name, int value)
{
    return value >= 0 && value <= SX_MAX_REPLICAS
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "%s is %d, expected 1 to %d", name, value,
                          SX_MAX_REPLICAS);
}

static sx_status check_placement(const sx_strategy_args *args)
{
    const struct {
        const char *name, *zero;
        int value, most;
    } rows[] = {{"inter_op", "one on each device", args->inter_op, 4096},
                {"intra_op", "the processors, divided among the cpus", args->intra_op, 4096},
                {"micro_batches", "batches are not divided", args->micro_batches, SX_MAX_REPLICAS}};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].value < 0 || rows[i].value > rows[i].most) {
            return sx_error(SX_INVALID_ARGUMENT, "%s is %d, expected 1 to %d, or 0: %s",
                            rows[i].name, rows[i].value, rows[i].most, rows[i].zero);
        }
    }
    return SX_OK;
}

static sx_status disagree(const char *a, int x, const char *b, int y)
{
    return sx_error(SX_INVALID_ARGUMENT, "%s is %d, but %s is %d", a, x, b, y);
}

static sx_status count_replicas(sx_strategy *s, const sx_strategy_args *args)
{
    const int wanted = args->replicas > 0    ? args->replicas
                       : s->spec.devices > 0 ? s->spec.devices
                                             : s->chosen.n;
    const int n_virtual = args->virtual_devices;
    const char *plugin = s->spec.plugin_name; /* NULL: given by its path, or not a plugin */
    SX_TRY(check_range("replicas", args->replicas));
    SX_TRY(check_range("virtual_devices", n_virtual));
    if (s->spec.devices > 0 && args->replicas > 0 && args->replicas != s->spec.devices) {
        return disagree("replicas", args->replicas, "the number of devices in its name",
                        s->spec.devices);
    }
    if (s->chosen.n > 0 && wanted != s->chosen.n) {
        return disagree("the number of replicas", wanted, "the number of devices that are named",
                        s->chosen.n);
    }
    if (s->chosen.n > 0 && n_virtual > 0) {
        SX_TRY(sx_device_choice_check(&s->chosen, "virtual_devices", n_virtual));
    }
    if (n_virtual > 0 && is_plugin(s) && plugin != NULL &&
        (strcmp(plugin, "tpu") == 0 || strcmp(plugin, "cuda") == 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "virtual_devices is %d: only cpu, host and pjrt:cpu support virtual "
                        "devices, not %s",
                        n_virtual, s->device);
    }
    if (s->kind == SX_STRATEGY_ONE_DEVICE && (wanted > 1 || n_virtual > 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "one-device strategy with %d devices; use a mirrored strategy",
                        SX_MAX(wanted, n_virtual));
    }
    if (is_plugin(s)) { /* the given number; else one, or all if the strategy needs several */
        const bool all =
            s->kind == SX_STRATEGY_MIRRORED || s->kind == SX_STRATEGY_TPU || n_virtual > 0;
        const bool is_cpu = plugin != NULL && strcmp(plugin, "cpu") == 0;
        s->replicas = wanted > 0 ? wanted : all ? 0 : 1;
        const int most = s->chosen.n > 0 ? s->chosen.greatest + 1 : s->replicas;
        s->session.platform.pjrt.virtual_devices = n_virtual > 0        ? n_virtual
                                                   : is_cpu && most > 1 ? most
                                                                        : 0;
        return SX_OK;
    }
    if (s->chosen.n > 0 && strcmp(s->chosen.type, "CPU") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "devices \"%.200s\" are not of %s", s->chosen.text,
                        s->device);
    }
    if (wanted > n_virtual && n_virtual > 0) {
        return disagree("replicas", wanted, "virtual_devices", n_virtual);
    }
    /* On the host a replica is a part of the batch: a shard on `cpu`; `host` computes the whole
     * batch, which is equivalent. */
    const bool sharded = strcmp(s->spec.backend, "cpu") == 0 && (n_virtual > 0 || wanted > 1);
    s->replicas = wanted > 0 ? wanted : SX_MAX(n_virtual, 1);
    s->session.shards = sharded ? s->replicas : 0;
    return SX_OK;
}

/* ---- A TPU ---- */

/* Finds the TPU, which must be of this machine. A plugin given by its path is assumed to drive
 * one. */
static sx_status find_tpu(sx_strategy *s, const sx_strategy_wish *wish)
{
    const sx_tpu_request request = {.struct_size = sizeof(request),
                                    .tpu = wish->tpu,
                                    .zone = wish->zone,
                                    .project = wish->project,
                                    .master = wish->master};
    bool asked = is_given(wish->tpu) || is_given(wish->master);
    sx_tpu_cluster c = {0};
    if (!s->spec.is_tpu || (wish->args.pjrt_plugin != NULL && !asked)) {
        return SX_OK;
    }
    SX_TRY(sx_tpu_find(&request, SX_PCI_DEVICES, &s->arena, &c, &s->explanation));
    if (!c.local) {
        bool named = strcmp(c.name, c.workers[0]) != 0;
        return sx_error(SX_UNIMPLEMENTED,
                        "TPU %s (%s) is attached to another machine, at %s; Sextant must run on "
                        "that machine: log in there%s%s%s and run it with --tpu local",
                        c.name, c.accelerator_type != NULL ? c.accelerator_type : "of unknown type",
                        c.master, named ? " (gcloud compute tpus tpu-vm ssh " : "",
                        named ? c.name : "", named ? ")" : "");
    }
    if (c.n_workers > 1 && c.n_workers != s->plan.count) {
        return sx_error(
            SX_UNIMPLEMENTED,
            "TPU %s%s%s spans %d hosts; start a process on each of them, as process_id I "
            "of num_processes %d",
            c.name, c.accelerator_type != NULL ? ", " : "",
            c.accelerator_type != NULL ? c.accelerator_type : "", c.n_workers, c.n_workers);
    }
    return SX_OK;
}

/* ---- Creating ---- */

static sx_status keep_text(sx_strategy *s, const char *text, const char **out)
{
    *out = text != NULL ? sx_arena_strdup(&s->arena, text) : NULL;
    return text == NULL || *out != NULL ? SX_OK : sx_no_memory("for a strategy");
}

static sx_status check_plugin_option(const sx_strategy *s, const char *name, const char *value)
{
    return value == NULL || has_plugin(s)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "%s \"%.200s\" is only for PJRT devices (tpu, cuda, pjrt:NAME), not "
                          "for %s",
                          name, value, s->device);
}

static sx_status take_options(sx_strategy *s, const sx_strategy_args *args)
{
    sx_pjrt_options *p = &s->session.platform.pjrt;
    const bool replica = args->batch_norm != NULL && strcmp(args->batch_norm, "replica") == 0;
    if (args->batch_norm != NULL && !replica && strcmp(args->batch_norm, "sync") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "batch_norm is \"%.100s\", expected sync or replica",
                        args->batch_norm);
    }
    if (replica && !is_plugin(s)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "batch_norm replica is not supported on %s, which uses the moments of the "
                        "whole batch (sync); it requires PJRT devices, such as --device "
                        "pjrt:cpu:4",
                        s->device);
    }
    s->session.device = s->spec.backend;
    p->plugin_name = s->spec.plugin_name;
    s->session.own_moments = replica;
    s->session.platform.cpu.threads = args->intra_op;
    SX_TRY(keep_text(s, args->pjrt_plugin, &p->plugin_path));
    SX_TRY(keep_text(s, args->python, &p->python));
    SX_TRY(keep_text(s, args->dump_stablehlo, &p->dump_dir));
    SX_TRY(keep_text(s, args->device_options, &p->device_options));
    SX_TRY(keep_text(s, args->xla_options, &p->xla_options));
    p->gpu_memory_limit = args->gpu_memory_limit;
    return p->dump_dir != NULL ? sx_dir_create(p->dump_dir) : SX_OK;
}

/* Whether the opened plugin's devices are of a type, "GPU". */
static bool is_of_type(const sx_strategy *s, const char *type)
{
    return s->held != NULL && sx_device_is_of_type(s->held->devices[0]->name, type);
}

/* Joins the other processes, whose devices the plugin joins. */
static sx_status join_processes(sx_strategy *s, const sx_strategy_args *args)
{
    if (s->plan.count == 1) {
        return SX_OK;
    }
    if (!is_plugin(s)) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%d processes can share batches on PJRT devices only (tpu, cuda, "
                        "pjrt:NAME), not on %s%s",
                        s->plan.count, s->device,
                        args->coordinator == NULL ? "; unset TF_CONFIG to use this process alone"
                                                  : "");
    }
    if (s->chosen.n > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "devices \"%.200s\": each of %d processes uses the first of its own; give "
                        "their number, replicas",
                        s->chosen.text, s->plan.count);
    }
    const sx_processes_options options = {.plan = &s->plan,
                                          .join_secs = args->join_timeout_secs,
                                          .lost_secs = args->lost_timeout_secs,
                                          .stop = args->stop};
    SX_TRY(sx_processes_join(&options, &s->processes));
    s->session.platform.pjrt.processes = sx_processes_of_pjrt(s->processes);
    return SX_OK;
}

/* With several processes, the replicas are those of all. */
static sx_status count_all(sx_strategy *s)
{
    char each[32];
    snprintf(each, sizeof(each), "%d", s->replicas);
    SX_TRY(sx_processes_compare(s->processes, "its number of devices", each));
    SX_TRY(check_range("the number of replicas in all processes", s->replicas * s->plan.count));
    s->replicas *= s->plan.count;
    return SX_OK;
}

/* Opens the plugin to count its devices, and keeps it open. */
static sx_status open_plugin(sx_strategy *s)
{
    SX_TRY(sx_device_open(&s->spec, &s->session.platform, &s->held));
    int n = s->held->n_devices;
    s->replicas = s->replicas > 0 ? s->replicas : n;
    if (s->replicas > n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas requested, but %s has %d device%s",
                        s->replicas, s->device, n, n == 1 ? "" : "s");
    }
    if (s->processes != NULL) {
        SX_TRY(count_all(s));
    }
    s->session.platform.pjrt.replicas = s->replicas;
    if (s->chosen.n == 0) {
        int *first = sx_arena_array(&s->arena, s->replicas, int);
        for (int i = 0; first != NULL && i < s->replicas; i++) {
            first[i] = i;
        }
        s->numbers = first;
        return first != NULL ? SX_OK : sx_no_memory("for a strategy");
    }
    s->numbers = s->chosen.numbers;
    if (!is_of_type(s, s->chosen.type)) {
        return sx_error(SX_INVALID_ARGUMENT, "devices \"%.200s\" are not of %s, which has %s",
                        s->chosen.text, s->device, s->held->devices[0]->name);
    }
    s->session.platform.pjrt.chosen = s->chosen.numbers;
    s->session.platform.pjrt.n_chosen = s->chosen.n;
    return sx_device_choice_check(&s->chosen, s->device, n);
}

/* Opens the plugin of a list, and keeps it open: whether it has the devices, under the numbers that
 * they are given. */
static sx_status open_listed(sx_strategy *s)
{
    const sx_device_spec *plugin = &s->list.plugin;
    sx_device_name name = SX_ANY_DEVICE;
    if (plugin->backend != NULL) {
        SX_TRY(sx_device_open(plugin, &s->session.platform, &s->held), "device \"%.200s\"",
               s->list.text);
        if (plugin->devices > s->held->n_devices) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "device \"%.200s\": %d devices of %s requested, "
                            "but the plugin has %d",
                            s->list.text, plugin->devices, s->held->devices[0]->name,
                            s->held->n_devices);
        }
        SX_TRY(sx_device_name_parse(s->held->devices[0]->name, &name));
    }
    return sx_device_list_check(&s->list, name.type);
}

/* How replicas add their sums; s is opened. */
static sx_status take_cross_device_ops(sx_strategy *s, const char *name)
{
    static const struct {
        const char *name;
        bool on_host, on_gpu, on_others;
    } ways[] = {{"auto", true, true, true},
                {"reduction-to-one-device", true, true, true},
                {"nccl", false, true, false},
                {"ring", false, false, false},
                {"hierarchical-copy", false, false, false}};
    for (size_t i = 0; name != NULL && i < SX_COUNT(ways); i++) {
        if (strcmp(name, ways[i].name) == 0) {
            const bool can = !is_plugin(s)          ? ways[i].on_host
                             : is_of_type(s, "GPU") ? ways[i].on_gpu
                                                    : ways[i].on_others;
            if (i > 0 && s->kind == SX_STRATEGY_PLACED) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "cross_device_ops %s is how replicas add their gradients; a "
                                "program that is placed on %s has none, and adds in its own order",
                                name, s->device);
            }
            s->session.platform.pjrt.ordered_sums = i == 1;
            return can ? SX_OK
                       : sx_error(SX_INVALID_ARGUMENT,
                                  "cross_device_ops %s: %s; use auto, or "
                                  "reduction-to-one-device for sums in a fixed order",
                                  name,
                                  !is_plugin(s) ? "virtual devices share one memory, where their "
                                                  "sums are added in a fixed tree"
                                                : "XLA chooses the algorithm of the device's "
                                                  "all-reduce (where it is NCCL's, the environment "
                                                  "variable NCCL_ALGO can)");
        }
    }
    return name == NULL ? SX_OK
                        : sx_error(SX_INVALID_ARGUMENT,
                                   "cross_device_ops is \"%.100s\", expected auto, "
                                   "reduction-to-one-device, nccl, ring or hierarchical-copy",
                                   name);
}

/* The device of the variables; s is opened. */
static sx_status take_parameter_device(sx_strategy *s, const char *name)
{
    sx_device_spec spec;
    const char *type = NULL;
    int number = 0;
    if (is_given(name)) {
        SX_TRY(sx_device_spec_parse_one(name, &spec, &type, &number), "parameter_device");
    }
    if (s->kind != SX_STRATEGY_CENTRAL_STORAGE) {
        return !is_given(name)
                   ? SX_OK
                   : sx_error(SX_INVALID_ARGUMENT,
                              "parameter_device \"%.100s\" is only for central storage", name);
    }
    if (is_plugin(s) && s->replicas > 1) {
        return sx_error(SX_UNIMPLEMENTED,
                        "central storage over %d devices of %s: a program of several PJRT devices "
                        "needs its variables on each; use mirrored, which computes the same",
                        s->replicas, s->device);
    }
    const int own = s->chosen.n > 0 && is_plugin(s) ? s->chosen.numbers[0] : 0;
    const bool computes =
        !is_given(name) ||
        (number == own && (is_plugin(s) ? is_of_type(s, type) : strcmp(type, "CPU") == 0));
    if (!computes) {
        return sx_error(SX_UNIMPLEMENTED,
                        "parameter_device \"%.100s\": the variables of programs on %s are on its "
                        "device %d",
                        name, s->device, own);
    }
    return SX_OK;
}

/* ", 2 in each of 2 processes, of which this is 1"; "" if there is one. */
static const char *text_of_processes(sx_strategy *s)
{
    return s->processes == NULL
               ? ""
               : sx_arena_printf(&s->arena, ", %d in each of %d processes, of which this is %d",
                                 s->replicas / s->plan.count, s->plan.count, s->plan.index);
}

/* "mirrored: 2 replicas on pjrt:cpu", and what was chosen. */
static const char *describe(sx_strategy *s)
{
    const bool virtual = !is_plugin(s) && (s->kind == SX_STRATEGY_MIRRORED ||
                                           s->kind == SX_STRATEGY_CENTRAL_STORAGE);
    const bool ordered = s->session.platform.pjrt.ordered_sums && is_plugin(s);
    const char *processes = text_of_processes(s);
    return processes == NULL ? NULL
           : s->kind == SX_STRATEGY_PLACED
               ? sx_arena_printf(&s->arena, "placed: on %s", s->device)
               : sx_arena_printf(
                     &s->arena, "%s: %d %s%s on %s%s%s%s%s%s", sx_strategy_name(s), s->replicas,
                     virtual ? "virtual device" : "replica", s->replicas == 1 ? "" : "s", s->device,
                     processes, s->chosen.n > 0 ? ": " : "", s->chosen.n > 0 ? s->chosen.text : "",
                     ordered ? "; sums in a fixed order" : "",
                     s->kind == SX_STRATEGY_CENTRAL_STORAGE && virtual ? "; variables on cpu:0"
                                                                       : "");
}

static sx_status create(sx_strategy *s, const sx_strategy_wish *wish)
{
    const sx_process_wish processes = {.coordinator = wish->args.coordinator,
                                       .count = wish->args.num_processes,
                                       .index = wish->args.process_id,
                                       .from_environment = wish->from_environment};
    SX_TRY(sx_process_plan_make(&processes, &s->arena, &s->plan));
    SX_TRY(choose_device(s, wish));
    SX_TRY(check_plugin_option(s, "pjrt_plugin", wish->args.pjrt_plugin));
    SX_TRY(check_plugin_option(s, "python", wish->args.python));
    SX_TRY(check_plugin_option(s, "dump_stablehlo", wish->args.dump_stablehlo));
    SX_TRY(check_plugin_option(s, "device_options", wish->args.device_options));
    SX_TRY(check_plugin_option(s, "xla_options", wish->args.xla_options));
    if (wish->args.gpu_memory_limit < 0 || (wish->args.gpu_memory_limit > 0 && !has_plugin(s))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "gpu_memory_limit is %lld; expected a number of bytes, and a device whose "
                        "plugin can limit its memory (cuda), not %s",
                        (long long)wish->args.gpu_memory_limit, s->device);
    }
    SX_TRY(check_placement(&wish->args));
    if (s->kind != SX_STRATEGY_PLACED) {
        SX_TRY(count_replicas(s, &wish->args));
    }
    SX_TRY(find_tpu(s, wish));
    SX_TRY(take_options(s, &wish->args));
    SX_TRY(join_processes(s, &wish->args));
    if (is_plugin(s)) {
        sx_status status = open_plugin(s);
        SX_TRY(s->processes == NULL ? status : sx_processes_blame(s->processes, status));
    }
    if (s->kind == SX_STRATEGY_PLACED) {
        SX_TRY(open_listed(s));
    }
    SX_TRY(take_cross_device_ops(s, wish->args.cross_device_ops));
    SX_TRY(take_parameter_device(s, wish->args.parameter_device));
    s->text = describe(s);
    if (s->text != NULL) {
        s->explanation = sx_arena_printf(&s->arena, "%s%s%s\n", s->plan.explanation,
                                         s->explanation != NULL ? s->explanation : "", s->text);
    }
    return s->text != NULL && s->explanation != NULL ? SX_OK : sx_no_memory("for a strategy");
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
    const char *said = s->explanation != NULL ? s->explanation : s->plan.explanation;
    if (wish->explanation != NULL && said != NULL) {
        sx_buf_puts(wish->explanation, said);
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

sx_status sx_placed_strategy_at(const sx_strategy_args *args, sx_strategy **out_strategy)
{
    SX_TAKE_ARGS(sx_strategy_args, args);
    const sx_strategy_wish wish = {.kind = SX_STRATEGY_PLACED, .args = *args};
    return sx_strategy_create(&wish, out_strategy);
}

sx_status sx_central_storage_strategy_at(const sx_strategy_args *args, sx_strategy **out_strategy)
{
    SX_TAKE_ARGS(sx_strategy_args, args);
    const sx_strategy_wish wish = {.kind = SX_STRATEGY_CENTRAL_STORAGE, .args = *args};
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
                                            .batch_norm = args->batch_norm,
                                            .device_options = args->device_options,
                                            .xla_options = args->xla_options},
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
        if (sx_platform_close(strategy->held)) { /* else its plugin may still use their store */
            sx_processes_destroy(strategy->processes);
        }
        sx_arena_deinit(&strategy->arena);
        sx_free(strategy);
    }
}

sx_status sx_strategy_check_shards(const sx_strategy *strategy, int shards)
{
    const int n = strategy->replicas;
    const bool divides = is_plugin(strategy) || strategy->session.shards > 0;
    if (shards <= 0 || !divides || shards % n == 0) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "shards is %d, which %d %s cannot share equally; give a multiple of %d, such "
                    "as %d, and keep it for the whole run: results depend on the shards, not on "
                    "the devices",
                    shards, n, is_plugin(strategy) ? "replicas" : "virtual devices", n,
                    (shards / n + 1) * n);
}

sx_status sx_strategy_of_one(const sx_strategy_args *args, const char *what,
                             sx_strategy **out_strategy)
{
    if (args->device != NULL) {
        sx_arena arena;
        sx_device_spec spec;
        sx_arena_init(&arena, 0);
        sx_status status = sx_device_spec_parse(args->device, &arena, &spec);
        sx_arena_deinit(&arena);
        SX_TRY(status);
        if (spec.devices > 1) {
            return sx_error(SX_INVALID_ARGUMENT, "device \"%s\" is %d devices; %s runs on one",
                            args->device, spec.devices, what);
        }
    }
    return sx_strategy_create(&(sx_strategy_wish){.kind = SX_STRATEGY_ONE_DEVICE, .args = *args},
                              out_strategy);
}

sx_status sx_strategy_apply(const sx_strategy *strategy, sx_session_options *options)
{
    const sx_pjrt_options *from = &strategy->session.platform.pjrt;
    sx_pjrt_options *to = &options->platform.pjrt;
    SX_TRY(sx_strategy_check_shards(strategy, options->shards));
    if (options->platform.cpu.memory_limit_bytes > 0 && !has_cpu(strategy)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "memory_limit_bytes (--memory-limit) is of cpu; %s has no limit of memory%s",
            strategy->device,
            has_plugin(strategy) ? ", but a GPU: gpu_memory_limit (--gpu-memory-limit)" : "");
    }
    const int micro_batches = strategy->session.platform.placed.micro_batches;
    if (micro_batches > 0 && options->shards > 0 && options->shards != micro_batches) {
        return disagree("shards", options->shards, "micro_batches", micro_batches);
    }
    options->shards = micro_batches > 0 ? micro_batches : options->shards;
    if (strategy->session.platform.cpu.threads > 0 && strategy->kind != SX_STRATEGY_PLACED) {
        options->platform.cpu.threads = strategy->session.platform.cpu.threads;
    }
    options->platform.placed = strategy->session.platform.placed;
    options->device = strategy->session.device;
    options->shards = options->shards > 0 ? options->shards : strategy->session.shards;
    const char *cache_dir = to->cache_dir; /* the session's */
    *to = *from;
    to->cache_dir = cache_dir;
    /* XLA's CPU has as many threads as devices, if these are more than the processors, and the bits
     * of its products depend on them: with shards, they do not depend on the replicas. */
    const int named = strategy->chosen.n > 0 ? strategy->chosen.greatest + 1 : 0;
    if (options->shards > 0 && is_plugin(strategy) && is_of_type(strategy, "CPU")) {
        to->virtual_devices = SX_MAX(named, SX_MIN(options->shards, SX_MAX_REPLICAS));
    }
    if (strategy->processes != NULL) {
        options->give_up = sx_processes_give_up;
        options->give_up_user = strategy->processes;
    }
    options->own_moments = strategy->session.own_moments;
    return SX_OK;
}

sx_status sx_strategy_apply_apart(const sx_strategy *strategy, sx_session_options *options)
{
    SX_TRY(sx_strategy_apply(strategy, options));
    options->shards = 0;
    if (options->platform.pjrt.replicas > 1) {
        options->devices = strategy->replicas;
        options->platform.pjrt.replicas = 1;
        options->platform.pjrt.chosen = strategy->numbers;
        options->platform.pjrt.n_chosen = strategy->replicas;
    }
    return SX_OK;
}

sx_processes *sx_strategy_processes(const sx_strategy *strategy)
{
    return strategy->processes;
}

int sx_strategy_micro_batches(const sx_strategy *strategy)
{
    return strategy->session.platform.placed.micro_batches;
}

const char *sx_strategy_device(const sx_strategy *strategy)
{
    return strategy->device;
}

const char *sx_strategy_batch_norm(const sx_strategy *strategy)
{
    return strategy->session.own_moments ? "replica" : "sync";
}

int sx_strategy_num_replicas_in_sync(const sx_strategy *strategy)
{
    return strategy->replicas;
}

int sx_strategy_num_processes(const sx_strategy *strategy)
{
    return strategy->plan.count;
}

int sx_strategy_process_id(const sx_strategy *strategy)
{
    return strategy->plan.index;
}

const char *sx_strategy_name(const sx_strategy *strategy)
{
    return kind_names[strategy->kind];
}

sx_status sx_strategy_kind_of(const char *name, sx_strategy_kind *out)
{
    *out = SX_STRATEGY_AS_SAID;
    for (size_t i = 1; name != NULL && i < SX_COUNT(kind_names); i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (sx_strategy_kind)i;
            return SX_OK;
        }
    }
    return name == NULL ? SX_OK
                        : sx_error(SX_INVALID_ARGUMENT,
                                   "strategy is \"%.100s\", expected one-device, mirrored, tpu, "
                                   "central-storage or placed",
                                   name);
}

const char *sx_strategy_text(const sx_strategy *strategy)
{
    return strategy->text;
}

const char *sx_strategy_explanation(const sx_strategy *strategy)
{
    return strategy->explanation;
}
