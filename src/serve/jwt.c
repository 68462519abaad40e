/* JSON web tokens; see jwt.h. */
#include "serve/jwt.h"

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum {
    MIN_RSA_BITS = 2048,
    MIN_SECRET_BYTES = 32,
    MAX_SECRET_BYTES = 512,
    COORDINATE_BYTES = 32, /* of a point on P-256, and of half a signature */
    DIGEST_BYTES = 32,
    KID_BYTES = 128,
};

struct key {
    char kid[KID_BYTES]; /* "": none */
    const struct algorithm *algorithm;
    EVP_PKEY *public_key; /* NULL: a secret */
    unsigned char secret[MAX_SECRET_BYTES];
    size_t secret_bytes;
};

struct sx_jwks {
    struct key keys[SX_JWKS_MAX_KEYS];
    size_t count;
};

/* ---- base64url ---- */

/* Decodes strictly: no padding, no other characters, no unused bits. Returns the size, or -1; `out`
 * has room for size * 3 / 4 bytes. */
static ptrdiff_t decode(const char *text, size_t size, unsigned char *out)
{
    uint32_t bits = 0;
    int count = 0;
    ptrdiff_t written = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                          : c >= 'a' && c <= 'z' ? c - 'a' + 26
                          : c >= '0' && c <= '9' ? c - '0' + 52
                          : c == '-'             ? 62
                          : c == '_'             ? 63
                                                 : -1;
        if (value < 0) {
            return -1;
        }
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[written++] = (unsigned char)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    return count == 6 || bits != 0 ? -1 : written;
}

/* ---- Keys ---- */

static ptrdiff_t decode_member(const json_t *key, const char *name, unsigned char *out, size_t room)
{
    const json_t *value = json_object_get(key, name);
    const size_t size = json_string_length(value);
    return size == 0 || size / 4 * 3 + 3 > room ? -1 : decode(json_string_value(value), size, out);
}

/* A public key of these parameters; NULL: they make none. */
static EVP_PKEY *make_public(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    const bool made = context != NULL && parameters != NULL &&
                      EVP_PKEY_fromdata_init(context) == 1 &&
                      EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) == 1;
    OSSL_PARAM_free(parameters);
    EVP_PKEY_CTX_free(context);
    return made ? key : NULL;
}

static bool read_rsa(const json_t *json, struct key *key)
{
    unsigned char n[1024 + 4], e[16];
    const ptrdiff_t n_size = decode_member(json, "n", n, sizeof(n));
    const ptrdiff_t e_size = decode_member(json, "e", e, sizeof(e));
    if (n_size < 0 || e_size < 0) {
        return false;
    }
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *modulus = BN_bin2bn(n, (int)n_size, NULL), *exponent = BN_bin2bn(e, (int)e_size, NULL);
    if (builder != NULL && modulus != NULL && exponent != NULL &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1) {
        key->public_key = make_public("RSA", builder);
    }
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return key->public_key != NULL && EVP_PKEY_get_bits(key->public_key) >= MIN_RSA_BITS;
}

static bool read_ec(const json_t *json, struct key *key)
{
    enum { UNCOMPRESSED = 4 };
    unsigned char point[1 + COORDINATE_BYTES + COORDINATE_BYTES + 4] = {UNCOMPRESSED};
    const char *curve = json_string_value(json_object_get(json, "crv"));
    if (curve == NULL || strcmp(curve, "P-256") != 0 ||
        decode_member(json, "x", point + 1, COORDINATE_BYTES + 4) != COORDINATE_BYTES ||
        decode_member(json, "y", point + 1 + COORDINATE_BYTES, COORDINATE_BYTES + 4) !=
            COORDINATE_BYTES) {
        return false;
    }
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) ==
            1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                         1 + 2 * COORDINATE_BYTES) == 1) {
        key->public_key = make_public("EC", builder);
    }
    OSSL_PARAM_BLD_free(builder);
    return key->public_key != NULL;
}

static bool read_secret(const json_t *json, struct key *key)
{
    const ptrdiff_t size = decode_member(json, "k", key->secret, sizeof(key->secret));
    key->secret_bytes = size < 0 ? 0 : (size_t)size;
    return size >= MIN_SECRET_BYTES;
}

/* ---- Signatures ---- */

