/* Measuring: warms up, chooses a number of calls that takes a few milliseconds (one sample), takes
 * BENCH_SAMPLES samples and prints the median with the 10th and 90th percentiles.
 *
 *   bench_time("pool: empty run, 2 workers", run, pool);              time per call
 *   bench_rate("crc32c: 1 MiB", 1 << 20, "B/s", checksum, block);     amount per call, as a rate
 *
 *   bench_check(sx_params_create(&params));                           ends the benchmark on an
 * error
 *
 * The Python benchmarks print lines of the same form: name, median, unit, (p10 … p90). */
#ifndef SX_BENCH_H
#define SX_BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sextant/status.h>

#include "base/clock.h"

enum { BENCH_SAMPLES = 31, BENCH_SAMPLE_NS = 3 * 1000 * 1000 };

typedef void bench_fn(void *user);

static inline void bench_check(sx_status status)
{
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, sx_status_message(status));
        exit(1);
    }
}

/* Of CLOCK_PROCESS_CPUTIME_ID or CLOCK_THREAD_CPUTIME_ID. */
static inline double bench_cpu_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Makes a directory of its own from `pattern`, "/tmp/name-XXXXXX". */
static inline void bench_make_dir(char *pattern)
{
    if (mkdtemp(pattern) == NULL) {
        bench_check(sx_error(SX_UNKNOWN, "cannot create the directory %s", pattern));
    }
}

static inline double bench_sample(bench_fn *fn, void *user, long calls)
{
    int64_t start = sx_now_ns();
    for (long i = 0; i < calls; i++) {
        fn(user);
    }
    return (double)(sx_now_ns() - start) / (double)calls;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Stores the nanoseconds per call of each sample in `samples`, sorted. */
static inline void bench_measure(bench_fn *fn, void *user, double samples[BENCH_SAMPLES])
{
    long calls = 1;
    while (bench_sample(fn, user, calls) * (double)calls < BENCH_SAMPLE_NS && calls < 1L << 30) {
        calls *= 2;
    }
    for (int i = 0; i < BENCH_SAMPLES; i++) {
        samples[i] = bench_sample(fn, user, calls);
    }
    qsort(samples, BENCH_SAMPLES, sizeof(double), bench_compare);
}

/* Prints the number with an SI prefix, "12.3 M"; the caller prints the unit. */
static inline void bench_print_number(double value)
{
    static const struct {
        double factor;
        const char *prefix;
    } rows[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}};
    int i = 0;
    while (i < 6 && value < rows[i].factor) {
        i++;
    }
    printf("%8.3g %s", value / rows[i].factor, rows[i].prefix);
}

static inline void bench_print(const char *name, const char *unit, double median, double low,
                               double high)
{
    printf("%-44s", name);
    bench_print_number(median);
    printf("%s  (", unit);
    bench_print_number(low);
    printf(" …");
    bench_print_number(high);
    printf(")\n");
    fflush(stdout);
}

static inline void bench_time(const char *name, bench_fn *fn, void *user)
{
    double ns[BENCH_SAMPLES];
    bench_measure(fn, user, ns);
    bench_print(name, "s", ns[BENCH_SAMPLES / 2] * 1e-9, ns[BENCH_SAMPLES / 10] * 1e-9,
                ns[BENCH_SAMPLES * 9 / 10] * 1e-9);
}

static inline void bench_rate(const char *name, double amount, const char *unit, bench_fn *fn,
                              void *user)
{
    double ns[BENCH_SAMPLES];
    bench_measure(fn, user, ns);
    bench_print(name, unit, amount / ns[BENCH_SAMPLES / 2] * 1e9,
                amount / ns[BENCH_SAMPLES * 9 / 10] * 1e9, amount / ns[BENCH_SAMPLES / 10] * 1e9);
}

#endif
