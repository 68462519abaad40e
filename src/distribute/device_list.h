/* A list of devices that a program is placed on: "cpu:0,cpu:1", "cpu,pjrt:cpu:2".
 *
 *   cpu   cpu:I   host   host:I   a device of that kind; I, its number in the list, may be given,
 *                                 as in TensorFlow's name /cpu:I, long or short
 *   tpu   cuda   pjrt:NAME[:N]    N devices (default 1) of a plugin, one plugin in a list */
#ifndef SX_DISTRIBUTE_DEVICE_LIST_H
#define SX_DISTRIBUTE_DEVICE_LIST_H

#include "distribute/device_spec.h"

typedef struct sx_device_list_spec {
    const sx_placed_device *devices; /* in the arena */
    int n_devices;
    const char *plugin_name; /* NULL = none, or the first found */
    int plugin_devices;      /* of the plugin, all together; 0 = none of the list */
} sx_device_list_spec;

/* Whether the text names several devices. */
bool sx_is_device_list(const char *text);
/* INVALID_ARGUMENT names the device that is wrong. */
SX_MUST_USE sx_status sx_device_list_parse(const char *text, sx_arena *arena,
                                           sx_device_list_spec *out);

#endif