static bool verify_digest(const struct key *key, sx_bytes signature, sx_bytes text)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool right =
        context != NULL &&
        EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->public_key) == 1 &&
        EVP_DigestVerify(context, signature.data, signature.size, text.data, text.size) == 1;
    EVP_MD_CTX_free(context);
    return right;
}

/* Two numbers of 32 bytes, which OpenSSL wants as DER. */
static bool verify_ec(const struct key *key, sx_bytes signature, sx_bytes text)
{
    if (signature.size != (size_t)2 * COORDINATE_BYTES) {
        return false;
    }
    unsigned char der[2 * COORDINATE_BYTES + 16], *end = der;
    const unsigned char *halves = signature.data;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(halves, COORDINATE_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(halves + COORDINATE_BYTES, COORDINATE_BYTES, NULL);
    bool right = false;
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair's now */
        const int size = i2d_ECDSA_SIG(pair, &end);
        right = size > 0 && verify_digest(key, (sx_bytes){der, (size_t)size}, text);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return right;
}

static bool verify_hmac(const struct key *key, sx_bytes signature, sx_bytes text)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    return HMAC(EVP_sha256(), key->secret, (int)key->secret_bytes, text.data, text.size, digest,
                &size) != NULL &&
           size == DIGEST_BYTES && signature.size == size &&
           CRYPTO_memcmp(digest, signature.data, size) == 0;
}

static const struct algorithm {
    const char *name, *key_type;
    bool (*read)(const json_t *json, struct key *key);
    bool (*verify)(const struct key *key, sx_bytes signature, sx_bytes text);
} algorithms[] = {
    {"RS256", "RSA", read_rsa, verify_digest},
    {"ES256", "EC", read_ec, verify_ec},
    {"HS256", "oct", read_secret, verify_hmac},
};

/* ---- Sets ---- */

static bool is_text(const json_t *object, const char *name, const char *expected)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL && strcmp(text, expected) == 0;
}

static sx_status read_key(const json_t *json, const char *where, size_t index, sx_jwks *jwks)
{
    const json_t *kid = json_object_get(json, "kid");
    const bool for_others = json_object_get(json, "use") != NULL && !is_text(json, "use", "sig");
    for (size_t i = 0; i < SX_COUNT(algorithms) && !for_others; i++) {
        struct key *key = &jwks->keys[jwks->count];
        if (!is_text(json, "kty", algorithms[i].key_type) ||
            (json_object_get(json, "alg") != NULL && !is_text(json, "alg", algorithms[i].name))) {
            continue;
        }
        if (jwks->count == SX_JWKS_MAX_KEYS || json_string_length(kid) >= KID_BYTES) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: more than %d keys, or too long a kid", where,
                            (int)SX_JWKS_MAX_KEYS);
        }
        snprintf(key->kid, sizeof(key->kid), "%s", kid != NULL ? json_string_value(kid) : "");
        key->algorithm = &algorithms[i];
        jwks->count++;
        if (!algorithms[i].read(json, key)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: key %zu is no usable key of type %s (RSA: at least %d bits; EC: "
                            "P-256; oct: at least %d bytes)",
                            where, index, algorithms[i].key_type, (int)MIN_RSA_BITS,
                            (int)MIN_SECRET_BYTES);
        }
    }
    return SX_OK;
}

sx_status sx_jwks_parse(sx_bytes text, const char *where, sx_jwks **out)
{
    sx_jwks *jwks = sx_alloc(1, sizeof(*jwks));
    json_t *json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *keys = json_object_get(json, "keys");
    sx_status status = jwks == NULL ? sx_no_memory("for keys")
                       : !json_is_array(keys)
                           ? sx_error(SX_INVALID_ARGUMENT,
                                      "%s: expected a JSON web key set, {\"keys\": [...]}", where)
                           : SX_OK;
    for (size_t i = 0; status == SX_OK && i < json_array_size(keys); i++) {
        status = read_key(json_array_get(keys, i), where, i, jwks);
    }
    if (status == SX_OK && jwks->count == 0) {
        status = sx_error(SX_INVALID_ARGUMENT, "%s: no key for RS256, ES256 or HS256", where);
    }
    json_decref(json);
    if (status != SX_OK) {
        sx_jwks_free(jwks);
        return status;
    }
    *out = jwks;
    return SX_OK;
}

void sx_jwks_free(sx_jwks *jwks)
{
    for (size_t i = 0; jwks != NULL && i < jwks->count; i++) {
        EVP_PKEY_free(jwks->keys[i].public_key);
        OPENSSL_cleanse(jwks->keys[i].secret, sizeof(jwks->keys[i].secret));
    }
    sx_free(jwks);
}

