#include "harness.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <time.h>

#include "base/checked.h"
#include "net/client.h"
#include "net/http2_client.h"
#include "serve/auth.h"
#include "serve/fake_server.h"
#include "serve/jwt.h"

/* ---- Tokens ---- */

static const char secret[] = "0123456789abcdef0123456789abcdef";

struct keys {
    EVP_PKEY *rsa, *ec;
    char set[4096]; /* the key set's text */
    sx_jwks *jwks;
};

static size_t encode(const void *data, size_t size, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *bytes = data;
    size_t written = 0;
    for (size_t bit = 0; bit < size * 8; bit += 6) {
        const size_t at = bit / 8;
        const unsigned pair = (unsigned)bytes[at] << 8 | (at + 1 < size ? bytes[at + 1] : 0);
        out[written++] = digits[pair >> (10 - bit % 8) & 63];
    }
    out[written] = '\0';
    return written;
}

static void encode_number(EVP_PKEY *key, const char *name, int size, char *out)
{
    BIGNUM *number = NULL;
    unsigned char bytes[512];
    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
    size = size > 0 ? size : BN_num_bytes(number);
    assert_int_equal(BN_bn2binpad(number, bytes, size), size);
    encode(bytes, (size_t)size, out);
    BN_free(number);
}

static void open_keys(struct keys *keys)
{
    char n[400], x[60], y[60], k[60];
    keys->rsa = EVP_RSA_gen(2048);
    keys->ec = EVP_EC_gen("P-256");
    encode_number(keys->rsa, OSSL_PKEY_PARAM_RSA_N, 0, n);
    encode_number(keys->ec, OSSL_PKEY_PARAM_EC_PUB_X, 32, x);
    encode_number(keys->ec, OSSL_PKEY_PARAM_EC_PUB_Y, 32, y);
    encode(secret, 32, k);
    snprintf(keys->set, sizeof(keys->set),
             "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"use\":\"sig\",\"alg\":\"RS256\","
             "\"n\":\"%s\",\"e\":\"AQAB\"},"
             "{\"kty\":\"EC\",\"kid\":\"e\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"},"
             "{\"kty\":\"oct\",\"kid\":\"h\",\"k\":\"%s\"},{\"kty\":\"OKP\"},"
             "{\"kty\":\"RSA\",\"use\":\"enc\"}]}",
             n, x, y, k);
    assert_ok(sx_jwks_parse((sx_bytes){keys->set, strlen(keys->set)}, "keys.json", &keys->jwks));
}

static void close_keys(struct keys *keys)
{
    sx_jwks_free(keys->jwks);
    EVP_PKEY_free(keys->rsa);
    EVP_PKEY_free(keys->ec);
}

static size_t sign_digest(EVP_PKEY *key, const char *text, unsigned char *out, size_t room)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t size = room;
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, out, &size, (const unsigned char *)text, strlen(text)),
                     1);
    EVP_MD_CTX_free(context);
    return size;
}

/* The signature of an algorithm; of others none. */
static size_t sign(const struct keys *keys, const char *how, const char *text, unsigned char *out)
{
    unsigned char der[200];
    unsigned int size = 0;
    if (strcmp(how, "RS256") == 0) {
        return sign_digest(keys->rsa, text, out, 512);
    }
    if (strcmp(how, "HS256") == 0) {
        HMAC(EVP_sha256(), secret, 32, (const unsigned char *)text, strlen(text), out, &size);
        return size;
    }
    if (strcmp(how, "ES256") != 0) {
        return 0;
    }
    const unsigned char *at = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)sign_digest(keys->ec, text, der, sizeof(der)));
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + 32, 32);
    ECDSA_SIG_free(pair);
    return 64;
}

static void make_token(const struct keys *keys, const char *how, const char *header,
                       const char *claims, char out[4096])
{
    unsigned char signature[512];
    size_t size = encode(header, strlen(header), out);
    out[size++] = '.';
    size += encode(claims, strlen(claims), out + size);
    const size_t signature_size = sign(keys, how, out, signature);
    out[size++] = '.';
    encode(signature, signature_size, out + size);
}

enum { NOW = 1000000 };

static const sx_jwt_rules rules = {"us", "serving", NOW};

