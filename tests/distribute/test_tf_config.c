#include "harness.h"

#include "base/buffer.h"
#include "distribute/tf_config.h"
#include "distribute/tpu_node.h"

static sx_arena arena;

static int setup(void **state)
{
    (void)state;
    sx_arena_init(&arena, 64 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sx_arena_deinit(&arena);
    return 0;
}

static sx_status parse(const char *text, sx_tf_config *out)
{
    return sx_tf_config_parse(text, strlen(text), &arena, out);
}

static const char whole[] =
    "{\"cluster\": {\"chief\": [\"h0:2222\"], \"worker\": [\"h1:2222\", \"h2:2222\"], "
    "\"ps\": {\"7\": \"h4:1\", \"0\": \"h3:1\"}}, "
    "\"task\": {\"type\": \"worker\", \"index\": \"1\"}, \"rpc_layer\": \"grpc\", "
    "\"session_master\": \"grpc://h9:8470\", \"environment\": \"cloud\"}";

static void test_distribute_tf_config__reads_a_cluster(void **state)
{
    (void)state;
    sx_tf_config c;
    assert_ok(parse(whole, &c));
    assert_int_equal(c.n_jobs, 3);
    assert_int_equal(c.n_tasks, 5);
    const sx_tf_job *workers = sx_tf_config_job(&c, "worker"), *ps = sx_tf_config_job(&c, "ps");
    assert_int_equal(workers->n_tasks, 2);
    assert_string_equal(workers->tasks[1].address, "h2:2222");
    assert_int_equal(ps->tasks[0].index, 0); /* by index, whatever the order in the text */
    assert_string_equal(ps->tasks[0].address, "h3:1");
    assert_int_equal(ps->tasks[1].index, 7);
    assert_string_equal(c.task_type, "worker");
    assert_int_equal(c.task_index, 1);
    assert_string_equal(c.rpc_layer, "grpc");
    assert_string_equal(c.session_master, "grpc://h9:8470");
    assert_null(sx_tf_config_job(&c, "evaluator"));
    assert_ok(parse("{}", &c));
    assert_int_equal(c.n_jobs, 0);
    assert_null(c.session_master);
    assert_ok(parse("{\"cluster\": null, \"task\": null, \"rpc_layer\": null}", &c));
    assert_int_equal(c.n_tasks, 0);
}

static void test_distribute_tf_config__says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "TF_CONFIG: invalid JSON"},
        {"{", "TF_CONFIG: invalid JSON"},
        {"[]", "expected a JSON object"},
        {"{\"a\": 1, \"a\": 2}", "TF_CONFIG: invalid JSON: duplicate object key"},
        {"{\"cluster\": []}", "\"cluster\" must be an object"},
        {"{\"cluster\": {\"worker\": \"h0\"}}", "job \"worker\": expected a list"},
        {"{\"cluster\": {\"worker\": [7]}}", "\"worker\" must be a string"},
        {"{\"cluster\": {\"worker\": [\"a\\nb\"]}}", "\"worker\" must be a string"},
        {"{\"cluster\": {\"worker\": {\"x\": \"h0\"}}}", "index must be 0 to"},
        {"{\"cluster\": {\"worker\": {\"1\": \"h0\", \"01\": \"h1\"}}}", "task 1 twice"},
        {"{\"task\": 7}", "\"task\" must be an object"},
        {"{\"task\": {\"index\": -1}}", "index must be 0 to"},
        {"{\"task\": {\"index\": 1048577}}", "index must be 0 to 1048576"},
        {"{\"task\": {\"index\": \"1048577\"}}", "index must be 0 to 1048576"},
        {"{\"task\": {\"index\": \"0000000001\"}}", "index must be 0 to"},
        {"{\"task\": {\"index\": \" 1\"}}", "index must be 0 to"},
        {"{\"task\": {\"index\": \"\"}}", "index must be 0 to"},
        {"{\"task\": {\"index\": \"1x\"}}", "index must be 0 to"},
        {"{\"task\": {\"index\": 9999999999}}", "index must be 0 to"},
        {"{\"task\": {\"type\": 3}}", "\"type\" must be a string"},
        {"{\"rpc_layer\": {}}", "\"rpc_layer\" must be a string"},
        {"{\"session_master\": []}", "\"session_master\" must be a string"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_tf_config c;
        assert_error(parse(rows[i].text, &c), SX_INVALID_ARGUMENT, rows[i].says);
    }
}

