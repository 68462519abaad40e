/* The public devices, buffers and compiled graphs (sextant/device.h), over the backends' contract
 * (backend.h). Closing devices leaves their platform open until the last buffer or compiled graph
 * is freed; handles know that it is closed. */
#include <sextant/device.h>

#include <inttypes.h>
#include <stdatomic.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "distribute/strategy.h"
#include "runtime/initialize.h"

struct sx_devices {
    atomic_int refs; /* the caller's until it closes them, one for each buffer and program */
    atomic_bool closed;
    sx_strategy *strategy; /* owns the texts of the platform's options */
    sx_platform *platform;
    int shards;
};

typedef enum buffer_state {
    BUFFER_HELD,
    BUFFER_DONATED, /* a result has its value */
    BUFFER_LOST,    /* donated to a run that did not end in time */
} buffer_state;

struct sx_buffer {
    sx_devices *devices;
    sx_device_buffer *held; /* NULL unless BUFFER_HELD */
    sx_type type;
    buffer_state state;
};

struct sx_compiled_graph {
    sx_devices *devices;
    sx_executable *executable;
    sx_arena arena; /* names */
    int n_args, n_results;
    sx_graph_port *args, *results;
    sx_variable_spec *variables; /* [n_args]; without a name: an input */
    const int *assigned;         /* [n_results]: the argument, or -1 */
    _Atomic(sx_run *) idle;      /* of the last run; NULL = none, or in use */
};

/* ---- Devices ---- */

static sx_devices *retain(sx_devices *devices)
{
    atomic_fetch_add(&devices->refs, 1);
    return devices;
}

static void *close_all(void *user)
{
    sx_devices *devices = user;
    sx_platform_close(devices->platform);
    sx_strategy_release(devices->strategy);
    sx_free(devices);
    return NULL;
}

/* In an on_done, on a thread of the devices', another thread closes them when that has returned.
 * Without a thread for it they are left open. */
static void release(sx_devices *devices)
{
    pthread_t closer;
    if (atomic_fetch_sub(&devices->refs, 1) > 1) {
        return;
    }
    if (devices->platform == NULL || !sx_platform_calls_here(devices->platform)) {
        close_all(devices);
    } else if (sx_thread_create(&closer, NULL, close_all, devices) == 0) {
        pthread_detach(closer);
    }
}

sx_status sx_devices_open_at(const sx_devices_args *args, sx_devices **out_devices)
{
    SX_NEED(out_devices);
    SX_TAKE_ARGS(sx_devices_args, args);
    const bool has_fields = args->device != NULL || args->replicas != 0 ||
                            args->virtual_devices != 0 || args->pjrt_plugin != NULL ||
                            args->python != NULL;
    if (args->strategy != NULL && has_fields) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "strategy cannot be combined with device, replicas, virtual_devices, "
                        "pjrt_plugin or python");
    }
    if (args->threads < 0 || args->shards < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %d; 0 means the default",
                        args->threads < 0 ? "threads" : "shards",
                        args->threads < 0 ? args->threads : args->shards);
    }
    sx_devices *devices = sx_alloc(1, sizeof(*devices));
    if (devices == NULL) {
        return sx_no_memory("opening devices");
    }
    atomic_init(&devices->refs, 1);
    atomic_init(&devices->closed, false);
    sx_session_options options = {.platform.cpu.threads = args->threads, .shards = args->shards};
    sx_status status = SX_OK;
    if (args->strategy != NULL) {
        devices->strategy = sx_strategy_retain(args->strategy);
    } else {
        const sx_strategy_wish wish = {.args = {.device = args->device,
                                                .replicas = args->replicas,
                                                .virtual_devices = args->virtual_devices,
                                                .pjrt_plugin = args->pjrt_plugin,
                                                .python = args->python}};
        status = sx_strategy_create(&wish, &devices->strategy);
    }
    if (status == SX_OK) {
        status = sx_strategy_apply(devices->strategy, &options);
    }
    if (status == SX_OK) {
        status = sx_platform_open(options.device, &options.platform, &devices->platform);
    }
    if (status != SX_OK) {
        release(devices);
        return status;
    }
    devices->shards = options.shards;
    *out_devices = devices;
    return SX_OK;
}

