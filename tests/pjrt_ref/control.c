/* Control flow and replicas: while, all_reduce, all_gather, replica_id. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_ref/elementwise.h"

/* ---- While ---- */

static sx_status check_while(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type flag = sx_scalar_type(SX_BOOL);
    if (op->n_out != op->n_in) {
        return ref_wrong("has as many results as operands");
    }
    sx_type *types = sx_alloc((size_t)op->n_in + 1, sizeof(*types));
    sx_status status = types == NULL ? sx_error(SX_RESOURCE_EXHAUSTED, "out of memory") : SX_OK;
    for (int i = 0; i < op->n_in && status == SX_OK; i++) {
        types[i] = *ref_in_type(p, op, i);
        status = ref_expect(p, op, i, &types[i]);
    }
    if (status == SX_OK) {
        status = ref_check_region(p, op, 0, types, op->n_in, &flag, 1);
    }
    if (status == SX_OK) {
        status = ref_check_region(p, op, 1, types, op->n_in, types, op->n_in);
    }
    sx_free(types);
    (void)out_plan;
    return status;
}

/* The condition takes its own references. */
static sx_status test(ref_run *r, const ref_op *op, ref_array **state, ref_array **borrowed,
                      bool *out_go)
{
    ref_array *flag;
    for (int i = 0; i < op->n_in; i++) {
        borrowed[i] = ref_array_retain(state[i]);
    }
    SX_TRY(ref_run_block(r, &op->regions[0], borrowed, &flag));
    *out_go = ref_get(flag, 0).u != 0;
    ref_array_release(flag);
    return SX_OK;
}

/* state[n] is owned here while no block has it: *out_owned says so afterwards. */
static sx_status loop(ref_run *r, const ref_op *op, ref_array **state, ref_array **next,
                      bool *out_owned)
{
    for (;;) {
        bool go = false;
        SX_TRY(test(r, op, state, next, &go));
        if (!go) {
            return SX_OK;
        }
        if (r->program->values[op->out[0]]->block == &r->program->main) {
            ref_take_time((double)r->step_us);
        }
        *out_owned = false; /* the body takes them over */
        SX_TRY(ref_run_block(r, &op->regions[1], state, next));
        *out_owned = true;
        for (int i = 0; i < op->n_in; i++) {
            state[i] = next[i];
        }
    }
}

static sx_status run_while(ref_run *r, const ref_op *op)
{
    int n = op->n_in;
    ref_array **state = sx_alloc(2 * (size_t)n + 1, sizeof(ref_array *));
    bool owned = true;
    if (state == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a loop");
    }
    for (int i = 0; i < n; i++) {
        state[i] = ref_array_retain(r->env[op->in[i]]);
    }
    sx_status status = loop(r, op, state, state + n, &owned);
    for (int i = 0; i < n && owned; i++) {
        if (status == SX_OK) {
            ref_set(r, op->out[i], state[i]);
        } else {
            ref_array_release(state[i]);
        }
    }
    sx_free(state);
    return status;
}

/* ---- all_reduce, all_gather, replica_id ---- */

typedef struct meeting_plan {
    int64_t channel;
    ref_kernel *kernel;
} meeting_plan;

/* One group of all replicas in order; its channel. */
static sx_status check_groups(const ref_program *p, const ref_op *op, int64_t *out_channel)
{
    const ref_attr *handle = ref_attr_find(op->attrs, op->n_attrs, "channel_handle");
    const int64_t *groups, *channel;
    if (handle == NULL || handle->kind != REF_RECORD) {
        return ref_wrong("requires attribute 'channel_handle'");
    }
    SX_TRY(ref_attr_ints(op, "replica_groups", p->replicas, &groups, NULL),
           "compiled for %d replicas", p->replicas);
    SX_TRY(ref_field_ints(handle, "handle", 1, &channel, NULL));
    for (int i = 0; i < p->replicas; i++) {
        if (groups[i] != i) {
            return ref_wrong("only one group of all replicas in order is implemented");
        }
    }
    *out_channel = channel[0];
    return SX_OK;
}

static sx_status check_all_reduce(ref_program *p, const ref_op *op, void **out_plan)
{
    meeting_plan *plan = sx_arena_new(&p->arena, meeting_plan);
    if (plan == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
    }
    if (op->n_in < 1 || op->n_out != op->n_in) {
        return ref_wrong("has as many results as operands, at least one");
    }
    const sx_type scalar = sx_scalar_type(ref_in_type(p, op, 0)->dtype),
                  scalars[2] = {scalar, scalar};
    SX_TRY(check_groups(p, op, &plan->channel));
    SX_TRY(ref_check_region(p, op, 0, scalars, 2, scalars, 1));
    for (int i = 0; i < op->n_in; i++) {
        if (ref_in_type(p, op, i)->dtype != scalar.dtype) {
            return ref_wrong("adds up operands of one element type only");
        }
        SX_TRY(ref_expect(p, op, i, ref_in_type(p, op, i)));
    }
    plan->kernel = ref_lambda_of(p, &op->regions[0]).kernel;
    *out_plan = plan;
    return plan->kernel == NULL ? ref_wrong("adds up by one operation only") : SX_OK;
}

