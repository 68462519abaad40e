/* Where the replicas of one execution meet for a collective: all bring an array, one adds up, all
 * take a copy of the result. Those of other processes are met through peers.h. If one fails, it
 * calls the meeting off, and the others learn of it instead of waiting for ever. */
#ifndef PJRT_REF_MEETING_H
#define PJRT_REF_MEETING_H

#include "pjrt_ref/peers.h"

typedef struct ref_meeting ref_meeting;

/* Of `here` replicas of this process, of `replicas`; `peers` is NULL if these are all. */
SX_MUST_USE sx_status ref_meeting_create(int here, int replicas, ref_peers *peers,
                                         ref_meeting **out);
void ref_meeting_destroy(ref_meeting *m); /* NULL is fine; nobody is in it */
void ref_meeting_call_off(ref_meeting *m);

/* `replica` is counted in this process. `mine` and `result` are the caller's; all replicas must
 * come with equal types and the same `channel`: else all get an error. */
SX_MUST_USE sx_status ref_meet(ref_meeting *m, int replica, int64_t channel, ref_array *mine,
                               ref_meet_fn *fn, void *user, ref_array *result);

#endif
