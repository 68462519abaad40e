#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/un.h>

#include "net/client.h"
#include "net/listen.h"
#include "net/site.h"

/* Two loops accept what comes in at a socket that another process has opened. */
static void test_net_listen__shared_sockets(void **state)
{
    (void)state;
    int fd, fds[2], port = 0, again = 0;
    assert_ok(sx_listen("127.0.0.1", 0, 8, 1, &fd, &port));
    assert_ok(sx_listen_shared(fd, 2, fds, &again));
    assert_int_equal(again, port);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 2; i++) { /* the other goes on when the first is closed */
        const int client = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
        const int accepted = accept(fds[i], NULL, NULL);
        assert_true(accepted >= 0);
        assert_int_equal(accept(fds[1], NULL, NULL), -1); /* it does not wait */
        close(accepted);
        close(client);
        close(fds[i]);
    }
    assert_error(sx_listen_shared(-1, 1, fds, &again), SX_INVALID_ARGUMENT,
                 "descriptor -1 is not a listening socket");
    close(fd);
}

static void test_net_listen__unix_sockets(void **state)
{
    (void)state;
    struct site site;
    char path[100];
    sx_http_server *other = NULL;
    snprintf(path, sizeof(path), "/tmp/sextant-net-%d", (int)getpid());
    const sx_http_address address = {.path = path};
    const sx_http_config config = {.addresses = &address, .address_count = 1, .loops = 2};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    /* A socket that nobody listens at is replaced. */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    memset(&site, 0, sizeof(site));
    sx_http_config mine = config;
    mine.handler = handle;
    mine.user = &site;
    assert_ok(sx_http_server_create(&mine, &site.server));
    assert_ok(sx_http_server_start(site.server));
    for (int i = 0; i < 4; i++) {
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
        assert_true(client_send(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 31));
        assert_int_equal(client_answer(fd).status, 200);
        close(fd);
    }
    /* One that somebody listens at is not, nor is another file. */
    assert_error(sx_http_server_create(&config, &other), SX_ALREADY_EXISTS, path);
    close_site(&site);
    assert_int_equal(access(path, F_OK), -1);
    fd = creat(path, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_error(sx_http_server_create(&config, &other), SX_ALREADY_EXISTS, path);
    assert_int_equal(unlink(path), 0);
    int fds[1];
    assert_error(sx_listen_unix("/nonexistent/x", 1, 1, fds), SX_INVALID_ARGUMENT, "No such file");
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_error(sx_listen_unix(longer, 1, 1, fds), SX_INVALID_ARGUMENT, "1 to 107 bytes");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_listen__shared_sockets),
    cmocka_unit_test(test_net_listen__unix_sockets),
};

SX_TEST_MAIN(tests)
