/* Every allocation from the platform's opening to its closing fails once, on every backend: a clean
 * status, nothing leaked, and what follows a failure still works. (One thread each: threads
 * allocate in no fixed order.) */
#include "torture.h"

#include <sextant/nn.h>
#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt_plugin.h"
#include "graph/ir.h"
#include "graph/op_samples.h"
#include "nn/model_program.h"

static sx_spec small(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_conv2d(b, in->features, 4, 3, .activation = SX_RELU);
    x = sx_batch_norm(b, sx_max_pool2d(b, x, 2));
    x = sx_dropout(b, sx_dense(b, sx_flatten(b, x), 3), 0.5);
    return sx_classifier_spec(b, x, in->labels, .optimizer = sx_sgd(.momentum = .9));
}

/* A training step: convolution, pool, batch norm, dropout, loss, their gradients and updates. */
static sx_graph *training_step(void)
{
    static const sx_model_def def = {.name = "small", .build = small, .image = {6, 6, 1}};
    sx_program_request r = {.def = &def, .mode = SX_TRAIN, .batch = 2};
    sx_graph *g = NULL;
    assert_ok(sx_build_program(&r, &g));
    return g;
}

typedef struct victim {
    const char *backend;
    sx_graph *graph;
} victim;

enum { MOST = 64 };

static sx_status make_buffers(sx_platform *p, const sx_type *types, int n, sx_device_buffer **out)
{
    static const char zeros[4096];
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_device_buffer_create(p->devices[0], &types[i], &out[i]));
        assert_true(sx_type_bytes(&types[i]) <= (int64_t)sizeof(zeros));
        SX_TRY(sx_device_buffer_write(out[i], zeros, false));
    }
    return SX_OK;
}

static sx_status open_compile_run(void *user)
{
    const victim *v = user;
    const sx_platform_options options = {.cpu.threads = 1,
                                         .pjrt.plugin_path =
                                             strcmp(v->backend, "pjrt") == 0 ? ref_plugin() : NULL};
    sx_device_buffer *args[MOST] = {NULL}, *outputs[MOST] = {NULL};
    sx_platform *platform = NULL;
    sx_executable *executable = NULL;
    sx_run *run = NULL;
    float loss;
    sx_status status = sx_platform_open(v->backend, &options, &platform);
    if (status == SX_OK) {
        status = sx_compile(platform, v->graph, &(sx_compile_options){.batch = 2}, &executable);
    }
    if (status == SX_OK) {
        assert_in_range(executable->n_args, 1, MOST);
        assert_in_range(executable->n_results, 1, MOST);
        status = make_buffers(platform, executable->arg_types, executable->n_args, args);
    }
    if (status == SX_OK) {
        status = make_buffers(platform, executable->result_types, executable->n_results, outputs);
    }
    if (status == SX_OK) {
        status = sx_run_create(executable, &run);
    }
    for (int k = 0; k < 2 && status == SX_OK; k++) {
        status = sx_run_execute(run, args, outputs);
    }
    if (status == SX_OK) {
        int at = sx_graph_find_output(v->graph, SX_LOSS);
        status = sx_device_buffer_read(outputs[at], &loss);
    }
    sx_run_destroy(run);
    for (int i = 0; i < MOST; i++) {
        sx_device_buffer_release(args[i]);
        sx_device_buffer_release(outputs[i]);
    }
    sx_executable_release(executable);
    sx_platform_close(platform);
    return status;
}

static void torture(const char *backend)
{
    victim v = {backend, training_step()};
    assert_in_range(sx_torture_some(open_compile_run, &v), 20, 5000);
    sx_graph_destroy(v.graph);
}

static void test_backends_torture__host(void **state)
{
    (void)state;
    torture("host");
}

static void test_backends_torture__cpu(void **state)
{
    (void)state;
    torture("cpu");
}

static void test_backends_torture__pjrt(void **state)
{
    (void)state;
    torture("pjrt");
}

/* ---- Each operator's kernel ---- */

typedef struct kernel {
    sx_platform *platform;
    sx_graph *graph;
    int64_t batch;
} kernel;

static sx_status compile(void *user)
{
    const kernel *k = user;
    sx_executable *executable = NULL;
    SX_TRY(
        sx_compile(k->platform, k->graph, &(sx_compile_options){.batch = k->batch}, &executable));
    sx_run *run = NULL;
    sx_status status = sx_run_create(executable, &run);
    sx_run_destroy(run);
    sx_executable_release(executable);
    return status;
}

/* Small graphs, so that nearly each allocation fails. */
static void test_backends_torture__every_kernel(void **state)
{
    (void)state;
    kernel k;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &k.platform));
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int i = 0; i < op->n_samples; i++) {
            const sx_op_sample *sample = &op->samples[i];
            if ((op->flags & (SX_OP_HOST | SX_OP_FUNCTION)) != 0) {
                continue;
            }
            print_message("%s/%s\n", op->name, sample->name);
            k.batch = op_sample_batch(sample);
            op_sample_graph(op, sample, OP_SAMPLE_FORWARD, &k.graph);
            assert_true(sx_torture_some(compile, &k) > 10);
            sx_graph_destroy(k.graph);
        }
    }
    sx_platform_close(k.platform);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_torture__every_kernel),
    cmocka_unit_test(test_backends_torture__host),
    cmocka_unit_test(test_backends_torture__cpu),
    cmocka_unit_test(test_backends_torture__pjrt),
};
SX_TEST_MAIN(tests)
