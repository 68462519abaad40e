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
    sx_tpu_config c;
    const char *text = "{\"tpu_node_name\": \"n1\", \"project\": \"p1\", \"zone\": \"\"}";
    assert_ok(sx_tpu_config_parse(text, strlen(text), &arena, &c));
    assert_string_equal(c.name, "n1");
    assert_string_equal(c.project, "p1");
    assert_null(c.zone);
    assert_error(sx_tpu_config_parse("{}", 2, &arena, &c), SX_INVALID_ARGUMENT,
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
        {"[::1]:8", "[::1]:8"},
        {"[fe80::1]", "[fe80::1]:8470"},
        {"", NULL},
        {"grpc://", NULL},
        {":8470", NULL},
        {"h:0", NULL},
        {"h:65536", NULL},
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_a_cluster, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__says_what_is_wrong, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__has_limits, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__survives_flips_and_cuts, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_tpu_config, setup, teardown),
    cmocka_unit_test_setup_teardown(test_distribute_tf_config__reads_addresses, setup, teardown),
};
SX_TEST_MAIN(tests)
