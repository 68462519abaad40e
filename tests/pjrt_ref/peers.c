/* See peers.h.
 *
 *   to process 0     head {channel, arrays, bytes of each} | the arrays
 *   from process 0   head {channel, 1, bytes} | the result
 *
 * Numbers are the machine's own: all processes run on one. */
#include "pjrt_ref/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"

enum { FIND_MS = 60000, TEXT = 64 };

struct ref_peers {
    int process, processes;
    pthread_mutex_t lock;           /* one collective at a time */
    int sockets[REF_MAX_PROCESSES]; /* of process 0: to each other; of these: [0]; -1 = none */
};

typedef struct head {
    int64_t channel, arrays, bytes;
} head;

/* ---- Bytes ---- */

static sx_status gone(int process)
{
    return sx_error(SX_UNAVAILABLE, "process %d has left a collective", process);
}

static sx_status send_all(ref_peers *p, int process, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(p->sockets[process], at, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return gone(process);
        }
        at += SX_MAX(n, 0);
        size -= (size_t)SX_MAX(n, 0);
    }
    return SX_OK;
}

static sx_status receive_all(ref_peers *p, int process, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t n = recv(p->sockets[process], at, size, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return gone(process);
        }
        at += SX_MAX(n, 0);
        size -= (size_t)SX_MAX(n, 0);
    }
    return SX_OK;
}

/* ---- Finding one another ---- */

static void *make_error(int code, const char *message, size_t size)
{
    return sx_error((sx_code)code, "%.*s", (int)size, message);
}

static sx_status put(const sx_pjrt_client_create *caller, const char *key, int value)
{
    char text[TEXT];
    sx_pjrt_make_error *maker = make_error;
    snprintf(text, sizeof(text), "%d", value);
    return caller->kv_put(&(sx_pjrt_kv_put){.head = {sizeof(sx_pjrt_kv_put), NULL},
                                            .key = key,
                                            .key_size = strlen(key),
                                            .value = text,
                                            .value_size = strlen(text),
                                            .error = &maker,
                                            .user = caller->kv_put_user});
}

static sx_status get(const sx_pjrt_client_create *caller, const char *key, int *out)
{
    char text[TEXT];
    sx_pjrt_make_error *maker = make_error;
    sx_pjrt_kv_get args = {.head = {sizeof(args), NULL},
                           .key = key,
                           .key_size = strlen(key),
                           .timeout_ms = FIND_MS,
                           .error = &maker,
                           .user = caller->kv_get_user};
    SX_TRY(caller->kv_get(&args));
    snprintf(text, sizeof(text), "%.*s", (int)SX_MIN(args.value_size, sizeof(text) - 1),
             args.value);
    args.release(args.value);
    *out = atoi(text);
    return SX_OK;
}

static sx_status no_socket(void)
{
    return sx_error(SX_UNAVAILABLE, "no socket for collectives: %s", strerror(errno));
}

static void at_once(int fd)
{
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Takes the others' connections, each of which begins with the number of its process. */
static sx_status accept_all(ref_peers *p, int listening)
{
    for (int k = 1; k < p->processes; k++) {
        struct pollfd wait = {.fd = listening, .events = POLLIN};
        int32_t process = 0;
        if (poll(&wait, 1, FIND_MS) != 1) {
            return sx_error(SX_DEADLINE_EXCEEDED, "%d of %d processes have come", k, p->processes);
        }
        p->sockets[0] = accept(listening, NULL, NULL);
        SX_TRY(p->sockets[0] < 0 ? no_socket() : SX_OK);
        SX_TRY(receive_all(p, 0, &process, sizeof(process)));
        if (process < 1 || process >= p->processes || p->sockets[process] >= 0) {
            return sx_error(SX_INTERNAL, "process %d has come again", process);
        }
        at_once(p->sockets[0]);
        p->sockets[process] = p->sockets[0];
        p->sockets[0] = -1;
    }
    return SX_OK;
}

static sx_status await_others(ref_peers *p, const sx_pjrt_client_create *caller)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ready = listening >= 0 &&
                 bind(listening, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                 listen(listening, REF_MAX_PROCESSES) == 0 &&
                 getsockname(listening, (struct sockaddr *)&address, &size) == 0;
    sx_status status = ready ? put(caller, "ref/port", ntohs(address.sin_port)) : no_socket();
    status = status != SX_OK ? status : accept_all(p, listening);
    if (listening >= 0) {
        close(listening);
    }
    return status;
}

static sx_status go_to_first(ref_peers *p, const sx_pjrt_client_create *caller)
{
    int port = 0;
    const int32_t own = p->process;
    SX_TRY(get(caller, "ref/port", &port));
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)port)};
    p->sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->sockets[0] < 0 ||
        connect(p->sockets[0], (const struct sockaddr *)&address, sizeof(address)) != 0) {
        return no_socket();
    }
    at_once(p->sockets[0]);
    return send_all(p, 0, &own, sizeof(own));
}

static sx_status find(ref_peers *p, const sx_pjrt_client_create *caller, int devices, int *counts)
{
    char key[TEXT];
    snprintf(key, sizeof(key), "ref/devices/%d", p->process);
    SX_TRY(put(caller, key, devices));
    for (int i = 0; i < p->processes; i++) {
        snprintf(key, sizeof(key), "ref/devices/%d", i);
        SX_TRY(get(caller, key, &counts[i]));
    }
    return p->process == 0 ? await_others(p, caller) : go_to_first(p, caller);
}

