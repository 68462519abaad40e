/* The backend contract: what a device must implement to run Sextant programs. It is modeled after
 * PJRT, so that a plugin is one implementation among others.
 *
 *   sx_platform      a family of devices, opened once: "host", "cpu", "pjrt"
 *   sx_device        one of them, owned by its platform
 *   sx_device_buffer an array on a device, refcounted; the backend chooses its layout
 *   sx_run           one execution at a time of an executable: its temporaries, its completion
 *   sx_executable    a whole graph compiled for one batch size, refcounted, immutable
 *
 * An executable's arguments are the graph's args in order, its outputs the graph's results in
 * order. A result that assigns a variable is written into that variable's own buffer (donation):
 * the caller passes the buffer once, as argument, and finds the new value in it; an execution that
 * fails may lose it, and until it is written again, using it is FAILED_PRECONDITION. Other outputs
 * are written into buffers that the caller made with sx_device_buffer_create(); nothing is
 * allocated while executing.
 *
 * An execution is submitted and awaited; on a backend that runs on the caller's thread, it ends
 * within the submit. A run is owned by its caller and used for one execution after another; any
 * number of threads may execute one executable, each with its own run.
 *
 * Errors of the caller are INVALID_ARGUMENT; the error of a program that the backend cannot compile
 * names the node.
 *
 * To add a backend: a directory here that defines one sx_backend, and its row in backends.def. The
 * conformance suite (tests/backends) then runs every operator sample on it. */
#ifndef SX_BACKENDS_BACKEND_H
#define SX_BACKENDS_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/cpu/options.h"
#include "backends/pjrt/options.h"
#include "backends/placed/options.h"
#include "base/budget.h"
#include "base/cancel.h"
#include "graph/ir.h"

typedef struct sx_backend sx_backend;
typedef struct sx_platform sx_platform;
typedef struct sx_device sx_device;
typedef struct sx_device_buffer sx_device_buffer;
typedef struct sx_executable sx_executable;
typedef struct sx_run sx_run;

/* ---- Options ---- */

/* Each backend reads its own; `host` has none. The timeline is all backends'. */
typedef struct sx_platform_options {
    sx_cpu_options cpu;
    sx_pjrt_options pjrt;
    sx_placed_options placed;
    struct sx_timeline *timeline; /* gets what the devices do, and when (timeline.h); NULL: none */
} sx_platform_options;

typedef enum sx_precision { SX_PRECISION_F32 = 0, SX_PRECISION_BF16 } sx_precision;

typedef struct sx_compile_options {
    int64_t batch; /* the value of SX_BATCH; ignored for a graph without it */
    int shards;    /* logical shards of the batch; 0 = the backend's choice (its threads) */
    sx_precision precision; /* BF16: products of f32 may round their operands to bf16, if that is
                               faster on the device */
    bool profile;           /* record times per kernel: sx_run_get_profile */
    /* SX_CAN_LOOP: up to that many steps in one execution; 0 and 1 = one step. Then inputs with the
     * batch are superbatches [steps, batch, …], outputs are rings [steps, …] with one row per step
     * (zeros for steps not run), an additional last argument, int64, is the number of steps to run,
     * and an additional result, int64, the number that ran: the loop ends after a step whose
     * `ok_output` (a bool scalar of the program; NULL = none) is false. */
    int64_t steps;
    const char *ok_output;
    bool any_batch; /* replicas need not divide the batch; if not, each computes all of it */
    /* An execution takes the inputs with the batch: the device may free their memory, or use it for
     * something else, and they have no value until they are written again. */
    bool donate_inputs;
    /* The variables that the program does not assign have, from the first execution on, always the
     * same values, in whatever buffers: a backend may compute what follows from them once, and keep
     * it. */
    bool frozen;
    /* Of each loop: an execution ends with RESOURCE_EXHAUSTED if one is to make more. For a device
     * that cannot be stopped (pjrt), which counts in the program; the others look at the run's
     * sx_cancel instead. 0 = any number, which costs nothing. */
    int64_t max_trips;
    /* The graph is a segment of one that assigns variables (backends/placed): it computes as that
     * would, where this makes a difference. */
    bool of_training;
    bool settled; /* the graph is a segment of one that settle() made */
    int parts;    /* the graph computes one of so many parts of the batch, which are its shards; 0 =
                     all of it. Of the numerics alone: they are those of the whole. */
    /* Compiling ends with DEADLINE_EXCEEDED or CANCELLED when it says so, where the backend can
     * (pjrt, with a deadline); NULL = none. Used for the call only. */
    const sx_cancel *cancel;
    sx_budget *memory; /* charged for the memory of the executable and its runs; NULL = none; must
                          outlive them */
} sx_compile_options;