void sx_devices_close(sx_devices *devices)
{
    if (devices != NULL) {
        atomic_store(&devices->closed, true);
        release(devices);
    }
}

int sx_devices_count(const sx_devices *devices)
{
    return devices->platform->n_devices;
}

static sx_status check_open(const sx_devices *devices)
{
    return atomic_load(&devices->closed)
               ? sx_error(SX_FAILED_PRECONDITION, "the devices are closed")
               : SX_OK;
}

static sx_status find_device(const sx_devices *devices, int i, sx_device **out)
{
    const int n = devices->platform->n_devices;
    SX_TRY(check_open(devices));
    if (i < 0 || i >= n) {
        return sx_error(SX_OUT_OF_RANGE, "device %d of %d", i, n);
    }
    *out = devices->platform->devices[i];
    return SX_OK;
}

const char *sx_devices_name(const sx_devices *devices, int i)
{
    return i < 0 || i >= sx_devices_count(devices) ? NULL : devices->platform->devices[i]->name;
}

const char *sx_devices_kind(const sx_devices *devices, int i)
{
    return i < 0 || i >= sx_devices_count(devices) ? NULL : devices->platform->devices[i]->kind;
}

sx_status sx_devices_memory(const sx_devices *devices, int i, sx_device_memory *out_memory)
{
    sx_device *device = NULL;
    sx_memory_stats stats = {0};
    SX_NEED(devices);
    SX_NEED(out_memory);
    SX_TRY(find_device(devices, i, &device));
    SX_TRY(sx_device_get_memory_stats(device, &stats));
    *out_memory = (sx_device_memory){stats.bytes_in_use, stats.peak_bytes, stats.limit_bytes};
    return SX_OK;
}

/* ---- Buffers ---- */

/* Takes `held`, also on failure. */
static sx_status wrap(sx_devices *devices, sx_device_buffer *held, sx_buffer **out)
{
    sx_buffer *buffer = sx_alloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        sx_device_buffer_release(held);
        return sx_no_memory("for a buffer");
    }
    *buffer = (sx_buffer){.devices = retain(devices), .held = held, .type = held->type};
    *out = buffer;
    return SX_OK;
}

static sx_status check_held(const sx_buffer *buffer)
{
    SX_TRY(check_open(buffer->devices));
    return buffer->state == BUFFER_HELD ? SX_OK
           : buffer->state == BUFFER_LOST
               ? sx_error(SX_FAILED_PRECONDITION,
                          "the buffer was donated to a run that did not end in time; its value is "
                          "lost")
               : sx_error(SX_FAILED_PRECONDITION,
                          "the buffer was donated to an earlier run; a result of that run has its "
                          "memory");
}

static sx_status check_bytes(const sx_buffer *buffer, size_t bytes)
{
    char text[SX_TYPE_TEXT];
    return bytes == (size_t)sx_type_bytes(&buffer->type)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "the buffer is %s, %" PRId64 " bytes; got %zu",
                          sx_type_format(&buffer->type, text, sizeof(text)),
                          sx_type_bytes(&buffer->type), bytes);
}

sx_status sx_buffer_create(sx_devices *devices, int i, const sx_tensor *value,
                           sx_buffer **out_buffer)
{
    sx_device *device = NULL;
    sx_device_buffer *held = NULL;
    SX_NEED(devices);
    SX_NEED(value);
    SX_NEED(out_buffer);
    SX_TRY(find_device(devices, i, &device));
    char text[SX_TYPE_TEXT];
    const int64_t bytes = sx_type_bytes(&value->type);
    if (bytes < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a buffer of %s: expected numbers or booleans of a static shape",
                        sx_type_format(&value->type, text, sizeof(text)));
    }
    if (bytes > 0) {
        SX_NEED(value->data);
    }
    SX_TRY(sx_device_buffer_create(device, &value->type, &held));
    sx_status status = sx_device_buffer_write(held, value->data, false);
    if (status != SX_OK) {
        sx_device_buffer_release(held);
        return status;
    }
    return wrap(devices, held, out_buffer);
}

