/* Listing devices; see <sextant/distribute.h>. Each kind of device is opened, described and closed;
 * one that cannot be opened is listed as missing, with the reason. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sextant/distribute.h>

#include "backends/backend.h"
#include "backends/pjrt/plugin.h"
#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "distribute/device_spec.h"
#include "distribute/resolver.h"
#include "distribute/tpu_chips.h"
#include "io/path.h"

enum { MAX_DEVICES = 65536, MAX_MISSING = 64, NAME_BYTES = 64 };

/* The list and the arena for its contents. */
typedef struct owned {
    sx_device_list list; /* must be first: the list is freed by its address */
    sx_arena arena;
    sx_device_info *devices; /* [capacity] */
    int capacity;
    sx_missing_device *missing; /* [MAX_MISSING] */
} owned;

/* The kinds of devices, and their type if it is known before opening. */
static const struct {
    const char *device, *type;
} known[] = {
    {"cpu", "CPU"}, {"host", "CPU"}, {"tpu", "TPU"}, {"cuda", "GPU"}, {"pjrt:cpu", "CPU"},
};

/* ---- One device ---- */

/* Appends a device with its names; NULL if out of memory. */
static sx_device_info *add(owned *o, const char *name, const char *device, const char *kind)
{
    if (o->list.n_devices == o->capacity) {
        int capacity = o->capacity > 0 ? 2 * o->capacity : 16;
        sx_device_info *grown =
            capacity <= MAX_DEVICES ? sx_arena_array(&o->arena, capacity, sx_device_info) : NULL;
        if (grown == NULL) {
            return NULL;
        }
        if (o->devices != NULL) {
            memcpy(grown, o->devices, (size_t)o->capacity * sizeof(*grown));
        }
        o->devices = grown;
        o->capacity = capacity;
    }
    sx_device_info *info = &o->devices[o->list.n_devices++];
    const char *type = strncmp(name, "/device:", 8) == 0 ? name + 8 : name;
    info->name = sx_arena_strdup(&o->arena, name);
    info->full_name = sx_arena_printf(&o->arena, "/job:localhost/replica:0/task:0%s", name);
    info->type = sx_arena_strndup(&o->arena, type, strcspn(type, ":")); /* "/device:CPU:0" */
    info->device = sx_arena_strdup(&o->arena, device);
    info->kind = sx_arena_strdup(&o->arena, kind);
    bool all = info->name != NULL && info->full_name != NULL && info->type != NULL &&
               info->device != NULL && info->kind != NULL;
    return all ? info : NULL;
}

static bool has_plugin_options(const sx_list_devices_args *args)
{
    return args->device_options != NULL || args->gpu_memory_limit > 0;
}

/* Opens the device and adds what it has: its devices, or the virtual devices of `cpu`. */
static sx_status list_device(owned *o, const sx_list_devices_args *args, const char *device)
{
    const int n_virtual = args->virtual_devices;
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    const int64_t host_bytes = pages > 0 && page_bytes > 0 ? (int64_t)pages * page_bytes : 0;
    sx_device_spec spec;
    sx_platform *platform = NULL;
    SX_TRY(sx_device_spec_parse(device, &o->arena, &spec));
    if (has_plugin_options(args) && strcmp(spec.backend, "pjrt") != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device_options and gpu_memory_limit are for PJRT devices (tpu, cuda, "
                        "pjrt:NAME), not for %s",
                        device);
    }
    const sx_platform_options options = {
        .pjrt = {.plugin_path = args->pjrt_plugin,
                 .plugin_name = spec.plugin_name,
                 .python = args->python,
                 .device_options = args->device_options,
                 .gpu_memory_limit = args->gpu_memory_limit,
                 .virtual_devices = n_virtual > 0 ? n_virtual : spec.devices}};
    SX_TRY(sx_device_open(&spec, &options, &platform));
    const sx_backend *backend = platform->backend;
    const bool is_plugin = strcmp(backend->name, "pjrt") == 0;
    const bool split = n_virtual > 0 && strcmp(backend->name, "cpu") == 0;
    sx_status status = SX_OK;
    for (int i = 0; status == SX_OK && i < (split ? n_virtual : platform->n_devices); i++) {
        sx_device *d = platform->devices[split ? 0 : i];
        sx_memory_stats stats = {0};
        char name[NAME_BYTES], kind[256];
        snprintf(name, sizeof(name), "/device:CPU:%d", i);
        snprintf(kind, sizeof(kind), "virtual, part %d of %d of %s", i + 1, n_virtual, d->kind);
        sx_device_info *info = split ? add(o, name, "cpu", kind) : add(o, d->name, device, d->kind);
        if (info == NULL) {
            status = sx_no_memory("listing devices");
            break;
        }
        info->core_on_chip = is_plugin ? d->core_on_chip : -1;
        if (!split) {
            info->process = d->process;
            info->n_coords = d->n_coords;
            _Static_assert(sizeof(info->coords) == sizeof(d->coords), "copied with memcpy");
            memcpy(info->coords, d->coords, sizeof(info->coords));
            status = sx_device_get_memory_stats(d, &stats);
        }
        const bool is_host = strcmp(info->type, "CPU") == 0;
        info->memory_bytes = stats.limit_bytes > 0 || !is_host ? stats.limit_bytes : host_bytes;
        info->memory_in_use_bytes = stats.bytes_in_use;
    }
    sx_platform_close(platform);
    return status;
}

/* On a machine without a TPU chip, libtpu queries the cloud for minutes before it fails, which is
 * too long for a list. */
