/* The Prometheus text: every line of a small page, and the edges of the buckets. */
#include "harness.h"

#include "serve/metrics.h"

static bool has_line(const sx_buf *page, const char *line)
{
    const size_t size = strlen(line);
    for (const char *at = sx_buf_text(page); (at = strstr(at, line)) != NULL; at++) {
        if ((at == sx_buf_text(page) || at[-1] == '\n') && at[size] == '\n') {
            return true;
        }
    }
    return false;
}

static void assert_line(const sx_buf *page, const char *line)
{
    if (!has_line(page, line)) {
        fail_msg("no line %s in\n%s", line, sx_buf_text(page));
    }
}

static int count_lines(const sx_buf *page, const char *start)
{
    int count = 0;
    for (const char *at = sx_buf_text(page); (at = strstr(at, start)) != NULL; at++) {
        count += at == sx_buf_text(page) || at[-1] == '\n';
    }
    return count;
}

static void test_serve_metrics__pages(void **state)
{
    (void)state;
    static sx_model_metrics first, second;
    const struct sx_metrics_row rows[] = {{"m", &first}, {"a\\b\"c\nd", &second}};
    sx_buf page;
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    sx_buf_init(&page, 0);
    sx_metrics_count(&first, SX_CODE_OK);
    sx_metrics_count(&first, SX_CODE_OK);
    sx_metrics_count(&first, SX_UNAUTHENTICATED); /* the last code */
    sx_metrics_count(&second, SX_INVALID_ARGUMENT);
    sx_latency_add(&first.request_latency[SX_API_PREDICT][SX_ENTRY_REST], 1234567);
    sx_latency_add(&first.request_latency[SX_API_PREDICT][SX_ENTRY_REST], 1);
    sx_latency_add(&second.run_latency[SX_API_PREDICT], 2000000);
    sx_metrics_add_examples(&first, 1); /* each bound has its own value */
    sx_metrics_add_examples(&first, 2);
    sx_metrics_add_examples(&first, 16384);
    sx_metrics_add_examples(&first, 16385);
    sx_metrics_add_load(&second, true, 3000000);
    sx_metrics_add_load(&second, false, 1000000);
    sx_metrics_add_load(&second, false, -1); /* a clock that went back */
    sx_metrics_print(rows, 2, &page);
    const char *start = "# HELP :tensorflow:serving:request_count ";
    assert_memory_equal(sx_buf_text(&page), start, strlen(start));
    assert_line(&page, "# TYPE :tensorflow:serving:request_count counter");
    assert_line(&page, "# TYPE :tensorflow:serving:request_latency histogram");
    assert_line(&page, "# TYPE :tensorflow:serving:runtime_latency histogram");
    assert_int_equal(count_lines(&page, "# HELP "), 15);
    assert_int_equal(count_lines(&page, "# TYPE "), 15);
    assert_line(&page, ":tensorflow:serving:request_count{model_name=\"m\",status=\"OK\"} 2");
    assert_line(&page,
                ":tensorflow:serving:request_count{model_name=\"m\",status=\"UNAUTHENTICATED\"} 1");
    assert_line(&page, ":tensorflow:serving:request_count{model_name=\"a\\\\b\\\"c\\nd\",status="
                       "\"INVALID_ARGUMENT\"} 1");
    assert_int_equal(count_lines(&page, ":tensorflow:serving:request_count{"), 3);
#define REQUEST "{model_name=\"m\",API=\"predict\",entrypoint=\"REST\""
#define RUN     "{model_name=\"a\\\\b\\\"c\\nd\",API=\"Predict\",runtime=\"TF1\""
    assert_line(&page, ":tensorflow:serving:request_latency_bucket" REQUEST ",le=\"10\"} 1");
    assert_line(&page, ":tensorflow:serving:request_latency_bucket" REQUEST ",le=\"+Inf\"} 2");
    assert_line(&page, ":tensorflow:serving:request_latency_sum" REQUEST "} 1234.568");
    assert_line(&page, ":tensorflow:serving:request_latency_count" REQUEST "} 2");
    assert_line(&page, ":tensorflow:serving:runtime_latency_sum" RUN "} 2000");
    assert_line(&page, ":tensorflow:serving:runtime_latency_count" RUN "} 1");
#define EXAMPLES ":tensorflow:serving:request_example_counts"
    assert_line(&page, EXAMPLES "_bucket{model=\"m\",le=\"1\"} 1");
    assert_line(&page, EXAMPLES "_bucket{model=\"m\",le=\"2\"} 2");
    assert_line(&page, EXAMPLES "_bucket{model=\"m\",le=\"8192\"} 2");
    assert_line(&page, EXAMPLES "_bucket{model=\"m\",le=\"16384\"} 3");
    assert_line(&page, EXAMPLES "_bucket{model=\"m\",le=\"+Inf\"} 4");
    assert_line(&page, EXAMPLES "_sum{model=\"m\"} 32772");
    assert_line(&page, EXAMPLES "_count{model=\"m\"} 4");
    assert_int_equal(count_lines(&page, EXAMPLES "_bucket"), SX_EXAMPLE_BUCKETS + 1);
    assert_line(&page, ":tensorflow:serving:request_example_count_total{model=\"m\"} 32772");
#define LOADS(status)                                                                      \
    ":tensorflow:cc:saved_model:load_attempt_count{model_path=\"a\\\\b\\\"c\\nd\",status=" \
    "\"" status "\"} "
    assert_line(&page, LOADS("success") "1");
    assert_line(&page, LOADS("fail") "2");
    assert_line(&page,
                ":tensorflow:cc:saved_model:load_latency{model_path=\"a\\\\b\\\"c\\nd\"} 4000");
    assert_line(&page, ":tensorflow:core:graph_runs 1");
    assert_line(&page, ":tensorflow:core:graph_run_time_usecs 2000");
    assert_line(&page, ":tensorflow:core:direct_session_runs 1");
    assert_int_equal(count_lines(&page, ":tensorflow:serving:request_latency_bucket" REQUEST),
                     SX_LATENCY_BUCKETS + 1);
    assert_int_equal(count_lines(&page, ":tensorflow:serving:runtime_latency_bucket" RUN),
                     SX_LATENCY_BUCKETS + 1);
    sx_buf_reset(&page);
    sx_metrics_print(rows, 0, &page);
    assert_int_equal(count_lines(&page, ":"), 3); /* runs of no models */
    sx_buf_reset(&page);
    sx_metrics_print_value(&page, "x_total", "counter", "What x is.", 18446744073709551615u);
    assert_string_equal(sx_buf_text(&page), "# HELP x_total What x is.\n# TYPE x_total counter\n"
                                            "x_total 18446744073709551615\n");
    sx_buf_deinit(&page);
}

