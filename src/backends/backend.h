/* The backend contract: what a device must do for a Sextant program to run on it. It has PJRT's
 * shape, so that a plugin is one implementation among others.
 *
 *   sx_platform      a family of devices, opened once: "host", "cpu", "pjrt"
 *   sx_device        one of them, owned by its platform
 *   sx_device_buffer an array on a device, refcounted; the backend chooses its layout
 *   sx_run           one execution at a time of an executable: its temporaries, its completion
 *   sx_executable    a whole graph compiled for one batch size, refcounted, immutable
 *
 * An executable's arguments are the graph's args in order, its outputs the graph's results in
 * order. A result that assigns a variable is written into that variable's own buffer (donation):
 * the caller passes the buffer once, as argument, and finds the new value in it. Other outputs are
 * written into buffers that the caller made with sx_device_buffer_create(); nothing is allocated
 * while executing.
 *
 * An execution is submitted and awaited; it ends at once on a backend that runs on the caller's
 * thread. A run belongs to its caller and serves one execution after another; any number of threads
 * may execute one executable, each with a run of its own, and share what it has prepared.
 *
 * Errors of a caller are INVALID_ARGUMENT; a program that the backend cannot compile names the
 * node.
 *
 * To add a backend: a directory here that defines one sx_backend, and its row in backends.def. The
 * conformance suite (tests/backends) then runs every operator sample on it. */
#ifndef SX_BACKENDS_BACKEND_H
#define SX_BACKENDS_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/budget.h"
#include "graph/ir.h"

typedef struct sx_backend sx_backend;
typedef struct sx_platform sx_platform;
typedef struct sx_device sx_device;
typedef struct sx_device_buffer sx_device_buffer;
typedef struct sx_executable sx_executable;
typedef struct sx_run sx_run;

/* --- What a caller says ---------------------------------------------------------------------- */

/* Over which examples a batch norm in training takes its moments when replicas share a batch.
 * SYNC: the whole batch, so that n replicas compute what one device does. REPLICA, TensorFlow's:
 * each replica's part alone; the moving averages move by the mean over replicas of the parts'
 * moments (TensorFlow keeps an average on each replica and reads their mean: the same number). */
typedef enum sx_batch_norm_scope {
    SX_BATCH_NORM_SYNC = 0,
    SX_BATCH_NORM_REPLICA
} sx_batch_norm_scope;

typedef struct sx_platform_options {
    int threads; /* cpu: workers; 0 = as many as this process may use */
    const char
        *plugin_path; /* pjrt: the plugin's library; NULL = search (backends/pjrt/plugin.h) */
    const char *plugin_name; /* pjrt: "cpu", "tpu", "cuda", …; NULL = the first that is found */
    const char *python;      /* pjrt: an interpreter whose packages may hold it; NULL = none */
    const char *dump_dir;    /* pjrt: every program's StableHLO text is written here; NULL = no */
    const char *cache_dir;   /* pjrt: compiled programs are kept here; NULL = nowhere */
    int virtual_devices;     /* 0 = the real ones */
    int replicas; /* pjrt: this many devices work as one, each on its part of the batch; 0 = 1 */
    sx_batch_norm_scope batch_norm; /* pjrt, with replicas */
} sx_platform_options;

typedef enum sx_precision { SX_PRECISION_F32 = 0, SX_PRECISION_BF16 } sx_precision;

