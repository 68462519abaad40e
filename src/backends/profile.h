/* Where the time of programs goes, by kernel and node: filled while runs of a platform that was
 * opened with it are destroyed (options.h), read when they all are. Thread-safe. */
#ifndef SX_BACKENDS_PROFILE_H
#define SX_BACKENDS_PROFILE_H

#include "backends/backend.h"

typedef struct sx_profile sx_profile;

SX_MUST_USE sx_status sx_profile_create(sx_profile **out);
void sx_profile_destroy(sx_profile *p); /* NULL is fine */
/* Adds a kernel's calls and time; copies its texts. Out of memory, the row is left out. */
void sx_profile_add(sx_profile *p, const sx_kernel_time *row);
/* The rows, those that took longest first; valid until the next call with this profile. */
const sx_kernel_time *sx_profile_rows(sx_profile *p, int *out_count);

#endif
