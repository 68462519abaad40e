/* The processes of a client that several of them make together. Each puts the number of its devices
 * in the key-value store of its caller; process 0 also its port, to which the others connect. In a
 * collective they send it what their replicas brought; it adds up, in the order of the replicas, as
 * if all were in one process, and sends the result to each. */
#ifndef PJRT_REF_PEERS_H
#define PJRT_REF_PEERS_H

#include "backends/pjrt/abi.h"
#include "pjrt_ref/array.h"

enum { REF_MAX_PROCESSES = 64 };

typedef struct ref_peers ref_peers;

/* Adds what the replicas brought, brought[replicas], into `sum`. */
typedef void ref_meet_fn(void *user, ref_array *const *brought, int replicas, ref_array *sum);

/* Finds the others, in a minute: counts[processes] are their numbers of devices. */
SX_MUST_USE sx_status ref_peers_create(const sx_pjrt_client_create *caller, int process,
                                       int processes, int devices, int *counts, ref_peers **out);
void ref_peers_destroy(ref_peers *p); /* NULL is fine */
/* Lets the others know that this process takes part in no collective any more. */
void ref_peers_break(ref_peers *p); /* NULL is fine */

/* A collective of `replicas`, of which mine[n] are here. UNAVAILABLE: a process is gone (names it);
 * INTERNAL: they came to different collectives. */
SX_MUST_USE sx_status ref_peers_meet(ref_peers *p, int64_t channel, ref_array *const *mine, int n,
                                     int replicas, ref_meet_fn *fn, void *user, ref_array *result);

#endif
