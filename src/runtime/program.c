/* A program (session.h): a graph, its executables by batch size, one execution. */
#include "runtime/program.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "runtime/launch_graph.h"

void sx_compiled_destroy(const sx_program *p, sx_compiled *c)
{
    if (c == NULL) {
        return;
    }
    sx_run_destroy(c->run); /* first: an execution that has not ended keeps its buffers */
    for (int i = 0; c->args != NULL && i <= p->graph->n_args; i++) {
        sx_device_buffer_release(c->args[i]);
    }
    for (int i = 0; c->outputs != NULL && i <= p->graph->n_results; i++) {
        sx_device_buffer_release(c->outputs[i]);
    }
    sx_executable_release(c->executable);
    sx_budget_release(sx_session_get_options(p->session)->memory, c->port_bytes);
    sx_free(c->args);
    sx_free(c->outputs);
    sx_free(c);
}

static void release_compiled(sx_program *p)
{
    while (p->compiled != NULL) {
        sx_compiled *next = p->compiled->next;
        sx_compiled_destroy(p, p->compiled);
        p->compiled = next;
    }
    p->last = NULL;
}

bool sx_program_release_compiled(sx_program *p)
{
    const bool any = p->compiled != NULL && p->launches == NULL;
    if (any) {
        release_compiled(p);
    }
    return any;
}

void sx_program_destroy(sx_program *p)
{
    sx_slots_destroy(p);
    release_compiled(p); /* first: a copy to the device may still read what the launches stage */
    sx_launches_destroy(p);
    sx_free(p->inputs);
    sx_free(p->outputs);
    sx_device_buffer_release(p->latch_buffer);
    sx_free(p->scalars);
    sx_free(p->words);
    sx_free(p->fed);
    sx_graph_destroy(p->rewritten);
    sx_free(p);
}

/* ---- Inputs and outputs ---- */

static bool is_fed(const sx_arg *arg)
{
    return arg->kind == SX_ARG_INPUT && strcmp(arg->name, SX_SEED_INPUT) != 0;
}

static void list_ports(sx_program *p)
{
    const sx_graph *g = p->graph;
    for (int i = 0; i < g->n_args; i++) {
        if (is_fed(&g->args[i])) {
            p->inputs[p->n_inputs++] = i;
        }
    }
    p->n_words = 1;
    for (int i = 0; i < g->n_results; i++) {
        const sx_type *type = sx_graph_type(g, g->results[i].value);
        if (g->results[i].arg != SX_RESULT_IS_OUTPUT || i == p->packed) {
            continue;
        }
        if (type->rank == 0 && p->n_scalars < SX_MAX_SCALARS) {
            const bool is_packed = p->packed >= 0 && sx_launch_packs(type);
            p->words[p->n_scalars] = is_packed ? p->n_words++ : 0;
            p->scalars[p->n_scalars++] = p->n_outputs;
        }
        p->outputs[p->n_outputs++] = i;
    }
}

/* By the session's options, and for a device that runs launches. */
static sx_status rewrite(sx_program *p)
{
    sx_graph *launch = NULL;
    if (sx_session_get_options(p->session)->own_moments) {
        SX_TRY(sx_pass_own_moments(p->graph, &p->rewritten));
        p->graph = p->rewritten;
    }
    if (sx_session_platform(p->session)->backend->capabilities & SX_CAN_LOOP) {
        SX_TRY(sx_make_launch_graph(p->graph, &launch));
    }
    if (launch != NULL) {
        sx_graph_destroy(p->rewritten);
        p->graph = p->rewritten = launch;
    }
    p->latch = sx_graph_find_arg(p->graph, SX_LATCH_VARIABLE);
    p->packed = sx_graph_find_output(p->graph, SX_PACKED_OUTPUT);
    const sx_type type = sx_scalar_type(SX_I32);
    return p->latch >= 0
               ? sx_device_buffer_create(sx_session_device(p->session), &type, &p->latch_buffer)
               : SX_OK;
}

