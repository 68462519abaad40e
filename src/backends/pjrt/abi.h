/* The part of the PJRT C ABI that we use: our own declarations of its structs and slots.
 *
 * Every argument struct begins with {struct_size, extension}. A plugin rejects a struct smaller
 * than its own definition and accepts a larger one; new fields are appended and default to zero.
 * Each of our structs therefore ends with 64 spare zero bytes, included in struct_size, so that a
 * newer plugin reads zeros there (or writes results that we ignore). Structs passed in arrays
 * (sx_pjrt_named) have no spare bytes. A plugin that only accepts its own sizes gets those of
 * version 0.81 (plugin.h: `exact`).
 *
 *   the table, at GetPjrtApi():
 *
 *   0   size_t struct_size        slot i exists if 40 + 8 i < struct_size
 *   8   extension list
 *   16  size_t, pointer, int major (32), int minor (36)
 *   40  function pointers, one per slot; new ones are appended
 *
 * A function takes a pointer to its struct and returns an error, or NULL.
 * Source: the PJRT C API, versions 0.81 to 0.116. */
#ifndef SX_BACKENDS_PJRT_ABI_H
#define SX_BACKENDS_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SX_PJRT_MAJOR = 0,
    SX_PJRT_MINOR = 116,     /* the newest version that these declarations were compared with */
    SX_PJRT_MIN_MINOR = 57,  /* since then, slots have only been appended */
    SX_PJRT_SLOTS_AT = 40,   /* offset of slot 0 */
    SX_PJRT_MAX_SLOTS = 256, /* limit on the size of the table */
};

/* The slots that we call, with their names for messages and their argument structs. */
#define SX_PJRT_SLOTS(X)                                                                \
    X(0, ERROR_DESTROY, "Error_Destroy", object)                                        \
    X(1, ERROR_MESSAGE, "Error_Message", text)                                          \
    X(2, ERROR_CODE, "Error_GetCode", int)                                              \
    X(3, PLUGIN_INITIALIZE, "Plugin_Initialize", nothing)                               \
    X(4, PLUGIN_ATTRIBUTES, "Plugin_Attributes", attributes)                            \
    X(5, EVENT_DESTROY, "Event_Destroy", object)                                        \
    X(8, EVENT_AWAIT, "Event_Await", object)                                            \
    X(9, EVENT_ON_READY, "Event_OnReady", on_ready)                                     \
    X(10, CLIENT_CREATE, "Client_Create", client_create)                                \
    X(11, CLIENT_DESTROY, "Client_Destroy", object)                                     \
    X(12, CLIENT_PLATFORM, "Client_PlatformName", text)                                 \
    X(13, CLIENT_PROCESS, "Client_ProcessIndex", int)                                   \
    X(14, CLIENT_VERSION, "Client_PlatformVersion", text)                               \
    X(15, CLIENT_ALL_DEVICES, "Client_Devices", list)                                   \
    X(16, CLIENT_DEVICES, "Client_AddressableDevices", list)                            \
    X(20, CLIENT_COMPILE, "Client_Compile", compile_args)                               \
    X(22, BUFFER_FROM_HOST, "Client_BufferFromHostBuffer", from_host)                   \
    X(23, DESCRIPTION_ID, "DeviceDescription_Id", int)                                  \
    X(24, DESCRIPTION_PROCESS, "DeviceDescription_ProcessIndex", int)                   \
    X(25, DESCRIPTION_ATTRIBUTES, "DeviceDescription_Attributes", properties)           \
    X(26, DESCRIPTION_KIND, "DeviceDescription_Kind", text)                             \
    X(29, DEVICE_DESCRIPTION, "Device_GetDescription", pointer)                         \
    X(32, DEVICE_MEMORIES, "Device_AddressableMemories", list)                          \
    X(33, DEFAULT_MEMORY, "Device_DefaultMemory", pointer)                              \
    X(34, DEVICE_MEMORY, "Device_MemoryStats", device_memory)                           \
    X(36, MEMORY_KIND, "Memory_Kind", text)                                             \
    X(40, EXECUTABLE_DESTROY, "Executable_Destroy", object)                             \
    X(44, NUM_OUTPUTS, "Executable_NumOutputs", pointer)                                \
    X(45, CODE_SIZE, "Executable_SizeOfGeneratedCodeInBytes", int64)                    \
    X(46, COST_ANALYSIS, "Executable_GetCostAnalysis", properties)                      \
    X(48, OPTIMIZED_PROGRAM, "Executable_OptimizedProgram", optimized)                  \
    X(49, EXECUTABLE_SERIALIZE, "Executable_Serialize", serialized)                     \
    X(50, LOADED_DESTROY, "LoadedExecutable_Destroy", object)                           \
    X(51, LOADED_EXECUTABLE, "LoadedExecutable_GetExecutable", pointer)                 \
    X(52, LOADED_DEVICES, "LoadedExecutable_AddressableDevices", list)                  \
    X(55, EXECUTE, "LoadedExecutable_Execute", execute)                                 \
    X(56, DESERIALIZE_AND_LOAD, "Executable_DeserializeAndLoad", deserialize)           \
    X(58, BUFFER_DESTROY, "Buffer_Destroy", object)                                     \
    X(64, BUFFER_SIZE, "Buffer_OnDeviceSizeInBytes", int64)                             \
    X(68, BUFFER_IS_DELETED, "Buffer_IsDeleted", flag)                                  \
    X(69, BUFFER_COPY, "Buffer_CopyToDevice", copy)                                     \
    X(70, BUFFER_TO_HOST, "Buffer_ToHostBuffer", to_host)                               \
    X(72, BUFFER_READY, "Buffer_ReadyEvent", pointer)                                   \
    X(82, TOPOLOGY_CREATE, "TopologyDescription_Create", topology_create)               \
    X(83, TOPOLOGY_DESTROY, "TopologyDescription_Destroy", object)                      \
    X(86, TOPOLOGY_DEVICES, "TopologyDescription_GetDeviceDescriptions", list)          \
    X(89, COMPILE, "Compile", compile_ahead)                                            \
    X(92, BUFFER_COPY_TO_MEMORY, "Buffer_CopyToMemory", copy)                           \
    X(96, COMPILED_MEMORY, "Executable_GetCompiledMemoryStats", compiled_memory)        \
    X(101, FILL_DESTROY, "AsyncHostToDeviceTransferManager_Destroy", object)            \
    X(102, FILL_DATA, "AsyncHostToDeviceTransferManager_TransferData", fill_data)       \
    X(103, FILL_CREATE, "Client_CreateBuffersForAsyncHostToDevice", fill_create)        \
    X(104, FILL_BUFFER, "AsyncHostToDeviceTransferManager_RetrieveBuffer", fill_buffer) \
    X(110, DMA_MAP, "Client_DmaMap", dma_map)                                           \
    X(111, DMA_UNMAP, "Client_DmaUnmap", dma_unmap)

