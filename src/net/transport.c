/* Sockets and TLS over sockets; see transport.h. */
#include "net/transport.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"

/* The errno that the failure of an OpenSSL call stands for. The error queue is emptied, because the
 * next call would report what is left in it. */
static int tls_errno(SSL *tls, int result)
{
    const int saved = errno;
    const int error = SSL_get_error(tls, result);
    ERR_clear_error();
    switch (error) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return EAGAIN;
    case SSL_ERROR_SYSCALL:
        return saved != 0 && saved != EAGAIN ? saved : ECONNRESET;
    default:
        return EPROTO;
    }
}

static void name_peer(sx_transport *transport)
{
    X509 *certificate = SSL_get0_peer_certificate(transport->tls);
    if (certificate == NULL || SSL_get_verify_result(transport->tls) != X509_V_OK) {
        return;
    }
    X509_NAME *subject = X509_get_subject_name(certificate);
    const int size = X509_NAME_get_text_by_NID(subject, NID_commonName, NULL, 0);
    if (size <= 0 || size >= SX_TRANSPORT_PEER) {
        return;
    }
    X509_NAME_get_text_by_NID(subject, NID_commonName, transport->peer, SX_TRANSPORT_PEER);
    if (strlen(transport->peer) != (size_t)size) { /* a NUL in it would end another name early */
        transport->peer[0] = '\0';
    }
}

sx_handshake sx_transport_handshake(sx_transport *transport)
{
    if (transport->tls == NULL) {
        return SX_HANDSHAKE_DONE;
    }
    const int result = SSL_do_handshake(transport->tls);
    if (result == 1) {
        name_peer(transport);
        return SX_HANDSHAKE_DONE;
    }
    const int error = SSL_get_error(transport->tls, result);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ    ? SX_HANDSHAKE_WANTS_READ
           : error == SSL_ERROR_WANT_WRITE ? SX_HANDSHAKE_WANTS_WRITE
                                           : SX_HANDSHAKE_FAILED;
}

ssize_t sx_transport_recv(sx_transport *transport, void *at, size_t room)
{
    if (transport->tls == NULL) {
        ssize_t got;
        do {
            got = recv(transport->fd, at, room, 0);
        } while (got < 0 && errno == EINTR);
        return got;
    }
    const int got = SSL_read(transport->tls, at, (int)SX_MIN(room, (size_t)INT_MAX));
    if (got > 0) {
        return got;
    }
    if (SSL_get_error(transport->tls, got) == SSL_ERROR_ZERO_RETURN) {
        return 0;
    }
    errno = tls_errno(transport->tls, got);
    return -1;
}

ssize_t sx_transport_send(sx_transport *transport, const struct iovec *parts, int count)
{
    if (transport->tls == NULL) {
        const struct msghdr message = {.msg_iov = (struct iovec *)parts,
                                       .msg_iovlen = (size_t)count};
        ssize_t sent;
        do {
            sent = sendmsg(transport->fd, &message, MSG_NOSIGNAL);
        } while (sent < 0 && errno == EINTR);
        return sent;
    }
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        const int size = (int)SX_MIN(parts[i].iov_len, (size_t)INT_MAX);
        const int sent = size == 0 ? 0 : SSL_write(transport->tls, parts[i].iov_base, size);
        if (sent < 0 || (sent == 0 && size > 0)) {
            errno = tls_errno(transport->tls, sent);
            return total > 0 ? total : -1;
        }
        total += sent;
        if ((size_t)sent < parts[i].iov_len) {
            break;
        }
    }
    return total;
}

bool sx_transport_pending(const sx_transport *transport)
{
    return transport->tls != NULL && SSL_has_pending(transport->tls);
}

void sx_transport_finish(sx_transport *transport)
{
    if (transport->tls != NULL) {
        SSL_shutdown(transport->tls);
        ERR_clear_error();
    }
    shutdown(transport->fd, SHUT_WR);
}

void sx_transport_close(sx_transport *transport)
{
    SSL_free(transport->tls);
    transport->tls = NULL;
    close(transport->fd);
    transport->fd = -1;
}
