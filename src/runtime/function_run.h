/* Running the functions of a library: for each new combination of argument types, small integers
 * that decide shapes, and device, a function is specialized (graph/specialize.h) and its device
 * graphs are compiled; a bounded cache keeps what was made, and of threads that need the same one
 * makes it.
 *
 *   runner ── variables   name -> buffer on the device
 *          ── programs    key -> steps (base/build_cache.h)
 *          ── executables key -> a device graph for one batch size
 *
 * Any number of threads run functions of one runner. A function that assigns variables runs alone;
 * in a library where none does, nothing is locked. */
#ifndef SX_RUNTIME_FUNCTION_RUN_H
#define SX_RUNTIME_FUNCTION_RUN_H

#include "backends/backend.h"
#include "base/build_cache.h"
#include "graph/specialize.h"

typedef struct sx_runner sx_runner;

typedef struct sx_runner_options {
    const sx_library *library; /* finished; outlives the runner */
    sx_platform *platform;     /* outlives it; its first device is used */
    uint64_t seed;             /* of the variables' initial values */
    sx_specialize_limits limits;
    int64_t max_programs;    /* kept; 0 = 256 */
    int64_t max_executables; /* kept; 0 = 1024 */
    int64_t max_trips;       /* of a loop that the host drives; 0 = 1 << 30 */
    sx_budget *memory;       /* charged with what runs hold on the host; NULL = no limit */
} sx_runner_options;

SX_MUST_USE sx_status sx_runner_create(const sx_runner_options *options, sx_runner **out);
void sx_runner_destroy(sx_runner *r); /* NULL is fine; no run is under way */

/* A variable's value: row-major host bytes of its type. No run may be under way. */
SX_MUST_USE sx_status sx_runner_read_variable(sx_runner *r, const char *name, void *data);
SX_MUST_USE sx_status sx_runner_write_variable(sx_runner *r, const char *name, const void *data);

/* Runs a function: args[n_args] on the host, of static types; results[n_results] are made in
 * `arena`. Errors: NOT_FOUND the function; INVALID_ARGUMENT arguments, a node, an assert;
 * RESOURCE_EXHAUSTED a limit; CANCELLED, DEADLINE_EXCEEDED: `cancel` (may be NULL) is looked at
 * before each step and each trip of a loop. */
SX_MUST_USE sx_status sx_runner_run(sx_runner *r, const char *function, const sx_tensor *args,
                                    int n_args, sx_tensor *results, int n_results, sx_arena *arena,
                                    const sx_cancel *cancel);

/* What has been made so far. */
void sx_runner_get_stats(sx_runner *r, sx_build_cache_stats *out_programs,
                         sx_build_cache_stats *out_executables);

#endif
