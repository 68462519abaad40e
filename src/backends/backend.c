/* The generic part of the contract (backend.h): finding a backend, reference counts, and checks of
 * arguments, so that backends need not repeat them. */
#include "backends/backend.h"

#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/passes/passes.h"

enum { SETTLE_NS = 1000000000 }; /* that a platform waits for what still executes */

/* A call of on_done on this thread, and the one that it is made in. */
typedef struct calling {
    const sx_platform *platform;
    const struct calling *outer;
} calling;
static _Thread_local const calling *innermost;

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

bool sx_platform_calls_here(const sx_platform *platform)
{
    const calling *c = innermost;
    while (c != NULL && c->platform != platform) {
        c = c->outer;
    }
    return c != NULL;
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

static sx_status check_kept(const sx_device_buffer *buffer)
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
    SX_TRY(check_kept(buffer));
    return buffer->device->platform->backend->buffer_read(buffer, data, deadline_ns);
}

sx_status sx_device_buffers_read(int n, sx_device_buffer *const *buffers, void *const *data)
{
    const sx_backend *backend = n > 0 ? buffers[0]->device->platform->backend : NULL;
    for (int i = 0; i < n; i++) {
        SX_TRY(check_kept(buffers[i]));
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
    SX_TRY(check_kept(from));
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

/* ---- Runs ---- */

sx_status sx_run_init(sx_run *run, sx_executable *executable)
{
    run->checked = sx_alloc((size_t)(executable->n_args + executable->n_results) + 1,
                            sizeof(sx_device_buffer *));
    if (run->checked == NULL) {
        return sx_no_memory("for a run");
    }
    run->executable = sx_executable_retain(executable);
    atomic_init(&run->refs, 1);
    atomic_init(&run->state, SX_RUN_IDLE);
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->ended, NULL);
    return SX_OK;
}

void sx_run_deinit(sx_run *run)
{
    if (run->executable == NULL) {
        return; /* sx_run_init() failed or was not reached */
    }
    sx_status_free(run->status);
    pthread_mutex_destroy(&run->mutex);
    pthread_cond_destroy(&run->ended);
    sx_executable_release(run->executable);
    sx_free(run->checked);
}

sx_status sx_run_create(sx_executable *e, sx_run **out)
{
    if (e->memory != NULL && !atomic_exchange(&e->run_charged, false) &&
        !sx_budget_charge(e->memory, e->run_bytes)) {
        return sx_budget_over(e->memory, "one more run with temporaries", e->run_bytes);
    }
    sx_status status = e->platform->backend->run_create(e, out);
    if (status != SX_OK) {
        sx_budget_release(e->memory, e->run_bytes);
    }
    return status;
}

static void release_run(sx_run *run)
{
    if (atomic_fetch_sub(&run->refs, 1) == 1) {
        const sx_executable *e = run->executable;
        sx_platform *platform = e->platform;
        sx_budget *memory = e->memory;
        const size_t bytes = e->run_bytes;
        const bool abandoned = run->abandoned;
        for (int i = 0; abandoned && i < e->n_args + e->n_results; i++) {
            sx_device_buffer_release(run->checked[i]);
        }
        platform->backend->run_destroy(run); /* and possibly the executable */
        sx_budget_release(memory, bytes);
        if (abandoned) {
            atomic_fetch_sub(&platform->abandoned, 1);
        }
    }
}

/* From here on, the backend handles the end of the pending execution; until then, the run exists.
 */
static void watch(sx_run *run)
{
    if (!run->watched) {
        run->watched = true;
        atomic_fetch_add(&run->refs, 1);
        run->executable->platform->backend->watch(run);
    }
}

void sx_run_destroy(sx_run *run)
{
    if (run == NULL) {
        return;
    }
    if (atomic_load(&run->state) == SX_RUN_PENDING) {
        const sx_executable *e = run->executable;
        atomic_fetch_add(&e->platform->abandoned, 1);
        run->abandoned = true;
        if (e->platform->backend->leave != NULL) {
            e->platform->backend->leave(run);
        }
        run->cancel = NULL;
        for (int i = 0; i < e->n_args + e->n_results; i++) {
            if (run->checked[i] != NULL) {
                sx_device_buffer_retain(run->checked[i]);
            }
        }
        watch(run);
    }
    release_run(run);
}

static sx_status check_buffer(const sx_executable *e, const sx_device_buffer *buffer,
                              const sx_type *type, const sx_device *device, const char *what, int i)
{
    char want[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
    if (buffer == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is missing, expected %s", what, i,
                        sx_type_format(type, want, sizeof(want)));
    }
    if (!sx_type_equal(&buffer->type, type)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s, expected %s", what, i,
                        sx_type_format(&buffer->type, got, sizeof(got)),
                        sx_type_format(type, want, sizeof(want)));
    }
    if (buffer->device->platform != e->platform) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is on %s of %s, but the program was compiled for %s of %s; copy it "
                        "with sx_device_buffer_copy()",
                        what, i, buffer->device->name, buffer->device->platform->backend->name,
                        e->platform->devices[0]->name, e->platform->backend->name);
    }
    if (buffer->memory != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is in memory %s of %s, but programs compute in %s; copy it with "
                        "sx_device_buffer_copy()",
                        what, i, buffer->device->memories[buffer->memory].kind,
                        buffer->device->name, buffer->device->memories[0].kind);
    }
    if (buffer->device != device) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is on %s, the first buffer of the execution on %s; copy it with "
                        "sx_device_buffer_copy()",
                        what, i, buffer->device->name, device->name);
    }
    return SX_OK;
}

