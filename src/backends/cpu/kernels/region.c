/* while, if, map: a region is compiled into a plan of its own, on one shard, whose steps run one
 * after the other, large ones divided among the team that the whole plan may have. Its memory is
 * the step's scratch, so that nothing is allocated in an execution.
 *
 *   while   the state lies in the step's outputs; the body is compiled as a program that assigns
 *           it, as a training step assigns variables, so that it is updated in place if possible
 *
 *   if      the region that the condition selects; its outputs are the step's
 *
 *   map     the region once for each element, its operands and outputs at that element
 *
 * Operands that are the same in every execution are variables of the body, which nothing assigns:
 * its kernels pack them once, to the step's kept memory. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "backends/cpu/team.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"

enum { MOST_BODIES = 2 };

typedef struct region_data {
    const sx_cpu_plan *bodies[MOST_BODIES]; /* one runs at a time: their arenas share the scratch */
    int n_bodies;
    int64_t kept[MOST_BODIES]; /* where each body's part of the kept memory begins */
    int first_operand;         /* of the step's, which is the bodies' argument 0 */
    int n_in, n_out;
    int64_t *bytes; /* while: of the state; map: of an element of each operand, of each output */
    int64_t trips;  /* while: at most, 0 = no bound; map: elements */
    int mapped;     /* map: operands that are split */
    const char *name;
} region_data;

/* Of one step in one run and shard. */
typedef struct region_state {
    const region_data *data;
    char **bases[MOST_BODIES];  /* [1] table of the spaces' addresses */
    void **states[MOST_BODIES]; /* [steps] */
} region_state;

/* ---- Preparing ---- */

static bool match_region(sx_cpu_match *m)
{
    (void)m;
    return true;
}

static void destroy_plan(void *plan)
{
    sx_cpu_plan_destroy(plan);
}

static bool has_bit(unsigned bits, int i)
{
    return i < 32 && (bits >> i & 1) != 0;
}

/* Adds a region, whose first arguments `assigned` its results are assigned to; `frozen`, bit i: the
 * step's operand i is. */
static sx_status add_body(const sx_cpu_site *site, sx_cpu_step *step, region_data *d,
                          const sx_graph *region, int assigned, unsigned frozen)
{
    const bool changes = assigned > 0 || frozen != 0;
    sx_graph *g = changes ? sx_graph_copy(&site->plan->arena, region) : NULL;
    sx_cpu_plan *plan;
    if (changes && g == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; changes && i < g->n_args; i++) {
        const bool is = i < assigned || has_bit(frozen, i + d->first_operand);
        g->args[i].kind = is ? SX_ARG_VARIABLE : g->args[i].kind;
    }
    for (int i = 0; i < assigned; i++) {
        g->results[i].arg = i;
        g->results[i].name = g->args[i].name;
    }
    const bool team = site->plan->team;
    const sx_cpu_plan_options options = {.batch = 1,
                                         .shards = 1,
                                         .workers = team ? site->plan->workers : 1,
                                         .region = true,
                                         .team = team,
                                         .frozen = frozen != 0};
    SX_TRY(sx_cpu_plan_create(changes ? g : region, &options, &plan));
    SX_TRY(sx_cpu_own(site, plan, destroy_plan));
    d->bodies[d->n_bodies] = plan;
    d->kept[d->n_bodies++] = step->kept_bytes;
    site->plan->bf16 |= plan->bf16;
    step->scratch_bytes = SX_MAX(step->scratch_bytes, plan->shard_bytes + plan->common_bytes);
    if (!sx_add_i64(step->kept_bytes, sx_cpu_round_up(plan->kept_bytes), &step->kept_bytes)) {
        return sx_cpu_too_large(d->name);
    }
    return SX_OK;
}

static void prepare_bodies(const sx_cpu_step *step, const sx_cpu_call *call);

/* What the bodies prepare once, and so which operands they then read no more. */
static void find_prepared(region_data *d, sx_cpu_step *step, unsigned frozen)
{
    step->prepares = 0;
    step->read_once = frozen;
    for (int b = 0; b < d->n_bodies; b++) {
        const sx_cpu_plan *p = d->bodies[b];
        for (int i = 0; i < p->n_steps; i++) {
            const sx_cpu_step *inner = &p->steps[0][i];
            step->prepare_once = inner->prepare_once != NULL ? prepare_bodies : step->prepare_once;
            for (int k = 0; k < inner->n_in; k++) {
                const int arg = inner->in[k].space - SX_CPU_ARGS;
                const int operand = arg + d->first_operand;
                if (arg >= 0 && has_bit(inner->prepares, k) && has_bit(frozen, operand)) {
                    step->prepares |= 1u << operand;
                }
            }
        }
        for (int i = 0; i < p->graph->n_args; i++) {
            const int operand = i + d->first_operand;
            const bool later = operand < 32 && !p->arg_read_once[i];
            step->read_once &= later ? ~(1u << operand) : ~0u;
        }
    }
    step->read_once &= step->prepares;
}