/* In the order of the replicas, whoever comes last. */
static void add_up(void *user, ref_array *const *brought, int replicas, ref_array *sum)
{
    const meeting_plan *plan = user;
    ref_lane total[REF_LANES], more[REF_LANES];
    sx_dtype dtype = sum->type.dtype;
    int64_t n = sx_type_elems(&sum->type);
    for (int64_t at = 0; at < n; at += REF_LANES) {
        int count = (int)SX_MIN(n - at, REF_LANES);
        ref_load(dtype, brought[0]->data, at, count, total);
        for (int k = 1; k < replicas; k++) {
            ref_load(dtype, brought[k]->data, at, count, more);
            plan->kernel(total, more, total, count);
        }
        ref_store(dtype, sum->data, at, count, total);
    }
}

static sx_status run_all_reduce(ref_run *r, const ref_op *op)
{
    const meeting_plan *plan = op->plan;
    for (int i = 0; i < op->n_in; i++) {
        ref_array *out, *mine = r->env[op->in[i]];
        SX_TRY(ref_out(r, op, i, &out));
        if (r->meeting == NULL) {
            add_up(op->plan, &mine, 1, out);
        } else {
            SX_TRY(ref_meet(r->meeting, r->here, plan->channel, mine, add_up, op->plan, out));
        }
    }
    return SX_OK;
}

typedef struct gather_plan {
    int64_t channel, axis;
} gather_plan;

static sx_status check_all_gather(ref_program *p, const ref_op *op, void **out_plan)
{
    sx_type type = *ref_in_type(p, op, 0);
    gather_plan *plan = sx_arena_new(&p->arena, gather_plan);
    if (plan == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
    }
    SX_TRY(ref_attr_int(op, "all_gather_dim", 0, type.rank - 1, &plan->axis));
    SX_TRY(check_groups(p, op, &plan->channel));
    if (!sx_mul_i64(type.dims[plan->axis], p->replicas, &type.dims[plan->axis])) {
        return ref_wrong("makes a dimension too large");
    }
    *out_plan = plan;
    return ref_expect(p, op, 0, &type);
}

/* Rows of bytes: each replica gives its part of every outer index. */
static void put_together(void *user, ref_array *const *brought, int replicas, ref_array *all)
{
    const gather_plan *plan = user;
    int64_t outer = 1;
    for (int i = 0; i < plan->axis; i++) {
        outer *= all->type.dims[i];
    }
    for (int64_t k = 0; k < outer && all->bytes > 0; k++) {
        const int64_t row = brought[0]->bytes / outer;
        for (int i = 0; i < replicas; i++) {
            memcpy((char *)all->data + (k * replicas + i) * row,
                   (const char *)brought[i]->data + k * row, (size_t)row);
        }
    }
}

static sx_status run_all_gather(ref_run *r, const ref_op *op)
{
    const gather_plan *plan = op->plan;
    ref_array *out, *mine = r->env[op->in[0]];
    SX_TRY(ref_out(r, op, 0, &out));
    if (r->meeting == NULL) {
        put_together(op->plan, &mine, 1, out);
        return SX_OK;
    }
    return ref_meet(r->meeting, r->here, plan->channel, mine, put_together, op->plan, out);
}

static sx_status check_replica_id(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type type = sx_scalar_type(SX_U32);
    (void)out_plan;
    return ref_expect(p, op, 0, &type);
}

static sx_status run_replica_id(ref_run *r, const ref_op *op)
{
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    ref_put(out, 0, (ref_lane){.u = (uint64_t)r->replica});
    return SX_OK;
}

const ref_row ref_control_rows[] = {
    {.name = "while",
     .n_in = REF_ANY,
     .n_out = REF_ANY,
     .n_regions = 2,
     .check = check_while,
     .run = run_while},
    {.name = "all_reduce",
     .n_in = REF_ANY,
     .n_out = REF_ANY,
     .n_regions = 1,
     .check = check_all_reduce,
     .run = run_all_reduce},
    {.name = "all_gather", .n_in = 1, .n_out = 1, .check = check_all_gather, .run = run_all_gather},
    {.name = "replica_id", .n_out = 1, .check = check_replica_id, .run = run_replica_id},
    {.name = NULL},
};
