/* The store's server: what clients that do not read can cost it. */
#include "harness.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/log.h>

#include "../net/client.h"
#include "distribute/store_server.h"

static void post(int fd, const char *words, const char *key, const char *value, size_t size)
{
    char head[512];
    const int n = snprintf(head, sizeof(head),
                           "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/octet-stream\r\nContent-Length: %zu\r\n\r\n%s 0 %zu\n%s",
                           strlen(words) + 3 + 2 + strlen(key) + size, words, strlen(key), key);
    assert_in_range(strlen(key), 1, 9);
    assert_true(client_send(fd, head, (size_t)n) && client_send(fd, value, size));
}

static atomic_int warnings;

static void count_unread(void *user, sx_log_level level, const char *file, int line,
                         const char *message)
{
    (void)user;
    (void)level;
    (void)file;
    (void)line;
    warnings += strstr(message, "has not read an answer for 5 s") != NULL;
}

/* Clients that ask for the greatest value, and do not read it: the server's memory has a limit, and
 * their connections are closed. */
static void test_distribute_store_server__answers_that_nobody_reads(void **state)
{
    (void)state;
    enum { PROCESSES = 4, UNREAD = 36 };
    sx_store_server *s;
    int readers[UNREAD], refused = 0;
    char *value = calloc(SX_STORE_VALUE_BYTES, 1);
    const sx_store_options options = {.processes = PROCESSES, .join_ms = 60000, .lost_ms = 5000};
    sx_log_set_sink(count_unread, NULL, SX_LOG_WARN);
    assert_non_null(value);
    assert_ok(sx_store_server_start("127.0.0.1", 0, &options, &s));
    const int port = sx_store_server_port(s), joins = client_connect(port);
    const int writes = client_connect(port);
    post(joins, "JOIN 0 4", "j", "host", 4); /* it waits for others: nobody is lost yet */
    struct answer put = {.status = 0};
    while (put.body[0] != '0') { /* once it has joined */
        post(writes, "PUT 0 0", "k", value, SX_STORE_VALUE_BYTES);
        put = client_answer(writes);
    }
    for (int i = 0; i < UNREAD; i++) {
        readers[i] = client_connect(port);
        post(readers[i], "GET 0 0", "k", "", 0);
    }
    for (int i = 0; i < UNREAD; i++) {
        char begin[256] = "";
        size_t got = 0;
        while (got + 1 < sizeof(begin) && strstr(begin, "\n0\n") == NULL &&
               strstr(begin, "in use") == NULL) { /* no more than its begin */
            const int c = client_byte(readers[i]);
            if (c < 0) {
                fail_msg("reader %d has received \"%s\"", i, begin);
            }
            begin[got++] = c != 0 ? (char)c : '.';
        }
        refused += strstr(begin, "8\nan answer of 16") != NULL;
    }
    assert_in_range(refused, 1, UNREAD - 1);
    for (int ms = 0; ms < 20000 && warnings < UNREAD - refused; ms += 20) {
        usleep(20000);
    }
    assert_int_equal(warnings, UNREAD - refused);
    /* Their memory is free again. */
    post(writes, "GET 0 0", "k", "", 0);
    const struct answer whole = client_answer(writes);
    assert_int_equal(whole.body_size, 2 + SX_STORE_VALUE_BYTES);
    for (int i = 0; i < UNREAD; i++) {
        close(readers[i]);
    }
    close(writes);
    close(joins);
    sx_store_server_stop(s, 0);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    free(value);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distribute_store_server__answers_that_nobody_reads),
};

SX_TEST_MAIN(tests)
