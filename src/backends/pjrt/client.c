/* See client.h. */
#include "backends/pjrt/client.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/pjrt/companions.h"
#include "backends/pjrt/compile_options.h"
#include "backends/pjrt/gpu_memory.h"
#include "base/memory.h"

static struct {
    pthread_mutex_t lock;
    sx_pjrt_client *clients;
    int shared; /* clients of several processes that have been opened */
} open_ones = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Opening ---- */

/* The limit as the fraction of the GPU's memory that the plugin takes; of several GPUs the largest
 * decides, so that none uses more. */
static sx_status limit_memory(const sx_pjrt_client *c, sx_pjrt_settings *settings)
{
    const int64_t limit = c->options.gpu_memory_limit;
    int64_t total = 0;
    sx_pjrt_named fraction = sx_pjrt_setting("memory_fraction", SX_PJRT_FLOAT);
    if (c->plugin->kind != SX_PJRT_CUDA) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "gpu_memory_limit requires a CUDA plugin, and %s is not one",
                        c->plugin->path);
    }
    SX_TRY(sx_gpu_memory(&total));
    if (limit > total) {
        return sx_error(SX_INVALID_ARGUMENT, "gpu_memory_limit is %lld bytes, but the GPU has %lld",
                        (long long)limit, (long long)total);
    }
    fraction.real = (float)((double)limit / (double)total);
    if (sx_pjrt_has_setting(settings, fraction.name)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "gpu_memory_limit cannot be combined with memory_fraction");
    }
    sx_pjrt_default_setting(settings, fraction);
    return SX_OK;
}

/* TensorFlow's variable; unless it says otherwise memory grows, so that a GPU can be shared: the
 * plugin's own default is to take three quarters of it at once. */
static bool memory_grows(void)
{
    const char *text = getenv("TF_FORCE_GPU_ALLOW_GROWTH");
    return text == NULL || (strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0);
}

/* The options for this plugin, and of its programs. */
static sx_status read_options(sx_pjrt_client *c, sx_pjrt_settings *options)
{
    static const char of_device[] = "device_options";
    SX_TRY(sx_pjrt_read_xla_settings(c->options.xla_options, &c->arena, &c->xla));
    SX_TRY(sx_pjrt_read_settings(of_device, c->options.device_options, &c->arena, options));
    SX_TRY(sx_pjrt_check_settings(c->plugin->kind, of_device, options));
    if (c->options.gpu_memory_limit > 0) {
        SX_TRY(limit_memory(c, options));
    }
    /* A TPU's plugin finds the hosts of its slice by itself. XLA's for the CPU reads one option,
     * the first. */
    if (c->options.processes != NULL && c->plugin->kind != SX_PJRT_TPU) {
        sx_pjrt_named node = sx_pjrt_setting("node_id", SX_PJRT_INT64),
                      nodes = sx_pjrt_setting("num_nodes", SX_PJRT_INT64);
        node.int64 = c->options.processes->index;
        nodes.int64 = c->options.processes->count;
        sx_pjrt_default_setting(options, node);
        sx_pjrt_default_setting(options, nodes);
    }
    if (c->plugin->kind == SX_PJRT_CPU && c->options.virtual_devices > 0) {
        sx_pjrt_named count = sx_pjrt_setting("cpu_device_count", SX_PJRT_INT64);
        count.int64 = c->options.virtual_devices;
        sx_pjrt_default_setting(options, count);
    }
    if (c->plugin->kind == SX_PJRT_CUDA) {
        sx_pjrt_named at_once = sx_pjrt_setting("preallocate", SX_PJRT_BOOL);
        at_once.boolean = !memory_grows();
        sx_pjrt_default_setting(options, at_once);
    }
    return SX_OK;
}

static sx_status describe(sx_pjrt_client *c)
{
    sx_pjrt_list devices = SX_PJRT_ARGS(list, .object = c->handle);
    SX_TRY(sx_pjrt_text_of(c->plugin, SX_PJRT_CLIENT_PLATFORM, c->handle, c->platform,
                           sizeof(c->platform)));
    SX_TRY(sx_pjrt_text_of(c->plugin, SX_PJRT_CLIENT_VERSION, c->handle, c->version,
                           sizeof(c->version)));
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_CLIENT_DEVICES, &devices));
    if (devices.count == 0 || devices.count > INT_MAX) {
        return sx_error(SX_UNAVAILABLE, "%s offers no device on this machine", c->plugin->path);
    }
    c->devices = devices.items;
    c->n_devices = (int)devices.count;
    if (c->options.processes != NULL) {
        sx_pjrt_list all = SX_PJRT_ARGS(list, .object = c->handle);
        SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_CLIENT_ALL_DEVICES, &all));
        c->all = all.items;
        c->n_all = all.count > INT_MAX ? INT_MAX : (int)all.count;
    }
    return SX_OK;
}

