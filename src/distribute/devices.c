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
    {"cpu", "CPU"}, {"ref", "CPU"}, {"tpu", "TPU"}, {"cuda", "GPU"}, {"pjrt:cpu", "CPU"},
};

/* ---- One device ---- */

static sx_device_info *add(owned *o)
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
    return &o->devices[o->list.n_devices++];
}

/* "/device:CPU:0" -> "CPU" */
static const char *type_of(owned *o, const char *name)
{
    const char *from = strncmp(name, "/device:", 8) == 0 ? name + 8 : name;
    return sx_arena_strndup(&o->arena, from, strcspn(from, ":"));
}

static sx_status name_it(owned *o, sx_device_info *info, const char *name, const char *device,
                         const char *kind)
{
    info->name = sx_arena_strdup(&o->arena, name);
    info->full_name = sx_arena_printf(&o->arena, "/job:localhost/replica:0/task:0%s", name);
    info->type = type_of(o, name);
    info->device = sx_arena_strdup(&o->arena, device);
    info->kind = sx_arena_strdup(&o->arena, kind);
    bool all = info->name != NULL && info->full_name != NULL && info->type != NULL &&
               info->device != NULL && info->kind != NULL;
    return all ? SX_OK : sx_no_memory("listing devices");
}

/* For CPUs: the machine's memory. */
static int64_t host_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (int64_t)pages * size : 0;
}

static sx_status read_memory(sx_device *d, bool is_host, sx_device_info *info)
{
    sx_memory_stats stats = {0};
    const sx_backend *backend = d->platform->backend;
    if (backend->memory != NULL) {
        SX_TRY(backend->memory(d, &stats), "the memory of %s", d->name);
    }
    info->memory_bytes = stats.limit_bytes > 0 || !is_host ? stats.limit_bytes : host_memory();
    info->memory_in_use_bytes = stats.bytes_in_use;
    return SX_OK;
}

static sx_status add_device(owned *o, sx_device *d, const char *device)
{
    sx_device_info *info = add(o);
    if (info == NULL) {
        return sx_no_memory("listing devices");
    }
    bool is_plugin = strcmp(d->platform->backend->name, "pjrt") == 0;
    info->process = d->process;
    info->n_coords = d->n_coords;
    info->core_on_chip = is_plugin ? d->core_on_chip : -1;
    memcpy(info->coords, d->coords, sizeof(info->coords));
    SX_TRY(name_it(o, info, d->name, device, d->kind));
    return read_memory(d, strcmp(info->type, "CPU") == 0, info);
}
_Static_assert(sizeof(((sx_device_info *)0)->coords) == sizeof(((sx_device *)0)->coords),
               "coordinates are copied whole");

/* Adds n virtual devices of `cpu`. */
static sx_status add_virtual(owned *o, const sx_device *d, int n)
{
    char name[NAME_BYTES], kind[256];
    for (int i = 0; i < n; i++) {
        sx_device_info *info = add(o);
        if (info == NULL) {
            return sx_no_memory("listing devices");
        }
        snprintf(name, sizeof(name), "/device:CPU:%d", i);
        snprintf(kind, sizeof(kind), "virtual, part %d of %d of %s", i + 1, n, d->kind);
        info->core_on_chip = -1;
        info->memory_bytes = host_memory();
        SX_TRY(name_it(o, info, name, "cpu", kind));
    }
    return SX_OK;
}

/* ---- One kind ---- */

static sx_status add_platform(owned *o, const sx_platform *p, const char *device, int n_virtual)
{
    if (n_virtual > 0 && strcmp(p->backend->name, "cpu") == 0) {
        return add_virtual(o, p->devices[0], n_virtual);
    }
    for (int i = 0; i < p->n_devices; i++) {
        SX_TRY(add_device(o, p->devices[i], device));
    }
    return SX_OK;
}

static sx_status open_device(owned *o, const sx_list_devices_args *args, const char *device,
                             sx_platform **out)
{
    sx_device_spec spec;
    SX_TRY(sx_device_spec_parse(device, &o->arena, &spec));
    const sx_platform_options options = {
        .plugin_path = args->pjrt_plugin,
        .plugin_name = spec.plugin_name,
        .python = args->python,
        .virtual_devices = args->virtual_devices > 0 ? args->virtual_devices : spec.devices};
    return sx_device_open(&spec, &options, out);
}

static sx_status list_device(owned *o, const sx_list_devices_args *args, const char *device)
{
    sx_platform *platform = NULL;
    SX_TRY(open_device(o, args, device, &platform));
    sx_status status = add_platform(o, platform, device, args->virtual_devices);
    sx_platform_close(platform);
    return status;
}

/* On a machine without a TPU chip, libtpu queries the cloud for minutes before it gives up, which
 * is too long for a list. */
