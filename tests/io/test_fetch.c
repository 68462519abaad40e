#include "io/scratch.h"
#include "server.h"

#include "io/fetch.h"

enum { BODY_BYTES = 300000 };

static char body[BODY_BYTES];
static char body_sha256[65];
static pid_t server;
static int port;

static int setup(void **state)
{
    if (scratch_setup(state) != 0) {
        return 1;
    }
    unsetenv("http_proxy");
    setenv("no_proxy", "*", 1);
    for (size_t i = 0; i < sizeof body; i++) {
        body[i] = (char)(i * 31 + i / 257);
    }
    write_file(scratch("served"), body, sizeof body);
    sx_status status = sx_file_sha256(scratch("served"), body_sha256);
    if (status != SX_OK) {
        return 1;
    }
    server = server_start("io/http_server.py", scratch("served"), scratch("log"), &port);
    return 0;
}

static int teardown(void **state)
{
    server_stop(&server);
    return scratch_teardown(state);
}

static sx_fetch_request request(const char *page)
{
    static char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", port, page);
    return (sx_fetch_request){.url = url, .path = scratch("out/file")};
}

/* The log holds this many requests, the last of them with this range ("-" = none). */
static void assert_requests(int count, const char *last_range)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(scratch("log"), 1 << 20, &text, &size));
    int lines = 0;
    char *last = text;
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n') {
            lines++;
            last = c[1] != '\0' ? c + 1 : last;
        }
    }
    assert_int_equal(lines, count);
    char want[64];
    snprintf(want, sizeof want, " %s\n", last_range);
    assert_non_null(strstr(last, want));
    sx_free(text);
}

static void assert_complete(void)
{
    assert_file(scratch("out/file"), body, sizeof body);
    assert_int_equal(count_entries(scratch("out")), 1);
}

/* Leaves `size` bytes as an earlier download would have, with its tag. */
static void leave_part(size_t size, const char *tag)
{
    assert_ok(sx_dir_create(scratch("out")));
    write_file(scratch("out/file.part"), body, size);
    if (tag != NULL) {
        write_file(scratch("out/file.part.tag"), tag, strlen(tag));
    }
}

static void test_io_fetch__sha256(void **state)
{
    (void)state;
    char hex[65];
    write_file(scratch("abc"), "abc", 3);
    assert_ok(sx_file_sha256(scratch("abc"), hex));
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_error(sx_file_sha256(scratch("none"), hex), SX_NOT_FOUND, "none");
}

static void test_io_fetch__whole_files(void **state)
{
    (void)state;
    static const char *const pages[] = {"whole", "ranged", "moved"};
    for (int i = 0; i < 3; i++) {
        sx_fetch_request r = request(pages[i]);
        r.sha256 = i == 1 ? body_sha256 : NULL;
        assert_ok(sx_fetch(&r));
        assert_complete();
    }
    sx_fetch_request r = request("empty");
    assert_ok(sx_fetch(&r));
    assert_file(scratch("out/file"), "", 0);
    assert_int_equal(count_entries(scratch("out")), 1);
    char url[700];
    snprintf(url, sizeof url, "file://%s", scratch("served"));
    r.url = url;
    assert_ok(sx_fetch(&r));
    assert_complete();
    for (size_t part = 1000; part <= sizeof body + 1; part += sizeof body - 1000 + 1) {
        uint8_t other[sizeof body + 1] = {0};
        assert_ok(sx_dir_create(scratch("out")));
        memcpy(other, body, sizeof body);
        write_file(scratch("out/file.part"), other, part); /* continued; too long: started over */
        r.sha256 = body_sha256;
        assert_ok(sx_fetch(&r));
        assert_complete();
    }
}

static void test_io_fetch__goes_on_where_it_stopped(void **state)
{
    (void)state;
    sx_fetch_request r = request("cut");
    assert_error(sx_fetch(&r), SX_UNAVAILABLE, "http://127.0.0.1");
    assert_int_equal(count_entries(scratch("out")), 2); /* the part and its tag */
    r = request("ranged");
    assert_ok(sx_fetch(&r));
    assert_complete();
    assert_requests(2, "bytes=150000-");
}

static void test_io_fetch__begins_anew_when_the_file_changed(void **state)
{
    (void)state;
    leave_part(1000, "\"old\"");
    write_file(scratch("out/file.part"), "other bytes", 11);
    sx_fetch_request r = request("changing");
    assert_ok(sx_fetch(&r));
    assert_complete();
    assert_requests(1, "bytes=11-");
}

