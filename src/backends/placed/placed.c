/* The placed backend: several devices as one, and the nodes of programs placed on them. */
#include "backends/placed/placed.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/thread.h"
#include "graph/device_name.h"

/* ---- Threads ---- */

static void *serve(void *user)
{
    sx_placed_worker *w = user;
    sx_placed_platform *p = w->platform;
    pthread_mutex_lock(&p->lock);
    while (!p->ends) {
        if (w->first == NULL || p->running == p->at_once) {
            pthread_cond_wait(&w->wake, &p->lock);
            continue;
        }
        const sx_placed_task task = *w->first;
        w->first = task.next;
        w->last = w->first != NULL ? w->last : &w->first;
        p->running++;
        pthread_mutex_unlock(&p->lock);
        sx_placed_run_segment(task.run, task.segment);
        pthread_mutex_lock(&p->lock);
        const bool was_full = p->running-- == p->at_once;
        for (int i = 0; i < p->n_workers && was_full; i++) {
            pthread_cond_signal(&p->workers[i].wake);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void sx_placed_enqueue(sx_placed_platform *p, int device, sx_placed_task *task)
{
    sx_placed_worker *w = &p->workers[device];
    task->next = NULL;
    pthread_mutex_lock(&p->lock);
    *w->last = task;
    w->last = &task->next;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&p->lock);
}

static sx_status start_threads(sx_placed_platform *p)
{
    p->workers = sx_arena_array(&p->arena, p->n_subs, sx_placed_worker);
    if (p->workers == NULL) {
        return sx_no_memory("for the devices' threads");
    }
    for (int i = 0; i < p->n_subs; i++) {
        sx_placed_worker *w = &p->workers[i];
        *w = (sx_placed_worker){.platform = p, .last = &w->first};
        pthread_cond_init(&w->wake, NULL);
        if (sx_thread_create(&w->thread, NULL, serve, w) != 0) {
            pthread_cond_destroy(&w->wake);
            return sx_error(SX_RESOURCE_EXHAUSTED, "cannot start a thread for %s", p->names[i]);
        }
        pthread_mutex_lock(&p->lock); /* threads look at the number */
        p->n_workers++;
        pthread_mutex_unlock(&p->lock);
    }
    return SX_OK;
}

static void placed_close(sx_platform *head)
{
    sx_placed_platform *p = (sx_placed_platform *)head;
    pthread_mutex_lock(&p->lock);
    p->ends = true;
    for (int i = 0; i < p->n_workers; i++) {
        pthread_cond_signal(&p->workers[i].wake);
    }
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++) {
        pthread_join(p->workers[i].thread, NULL);
        pthread_cond_destroy(&p->workers[i].wake);
    }
    for (int i = 0; i < p->n_platforms; i++) {
        (void)sx_platform_close(p->platforms[i]);
    }
    pthread_mutex_destroy(&p->lock);
    sx_arena_deinit(&p->arena);
    sx_free(p);
}

/* ---- Devices ---- */

static const sx_placed_device one_cpu = {.backend = "cpu"};

/* The threads of all cpus together, which decide about shards as those of one cpu would, are
 * divided among them, unless those of each are given. Returns the threads of each. */
static int divide_threads(sx_placed_platform *p, const sx_platform_options *options,
                          const sx_placed_device *devices, int n)
{
    int cpus = 0;
    for (int i = 0; i < n; i++) {
        cpus += strcmp(devices[i].backend, "cpu") == 0;
    }
    cpus = SX_MAX(cpus, 1);
    const int each = options->placed.threads;
    p->threads = each > 0                   ? each * cpus
                 : options->cpu.threads > 0 ? options->cpu.threads
                                            : sx_cpu_count();
    return each > 0 ? each : SX_MAX(1, p->threads / cpus);
}

/* A device's name in the list: the first of its type is 0. Those of `host`, which TensorFlow does
 * not have, are not counted among the cpus, whose numbers a model's scopes say. */
static sx_status add_sub(sx_placed_platform *p, sx_device *device)
{
    sx_device_name name;
    char text[SX_DEVICE_NAME_BYTES];
    const char *backend = device->platform->backend->name;
    SX_TRY(sx_device_name_parse(device->name, &name));
    if (strcmp(backend, "host") == 0) {
        snprintf(name.type, sizeof(name.type), "HOST");
    }
    snprintf(name.job, sizeof(name.job), "localhost");
    name.replica = name.task = name.index = 0;
    for (int i = 0; i < p->n_subs; i++) {
        name.index += strcmp(p->types[i], name.type) == 0;
    }
    p->subs[p->n_subs] = device;
    p->types[p->n_subs] = sx_arena_strdup(&p->arena, name.type);
    p->names[p->n_subs] = sx_arena_strdup(&p->arena, sx_device_name_print(&name, text));
    p->placing[p->n_subs] = (sx_placement_device){.name = p->names[p->n_subs]};
    p->alike = p->alike && strcmp(backend, "cpu") == 0;
    return p->types[p->n_subs] != NULL && p->names[p->n_subs++] != NULL
               ? SX_OK
               : sx_no_memory("for the devices' names");
}

static sx_status open_devices(sx_placed_platform *p, const sx_platform_options *options)
{
    enum { MOST = 1024 };
    const sx_placed_options *o = &options->placed;
    const sx_placed_device *devices = o->n_devices > 0 ? o->devices : &one_cpu;
    const int n = SX_MAX(o->n_devices, 1);
    sx_platform_options own = *options;
    own.cpu.threads = divide_threads(p, options, devices, n);
    own.placed = (sx_placed_options){.n_devices = 0};
    own.pjrt.replicas = 1;
    p->alike = true;
    p->platforms = sx_arena_array(&p->arena, n, sx_platform *);
    p->subs = sx_arena_array(&p->arena, n + MOST, sx_device *);
    p->names = sx_arena_array(&p->arena, n + MOST, const char *);
    p->types = sx_arena_array(&p->arena, n + MOST, const char *);
    p->placing = sx_arena_array(&p->arena, n + MOST, sx_placement_device);
    if (n > MOST || p->platforms == NULL || p->subs == NULL || p->names == NULL ||
        p->types == NULL || p->placing == NULL) {
        return n > MOST ? sx_error(SX_INVALID_ARGUMENT, "%d devices; the maximum is %d", n, MOST)
                        : sx_no_memory("for the devices");
    }
    for (int i = 0; i < n; i++) {
        sx_platform **opened = &p->platforms[p->n_platforms];
        SX_TRY(sx_platform_open(devices[i].backend, &own, opened), "device %d of %d", i + 1, n);
        p->n_platforms++;
        const int has = (*opened)->n_devices;
        const int wanted = devices[i].devices > 0 ? devices[i].devices : has;
        if (wanted > has || p->n_subs + wanted > n + MOST) {
            return sx_error(SX_INVALID_ARGUMENT, "%d devices requested, but %s has %d", wanted,
                            (*opened)->devices[0]->name, has);
        }
        for (int k = 0; k < wanted; k++) {
            SX_TRY(add_sub(p, (*opened)->devices[k]));
        }
    }
    return SX_OK;
}

/* A limit of memory is each cpu's. */
static sx_status limit_memory(sx_placed_platform *p, int64_t limit_bytes)
{
    if (limit_bytes <= 0) {
        return SX_OK;
    }
    p->budgets = sx_arena_array(&p->arena, p->n_subs, sx_budget);
    if (p->budgets == NULL) {
        return sx_no_memory("for the devices");
    }
    for (int i = 0; i < p->n_subs; i++) {
        const bool is_cpu = strcmp(p->subs[i]->platform->backend->name, "cpu") == 0;
        sx_budget_init(&p->budgets[i], p->names[i], is_cpu ? (size_t)limit_bytes : 0, NULL);
    }
    return SX_OK;
}

static sx_status name_all(sx_placed_platform *p)
{
    sx_buf names;
    sx_buf_init(&names, 1 << 16);
    for (int i = 0; i < p->n_subs; i++) {
        sx_buf_printf(&names, "%s%s", i > 0 ? ", " : "", strstr(p->names[i], "/device:"));
    }
    p->name = sx_arena_strdup(&p->arena, sx_buf_text(&names));
    sx_buf_deinit(&names);
    snprintf(p->kind, sizeof(p->kind), "%d device%s", p->n_subs, p->n_subs == 1 ? "" : "s");
    p->device = (sx_device){.platform = &p->head,
                            .name = p->name,
                            .kind = p->kind,
                            .n_memories = 1,
                            .memories = {{.kind = "device"}}};
    p->devices[0] = &p->device;
    p->head.devices = p->devices;
    p->head.n_devices = 1;
    return p->name != NULL ? SX_OK : sx_no_memory("for the devices' names");
}

static sx_status placed_open(const sx_platform_options *options, sx_platform **out)
{
    sx_placed_platform *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for the platform");
    }
    p->head.backend = &sx_backend_placed;
    p->micro_batches = options->placed.micro_batches;
    p->strict = options->placed.strict;
    p->logs = options->placed.logs;
    p->at_once = options->placed.at_once > 0 ? options->placed.at_once : -1;
    sx_arena_init(&p->arena, 0);
    pthread_mutex_init(&p->lock, NULL);
    sx_status status = open_devices(p, options);
    status = status == SX_OK ? limit_memory(p, options->cpu.memory_limit_bytes) : status;
    status = status == SX_OK ? name_all(p) : status;
    status = status == SX_OK ? start_threads(p) : status;
    if (status != SX_OK) {
        placed_close(&p->head);
        return status;
    }
    *out = &p->head;
    return SX_OK;
}

