/* See function_run.h. A run executes a program's steps (function_programs.h). A value stays where
 * it was computed, on the host or on the device, and is copied when a step first needs it on the
 * other side. */
#include "runtime/function_run.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/node_label.h"
#include "graph/ops/attrs.h"
#include "runtime/assigned.h"
#include "runtime/function_batch.h"
#include "runtime/function_frame.h"
#include "runtime/host_step.h"
#include "runtime/initialize.h"

enum {
    MAX_KNOWN_ELEMS = 64, /* of an argument whose value becomes part of the key */
    MAX_DEPTH = 64,       /* nesting of late calls and regions */
};

struct sx_runner {
    sx_runner_options options;
    sx_function_programs programs;
    sx_device_buffer **variables; /* [library's variables] */
    bool any_writes;
    pthread_rwlock_t lock; /* of the variables; used if any_writes */
    atomic_bool lost;      /* an execution that assigns variables did not end before its deadline */
};

typedef sx_run_value value;

typedef struct call {
    sx_runner *r;
    sx_cancel cancel; /* with the runner's limits; the caller's is around it */
    int depth;
} call;

static sx_status no_memory(void)
{
    return sx_no_memory("running a function");
}

/* ---- Life ---- */

static sx_status make_variable(sx_runner *r, int i)
{
    const sx_variable_spec *v = &r->options.library->variables[i];
    void *data = sx_alloc((size_t)sx_type_bytes(&v->type) + 1, 1);
    if (data == NULL) {
        return no_memory();
    }
    sx_status status =
        sx_draw_initial_value(v->init, v->init_value, &v->type, r->options.seed, v->name, data);
    if (status == SX_OK) {
        status =
            sx_device_buffer_create(r->options.platform->devices[0], &v->type, &r->variables[i]);
    }
    if (status == SX_OK) {
        status = sx_device_buffer_write(r->variables[i], data, false);
    }
    sx_free(data);
    return sx_status_annotate(status, __FILE__, __LINE__, "variable \"%.100s\"", v->name);
}

sx_status sx_runner_create(const sx_runner_options *options, sx_runner **out)
{
    const sx_library *library = options->library;
    sx_runner *r = sx_alloc(1, sizeof(*r));
    if (r == NULL) {
        return no_memory();
    }
    r->options = *options;
    pthread_rwlock_init(&r->lock, NULL);
    r->variables = sx_alloc((size_t)library->n_variables + 1, sizeof(sx_device_buffer *));
    sx_status status = !library->finished
                           ? sx_error(SX_FAILED_PRECONDITION, "the library is not finished")
                       : r->variables == NULL ? no_memory()
                                              : SX_OK;
    if (status == SX_OK) {
        status = sx_function_programs_init(&r->programs, library, options->platform,
                                           &options->limits, options->max_programs,
                                           options->max_executables, options->memory);
    }
    r->programs.frozen = options->frozen;
    r->programs.max_trips = options->max_trips;
    for (int i = 0; i < library->n_variables && status == SX_OK; i++) {
        if (options->variables != NULL) {
            r->variables[i] = sx_device_buffer_retain(options->variables[i]);
        } else {
            status = make_variable(r, i);
        }
    }
    for (int i = 0; i < library->n_functions; i++) {
        r->any_writes = r->any_writes || library->functions[i].writes;
    }
    if (status != SX_OK) {
        sx_runner_destroy(r);
        return status;
    }
    *out = r;
    return SX_OK;
}

void sx_runner_destroy(sx_runner *r)
{
    if (r == NULL) {
        return;
    }
    sx_function_programs_deinit(&r->programs);
    for (int i = 0; r->variables != NULL && i < r->options.library->n_variables; i++) {
        sx_device_buffer_release(r->variables[i]);
    }
    sx_free(r->variables);
    pthread_rwlock_destroy(&r->lock);
    sx_free(r);
}

static sx_status find_variable(const sx_runner *r, const char *name, int *out)
{
    const sx_variable_spec *v = sx_library_find_variable(r->options.library, name);
    if (v == NULL) {
        return sx_library_no_variable(r->options.library, name);
    }
    *out = (int)(v - r->options.library->variables);
    return SX_OK;
}

