/* Running the functions of a library: for each new combination of argument types, small integers
 * that decide shapes, and device, a function is specialized (graph/specialize.h) and its device
 * graphs are compiled. The results are kept in a bounded cache; if several threads need the same
 * one, it is built once.
 *
 *   runner ── variables   name -> buffer on the device
 *          ── programs    key -> steps (base/build_cache.h)
 *          ── executables key -> a device graph for one batch size
 *
 * Any number of threads run functions of one runner. A function that assigns variables runs alone;
 * if no function of the library does, nothing is locked. */
#ifndef SX_RUNTIME_FUNCTION_RUN_H
#define SX_RUNTIME_FUNCTION_RUN_H

#include "backends/backend.h"
#include "base/build_cache.h"
#include "graph/host.h"
#include "graph/specialize.h"
#include "image/image.h"

typedef struct sx_runner sx_runner;

typedef struct sx_runner_options {
    const sx_library *library; /* finished; outlives the runner */
    sx_platform *platform;     /* outlives it; its first device is used */
    /* [library's variables] on that device, retained; NULL: the runner makes them. */
    sx_device_buffer *const *variables;
    bool frozen;   /* they are not written once a function has run: sx_compile_options.frozen */
    uint64_t seed; /* of the initial values of those that it makes */
    sx_specialize_limits limits;
    int64_t max_programs;    /* kept; 0 = 256 */
    int64_t max_executables; /* kept; 0 = 1024 */
    int64_t max_trips;       /* of one loop; 0 = 1 << 30 on host and cpu, any number on pjrt */
    sx_budget *memory; /* charged for programs and the values of runs; NULL = no limit. Programs
                        * that were not used lately make room. */
    const sx_image_limits *images; /* as in sx_host_context (graph/host.h); outlives it */
    const sx_tables *tables;       /* the same: those of the library, declared */
} sx_runner_options;

SX_MUST_USE sx_status sx_runner_create(const sx_runner_options *options, sx_runner **out);
void sx_runner_destroy(sx_runner *r); /* NULL is fine; no run may be in progress */

/* A variable's value: row-major host bytes of its type. No run may be in progress. */
SX_MUST_USE sx_status sx_runner_read_variable(sx_runner *r, const char *name, void *data);
SX_MUST_USE sx_status sx_runner_write_variable(sx_runner *r, const char *name, const void *data);

/* Runs a function: args[n_args] on the host, of static types; results[n_results] are allocated in
 * `arena`. Errors: NOT_FOUND: no such function; INVALID_ARGUMENT: arguments, a node, an assert;
 * RESOURCE_EXHAUSTED: a limit; CANCELLED, DEADLINE_EXCEEDED: `cancel` (may be NULL) is checked
 * before each step and each iteration of a loop; a device that does not look at it is left running
 * at the deadline, and if its program assigns variables, they are lost: from then on, runs are
 * FAILED_PRECONDITION. */
SX_MUST_USE sx_status sx_runner_run(sx_runner *r, const char *function, const sx_tensor *args,
                                    int n_args, sx_tensor *results, int n_results, sx_arena *arena,
                                    const sx_cancel *cancel);

/* The statistics of both caches; a program that is found without a key (function_programs.h) counts
 * in neither, but in *out_known. */
void sx_runner_get_stats(sx_runner *r, sx_build_cache_stats *out_programs,
                         sx_build_cache_stats *out_executables, int64_t *out_known);

#endif