/* A duration counts where it is at most the bound: 10 us, 18 us ... 10 us * 1.8^32, beyond. */
static void test_serve_metrics__bounds_of_buckets(void **state)
{
    (void)state;
    double bound_ns = 10000;
    for (int i = 0; i < SX_LATENCY_BUCKETS; i++, bound_ns *= 1.8) {
        for (int more = 0; more < 2; more++) {
            sx_latency latency;
            memset(&latency, 0, sizeof(latency));
            sx_latency_add(&latency, (int64_t)bound_ns + more * ((int64_t)(bound_ns / 1e12) + 1));
            for (int k = 0; k <= SX_LATENCY_BUCKETS; k++) {
                assert_int_equal(atomic_load(&latency.buckets[k]), k == i + more);
            }
        }
    }
    sx_latency latency;
    memset(&latency, 0, sizeof(latency));
    sx_latency_add(&latency, -5); /* a clock that went back */
    sx_latency_add(&latency, 0);
    assert_int_equal(atomic_load(&latency.buckets[0]), 2);
    assert_int_equal(atomic_load(&latency.sum_ns), 0);
}

static void test_serve_metrics__quantiles_and_rates(void **state)
{
    (void)state;
    static sx_latency latency;
    static sx_rate rate;
    const int64_t second = 1000000000;
    memset(&latency, 0, sizeof(latency));
    memset(&rate, 0, sizeof(rate));
    assert_true(sx_latency_quantile_ms(&latency, 0.5) == 0);
    for (int i = 1; i <= 1000; i++) { /* 0.1 to 100 ms, evenly */
        sx_latency_add(&latency, i * (int64_t)100000);
    }
    const double median = sx_latency_quantile_ms(&latency, 0.5);
    const double p99 = sx_latency_quantile_ms(&latency, 0.99);
    assert_true(median > 45 && median < 55);
    assert_true(p99 > 95 && p99 < 125); /* the bucket ends at 119 */
    for (int s = 100; s < 130; s++) {
        for (int i = 0; i < 4; i++) {
            sx_rate_add(&rate, s * second);
        }
    }
    assert_true(sx_rate_per_second(&rate, 130 * second) == 2); /* 120 in 60 seconds */
    assert_true(sx_rate_per_second(&rate, 129 * second) < 2);  /* the current second is not over */
    assert_true(sx_rate_per_second(&rate, 175 * second) == 1);
    assert_true(sx_rate_per_second(&rate, 1000 * second) == 0);
    sx_rate_add(&rate, 1000 * second); /* in a place that was used before */
    assert_true(sx_rate_per_second(&rate, 1001 * second) * SX_RATE_SECONDS == 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_metrics__pages),
    cmocka_unit_test(test_serve_metrics__quantiles_and_rates),
    cmocka_unit_test(test_serve_metrics__bounds_of_buckets),
};
SX_TEST_MAIN(tests)
