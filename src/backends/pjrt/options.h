/* What the pjrt backend can be told when it is opened. Texts are borrowed for the call. */
#ifndef SX_BACKENDS_PJRT_OPTIONS_H
#define SX_BACKENDS_PJRT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* Several processes whose devices are used as one, and the store by which a plugin finds its peers:
 * process `index` of `count`. Its functions are called on any thread. */
typedef struct sx_pjrt_processes {
    int count, index;
    /* Waits for a key's value and appends it; with timeout_ms 0, NOT_FOUND at once. */
    sx_status (*get)(void *store, sx_bytes key, int64_t timeout_ms, sx_buf *out_value);
    sx_status (*put)(void *store, sx_bytes key, sx_bytes value);
    void *store;
} sx_pjrt_processes;

typedef struct sx_pjrt_options {
    const char *plugin_path; /* the plugin's library; NULL = search (find.c) */
    const char *plugin_name; /* "cpu", "tpu", "cuda", …; NULL = the first found */
    const char *python;      /* an interpreter whose packages are searched; NULL = none */
    const char *dump_dir;    /* directory for every program's StableHLO; NULL = none */
    const char *cache_dir;   /* directory of the compile cache; NULL = none */
    /* Options of the plugin's client, and of XLA for every program, as settings.h reads them; NULL:
     * none. */
    const char *device_options, *xla_options;
    int64_t gpu_memory_limit; /* bytes of each GPU; 0 = the plugin's default */
    int virtual_devices;      /* of XLA's CPU plugin; 0 = the real ones */
    int replicas;             /* number of devices that share each batch; 0 = 1 */
    /* The replicas are those of several processes, equally many of each; it outlives the platform.
     * NULL: those of this one alone. */
    const sx_pjrt_processes *processes;
    const int *chosen; /* [n_chosen]: numbers of the plugin's devices that are used, those of */
    int n_chosen;      /* the replicas if there are several; 0 = the first of all */
    bool ordered_sums; /* replicas add partial results in a fixed tree, not in XLA's order */
} sx_pjrt_options;

#endif