static void test_distribute_tf_config__has_limits(void **state)
{
    (void)state;
    sx_tf_config c;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"cluster\": {");
    for (int i = 0; i < SX_MAX_JOBS + 1; i++) {
        sx_buf_printf(&text, "%s\"job%d\": []", i > 0 ? "," : "", i);
    }
    sx_buf_puts(&text, "}}");
    assert_error(parse(sx_buf_text(&text), &c), SX_INVALID_ARGUMENT,
                 "an object with at most 64 jobs");
    sx_buf_reset(&text);
    sx_buf_puts(&text, "{\"cluster\": {\"worker\": [\"h\"");
    for (int i = 0; i < SX_MAX_TASKS; i++) {
        sx_buf_puts(&text, ",\"h\"");
    }
    sx_buf_puts(&text, "]}}");
    assert_error(parse(sx_buf_text(&text), &c), SX_INVALID_ARGUMENT,
                 "the limit for all jobs is 65536");
    sx_buf_reset(&text);
    sx_buf_puts(&text, "{\"session_master\": \"");
    for (int i = 0; i <= SX_MAX_ADDRESS; i++) {
        sx_buf_putc(&text, 'h');
    }
    sx_buf_puts(&text, "\"}");
    assert_error(parse(sx_buf_text(&text), &c), SX_INVALID_ARGUMENT, "at most 512 bytes");
    sx_buf_reset(&text);
    for (int i = 0; i <= SX_LAUNCH_JSON_BYTES; i++) {
        sx_buf_putc(&text, ' ');
    }
    assert_error(parse(sx_buf_text(&text), &c), SX_INVALID_ARGUMENT, "the limit is 1048576");
    sx_buf_deinit(&text);
}

static void test_distribute_tf_config__survives_flips_and_cuts(void **state)
{
    (void)state;
    static const char node[] =
        "{\"state\": \"READY\", \"acceleratorType\": \"v3-8\", \"networkEndpoints\": "
        "[{\"ipAddress\": \"10.0.0.1\", \"port\": 8470}]}";
    static const char *const texts[] = {whole, node};
    char copy[sizeof(whole) + sizeof(node)];
    for (size_t k = 0; k < 2; k++) {
        size_t n = strlen(texts[k]);
        for (size_t i = 0; i < n; i++) {
            sx_tf_config c;
            sx_tpu_node t;
            for (int flip = 0; flip < 9; flip++) {
                memcpy(copy, texts[k], n);
                copy[i] ^= flip < 8 ? (char)(1 << flip) : 0;
                size_t size = flip < 8 ? n : i;
                sx_status_free(sx_tf_config_parse(copy, size, &arena, &c));
                sx_status_free(sx_tpu_node_parse(copy, size, &arena, &t));
            }
            sx_arena_deinit(&arena);
            sx_arena_init(&arena, 64 << 20);
        }
    }
}

static void test_distribute_tf_config__reads_tpu_config(void **state)
{
    (void)state;
    sx_env_tpu_config c;
    const char *text = "{\"tpu_node_name\": \"n1\", \"project\": \"p1\", \"zone\": \"\"}";
    assert_ok(sx_env_tpu_config_parse(text, strlen(text), &arena, &c));
    assert_string_equal(c.name, "n1");
    assert_string_equal(c.project, "p1");
    assert_null(c.zone);
    assert_error(sx_env_tpu_config_parse("{}", 2, &arena, &c), SX_INVALID_ARGUMENT,
                 "TPU_CONFIG: no \"tpu_node_name\"");
}

static void test_distribute_tf_config__reads_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *address;
    } rows[] = {
        {"10.1.2.3", "10.1.2.3:8470"},
        {"10.1.2.3:9", "10.1.2.3:9"},
        {"grpc://10.1.2.3:8471", "10.1.2.3:8471"},
        {"grpc://tpu-host.svc", "tpu-host.svc:8470"},
        {"h:1", "h:1"},
        {"h:65535", "h:65535"},
        {"h:00080", "h:80"},
        {"a_b-c.D:7", "a_b-c.D:7"},
        {"[a]", "[a]:8470"},
        {"[::1]:8", "[::1]:8"},
        {"[fe80::1]", "[fe80::1]:8470"},
        {"", NULL},
        {"grpc://", NULL},
        {":8470", NULL},
        {"h:0", NULL},
        {"h:65536", NULL},
        {"h:000080", NULL},
        {"h:8/", NULL},
        {"h:-1", NULL},
        {"[::1", NULL},
        {"[::1]8", NULL},
        {"a b", NULL},
        {"h:8470x", NULL},
        {"h:", NULL},
        {"h/evil", NULL},
        {"a@b:1", NULL},
        {"[]:1", NULL},
        {"http://h:1", NULL},
        {"::1", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *address = NULL;
        sx_status status = sx_tpu_address(rows[i].text, strlen(rows[i].text), &arena, &address);
        if (rows[i].address == NULL) {
            assert_error(status, SX_INVALID_ARGUMENT, "; expected HOST, HOST:PORT or grpc");
        } else {
            assert_ok(status);
            assert_string_equal(address, rows[i].address);
        }
    }
}

