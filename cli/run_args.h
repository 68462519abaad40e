/* Shared by commands on a run: the device, the checkpoint, reading the run's data. */
#ifndef SX_CLI_RUN_ARGS_H
#define SX_CLI_RUN_ARGS_H

#include "command.h"
#include "data_args.h"
#include "report.h"
#include "train/trainer.h"

typedef struct sx_device_args {
    const char *device, *batch_norm, *pjrt_plugin, *python, *dump_stablehlo;
    const char *tpu, *tpu_zone, *project, *master;
    int64_t threads, replicas, virtual_devices;
    bool compile_cache, explain;
} sx_device_args;

#define SX_DEVICE_ARGS_DEFAULTS \
    {                           \
        .compile_cache = true   \
    }

/* clang-format off */
/* Options of the device; also used by `devices`. */
#define SX_DEVICE_NAME_ROWS(type)                                                              \
    {"device", SX_OPTION_STRING, SX_OPT(type, device_args.device),                             \
     "device to compute on: cpu, host, tpu, cuda or pjrt:NAME[:N] (see `sextant devices`); default: the first", \
     "NAME", .group = "Device"},                                                            \
    {"virtual-devices", SX_OPTION_INT, SX_OPT(type, device_args.virtual_devices),              \
     "split cpu or pjrt:cpu into N devices that share each batch", "N", .min = 1,         \
     .max = 1024},                                                                             \
    {"pjrt-plugin", SX_OPTION_STRING, SX_OPT(type, device_args.pjrt_plugin),                   \
     "PJRT plugin library; default: searched for", "PATH"},                                \
    {"python", SX_OPTION_STRING, SX_OPT(type, device_args.python),                             \
     "Python interpreter whose packages are searched for plugins; default: $VIRTUAL_ENV's", "PATH"},       \
    {"tpu", SX_OPTION_STRING, SX_OPT(type, device_args.tpu),                                   \
     "TPU: local, grpc://HOST:PORT or a Cloud TPU name; default: searched for",          \
     "NAME"},                                                                                  \
    {"tpu-zone", SX_OPTION_STRING, SX_OPT(type, device_args.tpu_zone),                         \
     "zone of the Cloud TPU; default: that of this machine", "ZONE"},                                             \
    {"project", SX_OPTION_STRING, SX_OPT(type, device_args.project),                           \
     "project of the Cloud TPU; default: that of this machine", "PROJECT"},                                       \
    {"master", SX_OPTION_STRING, SX_OPT(type, device_args.master),                             \
     "same as --tpu, as named in RunConfig: local or grpc://HOST:PORT", "ADDRESS"},                      \
    {"explain", SX_OPTION_FLAG, SX_OPT(type, device_args.explain),                             \
     "print to stderr how the device was chosen"}

#define SX_DEVICE_ARGS_ROWS(type)                                                              \
    SX_DEVICE_NAME_ROWS(type),                                                                 \
    {"replicas", SX_OPTION_INT, SX_OPT(type, device_args.replicas),                            \
     "devices that share each batch; default: all cores of a TPU, else one", "N",          \
     .min = 1, .max = 1024},                                                                   \
    {"batch-norm", SX_OPTION_CHOICE, SX_OPT(type, device_args.batch_norm),                     \
     "batch statistics in training: of the global batch (sync) or of each replica's part, as in " \
     "TensorFlow (replica); default: sync",                                                                                   \
     .choices = "sync|replica"},                                                               \
    {"dump-stablehlo", SX_OPTION_STRING, SX_OPT(type, device_args.dump_stablehlo),             \
     "write the StableHLO of every compiled program to this directory", "DIR"},                    \
    {"compile-cache", SX_OPTION_FLAG, SX_OPT(type, device_args.compile_cache),                 \
     "cache compiled programs"},               \
    {"threads", SX_OPTION_INT, SX_OPT(type, device_args.threads),                              \
     "CPU threads; default: all CPUs available to the process", "N", .min = 1, .max = 4096}
/* clang-format on */

/* The strategy for the options; --explain prints it to stderr, also on failure. Conflicting options
 * are a usage error. Release it with sx_strategy_release(). */
SX_MUST_USE sx_status sx_device_args_strategy(sx_invocation *inv, const sx_device_args *args,
                                              sx_strategy **out_strategy);

/* The option --checkpoint of evaluate, predict, export; the struct has the field `checkpoint`. */
#define SX_CHECKPOINT_ROW(type)                                                                \
    {                                                                                          \
        "checkpoint", SX_OPTION_STRING, SX_OPT(type, checkpoint),                              \
            "checkpoint: a step, latest, or best (lowest evaluation loss)", "STEP|latest|best" \
    }

/* Opens the run with that checkpoint's variables. `config` has the other settings; its model_dir is
 * set here. An invalid checkpoint is a usage error. No other checkpoint is taken in place of one
 * that is corrupt or missing. */
SX_MUST_USE sx_status sx_open_run(sx_invocation *inv, const char *dir, const char *checkpoint,
                                  const sx_run_config *config, sx_trainer **out_trainer);

/* Opens the run named by the command's first word on the devices given by the options, with batches
 * of `batch_size`; Ctrl-C stops it. */
SX_MUST_USE sx_status sx_open_run_on(sx_invocation *inv, const sx_device_args *args,
                                     const char *checkpoint, int64_t batch_size,
                                     sx_trainer **out_trainer);

/* Opens data for evaluation or prediction (`mode`); options that are not given are taken from the
 * run. INVALID_ARGUMENT if class names or their order differ from the run's; the message names the
 * first. */
SX_MUST_USE sx_status sx_open_run_data(sx_invocation *inv, const sx_words *data,
                                       const sx_data_args *args, const sx_run_info *info,
                                       sx_mode mode, sx_dataset **out_dataset);

#endif