sx_status ref_peers_create(const sx_pjrt_client_create *caller, int process, int processes,
                           int devices, int *counts, ref_peers **out)
{
    if (caller->kv_get == NULL || caller->kv_put == NULL || process < 0 || process >= processes ||
        processes > REF_MAX_PROCESSES) {
        return sx_error(SX_INVALID_ARGUMENT, "node %d of %d nodes, %s key-value store", process,
                        processes, caller->kv_get == NULL ? "without a" : "with a");
    }
    ref_peers *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for processes");
    }
    *p = (ref_peers){.process = process, .processes = processes};
    pthread_mutex_init(&p->lock, NULL);
    for (int i = 0; i < REF_MAX_PROCESSES; i++) {
        p->sockets[i] = -1;
    }
    sx_status status = find(p, caller, devices, counts);
    if (status != SX_OK) {
        ref_peers_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

void ref_peers_destroy(ref_peers *p)
{
    if (p != NULL) {
        for (int i = 0; i < REF_MAX_PROCESSES; i++) {
            if (p->sockets[i] >= 0) {
                close(p->sockets[i]);
            }
        }
        pthread_mutex_destroy(&p->lock);
        sx_free(p);
    }
}

void ref_peers_break(ref_peers *p)
{
    for (int i = 0; p != NULL && i < REF_MAX_PROCESSES; i++) {
        if (p->sockets[i] >= 0) {
            (void)shutdown(p->sockets[i], SHUT_RDWR);
        }
    }
}

/* ---- Collectives ---- */

static sx_status check_head(const head *h, int64_t channel, int64_t arrays, int64_t bytes)
{
    return h->channel == channel && h->arrays == arrays && h->bytes == bytes
               ? SX_OK
               : sx_error(SX_INTERNAL,
                          "processes came to different collectives (channels %lld "
                          "and %lld)",
                          (long long)h->channel, (long long)channel);
}

static sx_status ask_first(ref_peers *p, int64_t channel, ref_array *const *mine, int n,
                           ref_array *result)
{
    head h = {channel, n, mine[0]->bytes};
    SX_TRY(send_all(p, 0, &h, sizeof(h)));
    for (int i = 0; i < n; i++) {
        SX_TRY(send_all(p, 0, mine[i]->data, (size_t)mine[i]->bytes));
    }
    SX_TRY(receive_all(p, 0, &h, sizeof(h)));
    SX_TRY(check_head(&h, channel, 1, result->bytes));
    return receive_all(p, 0, result->data, (size_t)result->bytes);
}

/* Receives what the others bring into `room`, replica by replica. */
static sx_status gather(ref_peers *p, int64_t channel, const ref_array *like, int n, int replicas,
                        ref_array *rows, char *room)
{
    int at = n;
    for (int process = 1; process < p->processes; process++) {
        head h;
        SX_TRY(receive_all(p, process, &h, sizeof(h)));
        SX_TRY(check_head(&h, channel, h.arrays, like->bytes));
        for (int64_t k = 0; k < h.arrays; k++, at++) {
            if (at >= replicas) {
                return sx_error(SX_INTERNAL, "more than %d replicas came", replicas);
            }
            rows[at] = (ref_array){.type = like->type,
                                   .bytes = like->bytes,
                                   .data = room + (size_t)(at - n) * (size_t)like->bytes};
            SX_TRY(receive_all(p, process, rows[at].data, (size_t)like->bytes));
        }
    }
    return at == replicas ? SX_OK : sx_error(SX_INTERNAL, "%d of %d replicas came", at, replicas);
}

static sx_status add_for_all(ref_peers *p, int64_t channel, ref_array *const *mine, int n,
                             int replicas, ref_meet_fn *fn, void *user, ref_array *result)
{
    ref_array *rows = sx_alloc((size_t)replicas, sizeof(*rows));
    ref_array **brought = sx_alloc((size_t)replicas, sizeof(*brought));
    char *room = sx_alloc((size_t)(replicas - n) * (size_t)mine[0]->bytes + 1, 1);
    sx_status status = rows == NULL || brought == NULL || room == NULL
                           ? sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a collective")
                           : gather(p, channel, mine[0], n, replicas, rows, room);
    if (status == SX_OK) {
        for (int i = 0; i < replicas; i++) {
            brought[i] = i < n ? mine[i] : &rows[i];
        }
        fn(user, brought, replicas, result);
    }
    const head h = {channel, 1, result->bytes};
    for (int process = 1; process < p->processes && status == SX_OK; process++) {
        status = send_all(p, process, &h, sizeof(h));
        status =
            status != SX_OK ? status : send_all(p, process, result->data, (size_t)result->bytes);
    }
    sx_free(rows);
    sx_free(brought);
    sx_free(room);
    return status;
}

sx_status ref_peers_meet(ref_peers *p, int64_t channel, ref_array *const *mine, int n, int replicas,
                         ref_meet_fn *fn, void *user, ref_array *result)
{
    pthread_mutex_lock(&p->lock);
    sx_status status = p->process == 0
                           ? add_for_all(p, channel, mine, n, replicas, fn, user, result)
                           : ask_first(p, channel, mine, n, result);
    pthread_mutex_unlock(&p->lock);
    if (status != SX_OK) {
        ref_peers_break(p);
    }
    return status;
}
