/* What the plugin has been asked for since it was loaded: tests look it up by its symbol,
 * sx_pjrt_ref_counts, and compare before and after. */
#ifndef PJRT_REF_COUNTS_H
#define PJRT_REF_COUNTS_H

#include <stdatomic.h>

typedef struct ref_counts {
    atomic_long puts, put_bytes; /* copies from the host */
    atomic_long pinned_bytes;    /* of them, from memory that is pinned */
    atomic_long gets;            /* copies to the host */
    atomic_long executions;
    atomic_long donations; /* of arguments that no result overwrites */
    atomic_ulong devices;  /* that have executed: bit k is device k */
} ref_counts;

extern ref_counts sx_pjrt_ref_counts;

#endif
