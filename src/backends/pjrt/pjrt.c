/* The pjrt backend: the devices of a plugin. See pjrt.h. */
#include "backends/pjrt/pjrt.h"

#include <stdio.h>
#include <string.h>

#include "backends/pjrt/buffer.h"
#include "backends/pjrt/compile_within.h"
#include "backends/pjrt/executable.h"
#include "backends/pjrt/profiler.h"
#include "backends/pjrt/record.h"
#include "base/memory.h"

enum { NAME_BYTES = 64, KIND_BYTES = 128 };

typedef struct sx_pjrt_device {
    sx_device head;
    char name[NAME_BYTES], kind[KIND_BYTES];
} sx_pjrt_device;

void sx_pjrt_keep_first(sx_status *first, sx_status status)
{
    if (*first == SX_OK) {
        *first = status;
    } else {
        sx_status_free(status);
    }
}

static void pjrt_close(sx_platform *head)
{
    sx_pjrt_platform *p = (sx_pjrt_platform *)head;
    sx_buf unread;
    sx_buf_init(&unread, 0);
    sx_status_free(sx_pjrt_profiler_stop(p->profiler, &unread));
    sx_buf_deinit(&unread);
    if (p->client != NULL) {
        sx_pjrt_forget_compiling(p);
        sx_pjrt_client_close(p->client);
    }
    sx_pjrt_forget_names(p);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->compile_lock);
    sx_free(p->device_rows);
    sx_free(p->devices);
    sx_free(p->dump_dir);
    sx_free(p->cache_dir);
    sx_free(p->chosen);
    sx_free(p);
}

/* "/device:TPU:0", or "/device:TPU:0..3" for four devices used as one, "/device:TPU:0,2" for two
 * that were chosen. */
static void name_device(const sx_pjrt_platform *p, int i, sx_pjrt_device *d)
{
    char upper[sizeof(p->client->platform)];
    snprintf(upper, sizeof(upper), "%s",
             strcmp(p->client->platform, "cuda") == 0 ? "GPU" : p->client->platform);
    for (char *c = upper; *c != '\0'; c++) {
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
    snprintf(d->name, sizeof(d->name), "/device:%s:%d", upper, sx_pjrt_number(p, i));
    for (int r = 1; r < p->replicas && p->n_chosen > 0; r++) {
        const size_t size = strlen(d->name);
        snprintf(d->name + size, sizeof(d->name) - size, ",%d", p->chosen[r]);
    }
    if (p->replicas > 1 && p->n_chosen == 0) {
        snprintf(d->name, sizeof(d->name), "/device:%s:0..%d", upper, p->replicas - 1);
    }
}

static sx_status list_devices(sx_pjrt_platform *p)
{
    int n = p->replicas > 1 ? 1 : p->n_chosen > 0 ? p->n_chosen : p->client->n_devices;
    p->device_rows = sx_alloc((size_t)n, sizeof(*p->device_rows));
    p->devices = sx_alloc((size_t)n, sizeof(*p->devices));
    if (p->device_rows == NULL || p->devices == NULL) {
        return sx_no_memory("for the devices");
    }
    for (int i = 0; i < p->replicas && p->processes == 1; i++) {
        SX_TRY(sx_pjrt_device_id(p->client, sx_pjrt_number(p, i), &p->ids[i]));
    }
    if (p->processes > 1) {
        SX_TRY(sx_pjrt_global_ids(p->client, p->local, p->ids));
    }
    for (int i = 0; i < n; i++) {
        sx_pjrt_device *d = &p->device_rows[i];
        const int number = sx_pjrt_number(p, i);
        SX_TRY(sx_pjrt_device_kind(p->client, number, d->kind, sizeof(d->kind)));
        name_device(p, i, d);
        d->head = (sx_device){.platform = &p->head, .index = i, .name = d->name, .kind = d->kind};
        d->head.core_on_chip = -1;
        sx_pjrt_device_place(p->client, number, &d->head.process, d->head.coords, SX_MAX_COORDS,
                             &d->head.n_coords, &d->head.core_on_chip);
        d->head.n_memories = 1;
        snprintf(d->head.memories[0].kind, sizeof(d->head.memories[0].kind), "device");
        if (p->replicas == 1) {
            sx_pjrt_device_memories(p->client, number, d->head.memories, &d->head.n_memories);
        }
        p->devices[i] = &d->head;
    }
    p->head.devices = p->devices;
    p->head.n_devices = n;
    return SX_OK;
}

static sx_status open_client(sx_pjrt_platform *p, const sx_pjrt_options *options)
{
    char path[SX_PJRT_PATH_BYTES];
    const sx_pjrt_plugin *plugin = NULL;
    const sx_pjrt_wish wish = {
        .path = options->plugin_path, .name = options->plugin_name, .python = options->python};
    SX_TRY(sx_pjrt_find(&wish, path));
    SX_TRY(sx_pjrt_load(path, &plugin));
    SX_TRY(sx_pjrt_client_open(plugin, options, &p->client), "%s", path);
    if (p->local > p->client->n_devices) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas requested, but %s has %d devices",
                        p->local, path, p->client->n_devices);
    }
    for (int i = 0; i < p->n_chosen; i++) {
        if (p->chosen[i] < 0 || p->chosen[i] >= p->client->n_devices) {
            return sx_error(SX_INVALID_ARGUMENT, "device %d requested, but %s has %d devices",
                            p->chosen[i], path, p->client->n_devices);
        }
    }
    return SX_OK;
}

