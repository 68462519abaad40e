/* See pieces.h. */
#include "runtime/pieces.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/node_label.h"
#include "graph/specialize_examples.h"
#include "runtime/calibration.h"
#include "runtime/host_step.h"

enum { MAX_PIECE = 64 };                         /* rows of one execution */
static const int64_t max_piece_bytes = 64 << 20; /* of its inputs, unless one row has more */

/* Where a slot's value comes from. */
typedef enum source {
    CONSTANT,
    ARGUMENT,
    BEFORE, /* a host step before the device step */
    AFTER,  /* the device step, or a host step after it */
} source;

typedef struct place {
    sx_type type; /* symbolic */
    source from;
    bool batched;
    bool kept; /* for the whole batch, as a result or until the results are complete; else a value
                  of one piece */
    size_t row_bytes; /* of one example; of the whole tensor if it has no batch */
} place;

struct sx_pieces {
    const sx_function *function;
    sx_specialized *spec;
    int device;                  /* the number of the device step; that of steps if there is none */
    sx_program *program;         /* NULL: no device step */
    sx_graph *quantized;         /* of the program; NULL: it has the device step's graph */
    sx_calibration *calibration; /* from which that follows; NULL: of other pieces */
    sx_session *session;
    const sx_image_limits *images;
    const sx_tables *tables;
    place *places;                 /* [slots] */
    bool keeps_strings;            /* what is kept may refer to the bytes of any string */
    int64_t sizes[SX_PIECE_SIZES]; /* [n_sizes], ascending */
    int n_sizes;
    atomic_int usable;   /* the first so many sizes, as far as is known, fit in memory */
    atomic_uint fitting; /* bits of the sizes that are known to fit */
    atomic_uint wide;    /* and of those whose runs use the whole device */
};

/* ---- Life ---- */

/* The maximum rows of one execution. Depends only on the model and the memory limit: the number of
 * rows executed together may change a result's last bits, but the load of the server must not. */
static void choose_sizes(sx_pieces *p)
{
    int64_t row_bytes = 0, piece = MAX_PIECE;
    const sx_program *program = p->program;
    for (int i = 0; program != NULL && i < sx_program_input_count(program); i++) {
        const sx_type *type = sx_program_input_type(program, i);
        sx_type one = sx_type_with_batch(*type, 1);
        row_bytes += sx_type_has_batch(type) ? sx_type_bytes(&one) : 0;
    }
    while (piece > 1 && row_bytes > max_piece_bytes / piece) {
        piece /= 2;
    }
    for (int64_t size = 1; size <= piece; size *= 2) {
        p->sizes[p->n_sizes++] = size;
    }
    atomic_store(&p->usable, p->n_sizes);
}

void sx_pieces_set_sizes(sx_pieces *p, const int64_t *sizes, int count)
{
    p->n_sizes = SX_MIN(count, (int)SX_PIECE_SIZES);
    memcpy(p->sizes, sizes, (size_t)p->n_sizes * sizeof(sizes[0]));
    atomic_store(&p->usable, p->n_sizes);
}

const int64_t *sx_pieces_sizes(const sx_pieces *p, int *out_count)
{
    *out_count = p->n_sizes;
    return p->sizes;
}

static void find_places(sx_pieces *p)
{
    const sx_specialized *s = p->spec;
    for (int i = 0; i < s->n_slots; i++) {
        place *x = &p->places[i];
        x->type = s->slots[i].type;
        x->from = i < s->n_args ? ARGUMENT : CONSTANT;
        x->batched = sx_type_has_batch(&x->type);
        const sx_type one = sx_type_with_batch(x->type, 1);
        x->row_bytes = x->type.dtype == SX_RESOURCE ? 0 : (size_t)sx_host_bytes(&one);
    }
    for (int k = 0; k < s->n_steps; k++) {
        for (int i = 0; i < s->steps[k].n_out; i++) {
            place *x = &p->places[s->steps[k].out[i]];
            x->from = k < p->device ? BEFORE : AFTER;
            x->kept = x->from == AFTER;
        }
    }
    for (int i = 0; i < s->n_results; i++) {
        place *x = &p->places[s->results[i]];
        x->kept = x->kept || x->from == BEFORE;
    }
    for (int i = 0; i < s->n_slots; i++) {
        const place *x = &p->places[i];
        p->keeps_strings = p->keeps_strings || (x->kept && x->type.dtype == SX_STRING);
    }
}

