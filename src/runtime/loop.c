/* The step loop (session.h): collect, launch, replay.
 *
 *   staged[input]   [steps, batch, …] on the host, row i is step i of the launch
 *   rings[output]   [steps, …]        written by the device, row i by step i
 *
 * Both are allocated once, by sx_program_prepare_loop(). */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/host.h"
#include "runtime/program.h"

enum { MOST_STEPS = 1024 };
/* A launch transfers the whole superbatch, even if only a few rows are used; half a second of small
 * steps must justify the cost. */
static const int64_t STAGED_BYTES = (int64_t)16 << 20, STAGED_BYTES_ASKED = (int64_t)1 << 30;
static const double LAUNCH_SECONDS = 0.5;

struct sx_launches {
    sx_compiled *c;
    char **staged;      /* [n_inputs] */
    size_t *input_rows; /* [n_inputs]: bytes of one step */
    char **rings;       /* [n_outputs] */
    size_t *ring_rows;  /* [n_outputs] */
    bool *ring_is_read; /* [n_outputs]: of the last launch */
    int64_t ran;        /* steps run by the last launch */
    int n_reads;        /* read after each launch: `ran` and the rings of the scalars */
    sx_device_buffer *read_from[SX_MAX_SCALARS + 1];
    void *read_into[SX_MAX_SCALARS + 1];
    int64_t row;         /* the step shown last */
    int64_t step_ns;     /* of the last launch; 0 = none yet */
    sx_compiled *failed; /* bound to the withheld step; NULL = none */
};

/* ---- Preparing ---- */

static size_t bytes_at(const sx_type *symbolic, int64_t batch)
{
    const sx_type type = sx_type_with_batch(*symbolic, batch);
    return (size_t)sx_type_bytes(&type);
}

/* Whether the program's inputs can be stacked. */
static bool can_stack(const sx_program *p)
{
    const sx_graph *g = p->graph;
    bool can = sx_session_platform(p->session)->backend->capabilities & SX_CAN_LOOP;
    for (int i = 0; i < p->n_inputs; i++) {
        can = can && sx_type_has_batch(sx_program_input_type(p, i));
    }
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        can = can && sx_graph_type(g, v)->rank < SX_MAX_RANK;
    }
    return can;
}

static int64_t choose_steps(const sx_program *p, int64_t batch)
{
    int64_t wish = sx_session_get_options(p->session)->launch_steps, bytes = 1;
    for (int i = 0; i < p->n_inputs; i++) {
        bytes += (int64_t)bytes_at(sx_program_input_type(p, i), batch);
    }
    for (int i = 0; i < p->n_outputs; i++) {
        bytes += (int64_t)bytes_at(sx_program_output_type(p, i), batch);
    }
    int64_t steps = (wish > 0 ? STAGED_BYTES_ASKED : STAGED_BYTES) / bytes;
    steps = SX_MIN(steps, wish > 0 ? SX_MIN(wish, MOST_STEPS) : MOST_STEPS);
    return can_stack(p) && steps > 1 ? steps : 1;
}

void sx_launches_destroy(sx_program *p)
{
    sx_launches *l = p->launches;
    if (l == NULL) {
        return;
    }
    for (int i = 0; l->staged != NULL && i < p->n_inputs; i++) {
        sx_free_aligned(l->staged[i]);
    }
    for (int i = 0; l->rings != NULL && i < p->n_outputs; i++) {
        sx_free_aligned(l->rings[i]);
    }
    sx_compiled_destroy(p, l->failed);
    sx_free(l->staged);
    sx_free(l->input_rows);
    sx_free(l->rings);
    sx_free(l->ring_rows);
    sx_free(l->ring_is_read);
    sx_free(l);
    p->launches = NULL;
}

/* choose_steps() has bounded the product. */
static sx_status make_rows(const sx_type *symbolic, const sx_compiled *c, size_t *out_row,
                           char **out_rows)
{
    *out_row = bytes_at(symbolic, c->batch);
    *out_rows = sx_alloc_aligned(*out_row * (size_t)c->steps + 1, 64);
    return *out_rows != NULL ? SX_OK : sx_no_memory("for the step loop");
}

