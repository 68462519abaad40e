/* See batch_merge.h. */
#include "serve/batch_merge.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { ALIGN = 64 };

size_t sx_batch_row_bytes(const sx_type *type)
{
    size_t bytes = type->dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(type->dtype);
    for (int d = 1; d < type->rank; d++) {
        bytes *= (size_t)type->dims[d];
    }
    return bytes;
}

/* The calls' rows of input i, and padding, from `to` on. */
static void copy_rows(const sx_merged *batch, const sx_batch_call *calls, size_t i, uint8_t *to)
{
    const size_t row_bytes = sx_batch_row_bytes(&batch->inputs[i].type);
    const uint8_t *const first_row = to;
    for (const sx_batch_call *call = calls; call != NULL; call = call->next) {
        const size_t bytes = (size_t)call->rows * row_bytes;
        if (bytes > 0) {
            memcpy(to, call->inputs[i].data, bytes);
        }
        to += bytes;
    }
    for (int64_t k = batch->rows; k < batch->size && row_bytes > 0; k++, to += row_bytes) {
        memcpy(to, first_row, row_bytes);
    }
}

static sx_status fill(sx_merged *batch, const sx_serve_signature *signature,
                      const sx_batch_call *calls)
{
    size_t total = 0;
    batch->inputs = sx_arena_array(&batch->arena, signature->input_count + 1, sx_tensor);
    batch->outputs = sx_arena_array(&batch->arena, signature->output_count + 1, sx_tensor);
    if (batch->inputs == NULL || batch->outputs == NULL) {
        return sx_no_memory("for a batch");
    }
    for (size_t i = 0; i < signature->input_count; i++) {
        size_t bytes;
        batch->inputs[i].type = calls->inputs[i].type;
        batch->inputs[i].type.dims[0] = batch->size;
        if (!sx_mul_size((size_t)batch->size, sx_batch_row_bytes(&calls->inputs[i].type), &bytes) ||
            !sx_add_size(total, sx_align_up(bytes, ALIGN), &total)) {
            return sx_no_memory("for a batch of %lld rows", (long long)batch->size);
        }
    }
    if (!sx_budget_charge(&batch->budget, total)) {
        return sx_no_memory("for a batch of %zu bytes", total);
    }
    batch->block_bytes = total;
    batch->block = sx_alloc_aligned(total + ALIGN, ALIGN);
    if (batch->block == NULL) {
        return sx_no_memory("for a batch of %zu bytes", total);
    }
    uint8_t *at = batch->block;
    for (size_t i = 0; i < signature->input_count; i++) {
        batch->inputs[i].data = at;
        copy_rows(batch, calls, i, at);
        at += sx_align_up((size_t)batch->size * sx_batch_row_bytes(&batch->inputs[i].type), ALIGN);
    }
    return SX_OK;
}

sx_status sx_merged_create(const sx_serve_signature *signature, const sx_batch_call *calls,
                           int64_t size, sx_budget *parent, sx_merged **out)
{
    sx_merged *batch = sx_alloc(1, sizeof(*batch));
    if (batch == NULL) {
        return sx_no_memory("for a batch");
    }
    atomic_init(&batch->users, 1);
    sx_budget_init(&batch->budget, "a batch", 0, parent);
    sx_arena_init(&batch->arena, 0);
    batch->arena.budget = &batch->budget;
    for (const sx_batch_call *call = calls; call != NULL; call = call->next) {
        batch->rows += call->rows;
    }
    batch->size = SX_MAX(size, batch->rows);
    for (size_t i = 0; i < signature->input_count; i++) { /* rows of strings cost what they hold */
        batch->size = signature->inputs[i].type.dtype == SX_STRING ? batch->rows : batch->size;
    }
    sx_status status = fill(batch, signature, calls);
    if (status != SX_OK) {
        sx_merged_release(batch);
        return status;
    }
    *out = batch;
    return SX_OK;
}

bool sx_merged_can_split(const sx_merged *batch, const sx_serve_signature *signature)
{
    bool can = true;
    for (size_t i = 0; i < signature->output_count && can; i++) {
        const sx_type *type = &batch->outputs[i].type;
        can = type->rank > 0 && type->dims[0] == batch->size;
    }
    return can;
}

void sx_merged_part(const sx_merged *batch, const sx_serve_signature *signature, int64_t first,
                    int64_t rows, sx_tensor *outputs)
{
    for (size_t i = 0; i < signature->output_count; i++) {
        outputs[i] = batch->outputs[i];
        outputs[i].type.dims[0] = rows;
        outputs[i].data =
            (uint8_t *)outputs[i].data + (size_t)first * sx_batch_row_bytes(&outputs[i].type);
    }
}

void sx_merged_release(sx_merged *batch)
{
    if (batch == NULL || atomic_fetch_sub_explicit(&batch->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    sx_arena_deinit(&batch->arena);
    sx_free_aligned(batch->block);
    sx_budget_release(&batch->budget, batch->block_bytes);
    sx_free(batch);
}