static sx_status verify(const struct keys *keys, const char *token, char subject[SX_JWT_SUBJECT])
{
    return sx_jwt_verify(keys->jwks, (sx_bytes){token, strlen(token)}, &rules, subject);
}

static const char good_claims[] = "{\"sub\":\"anna\",\"iss\":\"us\",\"aud\":[\"x\",\"serving\"],"
                                  "\"exp\":1000010,\"nbf\":999990}";

static void test_serve_auth__verifies_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *how, *header;
    } rows[] = {
        {"RS256", "{\"alg\":\"RS256\",\"kid\":\"r\"}"},
        {"RS256", "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"jku\":\"http://other.example/\"}"},
        {"ES256", "{\"alg\":\"ES256\",\"kid\":\"e\"}"},
        {"HS256", "{\"alg\":\"HS256\",\"kid\":\"h\"}"},
    };
    struct keys keys;
    open_keys(&keys);
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        char token[4096], subject[SX_JWT_SUBJECT] = "";
        make_token(&keys, rows[i].how, rows[i].header, good_claims, token);
        assert_ok(verify(&keys, token, subject));
        assert_string_equal(subject, "anna");
        /* No byte of it can be changed. */
        for (size_t at = 0, size = strlen(token); at < size; at += 7) {
            const char before = token[at];
            token[at] = before == 'A' ? 'B' : 'A';
            sx_status status = verify(&keys, token, subject);
            if (sx_status_code(status) != SX_UNAUTHENTICATED) {
                fail_msg("%s: byte %zu of %s is not signed", rows[i].how, at, token);
            }
            sx_status_free(status);
            token[at] = before;
        }
    }
    close_keys(&keys);
}

