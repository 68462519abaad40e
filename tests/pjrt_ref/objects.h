/* What stands behind the handles of the C API.
 *
 *   client     its devices, each with a memory and threads that do its work in order: one computes,
 *              two copy
 *   event      something that will have happened: shared, ends once, well or with an error
 *   cell       an array that will be there when its event has ended: what buffers hold
 *   buffer     a handle on a cell; deleted when it is donated
 *   code       a parsed program with its text and how it is spread: shared by executables
 *
 * A device's handle stands for its description and its memory space too. Nothing here happens in
 * the caller's thread but checks: copies and programs run on the devices' threads, later. */
#ifndef PJRT_REF_OBJECTS_H
#define PJRT_REF_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/pjrt/abi.h"
#include "pjrt_ref/array.h"
#include "pjrt_ref/peers.h"
#include "pjrt_ref/program.h"

enum { REF_MAX_DEVICES = 256, REF_TEXT = 128, REF_ATTRIBUTES = 2, REF_MAX_PINNED = 64 };

/* ---- Events ---- */

typedef void ref_on_ready_fn(void *error, void *user);

typedef struct ref_event {
    atomic_int refs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ready;
    sx_status error; /* of the event; others get copies */
    struct ref_callback *callbacks;
} ref_event;

ref_event *ref_event_create(void); /* NULL = out of memory */
ref_event *ref_event_retain(ref_event *e);
void ref_event_release(ref_event *e); /* NULL is fine */
/* Ends it; takes the error over. */
void ref_event_end(ref_event *e, sx_status error);
/* Waits; a copy of the error. */
SX_MUST_USE sx_status ref_event_await(ref_event *e);
bool ref_event_is_ready(ref_event *e);
SX_MUST_USE sx_status ref_event_on_ready(ref_event *e, ref_on_ready_fn *fn, void *user);
sx_status ref_status_copy(sx_status status);
/* A status as the API's error object; SX_OK is NULL. Takes it over. */
void *ref_error_of(sx_status status);

/* ---- Devices, clients ---- */

typedef void ref_job_fn(void *user);

/* What a device does at once: one thread each, which does its work in order. */
typedef enum ref_engine_kind {
    REF_COMPUTES,
    REF_COPIES_IN,
    REF_COPIES_OUT,
    REF_ENGINES
} ref_engine_kind;

typedef struct ref_engine {
    struct ref_client *client;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct ref_job *first, *last; /* work to be done */
    bool is_over;
} ref_engine;

typedef struct ref_device {
    struct ref_client *client;
    int index; /* in its process */
    int id, process;
    char kind[REF_TEXT], text[REF_TEXT];
    int64_t coords[3];
    sx_pjrt_named attributes[REF_ATTRIBUTES];
    struct ref_device *self; /* for lists of one */
    ref_memory memory;
    ref_engine engines[REF_ENGINES];
} ref_device;

typedef struct ref_client {
    ref_device *devices; /* [n_all], of which those of other processes have no engines */
    ref_device **list;   /* [n_all], by id */
    int n_all, n_devices;
    int process, first; /* its devices are list[first], … */
    ref_peers *peers;   /* NULL = it is of one process */
    char platform[REF_TEXT], version[REF_TEXT];
    long delay_us;                /* before each piece of work */
    long step_us, mib_us, out_us; /* that a step takes, a copy to the device per MiB, one from it */
    atomic_int buffers, executables; /* alive */
    pthread_mutex_t submitting;      /* executions of several devices are queued whole */
    pthread_mutex_t pinning;         /* for the host's memory that devices may read */
    struct {
        const char *data; /* NULL = free */
        size_t size;
    } pinned[REF_MAX_PINNED];
} ref_client;

/* Of counts[processes] devices in each process; takes `peers` over. */
SX_MUST_USE sx_status ref_client_create(const int *counts, int process, int processes,
                                        ref_peers *peers, ref_client **out);
void ref_client_destroy(ref_client *c); /* does what is queued first */
/* Pins memory that is not, or unpins what was pinned. */
SX_MUST_USE sx_status ref_client_pin(ref_client *c, const void *data, size_t size);
SX_MUST_USE sx_status ref_client_unpin(ref_client *c, const void *data);
/* Whether the byte is in pinned memory; NULL: whether any memory is pinned. */
bool ref_client_has_pinned(ref_client *c, const void *data);
/* Queues work of one of its engines; on failure nothing is queued. */
SX_MUST_USE sx_status ref_device_do(ref_device *d, ref_engine_kind kind, ref_job_fn *fn,
                                    void *user);

/* ---- Arrays on devices ---- */

typedef struct ref_cell {
    atomic_int refs;
    ref_event *ready;
    ref_array *array; /* once ready without an error */
} ref_cell;

ref_cell *ref_cell_create(void); /* NULL = out of memory */
ref_cell *ref_cell_retain(ref_cell *c);
void ref_cell_release(ref_cell *c); /* NULL is fine */
/* Gives it its array (taken over) and ends its event. */
void ref_cell_fill(ref_cell *c, ref_array *array);

typedef struct ref_buffer {
    ref_client *client;
    ref_device *device;
    sx_type type;
    ref_cell *cell;
    atomic_bool is_deleted;
    int64_t layout[SX_MAX_RANK]; /* minor_to_major that the device says it has */
} ref_buffer;

SX_MUST_USE sx_status ref_buffer_create(ref_device *device, const sx_type *type, ref_buffer **out);
void ref_buffer_destroy(ref_buffer *b);

/* ---- Programs ---- */

typedef struct ref_code {
    atomic_int refs;
    ref_program *program;
    char *text;
    size_t size;
    char fingerprint[32];
    int replicas;
    bool is_portable;         /* runs on any one device */
    int ids[REF_MAX_DEVICES]; /* [replicas] */
    int n_outputs;
    int *output_types;    /* [n_outputs], the API's */
    int64_t *output_dims; /* all, one after the other */
    size_t *output_ranks; /* [n_outputs] */
    int64_t argument_bytes, output_bytes, alias_bytes;
    sx_pjrt_named costs[2];
} ref_code;

/* Copies the text. `ids`: [replicas]. */
SX_MUST_USE sx_status ref_code_create(const char *text, size_t size, int replicas, const int *ids,
                                      bool is_portable, ref_code **out);
ref_code *ref_code_retain(ref_code *c);
void ref_code_release(ref_code *c); /* NULL is fine */

typedef struct ref_loaded {
    ref_client *client;
    ref_code *code;
    ref_device **devices; /* [n]: of this process */
    int n, first;         /* its replicas are `first` and those after it */
} ref_loaded;

SX_MUST_USE sx_status ref_loaded_create(ref_client *client, ref_code *code, ref_loaded **out);
/* The same of a program's text, for the devices that CompileOptionsProto's bytes say. */
SX_MUST_USE sx_status ref_loaded_of_text(ref_client *client, const char *text, size_t size,
                                         const char *options, size_t options_size,
                                         ref_loaded **out);
void ref_loaded_destroy(ref_loaded *l);

/* Submits an execution on devices[n]: args[n][n_args] are read, those that `donates` says are dead
 * from now on; outputs[n][n_outputs] and events[n] (events may be NULL) are set. */
SX_MUST_USE sx_status ref_submit(ref_loaded *l, ref_device *const *devices, int n,
                                 ref_buffer *const *const *args, const bool *donates,
                                 ref_buffer **const *outputs, ref_event **events);

/* Element types of the API. */
sx_dtype ref_dtype_of(int type); /* SX_DTYPE_NONE = unknown */
int ref_type_code(sx_dtype dtype);

#endif