static void prepare_products(sx_platform *platform)
{
    const sx_placed_platform *p = (const sx_placed_platform *)platform;
    sx_platform_prepare_products(p->platforms[0]);
}

/* Of all cpus together; zeros without a limit. */
static sx_status memory(sx_device *device, sx_memory_stats *out)
{
    const sx_placed_platform *p = (const sx_placed_platform *)device->platform;
    for (int i = 0; p->budgets != NULL && i < p->n_subs; i++) {
        out->bytes_in_use += (int64_t)sx_budget_used(&p->budgets[i]);
        out->limit_bytes += (int64_t)p->budgets[i].limit_bytes;
    }
    return SX_OK;
}

static sx_status record(sx_platform *platform)
{
    const sx_placed_platform *p = (const sx_placed_platform *)platform;
    return sx_error(SX_UNIMPLEMENTED,
                    "several devices (%s) do not record operations; profile the program on one of "
                    "them",
                    p->name);
}

const sx_backend sx_backend_placed = {
    .name = "placed",
    .about = "several devices: nodes run on those that device scopes name",
    .capabilities = SX_CAN_TRAIN | SX_CAN_SHARD | SX_CAN_BF16,
    .open = placed_open,
    .close = placed_close,
    .memory = memory,
    .buffer_create = sx_placed_buffer_create,
    .buffer_destroy = sx_placed_buffer_destroy,
    .buffer_write = sx_placed_buffer_write,
    .buffer_read = sx_placed_buffer_read,
    .prepare_products = prepare_products,
    .compile = sx_placed_compile,
    .executable_destroy = sx_placed_executable_destroy,
    .info = sx_placed_info,
    .run_create = sx_placed_run_create,
    .run_destroy = sx_placed_run_destroy,
    .prepare = sx_placed_prepare,
    .submit = sx_placed_submit,
    .await = sx_placed_await,
    .watch = sx_placed_watch,
    .leave = sx_placed_leave,
    .profile = sx_placed_profile,
    .record = record,
};
