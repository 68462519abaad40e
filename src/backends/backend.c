/* The generic part of the contract (backend.h): finding a backend, reference counts, and checks of
 * arguments, so that backends need not repeat them. */
#include "backends/backend.h"

#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/passes/passes.h"

enum { SETTLE_NS = 1000000000 }; /* that a platform waits for what still executes */

const sx_backend *const sx_backends[] = {
#define SX_BACKEND(name) &sx_backend_##name,
#include "backends/backends.def"
#undef SX_BACKEND
    NULL};

const char *sx_default_backend(void)
{
    for (int i = 0; sx_backends[i] != NULL; i++) {
        if (sx_backends[i]->capabilities & SX_CAN_TRAIN) {
            return sx_backends[i]->name;
        }
    }
    return "host";
}

static sx_status unknown_backend(const char *name)
{
    sx_buf known;
    sx_buf_init(&known, 4096);
    for (int i = 0; sx_backends[i] != NULL; i++) {
        sx_buf_printf(&known, "%s%s", i > 0 ? ", " : "", sx_backends[i]->name);
    }
    sx_status status = sx_error(SX_UNAVAILABLE, "no device kind \"%s\"; this build has %s", name,
                                sx_buf_text(&known));
    sx_buf_deinit(&known);
    return status;
}

sx_status sx_platform_open(const char *name, const sx_platform_options *options,
                           sx_platform **out_platform)
{
    const sx_platform_options defaults = {0};
    for (int i = 0; sx_backends[i] != NULL; i++) {
        if (strcmp(sx_backends[i]->name, name) == 0) {
            const sx_platform_options *o = options != NULL ? options : &defaults;
            SX_TRY(sx_backends[i]->open(o, out_platform));
            (*out_platform)->timeline = o->timeline;
            return SX_OK;
        }
    }
    return unknown_backend(name);
}

bool sx_platform_close(sx_platform *platform)
{
    const int64_t deadline_ns = sx_now_ns() + SETTLE_NS;
    if (platform == NULL) {
        return true;
    }
    while (atomic_load(&platform->abandoned) > 0) {
        if (sx_now_ns() >= deadline_ns) {
            return false;
        }
        sx_sleep_ns(1000000);
    }
    while (atomic_load(&platform->ending) > 0) {
        sx_sleep_ns(20000);
    }
    platform->backend->close(platform);
    return true;
}

sx_status sx_platform_record(sx_platform *platform)
{
    return platform->backend->record != NULL
               ? platform->backend->record(platform)
               : sx_error(SX_UNIMPLEMENTED, "%s does not record operations",
                          platform->backend->name);
}

sx_status sx_platform_recorded(sx_platform *platform, sx_device_op_visit *visit, void *user)
{
    return platform->backend->recorded != NULL ? platform->backend->recorded(platform, visit, user)
                                               : SX_OK;
}

/* ---- Buffers ---- */

sx_status sx_device_find_memory(const sx_device *device, const char *kind, int *out_memory)
{
    sx_buf known;
    for (int i = 0; i < device->n_memories; i++) {
        if (strcmp(device->memories[i].kind, kind) == 0) {
            *out_memory = i;
            return SX_OK;
        }
    }
    sx_buf_init(&known, 1024);
    for (int i = 0; i < device->n_memories; i++) {
        sx_buf_printf(&known, "%s%s", i > 0 ? ", " : "", device->memories[i].kind);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "%s has no memory \"%s\"; it has %s", device->name,
                                kind, sx_buf_text(&known));
    sx_buf_deinit(&known);
    return status;
}

sx_status sx_device_get_memory_stats(sx_device *device, sx_memory_stats *out)
{
    const sx_backend *backend = device->platform->backend;
    *out = (sx_memory_stats){0};
    if (backend->memory != NULL) {
        SX_TRY(backend->memory(device, out), "the memory of %s", device->name);
    }
    return SX_OK;
}

