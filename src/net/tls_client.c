/* See tls_client.h. */
#include "net/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/memory.h"
#include "net/tls_socket.h"

struct sx_tls_client {
    SSL_CTX *context;
    BIO_METHOD *socket;
    bool is_address; /* the host, which SNI does not name */
    char host[];
};

static sx_status unusable(const char *path)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return sx_error(SX_INVALID_ARGUMENT, "%s: %s", path,
                    reason != NULL ? reason : "not a PEM file that can be used");
}

static sx_status set_up(SSL_CTX *context, const char *ca_file, const char *certificate_file,
                        const char *key_file)
{
    static const unsigned char protocols[] = "\x02h2";
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(context, protocols, sizeof(protocols) - 1);
    if (ca_file != NULL && SSL_CTX_load_verify_file(context, ca_file) != 1) {
        return unusable(ca_file);
    }
    if (ca_file == NULL && SSL_CTX_set_default_verify_paths(context) != 1) {
        return unusable("the system's certificates");
    }
    if (certificate_file != NULL &&
        SSL_CTX_use_certificate_chain_file(context, certificate_file) != 1) {
        return unusable(certificate_file);
    }
    key_file = key_file != NULL ? key_file : certificate_file; /* it may have both */
    if (key_file != NULL && SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1) {
        return unusable(key_file);
    }
    return SX_OK;
}

sx_status sx_tls_client_create(const char *host, const char *ca_file, const char *certificate_file,
                               const char *key_file, sx_tls_client **out_client)
{
    unsigned char address[sizeof(struct in6_addr)];
    const size_t size = strlen(host) + 1;
    sx_tls_client *client = sx_alloc(1, sizeof(*client) + size);
    if (client == NULL) {
        return sx_no_memory("for TLS");
    }
    memcpy(client->host, host, size);
    client->is_address =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    client->context = SSL_CTX_new(TLS_client_method());
    client->socket = sx_tls_socket_method();
    sx_status status = client->context != NULL && client->socket != NULL
                           ? set_up(client->context, ca_file, certificate_file, key_file)
                           : sx_no_memory("for TLS");
    if (status != SX_OK) {
        sx_tls_client_destroy(client);
        return status;
    }
    *out_client = client;
    return SX_OK;
}

void sx_tls_client_destroy(sx_tls_client *client)
{
    if (client != NULL) {
        SSL_CTX_free(client->context);
        BIO_meth_free(client->socket);
        sx_free(client);
    }
}

bool sx_tls_client_begin(sx_tls_client *client, sx_transport *transport)
{
    if (!sx_tls_socket_begin(client->context, client->socket, transport)) {
        return false;
    }
    SSL *ssl = transport->tls;
    SSL_set_connect_state(ssl);
    return client->is_address
               ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), client->host) == 1
               : SSL_set1_host(ssl, client->host) == 1 &&
                     SSL_set_tlsext_host_name(ssl, client->host) == 1;
}

sx_status sx_tls_client_check(const sx_transport *transport, bool done)
{
    const unsigned char *protocol = NULL;
    unsigned size = 0;
    const long verified = SSL_get_verify_result(transport->tls);
    if (verified != X509_V_OK) {
        return sx_error(SX_PERMISSION_DENIED, "the server's certificate cannot be verified: %s",
                        X509_verify_cert_error_string(verified));
    }
    if (!done) {
        return sx_error(SX_UNAVAILABLE, "the TLS handshake failed");
    }
    SSL_get0_alpn_selected(transport->tls, &protocol, &size);
    return size == 2 && memcmp(protocol, "h2", 2) == 0
               ? SX_OK
               : sx_error(SX_UNAVAILABLE, "the server does not speak HTTP/2");
}