/* What the execution writes must be read by nobody else, and written once. */
static sx_status check_written(const sx_executable *e, sx_device_buffer *const *args,
                               sx_device_buffer *const *outputs)
{
    for (int i = 0; i < e->n_results; i++) {
        const int assigned = e->result_args[i];
        const sx_device_buffer *written = assigned >= 0 ? args[assigned] : outputs[i];
        for (int k = 0; k < e->n_args; k++) {
            if (k == assigned || args[k] != written) {
                continue;
            }
            return assigned >= 0
                       ? sx_error(
                             SX_INVALID_ARGUMENT,
                             "arguments %d and %d are the same buffer, but the program updates it",
                             assigned, k)
                       : sx_error(SX_INVALID_ARGUMENT,
                                  "output %d and argument %d are the same buffer, but the program "
                                  "writes one while it reads the other",
                                  i, k);
        }
        for (int k = 0; k < i && assigned < 0; k++) {
            if (e->result_args[k] < 0 && outputs[k] == written) {
                return sx_error(SX_INVALID_ARGUMENT, "outputs %d and %d are the same buffer", k, i);
            }
        }
    }
    return SX_OK;
}

sx_status sx_run_prepare(sx_run *run, sx_device_buffer *const *args)
{
    const sx_executable *e = run->executable;
    if (atomic_load(&run->state) != SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION, "the run's last execution has not been awaited");
    }
    for (int i = 0; i < e->n_args; i++) {
        SX_TRY(check_buffer(e, args[i], &e->arg_types[i], args[0] != NULL ? args[0]->device : NULL,
                            "argument", i));
    }
    return e->platform->backend->prepare != NULL ? e->platform->backend->prepare(run, args) : SX_OK;
}

sx_status sx_run_submit(sx_run *run, sx_device_buffer *const *args,
                        sx_device_buffer *const *outputs)
{
    const sx_executable *e = run->executable;
    if (atomic_load(&run->state) != SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION, "the run's last execution has not been awaited");
    }
    const sx_device *device = NULL;
    bool same = true; /* mostly they are those of the last submission */
    for (int i = 0; i < e->n_args; i++) {
        device = device == NULL && args[i] != NULL ? args[i]->device : device;
        SX_TRY(check_buffer(e, args[i], &e->arg_types[i], device, "argument", i));
        SX_TRY(check_kept(args[i]), "argument %d", i);
        same = same && run->checked[i] == args[i];
    }
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            device = device == NULL && outputs[i] != NULL ? outputs[i]->device : device;
            SX_TRY(check_buffer(e, outputs[i], &e->result_types[i], device, "output", i));
            same = same && run->checked[e->n_args + i] == outputs[i];
        }
    }
    if (!same) {
        SX_TRY(check_written(e, args, outputs));
        for (int i = 0; i < e->n_args; i++) {
            run->checked[i] = args[i];
        }
        for (int i = 0; i < e->n_results; i++) {
            run->checked[e->n_args + i] = e->result_args[i] < 0 ? outputs[i] : NULL;
        }
    }
    run->watched = false;
    atomic_store(&run->state, SX_RUN_PENDING);
    sx_status status = e->platform->backend->submit(run, args, outputs);
    if (status != SX_OK) {
        atomic_store(&run->state, SX_RUN_IDLE);
    }
    return status;
}

void sx_run_lose(sx_run *run)
{
    const sx_executable *e = run->executable;
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] >= 0) {
            atomic_store(&run->checked[e->result_args[i]]->lost, true);
        }
    }
}