sx_status sx_pieces_create(sx_session *session, const sx_library *library,
                           const sx_function *function, sx_budget *memory,
                           const sx_image_limits *images, const sx_tables *tables, sx_pieces **out)
{
    sx_specialized *spec = NULL;
    int device = 0;
    *out = NULL;
    SX_TRY(sx_specialize_examples(library, function, &(sx_specialize_limits){.memory = memory},
                                  &spec, &device));
    if (spec == NULL) {
        return SX_OK;
    }
    sx_pieces *p = sx_alloc(1, sizeof(*p));
    place *places = sx_alloc((size_t)spec->n_slots + 1, sizeof(*places));
    sx_status status = p == NULL || places == NULL ? sx_no_memory("for a function")
                       : device < spec->n_steps
                           ? sx_session_add_program(session, spec->steps[device].graph, &p->program)
                           : SX_OK;
    if (status != SX_OK) {
        sx_free(p);
        sx_free(places);
        sx_specialized_destroy(spec);
        return status;
    }
    if (p->program != NULL) {
        sx_program_set_digest(p->program, &spec->steps[device].digests[0]);
    }
    p->session = session;
    p->function = function;
    p->spec = spec;
    p->device = device;
    p->images = images;
    p->tables = tables;
    p->places = places;
    choose_sizes(p);
    find_places(p);
    *out = p;
    return SX_OK;
}

void sx_pieces_destroy(sx_pieces *p)
{
    if (p != NULL) {
        sx_graph_destroy(p->quantized);
        sx_calibration_destroy(p->calibration);
        sx_specialized_destroy(p->spec);
        sx_free(p->places);
        sx_free(p);
    }
}

bool sx_pieces_may_take_long(const sx_pieces *p)
{
    bool may = false;
    for (int k = 0; k < p->spec->n_steps; k++) {
        const sx_step *step = &p->spec->steps[k];
        may = may || (step->kind == SX_STEP_HOST && step->node->op->host_check != NULL);
    }
    return may;
}

static bool has_rows(const sx_type *type)
{
    return type->rank > 0 && type->dims[0] == SX_BATCH;
}

bool sx_pieces_may_merge(const sx_pieces *p)
{
    bool may = p->spec->n_args > 0 && p->spec->excluded <= 1; /* several are never one */
    for (int i = 0; i < p->spec->n_args; i++) {
        may = may && has_rows(&p->places[i].type);
    }
    for (int i = 0; i < p->spec->n_results; i++) {
        may = may && has_rows(&p->places[p->spec->results[i]].type);
    }
    return may;
}

int64_t sx_pieces_excluded(const sx_pieces *p)
{
    return p->spec->excluded;
}

/* The first of `n` sizes that has room for the rows, or the last. */
static int size_for(const int64_t *sizes, int n, int64_t rows)
{
    int i = 0;
    while (i < n - 1 && sizes[i] < rows) {
        i++;
    }
    return i;
}

bool sx_pieces_is_wide(const sx_pieces *p, int64_t rows)
{
    const int i = size_for(p->sizes, atomic_load(&p->usable), rows);
    return (atomic_load(&p->wide) >> i & 1) != 0;
}

static void note_slot(sx_pieces *p, int size, const sx_slot *slot)
{
    atomic_fetch_or(&p->fitting, 1u << size);
    if (sx_slot_is_wide(slot)) {
        atomic_fetch_or(&p->wide, 1u << size);
    }
}

