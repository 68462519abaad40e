/* Training steps on synthetic data: mnist_cnn at batch 32 and 128, a near-empty model (dense 4 ->
 * 1, batch 32), and with arguments any model of the zoo.
 *
 *   bench_train                          all of them, median time of a step
 *   bench_train MODEL BATCH              the same for one; MODEL:bfloat16 under that policy;
 *                                        saved:DIR is an imported one (imported_build)
 *   bench_train MODEL BATCH --profile    and where its time goes
 *   bench_train MODEL BATCH --serve      answers each line of input, "N", with the seconds that N
 *                                        steps took, by the clock and of processors:
 *                                        bench_train.py alternates it with its peers
 *   bench_train MODEL BATCH --serve PLUGIN DIR
 *                                        the same through a PJRT plugin, in launches of 20 steps;
 *                                        the program's text goes into DIR: bench_pjrt.py runs it
 *                                        from JAX
 *
 * mnist_cnn is bound by the two convolutions (30 MFLOP an image forward and back, at 200 GFLOP/s a
 * core); the near-empty model by one call of each of its kernels. */
#include "bench.h"

#include <string.h>

#include "base/memory.h"
#include "base/threefry.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"
#include "savedmodel/import_library.h"

typedef struct trainee {
    sx_session *session;
    sx_graph *graph;
    sx_program *program;
    int64_t batch, steps;
    void *inputs[8];
} trainee;

/* ---- Models ---- */

static sx_spec empty_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value y = sx_dense(b, in->features, 1);
    sx_spec spec = {.loss = sx_reshape(b, sx_square(b, y), SX_BATCH)};
    spec.optimizer = sx_sgd(.learning_rate = 1e-2);
    return spec;
}

static const sx_model_def empty_model = {
    .struct_size = sizeof(sx_model_def),
    .version = SX_MODEL_VERSION,
    .name = "empty",
    .about = "dense 4 -> 1",
    .build = empty_build,
    .features = 4,
    .num_classes = 2,
};

/* The signature "loss" of a SavedModel takes features x, labels y and the weights w000, w001, ...,
 * and gives each example's loss. The weights become variables, drawn by Glorot's rule. */
static sx_library *imported;

enum { MAX_IMPORTED_ARGS = 512 };

static const sx_graph *imported_loss(void)
{
    const sx_function *loss = sx_library_find(imported, "loss");
    if (loss == NULL || loss->body->n_args > MAX_IMPORTED_ARGS) {
        bench_check(sx_error(SX_NOT_FOUND, "no signature \"loss\" of at most %d arguments",
                             MAX_IMPORTED_ARGS));
    }
    return loss->body;
}

static sx_spec imported_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    const sx_graph *loss = imported_loss();
    sx_value args[MAX_IMPORTED_ARGS];
    for (int i = 0; i < loss->n_args; i++) {
        const char *name = loss->args[i].name;
        const sx_type *type = sx_graph_type(loss, loss->args[i].value);
        const sx_variable_spec spec = {.name = name,
                                       .type = *type,
                                       .role = SX_ROLE_WEIGHT,
                                       .init =
                                           type->rank > 1 ? SX_INIT_GLOROT_UNIFORM : SX_INIT_ONES};
        args[i] = name[0] == 'x'   ? sx_feature(b, in, "x")
                  : name[0] == 'y' ? sx_label(b, in, "y")
                                   : sx_variable(b, &spec);
    }
    sx_spec spec = {.optimizer = sx_adam()};
    sx_call_function(b, imported, "loss", args, loss->n_args, &spec.loss, 1);
    return spec;
}

static sx_model_def imported_model(const char *dir)
{
    sx_saved_model *model;
    sx_status refused[16] = {SX_OK};
    bench_check(sx_saved_model_open(dir, &model));
    bench_check(sx_import_library(model, NULL, &imported, refused));
    for (int i = 0; i < 16; i++) { /* the initializer is refused, which "loss" does not need */
        sx_status_free(refused[i]);
    }
    sx_saved_model_close(model);
    sx_model_def def = {.struct_size = sizeof(def),
                        .version = SX_MODEL_VERSION,
                        .name = "imported",
                        .about = "of a SavedModel",
                        .build = imported_build,
                        .num_classes = 10,
                        .inputs = {{.name = "x"}},
                        .labels = {{.name = "y"}}};
    const sx_graph *loss = imported_loss();
    for (int i = 0; i < loss->n_args; i++) {
        const sx_type *type = sx_graph_type(loss, loss->args[i].value);
        for (int d = 1; loss->args[i].name[0] == 'x' && d < type->rank; d++) {
            def.inputs[0].dims[d - 1] = type->dims[d];
        }
    }
    return def;
}

