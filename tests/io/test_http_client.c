#include "harness.h"

#include "base/memory.h"
#include "io/curl_api.h"
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
    const sx_http_address loopback = {.host = "127.0.0.1"};
    const sx_http_config config = {
        .addresses = &loopback, .address_count = 1, .handler = handle, .user = site};
    memset(site, 0, sizeof(*site));
    assert_ok(sx_http_server_create(&config, &site->server));
    assert_ok(sx_http_server_start(site->server));
    snprintf(site->url, sizeof(site->url), "http://127.0.0.1:%d%s",
             sx_http_server_port(site->server, 0), path);
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

/* ---- What is asked of libcurl ---- */

enum { MAX_OPTIONS = 64 };
static struct {
    CURLoption option;
    long value;
} options[MAX_OPTIONS];
static int option_count;
static int failing_option = -1; /* index of the option that libcurl refuses */

static CURLcode (*real_setopt)(CURL *curl, CURLoption option, ...);

/* In front of libcurl's: notes the option. (Numbers and pointers arrive in the same way.) */
static CURLcode noting_setopt(CURL *curl, CURLoption option, ...)
{
    va_list args;
    va_start(args, option);
    const long value = va_arg(args, long);
    va_end(args);
    if (option_count < MAX_OPTIONS) {
        options[option_count].option = option;
        options[option_count].value = value;
    }
    return option_count++ == failing_option ? CURLE_OUT_OF_MEMORY
                                            : real_setopt(curl, option, value);
}

static int note_options(void **state)
{
    (void)state;
    assert_ok(sx_curl_load());
    real_setopt = sx_curl.easy_setopt;
    sx_curl.easy_setopt = noting_setopt;
    return 0;
}

static int note_no_options(void **state)
{
    (void)state;
    sx_curl.easy_setopt = real_setopt;
    return 0;
}

/* The value that was set last, or -1. */
static long option_value(CURLoption option)
{
    long value = -1;
    for (int i = 0; i < option_count && i < MAX_OPTIONS; i++) {
        value = options[i].option == option ? options[i].value : value;
    }
    return value;
}

/* Zeros take their defaults; what is given arrives. */
static void test_io_http_client__limits_reach_libcurl(void **state)
{
    (void)state;
    static const struct {
        sx_http_call call;
        long timeout_ms, connect_timeout_ms, stall_bytes, stall_s, follows, redirects;
    } rows[] = {
        {{0}, 60000, 5000, -1, -1, 0, 0},
        {{.timeout_ms = 1, .connect_timeout_ms = 1, .stall_timeout_s = 1, .max_redirects = 1},
         1,
         1,
         1,
         1,
         1,
         1},
        {{.timeout_ms = 1234, .connect_timeout_ms = 567, .stall_timeout_s = 8, .max_redirects = 9},
         1234,
         567,
         1,
         8,
         1,
         9},
        {{.timeout_ms = SX_HTTP_NO_TIMEOUT}, -1, 5000, -1, -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_http_call call = rows[i].call;
        sx_buf body;
        int status;
        call.url = "file:///"; /* refused after the options are set */
        option_count = 0;
        sx_buf_init(&body, 0);
        assert_error(sx_http_fetch(&call, &body, NULL, &status), SX_INVALID_ARGUMENT, "file");
        assert_int_equal(option_value(CURLOPT_TIMEOUT_MS), rows[i].timeout_ms);
        assert_int_equal(option_value(CURLOPT_CONNECTTIMEOUT_MS), rows[i].connect_timeout_ms);
        assert_int_equal(option_value(CURLOPT_LOW_SPEED_LIMIT), rows[i].stall_bytes);
        assert_int_equal(option_value(CURLOPT_LOW_SPEED_TIME), rows[i].stall_s);
        assert_int_equal(option_value(CURLOPT_FOLLOWLOCATION), rows[i].follows);
        assert_int_equal(option_value(CURLOPT_MAXREDIRS), rows[i].redirects);
        assert_int_equal(option_value(CURLOPT_NOSIGNAL), 1);
        assert_int_equal(option_value(CURLOPT_NOPROGRESS), 0);
        sx_buf_deinit(&body);
    }
}

/* A call whose options libcurl does not take is not made. */
static void test_io_http_client__each_option_counts(void **state)
{
    (void)state;
    struct site site;
    sx_buf body;
    int status = 0, count = 0;
    open_site(&site, "/echo");
    const sx_http_call call = {.url = site.url,
                               .body = {"{}", 2},
                               .method = "POST",
                               .range = "0-",
                               .direct = true,
                               .stall_timeout_s = 5};
    sx_buf_init(&body, 0);
    option_count = 0;
    assert_ok(sx_http_fetch(&call, &body, NULL, &status));
    count = option_count;
    assert_in_range(count, 20, MAX_OPTIONS);
    for (int i = 0; i < count; i++) {
        option_count = 0;
        failing_option = i;
        sx_buf_reset(&body);
        assert_error(sx_http_fetch(&call, &body, NULL, &status), SX_RESOURCE_EXHAUSTED, site.url);
        assert_int_equal(option_count, i + 1);
        assert_int_equal(body.size, 0);
    }
    failing_option = -1;
    sx_buf_deinit(&body);
    sx_http_server_destroy(site.server);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_io_http_client__limits_reach_libcurl, note_options,
                                    note_no_options),
    cmocka_unit_test_setup_teardown(test_io_http_client__each_option_counts, note_options,
                                    note_no_options),
    cmocka_unit_test(test_io_http_client__posts_and_gets),
    cmocka_unit_test(test_io_http_client__says_what_went_wrong),
};
SX_TEST_MAIN(tests)
