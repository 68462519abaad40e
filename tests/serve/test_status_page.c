/* The page for people: what it shows, that it is whole, and that names cannot be HTML. */
#include "harness.h"

#include "base/checked.h"
#include "base/clock.h"
#include "net/client.h"
#include "serve/fake_server.h"

static void assert_has(const struct answer *page, const char *part)
{
    if (strstr(page->body, part) == NULL) {
        fail_msg("no %s in %s", part, page->body);
    }
}

/* Whether each element that is opened is closed, in turn. */
static bool is_balanced(const char *html)
{
    const char *open[32];
    size_t sizes[32], depth = 0;
    for (const char *at = strchr(html, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const bool closes = at[1] == '/';
        const char *name = at + 1 + closes;
        const size_t size = strcspn(name, " >");
        if (at[1] == '!' || strncmp(name, "meta", 4) == 0) {
            continue;
        }
        if (closes &&
            (depth == 0 || sizes[depth - 1] != size || strncmp(open[depth - 1], name, size) != 0)) {
            return false;
        }
        if (!closes && depth < SX_COUNT(open)) {
            open[depth] = name;
            sizes[depth] = size;
        }
        depth += closes ? (size_t)-1 : 1;
    }
    return depth == 0;
}

static void test_serve_status_page__shows_the_models(void **state)
{
    (void)state;
    char base[2][64], path[100], request[400];
    static struct fake_runtime runtime;
    sx_server *server = NULL;
    fake_base_path(base[0]);
    fake_base_path(base[1]);
    fake_publish(base[0], "3", 2, 0, 0, 0);
    fake_publish(base[0], "4", 2, 0, 0, 1);
    snprintf(path, sizeof(path), "%s/models.config", base[0]);
    FILE *file = fopen(path, "w");
    fprintf(file,
            "model_config_list {\n"
            "  config { name: 'm' base_path: '%s' version_labels { key: 'stable' value: 3 } }\n"
            "  config { name: '<b>&\"' base_path: '%s' }\n}\n",
            base[0], base[1]);
    fclose(file);
    const sx_server_config config = {.host = "127.0.0.1",
                                     .rest_api_port = SX_ANY_PORT,
                                     .model_config_file = path,
                                     .ops = &fake_ops,
                                     .ops_user = &runtime};
    assert_ok(sx_server_create(&config, &server));
    assert_ok(sx_server_start(server));
    const int port = sx_server_rest_port(server);
    const int64_t begin = sx_now_ns();
    struct answer answer;
    do {
        answer = client_exchange(
            port, request,
            client_post(request, sizeof(request), "/v1/models/m:predict", "{\"instances\": [1]}"));
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
    } while (answer.status != 200);
    client_exchange(port, request,
                    client_post(request, sizeof(request), "/v1/models/m:predict", "{"));
    answer = client_exchange(port, request, client_get(request, sizeof(request), "/"));
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(answer.head, "Content-Security-Policy: default-src 'none';"));
    assert_non_null(strstr(answer.head, "Cache-Control: no-store\r\n"));
    assert_has(&answer, "<!DOCTYPE html>\n<html lang=\"en\">");
    assert_has(&answer, "<tr><td>m</td><td class=\"n\">3</td><td>stable</td>"
                        "<td class=\"AVAILABLE\">AVAILABLE</td><td class=\"n\">2</td>"
                        "<td class=\"n\">1</td><td class=\"n\">");
    assert_has(&answer, "<td class=\"n\">4</td><td></td><td class=\"FAILED\">FAILED (DATA_LOSS)");
    assert_has(&answer, "&lt;b&gt;&amp;&quot;</td><td colspan=\"9\" class=\"FAILED\">no versions");
    assert_has(&answer, "<a href=\"/monitoring/prometheus/metrics\">");
    assert_null(strstr(answer.body, "<b>"));
    assert_null(strstr(answer.body, "<script"));
    assert_null(strstr(answer.body, base[0])); /* clients are told no paths */
    assert_true(is_balanced(answer.body));
    sx_server_destroy(server);
    fake_remove_version(base[0], "3");
    fake_remove_version(base[0], "4");
    unlink(path);
    rmdir(base[0]);
    rmdir(base[1]);
}

static int status_of(int port, const char *method, const char *path)
{
    char request[300];
    const int size =
        snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                 method, path);
    return client_exchange(port, request, (size_t)size).status;
}

/* With an address for administration, what is for operators is there alone. */
static void test_serve_status_page__has_an_address_of_its_own(void **state)
{
    (void)state;
    char base[64];
    static struct fake_runtime runtime;
    sx_server *server = NULL;
    fake_base_path(base);
    fake_publish(base, "3", 2, 0, 0, 0);
    fake_serve(base, &runtime, (sx_server_config){.admin_port = SX_ANY_PORT}, &server);
    assert_true(sx_server_wait_ready(server, 5000));
    const int port = sx_server_rest_port(server), admin = sx_server_admin_port(server);
    static const char *const pages[] = {"/", "/monitoring/prometheus/metrics"};
    for (size_t i = 0; i < SX_COUNT(pages); i++) {
        assert_int_equal(status_of(port, "GET", pages[i]), 403);
        assert_int_equal(status_of(admin, "GET", pages[i]), 200);
    }
    assert_int_equal(status_of(port, "POST", "/v1/projects/p/models"), 403);
    assert_int_equal(status_of(admin, "POST", "/v1/projects/p/models"), 400);
    assert_int_equal(status_of(port, "GET", "/v1/models/m"), 200);
    assert_int_equal(status_of(port, "GET", "/v2/health/ready"), 200);
    sx_server_destroy(server);
    fake_remove_version(base, "3");
    rmdir(base);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_status_page__shows_the_models),
    cmocka_unit_test(test_serve_status_page__has_an_address_of_its_own),
};
SX_TEST_MAIN(tests)