/* FAILED_PRECONDITION if the variables have no value any more. */
static sx_status check_variables(const sx_runner *r)
{
    return !atomic_load(&r->lost)
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "the variables are lost, because %s has not finished in time a program "
                          "that assigns them; load the model again",
                          r->options.platform->devices[0]->name);
}

sx_status sx_runner_read_variable(sx_runner *r, const char *name, void *data)
{
    int i = 0;
    SX_TRY(check_variables(r));
    SX_TRY(find_variable(r, name, &i));
    return sx_device_buffer_read(r->variables[i], data);
}

sx_status sx_runner_write_variable(sx_runner *r, const char *name, const void *data)
{
    int i = 0;
    SX_TRY(check_variables(r));
    SX_TRY(find_variable(r, name, &i));
    return sx_device_buffer_write(r->variables[i], data, false);
}

void sx_runner_get_stats(sx_runner *r, sx_build_cache_stats *out_programs,
                         sx_build_cache_stats *out_executables, int64_t *out_known)
{
    *out_known = sx_function_frames_taken(&r->programs);
    sx_build_cache_get_stats(r->programs.programs, out_programs);
    sx_build_cache_get_stats(r->programs.executables, out_executables);
}

/* ---- Values ---- */

static size_t host_bytes(const sx_type *type)
{
    return type->dtype == SX_RESOURCE ? 0 : (size_t)sx_host_bytes(type);
}

static sx_status to_host(const call *c, value *v, sx_arena *arena)
{
    if (v->data != NULL) {
        return SX_OK;
    }
    void *data = sx_arena_alloc(arena, host_bytes(&v->type) + 1, 1);
    if (data == NULL) {
        return sx_budget_error(arena->budget);
    }
    SX_TRY(sx_device_buffer_read_within(v->buffer, data, c->cancel.deadline_ns));
    v->data = data;
    return SX_OK;
}

static sx_status to_device(const call *c, sx_function_frame *frame, int slot)
{
    value *v = &frame->slots[slot];
    const sx_platform *platform = c->r->options.platform;
    if (v->buffer != NULL) {
        return SX_OK;
    }
    SX_TRY(sx_function_frame_buffer(&c->r->programs, frame, slot, &v->type));
    const bool borrow = !sx_platform_may_outlast(platform, c->cancel.deadline_ns);
    return sx_device_buffer_write(v->buffer, v->data, borrow);
}

/* A copy that depends on nothing but `arena`: a buffer that the value has beside host bytes may
 * borrow them. */
static sx_status copy_value(const value *v, sx_arena *arena, value *out)
{
    *out = *v;
    if (v->data == NULL) {
        out->buffer = sx_device_buffer_retain(v->buffer);
        return SX_OK;
    }
    out->buffer = NULL;
    out->data = sx_arena_memdup(
        arena, v->data, v->type.dtype == SX_RESOURCE ? strlen(v->data) + 1 : host_bytes(&v->type));
    sx_bytes *s = out->data;
    for (int64_t i = 0; s != NULL && v->type.dtype == SX_STRING && i < sx_type_elems(&v->type);
         i++) {
        s[i].data = sx_arena_memdup(arena, s[i].data, s[i].size);
        if (s[i].data == NULL) {
            return sx_budget_error(arena->budget);
        }
    }
    return out->data != NULL ? SX_OK : sx_budget_error(arena->budget);
}

static void release_values(value *values, int n)
{
    for (int i = 0; values != NULL && i < n; i++) {
        sx_device_buffer_release(values[i].buffer);
        values[i].buffer = NULL;
    }
}

/* ---- Arguments ---- */

/* What is bound of each argument, in `arena`. c·N and, with `symbols`, those that have N's size
 * stay symbolic, unless that is 0. */
