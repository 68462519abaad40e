/* sextant devices */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "distribute/resolver.h"
#include "io/json_text.h"
#include "run_args.h"
#include "terminal.h"

typedef struct options {
    const char *type;
    bool json;
    sx_device_args device_args;
} options;

static const sx_option rows[] = {
    {"type", SX_OPTION_CHOICE, SX_OPT(options, type), "list only devices of this type",
     .choices = "CPU|GPU|TPU"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print a JSON object"},
    SX_DEVICE_NAME_ROWS(options),
};

/* ---- Text output ---- */

/* "TPU v5 lite, chip (0,1,0), core 0" */
static void put_kind(sx_buf *out, const sx_device_info *d)
{
    sx_buf_puts(out, d->kind);
    for (int i = 0; i < d->n_coords; i++) {
        sx_buf_printf(out, "%s%lld", i == 0 ? ", chip (" : ",", (long long)d->coords[i]);
    }
    sx_buf_puts(out, d->n_coords > 0 ? ")" : "");
    if (d->core_on_chip >= 0) {
        sx_buf_printf(out, ", core %d", d->core_on_chip);
    }
}

static void print_device(const sx_device_info *d, int width)
{
    sx_buf memory, kind;
    sx_buf_init(&memory, 256);
    sx_buf_init(&kind, 4096);
    if (d->memory_bytes > 0) {
        sx_buf_put_size(&memory, (double)d->memory_bytes);
    }
    put_kind(&kind, d);
    printf("%-*s  %-14s %10s  %s  %s\n", width, d->device, d->name,
           d->memory_bytes > 0 ? sx_buf_text(&memory) : "-", d->full_name, sx_buf_text(&kind));
    sx_buf_deinit(&memory);
    sx_buf_deinit(&kind);
}

/* The wording is that of TensorFlow's tpu_system_metadata. */
static void print_tpu(const sx_device_list *list)
{
    if (list->tpu_cores > 0) {
        printf("Found TPU system:\n*** Num TPU Cores: %d\n*** Num TPU Workers: %d\n"
               "*** Num TPU Cores Per Worker: %d\n",
               list->tpu_cores, list->tpu_workers, list->tpu_cores_per_worker);
    }
}

static int longest_device(const sx_device_list *list)
{
    size_t longest = 0;
    for (int i = 0; i < list->n_devices; i++) {
        longest = SX_MAX(longest, strlen(list->devices[i].device));
    }
    for (int i = 0; i < list->n_missing; i++) {
        longest = SX_MAX(longest, strlen(list->missing[i].device));
    }
    return (int)longest;
}

static void print_list(const sx_device_list *list, const char *type)
{
    int width = longest_device(list);
    for (int i = 0; i < list->n_devices; i++) {
        print_device(&list->devices[i], width);
    }
    for (int i = 0; i < list->n_missing; i++) {
        printf("%-*s  none           %s\n", width, list->missing[i].device,
               list->missing[i].reason);
    }
    if (list->n_devices + list->n_missing == 0) {
        printf("no device of type %s\n", type);
    }
    print_tpu(list);
}

/* ---- JSON output ---- */

static json_t *device_to_json(const sx_device_info *d)
{
    json_t *coords = json_array();
    for (int i = 0; i < d->n_coords; i++) {
        json_array_append_new(coords, json_integer(d->coords[i]));
    }
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:o}", "device", d->device, "name",
                  d->name, "full_name", d->full_name, "type", d->type, "kind", d->kind,
                  "memory_bytes", (json_int_t)d->memory_bytes, "memory_in_use_bytes",
                  (json_int_t)d->memory_in_use_bytes, "process", d->process, "coords", coords);
    if (d->core_on_chip >= 0) {
        json_object_set_new(object, "core_on_chip", json_integer(d->core_on_chip));
    }
    return object;
}

static json_t *cluster_to_json(const sx_tpu_cluster *c)
{
    json_t *workers = json_array();
    for (int i = 0; i < c->n_workers; i++) {
        json_array_append_new(workers, json_string(c->workers[i]));
    }
    return json_pack("{s:b, s:s, s:s?, s:s, s:o}", "local", c->local, "name", c->name,
                     "accelerator_type", c->accelerator_type, "master", c->master, "workers",
                     workers);
}