static void test_serve_auth__refuses_forgeries(void **state)
{
    (void)state;
#define CLAIMS(text) "{\"sub\":\"anna\",\"iss\":\"us\",\"aud\":\"serving\"," text "}"
    static const char rs[] = "{\"alg\":\"RS256\"}";
    static const struct {
        const char *how, *header, *claims, *part;
    } rows[] = {
        {"none", "{\"alg\":\"none\"}", good_claims, "known key"},
        {"none", "{\"alg\":\"None\"}", good_claims, "known key"},
        {"none", "{\"alg\":\"NONE\"}", good_claims, "known key"},
        {"none", "{\"alg\":\"\"}", good_claims, "known key"},
        {"none", "{\"alg\":null}", good_claims, "known key"},
        {"none", "{}", good_claims, "known key"},
        {"none", rs, good_claims, "known key"},
        {"none", "{\"alg\":\"ES256\"}", good_claims, "known key"},
        {"none", "{\"alg\":\"HS256\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"HS256\"}", good_claims, "known key"},
        {"HS256", rs, good_claims, "known key"},
        {"ES256", rs, good_claims, "known key"},
        {"RS256", "{\"alg\":\"ES256\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS384\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"rs256\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":[\"RS256\"]}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS256\",\"kid\":\"e\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS256\",\"kid\":\"../../etc/passwd\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS256\",\"kid\":\"\"}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS256\",\"kid\":7}", good_claims, "known key"},
        {"RS256", "{\"alg\":\"RS256\",\"crit\":[\"exp\"]}", good_claims, "critical"},
        {"RS256", "{\"alg\":\"RS256\",\"alg\":\"RS256\"}", good_claims, "malformed"},
        {"RS256", "[\"RS256\"]", good_claims, "malformed"},
        {"RS256", "", good_claims, "malformed"},
        {"RS256", rs, "", "malformed"},
        {"RS256", rs, "7", "malformed"},
        {"RS256", rs, "{\"exp\":1000010,\"exp\":1}", "malformed"},
        {"RS256", rs, CLAIMS("\"nbf\":1"), "no exp"},
        {"RS256", rs, CLAIMS("\"exp\":999900"), "has expired"},
        {"RS256", rs, CLAIMS("\"exp\":-1"), "has expired"},
        {"RS256", rs, CLAIMS("\"exp\":\"1000010\""), "no exp"},
        {"RS256", rs, CLAIMS("\"exp\":true"), "no exp"},
        {"RS256", rs, CLAIMS("\"exp\":1000010,\"nbf\":1000100"), "not valid yet"},
        {"RS256", rs, CLAIMS("\"exp\":1000010,\"nbf\":\"1\""), "not valid yet"},
        {"RS256", rs, "{\"sub\":\"a\",\"aud\":\"serving\",\"exp\":1000010}", "another issuer"},
        {"RS256", rs, "{\"sub\":\"a\",\"iss\":\"them\",\"aud\":\"serving\",\"exp\":1000010}",
         "another issuer"},
        {"RS256", rs, "{\"sub\":\"a\",\"iss\":\"us\",\"exp\":1000010}", "another audience"},
        {"RS256", rs, "{\"sub\":\"a\",\"iss\":\"us\",\"aud\":\"serving2\",\"exp\":1000010}",
         "another audience"},
        {"RS256", rs, "{\"sub\":\"a\",\"iss\":\"us\",\"aud\":[[\"serving\"]],\"exp\":1000010}",
         "another audience"},
        {"RS256", rs, "{\"iss\":\"us\",\"aud\":\"serving\",\"exp\":1000010}", "no sub"},
        {"RS256", rs, "{\"sub\":\"\",\"iss\":\"us\",\"aud\":\"serving\",\"exp\":1000010}",
         "no sub"},
        {"RS256", rs, "{\"sub\":7,\"iss\":\"us\",\"aud\":\"serving\",\"exp\":1000010}", "no sub"},
        {"RS256", rs, "{\"sub\":\"a\\u0000b\",\"iss\":\"us\",\"aud\":\"serving\",\"exp\":1000010}",
         "malformed"},
    };
    struct keys keys;
    char token[4096], subject[SX_JWT_SUBJECT];
    open_keys(&keys);
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        make_token(&keys, rows[i].how, rows[i].header, rows[i].claims, token);
        sx_status status = verify(&keys, token, subject);
        if (sx_status_code(status) != SX_UNAUTHENTICATED ||
            strstr(sx_status_message(status), rows[i].part) == NULL) {
            fail_msg("%s %s: %s", rows[i].header, rows[i].claims, sx_status_message(status));
        }
        sx_status_free(status);
    }
    static const char *const texts[] = {"",    ".",     "..",       "...",
                                        "a.b", "a.b.c", "e30.e30.", "e30.e30.e30"};
    for (size_t i = 0; i < SX_COUNT(texts); i++) {
        assert_error(verify(&keys, texts[i], subject), SX_UNAUTHENTICATED, "the token");
    }
    /* What other decoders take: padding, spaces, unused bits, a fourth part. */
    static const char *const ends[] = {"=", " ", "\n", ".", ".e30", "A"};
    for (size_t i = 0; i < SX_COUNT(ends); i++) {
        make_token(&keys, "RS256", rs, good_claims, token);
        memcpy(token + strlen(token), ends[i], strlen(ends[i]) + 1);
        assert_error(verify(&keys, token, subject), SX_UNAUTHENTICATED, "the token");
    }
    char *large = calloc(1, SX_JWT_MAX_BYTES + 2);
    memset(large, 'a', SX_JWT_MAX_BYTES + 1);
    assert_error(verify(&keys, large, subject), SX_UNAUTHENTICATED, "too long");
    free(large);
    /* The RSA key's own bytes as a secret. */
    char n[400];
    unsigned char signature[64];
    unsigned int size = 0;
    encode_number(keys.rsa, OSSL_PKEY_PARAM_RSA_N, 0, n);
    static const char hs[] = "{\"alg\":\"HS256\",\"kid\":\"r\"}";
    make_token(&keys, "none", hs, good_claims, token);
    HMAC(EVP_sha256(), n, (int)strlen(n), (const unsigned char *)token, strlen(token) - 1,
         signature, &size);
    encode(signature, size, token + strlen(token));
    assert_error(verify(&keys, token, subject), SX_UNAUTHENTICATED, "known key");
    close_keys(&keys);
}

static void test_serve_auth__refuses_key_sets(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "expected a JSON web key set"},
        {"[]", "expected a JSON web key set"},
        {"{\"keys\":[]}", "no key for"},
        {"{\"keys\":[{\"kty\":\"OKP\"}]}", "no key for"},
        {"{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2hvcnQ\"}]}", "key 0 is no usable key of type oct"},
        {"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
         "no usable key of type RSA"},
        {"{\"keys\":[{\"kty\":\"RSA\"}]}", "no usable key of type RSA"},
        {"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}", "type EC"},
        {"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-521\",\"x\":\"AA\",\"y\":\"AA\"}]}", "type EC"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_jwks *jwks = NULL;
        assert_error(sx_jwks_parse((sx_bytes){rows[i].text, strlen(rows[i].text)}, "k.json", &jwks),
                     SX_INVALID_ARGUMENT, rows[i].part);
    }
}

