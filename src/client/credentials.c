/* See credentials.h. */
#include "client/credentials.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/http_client.h"
#include "serve/base64.h"
#include "serve/predict_json.h"

enum {
    MAX_KEY_FILE = 64 * 1024,
    MAX_ANSWER = 64 * 1024,
    ASSERTION_SECONDS = 3600,
    RENEW_SECONDS = 60, /* before a token expires */
};

struct sx_credentials {
    sx_arena arena;
    const char *email, *key_id, *token_uri, *scope;
    EVP_PKEY *key;
    char *token; /* NULL: none */
    double token_expires_s;
};

/* ---- The file ---- */

static bool is_safe(const char *uri)
{
    static const char *const prefixes[] = {
        "https://", "http://localhost:", "http://127.0.0.1:", "http://[::1]:"};
    for (size_t i = 0; i < SX_COUNT(prefixes); i++) {
        if (strncmp(uri, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static EVP_PKEY *read_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    return key;
}

static sx_status read_members(const char *path, const json_t *json, sx_credentials *c)
{
    const struct {
        const char *name, **out;
    } rows[] = {{"client_email", &c->email}, {"token_uri", &c->token_uri}};
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *pem = json_string_value(json_object_get(json, "private_key"));
    const char *key_id = json_string_value(json_object_get(json, "private_key_id"));
    if (type == NULL || strcmp(type, "service_account") != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: not the key of a service account: expected JSON with \"type\": "
                        "\"service_account\"",
                        path);
    }
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const char *value = json_string_value(json_object_get(json, rows[i].name));
        if (value == NULL || value[0] == '\0') {
            return sx_error(SX_INVALID_ARGUMENT, "%s: \"%s\" is missing", path, rows[i].name);
        }
        *rows[i].out = sx_arena_strdup(&c->arena, value);
    }
    c->key_id = key_id != NULL ? sx_arena_strdup(&c->arena, key_id) : "";
    if (c->email == NULL || c->token_uri == NULL || c->key_id == NULL) {
        return sx_no_memory("for credentials");
    }
    if (!is_safe(c->token_uri)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: token_uri \"%s\": expected https://", path,
                        c->token_uri);
    }
    c->key = pem != NULL ? read_key(pem) : NULL;
    if (c->key == NULL || EVP_PKEY_get_base_id(c->key) != EVP_PKEY_RSA) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: \"private_key\" is no RSA key in PEM", path);
    }
    return SX_OK;
}

sx_status sx_credentials_read(const char *path, const char *scope, sx_credentials **out)
{
    static const char cloud_platform[] = "https://www.googleapis.com/auth/cloud-platform";
    char *text = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read(path, MAX_KEY_FILE, &text, &size));
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    sx_credentials *c = sx_alloc(1, sizeof(*c));
    sx_status status = c == NULL ? sx_no_memory("for credentials") : SX_OK;
    if (status == SX_OK) {
        sx_arena_init(&c->arena, 0);
        c->scope = sx_arena_strdup(&c->arena, scope != NULL ? scope : cloud_platform);
        status = c->scope != NULL ? read_members(path, json, c) : sx_no_memory("for credentials");
    }
    OPENSSL_cleanse(text, size);
    sx_free(text);
    json_decref(json);
    if (status != SX_OK) {
        sx_credentials_free(c);
        return status;
    }
    *out = c;
    return SX_OK;
}

void sx_credentials_forget(sx_credentials *c)
{
    if (c->token != NULL) {
        OPENSSL_cleanse(c->token, strlen(c->token));
    }
    sx_free(c->token);
    c->token = NULL;
}

void sx_credentials_free(sx_credentials *c)
{
    if (c != NULL) {
        sx_credentials_forget(c);
        EVP_PKEY_free(c->key);
        sx_arena_deinit(&c->arena);
        sx_free(c);
    }
}

/* ---- The assertion ---- */

static void put_base64url(sx_buf *out, const void *data, size_t size)
{
    const size_t at = out->size;
    char *text = sx_buf_extend(out, SX_BASE64_ENCODED(size));
    if (text == NULL) {
        return;
    }
    sx_base64_encode(data, size, text);
    for (char *c = text; c < out->data + out->size; c++) {
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    }
    while (out->size > at && out->data[out->size - 1] == '=') { /* without padding */
        out->data[--out->size] = '\0';
    }
}

static void put_member(sx_buf *out, const char *before, const char *text)
{
    sx_buf_puts(out, before);
    sx_json_print_string(out, text, strlen(text));
}

