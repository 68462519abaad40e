/* See data_pass.h. */
#include "train/data_pass.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/ir.h"
#include "nn/model_program.h"
#include "train/byte_images.h"
#include "train/lockstep.h"

static const int64_t PROGRESS_NS = 100000000;
enum { BATCHES_PER_STOP = 16 }; /* after which processes agree whether to stop */

/* ---- Opening ---- */

/* The type of one row: [N, ...] without the N. */
static sx_type row_type(const sx_type *type)
{
    sx_type row = {.dtype = type->dtype, .rank = type->rank - 1};
    memcpy(row.dims, type->dims + 1, (size_t)row.rank * sizeof(row.dims[0]));
    return row;
}

static sx_status make_output(sx_data_pass *p, int i)
{
    const sx_type *type = sx_program_output_type(p->program, i);
    if (type->rank < 1 || type->dims[0] != SX_BATCH) {
        return sx_error(SX_INVALID_ARGUMENT, "output \"%s\" does not have one row per example",
                        sx_program_output_name(p->program, i));
    }
    sx_type whole = sx_type_with_batch(*type, p->size);
    p->row_types[i] = row_type(type);
    p->row_bytes[i] = (size_t)sx_type_bytes(&p->row_types[i]);
    p->outputs[i] = sx_alloc_aligned((size_t)sx_type_bytes(&whole) + 1, 64);
    return p->outputs[i] != NULL ? SX_OK : sx_no_memory("for an evaluation");
}

static sx_status make_buffers(sx_data_pass *p)
{
    int n = sx_program_output_count(p->program);
    if (n > SX_MAX_DATA_PASS_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d outputs; the maximum is %d", n,
                        (int)SX_MAX_DATA_PASS_OUTPUTS);
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(make_output(p, i));
        p->n_outputs++;
    }
    return sx_feed_order(&p->t->info.inputs, p->program, p->order, &p->n_inputs);
}

static sx_status require_state(const sx_trainer *t)
{
    return t->has_state ? SX_OK
                        : sx_error(SX_FAILED_PRECONDITION,
                                   "the model has not been trained, and no checkpoint is loaded");
}

/* Each replica runs the run's execution batch, as a single device does, so that results do not
 * depend on the number of replicas. */
static int64_t execution_batch(const sx_trainer *t, sx_mode mode)
{
    return t->info.execution_batch * sx_session_replicas(sx_trainer_session_of(t, mode));
}

static sx_status open_input(sx_data_pass *p, sx_dataset *data)
{
    sx_trainer *t = p->t;
    SX_TRY(sx_run_graph_lost(&t->graphs, p->mode));
    const bool bytes = sx_can_feed_bytes(t, p->mode, &data, 1);
    /* Of several processes, each reads its rows of what the devices compute at once, unless the
     * host weighs all. */
    const bool in_parts = t->processes != NULL && sx_trainer_session_of(t, p->mode) == t->session &&
                          sx_dataset_batch_size(data) == 0 &&
                          sx_model_inputs_find(&t->info.inputs, SX_WEIGHTS) < 0;
    SX_TRY(sx_trainer_feed_bytes(t, p->mode, bytes));
    const sx_feed_args args = {.mode = p->mode,
                               .batch_size = in_parts ? p->size : t->config.eval_batch_size,
                               .part = in_parts ? sx_lockstep_part(t, p->size) : (sx_part){0},
                               .classes = sx_trainer_classes(t),
                               .program = t->graphs.by_mode[p->mode],
                               .preprocess = t->graphs.by_mode[SX_RUN_PREPROCESS],
                               .bytes = bytes};
    SX_TRY(sx_feed_init(&p->input, &t->info, data, &args));
    SX_TRY(sx_rebatch_init(&p->batches, &p->input, p->size));
    return sx_dataset_count(p->input.data) != SX_ENDLESS || p->limit > 0
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "the data is endless; limit the number of examples");
}

static sx_platform *platform_of(const sx_data_pass *p)
{
    return sx_session_device(sx_trainer_session_of(p->t, p->mode))->platform;
}

/* So that the device, where it can, reads the rows by itself. */
static void pin_rows(sx_data_pass *p, int lane)
{
    const sx_feed_rows *rows = &p->ahead[lane].rows;
    sx_platform *platform = platform_of(p);
    for (int i = 0; i < rows->n; i++) {
        p->ahead[lane].is_pinned[i] = rows->inputs[i].data != NULL && rows->inputs[i].bytes > 0 &&
                                      sx_platform_pin(platform, rows->inputs[i].data,
                                                      rows->inputs[i].bytes * (size_t)rows->room);
    }
}

/* What a device may still read, since it was abandoned before a copy ended, is never freed. */
static void free_rows(sx_data_pass *p, int lane)
{
    sx_feed_rows *rows = &p->ahead[lane].rows;
    for (int i = 0; i < rows->n; i++) {
        if (p->ahead[lane].is_pinned[i]) {
            if (atomic_load(&platform_of(p)->abandoned) > 0) {
                return;
            }
            sx_platform_unpin(platform_of(p), rows->inputs[i].data);
        }
    }
    sx_feed_rows_deinit(rows);
}

