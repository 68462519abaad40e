/* Shared by commands on a run: the device, the checkpoint, reading the run's data. */
#ifndef SX_CLI_RUN_ARGS_H
#define SX_CLI_RUN_ARGS_H

#include "command.h"
#include "data_args.h"
#include "device_args.h"
#include "report.h"
#include "train/trainer.h"

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