/* ---- Devices and executables ---- */

enum { SX_MAX_COORDS = 4, SX_MAX_MEMORIES = 8 };

/* A memory space of a device, where buffers may lie: memories[0] is the one that programs compute
 * in. Kinds are PJRT's: "device", "pinned_host", "unpinned_host". */
typedef struct sx_memory {
    char kind[32];
    void *handle; /* the backend's */
} sx_memory;

struct sx_device {
    sx_platform *platform;
    int index;        /* in the platform */
    const char *name; /* TensorFlow's: "/device:CPU:0" */
    const char *kind; /* "AMD EPYC (AVX-512, BF16, VNNI)" */
    /* Of a chip in a slice, if known: */
    int process; /* the host that it belongs to */
    int n_coords, core_on_chip;
    int64_t coords[SX_MAX_COORDS];
    int n_memories; /* at least 1 */
    sx_memory memories[SX_MAX_MEMORIES];
};

/* Where the value of a buffer comes from: a file, mostly. */
typedef struct sx_buffer_source {
    sx_status (*read)(void *user, void *data); /* row-major; from any thread, any number of times */
    void *user;
} sx_buffer_source;

typedef struct sx_memory_stats {
    int64_t bytes_in_use, peak_bytes, limit_bytes; /* limit 0 = unknown */
} sx_memory_stats;

/* Properties of an executable, for --explain, `sextant compile` and the compile log. */
typedef struct sx_executable_info {
    int64_t argument_bytes, output_bytes, temporary_bytes, code_bytes;
    int64_t alias_bytes; /* of the outputs: written over arguments, not beside them */
    bool from_cache;     /* loaded from the cache */
    double flops;        /* of one execution */
    int shards, kernels;
    /* Everything that determines its bits: instruction sets, caches, kernel table, shards, library
     * versions. */
    const char *numerics;
} sx_executable_info;

typedef struct sx_kernel_time {
    const char *kernel; /* "conv2d/forward onednn jit:avx512_core" */
    const char *node;   /* graph node, or the fused nodes joined by "+" */
    const char *ops;    /* their operators, joined in the same order; "" = the planner's own step */
    int64_t calls, total_ns;
    int64_t least_ns;    /* of one call, where one worker makes all of it; 0 = unknown */
    double flops, bytes; /* of one call */
    /* Of all calls, on all workers. A call in pieces, of shards or ranges, is several pieces. */
    int64_t pieces;
    double total_flops, total_bytes;
    int threads; /* that compute one piece: more than 1 if a library has threads of its own */
    bool alone;  /* the other workers have nothing to do meanwhile */
    bool host;   /* computed by the operator's host kernel */
    bool bf16;   /* its products are of bfloat16 */
} sx_kernel_time;

/* An operation that a device has computed once. */
typedef struct sx_device_op {
    const char *name; /* as the device's compiler calls it: "fusion.3" */
    const char *node; /* the node of the graph that it was made from; "" = unknown */
    const char *line; /* what computed it: "/device:TPU:0 XLA Ops" */
    int64_t start_ns; /* of sx_now_ns(), nearly */
    double seconds;
} sx_device_op;
typedef void sx_device_op_visit(void *user, const sx_device_op *op);

/* ---- The contract ---- */

typedef enum sx_capability {
    SX_CAN_TRAIN = 1 << 0,
    SX_CAN_SHARD = 1 << 1,    /* supports the compile option `shards` */
    SX_CAN_BF16 = 1 << 2,     /* supports bfloat16 graphs (nn.h: sx_builder_set_precision) */
    SX_IS_EXACT_F64 = 1 << 3, /* float64 graphs run in double: the reference for gradients */
    SX_CAN_LOOP =
        1 << 4, /* supports more than one step per execution (the compile option `steps`) */
    SX_HAS_MEMORY = 1 << 5, /* values are copied to and from memory of the device's own */
} sx_capability;

/* Common heads: a backend's structs start with these, so that the functions below work on all of
 * them. */