static void client_free(sx_pjrt_client *c)
{
    if (c->handle != NULL) {
        sx_pjrt_end(c->plugin, SX_PJRT_CLIENT_DESTROY, c->handle);
    }
    sx_arena_deinit(&c->arena);
    sx_free(c);
}

static sx_status create(sx_pjrt_client *c, const sx_pjrt_options *options)
{
    sx_pjrt_settings *settings = sx_arena_array(&c->arena, 1, sx_pjrt_settings);
    const char *texts[2] = {options->device_options, options->xla_options};
    for (int i = 0; i < 2; i++) {
        texts[i] = sx_arena_strdup(&c->arena, texts[i] != NULL ? texts[i] : "");
    }
    if (settings == NULL || texts[0] == NULL || texts[1] == NULL) {
        return sx_no_memory("for a PJRT client");
    }
    c->options = (sx_pjrt_options){.virtual_devices = options->virtual_devices,
                                   .device_options = texts[0],
                                   .xla_options = texts[1],
                                   .gpu_memory_limit = options->gpu_memory_limit,
                                   .processes = options->processes};
    SX_TRY(read_options(c, settings));
    sx_pjrt_client_create args =
        SX_PJRT_ARGS(client_create, .options = settings->rows, .n_options = settings->n);
    if (options->processes != NULL) {
        c->key_values = (sx_pjrt_key_values){options->processes, open_ones.shared++};
        sx_pjrt_offer_key_values(&args, &c->key_values);
    }
    SX_TRY(sx_pjrt_blame_companions(c->plugin->path,
                                    sx_pjrt_call(c->plugin, SX_PJRT_CLIENT_CREATE, &args)));
    c->handle = args.client;
    return describe(c);
}

static sx_status client_new(const sx_pjrt_plugin *plugin, const sx_pjrt_options *options,
                            sx_pjrt_client **out)
{
    sx_pjrt_client *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        return sx_no_memory("for a PJRT client");
    }
    *c = (sx_pjrt_client){.plugin = plugin, .refs = 1};
    sx_arena_init(&c->arena, 0);
    sx_status status = create(c, options);
    if (status != SX_OK) {
        client_free(c);
        return status;
    }
    c->next = open_ones.clients;
    open_ones.clients = c;
    *out = c;
    return SX_OK;
}

static bool is_same_text(const char *a, const char *b)
{
    return strcmp(a, b != NULL ? b : "") == 0;
}

static bool is_opened_with(const sx_pjrt_client *c, const sx_pjrt_options *options)
{
    const sx_pjrt_options *own = &c->options;
    return own->virtual_devices == options->virtual_devices &&
           own->gpu_memory_limit == options->gpu_memory_limit &&
           own->processes == options->processes &&
           is_same_text(own->device_options, options->device_options) &&
           is_same_text(own->xla_options, options->xla_options);
}

sx_status sx_pjrt_client_open(const sx_pjrt_plugin *plugin, const sx_pjrt_options *options,
                              sx_pjrt_client **out)
{
    sx_status status = SX_OK;
    pthread_mutex_lock(&open_ones.lock);
    sx_pjrt_client *c = open_ones.clients;
    while (c != NULL && (c->plugin != plugin || !is_opened_with(c, options))) {
        c = c->next;
    }
    if (c != NULL) {
        c->refs++;
    } else {
        status = client_new(plugin, options, &c);
    }
    pthread_mutex_unlock(&open_ones.lock);
    if (status == SX_OK) {
        *out = c;
    }
    return status;
}

void sx_pjrt_client_close(sx_pjrt_client *c)
{
    pthread_mutex_lock(&open_ones.lock);
    if (--c->refs == 0) {
        sx_pjrt_client **at = &open_ones.clients;
        while (*at != c) {
            at = &(*at)->next;
        }
        *at = c->next;
        client_free(c);
    }
    pthread_mutex_unlock(&open_ones.lock);
}

/* ---- Devices, events ---- */

static sx_status description_of(const sx_pjrt_client *c, const void *device, void **out)
{
    sx_pjrt_pointer args = SX_PJRT_ARGS(pointer, .object = device);
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_DEVICE_DESCRIPTION, &args));
    *out = args.value;
    return SX_OK;
}