static sx_status bind(const call *c, const sx_graph *body, const value *args, int n,
                      const bool *shaping, bool symbols, int64_t batch, sx_arena *arena,
                      sx_tensor **out)
{
    sx_tensor *bound = sx_arena_array(arena, n + 1, sx_tensor);
    if (bound == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < n; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        const bool whole = args[i].type.dtype == SX_BOOL || sx_dtype_is_integer(args[i].type.dtype);
        bool sized = true; /* by the declaration: its values, too, are few */
        bound[i].type = args[i].type;
        for (int d = 0; d < declared->rank && declared->rank == bound[i].type.rank; d++) {
            const int64_t dim = declared->dims[d];
            if (batch > 0 && sx_dim_is_batch(dim)) {
                bound[i].type.dims[d] = dim;
            } else if (symbols && sx_dim_is_symbol(dim)) {
                bound[i].type.dims[d] =
                    batch > 0 && args[i].type.dims[d] == batch ? SX_BATCH : args[i].type.dims[d];
                sized = false;
            }
        }
        if (args[i].type.dtype == SX_RESOURCE) {
            bound[i].data = args[i].data;
        } else if (shaping[i] && whole && sized && !sx_type_has_batch(&bound[i].type) &&
                   sx_type_elems(&args[i].type) <= MAX_KNOWN_ELEMS) {
            value here = args[i]; /* the caller's may outlive the arena */
            SX_TRY(to_host(c, &here, arena));
            bound[i].data = here.data;
        }
    }
    *out = bound;
    return SX_OK;
}

/* ---- Steps ---- */

static sx_status run_graph(call *c, const sx_function_body *body, int64_t late_batch, value *args,
                           int n_args, value *results, int n_results, sx_arena *arena);

/* Region or late call `i` of a step. */
static sx_function_body body_of(const sx_function_program *p, int k, const sx_graph *graph, int i)
{
    return (sx_function_body){
        .graph = graph, .digest = &p->spec->steps[k].digests[i], .shaping = p->steps[k].shaping[i]};
}

/* The executable of step k, a run of it, and the buffers of variables among its arguments. */
static sx_status prepare_device(call *c, sx_function_program *p, int k, int64_t batch,
                                sx_frame_step *s)
{
    const sx_graph *g = p->spec->steps[k].graph;
    if (s->built == NULL) {
        SX_TRY(sx_function_executable_get(&c->r->programs, p, k, batch, &c->cancel, &s->built));
    }
    if (s->buffers == NULL) {
        s->buffers = sx_alloc((size_t)(g->n_args + g->n_results) + 1, sizeof(*s->buffers));
        if (s->buffers == NULL) {
            return no_memory();
        }
        for (int i = 0; i < g->n_args; i++) {
            if (g->args[i].kind == SX_ARG_VARIABLE) {
                int v = 0;
                SX_TRY(find_variable(c->r, g->args[i].name, &v));
                s->buffers[i] = c->r->variables[v];
            }
        }
    }
    return s->run != NULL ? SX_OK : sx_run_create(sx_built_value(s->built), &s->run);
}

static sx_status run_device(call *c, sx_function_program *p, int k, int64_t batch,
                            sx_function_frame *frame)
{
    const sx_step *step = &p->spec->steps[k];
    const sx_graph *g = step->graph;
    sx_frame_step *s = &frame->steps[k];
    SX_TRY(prepare_device(c, p, k, batch, s));
    const sx_executable *e = sx_built_value(s->built);
    for (int i = 0, in = 0; i < g->n_args; i++) {
        if (g->args[i].kind == SX_ARG_INPUT) {
            const int slot = step->in[in++];
            SX_TRY(to_device(c, frame, slot));
            s->buffers[i] = frame->slots[slot].buffer;
        }
    }
    for (int i = 0, out = 0; i < g->n_results; i++) {
        if (e->result_args[i] < 0) {
            const int slot = step->out[out++];
            frame->slots[slot].type = e->result_types[i];
            SX_TRY(sx_function_frame_buffer(&c->r->programs, frame, slot, &e->result_types[i]));
            s->buffers[g->n_args + i] = frame->slots[slot].buffer;
        }
    }
    /* If the caller stops the execution, the variables stay as they were. Only a backend that
     * computes on this thread can be stopped. */
    sx_assigned before = {.data = NULL};
    if (c->cancel.outer != NULL && !sx_platform_may_outlast(c->r->options.platform, 0)) {
        SX_TRY(sx_assigned_save(e, s->buffers, c->r->options.memory, &before));
    }
    sx_status status =
        sx_run_execute_within(s->run, s->buffers, s->buffers + g->n_args, &c->cancel);
    if (atomic_load(&s->run->state) == SX_RUN_PENDING) {
        if (p->spec->writes) {
            atomic_store(&c->r->lost, true);
        }
        sx_run_destroy(s->run); /* the execution ends by itself */
        s->run = NULL;
    } else if (status != SX_OK) {
        sx_status_free(sx_assigned_restore(&before, s->buffers)); /* else they stay lost */
    }
    sx_assigned_release(&before);
    return status;
}

