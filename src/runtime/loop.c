/* The step loop (session.h): stage, launch, replay.
 *
 *   staged[input]   [steps, batch, …] on the host, row i is step i of the launch
 *   rings[output]   [steps, …]        written by the device, row i by step i
 *   packed          [steps, words]    the same: the scalars of a step in one row (launch_graph.h)
 *
 *   device   launch 1 ────────────│ launch 2 ────────────────│ launch 3 ────
 *   copies   launch 2 ──          │ launch 3 ──              │
 *   host     stage 2, submit 2    │ show 1, stage 3, submit 3│ show 2, …
 *
 * There are two launches, each with buffers of its own: while the device computes one, the other is
 * fed, copied to the device and submitted, and the steps of the one before are shown. Should a step
 * of the first turn out to be bad, the device knows it (the latch) and applies no update of the
 * second, which is dropped. The device waits for the host only where no step may follow before the
 * caller has seen the last (sx_step_input.ends_launch), or where the host takes longer than it.
 * Both launches are allocated once, by sx_program_prepare_loop(). */
#include <inttypes.h>
#include <string.h>

#include "backends/timeline.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/host.h"
#include "runtime/launch_pace.h"
#include "runtime/program.h"

enum { MOST_STEPS = 1024, LAUNCHES = 2 };
/* Some devices take the whole superbatch, even if only a few rows are used (those that replicas
 * share, TPUs, GPUs); half a second of small steps must justify the cost. */
static const int64_t STAGED_BYTES = (int64_t)16 << 20, STAGED_BYTES_ASKED = (int64_t)1 << 30;
static const double LAUNCH_SECONDS = 0.5;
static const int64_t WITHIN_NS = 1000000; /* a call that takes less only submits */

typedef struct sx_launch {
    sx_compiled *c;     /* its buffers; of the second launch its own, of the first the program's */
    char **staged;      /* [n_inputs] */
    bool *is_pinned;    /* [n_inputs] */
    char **rings;       /* [n_outputs] */
    bool *ring_is_read; /* [n_outputs] */
    int32_t *packed;    /* [steps][n_words]; NULL: the program has none */
    int64_t rows;       /* steps staged */
    bool is_last;       /* the caller sees its steps before another is staged */
    bool is_submitted;  /* and not awaited */
    int64_t ran;        /* steps run */
    int64_t row;        /* the step shown last */
    int number;         /* in the timeline */
    int64_t submitted_ns, ended_ns; /* ended: when it was known */
    int64_t call_ns;                /* how long submitting it took */
    int n_reads; /* read at its end: what is packed, or `ran`; the rings of other scalars */
    sx_device_buffer *read_from[SX_MAX_SCALARS + 1];
    void *read_into[SX_MAX_SCALARS + 1];
} sx_launch;