/* A number in a device's description. */
static sx_status describe_number(const sx_pjrt_client *c, const void *device, sx_pjrt_slot slot,
                                 int *out)
{
    void *description = NULL;
    SX_TRY(description_of(c, device, &description));
    sx_pjrt_int args = SX_PJRT_ARGS(int, .object = description);
    SX_TRY(sx_pjrt_call(c->plugin, slot, &args));
    *out = args.value;
    return SX_OK;
}

sx_status sx_pjrt_device_id(const sx_pjrt_client *c, int index, int *out)
{
    return describe_number(c, c->devices[index], SX_PJRT_DESCRIPTION_ID, out);
}

/* Takes the ids of one process's devices, in the order of the plugin's list. */
static sx_status process_ids(const sx_pjrt_client *c, int process, int each, int *out_ids)
{
    int found = 0;
    for (int i = 0; i < c->n_all && found < each; i++) {
        int of = 0;
        SX_TRY(describe_number(c, c->all[i], SX_PJRT_DESCRIPTION_PROCESS, &of));
        if (of == process) {
            SX_TRY(describe_number(c, c->all[i], SX_PJRT_DESCRIPTION_ID, &out_ids[found++]));
        }
    }
    if (found == 0) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s does not join the devices of several processes: it shows %d device%s, "
                        "none of them of process %d",
                        c->plugin->path, c->n_all, c->n_all == 1 ? "" : "s", process);
    }
    return found == each ? SX_OK
                         : sx_error(SX_INVALID_ARGUMENT,
                                    "process %d has %d device%s, but each process is to give %d",
                                    process, found, found == 1 ? "" : "s", each);
}

sx_status sx_pjrt_global_ids(const sx_pjrt_client *c, int each, int *out_ids)
{
    const sx_pjrt_processes *p = c->options.processes;
    sx_pjrt_int own = SX_PJRT_ARGS(int, .object = c->handle);
    for (int process = 0; process < p->count; process++) {
        SX_TRY(process_ids(c, process, each, out_ids + process * each));
    }
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_CLIENT_PROCESS, &own));
    if (own.value != p->index) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s takes this for process %d of its devices, but it was started as "
                        "process %d",
                        c->plugin->path, own.value, p->index);
    }
    for (int i = 0; i < each; i++) {
        int id = 0;
        SX_TRY(sx_pjrt_device_id(c, i, &id));
        if (id != out_ids[p->index * each + i]) {
            return sx_error(SX_INTERNAL, "%s lists its devices in two orders", c->plugin->path);
        }
    }
    return SX_OK;
}

sx_status sx_pjrt_device_kind(const sx_pjrt_client *c, int index, char *buffer, size_t capacity)
{
    void *description = NULL;
    SX_TRY(description_of(c, c->devices[index], &description));
    return sx_pjrt_text_of(c->plugin, SX_PJRT_DESCRIPTION_KIND, description, buffer, capacity);
}

void sx_pjrt_device_place(const sx_pjrt_client *c, int index, int *process, int64_t *coords,
                          int capacity, int *n_coords, int *core_on_chip)
{
    void *description = NULL;
    sx_status status = description_of(c, c->devices[index], &description);
    sx_pjrt_int number = SX_PJRT_ARGS(int, .object = description);
    sx_pjrt_properties rows = SX_PJRT_ARGS(properties, .object = description);
    if (status == SX_OK) {
        status = sx_pjrt_call(c->plugin, SX_PJRT_DESCRIPTION_PROCESS, &number);
        *process = status == SX_OK ? number.value : *process;
    }
    if (status == SX_OK) {
        status = sx_pjrt_call(c->plugin, SX_PJRT_DESCRIPTION_ATTRIBUTES, &rows);
    }
    for (size_t i = 0; status == SX_OK && i < rows.count; i++) {
        const sx_pjrt_named *row = &rows.items[i];
        if (sx_pjrt_is_named(row, "core_on_chip", SX_PJRT_INT64)) {
            *core_on_chip = (int)row->int64;
        } else if (sx_pjrt_is_named(row, "coords", SX_PJRT_INT64_LIST) &&
                   row->value_size <= (size_t)capacity) {
            memcpy(coords, row->int64_list, row->value_size * sizeof(*coords));
            *n_coords = (int)row->value_size;
        }
    }
    sx_status_free(status);
}