void sx_buffer_free(sx_buffer *buffer)
{
    if (buffer != NULL) {
        sx_device_buffer_release(buffer->held);
        release(buffer->devices);
        sx_free(buffer);
    }
}

sx_type sx_buffer_type(const sx_buffer *buffer)
{
    return buffer->type;
}

sx_status sx_buffer_read(const sx_buffer *buffer, void *data, size_t bytes)
{
    SX_NEED(buffer);
    SX_NEED(data);
    SX_TRY(check_held(buffer));
    SX_TRY(check_bytes(buffer, bytes));
    return sx_device_buffer_read(buffer->held, data);
}

sx_status sx_buffer_write(sx_buffer *buffer, const void *data, size_t bytes)
{
    SX_NEED(buffer);
    SX_NEED(data);
    SX_TRY(check_held(buffer));
    SX_TRY(check_bytes(buffer, bytes));
    return sx_device_buffer_write(buffer->held, data, false);
}

sx_status sx_buffer_copy(const sx_buffer *buffer, sx_devices *devices, int i,
                         sx_buffer **out_buffer)
{
    sx_device *device = NULL;
    sx_device_buffer *copy = NULL;
    SX_NEED(buffer);
    SX_NEED(devices);
    SX_NEED(out_buffer);
    SX_TRY(check_held(buffer));
    SX_TRY(find_device(devices, i, &device));
    SX_TRY(sx_device_buffer_copy(buffer->held, device, 0, &copy));
    return wrap(devices, copy, out_buffer);
}

/* ---- Compiling ---- */

static sx_status describe(sx_compiled_graph *p, const sx_graph *graph)
{
    const sx_executable *e = p->executable;
    p->n_args = e->n_args;
    p->n_results = e->n_results;
    p->assigned = e->result_args;
    p->args = sx_arena_array(&p->arena, p->n_args + 1, sx_graph_port);
    p->results = sx_arena_array(&p->arena, p->n_results + 1, sx_graph_port);
    p->variables = sx_arena_array(&p->arena, p->n_args + 1, sx_variable_spec);
    bool all = p->args != NULL && p->results != NULL && p->variables != NULL;
    for (int i = 0; i < p->n_args && all; i++) {
        const sx_arg *arg = &graph->args[i];
        const char *name = sx_arena_strdup(&p->arena, arg->name);
        const bool is_variable = arg->kind == SX_ARG_VARIABLE;
        p->args[i] = (sx_graph_port){name, e->arg_types[i], is_variable};
        p->variables[i] = (sx_variable_spec){
            .name = is_variable ? name : NULL, .init = arg->init, .init_value = arg->init_value};
        all = name != NULL;
    }
    for (int i = 0; i < p->n_results && all; i++) {
        const char *name = sx_arena_strdup(&p->arena, graph->results[i].name);
        p->results[i] = (sx_graph_port){name, e->result_types[i], p->assigned[i] >= 0};
        all = name != NULL;
    }
    return all ? SX_OK : sx_no_memory("compiling a graph");
}

sx_status sx_compile_graph_at(sx_devices *devices, const sx_graph *graph, int64_t batch,
                              const sx_compile_graph_args *args, sx_compiled_graph **out_program)
{
    SX_NEED(devices);
    SX_NEED(graph);
    SX_NEED(out_program);
    SX_TAKE_ARGS(sx_compile_graph_args, args);
    SX_TRY(check_open(devices));
    bool has_batch = false;
    for (int i = 0; i < graph->n_args; i++) {
        has_batch = has_batch || sx_type_has_batch(sx_graph_type(graph, graph->args[i].value));
    }
    if (batch < 0 || (has_batch && batch == 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "batch is %" PRId64 ": the graph needs the size of its batch", batch);
    }
    sx_compiled_graph *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("compiling a graph");
    }
    p->devices = retain(devices);
    sx_arena_init(&p->arena, 0);
    sx_status status =
        sx_compile(devices->platform, graph,
                   &(sx_compile_options){.batch = SX_MAX(batch, (int64_t)1),
                                         .shards = devices->shards,
                                         .precision = args->bfloat16_products ? SX_PRECISION_BF16
                                                                              : SX_PRECISION_F32,
                                         .any_batch = true},
                   &p->executable);
    if (status == SX_OK) {
        status = describe(p, graph);
    }
    if (status != SX_OK) {
        sx_compiled_graph_free(p);
        return status;
    }
    *out_program = p;
    return SX_OK;
}

