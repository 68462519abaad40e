/* Logging: the only output of the library layers, through a sink set by the program. Without a sink
 * (the default) nothing is logged. */
#ifndef SX_BASE_LOG_H
#define SX_BASE_LOG_H

#include <sextant/status.h>

typedef enum sx_log_level {
    SX_LOG_DEBUG,
    SX_LOG_INFO,
    SX_LOG_WARN,
    SX_LOG_ERROR,
    SX_LOG_NONE
} sx_log_level;

typedef void sx_log_fn(void *user, sx_log_level level, const char *file, int line,
                       const char *message);

/* Sets the sink of the process, before any thread starts. `level` is the lowest level logged. */
void sx_log_set_sink(sx_log_fn *fn, void *user, sx_log_level level);
void sx_log_at(sx_log_level level, const char *file, int line, const char *format, ...)
    SX_PRINTF(4, 5);
#define sx_log(level, ...) sx_log_at((level), __FILE__, __LINE__, __VA_ARGS__)

#endif
