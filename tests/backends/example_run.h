/* A graph of one batched input "x" and variables, run on some of the same examples: what tests of
 * kernels compare with the host's results, and with one another. */
#ifndef SX_TESTS_BACKENDS_EXAMPLE_RUN_H
#define SX_TESTS_BACKENDS_EXAMPLE_RUN_H

#include "numbers.h"

#include <math.h>

#include "backends/backend.h"
#include "graph/ir.h"

enum { EXAMPLES = 5 };

typedef struct run_options {
    const char *backend;
    int threads;
    int64_t batch;
    int64_t first; /* of the examples */
    bool frozen;
    const char *kernel; /* which must be in the plan; NULL: any */
} run_options;

/* The results of some of EXAMPLES examples, to be freed; the other arguments are the same for all.
 */
static inline float *run(const sx_graph *g, const run_options *o, int64_t *elems)
{
    sx_platform *platform;
    sx_executable *e;
    sx_run *r;
    sx_device_buffer *args[16], *output;
    const sx_kernel_time *rows;
    int n, found = 0;
    assert_ok(
        sx_platform_open(o->backend, &(sx_platform_options){.cpu.threads = o->threads}, &platform));
    assert_ok(sx_compile(
        platform, g, &(sx_compile_options){.batch = o->batch, .frozen = o->frozen, .profile = true},
        &e));
    for (int i = 0; i < e->n_args; i++) {
        const bool is_input = strcmp(g->args[i].name, "x") == 0;
        const int64_t size = sx_type_elems(&e->arg_types[i]);
        float *data = numbers(is_input ? size / o->batch * EXAMPLES : size, 11 + (uint32_t)i);
        const int64_t skip = is_input ? size / o->batch * o->first : 0;
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data + skip, false));
        sx_free(data);
    }
    *elems = sx_type_elems(&e->result_types[0]);
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &output));
    assert_ok(sx_run_create(e, &r));
    assert_ok(sx_run_execute(r, args, &output));
    if (o->kernel != NULL) {
        assert_ok(sx_run_get_profile(r, &rows, &n));
        for (int i = 0; i < n; i++) {
            found += strstr(rows[i].kernel, o->kernel) != NULL;
        }
        assert_int_equal(found, 1);
    }
    float *y = sx_alloc((size_t)*elems + 1, sizeof(float));
    assert_non_null(y);
    assert_ok(sx_device_buffer_read(output, y));
    sx_device_buffer_release(output);
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_run_destroy(r);
    sx_executable_release(e);
    sx_platform_close(platform);
    return y;
}

/* The same of the host, within 5e-6 of the greatest. */
static inline void equals_host(const sx_graph *g, const run_options *o)
{
    int64_t n, m;
    float *y = run(g, o, &n);
    float *right =
        run(g, &(run_options){.backend = "host", .batch = o->batch, .first = o->first}, &m);
    double greatest = 0;
    assert_int_equal(n, m);
    for (int64_t i = 0; i < n; i++) {
        greatest = harness_greater(greatest, fabs((double)right[i]));
    }
    for (int64_t i = 0; i < n; i++) {
        assert_true(fabs((double)y[i] - (double)right[i]) <= 5e-6 * greatest);
    }
    sx_free(y);
    sx_free(right);
}

#endif
