/* From a program text to a loaded executable: out of the cache (cache.h), or compiled, and then
 * kept there.
 *
 * The key holds all that the result depends on: the text, the bytes of the compile options
 * (replicas, device assignment), the plugin (size and time of its file, version of its interface,
 * of its platform), the device's kind, the flags that it reads from the environment, and, where the
 * processor is the device, the processor. Nothing of the cache is an error: an entry that is
 * damaged or that the plugin refuses is deleted and the program compiled, with a line in the log.
 */
#ifndef SX_BACKENDS_PJRT_COMPILE_H
#define SX_BACKENDS_PJRT_COMPILE_H

#include "backends/pjrt/cache.h"
#include "backends/pjrt/client.h"
#include "base/buffer.h"

typedef struct sx_pjrt_compile_request {
    const char *text; /* StableHLO */
    size_t size;
    int replicas;
    const int *ids;        /* [replicas]: their devices */
    const char *cache_dir; /* NULL = no cache */
} sx_pjrt_compile_request;

typedef struct sx_pjrt_compiled {
    void *loaded; /* end it with SX_PJRT_LOADED_DESTROY */
    bool from_cache;
    sx_pjrt_facts facts; /* zero where the plugin does not say */
} sx_pjrt_compiled;

/* The cache's entries together: oldest go first. */
#define SX_PJRT_CACHE_BYTES ((uint64_t)2 << 30)

SX_MUST_USE sx_status sx_pjrt_compile_program(const sx_pjrt_client *c,
                                              const sx_pjrt_compile_request *request,
                                              sx_pjrt_compiled *out);

/* What of the plugin decides its programs, for a key: its file, its version, the flags that it
 * reads from the environment, and the processor where that is the device. */
enum { SX_PJRT_PLUGIN_TEXT = 1 << 20 }; /* room enough */
SX_MUST_USE sx_status sx_pjrt_put_plugin(const sx_pjrt_plugin *plugin, sx_buf *text);

/* What the plugin says of an executable (not of a loaded one). */
sx_pjrt_facts sx_pjrt_measure(const sx_pjrt_plugin *plugin, void *executable);
/* Its bytes, for a cache or a file: free with sx_free. UNIMPLEMENTED where the plugin cannot. */
SX_MUST_USE sx_status sx_pjrt_serialize(const sx_pjrt_plugin *plugin, void *executable,
                                        char **out_bytes, size_t *out_size);

#endif
