/* Where a program runs: devices, strategies and TPU discovery.
 *
 *     sx_strategy *strategy;
 *     SX_TRY(sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = 4));
 *     int64_t batch = 32 * sx_strategy_num_replicas_in_sync(strategy);
 *     SX_TRY(sx_estimator_create(&my_model, sx_run_config_of(.model_dir = "run1",
 *         .train_batch_size = batch, .train_distribute = strategy), NULL, &e));
 *     sx_strategy_release(strategy);
 *
 * Training, evaluation and prediction of an estimator or model all use its strategy. Models and
 * checkpoints do not depend on it: a run can be continued under another strategy. */
#ifndef SEXTANT_DISTRIBUTE_H
#define SEXTANT_DISTRIBUTE_H

#include <signal.h>
#include <stdbool.h>

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ----
 *
 * Device names, here and in command-line options:
 *
 *   cpu   host           the CPU backend; the host kernels, slow and exact
 *   tpu   tpu:N          the TPU of this machine: all its cores, or N
 *   cuda  cuda:N         NVIDIA GPUs through XLA: one, or N
 *   pjrt:NAME[:N]        N devices (default 1) of a PJRT plugin: "cpu", "tpu", "cuda", or a name
 *                        from $PJRT_NAMES_AND_LIBRARY_PATHS
 *   /device:TPU:0        TensorFlow's name of the first device of a type
 *   cpu:0,cpu:1          a list: the program is placed on these (sx_placed_strategy()) */

typedef struct sx_device_info {
    const char *name;                          /* TensorFlow's: "/device:TPU:0" */
    const char *full_name;                     /* "/job:localhost/replica:0/task:0/device:TPU:0" */
    const char *type;                          /* "CPU", "GPU", "TPU" */
    const char *device;                        /* its name in options: "cpu", "tpu", "pjrt:cpu" */
    const char *kind;                          /* "TPU v5 lite", "AMD EPYC … (AVX-512)" */
    int64_t memory_bytes, memory_in_use_bytes; /* 0 = unknown */
    int process;                               /* the host that it belongs to, in a slice */
    int n_coords;                              /* 0 = unknown */
    int64_t coords[4];                         /* of its chip in the torus */
    int core_on_chip;                          /* −1 = unknown */
} sx_device_info;

/* A kind of device that could not be opened, and why: what to install, which process holds it. */
typedef struct sx_missing_device {
    const char *device, *reason;
} sx_missing_device;

typedef struct sx_device_list {
    int n_devices;
    const sx_device_info *devices;
    int n_missing;
    const sx_missing_device *missing;
    /* TensorFlow's TPU system metadata: total cores, hosts, cores per host; 0 without a TPU. */
    int tpu_cores, tpu_workers, tpu_cores_per_worker;
} sx_device_list;

typedef struct sx_list_devices_args {
    size_t struct_size;
    const char *device;      /* only this one, an error if it is missing; NULL = all */
    const char *type;        /* only "CPU", "GPU" or "TPU"; NULL = all */
    const char *pjrt_plugin; /* path of a plugin library; NULL = search */
    const char *python;      /* a Python whose packages are searched for plugins; NULL = that of
                                $VIRTUAL_ENV */
    int virtual_devices;     /* number of devices of cpu and pjrt:cpu; 0 = the real ones */
    /* As in sx_strategy_args. */
    const char *device_options;
    int64_t gpu_memory_limit;
} sx_list_devices_args;

/* Lists the devices of this machine. This loads plugins, which stay loaded. The caller owns
 * *out_list and frees it with sx_device_list_free(). Errors: INVALID_ARGUMENT: no such device or
 * type; with `device`, also the errors of opening it (UNAVAILABLE says what to install). */
#define sx_list_devices(out_list, ...) \
    sx_list_devices_at(SX_ARGS_(sx_list_devices_args, __VA_ARGS__), (out_list))
SX_API SX_MUST_USE sx_status sx_list_devices_at(const sx_list_devices_args *args,
                                                sx_device_list **out_list);
SX_API void sx_device_list_free(sx_device_list *list); /* NULL is fine */

