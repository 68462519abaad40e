/* The signatures of a model as its server tells them: GetModelMetadata's answer, in protobuf or in
 * JSON. Dimensions that are unknown are SX_UNKNOWN_DIM. */
#ifndef SX_CLIENT_SIGNATURES_H
#define SX_CLIENT_SIGNATURES_H

#include "base/arena.h"
#include "serve/model.h"

typedef struct sx_client_signatures {
    int64_t version; /* of the model */
    size_t count;
    const sx_serve_signature *rows; /* [count] */
} sx_client_signatures;

/* In memory of the arena. DATA_LOSS: not such an answer; `where` names the server. */
SX_MUST_USE sx_status sx_client_signatures_of_json(sx_bytes text, const char *where,
                                                   sx_arena *arena, sx_client_signatures *out);
SX_MUST_USE sx_status sx_client_signatures_of_proto(sx_bytes message, const char *where,
                                                    sx_arena *arena, sx_client_signatures *out);

#endif