sx_status sx_pieces_compile(sx_pieces *p, int64_t rows)
{
    sx_slot *slot = NULL;
    sx_status status = SX_OK;
    if (p->program == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_program_acquire(p->program, p->sizes[0], SX_NO_DEADLINE, &slot));
    note_slot(p, 0, slot);
    sx_slot_release(slot);
    for (int i = 1; i < p->n_sizes && p->sizes[i] <= rows && status == SX_OK; i++) {
        bool wide;
        status = sx_program_compile_slots(p->program, p->sizes[i], &wide);
        if (status == SX_OK && wide) {
            atomic_fetch_or(&p->wide, 1u << i);
        }
    }
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED) { /* it runs in smaller pieces */
        sx_status_free(status);
        status = SX_OK;
    }
    return status;
}

sx_status sx_pieces_prepare(sx_pieces *p)
{
    sx_slot *slot = NULL;
    if (p->program == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_program_acquire(p->program, p->sizes[0], SX_NO_DEADLINE, &slot));
    sx_status status = sx_slot_warm_up(slot);
    sx_slot_release(slot);
    return status;
}

/* ---- One run ---- */

/* A program that runs instead of the pieces' own, and has outputs more. */
typedef struct watch {
    sx_program *program;
    sx_calibration *calibration;
    float *data; /* room for any of those outputs */
} watch;

/* A piece that is being computed, and the memory of its values. */
typedef struct lane {
    sx_slot *slot; /* of the execution that was begun; NULL = none */
    sx_cancel cancel;
    int64_t first, rows;
    sx_arena arena;      /* of host steps before the device step */
    uint8_t **data;      /* [slots]: of the whole batch where kept; else of the largest piece, NULL
                            until needed */
    sx_tensor *now;      /* [slots]: of the piece */
    const void **inputs; /* [inputs of the program] of the execution */
} lane;

typedef struct run {
    sx_pieces *p;
    const sx_tensor *args;
    const sx_cancel *cancel;
    sx_arena *arena;
    lane *lanes; /* [n_lanes]: pieces that are computed at once, on as many devices */
    int n_lanes;
    lane *at; /* of the piece at hand */
    int64_t batch;
    const int64_t *sizes; /* [n_sizes] of pieces: of `p`, those that fit in memory */
    int n_sizes;
    sx_tensor *operands;  /* of one step */
    size_t checked_bytes; /* charged for what host_check says */
    bool *checked;        /* [steps]: for the whole batch */
    bool once;            /* the batch has no rows, but there are results without it */
    watch *watch;         /* NULL: the program itself runs */
} run;

/* The rows of a piece: the whole batch, rounded up to the next executable. */
static int64_t piece_for(const run *r, int64_t rows)
{
    return r->sizes[size_for(r->sizes, r->n_sizes, rows)];
}

static sx_status allocate_lane(run *r, lane *at)
{
    const sx_specialized *s = r->p->spec;
    at->data = sx_arena_array(r->arena, s->n_slots + 1, uint8_t *);
    at->now = sx_arena_array(r->arena, s->n_slots + 1, sx_tensor);
    at->inputs = sx_arena_array(
        r->arena, (r->p->program != NULL ? s->steps[r->p->device].n_in : 0) + 1, const void *);
    if (at->data == NULL || at->now == NULL || at->inputs == NULL) {
        return sx_no_memory("running a function");
    }
    for (int i = 0; i < s->n_slots; i++) {
        if (s->slots[i].constant != NULL) {
            at->now[i] = *s->slots[i].constant;
        } else if (i < s->n_args) {
            at->now[i] = r->args[i];
        }
    }
    return SX_OK;
}

static sx_status allocate(run *r)
{
    const sx_specialized *s = r->p->spec;
    int operands = 0;
    for (int k = 0; k < s->n_steps; k++) {
        operands = SX_MAX(operands, s->steps[k].n_in + s->steps[k].n_out);
    }
    r->operands = sx_arena_array(r->arena, operands + 1, sx_tensor);
    r->checked = sx_arena_array(r->arena, s->n_steps + 1, bool);
    if (r->operands == NULL || r->checked == NULL) {
        return sx_no_memory("running a function");
    }
    for (int i = 0; i < r->n_lanes; i++) {
        SX_TRY(allocate_lane(r, &r->lanes[i]));
    }
    r->at = &r->lanes[0];
    return SX_OK;
}

