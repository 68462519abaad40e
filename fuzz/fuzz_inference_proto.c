/* The messages of Classify, Regress and MultiInference: any bytes are examples and tasks, or an
 * error; what is held stays within the budget; what is answered is printed. */
#include <stdlib.h>

#include "base/checked.h"
#include "proto/wire.h"
#include "serve/inference_proto.h"
#include "serve/metadata_proto.h"

enum { BUDGET = 1 << 20 };

/* Each example is the label of the one class of its row. */
static void print(const sx_tensor *examples, const sx_predict_spec *spec)
{
    sx_buf out;
    const sx_inference_result result = {.method = SX_CLASSIFY,
                                        .examples = (size_t)examples->type.dims[0],
                                        .classes = 1,
                                        .labels = examples->data};
    sx_buf_init(&out, 0);
    sx_inference_print(&result, spec, &out);
    sx_wire wire = sx_wire_over((sx_bytes){out.data, out.size});
    sx_wire_field field;
    for (uint32_t number = 1; number <= 2; number++) {
        if (!sx_wire_next(&wire, &field) || field.number != number) {
            abort();
        }
    }
    if (sx_wire_more(&wire)) {
        abort();
    }
    sx_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_bytes message = {data, size};
    sx_predict_spec spec;
    sx_tensor examples;
    sx_inference_task *tasks = NULL;
    size_t count = 0;
    sx_arena arena;
    sx_budget budget;
    sx_budget_init(&budget, "one request", BUDGET, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    sx_status_free(sx_inference_first_spec(message, &spec));
    sx_status_free(sx_metadata_request_check(message));
    sx_status_free(sx_inference_tasks_read(message, &arena, &tasks, &count));
    sx_status status = sx_predict_spec_read(message, &spec);
    if (status == SX_OK) {
        status = sx_examples_read(message, &arena, &examples);
    }
    if (sx_budget_used(&budget) > BUDGET) {
        abort();
    }
    if (status == SX_OK) {
        print(&examples, &spec);
    }
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return 0;
}
