/* Every allocation fails once while a server is made and let go. (Its threads allocate in no fixed
 * order: it is not started.) Then with one descriptor less each time, from too few to enough. */
#include "torture.h"

#include <sys/resource.h>

#include "net/http_server.h"

static void handle(void *user, sx_http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static sx_status make_server(void *user)
{
    const sx_http_address loopback = {.host = "127.0.0.1"};
    const sx_http_config config = {
        .addresses = &loopback, .address_count = 1, .loops = 2, .handler = handle};
    sx_http_server *server = NULL;
    (void)user;
    SX_TRY(sx_http_server_create(&config, &server));
    const int port = sx_http_server_port(server, 0);
    sx_http_server_destroy(server);
    assert_in_range(port, 1, 65535);
    return SX_OK;
}

static void test_net_torture__servers(void **state)
{
    (void)state;
    assert_true(sx_torture(make_server, NULL) >= 3);
}

static void test_net_torture__descriptors_run_out(void **state)
{
    (void)state;
    struct rlimit before, less;
    const int first = dup(0);
    close(first); /* the next that a server would get */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = before;
    int failed = 0;
    for (rlim_t most = (rlim_t)first;; most++) {
        less.rlim_cur = most;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
        sx_status status = make_server(NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (status == SX_OK) {
            break;
        }
        if (sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            print_error("with %d descriptors: ", (int)most - first);
            assert_ok(status);
        }
        sx_status_free(status);
        failed++;
    }
    assert_in_range(failed, 4, 20); /* a listener, an epoll and an eventfd for each loop */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_torture__servers),
    cmocka_unit_test(test_net_torture__descriptors_run_out),
};
SX_TEST_MAIN(tests)
