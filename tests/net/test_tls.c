/* TLS of the HTTP server, with certificates made by the openssl command and OpenSSL as the client.
 */
#include <openssl/ssl.h>

#include "base/clock.h"
#include "io/file.h"
#include "net/calls.h"
#include "net/http2_calls.h"
#include "net/http2_client.h"
#include "net/site.h"
#include "net/tls.h"

struct keys {
    char dir[64];
    const char *server; /* the name of its key and certificate */
    bool verify_client;
};

static void shell(const char *format, ...)
{
    char command[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof(command), format, list);
    va_end(list);
    if (system(command) != 0) {
        fail_msg("%s failed", command);
    }
}

/* A key and a certificate signed by ca, or by itself if that is it. */
static void make_certificate(const struct keys *keys, const char *name, const char *ca)
{
    shell("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
          "-keyout %s.key -out %s.new -subj /CN=%s -days 2 %s%s%s%s%s 2>openssl.err && "
          "mv %s.new %s.pem",
          keys->dir, name, name, name, ca ? "-CA " : "", ca ? ca : "", ca ? ".pem -CAkey " : "",
          ca ? ca : "", ca ? ".key" : "", name, name);
}

static void open_keys(struct keys *keys, bool verify_client)
{
    *keys = (struct keys){
        .dir = "/tmp/sextant-tls-XXXXXX", .server = "localhost", .verify_client = verify_client};
    assert_non_null(mkdtemp(keys->dir));
    make_certificate(keys, "ca", NULL);
    make_certificate(keys, "localhost", "ca");
    make_certificate(keys, "client", "ca");
    make_certificate(keys, "stranger", NULL);
}

static void close_keys(const struct keys *keys)
{
    shell("rm -r %s", keys->dir);
}

static sx_status load(void *user, sx_tls_material *out)
{
    const struct keys *keys = user;
    const struct {
        const char *name, *suffix;
        char **text;
    } files[] = {{keys->server, "key", &out->key},
                 {keys->server, "pem", &out->certificates},
                 {"ca", "pem", &out->client_ca}};
    for (int i = 0; i < 3; i++) {
        char path[200];
        size_t size;
        snprintf(path, sizeof(path), "%s/%s.%s", keys->dir, files[i].name, files[i].suffix);
        out->files[i] = sx_strdup(path);
        SX_TRY(sx_file_read(path, 1 << 20, files[i].text, &size));
    }
    out->verify_client = keys->verify_client;
    return SX_OK;
}

struct secure_site {
    struct keys keys;
    sx_tls *tls;
    struct site site;
};

static void open_secure(struct secure_site *secure, bool verify_client)
{
    open_keys(&secure->keys, verify_client);
    assert_ok(sx_tls_create(load, &secure->keys, &secure->tls));
    const sx_http_address address = {.host = "127.0.0.1", .tls = secure->tls};
    open_site(&secure->site, (sx_http_config){.addresses = &address, .address_count = 1});
}

static void close_secure(struct secure_site *secure)
{
    close_site(&secure->site);
    sx_tls_destroy(secure->tls);
    close_keys(&secure->keys);
}

/* ---- A client ---- */