struct sx_platform {
    const sx_backend *backend;
    sx_device *const *devices;
    int n_devices;
    struct sx_timeline *timeline; /* the options' */
    atomic_int abandoned; /* runs that were destroyed while pending, and reads and compilations
                             that were left at their deadline, which have not ended */
    atomic_int ending;    /* threads of the backend that end a run, and call its on_done */
};
struct sx_device_buffer {
    sx_device *device;
    int memory;   /* of the device's memories */
    sx_type type; /* static */
    atomic_int refs;
    sx_budget *budget; /* charged for its bytes until it is destroyed; NULL = none */
    atomic_bool lost;  /* an execution that was to assign it failed; until it is written again */
};
struct sx_executable {
    sx_platform *platform;
    atomic_int refs;
    int n_args, n_results;
    sx_type *arg_types;    /* [n_args + n_results], batch fixed */
    sx_type *result_types; /* [n_results], behind them */
    int *result_args;      /* [n_results]: the argument whose buffer it is written to, or -1 */
    int max_runs; /* useful number of concurrent executions, because each uses the whole device; 0 =
                     any number */
    sx_budget *memory;       /* as in the compile options */
    size_t memory_bytes;     /* charged to it */
    size_t run_bytes;        /* of each run: temporaries, charged to it, too */
    atomic_bool run_charged; /* `run_bytes` of a run that is still to be created */
};

typedef enum sx_run_state {
    SX_RUN_IDLE = 0, /* may be submitted */
    SX_RUN_PENDING,  /* submitted, has not ended */
    SX_RUN_ENDED,    /* its status is to be read by sx_run_await() */
} sx_run_state;

struct sx_run {
    sx_executable *executable; /* retained */
    atomic_int refs;           /* of its owner, and of a pending execution */
    atomic_int state;          /* sx_run_state */
    pthread_mutex_t mutex;     /* guards the fields below while pending */
    pthread_cond_t ended;
    sx_status status; /* SX_RUN_ENDED: how it ended */
    void (*on_done)(sx_run *run, void *user);
    void *user;
    const sx_cancel *cancel; /* the owner's; NULL = none */
    bool watched;   /* a thread of the backend ends it and has a reference; written by the owner */
    bool abandoned; /* its owner is gone: the buffers of `checked` are retained until it ends */
    sx_device_buffer **checked; /* [n_args + n_results]: those of the last submission */
};

struct sx_backend {
    const char *name, *about;
    unsigned capabilities;

    sx_status (*open)(const sx_platform_options *options, sx_platform **out);
    void (*close)(sx_platform *platform);
    sx_status (*memory)(sx_device *device, sx_memory_stats *out); /* optional: zeros */

    sx_status (*buffer_create)(sx_device *device, int memory, const sx_type *type,
                               sx_device_buffer **out);
    void (*buffer_destroy)(sx_device_buffer *buffer);
    /* Copies in from row-major host memory, or borrows `data` until the next write to this buffer
     * or its release (borrow = true; a backend may copy anyway). */
    sx_status (*buffer_write)(sx_device_buffer *buffer, const void *data, bool borrow);
    /* Optional: the same of the first bytes of `data` alone, which are lent; what is behind them
     * has any value. */
    sx_status (*buffer_write_first)(sx_device_buffer *buffer, const void *data, int64_t bytes);
    /* Optional: the buffer's own row-major memory, where the host may write its value instead,
     * while no execution uses it. */
    void *(*buffer_data)(sx_device_buffer *buffer);
    /* Optional: the value is what `source` gives, until it is written. The backend reads it when it
     * needs it, and keeps it or reads it again. */
    void (*buffer_set_source)(sx_device_buffer *buffer, const sx_buffer_source *source);
    /* Waits for pending writers, then copies out, row-major. DEADLINE_EXCEEDED: the value has not
     * come before `deadline_ns`; from then on, nothing writes to `data`. */
    sx_status (*buffer_read)(sx_device_buffer *buffer, void *data, int64_t deadline_ns);
    /* Optional: reads n buffers of one platform, with overlapping waits. */
    sx_status (*buffers_read)(int n, sx_device_buffer *const *buffers, void *const *data);

    /* Optional: the value in a new buffer in a memory of a device of the same platform, without a
     * copy on the host; *out stays NULL where that takes one. */
    sx_status (*buffer_copy)(sx_device_buffer *from, sx_device *to, int memory,
                             sx_device_buffer **out);

    /* Optional: the device can read the host's memory at these addresses by itself until unpin().
     * False: it cannot, and copies it first. */
    bool (*pin)(sx_platform *platform, void *data, size_t bytes);
    void (*unpin)(sx_platform *platform, void *data);