/* ---- Finding a TPU ----
 *
 * Like TensorFlow's TPUClusterResolver. The first of these that names a TPU is used:
 *
 *   tpu, or master                        "local", "grpc://HOST:PORT[,…]", a name
 *   KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS       addresses
 *   TPU_NAME                              as `tpu`
 *   TPU_CONFIG                            {"tpu_node_name", "project", "zone"}
 *   COLAB_TPU_ADDR                        an address
 *   TF_CONFIG                             session_master, or a job tpu_worker
 *   PCI devices of this machine           Google TPU chips: local
 *   the cloud's metadata service          this machine is a TPU VM: local
 *
 * A name is looked up with the Cloud TPU API; its project and zone come from the metadata service
 * unless given. A TPU is local if this machine is one of its workers. */

typedef struct sx_tpu_request {
    size_t struct_size;
    const char *tpu;            /* NULL or "" = search */
    const char *zone, *project; /* of a named TPU; NULL = this machine's */
    const char *master; /* RunConfig's master: like `tpu`, but not a name; exclusive with it */
    const char *api;    /* address of the TPU API; NULL = $CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU, or
                           Google's */
    int timeout_ms;     /* per request; 0 = 3 s for the metadata service, 20 s for the API */
} sx_tpu_request;

/* One source that was consulted, and what it said. */
typedef struct sx_tpu_step {
    const char *source, *found;
} sx_tpu_step;

typedef struct sx_tpu_cluster {
    bool local;       /* attached to this machine, so that a process here can drive it */
    const char *name; /* "local", its name, or its first address */
    const char *accelerator_type; /* "v5litepod-8"; NULL = unknown */
    const char *master;           /* TensorFlow's master: "grpc://10.1.2.3:8470"; "" if local */
    int n_workers;
    const char *const *workers; /* "10.1.2.3:8470"; may be incomplete for a local TPU */
    int n_steps;
    const sx_tpu_step *steps;
    const char *explanation; /* lines of text: what was consulted, found and chosen, and why */
} sx_tpu_cluster;

/* Finds a TPU. The caller owns *out_cluster and frees it with sx_tpu_cluster_free().
 * Errors: UNAVAILABLE: there is none (lists what was consulted); FAILED_PRECONDITION: it is not
 * READY; INVALID_ARGUMENT: both tpu and master, or a malformed value (names its source); errors of
 * the TPU API. */
#define sx_tpu_cluster_resolve(out_cluster, ...) \
    sx_tpu_cluster_resolve_at(SX_ARGS_(sx_tpu_request, __VA_ARGS__), (out_cluster))
SX_API SX_MUST_USE sx_status sx_tpu_cluster_resolve_at(const sx_tpu_request *request,
                                                       sx_tpu_cluster **out_cluster);
SX_API void sx_tpu_cluster_free(sx_tpu_cluster *cluster); /* NULL is fine */

/* ---- Strategies ----
 *
 *   one device        everything on one device
 *   mirrored          each of n replicas computes its part of every batch, and holds a copy of the
 *                     variables; the copies are equal
 *   tpu               mirrored over the cores of a TPU
 *   central storage   the same, but there is one copy of the variables, on the parameter device,
 *                     where gradients are added and the update is made
 *   placed            the nodes of a program on several devices, as the device scopes of its model
 *                     say (sx_device_scope_begin()), with copies between them
 *
 * Virtual devices of `cpu` are fixed parts of the batch. They share one copy of the variables, and
 * sums over the parts are added in a fixed tree, so that neither the number of threads nor a
 * restart changes a bit; batch norm uses the moments of the whole batch. Virtual devices of
 * `pjrt:cpu` are XLA's and have one copy of the variables each.
 *
 * With a fixed number of shards (sx_run_config.shards, --shards), sums are added in a tree over the
 * shards, which the replicas or virtual devices share equally: on any of them whose number divides
 * the shards, and on any number of threads, training computes the same bits. Another number of
 * shards is another order of adding, and may change bits. */

/* Several processes, on one machine or on several, can share each batch, where the plugin joins
 * their devices. Every process runs the same program on the same data, and computes its replicas'
 * part of each batch; the numbers are those of one process with as many replicas. Variables are
 * equal on all. The chief alone writes checkpoints, history and other files, in a directory that
 * all can read. If a process is lost or fails, all end with an error that names it, and can be
 * started again from the last checkpoint. Whoever reaches the chief's port can disturb the run: it
 * belongs on a network of the run's own machines. */

typedef struct sx_strategy sx_strategy;

