/* The HTTP server around its connections: workers, accepting, draining; see http_server.h. */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/http_conn.h"
#include "net/listen.h"

enum {
    MAX_LOOPS = 256,
    ACCEPT_BURST = 64,    /* per event, so that open connections get their turn */
    ACCEPT_PAUSE_MS = 50, /* if the spare descriptor did not help */
    CUT_OFF_MS = 1000,
};

/* One address as one loop listens to it. */
struct acceptor {
    struct listener *listener;
    sx_loop_io io; /* fd < 0: not listening */
    sx_loop_timer resume;
    sx_tls *tls;
    bool tcp;
    int address; /* its number */
};

/* A worker with its listening sockets and thread. */
struct listener {
    sx_http_worker worker;      /* must be first: converted to its listener by address */
    struct acceptor *acceptors; /* [server->address_count] */
    sx_loop_task drain, cut_off;
    int spare_fd; /* closed to accept and close a connection when descriptors run out */
    pthread_t thread;
    bool started;
};

struct sx_http_server {
    sx_http_config config;
    int address_count;
    int *ports;                 /* [address_count]; 0 for a UNIX socket */
    char **paths;               /* [address_count]; of UNIX sockets, else NULL */
    struct acceptor *acceptors; /* [count * address_count] */
    int count;
    bool drained;
    atomic_int open_connections;
    pthread_mutex_t mutex; /* guards empty_count */
    pthread_cond_t emptied;
    int empty_count; /* workers that have drained */
    struct listener listeners[];
};

/* ---- Accepting ---- */

/* Closes a connection that exceeds the limits. The peer receives the response only if it has not
 * sent anything yet. */
static void shed(struct listener *listener, int fd)
{
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    atomic_fetch_add_explicit(&listener->worker.shed, 1, memory_order_relaxed);
    const ssize_t sent = send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    close(fd);
}

/* Out of descriptors: the connection at the head of the queue would wake the loop again and again.
 * Uses the spare descriptor to accept and close it. False if that failed as well. */
static bool shed_with_spare(const struct acceptor *acceptor)
{
    struct listener *listener = acceptor->listener;
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
    }
    const int fd = accept4(acceptor->io.fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        atomic_fetch_add_explicit(&listener->worker.accepted, 1, memory_order_relaxed);
        shed(listener, fd);
    }
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void pause_accepting(struct acceptor *acceptor)
{
    sx_loop *loop = acceptor->listener->worker.loop;
    sx_loop_modify(loop, &acceptor->io, 0);
    sx_loop_timer_set(loop, &acceptor->resume,
                      sx_loop_now_ns(loop) + ACCEPT_PAUSE_MS * (int64_t)1000000);
}

static void on_resume(void *user)
{
    struct acceptor *acceptor = user;
    sx_loop_modify(acceptor->listener->worker.loop, &acceptor->io, EPOLLIN);
}

/* "127.0.0.1:8501", "[::1]:8501". */
static void print_address(const struct sockaddr_storage *address, char text[SX_TRANSPORT_REMOTE])
{
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(text, SX_TRANSPORT_REMOTE, "%s:%d", host, ntohs(v4->sin_port));
    } else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, sizeof(host));
        snprintf(text, SX_TRANSPORT_REMOTE, "%s:%d", host, ntohs(v6->sin6_port));
    } else if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        snprintf(text, SX_TRANSPORT_REMOTE, "[%s]:%d", host, ntohs(v6->sin6_port));
    }
}

static void welcome(const struct acceptor *acceptor, int fd, const struct sockaddr_storage *address)
{
    struct listener *listener = acceptor->listener;
    const sx_http_config *config = listener->worker.config;
    const int on = 1;
    sx_transport transport = {.fd = fd, .address = acceptor->address};
    atomic_fetch_add_explicit(&listener->worker.accepted, 1, memory_order_relaxed);
    if (atomic_fetch_add(listener->worker.open_connections, 1) >= config->max_connections ||
        (acceptor->tls != NULL && !sx_tls_accept(acceptor->tls, &transport))) {
        atomic_fetch_sub(listener->worker.open_connections, 1);
        shed(listener, fd);
        return;
    }
    print_address(address, transport.remote);
    if (acceptor->tcp) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    sx_http1_open(&listener->worker, transport);
}

