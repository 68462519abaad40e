/* One loaded model (mnist_cnn, batch 1 and 32, `threads = 1` a run), from one thread and from as
 * many as there are processors: examples per second, and how they compare. Through the predictor,
 * which runs it in pieces, and through a runner, which runs functions whole. Bound by the two
 * convolutions; goal: 1.9 times the throughput of one thread on two processors.
 *
 * On a machine that others use, too, the clock says little: a second line divides by the processor
 * time of the threads (what they would reach if they had the processors to themselves), and the
 * third counts how often a thread went to sleep on its own accord, which a lock would show. Samples
 * of both alternate. */
#include "bench.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/pool.h"
#include "io/path.h"
#include "nn/model_program.h"
#include "nn/params.h"
#include "nn/zoo/zoo.h"
#include "runtime/function_run.h"
#include "savedmodel/export.h"
#include "savedmodel/import_library.h"
#include "savedmodel/predictor.h"

enum { MAX_THREADS = 16, ROUNDS = 15, SAMPLE_MS = 200 };

typedef struct job {
    sx_predictor *predictor;
    sx_runner *runner; /* NULL: the predictor */
    const sx_signature *signature;
    int64_t batch;
    pthread_t thread;
    double examples, cpu_seconds;
    long sleeps;
} job;

static sx_status give_zeros(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    memset(out, 0, (size_t)sx_type_bytes(type));
    return SX_OK;
}

/* The model's functions, with initial weights. */
static sx_runner *start_runner(const char *dir, sx_library **out_library, sx_platform **out)
{
    sx_saved_model *model;
    sx_runner *runner;
    sx_status refused[8];
    bench_check(sx_saved_model_open(dir, &model));
    bench_check(sx_import_library(model, NULL, out_library, refused));
    sx_saved_model_close(model);
    bench_check(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, out));
    bench_check(sx_runner_create(
        &(sx_runner_options){.library = *out_library, .platform = *out, .seed = 1}, &runner));
    return runner;
}

/* The model in a directory of its own, and loaded from there. */
static sx_predictor *load(sx_runner **out_runner, sx_library **out_library, sx_platform **out)
{
    char base[] = "/tmp/sextant-bench-XXXXXX", *dir = NULL;
    sx_program_request r = {.def = sx_zoo_find("mnist_cnn"), .mode = SX_PREDICT};
    sx_params *params;
    sx_graph *graph;
    sx_predictor *p;
    bench_check(sx_params_create(&params));
    r.params = params;
    bench_check(sx_build_program(&r, &graph));
    bench_make_dir(base);
    bench_check(sx_export_saved_model(
        &(sx_export_request){.graph = graph, .read_variable = give_zeros, .base = base}, &dir));
    bench_check(sx_predictor_load(dir, &(sx_predictor_options){.threads = 1}, &p));
    *out_runner = start_runner(dir, out_library, out);
    bench_check(sx_dir_remove(base));
    sx_free(dir);
    sx_graph_destroy(graph);
    sx_params_destroy(params);
    return p;
}

static void *work(void *user)
{
    job *j = user;
    sx_type type = sx_type_with_batch(j->signature->inputs[0].type, j->batch);
    void *x = sx_alloc((size_t)sx_type_bytes(&type) + 1, 1);
    sx_tensor outputs[8];
    struct rusage before, after;
    const double cpu_began = bench_cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    getrusage(RUSAGE_THREAD, &before);
    const int64_t until = sx_now_ns() + (int64_t)SAMPLE_MS * 1000000;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (j->examples = 0; sx_now_ns() < until; j->examples += (double)j->batch) {
        const sx_tensor input = {type, x};
        bench_check(
            j->runner == NULL
                ? sx_predictor_run(j->predictor, j->signature, &input, NULL, &arena, outputs)
                : sx_runner_run(j->runner, j->signature->key, &input, 1, outputs,
                                (int)j->signature->n_outputs, &arena, NULL));
        sx_arena_reset(&arena);
    }
    sx_arena_deinit(&arena);
    j->cpu_seconds = bench_cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
    getrusage(RUSAGE_THREAD, &after);
    j->sleeps = after.ru_nvcsw - before.ru_nvcsw;
    sx_free(x);
    return NULL;
}

/* Examples per second by the clock, and by the threads' processor time. */
static void sample(const job *like, int threads, double *by_clock, double *by_cpu, long *sleeps)
{
    job jobs[MAX_THREADS];
    const int64_t start = sx_now_ns();
    for (int i = 0; i < threads; i++) {
        jobs[i] = *like;
        if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) != 0) {
            bench_check(sx_error(SX_UNKNOWN, "cannot start a thread"));
        }
    }
    double examples = 0;
    *by_cpu = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(jobs[i].thread, NULL);
        examples += jobs[i].examples;
        *by_cpu += jobs[i].examples / jobs[i].cpu_seconds;
        *sleeps += jobs[i].sleeps;
    }
    *by_clock = examples / (double)(sx_now_ns() - start) * 1e9;
}

static void compare(job *j, int64_t batch)
{
    const char *how = j->runner == NULL ? "predict" : "run whole";
    const int many = sx_cpu_count() < MAX_THREADS ? sx_cpu_count() : MAX_THREADS;
    double one[ROUNDS], clock[ROUNDS], cpu[ROUNDS];
    long sleeps = 0, ignored = 0;
    char name[80];
    j->batch = batch;
    for (int i = -1; i < ROUNDS; i++) { /* the first warms up */
        double clock_1, cpu_1, clock_n, cpu_n;
        sample(j, 1, &clock_1, &cpu_1, &ignored);
        sample(j, many, &clock_n, &cpu_n, i < 0 ? &ignored : &sleeps);
        one[i < 0 ? 0 : i] = clock_1;
        clock[i < 0 ? 0 : i] = clock_n / clock_1;
        cpu[i < 0 ? 0 : i] = cpu_n / cpu_1;
    }
    qsort(one, ROUNDS, sizeof(double), bench_compare);
    qsort(clock, ROUNDS, sizeof(double), bench_compare);
    qsort(cpu, ROUNDS, sizeof(double), bench_compare);
    snprintf(name, sizeof(name), "%s, batch %d: 1 thread", how, (int)batch);
    bench_print(name, "examples/s", one[ROUNDS / 2], one[1], one[ROUNDS - 2]);
    snprintf(name, sizeof(name), "%s, batch %d: %d threads / 1", how, (int)batch, many);
    bench_print(name, "x by the clock", clock[ROUNDS / 2], clock[1], clock[ROUNDS - 2]);
    bench_print(name, "x by processor time", cpu[ROUNDS / 2], cpu[1], cpu[ROUNDS - 2]);
    printf("%-44s %7.2f per second and thread\n", "threads went to sleep",
           (double)sleeps / (ROUNDS * many * SAMPLE_MS * 1e-3));
}

int main(void)
{
    sx_runner *runner;
    sx_library *library;
    sx_platform *platform;
    job j = {.predictor = load(&runner, &library, &platform)};
    bench_check(sx_saved_model_find_signature(sx_predictor_model(j.predictor), "serving_default",
                                              &j.signature));
    compare(&j, 1);
    compare(&j, 32);
    j.runner = runner;
    compare(&j, 1);
    compare(&j, 32);
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_library_destroy(library);
    sx_predictor_unload(j.predictor);
    return 0;
}