typedef struct sx_compile_options {
    int64_t batch; /* what SX_BATCH becomes; ignored by a graph without it */
    int shards;    /* logical shards of the batch; 0 = the backend's choice (its threads) */
    sx_precision precision; /* BF16: products of f32 may round their operands to bf16; a device
                               that gains nothing by it computes in f32 */
    bool profile;           /* keep times per kernel: sx_executable_profile */
    /* SX_CAN_LOOP: up to that many steps in one execution; 0 and 1 = one step. Then
     * inputs with the batch are superbatches [steps, batch, …], outputs are rings [steps, …] with a
     * row of each step (zeros where none ran), one more argument at the end, int64, says how many
     * steps to run, and one more result, int64, how many ran: the loop leaves after a step whose
     * `ok_output` (a bool scalar of the program; NULL = none) is false. */
    int64_t steps;
    const char *ok_output;
    bool any_batch;    /* replicas need not divide the batch: then each computes all of it */
    sx_budget *memory; /* charged with what the executable and its runs allocate; NULL = none; must
                          outlive them */
} sx_compile_options;

/* --- What a device says ---------------------------------------------------------------------- */

enum { SX_MAX_COORDS = 4 };

struct sx_device {
    sx_platform *platform;
    int index;        /* in the platform */
    const char *name; /* TensorFlow's: "/device:CPU:0" */
    const char *kind; /* "AMD EPYC (AVX-512, BF16, VNNI)" */
    /* Of a chip in a slice, where it says: */
    int process; /* the host that it belongs to */
    int n_coords, core_on_chip;
    int64_t coords[SX_MAX_COORDS];
};

typedef struct sx_memory_stats {
    int64_t bytes_in_use, peak_bytes, limit_bytes; /* limit 0 = unknown */
} sx_memory_stats;

/* What an executable needs and is: for --explain, `sextant compile`, the compile log. */
typedef struct sx_executable_info {
    int64_t argument_bytes, output_bytes, temporary_bytes, code_bytes;
    int64_t alias_bytes; /* of the outputs: written over arguments, not beside them */
    bool from_cache;     /* it was compiled before, and kept */
    double flops;        /* of one execution */
    int shards, kernels;
    /* What decides its bits: instruction sets, caches, kernel table, shards, library versions. */
    const char *numerics;
} sx_executable_info;

typedef struct sx_kernel_time {
    const char *kernel; /* "conv2d/forward onednn jit:avx512_core" */
    const char *node;   /* graph node, or the fused nodes joined by "+" */
    int64_t calls, total_ns;
    double flops, bytes; /* of one call */
} sx_kernel_time;

/* --- The contract ---------------------------------------------------------------------------- */

typedef enum sx_capability {
    SX_CAN_TRAIN = 1 << 0,
    SX_CAN_SHARD = 1 << 1,    /* compile options' shards are honoured */
    SX_CAN_BF16 = 1 << 2,     /* graphs of bfloat16 (nn.h: sx_builder_set_precision) */
    SX_IS_EXACT_F64 = 1 << 3, /* float64 graphs run in double: the gradient oracle */
    SX_CAN_LOOP = 1 << 4,     /* compile options' steps may be more than 1 */
} sx_capability;

/* Shared heads: a backend's own structs start with these, so that the functions below work on all.
 */
struct sx_platform {
    const sx_backend *backend;
    sx_device *const *devices;
    int n_devices;
};
struct sx_device_buffer {
    sx_device *device;
    sx_type type; /* static */
    atomic_int refs;
};
struct sx_executable {
    sx_platform *platform;
    atomic_int refs;
    int n_args, n_results;
    const sx_type *arg_types;    /* [n_args], batch fixed */
    const sx_type *result_types; /* [n_results] */
    const int *result_args; /* [n_results]: the argument whose buffer it is written to, or -1 */
    int max_runs; /* executions at once that gain anything, as each uses the device whole; 0 = any
                     number */
    sx_budget *memory;       /* as in the compile options */
    size_t memory_bytes;     /* charged to it */
    size_t run_bytes;        /* of each run: temporaries, charged to it, too */
    atomic_bool run_charged; /* `run_bytes` of a run that is still to be created */
};

typedef enum sx_run_state {
    SX_RUN_IDLE = 0, /* may be submitted */
    SX_RUN_PENDING,  /* submitted, has not ended */
    SX_RUN_ENDED,    /* its status waits for sx_run_await() */
} sx_run_state;

