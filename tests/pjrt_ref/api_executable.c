/* Executables: see api.h. An Executable is a reference on a program, a LoadedExecutable one with
 * devices.
 *
 * Serialized, little-endian:   8 magic | u32 replicas | u32 portable | u64 hash of the text |
 *                              i32 ids[replicas] | the text */
#include "pjrt_ref/api.h"

#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/options.h"

static ref_code *code_of(const void *args)
{
    return ((const sx_pjrt_object *)args)->object;
}

static ref_loaded *loaded_of(const void *args)
{
    return ((const sx_pjrt_object *)args)->object;
}

static sx_status give(void *args, int64_t value)
{
    ((sx_pjrt_int64 *)args)->value = value;
    return SX_OK;
}

/* --- What a program is --------------------------------------------------------------------------
 */

sx_status ref_api_executable_destroy(void *args)
{
    ref_code_release(code_of(args));
    return SX_OK;
}

sx_status ref_api_executable_name(void *args)
{
    sx_pjrt_text *a = args;
    a->text = "main";
    a->size = 4;
    return SX_OK;
}

sx_status ref_api_executable_replicas(void *args)
{
    return give(args, code_of(args)->replicas);
}

sx_status ref_api_executable_partitions(void *args)
{
    return give(args, 1);
}

sx_status ref_api_executable_outputs(void *args)
{
    return give(args, code_of(args)->n_outputs);
}

sx_status ref_api_executable_code_size(void *args)
{
    return give(args, (int64_t)code_of(args)->size);
}

sx_status ref_api_executable_costs(void *args)
{
    sx_pjrt_properties *a = args;
    a->items = code_of(args)->costs;
    a->count = sizeof(code_of(args)->costs) / sizeof(code_of(args)->costs[0]);
    return SX_OK;
}

sx_status ref_api_executable_memory(void *args)
{
    sx_pjrt_compiled_memory *a = args;
    const ref_code *c = a->executable;
    a->code = (int64_t)c->size;
    a->arguments = c->argument_bytes;
    a->outputs = c->output_bytes;
    a->aliases = c->alias_bytes;
    a->temporaries = 0;
    memset(a->host, 0, sizeof(a->host));
    a->peak = c->argument_bytes + c->output_bytes - c->alias_bytes;
    return SX_OK;
}

sx_status ref_api_executable_output_types(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_code *code;
        const int *types;
        size_t n;
    } *a = args;
    a->types = a->code->output_types;
    a->n = (size_t)a->code->n_outputs;
    return SX_OK;
}

sx_status ref_api_executable_output_dims(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_code *code;
        size_t n;
        const int64_t *dims;
        const size_t *ranks;
    } *a = args;
    a->n = (size_t)a->code->n_outputs;
    a->dims = a->code->output_dims;
    a->ranks = a->code->output_ranks;
    return SX_OK;
}

static sx_status give_fingerprint(void *args, const ref_code *code)
{
    sx_pjrt_text *a = args;
    a->text = code->fingerprint;
    a->size = strlen(code->fingerprint);
    return SX_OK;
}

sx_status ref_api_executable_fingerprint(void *args)
{
    return give_fingerprint(args, code_of(args));
}

/* The size is asked first, with a NULL for the code. */
sx_status ref_api_executable_program(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_code *code;
        sx_pjrt_program_text *program;
    } *a = args;
    char *to = (char *)(uintptr_t)a->program->code;
    SX_TRY(ref_check_size("Program", 48, a->program->struct_size));
    if (to != NULL && a->program->code_size < a->code->size) {
        return sx_error(SX_INVALID_ARGUMENT, "%zu bytes of room for %zu", a->program->code_size,
                        a->code->size);
    }
    if (to != NULL) {
        memcpy(to, a->code->text, a->code->size);
    }
    a->program->code_size = a->code->size;
    a->program->format = "mlir";
    a->program->format_size = 4;
    return SX_OK;
}

/* --- Serialized ---------------------------------------------------------------------------------
 */

typedef struct file_head {
    char magic[8];
    uint32_t replicas, is_portable;
    uint64_t hash;
} file_head;
static const char magic[8] = "SXREF001";

