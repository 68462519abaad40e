/* The protobuf messages of a client: requests written, answers read; and answers in the JSON of the
 * REST API. */
#ifndef SX_CLIENT_MESSAGES_H
#define SX_CLIENT_MESSAGES_H

#include <sextant/client.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "serve/inference.h"

/* Appends a ModelSpec as field 1. INVALID_ARGUMENT: the version is no number. */
SX_MUST_USE sx_status sx_client_put_spec(const sx_client_model *model, const char *signature,
                                         sx_buf *out);

/* The outputs of a PredictResponse, in the arena. DATA_LOSS: it is none. */
SX_MUST_USE sx_status sx_client_read_outputs(sx_bytes message, const char *where, sx_arena *arena,
                                             sx_client_tensor **out, int *out_count);
/* A ClassificationResult or RegressionResult, field 1 of a response; labels and scores in the
 * arena, texts of labels in the message. DATA_LOSS likewise. */
SX_MUST_USE sx_status sx_client_read_inference(sx_inference_method method, sx_bytes result,
                                               const char *where, sx_arena *arena,
                                               sx_inference_result *out);
/* The last field of that number, which is bytes; empty if there is none. False: malformed. */
bool sx_client_field(sx_bytes message, uint32_t number, sx_bytes *out);
/* A GetModelStatusResponse as JSON. */
SX_MUST_USE sx_status sx_client_print_status(sx_bytes message, const char *where, sx_buf *out);

#endif