void sx_compiled_graph_free(sx_compiled_graph *p)
{
    if (p != NULL) {
        sx_run_destroy(atomic_load(&p->idle));
        sx_executable_release(p->executable);
        sx_arena_deinit(&p->arena);
        release(p->devices);
        sx_free(p);
    }
}

int sx_compiled_graph_arg_count(const sx_compiled_graph *p)
{
    return p->n_args;
}

int sx_compiled_graph_result_count(const sx_compiled_graph *p)
{
    return p->n_results;
}

const sx_graph_port *sx_compiled_graph_arg(const sx_compiled_graph *p, int i)
{
    return i < 0 || i >= p->n_args ? NULL : &p->args[i];
}

const sx_graph_port *sx_compiled_graph_result(const sx_compiled_graph *p, int i)
{
    return i < 0 || i >= p->n_results ? NULL : &p->results[i];
}

sx_status sx_compiled_graph_initial_value(const sx_compiled_graph *p, int i, uint64_t seed,
                                          sx_buffer **out_buffer)
{
    SX_NEED(p);
    SX_NEED(out_buffer);
    SX_TRY(check_open(p->devices));
    if (i < 0 || i >= p->n_args || p->variables[i].name == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d of %d is not a variable", i, p->n_args);
    }
    const sx_variable_spec *v = &p->variables[i];
    sx_tensor value = {p->args[i].type, NULL};
    value.data = sx_alloc((size_t)sx_type_bytes(&value.type) + 1, 1);
    if (value.data == NULL) {
        return sx_no_memory("for variable \"%s\"", v->name);
    }
    sx_status status =
        sx_draw_initial_value(v->init, v->init_value, &value.type, seed, v->name, value.data);
    if (status == SX_OK) {
        status = sx_buffer_create(p->devices, 0, &value, out_buffer);
    }
    sx_free(value.data);
    return sx_status_annotate(status, __FILE__, __LINE__, "variable \"%s\"", v->name);
}

/* ---- Running ---- */

static sx_status check_args(const sx_compiled_graph *p, sx_buffer *const *args)
{
    for (int i = 0; i < p->n_args; i++) {
        const sx_graph_port *port = &p->args[i];
        char want[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
        sx_type_format(&port->type, want, sizeof(want));
        if (args[i] == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "argument %d, \"%s\", is missing: expected %s", i,
                            port->name, want);
        }
        SX_TRY(check_held(args[i]), "argument %d, \"%s\"", i, port->name);
        if (!sx_type_equal(&args[i]->type, &port->type)) {
            return sx_error(SX_INVALID_ARGUMENT, "argument %d, \"%s\", is %s, expected %s", i,
                            port->name, sx_type_format(&args[i]->type, got, sizeof(got)), want);
        }
        const sx_device *on = args[i]->held->device;
        if (args[i]->devices != p->devices) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "argument %d, \"%s\", is on %s of %s, not on the devices that the "
                            "graph was compiled for; copy it there with sx_buffer_copy()",
                            i, port->name, on->name, on->platform->backend->name);
        }
        if (on != args[0]->held->device) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "argument %d, \"%s\", is on %s, argument 0 on %s; copy it there with "
                            "sx_buffer_copy()",
                            i, port->name, on->name, args[0]->held->device->name);
        }
    }
    for (int r = 0; r < p->n_results; r++) {
        const int donated = p->assigned[r];
        for (int i = 0; i < p->n_args && donated >= 0; i++) {
            if (i != donated && args[i] == args[donated]) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "arguments %d, \"%s\", and %d, \"%s\", are one buffer, which the "
                                "graph updates: it can be donated once",
                                SX_MIN(i, donated), p->args[SX_MIN(i, donated)].name,
                                SX_MAX(i, donated), p->args[SX_MAX(i, donated)].name);
            }
        }
    }
    return SX_OK;
}

