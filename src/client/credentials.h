/* The key of a service account, exchanged for bearer tokens.
 *
 *   file       {"type": "service_account", "client_email": "...", "private_key": "PEM",
 *               "private_key_id": "...", "token_uri": "https://..."}
 *   assertion  a JSON web token signed with the private key (RS256): iss and sub are the
 *              client_email, aud is the token_uri, for an hour
 *   POST       to the token_uri: grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=
 *   answer     {"access_token": "...", "expires_in": 3600}
 *
 * Source: RFC 7523. Neither key nor tokens are logged or named in errors. */
#ifndef SX_CLIENT_CREDENTIALS_H
#define SX_CLIENT_CREDENTIALS_H

#include <sextant/types.h>

#include "base/arena.h"

typedef struct sx_credentials sx_credentials;

enum { SX_TOKEN_HEADER = 16 * 1024 };

/* `scope` may be NULL. Errors name the file: of reading it; INVALID_ARGUMENT: not such a key, or a
 * token_uri that is neither https:// nor on this machine. */
SX_MUST_USE sx_status sx_credentials_read(const char *path, const char *scope,
                                          sx_credentials **out);
void sx_credentials_free(sx_credentials *credentials); /* NULL is allowed */

/* "Authorization: Bearer TOKEN"; asks for a token if there is none that is valid for another
 * minute. UNAUTHENTICATED: the token_uri refused; UNAVAILABLE. */
SX_MUST_USE sx_status sx_credentials_header(sx_credentials *credentials, int timeout_ms,
                                            char header[SX_TOKEN_HEADER]);
/* The token is not valid any more. */
void sx_credentials_forget(sx_credentials *credentials);

#endif