typedef struct sx_strategy_args {
    size_t struct_size;
    const char *device;         /* NULL = the first that can train; "pjrt" with pjrt_plugin */
    int replicas;               /* 0 = the device's default; for mirrored, all devices */
    int virtual_devices;        /* number of devices of cpu and pjrt:cpu; 0 = the real ones */
    const char *pjrt_plugin;    /* path of the plugin library; NULL = search */
    const char *python;         /* a Python whose packages are searched; NULL = that of
                                   $VIRTUAL_ENV */
    const char *dump_stablehlo; /* for pjrt: directory to write every program to; NULL = none */
    const char *batch_norm; /* scope of the moments: "sync" (all replicas; default), "replica" */
    /* For pjrt: options of the plugin's client, "memory_fraction=0.5,visible_devices=[0,1]", and of
     * XLA for every program, "xla_gpu_autotune_level=2". true and false are bools, whole numbers
     * int64, other numbers float, numbers in brackets a list, the rest strings, which may be in
     * double quotes. A GPU's memory grows as it is needed, unless preallocate=true, or the variable
     * TF_FORCE_GPU_ALLOW_GROWTH is false. NULL = none. Errors: INVALID_ARGUMENT: the plugin does
     * not take an option, or not of this type. */
    const char *device_options, *xla_options;
    int64_t gpu_memory_limit; /* of a CUDA plugin: bytes of each GPU; 0 = its default */
    /* Several processes, for pjrt (see below): process_id of num_processes; process 0, the chief,
     * is at coordinator, "host:port" (default port 8470). `replicas` are those of each process.
     * Seconds in which all processes must have come (0 = 60), and after which one that gives no
     * sign is lost (0 = 10). */
    const char *coordinator;
    int num_processes, process_id;
    int join_timeout_secs, lost_timeout_secs;
    /* Of a placed program. By default a node whose device is not there, or lacks its operator, runs
     * on the first that can (TensorFlow's soft placement); true: that is an error. */
    bool strict_placement;
    /* Says in the log (sextant/log.h), at SX_LOG_INFO, where each node runs: "dense/matmul:
     * (MatMul): /job:localhost/replica:0/task:0/device:CPU:0". */
    bool log_device_placement;
    int inter_op; /* parts of programs that run at the same time, which changes no bits; 0 = one on
                     each device */
    /* Threads of each cpu; 0 = the processors, divided among the cpus. Where nothing else says how
     * many shards a training step has, these are as many as all its cpus have threads, with
     * inter_op and without. */
    int intra_op;
    /* In training, so many parts of each batch follow one another through the devices, so that one
     * device computes a part while the next one computes the part before it. They are shards: the
     * bits are those of as many (sx_run_config.shards). Their number divides the training batch;
     * the last batch of an epoch, which may be smaller, goes through whole if it does not divide
     * that, in as many shards. 0 = each batch goes through whole. */
    int micro_batches;
    /* The devices that are the replicas, by TensorFlow's names: "/gpu:0,/gpu:2", "cpu:0,cpu:1";
     * replica r is on the r-th of them. Of cpu they are virtual devices. NULL = the first. */
    const char *devices;
    /* How gradients and other sums of the replicas are added, by the names of TensorFlow's classes:
     *
     *   auto                      as the device does it: with PJRT, XLA chooses the algorithm
     *   reduction-to-one-device   gathered, and added in a fixed tree over the replicas: the order
     *                             does not depend on XLA, or on which devices they are; needs room
     *                             for every replica's gradients on each
     *   nccl                      of cuda, where XLA's all-reduce is NCCL's: as auto
     *   ring, hierarchical-copy   refused: they cannot be chosen through PJRT (NCCL's ring can,
     * with the environment variable NCCL_ALGO=Ring)
     *
     * cpu always adds in a fixed tree, and takes the first two. NULL = auto. */
    const char *cross_device_ops;
    const char *parameter_device; /* of central storage: has the variables; NULL = cpu:0, or the
                                     one device that computes */
    /* Of several processes: if nonzero before they first agree on something, this one stops waiting
     * for the others: CANCELLED. It is read for as long as the strategy is used. NULL = none */
    const volatile sig_atomic_t *stop;
} sx_strategy_args;

/* Strategies are refcounted: the caller calls sx_strategy_release(); an estimator or model that
 * uses one keeps its own reference. Errors: INVALID_ARGUMENT: no such device, or incompatible
 * options; UNAVAILABLE: no plugin (says what to install), or another process is not there;
 * CANCELLED: `stop`; errors of opening the devices. */
#define sx_one_device_strategy(out_strategy, ...) \
    sx_one_device_strategy_at(SX_ARGS_(sx_strategy_args, __VA_ARGS__), (out_strategy))
