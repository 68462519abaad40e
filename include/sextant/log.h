/* The log: the library's warnings and, at lower levels, what a server does.
 *
 * Warnings and errors go to stderr, one line each, unless a program sets a function of its own or
 * turns them off with sx_log_set_sink(NULL, NULL, SX_LOG_NONE). Nothing else is ever printed. */
#ifndef SEXTANT_LOG_H
#define SEXTANT_LOG_H

#include <sextant/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sx_log_level {
    SX_LOG_DEBUG,
    SX_LOG_INFO,
    SX_LOG_WARN,
    SX_LOG_ERROR,
    SX_LOG_NONE
} sx_log_level;

/* `message` has no line break and is valid only during the call; `file` and `line` are where it was
 * logged. May be called from any thread. */
typedef void sx_log_fn(void *user, sx_log_level level, const char *file, int line,
                       const char *message);

/* Sets the process-wide function that receives all messages of at least `level`; NULL = none. Call
 * it before any thread starts. */
SX_API void sx_log_set_sink(sx_log_fn *fn, void *user, sx_log_level level);

#ifdef __cplusplus
}
#endif
#endif
