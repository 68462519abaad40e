/* See session.h. */
#include "runtime/program.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "runtime/initialize.h"

typedef struct variable {
    sx_session_variable info;
    sx_device_buffer *buffer;
    sx_device_buffer **copies; /* [options.devices]: on other devices; NULL = none is made */
} variable;

struct sx_session {
    sx_session_options options;
    bool frozen, undrawn;
    sx_platform *platform;
    sx_device *device;
    variable *variables;
    int n_variables, capacity;
    sx_map by_name;        /* name -> index + 1 */
    size_t variable_bytes; /* charged to options.memory */
    sx_program *programs;
    sx_slot_gate gate;
};

/* ---- Session ---- */

sx_status sx_session_create(const sx_session_options *options, sx_session **out_session)
{
    sx_session *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a session");
    }
    s->options = *options;
    sx_map_init(&s->by_name);
    sx_slot_gate_init(&s->gate);
    const char *name = options->device != NULL ? options->device : sx_default_backend();
    sx_status status = sx_platform_open(name, &options->platform, &s->platform);
    if (status != SX_OK) {
        sx_session_destroy(s);
        return status;
    }
    s->device = s->platform->devices[0];
    *out_session = s;
    return SX_OK;
}

bool sx_session_destroy(sx_session *s)
{
    if (s == NULL) {
        return true;
    }
    while (s->programs != NULL) {
        sx_program *next = s->programs->next;
        sx_program_destroy(s->programs);
        s->programs = next;
    }
    for (int i = 0; i < s->n_variables; i++) {
        sx_device_buffer_release(s->variables[i].buffer);
        for (int d = 0; s->variables[i].copies != NULL && d < s->options.devices; d++) {
            sx_device_buffer_release(s->variables[i].copies[d]);
        }
        sx_free(s->variables[i].copies);
        sx_free((char *)(uintptr_t)s->variables[i].info.name);
    }
    sx_budget_release(s->options.memory, s->variable_bytes);
    sx_free(s->variables);
    sx_map_deinit(&s->by_name);
    sx_slot_gate_deinit(&s->gate);
    const bool closed = sx_platform_close(s->platform);
    sx_free(s);
    return closed;
}

sx_status sx_session_await(const sx_session *s, sx_run *run)
{
    const int64_t slice_ns = 500000000;
    if (s->options.give_up == NULL) {
        return sx_run_await(run, SX_NO_DEADLINE);
    }
    for (;;) {
        sx_status status = sx_run_await(run, sx_now_ns() + slice_ns);
        if (sx_status_code(status) != SX_DEADLINE_EXCEEDED) {
            sx_run_settle(run);
            return status;
        }
        sx_status_free(status);
        SX_TRY(s->options.give_up(s->options.give_up_user));
    }
}

sx_device *sx_session_device(const sx_session *s)
{
    return s->device;
}

int sx_session_slot_devices(const sx_session *s)
{
    return s->frozen ? SX_MAX(1, SX_MIN(s->options.devices, s->platform->n_devices)) : 1;
}

sx_device *sx_session_device_at(const sx_session *s, int device)
{
    return s->platform->devices[device];
}

sx_status sx_session_variable_on(sx_session *s, int i, int device, sx_device_buffer **out)
{
    variable *v = &s->variables[i];
    if (device == 0) {
        *out = v->buffer;
        return SX_OK;
    }
    if (v->copies == NULL) {
        v->copies = sx_alloc((size_t)s->options.devices, sizeof(sx_device_buffer *));
        if (v->copies == NULL) {
            return sx_no_memory("for variables");
        }
    }
    if (v->copies[device] == NULL) {
        SX_TRY(sx_device_buffer_copy(v->buffer, sx_session_device_at(s, device), 0,
                                     &v->copies[device]),
               "variable \"%s\"", v->info.name);
    }
    *out = v->copies[device];
    return SX_OK;
}

int sx_session_replicas(const sx_session *s)
{
    return s->options.platform.pjrt.replicas > 0 ? s->options.platform.pjrt.replicas : 1;
}

void sx_session_draw_variables(sx_session *s, bool draw)
{
    s->undrawn = !draw;
}

void sx_session_freeze(sx_session *s)
{
    s->frozen = true;
}

bool sx_session_is_frozen(const sx_session *s)
{
    return s->frozen;
}

const sx_session_options *sx_session_get_options(const sx_session *s)
{
    return &s->options;
}

sx_platform *sx_session_platform(const sx_session *s)
{
    return s->platform;
}

sx_slot_gate *sx_session_gate(sx_session *s)
{
    return &s->gate;
}

sx_program *sx_session_programs(const sx_session *s)
{
    return s->programs;
}

bool sx_session_release_compiled(sx_session *s)
{
    bool any = false;
    for (sx_program *p = s->programs; p != NULL; p = p->next) {
        any |= sx_program_release_compiled(p);
    }
    return any;
}

/* ---- Variables ---- */

int sx_session_variable_count(const sx_session *s)
{
    return s->n_variables;
}

const sx_session_variable *sx_session_variable_at(const sx_session *s, int i)
{
    return &s->variables[i].info;
}

int sx_session_find_variable(const sx_session *s, const char *name)
{
    return (int)(uintptr_t)sx_map_get(&s->by_name, name) - 1;
}

sx_device_buffer *sx_session_variable_buffer(const sx_session *s, int i)
{
    return s->variables[i].buffer;
}

sx_status sx_session_read_variable(sx_session *s, int i, void *data)
{
    return sx_device_buffer_read(s->variables[i].buffer, data);
}

