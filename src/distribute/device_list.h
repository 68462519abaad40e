/* Lists of devices.
 *
 * Those that a program is placed on, as in `--device`, "cpu:0,cpu:1", "cpu,pjrt:cpu:2":
 *
 *   cpu  host  /cpu:1  /gpu:0     a device of that kind; its number in the list may be given, as in
 *                                 TensorFlow's names, long or short
 *   tpu   cuda   pjrt:NAME[:N]    N devices (default 1) of a plugin, one plugin in a list
 *
 * A program knows them by their types and numbers in the list's order, CPU:0, CPU:1, GPU:0, as in
 * TensorFlow; `host`, which TensorFlow does not have, is of a type of its own, HOST:0. A number
 * that is given must be this one. */
#ifndef SX_DISTRIBUTE_DEVICE_LIST_H
#define SX_DISTRIBUTE_DEVICE_LIST_H

#include "distribute/device_spec.h"

/* A name in a list, and the devices that it stands for. */
typedef struct sx_listed_device {
    const char *text, *type; /* type: NULL = the plugin's, which is known when it is open */
    int devices;
    int number; /* given, of the first of them; -1 = not given */
} sx_listed_device;

typedef struct sx_device_list_spec {
    const char *text;
    const sx_placed_device *devices; /* in the arena */
    int n_devices;
    sx_device_spec plugin; /* `devices` of it, all together; backend NULL = none of the list */
    const sx_listed_device *names; /* in the arena */
    int n_names;
} sx_device_list_spec;

/* Whether the text names several devices. */
bool sx_is_device_list(const char *text);
/* The names between the commas, without blanks around them. INVALID_ARGUMENT: one is missing. */
SX_MUST_USE sx_status sx_device_list_split(const char *text, sx_arena *arena,
                                           const char *const **out_names, int *out_n);
/* INVALID_ARGUMENT names the device that is wrong. */
SX_MUST_USE sx_status sx_device_list_parse(const char *text, sx_arena *arena,
                                           sx_device_list_spec *out);
/* INVALID_ARGUMENT: a number that is given is not that of the list's order. `plugin_type`: of the
 * plugin's devices; NULL = there is none. */
SX_MUST_USE sx_status sx_device_list_check(const sx_device_list_spec *list,
                                           const char *plugin_type);

#endif
