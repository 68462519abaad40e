/* Clients, devices, memories: see api.h. A device's handle is that of its description and of its
 * memory too. */
#include "pjrt_ref/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "pjrt_ref/fault.h"

/* ---- Clients ---- */

/* What a client is made with, and the names of the platform's options. */
typedef struct wanted {
    int64_t devices;
    double memory_fraction; /* of the memory of each device; 0: all */
    bool preallocate;       /* takes all of it at once */
    int64_t node, nodes;    /* the process, of how many */
} wanted;

static bool take_count(const sx_pjrt_named *option, wanted *out)
{
    out->devices = option->int64;
    return option->int64 >= 1 && option->int64 <= REF_MAX_DEVICES;
}

static bool take_fraction(const sx_pjrt_named *option, wanted *out)
{
    out->memory_fraction = (double)option->real;
    return option->real > 0 && option->real <= 1;
}

static bool take_preallocate(const sx_pjrt_named *option, wanted *out)
{
    out->preallocate = option->boolean;
    return true;
}

static bool take_visible(const sx_pjrt_named *option, wanted *out)
{
    out->devices = (int64_t)option->value_size;
    return option->value_size >= 1 && option->value_size <= REF_MAX_DEVICES;
}

static bool take_node(const sx_pjrt_named *option, wanted *out)
{
    out->node = option->int64;
    return option->int64 >= 0 && option->int64 < REF_MAX_PROCESSES;
}

static bool take_nodes(const sx_pjrt_named *option, wanted *out)
{
    out->nodes = option->int64;
    return option->int64 >= 1 && option->int64 <= REF_MAX_PROCESSES;
}

/* Known ones of the right type only, as XLA's plugins do. */
static sx_status read_option(const sx_pjrt_named *option, const char *platform, wanted *out)
{
    static const struct {
        const char *platform, *name;
        int type;
        bool (*take)(const sx_pjrt_named *option, wanted *out);
    } rows[] = {{"", "node_id", SX_PJRT_INT64, take_node}, /* of any platform */
                {"", "num_nodes", SX_PJRT_INT64, take_nodes},
                {"cpu", "cpu_device_count", SX_PJRT_INT64, take_count},
                {"cuda", "memory_fraction", SX_PJRT_FLOAT, take_fraction},
                {"cuda", "preallocate", SX_PJRT_BOOL, take_preallocate},
                {"cuda", "visible_devices", SX_PJRT_INT64_LIST, take_visible}};
    size_t i = 0;
    while (i < SX_COUNT(rows) &&
           ((rows[i].platform[0] != '\0' && strcmp(rows[i].platform, platform) != 0) ||
            strlen(rows[i].name) != option->name_size ||
            memcmp(rows[i].name, option->name, option->name_size) != 0)) {
        i++;
    }
    if (i == SX_COUNT(rows)) {
        return sx_error(SX_INVALID_ARGUMENT, "unknown client option %.*s", (int)option->name_size,
                        option->name);
    }
    if (option->type != rows[i].type || !rows[i].take(option, out)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: another type, or a value out of range",
                        rows[i].name);
    }
    return SX_OK;
}

sx_status ref_api_client_create(void *args)
{
    sx_pjrt_client_create *a = args;
    char platform[REF_WORDS];
    ref_client *c;
    wanted w = {.devices = ref_setting("devices", 4), .nodes = 1};
    int counts[REF_MAX_PROCESSES];
    ref_peers *peers = NULL;
    ref_faults_reset();
    SX_TRY(ref_fault("client"));
    for (size_t i = 0; i < a->n_options; i++) {
        SX_TRY(read_option(&a->options[i], ref_setting_text("platform", "cpu", platform), &w));
    }
    if (w.node >= w.nodes) {
        return sx_error(SX_INVALID_ARGUMENT, "node %lld of %lld", (long long)w.node,
                        (long long)w.nodes);
    }
    if (w.devices < 0 || w.devices > REF_MAX_DEVICES) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld devices", (long long)w.devices);
    }
    counts[0] = (int)w.devices;
    if (w.nodes > 1) {
        SX_TRY(ref_peers_create(a, (int)w.node, (int)w.nodes, (int)w.devices, counts, &peers));
    }
    SX_TRY(ref_client_create(counts, (int)w.node, (int)w.nodes, peers, &c));
    for (int i = 0; i < c->n_all; i++) {
        ref_memory *m = &c->devices[i].memory;
        m->limit =
            w.memory_fraction > 0 ? (int64_t)((double)m->limit * w.memory_fraction) : m->limit;
        atomic_store(&m->in_use, w.preallocate ? m->limit : 0);
    }
    a->client = c;
    return SX_OK;
}

/* What is left behind would be used after its end: on some plugins that crashes, later and
 * elsewhere. Here at once. */
sx_status ref_api_client_destroy(void *args)
{
    ref_client *c = ((sx_pjrt_object *)args)->object;
    int buffers = atomic_load(&c->buffers), executables = atomic_load(&c->executables);
    if (buffers != 0 || executables != 0) {
        fprintf(stderr, "pjrt_ref: Client_Destroy with %d buffers and %d executables alive\n",
                buffers, executables);
        abort();
    }
    if (ref_client_has_pinned(c, NULL)) {
        fprintf(stderr, "pjrt_ref: Client_Destroy with memory pinned\n");
        abort();
    }
    ref_client_destroy(c);
    return SX_OK;
}

