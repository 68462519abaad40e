/* Predict's messages: any bytes are a request that fits its signature, or an error; what was read
 * is printed, and stays within the budget. */
#include <stdlib.h>

#include "base/checked.h"
#include "serve/predict_proto.h"
#include "signatures.h"

enum { BUDGET = 1 << 20 };

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
