/* Every allocation fails once: while cluster descriptions are read, a TPU is looked for, and
 * strategies are made. */
#include "cloud.h"
#include "torture.h"

#include <sextant/distribute.h>

#include "distribute/device_spec.h"
#include "distribute/resolver.h"
#include "distribute/tf_config.h"
#include "distribute/tpu_node.h"

static sx_status read_texts(void *user)
{
    static const char cluster[] =
        "{\"cluster\": {\"chief\": [\"h0:2222\"], \"tpu_worker\": {\"1\": \"h4:1\", \"0\": "
        "\"h3:1\"}}, \"task\": {\"type\": \"chief\", \"index\": 0}, "
        "\"session_master\": \"grpc://h9:8470\"}";
    static const char tpu[] = "{\"tpu_node_name\": \"mine\", \"project\": \"p\", \"zone\": \"z\"}";
    static const char node[] =
        "{\"state\": \"READY\", \"acceleratorType\": \"v3-8\", \"networkEndpoints\": "
        "[{\"ipAddress\": \"10.0.0.1\", \"port\": 8470}, {\"ipAddress\": \"10.0.0.2\"}]}";
    sx_arena arena;
    sx_tf_config config;
    sx_env_tpu_config tpu_config;
    sx_tpu_node tpu_node = {0};
    sx_device_spec spec;
    const char *address = NULL;
    (void)user;
    sx_arena_init(&arena, 0);
    sx_status status = sx_tf_config_parse(cluster, sizeof(cluster) - 1, &arena, &config);
    if (status == SX_OK) {
        assert_int_equal(config.n_jobs, 2);
        assert_string_equal(config.session_master, "grpc://h9:8470");
        status = sx_env_tpu_config_parse(tpu, sizeof(tpu) - 1, &arena, &tpu_config);
    }
    if (status == SX_OK) {
        assert_string_equal(tpu_config.zone, "z");
        status = sx_tpu_node_parse(node, sizeof(node) - 1, &arena, &tpu_node);
    }
    if (status == SX_OK) {
        assert_int_equal(tpu_node.n_workers, 2);
        assert_string_equal(tpu_node.accelerator_type, "v3-8");
        assert_string_equal(tpu_node.workers[1], "10.0.0.2:8470");
        status = sx_tpu_address("grpc://host", 11, &arena, &address);
    }
    if (status == SX_OK) {
        assert_string_equal(address, "host:8470");
        status = sx_device_spec_parse("pjrt:/lib/plugin.so", &arena, &spec);
    }
    sx_arena_deinit(&arena);
    return status;
}

static void test_distribute_torture__descriptions(void **state)
{
    (void)state;
    assert_true(sx_torture(read_texts, NULL) > 15);
}

/* By addresses, and on this machine; each step of the search is explained. */
static sx_status find_tpus(void *user)
{
    static const char *const names[] = {"grpc://10.1.2.3:8470,10.1.2.4", "local"};
    (void)user;
    for (int i = 0; i < 2; i++) {
        sx_tpu_cluster *c = NULL;
        SX_TRY(sx_tpu_cluster_resolve(&c, .tpu = names[i]));
        assert_int_equal(c->n_workers, i == 0 ? 2 : 0);
        assert_non_null(strstr(c->explanation, "chosen: "));
        assert_int_equal(c->n_steps, 7);
        sx_tpu_cluster_free(c);
    }
    return SX_OK;
}

static void test_distribute_torture__searches(void **state)
{
    (void)state;
    assert_true(sx_torture(find_tpus, NULL) > 15);
}

static sx_status make_strategies(void *user)
{
    sx_strategy *one = NULL, *mirrored = NULL;
    (void)user;
    sx_status status = sx_one_device_strategy(&one, .device = "cpu");
    status = status != SX_OK ? status : sx_mirrored_strategy(&mirrored, .device = "host");
    sx_strategy_release(one);
    sx_strategy_release(mirrored);
    return status;
}

static void test_distribute_torture__strategies(void **state)
{
    (void)state;
    assert_true(sx_torture(make_strategies, NULL) > 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, cloud_setup, cloud_teardown)
static const struct CMUnitTest tests[] = {
    TEST(test_distribute_torture__descriptions),
    TEST(test_distribute_torture__searches),
    TEST(test_distribute_torture__strategies),
};
SX_TEST_MAIN(tests)