static void test_io_fetch__begins_anew_without_ranges(void **state)
{
    (void)state;
    leave_part(1000, "\"v1\"");
    sx_fetch_request r = request("whole");
    assert_ok(sx_fetch(&r));
    assert_complete();
}

static void test_io_fetch__a_part_without_tag_needs_a_hash(void **state)
{
    (void)state;
    leave_part(1000, NULL);
    sx_fetch_request r = request("ranged");
    assert_ok(sx_fetch(&r));
    assert_complete();
    assert_requests(1, "-");
    leave_part(1000, NULL);
    r = request("ranged");
    r.sha256 = body_sha256;
    assert_ok(sx_fetch(&r));
    assert_complete();
    assert_requests(2, "bytes=1000-");
}

static void test_io_fetch__a_complete_part(void **state)
{
    (void)state;
    for (int hashed = 0; hashed < 2; hashed++) {
        leave_part(sizeof body, "\"v1\"");
        sx_fetch_request r = request("ranged");
        r.sha256 = hashed ? body_sha256 : NULL;
        assert_ok(sx_fetch(&r));
        assert_complete();
    }
    /* without the hash it was fetched once more, with it not */
    assert_requests(3, "bytes=300000-");
}

static void test_io_fetch__wrong_hash(void **state)
{
    (void)state;
    sx_fetch_request r = request("ranged");
    r.sha256 = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    assert_error(sx_fetch(&r), SX_DATA_LOSS, body_sha256);
    assert_int_equal(count_entries(scratch("out")), 0);
    r.sha256 = "short";
    assert_error(sx_fetch(&r), SX_INVALID_ARGUMENT, "64 hexadecimal digits");
}

static void test_io_fetch__errors_have_codes(void **state)
{
    (void)state;
    static const struct {
        const char *page;
        sx_code code;
        const char *says;
    } rows[] = {{"status/404", SX_NOT_FOUND, "404"},
                {"status/403", SX_PERMISSION_DENIED, "403"},
                {"status/500", SX_UNAVAILABLE, "500"},
                {"elsewhere", SX_INVALID_ARGUMENT, "rotocol"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sx_fetch_request r = request(rows[i].page);
        assert_error(sx_fetch(&r), rows[i].code, rows[i].says);
        assert_false(sx_path_exists(scratch("out/file")));
    }
    sx_fetch_request r = request("x");
    r.url = "ftp://127.0.0.1/x";
    assert_error(sx_fetch(&r), SX_INVALID_ARGUMENT, "ftp");
    r.url = "file:///none/such";
    assert_error(sx_fetch(&r), SX_NOT_FOUND, "/none/such");
    r.url = "http://127.0.0.1:1/";
    assert_error(sx_fetch(&r), SX_UNAVAILABLE, "connect");
    r = request("whole");
    r.max_bytes = BODY_BYTES - 1;
    assert_error(sx_fetch(&r), SX_RESOURCE_EXHAUSTED, "limit of 299999");
    r = request("stalls");
    r.stall_timeout_s = 1;
    assert_error(sx_fetch(&r), SX_UNAVAILABLE, "Operation too slow");
    leave_part(1000, "\"v1\"");
    r = request("lying");
    assert_error(sx_fetch(&r), SX_UNAVAILABLE,
                 "requested bytes from 1000 on, got bytes from 1001 on");
}

static bool stop_at_once(void *user, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(int *)user;
    return false;
}

static void test_io_fetch__can_be_cancelled(void **state)
{
    (void)state;
    int calls = 0;
    sx_fetch_request r = request("whole");
    r.progress = stop_at_once;
    r.user = &calls;
    assert_error(sx_fetch(&r), SX_CANCELLED, "cancelled");
    assert_int_equal(calls, 1);
}

#define fetch_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_fetch__sha256),
    fetch_test(test_io_fetch__whole_files),
    fetch_test(test_io_fetch__goes_on_where_it_stopped),
    fetch_test(test_io_fetch__begins_anew_when_the_file_changed),
    fetch_test(test_io_fetch__begins_anew_without_ranges),
    fetch_test(test_io_fetch__a_part_without_tag_needs_a_hash),
    fetch_test(test_io_fetch__a_complete_part),
    fetch_test(test_io_fetch__wrong_hash),
    fetch_test(test_io_fetch__errors_have_codes),
    fetch_test(test_io_fetch__can_be_cancelled),
};
SX_TEST_MAIN(tests)