/* {"cluster": {"job0": ["h", ...], ...}} with these numbers. */
static sx_status parse_cluster_of(int jobs, int tasks_each, sx_tf_config *out)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"cluster\": {");
    for (int j = 0; j < jobs; j++) {
        sx_buf_printf(&text, "%s\"job%d\": [", j > 0 ? "," : "", j);
        for (int t = 0; t < tasks_each; t++) {
            sx_buf_puts(&text, t > 0 ? ",\"h\"" : "\"h\"");
        }
        sx_buf_puts(&text, "]");
    }
    sx_buf_puts(&text, "}}");
    sx_status status = parse(sx_buf_text(&text), out);
    sx_buf_deinit(&text);
    return status;
}

static void test_distribute_tf_config__limits_themselves_are_allowed(void **state)
{
    (void)state;
    sx_tf_config c;
    sx_buf text;
    sx_buf_init(&text, 0);
    assert_ok(parse_cluster_of(SX_MAX_JOBS, 1, &c));
    assert_int_equal(c.n_jobs, SX_MAX_JOBS);
    assert_string_equal(c.jobs[SX_MAX_JOBS - 1].name, "job63");
    assert_ok(parse_cluster_of(2, SX_MAX_TASKS / 2, &c));
    assert_int_equal(c.n_tasks, SX_MAX_TASKS);
    assert_error(parse_cluster_of(2, SX_MAX_TASKS / 2 + 1, &c), SX_INVALID_ARGUMENT,
                 "the limit for all jobs is 65536");
    for (int extra = 0; extra < 2; extra++) {
        sx_buf_reset(&text);
        sx_buf_printf(&text, "{\"session_master\": \"%0*d\"}", SX_MAX_ADDRESS + extra, 7);
        sx_status status = parse(sx_buf_text(&text), &c);
        assert_int_equal(sx_status_code(status), extra == 0 ? SX_CODE_OK : SX_INVALID_ARGUMENT);
        sx_status_free(status);
        sx_buf_reset(&text);
        sx_buf_printf(&text, "%0*d", SX_MAX_ADDRESS + extra, 7); /* a host of so many digits */
        const char *address = NULL;
        status = sx_tpu_address(text.data, text.size, &arena, &address);
        assert_int_equal(sx_status_code(status), extra == 0 ? SX_CODE_OK : SX_INVALID_ARGUMENT);
        sx_status_free(status);
        sx_buf_reset(&text);
        sx_buf_printf(&text, "{%*s}", SX_LAUNCH_JSON_BYTES - 2 + extra, "");
        status = parse(sx_buf_text(&text), &c);
        assert_int_equal(sx_status_code(status), extra == 0 ? SX_CODE_OK : SX_INVALID_ARGUMENT);
        sx_status_free(status);
    }
    assert_ok(parse("{\"task\": {\"index\": 1048576}}", &c));
    assert_int_equal(c.task_index, 1048576);
    assert_ok(parse("{\"task\": {\"index\": \"000000007\"}}", &c));
    assert_int_equal(c.task_index, 7);
    assert_ok(parse("{\"cluster\": {\"w\": {}, \"v\": []}}", &c));
    assert_int_equal(c.n_jobs, 2);
    assert_int_equal(c.n_tasks, 0);
    sx_buf_deinit(&text);
}

static sx_status parse_node(const char *text, sx_tpu_node *out)
{
    return sx_tpu_node_parse(text, strlen(text), &arena, out);
}