static sx_status fill_program(sx_program *p)
{
    SX_TRY(rewrite(p));
    p->inputs = sx_alloc((size_t)p->graph->n_args + 1, sizeof(int));
    p->outputs = sx_alloc((size_t)p->graph->n_results + 1, sizeof(int));
    p->scalars = sx_alloc(SX_MAX_SCALARS, sizeof(int));
    p->words = sx_alloc(SX_MAX_SCALARS, sizeof(int));
    p->fed = sx_alloc((size_t)p->graph->n_args + 1, sizeof(void *));
    if (p->inputs == NULL || p->outputs == NULL || p->scalars == NULL || p->words == NULL ||
        p->fed == NULL) {
        return sx_no_memory("for a program");
    }
    list_ports(p);
    return SX_OK;
}

sx_status sx_program_create(sx_session *s, const sx_graph *graph, sx_program **out)
{
    sx_program *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for a program");
    }
    p->session = s;
    p->graph = graph;
    sx_status status = fill_program(p);
    if (status != SX_OK) {
        sx_program_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

int sx_program_input_count(const sx_program *p)
{
    return p->n_inputs;
}
const char *sx_program_input_name(const sx_program *p, int i)
{
    return p->graph->args[p->inputs[i]].name;
}
const sx_type *sx_program_input_type(const sx_program *p, int i)
{
    return sx_graph_type(p->graph, p->graph->args[p->inputs[i]].value);
}
int sx_program_output_count(const sx_program *p)
{
    return p->n_outputs;
}
const char *sx_program_output_name(const sx_program *p, int i)
{
    return p->graph->results[p->outputs[i]].name;
}
int sx_program_find_output(const sx_program *p, const char *name)
{
    for (int i = 0; i < p->n_outputs; i++) {
        if (strcmp(sx_program_output_name(p, i), name) == 0) {
            return i;
        }
    }
    return -1;
}
const sx_type *sx_program_output_type(const sx_program *p, int i)
{
    return sx_graph_type(p->graph, p->graph->results[p->outputs[i]].value);
}

/* ---- Compiling for a batch size ---- */

/* Argument i: a variable's buffer, or a new one of that type. */
static sx_status bind_arg(sx_program *p, sx_compiled *c, int device, int i, const sx_type *type)
{
    const sx_arg *arg = &p->graph->args[i];
    if (i == p->latch) {
        c->args[i] = sx_device_buffer_retain(p->latch_buffer);
        return SX_OK;
    }
    if (arg->kind == SX_ARG_VARIABLE) {
        int v = sx_session_find_variable(p->session, arg->name);
        sx_device_buffer *buffer;
        SX_TRY(sx_session_variable_on(p->session, v, device, &buffer));
        c->args[i] = sx_device_buffer_retain(buffer);
        return SX_OK;
    }
    SX_TRY(sx_device_buffer_create(sx_session_device_at(p->session, device), type, &c->args[i]));
    if (is_fed(arg)) {
        return SX_OK;
    }
    uint64_t seed = sx_session_get_options(p->session)->seed;
    uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return sx_device_buffer_write(c->args[i], words, false);
}

static sx_status bind_args(sx_program *p, sx_compiled *c, int device)
{
    for (int i = 0; i < p->graph->n_args; i++) {
        SX_TRY(bind_arg(p, c, device, i, &c->executable->arg_types[i]));
    }
    sx_device *on = sx_session_device_at(p->session, device);
    for (int i = p->graph->n_args; i < c->executable->n_args; i++) {
        SX_TRY(sx_device_buffer_create(on, &c->executable->arg_types[i], &c->args[i]));
    }
    return SX_OK;
}

/* Charges the buffers that are about to be made. */
static sx_status charge_ports(const sx_program *p, sx_compiled *c)
{
    sx_budget *memory = sx_session_get_options(p->session)->memory;
    const sx_executable *e = c->executable;
    size_t sum = 0;
    bool adds_up = true;
    for (int i = 0; i < e->n_args + e->n_results && memory != NULL; i++) {
        const int r = i - e->n_args;
        const bool variable =
            r < 0 ? i < p->graph->n_args && p->graph->args[i].kind == SX_ARG_VARIABLE
                  : e->result_args[r] >= 0;
        const int64_t bytes = sx_type_bytes(r < 0 ? &e->arg_types[i] : &e->result_types[r]);
        adds_up &= variable || (bytes >= 0 && sx_add_size(sum, (size_t)bytes, &sum));
    }
    if (adds_up && sx_budget_charge(memory, sum)) {
        c->port_bytes = sum;
        return SX_OK;
    }
    return sx_budget_over(memory, "inputs and outputs", sum);
}

static sx_status bind_outputs(sx_program *p, sx_compiled *c, int device)
{
    const sx_executable *e = c->executable;
    sx_device *on = sx_session_device_at(p->session, device);
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            SX_TRY(sx_device_buffer_create(on, &e->result_types[i], &c->outputs[i]));
        }
    }
    return SX_OK;
}