/* One node on the host; types are known now. */
static sx_status run_host(call *c, const sx_step *step, int64_t batch, value *slots,
                          sx_arena *arena)
{
    sx_tensor *t = sx_arena_array(arena, step->n_in + step->n_out + 1, sx_tensor);
    if (t == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < step->n_in; i++) {
        value *v = &slots[step->in[i]];
        SX_TRY(to_host(c, v, arena));
        t[i] = (sx_tensor){v->type, v->data};
    }
    sx_tensor *out = t + step->n_in;
    SX_TRY(sx_host_step_run_checked(step, batch, t, out,
                                    &(sx_host_context){.arena = arena,
                                                       .cancel = &c->cancel,
                                                       .images = c->r->options.images,
                                                       .tables = c->r->options.tables}));
    for (int i = 0; i < step->n_out; i++) {
        slots[step->out[i]] = (value){.type = out[i].type, .data = out[i].data};
    }
    return SX_OK;
}

static sx_status read_flag(const call *c, value *v, sx_arena *arena, bool *out)
{
    if (v->type.dtype != SX_BOOL || sx_type_elems(&v->type) != 1) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "the condition is %s, expected a bool scalar",
                        sx_type_format(&v->type, text, sizeof(text)));
    }
    SX_TRY(to_host(c, v, arena));
    *out = *(const uint8_t *)v->data != 0;
    return SX_OK;
}

static sx_status copy_in(const sx_step *step, int first, int n, const value *slots, sx_arena *arena,
                         value *out)
{
    for (int i = 0; i < n; i++) {
        SX_TRY(copy_value(&slots[step->in[first + i]], arena, &out[i]));
    }
    return SX_OK;
}

static sx_status run_if(call *c, const sx_function_program *p, int k, int64_t batch, value *slots,
                        sx_arena *arena)
{
    const sx_step *step = &p->spec->steps[k];
    const int n = step->node->n_inputs - 1;
    bool taken = false;
    SX_TRY(read_flag(c, &slots[step->in[0]], arena, &taken));
    const int row = taken ? 0 : 1;
    value *args = sx_arena_array(arena, n + SX_MAX_OUTPUTS, value);
    if (args == NULL) {
        return sx_budget_error(arena->budget);
    }
    sx_status status = copy_in(step, 1, n, slots, arena, args);
    if (status == SX_OK) {
        const sx_function_body body = body_of(p, k, sx_node_body(step->node, row), row);
        status = run_graph(c, &body, p->steps[k].has_batch[row] ? batch : SX_NO_BATCH, args, n,
                           args + n, step->n_out, arena);
    }
    for (int i = 0; i < step->n_out && status == SX_OK; i++) {
        slots[step->out[i]] = args[n + i];
    }
    release_values(args, n);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s", taken ? "then" : "else");
}