static sx_status print_json(const sx_device_list *list, const sx_tpu_cluster *cluster)
{
    json_t *devices = json_array(), *missing = json_array();
    for (int i = 0; i < list->n_devices; i++) {
        json_array_append_new(devices, device_to_json(&list->devices[i]));
    }
    for (int i = 0; i < list->n_missing; i++) {
        json_array_append_new(missing, json_pack("{s:s, s:s}", "device", list->missing[i].device,
                                                 "reason", list->missing[i].reason));
    }
    json_t *root = json_pack("{s:o, s:o, s:i, s:i, s:i}", "devices", devices, "missing", missing,
                             "tpu_cores", list->tpu_cores, "tpu_workers", list->tpu_workers,
                             "tpu_cores_per_worker", list->tpu_cores_per_worker);
    if (cluster != NULL) {
        json_object_set_new(root, "cluster", cluster_to_json(cluster));
    }
    char *text = NULL;
    sx_status status = sx_json_text(root, JSON_INDENT(2), &text);
    json_decref(root);
    SX_TRY(status);
    puts(text);
    sx_text_free(text);
    return SX_OK;
}

/* ---- The TPU that options or the environment name ---- */

static bool names_tpu(const sx_device_args *a)
{
    return a->tpu != NULL || a->master != NULL || a->tpu_zone != NULL || a->project != NULL;
}

/* A requested TPU must exist; with --explain alone the result is only printed. */
static sx_status find_tpu(sx_invocation *inv, const options *o, sx_tpu_cluster *out, bool *found)
{
    const sx_device_args *a = &o->device_args;
    const sx_tpu_request request = {.struct_size = sizeof(request),
                                    .tpu = a->tpu,
                                    .zone = a->tpu_zone,
                                    .project = a->project,
                                    .master = a->master};
    const char *explanation = NULL;
    sx_status status = sx_tpu_find(&request, SX_PCI_DEVICES, &inv->arena, out, &explanation);
    bool told = a->explain || (status == SX_OK && !out->local && !o->json);
    if (told && explanation != NULL) {
        fputs(explanation, a->explain ? stderr : stdout);
    }
    *found = status == SX_OK;
    if (!names_tpu(a)) {
        sx_status_free(status);
        return SX_OK;
    }
    return sx_status_code(status) == SX_INVALID_ARGUMENT ? sx_usage(inv, status) : status;
}

static sx_status list(sx_invocation *inv, const char *device, const sx_tpu_cluster *cluster)
{
    const options *o = inv->options;
    const sx_device_args *a = &o->device_args;
    sx_device_list *devices = NULL;
    sx_status status = sx_list_devices(
        &devices, .device = device, .type = o->type, .pjrt_plugin = a->pjrt_plugin,
        .python = a->python, .virtual_devices = (int)a->virtual_devices,
        .device_options = a->device_options, .gpu_memory_limit = a->gpu_memory_limit);
    if (status != SX_OK) {
        return sx_status_code(status) == SX_INVALID_ARGUMENT ? sx_usage(inv, status) : status;
    }
    if (o->json) {
        status = print_json(devices, cluster);
    } else {
        print_list(devices, o->type);
    }
    sx_device_list_free(devices);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const sx_device_args *a = &o->device_args;
    const char *device = a->device;
    sx_tpu_cluster cluster = {0};
    bool found = false, asked = names_tpu(a);
    if (asked || a->explain) {
        SX_TRY(find_tpu(inv, o, &cluster, &found));
    }
    if (asked && !cluster.local) {
        return o->json ? print_json(&(sx_device_list){0}, &cluster) : SX_OK;
    }
    return list(inv, asked && device == NULL ? "tpu" : device, found ? &cluster : NULL);
}

const sx_command sx_command_devices = {
    .name = "devices",
    .summary = "list the devices of this machine",
    .words = "",
    .about = "Kinds of devices that are unavailable are listed with the reason. --tpu, --master "
             "and --explain resolve a TPU as TensorFlow's TPUClusterResolver does.",
    .examples = "  sextant devices --type TPU\n"
                "  sextant devices --device pjrt:cpu --virtual-devices 4 --json\n"
                "  sextant devices --tpu my-tpu --tpu-zone us-central1-b --project p1 --explain",
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
