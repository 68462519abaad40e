/* DecodeJSONExample: any bytes are refused, or give an Example that parses. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/host.h"
#include "proto/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_arena arena;
    sx_example example;
    sx_bytes text = {data, size}, record = {NULL, 0};
    char scratch[256] __attribute__((aligned(16)));
    const sx_tensor x = {sx_type_of(SX_STRING, 1), &text}, y = {sx_type_of(SX_STRING, 1), &record};
    sx_arena_init(&arena, 0);
    sx_example_init(&example);
    sx_status status =
        sx_host_run(sx_op_find("decode_json_example"), NULL, &x, 1, &y, 1, scratch, &arena);
    if (status == SX_OK) {
        sx_status parsed = sx_example_parse(&example, record);
        assert(parsed == SX_OK);
    }
    sx_status_free(status);
    sx_example_deinit(&example);
    sx_arena_deinit(&arena);
    return 0;
}
