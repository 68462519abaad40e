/* Options of commands that call a model server: the server, who calls, what is called, what is
 * sent. */
#ifndef SX_CLI_CLIENT_ARGS_H
#define SX_CLI_CLIENT_ARGS_H

#include <sextant/client.h>

#include "base/buffer.h"
#include "command.h"

typedef struct sx_client_args {
    const char *ca_file, *certificate_file, *key_file, *api_key, *credentials_file, *scope;
    int64_t timeout;
} sx_client_args;

typedef struct sx_call_args {
    sx_words image, input;
    const char *request, *lines, *protocol;
    const char *model, *version, *label, *signature;
} sx_call_args;

/* clang-format off */
/* The rows, for a command whose options struct has the field `client_args`. */
#define SX_CLIENT_ARGS_ROWS(type)                                                                  \
    {"timeout", SX_OPTION_INT, SX_OPT(type, client_args.timeout),                                  \
     "maximum time for the whole exchange, including retries; sent to gRPC servers as deadline",   \
     "SECONDS", .min = 1, .max = 86400, .group = "The connection"},                                \
    {"cacert", SX_OPTION_STRING, SX_OPT(type, client_args.ca_file),                                \
     "PEM file of the authorities that may sign the server's certificate; default: the system's",  \
     "FILE"},                                                                                      \
    {"cert", SX_OPTION_STRING, SX_OPT(type, client_args.certificate_file),                         \
     "PEM certificate of the client", "FILE"},                                                     \
    {"key", SX_OPTION_STRING, SX_OPT(type, client_args.key_file),                                  \
     "PEM private key of that certificate; default: in the same file", "FILE"},                    \
    {"api-key", SX_OPTION_STRING, SX_OPT(type, client_args.api_key),                               \
     "key to send with each request; @FILE: the first line of a file, which other users of the "   \
     "machine cannot see", "KEY|@FILE"},                                                           \
    {"credentials", SX_OPTION_STRING, SX_OPT(type, client_args.credentials_file),                  \
     "key file of a service account (JSON): it is exchanged for a token at the token_uri that it " \
     "names", "FILE"},                                                                             \
    {"scope", SX_OPTION_STRING, SX_OPT(type, client_args.scope),                                   \
     "scope of that token; default: https://www.googleapis.com/auth/cloud-platform", "SCOPE"}

/* The rows, for a command whose options struct has the field `call_args`. */
#define SX_CALL_ARGS_ROWS(type)                                                                    \
    {"image", SX_OPTION_LIST, SX_OPT(type, call_args.image),                                       \
     "send JPEG or PNG files, one instance each", "FILE"},                                         \
    {"input", SX_OPTION_LIST, SX_OPT(type, call_args.input),                                       \
     "send arrays, one instance per row; NAME may be omitted if the signature has one input",      \
     "[NAME=]X.npy"},                                                                              \
    {"request", SX_OPTION_STRING, SX_OPT(type, call_args.request),                                 \
     "send a file with a JSON request, or with the list of its instances or examples; -: "         \
     "standard input", "FILE"},                                                                    \
    {"lines", SX_OPTION_STRING, SX_OPT(type, call_args.lines),                                     \
     "send the lines of a text, one instance each; -: standard input", "FILE"},                    \
    {"protocol", SX_OPTION_CHOICE, SX_OPT(type, call_args.protocol),                               \
     "protocol; gRPC gives the same answers and is faster for large inputs",                       \
     .choices = "rest|grpc", .group = "What is called"},                                           \
    {"model", SX_OPTION_STRING, SX_OPT(type, call_args.model),                                     \
     "name of the model, if the URL has none", "NAME"},                                            \
    {"version", SX_OPTION_STRING, SX_OPT(type, call_args.version),                                 \
     "version of the model; default: the newest", "N"},                                            \
    {"label", SX_OPTION_STRING, SX_OPT(type, call_args.label), "the version with this label",      \
     "NAME"},                                                                                      \
    {"signature", SX_OPTION_STRING, SX_OPT(type, call_args.signature),                             \
     "signature to call; default: serving_default", "NAME"}
/* clang-format on */

/* The options of a client, in the invocation's arena. A usage error: an API key and credentials. */
SX_MUST_USE sx_status sx_client_args_options(sx_invocation *inv, const sx_client_args *args,
                                             sx_client_options *out);

/* What is called, in the invocation's arena: `*url` loses the model that it names, unless it is
 * used as it is. Usage errors: a version and a label, several inputs. */
SX_MUST_USE sx_status sx_call_args_target(sx_invocation *inv, const sx_call_args *args,
                                          const char **url, sx_client_model *out);
/* Whether there is something to send. */
bool sx_call_args_send(const sx_call_args *args);
/* Appends it as a request in JSON, whose list, if only that is given, is called `member`. */
SX_MUST_USE sx_status sx_call_args_request(sx_invocation *inv, const sx_call_args *args,
                                           const char *member, sx_buf *out);

#endif