sx_status sx_session_read_variables(sx_session *s, void *const *data)
{
    sx_device_buffer **buffers = sx_alloc((size_t)s->n_variables + 1, sizeof(sx_device_buffer *));
    if (buffers == NULL) {
        return sx_no_memory("for variables");
    }
    for (int i = 0; i < s->n_variables; i++) {
        buffers[i] = s->variables[i].buffer;
    }
    sx_status status = sx_device_buffers_read(s->n_variables, buffers, data);
    sx_free(buffers);
    return status;
}

sx_status sx_session_write_variable(sx_session *s, int i, const void *data)
{
    return sx_device_buffer_write(s->variables[i].buffer, data, false);
}

sx_status sx_session_read_step(sx_session *s, int64_t *out_step)
{
    for (int i = 0; i < s->n_variables; i++) {
        if (s->variables[i].info.role == SX_ROLE_STEP) {
            return sx_session_read_variable(s, i, out_step);
        }
    }
    *out_step = 0;
    return SX_OK;
}

static sx_status grow_variables(sx_session *s)
{
    if (s->n_variables < s->capacity) {
        return SX_OK;
    }
    int capacity = s->capacity == 0 ? 32 : 2 * s->capacity;
    variable *grown = sx_realloc(s->variables, (size_t)capacity, sizeof(*grown));
    if (grown == NULL) {
        return sx_no_memory("for variables");
    }
    s->variables = grown;
    s->capacity = capacity;
    return SX_OK;
}

static sx_status draw_into(sx_session *s, const sx_arg *arg, const sx_type *type,
                           sx_device_buffer *buffer)
{
    void *data = sx_alloc((size_t)sx_type_bytes(type) + 1, 1);
    if (data == NULL) {
        return sx_no_memory("for %s", arg->name);
    }
    sx_status status =
        sx_draw_initial_value(arg->init, arg->init_value, type, s->options.seed, arg->name, data);
    if (status == SX_OK) {
        status = sx_device_buffer_write(buffer, data, false);
    }
    sx_free(data);
    return status;
}

/* Charges a variable; there must be room for the host's copy of its value, too. */
static sx_status charge_variable(sx_session *s, const sx_type *type)
{
    const int64_t bytes = sx_type_bytes(type);
    size_t twice;
    if (s->options.memory == NULL || bytes < 0) {
        return SX_OK; /* sx_device_buffer_create() says what is wrong with the type */
    }
    if (sx_mul_size((size_t)bytes, 2, &twice) && sx_budget_charge(s->options.memory, twice)) {
        sx_budget_release(s->options.memory, (size_t)bytes);
        s->variable_bytes += (size_t)bytes;
        return SX_OK;
    }
    char text[SX_TYPE_TEXT];
    return sx_budget_over(s->options.memory, sx_type_format(type, text, sizeof(text)),
                          (size_t)bytes);
}

static sx_status add_variable(sx_session *s, const sx_arg *arg, const sx_type *type)
{
    SX_TRY(grow_variables(s));
    variable *v = &s->variables[s->n_variables];
    *v = (variable){.info = {.name = sx_strdup(arg->name), .type = *type, .role = arg->role}};
    sx_status status = v->info.name == NULL ? sx_no_memory("for a name") : SX_OK;
    if (status == SX_OK) {
        status = charge_variable(s, type);
    }
    if (status == SX_OK) {
        status = sx_device_buffer_create(s->device, type, &v->buffer);
    }
    if (status == SX_OK && !s->undrawn) {
        status = draw_into(s, arg, type, v->buffer);
    }
    if (status == SX_OK) {
        status = sx_map_put(&s->by_name, arg->name, (void *)(uintptr_t)(s->n_variables + 1));
    }
    if (status != SX_OK) {
        sx_device_buffer_release(v->buffer);
        sx_free((char *)(uintptr_t)v->info.name);
        return sx_status_annotate(status, __FILE__, __LINE__, "variable \"%s\"", arg->name);
    }
    s->n_variables++;
    return SX_OK;
}

static sx_status share_variable(sx_session *s, const sx_arg *arg, const sx_type *type)
{
    int i = sx_session_find_variable(s, arg->name);
    if (i < 0) {
        return add_variable(s, arg, type);
    }
    if (!sx_type_equal(&s->variables[i].info.type, type)) {
        char has[SX_TYPE_TEXT], wants[SX_TYPE_TEXT];
        return sx_error(SX_FAILED_PRECONDITION,
                        "variable \"%s\" is %s in this session, but the program has "
                        "it as %s",
                        arg->name, sx_type_format(&s->variables[i].info.type, has, sizeof(has)),
                        sx_type_format(type, wants, sizeof(wants)));
    }
    return SX_OK;
}

sx_status sx_session_add_variable(sx_session *s, const sx_variable_spec *spec, int *out_index)
{
    const sx_arg arg = {.kind = SX_ARG_VARIABLE,
                        .name = spec->name,
                        .role = spec->role,
                        .init = spec->init,
                        .init_value = spec->init_value};
    SX_TRY(share_variable(s, &arg, &spec->type));
    *out_index = sx_session_find_variable(s, spec->name);
    return SX_OK;
}

/* ---- Programs ---- */

sx_status sx_session_add_program(sx_session *s, const sx_graph *graph, sx_program **out_program)
{
    sx_program *p = NULL;
    for (int i = 0; i < graph->n_args; i++) {
        if (graph->args[i].kind == SX_ARG_VARIABLE) {
            SX_TRY(share_variable(s, &graph->args[i], sx_graph_type(graph, graph->args[i].value)));
        }
    }
    SX_TRY(sx_program_create(s, graph, &p));
    p->next = s->programs;
    s->programs = p;
    *out_program = p;
    return SX_OK;
}

void sx_session_drop_program(sx_session *s, sx_program *program)
{
    sx_program **at = &s->programs;
    while (*at != NULL && *at != program) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = program->next;
        sx_program_destroy(program);
    }
}