struct sx_launches {
    sx_launch all[LAUNCHES];
    size_t *input_rows;  /* [n_inputs]: bytes of one step */
    size_t *ring_rows;   /* [n_outputs] */
    sx_launch_pace pace; /* what launches took */
    int64_t ended_ns;    /* the end of the last; 0 = none yet */
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

/* Of one step's inputs and outputs. */
static int64_t step_bytes(const sx_program *p, int64_t batch)
{
    int64_t bytes = 1;
    for (int i = 0; i < p->n_inputs; i++) {
        bytes += (int64_t)bytes_at(sx_program_input_type(p, i), batch);
    }
    for (int i = 0; i < p->n_outputs; i++) {
        bytes += (int64_t)bytes_at(sx_program_output_type(p, i), batch);
    }
    return bytes;
}

static int64_t choose_steps(const sx_program *p, int64_t batch)
{
    const int64_t wish = sx_session_get_options(p->session)->launch_steps,
                  bytes = step_bytes(p, batch);
    int64_t steps = (wish > 0 ? STAGED_BYTES_ASKED : STAGED_BYTES) / bytes;
    steps = SX_MIN(steps, wish > 0 ? SX_MIN(wish, MOST_STEPS) : MOST_STEPS);
    return can_stack(p) && steps > 1 ? steps : 1;
}

/* The program's buffers go first: until then a copy to the device may read what is staged. If the
 * device was abandoned before a copy ended, what is staged is never freed. */
static void free_launch(const sx_program *p, sx_launch *l, bool owns)
{
    sx_platform *platform = sx_session_platform(p->session);
    sx_compiled_destroy(p, owns ? l->c : NULL);
    const bool lost = atomic_load(&platform->abandoned) > 0;
    for (int i = 0; !lost && l->staged != NULL && i < p->n_inputs; i++) {
        if (l->is_pinned != NULL && l->is_pinned[i]) {
            sx_platform_unpin(platform, l->staged[i]);
        }
        sx_free_aligned(l->staged[i]);
    }
    for (int i = 0; l->rings != NULL && i < p->n_outputs; i++) {
        sx_free_aligned(l->rings[i]);
    }
    sx_free(l->staged);
    sx_free(l->is_pinned);
    sx_free(l->rings);
    sx_free(l->ring_is_read);
    sx_free(l->packed);
}

void sx_launches_destroy(sx_program *p)
{
    sx_launches *l = p->launches;
    if (l == NULL) {
        return;
    }
    for (int k = 0; k < LAUNCHES; k++) {
        free_launch(p, &l->all[k], k > 0);
    }
    sx_compiled_destroy(p, l->failed);
    sx_free(l->input_rows);
    sx_free(l->ring_rows);
    sx_free(l);
    p->launches = NULL;
    p->shown = NULL;
}

/* choose_steps() has bounded the product. */
static sx_status make_rows(const sx_type *symbolic, const sx_compiled *c, size_t *out_row,
                           char **out_rows)
{
    *out_row = bytes_at(symbolic, c->batch);
    *out_rows = sx_alloc_aligned(*out_row * (size_t)c->steps + 1, 64);
    return *out_rows != NULL ? SX_OK : sx_no_memory("for the step loop");
}

static void add_read(sx_launch *l, sx_device_buffer *from, void *into)
{
    l->read_from[l->n_reads] = from;
    l->read_into[l->n_reads++] = into;
}

static sx_status fill_launch(const sx_program *p, sx_launches *all, sx_launch *l)
{
    l->staged = sx_alloc((size_t)p->n_inputs + 1, sizeof(*l->staged));
    l->is_pinned = sx_alloc((size_t)p->n_inputs + 1, sizeof(*l->is_pinned));
    l->rings = sx_alloc((size_t)p->n_outputs + 1, sizeof(*l->rings));
    l->ring_is_read = sx_alloc((size_t)p->n_outputs + 1, sizeof(*l->ring_is_read));
    if (l->staged == NULL || l->is_pinned == NULL || l->rings == NULL || l->ring_is_read == NULL) {
        return sx_no_memory("for the step loop");
    }
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(make_rows(sx_program_input_type(p, i), l->c, &all->input_rows[i], &l->staged[i]));
        const size_t bytes = all->input_rows[i] * (size_t)l->c->steps;
        l->is_pinned[i] =
            bytes > 0 && sx_platform_pin(sx_session_platform(p->session), l->staged[i], bytes);
    }
    for (int i = 0; i < p->n_outputs; i++) {
        SX_TRY(make_rows(sx_program_output_type(p, i), l->c, &all->ring_rows[i], &l->rings[i]));
    }
    if (p->packed >= 0) {
        l->packed = sx_alloc((size_t)l->c->steps * (size_t)p->n_words, sizeof(*l->packed));
        SX_TRY(l->packed != NULL ? SX_OK : sx_no_memory("for the step loop"));
        add_read(l, l->c->outputs[p->packed], l->packed);
    } else if (l->c->steps > 1) {
        add_read(l, l->c->outputs[p->graph->n_results], &l->ran);
    }
    for (int k = 0; k < p->n_scalars; k++) {
        if (p->words[k] == 0) {
            add_read(l, l->c->outputs[p->outputs[p->scalars[k]]], l->rings[p->scalars[k]]);
        }
    }
    return SX_OK;
}

