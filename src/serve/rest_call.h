/* A request of REST that runs a model: what its methods (predict, KServe's infer) have in common.
 *
 *   loop thread       sx_rest_call_begin: acquires the version, submits the call (call.h)
 *   executor thread   gunzips the body, then the method: reads it, sx_rest_call_run, prints */
#ifndef SX_SERVE_REST_CALL_H
#define SX_SERVE_REST_CALL_H

#include "base/buffer.h"
#include "serve/call.h"
#include "serve/predict_json.h"
#include "serve/rest.h"
#include "serve/router.h"

typedef struct sx_rest_call sx_rest_call;

/* Reads `body`, runs the model, appends the answer to `out`. An error is answered as
 * {"error": "..."}. */
typedef sx_status sx_rest_method(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots,
                                 sx_arena *arena, sx_buf *out);

/* In the exchange's scratch memory, until the answer has been sent. */
struct sx_rest_call {
    sx_call call; /* must be first: converted by address */
    sx_rest *rest;
    sx_rest_method *method;
    int http_status; /* of an error; 0 = derived from its code */
    /* Of the answer; the method may change them, and leaves the headers room for those of CORS. */
    char content_type[96];
    char headers[240];
};

void sx_rest_call_begin(sx_rest *rest, sx_http_exchange *exchange, const sx_model_spec *spec,
                        sx_metric_api api, sx_rest_method *method);
/* sx_call_run, unless nobody waits for the answer. */
SX_MUST_USE sx_status sx_rest_call_run(sx_rest_call *call, const sx_serve_signature *signature,
                                       const sx_tensor *inputs, sx_arena *arena,
                                       sx_tensor **out_outputs);

sx_manager *sx_rest_manager(const sx_rest *rest);
sx_managed *sx_rest_managed(const sx_rest *rest); /* NULL = none */
sx_calls *sx_rest_calls(const sx_rest *rest);
bool sx_rest_is_secure(const sx_rest *rest);
sx_float_format sx_rest_float_format(const sx_rest *rest);

/* Sends `body` and empties it. */
void sx_rest_respond(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                     const char *content_type, sx_buf *body);
/* Takes the status. Answers {"error": "..."}; to managed prediction as the next function does. */
void sx_rest_respond_error(const sx_rest *rest, sx_http_exchange *exchange, sx_status status);
/* The same as {"error": {"code": 404, "message": "...", "status": "NOT_FOUND"}}. `http_status`: 0 =
 * derived from its code. */
void sx_rest_respond_google_error(const sx_rest *rest, sx_http_exchange *exchange, int http_status,
                                  sx_status status);
/* Takes the status of making `body`, and empties that. Answers 200 with it, or the error. */
void sx_rest_respond_made(const sx_rest *rest, sx_http_exchange *exchange, sx_status status,
                          const char *content_type, sx_buf *body);

#endif
