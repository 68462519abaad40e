/* The generic half of the contract (backend.h): finding a backend, counting references, checking
 * what callers pass, so that no backend repeats it. */
#include "backends/backend.h"

#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"

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
    return "ref";
}

static sx_status unknown_backend(const char *name)
{
    sx_buf known;
    sx_buf_init(&known, 4096);
    for (int i = 0; sx_backends[i] != NULL; i++) {
        sx_buf_printf(&known, "%s%s", i > 0 ? ", " : "", sx_backends[i]->name);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "no device kind \"%s\"; this build has %s", name,
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
            return sx_backends[i]->open(options != NULL ? options : &defaults, out_platform);
        }
    }
    return unknown_backend(name);
}

void sx_platform_close(sx_platform *platform)
{
    if (platform != NULL) {
        platform->backend->close(platform);
    }
}

/* --- buffers --------------------------------------------------------------------------------- */

sx_status sx_buffer_create(sx_device *device, const sx_type *type, sx_buffer **out)
{
    if (!sx_type_is_static(type) || sx_type_bytes(type) < 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT,
                        "a buffer on %s needs a static numeric type of less than 2^63 "
                        "bytes, got %s",
                        device->name, sx_type_format(type, text, sizeof(text)));
    }
    return device->platform->backend->buffer_create(device, type, out);
}

sx_status sx_buffer_write(sx_buffer *buffer, const void *data, bool borrow)
{
    return buffer->device->platform->backend->buffer_write(buffer, data, borrow);
}

sx_status sx_buffer_read(sx_buffer *buffer, void *data)
{
    return buffer->device->platform->backend->buffer_read(buffer, data);
}

sx_status sx_buffers_read(int n, sx_buffer *const *buffers, void *const *data)
{
    const sx_backend *backend = n > 0 ? buffers[0]->device->platform->backend : NULL;
    if (backend != NULL && backend->buffers_read != NULL) {
        return backend->buffers_read(n, buffers, data);
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_buffer_read(buffers[i], data[i]));
    }
    return SX_OK;
}

sx_buffer *sx_buffer_retain(sx_buffer *buffer)
{
    atomic_fetch_add(&buffer->refs, 1);
    return buffer;
}

void sx_buffer_release(sx_buffer *buffer)
{
    if (buffer != NULL && atomic_fetch_sub(&buffer->refs, 1) == 1) {
        buffer->device->platform->backend->buffer_destroy(buffer);
    }
}

/* --- executables ----------------------------------------------------------------------------- */

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
    sx_executable *e = NULL;
    SX_TRY(platform->backend->compile(platform, graph, o, &e));
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

sx_status sx_executable_charge(sx_executable *e, int64_t temporary_bytes, int64_t constant_bytes,
                               const char *largest)
{
    int64_t bytes = 0;
    const bool adds_up = sx_add_i64(temporary_bytes, constant_bytes, &bytes);
    if (e->memory == NULL || (adds_up && sx_budget_charge(e->memory, (size_t)bytes))) {
        e->memory_bytes = e->memory != NULL ? (size_t)bytes : 0;
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
    sx_status status = sx_budget_over(e->memory, sx_buf_text(&what));
    sx_buf_deinit(&what);
    return status;
}

void sx_executable_discharge(sx_executable *e)
{
    sx_budget_release(e->memory, e->memory_bytes);
    e->memory_bytes = 0;
}

static sx_status check_buffer(const sx_executable *e, const sx_buffer *buffer, const sx_type *type,
                              const char *what, int i)
{
    char want[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
    if (buffer == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is missing, expected %s", what, i,
                        sx_type_format(type, want, sizeof(want)));
    }
    if (buffer->device->platform != e->platform || !sx_type_equal(&buffer->type, type)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s on %s, expected %s on %s", what, i,
                        sx_type_format(&buffer->type, got, sizeof(got)), buffer->device->name,
                        sx_type_format(type, want, sizeof(want)), e->platform->devices[0]->name);
    }
    return SX_OK;
}

sx_status sx_execute(sx_executable *e, sx_buffer *const *args, sx_buffer *const *outputs)
{
    for (int i = 0; i < e->n_args; i++) {
        SX_TRY(check_buffer(e, args[i], &e->arg_types[i], "argument", i));
    }
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            SX_TRY(check_buffer(e, outputs[i], &e->result_types[i], "output", i));
        }
    }
    return e->platform->backend->execute(e, args, outputs);
}

sx_status sx_executable_get_info(const sx_executable *e, sx_executable_info *out)
{
    *out = (sx_executable_info){.shards = 1, .numerics = ""};
    return e->platform->backend->info != NULL ? e->platform->backend->info(e, out) : SX_OK;
}

sx_status sx_executable_get_profile(const sx_executable *e, const sx_kernel_time **out_rows,
                                    int *out_count)
{
    if (e->platform->backend->profile == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "device kind %s keeps no kernel times",
                        e->platform->backend->name);
    }
    return e->platform->backend->profile(e, out_rows, out_count);
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