struct client {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

/* False if the handshake fails, or the server says afterwards that it did. */
static bool connect_client(struct client *client, const struct secure_site *secure,
                           const char *name, int max_version, const char *protocol)
{
    char path[200];
    client->context = SSL_CTX_new(TLS_client_method());
    snprintf(path, sizeof(path), "%s/ca.pem", secure->keys.dir);
    assert_int_equal(SSL_CTX_load_verify_locations(client->context, path, NULL), 1);
    SSL_CTX_set_verify(client->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_min_proto_version(client->context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(client->context, max_version);
    SSL_CTX_set_security_level(client->context, 0);
    if (name != NULL) {
        snprintf(path, sizeof(path), "%s/%s.pem", secure->keys.dir, name);
        assert_int_equal(SSL_CTX_use_certificate_file(client->context, path, SSL_FILETYPE_PEM), 1);
        snprintf(path, sizeof(path), "%s/%s.key", secure->keys.dir, name);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(client->context, path, SSL_FILETYPE_PEM), 1);
    }
    client->ssl = SSL_new(client->context);
    client->fd = client_connect(secure->site.port);
    SSL_set_fd(client->ssl, client->fd);
    if (protocol != NULL) {
        SSL_set_alpn_protos(client->ssl, (const unsigned char *)protocol,
                            (unsigned)strlen(protocol));
    }
    return SSL_connect(client->ssl) == 1;
}

static void close_client(struct client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
}

/* Sends a request and reads until `end` of the answer has come; false if the connection ends
 * before.
 */
static bool exchange(struct client *client, const char *request, size_t size, const char *end)
{
    char answer[8192];
    size_t used = 0;
    if (SSL_write(client->ssl, request, (int)size) != (int)size) {
        return false;
    }
    for (;;) {
        const int got = SSL_read(client->ssl, answer + used, (int)(sizeof(answer) - used));
        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
        if (used == sizeof(answer)) { /* only the end matters */
            memmove(answer, answer + used / 2, used / 2);
            used /= 2;
        }
        if (memmem(answer, used, end, strlen(end)) != NULL) {
            return true;
        }
    }
}

static bool post(struct client *client)
{
    static const char request[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    return exchange(client, request, sizeof(request) - 1, "hello");
}

static const char h2[] = "\x02h2", http11[] = "\x08http/1.1", unknown[] = "\x03xyz";

/* ---- Tests ---- */

static void test_net_tls__speaks_both_protocols(void **state)
{
    (void)state;
    struct secure_site secure;
    struct client client;
    const unsigned char *chosen;
    unsigned size;
    open_secure(&secure, false);
    assert_true(connect_client(&client, &secure, NULL, TLS1_3_VERSION, NULL));
    assert_true(post(&client));
    assert_true(post(&client));
    close_client(&client);
    assert_true(connect_client(&client, &secure, NULL, TLS1_2_VERSION, http11));
    SSL_get0_alpn_selected(client.ssl, &chosen, &size);
    assert_int_equal(size, 8);
    assert_true(post(&client));
    close_client(&client);
    assert_true(connect_client(&client, &secure, NULL, TLS1_3_VERSION, h2));
    SSL_get0_alpn_selected(client.ssl, &chosen, &size);
    assert_int_equal(size, 2);
    char out[300];
    size_t used = (size_t)snprintf(out, sizeof(out), "%s", h2_preface);
    used += h2_frame(out + used, 4, 0, 0, NULL, 0);
    used += h2_head(out + used, 4, 1, "/echo");
    used += h2_frame(out + used, 0, 1, 1, "over h2", 7);
    assert_true(exchange(&client, out, used, "over h2"));
    close_client(&client);
    close_secure(&secure);
}

static void test_net_tls__carries_large_bodies(void **state)
{
    (void)state;
    enum { SIZE = 5 << 20 };
    struct secure_site secure;
    struct client client;
    open_secure(&secure, false);
    assert_true(connect_client(&client, &secure, NULL, TLS1_3_VERSION, NULL));
    char *request = malloc(SIZE + 200);
    size_t used = (size_t)snprintf(
        request, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", SIZE);
    memset(request + used, '.', SIZE);
    memcpy(request + used + SIZE - 3, "end", 3);
    assert_true(exchange(&client, request, used + SIZE, "end"));
    assert_true(post(&client));
    free(request);
    close_client(&client);
    close_secure(&secure);
}

static void test_net_tls__refuses(void **state)
{
    (void)state;
    struct secure_site secure;
    struct client client;
    open_secure(&secure, false);
    assert_false(connect_client(&client, &secure, NULL, TLS1_1_VERSION, NULL));
    close_client(&client);
    assert_false(connect_client(&client, &secure, NULL, TLS1_3_VERSION, unknown));
    close_client(&client);
    const struct answer answer =
        client_exchange(secure.site.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    assert_int_equal(answer.status, 0);
    assert_true(connect_client(&client, &secure, NULL, TLS1_3_VERSION, NULL));
    assert_true(post(&client));
    close_client(&client);
    close_secure(&secure);
}

static void test_net_tls__wants_certificates_of_clients(void **state)
{
    (void)state;
    struct secure_site secure;
    struct client client;
    open_secure(&secure, true);
    /* With TLS 1.3 the client's handshake is over before the server's. */
    assert_false(connect_client(&client, &secure, NULL, TLS1_3_VERSION, NULL) && post(&client));
    close_client(&client);
    assert_false(connect_client(&client, &secure, "stranger", TLS1_2_VERSION, NULL) &&
                 post(&client));
    close_client(&client);
    assert_true(connect_client(&client, &secure, "client", TLS1_3_VERSION, NULL));
    assert_true(post(&client));
    close_client(&client);
    close_secure(&secure);
    assert_int_equal(atomic_load(&secure.site.handled), 1);
}

/* The beginning of the digest of the server's certificate. */
static long fingerprint_of(const struct secure_site *secure)
{
    struct client client;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    long first = 0;
    assert_true(connect_client(&client, secure, NULL, TLS1_3_VERSION, NULL));
    X509 *certificate = SSL_get1_peer_certificate(client.ssl);
    X509_digest(certificate, EVP_sha256(), digest, &size);
    memcpy(&first, digest, sizeof(first));
    X509_free(certificate);
    close_client(&client);
    return first;
}

/* Our own client: it verifies the server, and shows a certificate of its own. */
static void test_net_tls__has_a_client_of_our_own(void **state)
{
    (void)state;
    static const struct {
        const char *host, *ca, *client;
        bool good;
        sx_code code;
    } rows[] = {
        {"localhost", "ca", "client", true, SX_CODE_OK},
        {"localhost", "stranger", "client", false, SX_PERMISSION_DENIED},
        {"127.0.0.1", "ca", "client", false, SX_PERMISSION_DENIED}, /* not in the certificate */
        {"localhost", "ca", NULL, false, SX_UNAVAILABLE},
        {"localhost", "ca", "stranger", false, SX_UNAVAILABLE},
    };
    struct secure_site secure;
    open_secure(&secure, true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char url[100], ca[200], certificate[200], key[200];
        struct results results = {0};
        sx_http2_calls *calls = NULL;
        snprintf(url, sizeof(url), "https://%s:%d/echo", rows[i].host, secure.site.port);
        snprintf(ca, sizeof(ca), "%s/%s.pem", secure.keys.dir, rows[i].ca);
        snprintf(certificate, sizeof(certificate), "%s/%s.pem", secure.keys.dir, rows[i].client);
        snprintf(key, sizeof(key), "%s/%s.key", secure.keys.dir, rows[i].client);
        const sx_http_call call = {.url = url,
                                   .body = {"hello", 5},
                                   .ca_file = ca,
                                   .certificate_file = rows[i].client ? certificate : NULL,
                                   .key_file = rows[i].client ? key : NULL};
        assert_ok(sx_http2_calls_create(&call, 1, &calls));
        for (int k = 0; k < 10; k++) {
            assert_ok(sx_http2_calls_start(calls, &call, 100, note, &results));
        }
        while (results.ended < 10) {
            assert_ok(sx_http2_calls_wait(calls, sx_now_ns() + 1000000000));
        }
        assert_int_equal(results.good, rows[i].good ? 10 : 0);
        assert_int_equal(results.code, rows[i].code);
        sx_http2_calls_destroy(calls);
    }
    close_secure(&secure);
}

static void test_net_tls__loads_new_certificates(void **state)
{
    (void)state;
    struct secure_site secure;
    struct client old;
    open_secure(&secure, false);
    assert_true(connect_client(&old, &secure, NULL, TLS1_3_VERSION, NULL));
    const long before = fingerprint_of(&secure);
    /* What does not load changes nothing: a key without its certificate. */
    shell("cp %s/stranger.key %s/localhost.key", secure.keys.dir, secure.keys.dir);
    shell("sleep 2.2");
    assert_int_equal(fingerprint_of(&secure), before);
    make_certificate(&secure.keys, "localhost", "ca");
    const int64_t begin_ns = sx_now_ns();
    while (fingerprint_of(&secure) == before) {
        assert_true(sx_now_ns() - begin_ns < 20000 * (int64_t)1000000);
    }
    assert_true(post(&old)); /* a connection from before goes on */
    close_client(&old);
    close_secure(&secure);
}

static void test_net_tls__says_what_is_wrong(void **state)
{
    (void)state;
    struct keys keys;
    sx_tls *tls = NULL;
    open_keys(&keys, false);
    shell("cp %s/stranger.key %s/localhost.key", keys.dir, keys.dir);
    assert_error(sx_tls_create(load, &keys, &tls), SX_INVALID_ARGUMENT,
                 "the server's key does not belong to its certificate");
    shell("echo nonsense >%s/localhost.key", keys.dir);
    assert_error(sx_tls_create(load, &keys, &tls), SX_INVALID_ARGUMENT,
                 "localhost.key: the server's key is unusable");
    shell("echo nonsense >%s/localhost.pem", keys.dir);
    assert_error(sx_tls_create(load, &keys, &tls), SX_INVALID_ARGUMENT,
                 "the server's certificate is unusable");
    keys.server = "missing";
    assert_error(sx_tls_create(load, &keys, &tls), SX_NOT_FOUND, "missing.key");
    close_keys(&keys);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_tls__speaks_both_protocols),
    cmocka_unit_test(test_net_tls__carries_large_bodies),
    cmocka_unit_test(test_net_tls__refuses),
    cmocka_unit_test(test_net_tls__wants_certificates_of_clients),
    cmocka_unit_test(test_net_tls__has_a_client_of_our_own),
    cmocka_unit_test(test_net_tls__loads_new_certificates),
    cmocka_unit_test(test_net_tls__says_what_is_wrong),
};

SX_TEST_MAIN(tests)
