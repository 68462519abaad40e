/* The compiled forms of functions that a runner (function_run.h) keeps: a program per combination
 * of argument types, and an executable per device graph and batch size, each built once if several
 * threads need it.
 *
 * The key of a program: library, function, types (an argument that the function declares with the
 * batch keeps it symbolic), known values. Of an executable: the device graph, the batch. */
#ifndef SX_RUNTIME_FUNCTION_PROGRAMS_H
#define SX_RUNTIME_FUNCTION_PROGRAMS_H

#include <pthread.h>

#include "backends/backend.h"
#include "base/build_cache.h"
#include "graph/specialize.h"

enum { SX_FUNCTION_KEPT_BATCHES = 8 /* executables that a program keeps per step */ };

/* What a program stores about one of its steps in addition to the specialization. */
typedef struct sx_function_step {
    bool *shaping[2]; /* LATE: of its graph; IF, WHILE: of the two regions */
    int64_t batches[SX_FUNCTION_KEPT_BATCHES];
    sx_built *executables[SX_FUNCTION_KEPT_BATCHES];
    int n_executables;
} sx_function_step;

typedef struct sx_function_program {
    sx_specialized *spec;
    sx_function_step *steps;
    pthread_mutex_t mutex; /* of the executables */
} sx_function_program;

typedef struct sx_function_programs {
    const sx_library *library;
    sx_platform *platform;
    sx_specialize_limits limits;
    sx_build_cache *programs, *executables;
} sx_function_programs;

/* The library and the platform outlive it; at most `max_programs` (0 = 256) and `max_executables`
 * (0 = 1024) are kept. After an error, too, it must be deinitialized. */
SX_MUST_USE sx_status sx_function_programs_init(sx_function_programs *f, const sx_library *library,
                                                sx_platform *platform,
                                                const sx_specialize_limits *limits,
                                                int64_t max_programs, int64_t max_executables);
void sx_function_programs_deinit(sx_function_programs *f); /* zeros are fine */

/* The sx_function_program of `body`, whose hash is `hash`, for this binding. */
SX_MUST_USE sx_status sx_function_program_get(sx_function_programs *f, const sx_graph *body,
                                              uint64_t hash, const sx_binding *binding,
                                              const sx_cancel *cancel, sx_built **out);
/* The sx_executable of device step k of a program, for that batch. */
SX_MUST_USE sx_status sx_function_executable_get(sx_function_programs *f, sx_function_program *p,
                                                 int k, int64_t batch, const sx_cancel *cancel,
                                                 sx_built **out);

#endif