/* Lets host steps that read only arguments and constants refuse the whole batch, and charges the
 * memory that the greediest takes. */
static sx_status check_whole_batch(run *r)
{
    const sx_specialized *s = r->p->spec;
    const sx_host_context context = {
        .arena = r->arena, .cancel = r->cancel, .images = r->p->images, .tables = r->p->tables};
    for (int k = 0; k < s->n_steps; k++) {
        const sx_step *step = &s->steps[k];
        size_t bytes = 0;
        r->checked[k] = step->kind == SX_STEP_HOST && step->node->op->host_check != NULL;
        for (int i = 0; i < step->n_in && r->checked[k]; i++) {
            const source from = r->p->places[step->in[i]].from;
            r->checked[k] = from == ARGUMENT || from == CONSTANT;
            r->operands[i] = r->at->now[step->in[i]];
        }
        if (!r->checked[k]) {
            continue;
        }
        SX_TRY(sx_host_step_check(step, r->operands, &context, &bytes));
        if (bytes > r->checked_bytes) {
            if (!sx_budget_charge(r->arena->budget, bytes - r->checked_bytes)) {
                return sx_no_memory("to decode an image of %zu bytes", bytes);
            }
            r->checked_bytes = bytes;
        }
    }
    return SX_OK;
}

static const char *result_name(const sx_pieces *p, int slot)
{
    for (int i = 0; i < p->spec->n_results; i++) {
        if (p->spec->results[i] == slot) {
            return p->function->body->results[i].name;
        }
    }
    return "";
}

/* Allocates what is kept of all pieces, including the padding of the last. */
static sx_status allocate_kept(run *r)
{
    const int64_t rest = r->batch % r->sizes[r->n_sizes - 1];
    const int64_t rows = r->batch - rest + (rest > 0 || r->once ? piece_for(r, rest) : 0);
    for (int i = 0; i < r->p->spec->n_slots; i++) {
        const place *x = &r->p->places[i];
        const size_t count = x->batched ? (size_t)rows : 1;
        if (!x->kept) {
            continue;
        }
        r->at->data[i] = sx_arena_alloc(r->arena, count, x->row_bytes);
        if (r->at->data[i] == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "output \"%s\" needs %zu x %zu bytes: more than the memory limit "
                            "leaves for outputs",
                            result_name(r->p, i), count, x->row_bytes);
        }
        for (int k = 0; k < r->n_lanes; k++) {
            r->lanes[k].data[i] = r->at->data[i];
        }
    }
    return SX_OK;
}

/* Memory for the slot's rows of any piece. */
static sx_status make_piece(run *r, int slot)
{
    const place *x = &r->p->places[slot];
    const int64_t rows = x->batched ? piece_for(r, r->batch) : 1; /* no later piece is larger */
    if (r->at->data[slot] == NULL) {
        r->at->data[slot] = sx_arena_alloc(r->arena, (size_t)rows, x->row_bytes);
    }
    return r->at->data[slot] != NULL
               ? SX_OK
               : sx_no_memory("for %lld rows of %zu bytes", (long long)rows, x->row_bytes);
}

/* The slot's rows from `first`, in what is kept of the whole batch or in the piece's own memory. */
static void *rows_of(const run *r, int slot, int64_t first)
{
    const place *x = &r->p->places[slot];
    return r->at->data[slot] + (x->kept && x->batched ? (size_t)first * x->row_bytes : 0);
}