typedef enum sx_pjrt_slot {
#define SX_PJRT_SLOT_(number, symbol, name, args) SX_PJRT_##symbol = (number),
    SX_PJRT_SLOTS(SX_PJRT_SLOT_)
#undef SX_PJRT_SLOT_
} sx_pjrt_slot;

typedef void *(*sx_pjrt_function)(void *args);

typedef struct sx_pjrt_api {
    size_t struct_size;
    const void *extensions;
    size_t version_size;
    void *version_extensions;
    int major, minor;
    sx_pjrt_function slots[SX_PJRT_MAX_SLOTS]; /* as many as struct_size covers */
} sx_pjrt_api;
_Static_assert(offsetof(sx_pjrt_api, major) == 32 && offsetof(sx_pjrt_api, minor) == 36 &&
                   offsetof(sx_pjrt_api, slots) == SX_PJRT_SLOTS_AT,
               "table layout differs from the ABI");

/* ---- Argument structs ---- */

typedef struct sx_pjrt_head {
    size_t struct_size;
    void *extension;
} sx_pjrt_head;

/* SX_PJRT_STRUCT(name, fields) declares sx_pjrt_<name>; SX_PJRT_ARGS(name, .field = …) makes one
 * with its size set and all other fields zero. */
#define SX_PJRT_STRUCT(name, ...)   \
    typedef struct sx_pjrt_##name { \
        sx_pjrt_head head;          \
        __VA_ARGS__ char spare[64]; \
    } sx_pjrt_##name
