/* The k greatest of long rows, which the cpu sorts by keys: as the host's kernel has them, equal
 * ones by their places. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/memory.h"
#include "graph/host.h"

enum { ROWS = 2, COUNT = 777 };

static void run(const char *backend, const sx_graph *g, const void *x, void *values,
                int32_t *places)
{
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *in, *out[2];
    assert_ok(sx_platform_open(backend, &(sx_platform_options){.cpu.threads = 1}, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 1}, &e));
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[0], &in));
    assert_ok(sx_device_buffer_write(in, x, false));
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &out[i]));
    }
    assert_ok(sx_execute(e, &in, out));
    assert_ok(sx_device_buffer_read(out[0], values));
    assert_ok(sx_device_buffer_read(out[1], places));
    sx_device_buffer_release(in);
    sx_device_buffer_release(out[0]);
    sx_device_buffer_release(out[1]);
    sx_executable_release(e);
    sx_platform_close(platform);
}

static void check(sx_dtype dtype, int64_t k)
{
    char x[ROWS * COUNT * 8], values[2][ROWS * COUNT * 8];
    static int32_t places[2][ROWS * COUNT];
    const size_t bytes = sx_dtype_bytes(dtype);
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_value y = sx_top_k(b, sx_input(b, "x", sx_type_of(dtype, ROWS, COUNT)), k);
    sx_output(b, "values", y);
    sx_output(b, "places", sx_output_of(y, 1));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    for (int i = 0; i < ROWS * COUNT; i++) { /* ties, zeros of both signs, infinities */
        const int v = (int)((unsigned)i * 2654435761U >> 20) % 300 - 150;
        const double number = sx_dtype_is_float(dtype) && v == -150  ? -INFINITY
                              : sx_dtype_is_float(dtype) && v == 149 ? INFINITY
                              : v == 0                               ? i % 2 != 0 ? -0.0 : 0.0
                                                                     : v * 0.7;
        sx_host_store_element(dtype, number, x + (size_t)i * bytes);
    }
    run("host", g, x, values[0], places[0]);
    run("cpu", g, x, values[1], places[1]);
    assert_memory_equal(places[0], places[1], (size_t)(ROWS * k) * sizeof(int32_t));
    assert_memory_equal(values[0], values[1], (size_t)(ROWS * k) * bytes);
    sx_graph_destroy(g);
}

static void test_backends_top_k__long_rows_are_in_order(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64, SX_F16, SX_BF16, SX_I8,  SX_U8,
                                      SX_I16, SX_U16, SX_I32, SX_U32,  SX_I64, SX_U64};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        check(dtypes[i], COUNT);
        check(dtypes[i], 100);
        check(dtypes[i], 3);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_top_k__long_rows_are_in_order),
};
SX_TEST_MAIN(tests)
