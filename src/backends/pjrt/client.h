/* A client of a plugin: devices, arrays, compiled programs. Each function is a thin wrapper around
 * a call of the plugin and waits for its completion where necessary.
 *
 * Platforms that use the same plugin share its client, because a TPU allows only one; clients are
 * refcounted. */
#ifndef SX_BACKENDS_PJRT_CLIENT_H
#define SX_BACKENDS_PJRT_CLIENT_H

#include <sextant/types.h>

#include "backends/backend.h"
#include "backends/pjrt/key_values.h"
#include "backends/pjrt/plugin.h"
#include "backends/pjrt/settings.h"
#include "base/arena.h"

typedef struct sx_pjrt_client {
    const sx_pjrt_plugin *plugin;
    void *handle;
    void *const *devices; /* the addressable ones; owned by the plugin */
    int n_devices;
    void *const *all; /* with those of other processes; likewise */
    int n_all;
    sx_pjrt_key_values key_values; /* of several processes */
    char platform[32];             /* "cpu", "tpu", "cuda" */
    char version[128];             /* of the platform, for numerics and cache keys */
    sx_arena arena;
    sx_pjrt_options
        options;          /* of a client; its texts lie in the arena, as do the values of `xla` */
    sx_pjrt_settings xla; /* options of every program */
    int refs;
    struct sx_pjrt_client *next;
} sx_pjrt_client;

/* Opens a client, or adds a reference to one that was opened with the same options of a client:
 * virtual_devices, device_options, xla_options, gpu_memory_limit, processes. Close it as often.
 * INVALID_ARGUMENT: options that the plugin does not take. */
SX_MUST_USE sx_status sx_pjrt_client_open(const sx_pjrt_plugin *plugin,
                                          const sx_pjrt_options *options, sx_pjrt_client **out);
void sx_pjrt_client_close(sx_pjrt_client *client);

/* The device's id for device assignments; its kind, such as "TPU v5 lite". */
SX_MUST_USE sx_status sx_pjrt_device_id(const sx_pjrt_client *c, int index, int *out);
SX_MUST_USE sx_status sx_pjrt_device_kind(const sx_pjrt_client *c, int index, char *buffer,
                                          size_t capacity);

/* The ids of the replicas' devices, `each` of every process, in the order of the processes. Errors:
 * UNIMPLEMENTED: the plugin does not join the devices of processes; INVALID_ARGUMENT: a process has
 * fewer (names it). */
SX_MUST_USE sx_status sx_pjrt_global_ids(const sx_pjrt_client *c, int each, int *out_ids);

/* The device's place in a slice. Leaves unchanged what the plugin does not tell. Stores at most
 * `capacity` coordinates. */
void sx_pjrt_device_place(const sx_pjrt_client *c, int index, int *process, int64_t *coords,
                          int capacity, int *n_coords, int *core_on_chip);

/* Waits for an event, destroys it and returns its error. NULL is SX_OK. */
SX_MUST_USE sx_status sx_pjrt_await(const sx_pjrt_client *c, void *event);

/* The memories of a device that the plugin names, the default one first; `memories` holds
 * one row already, which stays if the plugin knows no memories. */
void sx_pjrt_device_memories(const sx_pjrt_client *c, int index, sx_memory *memories, int *n);

/* Creates an array on a device from host memory with these strides in bytes (NULL: row-major). With
 * `memory` NULL the array lies in the device's default memory; with
 * out_done NULL the data are copied during the call; otherwise they must remain unchanged until the
 * event (pass it to sx_pjrt_await). */
SX_MUST_USE sx_status sx_pjrt_put(const sx_pjrt_client *c, int device, void *memory,
                                  const sx_type *type, const void *data, const int64_t *strides,
                                  void **out_done, void **out_array);
/* Creates an array in this memory, of which the first `bytes` get a value from `data`, in row-major
 * order; the rest is undefined. They must remain unchanged until *out_done; after it, *out_filling
 * is to be destroyed (SX_PJRT_FILL_DESTROY). For devices that lay arrays out as the host does. */
SX_MUST_USE sx_status sx_pjrt_put_first(const sx_pjrt_client *c, void *memory, const sx_type *type,
                                        const void *data, int64_t bytes, void **out_done,
                                        void **out_filling, void **out_array);
/* Starts copying an array to the host, in row-major order; await the event. */
SX_MUST_USE sx_status sx_pjrt_begin_get(const sx_pjrt_client *c, void *array, const sx_type *type,
                                        void *data, void **out_event);
/* Copies an array to the host. */
SX_MUST_USE sx_status sx_pjrt_get(const sx_pjrt_client *c, void *array, const sx_type *type,
                                  void *data);
void sx_pjrt_array_destroy(const sx_pjrt_client *c, void *array); /* NULL is fine */
/* Lets devices read the host's memory by themselves; false: the plugin cannot. */
bool sx_pjrt_pin(const sx_pjrt_client *c, void *data, size_t bytes);
void sx_pjrt_unpin(const sx_pjrt_client *c, void *data);
/* Whether the array was consumed by an execution. */
bool sx_pjrt_array_is_gone(const sx_pjrt_client *c, void *array);

/* Compiles StableHLO text to a loaded executable for `replicas` devices ids[]; `unfused`:
 * compile_options.h. */
SX_MUST_USE sx_status sx_pjrt_compile(const sx_pjrt_client *c, const char *text, size_t size,
                                      int replicas, const int *ids, bool unfused,
                                      void **out_loaded);
/* The executable of a loaded one, for queries; the caller must destroy it. */
SX_MUST_USE sx_status sx_pjrt_executable_of(const sx_pjrt_client *c, void *loaded, void **out);

#endif