struct sx_run {
    sx_executable *executable; /* retained */
    atomic_int refs;           /* its owner's, and a pending execution's */
    atomic_int state;          /* sx_run_state */
    pthread_mutex_t mutex;     /* of what is below, while pending */
    pthread_cond_t ended;
    sx_status status; /* SX_RUN_ENDED: how it ended */
    void (*on_done)(sx_run *run, void *user);
    void *user;
    bool watched; /* the backend's thread ends it and has a reference; the owner writes this */
    sx_device_buffer **checked; /* [n_args]: whose donations were checked last */
};

struct sx_backend {
    const char *name, *about;
    unsigned capabilities;

    sx_status (*open)(const sx_platform_options *options, sx_platform **out);
    void (*close)(sx_platform *platform);
    sx_status (*memory)(sx_device *device, sx_memory_stats *out); /* optional: zeros */

    sx_status (*buffer_create)(sx_device *device, const sx_type *type, sx_device_buffer **out);
    void (*buffer_destroy)(sx_device_buffer *buffer);
    /* Copies in from row-major host memory, or borrows `data` until the next write to this buffer
     * or its end (borrow = true; a backend may copy all the same). */
    sx_status (*buffer_write)(sx_device_buffer *buffer, const void *data, bool borrow);
    /* Waits for pending writers, then copies out, row-major. */
    sx_status (*buffer_read)(sx_device_buffer *buffer, void *data);
    /* Optional: n at once, whose waits overlap; all of one platform. */
    sx_status (*buffers_read)(int n, sx_device_buffer *const *buffers, void *const *data);

    sx_status (*compile)(sx_platform *platform, const sx_graph *graph,
                         const sx_compile_options *options, sx_executable **out);
    void (*executable_destroy)(sx_executable *executable);
    /* Optional: what it knows beside the bytes of arguments and outputs, which are filled in. */
    sx_status (*info)(const sx_executable *executable, sx_executable_info *out);

    sx_status (*run_create)(sx_executable *executable, sx_run **out);
    void (*run_destroy)(sx_run *run); /* not pending */
    /* args[n_args], outputs[n_results]; outputs[i] is ignored where the result assigns a variable.
     * Begins the execution, and calls sx_run_end() when the outputs may be read: before it returns,
     * or later, from any thread. An error means that it did not begin. Allocates nothing. */
    sx_status (*submit)(sx_run *run, sx_device_buffer *const *args,
                        sx_device_buffer *const *outputs);
    /* Where submit() may return before the end. await: waits for it, however long, and calls
     * sx_run_end(). watch: has sx_run_end() called at the end by a thread of the backend's; at most
     * once for each submission, and instead of await. */
    void (*await)(sx_run *run);
    void (*watch)(sx_run *run);
    sx_status (*profile)(sx_run *run, const sx_kernel_time **out_rows,
                         int *out_count); /* optional */
};

/* --- Calling it ------------------------------------------------------------------------------ */

extern const sx_backend *const sx_backends[]; /* from backends.def, NULL-terminated */
#define SX_BACKEND(name) extern const sx_backend sx_backend_##name;
#include "backends/backends.def"
#undef SX_BACKEND

/* The name of the first that can train. */
const char *sx_default_backend(void);
/* By name; NOT_FOUND lists what there is. */
SX_MUST_USE sx_status sx_platform_open(const char *name, const sx_platform_options *options,
                                       sx_platform **out_platform);
void sx_platform_close(
    sx_platform *platform); /* NULL is fine; its buffers and executables are gone */

SX_MUST_USE sx_status sx_device_buffer_create(sx_device *device, const sx_type *type,
                                              sx_device_buffer **out);
SX_MUST_USE sx_status sx_device_buffer_write(sx_device_buffer *buffer, const void *data,
                                             bool borrow);
