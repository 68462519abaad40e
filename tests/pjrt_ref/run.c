/* See run.h. */
#include "pjrt_ref/run.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "pjrt_ref/ops.h"
#include "pjrt_ref/profiler.h"

const ref_array *ref_in(const ref_run *r, const ref_op *op, int i)
{
    return r->env[op->in[i]];
}

void ref_set(ref_run *r, int value, ref_array *array)
{
    ref_array_release(r->env[value]);
    r->env[value] = array;
}

sx_status ref_out(ref_run *r, const ref_op *op, int i, ref_array **out)
{
    ref_array *a;
    SX_TRY(ref_array_create(r->memory, ref_out_type(r->program, op, i), &a));
    ref_set(r, op->out[i], a);
    *out = a;
    return SX_OK;
}

static void let_go(ref_run *r, const int *values, int n)
{
    for (int i = 0; i < n; i++) {
        ref_set(r, values[i], NULL);
    }
}

static sx_status spend(ref_run *r)
{
    if (r->is_bounded && r->budget-- == 0) {
        r->budget = 0;
        return sx_error(SX_DEADLINE_EXCEEDED, "the program ran longer than it may");
    }
    return SX_OK;
}

static sx_status run_ops(ref_run *r, const ref_block *block)
{
    /* What an operation computes with, such as the sum of a reduction, is part of it. */
    const bool is_part = block->owner != NULL && strcmp(block->owner->row->name, "while") != 0;
    for (const ref_op *op = block->first; op != NULL; op = op->next) {
        SX_TRY(spend(r));
        const int64_t start_ns = is_part ? 0 : ref_profiler_begin();
        SX_TRY(op->row->run(r, op), "loc(\"%s\"): 'stablehlo.%s'", op->loc, op->row->name);
        if (start_ns != 0) {
            ref_profiler_end(op, start_ns);
        }
        let_go(r, op->dies, op->n_dies);
    }
    return SX_OK;
}

sx_status ref_run_block(ref_run *r, const ref_block *block, ref_array *const *args,
                        ref_array **out_results)
{
    for (int i = 0; i < block->n_args; i++) {
        ref_set(r, block->args[i], args[i]);
    }
    let_go(r, block->unread, block->n_unread);
    SX_TRY(run_ops(r, block));
    for (int i = 0; i < block->n_results; i++) {
        out_results[i] = ref_array_retain(r->env[block->results[i]]);
    }
    for (int i = 0; i < block->n_results; i++) {
        if (r->program->values[block->results[i]]->block == block) {
            ref_set(r, block->results[i], NULL);
        }
    }
    return SX_OK;
}

void ref_take_time(double us)
{
    if (us >= 1) {
        usleep((useconds_t)us);
    }
}

static bool has_loop(const ref_block *block)
{
    const ref_op *op = block->first;
    while (op != NULL && strcmp(op->row->name, "while") != 0) {
        op = op->next;
    }
    return op != NULL;
}

sx_status ref_execute(const ref_run *options, ref_array *const *args, ref_array **out_results)
{
    ref_run r = *options;
    const ref_block *main = &r.program->main;
    r.env = sx_alloc((size_t)r.program->n_values + 1, sizeof(ref_array *));
    if (r.env == NULL) {
        for (int i = 0; i < main->n_args; i++) {
            ref_array_release(args[i]);
        }
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for an execution");
    }
    if (!has_loop(main)) {
        ref_take_time((double)r.step_us);
    }
    sx_status status = ref_run_block(&r, main, args, out_results);
    for (int i = 0; i < r.program->n_values; i++) {
        ref_array_release(r.env[i]);
    }
    sx_free(r.env);
    return status;
}