    /* Optional: makes what programs with matrix products need, once in a process, which compiling
     * the first of them would do otherwise. From any thread. */
    void (*prepare_products)(sx_platform *platform);
    sx_status (*compile)(sx_platform *platform, const sx_graph *graph,
                         const sx_compile_options *options, sx_executable **out);
    /* Optional: what compile() does to the graph as a whole, and the shards that it would choose
     * with that many threads, for one that is to be cut into segments for several devices of this
     * kind: they compute then what one device would. */
    sx_status (*settle)(sx_platform *platform, const sx_graph *graph,
                        const sx_compile_options *options, int threads, sx_graph **out,
                        int *out_shards);
    void (*executable_destroy)(sx_executable *executable);
    /* Optional: fills in more than the bytes of arguments and outputs, which are already set. */
    sx_status (*info)(const sx_executable *executable, sx_executable_info *out);

    sx_status (*run_create)(sx_executable *executable, sx_run **out);
    void (*run_destroy)(sx_run *run); /* not pending */
    /* Optional: does what only the first execution does, before it. args[n_args]: the variables
     * have their values. */
    sx_status (*prepare)(sx_run *run, sx_device_buffer *const *args);
    /* args[n_args], outputs[n_results]; outputs[i] is ignored if the result assigns a variable.
     * Starts the execution and calls sx_run_end() when the outputs may be read: before it returns,
     * or later, from any thread. An error means that it was not started. Allocates nothing. */
    sx_status (*submit)(sx_run *run, sx_device_buffer *const *args,
                        sx_device_buffer *const *outputs);
    /* Needed if submit() may return before the end. await: waits for the end, without a limit, and
     * calls sx_run_end(). watch: lets a thread of the backend call sx_run_end() at the end; at most
     * once per submission, and instead of await. */
    void (*await)(sx_run *run);
    void (*watch)(sx_run *run);
    /* Optional, of a run that its owner leaves before the end: from then on nothing looks at the
     * run's sx_cancel; waits for what does. */
    void (*leave)(sx_run *run);
    sx_status (*profile)(sx_run *run, const sx_kernel_time **out_rows,
                         int *out_count); /* optional */
    /* Optional: the devices record what they compute, operation by operation, until recorded(),
     * which visits that. record() may be UNIMPLEMENTED. */
    sx_status (*record)(sx_platform *platform);
    sx_status (*recorded)(sx_platform *platform, sx_device_op_visit *visit, void *user);
};

/* ---- Functions for callers ---- */

extern const sx_backend *const sx_backends[]; /* from backends.def, NULL-terminated */
#define SX_BACKEND(name) extern const sx_backend sx_backend_##name;
#include "backends/backends.def"
#undef SX_BACKEND

/* The name of the first that can train. */
const char *sx_default_backend(void);
/* By name; UNAVAILABLE lists those available. */
SX_MUST_USE sx_status sx_platform_open(const char *name, const sx_platform_options *options,
                                       sx_platform **out_platform);
/* NULL is allowed; its buffers and executables must have been released. Waits for threads of the
 * backend that are in an on_done; not to be called in one (sx_platform_calls_here()). False: an
 * execution whose run was destroyed, or a read or a compilation that was left, has not ended within
 * a second. The platform is left open for it, and what it uses, the executable's budget included,
 * must not be freed. */
bool sx_platform_close(sx_platform *platform);
/* Whether this thread is in an on_done of the platform's runs: another one must close it. */
bool sx_platform_calls_here(const sx_platform *platform);

SX_MUST_USE sx_status sx_device_buffer_create(sx_device *device, const sx_type *type,
                                              sx_device_buffer **out);
/* The same, its bytes charged to `budget` until it is destroyed. RESOURCE_EXHAUSTED: over its
 * limit.
 */
SX_MUST_USE sx_status sx_device_buffer_create_within(sx_device *device, const sx_type *type,
                                                     sx_budget *budget, sx_device_buffer **out);
SX_MUST_USE sx_status sx_device_buffer_write(sx_device_buffer *buffer, const void *data,
                                             bool borrow);
/* The same of data that are lent, of which the first bytes alone are needed: the rest is not copied
 * where the device need not have it, and this is much. */
SX_MUST_USE sx_status sx_device_buffer_write_first(sx_device_buffer *buffer, const void *data,
                                                   int64_t bytes);
/* The buffer's memory, row-major, where the host may write its value while no execution uses it;
 * NULL: the device has memory of its own. */
