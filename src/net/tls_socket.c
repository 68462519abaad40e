/* See tls_socket.h. */
#include "net/tls_socket.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

static int socket_result(BIO *bio, ssize_t result, bool writing)
{
    BIO_clear_retry_flags(bio);
    if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (writing) {
            BIO_set_retry_write(bio);
        } else {
            BIO_set_retry_read(bio);
        }
    }
    return (int)result;
}

static int socket_write(BIO *bio, const char *data, int size)
{
    const int fd = (int)(intptr_t)BIO_get_data(bio);
    return socket_result(bio, send(fd, data, (size_t)size, MSG_NOSIGNAL), true);
}

static int socket_read(BIO *bio, char *data, int size)
{
    const int fd = (int)(intptr_t)BIO_get_data(bio);
    return socket_result(bio, recv(fd, data, (size_t)size, 0), false);
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *sx_tls_socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sextant socket");
    if (method != NULL &&
        (!BIO_meth_set_write(method, socket_write) || !BIO_meth_set_read(method, socket_read) ||
         !BIO_meth_set_ctrl(method, socket_control))) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

bool sx_tls_socket_begin(SSL_CTX *context, BIO_METHOD *method, sx_transport *transport)
{
    SSL *ssl = SSL_new(context);
    BIO *bio = ssl != NULL ? BIO_new(method) : NULL;
    if (bio == NULL) {
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    BIO_set_data(bio, (void *)(intptr_t)transport->fd);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    transport->tls = ssl;
    return true;
}