void sx_run_end(sx_run *run, sx_status status)
{
    if (!run->watched) { /* on the owner's thread, the only one that waits */
        run->status = status;
        atomic_store(&run->state, SX_RUN_ENDED);
        return;
    }
    sx_platform *platform = run->executable->platform;
    atomic_fetch_add(&platform->ending,
                     1); /* the owner may close it as soon as the run has ended */
    pthread_mutex_lock(&run->mutex);
    void (*on_done)(sx_run *, void *) = run->on_done;
    void *user = run->user;
    run->on_done = NULL;
    run->status = status;
    atomic_store(&run->state, SX_RUN_ENDED);
    pthread_cond_broadcast(&run->ended);
    pthread_mutex_unlock(&run->mutex);
    if (on_done != NULL) {
        const calling call = {platform, innermost};
        innermost = &call;
        on_done(run, user);
        innermost = call.outer;
    }
    release_run(run);
    atomic_fetch_sub(&platform->ending, 1);
}

/* False when the deadline comes first. */
static bool wait_until(sx_run *run, int64_t deadline_ns)
{
    const struct timespec until = sx_timespec_of(deadline_ns);
    int late = 0;
    pthread_mutex_lock(&run->mutex);
    while (late == 0 && atomic_load(&run->state) == SX_RUN_PENDING) {
        late = pthread_cond_clockwait(&run->ended, &run->mutex, CLOCK_MONOTONIC, &until);
    }
    const bool ended = atomic_load(&run->state) != SX_RUN_PENDING;
    pthread_mutex_unlock(&run->mutex);
    return ended;
}

sx_status sx_run_await(sx_run *run, int64_t deadline_ns)
{
    const sx_platform *platform = run->executable->platform;
    if (atomic_load(&run->state) == SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "cannot wait for an execution that was not submitted");
    }
    if (atomic_load(&run->state) == SX_RUN_PENDING) {
        if (deadline_ns == SX_NO_DEADLINE && !run->watched) {
            platform->backend->await(run);
        } else {
            watch(run);
            if (!wait_until(run, deadline_ns)) {
                return sx_error(SX_DEADLINE_EXCEEDED, "%s has not finished the program in time",
                                platform->devices[0]->name);
            }
        }
    }
    sx_status status = run->status;
    run->status = SX_OK;
    atomic_store(&run->state, SX_RUN_IDLE);
    return status;
}

void sx_run_settle(sx_run *run)
{
    while (atomic_load(&run->refs) > 1) {
        sx_sleep_ns(20000);
    }
}

sx_status sx_run_on_done(sx_run *run, void (*on_done)(sx_run *run, void *user), void *user)
{
    if (atomic_load(&run->state) == SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "on_done of an execution that was not submitted, or has been awaited");
    }
    pthread_mutex_lock(&run->mutex);
    const bool pending = atomic_load(&run->state) == SX_RUN_PENDING;
    const bool taken = pending && run->on_done != NULL;
    if (pending && !taken) {
        run->on_done = on_done;
        run->user = user;
    }
    pthread_mutex_unlock(&run->mutex);
    if (taken) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "an execution has one on_done, and this one has it already");
    }
    if (pending) {
        watch(run);
    } else {
        on_done(run, user);
    }
    return SX_OK;
}

void sx_run_set_cancel(sx_run *run, const sx_cancel *cancel)
{
    run->cancel = cancel;
}

bool sx_platform_may_outlast(const sx_platform *platform, int64_t deadline_ns)
{
    return platform->backend->await != NULL && deadline_ns != SX_NO_DEADLINE;
}

sx_status sx_run_execute_within(sx_run *run, sx_device_buffer *const *args,
                                sx_device_buffer *const *outputs, const sx_cancel *cancel)
{
    sx_run_set_cancel(run, cancel);
    sx_status status = sx_run_submit(run, args, outputs);
    if (status == SX_OK) {
        status = sx_run_await(run, cancel != NULL ? cancel->deadline_ns : SX_NO_DEADLINE);
    }
    if (atomic_load(&run->state) != SX_RUN_PENDING) {
        sx_run_set_cancel(run, NULL);
    }
    return status;
}

sx_status sx_run_execute(sx_run *run, sx_device_buffer *const *args,
                         sx_device_buffer *const *outputs)
{
    SX_TRY(sx_run_submit(run, args, outputs));
    return sx_run_await(run, SX_NO_DEADLINE);
}

sx_status sx_run_get_profile(sx_run *run, const sx_kernel_time **out_rows, int *out_count)
{
    const sx_backend *backend = run->executable->platform->backend;
    if (backend->profile == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "device kind %s does not record kernel times",
                        backend->name);
    }
    return backend->profile(run, out_rows, out_count);
}

sx_status sx_execute(sx_executable *executable, sx_device_buffer *const *args,
                     sx_device_buffer *const *outputs)
{
    sx_run *run;
    SX_TRY(sx_run_create(executable, &run));
    sx_status status = sx_run_execute(run, args, outputs);
    sx_run_destroy(run);
    return status;
}
