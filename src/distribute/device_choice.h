/* The devices that a strategy is given by name, as TensorFlow's MirroredStrategy(devices):
 *
 *   "/gpu:0,/gpu:2"    "cpu:0, cpu:1"    "/job:localhost/replica:0/task:0/device:TPU:3"
 *
 * Replica r is on the r-th of them. */
#ifndef SX_DISTRIBUTE_DEVICE_CHOICE_H
#define SX_DISTRIBUTE_DEVICE_CHOICE_H

#include "base/arena.h"
#include "distribute/device_spec.h"

typedef struct sx_device_choice {
    const char *text;    /* as given */
    sx_device_spec spec; /* of their type: cpu, cuda, tpu */
    const char *type;    /* "CPU", "GPU", "TPU"; static */
    int n;               /* 0 = none was given */
    const int *numbers;  /* [n], all different; in the arena */
    int greatest;        /* of the numbers */
} sx_device_choice;

/* Errors: INVALID_ARGUMENT: not such a name, devices of two types, one twice, of another process.
 */
SX_MUST_USE sx_status sx_device_choice_parse(const char *text, sx_arena *arena,
                                             sx_device_choice *out);

/* INVALID_ARGUMENT: one of them is not among the `count` devices of `owner`. */
SX_MUST_USE sx_status sx_device_choice_check(const sx_device_choice *choice, const char *owner,
                                             int count);

#endif
