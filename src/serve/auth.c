/* Who calls, and what they may call; see auth.h. */
#include "serve/auth.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/thread.h"
#include "io/file.h"
#include "serve/jwt.h"
#include "serve/rate_limit.h"

enum {
    MAX_FILE_BYTES = 1 << 20,
    MAX_ROWS = 10000, /* of a file */
    MAX_KEY_BYTES = 512,
    MAX_MODELS = 64, /* of a rule */
    LOOK_MS = 500,
    IDENTITY_BYTES = SX_JWT_SUBJECT + 8,
};

struct api_key {
    const char *name;
    sx_digest digest;
};

struct rule {
    const char *identity;
    const char *models[MAX_MODELS];
    size_t model_count;
    double rate; /* requests a second; 0 = any number */
};

/* What the files say; immutable. */
struct set {
    sx_arena arena;
    struct api_key *keys; /* [key_count] */
    size_t key_count;
    struct rule *rules; /* [rule_count] */
    size_t rule_count;
    bool has_rules;
    sx_jwks *jwks;
};

enum { KEYS, JWKS, RULES, FILES };

struct sx_auth {
    char *paths[FILES]; /* NULL: not given */
    char *issuer, *audience;
    sx_rate_limit rates;
    pthread_rwlock_t lock;
    struct set *set;
    uint64_t hash; /* of the files' texts when they were last looked at */
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    pthread_t watcher;
    bool watching, stopping;
};

/* ---- Files ---- */

/* Takes the next word of a line; NULL at its end. */
static char *take_word(char **line)
{
    *line += strspn(*line, " \t\r");
    const size_t size = strcspn(*line, " \t\r");
    char *word = size > 0 ? *line : NULL;
    *line += size;
    if (**line != '\0') {
        *(*line)++ = '\0';
    }
    return word;
}

static bool read_hex(const char *text, sx_digest *out)
{
    bool right = strlen(text) == 2 * sizeof(out->bytes);
    for (size_t i = 0; right && i < 2 * sizeof(out->bytes); i++) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        right = digit >= 0;
        out->bytes[i / 2] = (uint8_t)(i % 2 == 0 ? digit << 4 : out->bytes[i / 2] | digit);
    }
    return right;
}

/* NAME KEY; NAME sha256:HEX. */
static sx_status add_key(struct set *set, char *line)
{
    static const char hashed[] = "sha256:";
    const char *name = take_word(&line), *key = take_word(&line);
    struct api_key *row = &set->keys[set->key_count];
    if (key == NULL || take_word(&line) != NULL || strlen(key) > MAX_KEY_BYTES ||
        strlen(name) >= SX_JWT_SUBJECT) {
        return sx_error(SX_INVALID_ARGUMENT, "expected NAME KEY, or NAME sha256:HEX");
    }
    row->name = name;
    if (strncmp(key, hashed, sizeof(hashed) - 1) != 0) {
        SX_TRY(sx_digest_of(key, strlen(key), &row->digest));
    } else if (!read_hex(key + sizeof(hashed) - 1, &row->digest)) {
        return sx_error(SX_INVALID_ARGUMENT, "sha256: is not followed by 64 digits 0-9a-f");
    }
    set->key_count++;
    return SX_OK;
}

/* IDENTITY MODEL... */
static sx_status add_rule(struct set *set, char *line)
{
    struct rule *rule = &set->rules[set->rule_count];
    rule->identity = take_word(&line);
    const bool known =
        strcmp(rule->identity, "*") == 0 || strncmp(rule->identity, "key:", 4) == 0 ||
        strncmp(rule->identity, "jwt:", 4) == 0 || strncmp(rule->identity, "cert:", 5) == 0;
    for (char *model = take_word(&line); model != NULL; model = take_word(&line)) {
        if (strncmp(model, "rate=", 5) == 0) {
            char *end = NULL;
            rule->rate = strtod(model + 5, &end);
            if (end == model + 5 || *end != '\0' || !(rule->rate > 0 && rule->rate <= 1e9)) {
                return sx_error(SX_INVALID_ARGUMENT, "\"%s\": expected rate=N, requests a second",
                                model);
            }
            continue;
        }
        if (rule->model_count == MAX_MODELS) {
            return sx_error(SX_INVALID_ARGUMENT, "more than %d models; use several lines",
                            (int)MAX_MODELS);
        }
        rule->models[rule->model_count++] = model;
    }
    if (!known || rule->model_count == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "expected IDENTITY MODEL...; an identity is *, key:NAME, jwt:SUBJECT or "
                        "cert:CN");
    }
    set->rule_count++;
    return SX_OK;
}

