/* A raw TCP client for tests: sends exactly the bytes it is told, waits with a limit. */
#ifndef SX_TESTS_NET_CLIENT_H
#define SX_TESTS_NET_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static inline int client_connect(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    const struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fd;
}

/* False if the peer closed first. */
static inline int client_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return 0;
        }
        data += sent;
        size -= (size_t)sent;
    }
    return 1;
}

struct answer {
    int status; /* 0 = the connection ended before a whole answer */
    char head[2048];
    size_t body_size;
    char body[32768]; /* its beginning, with a NUL */
};

/* Reads one byte; -1 at the end. */
static inline int client_byte(int fd)
{
    unsigned char c;
    ssize_t got;
    do {
        got = recv(fd, &c, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? c : -1;
}

/* Reads one answer with its Content-Length body. */
static inline struct answer client_answer(int fd)
{
    struct answer answer;
    size_t size = 0, length = 0;
    int c;
    memset(&answer, 0, sizeof(answer));
    while (size + 1 < sizeof(answer.head) && (c = client_byte(fd)) >= 0) {
        answer.head[size++] = (char)c;
        answer.head[size] = '\0';
        if (size >= 4 && memcmp(answer.head + size - 4, "\r\n\r\n", 4) == 0) {
            break;
        }
    }
    if (sscanf(answer.head, "HTTP/1.1 %d", &answer.status) != 1) {
        answer.status = 0;
        return answer;
    }
    const char *field = strstr(answer.head, "Content-Length: ");
    length = field ? strtoul(field + 16, NULL, 10) : 0;
    while (answer.body_size < length) {
        char piece[65536];
        const size_t left = length - answer.body_size;
        const ssize_t got = recv(fd, piece, left < sizeof(piece) ? left : sizeof(piece), 0);
        if (got <= 0) {
            answer.status = 0;
            return answer;
        }
        for (ssize_t i = 0; i < got; i++) {
            if (answer.body_size + (size_t)i + 1 < sizeof(answer.body)) {
                answer.body[answer.body_size + (size_t)i] = piece[i];
            }
        }
        answer.body_size += (size_t)got;
    }
    return answer;
}

/* The same after interim answers, 100 Continue. */
static inline struct answer client_final_answer(int fd)
{
    struct answer answer;
    do {
        answer = client_answer(fd);
    } while (answer.status / 100 == 1);
    return answer;
}

/* Connects, sends, reads one answer, closes. */
static inline struct answer client_exchange(int port, const char *request, size_t size)
{
    const int fd = client_connect(port);
    struct answer answer;
    memset(&answer, 0, sizeof(answer));
    if (fd >= 0) {
        client_send(fd, request, size);
        answer = client_answer(fd);
        close(fd);
    }
    return answer;
}

/* A POST of `body` to `path` into `out`, keep-alive; returns its size. */
static inline size_t client_post(char *out, size_t capacity, const char *path, const char *body)
{
    return (size_t)snprintf(out, capacity,
                            "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                            path, strlen(body), body);
}

static inline size_t client_get(char *out, size_t capacity, const char *path)
{
    return (size_t)snprintf(out, capacity, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
}

/* Whether the peer closes within `wait_ms`; bytes that come before count as nothing. */
static inline int client_sees_close(int fd, int wait_ms)
{
    char dropped[4096];
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, wait_ms) <= 0) {
            return 0;
        }
        if (recv(fd, dropped, sizeof(dropped), 0) <= 0) {
            return 1;
        }
    }
}

#endif
