/* Names of devices, whole or in part, as TensorFlow writes them:
 *
 *   /job:localhost/replica:0/task:0/device:CPU:1      /device:CPU:1   /cpu:1   cpu:1   /job:worker
 *
 * "*", and what is missing, is any. Types are compared without case. A type without
 * "device:" is the last part. */
#ifndef SX_GRAPH_DEVICE_NAME_H
#define SX_GRAPH_DEVICE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

enum { SX_DEVICE_JOB_BYTES = 64, SX_DEVICE_TYPE_BYTES = 32, SX_DEVICE_NAME_BYTES = 192 };

typedef struct sx_device_name {
    char job[SX_DEVICE_JOB_BYTES], type[SX_DEVICE_TYPE_BYTES]; /* "" = any; the type in capitals */
    int replica, task, index;                                  /* -1 = any */
} sx_device_name;

#define SX_ANY_DEVICE ((sx_device_name){.replica = -1, .task = -1, .index = -1})

/* INVALID_ARGUMENT says which part is wrong, and what is expected. */
SX_MUST_USE sx_status sx_device_name_parse(const char *text, sx_device_name *out);
/* Text that may not be a name, for messages: at most its beginning, '?' for what is not printable.
 * Returns `out`. */
const char *sx_device_text_show(const char *text, size_t size, char out[SX_DEVICE_NAME_BYTES]);
/* What `inner` says replaces what `name` says, part by part, as a scope inside another one: the
 * number stays where only another type is said. */
void sx_device_name_merge(sx_device_name *name, const sx_device_name *inner);
/* The parts that are said, "/job:worker/device:GPU:1"; "" if there are none. Returns `out`. */
const char *sx_device_name_print(const sx_device_name *name, char out[SX_DEVICE_NAME_BYTES]);
/* Whether a device of the name `whole` is one that `name` means. */
bool sx_device_name_fits(const sx_device_name *name, const sx_device_name *whole);

#endif
