#include "harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "serve/batch_config.h"

static const char missing[] = "/tmp/sextant-missing/batching.config";

static sx_status read_text(const char *text, sx_batch_policy policy, sx_batch_config *out)
{
    char path[] = "/tmp/sextant-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    sx_status status = sx_batch_config_read(path, policy, out);
    unlink(path);
    return status;
}

static void test_serve_batch_config__reads_parameters(void **state)
{
    (void)state;
    static const char text[] = "# as in TensorFlow Serving's guide\n"
                               "max_batch_size { value: 100 }\n"
                               "batch_timeout_micros { value: 1500 }\n"
                               "max_enqueued_batches { value: 7 }\n"
                               "num_batch_threads { value: 3 }\n"
                               "thread_pool_name { value: 'pool' }\n"
                               "allowed_batch_sizes: [10, 50]\n"
                               "allowed_batch_sizes: 100\n";
    sx_batch_config c;
    assert_ok(read_text(text, SX_BATCH_TFS, &c));
    assert_int_equal(c.batcher.rules.max_rows, 100);
    assert_int_equal(c.batcher.rules.timeout_ns, 1500000);
    assert_int_equal(c.batcher.rules.max_queued_rows, 700);
    assert_int_equal(c.batcher.run_states, 3);
    assert_true(c.batcher.no_split);
    assert_int_equal(c.size_count, 3);
    assert_int_equal(c.sizes[1], 50);
    assert_ok(read_text(text, SX_BATCH_CONSERVE, &c));
    assert_false(c.batcher.no_split);
    assert_int_equal(c.batcher.run_states, 0); /* as many as processors */

    assert_ok(read_text("", SX_BATCH_CONSERVE, &c)); /* TensorFlow Serving's defaults */
    assert_int_equal(c.batcher.rules.max_rows, 1000);
    assert_int_equal(c.batcher.rules.max_queued_rows, 10000);
    assert_int_equal(c.size_count, 7);
    assert_int_equal(c.sizes[6], 64);
    assert_ok(read_text("max_batch_size { value: 20 } enable_large_batch_splitting { value: true }"
                        "max_execution_batch_size { value: 10 }",
                        SX_BATCH_TFS, &c));
    assert_false(c.batcher.no_split);
    assert_int_equal(c.batcher.rules.max_rows, 10);
    assert_int_equal(c.size_count, 5); /* 1, 2, 4, 8, 10 */
    assert_int_equal(c.sizes[4], 10);
    sx_batch_config_pin(&c, 12);
    assert_int_equal(c.batcher.rules.max_rows, 12);
    assert_int_equal(c.size_count, 1);
    c = sx_batch_config_off();
    sx_batch_config_pin(&c, 12);
    assert_int_equal(c.batcher.rules.max_rows, 0);
}

static void test_serve_batch_config__names_mistakes(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"max_batch_size { value: 0 }", ":1: max_batch_size: 0, expected 1 to 1048576"},
        {"\n# max_enqueued_batches\nmax_enqueued_batches { value: -1 }",
         ":3: max_enqueued_batches: -1, expected 1 or more"},
        {"batch_timeout_micros { value: -5 }", ":1: batch_timeout_micros: -5, expected"},
        {"\n\nnum_batch_threads { value: 0 }", ":3: num_batch_threads: 0, expected"},
        {"max_batch_size { value: 8 }\nallowed_batch_sizes: [4, 4, 8]",
         ":2: allowed_batch_sizes: 4, expected sizes that ascend from 1"},
        {"max_batch_size { value: 8 }\nallowed_batch_sizes: [2, 4]",
         ":2: allowed_batch_sizes: 4, expected the last one to be max_batch_size, 8"},
        {"max_execution_batch_size { value: 8 }", "only with enable_large_batch_splitting"},
        {"max_batch_size: 8", ":1:"},
        {"max_batches { value: 8 }", "BatchingParameters has no field 'max_batches'"},
    };
    (void)state;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_batch_config c;
        assert_error(read_text(rows[i].text, SX_BATCH_CONSERVE, &c), SX_INVALID_ARGUMENT,
                     rows[i].message);
    }
    sx_batch_config c;
    assert_error(sx_batch_config_read(missing, SX_BATCH_TFS, &c), SX_NOT_FOUND, missing);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_batch_config__reads_parameters),
    cmocka_unit_test(test_serve_batch_config__names_mistakes),
};
SX_TEST_MAIN(tests)