/* The state of each iteration is in a separate arena, which is reset after the next iteration. */
static sx_status run_while(call *c, const sx_function_program *p, int k, int64_t batch,
                           sx_function_frame *frame, sx_arena *arena)
{
    const sx_step *step = &p->spec->steps[k];
    const sx_while_attrs *attrs = step->node->attrs;
    const int n = step->node->n_inputs, n_state = step->n_out;
    const sx_function_body condition = body_of(p, k, attrs->condition, 0),
                           body = body_of(p, k, attrs->body, 1);
    value *slots = frame->slots;
    value *args = sx_arena_array(arena, n + 1, value), made[SX_MAX_OUTPUTS] = {{.data = NULL}};
    if (args == NULL) {
        return sx_budget_error(arena->budget);
    }
    sx_status status = copy_in(step, 0, n, slots, arena, args);
    for (int64_t trip = 0; status == SX_OK; trip++) {
        sx_arena *here = &frame->steps[k].trips[trip & 1];
        value flag = {.data = NULL};
        bool again = false;
        sx_arena_reset(here);
        status = run_graph(c, &condition, p->steps[k].has_batch[0] ? batch : SX_NO_BATCH, args, n,
                           &flag, 1, here);
        if (status == SX_OK) {
            status = read_flag(c, &flag, here, &again);
        }
        release_values(&flag, 1);
        if (status != SX_OK || !again) {
            break;
        }
        if (attrs->trips > 0 && trip == attrs->trips) {
            status = sx_error(SX_OUT_OF_RANGE, "the condition is still true after %lld iterations",
                              (long long)trip);
            break;
        }
        status = sx_cancel_check_trip(&c->cancel, trip);
        if (status != SX_OK) {
            break;
        }
        status =
            sx_status_annotate(run_graph(c, &body, p->steps[k].has_batch[1] ? batch : SX_NO_BATCH,
                                         args, n, made, n_state, here),
                               __FILE__, __LINE__, "trip %lld", (long long)trip);
        for (int i = 0; i < n_state && status == SX_OK; i++) {
            value next;
            status = copy_value(&made[i], here, &next);
            if (status == SX_OK) {
                sx_device_buffer_release(args[i].buffer);
                args[i] = next;
            }
        }
        release_values(made, n_state);
    }
    for (int i = 0; i < n_state && status == SX_OK; i++) {
        status = copy_value(&args[i], arena, &slots[step->out[i]]);
    }
    release_values(args, n);
    return status;
}

/* Result `row` of element i of `length`, to row i of *out. */
static sx_status stack_row(const value *row, int64_t i, int64_t length, sx_arena *arena, value *out)
{
    char got[SX_TYPE_TEXT], expected[SX_TYPE_TEXT];
    const int64_t row_bytes = sx_host_bytes(&row->type);
    if (out->data == NULL) {
        if (row->type.rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "%s has no room for an axis",
                            sx_type_format(&row->type, got, sizeof(got)));
        }
        out->type = (sx_type){.dtype = row->type.dtype, .rank = row->type.rank + 1};
        out->type.dims[0] = length;
        memcpy(out->type.dims + 1, row->type.dims, (size_t)row->type.rank * sizeof(int64_t));
        const int64_t bytes = sx_host_bytes(&out->type);
        if (bytes < 0) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "the size of %s overflows",
                            sx_type_format(&out->type, got, sizeof(got)));
        }
        out->data = sx_arena_alloc(arena, (size_t)bytes + 1, 1);
        if (out->data == NULL) {
            return sx_budget_error(arena->budget);
        }
    }
    const sx_type of_others = sx_type_make(out->type.dtype, out->type.rank - 1, out->type.dims + 1);
    if (!sx_type_equal(&row->type, &of_others)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s, expected %s as for the elements before it",
                        sx_type_format(&row->type, got, sizeof(got)),
                        sx_type_format(&of_others, expected, sizeof(expected)));
    }
    if (i == length) { /* of no element */
        return SX_OK;
    }
    char *to = (char *)out->data + i * row_bytes;
    memcpy(to, row->data, (size_t)row_bytes);
    sx_bytes *strings = (sx_bytes *)(void *)to;
    for (int64_t k = 0; row->type.dtype == SX_STRING && k < sx_type_elems(&row->type); k++) {
        strings[k].data = sx_arena_memdup(arena, strings[k].data, strings[k].size);
        if (strings[k].data == NULL) {
            return sx_budget_error(arena->budget);
        }
    }
    return SX_OK;
}

