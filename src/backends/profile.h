/* Where the time of programs goes, by kernel and node: filled while runs of a platform that was
 * opened with it are destroyed (options.h), read when they all are. Thread-safe. */
#ifndef SX_BACKENDS_PROFILE_H
#define SX_BACKENDS_PROFILE_H

#include "backends/backend.h"

typedef struct sx_profile sx_profile;

/* What a worker did: one piece of a kernel's call; or a whole execution, of worker 0. */
enum { SX_PROFILE_EXECUTION = -1 };
typedef struct sx_profile_event {
    int64_t start_ns, end_ns; /* of sx_now_ns() */
    int row;                  /* of sx_profile_row(), or SX_PROFILE_EXECUTION */
    int worker, shard;
} sx_profile_event;

/* Records times from the beginning, but no events. */
SX_MUST_USE sx_status sx_profile_create(sx_profile **out);
void sx_profile_destroy(sx_profile *p); /* NULL is fine */
/* Executions that begin from now on are recorded, or not: not those that warm up. */
void sx_profile_record(sx_profile *p, bool on);
/* Events are kept of runs that are created from now on. */
void sx_profile_keep_events(sx_profile *p);

/* ---- For readers ---- */

/* The rows, those that took longest first; valid until the next call with this profile. */
const sx_kernel_time *sx_profile_rows(sx_profile *p, int *out_count);
/* The row that events refer to. */
const sx_kernel_time *sx_profile_row(const sx_profile *p, int row);
/* In the order of their start. */
const sx_profile_event *sx_profile_events(sx_profile *p, int *out_count);
/* The number of executions, and their time together. */
int64_t sx_profile_executions(const sx_profile *p, int64_t *out_ns);

/* ---- For backends: p may be NULL in the questions ---- */

bool sx_profile_is_recording(const sx_profile *p); /* true of NULL: a run keeps its own times */
bool sx_profile_keeps_events(const sx_profile *p);
/* Adds a kernel's calls and time; copies its texts. Returns the row's index; out of memory, -1, and
 * it is left out. */
int sx_profile_add(sx_profile *p, const sx_kernel_time *row);
void sx_profile_add_events(sx_profile *p, const sx_profile_event *events, int n);
void sx_profile_add_execution(sx_profile *p, int64_t ns);

#endif