/* The results' handles: of outputs with memory of their own, of new values of variables without. */
static sx_status make_results(const sx_compiled_graph *p, sx_device *device, sx_buffer **results)
{
    for (int r = 0; r < p->n_results; r++) {
        results[r] = sx_alloc(1, sizeof(**results));
        if (results[r] == NULL) {
            return sx_no_memory("for a result");
        }
        *results[r] = (sx_buffer){.devices = retain(p->devices), .type = p->results[r].type};
        if (p->assigned[r] < 0) {
            SX_TRY(sx_device_buffer_create(device, &p->results[r].type, &results[r]->held));
        }
    }
    return SX_OK;
}

struct sx_event {
    atomic_int refs; /* of the caller, and of a call of on_done that is to come */
    sx_compiled_graph *program;
    sx_devices *devices;   /* retained */
    sx_run *run;           /* NULL: it was awaited */
    sx_device_buffer **in; /* [n_args], retained, then [n_results], of the results */
    sx_buffer **results;   /* [n_results]; NULL: they were taken */
    sx_event_fn *on_done;
    void *user;
};

static void release_event(sx_event *e)
{
    if (atomic_fetch_sub(&e->refs, 1) == 1) {
        sx_free(e);
    }
}

void sx_event_free(sx_event *e)
{
    if (e == NULL) {
        return;
    }
    /* A run that has not ended keeps its buffers, as long as they exist here. */
    sx_run_destroy(e->run);
    for (int r = 0; e->results != NULL && r < e->program->n_results; r++) {
        sx_buffer_free(e->results[r]);
    }
    for (int i = 0; e->in != NULL && i < e->program->n_args; i++) {
        sx_device_buffer_release(e->in[i]);
    }
    sx_free(e->results);
    sx_free(e->in);
    release(e->devices);
    release_event(e);
}

/* The results get the memory of what is donated. */
static void donate(const sx_event *e, sx_buffer *const *args)
{
    const sx_compiled_graph *p = e->program;
    for (int r = 0; r < p->n_results; r++) {
        if (p->assigned[r] >= 0) {
            sx_buffer *donor = args[p->assigned[r]];
            e->results[r]->held = donor->held;
            donor->held = NULL;
            donor->state = BUFFER_DONATED;
        }
    }
}

sx_status sx_compiled_graph_submit(sx_compiled_graph *p, sx_buffer *const *args, int n_args,
                                   sx_event **out_event)
{
    SX_NEED(out_event);
    SX_NEED(p);
    SX_TRY(check_open(p->devices));
    if (n_args != p->n_args) {
        return sx_error(SX_INVALID_ARGUMENT, "the graph has %d arguments; got %d", p->n_args,
                        n_args);
    }
    if (n_args > 0) {
        SX_NEED(args);
    }
    SX_TRY(check_args(p, args));
    sx_device *device = n_args > 0 ? args[0]->held->device : p->devices->platform->devices[0];
    const size_t n = (size_t)n_args, m = (size_t)p->n_results;
    sx_event *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for a run");
    }
    atomic_init(&e->refs, 1);
    e->program = p;
    e->devices = retain(p->devices);
    e->in = sx_alloc(n + m + 1, sizeof(sx_device_buffer *));
    e->results = sx_alloc(m + 1, sizeof(sx_buffer *));
    sx_status status = e->in != NULL && e->results != NULL ? make_results(p, device, e->results)
                                                           : sx_no_memory("for a run");
    if (status == SX_OK) {
        e->run = atomic_exchange(&p->idle, NULL);
        status = e->run == NULL ? sx_run_create(p->executable, &e->run) : SX_OK;
    }
    if (status == SX_OK) {
        for (int i = 0; i < n_args; i++) {
            e->in[i] = sx_device_buffer_retain(args[i]->held);
        }
        for (int r = 0; r < p->n_results; r++) {
            e->in[n_args + r] = e->results[r]->held;
        }
        status = sx_run_submit(e->run, e->in, e->in + n_args);
    }
    if (status != SX_OK) {
        sx_event_free(e);
        return status;
    }
    donate(e, args);
    *out_event = e;
    return SX_OK;
}

