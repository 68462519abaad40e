/* For tests of calls that are under way at once: what came of them, and connections that are cut.
 */
#ifndef SX_TESTS_NET_CALLS_H
#define SX_TESTS_NET_CALLS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "harness.h"

enum { MAX_BODY = 1 << 20 };

/* What came of the calls. */
struct results {
    int ended, good;
    sx_code code; /* of the last failure */
    int http_status;
    size_t body_size;
    char body[100];
};

static inline void note(void *user, sx_status status, int http_status, const sx_buf *headers,
                        const sx_buf *body)
{
    struct results *r = user;
    assert_true(status != SX_OK || strcasestr(sx_buf_text(headers), "content-length:") != NULL);
    r->ended++;
    r->good += status == SX_OK;
    r->code = status != SX_OK ? sx_status_code(status) : r->code;
    r->http_status = http_status;
    r->body_size = body->size;
    snprintf(r->body, sizeof(r->body), "%s", sx_buf_text(body));
    sx_status_free(status);
}

/* Passes bytes between a client and a server, until it is told to cut every connection. */
struct proxy {
    pthread_t thread;
    int fd, port, server_port;
    atomic_int cuts, accepted;
};

static inline int connect_to(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* One connection after the other. */
static inline void *run_proxy(void *user)
{
    struct proxy *proxy = user;
    int client;
    while ((client = accept(proxy->fd, NULL, NULL)) >= 0) {
        const int server = connect_to(proxy->server_port);
        const int cuts = atomic_load(&proxy->cuts);
        bool more = true;
        atomic_fetch_add(&proxy->accepted, 1);
        while (more && atomic_load(&proxy->cuts) == cuts) {
            struct pollfd ready[] = {{.fd = client, .events = POLLIN},
                                     {.fd = server, .events = POLLIN}};
            char data[4096];
            poll(ready, 2, 5);
            for (int i = 0; i < 2; i++) {
                if (ready[i].revents != 0) {
                    const ssize_t got = read(ready[i].fd, data, sizeof(data));
                    more = more && got > 0 && write(ready[1 - i].fd, data, (size_t)got) == got;
                }
            }
        }
        close(client);
        close(server);
    }
    return NULL;
}

static inline void open_proxy(struct proxy *proxy, int server_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    *proxy = (struct proxy){.fd = socket(AF_INET, SOCK_STREAM, 0), .server_port = server_port};
    assert_int_equal(bind(proxy->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(proxy->fd, 16), 0);
    assert_int_equal(getsockname(proxy->fd, (struct sockaddr *)&at, &size), 0);
    proxy->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run_proxy, proxy), 0);
}

static inline void cut_proxy(struct proxy *proxy)
{
    atomic_fetch_add(&proxy->cuts, 1);
}

static inline void close_proxy(struct proxy *proxy)
{
    cut_proxy(proxy);
    shutdown(proxy->fd, SHUT_RD);
    pthread_join(proxy->thread, NULL);
    close(proxy->fd);
}

#endif
