/* The options that say where to compute: of commands that open a run, run a SavedModel, list
 * devices. The command's options struct has the field `device_args`. */
#ifndef SX_CLI_DEVICE_ARGS_H
#define SX_CLI_DEVICE_ARGS_H

#include <sextant/distribute.h>

#include "option.h"

typedef struct sx_device_args {
    const char *device, *batch_norm, *pjrt_plugin, *python, *dump_stablehlo;
    const char *tpu, *tpu_zone, *project, *master;
    const char *device_options, *xla_options;
    const char *strategy, *devices, *parameter_device, *all_reduce;
    int64_t gpu_memory_limit;
    const char *coordinator;
    int64_t threads, replicas, virtual_devices;
    int64_t num_processes, process_id, join_timeout, lost_timeout;
    int64_t inter_op, intra_op, micro_batches;
    bool compile_cache, explain, soft_placement, log_placement;
    bool in_processes; /* the command runs in several processes */
} sx_device_args;

/* As a strategy takes them; texts are borrowed. */
sx_strategy_args sx_device_args_read(const sx_device_args *args);

#define SX_DEVICE_ARGS_DEFAULTS                        \
    {                                                  \
        .compile_cache = true, .soft_placement = true, \
    }
/* Of commands with SX_PROCESS_ROWS. */
#define SX_PROCESS_ARGS_DEFAULTS                                            \
    {                                                                       \
        .compile_cache = true, .soft_placement = true, .in_processes = true \
    }

/* clang-format off */
/* Which device. */
#define SX_DEVICE_ROWS(type)                                                                   \
    {"device", SX_OPTION_STRING, SX_OPT(type, device_args.device),                             \
     "device to compute on: cpu, host, tpu, cuda or pjrt:NAME[:N] (see `sextant devices`); with a " \
     "list, such as cpu:0,cpu:1, each layer runs on the device that its device scope, or the SavedModel, names; default: the first", \
     "NAME", .group = "Device"},                                                               \
    {"pjrt-plugin", SX_OPTION_STRING, SX_OPT(type, device_args.pjrt_plugin),                   \
     "PJRT plugin library; default: searched for", "PATH"},                                    \
    {"python", SX_OPTION_STRING, SX_OPT(type, device_args.python),                             \
     "Python interpreter whose packages are searched for plugins; default: $VIRTUAL_ENV's", "PATH"}, \
    {"device-options", SX_OPTION_STRING, SX_OPT(type, device_args.device_options),             \
     "options of the PJRT plugin's client, such as memory_fraction=0.5,visible_devices=[0,1]", \
     "NAME=VALUE,..."},                                                                        \
    {"xla-options", SX_OPTION_STRING, SX_OPT(type, device_args.xla_options),                   \
     "options of XLA for every program that a PJRT plugin compiles", "NAME=VALUE,..."},        \
    {"gpu-memory-limit", SX_OPTION_SIZE, SX_OPT(type, device_args.gpu_memory_limit),           \
     "maximum memory of each GPU, such as 4G; allocated as needed", "BYTES", .min = 1}

/* Which devices the nodes of a program run on. */
#define SX_SOFT_PLACEMENT_ROWS(type)                                                           \
    {"soft-device-placement", SX_OPTION_FLAG, SX_OPT(type, device_args.soft_placement),        \
     "use another device where a layer names one that does not exist or lacks an operator"}, \
    {"log-device-placement", SX_OPTION_FLAG, SX_OPT(type, device_args.log_placement),          \
     "print to stderr on which device each node of a program runs"}

/* The same, and how its parts run on several devices. */
#define SX_PLACEMENT_ROWS(type)                                                                \
    SX_SOFT_PLACEMENT_ROWS(type),                                                              \
    {"inter-op", SX_OPTION_INT, SX_OPT(type, device_args.inter_op),                            \
     "most parts of a program that run at the same time, on different devices; does not change the " \
     "results; default: no limit", "N", .min = 1, .max = 4096},                                     \
    {"intra-op", SX_OPTION_INT, SX_OPT(type, device_args.intra_op),                            \
     "threads of each CPU device; default: --threads, divided among the devices. Without --shards, " \
     "a training batch has as many shards as the devices have threads in all", "N",                   \
     .min = 1, .max = 4096},                                                                   \
    {"micro-batches", SX_OPTION_INT, SX_OPT(type, device_args.micro_batches),                  \
     "in training, parts of each batch that follow one another through the devices; a divisor of the " \
     "batch size. The results are those of --shards N", "N", .min = 1, .max = 1024}

#define SX_THREADS_ROW(type)                                                                   \
    {"threads", SX_OPTION_INT, SX_OPT(type, device_args.threads),                              \
     "CPU threads; default: all CPUs available to the process", "N", .min = 1, .max = 4096}

#define SX_VIRTUAL_DEVICES_ROW(type)                                                           \
    {"virtual-devices", SX_OPTION_INT, SX_OPT(type, device_args.virtual_devices),              \
     "split cpu or pjrt:cpu into N devices that share each batch", "N", .min = 1,              \
     .max = 1024}