/* Accepts one connection; false if there is none or the loop should pause. */
static bool accept_one(struct acceptor *acceptor)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    const int fd =
        accept4(acceptor->io.fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        welcome(acceptor, fd, &address);
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EINTR:
    case ECONNABORTED: /* aborted while in the queue */
    case EPROTO:
    case EPERM: /* refused by a firewall rule */
        return true;
    default: /* EMFILE, ENFILE, ENOBUFS, ENOMEM */
        if (shed_with_spare(acceptor)) {
            return true;
        }
        pause_accepting(acceptor);
        return false;
    }
}

static void on_acceptable(void *user, uint32_t events)
{
    struct acceptor *acceptor = user;
    (void)events;
    for (int i = 0; i < ACCEPT_BURST && accept_one(acceptor); i++) {
    }
}

/* ---- Draining ---- */

static void on_empty(sx_http_worker *worker)
{
    sx_http_server *server = worker->server;
    pthread_mutex_lock(&server->mutex);
    server->empty_count++;
    pthread_cond_signal(&server->emptied);
    pthread_mutex_unlock(&server->mutex);
    sx_loop_stop(worker->loop);
}

/* Connections made before the drain are served: the queue is emptied before the socket is closed.
 */
static void stop_listening(struct acceptor *acceptor)
{
    sx_loop *loop = acceptor->listener->worker.loop;
    while (accept_one(acceptor)) {
    }
    sx_loop_remove(loop, &acceptor->io);
    sx_loop_timer_cancel(loop, &acceptor->resume);
    close(acceptor->io.fd);
    acceptor->io.fd = -1;
}

static void on_drain(void *user)
{
    struct listener *listener = user;
    sx_http_worker *worker = &listener->worker;
    for (int i = 0; i < worker->server->address_count; i++) {
        stop_listening(&listener->acceptors[i]);
    }
    worker->draining = true;
    if (worker->conn_count == 0) {
        on_empty(worker);
        return;
    }
    for (sx_http_conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        sx_http_conn_drain(conn);
    }
}

static void on_cut_off(void *user)
{
    struct listener *listener = user;
    for (sx_http_conn *conn = listener->worker.conns; conn != NULL; conn = conn->next) {
        sx_http_conn_close(conn);
    }
}

/* Waits until all workers are empty or `wait_ms` have passed. */
static bool wait_until_empty(sx_http_server *server, int wait_ms)
{
    const int64_t deadline_ns = sx_now_ns() + (int64_t)wait_ms * 1000000;
    const struct timespec deadline = sx_timespec_of(deadline_ns);
    int error = 0;
    pthread_mutex_lock(&server->mutex);
    while (server->empty_count < server->count && error == 0) {
        error =
            pthread_cond_clockwait(&server->emptied, &server->mutex, CLOCK_MONOTONIC, &deadline);
    }
    const bool empty = server->empty_count == server->count;
    pthread_mutex_unlock(&server->mutex);
    return empty;
}

bool sx_http_server_drain(sx_http_server *server, int grace_ms)
{
    if (server->drained) {
        return true;
    }
    server->drained = true;
    for (int i = 0; i < server->count; i++) {
        if (!server->listeners[i].started) {
            server->empty_count++; /* the threads are not running yet */
            continue;
        }
        sx_loop_post(server->listeners[i].worker.loop, &server->listeners[i].drain);
    }
    if (wait_until_empty(server, grace_ms)) {
        return true;
    }
    for (int i = 0; i < server->count; i++) {
        if (server->listeners[i].started) {
            sx_loop_post(server->listeners[i].worker.loop, &server->listeners[i].cut_off);
        }
    }
    wait_until_empty(server, CUT_OFF_MS); /* without those that are still with the handler */
    return false;
}

/* ---- Creation and destruction ---- */

static void *run_worker(void *user)
{
    struct listener *listener = user;
    sx_status status = sx_loop_run(listener->worker.loop);
    if (status != SX_OK) { /* epoll failed: no requests can be served, but the drain must end */
        sx_status_free(status);
        listener->worker.draining = true;
        on_empty(&listener->worker);
    }
    return NULL;
}

