/* Classify, Regress and MultiInference, whatever the protocol: signatures that take serialized
 * tf.Examples and answer classes or numbers.
 *
 *   Classify   inputs -> classes (string [N, C]), scores (float32 [N, C]) or both
 *   Regress    inputs -> outputs (float32 [N] or [N, 1])
 *
 * Which signatures these are is seen by the names of their tensors, not by their method's name, as
 * in TensorFlow Serving; so are the texts of errors. */
#ifndef SX_SERVE_INFERENCE_H
#define SX_SERVE_INFERENCE_H

#include <sextant/types.h>

#include "serve/model.h"

typedef enum sx_inference_method { SX_CLASSIFY, SX_REGRESS } sx_inference_method;

/* INVALID_ARGUMENT: the signature is none of that method. */
SX_MUST_USE sx_status sx_inference_check(sx_inference_method method,
                                         const sx_serve_signature *signature);
/* The signature of that name, which may be empty. INVALID_ARGUMENT: there is none of the method. */
SX_MUST_USE sx_status sx_inference_find(sx_inference_method method,
                                        const sx_serve_signature *signatures, size_t count,
                                        sx_bytes name, const sx_serve_signature **out);

/* The answer for a batch of examples, row-major; views of a run's outputs. */
typedef struct sx_inference_result {
    sx_inference_method method;
    size_t examples, classes; /* Regress: of one class */
    const sx_bytes *labels;   /* [examples * classes]; NULL: none */
    const float *scores;      /* the same; of Regress the values */
} sx_inference_result;

/* The result in the outputs of a run of the signature. INVALID_ARGUMENT: their types or shapes are
 * not those of the method, or not of so many examples. */
SX_MUST_USE sx_status sx_inference_read(sx_inference_method method,
                                        const sx_serve_signature *signature,
                                        const sx_tensor *outputs, size_t examples,
                                        sx_inference_result *out);

#endif
