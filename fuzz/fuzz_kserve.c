/* KServe's requests, as JSON with raw tensors behind it and as messages: any bytes are a request
 * that fits its signature, or an error; what was read is printed, and stays within the budget. */
#include <stdlib.h>

#include "base/checked.h"
#include "serve/kserve_json.h"
#include "serve/kserve_proto.h"
#include "signatures.h"

enum { BUDGET = 1 << 20 };

/* The first byte chooses the form; of JSON, the next two are its size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_kserve_request request;
    sx_predict_slots slots;
    sx_arena arena;
    sx_budget budget;
    sx_buf out;
    size_t json_size;
    if (size < 3) {
        return 0;
    }
    const bool is_json = data[0] == '{';
    const sx_bytes body = is_json ? (sx_bytes){data, size} : (sx_bytes){data + 3, size - 3};
    const size_t told = is_json ? size : (size_t)data[1] << 8 | data[2];
    sx_budget_init(&budget, "one request", BUDGET, NULL);
    sx_arena_init(&arena, 0);
    sx_buf_init(&out, 0);
    sx_predict_slots_init(&slots);
    arena.budget = &budget;
    const bool as_json = is_json || data[0] % 2 == 0;
    sx_status status =
        as_json ? sx_kserve_json_read(body, told, signatures, SX_COUNT(signatures), &arena, &slots,
                                      &request)
                : sx_kserve_proto_read(body, signatures, SX_COUNT(signatures), &arena, &request);
    if (sx_budget_used(&budget) > BUDGET) {
        abort();
    }
    if (status == SX_OK) {
        status = as_json ? sx_kserve_json_print(&request, request.inputs, "m", 1, SX_FLOAT_SHORTEST,
                                                NULL, &arena, &out, &json_size)
                         : sx_kserve_proto_print(&request, request.inputs, "m", 1, &out);
        if (sx_buf_status(&out) != SX_OK) {
            abort();
        }
    }
    sx_status_free(status);
    sx_predict_slots_trim(&slots);
    sx_predict_slots_deinit(&slots);
    sx_buf_deinit(&out);
    sx_arena_deinit(&arena);
    return 0;
}