static sx_status make_state(const sx_cpu_step *step, void **out);
static void destroy_state(void *state);

/* `first_operand`: which is the bodies' argument 0. */
static region_data *new_data(const sx_cpu_site *site, sx_cpu_step *step, sx_cpu_run_fn *run,
                             int first_operand)
{
    region_data *d = sx_cpu_new(site, region_data);
    int64_t *bytes = sx_arena_array(&site->plan->arena, site->n_in + site->n_out + 1, int64_t);
    if (d == NULL || bytes == NULL) {
        return NULL;
    }
    *d = (region_data){.first_operand = first_operand,
                       .n_in = site->n_in,
                       .n_out = site->n_out,
                       .bytes = bytes,
                       .name = site->nodes[0]->name};
    step->run = run;
    step->data = d;
    step->make_state = make_state;
    step->destroy_state = destroy_state;
    return d;
}

/* ---- Runs ---- */

static void destroy_state(void *state)
{
    region_state *s = state;
    for (int b = 0; b < s->data->n_bodies; b++) {
        const sx_cpu_plan *p = s->data->bodies[b];
        for (int i = 0; s->states[b] != NULL && i < p->n_steps; i++) {
            if (s->states[b][i] != NULL) {
                p->steps[0][i].destroy_state(s->states[b][i]);
            }
        }
        sx_free(s->states[b]);
        sx_free(s->bases[b]);
    }
    sx_free(s);
}

static sx_status make_state(const sx_cpu_step *step, void **out)
{
    const region_data *d = step->data;
    region_state *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a run");
    }
    s->data = d;
    sx_status status = SX_OK;
    for (int b = 0; b < d->n_bodies && status == SX_OK; b++) {
        const sx_cpu_plan *p = d->bodies[b];
        s->bases[b] = sx_alloc((size_t)p->n_spaces, sizeof(char *));
        s->states[b] = sx_alloc((size_t)p->n_steps + 1, sizeof(void *));
        if (s->bases[b] == NULL || s->states[b] == NULL) {
            status = sx_no_memory("for a run");
            break;
        }
        s->bases[b][SX_CPU_CONST] = p->constants;
        for (int i = 0; i < p->n_steps && status == SX_OK; i++) {
            const sx_cpu_step *inner = &p->steps[0][i];
            status = inner->make_state != NULL ? inner->make_state(inner, &s->states[b][i]) : SX_OK;
        }
    }
    if (status != SX_OK) {
        destroy_state(s);
        return status;
    }
    *out = s;
    return SX_OK;
}

/* The addresses of the plan's own memory; the caller sets those of its arguments and outputs. */
static char **bind(const sx_cpu_step *step, const sx_cpu_call *call, int b)
{
    region_state *s = call->states[step->index];
    char *scratch = sx_cpu_at(call, step->scratch);
    s->bases[b][SX_CPU_SHARD] = scratch;
    s->bases[b][SX_CPU_COMMON] = scratch; /* one shard's arena, and what is behind it */
    s->bases[b][SX_CPU_KEPT] =
        (char *)sx_cpu_at(call, step->kept) + ((const region_data *)step->data)->kept[b];
    return s->bases[b] + SX_CPU_ARGS;
}

/* The call of the steps of body `b`. */
static sx_cpu_call body_call(const sx_cpu_step *step, const sx_cpu_call *call, int b)
{
    const region_state *s = call->states[step->index];
    return (sx_cpu_call){.bases = s->bases[b],
                         .shard_bases = (char *const *const *)&s->bases[b],
                         .states = s->states[b],
                         .shard = call->shard,
                         .team = call->team,
                         .alone = call->alone,
                         .memory = call->memory,
                         .cancel = call->cancel,
                         .fault = call->fault};
}

