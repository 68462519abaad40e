/* Where the pjrt backend's tests find their plugin: $SEXTANT_PJRT_PLUGIN, else the one of
 * `tools/peers pjrt`, which installs it at first. CTest runs each a second time over our own plugin
 * (tests/pjrt_ref), which needs nothing but this build. */
#ifndef SX_TESTS_BACKENDS_PJRT_PLUGIN_H
#define SX_TESTS_BACKENDS_PJRT_PLUGIN_H

#include "harness.h"

#include <dlfcn.h>
#include <string.h>

#include "../pjrt_ref/counts.h"
#include "backends/pjrt/plugin.h"

/* The library's path, or NULL: the tests that need it skip. */
static inline const char *pjrt_plugin(void)
{
    static char path[SX_PJRT_PATH_BYTES];
    const char *given = getenv("SEXTANT_PJRT_PLUGIN"), *source = getenv("SEXTANT_SRC");
    char python[SX_PJRT_PATH_BYTES], command[SX_PJRT_PATH_BYTES + 64];
    if (given != NULL || path[0] != '\0') {
        return given != NULL ? given : path;
    }
    snprintf(command, sizeof(command), "%s/tools/peers pjrt", source == NULL ? "." : source);
    FILE *pipe = popen(command, "r");
    bool found = pipe != NULL && fgets(python, sizeof(python), pipe) != NULL;
    found = pipe != NULL && pclose(pipe) == 0 && found;
    if (!found) {
        return NULL;
    }
    python[strcspn(python, "\n")] = '\0';
    sx_status status = sx_pjrt_find(&(sx_pjrt_wish){.name = "cpu", .python = python}, path);
    sx_status_free(status);
    return path[0] != '\0' ? path : NULL;
}

/* Our own plugin, for faults: $SX_PJRT_REF_FAULT (tests/pjrt_ref/fault.h). */
static inline const char *ref_plugin(void)
{
    static char path[SX_PJRT_PATH_BYTES];
    const char *bin = getenv("SEXTANT_TEST_BIN");
    snprintf(path, sizeof(path), "%s/libpjrt_ref.so", bin == NULL ? "build/release/tests" : bin);
    return path;
}

/* What our own plugin, which is open, has been asked for. */
static inline const ref_counts *ref_plugin_counts(void)
{
    void *library = dlopen(ref_plugin(), RTLD_NOW | RTLD_NOLOAD);
    const ref_counts *counts = library != NULL ? dlsym(library, "sx_pjrt_ref_counts") : NULL;
    assert_non_null(counts);
    dlclose(library);
    return counts;
}

/* XLA's plugin is not built with ThreadSanitizer, which then takes its locks for races; our own is.
 */
static inline bool pjrt_plugin_blinds(void)
{
    const char *sanitizer = getenv("SEXTANT_SANITIZE"), *given = getenv("SEXTANT_PJRT_PLUGIN");
    bool ours = given != NULL && strstr(given, "/libpjrt_ref.so") != NULL;
    return !ours && sanitizer != NULL && strcmp(sanitizer, "thread") == 0;
}

#define SKIP_WITHOUT_PJRT()                                                                \
    do {                                                                                   \
        if (pjrt_plugin_blinds()) {                                                        \
            SX_SKIP("ThreadSanitizer does not see the locks of XLA's plugin");             \
        }                                                                                  \
        if (pjrt_plugin() == NULL) {                                                       \
            SX_SKIP("the PJRT plugin could not be installed (tools/peers pjrt says why)"); \
        }                                                                                  \
    } while (0)

#endif