static sx_status run_map(call *c, const sx_function_program *p, int k, int64_t batch,
                         sx_function_frame *frame, sx_arena *arena)
{
    const sx_step *step = &p->spec->steps[k];
    const sx_map_attrs *attrs = step->node->attrs;
    const int n = step->node->n_inputs, mapped = (int)attrs->mapped, n_out = step->n_out;
    const sx_function_body body = body_of(p, k, attrs->body, 0);
    sx_arena *here = &frame->steps[k].trips[0];
    value *slots = frame->slots, *args = sx_arena_array(arena, n + 1, value);
    value made[SX_MAX_OUTPUTS] = {{.data = NULL}}, stacked[SX_MAX_OUTPUTS] = {{.data = NULL}};
    if (args == NULL) {
        return sx_budget_error(arena->budget);
    }
    const sx_type *first = &slots[step->in[0]].type;
    for (int i = 0; i < mapped; i++) {
        value *x = &slots[step->in[i]];
        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
        if (x->type.rank < 1 || x->type.dims[0] != first->dims[0]) {
            return sx_error(
                SX_INVALID_ARGUMENT, "operand %d is %s, expected an axis 0 as long as that of %s",
                i, sx_type_format(&x->type, a, sizeof(a)), sx_type_format(first, b, sizeof(b)));
        }
        SX_TRY(to_host(c, x, arena));
        args[i].type = sx_type_make(x->type.dtype, x->type.rank - 1, x->type.dims + 1);
    }
    const int64_t length = first->dims[0];
    sx_status status = copy_in(step, mapped, n - mapped, slots, arena, args + mapped);
    for (int64_t i = 0; i < length && status == SX_OK; i++) {
        sx_arena_reset(here);
        for (int m = 0; m < mapped; m++) {
            args[m].data = (char *)slots[step->in[m]].data + i * (int64_t)host_bytes(&args[m].type);
        }
        status = sx_cancel_check(&c->cancel);
        if (status == SX_OK) {
            status = run_graph(c, &body, p->steps[k].has_batch[0] ? batch : SX_NO_BATCH, args, n,
                               made, n_out, here);
        }
        for (int m = 0; m < n_out && status == SX_OK; m++) {
            status = to_host(c, &made[m], here);
            status = status != SX_OK ? status : stack_row(&made[m], i, length, arena, &stacked[m]);
            status = sx_status_annotate(status, __FILE__, __LINE__, "result %d", m);
        }
        release_values(made, n_out);
        status = sx_status_annotate(status, __FILE__, __LINE__, "element %lld", (long long)i);
    }
    for (int m = 0; m < n_out && status == SX_OK; m++) {
        if (length == 0) { /* as the region declares it; what it leaves open is 0 */
            value none = {.type = *sx_graph_type(attrs->body, attrs->body->results[m].value)};
            none.type.rank = SX_MAX(none.type.rank, 0);
            for (int d = 0; d < none.type.rank; d++) {
                none.type.dims[d] = SX_MAX(none.type.dims[d], 0);
            }
            status = stack_row(&none, 0, 0, arena, &stacked[m]);
        }
        slots[step->out[m]] = stacked[m];
    }
    release_values(args + mapped, n - mapped);
    return status;
}

static sx_status run_late(call *c, const sx_function_program *p, int k, int64_t batch, value *slots,
                          sx_arena *arena)
{
    const sx_step *step = &p->spec->steps[k];
    value *args = sx_arena_array(arena, step->n_in + step->n_out + 1, value);
    if (args == NULL) {
        return sx_budget_error(arena->budget);
    }
    sx_status status = copy_in(step, 0, step->n_in, slots, arena, args);
    if (status == SX_OK) {
        const sx_function_body body = body_of(p, k, step->graph, 0);
        status =
            run_graph(c, &body, batch, args, step->n_in, args + step->n_in, step->n_out, arena);
    }
    for (int i = 0; i < step->n_out && status == SX_OK; i++) {
        value *made = &args[step->n_in + i];
        sx_type expected = p->spec->slots[step->out[i]].type;
        expected = batch >= 0 ? sx_type_with_batch(expected, batch) : expected;
        if (!sx_type_may_be(&made->type, &expected)) { /* later steps are compiled for it */
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            release_values(args + step->n_in + i, step->n_out - i);
            status = sx_error(
                SX_INVALID_ARGUMENT, "a step whose shapes depend on data gave %s, expected %s",
                sx_type_format(&made->type, a, sizeof(a)), sx_type_format(&expected, b, sizeof(b)));
            break;
        }
        slots[step->out[i]] = *made;
    }
    release_values(args, step->n_in);
    return status;
}