static void add_read(sx_launches *l, sx_device_buffer *from, void *into)
{
    l->read_from[l->n_reads] = from;
    l->read_into[l->n_reads++] = into;
}

static sx_status fill_launches(sx_program *p, sx_launches *l)
{
    size_t n_inputs = (size_t)p->n_inputs + 1, n_outputs = (size_t)p->n_outputs + 1;
    l->staged = sx_alloc(n_inputs, sizeof(*l->staged));
    l->input_rows = sx_alloc(n_inputs, sizeof(*l->input_rows));
    l->rings = sx_alloc(n_outputs, sizeof(*l->rings));
    l->ring_rows = sx_alloc(n_outputs, sizeof(*l->ring_rows));
    l->ring_is_read = sx_alloc(n_outputs, sizeof(*l->ring_is_read));
    if (l->staged == NULL || l->input_rows == NULL || l->rings == NULL || l->ring_rows == NULL ||
        l->ring_is_read == NULL) {
        return sx_no_memory("for the step loop");
    }
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(make_rows(sx_program_input_type(p, i), l->c, &l->input_rows[i], &l->staged[i]));
    }
    for (int i = 0; i < p->n_outputs; i++) {
        SX_TRY(make_rows(sx_program_output_type(p, i), l->c, &l->ring_rows[i], &l->rings[i]));
    }
    add_read(l, l->c->outputs[p->graph->n_results], &l->ran);
    for (int k = 0; k < p->n_scalars; k++) {
        add_read(l, l->c->outputs[p->outputs[p->scalars[k]]], l->rings[p->scalars[k]]);
    }
    return SX_OK;
}

static sx_status make_launches(sx_program *p, sx_compiled *c)
{
    sx_launches_destroy(p);
    p->launches = sx_alloc(1, sizeof(*p->launches));
    if (p->launches == NULL) {
        return sx_no_memory("for the step loop");
    }
    p->launches->c = c;
    sx_status status = fill_launches(p, p->launches);
    if (status != SX_OK) {
        sx_launches_destroy(p);
    }
    return status;
}

static sx_status check_batch(const sx_program *p, int64_t batch)
{
    int64_t n = sx_session_replicas(p->session), below = batch / n * n;
    if (batch % n == 0) {
        return SX_OK;
    }
    if (below == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "batch size %" PRId64 " is not a multiple of %" PRId64
                        " replicas; the smallest is %" PRId64,
                        batch, n, n);
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "batch size %" PRId64 " is not a multiple of %" PRId64
                    " replicas; the nearest are %" PRId64 " and %" PRId64,
                    batch, n, below, below + n);
}

sx_status sx_program_prepare_loop(sx_program *p, int64_t batch, int ok_output, int64_t *out_ns)
{
    int64_t start = sx_now_ns(), steps = choose_steps(p, batch);
    sx_compiled *c = NULL;
    SX_TRY(check_batch(p, batch));
    SX_TRY(sx_program_compiled(p, batch, steps, ok_output, &c));
    if (steps > 1 && (p->launches == NULL || p->launches->c != c)) {
        SX_TRY(make_launches(p, c));
    }
    if (out_ns != NULL) {
        *out_ns = sx_now_ns() - start;
    }
    return SX_OK;
}

sx_status sx_program_loop_info(sx_program *p, int64_t batch, int ok_output, sx_executable_info *out)
{
    sx_compiled *c = NULL;
    SX_TRY(check_batch(p, batch));
    SX_TRY(sx_program_compiled(p, batch, choose_steps(p, batch), ok_output, &c));
    return sx_executable_get_info(c->executable, out);
}

int64_t sx_program_launch_steps(const sx_program *p)
{
    return p->launches != NULL ? p->launches->c->steps : 1;
}

sx_compiled *sx_launches_compiled(const sx_program *p, int64_t batch)
{
    bool prepared = p->launches != NULL && p->launches->c->batch == batch;
    return prepared ? p->launches->c : NULL;
}

/* ---- One turn: collect, launch, replay ---- */

