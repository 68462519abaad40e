/* The JSON of classify and regress: any text is examples that can be parsed, or an error; what is
 * held stays within the budget. */
#include <stdlib.h>

#include "proto/example.h"
#include "serve/inference_json.h"

enum { BUDGET = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_inference_request request;
    sx_arena arena;
    sx_budget budget;
    sx_example example;
    sx_budget_init(&budget, "one request", BUDGET, NULL);
    sx_arena_init(&arena, 0);
    sx_example_init(&example);
    arena.budget = &budget;
    sx_status status = sx_inference_parse((sx_bytes){data, size}, &arena, &request);
    if (sx_budget_used(&budget) > BUDGET) {
        abort();
    }
    for (int64_t i = 0; status == SX_OK && i < request.examples.type.dims[0]; i++) {
        sx_status parsed = sx_example_parse(&example, ((const sx_bytes *)request.examples.data)[i]);
        if (parsed != SX_OK && sx_status_code(parsed) != SX_RESOURCE_EXHAUSTED) {
            abort();
        }
        sx_status_free(parsed);
    }
    sx_status_free(status);
    sx_example_deinit(&example);
    sx_arena_deinit(&arena);
    return 0;
}
