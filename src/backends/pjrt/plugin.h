/* A PJRT plugin: finding its library, trying it in a child, loading it, calling it.
 *
 * A library is tried first in a forked child that loads and initializes it: one that aborts there,
 * or is no plugin, becomes an error with its last words, not our end. Then this process loads it,
 * once for each path, and for good: XLA's threads outlive any dlclose. The list of loaded plugins
 * is therefore the process's, guarded by a lock. */
#ifndef SX_BACKENDS_PJRT_PLUGIN_H
#define SX_BACKENDS_PJRT_PLUGIN_H

#include <sextant/status.h>

#include "backends/pjrt/abi.h"

typedef enum sx_pjrt_kind {
    SX_PJRT_OTHER = 0,
    SX_PJRT_CPU,
    SX_PJRT_TPU,
    SX_PJRT_CUDA,
} sx_pjrt_kind;

typedef struct sx_pjrt_plugin {
    const char *path;
    sx_pjrt_kind kind; /* by its file's name: which client options it knows */
    bool exact;        /* it takes argument structs of its own sizes only: no spare bytes */
    const sx_pjrt_api *api;
    struct sx_pjrt_plugin *next;
} sx_pjrt_plugin;

/* What to look for. */
typedef struct sx_pjrt_wish {
    const char *path;   /* a library; NULL = search */
    const char *name;   /* "cpu", "tpu", "cuda", or a name of PJRT_NAMES_AND_LIBRARY_PATHS; NULL =
                           the first that is found */
    const char *python; /* an interpreter whose site-packages are searched; NULL = that of
                           $VIRTUAL_ENV, if set */
} sx_pjrt_wish;

/* One of $PJRT_NAMES_AND_LIBRARY_PATHS, "name:path,name:path"; borrowed from the environment. */
typedef struct sx_pjrt_entry {
    const char *name, *path;
    size_t name_size, path_size;
} sx_pjrt_entry;
/* The next one; *at is NULL before the first. False: there are no more. */
bool sx_pjrt_next_entry(const char **at, sx_pjrt_entry *out);

/* The library's path, into `buffer`: the wish's own, else from PJRT_NAMES_AND_LIBRARY_PATHS
 * ("name:path,name:path"), TPU_LIBRARY_PATH, the interpreter's packages, in this order.
 * Errors: NOT_FOUND says where it looked and what to install. */
enum { SX_PJRT_PATH_BYTES = 4096 };
SX_MUST_USE sx_status sx_pjrt_find(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES]);

/* Loads and initializes a library, after a child has tried it; borrowed, never unloaded.
 * Errors: NOT_FOUND, FAILED_PRECONDITION (no plugin, or of an incompatible version: both versions),
 * UNAVAILABLE (it crashed or exited in the child: how, and its output). */
SX_MUST_USE sx_status sx_pjrt_load(const char *path, const sx_pjrt_plugin **out);

/* The struct_size of a struct that another struct points to: sx_pjrt_call() knows that of the
 * outer one only. */
#define SX_PJRT_INNER_SIZE(plugin, name) \
    ((plugin)->exact ? SX_PJRT_SIZE(name) : sizeof(sx_pjrt_##name))

/* Does the plugin have that function? */
bool sx_pjrt_has(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot);
/* Calls it with an argument struct. An error of the plugin's becomes a status with its code and
 * words; a function that it does not have is UNIMPLEMENTED. */
SX_MUST_USE sx_status sx_pjrt_call(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args);
/* The same for functions that end something: a failure is dropped. `object` NULL does nothing. */
void sx_pjrt_end(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object);
/* A call that answers a text about an object, cut to `capacity` - 1 bytes. */
SX_MUST_USE sx_status sx_pjrt_text_of(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object,
                                      char *buffer, size_t capacity);
/* Is it the property of that name and type (SX_PJRT_INT64, …)? */
bool sx_pjrt_is_named(const sx_pjrt_named *row, const char *name, int type);
/* A plugin's error as a status; the error is destroyed. NULL is SX_OK. */
SX_MUST_USE sx_status sx_pjrt_status(const sx_pjrt_plugin *plugin, const char *what, void *error);

#endif
