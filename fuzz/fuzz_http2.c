/* An HTTP/2 connection of the server: any bytes behind the preface end in answers or in its end,
 * whatever their sizes; the memory of requests is given back. The server is made once, and its one
 * loop runs on its own thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/grpc.h"
#include "net/http_server.h"

static sx_budget memory;
static char path[100];

/* Gives the body back, as a call if it is one. */
static void handle(void *user, sx_http_exchange *exchange)
{
    const sx_bytes body = sx_http_request_body(exchange);
    (void)user;
    if (sx_grpc_is_call(sx_http_request_head(exchange))) {
        sx_buf inflated, out;
        sx_bytes message = {"", 0};
        sx_buf_init(&inflated, 0);
        sx_buf_init(&out, 0);
        sx_status status = sx_grpc_begin(exchange);
        if (status == SX_OK) {
            status = sx_grpc_request(exchange, 1 << 16, &inflated, &message);
        }
        const size_t at = sx_grpc_message_begin(&out);
        sx_buf_append(&out, message.data, message.size);
        sx_grpc_message_end(&out, at);
        sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
        sx_buf_deinit(&inflated);
        return;
    }
    sx_http_response response = {.status = 200, .body = sx_alloc(body.size + 1, 1)};
    if (body.size > 0) {
        memcpy(response.body, body.data, body.size);
    }
    response.body_size = body.size;
    sx_http_respond(exchange, &response);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static sx_http_server *server;
    (void)argc;
    (void)argv;
    snprintf(path, sizeof(path), "/tmp/sextant-fuzz-%d", (int)getpid());
    sx_budget_init(&memory, "all requests together", 1 << 20, NULL);
    const sx_http_address address = {.path = path};
    const sx_http_config config = {.addresses = &address,
                                   .address_count = 1,
                                   .max_streams = 8,
                                   .max_body_bytes = 1 << 16,
                                   .memory = &memory,
                                   .handler = handle};
    if (sx_http_server_create(&config, &server) != SX_OK || sx_http_server_start(server) != SX_OK) {
        abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dropped[65536];
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        abort();
    }
    /* The preface's settings: 9 bytes, with the literal's NUL as the last. */
    if (send(fd, preface, sizeof(preface), MSG_NOSIGNAL) < 0 ||
        (size > 0 && send(fd, data, size, MSG_NOSIGNAL) < 0)) {
        close(fd);
        return 0;
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, dropped, sizeof(dropped), 0) > 0) {
    }
    close(fd);
    return 0;
}