void *sx_device_buffer_data(sx_device_buffer *buffer);
/* The buffer's value is what `source` gives, which is read when it is needed: what an execution
 * reads only to prepare something else takes no memory of its own then. The source must be there
 * until the buffer is written or released. False: the device cannot; write the value. */
bool sx_device_buffer_set_source(sx_device_buffer *buffer, const sx_buffer_source *source);
SX_MUST_USE sx_status sx_device_buffer_read(sx_device_buffer *buffer, void *data);
/* The same until `deadline_ns` (of sx_now_ns(); SX_NO_DEADLINE). DEADLINE_EXCEEDED names a device
 * that has not given the value by then; `data` may be freed. */
SX_MUST_USE sx_status sx_device_buffer_read_within(sx_device_buffer *buffer, void *data,
                                                   int64_t deadline_ns);
/* An error if an execution that failed has lost the value. */
SX_MUST_USE sx_status sx_device_buffer_check_kept(const sx_device_buffer *buffer);
/* Reads buffers[i] into data[i]; the data are undefined after an error. */
SX_MUST_USE sx_status sx_device_buffers_read(int n, sx_device_buffer *const *buffers,
                                             void *const *data);
/* The memory of that kind. NOT_FOUND lists what the device has. */
SX_MUST_USE sx_status sx_device_find_memory(const sx_device *device, const char *kind,
                                            int *out_memory);
/* How much of the device's memory is in use; zeros where the backend does not know. */
SX_MUST_USE sx_status sx_device_get_memory_stats(sx_device *device, sx_memory_stats *out);
/* As sx_device_buffer_create(), in the device's memories[memory]. Arguments and outputs of programs
 * lie in memories[0]. */
SX_MUST_USE sx_status sx_device_buffer_create_in(sx_device *device, int memory, const sx_type *type,
                                                 sx_device_buffer **out);
/* The value in a new buffer in memories[memory] of `to`, a device of any platform: copied from
 * device to device where the backend can, else through host memory. */
SX_MUST_USE sx_status sx_device_buffer_copy(sx_device_buffer *from, sx_device *to, int memory,
                                            sx_device_buffer **out);
/* Memory of the host, from which much is written to buffers, is locked in place, if the device can
 * read it by itself then. True: to be undone by sx_platform_unpin() before it is freed. */
bool sx_platform_pin(sx_platform *platform, void *data, size_t bytes);
void sx_platform_unpin(sx_platform *platform, void *data);
sx_device_buffer *sx_device_buffer_retain(sx_device_buffer *buffer);
void sx_device_buffer_release(sx_device_buffer *buffer); /* NULL is fine */

/* Records what the devices compute from now on, operation by operation, of programs that were
 * compiled on a platform with a timeline. UNIMPLEMENTED: the backend, or the plugin, cannot. */
SX_MUST_USE sx_status sx_platform_record(sx_platform *platform);
/* Ends that, and visits what was recorded, in no order. Texts are valid during the call. */
SX_MUST_USE sx_status sx_platform_recorded(sx_platform *platform, sx_device_op_visit *visit,
                                           void *user);

/* Does, while the caller does something else, a part of compiling that programs with matrix
 * products have in common. */
void sx_platform_prepare_products(sx_platform *platform);
SX_MUST_USE sx_status sx_compile(sx_platform *platform, const sx_graph *graph,
                                 const sx_compile_options *options, sx_executable **out);
/* For a backend, before it allocates an executable's memory: charges the executable's budget, if
 * any, for the constants and the temporaries of the first run; each further run is charged when it
 * is created. RESOURCE_EXHAUSTED with the figures; `largest` describes the largest value, NULL =
 * unknown. If a backend does not call it, sx_compile() charges the figures of info(). */
SX_MUST_USE sx_status sx_executable_charge(sx_executable *e, int64_t temporary_bytes,
                                           int64_t constant_bytes, const char *largest);
/* So much of the constants' charge is now somebody else's to release. */
void sx_executable_hand_over(sx_executable *e, int64_t bytes);
/* Releases the charge, before another one; done automatically when the executable is destroyed. */
void sx_executable_discharge(sx_executable *e);
SX_MUST_USE sx_status sx_executable_get_info(const sx_executable *executable,
                                             sx_executable_info *out);
sx_executable *sx_executable_retain(sx_executable *executable);
void sx_executable_release(sx_executable *executable);

/* ---- Runs: one execution at a time, each run used by one thread at a time ---- */