static sx_status run_steps(call *c, sx_function_program *p, int64_t batch, sx_function_frame *frame)
{
    value *slots = frame->slots;
    sx_arena *arena = &frame->arena;
    for (int k = 0; k < p->spec->n_steps; k++) {
        const sx_step *step = &p->spec->steps[k];
        char label[SX_NODE_LABEL];
        const char *name = step->node != NULL ? sx_node_label(step->node->name, label) : "";
        sx_status status = sx_cancel_check(&c->cancel);
        SX_TRY(status);
        switch (step->kind) {
        case SX_STEP_DEVICE:
            SX_TRY(run_device(c, p, k, batch, frame));
            break;
        case SX_STEP_HOST:
            SX_TRY(run_host(c, step, batch, slots, arena), "%s \"%s\"", step->node->op->name, name);
            break;
        case SX_STEP_IF:
            SX_TRY(run_if(c, p, k, batch, slots, arena), "if \"%s\"", name);
            break;
        case SX_STEP_WHILE:
            SX_TRY(run_while(c, p, k, batch, frame, arena), "while \"%s\"", name);
            break;
        case SX_STEP_MAP:
            SX_TRY(run_map(c, p, k, batch, frame, arena), "map \"%s\"", name);
            break;
        case SX_STEP_LATE:
            SX_TRY(run_late(c, p, k, batch, slots, arena));
            break;
        }
    }
    return SX_OK;
}

static sx_status check_counts(const sx_graph *body, int n_args, int n_results)
{
    return n_args == body->n_args && n_results == body->n_results ? SX_OK
           : n_args != body->n_args
               ? sx_error(SX_INVALID_ARGUMENT, "got %d arguments, expected %d", n_args,
                          body->n_args)
               : sx_error(SX_INVALID_ARGUMENT, "got room for %d results, the function has %d",
                          n_results, body->n_results);
}
/* Runs a function's body, a region or a late call. The caller owns the references in results[]. */
static sx_status run_graph(call *c, const sx_function_body *called, int64_t late_batch, value *args,
                           int n_args, value *results, int n_results, sx_arena *arena)
{
    const sx_graph *body = called->graph;
    const bool symbols =
        c->depth == 0; /* those of regions are parts of a program that knows them */
    int64_t batch = SX_NO_BATCH;
    sx_tensor *bound = NULL;
    if (c->depth == MAX_DEPTH) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "late calls and regions nest deeper than %d",
                        MAX_DEPTH);
    }
    SX_TRY(check_counts(body, n_args, n_results));
    SX_TRY(sx_function_batch(body, args, n_args, symbols, &batch));
    const int64_t known_batch = batch >= 0 ? batch : late_batch;
    sx_function_frame *frame = NULL;
    sx_function_program *p = NULL;
    /* Once with N, and by the sizes if what that gives is not for this one. */
    for (bool by_size = batch <= 0, done = false; !done; by_size = true) {
        SX_TRY(bind(c, body, args, n_args, called->shaping, symbols, by_size ? 0 : batch, arena,
                    &bound));
        const bool is_static = by_size && known_batch >= 0;
        const sx_binding binding = {.args = bound,
                                    .n_args = n_args,
                                    .knows_batch = is_static,
                                    .batch = is_static ? known_batch : 0};
        SX_TRY(sx_function_frame_take(&c->r->programs, called, &binding, known_batch, &c->cancel,
                                      &frame));
        p = sx_built_value(frame->program);
        done = by_size || p->spec->excluded == 0 || p->spec->excluded != known_batch;
        if (!done) {
            sx_function_frame_give(&c->r->programs, frame);
        }
    }
    sx_status status = SX_OK;
    for (int i = 0; i < p->spec->n_slots; i++) {
        const sx_tensor *constant = p->spec->slots[i].constant;
        if (i < n_args) {
            frame->slots[i] = args[i];
            frame->slots[i].buffer =
                args[i].buffer != NULL ? sx_device_buffer_retain(args[i].buffer) : NULL;
        } else if (constant != NULL) {
            frame->slots[i] = (value){.type = constant->type, .data = constant->data};
        }
    }
    c->depth++;
    status = run_steps(c, p, known_batch, frame);
    c->depth--;
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        /* copied: what the frame has is only valid until another run */
        status = copy_value(&frame->slots[p->spec->results[i]], arena, &results[i]);
        if (status != SX_OK) {
            release_values(results, i);
        }
    }
    sx_function_frame_give(&c->r->programs, frame);
    return status;
}