typedef struct turn {
    sx_program *p;
    const sx_loop_args *args;
    sx_step_scalars scalars;
    int64_t began_ns;    /* start of the steps shown next: the end of the previous ones */
    int64_t rows;        /* staged for a launch */
    sx_step_input input; /* the last input from feed */
    bool is_alone;       /* it is not staged but runs on its own, after the launch */
    bool is_over;        /* this is the last turn */
    sx_status feed_error;
} turn;

/* The length of a launch. */
static int64_t launch_steps(const sx_program *p, int64_t left)
{
    const sx_session_options *o = sx_session_get_options(p->session);
    const sx_launches *l = p->launches;
    if (l == NULL) {
        return 1;
    }
    int64_t most = SX_MIN(l->c->steps, left);
    if (o->launch_steps > 0) {
        return most;
    }
    double ns = 1e9 * (o->launch_seconds > 0 ? o->launch_seconds : LAUNCH_SECONDS);
    double steps = l->step_ns > 0 ? ns / (double)l->step_ns : 1;
    return steps < 1 ? 1 : steps > (double)most ? most : (int64_t)steps;
}

static void stage(turn *t)
{
    const sx_launches *l = t->p->launches;
    for (int i = 0; i < t->p->n_inputs; i++) {
        memcpy(l->staged[i] + (size_t)t->rows * l->input_rows[i], t->input.inputs[i],
               l->input_rows[i]);
    }
    t->rows++;
}

static void collect(turn *t, int64_t left)
{
    const int64_t most = launch_steps(t->p, left);
    const sx_launches *l = t->p->launches;
    t->rows = 0;
    t->is_alone = false;
    while (t->rows < most && !t->is_alone && !t->is_over) {
        t->input = (sx_step_input){.inputs = t->p->fed};
        t->feed_error = t->args->feed(t->args->user, &t->input);
        if (t->feed_error != SX_OK) {
            t->is_over = true;
        } else if (l == NULL || t->input.batch != l->c->batch) {
            t->is_alone = true;
        } else {
            stage(t);
            if (t->input.ends_launch) {
                return;
            }
        }
    }
}

static sx_status withheld(int64_t step)
{
    return sx_error(
        SX_ABORTED,
        "step %" PRId64 ": the loss or a gradient is not finite; the update was withheld", step);
}

/* Scalar `k` of the program from an element's bytes. */
static void load_scalar(turn *t, int k, const void *element)
{
    const sx_type *type = sx_program_output_type(t->p, t->p->scalars[k]);
    t->scalars.values[k] = sx_host_load_element(type->dtype, element);
}

static bool is_withheld(const turn *t)
{
    for (int k = 0; k < t->p->n_scalars; k++) {
        if (t->p->scalars[k] == t->args->ok_output && t->scalars.values[k] == 0) {
            return true;
        }
    }
    return false;
}

/* Counts a finished step and shows it to the caller. */
static void show(turn *t, int64_t batch, int64_t ended_ns, int64_t *done)
{
    ++*done;
    t->scalars.step++;
    t->scalars.batch = batch;
    t->scalars.ended_ns = ended_ns;
    if (t->args->step != NULL && t->args->step(t->args->user, &t->scalars)) {
        t->is_over = true;
    }
}

static sx_status run_alone(turn *t, int64_t *done)
{
    sx_program *p = t->p;
    SX_TRY(sx_program_run(p, t->input.batch, t->input.inputs));
    for (int k = 0; k < p->n_scalars; k++) {
        uint64_t element = 0;
        SX_TRY(sx_program_read_output(p, p->scalars[k], &element));
        load_scalar(t, k, &element);
    }
    if (is_withheld(t)) {
        return withheld(t->scalars.step + 1);
    }
    t->began_ns = sx_now_ns();
    show(t, t->input.batch, t->began_ns, done);
    return SX_OK;
}

/* ---- A launch ---- */

static sx_status read_ring(sx_program *p, int output)
{
    sx_launches *l = p->launches;
    if (!l->ring_is_read[output]) {
        SX_TRY(sx_device_buffer_read(l->c->outputs[p->outputs[output]], l->rings[output]));
        l->ring_is_read[output] = true;
    }
    return SX_OK;
}