sx_status sx_data_pass_open(sx_data_pass *p, sx_trainer *t, sx_mode mode, sx_dataset *data,
                            int64_t limit)
{
    *p = (sx_data_pass){.t = t, .mode = mode, .limit = limit};
    SX_TRY(require_state(t));
    if (mode == SX_EVAL) {
        SX_TRY(sx_trainer_bring_to_eval(t));
    }
    SX_TRY(sx_lockstep_compare_variables(t));
    SX_TRY(sx_lockstep_compare_data(t, mode == SX_EVAL ? "its evaluation data" : "its data", data));
    p->size = execution_batch(t, mode);
    SX_TRY(open_input(p, data));
    SX_TRY(sx_trainer_program(t, mode, &p->program));
    SX_TRY(make_buffers(p));
    if (t->compiled[mode] != p->size) {
        SX_TRY(sx_trainer_compile(t, mode, p->size, false));
        t->compiled[mode] = p->size;
    }
    SX_TRY(sx_lanes_create(p->program, p->size, &p->lanes));
    for (int lane = 0; lane < SX_LANES && p->lanes != NULL; lane++) {
        SX_TRY(sx_feed_rows_init(&p->ahead[lane].rows, &p->input, p->size));
        pin_rows(p, lane);
    }
    return SX_OK;
}

void sx_data_pass_close(sx_data_pass *p)
{
    sx_lanes_destroy(p->lanes); /* first: a copy to the device may still read the rows */
    for (int lane = 0; lane < SX_LANES; lane++) {
        free_rows(p, lane);
    }
    for (int i = 0; i < SX_MAX_DATA_PASS_OUTPUTS; i++) {
        sx_free_aligned(p->outputs[i]);
    }
    sx_rebatch_deinit(&p->batches);
    sx_feed_deinit(&p->input);
}

/* ---- Running ---- */

static sx_status run_batch(sx_data_pass *p, const sx_feed_batch *batch)
{
    const void *inputs[SX_MAX_MODEL_INPUTS];
    sx_feed_bind(batch, p->order, p->n_inputs, inputs);
    SX_TRY(sx_program_run(p->program, p->size, inputs));
    for (int i = 0; i < p->n_outputs; i++) {
        SX_TRY(sx_program_read_output(p->program, i, p->outputs[i]));
    }
    return SX_OK;
}

static void tell_progress(sx_data_pass *p)
{
    int64_t now = sx_now_ns();
    if (now - p->told_ns >= PROGRESS_NS) {
        p->told_ns = now;
        sx_trainer_emit(p->t, &(sx_train_event){.kind = SX_EVENT_EVAL_PROGRESS,
                                                .step = sx_trainer_step(p->t),
                                                .examples = p->done});
    }
}

/* *out_ended: there is none any more. */
static sx_status next_batch(sx_data_pass *p, sx_feed_batch *batch, bool *out_ended)
{
    *out_ended = p->limit > 0 && p->read >= p->limit;
    if (*out_ended) {
        return SX_OK;
    }
    if (p->asked++ % BATCHES_PER_STOP == 0) {
        SX_TRY(sx_lockstep_agree_stop(p->t));
    }
    if (sx_trainer_stopped(p->t)) {
        return sx_error(SX_CANCELLED, "stopped after %" PRId64 " examples", p->read);
    }
    sx_status status = sx_rebatch_next(&p->batches, batch);
    if (sx_status_code(status) == SX_OUT_OF_RANGE) {
        sx_status_free(status);
        *out_ended = true;
        return SX_OK;
    }
    SX_TRY(status);
    if (p->limit > 0 && batch->size > p->limit - p->read) {
        batch->size = p->limit - p->read;
    }
    p->read += batch->size;
    return SX_OK;
}

static sx_status pass_on(sx_data_pass *p, const sx_feed_batch *batch, sx_rows_fn *rows, void *user)
{
    SX_TRY(rows(p, batch, user));
    p->done += batch->size;
    tell_progress(p);
    return SX_OK;
}

static sx_status run_each(sx_data_pass *p, sx_rows_fn *rows, void *user)
{
    sx_feed_batch batch;
    bool ended;
    for (;;) {
        SX_TRY(next_batch(p, &batch, &ended));
        if (ended) {
            return SX_OK;
        }
        SX_TRY(run_batch(p, &batch));
        SX_TRY(pass_on(p, &batch, rows, user));
    }
}

/* Reads a batch, if there is one, and starts its way through the device. */
static sx_status begin(sx_data_pass *p, int lane)
{
    sx_feed_batch batch;
    const void *inputs[SX_MAX_MODEL_INPUTS];
    bool ended;
    p->ahead[lane].batch.size = 0;
    SX_TRY(next_batch(p, &batch, &ended));
    if (ended) {
        return SX_OK;
    }
    sx_feed_rows_put(&p->ahead[lane].rows, 0, &batch, 0, p->size);
    const sx_feed_batch own = sx_feed_rows_batch(&p->ahead[lane].rows, batch.size);
    sx_feed_bind(&own, p->order, p->n_inputs, inputs);
    SX_TRY(sx_lanes_begin(p->lanes, lane, inputs));
    p->ahead[lane].batch = own;
    return SX_OK;
}

/* An error in the data does not keep what is before it from being passed on. */
static sx_status run_ahead(sx_data_pass *p, sx_rows_fn *rows, void *user)
{
    SX_TRY(begin(p, 0));
    for (int lane = 0; p->ahead[lane].batch.size > 0; lane = !lane) {
        sx_status begun = begin(p, !lane), status = sx_lanes_end(p->lanes, lane, p->outputs);
        if (status == SX_OK) {
            status = pass_on(p, &p->ahead[lane].batch, rows, user);
        }
        if (status != SX_OK) {
            sx_status_free(begun);
            return status;
        }
        SX_TRY(begun);
    }
    return SX_OK;
}

sx_status sx_data_pass_run(sx_data_pass *p, sx_rows_fn *rows, void *user)
{
    p->told_ns = sx_now_ns();
    SX_TRY(p->lanes != NULL ? run_ahead(p, rows, user) : run_each(p, rows, user));
    return p->done > 0 ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "the data is empty");
}
