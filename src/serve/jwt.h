/* JSON web tokens, signed (JWS compact): verified against the keys of a JSON web key set.
 *
 *   token   base64url(header) . base64url(claims) . base64url(signature)
 *   set     {"keys": [{"kty": "RSA", "kid": "a", "n": "...", "e": "..."}, ...]}
 *
 * RS256 needs a key of type RSA with at least 2048 bits, ES256 one of type EC on P-256, HS256 one
 * of type oct with at least 32 bytes: a token cannot choose how its key is used. "none" and
 * critical extensions are refused, and what a token names (kid, jku) is compared or ignored, never
 * opened. Source: RFC 7515, 7517, 7518, 7519. */
#ifndef SX_SERVE_JWT_H
#define SX_SERVE_JWT_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

typedef struct sx_jwks sx_jwks;

enum {
    SX_JWT_MAX_BYTES = 8 * 1024, /* of a token */
    SX_JWT_SUBJECT = 128,        /* of "sub", with its NUL */
    SX_JWT_LEEWAY_S = 30,        /* how far clocks may differ */
    SX_JWKS_MAX_KEYS = 64,
};

/* Reads a set; `where` names it in errors. Keys of other types or for encryption are passed over.
 * INVALID_ARGUMENT: not a set, a malformed key, no usable key. */
SX_MUST_USE sx_status sx_jwks_parse(sx_bytes text, const char *where, sx_jwks **out);
void sx_jwks_free(sx_jwks *jwks); /* NULL is allowed */

/* What a token's claims have to say; NULL: anything. */
typedef struct sx_jwt_rules {
    const char *issuer, *audience;
    int64_t now_s; /* since 1970 */
} sx_jwt_rules;

/* Verifies a token: its signature, exp (required), nbf, iss and aud. UNAUTHENTICATED says why not,
 * without quoting the token. */
SX_MUST_USE sx_status sx_jwt_verify(const sx_jwks *jwks, sx_bytes token, const sx_jwt_rules *rules,
                                    char subject[SX_JWT_SUBJECT]);

#endif