#define SX_PJRT_ARGS(name, ...)                             \
    (sx_pjrt_##name)                                        \
    {                                                       \
        .head = {sizeof(sx_pjrt_##name), NULL}, __VA_ARGS__ \
    }
/* The size without spare bytes, that of version 0.81, for plugins that require an exact size. */
#define SX_PJRT_SIZE(name) offsetof(sx_pjrt_##name, spare)

/* No fields: Initialize. */
SX_PJRT_STRUCT(nothing, );
/* One field, the object: Destroy, Await. */
SX_PJRT_STRUCT(object, void *object;);
/* An object; the result is a string owned by the plugin: message, platform, version, kind. */
SX_PJRT_STRUCT(text, const void *object; const char *text; size_t size;);
/* The result is a number. */
SX_PJRT_STRUCT(int, const void *object; int value;);
SX_PJRT_STRUCT(int64, const void *object; int64_t value;);
SX_PJRT_STRUCT(flag, const void *object; bool value;);
SX_PJRT_STRUCT(pointer, const void *object; void *value;);
/* The result is a list. */
SX_PJRT_STRUCT(list, const void *object; void *const *items; size_t count;);
/* The result is a list of properties. */
SX_PJRT_STRUCT(properties, const void *object; size_t count; const struct sx_pjrt_named *items;);
/* `callback` gets the event's error, which is its to destroy, and `user`. */
SX_PJRT_STRUCT(on_ready, void *event; void (*callback)(void *error, void *user); void *user;);
/* The attributes of the plugin. */
SX_PJRT_STRUCT(attributes, const struct sx_pjrt_named *items; size_t count;);

enum {
    SX_PJRT_STRING = 0,
    SX_PJRT_INT64 = 1,
    SX_PJRT_INT64_LIST = 2,
    SX_PJRT_FLOAT = 3,
    SX_PJRT_BOOL = 4
};

typedef struct sx_pjrt_named {
    size_t struct_size;
    void *extension;
    const char *name;
    size_t name_size;
    int type;
    union {
        const char *string;
        int64_t int64;
        const int64_t *int64_list;
        float real;
        bool boolean;
    };
    size_t value_size; /* of strings and lists; otherwise 1 */
} sx_pjrt_named;
_Static_assert(sizeof(sx_pjrt_named) == 56, "must be exact: passed in arrays");

/* The key-value store that the caller of Client_Create offers: functions of ours, which the plugin
 * calls on any thread. An error is made by `*error`, of the plugin. */
typedef void *sx_pjrt_make_error(int code, const char *message, size_t size);

/* Waits for a value. */
typedef struct sx_pjrt_kv_get {
    sx_pjrt_head head;
    const char *key;
    size_t key_size;
    int timeout_ms;
    sx_pjrt_make_error **error;
    void *user;
    char *value; /* the result; freed by release(value) */
    size_t value_size;
    void (*release)(char *value);
} sx_pjrt_kv_get;

/* The same without waiting: NOT_FOUND. */
typedef struct sx_pjrt_kv_try_get {
    sx_pjrt_head head;
    const char *key;
    size_t key_size;
    sx_pjrt_make_error **error;
    void *user;
    char *value;
    size_t value_size;
    void (*release)(char *value);
} sx_pjrt_kv_try_get;

typedef struct sx_pjrt_kv_put {
    sx_pjrt_head head;
    const char *key;
    size_t key_size;
    const char *value;
    size_t value_size;
    sx_pjrt_make_error **error;
    void *user;
} sx_pjrt_kv_put;

SX_PJRT_STRUCT(client_create, const sx_pjrt_named *options; size_t n_options;
               void *(*kv_get)(sx_pjrt_kv_get *args); void *kv_get_user;
               void *(*kv_put)(sx_pjrt_kv_put *args); void *kv_put_user; void *client;
               void *(*kv_try_get)(sx_pjrt_kv_try_get *args); void *kv_try_get_user;);

typedef struct sx_pjrt_program_text {
    size_t struct_size;
    void *extension;
    const char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
    char spare[64];
} sx_pjrt_program_text;

SX_PJRT_STRUCT(compile_args, void *client; const sx_pjrt_program_text *program; const char *options;
               size_t options_size; void *executable;);

SX_PJRT_STRUCT(topology_create, const char *name; size_t name_size; const sx_pjrt_named *options;
               size_t n_options; void *topology;);

/* Compiles ahead of time, for a topology without devices. */
SX_PJRT_STRUCT(compile_ahead, const void *topology; const sx_pjrt_program_text *program;
               const char *options; size_t options_size; void *client; void *executable;);

/* Called twice: with code NULL to get code_size, then to get the code. */
SX_PJRT_STRUCT(optimized, void *executable; sx_pjrt_program_text * program;);

/* Element types (the numbers differ from XLA's PrimitiveType). */
enum {
    SX_PJRT_PRED = 1,
    SX_PJRT_S8,
    SX_PJRT_S16,
    SX_PJRT_S32,
    SX_PJRT_S64,
    SX_PJRT_U8,
    SX_PJRT_U16,
    SX_PJRT_U32,
    SX_PJRT_U64,
    SX_PJRT_F16,
    SX_PJRT_F32,
    SX_PJRT_F64,
    SX_PJRT_BF16,
};
/* How long host memory remains unchanged. */
enum { SX_PJRT_DURING_CALL = 0, SX_PJRT_UNTIL_TRANSFERRED = 1 };

SX_PJRT_STRUCT(from_host, void *client; const void *data; int type; const int64_t *dims;
               size_t n_dims; const int64_t *strides; size_t n_strides; int semantics; void *device;
               void *memory; void *layout; void *done; void *buffer;);

/* Arrays that are filled piece by piece, in the layout of the device. */
typedef struct sx_pjrt_shape {
    size_t struct_size;
    void *extension;
    const int64_t *dims;
    size_t n_dims;
    int type;
} sx_pjrt_shape;
enum { SX_PJRT_SHAPE_BYTES = 36 }; /* without padding */
SX_PJRT_STRUCT(fill_create, void *client; const sx_pjrt_shape *shapes; size_t n_shapes;
               void *layouts; size_t n_layouts; void *memory; void *filling;);
SX_PJRT_STRUCT(fill_data, void *filling; int index; const void *data; int64_t offset; int64_t size;
               bool is_last; void *done;);
SX_PJRT_STRUCT(fill_buffer, void *filling; int index; void *buffer;);

/* Memory of the host that devices read by themselves. */
SX_PJRT_STRUCT(dma_map, void *client; void *data; size_t size;);
SX_PJRT_STRUCT(dma_unmap, void *client; void *data;);

/* To a device, or to a memory of one. */
SX_PJRT_STRUCT(copy, void *buffer; void *to; void *copy;);

/* A layout. Without tiles, minor_to_major = {rank - 1, …, 0} is row-major. */
typedef struct sx_pjrt_layout {
    size_t struct_size;
    void *extension;
    size_t tiled_size;
    void *tiled_extension;
    const int64_t *minor_to_major;
    size_t n_minor_to_major;
    const int64_t *tile_dims;
    const size_t *tile_dim_sizes;
    size_t n_tiles;
    int type; /* 0 = tiled */
    char spare[64];
} sx_pjrt_layout;

SX_PJRT_STRUCT(to_host, void *buffer; sx_pjrt_layout * layout; void *data; size_t size;
               void *event;);

typedef struct sx_pjrt_execute_options {
    size_t struct_size;
    void *extension;
    void **send, **receive;
    size_t n_send, n_receive;
    int launch_id;
    const int64_t *not_donated;
    size_t n_not_donated;
    void *context;
    const char *call_location;
    size_t n_tasks;
    int *task_ids;
    int64_t *incarnations;
    char spare[128];
} sx_pjrt_execute_options;

SX_PJRT_STRUCT(execute, void *executable; sx_pjrt_execute_options * options;
               void *const *const *arguments; size_t n_devices; size_t n_args;
               void **const *outputs; void **events; void *device;);

SX_PJRT_STRUCT(device_memory, void *device; int64_t in_use; int64_t peak; bool has_peak;
               int64_t n_allocations; bool has_n_allocations; int64_t largest; bool has_largest;
               int64_t limit; bool has_limit; int64_t more[11]; bool has_last;);

/* `bytes` are valid until destroy(backing). */
SX_PJRT_STRUCT(serialized, const void *executable; const char *bytes; size_t size; void *backing;
               void (*destroy)(void *backing););

SX_PJRT_STRUCT(deserialize, void *client; const char *bytes; size_t size; void *loaded;
               const char *options; size_t options_size;);

SX_PJRT_STRUCT(compiled_memory, void *executable; int64_t code; int64_t arguments; int64_t outputs;
               int64_t aliases; int64_t temporaries; int64_t host[5]; int64_t peak;);

/* ---- Extensions: a list that begins at sx_pjrt_api.extensions ---- */

typedef struct sx_pjrt_extension {
    size_t struct_size;
    int type;
    const struct sx_pjrt_extension *next;
} sx_pjrt_extension;
_Static_assert(sizeof(sx_pjrt_extension) == 24, "layout differs from the ABI");

enum { SX_PJRT_PROFILER = 1 };
/* Its functions take structs without spare bytes, and return errors of their own. */
typedef struct sx_pjrt_profiler_api {
    size_t struct_size;
    void *private;
    sx_pjrt_function error_destroy, error_message, error_code;
    sx_pjrt_function create, destroy, start, stop, collect;
} sx_pjrt_profiler_api;
typedef struct sx_pjrt_profiler_extension {
    sx_pjrt_extension head;
    const sx_pjrt_profiler_api *api; /* NULL: the plugin has none */
} sx_pjrt_profiler_extension;
typedef struct sx_pjrt_profiler_error {
    size_t struct_size;
    void *private;
    void *error;
    const char *message; /* of error_message */
    size_t size;
} sx_pjrt_profiler_error;
typedef struct sx_pjrt_profiler_code {
    size_t struct_size;
    void *private;
    void *error;
    int code;
} sx_pjrt_profiler_code;
typedef struct sx_pjrt_profiler_create {
    size_t struct_size;
    const char *options; /* a serialized ProfileOptions */
    size_t options_size;
    void *profiler;
} sx_pjrt_profiler_create;
/* destroy, start, stop */
typedef struct sx_pjrt_profiler_object {
    size_t struct_size;
    void *profiler;
} sx_pjrt_profiler_object;
/* With `data` NULL, the plugin may set it to memory of its own, or only the size. */
typedef struct sx_pjrt_profiler_data {
    size_t struct_size;
    void *profiler;
    uint8_t *data;
    size_t size;
} sx_pjrt_profiler_data;
_Static_assert(sizeof(sx_pjrt_profiler_api) == 80 && sizeof(sx_pjrt_profiler_error) == 40 &&
                   offsetof(sx_pjrt_profiler_code, code) == 24 &&
                   sizeof(sx_pjrt_profiler_create) == 32 && sizeof(sx_pjrt_profiler_data) == 32,
               "layout differs from the ABI");

/* The sizes in version 0.81. Later versions only append fields. */
_Static_assert(SX_PJRT_SIZE(client_create) == 88 && SX_PJRT_SIZE(compile_args) == 56 &&
                   SX_PJRT_SIZE(from_host) == 120 && SX_PJRT_SIZE(copy) == 40 &&
                   SX_PJRT_SIZE(dma_map) == 40 && SX_PJRT_SIZE(dma_unmap) == 32 &&
                   SX_PJRT_SIZE(fill_create) == 72 && SX_PJRT_SIZE(fill_data) == 72 &&
                   SX_PJRT_SIZE(fill_buffer) == 40 && sizeof(sx_pjrt_shape) == 40 &&
                   SX_PJRT_SIZE(to_host) == 56 && SX_PJRT_SIZE(execute) == 80 &&
                   SX_PJRT_SIZE(serialized) == 56 && SX_PJRT_SIZE(deserialize) == 64 &&
                   SX_PJRT_SIZE(topology_create) == 56 && SX_PJRT_SIZE(compile_ahead) == 64 &&
                   SX_PJRT_SIZE(optimized) == 32 && SX_PJRT_SIZE(nothing) == 16 &&
                   SX_PJRT_SIZE(object) == 24 && SX_PJRT_SIZE(int) == 28 &&
                   SX_PJRT_SIZE(flag) == 25 && SX_PJRT_SIZE(device_memory) == 185 &&
                   SX_PJRT_SIZE(compiled_memory) == 112 && SX_PJRT_SIZE(program_text) == 48 &&
                   sizeof(sx_pjrt_kv_get) == 80 && sizeof(sx_pjrt_kv_try_get) == 72 &&
                   sizeof(sx_pjrt_kv_put) == 64 && SX_PJRT_SIZE(layout) == 76 &&
                   SX_PJRT_SIZE(execute_options) == 112,
               "field order or sizes differ from the ABI");

#endif
