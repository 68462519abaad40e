/* The pjrt backend's platform: a client with its devices, or one device that stands for `replicas`
 * of them. Its buffers are in buffer.h, its executables in executable.h. */
#ifndef SX_BACKENDS_PJRT_PJRT_H
#define SX_BACKENDS_PJRT_PJRT_H

#include <pthread.h>

#include "backends/backend.h"
#include "backends/pjrt/client.h"

enum { SX_PJRT_MAX_REPLICAS = 1024 };

struct sx_pjrt_device;

typedef struct sx_pjrt_platform {
    sx_platform head;
    sx_pjrt_client *client;
    int replicas;
    sx_batch_norm_scope batch_norm;
    int ids[SX_PJRT_MAX_REPLICAS];      /* of the replicas' devices, in assignments */
    struct sx_pjrt_device *device_rows; /* [head.n_devices] */
    sx_device **devices;
    char *dump_dir, *cache_dir;
    pthread_mutex_t lock; /* of buffers' states: executables share them */
} sx_pjrt_platform;

/* How a program wants a value: along which dimension replicas cut it, or not at all. */
enum { SX_PJRT_WHOLE = -1 };

SX_MUST_USE sx_status sx_pjrt_no_memory(const char *what);
/* Of several failures the first counts; `status` is taken. */
void sx_pjrt_keep_first(sx_status *first, sx_status status);

#endif
