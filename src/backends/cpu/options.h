/* What the cpu backend can be told when it is opened. */
#ifndef SX_BACKENDS_CPU_OPTIONS_H
#define SX_BACKENDS_CPU_OPTIONS_H

typedef struct sx_cpu_options {
    int threads;                /* workers; 0 = as many as this process may use */
    struct sx_profile *profile; /* gets the times of all kernels (profile.h); NULL: none are kept */
} sx_cpu_options;

#endif