SX_MUST_USE sx_status sx_device_buffer_read(sx_device_buffer *buffer, void *data);
/* buffers[i] into data[i]; what data hold after an error is not said. */
SX_MUST_USE sx_status sx_device_buffers_read(int n, sx_device_buffer *const *buffers,
                                             void *const *data);
sx_device_buffer *sx_device_buffer_retain(sx_device_buffer *buffer);
void sx_device_buffer_release(sx_device_buffer *buffer); /* NULL is fine */

SX_MUST_USE sx_status sx_compile(sx_platform *platform, const sx_graph *graph,
                                 const sx_compile_options *options, sx_executable **out);
/* For a backend, once it knows what an executable will take and before it allocates that: charges
 * the executable's budget, if it has one, with the constants and with the temporaries of the first
 * run; each further run is charged when it is created. RESOURCE_EXHAUSTED with the figures;
 * `largest` says which value takes most, NULL = unknown. A backend that does not call it is charged
 * by sx_compile() with what its info() says. */
SX_MUST_USE sx_status sx_executable_charge(sx_executable *e, int64_t temporary_bytes,
                                           int64_t constant_bytes, const char *largest);
/* Gives the charge back, before another is made; at the executable's end that is done for it. */
void sx_executable_discharge(sx_executable *e);
SX_MUST_USE sx_status sx_executable_get_info(const sx_executable *executable,
                                             sx_executable_info *out);
sx_executable *sx_executable_retain(sx_executable *executable);
void sx_executable_release(sx_executable *executable);

/* --- Runs: one execution at a time, each run used by one thread at a time ----------------------
 */

/* RESOURCE_EXHAUSTED, with the figures: its temporaries exceed the executable's budget. */
SX_MUST_USE sx_status sx_run_create(sx_executable *executable, sx_run **out);
/* NULL is fine. A pending execution goes on; its run ends with it. */
void sx_run_destroy(sx_run *run);

/* Begins an execution. The buffers must live until it has ended; what it assigns must not be used
 * before. Errors: INVALID_ARGUMENT names the argument or output that is missing, of another type or
 * platform, or assigned through two arguments; FAILED_PRECONDITION if the last execution has not
 * been awaited. */
SX_MUST_USE sx_status sx_run_submit(sx_run *run, sx_device_buffer *const *args,
                                    sx_device_buffer *const *outputs);
/* Waits for the execution's end and returns how it ended; the run may be submitted again.
 * DEADLINE_EXCEEDED if that does not come before `deadline_ns` (of sx_now_ns(); SX_NO_DEADLINE):
 * the execution goes on, and can be awaited again. */
#define SX_NO_DEADLINE INT64_MAX
SX_MUST_USE sx_status sx_run_await(sx_run *run, int64_t deadline_ns);
/* Calls `on_done` once the pending execution has ended: on a thread of the backend's, which must
 * not be held up, or at once if it has. The execution is still to be awaited. */
void sx_run_on_done(sx_run *run, void (*on_done)(sx_run *run, void *user), void *user);
/* Submits and awaits. */
SX_MUST_USE sx_status sx_run_execute(sx_run *run, sx_device_buffer *const *args,
                                     sx_device_buffer *const *outputs);
/* Times of this run's executions, by kernel; with compile options' `profile`. The rows live until
 * the next call. */
SX_MUST_USE sx_status sx_run_get_profile(sx_run *run, const sx_kernel_time **out_rows,
                                         int *out_count);
/* One execution, with a run made for it: for tests and what runs once. */
SX_MUST_USE sx_status sx_execute(sx_executable *executable, sx_device_buffer *const *args,
                                 sx_device_buffer *const *outputs);

/* For backends: fills in the head of a run that they have allocated; ends what that took; the
 * execution has ended with `status`, which is taken over. */
SX_MUST_USE sx_status sx_run_init(sx_run *run, sx_executable *executable);
void sx_run_deinit(sx_run *run);
void sx_run_end(sx_run *run, sx_status status);

#endif