/* ---- Tokens ---- */

static sx_status refuse(const char *why)
{
    return sx_error(SX_UNAUTHENTICATED, "the token %s", why);
}

/* The JSON object of a part of a token; NULL: there is none. */
static json_t *read_part(sx_bytes part)
{
    unsigned char text[SX_JWT_MAX_BYTES];
    const ptrdiff_t size = decode(part.data, part.size, text);
    json_t *json = size < 0
                       ? NULL
                       : json_loadb((const char *)text, (size_t)size, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* Whether one of the keys that the header allows has signed the text. */
static bool is_signed(const sx_jwks *jwks, const json_t *header, sx_bytes signature, sx_bytes text)
{
    const json_t *kid = json_object_get(header, "kid");
    bool right = false;
    for (size_t i = 0; i < jwks->count && !right; i++) {
        const struct key *key = &jwks->keys[i];
        if (is_text(header, "alg", key->algorithm->name) &&
            (kid == NULL || is_text(header, "kid", key->kid))) {
            right = key->algorithm->verify(key, signature, text);
        }
    }
    return right;
}

/* Whether "aud" is that name, or a list with it. */
static bool has_audience(const json_t *claims, const char *audience)
{
    const json_t *value = json_object_get(claims, "aud");
    bool found = is_text(claims, "aud", audience);
    for (size_t i = 0; i < json_array_size(value) && !found; i++) {
        const char *one = json_string_value(json_array_get(value, i));
        found = one != NULL && strcmp(one, audience) == 0;
    }
    return found;
}

static sx_status check_claims(const json_t *claims, const sx_jwt_rules *rules,
                              char subject[SX_JWT_SUBJECT])
{
    const json_t *exp = json_object_get(claims, "exp"), *nbf = json_object_get(claims, "nbf");
    const json_t *sub = json_object_get(claims, "sub");
    const double now = (double)rules->now_s;
    if (!json_is_number(exp) || !(json_number_value(exp) + SX_JWT_LEEWAY_S > now)) {
        return refuse("has expired, or has no exp");
    }
    if (nbf != NULL &&
        (!json_is_number(nbf) || !(json_number_value(nbf) - SX_JWT_LEEWAY_S <= now))) {
        return refuse("is not valid yet");
    }
    if (rules->issuer != NULL && !is_text(claims, "iss", rules->issuer)) {
        return refuse("is of another issuer");
    }
    if (rules->audience != NULL && !has_audience(claims, rules->audience)) {
        return refuse("is for another audience");
    }
    const size_t size = json_string_length(sub);
    if (size == 0 || size >= SX_JWT_SUBJECT) {
        return refuse("has no sub, or too long a one");
    }
    memcpy(subject, json_string_value(sub), size + 1);
    return SX_OK;
}

sx_status sx_jwt_verify(const sx_jwks *jwks, sx_bytes token, const sx_jwt_rules *rules,
                        char subject[SX_JWT_SUBJECT])
{
    unsigned char signature[SX_JWT_MAX_BYTES];
    const char *text = token.data;
    if (token.size > SX_JWT_MAX_BYTES) {
        return refuse("is too long");
    }
    const char *first = memchr(text, '.', token.size);
    const char *second =
        first != NULL ? memchr(first + 1, '.', (size_t)(text + token.size - first - 1)) : NULL;
    if (second == NULL) {
        return refuse("does not have three parts");
    }
    const size_t signed_size = (size_t)(second - text);
    const ptrdiff_t signature_size = decode(second + 1, token.size - signed_size - 1, signature);
    json_t *header = read_part((sx_bytes){text, (size_t)(first - text)});
    json_t *claims = read_part((sx_bytes){first + 1, (size_t)(second - first - 1)});
    sx_status status;
    if (signature_size < 0 || header == NULL || claims == NULL) {
        status = refuse("is malformed");
    } else if (json_object_get(header, "crit") != NULL) {
        status = refuse("has critical extensions");
    } else if (!is_signed(jwks, header, (sx_bytes){signature, (size_t)signature_size},
                          (sx_bytes){text, signed_size})) {
        status = refuse("is not signed by a known key");
    } else {
        status = check_claims(claims, rules, subject);
    }
    json_decref(header);
    json_decref(claims);
    return status;
}