static void run_body(const sx_cpu_step *step, const sx_cpu_call *call, int b)
{
    const region_data *d = step->data;
    const sx_cpu_plan *p = d->bodies[b];
    sx_cpu_call inner = body_call(step, call, b);
    for (int i = 0; i < p->n_steps && !sx_cpu_stops(&inner, &p->steps[0][i], step); i++) {
        inner.end = p->steps[0][i].range;
        sx_cpu_run_whole(&p->steps[0][i], &inner);
    }
}

/* Packs what the bodies keep of frozen operands, whether or not they will be run. */
static void prepare_bodies(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const region_data *d = step->data;
    memset(sx_cpu_at(call, step->kept), 0, (size_t)step->kept_bytes); /* gaps are compared, too */
    if (call->states[step->index] == NULL) {
        return; /* in a common stage only the first variant's step is run */
    }
    for (int b = 0; b < d->n_bodies; b++) {
        const sx_cpu_plan *p = d->bodies[b];
        char **args = bind(step, call, b);
        sx_cpu_call inner = body_call(step, call, b);
        for (int i = d->first_operand; i < d->n_in; i++) {
            args[i - d->first_operand] = sx_cpu_in(step, call, i);
        }
        for (int i = 0; i < p->n_steps && !sx_cpu_has_failed(call); i++) {
            const sx_cpu_step *s = &p->steps[0][i];
            inner.end = s->range;
            if (s->prepare_once != NULL) {
                s->prepare_once(s, &inner);
            }
        }
    }
}

/* ---- while ---- */

enum { CONDITION, BODY };

static void run_while(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const region_data *d = step->data;
    char **condition = bind(step, call, CONDITION), **state = bind(step, call, BODY);
    bool again = false;
    for (int i = 0; i < d->n_in; i++) {
        condition[i] = state[i] = sx_cpu_in(step, call, i);
    }
    for (int i = 0; i < d->n_out; i++) {
        condition[i] = state[i] = sx_cpu_out(step, call, i);
        memmove(state[i], sx_cpu_in(step, call, i), (size_t)d->bytes[i]);
    }
    condition[d->n_in] = (char *)&again;
    for (int64_t trip = 0; !sx_cpu_has_failed(call); trip++) {
        run_body(step, call, CONDITION);
        if (!again) {
            return;
        }
        sx_status status =
            d->trips > 0 && trip == d->trips
                ? sx_error(SX_OUT_OF_RANGE, "the condition is still true after %lld iterations",
                           (long long)d->trips)
                : sx_cancel_check_trip(call->cancel, trip);
        if (status != SX_OK) {
            sx_cpu_fail(call,
                        sx_status_annotate(status, __FILE__, __LINE__, "while \"%s\"", d->name));
            return;
        }
        run_body(step, call, BODY);
    }
}

static sx_status prepare_while(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_while_attrs *attrs = site->nodes[0]->attrs;
    region_data *d = new_data(site, step, run_while, 0);
    /* The state is not, whatever it is at first. */
    const unsigned frozen = site->n_out < 32 ? site->frozen_in & ~0u << site->n_out : 0;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->trips = attrs->trips;
    for (int i = 0; i < site->n_out; i++) {
        d->bytes[i] = sx_type_bytes(&site->out[i]);
    }
    SX_TRY(add_body(site, step, d, attrs->condition, 0, frozen), "condition");
    SX_TRY(add_body(site, step, d, attrs->body, site->n_out, frozen), "body");
    find_prepared(d, step, frozen);
    return SX_OK;
}

/* ---- if ---- */

static void run_if(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const region_data *d = step->data;
    const int b = *(const bool *)sx_cpu_in(step, call, 0) ? 0 : 1;
    char **at = bind(step, call, b);
    for (int i = 1; i < d->n_in; i++) {
        at[i - 1] = sx_cpu_in(step, call, i);
    }
    for (int i = 0; i < d->n_out; i++) {
        at[d->n_in - 1 + i] = sx_cpu_out(step, call, i);
    }
    run_body(step, call, b);
}

static sx_status prepare_if(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_if_attrs *attrs = site->nodes[0]->attrs;
    region_data *d = new_data(site, step, run_if, 1);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    const unsigned frozen = site->frozen_in;
    SX_TRY(add_body(site, step, d, attrs->then_body, 0, frozen), "then_body");
    SX_TRY(add_body(site, step, d, attrs->else_body, 0, frozen), "else_body");
    find_prepared(d, step, frozen);
    return SX_OK;
}

/* ---- map ---- */