static sx_status copy_path(const char *path, char **out)
{
    *out = path != NULL ? sx_strdup(path) : NULL;
    return path == NULL || *out != NULL ? SX_OK : sx_no_memory("for the platform");
}

static sx_status copy_numbers(const sx_pjrt_options *options, sx_pjrt_platform *p)
{
    if (options->n_chosen <= 0) {
        return SX_OK;
    }
    p->chosen = sx_alloc((size_t)options->n_chosen, sizeof(*p->chosen));
    if (p->chosen == NULL) {
        return sx_no_memory("for the platform");
    }
    memcpy(p->chosen, options->chosen, (size_t)options->n_chosen * sizeof(*p->chosen));
    p->n_chosen = options->n_chosen;
    return SX_OK;
}

static sx_status pjrt_open(const sx_platform_options *all, sx_platform **out)
{
    const sx_pjrt_options *options = &all->pjrt;
    const int replicas = options->replicas > 0 ? options->replicas : 1;
    if (options->replicas < 0 || options->replicas > SX_PJRT_MAX_REPLICAS ||
        options->virtual_devices < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas on %d virtual devices; the maximum is %d",
                        options->replicas, options->virtual_devices, SX_PJRT_MAX_REPLICAS);
    }
    if (options->processes != NULL && options->replicas % options->processes->count != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%d processes cannot have equal parts of %d replicas",
                        options->processes->count, options->replicas);
    }
    if (options->n_chosen > 0 && options->processes != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "the devices of %d processes cannot be chosen",
                        options->processes->count);
    }
    if (options->n_chosen > 0 && replicas > 1 && options->n_chosen != replicas) {
        return sx_error(SX_INVALID_ARGUMENT, "%d devices chosen for %d replicas", options->n_chosen,
                        replicas);
    }
    sx_pjrt_platform *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for the platform");
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->compile_lock, NULL);
    sx_map_init(&p->names);
    sx_arena_init(&p->names_arena, 0);
    p->head.backend = &sx_backend_pjrt;
    p->replicas = p->local = replicas;
    p->ordered_sums = options->ordered_sums;
    p->processes = 1;
    if (options->processes != NULL && options->replicas > 0) {
        p->processes = options->processes->count;
        p->local = p->replicas / p->processes;
        p->first = p->local * options->processes->index;
    }
    sx_status status = copy_numbers(options, p);
    status = status != SX_OK ? status : copy_path(options->dump_dir, &p->dump_dir);
    status = status != SX_OK ? status : copy_path(options->cache_dir, &p->cache_dir);
    status = status != SX_OK ? status : open_client(p, options);
    status = status != SX_OK ? status : list_devices(p);
    if (status != SX_OK) {
        pjrt_close(&p->head);
        return status;
    }
    *out = &p->head;
    return SX_OK;
}

/* The sum over all replicas, of which those of other processes are taken to be as these; zeros if
 * the plugin has no statistics. */
static sx_status pjrt_memory(sx_device *device, sx_memory_stats *out)
{
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)device->platform;
    sx_memory_stats sum = {0};
    for (int r = 0; r < p->local; r++) {
        sx_pjrt_device_memory args = SX_PJRT_ARGS(
            device_memory, .device = p->client->devices[sx_pjrt_number(p, device->index + r)]);
        sx_status status = sx_pjrt_call(p->client->plugin, SX_PJRT_DEVICE_MEMORY, &args);
        if (sx_status_code(status) == SX_UNIMPLEMENTED) {
            sx_status_free(status);
            continue;
        }
        SX_TRY(status);
        sum.bytes_in_use += args.in_use;
        sum.peak_bytes += args.has_peak ? args.peak : 0;
        sum.limit_bytes += args.has_limit ? args.limit : 0;
    }
    sum.bytes_in_use *= p->processes;
    sum.peak_bytes *= p->processes;
    sum.limit_bytes *= p->processes;
    *out = sum;
    return SX_OK;
}

static bool pjrt_pin(sx_platform *platform, void *data, size_t bytes)
{
    return sx_pjrt_pin(((const sx_pjrt_platform *)platform)->client, data, bytes);
}

static void pjrt_unpin(sx_platform *platform, void *data)
{
    sx_pjrt_unpin(((const sx_pjrt_platform *)platform)->client, data);
}

const sx_backend sx_backend_pjrt = {
    .name = "pjrt",
    .about = "any PJRT plugin: TPU, XLA's GPU and CPU",
    .capabilities = SX_CAN_TRAIN | SX_CAN_SHARD | SX_CAN_BF16 | SX_CAN_LOOP | SX_HAS_MEMORY,
    .open = pjrt_open,
    .close = pjrt_close,
    .memory = pjrt_memory,
    .buffer_create = sx_pjrt_buffer_create,
    .buffer_destroy = sx_pjrt_buffer_destroy,
    .buffer_write = sx_pjrt_buffer_write,
    .buffer_write_first = sx_pjrt_buffer_write_first,
    .buffer_read = sx_pjrt_buffer_read,
    .buffers_read = sx_pjrt_buffers_read,
    .buffer_copy = sx_pjrt_buffer_copy,
    .pin = pjrt_pin,
    .unpin = pjrt_unpin,
    .compile = sx_pjrt_executable_create,
    .executable_destroy = sx_pjrt_executable_destroy,
    .run_create = sx_pjrt_run_create,
    .run_destroy = sx_pjrt_run_destroy,
    .submit = sx_pjrt_run_submit,
    .await = sx_pjrt_run_await,
    .watch = sx_pjrt_run_watch,
    .info = sx_pjrt_executable_info,
    .record = sx_pjrt_record,
    .recorded = sx_pjrt_recorded,
};
