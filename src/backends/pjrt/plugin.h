/* A PJRT plugin: finding its library, testing it in a child process, loading it, calling it.
 *
 * A forked child loads and initializes the library first: if it crashes or is not a plugin, that is
 * an error with the output of the child. Then this process loads it, once per path. A plugin is
 * never unloaded, because XLA's threads would outlive dlclose(); the list of loaded plugins is
 * therefore global, protected by a lock. */
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
    sx_pjrt_kind kind; /* by the file name; determines the client options */
    bool exact;        /* it requires argument structs without spare bytes */
    const sx_pjrt_api *api;
    struct sx_pjrt_plugin *next;
} sx_pjrt_plugin;

/* What to search for. */
typedef struct sx_pjrt_wish {
    const char *path;   /* a library; NULL = search */
    const char *name;   /* "cpu", "tpu", "cuda", or a name in PJRT_NAMES_AND_LIBRARY_PATHS; NULL =
                           the first plugin found */
    const char *python; /* a Python whose site-packages are searched; NULL = that of
                           $VIRTUAL_ENV, if set */
} sx_pjrt_wish;

/* An entry of $PJRT_NAMES_AND_LIBRARY_PATHS, "name:path,name:path"; borrowed from the environment.
 */
typedef struct sx_pjrt_entry {
    const char *name, *path;
    size_t name_size, path_size;
} sx_pjrt_entry;
/* The next entry; *at is NULL before the first. False if there are no more. */
bool sx_pjrt_next_entry(const char **at, sx_pjrt_entry *out);

/* Finds the library: wish->path, PJRT_NAMES_AND_LIBRARY_PATHS ("name:path,name:path"),
 * TPU_LIBRARY_PATH, the interpreter's packages, in this order.
 * Errors: UNAVAILABLE, with the places searched and what to install. */
enum { SX_PJRT_PATH_BYTES = 4096 };
SX_MUST_USE sx_status sx_pjrt_find(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES]);

/* Loads and initializes a library after testing it in a child process; borrowed, never unloaded.
 * Errors: NOT_FOUND; FAILED_PRECONDITION: not a plugin, or an incompatible version (names both);
 * UNAVAILABLE: it crashed or exited in the child (how, and its output). */
SX_MUST_USE sx_status sx_pjrt_load(const char *path, const sx_pjrt_plugin **out);

/* The struct_size for a struct that is pointed to by an argument struct; sx_pjrt_call() sets only
 * that of the argument struct. */
#define SX_PJRT_INNER_SIZE(plugin, name) \
    ((plugin)->exact ? SX_PJRT_SIZE(name) : sizeof(sx_pjrt_##name))

/* Calls the function with an argument struct. An error of the plugin becomes a status with its code
 * and message; a missing function is UNIMPLEMENTED. */
SX_MUST_USE sx_status sx_pjrt_call(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args);
/* The same for functions that destroy an object, ignoring errors. NULL is fine. */
void sx_pjrt_end(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object);
/* A call that returns a string about an object, truncated to `capacity` - 1 bytes. */
SX_MUST_USE sx_status sx_pjrt_text_of(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object,
                                      char *buffer, size_t capacity);
/* Whether it is the property with this name and type (SX_PJRT_INT64, …). */
bool sx_pjrt_is_named(const sx_pjrt_named *row, const char *name, int type);
/* Converts a plugin's error to a status and destroys it. NULL is SX_OK. */
SX_MUST_USE sx_status sx_pjrt_status(const sx_pjrt_plugin *plugin, const char *what, void *error);

#endif