static sx_status run_host_step(run *r, int k, int64_t first, int64_t rows)
{
    const sx_step *step = &r->p->spec->steps[k];
    sx_tensor *out = r->operands + step->n_in;
    bool kept = false;
    for (int i = 0; i < step->n_in; i++) {
        r->operands[i] = r->at->now[step->in[i]];
    }
    for (int i = 0; i < step->n_out; i++) {
        const int slot = step->out[i];
        SX_TRY(make_piece(r, slot));
        kept = kept || r->p->places[slot].kept ||
               (r->p->keeps_strings && r->p->places[slot].type.dtype == SX_STRING);
        out[i] =
            (sx_tensor){sx_type_with_batch(r->p->places[slot].type, rows), rows_of(r, slot, first)};
    }
    const sx_host_context context = {.arena = kept ? r->arena : &r->at->arena,
                                     .cancel = r->cancel,
                                     .images = r->p->images,
                                     .tables = r->p->tables,
                                     .first_row = first};
    SX_TRY(r->checked[k] ? sx_host_step_run(step, rows, r->operands, out, &context)
                         : sx_host_step_run_checked(step, rows, r->operands, out, &context));
    for (int i = 0; i < step->n_out; i++) {
        r->at->now[step->out[i]] = out[i];
    }
    return SX_OK;
}

/* Sets the program's inputs to rows in place or, if `piece` has more than `rows`, padded ones. */
static sx_status take_inputs(run *r, int64_t rows, int64_t piece)
{
    const sx_step *step = &r->p->spec->steps[r->p->device];
    for (int i = 0; i < step->n_in; i++) {
        const int slot = step->in[i];
        const place *x = &r->p->places[slot];
        r->at->inputs[i] = r->at->now[slot].data;
        if (!x->batched || rows == piece) {
            continue;
        }
        const size_t filled = (size_t)rows * x->row_bytes;
        uint8_t *padded = r->at->now[slot].data;
        if (x->from == ARGUMENT) {
            SX_TRY(make_piece(r, slot));
            padded = r->at->data[slot];
            memcpy(padded, r->at->now[slot].data, filled);
        }
        memset(padded + filled, 0, (size_t)(piece - rows) * x->row_bytes);
        r->at->inputs[i] = padded;
    }
    return SX_OK;
}

static sx_status acquire(const run *r, int64_t piece, sx_slot **out)
{
    return sx_program_acquire(r->watch != NULL ? r->watch->program : r->p->program, piece,
                              r->cancel != NULL ? r->cancel->deadline_ns : SX_NO_DEADLINE, out);
}

/* Makes sure that a program for so many rows fits in memory; one that does not is not tried again,
 * and the pieces are smaller. */
static sx_status fit_piece(run *r, int64_t rows)
{
    sx_pieces *p = r->p;
    int size = size_for(r->sizes, r->n_sizes, rows);
    if (p->program == NULL || r->watch != NULL || (atomic_load(&p->fitting) >> size & 1) != 0) {
        return SX_OK;
    }
    sx_slot *slot = NULL;
    sx_status status = acquire(r, r->sizes[size], &slot);
    while (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && size > 0) {
        sx_status_free(status);
        r->n_sizes = size--;
        status = acquire(r, r->sizes[size], &slot);
    }
    SX_TRY(status);
    note_slot(p, size, slot);
    sx_slot_release(slot);
    int known = atomic_load(&p->usable);
    while (known > r->n_sizes && !atomic_compare_exchange_weak(&p->usable, &known, r->n_sizes)) {
    }
    return SX_OK;
}

/* The same for the pieces of the whole batch: all of the largest size but the last. */
static sx_status fit_pieces(run *r)
{
    int before;
    do {
        before = r->n_sizes;
        SX_TRY(fit_piece(r, r->batch));
        const int64_t rest = r->batch % r->sizes[r->n_sizes - 1];
        SX_TRY(rest > 0 ? fit_piece(r, rest) : SX_OK);
    } while (r->n_sizes < before);
    return SX_OK;
}