void sx_pjrt_device_memories(const sx_pjrt_client *c, int index, sx_memory *memories, int *n)
{
    sx_pjrt_list all = SX_PJRT_ARGS(list, .object = c->devices[index]);
    sx_pjrt_pointer first = SX_PJRT_ARGS(pointer, .object = c->devices[index]);
    sx_memory found[SX_MAX_MEMORIES] = {0};
    int count = 1;
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_DEVICE_MEMORIES, &all);
    status = status == SX_OK ? sx_pjrt_call(c->plugin, SX_PJRT_DEFAULT_MEMORY, &first) : status;
    for (size_t i = 0; status == SX_OK && i < all.count; i++) {
        const bool is_default = all.items[i] == first.value;
        if (!is_default && count == SX_MAX_MEMORIES) {
            continue;
        }
        sx_memory *m = is_default ? &found[0] : &found[count++];
        m->handle = all.items[i];
        status =
            sx_pjrt_text_of(c->plugin, SX_PJRT_MEMORY_KIND, m->handle, m->kind, sizeof(m->kind));
    }
    if (status == SX_OK && found[0].handle != NULL) {
        memcpy(memories, found, sizeof(found));
        *n = count;
    }
    sx_status_free(status);
}

sx_status sx_pjrt_await(const sx_pjrt_client *c, void *event)
{
    if (event == NULL) {
        return SX_OK;
    }
    sx_pjrt_object args = SX_PJRT_ARGS(object, .object = event);
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_EVENT_AWAIT, &args);
    sx_pjrt_end(c->plugin, SX_PJRT_EVENT_DESTROY, event);
    return status;
}

/* ---- Arrays ---- */

static int element_type(sx_dtype dtype)
{
    static const int types[] = {
        [SX_BOOL] = SX_PJRT_PRED, [SX_I8] = SX_PJRT_S8,   [SX_I16] = SX_PJRT_S16,
        [SX_I32] = SX_PJRT_S32,   [SX_I64] = SX_PJRT_S64, [SX_U8] = SX_PJRT_U8,
        [SX_U16] = SX_PJRT_U16,   [SX_U32] = SX_PJRT_U32, [SX_U64] = SX_PJRT_U64,
        [SX_F16] = SX_PJRT_F16,   [SX_F32] = SX_PJRT_F32, [SX_F64] = SX_PJRT_F64,
        [SX_BF16] = SX_PJRT_BF16,
    };
    return types[dtype];
}

sx_status sx_pjrt_put(const sx_pjrt_client *c, int device, void *memory, const sx_type *type,
                      const void *data, const int64_t *strides, void **out_done, void **out_array)
{
    static const uint64_t nothing = 0; /* for empty arrays, whose data may be NULL */
    sx_pjrt_from_host args =
        SX_PJRT_ARGS(from_host, .client = c->handle, .data = data == NULL ? &nothing : data,
                     .type = element_type(type->dtype), .dims = type->dims,
                     .n_dims = (size_t)type->rank, .device = c->devices[device], .memory = memory);
    args.strides = strides;
    args.n_strides = strides == NULL ? 0 : (size_t)type->rank;
    args.semantics = out_done == NULL ? SX_PJRT_DURING_CALL : SX_PJRT_UNTIL_TRANSFERRED;
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_BUFFER_FROM_HOST, &args));
    if (out_done != NULL) {
        *out_done = args.done;
    } else {
        sx_pjrt_end(c->plugin, SX_PJRT_EVENT_DESTROY, args.done);
    }
    *out_array = args.buffer;
    return SX_OK;
}

/* Hands the bytes over, and takes the array, which gets its value with them. */
static sx_status fill(const sx_pjrt_client *c, void *filling, const void *data, int64_t bytes,
                      void **out_done, void **out_array)
{
    sx_pjrt_fill_buffer take = SX_PJRT_ARGS(fill_buffer, .filling = filling);
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_FILL_BUFFER, &take));
    sx_pjrt_fill_data put =
        SX_PJRT_ARGS(fill_data, .filling = filling, .data = data, .size = bytes, .is_last = true);
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_FILL_DATA, &put);
    if (status != SX_OK) {
        sx_pjrt_array_destroy(c, take.buffer);
        return status;
    }
    *out_done = put.done;
    *out_array = take.buffer;
    return SX_OK;
}

