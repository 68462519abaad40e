/* Shared by commands on a SavedModel: where it computes, and how much memory it may take. */
#ifndef SX_CLI_SERVABLE_ARGS_H
#define SX_CLI_SERVABLE_ARGS_H

#include "command.h"
#include "device_args.h"

/* clang-format off */
/* The rows, for a command whose options struct has the fields `device_args` and, as int64_t,
 * `model_memory_limit`. */
#define SX_SERVABLE_ARGS_ROWS(type)                                                              \
    SX_DEVICE_ROWS(type),                                                                        \
    SX_VIRTUAL_DEVICES_ROW(type),                                                                \
    {"replicas", SX_OPTION_INT, SX_OPT(type, device_args.replicas),                              \
     "devices among which batches and requests are divided; default: one", "N", .min = 1,        \
     .max = 1024},                                                                               \
    {"devices", SX_OPTION_STRING, SX_OPT(type, device_args.devices),                             \
     "the same, by TensorFlow's names, such as /gpu:0,/gpu:2", "NAME,..."},                      \
    SX_SOFT_PLACEMENT_ROWS(type),                                                               \
    SX_THREADS_ROW(type),                                                                        \
    SX_MODEL_MEMORY_ROW(type)

/* Of these, the row of the memory. */
#define SX_MODEL_MEMORY_ROW(type)                                                                \
    {"model-memory-limit", SX_OPTION_SIZE, SX_OPT(type, model_memory_limit),                     \
     "maximum memory of a model: larger ones are refused, large batches run in parts; default: " \
     "a quarter of the machine's memory or of the cgroup's limit",                               \
     "SIZE", .min = 1, .word = {"none", -1}}
/* clang-format on */

/* A usage error if the name cannot be that of a device. That the device exists is checked when it
 * is opened. */
SX_MUST_USE sx_status sx_servable_args_check(sx_invocation *inv, const sx_device_args *args);

#endif
