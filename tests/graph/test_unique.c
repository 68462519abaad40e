/* unique of elements whose hashes were chosen to be in one another's way: the same answer, by
 * sorting, and no more than n log n steps. */
#include "harness.h"

#include "base/arena.h"
#include "base/clock.h"
#include "graph/host.h"

enum { N = 200000 };

/* The number whose hash is h: what unique.c multiplies and mixes, undone. */
static int64_t number_of_hash(uint64_t h)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t inverse = factor;
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - factor * inverse;
    }
    return (int64_t)((h ^ h >> 32) * inverse);
}

static void test_graph_unique__elements_that_collide(void **state)
{
    (void)state;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    int64_t *x = sx_arena_array(&arena, N, int64_t);
    assert_non_null(x);
    for (int64_t i = 0; i < N; i++) {
        x[i] = number_of_hash((uint64_t)(i / 2) << 32);
    }
    const sx_op_def *op = sx_op_find("unique");
    assert_non_null(op);
    char attrs[64] = {0};
    assert_true(op->attrs_bytes <= sizeof(attrs));
    *(sx_dtype *)(void *)(attrs + op->attrs[0].offset) = SX_I64;
    const sx_tensor in = {sx_type_of(SX_I64, N), x};
    const sx_host_context context = {.arena = &arena};
    sx_type types[3];
    const int64_t begin = sx_thread_cpu_ns();
    assert_ok(sx_host_types(op, attrs, &in, 1, types, 3, &context));
    assert_int_equal(types[0].dims[0], N / 2);
    sx_tensor out[3];
    for (int i = 0; i < 3; i++) {
        out[i] = (sx_tensor){types[i], sx_arena_array(&arena, N, int64_t)};
    }
    void *scratch = sx_arena_alloc(&arena, 1 << 16, 1);
    assert_ok(sx_host_run_within(op, attrs, &in, 1, out, 3, scratch, &context));
    assert_true(sx_thread_cpu_ns() - begin < 2000000000); /* probing all of them takes 10 s */
    const int64_t *y = out[0].data, *index = out[1].data, *count = out[2].data;
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(index[i], i / 2);
        assert_int_equal(y[i / 2], x[i]);
        assert_int_equal(count[i / 2], 2);
    }
    sx_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_unique__elements_that_collide),
};
SX_TEST_MAIN(tests)
