/* From program text to a loaded executable, through the compile cache (cache.h).
 *
 * The key covers everything the result depends on: the text, the compile options (replicas, device
 * assignment), the plugin (size and time of its file, versions of its interface and platform), the
 * kind of device, the flags that the plugin reads from the environment, and for CPU devices the
 * processor. Cache failures are not errors: an entry that is damaged or rejected by the plugin is
 * deleted and the program compiled, with a log message. */
#ifndef SX_BACKENDS_PJRT_COMPILE_H
#define SX_BACKENDS_PJRT_COMPILE_H

#include "backends/pjrt/cache.h"
#include "backends/pjrt/client.h"
#include "base/buffer.h"

typedef struct sx_pjrt_compile_request {
    const char *text; /* StableHLO */
    size_t size;
    int replicas;
    const int *ids;        /* [replicas]: device ids */
    bool unfused;          /* compile_options.h */
    const char *cache_dir; /* NULL = no cache */
} sx_pjrt_compile_request;

typedef struct sx_pjrt_compiled {
    void *loaded; /* destroy it with SX_PJRT_LOADED_DESTROY */
    bool from_cache;
    sx_pjrt_facts facts; /* zero if unknown */
} sx_pjrt_compiled;

/* The maximum size of the cache. */
#define SX_PJRT_CACHE_BYTES ((uint64_t)2 << 30)

SX_MUST_USE sx_status sx_pjrt_compile_program(const sx_pjrt_client *c,
                                              const sx_pjrt_compile_request *request,
                                              sx_pjrt_compiled *out);

/* Everything about the plugin that affects its programs, for a key: its file, its version, the
 * flags that it reads from the environment, and for CPU devices the processor. */
enum { SX_PJRT_PLUGIN_TEXT = 1 << 20 }; /* maximum size */
SX_MUST_USE sx_status sx_pjrt_put_plugin(const sx_pjrt_plugin *plugin, sx_buf *text);

/* The plugin's figures for an executable (not for a loaded one). */
sx_pjrt_facts sx_pjrt_measure(const sx_pjrt_plugin *plugin, void *executable);
/* Serializes an executable; free the bytes with sx_free. UNIMPLEMENTED: the plugin does not support
 * it. */
SX_MUST_USE sx_status sx_pjrt_serialize(const sx_pjrt_plugin *plugin, void *executable,
                                        char **out_bytes, size_t *out_size);

#endif
