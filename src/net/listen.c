/* Listening sockets; see listen.h. */
#include "net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
    char text[80]; /* for messages: [::]:8501 */
};

static void set_port(struct address *address, int port)
{
    if (address->storage.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons((uint16_t)port);
    } else {
        ((struct sockaddr_in *)&address->storage)->sin_port = htons((uint16_t)port);
    }
}

static int get_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        return -1;
    }
    return bound.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&bound)->sin6_port)
                                       : ntohs(((struct sockaddr_in *)&bound)->sin_port);
}

static sx_status resolve(const char *host, int port, struct address *out)
{
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot resolve host \"%s\": %s", host,
                        gai_strerror(error));
    }
    memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
    out->size = found->ai_addrlen;
    freeaddrinfo(found);
    snprintf(out->text, sizeof(out->text), "%.64s:%d", host, port);
    return SX_OK;
}

static void any_address(int family, int port, struct address *out)
{
    memset(out, 0, sizeof(*out));
    out->storage.ss_family = (sa_family_t)family;
    out->size = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    set_port(out, port);
    snprintf(out->text, sizeof(out->text), family == AF_INET6 ? "[::]:%d" : "0.0.0.0:%d", port);
}

static sx_status listen_error(const struct address *address, int error)
{
    static const struct {
        int error;
        sx_code code;
        const char *advice;
    } known[] = {
        {EADDRINUSE, SX_ALREADY_EXISTS, "; choose another port"},
        {EACCES, SX_PERMISSION_DENIED, "; ports below 1024 need privileges"},
        {EADDRNOTAVAIL, SX_INVALID_ARGUMENT, "; no network interface has that address"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].error == error) {
            return sx_error(known[i].code, "cannot listen on %s: %s%s", address->text,
                            strerror(error), known[i].advice);
        }
    }
    return sx_error(SX_RESOURCE_EXHAUSTED, "cannot listen on %s: %s", address->text,
                    strerror(error));
}

/* A bound socket, or -1 with errno. */
static int open_bound(const struct address *address, int share_port)
{
    const int on = 1, off = 0;
    const int fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (share_port) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    }
    if (address->storage.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, (const struct sockaddr *)&address->storage, address->size) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Fails if another socket listens at the address: one without SO_REUSEPORT cannot share it. If the
 * port was 0, fills in the one that the kernel chose. */
static int probe(struct address *address, int *port)
{
    const int fd = open_bound(address, 0);
    if (fd < 0) {
        return -1;
    }
    *port = get_port(fd);
    set_port(address, *port);
    close(fd);
    return 0;
}

static sx_status choose_address(const char *host, int port, struct address *out, int *out_port)
{
    if (host != NULL && host[0] != '\0') {
        SX_TRY(resolve(host, port, out));
        return probe(out, out_port) == 0 ? SX_OK : listen_error(out, errno);
    }
    any_address(AF_INET6, port, out);
    if (probe(out, out_port) == 0) {
        return SX_OK;
    }
    if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL) {
        return listen_error(out, errno);
    }
    any_address(AF_INET, port, out); /* IPv6 is not available */
    return probe(out, out_port) == 0 ? SX_OK : listen_error(out, errno);
}

sx_status sx_listen(const char *host, int port, int backlog, int count, int *out_fds, int *out_port)
{
    struct address address;
    int chosen = port;
    if (port < 0 || port > 65535) {
        return sx_error(SX_INVALID_ARGUMENT, "port %d is out of range: expected 0 to 65535", port);
    }
    SX_TRY(choose_address(host, port, &address, &chosen));
    for (int i = 0; i < count; i++) {
        const int fd = open_bound(&address, 1);
        if (fd < 0 || listen(fd, backlog) != 0) {
            const int error = errno;
            if (fd >= 0) {
                close(fd);
            }
            while (i > 0) {
                close(out_fds[--i]);
            }
            return listen_error(&address, error);
        }
        out_fds[i] = fd;
    }
    *out_port = chosen;
    return SX_OK;
}
