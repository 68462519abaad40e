/* Compiling ahead of time for devices that need not be present: whether a program compiles, how
 * much memory it needs and for what.
 *
 * For a TPU target, libtpu creates a topology by name and compiles for it; for pjrt-cpu, the
 * plugin's client compiles. Both happen in a child process, so that a crash of the plugin is only
 * an error and environment variables (TPU_ACCELERATOR_TYPE, …) are set only there. Results are
 * stored in the compile cache under the program's key. */
#ifndef SX_BACKENDS_PJRT_AOT_H
#define SX_BACKENDS_PJRT_AOT_H

#include "backends/pjrt/cache.h"
#include "backends/pjrt/plugin.h"
#include "backends/pjrt/target.h"
#include "graph/ir.h"
#include "graph/lower/stablehlo/stablehlo.h"

typedef struct sx_aot_request {
    const sx_graph *graph; /* with a symbolic batch */
    const sx_target *target;
    sx_pjrt_wish wish; /* where to search for the plugin; the target determines its name */
    int64_t batch;     /* global */
    int64_t steps;     /* > 1: the step loop (module.h) over this many staged batches */
    const char *ok_output;
    sx_hlo_options hlo;
    const char *xla_options; /* of XLA for the program, as settings.h reads them; NULL = none */
    const char *dump_dir, *cache_dir; /* NULL = none */
    bool keep;                        /* return the executable; the cache is not used */
} sx_aot_request;

enum { SX_AOT_NAME = 96, SX_AOT_ROWS = 10, SX_AOT_HOSTS = 64 };

/* The size of arrays, without and with padding. */
typedef struct sx_aot_bytes {
    int64_t bytes, padded;
} sx_aot_bytes;

typedef struct sx_aot_layer {
    char name[SX_AOT_NAME];
    sx_aot_bytes parameters, activations; /* on one device; parameters include their slots */
} sx_aot_layer;

typedef struct sx_aot_array {
    char name[SX_AOT_NAME], type[SX_AOT_NAME];
    sx_aot_bytes size;
} sx_aot_array;

/* Plain data, as it comes from a child process and is stored in the cache. Bytes are per device. */
typedef struct sx_aot_result {
    char kind[SX_AOT_NAME], plugin[SX_AOT_NAME]; /* "TPU v5 lite"; "PJRT 0.116" */
    int32_t devices, hosts;
    int32_t host_devices[SX_AOT_HOSTS]; /* of the first hosts */
    int64_t batch, hbm_bytes;           /* 0 = unknown */
    double compile_seconds;
    sx_pjrt_facts facts;
    int64_t executable_bytes;
    bool has_layouts; /* otherwise the three below are zero */
    sx_aot_bytes arguments, activations;
    int32_t n_layers, n_wasteful;
    sx_aot_layer layers[SX_AOT_ROWS];   /* the largest, in descending order */
    sx_aot_array wasteful[SX_AOT_ROWS]; /* those with the most padding */
} sx_aot_result;

/* arguments + outputs − outputs that alias arguments + temporaries + code. */
int64_t sx_aot_total_bytes(const sx_aot_result *r);

/* Errors: RESOURCE_EXHAUSTED: the compiler reports that it does not fit (its message);
 * INVALID_ARGUMENT: the batch is not a multiple of the devices, or the program was rejected (names
 * the node and its line); UNAVAILABLE: no plugin (says what to install); UNIMPLEMENTED: unknown
 * topology. `out_executable` may be NULL; free with sx_free. */
SX_MUST_USE sx_status sx_aot_compile(const sx_aot_request *request, sx_aot_result *out,
                                     char **out_executable, size_t *out_size);

#endif
