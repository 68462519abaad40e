/* The callbacks by which a plugin uses the key-value store of several processes (options.h). */
#ifndef SX_BACKENDS_PJRT_KEY_VALUES_H
#define SX_BACKENDS_PJRT_KEY_VALUES_H

#include "backends/pjrt/abi.h"
#include "backends/pjrt/options.h"

/* The `user` of the callbacks. */
typedef struct sx_pjrt_key_values {
    const sx_pjrt_processes *processes;
    int number; /* of the client among those of its process: clients do not see each other's keys */
} sx_pjrt_key_values;

/* Sets the callbacks of a client; `kv` outlives it. */
void sx_pjrt_offer_key_values(sx_pjrt_client_create *args, sx_pjrt_key_values *kv);

#endif
