/* Listening sockets; see listen.h. */
#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"

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

/* 0: a socket without one; -1: an error. */
static int get_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        return -1;
    }
    return bound.ss_family == AF_INET6  ? ntohs(((struct sockaddr_in6 *)&bound)->sin6_port)
           : bound.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&bound)->sin_port)
                                        : 0;
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

/* Sets out_fds[1 .. count) to descriptors of the socket out_fds[0]. On failure all are closed. */
static sx_status share(int count, int *out_fds)
{
    for (int i = 1; i < count; i++) {
        out_fds[i] = fcntl(out_fds[0], F_DUPFD_CLOEXEC, 0);
        if (out_fds[i] < 0) {
            const int error = errno;
            while (i > 0) {
                close(out_fds[--i]);
            }
            return sx_error(SX_RESOURCE_EXHAUSTED, "cannot share a listening socket: %s",
                            strerror(error));
        }
    }
    return SX_OK;
}

sx_status sx_listen_shared(int fd, int count, int *out_fds, int *out_port)
{
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "descriptor %d is not a listening socket", fd);
    }
    out_fds[0] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (out_fds[0] < 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "cannot share a listening socket: %s",
                        strerror(errno));
    }
    *out_port = SX_MAX(get_port(fd), 0);
    return share(count, out_fds);
}

/* ---- UNIX sockets ---- */

/* Whether the file is a socket that nobody listens at. */
static bool is_abandoned(const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(address->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refused = fd >= 0 &&
                         connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                         errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return refused;
}

static sx_status unix_error(const char *path, int error)
{
    const sx_code code = error == EADDRINUSE                   ? SX_ALREADY_EXISTS
                         : error == EACCES || error == EROFS   ? SX_PERMISSION_DENIED
                         : error == ENOENT || error == ENOTDIR ? SX_INVALID_ARGUMENT
                                                               : SX_RESOURCE_EXHAUSTED;
    return sx_error(code, "cannot listen on the UNIX socket %s: %s", path, strerror(error));
}

sx_status sx_listen_unix(const char *path, int backlog, int count, int *out_fds)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);
    if (size == 0 || size >= sizeof(address.sun_path)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "cannot listen on the UNIX socket \"%s\": a path has 1 to %zu bytes", path,
                        sizeof(address.sun_path) - 1);
    }
    memcpy(address.sun_path, path, size);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return unix_error(path, errno);
    }
    if (is_abandoned(&address)) {
        unlink(path);
    }
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        const int error = errno;
        close(fd);
        return unix_error(path, error);
    }
    if (listen(fd, backlog) != 0) {
        const int error = errno;
        close(fd);
        unlink(path);
        return unix_error(path, error);
    }
    out_fds[0] = fd;
    sx_status status = share(count, out_fds);
    if (status != SX_OK) {
        unlink(path);
    }
    return status;
}
