/* Predict's messages: any bytes are a request that fits its signature, or an error; what was read
 * is printed, and stays within the budget. */
#include <stdlib.h>

#include "base/checked.h"
#include "serve/predict_proto.h"

enum { BUDGET = 1 << 20 };

static const sx_serve_tensor tensors[] = {
    {.name = "a", .tensor_name = "", .type = {SX_F32, 2, {SX_BATCH, 3}}},
    {.name = "b", .tensor_name = "", .type = {.dtype = SX_STRING}, .unknown_rank = true},
    {.name = "c", .tensor_name = "", .type = {.dtype = SX_I16}, .unknown_rank = true},
    {.name = "d", .tensor_name = "", .type = {SX_F16, 1, {SX_BATCH}}},
    {.name = "e", .tensor_name = "", .type = {.dtype = SX_BOOL}, .unknown_rank = true},
};
/* One input each, so that a request can be complete. */
static const sx_serve_signature signatures[] = {
    {"serving_default", "", 1, 1, &tensors[0], &tensors[0], false},
    {"b", "", 1, 1, &tensors[1], &tensors[1], false},
    {"c", "", 1, 1, &tensors[2], &tensors[2], false},
    {"d", "", 1, 1, &tensors[3], &tensors[3], false},
    {"e", "", 1, 1, &tensors[4], &tensors[4], false},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_predict_spec spec;
    sx_predict_call call;
    sx_arena arena;
    sx_budget budget;
    sx_buf out;
    sx_status status = sx_predict_spec_read((sx_bytes){data, size}, &spec);
    if (status != SX_OK) {
        sx_status_free(status);
        return 0;
    }
    sx_budget_init(&budget, "one request", BUDGET, NULL);
    sx_arena_init(&arena, 0);
    sx_buf_init(&out, 0);
    arena.budget = &budget;
    status = sx_predict_proto_read((sx_bytes){data, size}, &spec, signatures, SX_COUNT(signatures),
                                   &arena, &call);
    if (sx_budget_used(&budget) > BUDGET) {
        abort();
    }
    if (status == SX_OK) {
        status = sx_predict_proto_print(&call, call.inputs, &spec, 2, size % 2 == 0, &out);
        if (sx_buf_status(&out) != SX_OK) {
            abort();
        }
    }
    sx_status_free(status);
    sx_buf_deinit(&out);
    sx_arena_deinit(&arena);
    return 0;
}
