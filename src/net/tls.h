/* The server's side of TLS: certificates, and the handshake's settings. TLS 1.2 and later; ALPN
 * offers h2 and http/1.1.
 *
 * The PEM texts come from a function of the owner's, and are loaded again when one of the files
 * that it names has changed, without touching the connections that exist. A set that does not load
 * is reported in the log, and the one before stays. */
#ifndef SX_NET_TLS_H
#define SX_NET_TLS_H

#include <stdbool.h>

#include <sextant/status.h>

#include "net/transport.h"

typedef struct sx_tls sx_tls;

enum { SX_TLS_MAX_FILES = 4 };

/* What to load: PEM texts, which sx_tls frees with sx_free; and the files they come from, which are
 * watched, also when the function fails. */
typedef struct sx_tls_material {
    char *key, *certificates; /* certificates: the server's first, then those that sign it */
    char *client_ca;          /* that sign clients' certificates; NULL: the system's */
    bool verify_client;       /* refuse clients without a certificate */
    char *files[SX_TLS_MAX_FILES];
} sx_tls_material;

typedef sx_status sx_tls_load_fn(void *user, sx_tls_material *out);

/* Loads the material. Errors: those of `load`; INVALID_ARGUMENT: no key, no certificate, a key of
 * another certificate, with the cause. */
SX_MUST_USE sx_status sx_tls_create(sx_tls_load_fn *load, void *user, sx_tls **out_tls);
/* After the servers that use it; NULL is allowed. */
void sx_tls_destroy(sx_tls *tls);

/* Begins TLS on an accepted connection; false if out of memory. Any thread. */
SX_MUST_USE bool sx_tls_accept(sx_tls *tls, sx_transport *transport);

#endif
