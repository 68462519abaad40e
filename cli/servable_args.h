/* Shared by commands on a SavedModel: where it computes, and how much memory it may take. */
#ifndef SX_CLI_SERVABLE_ARGS_H
#define SX_CLI_SERVABLE_ARGS_H

#include "option.h"

/* clang-format off */
/* The rows, for a command whose options struct has the fields `device` and, as int64_t, `threads`
 * and `model_memory_limit`. */
#define SX_SERVABLE_ARGS_ROWS(type)                                                              \
    {"device", SX_OPTION_STRING, SX_OPT(type, device), "device to compute on; default: cpu",     \
     "NAME", .group = "Computing"},                                                              \
    {"threads", SX_OPTION_INT, SX_OPT(type, threads),                                            \
     "threads of the device; default: all available processors", "N", .min = 1, .max = 4096},    \
    {"model-memory-limit", SX_OPTION_SIZE, SX_OPT(type, model_memory_limit),                     \
     "maximum memory of a model: larger ones are refused, large batches run in parts; default: " \
     "a quarter of the machine's memory or of the cgroup's limit",                               \
     "SIZE", .min = 1, .word = {"none", -1}}
/* clang-format on */

#endif
