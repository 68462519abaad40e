/* Predictions by a model of 10 kernels, dense layers of 4 x 4 and tanh in turn, for one example:
 * the executable alone, and through sextant/device.h, which makes a buffer for the result. A model
 * of 30 kernels beside it says what a kernel more takes. Limited by calling kernels; goals: 2 us
 * for the model, 80 ns for a kernel. Least times, since other programs only make them longer. */
#include "bench.h"

#include <sextant/device.h>
#include <sextant/graph.h>
#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/checked.h"

enum { SIDE = 4, MOST = 64 };

static sx_graph *build(int kernels)
{
    sx_builder *b;
    sx_graph *g;
    bench_check(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, SIDE));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w",
                                                    .type = sx_type_of(SX_F32, SIDE, SIDE),
                                                    .init = SX_INIT_GLOROT_UNIFORM});
    for (int i = 0; i < kernels / 2; i++) {
        x = sx_tanh(b, sx_matmul(b, x, w));
    }
    sx_output(b, "y", x);
    bench_check(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* ---- The executable ---- */

typedef struct runner {
    sx_run *run;
    sx_device_buffer *args[2], *outputs[1];
} runner;

static void execute(void *user)
{
    runner *r = user;
    bench_check(sx_run_execute(r->run, r->args, r->outputs));
}

static double measure_executable(int kernels, int *out_kernels)
{
    sx_platform *platform;
    sx_executable *e;
    sx_executable_info info;
    runner r;
    sx_graph *g = build(kernels);
    double ns[BENCH_SAMPLES];
    const float zeros[SIDE * SIDE] = {0};
    bench_check(sx_platform_open("cpu", &(sx_platform_options){.cpu = {.threads = 1}}, &platform));
    bench_check(sx_compile(platform, g, &(sx_compile_options){.batch = 1}, &e));
    bench_check(sx_executable_get_info(e, &info));
    *out_kernels = info.kernels;
    for (int i = 0; i < 2; i++) {
        bench_check(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &r.args[i]));
        bench_check(sx_device_buffer_write(r.args[i], zeros, false));
    }
    bench_check(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &r.outputs[0]));
    bench_check(sx_run_create(e, &r.run));
    bench_measure(execute, &r, ns);
    sx_run_destroy(r.run);
    for (int i = 0; i < 2; i++) {
        sx_device_buffer_release(r.args[i]);
    }
    sx_device_buffer_release(r.outputs[0]);
    sx_executable_release(e);
    sx_platform_close(platform);
    sx_graph_destroy(g);
    return ns[0];
}

/* ---- sextant/device.h ---- */

typedef struct program {
    sx_compiled_graph *compiled;
    sx_buffer *args[2];
} program;

static void predict(void *user)
{
    program *p = user;
    sx_buffer *y;
    bench_check(sx_compiled_graph_run(p->compiled, p->args, 2, &y, 1, 0));
    sx_buffer_free(y);
}

static double measure_program(int kernels)
{
    sx_devices *devices;
    program p;
    sx_graph *g = build(kernels);
    double ns[BENCH_SAMPLES];
    float zeros[SIDE * SIDE] = {0};
    bench_check(sx_devices_open(&devices, .device = "cpu", .threads = 1));
    bench_check(sx_compile_graph(devices, g, 1, &p.compiled));
    for (int i = 0; i < 2; i++) {
        const sx_tensor value = {.type = sx_compiled_graph_arg(p.compiled, i)->type, .data = zeros};
        bench_check(sx_buffer_create(devices, 0, &value, &p.args[i]));
    }
    bench_measure(predict, &p, ns);
    for (int i = 0; i < 2; i++) {
        sx_buffer_free(p.args[i]);
    }
    sx_compiled_graph_free(p.compiled);
    sx_devices_close(devices);
    sx_graph_destroy(g);
    return ns[0];
}

int main(void)
{
    int few, many;
    const double least = measure_executable(10, &few), more = measure_executable(30, &many);
    printf("small: a model of %d kernels, executable: %.2f us\n", few, least * 1e-3);
    printf("small: a kernel more: %.0f ns\n", (more - least) / (many - few));
    printf("small: a model of %d kernels, sextant/device.h: %.2f us\n", few,
           measure_program(10) * 1e-3);
    return 0;
}
