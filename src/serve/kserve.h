/* KServe's v2 protocol, the Open Inference Protocol: what its forms have in common. REST's is
 * kserve_json, gRPC's kserve_proto.
 *
 * A request names its tensors in any order, with their shapes; they have to be those of one
 * signature, the default one unless the parameter "signature_name" names another. Values come as
 * JSON or as typed lists, or raw: little-endian elements in row-major order, one byte each for
 * booleans, and for strings (BYTES) 4 bytes of size before each. Source: KServe's
 * open-inference-protocol, and Triton's binary tensor extension. */
#ifndef SX_SERVE_KSERVE_H
#define SX_SERVE_KSERVE_H

#include <sextant/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "serve/model.h"

/* "FP32", and the like; NULL: the protocol has no such type. */
const char *sx_kserve_datatype(sx_dtype dtype);

typedef struct sx_kserve_output {
    size_t index; /* in the signature */
    bool binary;  /* raw, behind the JSON */
} sx_kserve_output;

typedef struct sx_kserve_request {
    sx_bytes id; /* empty: none */
    const sx_serve_signature *signature;
    sx_tensor *inputs;         /* [signature->input_count]; data NULL: not given yet */
    sx_kserve_output *outputs; /* [output_count], in the order of the answer */
    size_t output_count;
    bool raw; /* gRPC: the answer is raw, as the request is */
} sx_kserve_request;

/* Begins reading a request of the signature named so. Errors: as sx_serve_no_signature. */
SX_MUST_USE sx_status sx_kserve_begin(sx_kserve_request *request,
                                      const sx_serve_signature *signatures, size_t count,
                                      sx_bytes name, sx_arena *arena);
/* An input as it was sent. */
typedef struct sx_kserve_tensor {
    sx_bytes name, datatype;
    int rank;
    int64_t dims[SX_MAX_RANK];
} sx_kserve_tensor;
/* Appends a dimension. */
SX_MUST_USE sx_status sx_kserve_add_dim(sx_kserve_tensor *tensor, int64_t dim);
/* Which input of the signature it is, with its type set and the number of its elements.
 * INVALID_ARGUMENT: none, one that was given already, of another type or shape. */
SX_MUST_USE sx_status sx_kserve_take(sx_kserve_request *request, const sx_kserve_tensor *tensor,
                                     size_t *out_input, size_t *out_elems);
/* Asks for an output. INVALID_ARGUMENT: there is none of that name, or it was asked for already. */
SX_MUST_USE sx_status sx_kserve_want(sx_kserve_request *request, sx_bytes name, bool binary);
/* Ends reading: all inputs have to be there, and without wishes all outputs are wanted. */
SX_MUST_USE sx_status sx_kserve_complete(sx_kserve_request *request, bool binary);

/* Sets the data of input `input`, whose type is known, from raw bytes: they are not copied where
 * their alignment allows. */
SX_MUST_USE sx_status sx_kserve_read_raw(sx_kserve_request *request, size_t input, size_t elems,
                                         sx_bytes raw, sx_arena *arena);
size_t sx_kserve_raw_size(const sx_tensor *tensor);
void sx_kserve_print_raw(const sx_tensor *tensor, sx_buf *out);

#endif
