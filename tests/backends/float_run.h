/* A graph of float32 arguments, run once on a platform: what a kernel's tests compare with the
 * host's results. */
#ifndef SX_TESTS_BACKENDS_FLOAT_RUN_H
#define SX_TESTS_BACKENDS_FLOAT_RUN_H

#include "harness.h"

#include <string.h>

#include "backends/backend.h"
#include "base/memory.h"
#include "graph/ir.h"

enum { FLOAT_RUN_MOST = 5 /* arguments, results */ };

typedef struct float_run {
    float (*number)(void *user, int arg, int64_t k); /* called in the order of args and elements */
    void *user;
    int64_t batch;
    int shards;         /* 0: the backend chooses */
    bool frozen;        /* sx_compile_options.frozen */
    const char *kernel; /* NULL: not counted */
    /* What it found: */
    int kernels; /* of that name */
    int64_t elems, temporary_bytes;
} float_run;

/* The first result, to be freed. The arguments must keep their values. */
static inline float *run_floats(sx_platform *platform, const sx_graph *g, float_run *run)
{
    sx_executable *e;
    sx_run *r;
    sx_device_buffer *args[FLOAT_RUN_MOST], *results[FLOAT_RUN_MOST];
    float *data[FLOAT_RUN_MOST];
    sx_executable_info info;
    const sx_compile_options options = {.batch = run->batch,
                                        .shards = run->shards,
                                        .frozen = run->frozen,
                                        .profile = run->kernel != NULL};
    assert_true(g->n_args <= FLOAT_RUN_MOST && g->n_results <= FLOAT_RUN_MOST);
    assert_ok(sx_compile(platform, g, &options, &e));
    assert_ok(sx_run_create(e, &r));
    for (int i = 0; i < g->n_args; i++) {
        const int64_t n = sx_type_elems(&e->arg_types[i]);
        data[i] = sx_alloc((size_t)n + 1, sizeof(float));
        assert_non_null(data[i]);
        for (int64_t k = 0; k < n; k++) {
            data[i][k] = run->number(run->user, i, k);
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data[i], false));
    }
    for (int i = 0; i < g->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &results[i]));
    }
    assert_ok(sx_run_execute(r, args, results));
    float *y = sx_alloc((size_t)sx_type_bytes(&results[0]->type) + 1, 1);
    assert_non_null(y);
    assert_ok(sx_device_buffer_read(results[0], y));
    run->elems = sx_type_elems(&results[0]->type);
    assert_ok(sx_executable_get_info(e, &info));
    run->temporary_bytes = info.temporary_bytes;
    run->kernels = 0;
    if (run->kernel != NULL) {
        const sx_kernel_time *rows;
        int n;
        assert_ok(sx_run_get_profile(r, &rows, &n));
        for (int i = 0; i < n; i++) {
            run->kernels += strcmp(rows[i].kernel, run->kernel) == 0;
        }
    }
    for (int i = 0; i < g->n_args; i++) {
        const size_t bytes = (size_t)sx_type_bytes(&e->arg_types[i]);
        float *now = sx_alloc(bytes + 1, 1);
        assert_non_null(now);
        assert_ok(sx_device_buffer_read(args[i], now));
        assert_memory_equal(now, data[i], bytes);
        sx_free(now);
        sx_free(data[i]);
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < g->n_results; i++) {
        sx_device_buffer_release(results[i]);
    }
    sx_run_destroy(r);
    sx_executable_release(e);
    return y;
}

#endif
