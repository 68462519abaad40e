#include "harness.h"

#include "base/memory.h"
#include "io/http_client.h"
#include "net/http_server.h"

/* Answers the body that came, or stays silent at /never (its answer comes at the end). */
struct site {
    sx_http_server *server;
    _Atomic(sx_http_exchange *) silent;
    char url[100];
};

static void respond(sx_http_exchange *exchange, int status, sx_bytes body)
{
    sx_http_response response = {.status = status, .body_size = body.size};
    response.body = sx_alloc(body.size + 1, 1);
    memcpy(response.body, body.data, body.size);
    sx_http_respond(exchange, &response);
}

static void handle(void *user, sx_http_exchange *exchange)
{
    struct site *site = user;
    const sx_http_head *head = sx_http_request_head(exchange);
    if (sx_http_text_is(head->path, "/never")) {
        site->silent = exchange;
    } else {
        respond(exchange, sx_http_text_is(head->method, "POST") ? 200 : 404,
                sx_http_request_body(exchange));
    }
}

static void open_site(struct site *site, const char *path)
{
    const sx_http_config config = {.host = "127.0.0.1", .handler = handle, .user = site};
    memset(site, 0, sizeof(*site));
    assert_ok(sx_http_server_create(&config, &site->server));
    assert_ok(sx_http_server_start(site->server));
    snprintf(site->url, sizeof(site->url), "http://127.0.0.1:%d%s",
             sx_http_server_port(site->server), path);
}

static void test_io_http_client__posts_and_gets(void **state)
{
    (void)state;
    struct site site;
    sx_buf body;
    int status = 0;
    open_site(&site, "/echo");
    sx_buf_init(&body, 0);
    assert_ok(sx_http_fetch(&(sx_http_call){.url = site.url, .body = {"{\"a\": 1}", 8}}, &body,
                            NULL, &status));
    assert_int_equal(status, 200);
    assert_string_equal(sx_buf_text(&body), "{\"a\": 1}");
    sx_buf_reset(&body);
    assert_ok(sx_http_fetch(&(sx_http_call){.url = site.url}, &body, NULL, &status));
    assert_int_equal(status, 404);
    sx_buf_deinit(&body);
    sx_buf_init(&body, 4);
    assert_error(
        sx_http_fetch(&(sx_http_call){.url = site.url, .body = {"12345", 5}}, &body, NULL, &status),
        SX_RESOURCE_EXHAUSTED, "larger than 4 bytes");
    sx_buf_deinit(&body);
    sx_http_server_destroy(site.server);
}

static void test_io_http_client__says_what_went_wrong(void **state)
{
    (void)state;
    struct site site;
    sx_buf body;
    int status = 0;
    open_site(&site, "/never");
    sx_buf_init(&body, 0);
    assert_error(
        sx_http_fetch(&(sx_http_call){.url = site.url, .timeout_ms = 100}, &body, NULL, &status),
        SX_DEADLINE_EXCEEDED, site.url);
    respond(site.silent, 200, (sx_bytes){"", 0});
    sx_http_server_destroy(site.server);
    assert_error(sx_http_fetch(&(sx_http_call){.url = site.url}, &body, NULL, &status),
                 SX_UNAVAILABLE, site.url);
    assert_error(
        sx_http_fetch(&(sx_http_call){.url = "file:///etc/hostname"}, &body, NULL, &status),
        SX_INVALID_ARGUMENT, "file:");
    assert_int_equal(status, 0);
    sx_buf_deinit(&body);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_io_http_client__posts_and_gets),
    cmocka_unit_test(test_io_http_client__says_what_went_wrong),
};
SX_TEST_MAIN(tests)
