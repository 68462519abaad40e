/* The protobuf messages of Classify, Regress and MultiInference. Knows no gRPC.
 *
 *   ClassificationRequest, RegressionRequest    model_spec 1, input 2
 *   MultiInferenceRequest                       tasks 1 {model_spec 1, method_name 2}, input 2
 *   Input                                       example_list 1 {examples 1}, or
 *                                               example_list_with_context 2 {examples 1, context 2}
 *   ClassificationResponse, RegressionResponse  result 1, model_spec 2
 *   MultiInferenceResponse                      results 1 {model_spec 1, classification_result 2,
 *                                               regression_result 3}
 *
 * Examples are not parsed: the model's graph does that. Each gets the context before it, and since
 * protobuf merges what follows, its own features count where both have them. */
#ifndef SX_SERVE_INFERENCE_PROTO_H
#define SX_SERVE_INFERENCE_PROTO_H

#include "serve/inference.h"
#include "serve/predict_proto.h"

/* The serialized examples of the request's input: strings [N], views of the message, or, with a
 * context, memory of the arena. INVALID_ARGUMENT: malformed bytes, no examples;
 * RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_examples_read(sx_bytes request, sx_arena *arena, sx_tensor *out);

/* Appends serialized examples, strings [N], as field 2 of a request, its input. */
void sx_examples_print(const sx_tensor *examples, sx_buf *out);

typedef struct sx_inference_task {
    sx_predict_spec spec;
    sx_bytes method; /* "tensorflow/serving/classify" */
} sx_inference_task;

/* The tasks of a MultiInferenceRequest, in the arena; without a ModelSpec a task has an empty one.
 * INVALID_ARGUMENT: malformed bytes. */
SX_MUST_USE sx_status sx_inference_tasks_read(sx_bytes request, sx_arena *arena,
                                              sx_inference_task **out, size_t *out_count);

/* The spec of the first task, which names the model of all; an empty one if there is none. */
SX_MUST_USE sx_status sx_inference_first_spec(sx_bytes request, sx_predict_spec *out);

/* Appends a ClassificationResponse or RegressionResponse, with the spec of what was run. */
void sx_inference_print(const sx_inference_result *result, const sx_predict_spec *ran, sx_buf *out);
/* Appends one of the results of a MultiInferenceResponse. */
void sx_inference_print_task(const sx_inference_result *result, const sx_predict_spec *ran,
                             sx_buf *out);

#endif
