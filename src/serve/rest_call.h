/* A request of REST that runs a model: what its methods (predict, KServe's infer) have in common.
 *
 *   loop thread       sx_rest_call_begin: acquires the version, submits the call (call.h)
 *   executor thread   gunzips the body, then the method: reads it, and prints what has run */
#ifndef SX_SERVE_REST_CALL_H
#define SX_SERVE_REST_CALL_H

#include "base/buffer.h"
#include "serve/call.h"
#include "serve/predict_json.h"
#include "serve/rest.h"
#include "serve/router.h"

typedef struct sx_rest_call sx_rest_call;

/* An error is answered as {"error": "..."}. */
typedef struct sx_rest_method {
    /* Reads `body`: says what is to run, and keeps what `print` needs (call->call.read). The slots
     * are the call's until it has been answered. */
    sx_status (*read)(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots);
    /* Appends the answer to the call's `out`. */
    sx_status (*print)(sx_rest_call *call, const sx_tensor *outputs);
    /* What the client is told instead of an error whose HTTP status is not set; takes it. NULL: the
     * same. */
    sx_status (*explain)(sx_rest_call *call, sx_status status);
} sx_rest_method;

/* In the exchange's scratch memory, until the answer has been sent. */
struct sx_rest_call {
    sx_call call; /* must be first: converted by address */
    sx_rest *rest;
    const sx_rest_method *method;
    sx_predict_slots slots;
    int http_status; /* of an error; 0 = derived from its code */
    /* Of the answer; the method may change them, and leaves the headers room for those of CORS. */
    char content_type[96];
    char headers[240];
};

void sx_rest_call_begin(sx_rest *rest, sx_http_exchange *exchange, const sx_model_spec *spec,
                        sx_metric_api api, const sx_rest_method *method);

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
