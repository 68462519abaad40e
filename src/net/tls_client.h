/* The client's side of TLS, for HTTP/2: TLS 1.2 and later, the server's certificate is verified,
 * and ALPN asks for h2. */
#ifndef SX_NET_TLS_CLIENT_H
#define SX_NET_TLS_CLIENT_H

#include <stdbool.h>

#include <sextant/status.h>

#include "net/transport.h"

typedef struct sx_tls_client sx_tls_client;

/* `host` is the server's name or address; files are PEM, and NULL: the system's certificates that
 * sign servers', no certificate of the client. Errors: INVALID_ARGUMENT: a file that cannot be
 * used. */
SX_MUST_USE sx_status sx_tls_client_create(const char *host, const char *ca_file,
                                           const char *certificate_file, const char *key_file,
                                           sx_tls_client **out_client);
void sx_tls_client_destroy(sx_tls_client *client); /* after its connections; NULL is allowed */

/* Begins TLS on a connection; false if out of memory. */
SX_MUST_USE bool sx_tls_client_begin(sx_tls_client *client, sx_transport *transport);
/* After the handshake, `done` or failed: PERMISSION_DENIED: the server's certificate cannot be
 * verified; UNAVAILABLE: another failure, or the server does not speak HTTP/2. */
SX_MUST_USE sx_status sx_tls_client_check(const sx_transport *transport, bool done);

#endif
