/* Inference of a SavedModel on the CPU:
 *
 *   bench_infer DIR BATCH              the time of one run
 *   bench_infer DIR BATCH --profile    and where it goes, kernel by kernel
 *   bench_infer DIR BATCH --serve      for bench_infer.py: reads numbers of runs, answers with
 *                                      seconds by the clock and of processors
 *
 * Inputs are drawn from a fixed seed, floats in [0, 1). With PRECISION=int8, products multiply
 * integers, calibrated with such inputs; with PRECISION=bfloat16, bfloat16 where that is fast.
 * Without arguments it does nothing: it needs a model. */
#include "bench.h"

#include <string.h>

#include "backends/profile.h"
#include "base/arena.h"
#include "base/memory.h"
#include "savedmodel/predictor.h"

enum { MAX_INPUTS = 16, CALIBRATION = 8, PROFILE_RUNS = 20, ROWS = 2000 };

typedef struct model {
    sx_predictor *predictor;
    const sx_signature *signature;
    sx_tensor inputs[MAX_INPUTS];
} model;

static void run(void *user)
{
    model *m = user;
    sx_tensor outputs[64];
    sx_arena arena;
    sx_arena_init(&arena, 0);
    bench_check(sx_predictor_run(m->predictor, m->signature, m->inputs, NULL, &arena, outputs));
    sx_arena_deinit(&arena);
}

/* Rows of the inputs of a signature; freed by free_inputs(). */
static void draw_inputs(const sx_signature *signature, int64_t batch, sx_tensor *inputs)
{
    uint32_t state = 1;
    for (size_t i = 0; i < signature->n_inputs && i < MAX_INPUTS; i++) {
        sx_type type = signature->inputs[i].type;
        for (int d = 0; d < type.rank; d++) {
            type.dims[d] = type.dims[d] < 0 ? batch : type.dims[d];
        }
        const int64_t n = sx_type_elems(&type);
        char *data = sx_alloc((size_t)n + 1, sx_dtype_bytes(type.dtype));
        for (int64_t k = 0; k < n && data != NULL; k++) {
            state = state * 1664525 + 1013904223;
            if (type.dtype == SX_F32) {
                ((float *)(void *)data)[k] = (float)(state >> 8) / (1 << 24);
            }
        }
        inputs[i] = (sx_tensor){type, data};
    }
}

static void free_inputs(const sx_signature *signature, sx_tensor *inputs)
{
    for (size_t i = 0; i < signature->n_inputs && i < MAX_INPUTS; i++) {
        sx_free(inputs[i].data);
    }
}

static void load_int8(model *m, const char *dir, const sx_predictor_options *options)
{
    sx_saved_model *file;
    sx_tensor inputs[MAX_INPUTS];
    sx_predictor_options with = *options;
    bench_check(sx_saved_model_open(dir, &file));
    bench_check(sx_saved_model_find_signature(file, "serving_default", &m->signature));
    draw_inputs(m->signature, CALIBRATION, inputs);
    with.int8 = &(sx_int8_calibration){.inputs = inputs};
    bench_check(sx_predictor_load(dir, &with, &m->predictor));
    free_inputs(m->signature, inputs);
    sx_saved_model_close(file);
}

static void load(model *m, const char *dir, int64_t batch, sx_profile *profile)
{
    const char *threads = getenv("THREADS"); /* of the device; default: all */
    const char *precision = getenv("PRECISION") != NULL ? getenv("PRECISION") : "float32";
    const sx_predictor_options options = {.on.device = "cpu",
                                          .threads = threads != NULL ? atoi(threads) : 0,
                                          .compile_at_load = true,
                                          .bfloat16 = strcmp(precision, "bfloat16") == 0,
                                          .profile = profile};
    if (strcmp(precision, "int8") == 0) {
        load_int8(m, dir, &options);
    } else {
        bench_check(sx_predictor_load(dir, &options, &m->predictor));
    }
    bench_check(sx_saved_model_find_signature(sx_predictor_model(m->predictor), "serving_default",
                                              &m->signature));
    draw_inputs(m->signature, batch, m->inputs);
    run(m); /* compiles */
}

static void unload(model *m)
{
    free_inputs(m->signature, m->inputs);
    sx_predictor_unload(m->predictor);
}

static void print_profile(const char *dir, int64_t batch)
{
    model m;
    sx_profile *profile;
    int n;
    bench_check(sx_profile_create(&profile));
    load(&m, dir, batch, profile);
    for (int i = 0; i < PROFILE_RUNS; i++) {
        run(&m);
    }
    unload(&m);
    const sx_kernel_time *rows = sx_profile_rows(profile, &n);
    double all = 0, least = 0;
    for (int i = 0; i < n; i++) {
        if (rows[i].calls < PROFILE_RUNS) { /* of the calibration */
            continue;
        }
        all += (double)rows[i].total_ns;
        least += (double)rows[i].least_ns;
    }
    printf("%9.3f ms  all kernels, %d steps; %.3f ms with the least of each\n",
           all * 1e-6 / (PROFILE_RUNS + 1), n, least * 1e-6);
    for (int i = 0; i < n && i < ROWS; i++) {
        const sx_kernel_time *k = &rows[i];
        if (k->calls < PROFILE_RUNS) {
            continue;
        }
        const double ns =
            k->least_ns > 0 ? (double)k->least_ns : (double)k->total_ns / (double)k->calls;
        printf("%9.3f ms %5.1f %% %6.1f GFLOP/s %6.1f GB/s  %-36.36s %s\n", ns * 1e-6,
               100 * (double)k->total_ns / all, k->flops / ns, k->bytes / ns, k->kernel, k->node);
    }
    sx_profile_destroy(profile);
}

int main(int argc, char **argv)
{
    model m;
    if (argc < 3) {
        return 0;
    }
    const int64_t batch = atol(argv[2]);
    if (argc > 3 && strcmp(argv[3], "--profile") == 0) {
        print_profile(argv[1], batch);
        return 0;
    }
    load(&m, argv[1], batch, NULL);
    if (argc > 3 && strcmp(argv[3], "--serve") == 0) {
        long runs;
        printf("ready\n");
        fflush(stdout);
        while (scanf("%ld", &runs) == 1) {
            const int64_t start = sx_now_ns();
            const double cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
            for (long i = 0; i < runs; i++) {
                run(&m);
            }
            printf("%.9f %.9f\n", (double)(sx_now_ns() - start) * 1e-9,
                   bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
            fflush(stdout);
        }
    } else {
        bench_time("infer: a run", run, &m);
    }
    unload(&m);
    return 0;
}