/* RESOURCE_EXHAUSTED, with the figures: its temporaries exceed the executable's budget. */
SX_MUST_USE sx_status sx_run_create(sx_executable *executable, sx_run **out);
/* NULL is allowed. A pending execution continues; its run is freed after it, and the buffers that
 * it uses exist until then, whoever releases them. */
void sx_run_destroy(sx_run *run);

/* Does what would only slow down the first execution, once variables have their values: packs the
 * weights of a frozen program, touches the memory of temporaries. Args as in sx_run_submit(); those
 * that are not variables may have any values. */
SX_MUST_USE sx_status sx_run_prepare(sx_run *run, sx_device_buffer *const *args);

/* Begins an execution. The buffers must exist until it has ended; variables that it assigns must
 * not be used before, but by executions on the same device that are submitted after it, which see
 * their new values. Errors: INVALID_ARGUMENT names the argument or output that is missing, of
 * another type, on another platform or device than the others, or the same buffer as another one
 * that is written; FAILED_PRECONDITION if the last execution has not been awaited. */
SX_MUST_USE sx_status sx_run_submit(sx_run *run, sx_device_buffer *const *args,
                                    sx_device_buffer *const *outputs);
/* Waits for the execution and returns its status; then the run may be submitted again.
 * DEADLINE_EXCEEDED if it does not end before `deadline_ns` (of sx_now_ns(); SX_NO_DEADLINE): the
 * execution continues and can be awaited again. */
#define SX_NO_DEADLINE INT64_MAX
SX_MUST_USE sx_status sx_run_await(sx_run *run, int64_t deadline_ns);
/* After that, if the deadline was not SX_NO_DEADLINE: waits until the backend's thread has let go
 * of the run, for a moment, so that its platform can be closed. Not while it has an on_done. */
void sx_run_settle(sx_run *run);
/* Calls `on_done` once the pending execution has ended: on a thread of the backend, which it must
 * not block, or immediately if it already has. The execution must still be awaited; that may return
 * before the call. FAILED_PRECONDITION: nothing was submitted, or it has an on_done already. */
SX_MUST_USE sx_status sx_run_on_done(sx_run *run, void (*on_done)(sx_run *run, void *user),
                                     void *user);
/* Loops in the programs of later submissions look at `cancel` between their trips, where the
 * backend can (host, cpu): the run then ends with CANCELLED or DEADLINE_EXCEEDED. NULL = none, as
 * at first; it must outlive them. */
void sx_run_set_cancel(sx_run *run, const sx_cancel *cancel);
/* Submits and awaits, until the deadline of `cancel` (NULL = none), which the program's loops look
 * at, too. */
SX_MUST_USE sx_status sx_run_execute_within(sx_run *run, sx_device_buffer *const *args,
                                            sx_device_buffer *const *outputs,
                                            const sx_cancel *cancel);
/* Whether an execution may still be pending at that deadline: it must not read the caller's memory
 * then (`borrow` of sx_device_buffer_write()). */
bool sx_platform_may_outlast(const sx_platform *platform, int64_t deadline_ns);
/* Submits and awaits. */
SX_MUST_USE sx_status sx_run_execute(sx_run *run, sx_device_buffer *const *args,
                                     sx_device_buffer *const *outputs);
/* Times of this run's executions, by kernel; with compile options' `profile`. The rows are valid
 * until the next call. */
SX_MUST_USE sx_status sx_run_get_profile(sx_run *run, const sx_kernel_time **out_rows,
                                         int *out_count);
/* One execution with its own run: for tests and one-time executions. */
SX_MUST_USE sx_status sx_execute(sx_executable *executable, sx_device_buffer *const *args,
                                 sx_device_buffer *const *outputs);

/* For backends: allocates the types and result_args of an executable's head, with n_args and
 * n_results set; fills in the head for a program of `graph` at `batch`; frees what was allocated.
 */
SX_MUST_USE sx_status sx_executable_allocate(sx_executable *e);
SX_MUST_USE sx_status sx_executable_describe(sx_executable *e, const sx_graph *graph,
                                             int64_t batch);
void sx_executable_deinit(sx_executable *e);

/* For backends: initializes the head of an allocated run; deinitializes it; ends the execution with
 * `status`, of which it takes ownership. */
SX_MUST_USE sx_status sx_run_init(sx_run *run, sx_executable *executable);
void sx_run_deinit(sx_run *run);
void sx_run_end(sx_run *run, sx_status status);
/* Before that end: what the execution was to assign has neither its old nor its new value. */
void sx_run_lose(sx_run *run);

#endif