/* Passes each line of `text`, which the set then uses, to `add`. */
static sx_status read_lines(struct set *set, const char *path, const char *text,
                            sx_status (*add)(struct set *set, char *line))
{
    char *at = sx_arena_strdup(&set->arena, text);
    if (at == NULL) {
        return sx_no_memory("for %s", path);
    }
    for (int number = 1; at != NULL; number++) {
        char *line = at, *end = strchr(at, '\n');
        at = end != NULL ? end + 1 : NULL;
        if (end != NULL) {
            *end = '\0';
        }
        line += strspn(line, " \t\r");
        if (*line == '\0' || *line == '#') {
            continue;
        }
        if (number > MAX_ROWS) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: more than %d lines", path, (int)MAX_ROWS);
        }
        SX_TRY(add(set, line), "%s:%d", path, number);
    }
    return SX_OK;
}

static void free_set(struct set *set)
{
    if (set != NULL) {
        sx_jwks_free(set->jwks);
        sx_arena_deinit(&set->arena);
        sx_free(set);
    }
}

/* The set of these texts, each NULL or of the file. */
static sx_status make_set(const sx_auth *auth, char *const texts[FILES], struct set **out)
{
    struct set *set = sx_alloc(1, sizeof(*set));
    if (set == NULL) {
        return sx_no_memory("for identities");
    }
    sx_arena_init(&set->arena, 0);
    set->has_rules = texts[RULES] != NULL;
    set->keys = sx_arena_array(&set->arena, MAX_ROWS, struct api_key);
    set->rules = set->has_rules ? sx_arena_array(&set->arena, MAX_ROWS, struct rule) : NULL;
    sx_status status = set->keys == NULL || (set->has_rules && set->rules == NULL)
                           ? sx_no_memory("for identities")
                           : SX_OK;
    if (status == SX_OK && texts[KEYS] != NULL) {
        status = read_lines(set, auth->paths[KEYS], texts[KEYS], add_key);
    }
    if (status == SX_OK && texts[RULES] != NULL) {
        status = read_lines(set, auth->paths[RULES], texts[RULES], add_rule);
    }
    if (status == SX_OK && texts[JWKS] != NULL) {
        status = sx_jwks_parse((sx_bytes){texts[JWKS], strlen(texts[JWKS])}, auth->paths[JWKS],
                               &set->jwks);
    }
    if (status != SX_OK) {
        free_set(set);
        return status;
    }
    *out = set;
    return SX_OK;
}

/* Reads the files; if they have changed, *out is the new set, else NULL. */
static sx_status read_files(sx_auth *auth, struct set **out)
{
    char *texts[FILES] = {NULL};
    uint64_t hash = 1;
    sx_status status = SX_OK;
    *out = NULL;
    for (int i = 0; i < FILES && status == SX_OK; i++) {
        size_t size = 0;
        if (auth->paths[i] != NULL) {
            status = sx_file_read(auth->paths[i], MAX_FILE_BYTES, &texts[i], &size);
            hash = status == SX_OK ? hash * 31 + sx_hash64(texts[i], size) : 0;
        }
    }
    if (hash != auth->hash) {
        auth->hash = hash;
        if (status == SX_OK) {
            status = make_set(auth, texts, out);
        }
    } else { /* what is wrong has been said already */
        sx_status_free(status);
        status = SX_OK;
    }
    for (int i = 0; i < FILES; i++) {
        sx_free(texts[i]);
    }
    return status;
}

static void look(sx_auth *auth)
{
    struct set *set = NULL;
    sx_status status = read_files(auth, &set);
    if (status != SX_OK) {
        sx_log(SX_LOG_ERROR, "%s; who may call stays as it is", sx_status_message(status));
    } else if (set != NULL) {
        pthread_rwlock_wrlock(&auth->lock);
        struct set *before = auth->set;
        auth->set = set;
        pthread_rwlock_unlock(&auth->lock);
        free_set(before);
        sx_log(SX_LOG_INFO, "who may call is read again");
    }
    sx_status_free(status);
}

