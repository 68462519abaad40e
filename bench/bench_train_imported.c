/* Training steps of a network that was imported from a SavedModel, for bench_train_imported.py:
 *
 *   bench_train_imported DIR             answers each line of input, "N", with the seconds that N
 *                                        steps took, by the clock and of processors, and the loss
 *   bench_train_imported DIR --profile   where the time of 20 steps goes
 *
 * The signature "loss" takes x, y and the weights w000, w001, ..., all of static types, and gives
 * the loss. The weights become variables, drawn by Glorot's rule; a step computes their gradients
 * and updates them with Adam. */
#include "bench.h"

#include <string.h>

#include <sextant/function_train.h>

#include "backends/profile.h"
#include "base/arena.h"
#include "base/memory.h"
#include "graph/library.h"
#include "runtime/function_run.h"
#include "savedmodel/import_library.h"

enum { MAX_ARGS = 64, PROFILE_STEPS = 20, ROWS = 60 };

typedef struct training {
    sx_library *library;
    sx_platform *platform;
    sx_runner *runner;
    sx_tensor in[2];
} training;

/* function "model": (x, y) -> loss, with the weights as variables. */
static void add_model(sx_library *library, const sx_graph *loss)
{
    sx_builder *b;
    sx_value args[MAX_ARGS];
    const sx_type scalar = sx_scalar_type(SX_F32);
    if (loss->n_args > MAX_ARGS) {
        bench_check(sx_error(SX_INVALID_ARGUMENT, "%d arguments", loss->n_args));
    }
    bench_check(sx_builder_create_function(&b));
    for (int i = 0; i < loss->n_args; i++) {
        const char *name = loss->args[i].name;
        const sx_type *type = sx_graph_type(loss, loss->args[i].value);
        if (name[0] == 'w') {
            const sx_variable_spec spec = {.name = name,
                                           .type = *type,
                                           .role = SX_ROLE_WEIGHT,
                                           .init = type->rank > 1 ? SX_INIT_GLOROT_UNIFORM
                                                                  : SX_INIT_ONES};
            args[i] = sx_variable(b, &spec);
        } else {
            args[i] = sx_input(b, name, *type);
        }
    }
    sx_output(
        b, "loss",
        sx_function_node(b, "call", "function=\"loss\"", args, loss->n_args, NULL, 0, &scalar, 1));
    bench_check(sx_library_add(library, "model", b));
    sx_builder_destroy(b);
}

static void *draw(const sx_type *type)
{
    const int64_t n = sx_type_elems(type);
    char *data = sx_alloc((size_t)n + 1, sx_dtype_bytes(type->dtype));
    uint32_t state = 1;
    for (int64_t k = 0; k < n && data != NULL; k++) {
        state = state * 1664525 + 1013904223;
        if (type->dtype == SX_F32) {
            ((float *)(void *)data)[k] = (float)(state >> 8) / (1 << 24);
        } else {
            ((int32_t *)(void *)data)[k] = (int32_t)((state >> 8) % 10);
        }
    }
    return data;
}

static void begin(training *t, const char *dir, sx_profile *profile)
{
    sx_saved_model *model;
    sx_status refused[16] = {SX_OK};
    const char *threads = getenv("THREADS");
    bench_check(sx_saved_model_open(dir, &model));
    bench_check(sx_import_library(model, NULL, &t->library, refused));
    for (int i = 0; i < 16; i++) { /* the initializer is refused, which "loss" does not need */
        sx_status_free(refused[i]);
    }
    sx_saved_model_close(model);
    t->library->finished = false;
    const sx_function *loss = sx_library_find(t->library, "loss");
    if (loss == NULL) {
        bench_check(sx_error(SX_NOT_FOUND, "no function \"loss\""));
    }
    add_model(t->library, loss->body);
    bench_check(sx_library_add_training(t->library, "train", "model", .optimizer = sx_adam()));
    bench_check(sx_library_finish(t->library));
    const sx_graph *train = sx_library_find(t->library, "train")->body;
    for (int i = 0, n = 0; i < train->n_args && n < 2; i++) {
        if (train->args[i].kind == SX_ARG_INPUT) {
            const sx_type *type = sx_graph_type(train, train->args[i].value);
            t->in[n++] = (sx_tensor){*type, draw(type)};
        }
    }
    bench_check(
        sx_platform_open("cpu",
                         &(sx_platform_options){.cpu.threads = threads != NULL ? atoi(threads) : 0,
                                                .cpu.profile = profile},
                         &t->platform));
    bench_check(sx_runner_create(
        &(sx_runner_options){.library = t->library, .platform = t->platform, .seed = 1},
        &t->runner));
}

static float steps(training *t, long n)
{
    float loss = 0;
    for (long i = 0; i < n; i++) {
        sx_tensor out[2];
        sx_arena arena;
        sx_arena_init(&arena, 0);
        bench_check(sx_runner_run(t->runner, "train", t->in, 2, out, 2, &arena, NULL));
        loss = *(const float *)out[0].data;
        sx_arena_deinit(&arena);
    }
    return loss;
}

static void end(training *t)
{
    sx_runner_destroy(t->runner);
    sx_platform_close(t->platform);
    sx_library_destroy(t->library);
    sx_free(t->in[0].data);
    sx_free(t->in[1].data);
}

static void print_profile(const char *dir)
{
    training t = {.library = NULL};
    sx_profile *profile;
    int n;
    double all = 0;
    bench_check(sx_profile_create(&profile));
    begin(&t, dir, profile);
    (void)steps(&t, PROFILE_STEPS);
    end(&t);
    const sx_kernel_time *rows = sx_profile_rows(profile, &n);
    for (int i = 0; i < n; i++) {
        all += (double)rows[i].total_ns;
    }
    printf("%9.3f ms a step, %d kernels\n", all * 1e-6 / PROFILE_STEPS, n);
    for (int i = 0; i < n && i < ROWS; i++) {
        printf("%9.1f us %5.1f %%  %-36.36s %s\n", (double)rows[i].total_ns * 1e-3 / PROFILE_STEPS,
               100 * (double)rows[i].total_ns / all, rows[i].kernel, rows[i].node);
    }
    sx_profile_destroy(profile);
}

int main(int argc, char **argv)
{
    training t = {.library = NULL};
    long n;
    if (argc < 2) {
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "--profile") == 0) {
        print_profile(argv[1]);
        return 0;
    }
    begin(&t, argv[1], NULL);
    printf("ready\n");
    fflush(stdout);
    while (scanf("%ld", &n) == 1) {
        const int64_t start = sx_now_ns();
        const double cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
        const float loss = steps(&t, n);
        printf("%.9f %.9f %.6g\n", (double)(sx_now_ns() - start) * 1e-9,
               bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, (double)loss);
        fflush(stdout);
    }
    end(&t);
    return 0;
}