static sx_status check_results(const sx_compiled_graph *p, sx_buffer **out_results, int n_results,
                               int64_t timeout_ms)
{
    if (n_results != p->n_results) {
        return sx_error(SX_INVALID_ARGUMENT, "the graph has %d results; got room for %d",
                        p->n_results, n_results);
    }
    SX_TRY(sx_check_timeout_ms(timeout_ms));
    if (n_results > 0) {
        SX_NEED(out_results);
    }
    return SX_OK;
}

/* The run is left in the event if it has not ended, the results if it has failed. */
static sx_status await(sx_event *e, int64_t timeout_ms, sx_buffer **out_results)
{
    const int64_t limit_ns = timeout_ms < INT64_MAX / 2000000 ? timeout_ms * 1000000 : 0;
    sx_status status = sx_run_await(e->run, limit_ns > 0 ? sx_now_ns() + limit_ns : SX_NO_DEADLINE);
    if (atomic_load(&e->run->state) == SX_RUN_PENDING) {
        return status;
    }
    sx_run_destroy(atomic_exchange(&e->program->idle, e->run));
    e->run = NULL;
    for (int r = 0; r < e->program->n_results && status == SX_OK; r++) {
        out_results[r] = e->results[r];
        e->results[r] = NULL;
    }
    return status;
}

sx_status sx_event_await(sx_event *e, int64_t timeout_ms, sx_buffer **out_results, int n_results)
{
    SX_NEED(e);
    SX_TRY(check_open(e->devices));
    SX_TRY(check_results(e->program, out_results, n_results, timeout_ms));
    return e->run != NULL ? await(e, timeout_ms, out_results)
                          : sx_error(SX_FAILED_PRECONDITION,
                                     "the event was awaited before, which gave its results; each "
                                     "run has an event of its own");
}

static void call_on_done(sx_run *run, void *user)
{
    (void)run;
    sx_event *e = user;
    e->on_done(e->user);
    release_event(e);
}

sx_status sx_event_on_done(sx_event *e, sx_event_fn *on_done, void *user)
{
    SX_NEED(e);
    SX_NEED(on_done);
    SX_TRY(check_open(e->devices));
    if (e->run == NULL || e->on_done != NULL) {
        return sx_error(SX_FAILED_PRECONDITION,
                        e->run == NULL ? "the event was awaited before; give on_done before that"
                                       : "an event has one on_done, and this one has it already");
    }
    e->on_done = on_done;
    e->user = user;
    atomic_fetch_add(&e->refs, 1);
    sx_status status = sx_run_on_done(e->run, call_on_done, e);
    if (status != SX_OK) {
        e->on_done = NULL;
        release_event(e);
    }
    return status;
}

sx_status sx_compiled_graph_run(sx_compiled_graph *p, sx_buffer *const *args, int n_args,
                                sx_buffer **out_results, int n_results, int64_t timeout_ms)
{
    sx_event *e = NULL;
    SX_NEED(p);
    if (n_args != p->n_args || n_results != p->n_results) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the graph has %d arguments and %d results; got room for %d and %d",
                        p->n_args, p->n_results, n_args, n_results);
    }
    SX_TRY(check_results(p, out_results, n_results, timeout_ms));
    SX_TRY(sx_compiled_graph_submit(p, args, n_args, &e));
    sx_status status = await(e, timeout_ms, out_results);
    const bool late = e->run != NULL;
    for (int r = 0; r < n_results && status != SX_OK; r++) {
        sx_buffer *donor = p->assigned[r] >= 0 ? args[p->assigned[r]] : NULL;
        if (donor != NULL && late) {
            donor->state = BUFFER_LOST;
        } else if (donor != NULL) { /* given back: its value is undefined */
            donor->held = e->results[r]->held;
            e->results[r]->held = NULL;
            donor->state = BUFFER_HELD;
        }
    }
    sx_event_free(e);
    return status;
}