/* ---- Identities and rules ---- */

static void put_file(const char *path, const char *text)
{
    char beside[200];
    snprintf(beside, sizeof(beside), "%s.new", path);
    FILE *file = fopen(beside, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(beside, path), 0);
}

static sx_http_text text_of(const char *text)
{
    return text == NULL ? (sx_http_text){0} : (sx_http_text){text, strlen(text)};
}

static void expect_proof(sx_auth *auth, const char *authorization, const char *key,
                         const char *certificate, const char *model, sx_code code)
{
    const sx_auth_proof proof = {text_of(authorization), text_of(key), certificate, SX_AUTH_LOOK};
    sx_status status = sx_auth_check_proof(auth, &proof, model);
    if (sx_status_code(status) != code) {
        fail_msg("%s %s %s calls %s: %s %s, expected %s", authorization ? authorization : "",
                 key ? key : "", certificate ? certificate : "", model ? model : "",
                 sx_code_name(sx_status_code(status)), sx_status_message(status),
                 sx_code_name(code));
    }
    sx_status_free(status);
}

static void test_serve_auth__rules_say_who_calls_what(void **state)
{
    (void)state;
    char dir[] = "/tmp/sextant-auth-XXXXXX", keys_path[100], rules_path[100];
    sx_auth *auth = NULL;
    assert_non_null(mkdtemp(dir));
    snprintf(keys_path, sizeof(keys_path), "%s/keys", dir);
    snprintf(rules_path, sizeof(rules_path), "%s/rules", dir);
    put_file(keys_path, "# who\n\n anna  k1\nben\tsha256:"
                        "4f57ba0f3c6a6c0ff2ebe4d6b5a6d0d8a7a1c9a7f0b3f1f6f5b3b8a1c7d9e0f1\n");
    sx_auth_config config = {.api_keys_file = keys_path};
    assert_ok(sx_auth_create(&config, &auth));
    expect_proof(auth, "Bearer k1", NULL, NULL, "m", SX_CODE_OK);
    expect_proof(auth, "bearer k1", NULL, NULL, NULL, SX_CODE_OK);
    expect_proof(auth, NULL, "k1", NULL, "m", SX_CODE_OK);
    expect_proof(auth, NULL, "k1", NULL, SX_AUTH_ADMIN, SX_PERMISSION_DENIED);
    expect_proof(auth, NULL, "k", NULL, "m", SX_UNAUTHENTICATED);
    expect_proof(auth, NULL, "", NULL, "m", SX_UNAUTHENTICATED);
    expect_proof(auth, "Basic k1", NULL, NULL, "m", SX_UNAUTHENTICATED);
    expect_proof(auth, NULL, NULL, NULL, "m", SX_UNAUTHENTICATED);
    expect_proof(auth, "Bearer a.b.c", NULL, NULL, "m", SX_UNAUTHENTICATED);
    /* a wrong key is not made good by a certificate */
    expect_proof(auth, "Bearer no", NULL, "machine", "m", SX_UNAUTHENTICATED);
    sx_auth_destroy(auth);

    put_file(rules_path, "key:anna m other solo:predict\nkey:anna slow rate=0.01\ncert:machine "
                         "*\n* open\nkey:root @admin\n");
    put_file(keys_path, "anna k1\nroot k2\n");
    config.rules_file = rules_path;
    assert_ok(sx_auth_create(&config, &auth));
    expect_proof(auth, NULL, "k1", NULL, "m", SX_CODE_OK);
    expect_proof(auth, NULL, "k1", NULL, "open", SX_CODE_OK);
    expect_proof(auth, NULL, "k1", NULL, "solo", SX_PERMISSION_DENIED);
    const sx_auth_proof predict = {.api_key = text_of("k1"), .use = SX_AUTH_PREDICT};
    assert_ok(sx_auth_check_proof(auth, &predict, "solo"));
    assert_ok(sx_auth_check_proof(auth, &predict, "m"));
    assert_error(sx_auth_check_proof(auth, &predict, "sol"), SX_PERMISSION_DENIED, "may not call");
    assert_error(sx_auth_check_proof(auth, &predict, "solo:predict"), SX_PERMISSION_DENIED, "");
    expect_proof(auth, NULL, "k1", NULL, "secret", SX_PERMISSION_DENIED);
    expect_proof(auth, NULL, "k1", NULL, NULL, SX_CODE_OK);
    sx_auth_proof run = predict;
    run.use = SX_AUTH_RUN;
    assert_ok(sx_auth_check_proof(auth, &predict, "slow"));
    assert_ok(sx_auth_check_proof(auth, &run, "slow"));
    assert_error(sx_auth_check_proof(auth, &run, "slow"), SX_RESOURCE_EXHAUSTED,
                 "key:anna may call model slow 0.01 times a second");
    assert_ok(sx_auth_check_proof(auth, &predict, "slow")); /* only runs count */
    assert_ok(sx_auth_check_proof(auth, &run, "m"));
    expect_proof(auth, NULL, "k2", NULL, SX_AUTH_ADMIN, SX_CODE_OK);
    expect_proof(auth, NULL, "k2", NULL, "m", SX_PERMISSION_DENIED);
    expect_proof(auth, NULL, NULL, "machine", "secret", SX_CODE_OK);
    expect_proof(auth, NULL, NULL, "machine", SX_AUTH_ADMIN, SX_PERMISSION_DENIED);
    expect_proof(auth, NULL, NULL, "other", "m", SX_PERMISSION_DENIED);

    /* A change is seen; a mistake changes nothing. */
    put_file(keys_path, "anna k3\n");
    const sx_auth_proof proof = {.api_key = text_of("k3")};
    sx_status status = sx_auth_check_proof(auth, &proof, "m");
    for (int i = 0; i < 500 && status != SX_OK; i++) {
        fake_sleep(20);
        sx_status_free(status);
        status = sx_auth_check_proof(auth, &proof, "m");
    }
    assert_ok(status);
    expect_proof(auth, NULL, "k1", NULL, "m", SX_UNAUTHENTICATED);
    put_file(keys_path, "anna\n");
    fake_sleep(1200);
    expect_proof(auth, NULL, "k3", NULL, "m", SX_CODE_OK);
    sx_auth_destroy(auth);

    static const struct {
        const char *keys, *rules, *part;
    } bad[] = {
        {"anna\n", "", "keys:1: expected NAME KEY"},
        {"a b\nanna k1 k2\n", "", "keys:2: expected NAME KEY"},
        {"anna sha256:00\n", "", "keys:1: sha256:"},
        {"", "key:anna\n", "rules:1: expected IDENTITY MODEL"},
        {"", "\nanna m\n", "rules:2: expected IDENTITY MODEL"},
    };
    for (size_t i = 0; i < SX_COUNT(bad); i++) {
        put_file(keys_path, bad[i].keys);
        put_file(rules_path, bad[i].rules);
        assert_error(sx_auth_create(&config, &auth), SX_INVALID_ARGUMENT, bad[i].part);
    }
    unlink(keys_path);
    unlink(rules_path);
    rmdir(dir);
}