sx_status sx_device_buffer_create_in(sx_device *device, int memory, const sx_type *type,
                                     sx_device_buffer **out)
{
    if (!sx_type_is_static(type) || sx_type_bytes(type) < 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT,
                        "a buffer on %s needs a static numeric type of less than 2^63 "
                        "bytes, got %s",
                        device->name, sx_type_format(type, text, sizeof(text)));
    }
    if (memory < 0 || memory >= device->n_memories) {
        return sx_error(SX_INVALID_ARGUMENT, "memory %d of %s does not exist: it has %d", memory,
                        device->name, device->n_memories);
    }
    SX_TRY(device->platform->backend->buffer_create(device, memory, type, out));
    (*out)->memory = memory;
    return SX_OK;
}

sx_status sx_device_buffer_create(sx_device *device, const sx_type *type, sx_device_buffer **out)
{
    return sx_device_buffer_create_in(device, 0, type, out);
}

sx_status sx_device_buffer_create_within(sx_device *device, const sx_type *type, sx_budget *budget,
                                         sx_device_buffer **out)
{
    const int64_t bytes = SX_MAX(sx_type_bytes(type), 0); /* -1 is refused below */
    if (!sx_budget_charge(budget, (size_t)bytes)) {
        char text[SX_TYPE_TEXT];
        return sx_budget_over(budget, sx_type_format(type, text, sizeof(text)), (size_t)bytes);
    }
    sx_status status = sx_device_buffer_create(device, type, out);
    if (status != SX_OK) {
        sx_budget_release(budget, (size_t)bytes);
        return status;
    }
    (*out)->budget = budget;
    return SX_OK;
}

sx_status sx_device_buffer_check_kept(const sx_device_buffer *buffer)
{
    return !atomic_load_explicit(&buffer->lost, memory_order_relaxed)
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "the buffer's value was lost in an execution that failed");
}

sx_status sx_device_buffer_write(sx_device_buffer *buffer, const void *data, bool borrow)
{
    SX_TRY(buffer->device->platform->backend->buffer_write(buffer, data, borrow));
    atomic_store_explicit(&buffer->lost, false, memory_order_relaxed);
    return SX_OK;
}

sx_status sx_device_buffer_write_first(sx_device_buffer *buffer, const void *data, int64_t bytes)
{
    const sx_backend *backend = buffer->device->platform->backend;
    if (backend->buffer_write_first == NULL || bytes > sx_type_bytes(&buffer->type) / 2) {
        return sx_device_buffer_write(buffer, data, true);
    }
    SX_TRY(backend->buffer_write_first(buffer, data, bytes));
    atomic_store_explicit(&buffer->lost, false, memory_order_relaxed);
    return SX_OK;
}

void *sx_device_buffer_data(sx_device_buffer *buffer)
{
    const sx_backend *backend = buffer->device->platform->backend;
    void *data = backend->buffer_data != NULL ? backend->buffer_data(buffer) : NULL;
    if (data != NULL) {
        atomic_store_explicit(&buffer->lost, false, memory_order_relaxed);
    }
    return data;
}

bool sx_device_buffer_set_source(sx_device_buffer *buffer, const sx_buffer_source *source)
{
    const sx_backend *backend = buffer->device->platform->backend;
    if (backend->buffer_set_source != NULL) {
        backend->buffer_set_source(buffer, source);
        atomic_store_explicit(&buffer->lost, false, memory_order_relaxed);
    }
    return backend->buffer_set_source != NULL;
}

sx_status sx_device_buffer_read(sx_device_buffer *buffer, void *data)
{
    return sx_device_buffer_read_within(buffer, data, SX_NO_DEADLINE);
}

sx_status sx_device_buffer_read_within(sx_device_buffer *buffer, void *data, int64_t deadline_ns)
{
    SX_TRY(sx_device_buffer_check_kept(buffer));
    return buffer->device->platform->backend->buffer_read(buffer, data, deadline_ns);
}

sx_status sx_device_buffers_read(int n, sx_device_buffer *const *buffers, void *const *data)
{
    const sx_backend *backend = n > 0 ? buffers[0]->device->platform->backend : NULL;
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_device_buffer_check_kept(buffers[i]));
    }
    if (backend != NULL && backend->buffers_read != NULL) {
        return backend->buffers_read(n, buffers, data);
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_device_buffer_read(buffers[i], data[i]));
    }
    return SX_OK;
}

