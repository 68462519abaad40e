/* The platform of the pjrt backend: a client with its devices, or one device that stands for
 * `replicas` of them. See buffer.h for buffers and executable.h for executables. */
#ifndef SX_BACKENDS_PJRT_PJRT_H
#define SX_BACKENDS_PJRT_PJRT_H

#include <pthread.h>

#include "backends/backend.h"
#include "backends/pjrt/client.h"
#include "base/map.h"

enum { SX_PJRT_MAX_REPLICAS = 1024 };

struct sx_pjrt_device;

typedef struct sx_pjrt_platform {
    sx_platform head;
    sx_pjrt_client *client;
    int replicas;
    int processes;    /* that the replicas are in, `local` of them in each; mostly 1 */
    int local, first; /* replicas of this process: replica `first` and those after it */
    int *chosen; /* [n_chosen]: of our device or replica, the client's number; n_chosen is 0 if they
                    are the same */
    int n_chosen;
    bool ordered_sums;
    atomic_bool whole_only;             /* the plugin takes no beginnings of values */
    int ids[SX_PJRT_MAX_REPLICAS];      /* of the replicas' devices, for assignments */
    struct sx_pjrt_device *device_rows; /* [head.n_devices] */
    sx_device **devices;
    char *dump_dir, *cache_dir;
    /* Held by one reader of several buffers, and, with several replicas, by one execution that is
     * being submitted: two may need a shared argument divided along different axes. */
    pthread_mutex_t lock;
    pthread_mutex_t compile_lock;        /* guards: */
    struct sx_pjrt_compiling *compiling; /* programs whose callers did not wait for them */
    struct sx_pjrt_profiler *profiler;   /* while the devices are recorded; else NULL */
    int64_t recorded_ns;                 /* since when */
    sx_map names; /* with a timeline: of a program's instruction -> our node (record.h) */
    sx_arena names_arena;
} sx_pjrt_platform;

/* The client's number of our device i, or of the device of replica i. */
static inline int sx_pjrt_number(const sx_pjrt_platform *p, int i)
{
    return p->n_chosen > 0 ? p->chosen[i] : i;
}

/* How a program expects a value: the dimension along which replicas split it, or whole. */
enum { SX_PJRT_WHOLE = -1 };

/* Keeps the first of several errors; takes ownership of `status`. */
void sx_pjrt_keep_first(sx_status *first, sx_status status);

#endif
