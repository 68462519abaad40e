/* Devices, values in their memory, and graphs compiled for them: the level below sessions,
 * functions and training.
 *
 *     sx_devices *devices;
 *     sx_compiled_graph *program;
 *     sx_buffer *x, *y;
 *     SX_TRY(sx_devices_open(&devices, .device = "cpu", .threads = 2));
 *     SX_TRY(sx_compile_graph(devices, graph, 32, &program));
 *     SX_TRY(sx_buffer_create(devices, 0, &input, &x));
 *     SX_TRY(sx_compiled_graph_run(program, &x, 1, &y, 1, 0));
 *     SX_TRY(sx_buffer_read(y, data, bytes));
 *     sx_buffer_free(x);
 *     sx_buffer_free(y);
 *     sx_compiled_graph_free(program);
 *     sx_devices_close(devices);
 *
 * sx_compiled_graph_submit() starts a run without waiting for it.
 * sx_list_devices() (sextant/distribute.h) says what a machine has. */
#ifndef SEXTANT_DEVICE_H
#define SEXTANT_DEVICE_H

#include <sextant/distribute.h>
#include <sextant/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ---- */

/* The devices of a strategy, or of one name, opened together. Any thread may use them. */
typedef struct sx_devices sx_devices;

typedef struct sx_devices_args {
    size_t struct_size;
    /* A strategy, which is kept, or the fields after it, as in sx_strategy_args. */
    sx_strategy *strategy;
    const char *device; /* NULL = the first that can train */
    int replicas, virtual_devices;
    const char *pjrt_plugin, *python;
    int threads; /* of cpu; 0 = all processors available to the process */
    int shards;  /* > 0 cuts each batch into that many parts, a multiple of the replicas, so that
                    neither these nor the threads change a bit; the batch of a graph on PJRT devices
                    must be a multiple of it */
} sx_devices_args;

/* The caller closes *out_devices. Errors: INVALID_ARGUMENT: no such device, or contradictory
 * options; UNAVAILABLE: no plugin (says what to install); those of opening the devices. */
#define sx_devices_open(out_devices, ...) \
    sx_devices_open_at(SX_ARGS_(sx_devices_args, __VA_ARGS__), (out_devices))
SX_API SX_MUST_USE sx_status sx_devices_open_at(const sx_devices_args *args,
                                                sx_devices **out_devices);
/* NULL is fine. Buffers and compiled graphs can only be freed from here on; every other use is
 * FAILED_PRECONDITION. The devices' memory is released with the last of them. */
SX_API void sx_devices_close(sx_devices *devices);

/* At least 1. */
SX_API int sx_devices_count(const sx_devices *devices);
/* TensorFlow's name, "/device:CPU:0", and what it is, "AMD EPYC … (AVX-512)"; NULL if there is no
 * such device. Borrowed. */
SX_API const char *sx_devices_name(const sx_devices *devices, int i);
SX_API const char *sx_devices_kind(const sx_devices *devices, int i);

typedef struct sx_device_memory {
    int64_t bytes_in_use, peak_bytes, limit_bytes; /* 0 = unknown */
} sx_device_memory;
/* Errors: OUT_OF_RANGE: no such device; those of the plugin. */
SX_API SX_MUST_USE sx_status sx_devices_memory(const sx_devices *devices, int i,
                                               sx_device_memory *out_memory);

/* ---- Buffers ---- */

/* A value in the memory of a device: static type, no strings. One thread at a time. */
typedef struct sx_buffer sx_buffer;

/* A copy of a tensor on device `i`. The caller frees *out_buffer. Errors: OUT_OF_RANGE: no such
 * device; INVALID_ARGUMENT: a type that devices do not have; RESOURCE_EXHAUSTED. */
SX_API SX_MUST_USE sx_status sx_buffer_create(sx_devices *devices, int i, const sx_tensor *value,
                                              sx_buffer **out_buffer);
SX_API void sx_buffer_free(sx_buffer *buffer); /* NULL is fine */
SX_API sx_type sx_buffer_type(const sx_buffer *buffer);
/* Copy the value, row-major, to or from the host. Errors: INVALID_ARGUMENT: `bytes` is not the size
 * of its type; FAILED_PRECONDITION: the buffer was donated. */
SX_API SX_MUST_USE sx_status sx_buffer_read(const sx_buffer *buffer, void *data, size_t bytes);
SX_API SX_MUST_USE sx_status sx_buffer_write(sx_buffer *buffer, const void *data, size_t bytes);
/* A copy on device `i` of `devices`, the same or others: from device to device where the backend
 * can, otherwise through the host. Errors: as above. */
SX_API SX_MUST_USE sx_status sx_buffer_copy(const sx_buffer *buffer, sx_devices *devices, int i,
                                            sx_buffer **out_buffer);

/* ---- Compiled graphs ---- */

/* A graph compiled for one batch size; immutable: any number of threads may run it. */
typedef struct sx_compiled_graph sx_compiled_graph;

typedef struct sx_compile_graph_args {
    size_t struct_size;
    /* Products of float32 may round their operands to bfloat16, where the device is faster then. */
    bool bfloat16_products;
} sx_compile_graph_args;