static void test_serve_auth__tokens_are_identities(void **state)
{
    (void)state;
    char dir[] = "/tmp/sextant-auth-XXXXXX", path[100], rules_path[100], token[4096], claims[200];
    char header[5000];
    struct keys keys;
    sx_auth *auth = NULL;
    open_keys(&keys);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/jwks.json", dir);
    snprintf(rules_path, sizeof(rules_path), "%s/rules", dir);
    put_file(path, keys.set);
    put_file(rules_path, "jwt:anna m\n");
    const sx_auth_config config = {.jwks_file = path, .rules_file = rules_path, .jwt_issuer = "us"};
    assert_ok(sx_auth_create(&config, &auth));
    snprintf(claims, sizeof(claims), "{\"sub\":\"anna\",\"iss\":\"us\",\"exp\":%lld}",
             (long long)time(NULL) + 100);
    make_token(&keys, "ES256", "{\"alg\":\"ES256\"}", claims, token);
    snprintf(header, sizeof(header), "Bearer %s", token);
    expect_proof(auth, header, NULL, NULL, "m", SX_CODE_OK);
    expect_proof(auth, header, NULL, NULL, "other", SX_PERMISSION_DENIED);
    expect_proof(auth, NULL, token, NULL, "m", SX_UNAUTHENTICATED);
    sx_auth_destroy(auth);
    close_keys(&keys);
    unlink(path);
    unlink(rules_path);
    rmdir(dir);
}