/* Appends the signature of what `out` has from `at`. */
static sx_status put_signature(EVP_PKEY *key, sx_buf *out, size_t at)
{
    unsigned char signature[1024];
    size_t size = sizeof(signature);
    SX_TRY(sx_buf_status(out));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool is_signed =
        context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, signature, &size, (const unsigned char *)out->data + at,
                       out->size - at) == 1;
    EVP_MD_CTX_free(context);
    if (!is_signed) {
        return sx_error(SX_INTERNAL, "a token cannot be signed with the service account's key");
    }
    sx_buf_putc(out, '.');
    put_base64url(out, signature, size);
    return sx_buf_status(out);
}

static sx_status put_assertion(const sx_credentials *c, sx_buf *out)
{
    const long long now_s = (long long)sx_wall_seconds();
    const size_t at = out->size;
    sx_buf part;
    sx_buf_init(&part, 0);
    sx_buf_puts(&part, "{\"alg\":\"RS256\",\"typ\":\"JWT\"");
    if (c->key_id[0] != '\0') {
        put_member(&part, ",\"kid\":", c->key_id);
    }
    sx_buf_putc(&part, '}');
    put_base64url(out, sx_buf_text(&part), part.size);
    sx_buf_putc(out, '.');
    sx_buf_reset(&part);
    put_member(&part, "{\"iss\":", c->email);
    put_member(&part, ",\"sub\":", c->email);
    put_member(&part, ",\"aud\":", c->token_uri);
    put_member(&part, ",\"scope\":", c->scope);
    sx_buf_printf(&part, ",\"iat\":%lld,\"exp\":%lld}", now_s, now_s + ASSERTION_SECONDS);
    put_base64url(out, sx_buf_text(&part), part.size);
    sx_status status = sx_buf_status(&part);
    sx_buf_deinit(&part);
    SX_TRY(status);
    return put_signature(c->key, out, at);
}

/* ---- Tokens ---- */

/* Keeps the token of an answer. */
static sx_status take_token(sx_credentials *c, int http_status, const sx_buf *body)
{
    json_t *json = json_loadb(sx_buf_text(body), body->size, 0, NULL);
    const char *token = json_string_value(json_object_get(json, "access_token"));
    const char *error = json_string_value(json_object_get(json, "error"));
    const char *why = json_string_value(json_object_get(json, "error_description"));
    const json_t *expires = json_object_get(json, "expires_in");
    sx_status status = SX_OK;
    if (http_status / 100 != 2) {
        status = sx_error(http_status >= 500 ? SX_UNAVAILABLE : SX_UNAUTHENTICATED,
                          "%s: HTTP status %d: %.200s%s%.1000s", c->token_uri, http_status,
                          error != NULL ? error : "no token", why != NULL ? ": " : "",
                          why != NULL ? why : "");
    } else if (token == NULL || token[0] == '\0' || strlen(token) > SX_TOKEN_HEADER - 64 ||
               strpbrk(token, "\r\n") != NULL) {
        status =
            sx_error(SX_UNAUTHENTICATED, "%s: an answer without an access_token", c->token_uri);
    } else {
        sx_credentials_forget(c);
        c->token = sx_strdup(token);
        c->token_expires_s =
            sx_wall_seconds() + (json_is_number(expires) ? json_number_value(expires) : 0);
        status = c->token != NULL ? SX_OK : sx_no_memory("for a token");
    }
    json_decref(json);
    return status;
}

static sx_status ask_for_token(sx_credentials *c, int timeout_ms)
{
    sx_buf request, body;
    int http_status = 0;
    sx_buf_init(&request, 0);
    sx_buf_init(&body, MAX_ANSWER);
    sx_buf_puts(&request,
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    sx_status status = put_assertion(c, &request);
    if (status == SX_OK) {
        const sx_http_call call = {.url = c->token_uri,
                                   .content_type = "application/x-www-form-urlencoded",
                                   .body = {sx_buf_text(&request), request.size},
                                   .timeout_ms = timeout_ms};
        status = sx_http_fetch(&call, &body, NULL, &http_status);
    }
    if (status == SX_OK) {
        status = take_token(c, http_status, &body);
    }
    sx_buf_deinit(&request);
    sx_buf_deinit(&body);
    return sx_status_annotate(status, __FILE__, __LINE__, "asking for a token of %s", c->email);
}

sx_status sx_credentials_header(sx_credentials *c, int timeout_ms, char header[SX_TOKEN_HEADER])
{
    if (c->token == NULL || sx_wall_seconds() + RENEW_SECONDS >= c->token_expires_s) {
        SX_TRY(ask_for_token(c, timeout_ms));
    }
    snprintf(header, SX_TOKEN_HEADER, "Authorization: Bearer %s", c->token);
    return SX_OK;
}