/* Compiles a finished graph, which is not needed afterwards, for `batch`, the size of its dimension
 * N; 0 for a graph without it. Errors: INVALID_ARGUMENT: no batch for a graph that has one;
 * UNIMPLEMENTED: an operator that the device does not have (names the node); RESOURCE_EXHAUSTED. */
#define sx_compile_graph(devices, graph, batch, out_program, ...)                                  \
    sx_compile_graph_at((devices), (graph), (batch), SX_ARGS_(sx_compile_graph_args, __VA_ARGS__), \
                        (out_program))
SX_API SX_MUST_USE sx_status sx_compile_graph_at(sx_devices *devices, const sx_graph *graph,
                                                 int64_t batch, const sx_compile_graph_args *args,
                                                 sx_compiled_graph **out_program);
/* No run may be in progress. NULL is fine. */
SX_API void sx_compiled_graph_free(sx_compiled_graph *program);

/* The arguments, inputs and variables, and the results, outputs and new values of variables, in the
 * graph's order. */
typedef struct sx_graph_port {
    const char *name;
    sx_type type;     /* static: with the batch that the graph was compiled for */
    bool is_variable; /* an argument that is one; a result that is the new value of one */
} sx_graph_port;
SX_API int sx_compiled_graph_arg_count(const sx_compiled_graph *program);
SX_API int sx_compiled_graph_result_count(const sx_compiled_graph *program);
/* Borrowed; NULL if there is none. */
SX_API const sx_graph_port *sx_compiled_graph_arg(const sx_compiled_graph *program, int i);
SX_API const sx_graph_port *sx_compiled_graph_result(const sx_compiled_graph *program, int i);

/* The initial value of argument `i`, a variable, on the first device. Depends on seed and name
 * alone. INVALID_ARGUMENT: it is none. */
SX_API SX_MUST_USE sx_status sx_compiled_graph_initial_value(const sx_compiled_graph *program,
                                                             int i, uint64_t seed,
                                                             sx_buffer **out_buffer);

/* Runs the graph on [n_args] buffers of its devices and gives its [n_results] results, which the
 * caller frees. The buffer of a variable that the graph assigns is donated: the result that is its
 * new value takes its memory, and the buffer can only be freed. Waits at most `timeout_ms`
 * milliseconds, 0 = without limit; after DEADLINE_EXCEEDED the device still computes, and what was
 * donated is lost. After an error of the device, what was donated has an undefined value.
 * Errors: INVALID_ARGUMENT: another number of buffers; a buffer that is missing, of another type,
 * on other devices (copy it with sx_buffer_copy()), or given twice where it would be donated;
 * FAILED_PRECONDITION: a buffer that was donated before. Each names the argument. */
SX_API SX_MUST_USE sx_status sx_compiled_graph_run(sx_compiled_graph *program,
                                                   sx_buffer *const *args, int n_args,
                                                   sx_buffer **out_results, int n_results,
                                                   int64_t timeout_ms);

/* ---- Runs that are not waited for ----
 *
 *     sx_event *event;
 *     SX_TRY(sx_compiled_graph_submit(program, args, n_args, &event));
 *     ... prepare the next batch ...
 *     sx_status status = sx_event_await(event, 0, results, n_results);
 *     sx_event_free(event);
 *
 * A PJRT device computes meanwhile; several runs of one graph may be on their way. `cpu` and `host`
 * compute in sx_compiled_graph_submit(), in the calling thread: threads of the caller's do more at
 * once there. */

/* One run: its completion, and the results until they are taken. One thread at a time. */
typedef struct sx_event sx_event;

/* Starts a run; buffers as for sx_compiled_graph_run(). Those that are donated can only be freed
 * from now on; the others must not be written until the run has ended, and may be freed. The caller
 * frees *out_event, before the graph. Errors: those of sx_compiled_graph_run() that are known
 * before the device computes. */
SX_API SX_MUST_USE sx_status sx_compiled_graph_submit(sx_compiled_graph *program,
                                                      sx_buffer *const *args, int n_args,
                                                      sx_event **out_event);
/* Waits for the run, at most `timeout_ms` milliseconds, 0 = without limit, and gives its results,
 * which the caller frees. Errors: DEADLINE_EXCEEDED: it goes on, and can be awaited again; those of
 * the device: there are no results, and what was donated is lost; FAILED_PRECONDITION: it was
 * awaited before; INVALID_ARGUMENT: another number of results. */
SX_API SX_MUST_USE sx_status sx_event_await(sx_event *event, int64_t timeout_ms,
                                            sx_buffer **out_results, int n_results);
/* Calls `on_done` once, when the run has ended or failed: in a thread of the device's, which it
 * must not block, or in this call if it has ended already. It is also called if the event is freed
 * before. The run must still be awaited; that may return before the call. `on_done` may await and
 * free the event, free the graph and buffers, and close the devices, unless another thread uses
 * them: the devices' memory is then released by a thread of its own, soon after `on_done` has
 * returned.
 * FAILED_PRECONDITION: the event has an on_done, or was awaited. */
typedef void sx_event_fn(void *user);
SX_API SX_MUST_USE sx_status sx_event_on_done(sx_event *event, sx_event_fn *on_done, void *user);
/* NULL is fine. A run that has not ended goes on, and its results are dropped. */
SX_API void sx_event_free(sx_event *event);

#ifdef __cplusplus
}
#endif
#endif