static sx_status check_chips(const sx_list_devices_args *args)
{
    char library[SX_PJRT_PATH_BYTES];
    const char *kind = NULL;
    int chips = 0;
    SX_TRY(sx_pjrt_find(&(sx_pjrt_wish){.name = "tpu", .python = args->python}, library));
    SX_TRY(sx_tpu_chips(SX_PCI_DEVICES, &chips, &kind));
    if (chips > 0 || strcmp(sx_path_basename(library), "libtpu.so") != 0) {
        return SX_OK;
    }
    return sx_error(SX_UNAVAILABLE,
                    "no TPU chip among " SX_PCI_DEVICES "; use --device tpu to try %s anyway",
                    library);
}

/* Like list_device(), but a device that cannot be opened is listed as missing. */
static sx_status try_device(owned *o, const sx_list_devices_args *args, const char *device)
{
    sx_status status = strcmp(device, "tpu") == 0 ? check_chips(args) : SX_OK;
    status = status == SX_OK ? list_device(o, args, device) : status;
    if (status == SX_OK || sx_status_code(status) == SX_RESOURCE_EXHAUSTED ||
        o->list.n_missing == MAX_MISSING) {
        return status;
    }
    sx_missing_device *m = &o->missing[o->list.n_missing++];
    m->device = sx_arena_strdup(&o->arena, device);
    m->reason = sx_arena_strdup(&o->arena, sx_status_message(status));
    sx_status_free(status);
    return m->device != NULL && m->reason != NULL ? SX_OK : sx_no_memory("listing devices");
}

/* ---- All devices ---- */

static bool is_type(const char *type, const char *wanted)
{
    return wanted == NULL || type == NULL || strcasecmp(type, wanted) == 0;
}

static bool is_known(const char *device)
{
    for (size_t i = 0; i < SX_COUNT(known); i++) {
        if (strcmp(known[i].device, device) == 0 ||
            (strncmp(device, "pjrt:", 5) == 0 && strcmp(known[i].device, device + 5) == 0)) {
            return true;
        }
    }
    return false;
}

static sx_status list_all(owned *o, const sx_list_devices_args *args)
{
    if (args->device != NULL || args->pjrt_plugin != NULL) {
        return list_device(o, args, args->device != NULL ? args->device : "pjrt");
    }
    for (size_t i = 0; i < SX_COUNT(known); i++) {
        if (is_type(known[i].type, args->type)) {
            SX_TRY(try_device(o, args, known[i].device));
        }
    }
    const char *at = NULL;
    sx_pjrt_entry entry;
    while (sx_pjrt_next_entry(&at, &entry)) { /* plugins named in the environment */
        const char *device =
            sx_arena_printf(&o->arena, "pjrt:%.*s", (int)entry.name_size, entry.name);
        if (device == NULL) {
            return sx_no_memory("listing devices");
        }
        if (entry.name_size > 0 && !is_known(device)) {
            SX_TRY(try_device(o, args, device));
        }
    }
    return SX_OK;
}

sx_status sx_list_devices_at(const sx_list_devices_args *args, sx_device_list **out_list)
{
    SX_TAKE_ARGS(sx_list_devices_args, args);
    const char *type = args->type;
    if (type != NULL && strcasecmp(type, "CPU") != 0 && strcasecmp(type, "GPU") != 0 &&
        strcasecmp(type, "TPU") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "device type \"%.100s\": expected CPU, GPU or TPU",
                        type);
    }
    if (args->virtual_devices < 0 || args->virtual_devices > SX_MAX_REPLICAS) {
        return sx_error(SX_INVALID_ARGUMENT, "virtual_devices is %d, expected 1 to %d",
                        args->virtual_devices, SX_MAX_REPLICAS);
    }
    if (has_plugin_options(args) && args->device == NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device_options and gpu_memory_limit are of one device: name it (device)");
    }
    owned *o = sx_alloc(1, sizeof(*o));
    if (o == NULL) {
        return sx_no_memory("listing devices");
    }
    sx_arena_init(&o->arena, 0);
    o->missing = sx_arena_array(&o->arena, MAX_MISSING, sx_missing_device);
    sx_status status = o->missing != NULL ? list_all(o, args) : sx_no_memory("listing devices");
    if (status != SX_OK) {
        sx_device_list_free(&o->list);
        return status;
    }
    sx_device_list *list = &o->list;
    const int n_found = list->n_devices;
    list->n_devices = 0;
    for (int i = 0; i < n_found; i++) {
        sx_device_info *info = &o->devices[i];
        if (!is_type(info->type, type)) {
            continue;
        }
        if (strcmp(info->type, "TPU") == 0) {
            bool new_host = true;
            for (int k = 0; k < list->n_devices && new_host; k++) {
                new_host = strcmp(o->devices[k].type, "TPU") != 0 ||
                           o->devices[k].process != info->process;
            }
            list->tpu_cores++;
            list->tpu_workers += new_host;
        }
        o->devices[list->n_devices++] = *info;
    }
    if (list->tpu_workers > 0) { /* all hosts have the same number of cores */
        list->tpu_cores_per_worker = list->tpu_cores / list->tpu_workers;
    }
    list->devices = o->devices;
    list->missing = o->missing;
    *out_list = list;
    return SX_OK;
}

void sx_device_list_free(sx_device_list *list)
{
    if (list != NULL) {
        owned *o = (owned *)list;
        sx_arena_deinit(&o->arena);
        sx_free(o);
    }
}
