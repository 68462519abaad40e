/* A hit of the compile cache makes ResNet-50's compile phase at least ten times shorter, in
 * processor time: other programs on the machine do not count. */
#include "harness.h"

#include <stdlib.h>
#include <time.h>

#include "backends/backend.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "pjrt_plugin.h"

enum { BATCH = 8, FASTER = 10 };

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Compiles the training step; the processor time. */
static double compile(sx_platform *p, const sx_graph *g, bool expect_cached)
{
    sx_executable *e;
    sx_executable_info info;
    const double start = processor_seconds();
    assert_ok(sx_compile(p, g, &(sx_compile_options){.batch = BATCH}, &e));
    const double seconds = processor_seconds() - start;
    assert_ok(sx_executable_get_info(e, &info));
    assert_int_equal(info.from_cache, expect_cached);
    assert_true(info.temporary_bytes > 0 && info.flops > 0);
    sx_executable_release(e);
    return seconds;
}

static void test_backends_cache__a_hit_is_ten_times_faster(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    char dir[] = "/tmp/sextant-cache-XXXXXX", command[128];
    sx_program_request request = {.def = sx_zoo_find("resnet50"), .mode = SX_TRAIN};
    sx_platform *p;
    sx_graph *g;
    assert_non_null(mkdtemp(dir));
    assert_ok(sx_build_program(&request, &g));
    assert_ok(sx_platform_open(
        "pjrt", &(sx_platform_options){.pjrt.plugin_path = pjrt_plugin(), .pjrt.cache_dir = dir},
        &p));
    double cold = compile(p, g, false), hit = compile(p, g, true);
    printf("ResNet-50, batch %d: compiled in %.3f s, from the cache in %.3f s: %.1f times\n", BATCH,
           cold, hit, cold / hit);
    assert_true(hit * FASTER <= cold);
    sx_platform_close(p);
    sx_graph_destroy(g);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_cache__a_hit_is_ten_times_faster),
};
SX_TEST_MAIN(tests)
