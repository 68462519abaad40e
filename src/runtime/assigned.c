#include "runtime/assigned.h"

#include "base/checked.h"
#include "base/memory.h"

sx_status sx_assigned_save(const sx_executable *executable, sx_device_buffer *const *args,
                           sx_budget *memory, sx_assigned *out)
{
    *out = (sx_assigned){.executable = executable, .memory = memory};
    size_t bytes = 0;
    for (int i = 0; i < executable->n_results; i++) {
        if (executable->result_args[i] >= 0 &&
            !sx_add_size(bytes, (size_t)sx_type_bytes(&executable->result_types[i]), &bytes)) {
            return sx_no_memory("for the variables that a program assigns");
        }
    }
    if (bytes == 0) {
        return SX_OK;
    }
    if (!sx_budget_charge(memory, bytes)) {
        return sx_budget_over(memory, "the variables that a program assigns", bytes);
    }
    out->bytes = bytes;
    out->data = sx_alloc(bytes, 1);
    sx_status status =
        out->data != NULL ? SX_OK : sx_no_memory("for the variables that a program assigns");
    size_t at = 0;
    for (int i = 0; i < executable->n_results && status == SX_OK; i++) {
        const int arg = executable->result_args[i];
        if (arg >= 0) {
            status = sx_device_buffer_read(args[arg], out->data + at);
            at += (size_t)sx_type_bytes(&executable->result_types[i]);
        }
    }
    if (status != SX_OK) {
        sx_assigned_release(out);
    }
    return status;
}

sx_status sx_assigned_restore(const sx_assigned *saved, sx_device_buffer *const *args)
{
    const sx_executable *e = saved->executable;
    size_t at = 0;
    for (int i = 0; saved->data != NULL && i < e->n_results; i++) {
        const int arg = e->result_args[i];
        if (arg >= 0) {
            SX_TRY(sx_device_buffer_write(args[arg], saved->data + at, false));
            at += (size_t)sx_type_bytes(&e->result_types[i]);
        }
    }
    return SX_OK;
}

void sx_assigned_release(sx_assigned *saved)
{
    sx_free(saved->data);
    sx_budget_release(saved->memory, saved->bytes);
    *saved = (sx_assigned){.data = NULL};
}