/* ---- A server ---- */

static int answer_of(int port, const char *path, const char *header, char *head)
{
    char request[600];
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, header);
    const struct answer answer = client_exchange(port, request, strlen(request));
    snprintf(head, 2048, "%s", answer.head);
    return answer.status;
}

static void test_serve_auth__guards_a_server(void **state)
{
    (void)state;
    char base[64], keys_path[100], rules_path[100], head[2048];
    struct fake_runtime runtime = {0};
    sx_server *server = NULL;
    struct h2_client client;
    fake_base_path(base);
    fake_publish(base, "2", 2, 0, 0, 0);
    snprintf(keys_path, sizeof(keys_path), "%s/keys", base);
    snprintf(rules_path, sizeof(rules_path), "%s/rules", base);
    put_file(keys_path, "anna k1\nben k2\n");
    put_file(rules_path, "key:anna m\n");
    const sx_server_config config = {
        .port = SX_ANY_PORT, .auth = {.api_keys_file = keys_path, .rules_file = rules_path}};
    fake_serve(base, &runtime, config, &server);
    assert_true(sx_server_wait_ready(server, 5000));
    const int port = sx_server_rest_port(server);
    assert_int_equal(answer_of(port, "/healthz", "", head), 200);
    assert_int_equal(answer_of(port, "/v2/health/ready", "", head), 200);
    assert_int_equal(answer_of(port, "/v1/models/m", "", head), 401);
    assert_non_null(strstr(head, "WWW-Authenticate: Bearer\r\n"));
    assert_int_equal(answer_of(port, "/monitoring/prometheus/metrics", "", head), 401);
    assert_int_equal(answer_of(port, "/v1/models/m", "X-API-Key: k1\r\n", head), 200);
    assert_int_equal(answer_of(port, "/v2/models/m", "Authorization: Bearer k1\r\n", head), 200);
    assert_int_equal(answer_of(port, "/v1/models/m", "X-API-Key: k2\r\n", head), 403);
    assert_int_equal(answer_of(port, "/v1/models/n", "X-API-Key: k1\r\n", head), 403);
    assert_int_equal(answer_of(port, "/monitoring/prometheus/metrics", "X-API-Key: k2\r\n", head),
                     200);

    /* ModelInfer of the model: UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT (no input). */
    static const struct {
        const char *key, *status;
    } rows[] = {
        {"no", "grpc-status: 16\n"}, {"k2", "grpc-status: 7\n"}, {"k1", "grpc-status: 3\n"}};
    h2_open(&client, sx_server_grpc_port(server));
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const char *const headers[] = {"content-type", "application/grpc", "te", "trailers",
                                       "x-api-key",    rows[i].key,        NULL};
        struct h2_answer *answer =
            h2_wait(&client, h2_request(&client, "/inference.GRPCInferenceService/ModelInfer",
                                        "\0\0\0\0\3\x0a\1m", 8, headers));
        if (strstr(answer->fields, rows[i].status) == NULL) {
            fail_msg("%s: %s", rows[i].key, answer->fields);
        }
    }
    const char *const anonymous[] = {"content-type", "application/grpc", "te", "trailers", NULL};
    struct h2_answer *health = h2_wait(
        &client, h2_request(&client, "/grpc.health.v1.Health/Check", "\0\0\0\0\0", 5, anonymous));
    assert_non_null(strstr(health->fields, "grpc-status: 0\n"));
    h2_close(&client);
    sx_server_destroy(server);
    unlink(keys_path);
    unlink(rules_path);
    fake_remove_version(base, "2");
    rmdir(base);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_auth__verifies_tokens),
    cmocka_unit_test(test_serve_auth__refuses_forgeries),
    cmocka_unit_test(test_serve_auth__refuses_key_sets),
    cmocka_unit_test(test_serve_auth__rules_say_who_calls_what),
    cmocka_unit_test(test_serve_auth__tokens_are_identities),
    cmocka_unit_test(test_serve_auth__guards_a_server),
};
SX_TEST_MAIN(tests)