static sx_graph *build(const char *model)
{
    sx_params *params;
    sx_graph *graph;
    sx_program_request r = {0};
    sx_model_def saved;
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(model, ":"), model);
    r.precision = strcmp(model + strlen(name), ":bfloat16") == 0 ? SX_BF16 : SX_F32;
    if (strcmp(name, "saved") == 0) {
        saved = imported_model(model + strlen("saved:"));
        r.def = &saved;
    } else {
        r.def = strcmp(name, "empty") == 0 ? &empty_model : sx_zoo_find(name);
    }
    if (r.def == NULL) {
        bench_check(sx_error(SX_NOT_FOUND, "no model %s", model));
    }
    bench_check(sx_params_create(&params));
    r.params = params;
    bench_check(sx_build_program(&r, &graph));
    sx_params_destroy(params);
    sx_library_destroy(imported);
    imported = NULL;
    return graph;
}

/* ---- Steps ---- */

static void fill(const sx_type *type, uint32_t key, void *data)
{
    int64_t n = sx_type_elems(type);
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = sx_threefry2x32((sx_u32x2){key, 0}, (sx_u32x2){(uint32_t)i, 0}).a;
        if (type->dtype == SX_F32) {
            ((float *)data)[i] = sx_uniform_f32(word);
        } else {
            ((int32_t *)data)[i] = (int32_t)(word % 10);
        }
    }
}

static sx_status feed(void *user, sx_step_input *out)
{
    const trainee *t = user;
    out->batch = t->batch;
    for (int i = 0; i < sx_program_input_count(t->program); i++) {
        out->inputs[i] = t->inputs[i];
    }
    return SX_OK;
}

static void run_steps(void *user)
{
    trainee *t = user;
    int64_t done;
    sx_loop_args args = {.steps = t->steps, .feed = feed, .user = t, .ok_output = -1};
    bench_check(sx_program_loop(t->program, &args, &done));
}

static void trainee_begin_on(trainee *t, const char *model, int64_t batch, int64_t steps,
                             const sx_session_options *options)
{
    *t = (trainee){.graph = build(model), .batch = batch, .steps = steps};
    bench_check(sx_session_create(options, &t->session));
    bench_check(sx_session_add_program(t->session, t->graph, &t->program));
    for (int i = 0; i < sx_program_input_count(t->program); i++) {
        sx_type type = sx_type_with_batch(*sx_program_input_type(t->program, i), batch);
        t->inputs[i] = sx_alloc_aligned((size_t)sx_type_bytes(&type) + 64, 64);
        if (t->inputs[i] == NULL) {
            fprintf(stderr, "bench_train: out of memory\n");
            exit(1);
        }
        fill(&type, (uint32_t)i, t->inputs[i]);
    }
    int ok = sx_program_find_output(t->program, SX_OK_OUTPUT);
    bench_check(sx_program_prepare_loop(t->program, batch, ok, NULL));
}

static void trainee_begin(trainee *t, const char *model, int64_t batch, int64_t steps, bool profile)
{
    const sx_session_options options = {.device = "cpu", .seed = 1, .profile = profile};
    trainee_begin_on(t, model, batch, steps, &options);
}

static void trainee_end(trainee *t)
{
    for (int i = 0; i < sx_program_input_count(t->program); i++) {
        sx_free_aligned(t->inputs[i]);
    }
    sx_session_destroy(t->session);
    sx_graph_destroy(t->graph);
}

/* ---- Arguments ---- */

enum { LOOP = 20, PROFILE_STEPS = 200, PROFILE_ROWS = 45 };
#define PROFILE_NS (20LL * 1000 * 1000 * 1000)