sx_status sx_device_buffer_copy(sx_device_buffer *from, sx_device *to, int memory,
                                sx_device_buffer **out)
{
    const sx_backend *backend = to->platform->backend;
    *out = NULL;
    SX_TRY(sx_device_buffer_check_kept(from));
    if (from->device->platform == to->platform && backend->buffer_copy != NULL && memory >= 0 &&
        memory < to->n_memories) {
        SX_TRY(backend->buffer_copy(from, to, memory, out), "copying from %s to %s",
               from->device->name, to->name);
        if (*out != NULL) {
            (*out)->memory = memory;
            return SX_OK;
        }
    }
    const size_t bytes = (size_t)sx_type_bytes(&from->type);
    void *data = sx_alloc(bytes + 1, 1);
    sx_device_buffer *made = NULL;
    sx_status status = data != NULL ? sx_device_buffer_read(from, data)
                                    : sx_no_memory("for %zu bytes between %s and %s", bytes,
                                                   from->device->name, to->name);
    status = status == SX_OK ? sx_device_buffer_create_in(to, memory, &from->type, &made) : status;
    status = status == SX_OK ? sx_device_buffer_write(made, data, false) : status;
    sx_free(data);
    if (status != SX_OK) {
        sx_device_buffer_release(made);
        return status;
    }
    *out = made;
    return SX_OK;
}

bool sx_platform_pin(sx_platform *platform, void *data, size_t bytes)
{
    return platform->backend->pin != NULL && platform->backend->pin(platform, data, bytes);
}

void sx_platform_unpin(sx_platform *platform, void *data)
{
    platform->backend->unpin(platform, data);
}

sx_device_buffer *sx_device_buffer_retain(sx_device_buffer *buffer)
{
    atomic_fetch_add(&buffer->refs, 1);
    return buffer;
}

void sx_device_buffer_release(sx_device_buffer *buffer)
{
    if (buffer != NULL && atomic_fetch_sub(&buffer->refs, 1) == 1) {
        sx_budget_release(buffer->budget, (size_t)sx_type_bytes(&buffer->type));
        buffer->device->platform->backend->buffer_destroy(buffer);
    }
}

/* ---- Executables ---- */

void sx_platform_prepare_products(sx_platform *platform)
{
    if (platform->backend->prepare_products != NULL) {
        platform->backend->prepare_products(platform);
    }
}

sx_status sx_compile(sx_platform *platform, const sx_graph *graph,
                     const sx_compile_options *options, sx_executable **out)
{
    const sx_compile_options defaults = {0};
    const sx_compile_options *o = options != NULL ? options : &defaults;
    if (o->batch < 0 || o->batch > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT, "batch size %lld is not in [1, 2^31)",
                        (long long)o->batch);
    }
    if (o->steps < 0 || (o->steps > 1 && !(platform->backend->capabilities & SX_CAN_LOOP))) {
        return sx_error(SX_UNIMPLEMENTED, "device kind %s runs one step at a time, got %lld",
                        platform->backend->name, (long long)o->steps);
    }
    for (int i = 0; i < graph->n_args; i++) {
        if (o->batch == 0 && sx_type_has_batch(sx_graph_type(graph, graph->args[i].value))) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "input \"%s\" has a batch dimension, but no batch size was "
                            "given to compile for",
                            graph->args[i].name);
        }
    }
    sx_graph charged = *graph; /* as the graphs that are made from it are */
    charged.arena.budget = o->memory;
    sx_executable *e = NULL;
    sx_graph *plain = NULL, *fused = NULL;
    sx_status compiled = sx_pass_drop_gradients(&charged, &plain);
    if (compiled == SX_OK) {
        compiled = sx_pass_fuse_norms(plain != NULL ? plain : &charged, &fused);
    }
    if (compiled == SX_OK) {
        const sx_graph *g = fused != NULL ? fused : plain != NULL ? plain : &charged;
        compiled = platform->backend->compile(platform, g, o, &e);
    }
    sx_graph_destroy(plain);
    sx_graph_destroy(fused);
    SX_TRY(sx_budget_explain(o->memory, "compiling a program", compiled));
    if (o->memory != NULL && e->memory == NULL) {
        sx_executable_info info;
        e->memory = o->memory;
        sx_status status = sx_executable_get_info(e, &info);
        if (status == SX_OK) {
            status = sx_executable_charge(e, info.temporary_bytes, info.code_bytes, NULL);
        }
        if (status != SX_OK) {
            sx_executable_release(e);
            return status;
        }
    }
    *out = e;
    return SX_OK;
}

