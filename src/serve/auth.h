/* Who calls, and what they may call. Without any of the files below everything is allowed; with one
 * of them, each request but those for health needs an identity:
 *
 *   an API key              Authorization: Bearer KEY, or X-API-Key: KEY     key:NAME
 *   a token (jwt.h)         Authorization: Bearer TOKEN                      jwt:SUBJECT
 *   a client's certificate  on a TLS port with client_verify: its CN         cert:CN
 *
 *   api_keys_file    NAME KEY, or NAME sha256:HEX, on each line
 *   jwks_file        a JSON web key set
 *   rules_file       IDENTITY MODEL..., on each line; "*" stands for every identity or model, and
 *                    the model "@admin" for changing the configuration; MODEL:predict gives the
 *                    right to run the model alone, not to look at it; the word rate=N bounds
 *                    the requests of each identity to each model that the rule allows to N a
 *                    second, unless a rule before it allows them. Without the file each
 *                    identity may call every model, and nobody may change the configuration
 *
 * Empty lines and those that begin with # are ignored. The files are read again when they change,
 * within a second; a set with a mistake is reported in the log, and the one before stays. Keys are
 * compared by their digests, all of them and in constant time. */
#ifndef SX_SERVE_AUTH_H
#define SX_SERVE_AUTH_H

#include <stdbool.h>

#include "net/http_server.h"

typedef struct sx_auth sx_auth;

#define SX_AUTH_ADMIN "@admin"

/* NULL: not given. */
typedef struct sx_auth_config {
    const char *api_keys_file, *jwks_file, *rules_file;
    const char *jwt_issuer, *jwt_audience;
} sx_auth_config;

/* `*out` is NULL if no file is given. Errors name file and line. */
SX_MUST_USE sx_status sx_auth_create(const sx_auth_config *config, sx_auth **out);
void sx_auth_destroy(sx_auth *auth); /* NULL is allowed */

/* What a request does with a model. */
typedef enum sx_auth_use {
    SX_AUTH_LOOK,
    SX_AUTH_PREDICT, /* it will run it */
    SX_AUTH_RUN,     /* it runs it now: counts in the rule's rate */
} sx_auth_use;

/* Whether a request may call the model of that name; NULL: whether it has an identity at all.
 * UNAUTHENTICATED, PERMISSION_DENIED, RESOURCE_EXHAUSTED (too often). `auth` of NULL allows
 * everything. Any thread. */
SX_MUST_USE sx_status sx_auth_check(sx_auth *auth, const sx_http_exchange *exchange,
                                    const char *model, sx_auth_use use);

/* ---- Parts ---- */

/* The same of what a request brought. */
typedef struct sx_auth_proof {
    sx_http_text authorization, api_key; /* the headers; data NULL: none */
    const char *certificate;             /* the CN; NULL: none */
    sx_auth_use use;
} sx_auth_proof;
SX_MUST_USE sx_status sx_auth_check_proof(sx_auth *auth, const sx_auth_proof *proof,
                                          const char *model);

#endif