static sx_status create_compiled(const sx_program *p, int64_t batch, int64_t steps,
                                 sx_compiled **out)
{
    sx_compiled *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        return sx_no_memory("for an executable");
    }
    c->batch = batch;
    c->steps = steps;
    c->args = sx_alloc((size_t)p->graph->n_args + 1, sizeof(*c->args));
    c->outputs = sx_alloc((size_t)p->graph->n_results + 1, sizeof(*c->outputs));
    if (c->args == NULL || c->outputs == NULL) {
        sx_compiled_destroy(p, c);
        return sx_no_memory("for buffers");
    }
    *out = c;
    return SX_OK;
}

sx_status sx_program_bind(sx_program *p, sx_executable *executable, int64_t batch, int64_t steps,
                          int device, sx_compiled **out)
{
    sx_compiled *c = NULL;
    SX_TRY(create_compiled(p, batch, steps, &c));
    c->executable = sx_executable_retain(executable);
    sx_status status = charge_ports(p, c);
    if (status == SX_OK) {
        status = sx_run_create(c->executable, &c->run);
    }
    if (status == SX_OK) {
        status = bind_args(p, c, device);
    }
    if (status == SX_OK) {
        status = bind_outputs(p, c, device);
    }
    if (status != SX_OK) {
        sx_compiled_destroy(p, c);
        return status;
    }
    *out = c;
    return SX_OK;
}

sx_status sx_program_compile(const sx_program *p, const sx_program_shape *shape,
                             const sx_cancel *cancel, sx_executable **out)
{
    const sx_session_options *o = sx_session_get_options(p->session);
    const bool leaves = shape->steps > 1 && shape->ok_output >= 0;
    const sx_compile_options options = {
        .batch = shape->batch,
        .shards = o->shards,
        .profile = o->profile,
        .steps = shape->steps,
        .ok_output = leaves ? sx_program_output_name(p, shape->ok_output) : NULL,
        .any_batch = shape->steps == 1,
        .donate_inputs = shape->donates,
        .frozen = sx_session_is_frozen(p->session),
        .cancel = cancel,
        .memory = o->memory,
    };
    return sx_compile(sx_session_platform(p->session), p->graph, &options, out);
}

static sx_status compile_for(sx_program *p, const sx_program_shape *shape, sx_compiled **out)
{
    sx_executable *executable = NULL;
    sx_status status = sx_program_compile(p, shape, NULL, &executable);
    if (status == SX_OK) {
        status = sx_program_bind(p, executable, shape->batch, shape->steps, 0, out);
    }
    sx_executable_release(executable);
    return sx_status_annotate(status, __FILE__, __LINE__, "compiling for batch size %" PRId64,
                              shape->batch);
}