/* Lets the calibration see the values that the slot's run gave it. */
static sx_status watch_run(const run *r, sx_slot *slot, int64_t rows, int64_t deadline_ns)
{
    const watch *w = r->watch;
    const int own = r->p->spec->steps[r->p->device].n_out;
    for (int i = 0; i < sx_calibration_points(w->calibration)->n; i++) {
        const sx_type type = sx_type_with_batch(*sx_program_output_type(w->program, own + i), rows);
        SX_TRY(sx_slot_read_output(slot, own + i, w->data, deadline_ns));
        sx_calibration_observe(w->calibration, i, w->data, sx_type_elems(&type));
    }
    return SX_OK;
}

/* Begins the execution of the piece at hand, unless another slot would have to be waited for, by a
 * thread that has some already. */
static sx_status begin_program(run *r, int64_t piece, bool may_wait)
{
    lane *at = r->at;
    sx_program *program = r->watch != NULL ? r->watch->program : r->p->program;
    if (at->slot == NULL) {
        SX_TRY(may_wait ? acquire(r, piece, &at->slot)
                        : sx_program_try_acquire(program, piece, &at->slot));
    }
    if (at->slot == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_cancel_check(r->cancel)); /* the wait for a slot may have been long */
    sx_cancel_init(&at->cancel, r->cancel != NULL ? r->cancel->deadline_ns : SX_NO_DEADLINE);
    at->cancel.outer = r->cancel;
    at->cancel.max_trips = SX_MAX_TRIPS;
    return sx_slot_begin(at->slot, at->inputs, &at->cancel);
}

static sx_status end_program(run *r)
{
    lane *at = r->at;
    const sx_step *step = &r->p->spec->steps[r->p->device];
    sx_status status = sx_slot_end(at->slot, &at->cancel);
    for (int i = 0; i < step->n_out && status == SX_OK; i++) {
        const int out = step->out[i];
        at->now[out] = (sx_tensor){sx_type_with_batch(r->p->places[out].type, at->rows),
                                   rows_of(r, out, at->first)};
        status = sx_slot_read_output(at->slot, i, at->now[out].data, at->cancel.deadline_ns);
    }
    if (status == SX_OK && r->watch != NULL) {
        status = watch_run(r, at->slot, at->rows, at->cancel.deadline_ns);
    }
    sx_slot_release(at->slot);
    at->slot = NULL;
    return status;
}

/* Host steps [begin, end) of the piece at hand. */
static sx_status run_host_steps(run *r, int begin, int end)
{
    const sx_specialized *s = r->p->spec;
    for (int k = begin; k < end; k++) {
        sx_status status = run_host_step(r, k, r->at->first, r->at->rows);
        const sx_node *n = s->steps[k].node;
        char label[SX_NODE_LABEL];
        /* whose inputs may be wrong one by one, names the row: the node is not the caller's affair
         */
        SX_TRY(n->op->host_check != NULL
                   ? status
                   : sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"", n->op->name,
                                        sx_node_label(n->name, label)));
    }
    return SX_OK;
}

/* Ends the piece of a lane: what comes after the device step. */
static sx_status end_piece(run *r, lane *at)
{
    r->at = at;
    if (r->p->program != NULL) {
        SX_TRY(end_program(r));
    }
    SX_TRY(run_host_steps(r, r->p->device + 1, r->p->spec->n_steps));
    sx_arena_reset(&at->arena);
    return SX_OK;
}

/* Computes all pieces in order, as many at once as there are lanes: piece i in lane i % n_lanes,
 * which must have ended its last one. */
