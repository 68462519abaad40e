/* The bytes of a connection: a socket, or TLS over one. Non-blocking; SIGPIPE is never raised. */
#ifndef SX_NET_TRANSPORT_H
#define SX_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ssl_st; /* OpenSSL's SSL */

enum { SX_TRANSPORT_PEER = 128, SX_TRANSPORT_REMOTE = 56 };

typedef struct sx_transport {
    int fd;
    struct ssl_st *tls; /* NULL = plain */
    /* The common name in the peer's certificate, once that has been verified; "": none. */
    char peer[SX_TRANSPORT_PEER];
    char remote[SX_TRANSPORT_REMOTE]; /* the peer's address and port; "": a UNIX socket */
} sx_transport;

typedef enum sx_handshake {
    SX_HANDSHAKE_DONE,
    SX_HANDSHAKE_WANTS_READ,
    SX_HANDSHAKE_WANTS_WRITE,
    SX_HANDSHAKE_FAILED,
} sx_handshake;

/* Goes on with the TLS handshake; DONE at once if plain. */
sx_handshake sx_transport_handshake(sx_transport *transport);

/* As recv and sendmsg: the number of bytes; 0 at the end of the stream; -1 with errno, EAGAIN if
 * nothing can be transferred now. */
ssize_t sx_transport_recv(sx_transport *transport, void *at, size_t room);
ssize_t sx_transport_send(sx_transport *transport, const struct iovec *parts, int count);
/* Whether bytes that were received and decrypted wait here, where epoll does not see them. */
bool sx_transport_pending(const sx_transport *transport);

void sx_transport_finish(sx_transport *transport); /* no more will be sent */
void sx_transport_close(sx_transport *transport);

#endif
