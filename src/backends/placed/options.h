/* What the placed backend can be told when it is opened: the devices that a program is placed on.
 */
#ifndef SX_BACKENDS_PLACED_OPTIONS_H
#define SX_BACKENDS_PLACED_OPTIONS_H

#include <stdbool.h>

/* A device of its own, or several devices of the plugin that sx_pjrt_options names. */
typedef struct sx_placed_device {
    const char *backend; /* "cpu", "host" or "pjrt" */
    int devices;         /* of a plugin: how many; 0 = all */
} sx_placed_device;

/* sx_cpu_options.memory_limit_bytes is of each cpu, and of all that programs keep there. */
typedef struct sx_placed_options {
    const sx_placed_device *devices; /* [n_devices]; borrowed for the call; 0 = one cpu */
    int n_devices;
    int threads;       /* of each cpu; 0 = an equal part of sx_cpu_options.threads, at least 1.
                          Those of all cpus together decide about shards, where nothing else does,
                          as the threads of one would. */
    int at_once;       /* segments of programs that run at the same time; 0 = one on each device */
    int micro_batches; /* that follow one another through the devices, where they divide the batch;
                          0 = 1 */
    bool strict;       /* no soft placement: sx_placement_options.strict */
    bool logs;         /* each program's placement goes to the log, as TensorFlow's does */
} sx_placed_options;

#endif