static void serialized_free(void *bytes)
{
    sx_free(bytes);
}

sx_status ref_api_executable_serialize(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_code *code;
        const char *bytes;
        size_t size;
        void *owner;
        void (*release)(void *owner);
    } *a = args;
    const ref_code *c = a->code;
    file_head head = {.replicas = (uint32_t)c->replicas,
                      .is_portable = c->is_portable,
                      .hash = sx_hash64(c->text, c->size)};
    sx_buf buf;
    SX_TRY(ref_fault("serialize"));
    memcpy(head.magic, magic, sizeof(magic));
    sx_buf_init(&buf, 0);
    sx_buf_append(&buf, &head, sizeof(head));
    sx_buf_append(&buf, c->ids, (size_t)c->replicas * sizeof(c->ids[0]));
    sx_buf_append(&buf, c->text, c->size);
    sx_status status = sx_buf_status(&buf);
    if (status == SX_OK) {
        a->owner = sx_buf_take(&buf, &a->size);
        a->bytes = a->owner;
        a->release = serialized_free;
    }
    sx_buf_deinit(&buf);
    return status;
}

static sx_status code_of_bytes(const char *bytes, size_t size, ref_code **out)
{
    file_head head;
    int ids[REF_MAX_DEVICES];
    if (size < sizeof(head)) {
        return sx_error(SX_INVALID_ARGUMENT, "%zu bytes are no serialized executable", size);
    }
    memcpy(&head, bytes, sizeof(head));
    size_t at = sizeof(head) + (size_t)head.replicas * sizeof(ids[0]);
    if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.replicas < 1 ||
        head.replicas > REF_MAX_DEVICES || size < at ||
        sx_hash64(bytes + at, size - at) != head.hash) {
        return sx_error(SX_INVALID_ARGUMENT, "these bytes are no serialized executable of ours");
    }
    memcpy(ids, bytes + sizeof(head), at - sizeof(head));
    return ref_code_create(bytes + at, size - at, (int)head.replicas, ids, head.is_portable != 0,
                           out);
}

/* A text is taken as a program: what XLA's own client, which sends programs as bytecode only, hands
 * over untouched. */
sx_status ref_api_loaded_deserialize(void *args)
{
    static const char module[] = "module";
    sx_pjrt_deserialize *a = args;
    ref_loaded *loaded;
    ref_code *code;
    SX_TRY(ref_fault("deserialize"));
    if (a->size >= sizeof(module) && memcmp(a->bytes, module, sizeof(module) - 1) == 0) {
        SX_TRY(
            ref_loaded_of_text(a->client, a->bytes, a->size, a->options, a->options_size, &loaded));
        a->loaded = loaded;
        return SX_OK;
    }
    SX_TRY(code_of_bytes(a->bytes, a->size, &code));
    sx_status status = ref_loaded_create(a->client, code, &loaded);
    ref_code_release(code);
    SX_TRY(status);
    a->loaded = loaded;
    return SX_OK;
}

/* --- Loaded -------------------------------------------------------------------------------------
 */

sx_status ref_api_loaded_destroy(void *args)
{
    ref_loaded_destroy(loaded_of(args));
    return SX_OK;
}

sx_status ref_api_loaded_executable(void *args)
{
    ((sx_pjrt_pointer *)args)->value = ref_code_retain(loaded_of(args)->code);
    return SX_OK;
}

sx_status ref_api_loaded_devices(void *args)
{
    sx_pjrt_list *a = args;
    a->items = (void *const *)loaded_of(args)->devices;
    a->count = (size_t)loaded_of(args)->n;
    return SX_OK;
}

sx_status ref_api_loaded_is_deleted(void *args)
{
    ((sx_pjrt_flag *)args)->value = false;
    return SX_OK;
}

sx_status ref_api_loaded_fingerprint(void *args)
{
    return give_fingerprint(args, loaded_of(args)->code);
}

static void put_varint(sx_buf *buf, size_t v)
{
    for (; v >= 0x80; v >>= 7) {
        sx_buf_putc(buf, (char)(v | 0x80));
    }
    sx_buf_putc(buf, (char)v);
}