/* An argument from outside: of a known size, with data. */
static sx_status take_argument(const sx_tensor *arg, int i, value *out)
{
    static char nothing[sizeof(sx_bytes)]; /* of a tensor without elements */
    char text[SX_TYPE_TEXT];
    const sx_bytes *strings = arg->data;
    if (!sx_dtype_is_data(arg->type.dtype) || !sx_type_is_static(&arg->type)) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d is %s, expected a static type", i,
                        sx_type_format(&arg->type, text, sizeof(text)));
    }
    const int64_t elems = sx_type_elems(&arg->type);
    if (sx_host_bytes(&arg->type) < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d: the size of %s overflows", i,
                        sx_type_format(&arg->type, text, sizeof(text)));
    }
    if (elems > 0 && arg->data == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d is %s, but its data is NULL", i,
                        sx_type_format(&arg->type, text, sizeof(text)));
    }
    for (int64_t k = 0; arg->type.dtype == SX_STRING && k < elems; k++) {
        if (strings[k].data == NULL && strings[k].size > 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "argument %d: string %lld has %zu bytes, but its data is NULL", i,
                            (long long)k, strings[k].size);
        }
    }
    *out = (value){.type = arg->type, .data = arg->data != NULL ? arg->data : nothing};
    return SX_OK;
}

static sx_status run_function(sx_runner *r, const sx_function *f, const sx_tensor *args,
                              sx_tensor *results, sx_arena *arena, const sx_cancel *cancel)
{
    const int n_args = f->body->n_args, n_results = f->body->n_results;
    call c = {.r = r};
    sx_cancel_init(&c.cancel, cancel != NULL ? cancel->deadline_ns : SX_NO_DEADLINE);
    c.cancel.max_trips = r->options.max_trips > 0 ? r->options.max_trips : SX_MAX_TRIPS;
    c.cancel.outer = cancel;
    value *values = sx_arena_array(arena, n_args + n_results + 1, value);
    sx_status status = values == NULL ? sx_budget_error(arena->budget) : SX_OK;
    for (int i = 0; i < n_args && status == SX_OK; i++) {
        status = take_argument(&args[i], i, &values[i]);
    }
    if (status == SX_OK) {
        if (r->any_writes && f->writes) {
            pthread_rwlock_wrlock(&r->lock);
        } else if (r->any_writes) {
            pthread_rwlock_rdlock(&r->lock);
        }
        const sx_function_body body = {
            .graph = f->body, .digest = &f->digest, .shaping = f->shaping};
        status = check_variables(r);
        status = status != SX_OK ? status
                                 : run_graph(&c, &body, SX_NO_BATCH, values, n_args,
                                             values + n_args, n_results, arena);
        if (r->any_writes) {
            pthread_rwlock_unlock(&r->lock);
        }
    }
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        value *v = &values[n_args + i];
        status = to_host(&c, v, arena);
        results[i] = (sx_tensor){v->type, v->data};
    }
    release_values(values, n_args + n_results);
    return status;
}

sx_status sx_runner_run(sx_runner *r, const char *function, const sx_tensor *args, int n_args,
                        sx_tensor *results, int n_results, sx_arena *arena, const sx_cancel *cancel)
{
    const sx_function *f = sx_library_find(r->options.library, function);
    if (f == NULL) {
        return sx_library_no_function(r->options.library, function);
    }
    sx_status status = check_counts(f->body, n_args, n_results);
    if (status == SX_OK) {
        int tries = 0;
        do {
            status = run_function(r, f, args, results, arena, cancel);
            /* what may have assigned is not run again */
        } while (!f->writes && sx_function_programs_make_room(&r->programs, status, &tries));
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s", function);
}
