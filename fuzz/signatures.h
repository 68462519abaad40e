/* Signatures of one input each, which is their output, too, so that a request can be complete. */
#ifndef SX_FUZZ_SIGNATURES_H
#define SX_FUZZ_SIGNATURES_H

#include "serve/model.h"

static const sx_serve_tensor tensors[] = {
    {.name = "a", .tensor_name = "", .type = {SX_F32, 2, {SX_BATCH, 3}}},
    {.name = "b", .tensor_name = "", .type = {.dtype = SX_STRING}, .unknown_rank = true},
    {.name = "c", .tensor_name = "", .type = {.dtype = SX_I16}, .unknown_rank = true},
    {.name = "d", .tensor_name = "", .type = {SX_F16, 1, {SX_BATCH}}},
    {.name = "e", .tensor_name = "", .type = {.dtype = SX_BOOL}, .unknown_rank = true},
};

#define SIGNATURE(signature_name, k)                                               \
    {                                                                              \
        .name = signature_name, .method = "", .input_count = 1, .output_count = 1, \
        .inputs = &tensors[k], .outputs = &tensors[k]                              \
    }
static const sx_serve_signature signatures[] = {
    SIGNATURE("serving_default", 0),
    SIGNATURE("b", 1),
    SIGNATURE("c", 2),
    SIGNATURE("d", 3),
    SIGNATURE("e", 4),
};

#endif