sx_status sx_program_compiled(sx_program *p, const sx_program_shape *shape, sx_compiled **out)
{
    for (sx_compiled *c = p->compiled; c != NULL; c = c->next) {
        if (c->batch == shape->batch && c->steps == shape->steps && c->donates == shape->donates) {
            *out = c;
            return SX_OK;
        }
    }
    sx_compiled *made = NULL;
    sx_status status = compile_for(p, shape, &made);
    if (sx_session_get_options(p->session)->memory != NULL &&
        sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
        sx_session_release_compiled(p->session)) {
        sx_status_free(status);
        status = compile_for(p, shape, &made);
    }
    SX_TRY(status);
    made->donates = shape->donates;
    made->next = p->compiled;
    p->compiled = made;
    *out = made;
    return SX_OK;
}

sx_status sx_program_bind_step(sx_program *p, int64_t batch, const void *const *inputs,
                               sx_compiled **out)
{
    sx_compiled *c = NULL;
    sx_status status = SX_OK;
    SX_TRY(create_compiled(p, batch, 1, &c));
    for (int i = 0; i < p->graph->n_args && status == SX_OK; i++) {
        const sx_type *symbolic = sx_graph_type(p->graph, p->graph->args[i].value);
        const sx_type type = sx_type_with_batch(*symbolic, batch);
        status = bind_arg(p, c, 0, i, &type);
    }
    for (int i = 0; i < p->n_inputs && status == SX_OK; i++) {
        status = sx_device_buffer_write(c->args[p->inputs[i]], inputs[i], false);
    }
    if (status != SX_OK) {
        sx_compiled_destroy(p, c);
        return status;
    }
    *out = c;
    return SX_OK;
}

sx_status sx_program_prepare(sx_program *p, int64_t batch, int64_t *out_ns)
{
    sx_compiled *c;
    int64_t start = sx_now_ns();
    SX_TRY(sx_program_compiled(p, SX_ONE_STEP(batch), &c));
    if (out_ns != NULL) {
        *out_ns = sx_now_ns() - start;
    }
    return SX_OK;
}

void sx_program_set_digest(sx_program *p, const sx_digest *digest)
{
    p->digest = digest;
}

/* ---- Running ---- */

sx_status sx_program_arm(sx_program *p)
{
    const int32_t on = 1;
    return p->latch >= 0 ? sx_device_buffer_write(p->latch_buffer, &on, false) : SX_OK;
}

sx_status sx_program_run(sx_program *p, int64_t batch, const void *const *inputs)
{
    sx_compiled *c;
    SX_TRY(sx_program_compiled(p, SX_ONE_STEP(batch), &c));
    SX_TRY(sx_program_arm(p));
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(sx_device_buffer_write(c->args[p->inputs[i]], inputs[i], true));
    }
    p->last = c;
    p->shown = NULL;
    SX_TRY(sx_run_submit(c->run, c->args, c->outputs));
    return sx_session_await(p->session, c->run);
}

sx_status sx_program_read_output(sx_program *p, int i, void *data)
{
    bool read = false;
    SX_TRY(sx_launches_read(p, i, data, &read));
    if (read) {
        return SX_OK;
    }
    sx_device_buffer *output = p->last != NULL ? p->last->outputs[p->outputs[i]] : NULL;
    if (output == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "output \"%s\" read, but no step has run%s",
                        sx_program_output_name(p, i), p->last != NULL ? " whole" : "");
    }
    return sx_device_buffer_read(output, data);
}

/* What the loop runs at that batch size, if it was prepared for it. */
static sx_status find_compiled(sx_program *p, int64_t batch, sx_compiled **out)
{
    *out = sx_launches_compiled(p, batch);
    return *out != NULL ? SX_OK : sx_program_compiled(p, SX_ONE_STEP(batch), out);
}

sx_status sx_program_info(sx_program *p, int64_t batch, sx_executable_info *out)
{
    sx_compiled *c;
    SX_TRY(find_compiled(p, batch, &c));
    return sx_executable_get_info(c->executable, out);
}

sx_status sx_program_profile(sx_program *p, int64_t batch, const sx_kernel_time **out_rows,
                             int *out_count)
{
    sx_compiled *c;
    SX_TRY(find_compiled(p, batch, &c));
    return sx_run_get_profile(c->run, out_rows, out_count);
}
