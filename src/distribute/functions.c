/* The public API of a runner (sextant/functions.h). */
#include <sextant/functions.h>

#include <stdatomic.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "distribute/strategy.h"
#include "runtime/function_run.h"

struct sx_functions {
    atomic_int refs; /* of the caller, and of the results that are charged to `memory` */
    const sx_library *library;
    sx_strategy *strategy; /* owns the texts of the platform's options */
    sx_platform *platform;
    sx_runner *runner;
    sx_budget memory;
};

struct sx_results {
    sx_functions *functions;
    sx_arena arena;
    const sx_graph *body;
    sx_tensor *tensors; /* [body's results] */
};

sx_status sx_functions_open(const sx_library *library, const sx_functions_options *options,
                            sx_functions **out_functions)
{
    SX_NEED(library);
    SX_NEED(out_functions);
    SX_TAKE_ARGS(sx_functions_options, options);
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"threads", options->threads},
                  {"memory_limit_bytes", options->memory_limit_bytes},
                  {"max_programs", options->max_programs},
                  {"max_executables", options->max_executables},
                  {"max_nodes", options->max_nodes},
                  {"max_calls", options->max_calls},
                  {"max_trips", options->max_trips}};
    for (size_t i = 0; i < SX_COUNT(counts); i++) {
        if (counts[i].value < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "%s is %lld; 0 means the default", counts[i].name,
                            (long long)counts[i].value);
        }
    }
    sx_functions *f = sx_alloc(1, sizeof(*f));
    if (f == NULL) {
        return sx_no_memory("opening a library of functions");
    }
    atomic_init(&f->refs, 1);
    f->library = library;
    sx_budget_init(&f->memory, "functions (memory_limit_bytes)",
                   (size_t)options->memory_limit_bytes, NULL);
    const sx_strategy_args args = {.device = options->device != NULL ? options->device : "cpu",
                                   .pjrt_plugin = options->pjrt_plugin,
                                   .python = options->python};
    sx_session_options session = {.platform.cpu.threads = options->threads};
    sx_status status = sx_strategy_of_one(&args, "a library of functions", &f->strategy);
    status = status == SX_OK ? sx_strategy_apply(f->strategy, &session) : status;
    status = status == SX_OK ? sx_platform_open(session.device, &session.platform, &f->platform)
                             : status;
    int64_t bytes = 0; /* of the variables */
    for (int i = 0; i < library->n_variables && status == SX_OK; i++) {
        if (!sx_add_i64(bytes, sx_type_bytes(&library->variables[i].type), &bytes)) {
            bytes = INT64_MAX;
        }
    }
    if (status == SX_OK && !sx_budget_charge(&f->memory, (size_t)bytes)) {
        status = sx_budget_over(&f->memory, "variables", (size_t)bytes);
    }
    if (status == SX_OK) {
        status = sx_runner_create(&(sx_runner_options){.library = library,
                                                       .platform = f->platform,
                                                       .seed = options->seed,
                                                       .limits = {.nodes = options->max_nodes,
                                                                  .calls = options->max_calls},
                                                       .max_programs = options->max_programs,
                                                       .max_executables = options->max_executables,
                                                       .max_trips = options->max_trips,
                                                       .memory = &f->memory},
                                  &f->runner);
    }
    if (status != SX_OK) {
        sx_functions_close(f);
        return status;
    }
    *out_functions = f;
    return SX_OK;
}

static void release(sx_functions *f)
{
    if (atomic_fetch_sub(&f->refs, 1) == 1) {
        sx_free(f);
    }
}

void sx_functions_close(sx_functions *f)
{
    if (f != NULL) {
        sx_runner_destroy(f->runner);
        const bool closed = sx_platform_close(f->platform);
        sx_strategy_release(f->strategy);
        if (closed) { /* else the budget in *f is still in use */
            release(f);
        }
    }
}

static sx_status check_bytes(const sx_functions *f, const char *name, size_t bytes)
{
    const sx_variable_spec *v = sx_library_find_variable(f->library, name);
    char text[SX_TYPE_TEXT];
    if (v != NULL && bytes != (size_t)sx_type_bytes(&v->type)) {
        return sx_error(SX_INVALID_ARGUMENT, "variable \"%.100s\" is %s, %lld bytes; got %zu", name,
                        sx_type_format(&v->type, text, sizeof(text)),
                        (long long)sx_type_bytes(&v->type), bytes);
    }
    return SX_OK; /* the runner says NOT_FOUND */
}

sx_status sx_functions_read_variable(sx_functions *f, const char *name, void *data, size_t bytes)
{
    SX_NEED(f);
    SX_NEED(name);
    SX_NEED(data);
    SX_TRY(check_bytes(f, name, bytes));
    return sx_runner_read_variable(f->runner, name, data);
}

sx_status sx_functions_write_variable(sx_functions *f, const char *name, const void *data,
                                      size_t bytes)
{
    SX_NEED(f);
    SX_NEED(name);
    SX_NEED(data);
    SX_TRY(check_bytes(f, name, bytes));
    return sx_runner_write_variable(f->runner, name, data);
}

sx_status sx_functions_run(sx_functions *f, const char *function, const sx_tensor *inputs,
                           int n_inputs, int64_t timeout_ms, sx_results **out_results)
{
    SX_NEED(f);
    SX_NEED(function);
    SX_NEED(out_results);
    const sx_function *called = sx_library_find(f->library, function);
    sx_cancel cancel;
    SX_TRY(sx_check_timeout_ms(timeout_ms));
    if (n_inputs < 0 || (n_inputs > 0 && inputs == NULL)) {
        return sx_error(SX_INVALID_ARGUMENT, "n_inputs is %d%s", n_inputs,
                        n_inputs > 0 ? ", but inputs is NULL" : "");
    }
    sx_cancel_init_ms(&cancel, timeout_ms);
    sx_results *results = sx_alloc(1, sizeof(*results));
    if (results == NULL) {
        return sx_no_memory("running a function");
    }
    atomic_fetch_add(&f->refs, 1);
    results->functions = f;
    sx_arena_init(&results->arena, 0);
    results->arena.budget = &f->memory;
    results->body = called != NULL ? called->body : NULL;
    const int n = called != NULL ? called->body->n_results : 0;
    results->tensors = sx_arena_array(&results->arena, n + 1, sx_tensor);
    sx_status status = results->tensors == NULL
                           ? sx_budget_error(&f->memory)
                           : sx_runner_run(f->runner, function, inputs, n_inputs, results->tensors,
                                           n, &results->arena, &cancel);
    if (status != SX_OK) {
        sx_results_free(results);
        return sx_say_timeout_ms(status, timeout_ms);
    }
    *out_results = results;
    return SX_OK;
}

int sx_results_count(const sx_results *results)
{
    return results != NULL ? results->body->n_results : 0;
}

const sx_tensor *sx_results_at(const sx_results *results, int i)
{
    return i >= 0 && i < sx_results_count(results) ? &results->tensors[i] : NULL;
}

const sx_tensor *sx_results_find(const sx_results *results, const char *name)
{
    return results != NULL && name != NULL
               ? sx_results_at(results, sx_graph_find_output(results->body, name))
               : NULL;
}

void sx_results_free(sx_results *results)
{
    if (results != NULL) {
        sx_arena_deinit(&results->arena);
        release(results->functions);
        sx_free(results);
    }
}