/* DeviceAssignmentProto: 1 replicas, 2 partitions, 3 {1 the device of each replica}. */
static void put_assignment(sx_buf *buf, const ref_code *c)
{
    sx_buf ids;
    sx_buf_init(&ids, 0);
    for (int i = 0; i < c->replicas; i++) {
        sx_buf_putc(&ids, 1 << 3);
        put_varint(&ids, (size_t)c->ids[i]);
    }
    sx_buf_putc(buf, 1 << 3);
    put_varint(buf, (size_t)c->replicas);
    sx_buf_append(buf, (const char[]){2 << 3, 1, 3 << 3 | 2}, 3);
    put_varint(buf, ids.size);
    sx_buf_append(buf, sx_buf_text(&ids), ids.size);
    sx_buf_deinit(&ids);
}

/* Nothing of a portable program. */
sx_status ref_api_loaded_assignment(void *args)
{
    sx_pjrt_serialized *a = args;
    const ref_code *c = loaded_of(args)->code;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    if (!c->is_portable) {
        put_assignment(&buf, c);
    }
    sx_status status = sx_buf_status(&buf);
    if (status == SX_OK) {
        a->backing = sx_buf_take(&buf, &a->size);
        a->bytes = a->backing;
        a->destroy = serialized_free;
    }
    sx_buf_deinit(&buf);
    return status;
}

/* --- Execute ------------------------------------------------------------------------------------
 */

/* Where it runs: all its devices; or, a portable program, the one that is named, else that of its
 * first argument. */
static sx_status devices_of(const sx_pjrt_execute *a, const ref_loaded *l, ref_device **one,
                            ref_device *const **out)
{
    *one = l->devices[0];
    *out = a->device != NULL || l->code->is_portable ? one : l->devices;
    if (a->n_devices != (size_t)l->n || a->n_args != (size_t)l->code->program->main.n_args) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%zu devices and %zu arguments; the program has %d replicas here and %d",
                        a->n_devices, a->n_args, l->n, l->code->program->main.n_args);
    }
    if (a->device != NULL && !l->code->is_portable) {
        return sx_error(SX_INVALID_ARGUMENT, "only a portable program runs on a device of choice");
    }
    if (a->device != NULL) {
        *one = a->device;
    } else if (l->code->is_portable && a->n_args > 0) {
        *one = ((const ref_buffer *)a->arguments[0][0])->device;
    }
    return SX_OK;
}

static sx_status check_options(const sx_pjrt_execute_options *o)
{
    SX_TRY(ref_check_size("ExecuteOptions", 112, o == NULL ? 0 : o->struct_size));
    return o->n_send + o->n_receive == 0
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "callbacks of send and receive");
}

/* donates[n_args]: what the program says, but for what the caller keeps. */
static void find_donations(const ref_code *c, const sx_pjrt_execute_options *o, bool *donates)
{
    for (int i = 0; i < c->program->main.n_args; i++) {
        donates[i] = c->program->aliases[i] >= 0 || c->program->donors[i];
        for (size_t k = 0; k < o->n_not_donated; k++) {
            donates[i] = donates[i] && o->not_donated[k] != i;
        }
    }
}

sx_status ref_api_loaded_execute(void *args)
{
    sx_pjrt_execute *a = args;
    ref_loaded *l = a->executable;
    ref_device *one, *const *devices;
    SX_TRY(ref_fault("oom"));
    SX_TRY(ref_fault("lost"));
    SX_TRY(check_options(a->options));
    SX_TRY(devices_of(a, l, &one, &devices));
    bool *donates = sx_alloc(a->n_args + 1, sizeof(*donates));
    if (donates == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for an execution");
    }
    find_donations(l->code, a->options, donates);
    sx_status status =
        ref_submit(l, devices, (int)a->n_devices, (ref_buffer *const *const *)a->arguments, donates,
                   (ref_buffer * *const *)a->outputs, (ref_event **)a->events);
    sx_free(donates);
    return status;
}