static void measure(const char *model, int64_t batch)
{
    trainee t;
    double ns[BENCH_SAMPLES];
    char name[80];
    trainee_begin(&t, model, batch, LOOP, false);
    bench_measure(run_steps, &t, ns);
    double step = 1e-9 / LOOP;
    snprintf(name, sizeof(name), "train: %s, batch %d, a step", model, (int)batch);
    bench_print(name, "s", ns[BENCH_SAMPLES / 2] * step, ns[BENCH_SAMPLES / 10] * step,
                ns[BENCH_SAMPLES * 9 / 10] * step);
    snprintf(name, sizeof(name), "train: %s, batch %d", model, (int)batch);
    double examples = (double)batch / step;
    bench_print(name, "examples/s", examples / ns[BENCH_SAMPLES / 2],
                examples / ns[BENCH_SAMPLES * 9 / 10], examples / ns[BENCH_SAMPLES / 10]);
    trainee_end(&t);
}

typedef struct kernel_row {
    const sx_kernel_time *kernel;
    int64_t total_ns, best_ns; /* best: of one step, all shards together */
} kernel_row;

static int by_time(const void *a, const void *b)
{
    const kernel_row *x = a, *y = b;
    return (y->best_ns > x->best_ns) - (y->best_ns < x->best_ns);
}

/* The least of many steps, so that a busy machine hardly matters. */
static void profile(const char *model, int64_t batch)
{
    trainee t;
    const sx_kernel_time *rows;
    int n;
    int64_t sum = 0;
    trainee_begin(&t, model, batch, 1, true);
    run_steps(&t);
    bench_check(sx_program_profile(t.program, batch, &rows, &n));
    kernel_row *best = sx_alloc((size_t)n, sizeof(*best));
    if (best == NULL) {
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        best[i] = (kernel_row){&rows[i], rows[i].total_ns, INT64_MAX};
    }
    int64_t until = sx_now_ns() + PROFILE_NS;
    for (int step = 0; step < PROFILE_STEPS && sx_now_ns() < until; step++) {
        run_steps(&t);
        bench_check(sx_program_profile(t.program, batch, &rows, &n));
        for (int i = 0; i < n; i++) {
            int64_t ns = rows[i].total_ns - best[i].total_ns;
            best[i].total_ns = rows[i].total_ns;
            best[i].best_ns = ns < best[i].best_ns ? ns : best[i].best_ns;
        }
    }
    qsort(best, (size_t)n, sizeof(*best), by_time);
    for (int i = 0; i < n; i++) {
        sum += best[i].best_ns;
    }
    printf("%9.2f us  sum of all kernels' best over all shards\n", (double)sum * 1e-3);
    for (int i = 0; i < n && i < PROFILE_ROWS; i++) {
        const sx_kernel_time *k = best[i].kernel;
        printf("%9.2f us %5.1f %%  %-40.40s %s\n", (double)best[i].best_ns * 1e-3,
               100.0 * (double)best[i].best_ns / (double)sum, k->kernel, k->node);
    }
    sx_free(best);
    trainee_end(&t);
}

static void serve(const char *model, int64_t batch, const char *plugin, const char *dump_dir)
{
    trainee t;
    long steps;
    const sx_session_options options = {
        .device = plugin != NULL ? "pjrt" : "cpu",
        .seed = 1,
        .launch_steps = LOOP,
        .platform = {.pjrt = {.plugin_path = plugin, .dump_dir = dump_dir}}};
    trainee_begin_on(&t, model, batch, LOOP, &options);
    printf("ready\n");
    fflush(stdout);
    while (scanf("%ld", &steps) == 1) {
        int64_t start = sx_now_ns();
        double cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
        t.steps = steps;
        run_steps(&t);
        cpu = bench_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("%.9f %.9f\n", (double)(sx_now_ns() - start) * 1e-9, cpu);
        fflush(stdout);
    }
    trainee_end(&t);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[3] : "";
    if (argc < 3) {
        measure("mnist_cnn", 32);
        measure("mnist_cnn", 128);
        measure("empty", 32);
    } else if (strcmp(what, "--serve") == 0) {
        serve(argv[1], atol(argv[2]), argc > 5 ? argv[4] : NULL, argc > 5 ? argv[5] : NULL);
    } else if (strcmp(what, "--profile") == 0) {
        profile(argv[1], atol(argv[2]));
    } else {
        measure(argv[1], atol(argv[2]));
    }
    return 0;
}