sx_status sx_pjrt_put_first(const sx_pjrt_client *c, void *memory, const sx_type *type,
                            const void *data, int64_t bytes, void **out_done, void **out_filling,
                            void **out_array)
{
    const sx_pjrt_shape shape = {.struct_size = SX_PJRT_SHAPE_BYTES,
                                 .dims = type->dims,
                                 .n_dims = (size_t)type->rank,
                                 .type = element_type(type->dtype)};
    sx_pjrt_fill_create make = SX_PJRT_ARGS(fill_create, .client = c->handle, .shapes = &shape,
                                            .n_shapes = 1, .memory = memory);
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_FILL_CREATE, &make));
    sx_status status = fill(c, make.filling, data, bytes, out_done, out_array);
    if (status != SX_OK) {
        sx_pjrt_end(c->plugin, SX_PJRT_FILL_DESTROY, make.filling);
        return status;
    }
    *out_filling = make.filling;
    return SX_OK;
}

sx_status sx_pjrt_begin_get(const sx_pjrt_client *c, void *array, const sx_type *type, void *data,
                            void **out_event)
{
    int64_t order[SX_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        order[i] = type->rank - 1 - i;
    }
    /* Without a layout the copy has the device's layout, which is tiled on a TPU. */
    sx_pjrt_layout layout = {.struct_size = SX_PJRT_INNER_SIZE(c->plugin, layout),
                             .tiled_size = 56,
                             .minor_to_major = order,
                             .n_minor_to_major = (size_t)type->rank};
    sx_pjrt_to_host args = SX_PJRT_ARGS(to_host, .buffer = array, .layout = &layout, .data = data,
                                        .size = (size_t)sx_type_bytes(type));
    if (args.size > 0) {
        SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_BUFFER_TO_HOST, &args));
    }
    *out_event = args.event;
    return SX_OK;
}

sx_status sx_pjrt_get(const sx_pjrt_client *c, void *array, const sx_type *type, void *data)
{
    void *event = NULL;
    SX_TRY(sx_pjrt_begin_get(c, array, type, data, &event));
    return sx_pjrt_await(c, event);
}

void sx_pjrt_array_destroy(const sx_pjrt_client *c, void *array)
{
    sx_pjrt_end(c->plugin, SX_PJRT_BUFFER_DESTROY, array);
}

bool sx_pjrt_array_is_gone(const sx_pjrt_client *c, void *array)
{
    sx_pjrt_flag args = SX_PJRT_ARGS(flag, .object = array);
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_BUFFER_IS_DELETED, &args);
    bool known = status == SX_OK;
    sx_status_free(status);
    return !known || args.value;
}

bool sx_pjrt_pin(const sx_pjrt_client *c, void *data, size_t bytes)
{
    sx_pjrt_dma_map args = SX_PJRT_ARGS(dma_map, .client = c->handle, .data = data, .size = bytes);
    sx_status status = sx_pjrt_call(c->plugin, SX_PJRT_DMA_MAP, &args);
    const bool pinned = status == SX_OK;
    sx_status_free(status);
    return pinned;
}

void sx_pjrt_unpin(const sx_pjrt_client *c, void *data)
{
    sx_pjrt_dma_unmap args = SX_PJRT_ARGS(dma_unmap, .client = c->handle, .data = data);
    sx_status_free(sx_pjrt_call(c->plugin, SX_PJRT_DMA_UNMAP, &args));
}

/* ---- Programs ---- */

sx_status sx_pjrt_compile(const sx_pjrt_client *c, const char *text, size_t size, int replicas,
                          const int *ids, bool unfused, void **out_loaded)
{
    sx_buf options;
    sx_buf_init(&options, 1 << 20);
    sx_pjrt_put_compile_options(&options, replicas, ids, &c->xla, unfused);
    sx_status status = sx_buf_status(&options);
    sx_pjrt_program_text program = {.struct_size = SX_PJRT_INNER_SIZE(c->plugin, program_text),
                                    .code = text,
                                    .code_size = size,
                                    .format = "mlir",
                                    .format_size = 4};
    sx_pjrt_compile_args args =
        SX_PJRT_ARGS(compile_args, .client = c->handle, .program = &program,
                     .options = sx_buf_text(&options), .options_size = options.size);
    status = status != SX_OK ? status : sx_pjrt_call(c->plugin, SX_PJRT_CLIENT_COMPILE, &args);
    sx_buf_deinit(&options);
    if (status == SX_OK) {
        *out_loaded = args.executable;
    }
    return status;
}

sx_status sx_pjrt_executable_of(const sx_pjrt_client *c, void *loaded, void **out)
{
    sx_pjrt_pointer args = SX_PJRT_ARGS(pointer, .object = loaded);
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_LOADED_EXECUTABLE, &args));
    *out = args.value;
    return SX_OK;
}
