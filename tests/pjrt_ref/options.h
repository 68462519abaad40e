/* Reading the bytes of CompileOptionsProto (pjrt.md 1.4): how a program is spread. */
#ifndef PJRT_REF_OPTIONS_H
#define PJRT_REF_OPTIONS_H

#include "pjrt_ref/objects.h"

typedef struct ref_spread {
    int64_t device_ordinal; /* -1 = none */
    int64_t replicas, partitions;
    bool is_portable;
    int ids[REF_MAX_DEVICES]; /* of the device assignment */
    int n_ids;                /* 0 = none: the first devices */
} ref_spread;

/* Errors: INVALID_ARGUMENT: not that message; no replicas (on which XLA aborts); more partitions
 * than one, an assignment of another size. */
SX_MUST_USE sx_status ref_read_options(const char *bytes, size_t size, ref_spread *out);

#endif