/* Which device, and how it is found; also used by `devices`. */
#define SX_DEVICE_NAME_ROWS(type)                                                              \
    SX_DEVICE_ROWS(type),                                                                      \
    SX_VIRTUAL_DEVICES_ROW(type),                                                              \
    {"tpu", SX_OPTION_STRING, SX_OPT(type, device_args.tpu),                                   \
     "TPU: local, grpc://HOST:PORT or a Cloud TPU name; default: searched for",                \
     "NAME"},                                                                                  \
    {"tpu-zone", SX_OPTION_STRING, SX_OPT(type, device_args.tpu_zone),                         \
     "zone of the Cloud TPU; default: that of this machine", "ZONE"},                          \
    {"project", SX_OPTION_STRING, SX_OPT(type, device_args.project),                           \
     "project of the Cloud TPU; default: that of this machine", "PROJECT"},                    \
    {"master", SX_OPTION_STRING, SX_OPT(type, device_args.master),                             \
     "same as --tpu, as named in RunConfig: local or grpc://HOST:PORT", "ADDRESS"},            \
    {"explain", SX_OPTION_FLAG, SX_OPT(type, device_args.explain),                             \
     "print to stderr how the device was chosen"}

/* The same, and how a run uses its devices. */
#define SX_DEVICE_ARGS_ROWS(type)                                                              \
    SX_DEVICE_NAME_ROWS(type),                                                                 \
    {"replicas", SX_OPTION_INT, SX_OPT(type, device_args.replicas),                            \
     "devices that share each batch; default: all cores of a TPU, else one", "N",              \
     .min = 1, .max = 1024},                                                                   \
    {"devices", SX_OPTION_STRING, SX_OPT(type, device_args.devices),                           \
     "devices that share each batch, by TensorFlow's names, such as /gpu:0,/gpu:2", "NAME,..."}, \
    {"strategy", SX_OPTION_CHOICE, SX_OPT(type, device_args.strategy),                         \
     "how the devices share a model: a copy of the variables on each (mirrored), one that all share (central-storage), " \
     "or each layer on the device of its scope (placed); default: one-device, mirrored if there are several, " \
     "placed on a list",                                                                       \
     .choices = "one-device|mirrored|central-storage|tpu|placed"},                             \
    {"parameter-device", SX_OPTION_STRING, SX_OPT(type, device_args.parameter_device),         \
     "device that holds the variables with --strategy central-storage; default: cpu:0, or the only one that computes", \
     "NAME"},                                                                                  \
    {"all-reduce", SX_OPTION_CHOICE, SX_OPT(type, device_args.all_reduce),                     \
     "how the devices' gradients are added: as the device does it (auto), or gathered and added in a " \
     "fixed order on each (reduction-to-one-device); default: auto",                           \
     .choices = "auto|reduction-to-one-device|nccl|ring|hierarchical-copy"},                   \
    {"batch-norm", SX_OPTION_CHOICE, SX_OPT(type, device_args.batch_norm),                     \
     "batch statistics in training: of the global batch (sync) or of each replica's part, as in " \
     "TensorFlow (replica); default: sync",                                                    \
     .choices = "sync|replica"},                                                               \
    {"dump-stablehlo", SX_OPTION_STRING, SX_OPT(type, device_args.dump_stablehlo),             \
     "write the StableHLO of every compiled program to this directory", "DIR"},                \
    {"compile-cache", SX_OPTION_FLAG, SX_OPT(type, device_args.compile_cache),                 \
     "cache compiled programs"},                                                               \
    SX_PLACEMENT_ROWS(type),                                                                   \
    SX_THREADS_ROW(type)
/* Several processes. */
#define SX_PROCESS_ROWS(type)                                                                  \
    {"coordinator", SX_OPTION_STRING, SX_OPT(type, device_args.coordinator),                   \
     "where several processes share each batch: address of process 0; default: TF_CONFIG's",     \
     "HOST:PORT", .group = "Several processes"},                                               \
    {"num-processes", SX_OPTION_INT, SX_OPT(type, device_args.num_processes),                  \
     "number of processes; each runs the same command, with the same data and --model-dir", "N", \
     .min = 1, .max = 1024},                                                                   \
    {"process-id", SX_OPTION_INT, SX_OPT(type, device_args.process_id),                        \
     "number of this process, from 0; process 0 writes all files", "N", .min = 0, .max = 1023}, \
    {"join-timeout", SX_OPTION_INT, SX_OPT(type, device_args.join_timeout),                    \
     "seconds to wait for all processes; default: 60", "SECONDS", .min = 1, .max = 86400},     \
    {"lost-timeout", SX_OPTION_INT, SX_OPT(type, device_args.lost_timeout),                    \
     "seconds without a message after which a process counts as lost; default: 10", "SECONDS", .min = 2, \
     .max = 3600}
/* clang-format on */

#endif
