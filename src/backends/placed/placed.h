/* The placed backend: several devices as one. Internals, shared by placed*.c of this directory.
 *
 *   buffer      a value with a copy on each device that has read it
 *   executable  the graph's segments, each compiled for its device
 *   run         each segment's run, and buffers of the values between them
 *
 * Each device has a thread, which runs the segments that are ready, one after another: it brings
 * their arguments there, submits, and waits. */
#ifndef SX_BACKENDS_PLACED_PLACED_H
#define SX_BACKENDS_PLACED_PLACED_H

#include "backends/backend.h"
#include "graph/partition.h"
#include "graph/placement.h"

typedef struct sx_placed_platform sx_placed_platform;
typedef struct sx_placed_run sx_placed_run;

/* A segment of a run that is ready. */
typedef struct sx_placed_task {
    sx_placed_run *run;
    int segment;
    struct sx_placed_task *next;
} sx_placed_task;

/* The thread of a device. */
typedef struct sx_placed_worker {
    sx_placed_platform *platform;
    pthread_t thread;
    pthread_cond_t wake;
    sx_placed_task *first, **last; /* ready, in that order */
} sx_placed_worker;

struct sx_placed_platform {
    sx_platform head;
    sx_device device; /* all of them */
    sx_device *devices[1];
    char *name, kind[64];
    sx_platform **platforms;
    int n_platforms;
    sx_device **subs;             /* [n_subs] */
    sx_placement_device *placing; /* [n_subs] */
    const char **names, **types;  /* [n_subs]: whole names; "CPU" */
    sx_budget *budgets; /* [n_subs]: of cpus of limited memory; NULL = there is no limit */
    int n_subs;
    bool alike;  /* all are cpus: programs are settled as a whole */
    int threads; /* of all cpus together */
    int micro_batches;
    bool strict, logs;
    atomic_bool warned;      /* of a program that names no device */
    _Atomic int64_t divided; /* the largest batch that micro-batches divide */
    sx_arena arena;
    pthread_mutex_t lock;      /* guards the workers and what follows */
    sx_placed_worker *workers; /* [n_workers] */
    int n_workers;
    int running, at_once;
    bool ends;
};

/* What device `sub` is charged for: all that programs keep there; NULL = it has no limit, or what
 * it has is charged to `own`. */
static inline sx_budget *sx_placed_budget(const sx_placed_platform *p, int sub, sx_budget *own)
{
    return own != NULL || p->budgets == NULL || p->budgets[sub].limit_bytes == 0 ? own
                                                                                 : &p->budgets[sub];
}

/* ---- buffer.c: values ---- */

SX_MUST_USE sx_status sx_placed_buffer_create(sx_device *device, int memory, const sx_type *type,
                                              sx_device_buffer **out);
void sx_placed_buffer_destroy(sx_device_buffer *buffer);
SX_MUST_USE sx_status sx_placed_buffer_write(sx_device_buffer *buffer, const void *data,
                                             bool borrow);
SX_MUST_USE sx_status sx_placed_buffer_read(sx_device_buffer *buffer, void *data,
                                            int64_t deadline_ns);
/* The value on device `sub`, brought there if need be. */
SX_MUST_USE sx_status sx_placed_value(sx_device_buffer *buffer, int sub, sx_device_buffer **out);
/* Memory on device `sub` for a value that is to be written. */
SX_MUST_USE sx_status sx_placed_room(sx_device_buffer *buffer, int sub, sx_device_buffer **out);
/* From now on the value is that on device `sub`. */
void sx_placed_written(sx_device_buffer *buffer, int sub);
/* The same, in *made, which gets the memory that the buffer had there, or NULL. */
void sx_placed_take(sx_device_buffer *buffer, int sub, sx_device_buffer **made);
/* Copies to *to, on another device; it may become another buffer. `host`: the memory of `from`, if
 * the host sees it and nothing is written there while *to is read, which may read it there; or
 * NULL.
 */
SX_MUST_USE sx_status sx_placed_copy(sx_device_buffer *from, const void *host,
                                     sx_device_buffer **to);

/* ---- executable.c ---- */

typedef struct sx_placed_segment {
    sx_executable *executable;
    int device;
    const sx_segment_end *in, *out; /* [the executable's arguments], [results] */
    int *next;                      /* [n_next]: the segments that wait for it */
    int n_next, n_before;           /* how many it waits for */
} sx_placed_segment;

typedef struct sx_placed_executable {
    sx_executable head;
    sx_partition partition; /* without graphs */
    sx_placed_segment *segments;
    int n_segments;
    bool assigns;
    int parts;            /* of the batch, that have segments of their own; 0 = none */
    const char *numerics; /* a segment's, or in the partition's arena; NULL = there is no segment */
} sx_placed_executable;

SX_MUST_USE sx_status sx_placed_compile(sx_platform *platform, const sx_graph *graph,
                                        const sx_compile_options *options, sx_executable **out);
void sx_placed_executable_destroy(sx_executable *executable);
SX_MUST_USE sx_status sx_placed_info(const sx_executable *executable, sx_executable_info *out);

/* ---- run.c ---- */

SX_MUST_USE sx_status sx_placed_run_create(sx_executable *executable, sx_run **out);
void sx_placed_run_destroy(sx_run *run);
SX_MUST_USE sx_status sx_placed_prepare(sx_run *run, sx_device_buffer *const *args);
SX_MUST_USE sx_status sx_placed_submit(sx_run *run, sx_device_buffer *const *args,
                                       sx_device_buffer *const *outputs);
void sx_placed_await(sx_run *run);
void sx_placed_watch(sx_run *run);
void sx_placed_leave(sx_run *run);
SX_MUST_USE sx_status sx_placed_profile(sx_run *run, const sx_kernel_time **out_rows,
                                        int *out_count);
/* On a device's thread. */
void sx_placed_run_segment(sx_placed_run *run, int segment);
/* Puts a segment, whose arguments are there, to its device's queue. */
void sx_placed_enqueue(sx_placed_platform *p, int device, sx_placed_task *task);

#endif