static void test_distribute_tf_config__reads_tpu_nodes(void **state)
{
    (void)state;
    sx_tpu_node n;
    assert_ok(parse_node("{\"state\": \"READY\", \"health\": \"HEALTHY\", \"acceleratorType\": "
                         "\"v3-8\", \"networkEndpoints\": [{\"ipAddress\": \"a\", \"port\": 7}, "
                         "{\"ipAddress\": \"b\", \"port\": \"8\"}, {\"ipAddress\": \"c\"}]}",
                         &n));
    assert_string_equal(n.state, "READY");
    assert_string_equal(n.health, "HEALTHY");
    assert_string_equal(n.accelerator_type, "v3-8");
    assert_int_equal(n.n_workers, 3);
    assert_string_equal(n.workers[0], "a:7");
    assert_string_equal(n.workers[1], "b:8");
    assert_string_equal(n.workers[2], "c:8470");
    assert_ok(parse_node("{\"ipAddress\": \"d\", \"port\": \"9\"}", &n)); /* version 1 of the API */
    assert_int_equal(n.n_workers, 1);
    assert_string_equal(n.workers[0], "d:9");
    assert_null(n.state);
    assert_ok(parse_node("{\"ipAddress\": \"d\", \"networkEndpoints\": []}", &n));
    assert_int_equal(n.n_workers, 0);
    static const char *const wrong[][2] = {
        {"{\"state\": 7}", "\"state\" must be a string"},
        {"{\"health\": 7}", "\"health\" must be a string"},
        {"{\"acceleratorType\": []}", "\"acceleratorType\" must be a string"},
        {"{\"networkEndpoints\": {}}", "\"networkEndpoints\" must be a list"},
        {"{\"networkEndpoints\": [{\"port\": 7}]}", "endpoint without \"ipAddress\""},
        {"{\"networkEndpoints\": [7]}", "endpoint without \"ipAddress\""},
        {"{\"ipAddress\": 7}", "\"ipAddress\" must be a string"},
        {"{\"ipAddress\": \"a\", \"port\": 7.5}", "\"port\" must be a string"},
        {"{\"ipAddress\": \"a\", \"port\": 70000}", "invalid address \"a:70000\""},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_error(parse_node(wrong[i][0], &n), SX_INVALID_ARGUMENT, wrong[i][1]);
    }
    sx_buf text;
    sx_buf_init(&text, 0);
    for (int extra = 0; extra < 2; extra++) {
        sx_buf_reset(&text);
        sx_buf_puts(&text, "{\"networkEndpoints\": [");
        for (int i = 0; i < SX_MAX_TPU_WORKERS + extra; i++) {
            sx_buf_printf(&text, "%s{\"ipAddress\": \"h%d\"}", i > 0 ? "," : "", i);
        }
        sx_buf_puts(&text, "]}");
        sx_status status = parse_node(sx_buf_text(&text), &n);
        assert_int_equal(sx_status_code(status), extra == 0 ? SX_CODE_OK : SX_INVALID_ARGUMENT);
        sx_status_free(status);
    }
    assert_int_equal(n.n_workers, SX_MAX_TPU_WORKERS);
    assert_string_equal(n.workers[SX_MAX_TPU_WORKERS - 1], "h4095:8470");
    sx_buf_deinit(&text);
    static const char refusal[] = "{\"error\": {\"message\": \"no\"}}";
    assert_string_equal(sx_tpu_node_error(refusal, sizeof(refusal) - 1, &arena), "no");
    assert_null(sx_tpu_node_error(refusal, sizeof(refusal) - 2, &arena));
    assert_null(sx_tpu_node_error("{}", 2, &arena));
}

static void test_distribute_tf_config__tpu_config_members(void **state)
{
    (void)state;
    sx_env_tpu_config c;
    static const char *const wrong[][2] = {
        {"{\"tpu_node_name\": 1}", "TPU_CONFIG: \"tpu_node_name\" must be"},
        {"{\"tpu_node_name\": \"n\", \"project\": 1}", "\"project\" must be a string"},
        {"{\"tpu_node_name\": \"n\", \"zone\": 1}", "\"zone\" must be a string"},
        {"{\"tpu_node_name\": \"\"}", "no \"tpu_node_name\""},
        {"[]", "expected a JSON object"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_error(sx_env_tpu_config_parse(wrong[i][0], strlen(wrong[i][0]), &arena, &c),
                     SX_INVALID_ARGUMENT, wrong[i][1]);
    }
    static const char text[] = "{\"tpu_node_name\": \"n\", \"project\": null, \"zone\": \"z\"}";
    assert_ok(sx_env_tpu_config_parse(text, sizeof(text) - 1, &arena, &c));
    assert_null(c.project);
    assert_string_equal(c.zone, "z");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_a_cluster, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__says_what_is_wrong, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__has_limits, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__survives_flips_and_cuts, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_tpu_config, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_addresses, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__limits_themselves_are_allowed, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_tpu_nodes, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__tpu_config_members, setup, teardown),
};
SX_TEST_MAIN(tests)
