/* Static graphs run by the host's kernels, for tests of what passes leave as it is. */
#ifndef SX_TESTS_GRAPH_HOST_RUN_H
#define SX_TESTS_GRAPH_HOST_RUN_H

#include "harness.h"

#include <string.h>

#include "graph/interpret.h"
#include "graph/ir.h"

enum { HOST_RUN_MOST = 256 /* elements of all results */ };

/* Element k of argument `arg`, which is a scalar or not. */
typedef double host_run_number(int arg, int64_t k, bool scalar);

/* All results, one after the other; returns how many elements they have. */
static inline int64_t host_run(const sx_graph *g, host_run_number *number,
                               double out[HOST_RUN_MOST])
{
    sx_arena arena;
    int64_t total = 0;
    sx_arena_init(&arena, 0);
    sx_host_tensor *args = sx_arena_array(&arena, g->n_args + 1, sx_host_tensor);
    sx_host_tensor *results = sx_arena_array(&arena, g->n_results + 1, sx_host_tensor);
    assert_true(args != NULL && results != NULL);
    for (int i = 0; i < g->n_args; i++) {
        args[i].type = *sx_graph_type(g, g->args[i].value);
        const int64_t n = sx_type_elems(&args[i].type);
        args[i].data = sx_arena_array(&arena, n + 1, double);
        assert_non_null(args[i].data);
        for (int64_t k = 0; k < n; k++) {
            sx_host_set(&args[i], k, number(i, k, args[i].type.rank == 0));
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        results[i].type = *sx_graph_type(g, g->results[i].value);
        results[i].data = sx_arena_array(&arena, sx_type_elems(&results[i].type) + 1, double);
        assert_non_null(results[i].data);
    }
    assert_ok(sx_interpret(&(sx_kernel_call){.arena = &arena}, g, args, results));
    for (int i = 0; i < g->n_results; i++) {
        const int64_t n = sx_type_elems(&results[i].type);
        assert_true(total + n <= HOST_RUN_MOST);
        memcpy(out + total, results[i].data, (size_t)n * sizeof(double));
        total += n;
    }
    sx_arena_deinit(&arena);
    return total;
}

/* The same bits, of which the first is not zero's. */
static inline void assert_same_results(const sx_graph *a, const sx_graph *b,
                                       host_run_number *number)
{
    double x[HOST_RUN_MOST] = {0}, y[HOST_RUN_MOST] = {0};
    assert_int_equal(host_run(a, number, x), host_run(b, number, y));
    assert_true(x[0] != 0);
    assert_memory_equal(x, y, sizeof(x));
}

static inline int count_nodes(const sx_graph *g, const sx_op_def *op)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        n += g->nodes[i].op == op;
    }
    return n;
}

#endif