static void *watch(void *user)
{
    sx_auth *auth = user;
    pthread_mutex_lock(&auth->mutex);
    while (!auth->stopping) {
        const struct timespec until = sx_timespec_of(sx_now_ns() + LOOK_MS * (int64_t)1000000);
        pthread_cond_clockwait(&auth->stopped, &auth->mutex, CLOCK_MONOTONIC, &until);
        if (!auth->stopping) {
            pthread_mutex_unlock(&auth->mutex);
            look(auth);
            pthread_mutex_lock(&auth->mutex);
        }
    }
    pthread_mutex_unlock(&auth->mutex);
    return NULL;
}

/* ---- Creation and destruction ---- */

static bool copy(const char *text, char **out)
{
    *out = text != NULL ? sx_strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

sx_status sx_auth_create(const sx_auth_config *config, sx_auth **out)
{
    const char *paths[FILES] = {config->api_keys_file, config->jwks_file, config->rules_file};
    *out = NULL;
    if (paths[KEYS] == NULL && paths[JWKS] == NULL && paths[RULES] == NULL) {
        return SX_OK;
    }
    sx_auth *auth = sx_alloc(1, sizeof(*auth));
    if (auth == NULL) {
        return sx_no_memory("for identities");
    }
    pthread_rwlock_init(&auth->lock, NULL);
    sx_rate_limit_init(&auth->rates);
    pthread_mutex_init(&auth->mutex, NULL);
    pthread_cond_init(&auth->stopped, NULL);
    bool copied =
        copy(config->jwt_issuer, &auth->issuer) && copy(config->jwt_audience, &auth->audience);
    for (int i = 0; i < FILES; i++) {
        copied = copied && copy(paths[i], &auth->paths[i]);
    }
    sx_status status = copied ? read_files(auth, &auth->set) : sx_no_memory("for identities");
    if (status == SX_OK) {
        const int error = sx_thread_create(&auth->watcher, NULL, watch, auth);
        auth->watching = error == 0;
        status = error == 0
                     ? SX_OK
                     : sx_error(SX_RESOURCE_EXHAUSTED, "starting a thread: %s", strerror(error));
    }
    if (status != SX_OK) {
        sx_auth_destroy(auth);
        return status;
    }
    *out = auth;
    return SX_OK;
}

void sx_auth_destroy(sx_auth *auth)
{
    if (auth == NULL) {
        return;
    }
    if (auth->watching) {
        pthread_mutex_lock(&auth->mutex);
        auth->stopping = true;
        pthread_cond_broadcast(&auth->stopped);
        pthread_mutex_unlock(&auth->mutex);
        pthread_join(auth->watcher, NULL);
    }
    free_set(auth->set);
    for (int i = 0; i < FILES; i++) {
        sx_free(auth->paths[i]);
    }
    sx_free(auth->issuer);
    sx_free(auth->audience);
    pthread_cond_destroy(&auth->stopped);
    pthread_mutex_destroy(&auth->mutex);
    pthread_rwlock_destroy(&auth->lock);
    sx_rate_limit_deinit(&auth->rates);
    sx_free(auth);
}

/* ---- Requests ---- */

/* The name of a key; NULL: there is none. All are compared. */
static sx_status find_key(const struct set *set, sx_http_text key, const char **out)
{
    sx_digest digest;
    *out = NULL;
    if (key.size > MAX_KEY_BYTES) {
        return SX_OK;
    }
    SX_TRY(sx_digest_of(key.data, key.size, &digest));
    for (size_t i = 0; i < set->key_count; i++) {
        if (CRYPTO_memcmp(digest.bytes, set->keys[i].digest.bytes, sizeof(digest.bytes)) == 0) {
            *out = set->keys[i].name;
        }
    }
    return SX_OK;
}

static sx_status identify_token(const sx_auth *auth, const struct set *set, sx_http_text token,
                                char identity[IDENTITY_BYTES])
{
    char subject[SX_JWT_SUBJECT];
    const sx_jwt_rules rules = {auth->issuer, auth->audience, (int64_t)time(NULL)};
    SX_TRY(sx_jwt_verify(set->jwks, (sx_bytes){token.data, token.size}, &rules, subject));
    snprintf(identity, IDENTITY_BYTES, "jwt:%s", subject);
    return SX_OK;
}

static sx_status identify(const sx_auth *auth, const struct set *set, const sx_auth_proof *proof,
                          char identity[IDENTITY_BYTES])
{
    sx_http_text bearer = proof->authorization;
    const bool has_bearer = bearer.data != NULL && sx_http_text_take_nocase(&bearer, "Bearer ");
    const sx_http_text key = has_bearer ? bearer : proof->api_key;
    const char *name = NULL;
    if (key.data != NULL) {
        SX_TRY(find_key(set, key, &name));
        if (name != NULL) {
            snprintf(identity, IDENTITY_BYTES, "key:%s", name);
            return SX_OK;
        }
        if (has_bearer && set->jwks != NULL) {
            return identify_token(auth, set, bearer, identity);
        }
        return sx_error(SX_UNAUTHENTICATED, "unknown API key");
    }
    if (proof->certificate != NULL && strlen(proof->certificate) < SX_JWT_SUBJECT) {
        snprintf(identity, IDENTITY_BYTES, "cert:%s", proof->certificate);
        return SX_OK;
    }
    return sx_error(SX_UNAUTHENTICATED,
                    "no identity: send Authorization: Bearer KEY_OR_TOKEN, or X-API-Key: KEY");
}

/* Whether a rule's MODEL, MODEL:predict, * or *:predict gives a right to `model`. */
static bool covers(const char *rule, const char *model, sx_auth_use use)
{
    static const char only[] = ":predict";
    const size_t size = strlen(rule), end = sizeof(only) - 1;
    const bool limited = size > end && strcmp(rule + size - end, only) == 0;
    const size_t name = limited ? size - end : size;
    const bool any = name == 1 && rule[0] == '*' && strcmp(model, SX_AUTH_ADMIN) != 0;
    return (use != SX_AUTH_LOOK || !limited) &&
           (any || (strncmp(rule, model, name) == 0 && model[name] == '\0'));
}

/* *out_rate: of the rule that allows it. */
static bool is_allowed(const struct set *set, const char *identity, const char *model,
                       sx_auth_use use, double *out_rate)
{
    const bool admin = strcmp(model, SX_AUTH_ADMIN) == 0;
    bool allowed = !set->has_rules && !admin;
    for (size_t i = 0; i < set->rule_count && !allowed; i++) {
        const struct rule *rule = &set->rules[i];
        if (strcmp(rule->identity, "*") != 0 && strcmp(rule->identity, identity) != 0) {
            continue;
        }
        for (size_t k = 0; k < rule->model_count && !allowed; k++) {
            allowed = covers(rule->models[k], model, use);
            *out_rate = rule->rate;
        }
    }
    return allowed;
}

sx_status sx_auth_check_proof(sx_auth *auth, const sx_auth_proof *proof, const char *model)
{
    char identity[IDENTITY_BYTES];
    double rate = 0;
    if (auth == NULL) {
        return SX_OK;
    }
    pthread_rwlock_rdlock(&auth->lock);
    sx_status status = identify(auth, auth->set, proof, identity);
    if (status == SX_OK && model != NULL &&
        !is_allowed(auth->set, identity, model, proof->use, &rate)) {
        status =
            strcmp(model, SX_AUTH_ADMIN) == 0
                ? sx_error(SX_PERMISSION_DENIED, "%s may not change the configuration", identity)
                : sx_error(SX_PERMISSION_DENIED, "%s may not call model %.60s", identity, model);
    }
    pthread_rwlock_unlock(&auth->lock);
    if (status == SX_OK && rate > 0 && proof->use == SX_AUTH_RUN) {
        const uint64_t key =
            sx_hash64(identity, strlen(identity)) * 31 + sx_hash64(model, strlen(model));
        status = sx_rate_limit_take(&auth->rates, key, rate, sx_now_ns())
                     ? SX_OK
                     : sx_error(SX_RESOURCE_EXHAUSTED,
                                "%s may call model %.60s %g times a second; try again later",
                                identity, model, rate);
    }
    return status;
}

sx_status sx_auth_check(sx_auth *auth, const sx_http_exchange *exchange, const char *model,
                        sx_auth_use use)
{
    const sx_http_head *head = sx_http_request_head(exchange);
    const sx_auth_proof proof = {.authorization = sx_http_header_get(head, "Authorization"),
                                 .api_key = sx_http_header_get(head, "X-API-Key"),
                                 .certificate = sx_http_request_peer(exchange),
                                 .use = use};
    return sx_auth_check_proof(auth, &proof, model);
}
