/* A client of model servers: TensorFlow Serving's REST API and PredictionService, as sextant serve,
 * tensorflow_model_server and others speak them.
 *
 *     sx_client *client;
 *     sx_client_answer *answer;
 *     sx_client_options options = {sizeof(options), .protocol = SX_CLIENT_GRPC};
 *     SX_TRY(sx_client_open("localhost:8500", &options, &client));
 *     sx_client_model flowers = {.name = "flowers"};
 *     sx_client_tensor image = {"image_bytes", {sx_type_of(SX_STRING, 1), &jpeg}};
 *     SX_TRY(sx_client_predict(client, &flowers, &image, 1, &answer));
 *     const sx_tensor *p = sx_client_answer_find(answer, "probabilities");
 *     ...
 *     sx_client_answer_free(answer);
 *     sx_client_close(client);
 *
 * A client keeps its connection from call to call. It is used by one thread at a time; threads that
 * call at once have one each. Calls wait for their answer.
 *
 * Errors are the server's, with its text: over gRPC its status, over REST the one that belongs to
 * the HTTP status. Those of the client itself: UNAVAILABLE: no connection; DEADLINE_EXCEEDED: no
 * answer in time; PERMISSION_DENIED: the server's certificate cannot be verified; DATA_LOSS: an
 * answer that is none; RESOURCE_EXHAUSTED: one that is too large. */
#ifndef SEXTANT_CLIENT_H
#define SEXTANT_CLIENT_H

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_client sx_client;

typedef enum sx_client_protocol { SX_CLIENT_REST, SX_CLIENT_GRPC } sx_client_protocol;

/* A zero takes the default in the comment. */
typedef struct sx_client_options {
    size_t struct_size;
    sx_client_protocol protocol; /* REST */
    /* PEM files: certificates that sign the server's (the system's), the client's certificate and
     * its key (none). */
    const char *ca_file, *certificate_file, *key_file;
    const char *api_key; /* sent as Authorization: Bearer; none */
    /* The JSON file of a service account's key: it is exchanged for tokens at the token_uri that it
     * names, which are sent likewise and renewed before they expire. None */
    const char *credentials_file;
    const char *scope; /* of those tokens: https://www.googleapis.com/auth/cloud-platform */
    /* Of a call, with all of its tries; gRPC's servers are told. 60 s */
    int64_t timeout_ms;
    /* Further tries of a call that did not run: it could not be sent, or the server answered that
     * it is overloaded or not ready (UNAVAILABLE; HTTP status 429, 503). If the connection broke
     * meanwhile, only status and metadata are asked for again. The waits double from 0.1 s or are
     * what Retry-After says. 2; negative: none */
    int retries;
    int64_t max_answer_bytes; /* as sent; tensors may take 16 times as much. 64 MiB */
    /* Of gRPC: for how long after timeout_ms the answer of a late call, which fails with
     * DEADLINE_EXCEEDED in any case, is waited for: a server that refuses it then has kept the
     * connection. 0: the connection is closed at once, and the next call opens one */
    int64_t keep_ms;
} sx_client_options;

/* `server`: "http://HOST:PORT", "https://HOST:PORT", "HOST:PORT" (http) or "unix:PATH"; a path
 * behind the port precedes those of the REST API. Nothing is sent yet; `options` may be NULL.
 * Errors: INVALID_ARGUMENT: another form; those of reading credentials_file. */
SX_API SX_MUST_USE sx_status sx_client_open(const char *server, const sx_client_options *options,
                                            sx_client **out_client);
SX_API void sx_client_close(sx_client *client); /* NULL is fine */

/* What is called. */
typedef struct sx_client_model {
    /* NULL, of REST only: the server's address is the URL of a model, perhaps with a version and a
     * verb: "http://localhost:8501/v1/models/flowers/versions/2:predict". */
    const char *name;
    const char *version;   /* "2"; NULL: the newest, */
    const char *label;     /* or the one with this label; NULL: none */
    const char *signature; /* NULL: "serving_default", or the one that the request names */
} sx_client_model;

typedef struct sx_client_tensor {
    const char *name; /* NULL, of an input: that of a signature that has one */
    sx_tensor tensor;
} sx_client_tensor;

/* What a server answered; tensors and texts live as long as it. */
typedef struct sx_client_answer sx_client_answer;

/* Runs a signature on named tensors. Over REST, which has no types, the model's metadata are asked
 * for once, to read the answer; over gRPC only if an input has no name. Errors: also
 * INVALID_ARGUMENT: inputs that the signature does not have. */
SX_API SX_MUST_USE sx_status sx_client_predict(sx_client *client, const sx_client_model *model,
                                               const sx_client_tensor *inputs, int n_inputs,
                                               sx_client_answer **out_answer);

/* The tensors of sx_client_predict(). */
SX_API const sx_client_tensor *sx_client_answer_tensors(const sx_client_answer *answer,
                                                        int *out_count);
/* NULL: there is none of that name. */
SX_API const sx_tensor *sx_client_answer_find(const sx_client_answer *answer, const char *name);

typedef enum sx_client_method {
    SX_CLIENT_PREDICT,  /* {"instances": [...]} or {"inputs": ...} */
    SX_CLIENT_CLASSIFY, /* {"examples": [{...}, ...]} */
    SX_CLIENT_REGRESS,  /* the same */
    SX_CLIENT_STATUS,   /* no request: the versions and their states */
    SX_CLIENT_METADATA, /* no request: the signatures */
} sx_client_method;

/* The same in JSON: requests and answers are those of the REST API over both protocols. Over gRPC
 * the model's metadata say what the numbers of a request are. */
SX_API SX_MUST_USE sx_status sx_client_ask(sx_client *client, sx_client_method method,
                                           const sx_client_model *model, sx_bytes request,
                                           sx_client_answer **out_answer);
SX_API sx_bytes sx_client_answer_json(const sx_client_answer *answer); /* of sx_client_ask() */

SX_API void sx_client_answer_free(sx_client_answer *answer); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
