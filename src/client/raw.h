/* Messages as they are, for programs that have them already: replays and load generators. */
#ifndef SX_CLIENT_RAW_H
#define SX_CLIENT_RAW_H

#include <sextant/client.h>

#include "base/buffer.h"

/* A unary call of a client that speaks gRPC: `method` is "/package.Service/Method". Appends the
 * message of the answer. Errors: as those of sextant/client.h. */
SX_MUST_USE sx_status sx_client_call(sx_client *client, const char *method, sx_bytes message,
                                     sx_buf *out);

/* Appends a Predict request as it is sent: what follows the server's address, and the body, over
 * gRPC in its frame. Over gRPC the model's metadata, which are asked for, say what the numbers of
 * the JSON are. */
SX_MUST_USE sx_status sx_client_prepare(sx_client *client, const sx_client_model *model,
                                        sx_bytes json, sx_buf *out_path, sx_buf *out_body);

#endif