sx_status sx_executable_allocate(sx_executable *e)
{
    const size_t n_args = (size_t)e->n_args, n_results = (size_t)e->n_results;
    e->arg_types = sx_alloc(n_args + n_results + 1, sizeof(*e->arg_types));
    e->result_args = sx_alloc(n_results + 1, sizeof(*e->result_args));
    if (e->arg_types == NULL || e->result_args == NULL) {
        return sx_no_memory("for the types of a program");
    }
    e->result_types = e->arg_types + n_args;
    return SX_OK;
}

sx_status sx_executable_describe(sx_executable *e, const sx_graph *g, int64_t batch)
{
    e->n_args = g->n_args;
    e->n_results = g->n_results;
    SX_TRY(sx_executable_allocate(e));
    for (int i = 0; i < g->n_args; i++) {
        e->arg_types[i] = sx_type_with_batch(*sx_graph_type(g, g->args[i].value), batch);
    }
    for (int i = 0; i < g->n_results; i++) {
        e->result_types[i] = sx_type_with_batch(*sx_graph_type(g, g->results[i].value), batch);
        e->result_args[i] = g->results[i].arg;
    }
    return SX_OK;
}

void sx_executable_deinit(sx_executable *e)
{
    sx_free(e->arg_types);
    sx_free(e->result_args);
}

sx_status sx_executable_charge(sx_executable *e, int64_t temporary_bytes, int64_t constant_bytes,
                               const char *largest)
{
    int64_t bytes = 0;
    const bool adds_up = sx_add_i64(temporary_bytes, constant_bytes, &bytes);
    if (e->memory == NULL) {
        return SX_OK;
    }
    if (adds_up && sx_budget_charge(e->memory, (size_t)bytes)) {
        e->memory_bytes = (size_t)constant_bytes;
        e->run_bytes = (size_t)temporary_bytes;
        atomic_store(&e->run_charged, true);
        return SX_OK;
    }
    sx_buf what;
    sx_buf_init(&what, 4096);
    sx_buf_puts(&what, "temporaries of ");
    sx_buf_put_size(&what, (double)temporary_bytes);
    sx_buf_puts(&what, " and constants of ");
    sx_buf_put_size(&what, (double)constant_bytes);
    if (largest != NULL) {
        sx_buf_printf(&what, " (the largest value is %s)", largest);
    }
    sx_status status = sx_budget_over(e->memory, sx_buf_text(&what), 0);
    sx_buf_deinit(&what);
    return status;
}

void sx_executable_discharge(sx_executable *e)
{
    const bool has_run = atomic_exchange(&e->run_charged, false);
    sx_budget_release(e->memory, e->memory_bytes + (has_run ? e->run_bytes : 0));
    e->memory_bytes = 0;
}

void sx_executable_hand_over(sx_executable *e, int64_t bytes)
{
    e->memory_bytes -= e->memory != NULL ? (size_t)bytes : 0;
}

sx_status sx_executable_get_info(const sx_executable *e, sx_executable_info *out)
{
    *out = (sx_executable_info){.shards = 1, .numerics = ""};
    for (int i = 0; i < e->n_args; i++) {
        out->argument_bytes += sx_type_bytes(&e->arg_types[i]);
    }
    for (int i = 0; i < e->n_results; i++) {
        out->output_bytes += e->result_args[i] < 0 ? sx_type_bytes(&e->result_types[i]) : 0;
    }
    return e->platform->backend->info != NULL ? e->platform->backend->info(e, out) : SX_OK;
}

sx_executable *sx_executable_retain(sx_executable *e)
{
    atomic_fetch_add(&e->refs, 1);
    return e;
}

void sx_executable_release(sx_executable *e)
{
    if (e != NULL && atomic_fetch_sub(&e->refs, 1) == 1) {
        sx_executable_discharge(e);
        e->platform->backend->executable_destroy(e);
    }
}
