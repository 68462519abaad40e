/* Where a program runs: devices, strategies, and how a TPU is found.
 *
 *     sx_strategy *strategy;
 *     SX_TRY(sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = 4));
 *     int64_t batch = 32 * sx_strategy_num_replicas_in_sync(strategy);
 *     SX_TRY(sx_estimator_create(&my_model, sx_run_config_of(.model_dir = "run1",
 *         .train_batch_size = batch, .train_distribute = strategy), NULL, &e));
 *     sx_strategy_release(strategy);
 *
 * Training, evaluation and prediction of an estimator or model all go through its strategy. A model
 * and its checkpoints know nothing of it: a run goes on under another. */
#ifndef SEXTANT_DISTRIBUTE_H
#define SEXTANT_DISTRIBUTE_H

#include <stdbool.h>

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Devices ------------------------------------------------------------------------------------
 *
 * A device is named by a text, in options and here alike:
 *
 *   cpu   ref            this machine's processors; the reference
 *   tpu   tpu:n          the TPU of this machine: all its cores, or n
 *   cuda  cuda:n         XLA's GPUs, one or n
 *   pjrt:NAME[:n]        n devices (1) of a PJRT plugin: "cpu", "tpu", "cuda", or a name of
 *                        $PJRT_NAMES_AND_LIBRARY_PATHS
 *   /device:TPU:0        TensorFlow's names, of the first device of a type */

typedef struct sx_device_info {
    const char *name;                          /* TensorFlow's: "/device:TPU:0" */
    const char *full_name;                     /* "/job:localhost/replica:0/task:0/device:TPU:0" */
    const char *type;                          /* "CPU", "GPU", "TPU" */
    const char *device;                        /* what an option takes: "cpu", "tpu", "pjrt:cpu" */
    const char *kind;                          /* "TPU v5 lite", "AMD EPYC … (AVX-512)" */
    int64_t memory_bytes, memory_in_use_bytes; /* 0 = unknown */
    int process;                               /* the host that it belongs to, in a slice */
    int n_coords;                              /* 0 = it says none */
    int64_t coords[4];                         /* of its chip in the torus */
    int core_on_chip;                          /* −1 = it does not say */
} sx_device_info;

/* A kind of device that could not be asked, and why: what to install, who holds it. */
typedef struct sx_missing_device {
    const char *device, *reason;
} sx_missing_device;

typedef struct sx_device_list {
    int n_devices;
    const sx_device_info *devices;
    int n_missing;
    const sx_missing_device *missing;
    /* TensorFlow's TPU system metadata: cores in all, hosts, cores of each; 0 without a TPU. */
    int tpu_cores, tpu_workers, tpu_cores_per_worker;
} sx_device_list;

typedef struct sx_list_devices_args {
    size_t struct_size;
    const char *device;      /* only this one; then what is missing is an error. NULL = all */
    const char *type;        /* only "CPU", "GPU" or "TPU"; NULL = all */
    const char *pjrt_plugin; /* a plugin's library; NULL = search */
    const char *python;      /* an interpreter whose packages may hold plugins; NULL = that of
                                $VIRTUAL_ENV */
    int virtual_devices;     /* of cpu and pjrt:cpu: so many; 0 = the real ones */
} sx_list_devices_args;

/* The devices that this machine offers. Plugins are loaded for it, and stay loaded.
 * *out_list is the caller's: sx_device_list_free(). Errors: INVALID_ARGUMENT no such device or
 * type; with `device` also those of opening it (NOT_FOUND says what to install). */
#define sx_list_devices(out_list, ...)                                                     \
    sx_list_devices_at(                                                                    \
        &(sx_list_devices_args){.struct_size = sizeof(sx_list_devices_args), __VA_ARGS__}, \
        (out_list))
SX_API SX_MUST_USE sx_status sx_list_devices_at(const sx_list_devices_args *args,
                                                sx_device_list **out_list);
SX_API void sx_device_list_free(sx_device_list *list); /* NULL is fine */

/* --- Finding a TPU ------------------------------------------------------------------------------
 *
 * As TensorFlow's TPUClusterResolver does. What is said first counts:
 *
 *   tpu, or master                        "local", "grpc://HOST:PORT[,…]", a name
 *   KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS       addresses
 *   TPU_NAME                              as `tpu`
 *   TPU_CONFIG                            {"tpu_node_name", "project", "zone"}
 *   COLAB_TPU_ADDR                        an address
 *   TF_CONFIG                             session_master, or a job tpu_worker
 *   this machine's PCI devices            chips of Google's: local
 *   the cloud's metadata service          this machine is a TPU VM: local
 *
 * A name is looked up in the Cloud TPU API, its project and zone at the metadata service unless
 * given. One of whose workers this machine is, is local. */

typedef struct sx_tpu_request {
    size_t struct_size;
    const char *tpu;            /* NULL or "" = look around */
    const char *zone, *project; /* of a name; NULL = this machine's */
    const char *master;         /* RunConfig's: as `tpu`, but no name; not together with it */
    const char *api; /* the TPU API's address; NULL = $CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU, else
                        Google's */
    int timeout_ms;  /* of one question to the cloud; 0 = 3 s, of the API 20 s */
} sx_tpu_request;

/* One place that was looked at. */
typedef struct sx_tpu_step {
    const char *source, *found;
} sx_tpu_step;