static sx_status run_each_piece(run *r)
{
    const sx_specialized *s = r->p->spec;
    int64_t begun = 0, ended = 0; /* pieces */
    for (int64_t first = 0, rows = 1; first < r->batch || (r->once && rows > 0); first += rows) {
        const int64_t piece = piece_for(r, r->batch - first);
        rows = SX_MIN(piece, r->batch - first);
        SX_TRY(sx_cancel_check(r->cancel));
        if (begun - ended == r->n_lanes) {
            SX_TRY(end_piece(r, &r->lanes[ended++ % r->n_lanes]));
        }
        r->at = &r->lanes[begun % r->n_lanes];
        r->at->first = first;
        r->at->rows = rows;
        for (int i = 0; i < s->n_args; i++) {
            const place *x = &r->p->places[i];
            if (x->batched) {
                r->at->now[i] =
                    (sx_tensor){sx_type_with_batch(x->type, rows),
                                (uint8_t *)r->args[i].data + (size_t)first * x->row_bytes};
            }
        }
        SX_TRY(run_host_steps(r, 0, r->p->device));
        if (r->p->program != NULL) {
            lane *at = r->at;
            SX_TRY(take_inputs(r, rows, piece));
            SX_TRY(begin_program(r, piece, begun == ended));
            while (at->slot == NULL) { /* others give theirs back first */
                SX_TRY(end_piece(r, &r->lanes[ended++ % r->n_lanes]));
                r->at = at;
                SX_TRY(begin_program(r, piece, begun == ended));
            }
        }
        begun++;
    }
    while (ended < begun) {
        SX_TRY(end_piece(r, &r->lanes[ended++ % r->n_lanes]));
    }
    return SX_OK;
}

static sx_status give_result(run *r, int i, sx_tensor *out)
{
    const int slot = r->p->spec->results[i];
    const place *x = &r->p->places[slot];
    if (x->kept) {
        *out = (sx_tensor){sx_type_with_batch(x->type, r->batch), r->at->data[slot]};
        return SX_OK;
    }
    *out = x->from == ARGUMENT ? r->args[slot] : r->at->now[slot];
    if (x->from != ARGUMENT) {
        return SX_OK; /* a constant of the library */
    }
    out->data = sx_arena_memdup(r->arena, out->data, (size_t)sx_host_bytes(&out->type));
    sx_bytes *strings = out->type.dtype == SX_STRING ? out->data : NULL;
    for (int64_t k = 0; strings != NULL && k < sx_type_elems(&out->type); k++) {
        strings[k].data = sx_arena_memdup(r->arena, strings[k].data, strings[k].size);
        if (strings[k].data == NULL) {
            return sx_no_memory("for an output");
        }
    }
    return out->data != NULL ? SX_OK : sx_no_memory("for an output");
}

static sx_status run_all(run *r, sx_tensor *results)
{
    SX_TRY(allocate(r));
    SX_TRY(check_whole_batch(r));
    for (int i = 0; i < r->p->spec->n_results && r->batch == 0; i++) {
        r->once = r->once || !r->p->places[r->p->spec->results[i]].batched;
    }
    SX_TRY(r->batch > 0 || r->once ? fit_pieces(r) : SX_OK);
    SX_TRY(allocate_kept(r));
    SX_TRY(run_each_piece(r));
    for (int i = 0; i < r->p->spec->n_results; i++) {
        SX_TRY(give_result(r, i, &results[i]));
    }
    return SX_OK;
}

/* Ends what an error left: an execution reads the run's memory. */
static void leave(lane *at)
{
    if (at->slot != NULL) {
        sx_status_free(sx_slot_end(at->slot, &at->cancel));
        sx_slot_release(at->slot);
    }
    sx_arena_deinit(&at->arena);
}

static sx_status run_pieces(run *r, sx_tensor *results)
{
    r->n_lanes = r->watch == NULL && r->p->program != NULL && r->batch > r->sizes[r->n_sizes - 1]
                     ? sx_session_slot_devices(r->p->session)
                     : 1;
    r->lanes = sx_arena_array(r->arena, r->n_lanes, lane);
    if (r->lanes == NULL) {
        return sx_no_memory("running a function");
    }
    for (int i = 0; i < r->n_lanes; i++) {
        sx_arena_init(&r->lanes[i].arena, 0);
        r->lanes[i].arena.budget = r->arena->budget;
    }
    sx_status status = run_all(r, results);
    for (int i = 0; i < r->n_lanes; i++) {
        leave(&r->lanes[i]);
    }
    sx_budget_release(r->arena->budget, r->checked_bytes);
    return status;
}

