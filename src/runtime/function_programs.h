/* The compiled forms of functions that a runner (function_run.h) keeps: a program per combination
 * of argument types, and an executable per device graph and batch size, each built once if several
 * threads need it.
 *
 * The key of a program: the SHA-256 of the function's text, which includes its constants; types (an
 * argument that the function declares with the batch keeps it symbolic); known values. Of an
 * executable: the SHA-256 of the device graph, the batch. Keys are compared in full. Weights are
 * arguments, and everything else that decides a program (library, device, options) is the same for
 * all of a runner.
 *
 * A run that finds an idle frame (function_frame.h) of what it binds makes no key and takes no
 * lock.
 */
#ifndef SX_RUNTIME_FUNCTION_PROGRAMS_H
#define SX_RUNTIME_FUNCTION_PROGRAMS_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/backend.h"
#include "base/build_cache.h"
#include "graph/specialize.h"

enum {
    SX_FUNCTION_KEPT_BATCHES = 8, /* executables that a program keeps per step */
};

/* What a program stores about one of its steps in addition to the specialization. */
typedef struct sx_function_step {
    bool *shaping[2];  /* LATE: of its graph; IF, WHILE, MAP: of the regions */
    bool has_batch[2]; /* IF, WHILE, MAP: the region knows N, if only in a shape that it makes */
    int64_t batches[SX_FUNCTION_KEPT_BATCHES];
    sx_built *executables[SX_FUNCTION_KEPT_BATCHES];
    int n_executables;
} sx_function_step;

typedef struct sx_function_program {
    sx_arena body; /* of a region or late call, whose graph belongs to a program that may be evicted
                    * before */
    sx_specialized *spec;
    sx_function_step *steps;
    pthread_mutex_t mutex; /* of the executables */
} sx_function_program;

typedef struct sx_function_pocket sx_function_pocket; /* function_frame.h */

typedef struct sx_function_programs {
    const sx_library *library;
    sx_platform *platform;
    sx_specialize_limits limits;
    sx_budget *memory; /* charged for programs and executables; NULL = no limit */
    bool frozen;       /* as sx_runner_options.frozen */
    int64_t max_trips; /* as sx_runner_options.max_trips */
    sx_build_cache *programs, *executables;
    sx_function_pocket *pockets; /* [n_pockets]: idle frames */
    int n_pockets;
    atomic_uint next_evicted;  /* the pocket whose frame makes room for another */
    atomic_llong frames_bytes; /* of all frames, each as it was when it was last idle */
    int64_t max_frames_bytes;
} sx_function_programs;

/* The library and the platform outlive it; at most `max_programs` (0 = 256) and `max_executables`
 * (0 = 1024) are kept. After an error, too, it must be deinitialized. */
SX_MUST_USE sx_status sx_function_programs_init(sx_function_programs *f, const sx_library *library,
                                                sx_platform *platform,
                                                const sx_specialize_limits *limits,
                                                int64_t max_programs, int64_t max_executables,
                                                sx_budget *memory);
void sx_function_programs_deinit(sx_function_programs *f); /* zeros are fine */

/* Whether `status` says that the memory is full, and room was made for another try: programs that
 * are not in use are evicted, first the least recently used half, then all. The status has then
 * been freed. *tries counts, from 0. */
bool sx_function_programs_make_room(sx_function_programs *f, sx_status status, int *tries);

/* A function's body, a region or a late call. */
typedef struct sx_function_body {
    const sx_graph *graph;
    const sx_digest *digest;
    const bool *shaping;
} sx_function_body;

/* The size of what is known of an argument's value. */
size_t sx_function_known_bytes(const sx_tensor *arg);

/* The sx_function_program of a body for this binding. */
SX_MUST_USE sx_status sx_function_program_get(sx_function_programs *f, const sx_function_body *body,
                                              const sx_binding *binding, const sx_cancel *cancel,
                                              sx_built **out);
/* The sx_executable of device step k of a program, for that batch. */
SX_MUST_USE sx_status sx_function_executable_get(sx_function_programs *f, sx_function_program *p,
                                                 int k, int64_t batch, const sx_cancel *cancel,
                                                 sx_built **out);

#endif
