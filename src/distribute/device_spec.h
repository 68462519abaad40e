/* Device names, as in `--device` and RunConfig's `device`.
 *
 *   cpu   host           the CPU backend; the host kernels, slow and exact
 *   tpu   cuda           devices of that kind, through their PJRT plugin
 *   pjrt:NAME[:N]        N devices of the plugin NAME ("cpu", "tpu", "cuda", or a name in
 *                        $PJRT_NAMES_AND_LIBRARY_PATHS)
 *   tpu:N  cuda:N        N devices of that kind
 *   pjrt                 the first plugin found
 *   /device:TPU:0        TensorFlow's name, long or short, of the first device of a type */
#ifndef SX_DISTRIBUTE_DEVICE_SPEC_H
#define SX_DISTRIBUTE_DEVICE_SPEC_H

#include "backends/backend.h"
#include "base/arena.h"

enum { SX_MAX_REPLICAS = 1024 };

typedef struct sx_device_spec {
    const char *backend;     /* "cpu", "host", "pjrt"; static */
    const char *plugin_name; /* for pjrt; in the arena; NULL = the first found */
    int devices;             /* their number; 0 = not given */
    bool is_tpu;             /* "tpu": found by sx_tpu_cluster_resolve() */
} sx_device_spec;

/* Errors: INVALID_ARGUMENT, with suggestions. */
SX_MUST_USE sx_status sx_device_spec_parse(const char *text, sx_arena *arena, sx_device_spec *out);

/* TensorFlow's name of one device of this process (graph/device_name.h), "/gpu:2", "CPU:0",
 * "/device:TPU:1": its kind, of one device, its type ("GPU", static), its number. Errors: as above.
 */
SX_MUST_USE sx_status sx_device_spec_parse_one(const char *text, sx_device_spec *out,
                                               const char **out_type, int *out_number);
/* Whether the text is such a name, where `tpu:2` and `cuda:2` are two devices. */
bool sx_device_spec_is_name(const char *text);

/* The type of its devices, static: "CPU" of cpu and pjrt:cpu, "HOST" of host, "TPU", "GPU". NULL:
 * known when the plugin is open. */
const char *sx_device_spec_type(const sx_device_spec *spec);

/* Whether a device's name, "/device:GPU:0", is of a type, "GPU". */
bool sx_device_is_of_type(const char *device_name, const char *type);

/* Opens the platform. Errors: the backend's; FAILED_PRECONDITION: the plugin offers another type of
 * device than requested (`tpu` must not silently run elsewhere because of the library given). */
SX_MUST_USE sx_status sx_device_open(const sx_device_spec *spec, const sx_platform_options *options,
                                     sx_platform **out);

/* The device name, "cpu", "tpu", "pjrt:cpu", "pjrt", in the arena; NULL if out of memory. */
const char *sx_device_spec_text(const sx_device_spec *spec, sx_arena *arena);

#endif
