/* Mutants of saved_model.pb: each is refused, or imported as a library of functions whose
 * signatures run, or are refused, for small arguments. None takes a second of processor time, or
 * more memory than reading the file may (sx_saved_model_budget). */
#ifndef SX_TESTS_IMPORT_MUTANTS_H
#define SX_TESTS_IMPORT_MUTANTS_H

#include <time.h>

#include "graph_mutants.h"
#include "peak.h"

#include "base/checked.h"
#include "base/clock.h"
#include "runtime/function_run.h"
#include "savedmodel/import_library.h"

enum { SX_MODEL_SEEDS = 4, MODEL_BYTES = 64 << 10, RUN_BYTES = 16 << 20, MOST_SIGNATURES = 8 };

static inline bool import_run(sx_platform *platform, const sx_library *library, const char *name)
{
    enum { MOST_ARGS = 4, MOST_RESULTS = 16, ARG_BYTES = 1 << 20 };
    static float data[ARG_BYTES / sizeof(float)];
    const sx_function *f = sx_library_find(library, name);
    sx_tensor args[MOST_ARGS], results[MOST_RESULTS];
    bool fits = f != NULL && f->body->n_args <= MOST_ARGS && f->body->n_results <= MOST_RESULTS;
    for (int i = 0; fits && i < f->body->n_args; i++) {
        sx_type t = *sx_graph_type(f->body, f->body->args[i].value);
        t.rank = t.rank == SX_UNKNOWN_RANK ? 1 : t.rank;
        for (int d = 0; d < t.rank; d++) {
            t.dims[d] = t.dims[d] < 0 ? 2 : t.dims[d];
        }
        args[i] = (sx_tensor){t, data};
        fits = t.dtype != SX_STRING && sx_type_bytes(&t) >= 0 && sx_type_bytes(&t) <= ARG_BYTES;
    }
    if (!fits) {
        return false;
    }
    sx_budget memory;
    sx_runner *runner = NULL;
    sx_arena arena;
    sx_cancel cancel;
    sx_budget_init(&memory, "a test", RUN_BYTES, NULL);
    sx_arena_init(&arena, RUN_BYTES);
    sx_cancel_init(&cancel, sx_now_ns() + 1000000000);
    sx_status status = sx_runner_create(
        &(sx_runner_options){
            .library = library, .platform = platform, .max_trips = 1000, .memory = &memory},
        &runner);
    if (status == SX_OK) {
        status = sx_runner_run(runner, name, args, f->body->n_args, results, f->body->n_results,
                               &arena, &cancel);
    }
    const bool ran = status == SX_OK;
    sx_status_free(status);
    sx_runner_destroy(runner);
    sx_arena_deinit(&arena);
    return ran;
}

static inline int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void check_import_mutants(int count)
{
    static const char *const names[SX_MODEL_SEEDS] = {"functions", "functions", "dense",
                                                      "functions"};
    static char bytes[MODEL_BYTES];
    char *seeds[SX_MODEL_SEEDS];
    size_t sizes[SX_MODEL_SEEDS];
    const char *source = getenv("SEXTANT_SRC");
    int parsed = 0, imported = 0, done = 0;
    int64_t slowest = 0;
    sx_platform *platform;
    for (int i = 0; i < SX_MODEL_SEEDS; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/fuzz/corpus/saved_model/%s.pb",
                 source != NULL ? source : ".", names[i]);
        assert_ok(sx_file_read(path, MODEL_BYTES, &seeds[i], &sizes[i]));
    }
    assert_ok(sx_platform_open("host", &(sx_platform_options){.cpu.threads = 1}, &platform));
    sx_words w = {.key = {13, 17}};
    const int64_t before = sx_peak_bytes();
    for (int i = 0; i < count; i++) {
        sx_saved_model *model = NULL;
        size_t size = sizes[i % SX_MODEL_SEEDS], n = 0;
        memcpy(bytes, seeds[i % SX_MODEL_SEEDS], size);
        size = i < SX_MODEL_SEEDS ? size : sx_mutate(&w, bytes, size); /* the seeds themselves */
        const int64_t began = cpu_ns();
        sx_status status = sx_saved_model_parse((sx_bytes){bytes, size}, &model);
        const sx_signature *signatures =
            status == SX_OK ? sx_saved_model_signatures(model, &n) : NULL;
        parsed += status == SX_OK;
        if (status == SX_OK && n <= MOST_SIGNATURES) {
            sx_library *library = NULL;
            sx_status refused[MOST_SIGNATURES] = {SX_OK};
            status = sx_import_library(model, NULL, &library, refused);
            for (size_t s = 0; s < n; s++) {
                imported += status == SX_OK && refused[s] == SX_OK;
                done += status == SX_OK && refused[s] == SX_OK &&
                        import_run(platform, library, signatures[s].key);
                if (i == 0 && refused[s] != SX_OK && signatures[s].key[0] != '_') {
                    fail_msg("%s.pb: %s", names[i], sx_status_message(refused[s]));
                }
                sx_status_free(refused[s]);
            }
            sx_library_destroy(library);
        }
        sx_status_free(status);
        sx_saved_model_close(model);
        slowest = SX_MAX(slowest, cpu_ns() - began);
    }
    const int64_t grown = sx_peak_bytes() - before;
    print_message("%d mutants: %d are models, %d signatures of them import, %d run; the slowest "
                  "took %lld ms, memory grew by %lld MiB\n",
                  count, parsed, imported, done, (long long)(slowest / 1000000),
                  (long long)(grown >> 20));
    assert_true(parsed > count / 4 && imported > count / 20 && done > count / 40);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    assert_true(slowest < 20 * (int64_t)1000000000);
#else
    assert_true(slowest < 1000000000);
    assert_true(grown < (64 << 20) + 4 * MODEL_BYTES + RUN_BYTES);
#endif
    sx_platform_close(platform);
    for (int i = 0; i < SX_MODEL_SEEDS; i++) {
        sx_free(seeds[i]);
    }
}

#endif