sx_status sx_launches_read(sx_program *p, int i, void *data, bool *out_done)
{
    sx_launches *l = p->launches;
    *out_done = l != NULL && p->last == l->c;
    if (*out_done) {
        SX_TRY(read_ring(p, i));
        memcpy(data, l->rings[i] + (size_t)l->row * l->ring_rows[i], l->ring_rows[i]);
    }
    return SX_OK;
}

static sx_status execute(turn *t)
{
    sx_program *p = t->p;
    sx_launches *l = p->launches;
    int64_t start = sx_now_ns();
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(sx_device_buffer_write(l->c->args[p->inputs[i]], l->staged[i], true));
    }
    SX_TRY(sx_device_buffer_write(l->c->args[p->graph->n_args], &t->rows, false));
    p->last = l->c;
    memset(l->ring_is_read, 0, (size_t)p->n_outputs * sizeof(*l->ring_is_read));
    SX_TRY(sx_run_execute(l->c->run, l->c->args, l->c->outputs));
    SX_TRY(sx_device_buffers_read(l->n_reads, l->read_from, l->read_into));
    for (int k = 0; k < p->n_scalars; k++) {
        l->ring_is_read[p->scalars[k]] = true;
    }
    l->step_ns = (sx_now_ns() - start) / t->rows + 1;
    return SX_OK;
}

/* Binds the inputs of the withheld step instead of the superbatch. */
static sx_status bind_failed(turn *t, int64_t row)
{
    sx_program *p = t->p;
    sx_launches *l = p->launches;
    for (int i = 0; i < p->n_inputs; i++) {
        p->fed[i] = l->staged[i] + (size_t)row * l->input_rows[i];
    }
    sx_compiled_destroy(p, l->failed);
    l->failed = NULL;
    SX_TRY(sx_program_bind_step(p, l->c->batch, p->fed, &l->failed));
    p->last = l->failed;
    return withheld(t->scalars.step + 1);
}

static sx_status replay(turn *t, int64_t *done)
{
    sx_program *p = t->p;
    sx_launches *l = p->launches;
    int64_t began = t->began_ns, ended = sx_now_ns(), ran = l->ran;
    t->began_ns = ended;
    for (l->row = 0; l->row < ran; l->row++) {
        for (int k = 0; k < p->n_scalars; k++) {
            int output = p->scalars[k];
            load_scalar(t, k, l->rings[output] + (size_t)l->row * l->ring_rows[output]);
        }
        if (is_withheld(t)) {
            return bind_failed(t, l->row);
        }
        show(t, l->c->batch, began + (ended - began) / ran * (l->row + 1), done);
    }
    l->row = ran - 1;
    return SX_OK;
}

static sx_status launch(turn *t, int64_t *done)
{
    SX_TRY(execute(t));
    int64_t ran = t->p->launches->ran;
    if (ran < 1 || ran > t->rows) {
        return sx_error(SX_INTERNAL,
                        "the device reported that it ran %" PRId64 " of %" PRId64 " steps", ran,
                        t->rows);
    }
    SX_TRY(replay(t, done));
    return ran == t->rows
               ? SX_OK
               : sx_error(SX_INTERNAL,
                          "the device left its loop after %" PRId64 " of %" PRId64 " steps", ran,
                          t->rows);
}

/* Runs the inputs fed so far; then the status of feed() is returned. */
static sx_status finish_turn(turn *t, int64_t *done)
{
    sx_status status = SX_OK;
    if (t->rows > 0) {
        status = launch(t, done);
    }
    if (status == SX_OK && t->is_alone) {
        status = run_alone(t, done);
    }
    if (status != SX_OK || sx_status_code(t->feed_error) == SX_OUT_OF_RANGE) {
        sx_status_free(t->feed_error);
        t->feed_error = SX_OK;
    }
    return status != SX_OK ? status : t->feed_error;
}

sx_status sx_program_loop(sx_program *p, const sx_loop_args *args, int64_t *out_done)
{
    turn t = {.p = p, .args = args, .began_ns = sx_now_ns()};
    *out_done = 0;
    SX_TRY(sx_session_read_step(p->session, &t.scalars.step));
    while (*out_done < args->steps && !t.is_over) {
        collect(&t, args->steps - *out_done);
        SX_TRY(finish_turn(&t, out_done));
    }
    return SX_OK;
}
