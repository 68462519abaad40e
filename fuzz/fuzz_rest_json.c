/* REST predict: any bytes are tensors or an error; what was parsed prints, and what was printed
 * parses to the same bytes. The first byte chooses the signature's dtype. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "serve/predict_json.h"

static void parse_again(const sx_serve_signature *signature, const sx_tensor *first,
                        const sx_buf *printed)
{
    /* "outputs" of one signature are the "inputs" of the same. */
    sx_arena arena;
    sx_predict_slots slots;
    sx_predict_request again;
    sx_arena_init(&arena, 0);
    sx_predict_slots_init(&slots);
    char *at = strstr(printed->data, "\"outputs\"");
    memcpy(at, "\"inputs\" ", 9);
    sx_status status = sx_predict_parse((sx_bytes){printed->data, printed->size}, signature, 1,
                                        &arena, &slots, &again);
    const int64_t bytes = sx_type_bytes(&first->type);
    if (status != SX_OK || !sx_type_equal(&again.inputs[0].type, &first->type) ||
        (bytes > 0 && memcmp(again.inputs[0].data, first->data, (size_t)bytes) != 0)) {
        abort();
    }
    sx_predict_slots_deinit(&slots);
    sx_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const sx_dtype dtypes[] = {SX_F32, SX_F64, SX_I8,  SX_I16,  SX_I32,    SX_I64,
                                      SX_U8,  SX_U16, SX_U32, SX_BOOL, SX_STRING, SX_U64};
    if (size == 0) {
        return 0;
    }
    const sx_dtype dtype = dtypes[data[0] % SX_COUNT(dtypes)];
    const sx_serve_tensor tensors[] = {
        {.name = "a", .type = {.dtype = dtype}, .unknown_rank = true},
        {.name = "b", .type = {SX_F32, 1, {SX_BATCH}}}};
    const sx_serve_signature signatures[] = {{.name = "serving_default",
                                              .input_count = 1,
                                              .inputs = tensors,
                                              .output_count = 1,
                                              .outputs = tensors},
                                             {.name = "two",
                                              .input_count = 2,
                                              .inputs = tensors,
                                              .output_count = 2,
                                              .outputs = tensors}};
    sx_arena arena;
    sx_predict_slots slots;
    sx_predict_request request;
    sx_buf out;
    sx_arena_init(&arena, 0);
    sx_predict_slots_init(&slots);
    sx_buf_init(&out, 0);
    sx_status status =
        sx_predict_parse((sx_bytes){data + 1, size - 1}, signatures, 2, &arena, &slots, &request);
    if (status == SX_OK) {
        sx_status printed = sx_predict_print(request.signature, request.inputs, false,
                                             SX_FLOAT_SHORTEST, NULL, &out);
        if (printed != SX_OK) {
            abort();
        }
        if (request.signature == &signatures[0]) {
            parse_again(request.signature, &request.inputs[0], &out);
        }
        sx_buf_reset(&out);
        sx_status_free(
            sx_predict_print(request.signature, request.inputs, true, SX_FLOAT_TFS, NULL, &out));
    }
    sx_status_free(status);
    sx_buf_deinit(&out);
    sx_predict_slots_deinit(&slots);
    sx_arena_deinit(&arena);
    return 0;
}