static sx_status fill_launches(sx_program *p, sx_launches *l, sx_compiled *c)
{
    l->input_rows = sx_alloc((size_t)p->n_inputs + 1, sizeof(*l->input_rows));
    l->ring_rows = sx_alloc((size_t)p->n_outputs + 1, sizeof(*l->ring_rows));
    if (l->input_rows == NULL || l->ring_rows == NULL) {
        return sx_no_memory("for the step loop");
    }
    l->all[0].c = c;
    SX_TRY(sx_program_bind(p, c->executable, c->batch, c->steps, 0, &l->all[1].c));
    for (int k = 0; k < LAUNCHES; k++) {
        SX_TRY(fill_launch(p, l, &l->all[k]));
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
    sx_status status = fill_launches(p, p->launches, c);
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

/* The device may have the inputs of a launch: a step that is withheld is replayed from what was
 * staged. */
static sx_program_shape launch_shape(const sx_program *p, int64_t batch, int ok_output)
{
    return (sx_program_shape){.batch = batch,
                              .steps = choose_steps(p, batch),
                              .ok_output = ok_output,
                              .donates = can_stack(p)};
}

sx_status sx_program_prepare_loop(sx_program *p, int64_t batch, int ok_output, int64_t *out_ns)
{
    const int64_t start = sx_now_ns();
    const sx_program_shape shape = launch_shape(p, batch, ok_output);
    sx_compiled *c = NULL;
    SX_TRY(check_batch(p, batch));
    SX_TRY(sx_program_compiled(p, &shape, &c));
    if (can_stack(p) && (p->launches == NULL || p->launches->all[0].c != c)) {
        SX_TRY(make_launches(p, c));
    }
    if (out_ns != NULL) {
        *out_ns = sx_now_ns() - start;
    }
    return SX_OK;
}

sx_status sx_program_loop_info(sx_program *p, int64_t batch, int ok_output, sx_executable_info *out)
{
    const sx_program_shape shape = launch_shape(p, batch, ok_output);
    sx_compiled *c = NULL;
    SX_TRY(check_batch(p, batch));
    SX_TRY(sx_program_compiled(p, &shape, &c));
    return sx_executable_get_info(c->executable, out);
}

int64_t sx_program_ahead_bytes(const sx_program *p, int64_t batch)
{
    return can_stack(p) ? step_bytes(p, batch) * choose_steps(p, batch) * (LAUNCHES - 1) /
                              sx_session_replicas(p->session)
                        : 0;
}

int64_t sx_program_launch_steps(const sx_program *p)
{
    return p->launches != NULL ? p->launches->all[0].c->steps : 1;
}

int64_t sx_program_launches(const sx_program *p)
{
    return p->launches != NULL ? LAUNCHES : 1;
}

sx_compiled *sx_launches_compiled(const sx_program *p, int64_t batch)
{
    bool prepared = p->launches != NULL && p->launches->all[0].c->batch == batch;
    return prepared ? p->launches->all[0].c : NULL;
}

/* ---- Feeding ---- */

typedef struct turn {
    sx_program *p;
    const sx_loop_args *args;
    sx_timeline *timeline; /* of the device; NULL = none */
    int number, used;      /* in it, of the launch being fed, and of the last that ran */
    sx_step_scalars scalars;
    int32_t words[1 + SX_MAX_SCALARS]; /* packed, of a step that runs alone */
    int64_t began_ns;    /* start of the steps shown next: the end of the previous ones */
    int64_t fed;         /* steps */
    sx_step_input input; /* the last input from feed */
    bool is_alone;       /* it is not staged but runs on its own, after the launches */
    bool is_over;        /* nothing is fed any more */
    sx_status feed_error;
} turn;

/* The next input; false if there is none. */
static bool feed(turn *t)
{
    const int64_t start_ns = sx_timeline_now(t->timeline);
    t->input = (sx_step_input){.inputs = t->p->fed};
    t->feed_error = t->args->feed(t->args->user, &t->input);
    sx_timeline_add(t->timeline, SX_SPAN_INPUT, t->number, start_ns);
    t->is_over = t->feed_error != SX_OK;
    t->fed += !t->is_over;
    return !t->is_over;
}

/* The length of a launch. */
static int64_t launch_steps(const sx_program *p, int64_t left)
{
    const sx_session_options *o = sx_session_get_options(p->session);
    sx_launches *l = p->launches;
    const int64_t most = SX_MIN(l->all[0].c->steps, left);
    const double seconds = o->launch_seconds > 0 ? o->launch_seconds : LAUNCH_SECONDS;
    return o->launch_steps > 0 ? most : sx_launch_pace_next(&l->pace, 1e9 * seconds, most);
}

/* The number of steps that come next; ends the loop if it is 0. *steps is this process's wish,
 * which its clock may decide; who plans for several may decide on up to `most`. */
static sx_status plan(turn *t, int64_t most, int64_t *steps)
{
    if (t->args->plan == NULL) {
        return SX_OK;
    }
    SX_TRY(t->args->plan(t->args->user, steps));
    if (*steps < 0 || *steps > most) {
        return sx_error(SX_INTERNAL,
                        "a launch of %" PRId64 " steps was planned; it has room for "
                        "%" PRId64,
                        *steps, most);
    }
    t->is_over = t->is_over || *steps == 0;
    return SX_OK;
}

/* Feeds a launch. */
static sx_status stage(turn *t, sx_launch *l)
{
    const sx_program *p = t->p;
    const sx_launches *all = p->launches;
    int64_t most = launch_steps(p, t->args->steps - t->fed);
    l->rows = 0;
    l->is_last = false;
    l->number = t->number = sx_timeline_next_launch(t->timeline);
    SX_TRY(plan(t, SX_MIN(l->c->steps, t->args->steps - t->fed), &most));
    while (l->rows < most && !l->is_last && feed(t)) {
        if (t->input.batch != l->c->batch) {
            t->is_alone = l->is_last = true;
            break;
        }
        const int64_t start_ns = sx_timeline_now(t->timeline);
        for (int i = 0; i < p->n_inputs; i++) {
            memcpy(l->staged[i] + (size_t)l->rows * all->input_rows[i], t->input.inputs[i],
                   all->input_rows[i]);
        }
        sx_timeline_add(t->timeline, SX_SPAN_STAGE, l->number, start_ns);
        l->rows++;
        l->is_last = t->input.ends_launch;
    }
    l->is_last = l->is_last || t->is_over || t->fed >= t->args->steps;
    return SX_OK;
}

/* Starts to copy its rows to the device. */
static sx_status send(const turn *t, const sx_launch *l)
{
    const sx_program *p = t->p;
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(sx_device_buffer_write_first(l->c->args[p->inputs[i]], l->staged[i],
                                            l->rows * (int64_t)p->launches->input_rows[i]));
    }
    return l->c->steps > 1 ? sx_device_buffer_write(l->c->args[p->graph->n_args], &l->rows, false)
                           : SX_OK;
}

/* ---- Showing ---- */

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

/* The scalars of a launch's step. */
static void load_row(turn *t, const sx_launch *l, int64_t row)
{
    for (int k = 0; k < t->p->n_scalars; k++) {
        int output = t->p->scalars[k];
        load_scalar(t, k, l->rings[output] + (size_t)row * t->p->launches->ring_rows[output]);
    }
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

/* One step as a launch of its own. A device without memory of its own computes on this thread. */
static sx_status run_one(turn *t)
{
    const sx_backend *backend = sx_session_platform(t->p->session)->backend;
    t->number = t->number == t->used ? sx_timeline_next_launch(t->timeline) : t->number;
    t->used = t->number;
    const int64_t start_ns = sx_timeline_now(t->timeline);
    sx_timeline_set_steps(t->timeline, t->number, 1, t->input.batch);
    SX_TRY(sx_program_run(t->p, t->input.batch, t->input.inputs));
    if ((backend->capabilities & SX_HAS_MEMORY) == 0) {
        sx_timeline_add(t->timeline, SX_SPAN_COMPUTE, t->number, start_ns);
    }
    sx_timeline_add(t->timeline, SX_SPAN_WAIT, t->number, start_ns);
    return SX_OK;
}

static sx_status run_alone(turn *t, int64_t *done)
{
    sx_program *p = t->p;
    if (t->args->failed_steps != NULL) {
        *t->args->failed_steps = 1;
    }
    SX_TRY(run_one(t));
    const int64_t start_ns = sx_timeline_now(t->timeline);
    if (p->packed >= 0) {
        SX_TRY(sx_device_buffer_read(p->last->outputs[p->packed], t->words));
    }
    for (int k = 0; k < p->n_scalars; k++) {
        uint64_t element = 0;
        if (p->words[k] > 0) {
            load_scalar(t, k, &t->words[p->words[k]]);
            continue;
        }
        SX_TRY(sx_program_read_output(p, p->scalars[k], &element));
        load_scalar(t, k, &element);
    }
    if (is_withheld(t)) {
        return withheld(t->scalars.step + 1);
    }
    t->began_ns = sx_now_ns();
    t->scalars.launch++;
    show(t, t->input.batch, t->began_ns, done);
    sx_timeline_add(t->timeline, SX_SPAN_SHOW, t->number, start_ns);
    return SX_OK;
}

sx_status sx_launches_read(sx_program *p, int i, void *data, bool *out_done)
{
    sx_launch *l = p->shown;
    *out_done = l != NULL;
    if (l == NULL) {
        return SX_OK;
    }
    if (!l->ring_is_read[i]) {
        SX_TRY(sx_device_buffer_read(l->c->outputs[p->outputs[i]], l->rings[i]));
        l->ring_is_read[i] = true;
    }
    const size_t row = p->launches->ring_rows[i];
    memcpy(data, l->rings[i] + (size_t)l->row * row, row);
    return SX_OK;
}

/* ---- Launches ---- */

static sx_status submit(const turn *t, sx_launch *l)
{
    memset(l->ring_is_read, 0, (size_t)t->p->n_outputs * sizeof(*l->ring_is_read));
    l->ran = l->rows;
    l->submitted_ns = sx_now_ns();
    SX_TRY(sx_run_submit(l->c->run, l->c->args, l->c->outputs));
    l->call_ns = sx_now_ns() - l->submitted_ns;
    l->is_submitted = true;
    return SX_OK;
}

/* Feeds and submits a launch, if there is anything to be fed. */
static sx_status start(turn *t, sx_launch *l)
{
    sx_status status = stage(t, l);
    if (status == SX_OK && l->rows > 0) {
        const int64_t start_ns = sx_timeline_now(t->timeline);
        t->used = l->number;
        sx_timeline_set_steps(t->timeline, l->number, l->rows, l->rows * l->c->batch);
        status = send(t, l);
        status = status != SX_OK ? status : submit(t, l);
        sx_timeline_add(t->timeline, SX_SPAN_SUBMIT, l->number, start_ns);
    }
    if (status != SX_OK && t->args->failed_steps != NULL) {
        *t->args->failed_steps = l->rows;
    }
    return status;
}

/* Counts the rows that steps have written, and takes their scalars to the rings. */
static void unpack(const sx_program *p, sx_launch *l)
{
    const int32_t *row = l->packed;
    for (l->ran = 0; l->ran < l->rows && row[0] == 1; l->ran++, row += p->n_words) {
        for (int k = 0; k < p->n_scalars; k++) {
            const int output = p->scalars[k];
            const size_t bytes = p->launches->ring_rows[output];
            if (p->words[k] > 0) {
                memcpy(l->rings[output] + (size_t)l->ran * bytes, &row[p->words[k]], bytes);
            }
        }
    }
}

/* How long the launch took. XLA's CPU computes within the call: then it had ended long before it is
 * awaited, which is after the next one was computed. */
static int64_t duration_of(const sx_launches *all, const sx_launch *l, int64_t awaited_ns)
{
    const bool within = l->call_ns >= WITHIN_NS && l->ended_ns - awaited_ns < l->call_ns;
    return within ? l->call_ns : l->ended_ns - SX_MAX(l->submitted_ns, all->ended_ns);
}

static sx_status read_scalars(const sx_program *p, sx_launch *l, int64_t awaited_ns)
{
    sx_launches *all = p->launches;
    SX_TRY(sx_device_buffers_read(l->n_reads, l->read_from, l->read_into));
    l->ended_ns = sx_now_ns();
    if (p->packed >= 0) {
        unpack(p, l);
    }
    for (int k = 0; k < p->n_scalars; k++) {
        l->ring_is_read[p->scalars[k]] = true;
    }
    if (l->ran < 1 || l->ran > l->rows) {
        return sx_error(SX_INTERNAL,
                        "the device reported that it ran %" PRId64 " of %" PRId64 " steps", l->ran,
                        l->rows);
    }
    sx_launch_pace_add(&all->pace, l->rows, duration_of(all, l, awaited_ns));
    all->ended_ns = l->ended_ns;
    return SX_OK;
}

/* Waits for a launch, and reads its scalars. */
static sx_status await(turn *t, sx_launch *l)
{
    const int64_t awaited_ns = sx_now_ns();
    l->is_submitted = false;
    sx_status status = sx_session_await(t->p->session, l->c->run);
    if (status == SX_OK) {
        status = read_scalars(t->p, l, awaited_ns);
    }
    sx_timeline_add(t->timeline, SX_SPAN_WAIT, l->number, awaited_ns);
    if (status != SX_OK && t->args->failed_steps != NULL) {
        *t->args->failed_steps = l->rows;
    }
    return status;
}

/* Binds the inputs of the withheld step instead of the superbatch. */
static sx_status bind_failed(turn *t, const sx_launch *l, int64_t row)
{
    sx_program *p = t->p;
    sx_launches *all = p->launches;
    for (int i = 0; i < p->n_inputs; i++) {
        p->fed[i] = l->staged[i] + (size_t)row * all->input_rows[i];
    }
    sx_compiled_destroy(p, all->failed);
    all->failed = NULL;
    p->shown = NULL;
    SX_TRY(sx_program_bind_step(p, l->c->batch, p->fed, &all->failed));
    p->last = all->failed;
    return withheld(t->scalars.step + 1);
}

static sx_status replay(turn *t, sx_launch *l, int64_t *done)
{
    const int64_t began = t->began_ns, ran = l->ran, start_ns = sx_timeline_now(t->timeline);
    t->began_ns = l->ended_ns;
    t->scalars.launch++;
    t->p->shown = l;
    for (l->row = 0; l->row < ran; l->row++) {
        load_row(t, l, l->row);
        if (is_withheld(t)) {
            return bind_failed(t, l, l->row);
        }
        show(t, l->c->batch, began + (l->ended_ns - began) / ran * (l->row + 1), done);
    }
    l->row = ran - 1;
    sx_timeline_add(t->timeline, SX_SPAN_SHOW, l->number, start_ns);
    return ran == l->rows
               ? SX_OK
               : sx_error(SX_INTERNAL,
                          "the device left its loop after %" PRId64 " of %" PRId64 " steps", ran,
                          l->rows);
}

/* Runs launches until no other may be staged before the caller has seen all steps. */
static sx_status run_launches(turn *t, int64_t *done)
{
    sx_launch *all = t->p->launches->all, *now = &all[0];
    SX_TRY(start(t, now));
    while (now->rows > 0) {
        sx_launch *next = &all[now == all];
        sx_status started = SX_OK, status;
        next->rows = 0;
        if (!now->is_last && !t->is_over) {
            started = start(t, next);
        }
        status = await(t, now);
        status = status != SX_OK ? status : replay(t, now, done);
        if ((status != SX_OK || started != SX_OK) && next->is_submitted) {
            next->is_submitted = false; /* it has changed nothing, or has failed like this one */
            sx_status_free(sx_session_await(t->p->session, next->c->run));
        }
        if (status != SX_OK) {
            sx_status_free(started);
            return status;
        }
        SX_TRY(started);
        now = next;
    }
    return SX_OK;
}

/* Runs the inputs fed so far; then the status of feed() is returned. */
static sx_status run_turn(turn *t, int64_t *done)
{
    sx_status status = SX_OK;
    t->is_alone = false;
    if (t->p->launches != NULL) {
        status = run_launches(t, done);
    } else { /* one step, in the memory of the caller */
        t->number = sx_timeline_next_launch(t->timeline);
        int64_t one = 1;
        status = plan(t, 1, &one);
        t->is_alone = status == SX_OK && one > 0 && feed(t);
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
    turn t = {.p = p,
              .args = args,
              .timeline = sx_session_platform(p->session)->timeline,
              .began_ns = sx_now_ns()};
    *out_done = 0;
    SX_TRY(sx_session_read_step(p->session, &t.scalars.step));
    SX_TRY(sx_program_arm(p));
    while (*out_done < args->steps && !t.is_over) {
        SX_TRY(run_turn(&t, out_done));
    }
    return SX_OK;
}
