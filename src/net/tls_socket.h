/* A socket as OpenSSL reads and writes it, both for servers and for clients: without SIGPIPE. */
#ifndef SX_NET_TLS_SOCKET_H
#define SX_NET_TLS_SOCKET_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "net/transport.h"

BIO_METHOD *sx_tls_socket_method(void); /* NULL if out of memory; freed by BIO_meth_free() */

/* Begins TLS on a connection, with the settings of `context`; false if out of memory. What follows
 * is told to transport->tls: which side this is, for one. */
bool sx_tls_socket_begin(SSL_CTX *context, BIO_METHOD *method, sx_transport *transport);

#endif