SX_API SX_MUST_USE sx_status sx_one_device_strategy_at(const sx_strategy_args *args,
                                                       sx_strategy **out_strategy);
/* Over devices, virtual_devices, replicas, or all devices that the plugin offers. Errors: as above.
 */
#define sx_mirrored_strategy(out_strategy, ...) \
    sx_mirrored_strategy_at(SX_ARGS_(sx_strategy_args, __VA_ARGS__), (out_strategy))
SX_API SX_MUST_USE sx_status sx_mirrored_strategy_at(const sx_strategy_args *args,
                                                     sx_strategy **out_strategy);

/* On the devices of a list: .device = "cpu:0,cpu:1", "cpu,cuda", "/cpu:0,/gpu:0,/gpu:1",
 * "pjrt:cpu:2,cpu"; at most one plugin. They are named in the list's order, the first of each type
 * 0: CPU:0, CPU:1, GPU:0; `host` is HOST:0. A number that is given must be this one. On cpus,
 * training computes the bits that one cpu computes with as many shards, or as many threads. Errors:
 * as above. */
#define sx_placed_strategy(out_strategy, ...) \
    sx_placed_strategy_at(SX_ARGS_(sx_strategy_args, __VA_ARGS__), (out_strategy))
SX_API SX_MUST_USE sx_status sx_placed_strategy_at(const sx_strategy_args *args,
                                                   sx_strategy **out_strategy);

/* TensorFlow's experimental.CentralStorageStrategy: `devices`, `virtual_devices` or `replicas` say
 * what computes. Virtual devices of cpu share the variables of cpu:0: training computes the bits of
 * a mirrored strategy over them, and with a fixed number of shards those of one device. Errors: as
 * above; UNIMPLEMENTED: several devices of a plugin, each of which needs variables of its own, or a
 * parameter device that does not compute. */
#define sx_central_storage_strategy(out_strategy, ...) \
    sx_central_storage_strategy_at(SX_ARGS_(sx_strategy_args, __VA_ARGS__), (out_strategy))
SX_API SX_MUST_USE sx_status sx_central_storage_strategy_at(const sx_strategy_args *args,
                                                            sx_strategy **out_strategy);

typedef struct sx_tpu_strategy_args {
    size_t struct_size;
    const char *tpu, *zone, *project, *master;        /* as in sx_tpu_request */
    int replicas;                                     /* 0 = all cores */
    const char *pjrt_plugin;                          /* libtpu; NULL = search */
    const char *python, *dump_stablehlo, *batch_norm; /* as in sx_strategy_args */
    const char *device_options, *xla_options;         /* as in sx_strategy_args */
} sx_tpu_strategy_args;

/* Finds the TPU, which must be local. Errors: as above and of sx_tpu_cluster_resolve();
 * UNIMPLEMENTED: it is on another host or spans several (the message says what to do). */
#define sx_tpu_strategy(out_strategy, ...) \
    sx_tpu_strategy_at(SX_ARGS_(sx_tpu_strategy_args, __VA_ARGS__), (out_strategy))
SX_API SX_MUST_USE sx_status sx_tpu_strategy_at(const sx_tpu_strategy_args *args,
                                                sx_strategy **out_strategy);

/* Adds a reference; returns its argument. */
SX_API sx_strategy *sx_strategy_retain(sx_strategy *strategy);
SX_API void sx_strategy_release(sx_strategy *strategy); /* NULL is fine */

/* The number of replicas, of all processes: batch sizes are global, and each replica takes an equal
 * part. */
SX_API int sx_strategy_num_replicas_in_sync(const sx_strategy *strategy);
/* The processes that share batches, and the number of this one among them; 1 and 0 if it is alone.
 * Process 0 is the chief: it alone may export and save as. */
SX_API int sx_strategy_num_processes(const sx_strategy *strategy);
SX_API int sx_strategy_process_id(const sx_strategy *strategy);
/* "one-device", "mirrored", "tpu", "central-storage", "placed"; static. */
SX_API const char *sx_strategy_name(const sx_strategy *strategy);
/* One line: "mirrored: 4 replicas on pjrt:cpu". Borrowed. */
SX_API const char *sx_strategy_text(const sx_strategy *strategy);
/* How the devices were chosen, as lines of text; for a TPU, sx_tpu_cluster.explanation. Borrowed.
 */
SX_API const char *sx_strategy_explanation(const sx_strategy *strategy);

#ifdef __cplusplus
}
#endif
#endif