sx_status ref_api_client_pin(void *args)
{
    const sx_pjrt_dma_map *a = args;
    return ref_client_pin(a->client, a->data, a->size);
}

sx_status ref_api_client_unpin(void *args)
{
    const sx_pjrt_dma_unmap *a = args;
    return ref_client_unpin(a->client, a->data);
}

static sx_status give_text(void *args, const char *text)
{
    sx_pjrt_text *a = args;
    a->text = text;
    a->size = strlen(text);
    return SX_OK;
}

static const ref_client *client_of(const void *args)
{
    return ((const sx_pjrt_object *)args)->object;
}

sx_status ref_api_client_platform_name(void *args)
{
    return give_text(args, client_of(args)->platform);
}

sx_status ref_api_client_platform_version(void *args)
{
    return give_text(args, client_of(args)->version);
}

sx_status ref_api_client_process_index(void *args)
{
    ((sx_pjrt_int *)args)->value = client_of(args)->process;
    return SX_OK;
}

sx_status ref_api_client_devices(void *args)
{
    sx_pjrt_list *a = args;
    a->items = (void *const *)(client_of(args)->list + client_of(args)->first);
    a->count = (size_t)client_of(args)->n_devices;
    return SX_OK;
}

sx_status ref_api_client_all_devices(void *args)
{
    sx_pjrt_list *a = args;
    a->items = (void *const *)client_of(args)->list;
    a->count = (size_t)client_of(args)->n_all;
    return SX_OK;
}

sx_status ref_api_client_lookup(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_client *client;
        int id;
        ref_device *device;
    } *a = args;
    if (a->id < 0 || a->id >= a->client->n_all) {
        return sx_error(SX_INVALID_ARGUMENT, "no device %d here", a->id);
    }
    a->device = a->client->list[a->id];
    return SX_OK;
}

sx_status ref_api_client_assignment(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_client *client;
        int replicas, partitions;
        size_t size;
        int *assignment;
    } *a = args;
    if (a->partitions != 1 || a->replicas < 1 || a->replicas > a->client->n_all ||
        a->size < (size_t)a->replicas) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas of %d partitions on %d devices",
                        a->replicas, a->partitions, a->client->n_all);
    }
    for (int i = 0; i < a->replicas; i++) {
        a->assignment[i] = i;
    }
    return SX_OK;
}

sx_status ref_api_client_compile(void *args)
{
    sx_pjrt_compile_args *a = args;
    const sx_pjrt_program_text *program = a->program;
    ref_loaded *loaded;
    SX_TRY(ref_fault("compile"));
    SX_TRY(ref_fault("full"));
    usleep((useconds_t)ref_setting("compile", 0) * 1000);
    SX_TRY(ref_check_size("Program", 48, program->struct_size));
    if (program->format_size != 4 || memcmp(program->format, "mlir", 4) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "a program of format '%.*s'; expected mlir",
                        (int)program->format_size, program->format);
    }
    SX_TRY(ref_loaded_of_text(a->client, program->code, program->code_size, a->options,
                              a->options_size, &loaded));
    a->executable = loaded;
    return SX_OK;
}

/* JAX asks at once, and can do without. */
sx_status ref_api_client_topology(void *args)
{
    (void)args;
    return sx_error(SX_UNIMPLEMENTED, "devices without a topology");
}

/* ---- Devices ---- */

static ref_device *device_of(const void *args)
{
    return ((const sx_pjrt_object *)args)->object;
}

sx_status ref_api_device_id(void *args)
{
    ((sx_pjrt_int *)args)->value = device_of(args)->id;
    return SX_OK;
}

sx_status ref_api_device_index(void *args)
{
    ((sx_pjrt_int *)args)->value = device_of(args)->index;
    return SX_OK;
}

sx_status ref_api_device_process_index(void *args)
{
    ((sx_pjrt_int *)args)->value = device_of(args)->process;
    return SX_OK;
}

sx_status ref_api_device_attributes(void *args)
{
    sx_pjrt_properties *a = args;
    a->items = device_of(args)->attributes;
    a->count = REF_ATTRIBUTES;
    return SX_OK;
}

sx_status ref_api_device_kind(void *args)
{
    return give_text(args, device_of(args)->kind);
}

sx_status ref_api_device_text(void *args)
{
    return give_text(args, device_of(args)->text);
}

sx_status ref_api_memory_kind(void *args)
{
    return give_text(args, "device");
}

sx_status ref_api_device_itself(void *args)
{
    ((sx_pjrt_pointer *)args)->value = device_of(args);
    return SX_OK;
}

sx_status ref_api_device_is_addressable(void *args)
{
    ((sx_pjrt_flag *)args)->value = device_of(args)->process == device_of(args)->client->process;
    return SX_OK;
}

sx_status ref_api_device_list(void *args)
{
    sx_pjrt_list *a = args;
    a->items = (void *const *)&device_of(args)->self;
    a->count = 1;
    return SX_OK;
}

sx_status ref_api_device_memory(void *args)
{
    sx_pjrt_device_memory *a = args;
    const ref_memory *m = &((const ref_device *)a->device)->memory;
    SX_TRY(ref_fault("memory"));
    a->in_use = atomic_load(&m->in_use);
    a->peak = atomic_load(&m->peak);
    a->n_allocations = atomic_load(&m->count);
    a->largest = atomic_load(&m->largest);
    a->limit = m->limit;
    a->has_peak = a->has_n_allocations = a->has_largest = true;
    a->has_limit = m->limit > 0;
    return SX_OK;
}
