/* Names of compile targets: accelerator types as in Google Cloud, topologies as in libtpu.
 *
 *   v5litepod-4  v5e-8  v6e-8       the number of chips
 *   v2-8  v3-32  v4-8  v5p-16       the number of cores, two per chip
 *   tpu:v5e:2x2  v5e:4x4  v4:2x2x2  chips along each axis
 *   pjrt-cpu  pjrt-cpu:4            XLA's CPU plugin, with a number of virtual devices
 *
 * On v4 and v5p the two cores of a chip are one device ("megacore"); on v2, v3 and tpu7x they are
 * two. A slice has one host per 4 chips (2x2), except that 8 chips of v5e or v6e share one. The
 * figures of the generations are per chip, from Google's Cloud TPU documentation. */
#ifndef SX_BACKENDS_PJRT_TARGET_H
#define SX_BACKENDS_PJRT_TARGET_H

#include <sextant/types.h>

typedef struct sx_tpu_generation {
    const char *name;  /* in libtpu's topologies: "v5e" */
    const char *cloud; /* in accelerator types: "v5litepod" */
    int axes;          /* in its topologies */
    int cores;         /* per chip */
    bool counts_cores; /* v4-8 is 8 cores, v6e-8 is 8 chips */
    bool megacore;     /* the cores of a chip are one device */
    int host_chips;    /* on the largest host */
    double peak_bf16;  /* FLOP/s per chip */
} sx_tpu_generation;

enum { SX_TPU_AXES = 3 };

typedef struct sx_target {
    const sx_tpu_generation *tpu; /* NULL: the CPU plugin */
    int chips[SX_TPU_AXES];       /* along each axis; 1 for unused axes */
    int n_chips;
    int devices;                 /* number of devices: chips, cores or virtual devices */
    char topology[32];           /* "v5e:2x2": for the plugin */
    char type[32];               /* "v5litepod-4": the accelerator type */
    int host_chips[SX_TPU_AXES]; /* chips per host along each axis */
} sx_target;

/* Errors: INVALID_ARGUMENT, with the expected forms, suggestions, and valid counts. */
SX_MUST_USE sx_status sx_target_parse(const char *text, sx_target *out);

#endif
