/* What commands on a run share: where to compute, which checkpoint, reading the run's data. */
#ifndef SX_CLI_RUN_ARGS_H
#define SX_CLI_RUN_ARGS_H

#include "command.h"
#include "data_args.h"
#include "report.h"
#include "train/trainer.h"

typedef struct sx_device_args {
    const char *device;
    int64_t threads;
    bool compile_cache;
} sx_device_args;

#define SX_DEVICE_ARGS_DEFAULTS \
    {                           \
        .compile_cache = true   \
    }

#define SX_DEVICE_ARGS_ROWS(type)                                                                \
    {"device",                                                                                   \
     SX_OPTION_STRING,                                                                           \
     SX_OPT(type, device_args.device),                                                           \
     "where to compute: cpu, ref (`sextant devices`); default: the first",                       \
     "NAME",                                                                                     \
     .group = "computing"},                                                                      \
        {"compile-cache", SX_OPTION_FLAG, SX_OPT(type, device_args.compile_cache),               \
         "keep compiled programs, and use those kept; --no-compile-cache: neither"},             \
    {                                                                                            \
        "threads", SX_OPTION_INT, SX_OPT(type, device_args.threads),                             \
            "of the device; default: as many as the process may use", "N", .min = 1, .max = 4096 \
    }

/* The option --checkpoint of evaluate, predict, export; the struct has the field `checkpoint`. */
#define SX_CHECKPOINT_ROW(type)                                                    \
    {                                                                              \
        "checkpoint", SX_OPTION_STRING, SX_OPT(type, checkpoint),                  \
            "a step, latest, or best (lowest evaluation loss)", "STEP|latest|best" \
    }

/* Opens the run with that checkpoint's variables. `config` says what else matters; its model_dir is
 * set here. A usage error for a checkpoint that is no step. */
SX_MUST_USE sx_status sx_open_run(sx_invocation *inv, const char *dir, const char *checkpoint,
                                  const sx_run_config *config, sx_trainer **out_trainer);

/* Opens data to evaluate or predict with: as told, and where the user is silent as the run was
 * trained. Classes that have other names or another order than the run's are INVALID_ARGUMENT,
 * naming the first. */
SX_MUST_USE sx_status sx_open_run_data(sx_invocation *inv, const sx_words *data,
                                       const sx_data_args *args, const sx_run_info *info,
                                       sx_dataset **out_dataset);
SX_MUST_USE sx_status sx_check_class_names(const sx_dataset *data, const char *what,
                                           const char *const *names, int n);

#endif
