/* A backend, and how tests run it: what test_conformance.c, test_training.c and test_convolutions.c
 * share. Include it after harness.h. */
#ifndef SX_TESTS_BACKENDS_SETTING_H
#define SX_TESTS_BACKENDS_SETTING_H

#include <string.h>

#include "backends/backend.h"
#include "pjrt_plugin.h"

typedef struct setting {
    const char *backend;
    int threads, shards; /* on pjrt: replicas, steps of one execution */
    sx_dtype precision;
} setting;

static inline sx_platform_options options_of(const setting *s)
{
    bool pjrt = strcmp(s->backend, "pjrt") == 0;
    return (sx_platform_options){.cpu.threads = pjrt ? 0 : s->threads,
                                 .pjrt.replicas = pjrt ? s->threads : 0,
                                 .pjrt.plugin_path = pjrt ? pjrt_plugin() : NULL};
}

/* The backends that need nothing but this build; pjrt's tests are their own, and skip aloud. */
static inline bool is_built_in(const sx_backend *backend)
{
    return backend != NULL && strcmp(backend->name, "pjrt") != 0;
}

#endif