static int default_to(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

static sx_http_config complete(const sx_http_config *given)
{
    sx_http_config config = *given;
    config.loops = SX_MIN(default_to(config.loops, 1), MAX_LOOPS);
    config.backlog = default_to(config.backlog, 1024);
    config.max_head_bytes = config.max_head_bytes ? config.max_head_bytes : 16 * 1024;
    config.max_connections = default_to(config.max_connections, 10000);
    config.max_body_bytes = config.max_body_bytes ? config.max_body_bytes : 64 * 1024 * 1024;
    if (config.max_request_bytes > 0) {
        config.max_body_bytes = SX_MIN(config.max_body_bytes, config.max_request_bytes);
    }
    if (config.memory != NULL && config.memory->limit_bytes > 0) {
        config.max_body_bytes = SX_MIN(config.max_body_bytes, config.memory->limit_bytes / 2);
    }
    config.head_timeout_ms = default_to(config.head_timeout_ms, 10000);
    config.body_timeout_ms = default_to(config.body_timeout_ms, 30000);
    config.write_timeout_ms = default_to(config.write_timeout_ms, 30000);
    config.max_streams = default_to(config.max_streams, 128);
    config.idle_timeout_ms = default_to(config.idle_timeout_ms, 60000);
    config.request_timeout_ms = default_to(config.request_timeout_ms, 30000);
    config.addresses = NULL;
    return config;
}

static sx_status prepare_listener(sx_http_server *server, struct listener *listener)
{
    listener->drain = (sx_loop_task){.fn = on_drain, .user = listener};
    listener->cut_off = (sx_loop_task){.fn = on_cut_off, .user = listener};
    listener->worker.server = server;
    listener->worker.config = &server->config;
    listener->worker.on_empty = on_empty;
    listener->worker.open_connections = &server->open_connections;
    SX_TRY(sx_loop_create(&listener->worker.loop));
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < server->address_count; i++) {
        SX_TRY(sx_loop_add(listener->worker.loop, &listener->acceptors[i].io));
    }
    return SX_OK;
}

/* Opens the sockets of one address, one for each loop. */
static sx_status bind_address(sx_http_server *server, const sx_http_address *address, int index)
{
    int fds[MAX_LOOPS];
    if (address->shared_fd > 0) {
        SX_TRY(sx_listen_shared(address->shared_fd, server->count, fds, &server->ports[index]));
    } else if (address->path != NULL) {
        server->paths[index] = sx_strdup(address->path);
        if (server->paths[index] == NULL) {
            return sx_no_memory("for an HTTP server");
        }
        sx_status status =
            sx_listen_unix(address->path, server->config.backlog, server->count, fds);
        if (status != SX_OK) {
            sx_free(server->paths[index]); /* another program's socket stays */
            server->paths[index] = NULL;
            return status;
        }
    } else {
        SX_TRY(sx_listen(address->host, address->port, server->config.backlog, server->count, fds,
                         &server->ports[index]));
    }
    for (int i = 0; i < server->count; i++) {
        struct acceptor *acceptor = &server->listeners[i].acceptors[index];
        acceptor->io.fd = fds[i];
        acceptor->tls = address->tls;
        acceptor->tcp = address->path == NULL;
        acceptor->address = index;
    }
    return SX_OK;
}

static sx_status prepare(sx_http_server *server, const sx_http_address *addresses)
{
    const size_t count = (size_t)server->address_count;
    server->ports = sx_alloc(count, sizeof(server->ports[0]));
    server->paths = sx_alloc(count, sizeof(server->paths[0]));
    server->acceptors = sx_alloc(count * (size_t)server->count, sizeof(server->acceptors[0]));
    if (server->ports == NULL || server->paths == NULL || server->acceptors == NULL) {
        return sx_no_memory("for an HTTP server");
    }
    for (int i = 0; i < server->count; i++) {
        struct listener *listener = &server->listeners[i];
        listener->worker.index = i;
        listener->acceptors = server->acceptors + (size_t)i * count;
        for (size_t k = 0; k < count; k++) {
            struct acceptor *acceptor = &listener->acceptors[k];
            *acceptor = (struct acceptor){.listener = listener};
            acceptor->io =
                (sx_loop_io){.fd = -1, .events = EPOLLIN, .fn = on_acceptable, .user = acceptor};
            acceptor->resume = (sx_loop_timer){.fn = on_resume, .user = acceptor};
        }
    }
    for (int i = 0; i < server->address_count; i++) {
        SX_TRY(bind_address(server, &addresses[i], i));
    }
    for (int i = 0; i < server->count; i++) {
        SX_TRY(prepare_listener(server, &server->listeners[i]));
    }
    return SX_OK;
}