static void run_map(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const region_data *d = step->data;
    char **at = bind(step, call, 0);
    for (int64_t k = 0; k < d->trips && !sx_cpu_has_failed(call); k++) {
        sx_status status = sx_cancel_check(call->cancel);
        for (int i = 0; i < d->n_in; i++) {
            at[i] = (char *)sx_cpu_in(step, call, i) + (i < d->mapped ? k * d->bytes[i] : 0);
        }
        for (int i = 0; i < d->n_out; i++) {
            at[d->n_in + i] = (char *)sx_cpu_out(step, call, i) + k * d->bytes[d->n_in + i];
        }
        if (status != SX_OK) {
            sx_cpu_fail(call,
                        sx_status_annotate(status, __FILE__, __LINE__, "map \"%s\"", d->name));
            return;
        }
        run_body(step, call, 0);
    }
}

static sx_status prepare_map(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_map_attrs *attrs = site->nodes[0]->attrs;
    region_data *d = new_data(site, step, run_map, 0);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->mapped = (int)attrs->mapped;
    d->trips = site->in[0].dims[0];
    for (int i = 0; i < site->n_in + site->n_out; i++) {
        d->bytes[i] = sx_type_bytes(&site->in[i]) / SX_MAX(d->trips, 1); /* outputs follow */
    }
    unsigned frozen = site->frozen_in;
    frozen &= d->mapped < 32 ? ~0u << d->mapped : 0;
    SX_TRY(add_body(site, step, d, attrs->body, 0, frozen), "body");
    find_prepared(d, step, frozen);
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_while = {
    .name = "while", .op = SX_OPID_while, .match = match_region, .prepare = prepare_while};
const sx_cpu_kernel sx_cpu_kernel_if = {
    .name = "if", .op = SX_OPID_if, .match = match_region, .prepare = prepare_if};
const sx_cpu_kernel sx_cpu_kernel_map = {
    .name = "map", .op = SX_OPID_map, .match = match_region, .prepare = prepare_map};

/* ---- take_row, put_row: what loops do with their stacks ---- */

typedef struct row_data {
    int64_t rows, bytes; /* of a row */
    bool checked;        /* an index outside is the run's error */
} row_data;

static bool match_take_row(sx_cpu_match *m)
{
    (void)m;
    return true;
}

static bool match_put_row(sx_cpu_match *m)
{
    m->in_place = 1;
    return true;
}

static sx_status prepare_row(const sx_cpu_site *site, sx_cpu_step *step, const sx_type *row,
                             sx_cpu_run_fn *run)
{
    row_data *d = sx_cpu_new(site, row_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (row_data){.rows = site->in[0].dims[0],
                    .bytes = sx_type_bytes(row),
                    .checked = ((const sx_row_attrs *)site->nodes[0]->attrs)->checked};
    step->run = run;
    step->data = d;
    return SX_OK;
}

/* Negative: there is no row, and the run fails. */
static int64_t row_offset(const sx_cpu_step *step, const sx_cpu_call *call, int input)
{
    const row_data *d = step->data;
    const int64_t i = *(const int32_t *)sx_cpu_in(step, call, input);
    if (d->checked && (i < 0 || i >= d->rows)) {
        sx_cpu_fail(call, sx_error(SX_INVALID_ARGUMENT,
                                   "\"%s\": element %lld of a list with %lld elements", step->node,
                                   (long long)i, (long long)d->rows));
    }
    return d->rows == 0 ? -1 : SX_MIN(SX_MAX(i, 0), d->rows - 1) * d->bytes;
}

static void run_take_row(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const row_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    const int64_t at = row_offset(step, call, 1);
    if (at >= 0) {
        memcpy(sx_cpu_out(step, call, 0), x + at, (size_t)d->bytes);
    }
}

static void run_put_row(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const row_data *d = step->data;
    const char *x = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    if (x != y) {
        memcpy(y, x, (size_t)(d->rows * d->bytes));
    }
    const int64_t at = row_offset(step, call, 2);
    if (at >= 0) {
        memcpy(y + at, sx_cpu_in(step, call, 1), (size_t)d->bytes);
    }
}

static sx_status prepare_take_row(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_row(site, step, &site->out[0], run_take_row);
}

static sx_status prepare_put_row(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_row(site, step, &site->in[1], run_put_row);
}

const sx_cpu_kernel sx_cpu_kernel_take_row = {.name = "take_row",
                                              .op = SX_OPID_take_row,
                                              .match = match_take_row,
                                              .prepare = prepare_take_row};
const sx_cpu_kernel sx_cpu_kernel_put_row = {
    .name = "put_row", .op = SX_OPID_put_row, .match = match_put_row, .prepare = prepare_put_row};
