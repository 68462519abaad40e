/* Shared libraries that few processes need: they are loaded with the first call that needs one, not
 * when the process starts, whose memory and time they would take. */
#ifndef SX_BASE_LATE_LIBRARY_H
#define SX_BASE_LATE_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sextant/status.h>

typedef struct sx_late_function {
    const char *name;
    void *to; /* the function pointer to set */
} sx_late_function;

/* A static variable; the fields after `start` are zero. */
typedef struct sx_late_library {
    const char *soname; /* "libz.so.1" */
    const char *origin; /* for the error: "Debian's package zlib1g" */
    const sx_late_function *functions;
    int function_count;
    sx_status (*start)(void); /* called once, after all functions are set; NULL: nothing to start */
    atomic_bool loaded;
} sx_late_library;

/* Loads the library unless that was done, and sets its functions. It stays loaded. From any thread.
 * Errors: FAILED_PRECONDITION: it is not there, or lacks a function; those of `start`. The next
 * call tries again. */
SX_MUST_USE sx_status sx_late_library_load(sx_late_library *library);

#endif
