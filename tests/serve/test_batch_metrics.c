/* The batcher's figures on the metrics page. */
#include "harness.h"

#include "serve/batch_metrics.h"

static void assert_line(const sx_buf *page, const char *line)
{
    char whole[300];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(sx_buf_text(page), whole) == NULL) {
        fail_msg("no line %s in\n%s", line, sx_buf_text(page));
    }
}

#define SESSION ":tensorflow:serving:batching_session:"

static void test_serve_batch_metrics__prints_histograms(void **state)
{
    (void)state;
    static sx_batch_metrics m;
    sx_buf page;
    memset(&m, 0, sizeof(m));
    sx_buf_init(&page, 0);
    sx_batch_metrics_add_call(&m, 1, 100000); /* the first bound, in ns */
    sx_batch_metrics_add_call(&m, 3, 110000);
    sx_batch_metrics_add_call(&m, 16384, (int64_t)1 << 60);
    sx_batch_metrics_add_call(&m, 1, -5); /* a clock that went back */
    sx_batch_metrics_add_run(&m, 4, 4);
    sx_batch_metrics_add_run(&m, 5, 8);
    sx_batch_metrics_add_run(&m, 7, 8);
    for (int64_t size = 100; size < 200; size++) { /* more sizes than are told apart */
        sx_batch_metrics_add_run(&m, size, size);
    }
    sx_batch_metrics_print(&m, &page);
    assert_line(&page, "# TYPE " SESSION "queuing_latency histogram");
    assert_line(&page,
                SESSION "queuing_latency_bucket{thread_pool_name=\"model_server_batch_threads\","
                        "le=\"100\"} 2");
    assert_line(&page,
                SESSION "queuing_latency_bucket{thread_pool_name=\"model_server_batch_threads\","
                        "le=\"120\"} 3");
    assert_line(&page,
                SESSION "queuing_latency_bucket{thread_pool_name=\"model_server_batch_threads\","
                        "le=\"+Inf\"} 4");
    assert_line(&page,
                SESSION "queuing_latency_count{thread_pool_name=\"model_server_batch_threads\"} 4");
    assert_line(&page, SESSION "wrapped_run_count 103");
    assert_line(&page, SESSION "input_batch_size_bucket{le=\"1\"} 2");
    assert_line(&page, SESSION "input_batch_size_bucket{le=\"4\"} 3");
    assert_line(&page, SESSION "input_batch_size_bucket{le=\"8192\"} 3");
    assert_line(&page, SESSION "input_batch_size_bucket{le=\"+Inf\"} 4");
    assert_line(&page, SESSION "input_batch_size_sum{} 16389");
    assert_line(&page, SESSION "processed_batch_size_bucket{le=\"8\"} 3");
    assert_line(&page, SESSION "padding_size_bucket{execution_batch_size=\"8\",le=\"1\"} 1");
    assert_line(&page, SESSION "padding_size_sum{execution_batch_size=\"8\"} 4");
    assert_line(&page, SESSION "padding_size_count{execution_batch_size=\"4\"} 1");
    assert_line(&page, SESSION "padding_size_count{execution_batch_size=\"129\"} 1");
    assert_null(strstr(sx_buf_text(&page), "execution_batch_size=\"130\""));
    sx_buf_deinit(&page);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_batch_metrics__prints_histograms),
};
SX_TEST_MAIN(tests)