sx_status sx_http_server_create(const sx_http_config *config, sx_http_server **out_server)
{
    static const sx_http_address any = {0};
    const sx_http_config complete_config = complete(config);
    const int count = complete_config.loops;
    sx_http_server *server =
        sx_alloc(1, sizeof(*server) + (size_t)count * sizeof(server->listeners[0]));
    if (server == NULL) {
        return sx_no_memory("for an HTTP server");
    }
    server->config = complete_config;
    server->address_count = SX_MAX(config->address_count, 1);
    server->count = count;
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->emptied, NULL);
    for (int i = 0; i < count; i++) {
        server->listeners[i].spare_fd = -1;
    }
    sx_status status = prepare(server, config->address_count > 0 ? config->addresses : &any);
    if (status != SX_OK) {
        sx_http_server_destroy(server);
        return status;
    }
    *out_server = server;
    return SX_OK;
}

int sx_http_server_port(const sx_http_server *server, int address)
{
    return server->ports[address];
}

sx_status sx_http_server_start(sx_http_server *server)
{
    for (int i = 0; i < server->count; i++) {
        const int error =
            sx_thread_create(&server->listeners[i].thread, NULL, run_worker, &server->listeners[i]);
        if (error != 0) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "HTTP server: cannot start thread %d of %d: %s",
                            i + 1, server->count, strerror(error));
        }
        server->listeners[i].started = true;
    }
    return SX_OK;
}

static void destroy_listener(struct listener *listener, int address_count)
{
    if (listener->started) {
        pthread_join(listener->thread, NULL);
    }
    for (int i = 0; listener->acceptors != NULL && i < address_count; i++) {
        if (listener->acceptors[i].io.fd >= 0) {
            close(listener->acceptors[i].io.fd);
        }
    }
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
    }
    sx_buf_deinit(&listener->worker.in);
    sx_buf_deinit(&listener->worker.out);
    sx_loop_destroy(listener->worker.loop);
}

void sx_http_server_destroy(sx_http_server *server)
{
    if (server == NULL) {
        return;
    }
    sx_http_server_drain(server, 0);
    for (int i = 0; i < server->count; i++) {
        destroy_listener(&server->listeners[i], server->address_count);
    }
    for (int i = 0; server->paths != NULL && i < server->address_count; i++) {
        if (server->paths[i] != NULL) {
            unlink(server->paths[i]);
            sx_free(server->paths[i]);
        }
    }
    sx_free(server->paths);
    sx_free(server->ports);
    sx_free(server->acceptors);
    pthread_mutex_destroy(&server->mutex);
    pthread_cond_destroy(&server->emptied);
    sx_free(server);
}

/* ---- Accessors ---- */

sx_http_stats sx_http_server_stats(const sx_http_server *server)
{
    sx_http_stats sum = {0};
    for (int i = 0; i < server->count; i++) {
        const sx_http_worker *worker = &server->listeners[i].worker;
        sum.accepted += atomic_load_explicit(&worker->accepted, memory_order_relaxed);
        sum.shed += atomic_load_explicit(&worker->shed, memory_order_relaxed);
        sum.answered += atomic_load_explicit(&worker->answered, memory_order_relaxed);
        sum.requests += atomic_load_explicit(&worker->requests, memory_order_relaxed);
        sum.refused += atomic_load_explicit(&worker->refused, memory_order_relaxed);
        sum.connections += atomic_load_explicit(&worker->connections, memory_order_relaxed);
    }
    return sum;
}

const char *sx_http_worker_date(sx_http_worker *worker)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t now = time(NULL);
    if (worker->date_second != now || worker->date[0] == '\0') {
        struct tm utc;
        gmtime_r(&now, &utc);
        snprintf(worker->date, sizeof(worker->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                 days[utc.tm_wday % 7], utc.tm_mday % 32, months[utc.tm_mon % 12],
                 (utc.tm_year + 1900) % 10000, utc.tm_hour % 24, utc.tm_min % 60, utc.tm_sec % 61);
        worker->date_second = now;
    }
    return worker->date;
}

const char *sx_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < SX_COUNT(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Unknown";
}
