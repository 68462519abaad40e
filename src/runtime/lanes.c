/* See lanes.h. */
#include "runtime/lanes.h"

#include "base/memory.h"
#include "runtime/program.h"

struct sx_lanes {
    sx_program *program;
    sx_compiled *runs[SX_LANES];
    bool running[SX_LANES];
    sx_device_buffer **outputs; /* [n_outputs]: of the run that is being read */
};

static sx_status fill(sx_lanes *l, int64_t batch)
{
    sx_compiled *c;
    l->outputs = sx_alloc((size_t)l->program->n_outputs + 1, sizeof(sx_device_buffer *));
    SX_TRY(l->outputs != NULL ? SX_OK : sx_no_memory("for runs of a program"));
    SX_TRY(sx_program_compiled(l->program, SX_ONE_STEP(batch), &c));
    for (int i = 0; i < SX_LANES; i++) {
        SX_TRY(sx_program_bind(l->program, c->executable, batch, 1, 0, &l->runs[i]));
    }
    return SX_OK;
}

sx_status sx_lanes_create(sx_program *program, int64_t batch, sx_lanes **out)
{
    *out = NULL;
    if (sx_session_platform(program->session)->backend->await == NULL) { /* runs end in submit */
        return SX_OK;
    }
    sx_lanes *l = sx_alloc(1, sizeof(*l));
    if (l == NULL) {
        return sx_no_memory("for runs of a program");
    }
    l->program = program;
    sx_status status = fill(l, batch);
    if (status != SX_OK) {
        sx_lanes_destroy(l);
        return status;
    }
    *out = l;
    return SX_OK;
}

void sx_lanes_destroy(sx_lanes *l)
{
    if (l == NULL) {
        return;
    }
    for (int i = 0; i < SX_LANES; i++) {
        if (l->running[i]) {
            sx_status_free(sx_session_await(l->program->session, l->runs[i]->run));
        }
        sx_compiled_destroy(l->program, l->runs[i]);
    }
    sx_free(l->outputs);
    sx_free(l);
}

sx_status sx_lanes_begin(sx_lanes *l, int lane, const void *const *inputs)
{
    const sx_compiled *c = l->runs[lane];
    for (int i = 0; i < l->program->n_inputs; i++) {
        SX_TRY(sx_device_buffer_write(c->args[l->program->inputs[i]], inputs[i], true));
    }
    SX_TRY(sx_run_submit(c->run, c->args, c->outputs));
    l->running[lane] = true;
    return SX_OK;
}

sx_status sx_lanes_end(sx_lanes *l, int lane, void *const *outputs)
{
    const sx_compiled *c = l->runs[lane];
    l->running[lane] = false;
    SX_TRY(sx_session_await(l->program->session, c->run));
    for (int i = 0; i < l->program->n_outputs; i++) {
        l->outputs[i] = c->outputs[l->program->outputs[i]];
    }
    return sx_device_buffers_read(l->program->n_outputs, l->outputs, outputs);
}