sx_status sx_pieces_run(sx_pieces *p, const sx_tensor *args, int64_t batch, const sx_cancel *cancel,
                        sx_arena *arena, sx_tensor *results)
{
    run r = {.p = p,
             .args = args,
             .cancel = cancel,
             .arena = arena,
             .batch = batch,
             .sizes = p->sizes,
             .n_sizes = atomic_load(&p->usable)};
    return run_pieces(&r, results);
}

/* ---- Quantizing ---- */

/* Room for the largest of the values to observe, of one row. */
static sx_status make_watch_room(watch *w)
{
    int64_t most = 0;
    for (int i = 0; i < sx_program_output_count(w->program); i++) {
        const sx_type one = sx_type_with_batch(*sx_program_output_type(w->program, i), 1);
        most = SX_MAX(most, sx_type_bytes(&one));
    }
    w->data = sx_alloc((size_t)most + 1, 1);
    return w->data != NULL ? SX_OK : sx_no_memory("for a calibration");
}

static sx_status watch_examples(sx_pieces *p, sx_calibration *calibration, const sx_tensor *args,
                                int64_t batch, const sx_cancel *cancel, sx_arena *arena,
                                sx_tensor *results)
{
    static const int64_t one = 1; /* no padding is observed */
    watch w = {.calibration = calibration};
    SX_TRY(sx_session_add_program(p->session, sx_calibration_graph(calibration), &w.program));
    run r = {.p = p,
             .args = args,
             .cancel = cancel,
             .arena = arena,
             .batch = batch,
             .sizes = &one,
             .n_sizes = 1,
             .watch = &w};
    sx_status status = make_watch_room(&w);
    status = status == SX_OK ? run_pieces(&r, results) : status;
    sx_free(w.data);
    sx_session_drop_program(p->session, w.program);
    return status;
}

/* The program from now on. */
static sx_status take_quantized(sx_pieces *p, sx_graph *graph)
{
    sx_program *program;
    sx_status status = sx_session_add_program(p->session, graph, &program);
    if (status != SX_OK) {
        sx_graph_destroy(graph);
        return status;
    }
    sx_session_drop_program(p->session, p->program);
    p->program = program;
    p->quantized = graph;
    atomic_store(&p->fitting, 0);
    return SX_OK;
}

sx_status sx_pieces_quantize(sx_pieces *p, const sx_tensor *args, int64_t batch,
                             const sx_cancel *cancel, sx_arena *arena, sx_tensor *results,
                             sx_pieces_quantized *out)
{
    sx_calibration *c;
    sx_graph *graph;
    if (p->program == NULL || p->quantized != NULL) {
        return sx_error(SX_FAILED_PRECONDITION, p->program == NULL
                                                    ? "nothing to quantize: it runs on the host"
                                                    : "it is quantized already");
    }
    SX_TRY(sx_calibration_create(p->spec->steps[p->device].graph, &c));
    sx_status status = watch_examples(p, c, args, batch, cancel, arena, results);
    status = status == SX_OK ? sx_calibration_finish(c, &graph) : status;
    status = status == SX_OK ? take_quantized(p, graph) : status;
    if (status != SX_OK) {
        sx_calibration_destroy(c);
        return status;
    }
    p->calibration = c;
    *out = (sx_pieces_quantized){sx_calibration_points(c)->products,
                                 sx_calibration_points(c)->skipped};
    return SX_OK;
}

sx_status sx_pieces_quantize_like(sx_pieces *p, const sx_pieces *like)
{
    sx_graph *graph;
    if (p->program == NULL || p->quantized != NULL || like->calibration == NULL ||
        memcmp(&p->spec->steps[p->device].digests[0], &like->spec->steps[like->device].digests[0],
               sizeof(sx_digest)) != 0) {
        return SX_OK;
    }
    SX_TRY(sx_calibration_apply(like->calibration, p->spec->steps[p->device].graph, &graph));
    return take_quantized(p, graph);
}