typedef struct sx_tpu_cluster {
    bool local;                   /* this machine's: a program here drives it */
    const char *name;             /* "local", its name, or its first address */
    const char *accelerator_type; /* "v5litepod-8"; NULL = nobody said */
    const char *master;           /* TensorFlow's: "grpc://10.1.2.3:8470"; "" for local */
    int n_workers;
    const char *const *workers; /* "10.1.2.3:8470"; of a local one as far as known */
    int n_steps;
    const sx_tpu_step *steps;
    const char
        *explanation; /* all of it as lines of text: what was looked at, found, chosen, why */
} sx_tpu_cluster;

/* *out_cluster is the caller's: sx_tpu_cluster_free(). Errors: NOT_FOUND there is none: what was
 * looked for, where; FAILED_PRECONDITION it is there, but not READY; INVALID_ARGUMENT both tpu and
 * master, or a value that cannot be read (whose it is); those of asking the TPU API. */
#define sx_tpu_cluster_resolve(out_cluster, ...) \
    sx_tpu_cluster_resolve_at(                   \
        &(sx_tpu_request){.struct_size = sizeof(sx_tpu_request), __VA_ARGS__}, (out_cluster))
SX_API SX_MUST_USE sx_status sx_tpu_cluster_resolve_at(const sx_tpu_request *request,
                                                       sx_tpu_cluster **out_cluster);
SX_API void sx_tpu_cluster_free(sx_tpu_cluster *cluster); /* NULL is fine */

/* --- Strategies ---------------------------------------------------------------------------------
 *
 *   one device   all of it in one place
 *   mirrored     each of n replicas takes its part of every batch; variables stay equal on all
 *   tpu          mirrored over the cores of a TPU
 *
 * Virtual devices of `cpu` are threads' work on fixed parts of the batch: they share one copy of
 * the variables, sums over the parts meet in a fixed tree, so that neither their threads nor a
 * restart changes a bit, and batch norm takes the whole batch's moments. Those of `pjrt:cpu` are
 * XLA's, with a copy of the variables each. */

typedef struct sx_strategy sx_strategy;

typedef struct sx_strategy_args {
    size_t struct_size;
    const char *device;         /* NULL = the first that can train; "pjrt" with pjrt_plugin */
    int replicas;               /* 0 = as the device says; mirrored: all that there are */
    int virtual_devices;        /* of cpu and pjrt:cpu: make so many; 0 = the real ones */
    const char *pjrt_plugin;    /* the plugin's library; NULL = search */
    const char *python;         /* an interpreter whose packages may hold it; NULL = that of
                                   $VIRTUAL_ENV */
    const char *dump_stablehlo; /* of pjrt: a folder that gets every program's text; NULL = no */
    const char *batch_norm;     /* moments over "sync" (all replicas; default) or "replica" */
} sx_strategy_args;

/* Strategies are counted: the caller lets go with sx_strategy_release(); whoever trains with one
 * holds it as well. Errors: INVALID_ARGUMENT no such device, or options that do not go together;
 * NOT_FOUND no plugin (what to install); those of opening the devices. */
#define sx_one_device_strategy(out_strategy, ...) \
    sx_one_device_strategy_at(                    \
        &(sx_strategy_args){.struct_size = sizeof(sx_strategy_args), __VA_ARGS__}, (out_strategy))
SX_API SX_MUST_USE sx_status sx_one_device_strategy_at(const sx_strategy_args *args,
                                                       sx_strategy **out_strategy);
/* Over virtual_devices, replicas, or all devices that the plugin offers. Errors: as above. */
#define sx_mirrored_strategy(out_strategy, ...) \
    sx_mirrored_strategy_at(                    \
        &(sx_strategy_args){.struct_size = sizeof(sx_strategy_args), __VA_ARGS__}, (out_strategy))
SX_API SX_MUST_USE sx_status sx_mirrored_strategy_at(const sx_strategy_args *args,
                                                     sx_strategy **out_strategy);

typedef struct sx_tpu_strategy_args {
    size_t struct_size;
    const char *tpu, *zone, *project, *master;        /* as in sx_tpu_request */
    int replicas;                                     /* 0 = all cores */
    const char *pjrt_plugin;                          /* libtpu; NULL = search */
    const char *python, *dump_stablehlo, *batch_norm; /* as in sx_strategy_args */
} sx_tpu_strategy_args;

/* Finds the TPU, which must be this machine's. Errors: as above and sx_tpu_cluster_resolve();
 * UNIMPLEMENTED it is another host's, or spans several (the message says what to do). */
#define sx_tpu_strategy(out_strategy, ...)                                                 \
    sx_tpu_strategy_at(                                                                    \
        &(sx_tpu_strategy_args){.struct_size = sizeof(sx_tpu_strategy_args), __VA_ARGS__}, \
        (out_strategy))
SX_API SX_MUST_USE sx_status sx_tpu_strategy_at(const sx_tpu_strategy_args *args,
                                                sx_strategy **out_strategy);

/* Counts up; returns its argument. */
SX_API sx_strategy *sx_strategy_retain(sx_strategy *strategy);
SX_API void sx_strategy_release(sx_strategy *strategy); /* NULL is fine */

/* How many parts a batch is cut into: batch sizes are global, and replicas take equal parts. */
SX_API int sx_strategy_num_replicas_in_sync(const sx_strategy *strategy);
/* "one-device", "mirrored", "tpu"; static. */
SX_API const char *sx_strategy_name(const sx_strategy *strategy);
/* One line: "mirrored: 4 replicas on pjrt:cpu". Borrowed. */
SX_API const char *sx_strategy_text(const sx_strategy *strategy);
/* How it came about, as lines of text: of a TPU, sx_tpu_cluster.explanation. Borrowed. */
SX_API const char *sx_strategy_explanation(const sx_strategy *strategy);

#ifdef __cplusplus
}
#endif
#endif