static sx_status check_chips(const sx_list_devices_args *args, const char *device)
{
    char library[SX_PJRT_PATH_BYTES];
    const char *kind = NULL;
    int chips = 0;
    if (strcmp(device, "tpu") != 0) {
        return SX_OK;
    }
    SX_TRY(sx_pjrt_find(&(sx_pjrt_wish){.name = device, .python = args->python}, library));
    SX_TRY(sx_tpu_chips(SX_PCI_DEVICES, &chips, &kind));
    if (chips > 0 || strcmp(sx_path_basename(library), "libtpu.so") != 0) {
        return SX_OK;
    }
    return sx_error(SX_NOT_FOUND,
                    "no TPU chip among " SX_PCI_DEVICES "; with --device tpu %s is asked all the "
                    "same",
                    library);
}

/* The same, but a device that cannot be opened is listed as missing. */
static sx_status try_device(owned *o, const sx_list_devices_args *args, const char *device)
{
    sx_status status = check_chips(args, device);
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
        const char *colon = strchr(known[i].device, ':');
        if (strcmp(colon != NULL ? colon + 1 : known[i].device, device) == 0) {
            return true;
        }
    }
    return false;
}

/* The plugins named in the environment. */
static sx_status try_named(owned *o, const sx_list_devices_args *args)
{
    const char *at = NULL;
    sx_pjrt_entry entry;
    while (sx_pjrt_next_entry(&at, &entry)) {
        const char *device =
            sx_arena_printf(&o->arena, "pjrt:%.*s", (int)entry.name_size, entry.name);
        if (device == NULL) {
            return sx_no_memory("listing devices");
        }
        if (entry.name_size > 0 && !is_known(device + strlen("pjrt:"))) {
            SX_TRY(try_device(o, args, device));
        }
    }
    return SX_OK;
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
    return try_named(o, args);
}

static void keep_type(owned *o, const char *type)
{
    int kept = 0;
    for (int i = 0; i < o->list.n_devices; i++) {
        if (is_type(o->devices[i].type, type)) {
            o->devices[kept++] = o->devices[i];
        }
    }
    o->list.n_devices = kept;
}

/* Whether a TPU core is the first of its host. */
static bool is_first_of_host(const owned *o, int i)
{
    for (int k = 0; k < i; k++) {
        if (strcmp(o->devices[k].type, "TPU") == 0 &&
            o->devices[k].process == o->devices[i].process) {
            return false;
        }
    }
    return true;
}

/* All hosts have the same number of cores. */
static void count_tpus(owned *o)
{
    for (int i = 0; i < o->list.n_devices; i++) {
        if (strcmp(o->devices[i].type, "TPU") == 0) {
            o->list.tpu_cores++;
            o->list.tpu_workers += is_first_of_host(o, i);
        }
    }
    if (o->list.tpu_workers > 0) {
        o->list.tpu_cores_per_worker = o->list.tpu_cores / o->list.tpu_workers;
    }
}

static sx_status check_args(const sx_list_devices_args *args)
{
    static const char *const types[] = {"CPU", "GPU", "TPU"};
    bool known_type = args->type == NULL;
    for (size_t i = 0; i < SX_COUNT(types); i++) {
        known_type |= args->type != NULL && strcasecmp(args->type, types[i]) == 0;
    }
    if (!known_type) {
        return sx_error(SX_INVALID_ARGUMENT, "device type \"%.100s\": expected CPU, GPU or TPU",
                        args->type);
    }
    if (args->virtual_devices < 0 || args->virtual_devices > SX_MAX_REPLICAS) {
        return sx_error(SX_INVALID_ARGUMENT, "virtual_devices is %d, expected 1 to %d",
                        args->virtual_devices, SX_MAX_REPLICAS);
    }
    return SX_OK;
}

static sx_status fill(owned *o, const sx_list_devices_args *args)
{
    o->missing = sx_arena_array(&o->arena, MAX_MISSING, sx_missing_device);
    if (o->missing == NULL) {
        return sx_no_memory("listing devices");
    }
    SX_TRY(list_all(o, args));
    keep_type(o, args->type);
    o->list.devices = o->devices;
    o->list.missing = o->missing;
    count_tpus(o);
    return SX_OK;
}

sx_status sx_list_devices_at(const sx_list_devices_args *args, sx_device_list **out_list)
{
    SX_TAKE_ARGS(sx_list_devices_args, args);
    SX_TRY(check_args(args));
    owned *o = sx_alloc(1, sizeof(*o));
    if (o == NULL) {
        return sx_no_memory("listing devices");
    }
    sx_arena_init(&o->arena, 0);
    sx_status status = fill(o, args);
    if (status != SX_OK) {
        sx_device_list_free(&o->list);
        return status;
    }
    *out_list = &o->list;
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
